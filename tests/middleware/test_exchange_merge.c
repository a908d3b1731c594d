/* How the messages of several senders become one context. */
#include "exchange_merge.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

/* A context with a field of each kind. */
struct mixed {
    int64_t total_step;
    struct ls_items items;
    struct ls_numbers ends;
    struct ls_numbers loose;
    int64_t env_step;
    double hours;
    int64_t train_iter;
    double value;
    bool flag;
    char *note;
    struct ls_bytes policy;
};

static const struct ls_field mixed_fields[] = {
    LS_FIELD(struct mixed, total_step, LS_FIELD_INT, true),
    LS_FIELD(struct mixed, items, LS_FIELD_ITEMS, false),
    LS_FIELD(struct mixed, ends, LS_FIELD_NUMBERS, false),
    LS_FIELD(struct mixed, loose, LS_FIELD_NUMBERS, false),
    LS_FIELD(struct mixed, env_step, LS_FIELD_INT, true),
    LS_FIELD(struct mixed, hours, LS_FIELD_DOUBLE, true),
    LS_FIELD(struct mixed, train_iter, LS_FIELD_INT, true),
    LS_FIELD(struct mixed, value, LS_FIELD_DOUBLE, false),
    LS_FIELD(struct mixed, flag, LS_FIELD_BOOL, false),
    LS_FIELD(struct mixed, note, LS_FIELD_TEXT, false),
    LS_FIELD(struct mixed, policy, LS_FIELD_BYTES, false),
};
static const struct ls_context_type mixed_type = {
    "mixed", sizeof(struct mixed), mixed_fields,
    sizeof mixed_fields / sizeof *mixed_fields};

/* `loose` stands before any items: it is appended, not shifted. */
static const char all_fields[] =
    "loose, items, ends, train_iter, value, flag, note, policy";
static const char all_increments[] = "env_step,hours";

struct side {
    ls_context *context;
    struct mixed *data;
    ls_exchange_plan *plan;
};

static void side_open(struct side *side)
{
    assert_ok(ls_context_create(&side->context, &mixed_type));
    side->data = ls_context_data(side->context);
    assert_ok(ls_exchange_plan_create(&side->plan, side->context, all_fields,
                                      all_increments));
}

static void side_close(struct side *side)
{
    ls_exchange_plan_destroy(&side->plan);
    ls_context_destroy(&side->context);
}

static struct ls_exchange_part part_of(struct side *side, uint32_t sender)
{
    struct ls_exchange_part part;
    ls_writer *writer;
    const void *data;
    size_t size;
    assert_ok(ls_writer_create(&writer));
    assert_ok(ls_exchange_write(side->plan, side->context, 7, writer));
    assert_ok(ls_writer_bytes(writer, &data, &size));
    uint64_t run;
    assert_false(ls_exchange_is_end(data, size, &run));
    assert_ok(ls_exchange_part_read(&part, sender, data, size));
    ls_writer_destroy(&writer);
    ls_exchange_sent(side->plan, side->context);
    return part;
}

/* Lists ------------------------------------------------------------------ */

enum { MOST = 16 };

struct list_row {
    const char *name;
    struct {
        size_t n_items;
        size_t n_ends;
        int64_t ends[MOST];
    } senders[4];
    size_t n_senders;
    size_t local_items; /* what the receiver has already */
    size_t n_items;     /* expected */
    size_t n_ends;
    int64_t ends[MOST];
};

static const struct list_row list_rows[] = {
    {"one sender's indices stay", {{4, 2, {1, 3}}}, 1, 0, 4, 2, {1, 3}},
    {"a second sender's are shifted by the items of the first",
     {{4, 2, {1, 3}}, {4, 2, {1, 3}}},
     2,
     0,
     8,
     4,
     {1, 3, 5, 7}},
    {"a sender without items shifts nothing",
     {{2, 1, {1}}, {0, 0, {0}}, {3, 2, {0, 2}}},
     3,
     0,
     5,
     3,
     {1, 2, 4}},
    {"the receiver's own items come first",
     {{4, 2, {1, 3}}, {1, 1, {0}}},
     2,
     3,
     8,
     3,
     {4, 6, 7}},
    {"an index one past the last is an end, too",
     {{4, 1, {4}}, {4, 2, {0, 4}}},
     2,
     0,
     8,
     3,
     {4, 4, 8}},
    {"nothing from anybody is nothing", {{0, 0, {0}}}, 1, 0, 0, 0, {0}},
};

static void fill(struct mixed *data, uint32_t sender, size_t n_items)
{
    char text[32];
    for (size_t i = 0; i < n_items; i++) {
        const int n =
            snprintf(text, sizeof text, "%u.%zu", (unsigned)sender, i);
        assert_ok(ls_items_append(&data->items, text, (size_t)n));
    }
}

/* Items are "sender.index": each sender's in order, senders in order. */
static void check_order(const struct ls_items *items, uint32_t first)
{
    uint32_t sender = first;
    size_t index = 0;
    char text[32];
    for (size_t i = 0; i < items->n; i++) {
        int n = snprintf(text, sizeof text, "%u.%zu", (unsigned)sender, index);
        while (items->items[i].size != (size_t)n ||
               memcmp(items->items[i].data, text, (size_t)n) != 0) {
            assert_true(++sender < 10);
            index = 0;
            n = snprintf(text, sizeof text, "%u.0", (unsigned)sender);
        }
        index++;
    }
}

static void check_list_row(const struct list_row *row)
{
    struct ls_exchange_part parts[4];
    struct side receiver;
    side_open(&receiver);
    fill(receiver.data, 0, row->local_items);
    for (size_t i = 0; i < row->n_senders; i++) {
        struct side sender;
        side_open(&sender);
        fill(sender.data, (uint32_t)i + 1, row->senders[i].n_items);
        for (size_t j = 0; j < row->senders[i].n_ends; j++)
            assert_ok(
                ls_numbers_append(&sender.data->ends, row->senders[i].ends[j]));
        parts[i] = part_of(&sender, (uint32_t)i + 1);
        side_close(&sender);
    }
    assert_ok(ls_exchange_merge(receiver.plan, receiver.context, parts,
                                row->n_senders));
    assert_int_equal(receiver.data->items.n, row->n_items);
    check_order(&receiver.data->items, 0);
    assert_int_equal(receiver.data->ends.n, row->n_ends);
    for (size_t i = 0; i < row->n_ends; i++)
        assert_int_equal(receiver.data->ends.values[i], row->ends[i]);
    for (size_t i = 0; i < row->n_senders; i++)
        ls_exchange_part_fini(&parts[i]);
    side_close(&receiver);
}

TEST(lists_are_appended_and_indices_shifted)
{
    for (size_t i = 0; i < sizeof list_rows / sizeof *list_rows; i++) {
        print_message("    %s\n", list_rows[i].name);
        check_list_row(&list_rows[i]);
    }
}

TEST(numbers_that_follow_no_items_are_not_shifted)
{
    struct side sender, receiver;
    side_open(&sender);
    side_open(&receiver);
    fill(sender.data, 1, 3);
    assert_ok(ls_numbers_append(&sender.data->loose, -100));
    struct ls_exchange_part parts[2] = {part_of(&sender, 1),
                                        part_of(&sender, 2)};
    assert_ok(ls_exchange_merge(receiver.plan, receiver.context, parts, 2));
    assert_int_equal(receiver.data->loose.n, 2);
    assert_int_equal(receiver.data->loose.values[1], -100);
    ls_exchange_part_fini(&parts[0]);
    ls_exchange_part_fini(&parts[1]);
    side_close(&sender);
    side_close(&receiver);
}

/* Values ----------------------------------------------------------------- */

TEST(increments_add_up)
{
    struct side a, b, receiver;
    side_open(&a);
    side_open(&b);
    side_open(&receiver);
    receiver.data->env_step = 1000;
    /* Two messages each: only what came since the last counts. */
    for (int round = 0; round < 2; round++) {
        a.data->env_step += 10;
        b.data->env_step += 200;
        b.data->hours += 0.5;
        struct ls_exchange_part parts[2] = {part_of(&a, 1), part_of(&b, 2)};
        assert_ok(ls_exchange_merge(receiver.plan, receiver.context, parts, 2));
        ls_exchange_part_fini(&parts[0]);
        ls_exchange_part_fini(&parts[1]);
    }
    assert_int_equal(receiver.data->env_step, 1420);
    assert_true(receiver.data->hours == 1.0);
    side_close(&a);
    side_close(&b);
    side_close(&receiver);
}

TEST(what_was_there_at_first_is_no_increment)
{
    struct side receiver, restored;
    side_open(&receiver);
    assert_ok(ls_context_create(&restored.context, &mixed_type));
    restored.data = ls_context_data(restored.context);
    restored.data->env_step = 5000;
    assert_ok(ls_exchange_plan_create(&restored.plan, restored.context, NULL,
                                      "env_step"));
    restored.data->env_step += 7;
    struct ls_exchange_part part = part_of(&restored, 1);
    assert_ok(ls_exchange_merge(receiver.plan, receiver.context, &part, 1));
    assert_int_equal(receiver.data->env_step, 7);
    ls_exchange_part_fini(&part);
    side_close(&restored);
    side_close(&receiver);
}

TEST(increments_of_others_are_not_sent_on)
{
    struct side a, b;
    side_open(&a);
    side_open(&b);
    a.data->env_step = 10;
    struct ls_exchange_part from_a = part_of(&a, 1);
    assert_ok(ls_exchange_merge(b.plan, b.context, &from_a, 1));
    b.data->env_step += 5;
    struct ls_exchange_part from_b = part_of(&b, 2);
    assert_ok(ls_exchange_merge(a.plan, a.context, &from_b, 1));
    assert_int_equal(a.data->env_step, 15);
    assert_int_equal(b.data->env_step, 15);
    ls_exchange_part_fini(&from_a);
    ls_exchange_part_fini(&from_b);
    side_close(&a);
    side_close(&b);
}

static void value_set(struct side *side, int64_t iteration, const char *note)
{
    side->data->total_step = iteration;
    side->data->train_iter = iteration * 10;
    side->data->value = (double)iteration;
    side->data->flag = true;
    assert_ok(ls_text_set(&side->data->note, note));
    assert_ok(ls_bytes_set(&side->data->policy, note, strlen(note)));
}

struct newest_row {
    const char *name;
    int64_t iterations[3];
    const char *winner; /* notes are "a", "b", "c" in order of id */
};

static const struct newest_row newest_rows[] = {
    {"the newest iteration wins, first", {9, 3, 4}, "a"},
    {"the newest iteration wins, in the middle", {1, 8, 4}, "b"},
    {"between equals the highest id wins", {5, 5, 5}, "c"},
};

TEST(other_values_are_those_of_the_newest)
{
    const char *notes[] = {"a", "b", "c"};
    for (size_t i = 0; i < sizeof newest_rows / sizeof *newest_rows; i++) {
        const struct newest_row *row = &newest_rows[i];
        print_message("    %s\n", row->name);
        struct ls_exchange_part parts[3];
        struct side receiver;
        side_open(&receiver);
        value_set(&receiver, 100, "what was there");
        for (uint32_t j = 0; j < 3; j++) {
            struct side sender;
            side_open(&sender);
            value_set(&sender, row->iterations[j], notes[j]);
            parts[j] = part_of(&sender, j);
            side_close(&sender);
        }
        assert_ok(ls_exchange_merge(receiver.plan, receiver.context, parts, 3));
        assert_string_equal(receiver.data->note, row->winner);
        const int64_t won = row->iterations[row->winner[0] - 'a'];
        assert_int_equal(receiver.data->train_iter, won * 10);
        assert_true(receiver.data->value == (double)won);
        assert_true(receiver.data->flag);
        assert_int_equal(receiver.data->policy.size, 1);
        assert_int_equal(receiver.data->total_step, 100);
        for (uint32_t j = 0; j < 3; j++)
            ls_exchange_part_fini(&parts[j]);
        side_close(&receiver);
    }
}

TEST(an_end_is_told_from_a_message)
{
    const uint64_t runs[] = {1, 200, UINT64_MAX};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        ls_writer *writer;
        const void *data;
        size_t size;
        uint64_t run = 0;
        assert_ok(ls_writer_create(&writer));
        ls_exchange_write_end(runs[i], writer);
        assert_ok(ls_writer_bytes(writer, &data, &size));
        assert_true(ls_exchange_is_end(data, size, &run));
        assert_true(run == runs[i]);
        assert_false(ls_exchange_is_end(data, size - 1, &run));
        ls_writer_destroy(&writer);
    }
}

/* Bytes from others ------------------------------------------------------ */

struct bad_row {
    const char *name;
    int status;
    size_t size;
    const char *bytes;
};

#define BYTES(text) sizeof(text) - 1, text
#define ITERATION   "\xa9iteration\x01"
static const struct bad_row bad_rows[] = {
    {"nothing", LS_EPROTO, BYTES("")},
    {"cut short", LS_EPROTO, BYTES("\x83" ITERATION)},
    {"no map", LS_EPROTO, BYTES("\x93\x01\x02\x03")},
    {"no iteration", LS_EPROTO, BYTES("\x81\xa6values\x80")},
    {"iteration is text", LS_EPROTO, BYTES("\x81\xa9iteration\xa1x")},
    {"no values", LS_EPROTO, BYTES("\x81" ITERATION)},
    {"values are not a map", LS_EPROTO,
     BYTES("\x82" ITERATION "\xa6values\x90")},
    {"items are a number", LS_EPROTO,
     BYTES("\x82" ITERATION "\xa6values\x81\xa5items\x01")},
    {"an index beyond the items", LS_EPROTO,
     BYTES("\x82" ITERATION "\xa6values\x82\xa5items\x91\xc4\x01x\xa4"
           "ends\x91\x02")},
    {"an index without items", LS_EPROTO,
     BYTES("\x82" ITERATION "\xa6values\x81\xa4"
           "ends\x91\x01")},
    {"a negative index", LS_EPROTO,
     BYTES("\x82" ITERATION "\xa6values\x82\xa5items\x91\xc4\x01x\xa4"
           "ends\x91\xff")},
    {"an increment is text", LS_EPROTO,
     BYTES("\x83" ITERATION "\xa6values\x80\xaaincrements\x81\xa8"
           "env_step\xa1x")},
    {"a sum that does not fit", LS_EPROTO,
     BYTES("\x83" ITERATION "\xa6values\x80\xaaincrements\x81\xa8"
           "env_step\xcf\x7f\xff\xff\xff\xff\xff\xff\xff")},
    {"a field outside the plan is ignored", LS_OK,
     BYTES("\x82" ITERATION "\xa6values\x81\xaatotal_step\xa1x")},
    {"an increment among the values is ignored", LS_OK,
     BYTES("\x82" ITERATION "\xa6values\x81\xa8"
           "env_step\xa1x")},
    {"keys of a later version are ignored", LS_OK,
     BYTES("\x84" ITERATION "\xa6values\x81\xa5newer\x01\xaaincrements\x81"
           "\xa5other\x01\xa4more\xc0")},
};

TEST(bad_messages_are_refused_by_name_and_change_nothing)
{
    for (size_t i = 0; i < sizeof bad_rows / sizeof *bad_rows; i++) {
        const struct bad_row *row = &bad_rows[i];
        print_message("    %s\n", row->name);
        struct side receiver;
        side_open(&receiver);
        receiver.data->env_step = 1;
        struct ls_exchange_part part;
        int status = ls_exchange_part_read(&part, 7, row->bytes, row->size);
        if (status == LS_OK) {
            status =
                ls_exchange_merge(receiver.plan, receiver.context, &part, 1);
            ls_exchange_part_fini(&part);
        }
        assert_int_equal(status, row->status);
        if (status != LS_OK)
            assert_error_has("node 7");
        assert_int_equal(receiver.data->env_step, 1);
        assert_int_equal(receiver.data->items.n, 0);
        side_close(&receiver);
    }
}

/* The plan --------------------------------------------------------------- */

struct plan_row {
    const char *fields;
    const char *increments;
    int status;
};

static const struct plan_row plan_rows[] = {
    {"items", NULL, LS_OK},
    {" items , ends,", "env_step", LS_OK},
    {NULL, NULL, LS_EINVAL},
    {"", " , ", LS_EINVAL},
    {"items,items", NULL, LS_EINVAL},
    {"env_step", "env_step", LS_EINVAL},
    {NULL, "policy", LS_EINVAL},
    {"item", NULL, LS_ENOENT},
    {"items", "env_steps", LS_ENOENT},
};

TEST(a_plan_names_fields_that_are_there_once)
{
    ls_context *context;
    assert_ok(ls_context_create(&context, &mixed_type));
    for (size_t i = 0; i < sizeof plan_rows / sizeof *plan_rows; i++) {
        ls_exchange_plan *plan = NULL;
        assert_int_equal(ls_exchange_plan_create(&plan, context,
                                                 plan_rows[i].fields,
                                                 plan_rows[i].increments),
                         plan_rows[i].status);
        assert_int_equal(plan != NULL, plan_rows[i].status == LS_OK);
        ls_exchange_plan_destroy(&plan);
    }
    ls_exchange_plan_destroy(NULL);
    ls_context_destroy(&context);
}
