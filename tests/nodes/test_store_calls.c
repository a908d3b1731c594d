/* What the members of a store say to each other, as bytes and back. */
#include "lockstep/call.h"

#include "store_calls.h"

#include <stdio.h>
#include <string.h>

#include "lockstep/random.h"
#include "test.h"

static struct store_names names;
static struct store_answer answer;

static int read_put(const void *data, size_t size)
{
    struct store_put_call put;
    return store_put_read(&put, data, size);
}

static int read_names(const void *data, size_t size)
{
    return store_names_read(&names, data, size);
}

static int read_answer(const void *data, size_t size)
{
    return store_answer_read(&answer, data, size);
}

typedef int read_fn(const void *data, size_t size);
static read_fn *const readers[] = {read_put, read_names, read_answer};

/* It is read by `reader` alone; cut or prolonged by nobody; with bytes changed
 * by nobody wrongly, and never without end. */
static void check_bytes(ls_writer *writer, read_fn *reader)
{
    const void *data;
    size_t size;
    unsigned char bytes[512];
    struct ls_rng rng;
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_true(size < sizeof bytes);
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, data, size);
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++)
        assert_int_equal(readers[i](bytes, size),
                         readers[i] == reader ? LS_OK : LS_EPROTO);
    for (size_t i = 0; i < size; i++)
        assert_fails(reader(bytes, i), LS_EPROTO);
    assert_fails(reader(bytes, size + 1), LS_EPROTO);
    ls_rng_seed(&rng, size, 0);
    for (int i = 0; i < 20000; i++) {
        const size_t at = ls_rng_below(&rng, size);
        const unsigned char was = bytes[at];
        bytes[at] = (unsigned char)ls_rng_next(&rng);
        const int status = reader(bytes, size);
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

TEST(a_put_comes_back)
{
    const struct store_put_call put = {
        .name = "policy-1", .keep = true, .rank = UINT64_C(1) << 63};
    ls_writer *writer = writer_of();
    const void *data;
    size_t size;
    struct store_put_call read;
    store_put_write(&put, writer);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_ok(store_put_read(&read, data, size));
    assert_string_equal(read.name, put.name);
    assert_true(read.keep);
    assert_true(read.rank == put.rank);
    check_bytes(writer, read_put);
}

TEST(names_come_back_and_bad_ones_are_refused)
{
    const char *const good[] = {"a", "b.c", "d@e"};
    const char *const bad[] = {"a", "../b"};
    const void *data;
    size_t size;
    ls_writer *writer = writer_of();
    store_names_write(good, 3, writer);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_ok(store_names_read(&names, data, size));
    assert_int_equal(names.n, 3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(names.at[i], good[i]);
    check_bytes(writer, read_names);
    writer = writer_of();
    store_names_write(bad, 2, writer);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_fails(store_names_read(&names, data, size), LS_EPROTO);
    assert_error_has("../b");
    ls_writer_clear(writer);
    store_names_write(bad, 0, writer);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_fails(store_names_read(&names, data, size), LS_EPROTO);
    ls_writer_destroy(&writer);
}

TEST(as_many_names_as_may_be_asked_for_fit_into_a_call)
{
    static char text[STORE_GET_MAX + 1][SAFE_NAME_MAX + 1];
    static const char *pointers[STORE_GET_MAX + 1];
    const void *data;
    size_t size;
    for (size_t i = 0; i <= STORE_GET_MAX; i++) {
        (void)snprintf(text[i], sizeof text[i], "%063zu", i);
        pointers[i] = text[i];
        answer.sizes[i % STORE_GET_MAX] = UINT64_MAX;
    }
    ls_writer *writer = writer_of();
    store_names_write(pointers, STORE_GET_MAX, writer);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_true(size <= LS_CALL_DATA_MAX);
    assert_ok(store_names_read(&names, data, size));
    ls_writer_clear(writer);
    store_names_write(pointers, STORE_GET_MAX + 1, writer);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_fails(store_names_read(&names, data, size), LS_EPROTO);
    ls_writer_clear(writer);
    answer.status = LS_OK;
    answer.n = STORE_GET_MAX;
    store_answer_write(&answer, writer);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_true(size <= LS_CALL_DATA_MAX);
    assert_ok(store_answer_read(&answer, data, size));
    assert_int_equal(answer.n, STORE_GET_MAX);
    ls_writer_destroy(&writer);
}

TEST(answers_come_back)
{
    ls_writer *writer = writer_of();
    answer = (struct store_answer){.n = 2, .sizes = {1, 2}};
    store_answer_write(&answer, writer);
    check_bytes(writer, read_answer);
    writer = writer_of();
    answer = (struct store_answer){.status = LS_EIO, .text = "the disk"};
    store_answer_write(&answer, writer);
    const void *data;
    size_t size;
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_ok(store_answer_read(&answer, data, size));
    assert_int_equal(answer.status, LS_EIO);
    assert_string_equal(answer.text, "the disk");
    check_bytes(writer, read_answer);
    static const int unknown[] = {1, -99, INT32_MIN};
    for (size_t i = 0; i < 3; i++) {
        writer = writer_of();
        answer.status = unknown[i];
        store_answer_write(&answer, writer);
        assert_ok(ls_writer_bytes(writer, &data, &size));
        assert_fails(store_answer_read(&answer, data, size), LS_EPROTO);
        ls_writer_destroy(&writer);
    }
}
