/* Samplers: orders, positions, and going on elsewhere. */
#include "lockstep/sampler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/huge_allocations.h"
#include "lockstep/checkpoint.h"
#include "test.h"

enum { MOST = 64 };

static ls_sampler *make(const struct ls_sampler_options *options)
{
    ls_sampler *sampler;
    assert_ok(ls_sampler_create(&sampler, options));
    return sampler;
}

/* All samples that are left of the epoch; their number. */
static size_t draw_all(ls_sampler *sampler, uint64_t *out, size_t *n_batches)
{
    size_t n, total = 0;
    *n_batches = 0;
    while (true) {
        assert_ok(ls_sampler_next(sampler, out + total, &n));
        if (n == 0)
            return total;
        assert_ok(ls_sampler_consume(sampler, 1));
        total += n;
        ++*n_batches;
    }
}

static void assert_draws(const struct ls_sampler_options *options,
                         const uint64_t *wanted, size_t n)
{
    uint64_t drawn[2 * MOST];
    size_t n_batches;
    ls_sampler *sampler = make(options);
    assert_int_equal(draw_all(sampler, drawn, &n_batches), n);
    assert_memory_equal(drawn, wanted, n * sizeof drawn[0]);
    ls_sampler_destroy(&sampler);
}

/* Orders ------------------------------------------------------------------ */

/* docs/samplers.md has these; docs/examples/sampler.py makes them. */
TEST(the_order_of_an_epoch_follows_from_seed_and_epoch)
{
    static const uint64_t first[] = {4, 2, 1, 7, 5, 6, 3, 9, 8, 0};
    static const uint64_t other[] = {7, 0, 4, 5, 1, 8, 2, 3, 9, 6};
    uint64_t drawn[MOST];
    size_t n;
    assert_draws(&(struct ls_sampler_options){.length = 10}, first, 10);
    ls_sampler *sampler =
        make(&(struct ls_sampler_options){.length = 10, .seed = 7});
    assert_ok(ls_sampler_set_epoch(sampler, 3));
    assert_int_equal(ls_sampler_epoch(sampler), 3);
    for (int again = 0; again < 2; again++) { /* each time the same */
        assert_int_equal(draw_all(sampler, drawn, &n), 10);
        assert_memory_equal(drawn, other, sizeof other);
    }
    ls_sampler_destroy(&sampler);
}

TEST(the_order_of_many_samples_is_that_of_the_page)
{
    static const uint64_t wanted[] = {985, 825, 142, 52, 408, 632};
    uint64_t drawn[6];
    size_t n;
    ls_sampler *sampler = make(&(struct ls_sampler_options){
        .length = 1000, .seed = UINT64_MAX, .batch_size = 6});
    assert_ok(ls_sampler_set_epoch(sampler, 5));
    assert_ok(ls_sampler_next(sampler, drawn, &n));
    assert_int_equal(n, 6);
    assert_memory_equal(drawn, wanted, sizeof wanted);
    ls_sampler_destroy(&sampler);
}

TEST(in_order_is_in_order)
{
    static const uint64_t wanted[] = {0, 1, 2, 3, 4};
    assert_draws(&(struct ls_sampler_options){.length = 5, .in_order = true},
                 wanted, 5);
}

TEST(ranks_take_turns_and_spread_what_is_left_over)
{
    static const uint64_t padded[] = {0, 1, 3, 7}, cut[] = {0, 1, 3};
    static const uint64_t exact_0[] = {7, 5, 2, 6}, exact_2[] = {4, 8, 9};
    struct ls_sampler_options options = {
        .length = 10, .seed = 7, .rank = 1, .ranks = 3, .batch_size = 2};
    static const struct {
        enum ls_spread spread;
        uint32_t rank;
        const uint64_t *wanted;
        size_t n;
    } cases[] = {{LS_SPREAD_PAD, 1, padded, 4},
                 {LS_SPREAD_CUT, 1, cut, 3},
                 {LS_SPREAD_EXACT, 0, exact_0, 4},
                 {LS_SPREAD_EXACT, 2, exact_2, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t drawn[MOST];
        size_t n_batches;
        options.spread = cases[i].spread;
        options.rank = cases[i].rank;
        ls_sampler *sampler = make(&options);
        assert_ok(ls_sampler_set_epoch(sampler, 3));
        assert_int_equal(ls_sampler_samples(sampler), cases[i].n);
        assert_int_equal(draw_all(sampler, drawn, &n_batches), cases[i].n);
        assert_memory_equal(drawn, cases[i].wanted,
                            cases[i].n * sizeof drawn[0]);
        ls_sampler_destroy(&sampler);
    }
}

TEST(a_small_data_set_goes_around_more_than_once_to_pad)
{
    static const uint64_t wanted[] = {0};
    assert_draws(
        &(struct ls_sampler_options){
            .length = 2, .in_order = true, .rank = 4, .ranks = 5},
        wanted, 1);
    assert_draws(&(struct ls_sampler_options){.length = 2,
                                              .in_order = true,
                                              .spread = LS_SPREAD_EXACT,
                                              .rank = 4,
                                              .ranks = 5},
                 wanted, 0);
}

/* N / R, and one more for each rank below N % R; together each exactly once. */
TEST(exact_counts_and_their_union)
{
    for (uint32_t length = 1; length <= 24; length++) {
        for (uint32_t ranks = 1; ranks <= 9; ranks++) {
            unsigned seen[24] = {0};
            for (uint32_t rank = 0; rank < ranks; rank++) {
                uint64_t drawn[MOST];
                size_t n_batches;
                ls_sampler *sampler =
                    make(&(struct ls_sampler_options){.length = length,
                                                      .spread = LS_SPREAD_EXACT,
                                                      .seed = 3,
                                                      .rank = rank,
                                                      .ranks = ranks});
                const size_t n = draw_all(sampler, drawn, &n_batches);
                assert_int_equal(n, length / ranks + (rank < length % ranks));
                for (size_t i = 0; i < n; i++)
                    seen[drawn[i]]++;
                ls_sampler_destroy(&sampler);
            }
            for (uint32_t i = 0; i < length; i++)
                assert_int_equal(seen[i], 1);
        }
    }
}

TEST(every_order_of_three_is_drawn_about_equally_often)
{
    unsigned counts[27] = {0};
    ls_sampler *sampler = make(&(struct ls_sampler_options){.length = 3});
    for (uint64_t epoch = 0; epoch < 6000; epoch++) {
        uint64_t drawn[3];
        size_t n_batches;
        assert_ok(ls_sampler_set_epoch(sampler, epoch));
        assert_int_equal(draw_all(sampler, drawn, &n_batches), 3);
        counts[9 * drawn[0] + 3 * drawn[1] + drawn[2]]++;
    }
    unsigned orders = 0;
    double chi_square = 0.0;
    for (size_t i = 0; i < 27; i++) {
        orders += counts[i] > 0;
        if (counts[i] > 0)
            chi_square += (counts[i] - 1000.0) * (counts[i] - 1000.0) / 1000.0;
    }
    assert_int_equal(orders, 6);
    assert_true(chi_square < 20.5); /* 5 degrees of freedom: p is 0.001 */
    ls_sampler_destroy(&sampler);
}

/* Going on elsewhere ------------------------------------------------------- */

struct shape {
    uint32_t ranks, batch;
};

static struct ls_sampler_options options_of(uint32_t length,
                                            enum ls_spread spread,
                                            struct shape shape, uint32_t rank,
                                            bool drop_last)
{
    return (struct ls_sampler_options){.length = length,
                                       .spread = spread,
                                       .seed = 5,
                                       .rank = rank,
                                       .ranks = shape.ranks,
                                       .batch_size = shape.batch,
                                       .drop_last = drop_last};
}

/* Run k batches on each rank; who took what goes to seen. The state of rank 0,
 * which has never fewer batches than another. */
static struct ls_sampler_state run_some(uint32_t length, enum ls_spread spread,
                                        struct shape shape, bool drop_last,
                                        uint64_t k, unsigned *seen)
{
    struct ls_sampler_state saved = {0};
    for (uint32_t rank = 0; rank < shape.ranks; rank++) {
        const struct ls_sampler_options options =
            options_of(length, spread, shape, rank, drop_last);
        uint64_t drawn[MOST];
        size_t n = 1;
        ls_sampler *sampler = make(&options);
        for (uint64_t i = 0; i < k && n > 0; i++) {
            assert_ok(ls_sampler_next(sampler, drawn, &n));
            for (size_t j = 0; j < n; j++)
                seen[drawn[j]]++;
            if (n > 0)
                assert_ok(ls_sampler_consume(sampler, 1));
        }
        if (rank == 0)
            ls_sampler_save(sampler, &saved);
        ls_sampler_destroy(&sampler);
    }
    return saved;
}

/* Go on with another shape: what remains and what is over make the whole, and
 * what was said to remain is drawn. */
static void go_on(const struct ls_sampler_state *saved, enum ls_spread spread,
                  struct shape shape, bool drop_last, unsigned *seen)
{
    for (uint32_t rank = 0; rank < shape.ranks; rank++) {
        const struct ls_sampler_options options =
            options_of((uint32_t)saved->length, spread, shape, rank, drop_last);
        uint64_t drawn[2 * MOST];
        size_t n_batches;
        ls_sampler *whole = make(&options), *sampler = make(&options);
        assert_ok(ls_sampler_load(sampler, saved));
        const uint64_t index = ls_sampler_batch_index(sampler);
        const uint64_t remaining = ls_sampler_remaining(sampler);
        const size_t n = draw_all(sampler, drawn, &n_batches);
        for (size_t i = 0; i < n; i++)
            seen[drawn[i]]++;
        assert_int_equal(n_batches, remaining);
        (void)draw_all(whole, drawn, &n_batches);
        assert_int_equal(n_batches, ls_sampler_batches(sampler));
        assert_int_equal(index + remaining, n_batches);
        ls_sampler_destroy(&whole);
        ls_sampler_destroy(&sampler);
    }
}

static void assert_covered(const unsigned *seen, uint32_t length,
                           enum ls_spread spread)
{
    for (uint32_t i = 0; i < length; i++) {
        assert_true(seen[i] >= 1);
        if (spread == LS_SPREAD_EXACT)
            assert_int_equal(seen[i], 1);
    }
}

/* Save after k batches; go on with each shape. */
static size_t try_shapes(uint32_t length, enum ls_spread spread,
                         struct shape from, bool drop_last, uint64_t k)
{
    unsigned before[MOST] = {0};
    size_t cases = 0;
    const struct ls_sampler_state saved =
        run_some(length, spread, from, drop_last, k, before);
    if (saved.consumed >= length)
        memset(before, 0, sizeof before); /* from the beginning again */
    for (uint32_t ranks = 1; ranks <= 4; ranks++) {
        for (uint32_t batch = 1; batch <= 4; batch++) {
            unsigned seen[MOST];
            memcpy(seen, before, sizeof seen);
            go_on(&saved, spread, (struct shape){ranks, batch}, drop_last,
                  seen);
            if (!drop_last && spread != LS_SPREAD_CUT)
                assert_covered(seen, length, spread);
            cases++;
        }
    }
    return cases;
}

static size_t try_lengths(uint32_t most)
{
    size_t cases = 0;
    for (uint32_t length = 1; length <= most; length++)
        for (int spread = LS_SPREAD_PAD; spread <= LS_SPREAD_EXACT; spread++)
            for (uint32_t ranks = 1; ranks <= 3; ranks++)
                for (uint32_t batch = 1; batch <= 4; batch++)
                    for (int drop = 0; drop < 2; drop++)
                        for (uint64_t k = 0; k <= length / (ranks * batch); k++)
                            cases += try_shapes(length, (enum ls_spread)spread,
                                                (struct shape){ranks, batch},
                                                drop != 0, k);
    return cases;
}

/* 9,432 cases and more: from each number of batches with each number of ranks
 * and batch size, to each other; the invariant in all of them, and coverage
 * wherever nothing is dropped on purpose. */
TEST(an_epoch_goes_on_with_any_ranks_and_batches)
{
    const char *lengths = getenv("LOCKSTEP_SAMPLER_LENGTHS");
    const size_t cases =
        try_lengths(lengths != NULL ? (uint32_t)atoi(lengths) : 12);
    assert_true(cases > 9432);
    printf("%zu cases\n", cases);
}

/* What the rule "consumed over batch size" gets wrong. */
TEST(the_batch_index_counts_what_remains_not_what_was_consumed)
{
    ls_sampler *sampler = make(&(struct ls_sampler_options){
        .length = 10, .seed = 5, .ranks = 3, .batch_size = 1});
    assert_ok(ls_sampler_load(
        sampler,
        &(struct ls_sampler_state){
            .consumed = 1, .type = "dist", .length = 10, .shuffle = true}));
    assert_int_equal(ls_sampler_batches(sampler), 4);
    assert_int_equal(ls_sampler_remaining(sampler), 3);
    assert_int_equal(ls_sampler_batch_index(sampler), 1);
    ls_sampler_destroy(&sampler);
}

TEST(batches_that_remain_are_whole_or_the_last_is_dropped)
{
    static const struct {
        bool drop_last;
        uint64_t batches, index;
    } cases[] = {{false, 4, 1}, {true, 3, 1}};
    for (size_t i = 0; i < 2; i++) {
        ls_sampler *sampler = make(&(struct ls_sampler_options){
            .length = 10, .batch_size = 3, .drop_last = cases[i].drop_last});
        uint64_t drawn[3];
        size_t n;
        assert_ok(ls_sampler_next(sampler, drawn, &n));
        assert_ok(ls_sampler_consume(sampler, 1));
        assert_int_equal(ls_sampler_batches(sampler), cases[i].batches);
        assert_int_equal(ls_sampler_batch_index(sampler), cases[i].index);
        assert_int_equal(ls_sampler_remaining(sampler), cases[i].batches - 1);
        ls_sampler_destroy(&sampler);
    }
}

/* True is 20 of them; who forgets where it began would save 8. */
TEST(a_second_save_in_one_epoch_keeps_the_first_offset)
{
    static const struct ls_sampler_options options = {
        .length = 40, .ranks = 2, .batch_size = 2, .seed = 9};
    uint64_t drawn[2];
    size_t n;
    struct ls_sampler_state saved;
    ls_sampler *first = make(&options), *second = make(&options);
    for (int i = 0; i < 3; i++)
        assert_ok(ls_sampler_next(first, drawn, &n));
    assert_ok(ls_sampler_consume(first, 3));
    ls_sampler_save(first, &saved);
    assert_int_equal(saved.consumed, 12);
    assert_ok(ls_sampler_load(second, &saved));
    for (int i = 0; i < 2; i++)
        assert_ok(ls_sampler_next(second, drawn, &n));
    assert_ok(ls_sampler_consume(second, 2));
    ls_sampler_save(second, &saved);
    assert_int_equal(saved.consumed, 20);
    assert_int_equal(ls_sampler_batch_index(second), 5);
    ls_sampler_destroy(&first);
    ls_sampler_destroy(&second);
}

TEST(what_was_drawn_ahead_is_not_consumed)
{
    uint64_t drawn[3][2], again[2];
    size_t n;
    struct ls_sampler_state saved;
    ls_sampler *sampler =
        make(&(struct ls_sampler_options){.length = 20, .batch_size = 2});
    for (int i = 0; i < 3; i++)
        assert_ok(ls_sampler_next(sampler, drawn[i], &n));
    assert_ok(ls_sampler_consume(sampler, 1));
    ls_sampler_save(sampler, &saved);
    assert_int_equal(saved.consumed, 2);
    ls_sampler_end(sampler);
    assert_ok(ls_sampler_next(sampler, again, &n));
    assert_memory_equal(again, drawn[1], sizeof again);
    ls_sampler_destroy(&sampler);
}

TEST(an_epoch_that_was_all_consumed_begins_again_when_loaded)
{
    uint64_t drawn[MOST];
    size_t n_batches;
    ls_sampler *sampler =
        make(&(struct ls_sampler_options){.length = 10, .batch_size = 4});
    struct ls_sampler_state saved = {
        .consumed = 10, .type = "dist", .length = 10, .shuffle = true};
    for (saved.consumed = 10; saved.consumed <= 12; saved.consumed += 2) {
        assert_ok(ls_sampler_load(sampler, &saved));
        assert_int_equal(ls_sampler_batch_index(sampler), 0);
        assert_int_equal(draw_all(sampler, drawn, &n_batches), 10);
    }
    saved.consumed = 9;
    assert_ok(ls_sampler_load(sampler, &saved));
    assert_int_equal(draw_all(sampler, drawn, &n_batches), 1);
    ls_sampler_destroy(&sampler);
}

TEST(another_epoch_begins_at_its_beginning_and_the_same_goes_on)
{
    ls_sampler *sampler = make(&(struct ls_sampler_options){.length = 10});
    const struct ls_sampler_state saved = {
        .epoch = 4, .consumed = 6, .type = "dist", .length = 10};
    assert_ok(ls_sampler_load(sampler, &saved));
    assert_ok(ls_sampler_set_epoch(sampler, 4));
    assert_int_equal(ls_sampler_remaining(sampler), 4);
    assert_ok(ls_sampler_set_epoch(sampler, 5));
    assert_int_equal(ls_sampler_remaining(sampler), 10);
    ls_sampler_destroy(&sampler);
}

TEST(seed_and_shuffle_are_loaded)
{
    static const uint64_t wanted[] = {7, 0, 4, 5, 1, 8, 2, 3, 9, 6};
    uint64_t drawn[MOST];
    size_t n;
    ls_sampler *sampler =
        make(&(struct ls_sampler_options){.length = 10, .in_order = true});
    struct ls_sampler_state saved = {
        .seed = 7, .epoch = 3, .type = "dist", .length = 10, .shuffle = true};
    assert_ok(ls_sampler_load(sampler, &saved));
    assert_int_equal(draw_all(sampler, drawn, &n), 10);
    assert_memory_equal(drawn, wanted, sizeof wanted);
    saved.shuffle = false;
    assert_ok(ls_sampler_load(sampler, &saved));
    assert_int_equal(draw_all(sampler, drawn, &n), 10);
    for (uint64_t i = 0; i < 10; i++)
        assert_int_equal(drawn[i], i);
    ls_sampler_destroy(&sampler);
}

/* As a blob ---------------------------------------------------------------- */

static void write_blobs(const char *folder, ls_blobs *blobs)
{
    struct ls_checkpoint_entry entry;
    ls_checkpoints *checkpoints;
    assert_ok(ls_checkpoints_open(
        &checkpoints,
        &(struct ls_checkpoints_options){.folder = folder, .node = "a"}));
    assert_ok(ls_checkpoints_write(checkpoints, 1, blobs, &entry));
    assert_ok(ls_checkpoints_close(&checkpoints));
}

static void save(ls_sampler *sampler, const char *folder)
{
    ls_blobs *blobs;
    assert_ok(ls_blobs_create(&blobs));
    assert_ok(ls_sampler_add_blob(sampler, blobs, "sampler"));
    assert_fails(ls_sampler_add_blob(sampler, blobs, "sampler"), LS_EEXIST);
    write_blobs(folder, blobs);
    ls_blobs_destroy(&blobs);
}

static int size_of_text(void *self, uint64_t *out)
{
    *out = strlen(self);
    return LS_OK;
}

static int save_text(void *self, ls_blob_sink *sink)
{
    return ls_blob_sink_add(sink, self, strlen(self));
}

static int load_nothing(void *self, ls_blob_source *source)
{
    (void)self;
    (void)source;
    return LS_OK;
}

/* What no sampler has written, under its name. */
static void save_text_as_sampler(const char *folder)
{
    static const struct ls_blob_ops ops = {size_of_text, save_text,
                                           load_nothing};
    char text[] = "not a state";
    ls_blobs *blobs;
    assert_ok(ls_blobs_create(&blobs));
    assert_ok(
        ls_blobs_add(blobs, &(struct ls_blob){.name = "sampler",
                                              .form = {LS_BLOB_BYTES, 1, {0}},
                                              .ops = &ops,
                                              .self = text}));
    write_blobs(folder, blobs);
    ls_blobs_destroy(&blobs);
}

static int load(ls_sampler *sampler, const char *folder)
{
    struct ls_checkpoint_entry entry = {.node = "a"};
    ls_checkpoints *checkpoints;
    ls_blobs *blobs;
    ls_vault *vault;
    ls_vault_reader *reader;
    /* The entry as it lies there. */
    assert_ok(ls_vault_open(&vault, &(struct ls_vault_options){folder, true}));
    assert_ok(ls_vault_reader_create(&reader, vault, "a.000001"));
    entry.check = ls_vault_reader_check(reader);
    for (size_t i = 0; i < ls_vault_reader_n(reader); i++)
        entry.size += ls_vault_reader_shard(reader, i)->size;
    ls_vault_reader_destroy(&reader);
    ls_vault_close(&vault);
    assert_ok(ls_blobs_create(&blobs));
    assert_ok(ls_sampler_add_blob(sampler, blobs, "sampler"));
    assert_ok(ls_checkpoints_open(
        &checkpoints,
        &(struct ls_checkpoints_options){.folder = folder, .node = "a"}));
    const int status = ls_checkpoints_load(checkpoints, 1, &entry, blobs, NULL);
    assert_ok(ls_checkpoints_close(&checkpoints));
    ls_blobs_destroy(&blobs);
    return status;
}

TEST(a_checkpoint_keeps_where_a_sampler_is)
{
    char folder[] = "/tmp/lockstep-XXXXXX", command[64];
    static const struct ls_sampler_options options = {
        .length = 40, .ranks = 4, .rank = 3, .batch_size = 2, .seed = 11};
    uint64_t drawn[2], again[2];
    size_t n;
    ls_sampler *first = make(&options), *second = make(&options);
    ls_sampler *other = make(&(struct ls_sampler_options){.length = 41});
    assert_non_null(mkdtemp(folder));
    assert_ok(ls_sampler_set_epoch(first, 2));
    assert_ok(ls_sampler_next(first, drawn, &n));
    assert_ok(ls_sampler_next(first, drawn, &n));
    assert_ok(ls_sampler_consume(first, 1));
    save(first, folder);
    assert_ok(load(second, folder));
    assert_int_equal(ls_sampler_epoch(second), 2);
    assert_ok(ls_sampler_next(second, again, &n));
    assert_memory_equal(again, drawn, sizeof again);
    assert_fails(load(other, folder), LS_EMISMATCH);
    assert_error_has("40 samples");
    ls_sampler_destroy(&first);
    ls_sampler_destroy(&second);
    ls_sampler_destroy(&other);
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

TEST(a_blob_that_is_no_state_is_refused)
{
    char folder[] = "/tmp/lockstep-XXXXXX", command[64];
    ls_sampler *sampler = make(&(struct ls_sampler_options){.length = 40});
    assert_non_null(mkdtemp(folder));
    save_text_as_sampler(folder);
    assert_ok(ls_sampler_set_epoch(sampler, 3));
    assert_fails(load(sampler, folder), LS_EPROTO);
    assert_int_equal(ls_sampler_epoch(sampler), 3); /* as it was */
    static const char long_text[300];
    ls_blobs *blobs;
    assert_ok(ls_blobs_create(&blobs));
    assert_ok(ls_sampler_add_blob(sampler, blobs, "sampler"));
    assert_fails(ls_sampler_add_blob(sampler, blobs, "sampler"), LS_EEXIST);
    assert_fails(ls_blob_unpack(ls_blobs_find(blobs, "sampler"), long_text,
                                sizeof long_text),
                 LS_EPROTO);
    assert_int_equal(ls_sampler_epoch(sampler), 3);
    ls_blobs_destroy(&blobs);
    ls_sampler_destroy(&sampler);
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

/* Errors ------------------------------------------------------------------- */

TEST(what_is_out_of_range_is_refused)
{
    static const struct {
        struct ls_sampler_options options;
        const char *text;
    } none[] = {
        {{.length = 0}, "0 samples"},
        {{.length = LS_SAMPLER_LENGTH_MAX + 1}, "2^48"},
        {{.length = 1, .spread = (enum ls_spread)3}, "not a spread"},
        {{.length = 1, .rank = 2, .ranks = 2}, "rank 2 of 2"},
        {{.length = 1, .rank = 1}, "rank 1 of 1"},
        {{.length = 1, .ranks = LS_SAMPLER_RANKS_MAX + 1}, "of 1048577"},
        {{.length = 1, .batch_size = UINT32_C(1) << 31}, "a batch of"},
    };
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        ls_sampler *sampler = (ls_sampler *)&sampler;
        assert_fails(ls_sampler_create(&sampler, &none[i].options), LS_EINVAL);
        assert_null(sampler);
        assert_error_has(none[i].text);
    }
    assert_null(ls_spread_name((enum ls_spread)3));
    ls_sampler_destroy(NULL);
}

/* As many as no machine has memory to shuffle. */
TEST(an_order_takes_memory_and_no_order_takes_none)
{
    struct ls_sampler_options options = {.length = LS_SAMPLER_LENGTH_MAX};
    ls_sampler *sampler = NULL;
    struct ls_sampler_state saved;
    assert_true(LS_SAMPLER_LENGTH_MAX < too_many);
    assert_fails(ls_sampler_create(&sampler, &options), LS_ENOMEM);
    assert_null(sampler);
    options.in_order = true;
    sampler = make(&options);
    ls_sampler_save(sampler, &saved);
    saved.shuffle = true;
    saved.epoch = 7;
    assert_fails(ls_sampler_load(sampler, &saved), LS_ENOMEM);
    assert_int_equal(ls_sampler_epoch(sampler), 0);
    assert_int_equal(ls_sampler_samples(sampler), LS_SAMPLER_LENGTH_MAX);
    assert_int_equal(ls_sampler_batches(sampler), LS_SAMPLER_LENGTH_MAX);
    ls_sampler_destroy(&sampler);
}

TEST(nothing_changes_during_an_iteration)
{
    static const struct ls_sampler_state saved = {.type = "dist", .length = 4};
    uint64_t drawn[MOST];
    size_t n;
    ls_sampler *sampler = make(&(struct ls_sampler_options){.length = 4});
    assert_ok(ls_sampler_set_ranks(sampler, 1, 2));
    assert_ok(ls_sampler_set_batches(sampler, 2, true));
    assert_int_equal(ls_sampler_batches(sampler), 1);
    assert_ok(ls_sampler_next(sampler, drawn, &n));
    assert_int_equal(n, 2);
    assert_fails(ls_sampler_set_epoch(sampler, 1), LS_ESTATE);
    assert_error_has("the epoch of a sampler");
    assert_fails(ls_sampler_set_ranks(sampler, 0, 1), LS_ESTATE);
    assert_fails(ls_sampler_set_batches(sampler, 1, false), LS_ESTATE);
    assert_fails(ls_sampler_load(sampler, &saved), LS_ESTATE);
    assert_ok(ls_sampler_next(sampler, drawn, &n));
    assert_int_equal(n, 0);
    assert_fails(ls_sampler_set_epoch(sampler, 1),
                 LS_ESTATE); /* not consumed */
    assert_ok(ls_sampler_consume(sampler, 1));
    assert_ok(ls_sampler_set_epoch(sampler, 1));
    assert_ok(ls_sampler_next(sampler, drawn, &n));
    ls_sampler_end(sampler);
    assert_ok(ls_sampler_set_ranks(sampler, 0, 1));
    assert_fails(ls_sampler_set_ranks(sampler, 1, 1), LS_EINVAL);
    assert_fails(ls_sampler_set_batches(sampler, 0, false), LS_EINVAL);
    ls_sampler_destroy(&sampler);
}

TEST(only_what_was_drawn_is_consumed)
{
    uint64_t drawn[1];
    size_t n;
    ls_sampler *sampler = make(&(struct ls_sampler_options){.length = 4});
    assert_ok(ls_sampler_next(sampler, drawn, &n));
    assert_fails(ls_sampler_consume(sampler, 2), LS_EINVAL);
    assert_error_has("1 are drawn");
    assert_ok(ls_sampler_consume(sampler, 1));
    assert_fails(ls_sampler_consume(sampler, 1), LS_EINVAL);
    ls_sampler_destroy(&sampler);
}

TEST(a_state_of_other_data_is_refused)
{
    struct ls_sampler_state saved = {.type = "dist", .length = 5};
    ls_sampler *sampler = make(&(struct ls_sampler_options){.length = 4});
    assert_fails(ls_sampler_load(sampler, &saved), LS_EMISMATCH);
    assert_error_has("5 samples");
    saved = (struct ls_sampler_state){.type = "unrepeatdist", .length = 4};
    assert_fails(ls_sampler_load(sampler, &saved), LS_EMISMATCH);
    assert_error_has("unrepeatdist");
    ls_sampler_destroy(&sampler);
}
