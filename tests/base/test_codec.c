

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/codec.h"
#include "test.h"

/* Bytes from a literal, its NUL left out. */
#define BYTES(literal) literal, sizeof(literal) - 1

static int setup_writer(void **state)
{
    ls_writer *writer = NULL;
    if (ls_writer_create(&writer) != LS_OK)
        return -1;
    *state = writer;
    return 0;
}

static int teardown_writer(void **state)
{
    ls_writer *writer = *state;
    ls_writer_destroy(&writer);
    return writer == NULL ? 0 : -1;
}

static ls_document *read_bytes(const void *data, size_t size)
{
    ls_document *document = NULL;
    assert_ok(ls_document_read(&document, data, size, NULL));
    assert_non_null(document);
    return document;
}

static ls_document *read_written(ls_writer *writer)
{
    const void *data = NULL;
    size_t size = 0;
    assert_ok(ls_writer_bytes(writer, &data, &size));
    return read_bytes(data, size);
}

static void assert_written(ls_writer *writer, const char *bytes, size_t n)
{
    const void *data = NULL;
    size_t size = 0;
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_int_equal(size, n);
    assert_memory_equal(data, bytes, n);
}

static void assert_refused(int status, const char *bytes, size_t n,
                           const char *text)
{
    ls_document *document = (ls_document *)(void *)&document;
    assert_int_equal(ls_document_read(&document, bytes, n, NULL), status);
    assert_null(document);
    assert_error_has(text);
}

static void a_writer_fails_as(ls_writer *writer, int status, const char *text)
{
    const void *data = NULL;
    size_t size = 77;
    assert_int_equal(ls_writer_bytes(writer, &data, &size), status);
    assert_error_has(text);
    assert_null(data);
    assert_int_equal(size, 77);
}

TEST_WITH(values_take_their_shortest_form, setup_writer, teardown_writer)
{
    ls_writer *const writer = *state;
    ls_write_array(writer, 9);
    ls_write_nil(writer);
    ls_write_bool(writer, true);
    ls_write_bool(writer, false);
    ls_write_int(writer, -1);
    ls_write_uint(writer, 200);
    ls_write_double(writer, 1.0);
    ls_write_string(writer, "hi");
    ls_write_binary(writer, "\1", 1);
    ls_write_map(writer, 1);
    ls_write_string(writer, "k");
    ls_write_array(writer, 0);
    assert_written(writer, BYTES("\x99\xc0\xc3\xc2\xff\xcc\xc8"
                                 "\xcb\x3f\xf0\0\0\0\0\0\0"
                                 "\xa2hi\xc4\x01\x01\x81\xa1k\x90"));
}

TEST_WITH(every_value_reads_back, setup_writer, teardown_writer)
{
    ls_writer *const writer = *state;
    ls_write_map(writer, 5);
    ls_write_string(writer, "least");
    ls_write_int(writer, INT64_MIN);
    ls_write_string(writer, "most");
    ls_write_uint(writer, UINT64_MAX);
    ls_write_string(writer, "pi");
    ls_write_double(writer, 3.25);
    ls_write_string(writer, "text");
    ls_write_string(writer, "gr\xc3\xbc\xc3\x9f");
    ls_write_string(writer, "yes");
    ls_write_bool(writer, true);
    ls_document *document = read_written(writer);
    const ls_value *const root = ls_document_root(document);

    int64_t least = 0;
    uint64_t most = 0;
    double pi = 0;
    const char *text = NULL;
    bool yes = false;
    assert_ok(ls_value_int(ls_value_get(root, "least"), &least));
    assert_ok(ls_value_uint(ls_value_get(root, "most"), &most));
    assert_ok(ls_value_double(ls_value_get(root, "pi"), &pi));
    assert_ok(ls_value_string(ls_value_get(root, "text"), &text));
    assert_ok(ls_value_bool(ls_value_get(root, "yes"), &yes));
    assert_true(least == INT64_MIN && most == UINT64_MAX && yes);
    assert_true(pi == 3.25);
    assert_string_equal(text, "gr\xc3\xbc\xc3\x9f");
    assert_int_equal(ls_value_size(root), 5);
    assert_string_equal(ls_value_key(root, 3), "text");
    assert_ptr_equal(ls_value_at(root, 3), ls_value_get(root, "text"));
    assert_null(ls_value_at(root, 5));
    assert_null(ls_value_key(root, 5));
    assert_null(ls_value_get(root, "absent"));
    ls_document_destroy(&document);
    assert_null(document);
}

TEST_WITH(strings_of_every_length_end_in_nul, setup_writer, teardown_writer)
{
    ls_writer *const writer = *state;
    static const uint32_t lengths[] = {0, 1, 31, 32, 255, 256, 65535, 65536};
    const uint32_t n = sizeof lengths / sizeof *lengths;
    char *const text = malloc(65537);
    assert_non_null(text);
    ls_write_array(writer, n);
    for (uint32_t i = 0; i < n; i++) {
        memset(text, 'x', lengths[i]);
        text[lengths[i]] = '\0';
        ls_write_string(writer, text);
    }
    ls_document *document = read_written(writer);
    for (uint32_t i = 0; i < n; i++) {
        const char *back = NULL;
        const ls_value *const value =
            ls_value_at(ls_document_root(document), i);
        assert_ok(ls_value_string(value, &back));
        assert_int_equal(strlen(back), lengths[i]);
    }
    ls_document_destroy(&document);
    free(text);
}

TEST_WITH(numbers_travel_as_one_binary, setup_writer, teardown_writer)
{
    ls_writer *const writer = *state;
    static const double doubles[] = {1.5, -0.0, DBL_MAX};
    static const float floats[] = {0.25F, -7.0F};
    ls_write_array(writer, 3);
    ls_write_doubles(writer, doubles, 3);
    ls_write_floats(writer, floats, 2);
    ls_write_doubles(writer, NULL, 0);
    ls_document *document = read_written(writer);
    const ls_value *const root = ls_document_root(document);
    double doubles_back[3] = {0};
    float floats_back[2] = {0};
    assert_ok(ls_value_doubles(ls_value_at(root, 0), doubles_back, 3));
    assert_ok(ls_value_floats(ls_value_at(root, 1), floats_back, 2));
    assert_ok(ls_value_doubles(ls_value_at(root, 2), NULL, 0));
    assert_memory_equal(doubles_back, doubles, sizeof doubles);
    assert_memory_equal(floats_back, floats, sizeof floats);
    assert_int_equal(ls_value_size(ls_value_at(root, 0)), 24);
    assert_fails(ls_value_doubles(ls_value_at(root, 0), doubles_back, 2),
                 LS_EPROTO);
    assert_fails(ls_value_floats(ls_value_at(root, 1), floats_back, 1),
                 LS_EPROTO);
    ls_document_destroy(&document);
}

TEST_WITH(an_incomplete_array_is_no_value, setup_writer, teardown_writer)
{
    ls_writer *const writer = *state;
    ls_write_array(writer, 2);
    ls_write_int(writer, 1);
    a_writer_fails_as(writer, LS_ESTATE, "an array is incomplete");
}

TEST_WITH(an_incomplete_map_is_no_value, setup_writer, teardown_writer)
{
    ls_writer *const writer = *state;
    ls_write_map(writer, 1);
    ls_write_string(writer, "key");
    a_writer_fails_as(writer, LS_ESTATE, "a map is incomplete");
}

TEST_WITH(nothing_and_two_values_are_not_one_value, setup_writer,
          teardown_writer)
{
    ls_writer *const writer = *state;
    a_writer_fails_as(writer, LS_ESTATE, "0 values");
    ls_write_nil(writer);
    ls_write_nil(writer);
    a_writer_fails_as(writer, LS_ESTATE, "2 values");
}

TEST_WITH(the_first_write_that_fails_is_told, setup_writer, teardown_writer)
{
    ls_writer *const writer = *state;
    ls_write_array(writer, 2);
    ls_write_string(writer, "broken \xff");
    ls_write_map(writer, 1);
    ls_write_int(writer, 1);
    a_writer_fails_as(writer, LS_EINVAL, "value 2: the string is not UTF-8");
}

TEST_WITH(a_text_of_any_origin_is_written, setup_writer, teardown_writer)
{
    ls_writer *const writer = *state;
    const void *data = NULL;
    size_t size = 0;
    ls_write_array(writer, 3);
    ls_write_any_string(writer, "caf\xc3\xa9");
    ls_write_any_string(writer, "\xe9 \xc3\xa9\xed\xa0\x80\xc3");
    ls_write_any_string(writer, NULL);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    ls_document *document = read_bytes(data, size);
    char text[64];
    (void)ls_value_print(ls_document_root(document), text, sizeof text);
    assert_string_equal(text, "[\"caf\xc3\xa9\",\"? \xc3\xa9????\",null]");
    ls_document_destroy(&document);
}

TEST_WITH(a_key_that_is_no_string_is_refused, setup_writer, teardown_writer)
{
    ls_writer *const writer = *state;
    ls_write_map(writer, 1);
    ls_write_int(writer, 1);
    a_writer_fails_as(writer, LS_EINVAL, "key must be a string");
    ls_writer_clear(writer);
    ls_write_map(writer, 1);
    ls_write_string(writer, NULL);
    a_writer_fails_as(writer, LS_EINVAL, "key must be a string");
}

TEST_WITH(a_cleared_writer_starts_again, setup_writer, teardown_writer)
{
    ls_writer *const writer = *state;
    ls_write_string(writer, "\xff");
    ls_writer_clear(writer);
    ls_write_string(writer, NULL);
    assert_written(writer, BYTES("\xc0"));
}

TEST_WITH(a_writer_goes_32_levels_deep, setup_writer, teardown_writer)
{
    ls_writer *const writer = *state;
    const struct ls_codec_limits deep = {1024, 32, 1024};
    const void *data = NULL;
    size_t size = 0;
    for (int i = 0; i < 31; i++)
        ls_write_array(writer, 1);
    ls_write_map(writer, 0);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    ls_document *document = NULL;
    assert_ok(ls_document_read(&document, data, size, &deep));
    ls_document_destroy(&document);

    ls_writer_clear(writer);
    for (int i = 0; i < 32; i++)
        ls_write_array(writer, 1);
    ls_write_map(writer, 0);
    a_writer_fails_as(writer, LS_ELIMIT, "32 levels");
}

/* Before a byte of them is read. */
TEST_WITH(what_is_longer_than_its_form_can_say_is_refused, setup_writer,
          teardown_writer)
{
    ls_writer *const writer = *state;
    const double one = 1;
    ls_write_binary(writer, "x", (size_t)UINT32_MAX + 1);
    a_writer_fails_as(writer, LS_ELIMIT, "the binary is over 4 GiB");
    ls_writer_clear(writer);
    ls_write_doubles(writer, &one, SIZE_MAX / 4);
    a_writer_fails_as(writer, LS_ELIMIT, "the binary is over 4 GiB");
}

TEST_WITH(a_generator_reads_back, setup_writer, teardown_writer)
{
    struct ls_rng rng, read = {{0}};
    ls_rng_seed(&rng, 7, 9);
    ls_write_rng(*state, &rng);
    ls_document *document = read_written(*state);
    assert_ok(ls_value_rng(ls_document_root(document), &read));
    assert_memory_equal(&read, &rng, sizeof rng);
    ls_document_destroy(&document);
}

TEST(what_is_no_generator_is_not_read_as_one)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *text;
    } bad[] = {
        {BYTES("\x07"), "four"},
        {BYTES("\x93\1\2\3"), "four"},
        {BYTES("\x95\1\2\3\4\5"), "four"},
        {BYTES("\x84\xa1"
               "a\1\xa1"
               "b\1\xa1"
               "c\1\xa1"
               "d\1"),
         "four"},
        {BYTES("\x94\1\2\xff\4"), "number 2 of a generator"},
        {BYTES("\x94\0\0\0\0"), "zeros"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const struct ls_rng before = {{1, 2, 3, 4}};
        struct ls_rng rng = before;
        ls_document *document = NULL;
        assert_ok(ls_document_read(&document, bad[i].bytes, bad[i].size, NULL));
        assert_fails(ls_value_rng(ls_document_root(document), &rng), LS_EPROTO);
        assert_error_has(bad[i].text);
        assert_memory_equal(&rng, &before, sizeof before);
        ls_document_destroy(&document);
    }
}

TEST(bytes_that_are_no_value_are_refused)
{
    assert_refused(LS_EPROTO, "", 0, "missing");
    assert_refused(LS_EPROTO, BYTES("\xc1"), "begins no value");
    assert_refused(LS_EPROTO, BYTES("\x92\xc0"), "cut short");
    assert_refused(LS_EPROTO, BYTES("\xa5hi"), "cut short");
    assert_refused(LS_EPROTO, BYTES("\xcd\x01"), "cut short");
    assert_refused(LS_EPROTO, BYTES("\xdb\0\0"), "cut short");
    assert_refused(LS_EPROTO, BYTES("\xc0\xc0"), "1 bytes left over");
    assert_refused(LS_EPROTO, BYTES("\xd4\x01\x02"), "ext");
    assert_refused(LS_EPROTO, BYTES("\xc7\x01\x01\x01"), "ext");
    assert_refused(LS_EPROTO, BYTES("\xdd\xff\xff\xff\xff\xc0"), "cut short");
    assert_refused(LS_EPROTO, BYTES("\xdf\xff\xff\xff\xff\xc0"), "cut short");
}

TEST(bad_text_and_keys_are_refused)
{
    assert_refused(LS_EPROTO, BYTES("\xa2\xc3\x28"), "not UTF-8");
    assert_refused(LS_EPROTO, BYTES("\xa3\xed\xa0\x80"), "not UTF-8");
    assert_refused(LS_EPROTO, BYTES("\x81\x01\x02"), "an integer for a key");
    assert_refused(LS_EPROTO, BYTES("\x81\xc4\x01k\x02"), "a binary for a key");
    assert_refused(LS_EPROTO, BYTES("\x81\xa2\0k\x02"), "NUL");
    assert_refused(LS_EPROTO, BYTES("\x82\xa1k\x01\xa1k\x02"), "\"k\" comes");
    assert_refused(LS_EPROTO, BYTES("\x82\xa0\x01\xa0\x02"), "twice");
}

TEST_WITH(a_key_that_comes_twice_is_found_among_many, setup_writer,
          teardown_writer)
{
    ls_writer *const writer = *state;
    for (uint32_t last = 0; last < 2; last++) {
        ls_writer_clear(writer);
        ls_write_map(writer, 1001);
        char key[16];
        for (uint32_t i = 0; i < 1000; i++) {
            snprintf(key, sizeof key, "key%u", i * 7919 % 1000);
            ls_write_string(writer, key);
            ls_write_nil(writer);
        }
        ls_write_string(writer, last == 0 ? "other" : "key500");
        ls_write_nil(writer);
        const void *data = NULL;
        size_t size = 0;
        assert_ok(ls_writer_bytes(writer, &data, &size));
        if (last == 0) {
            ls_document *document = read_bytes(data, size);
            ls_document_destroy(&document);
        } else {
            assert_refused(LS_EPROTO, data, size, "\"key500\" comes twice");
        }
    }
}

TEST(limits_hold_to_the_last_unit)
{
    const struct ls_codec_limits limits = {8, 2, 4};
    assert_ok(ls_codec_check(BYTES("\xa7xxxxxxx"), &limits));
    assert_fails(ls_codec_check(BYTES("\xa8xxxxxxxx"), &limits), LS_ELIMIT);
    assert_ok(ls_codec_check(BYTES("\x93\1\2\3"), &limits));
    assert_fails(ls_codec_check(BYTES("\x94\1\2\3\4"), &limits), LS_ELIMIT);
    assert_ok(ls_codec_check(BYTES("\x91\x91\1"), &limits));
    assert_fails(ls_codec_check(BYTES("\x91\x91\x90"), &limits), LS_ELIMIT);
    const struct ls_codec_limits too_deep = {8, 33, 4};
    assert_fails(ls_codec_check(BYTES("\1"), &too_deep), LS_EINVAL);
}

/* Each header promises 2^27 items; the library would reserve them all. */
TEST(nested_promises_reserve_nothing)
{
    static const char promise[] = {'\xdd', 8, 0, 0, 0};
    char bomb[155];
    for (size_t i = 0; i < sizeof bomb; i += sizeof promise)
        memcpy(bomb + i, promise, sizeof promise);
    assert_refused(LS_EPROTO, bomb, sizeof bomb, "cut short");
}

TEST(every_cut_of_a_message_is_refused)
{
    static const char whole[] = "\x82\xa1"
                                "a\x93\xcd\x01\x02\xc3\xcb\x3f\xf0\0\0\0\0\0\0"
                                "\xa1"
                                "b\xc5\0\x02zz";
    const size_t size = sizeof whole - 1;
    ls_document *document = read_bytes(whole, size);
    ls_document_destroy(&document);
    for (size_t cut = 0; cut < size; cut++) {
        char *const part = malloc(cut + 1);
        assert_non_null(part);
        memcpy(part, whole, cut);
        assert_fails(ls_document_read(&document, part, cut, NULL), LS_EPROTO);
        free(part);
    }
}

TEST(what_is_not_there_answers_enoent)
{
    ls_document *document = read_bytes(BYTES("\x81\xa1k\x01"));
    const ls_value *const absent = ls_value_get(
        ls_value_at(ls_value_get(ls_document_root(document), "x"), 3), "y");
    assert_null(absent);
    bool truth = true;
    int64_t integer = 7;
    uint64_t whole = 7;
    double number = 7;
    const char *text = "7";
    const void *data = text;
    size_t size = 7;
    assert_fails(ls_value_bool(absent, &truth), LS_ENOENT);
    assert_fails(ls_value_int(absent, &integer), LS_ENOENT);
    assert_fails(ls_value_uint(absent, &whole), LS_ENOENT);
    assert_fails(ls_value_double(absent, &number), LS_ENOENT);
    assert_fails(ls_value_string(absent, &text), LS_ENOENT);
    assert_fails(ls_value_binary(absent, &data, &size), LS_ENOENT);
    assert_true(truth && integer == 7 && whole == 7 && number == 7);
    assert_true(*text == '7' && data == text && size == 7);
    assert_int_equal(ls_value_type(absent), LS_VALUE_NIL);
    assert_int_equal(ls_value_size(absent), 0);
    assert_null(ls_value_key(absent, 0));
    ls_document_destroy(&document);
}

TEST(another_type_is_named)
{
    ls_document *document =
        read_bytes(BYTES("\x94\xff\xcf\xff\xff\xff\xff\xff\xff\xff\xff"
                         "\xca\x3f\x80\0\0\xa2\0x"));
    const ls_value *const root = ls_document_root(document);
    int64_t integer = 0;
    uint64_t whole = 0;
    double number = 0;
    const char *text = NULL;
    bool truth = true;
    assert_fails(ls_value_bool(ls_value_at(root, 0), &truth), LS_EPROTO);
    assert_error_has("found an integer");
    assert_true(truth);
    assert_fails(ls_value_int(root, &integer), LS_EPROTO);
    assert_error_has("found an array");
    assert_fails(ls_value_uint(ls_value_at(root, 0), &whole), LS_EPROTO);
    assert_fails(ls_value_int(ls_value_at(root, 1), &integer), LS_EPROTO);
    assert_fails(ls_value_int(ls_value_at(root, 2), &integer), LS_EPROTO);
    assert_fails(ls_value_string(ls_value_at(root, 3), &text), LS_EPROTO);
    assert_fails(ls_value_double(ls_value_at(root, 3), &number), LS_EPROTO);
    assert_ok(ls_value_double(ls_value_at(root, 0), &number));
    assert_true(number == -1);
    assert_ok(ls_value_double(ls_value_at(root, 2), &number));
    assert_true(number == 1);
    ls_document_destroy(&document);
}

TEST_WITH(a_value_prints_as_json, setup_writer, teardown_writer)
{
    ls_writer *const writer = *state;
    ls_write_map(writer, 3);
    ls_write_string(writer, "a\"b\n\x01");
    ls_write_array(writer, 6);
    ls_write_double(writer, 1);
    ls_write_double(writer, 0.1);
    ls_write_double(writer, (double)NAN);
    ls_write_double(writer, (double)INFINITY);
    ls_write_double(writer, -(double)INFINITY);
    ls_write_nil(writer);
    ls_write_string(writer, "raw");
    ls_write_binary(writer, "123", 3);
    ls_write_string(writer, "n");
    ls_write_int(writer, -5);
    ls_document *document = read_written(writer);
    static const char json[] = "{\"a\\\"b\\n\\u0001\":[1.0,0.1,\"NaN\","
                               "\"Infinity\",\"-Infinity\",null],"
                               "\"raw\":{\"binary\":3},\"n\":-5}";
    char text[128];
    const ls_value *const root = ls_document_root(document);
    assert_int_equal(ls_value_print(root, text, sizeof text), sizeof json - 1);
    assert_string_equal(text, json);
    assert_int_equal(ls_value_print(root, NULL, 0), sizeof json - 1);
    assert_int_equal(ls_value_print(root, text, 9), sizeof json - 1);
    assert_string_equal(text, "{\"a\\\"b\\n");
    /* No room for the escape; the quote behind it would fit. */
    assert_int_equal(ls_value_print(root, text, 11), sizeof json - 1);
    assert_string_equal(text, "{\"a\\\"b\\n");
    assert_int_equal(ls_value_print(NULL, text, sizeof text), 4);
    ls_document_destroy(&document);
}

TEST_WITH(what_was_written_prints_as_a_line_however_deep, setup_writer,
          teardown_writer)
{
    ls_writer *const writer = *state;
    char *line = NULL;
    for (int i = 0; i < 31; i++)
        ls_write_array(writer, 1);
    assert_fails(ls_writer_print(writer, &line), LS_ESTATE);
    assert_null(line);
    ls_write_array(writer, 0);
    assert_ok(ls_writer_print(writer, &line));
    assert_int_equal(strlen(line), 64);
    free(line);
}

TEST(destroying_nothing_is_fine)
{
    ls_writer *writer = NULL;
    ls_document *document = NULL;
    ls_writer_destroy(NULL);
    ls_writer_destroy(&writer);
    ls_document_destroy(NULL);
    ls_document_destroy(&document);
}

TEST_WITH(a_map_that_was_begun_has_the_bytes_of_one_that_is_counted,
          setup_writer, teardown_writer)
{
    static const uint32_t sizes[] = {0, 1, 15, 16, 65535, 65536};
    ls_writer *counted = NULL;
    assert_ok(ls_writer_create(&counted));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        ls_writer *const both[] = {*state, counted};
        const void *data[2];
        size_t size[2];
        for (int k = 0; k < 2; k++) {
            ls_writer_clear(both[k]);
            ls_write_array(both[k], 2);
            if (k == 0)
                ls_write_map_begin(both[k]);
            else
                ls_write_map(both[k], sizes[i]);
            for (uint32_t n = 0; n < sizes[i]; n++) {
                ls_write_string(both[k], "key");
                ls_write_map(both[k], 0);
            }
            if (k == 0)
                ls_write_map_end(both[k]);
            ls_write_nil(both[k]);
            assert_ok(ls_writer_bytes(both[k], &data[k], &size[k]));
        }
        assert_int_equal(size[0], size[1]);
        assert_memory_equal(data[0], data[1], size[0]);
    }
    ls_writer_destroy(&counted);
}

TEST_WITH(a_map_ends_once_and_not_amid_a_pair, setup_writer, teardown_writer)
{
    ls_writer *writer = *state;
    const void *data;
    size_t size;
    ls_write_map_begin(writer);
    assert_fails(ls_writer_bytes(writer, &data, &size), LS_ESTATE);
    assert_error_has("not ended");
    ls_write_string(writer, "key");
    ls_write_map_end(writer);
    assert_fails(ls_writer_bytes(writer, &data, &size), LS_ESTATE);
    ls_writer_clear(writer);
    ls_write_map_begin(writer);
    ls_write_map_end(writer);
    ls_write_map_end(writer);
    assert_fails(ls_writer_bytes(writer, &data, &size), LS_ESTATE);
    ls_writer_clear(writer);
    ls_write_map(writer, 1);
    ls_write_map_end(writer);
    assert_fails(ls_writer_bytes(writer, &data, &size), LS_ESTATE);
}
