/* What is told of training data, as bytes and back. */
#include "sample.h"

#include <math.h>
#include <string.h>

#include "lockstep/random.h"
#include "test.h"

#define WAYS(type)                                                             \
    static void type##_write(const struct type *in, ls_writer *out)            \
    {                                                                          \
        ls_record_write(&type##_record, in, out);                              \
    }                                                                          \
    static int type##_read(struct type *out, const ls_value *value)            \
    {                                                                          \
        return ls_record_read(&type##_record, out, value);                     \
    }
WAYS(sample)

static const struct sample whole = {.data_id = "data-7",
                                    .task_id = "work@1",
                                    .buffer_id = "buffer.1",
                                    .compressor = "none",
                                    .policy_iter = 40,
                                    .policy_version = 41,
                                    .env_id = 3,
                                    .unroll_len = 128,
                                    .parts = 1,
                                    .priority = 0.5,
                                    .cur_episode = 9,
                                    .cur_sample = 10,
                                    .cur_step = 11,
                                    .size = 4096};

/* Another value in the place of one field; or none; or one field more. */
struct change {
    const char *field;
    enum { LEAVE_OUT, WITH_NIL, WITH_INT, WITH_DOUBLE, WITH_TEXT, ADD } how;
    int64_t number;
    double real;
    const char *text;
};

static void write_changed(ls_writer *out, const struct change *change)
{
    switch (change->how) {
    case WITH_INT:
        ls_write_int(out, change->number);
        break;
    case WITH_DOUBLE:
        ls_write_double(out, change->real);
        break;
    case WITH_TEXT:
        ls_write_string(out, change->text);
        break;
    default:
        ls_write_nil(out);
    }
}

static void copy_value(ls_writer *out, const ls_value *value)
{
    int64_t number;
    double real;
    const char *text;
    if (ls_value_int(value, &number) == LS_OK) {
        ls_write_int(out, number);
    } else if (ls_value_double(value, &real) == LS_OK) {
        ls_write_double(out, real);
    } else if (ls_value_string(value, &text) == LS_OK) {
        ls_write_string(out, text);
    } else {
        assert_int_equal(ls_value_type(value), LS_VALUE_MAP);
        ls_write_map(out, (uint32_t)ls_value_size(value));
        for (size_t i = 0; i < ls_value_size(value); i++) {
            ls_write_string(out, ls_value_key(value, i));
            copy_value(out, ls_value_at(value, i));
        }
    }
}

static ls_document *document_of(ls_writer **writer)
{
    const void *data;
    size_t size;
    ls_document *document;
    assert_ok(ls_writer_bytes(*writer, &data, &size));
    assert_ok(ls_document_read(&document, data, size, NULL));
    ls_writer_destroy(writer);
    return document;
}

/* The map of `document` with the change, in its place. */
static void apply(ls_document **document, const struct change *change)
{
    const ls_value *map = ls_document_root(*document);
    const size_t n = ls_value_size(map);
    ls_writer *writer;
    assert_ok(ls_writer_create(&writer));
    ls_write_map(writer, (uint32_t)n + (change->how == ADD ? 1u : 0u) -
                             (change->how == LEAVE_OUT ? 1u : 0u));
    bool found = change->how == ADD;
    for (size_t i = 0; i < n; i++) {
        const char *key = ls_value_key(map, i);
        const bool here = strcmp(key, change->field) == 0;
        found = found || here;
        if (here && change->how == LEAVE_OUT)
            continue;
        ls_write_string(writer, key);
        if (here)
            write_changed(writer, change);
        else
            copy_value(writer, ls_value_at(map, i));
    }
    assert_true(found);
    if (change->how == ADD) {
        ls_write_string(writer, change->field);
        write_changed(writer, change);
    }
    ls_document_destroy(document);
    *document = document_of(&writer);
}

static ls_document *sample_document(const struct sample *sample)
{
    ls_writer *writer;
    assert_ok(ls_writer_create(&writer));
    sample_write(sample, writer);
    return document_of(&writer);
}

static struct sample full_sample(void)
{
    struct sample sample = whole;
    sample.parts = 4;
    memcpy(sample.object_ref, "object-1", sizeof "object-1");
    return sample;
}

static void refused(const struct sample *sample, const struct change *change)
{
    ls_document *document = sample_document(sample);
    apply(&document, change);
    struct sample read = {.cur_step = 77};
    assert_fails(sample_read(&read, ls_document_root(document)), LS_EPROTO);
    assert_non_null(strstr(ls_error_text(), change->field));
    assert_int_equal(read.cur_step, 77);
    ls_document_destroy(&document);
}

TEST(a_name_is_safe_as_the_name_of_a_file)
{
    static const char *const good[] = {"a", "data-1", "Z_9@host.x", "-", "a.b"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(safe_name_is(good[i]));
    static const char *const bad[] = {"",     ".",    "..",  ".a",
                                      "a/b",  "/",    "a b", "a\n",
                                      "a..b", "\xc3", "a*",  "a\\"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(safe_name_is(bad[i]));
    assert_false(safe_name_is(NULL));
    char name[SAFE_NAME_MAX + 2] = {0};
    memset(name, 'a', SAFE_NAME_MAX);
    assert_true(safe_name_is(name));
    name[SAFE_NAME_MAX] = 'a';
    assert_false(safe_name_is(name));
}

static void same(const struct sample *a, const struct sample *b)
{
    assert_string_equal(a->data_id, b->data_id);
    assert_string_equal(a->task_id, b->task_id);
    assert_string_equal(a->buffer_id, b->buffer_id);
    assert_string_equal(a->compressor, b->compressor);
    assert_string_equal(a->object_ref, b->object_ref);
    assert_int_equal(a->policy_iter, b->policy_iter);
    assert_int_equal(a->policy_version, b->policy_version);
    assert_int_equal(a->env_id, b->env_id);
    assert_int_equal(a->unroll_len, b->unroll_len);
    assert_int_equal(a->parts, b->parts);
    assert_true(a->priority == b->priority);
    assert_int_equal(a->cur_episode, b->cur_episode);
    assert_int_equal(a->cur_sample, b->cur_sample);
    assert_int_equal(a->cur_step, b->cur_step);
    assert_int_equal(a->size, b->size);
}

TEST(a_sample_comes_back_as_it_was_written)
{
    const struct sample samples[] = {whole, full_sample()};
    for (size_t i = 0; i < 2; i++) {
        struct sample sent = samples[i];
        sent.home = 5;
        ls_document *document = sample_document(&sent);
        struct sample read;
        assert_ok(sample_read(&read, ls_document_root(document)));
        same(&read, &sent);
        assert_int_equal(read.home, 0); /* it is the receiver's to say */
        ls_document_destroy(&document);
    }
}

TEST(every_field_must_be_there_and_of_its_type)
{
    const struct sample full = full_sample();
    ls_document *document = sample_document(&full);
    const ls_value *map = ls_document_root(document);
    assert_int_equal(ls_value_size(map), 15);
    for (size_t i = 0; i < ls_value_size(map); i++) {
        const char *field = ls_value_key(map, i);
        refused(&full, &(struct change){field, WITH_NIL, 0, 0, NULL});
        if (ls_value_type(ls_value_at(map, i)) != LS_VALUE_STRING)
            refused(&full, &(struct change){field, WITH_TEXT, 0, 0, "7"});
        else
            refused(&full, &(struct change){field, WITH_INT, 7, 0, NULL});
        if (strcmp(field, "object_ref") != 0)
            refused(&full, &(struct change){field, LEAVE_OUT, 0, 0, NULL});
    }
    ls_document_destroy(&document);
}

TEST(an_unknown_field_is_refused_by_name)
{
    refused(&whole, &(struct change){"pickle", ADD, 0, 0, NULL});
    refused(&whole, &(struct change){"collector", ADD, 0, 0, NULL});
}

TEST(numbers_outside_their_range_are_refused)
{
    const struct sample full = full_sample();
    static const char *const counts[] = {
        "policy_iter", "policy_version", "env_id",   "unroll_len", "parts",
        "cur_episode", "cur_sample",     "cur_step", "size"};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        refused(&full, &(struct change){counts[i], WITH_INT, -1, 0, NULL});
    refused(&full, &(struct change){"unroll_len", WITH_INT, 0, 0, NULL});
    refused(&full, &(struct change){"unroll_len", WITH_INT, INT64_C(1) << 32, 0,
                                    NULL});
    refused(&full, &(struct change){"parts", WITH_INT, 0, 0, NULL});
    refused(&full, &(struct change){"parts", WITH_INT, 3, 0, NULL});
    refused(&full, &(struct change){"parts", WITH_INT, 256, 0, NULL});
    refused(&full, &(struct change){"priority", WITH_DOUBLE, 0, -1e-9, NULL});
    refused(&full, &(struct change){"priority", WITH_DOUBLE, 0, 1.1e30, NULL});
    refused(&full, &(struct change){"priority", WITH_DOUBLE, 0, NAN, NULL});
}

TEST(names_that_are_no_safe_names_are_refused)
{
    const struct sample full = full_sample();
    static const char *const names[] = {"data_id", "task_id", "buffer_id",
                                        "compressor", "object_ref"};
    char longer[SAFE_NAME_MAX + 2] = {0};
    memset(longer, 'a', SAFE_NAME_MAX + 1);
    const char *const bad[] = {"",   "../etc/passwd", "a/b", "a..b",
                               ".x", longer};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        for (size_t j = 0; j < sizeof bad / sizeof bad[0]; j++)
            refused(&full, &(struct change){names[i], WITH_TEXT, 0, 0, bad[j]});
    }
}

TEST(what_is_no_map_is_refused)
{
    ls_writer *writer;
    assert_ok(ls_writer_create(&writer));
    ls_write_int(writer, 1);
    ls_document *document = document_of(&writer);
    struct sample sample;
    const ls_value *const values[] = {NULL, ls_document_root(document)};
    for (size_t i = 0; i < 2; i++) {
        assert_fails(sample_read(&sample, values[i]), LS_EPROTO);
    }
    ls_document_destroy(&document);
}

TEST(a_part_has_its_share_of_steps_and_bytes)
{
    const struct sample full = full_sample();
    struct sample part;
    sample_part(&full, 3, &part);
    assert_int_equal(part.unroll_len, 32);
    assert_int_equal(sample_bytes(&part), 1024);
    assert_int_equal(sample_at(&part), 3072);
    sample_part(&whole, 0, &part);
    assert_int_equal(part.unroll_len, 128);
    assert_int_equal(sample_bytes(&part), 4096);
    assert_int_equal(sample_at(&part), 0);
}

TEST(bytes_that_are_changed_do_no_harm)
{
    const struct sample full = full_sample();
    ls_writer *writer;
    const void *data;
    size_t size;
    unsigned char bytes[1024];
    struct ls_rng rng;
    assert_ok(ls_writer_create(&writer));
    sample_write(&full, writer);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_true(size <= sizeof bytes);
    memcpy(bytes, data, size);
    ls_writer_destroy(&writer);
    ls_rng_seed(&rng, 1, 0);
    for (int i = 0; i < 50000; i++) {
        const size_t at = ls_rng_below(&rng, size);
        const unsigned char was = bytes[at];
        ls_document *document = NULL;
        struct sample read;
        bytes[at] = (unsigned char)ls_rng_next(&rng);
        int status = ls_document_read(&document, bytes, size, NULL);
        if (status == LS_OK)
            status = sample_read(&read, ls_document_root(document));
        assert_true(status == LS_OK || status == LS_EPROTO ||
                    status == LS_ELIMIT);
        if (status == LS_OK)
            assert_true(safe_name_is(read.data_id));
        ls_document_destroy(&document);
        bytes[at] = was;
    }
}
