/* messages.h, as a specification: what is written is read back the same, and
 * nothing else is read. */
#include "lockstep/random.h"

#include "message_examples.h"
#include "test.h"

TEST(reads_back_what_was_written)
{
    for (size_t i = 0; i < N_FLAT; i++) {
        struct bytes bytes = written(&examples[i]);
        void *out = calloc(1, examples[i].size);
        if (examples[i].read(out, bytes.data, bytes.size) != LS_OK)
            fail_msg("%s: %s", examples[i].call, ls_error_text());
        assert_memory_equal(out, examples[i].value, examples[i].size);
        free(out);
        ls_writer_destroy(&bytes.writer);
    }
}

TEST(reads_back_a_batch)
{
    struct bytes bytes = written(&examples[N_FLAT]);
    struct learner_batch out;
    assert_ok(learner_batch_read(&out, bytes.data, bytes.size));
    assert_memory_equal(&out.key, &batch.key, sizeof out.key);
    assert_int_equal(out.n, 2);
    /* The rest of what was drawn is nobody's business. */
    for (size_t i = 0; i < 2; i++)
        assert_memory_equal(&out.items[i].sample, &drawn[i].sample,
                            sizeof drawn[i].sample);
    learner_batch_fini(&out);
    assert_null(out.items);
    assert_int_equal(out.n, 0);
    ls_writer_destroy(&bytes.writer);
}

TEST(reads_back_data)
{
    struct bytes bytes = written(&examples[N_FLAT + 1]);
    struct collector_data out;
    assert_ok(collector_data_read(&out, bytes.data, bytes.size));
    assert_false(out.is_info);
    assert_int_equal(out.n, 2);
    assert_memory_equal(out.samples, brought, sizeof brought);
    collector_data_fini(&out);
    assert_null(out.samples);
    ls_writer_destroy(&bytes.writer);
}

/* A batch with these columns. */
static int read_columns(int64_t of, int64_t part, size_t n_parts)
{
    struct bytes bytes = {0};
    struct learner_batch out;
    assert_ok(ls_writer_create(&bytes.writer));
    ls_write_map(bytes.writer, 5);
    ls_write_string(bytes.writer, "task_id");
    ls_write_string(bytes.writer, "learner_1");
    ls_write_string(bytes.writer, "attempt");
    ls_write_int(bytes.writer, 1);
    ls_write_string(bytes.writer, "data");
    ls_write_array(bytes.writer, 1);
    ls_record_write(&sample_record, &brought[0], bytes.writer);
    ls_write_string(bytes.writer, "of");
    ls_write_array(bytes.writer, 1);
    ls_write_int(bytes.writer, of);
    ls_write_string(bytes.writer, "part");
    ls_write_array(bytes.writer, (uint32_t)n_parts);
    for (size_t i = 0; i < n_parts; i++)
        ls_write_int(bytes.writer, part);
    assert_ok(ls_writer_bytes(bytes.writer, &bytes.data, &bytes.size));
    const int status = learner_batch_read(&out, bytes.data, bytes.size);
    if (status == LS_OK)
        learner_batch_fini(&out);
    ls_writer_destroy(&bytes.writer);
    return status;
}

TEST(a_batch_has_parts_of_its_data_alone)
{
    assert_ok(read_columns(0, 3, 1));
    assert_fails(read_columns(1, 0, 1), LS_EPROTO);
    assert_error_has("of: there is no data 1");
    assert_fails(read_columns(0, 4, 1), LS_EPROTO);
    assert_error_has("part: d.1 has no part 4");
    assert_fails(read_columns(0, 0, 2), LS_EPROTO);
    assert_error_has("part: 2 for 1 samples");
}

TEST(a_member_without_a_work_says_nothing_of_one)
{
    const struct service_resource idle = {.gpu = 0.5, .cpu = 1.0};
    struct service_resource out = {.attempt = 7};
    const struct example example = EXAMPLE("", service_resource, idle);
    struct bytes bytes = written(&example);
    assert_ok(service_resource_read(&out, bytes.data, bytes.size));
    assert_memory_equal(&out, &idle, sizeof idle);
    ls_writer_destroy(&bytes.writer);
}

TEST(a_mean_of_nothing_is_nil)
{
    struct collector_closed none = collector_closed, out;
    none.reward_mean = NAN;
    const struct example example = EXAMPLE("", collector_closed, none);
    struct bytes bytes = written(&example);
    assert_ok(collector_closed_read(&out, bytes.data, bytes.size));
    assert_true(isnan(out.reward_mean));
    ls_writer_destroy(&bytes.writer);
}

/* Limits ------------------------------------------------------------------ */

static void refuse_learner(struct learner_work work, const char *field)
{
    struct learner_work out;
    const struct example example = EXAMPLE("", learner_work, work);
    struct bytes bytes = written(&example);
    assert_fails(learner_work_read(&out, bytes.data, bytes.size), LS_EPROTO);
    assert_error_has("learner_start_task");
    assert_error_has(field);
    ls_writer_destroy(&bytes.writer);
}

static void refuse_collector(struct collector_work work, const char *field)
{
    struct collector_work out;
    const struct example example = EXAMPLE("", collector_work, work);
    struct bytes bytes = written(&example);
    assert_fails(collector_work_read(&out, bytes.data, bytes.size), LS_EPROTO);
    assert_error_has(field);
    ls_writer_destroy(&bytes.writer);
}

TEST(numbers_keep_to_their_ranges)
{
    struct learner_work work = learner;
    work.batch_size = SERVICE_BATCH_MAX + 1;
    refuse_learner(work, "batch_size");
    work = learner;
    work.key.attempt = 0;
    refuse_learner(work, "attempt");
    work = learner;
    work.send_policy_freq = 0;
    refuse_learner(work, "send_policy_freq");
    work = learner;
    work.gpu = NAN;
    refuse_learner(work, "gpu");
    work = learner;
    work.n_ranks = 1; /* nobody shares */
    refuse_learner(work, "ranks");
    work = learner;
    work.ranks[1] = work.ranks[0];
    refuse_learner(work, "ranks");
    work = learner;
    work.ranks[1] = INT64_C(1) << 32;
    refuse_learner(work, "ranks");
    work = learner;
    work.batch_size = 3;
    refuse_learner(work, "batch_size");
    struct collector_work evaluation = collector;
    evaluation.split = 3;
    refuse_collector(evaluation, "split");
    evaluation = collector;
    evaluation.episodes = 0;
    refuse_collector(evaluation, "episodes");
    evaluation = collector;
    evaluation.unroll_len = 1048577;
    refuse_collector(evaluation, "unroll_len");
}

TEST(names_become_names_of_files_safely)
{
    static const char *const bad[] = {"", "../x", "a/b", ".a", "a b"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct learner_work work = learner;
        name_it(work.policy_id, bad[i]);
        refuse_learner(work, "policy_id");
    }
}

TEST(the_largest_batch_fits_a_call)
{
    char name[SAFE_NAME_MAX + 1];
    memset(name, 'n', SAFE_NAME_MAX);
    name[SAFE_NAME_MAX] = '\0';
    struct drawn_sample *items = calloc(SERVICE_BATCH_MAX, sizeof *items);
    struct learner_batch full = {.n = SERVICE_BATCH_MAX, .items = items};
    name_it(full.key.task_id, name);
    full.key.attempt = SERVICE_COUNT_MAX;
    for (size_t i = 0; i < SERVICE_BATCH_MAX; i++) {
        struct sample *sample = &items[i].sample;
        (void)snprintf(name, sizeof name, "%063zu", i);
        *sample = sample_named(name);
        name_it(sample->task_id, name);
        name_it(sample->buffer_id, name);
        name_it(sample->compressor, name);
        name_it(sample->object_ref, name);
        sample->policy_iter = sample->policy_version = sample->env_id =
            sample->cur_episode = sample->cur_sample = sample->cur_step =
                sample->size = items[i].slot = items[i].staleness =
                    SERVICE_COUNT_MAX;
        name_it(items[i].unique_id, name);
    }
    const struct example example = EXAMPLE("", learner_batch, full);
    struct bytes bytes = written(&example);
    print_message("the largest learn call: %zu bytes\n", bytes.size);
    assert_true(bytes.size <= LS_CALL_DATA_MAX);
    struct learner_batch out;
    assert_ok(learner_batch_read(&out, bytes.data, bytes.size));
    learner_batch_fini(&out);
    ls_writer_destroy(&bytes.writer);
    free(items);
}

/* Hostile bytes ----------------------------------------------------------- */

TEST(bytes_that_were_changed_are_refused_or_read)
{
    struct ls_rng rng;
    ls_rng_seed(&rng, 1, 1);
    for (size_t i = 0; i < N_EXAMPLES; i++) {
        struct bytes bytes = written(&examples[i]);
        for (size_t round = 0; round < 2000; round++) {
            unsigned char *spoilt = malloc(bytes.size);
            memcpy(spoilt, bytes.data, bytes.size);
            for (size_t k = 0; k <= round % 3; k++)
                spoilt[ls_rng_below(&rng, bytes.size)] =
                    (unsigned char)ls_rng_below(&rng, 256);
            const size_t size =
                round % 5 == 0 ? ls_rng_below(&rng, bytes.size) : bytes.size;
            void *out = calloc(1, examples[i].size);
            const int status = examples[i].read(out, spoilt, size);
            assert_true(status == LS_OK || status == LS_EPROTO);
            if (status == LS_OK && i == N_FLAT)
                learner_batch_fini(out);
            if (status == LS_OK && i == N_FLAT + 1)
                collector_data_fini(out);
            free(out);
            free(spoilt);
        }
        ls_writer_destroy(&bytes.writer);
    }
}

TEST(what_asks_for_nothing_brings_nothing)
{
    assert_ok(service_nothing_read("\x80", 1));
    assert_fails(service_nothing_read("\x81\xa1x\xc0", 4), LS_EPROTO);
    assert_fails(service_nothing_read("", 0), LS_EPROTO);
    assert_fails(service_nothing_read("\x90", 1), LS_EPROTO);
    assert_fails(service_started_read("\x80", 1), LS_EPROTO);
    assert_ok(service_started_read("\x81\xa7message\xa2go", 12));
}

int main(void)
{
    return tests_run_with(make_examples, NULL);
}
