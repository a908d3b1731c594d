/* What the members of a store say to each other, as bytes and back. */
#include "lockstep/call.h"

#include "store_calls.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/random.h"
#include "test.h"

static struct store_answer answer;

static const struct ls_record *const records[] = {
    &store_put_record, &store_get_record, &store_drop_record,
    &store_answer_record};

static int read_as(const struct ls_record *record, const void *data,
                   size_t size)
{
    static max_align_t room[sizeof answer / sizeof(max_align_t) + 1];
    const int status = store_call_read(record, room, data, size);
    if (status == LS_OK)
        ls_record_clear(record, room);
    return status;
}

/* It is read as what it is alone; cut or prolonged by nobody; with bytes
 * changed by nobody wrongly, and never without end. */
static void check_bytes(ls_writer *writer, const struct ls_record *record)
{
    const void *data;
    size_t size;
    unsigned char bytes[512];
    struct ls_rng rng;
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_true(size < sizeof bytes);
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, data, size);
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++)
        assert_int_equal(read_as(records[i], bytes, size),
                         records[i] == record ? LS_OK : LS_EPROTO);
    for (size_t i = 0; i < size; i++)
        assert_fails(read_as(record, bytes, i), LS_EPROTO);
    assert_fails(read_as(record, bytes, size + 1), LS_EPROTO);
    ls_rng_seed(&rng, size, 0);
    for (int i = 0; i < 20000; i++) {
        const size_t at = ls_rng_below(&rng, size);
        const unsigned char was = bytes[at];
        bytes[at] = (unsigned char)ls_rng_next(&rng);
        const int status = read_as(record, bytes, size);
        assert_true(status == LS_OK || status == LS_EPROTO);
        bytes[at] = was;
    }
    ls_writer_destroy(&writer);
}

static ls_writer *writer_of(void)
{
    ls_writer *writer = NULL;
    assert_ok(ls_writer_create(&writer));
    return writer;
}

/* Written, read again, and looked at for all that may be wrong with it. */
static void comes_back(const struct ls_record *record, const void *in,
                       void *out)
{
    ls_writer *writer = writer_of();
    const void *data;
    size_t size;
    ls_record_write(record, in, writer);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_ok(store_call_read(record, out, data, size));
    check_bytes(writer, record);
}

static size_t written(const struct ls_record *record, const void *in,
                      int status)
{
    ls_writer *writer = writer_of();
    const void *data;
    size_t size;
    ls_record_write(record, in, writer);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_int_equal(read_as(record, data, size), status);
    ls_writer_destroy(&writer);
    return size;
}

TEST(a_put_comes_back)
{
    const struct store_put_call put = {
        .name = "policy-1", .keep = true, .rank = UINT64_C(1) << 63};
    struct store_put_call read;
    comes_back(&store_put_record, &put, &read);
    assert_string_equal(read.name, put.name);
    assert_true(read.keep);
    assert_true(read.rank == put.rank);
}

TEST(parts_come_back)
{
    struct store_range parts[] = {{"a", 0, 0}, {"b.c", 7, UINT64_MAX}};
    struct store_get_call read;
    comes_back(&store_get_record, &(struct store_get_call){2, parts}, &read);
    assert_int_equal(read.n, 2);
    assert_string_equal(read.parts[1].name, "b.c");
    assert_true(read.parts[1].at == 7 && read.parts[1].size == UINT64_MAX);
    free(read.parts);
}

TEST(names_come_back_and_bad_ones_are_refused)
{
    store_name good[] = {"a", "b.c", "d@e"}, bad[] = {"a", "../b"};
    struct store_drop_call read;
    comes_back(&store_drop_record, &(struct store_drop_call){3, good}, &read);
    assert_int_equal(read.n, 3);
    assert_string_equal(read.names[2], "d@e");
    free(read.names);
    (void)written(&store_drop_record, &(struct store_drop_call){2, bad},
                  LS_EPROTO);
    assert_error_has("names: item 1: it is not a name");
    (void)written(&store_drop_record, &(struct store_drop_call){0, bad},
                  LS_EPROTO);
}

TEST(as_many_as_may_be_asked_for_fit_into_a_call)
{
    static struct store_range parts[STORE_GET_MAX + 1];
    for (size_t i = 0; i <= STORE_GET_MAX; i++) {
        (void)snprintf(parts[i].name, sizeof parts[i].name, "%063zu", i);
        parts[i].at = parts[i].size = UINT64_MAX;
        answer.sizes[i % STORE_GET_MAX] = UINT64_MAX;
    }
    assert_true(written(&store_get_record,
                        &(struct store_get_call){STORE_GET_MAX, parts},
                        LS_OK) <= LS_CALL_DATA_MAX);
    (void)written(&store_get_record,
                  &(struct store_get_call){STORE_GET_MAX + 1, parts},
                  LS_EPROTO);
    answer.status = LS_OK;
    answer.n = STORE_GET_MAX;
    assert_true(written(&store_answer_record, &answer, LS_OK) <=
                LS_CALL_DATA_MAX);
}

TEST(answers_come_back)
{
    static struct store_answer read;
    answer = (struct store_answer){.n = 2, .sizes = {1, 2}};
    comes_back(&store_answer_record, &answer, &read);
    assert_int_equal(read.n, 2);
    answer = (struct store_answer){.status = LS_EIO, .text = "the disk"};
    comes_back(&store_answer_record, &answer, &read);
    assert_int_equal(read.status, LS_EIO);
    assert_string_equal(read.text, "the disk");
    static const int unknown[] = {1, -99, INT32_MIN};
    for (size_t i = 0; i < 3; i++) {
        answer.status = unknown[i];
        (void)written(&store_answer_record, &answer, LS_EPROTO);
    }
}
