/* Who sends in an exchange, and what of theirs waits. */
#include "exchange_inbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchange_merge.h"
#include "test.h"

#define DEPTH 3

static int open_inbox(void **state)
{
    return ls_exchange_inbox_create((ls_exchange_inbox **)state,
                                    "collector, actor", DEPTH);
}

static int close_inbox(void **state)
{
    ls_exchange_inbox_destroy((ls_exchange_inbox **)state);
    return *state != NULL;
}

static struct ls_member member_of(uint32_t id, uint64_t incarnation,
                                  const char *role, enum ls_member_state state,
                                  int reason)
{
    struct ls_member member = {
        .id = id, .incarnation = incarnation, .state = state, .reason = reason};
    strncpy(member.role, role, sizeof member.role - 1);
    return member;
}

static void tell(ls_exchange_inbox *inbox, uint32_t id, uint64_t incarnation,
                 enum ls_member_state state, int reason)
{
    const struct ls_member member =
        member_of(id, incarnation, "collector", state, reason);
    assert_ok(ls_exchange_inbox_member(inbox, &member));
}

static uint64_t put(ls_exchange_inbox *inbox, uint32_t id, uint64_t incarnation,
                    const char *text)
{
    uint64_t dropped;
    assert_ok(ls_exchange_inbox_put(inbox, id, incarnation, text, strlen(text),
                                    &dropped));
    return dropped;
}

/* All that is taken, as "id:text id:text". */
static const char *take(ls_exchange_inbox *inbox)
{
    static char text[256];
    struct ls_exchange_message messages[8];
    const size_t n = ls_exchange_inbox_take(inbox, messages, 8);
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%u:%.*s",
                                 i > 0 ? " " : "", (unsigned)messages[i].sender,
                                 (int)messages[i].size,
                                 (const char *)messages[i].data);
        free(messages[i].data);
    }
    return text;
}

#define assert_look(inbox, run, ...)                                           \
    do {                                                                       \
        const struct ls_exchange_look expected_ = {__VA_ARGS__};               \
        struct ls_exchange_look look_;                                         \
        ls_exchange_inbox_look((inbox), (run), &look_);                        \
        assert_int_equal(look_.queued, expected_.queued);                      \
        assert_int_equal(look_.awaited, expected_.awaited);                    \
        assert_int_equal(look_.ended, expected_.ended);                        \
        assert_int_equal(look_.left, expected_.left);                          \
        assert_int_equal(look_.lost, expected_.lost);                          \
    } while (0)

TEST_WITH(one_message_of_each_is_taken_in_order_of_id, open_inbox, close_inbox)
{
    ls_exchange_inbox *inbox = *state;
    put(inbox, 9, 1, "a");
    put(inbox, 2, 1, "b");
    put(inbox, 2, 1, "c");
    put(inbox, 5, 1, "d");
    assert_look(inbox, 1, .queued = 3);
    assert_string_equal(take(inbox), "2:b 5:d 9:a");
    assert_string_equal(take(inbox), "2:c");
    assert_string_equal(take(inbox), "");
}

TEST_WITH(what_members_of_other_roles_send_is_thrown_away, open_inbox,
          close_inbox)
{
    ls_exchange_inbox *inbox = *state;
    const struct ls_member members[] = {
        member_of(1, 1, "collector", LS_MEMBER_READY, 0),
        member_of(2, 1, "evaluator", LS_MEMBER_READY, 0),
        member_of(3, 1, "evaluator", LS_MEMBER_READY, 0)};
    put(inbox, 2, 1, "too early"); /* its role is not known */
    assert_ok(ls_exchange_inbox_members(inbox, members, 3));
    put(inbox, 1, 1, "a");
    put(inbox, 2, 1, "b");
    put(inbox, 3, 1, "c");
    assert_look(inbox, 1, .queued = 1);
    assert_string_equal(take(inbox), "1:a");
    assert_string_equal(take(inbox), "");
    assert_look(inbox, 1, .awaited = 1);
    put(inbox, 3, 2, "d"); /* a new life may have another role */
    assert_string_equal(take(inbox), "3:d");
}

TEST_WITH(a_full_queue_loses_its_oldest_and_counts, open_inbox, close_inbox)
{
    ls_exchange_inbox *inbox = *state;
    assert_int_equal(put(inbox, 1, 1, "a"), 0);
    assert_int_equal(put(inbox, 1, 1, "b"), 0);
    assert_int_equal(put(inbox, 1, 1, "c"), 0);
    assert_int_equal(put(inbox, 1, 1, "d"), 1);
    assert_int_equal(put(inbox, 1, 1, "e"), 2);
    assert_int_equal(put(inbox, 2, 1, "other"), 0);
    assert_string_equal(take(inbox), "1:c 2:other");
    assert_string_equal(take(inbox), "1:d");
    assert_string_equal(take(inbox), "1:e");
}

TEST_WITH(a_message_tells_its_round, open_inbox, close_inbox)
{
    static const uint64_t rounds[] = {0,          1,          127,       128,
                                      255,        256,        65535,     65536,
                                      UINT32_MAX, UINT64_MAX, 4294967296};
    for (size_t i = 0; i < sizeof rounds / sizeof rounds[0]; i++) {
        ls_writer *writer;
        const void *data;
        size_t size;
        assert_ok(ls_writer_create(&writer));
        ls_write_map(writer, 4); /* as ls_exchange_write() begins it */
        ls_write_string(writer, "round");
        ls_write_uint(writer, rounds[i]);
        for (int k = 0; k < 3; k++) {
            ls_write_string(writer, "more");
            ls_write_nil(writer);
        }
        assert_ok(ls_writer_bytes(writer, &data, &size));
        assert_true(ls_exchange_round_of(data, size) == rounds[i]);
        /* Cut anywhere, it is read no further than it goes. */
        for (size_t n = 0; n < size; n++) {
            unsigned char *cut = malloc(n > 0 ? n : 1);
            assert_non_null(cut);
            memcpy(cut, data, n);
            (void)ls_exchange_round_of(cut, n);
            free(cut);
        }
        ls_writer_destroy(&writer);
    }
    assert_true(ls_exchange_round_of("\x81\xa5other\x01", 8) == 0);
}

/* A message as ls_exchange_write() begins it; of a round under 128. */
static void put_of_round(ls_exchange_inbox *inbox, uint32_t id, char round,
                         char letter)
{
    char bytes[] = "\x84\xa5round_?";
    bytes[7] = round;
    bytes[8] = letter;
    put(inbox, id, 1, bytes);
}

TEST_WITH(a_round_throws_away_what_is_of_an_earlier_one, open_inbox,
          close_inbox)
{
    ls_exchange_inbox *inbox = *state;
    put_of_round(inbox, 1, 3, 'a');
    put_of_round(inbox, 1, 4, 'b');
    put_of_round(inbox, 2, 3, 'c');
    ls_exchange_inbox_begin(inbox, 4);
    assert_look(inbox, 1, .queued = 1);
    put_of_round(inbox, 2, 3, 'd'); /* late */
    put_of_round(inbox, 2, 5, 'e'); /* ahead */
    assert_int_equal(ls_exchange_inbox_stale(inbox), 3);
    assert_string_equal(take(inbox), "1:\x84\xa5round\x04"
                                     "b 2:\x84\xa5round\x05"
                                     "e");
    assert_string_equal(take(inbox), "");
}

TEST_WITH(what_is_earlier_is_thrown_away_behind_what_is_not, open_inbox,
          close_inbox)
{
    ls_exchange_inbox *inbox = *state;
    put_of_round(inbox, 1, 5, 'a');
    put_of_round(inbox, 1, 3, 'b'); /* as no sender of ours does */
    put_of_round(inbox, 1, 6, 'c');
    ls_exchange_inbox_begin(inbox, 4);
    assert_int_equal(ls_exchange_inbox_stale(inbox), 1);
    assert_string_equal(take(inbox), "1:\x84\xa5round\x05"
                                     "a");
    assert_string_equal(take(inbox), "1:\x84\xa5round\x06"
                                     "c");
    assert_string_equal(take(inbox), "");
}

TEST_WITH(a_round_begins_without_those_lost_before, open_inbox, close_inbox)
{
    ls_exchange_inbox *inbox = *state;
    tell(inbox, 1, 1, LS_MEMBER_READY, LS_OK);
    tell(inbox, 1, 1, LS_MEMBER_LOST, LS_ELOST);
    assert_look(inbox, 1, .lost = 1);
    ls_exchange_inbox_begin(inbox, 1);
    assert_look(inbox, 1, .left = 1);
    tell(inbox, 1, 2, LS_MEMBER_READY, LS_OK);
    assert_look(inbox, 1, .awaited = 1);
}

TEST_WITH(ready_members_of_the_roles_are_awaited, open_inbox, close_inbox)
{
    ls_exchange_inbox *inbox = *state;
    const struct ls_member members[] = {
        member_of(1, 1, "collector", LS_MEMBER_READY, 0),
        member_of(2, 1, "learner", LS_MEMBER_READY, 0),
        member_of(3, 1, "learner,actor", LS_MEMBER_READY, 0),
        member_of(4, 1, "collectors", LS_MEMBER_READY, 0),
        member_of(5, 1, "", LS_MEMBER_READY, 0),
        member_of(6, 1, "collector", LS_MEMBER_SEEN, 0),
        member_of(7, 1, "collector", LS_MEMBER_LEFT, 0),
    };
    assert_ok(ls_exchange_inbox_members(inbox, members, 7));
    assert_look(inbox, 1, .awaited = 2);
    char text[128];
    ls_exchange_inbox_print_awaited(inbox, 1, false, text, sizeof text);
    assert_string_equal(text, "node 1 (collector), node 3 (learner,actor)");
    put(inbox, 1, 1, "a");
    ls_exchange_inbox_print_awaited(inbox, 1, false, text, sizeof text);
    assert_string_equal(text, "node 3 (learner,actor)");
    ls_exchange_inbox_print_awaited(inbox, 1, false, text, 6);
    assert_string_equal(text, "node ");
    assert_ok(ls_exchange_inbox_end(inbox, 3, 1, 1));
    ls_exchange_inbox_print_awaited(inbox, 1, false, text, sizeof text);
    assert_string_equal(text, "");
    ls_exchange_inbox_print_awaited(inbox, 1, true, text, sizeof text);
    assert_string_equal(text,
                        "node 3 (learner,actor), which has ended its run");
}

TEST_WITH(a_list_of_members_does_not_undo_what_became_of_them, open_inbox,
          close_inbox)
{
    ls_exchange_inbox *inbox = *state;
    const struct ls_member early =
        member_of(1, 1, "collector", LS_MEMBER_READY, 0);
    tell(inbox, 1, 1, LS_MEMBER_READY, 0);
    tell(inbox, 1, 1, LS_MEMBER_LEFT, LS_OK);
    assert_ok(ls_exchange_inbox_members(inbox, &early, 1));
    assert_look(inbox, 1, .left = 1);
}

TEST_WITH(an_end_counts_for_its_run_and_those_before, open_inbox, close_inbox)
{
    ls_exchange_inbox *inbox = *state;
    tell(inbox, 1, 1, LS_MEMBER_READY, 0);
    put(inbox, 1, 1, "the last");
    assert_ok(ls_exchange_inbox_end(inbox, 1, 1, 2));
    assert_look(inbox, 2, .queued = 1);
    assert_string_equal(take(inbox), "1:the last");
    assert_look(inbox, 1, .ended = 1);
    assert_look(inbox, 2, .ended = 1);
    assert_look(inbox, 3, .awaited = 1);
}

TEST_WITH(who_left_is_not_awaited_but_what_it_sent_is_taken, open_inbox,
          close_inbox)
{
    ls_exchange_inbox *inbox = *state;
    tell(inbox, 1, 1, LS_MEMBER_READY, 0);
    put(inbox, 1, 1, "a");
    tell(inbox, 1, 1, LS_MEMBER_LEFT, LS_OK);
    assert_look(inbox, 1, .queued = 1);
    assert_string_equal(take(inbox), "1:a");
    assert_look(inbox, 1, .left = 1);
}

struct loss_row {
    const char *name;
    enum ls_member_state state;
    int reason;
    uint64_t ended; /* run; 0: none */
    bool lost;
    const char *text;
};

static const struct loss_row loss_rows[] = {
    {"closed", LS_MEMBER_LOST, LS_ELOST, 0, true, "was lost"},
    {"silent", LS_MEMBER_LOST, LS_ETIMEDOUT, 0, true, "was lost"},
    {"failed", LS_MEMBER_LEFT, LS_EINVAL, 0, true, "left with an error"},
    {"left", LS_MEMBER_LEFT, LS_OK, 0, false, NULL},
    {"lost after its end", LS_MEMBER_LOST, LS_ELOST, 1, false, NULL},
};

TEST(a_loss_is_taken_once_by_name)
{
    for (size_t i = 0; i < sizeof loss_rows / sizeof *loss_rows; i++) {
        const struct loss_row *row = &loss_rows[i];
        print_message("    %s\n", row->name);
        ls_exchange_inbox *inbox;
        assert_ok(ls_exchange_inbox_create(&inbox, "collector", DEPTH));
        tell(inbox, 4, 1, LS_MEMBER_READY, 0);
        if (row->ended > 0)
            assert_ok(ls_exchange_inbox_end(inbox, 4, 1, row->ended));
        tell(inbox, 4, 1, row->state, row->reason);
        assert_look(inbox, 1, .lost = row->lost, .left = !row->lost);
        assert_fails(ls_exchange_inbox_take_loss(inbox, 1), LS_ELOST);
        if (row->lost) {
            assert_error_has("node 4 (collector)");
            assert_non_null(strstr(ls_error_text(), row->text));
        }
        assert_look(inbox, 1, .left = 1);
        ls_exchange_inbox_destroy(&inbox);
    }
}

/* And in the next run it counts, if it did not come back. */
TEST_WITH(who_is_lost_after_its_end_is_not_to_blame, open_inbox, close_inbox)
{
    ls_exchange_inbox *inbox = *state;
    tell(inbox, 3, 1, LS_MEMBER_READY, 0);
    tell(inbox, 4, 1, LS_MEMBER_READY, 0);
    assert_ok(ls_exchange_inbox_end(inbox, 3, 1, 1));
    tell(inbox, 3, 1, LS_MEMBER_LOST, LS_ELOST);
    tell(inbox, 4, 1, LS_MEMBER_LOST, LS_ETIMEDOUT);
    assert_look(inbox, 1, .lost = 1, .left = 1);
    assert_fails(ls_exchange_inbox_take_loss(inbox, 1), LS_ELOST);
    assert_error_has("node 4 (collector) was lost");
    assert_look(inbox, 1, .left = 2);
    assert_look(inbox, 2, .lost = 1, .left = 1);
    assert_fails(ls_exchange_inbox_take_loss(inbox, 2), LS_ELOST);
    assert_error_has("node 3 (collector) was lost");
}

TEST_WITH(when_none_is_left_one_who_was_lost_is_named, open_inbox, close_inbox)
{
    static const char *const text = "no node that sends is left";
    ls_exchange_inbox *inbox = *state;
    tell(inbox, 3, 1, LS_MEMBER_LEFT, LS_OK);
    assert_fails(ls_exchange_inbox_none_left(inbox), LS_ELOST);
    assert_error_has(text);
    assert_null(strstr(ls_error_text(), "node 3"));
    tell(inbox, 4, 1, LS_MEMBER_LOST, LS_ETIMEDOUT);
    assert_fails(ls_exchange_inbox_none_left(inbox), LS_ELOST);
    assert_error_has(text);
    assert_error_has("node 4 (collector) was lost");
}

TEST_WITH(a_new_life_begins_anew, open_inbox, close_inbox)
{
    ls_exchange_inbox *inbox = *state;
    tell(inbox, 1, 1, LS_MEMBER_READY, 0);
    put(inbox, 1, 1, "old");
    assert_ok(ls_exchange_inbox_end(inbox, 1, 1, 1));
    tell(inbox, 1, 2, LS_MEMBER_READY, 0);
    assert_look(inbox, 1, .awaited = 1);
    put(inbox, 1, 2, "new");
    tell(inbox, 1, 1, LS_MEMBER_LOST, LS_ELOST); /* late news of the old one */
    assert_string_equal(take(inbox), "1:new");
    assert_look(inbox, 1, .awaited = 1);
}

TEST_WITH(a_member_that_comes_back_can_be_lost_again, open_inbox, close_inbox)
{
    ls_exchange_inbox *inbox = *state;
    tell(inbox, 1, 1, LS_MEMBER_READY, 0);
    for (int i = 0; i < 2; i++) {
        tell(inbox, 1, 1, LS_MEMBER_LOST, LS_ETIMEDOUT);
        assert_look(inbox, 1, .lost = 1);
        assert_fails(ls_exchange_inbox_take_loss(inbox, 1), LS_ELOST);
        tell(inbox, 1, 1, LS_MEMBER_READY, 0);
        assert_look(inbox, 1, .awaited = 1);
    }
}
