/* The replay buffer: what is given out, what goes, and when its data goes. */
#include "replay.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

static struct replay *create(struct replay_options options)
{
    struct replay *buffer = NULL;
    options.name = "b";
    assert_ok(replay_create(&buffer, &options));
    return buffer;
}

static struct sample sample_of(const char *data_id, int64_t version,
                               double priority)
{
    struct sample sample = {.policy_version = version, .priority = priority};
    (void)snprintf(sample.data_id, sizeof sample.data_id, "%s", data_id);
    return sample;
}

static void insert(struct replay *buffer, const char *data_id, int64_t version)
{
    const struct sample sample = sample_of(data_id, version, 1.0);
    assert_ok(replay_insert(buffer, &sample));
}

static struct drawn_sample draw(struct replay *buffer)
{
    struct drawn_sample drawn;
    assert_true(replay_may_sample(buffer, 1));
    assert_ok(replay_sample(buffer, 1, &drawn));
    return drawn;
}

static void refuses(struct replay *buffer, size_t n)
{
    struct drawn_sample drawn = {.slot = 77};
    assert_false(replay_may_sample(buffer, n));
    assert_fails(replay_sample(buffer, n, &drawn), LS_EAGAIN);
    assert_int_equal(drawn.slot, 77);
}

static struct replay_figures stats_of(const struct replay *buffer)
{
    struct replay_figures stats;
    replay_figures(buffer, &stats);
    assert_int_equal(stats.inserted,
                     stats.size + stats.evicted_stale + stats.evicted_overflow +
                         stats.evicted_used + stats.evicted_bytes);
    return stats;
}

static void assert_dropped(struct replay *buffer, const char *data_id)
{
    char dropped[SAFE_NAME_MAX + 1] = "nothing";
    assert_true(replay_take_dropped(buffer, dropped));
    assert_string_equal(dropped, data_id);
}

static void assert_none_dropped(struct replay *buffer)
{
    char dropped[SAFE_NAME_MAX + 1];
    assert_false(replay_take_dropped(buffer, dropped));
}

TEST(fifo_gives_each_item_once_and_in_order)
{
    struct replay *buffer = create((struct replay_options){
        .mode = REPLAY_FIFO, .capacity = 4, .max_batch = 2});
    struct drawn_sample drawn[2];
    refuses(buffer, 1);
    insert(buffer, "a", 0);
    insert(buffer, "b", 0);
    insert(buffer, "c", 0);
    assert_ok(replay_sample(buffer, 2, drawn));
    assert_string_equal(drawn[0].sample.data_id, "a");
    assert_string_equal(drawn[0].unique_id, "b_0");
    assert_string_equal(drawn[1].sample.data_id, "b");
    assert_string_equal(drawn[1].unique_id, "b_1");
    refuses(buffer, 2);
    assert_string_equal(draw(buffer).sample.data_id, "c");
    assert_int_equal(stats_of(buffer).evicted_used, 3);
    replay_destroy(&buffer);
    assert_null(buffer);
    replay_destroy(&buffer);
}

TEST(fifo_gives_an_item_as_often_as_it_may)
{
    static const char expected[][3] = {"ab", "ab", "ab", "cd", "cd", "cd"};
    struct replay *buffer =
        create((struct replay_options){.mode = REPLAY_FIFO,
                                       .capacity = 4,
                                       .max_batch = 2,
                                       .max_times_sampled = 3});
    struct drawn_sample drawn[2];
    insert(buffer, "a", 0);
    insert(buffer, "b", 0);
    insert(buffer, "c", 0);
    insert(buffer, "d", 0);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_ok(replay_sample(buffer, 2, drawn));
        assert_int_equal(drawn[0].sample.data_id[0], expected[i][0]);
        assert_int_equal(drawn[1].sample.data_id[0], expected[i][1]);
    }
    refuses(buffer, 1);
    assert_int_equal(stats_of(buffer).evicted_used, 4);
    replay_destroy(&buffer);
}

TEST(a_batch_has_no_item_twice)
{
    struct replay *buffer = create(
        (struct replay_options){.capacity = 64, .max_batch = 64, .seed = 1});
    for (int i = 0; i < 64; i++) {
        const struct sample sample = sample_of("d", 0, i == 0 ? 1e6 : 0.0);
        assert_ok(replay_insert(buffer, &sample));
    }
    struct drawn_sample drawn[64];
    assert_ok(replay_sample(buffer, 64, drawn));
    bool seen[64] = {false};
    for (int i = 0; i < 64; i++) {
        assert_false(seen[drawn[i].slot]);
        seen[drawn[i].slot] = true;
    }
    assert_int_equal(drawn[0].slot, 0);
    replay_destroy(&buffer);
}

TEST(the_same_seed_draws_the_same)
{
    int64_t first[100];
    for (int round = 0; round < 2; round++) {
        struct replay *buffer = create(
            (struct replay_options){.capacity = 50, .max_batch = 1, .seed = 9});
        for (int i = 0; i < 50; i++)
            insert(buffer, "d", 0);
        for (int i = 0; i < 100; i++) {
            const int64_t slot = draw(buffer).slot;
            if (round == 0)
                first[i] = slot;
            assert_int_equal(slot, first[i]);
        }
        replay_destroy(&buffer);
    }
}

TEST(items_at_the_limit_of_staleness_go)
{
    struct replay *buffer = create((struct replay_options){
        .capacity = 8, .max_batch = 1, .staleness_limit = 3});
    insert(buffer, "new", 5);
    insert(buffer, "old", 2);
    insert(buffer, "older", 1);
    replay_set_version(buffer, 4);
    assert_dropped(buffer, "older");
    assert_none_dropped(buffer);
    replay_set_version(buffer, 5);
    assert_dropped(buffer, "old");
    replay_set_version(buffer, 0); /* it does not go back */
    insert(buffer, "late", 2);
    assert_dropped(buffer, "late");
    assert_none_dropped(buffer);
    assert_int_equal(draw(buffer).staleness, 0);
    replay_set_version(buffer, 7);
    assert_int_equal(draw(buffer).staleness, 2);
    const struct replay_figures stats = stats_of(buffer);
    assert_int_equal(stats.size, 1);
    assert_int_equal(stats.evicted_stale, 3);
    assert_true(stats.staleness_mean == 1.0);
    assert_int_equal(stats.staleness_max, 2);
    replay_set_version(buffer, 8);
    refuses(buffer, 1);
    replay_destroy(&buffer);
}

TEST(one_that_comes_too_late_pushes_nothing_out)
{
    struct replay *buffer = create((struct replay_options){
        .capacity = 1, .max_batch = 1, .staleness_limit = 1});
    replay_set_version(buffer, 3);
    insert(buffer, "good", 3);
    insert(buffer, "late", 2);
    assert_dropped(buffer, "late");
    assert_string_equal(draw(buffer).sample.data_id, "good");
    replay_destroy(&buffer);
}

TEST(a_full_buffer_pushes_the_oldest_out)
{
    struct replay *buffer =
        create((struct replay_options){.capacity = 2, .max_batch = 2});
    insert(buffer, "a", 0);
    insert(buffer, "b", 0);
    insert(buffer, "c", 0);
    assert_dropped(buffer, "a");
    insert(buffer, "d", 0);
    assert_dropped(buffer, "b");
    assert_none_dropped(buffer);
    assert_int_equal(stats_of(buffer).evicted_overflow, 2);
    replay_destroy(&buffer);
}

TEST(an_item_goes_when_it_was_drawn_often_enough)
{
    struct replay *buffer = create((struct replay_options){
        .capacity = 2, .max_batch = 1, .max_times_sampled = 3});
    insert(buffer, "a", 0);
    for (int i = 0; i < 3; i++) {
        const struct drawn_sample drawn = draw(buffer);
        assert_ok(replay_release(buffer, &drawn, 1));
    }
    refuses(buffer, 1);
    assert_dropped(buffer, "a");
    assert_int_equal(stats_of(buffer).evicted_used, 1);
    replay_destroy(&buffer);
}

TEST(nothing_is_given_below_the_valid_ratio)
{
    struct replay *buffer = create((struct replay_options){
        .capacity = 8, .max_batch = 4, .min_valid_ratio = 1.5});
    for (int i = 0; i < 5; i++)
        insert(buffer, "d", 0);
    refuses(buffer, 4);
    assert_true(replay_may_sample(buffer, 3));
    insert(buffer, "d", 0);
    struct drawn_sample drawn[4];
    assert_ok(replay_sample(buffer, 4, drawn));
    replay_destroy(&buffer);
}

TEST(a_batch_is_within_its_limits)
{
    struct replay *buffer =
        create((struct replay_options){.capacity = 8, .max_batch = 4});
    struct drawn_sample drawn[5];
    for (int i = 0; i < 8; i++)
        insert(buffer, "d", 0);
    assert_fails(replay_sample(buffer, 0, drawn), LS_EINVAL);
    assert_fails(replay_sample(buffer, 5, drawn), LS_EINVAL);
    assert_false(replay_may_sample(buffer, 0));
    assert_false(replay_may_sample(buffer, 5));
    replay_destroy(&buffer);
}

/* Two samples per insert, 4 items at first, 3 samples of play: 2 I - S - 8
 * stays in [-3, 3]. */
TEST(the_rate_limiter_keeps_both_sides_in_proportion)
{
    struct replay *buffer =
        create((struct replay_options){.capacity = 100,
                                       .max_batch = 1,
                                       .min_size_to_sample = 4,
                                       .samples_per_insert = 2,
                                       .error_buffer = 3});
    for (int i = 0; i < 4; i++) {
        refuses(buffer, 1);
        insert(buffer, "d", 0);
    }
    insert(buffer, "d", 0); /* 2 5 - 0 - 8 = 2 */
    const struct sample sample = sample_of("e", 0, 1.0);
    assert_false(replay_may_insert(buffer));
    assert_fails(replay_insert(buffer, &sample), LS_EAGAIN);
    assert_none_dropped(buffer);
    (void)draw(buffer); /* 1; one insert more would make it 3 */
    assert_true(replay_may_insert(buffer));
    for (int i = 0; i < 4; i++)
        (void)draw(buffer); /* down to -3 */
    refuses(buffer, 1);
    insert(buffer, "d", 0); /* -1 */
    (void)draw(buffer);
    (void)draw(buffer);
    refuses(buffer, 1);
    replay_destroy(&buffer);
}

TEST(the_rate_limiter_never_refuses_both)
{
    static const double ratios[] = {0.1, 0.5, 1.0, 3.0, 7.5};
    for (size_t i = 0; i < sizeof ratios / sizeof ratios[0]; i++) {
        for (size_t batch = 1; batch <= 8; batch++) {
            struct replay *buffer = create((struct replay_options){
                .mode = i % 2 == 0 ? REPLAY_PRIORITY : REPLAY_FIFO,
                .capacity = 16,
                .max_batch = batch,
                .samples_per_insert = ratios[i]});
            struct drawn_sample drawn[8];
            for (int turn = 0; turn < 400; turn++) {
                for (int n = 0; n < 200 && replay_may_insert(buffer); n++)
                    insert(buffer, "d", 0);
                assert_true(replay_may_sample(buffer, batch));
                while (replay_may_sample(buffer, batch))
                    assert_ok(replay_sample(buffer, batch, drawn));
                assert_true(replay_may_insert(buffer));
            }
            const struct replay_figures stats = stats_of(buffer);
            /* What was free at the beginning may go beyond. */
            const double surplus =
                ratios[i] * (double)stats.inserted - (double)stats.sampled;
            if (i % 2 == 0)
                assert_true(surplus >= -8.0 && surplus <= 8.0 * 9.0);
            replay_destroy(&buffer);
        }
    }
}

TEST(a_priority_is_taken_by_slot_and_unique_id)
{
    struct replay *buffer = create(
        (struct replay_options){.capacity = 2, .max_batch = 1, .seed = 3});
    insert(buffer, "a", 0);
    const struct drawn_sample drawn = draw(buffer);
    insert(buffer, "other", 0);
    struct priority_update update = {.slot = drawn.slot, .priority = 1e9};
    memcpy(update.unique_id, drawn.unique_id, sizeof update.unique_id);
    assert_true(replay_update_priority(buffer, &update));
    for (int i = 0; i < 20; i++)
        assert_string_equal(draw(buffer).sample.data_id, "a");
    update.priority = -1.0;
    assert_false(replay_update_priority(buffer, &update));
    update.priority = 1.0;
    static const int64_t slots[] = {-1, 1, 2, INT64_MAX};
    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
        update.slot = slots[i];
        assert_false(replay_update_priority(buffer, &update));
    }
    update.slot = drawn.slot;
    insert(buffer, "b", 0); /* into the slot of a, as b_2 */
    assert_false(replay_update_priority(buffer, &update));
    assert_int_equal(stats_of(buffer).updates, 1);
    assert_int_equal(stats_of(buffer).updates_refused, 6);
    replay_destroy(&buffer);
}

TEST(data_is_needed_until_its_last_part_has_gone)
{
    struct replay *buffer =
        create((struct replay_options){.capacity = 2, .max_batch = 2});
    insert(buffer, "shared", 0);
    insert(buffer, "shared", 0);
    insert(buffer, "x", 0);
    assert_none_dropped(buffer);
    insert(buffer, "y", 0);
    assert_dropped(buffer, "shared");
    assert_none_dropped(buffer);
    replay_destroy(&buffer);
}

TEST(lent_data_is_needed_until_it_is_released)
{
    struct replay *buffer = create((struct replay_options){
        .mode = REPLAY_FIFO, .capacity = 2, .max_batch = 2});
    insert(buffer, "a", 0);
    insert(buffer, "b", 0);
    struct drawn_sample drawn[2];
    assert_ok(replay_sample(buffer, 2, drawn));
    assert_none_dropped(buffer);
    assert_int_equal(stats_of(buffer).lent, 2);
    assert_ok(replay_release(buffer, &drawn[1], 1));
    assert_dropped(buffer, "b");
    assert_fails(replay_release(buffer, drawn, 2), LS_ENOENT);
    assert_error_has("b");
    assert_dropped(buffer, "a");
    assert_int_equal(stats_of(buffer).lent, 0);
    replay_destroy(&buffer);
}

TEST(data_that_is_used_again_before_it_is_taken_stays)
{
    struct replay *buffer =
        create((struct replay_options){.capacity = 1, .max_batch = 1});
    insert(buffer, "a", 0);
    insert(buffer, "b", 0);
    insert(buffer, "a", 0);
    assert_dropped(buffer, "b");
    assert_none_dropped(buffer);
    insert(buffer, "c", 0);
    assert_dropped(buffer, "a");
    replay_destroy(&buffer);
}

TEST(at_the_end_all_data_goes)
{
    struct replay *buffer = create((struct replay_options){
        .mode = REPLAY_FIFO, .capacity = 4, .max_batch = 1});
    insert(buffer, "a", 0);
    const struct drawn_sample lent = draw(buffer);
    insert(buffer, "b", 0);
    insert(buffer, "b", 0);
    replay_close(buffer);
    bool a = false;
    bool b = false;
    char id[SAFE_NAME_MAX + 1];
    int n = 0;
    for (; replay_take_dropped(buffer, id); n++) {
        a = a || strcmp(id, "a") == 0;
        b = b || strcmp(id, "b") == 0;
    }
    assert_true(a && b && n == 2);
    assert_fails(replay_release(buffer, &lent, 1), LS_ENOENT);
    replay_destroy(&buffer);
}

TEST(a_sample_that_was_not_checked_is_refused)
{
    struct replay *buffer =
        create((struct replay_options){.capacity = 4, .max_batch = 1});
    const struct sample bad[] = {sample_of("", 0, 1), sample_of("../x", 0, 1),
                                 sample_of("a", -1, 1), sample_of("a", 0, -1),
                                 sample_of("a", 0, 1e31)};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_fails(replay_insert(buffer, &bad[i]), LS_EINVAL);
    assert_int_equal(stats_of(buffer).inserted, 0);
    replay_destroy(&buffer);
}

static void insert_bytes(struct replay *buffer, const char *data_id,
                         int64_t size)
{
    struct sample sample = sample_of(data_id, 0, 1.0);
    sample.size = size;
    assert_ok(replay_insert(buffer, &sample));
}

TEST(what_has_no_room_pushes_the_oldest_out)
{
    struct replay *buffer =
        create((struct replay_options){.mode = REPLAY_PRIORITY,
                                       .capacity = 100,
                                       .max_batch = 1,
                                       .max_bytes = 30});
    insert_bytes(buffer, "a", 10);
    insert_bytes(buffer, "b", 10);
    insert_bytes(buffer, "b", 10); /* another part of the same data */
    insert_bytes(buffer, "c", 10);
    assert_none_dropped(buffer);
    insert_bytes(buffer, "d", 1);
    assert_dropped(buffer, "a");
    insert_bytes(buffer, "e", 15); /* both parts of b go */
    assert_dropped(buffer, "b");
    assert_none_dropped(buffer);
    insert_bytes(buffer, "f", 5);
    assert_dropped(buffer, "c");
    assert_none_dropped(buffer);
    assert_int_equal(stats_of(buffer).size, 3);
    assert_int_equal(stats_of(buffer).evicted_bytes, 4);
    replay_destroy(&buffer);
}

TEST(lent_data_takes_room)
{
    struct replay *buffer = create((struct replay_options){
        .mode = REPLAY_FIFO, .capacity = 100, .max_batch = 1, .max_bytes = 20});
    insert_bytes(buffer, "a", 10);
    const struct drawn_sample drawn = draw(buffer);
    insert_bytes(buffer, "b", 10);
    insert_bytes(buffer, "c", 10);
    assert_dropped(buffer, "b");
    assert_ok(replay_release(buffer, &drawn, 1));
    assert_dropped(buffer, "a");
    insert_bytes(buffer, "d", 10);
    assert_none_dropped(buffer);
    replay_destroy(&buffer);
}

TEST(as_many_stay_as_a_batch_takes)
{
    struct replay *buffer = create((struct replay_options){
        .mode = REPLAY_FIFO, .capacity = 100, .max_batch = 3, .max_bytes = 5});
    for (int i = 0; i < 3; i++)
        insert_bytes(buffer, (const char *[]){"a", "b", "c"}[i], 10);
    assert_none_dropped(buffer);
    assert_true(replay_may_sample(buffer, 3));
    insert_bytes(buffer, "d", 10);
    assert_dropped(buffer, "a");
    assert_none_dropped(buffer);
    assert_true(replay_may_sample(buffer, 3));
    replay_destroy(&buffer);
}

TEST(options_are_checked_and_named)
{
    static const struct {
        const char *named;
        struct replay_options options;
    } cases[] = {
        {"name", {.name = "a/b", .capacity = 2, .max_batch = 1}},
        {"name",
         {.name = "a-name-of-forty-three-bytes-is-one-too-long",
          .capacity = 2,
          .max_batch = 1}},
        {"mode", {.name = "b", .capacity = 2, .max_batch = 1, .mode = 7}},
        {"capacity", {.name = "b", .max_batch = 1}},
        {"capacity",
         {.name = "b", .capacity = REPLAY_CAPACITY_MAX + 1, .max_batch = 1}},
        {"max_batch", {.name = "b", .capacity = 2}},
        {"max_batch", {.name = "b", .capacity = 2, .max_batch = 3}},
        {"staleness_limit",
         {.name = "b", .capacity = 2, .max_batch = 1, .staleness_limit = -1}},
        {"min_valid_ratio",
         {.name = "b", .capacity = 2, .max_batch = 1, .min_valid_ratio = 0.5}},
        {"min_valid_ratio",
         {.name = "b", .capacity = 2, .max_batch = 2, .min_valid_ratio = 1.1}},
        {"min_size_to_sample",
         {.name = "b", .capacity = 2, .max_batch = 1, .min_size_to_sample = 3}},
        {"samples_per_insert",
         {.name = "b",
          .capacity = 2,
          .max_batch = 1,
          .samples_per_insert = -1}},
        {"error_buffer",
         {.name = "b",
          .capacity = 2,
          .max_batch = 1,
          .samples_per_insert = 2,
          .error_buffer = 1.4}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct replay *buffer = NULL;
        assert_fails(replay_create(&buffer, &cases[i].options), LS_EINVAL);
        assert_non_null(strstr(ls_error_text(), cases[i].named));
        assert_null(buffer);
    }
}

/* ---- over the lives ----------------------------------------------------- */

struct list {
    struct replay_item items[16];
    size_t n;
};

static int keep(void *self, const struct replay_item *item)
{
    struct list *list = self;
    assert_true(list->n < 16);
    list->items[list->n++] = *item;
    return LS_OK;
}

/* Another buffer that was told what this one has. */
static struct replay *next_life(const struct replay *buffer,
                                struct replay_options options)
{
    struct replay *next = create(options);
    struct replay_account account;
    struct list list = {.n = 0};
    replay_account(buffer, &account);
    replay_recall_account(next, &account);
    assert_ok(replay_each(buffer, keep, &list));
    for (size_t i = 0; i < list.n; i++)
        assert_ok(replay_recall_item(next, &list.items[i], false));
    replay_recalled(next);
    return next;
}

static void are_items(const struct replay *buffer, const char *expected)
{
    struct list list = {.n = 0};
    char text[200] = "";
    assert_ok(replay_each(buffer, keep, &list));
    for (size_t i = 0; i < list.n; i++) {
        const struct replay_item *item = &list.items[i];
        (void)snprintf(text + strlen(text), sizeof text - strlen(text),
                       "%s%s %d %d %g", i > 0 ? ", " : "", item->sample.data_id,
                       (int)item->number, (int)item->n_sampled,
                       item->sample.priority);
    }
    assert_string_equal(text, expected);
}

TEST(what_there_was_is_there_in_the_next_life)
{
    const struct replay_options options = {.mode = REPLAY_PRIORITY,
                                           .capacity = 3,
                                           .max_batch = 1,
                                           .max_times_sampled = 9,
                                           .samples_per_insert = 2,
                                           .error_buffer = 40};
    struct replay *buffer = create(options);
    insert(buffer, "a", 1);
    insert(buffer, "b", 2);
    insert(buffer, "c", 3);
    replay_set_version(buffer, 5);
    const struct drawn_sample drawn = draw(buffer);
    struct priority_update update = {.slot = drawn.slot, .priority = 4.0};
    memcpy(update.unique_id, drawn.unique_id, sizeof update.unique_id);
    assert_true(replay_update_priority(buffer, &update));
    struct replay *next = next_life(buffer, options);
    struct list before = {.n = 0}, after = {.n = 0};
    assert_ok(replay_each(buffer, keep, &before));
    assert_ok(replay_each(next, keep, &after));
    assert_int_equal(after.n, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(after.items[i].sample.data_id,
                            before.items[i].sample.data_id);
        assert_int_equal(after.items[i].number, before.items[i].number);
        assert_int_equal(after.items[i].slot, before.items[i].slot);
        assert_int_equal(after.items[i].n_sampled, before.items[i].n_sampled);
        assert_true(after.items[i].sample.priority ==
                    before.items[i].sample.priority);
    }
    assert_int_equal(stats_of(next).sampled, 1);
    assert_int_equal(stats_of(next).staleness_max,
                     stats_of(buffer).staleness_max);
    assert_true(replay_may_insert(next) == replay_may_insert(buffer));
    /* The oldest goes first, and numbers go on. */
    insert(next, "d", 5);
    assert_dropped(next, "a");
    after.n = 0;
    assert_ok(replay_each(next, keep, &after));
    assert_int_equal(after.items[2].number, 3);
    replay_destroy(&next);
    replay_destroy(&buffer);
}

TEST(what_happened_then_happens_again)
{
    const struct replay_options options = {.mode = REPLAY_FIFO,
                                           .capacity = 2,
                                           .max_batch = 1,
                                           .max_times_sampled = 2};
    struct replay *buffer = create(options);
    const struct replay_item items[] = {
        {.sample = sample_of("a", 1, 1), .slot = 0, .number = 0},
        {.sample = sample_of("b", 1, 1), .slot = 1, .number = 1},
        {.sample = sample_of("c", 1, 1), .slot = 0, .number = 2},
    };
    for (size_t i = 0; i < 3; i++) /* the last one pushes the first out */
        assert_ok(replay_recall_item(buffer, &items[i], true));
    are_items(buffer, "b 1 0 1, c 2 0 1");
    replay_recall_drawn(buffer, 1, 1);
    replay_recall_priority(buffer, 0, 2, 7.0);
    are_items(buffer, "b 1 1 1, c 2 0 7");
    replay_recall_drawn(buffer, 1, 1); /* as often as it may be */
    replay_recall_drawn(buffer, 0, 0); /* it is gone */
    replay_recall_priority(buffer, 0, 0, 3.0);
    are_items(buffer, "c 2 0 7");
    replay_recalled(buffer);
    const struct replay_figures stats = stats_of(buffer);
    assert_int_equal(stats.inserted, 3);
    assert_int_equal(stats.sampled, 3);
    assert_int_equal(stats.evicted_overflow, 1);
    assert_int_equal(stats.evicted_used, 1);
    assert_int_equal(stats.updates, 1);
    assert_int_equal(stats.updates_refused, 1);
    assert_string_equal(draw(buffer).sample.data_id, "c");
    insert(buffer, "d", 1);
    are_items(buffer, "c 2 1 7, d 3 0 1");
    replay_destroy(&buffer);
}

static bool is_not_b(void *self, const struct sample *sample)
{
    (*(size_t *)self)++;
    return strcmp(sample->data_id, "b") != 0;
}

TEST(whose_data_is_not_whole_goes)
{
    const struct replay_options options = {
        .mode = REPLAY_FIFO, .capacity = 8, .max_batch = 1};
    struct replay *buffer = create(options);
    size_t asked = 0;
    insert(buffer, "a", 1);
    insert(buffer, "b", 1);
    insert(buffer, "b", 1); /* another part of it */
    insert(buffer, "c", 1);
    replay_check(buffer, is_not_b, &asked);
    assert_int_equal(asked, 3);
    are_items(buffer, "a 0 0 1, c 3 0 1");
    assert_dropped(buffer, "b");
    assert_true(replay_uses(buffer, "a"));
    assert_false(replay_uses(buffer, "b"));
    struct replay_figures stats;
    replay_figures(buffer, &stats);
    assert_int_equal(stats.evicted_lost, 2);
    replay_destroy(&buffer);
}

TEST(an_item_that_cannot_be_is_refused)
{
    const struct replay_options options = {
        .mode = REPLAY_FIFO, .capacity = 2, .max_batch = 1};
    struct replay *buffer = create(options);
    const struct replay_item far = {.sample = sample_of("a", 1, 1), .slot = 2};
    const struct replay_item gone = {.sample = sample_of("a", 1, 1),
                                     .slot = -1};
    assert_fails(replay_recall_item(buffer, &far, true), LS_EPROTO);
    assert_ok(replay_recall_item(buffer, &gone, true)); /* it went at once */
    are_items(buffer, "");
    replay_destroy(&buffer);
}
