/* policy_value.h: a policy as it lies in the store. */
#include "policy_value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void it_comes_back_as_it_was(void **state)
{
    ls_writer *writer;
    const void *data;
    size_t size;
    struct policy_value out;
    const struct policy_value value = {
        .iter = 4, .version = 5, .weights = {(void *)"abc", 3}};
    (void)state;
    assert_int_equal(ls_writer_create(&writer), LS_OK);
    policy_value_write(&value, writer);
    assert_int_equal(ls_writer_bytes(writer, &data, &size), LS_OK);
    assert_int_equal(policy_value_read(&out, data, size), LS_OK);
    assert_int_equal(out.iter, 4);
    assert_int_equal(out.version, 5);
    assert_int_equal(out.weights.size, 3);
    assert_memory_equal(out.weights.data, "abc", 3);
    ls_bytes_clear(&out.weights);
    for (size_t cut = 0; cut < size; cut++) {
        void *part = malloc(cut + 1);
        memcpy(part, data, cut);
        assert_int_equal(policy_value_read(&out, part, cut), LS_EPROTO);
        assert_non_null(strstr(ls_error_text(), "a policy"));
        free(part);
    }
    ls_writer_destroy(&writer);
}

/* The weights that it is given, or why it takes none. */
struct taker {
    char weights[8];
    int status;
};

static int take(void *self, const struct ls_bytes *weights)
{
    struct taker *taker = self;
    if (taker->status != LS_OK)
        return ls_error(taker->status, "it has another shape");
    memcpy(taker->weights, weights->data, weights->size);
    return LS_OK;
}

static void its_weights_go_to_who_loads_it(void **state)
{
    static const char bytes[] =
        "\x83\xa4iter\x04\xa7version\x05\xa6policy\xc4\x03"
        "abc";
    const size_t size = sizeof bytes - 1;
    struct taker taker = {.status = LS_EMISMATCH};
    struct policy_value out = {.iter = 77};
    (void)state;
    assert_int_equal(policy_value_load(&out, bytes, size, take, &taker),
                     LS_EMISMATCH);
    taker.status = LS_OK;
    assert_int_equal(policy_value_load(&out, bytes, size - 1, take, &taker),
                     LS_EPROTO);
    assert_int_equal(out.iter, 77);
    assert_int_equal(policy_value_load(&out, bytes, size, take, &taker), LS_OK);
    assert_string_equal(taker.weights, "abc");
    assert_int_equal(out.iter, 4);
    assert_int_equal(out.version, 5);
    assert_null(out.weights.data);
}

static void what_is_none_is_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
    } bad[] = {
        {"\xc0", 1},
        {"\x80", 1},
        {"\x83\xa4iter\xff\xa7version\x01\xa6policy\xc4\x01x", 25},
        {"\x83\xa4iter\x01\xa7version\xff\xa6policy\xc4\x01x", 25},
        {"\x83\xa4iter\xcf\x7f\xff\xff\xff\xff\xff\xff\xff\xa7version\x01"
         "\xa6policy\xc4\x01x",
         33},
        {"\x83\xa4iter\x01\xa7version\x01\xa6policy\xa1x", 24},
        {"\x84\xa4iter\x01\xa7version\x01\xa6policy\xc4\x01x\xa1y\xc0", 28}};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct policy_value out = {.iter = 77};
        assert_int_equal(policy_value_read(&out, bad[i].bytes, bad[i].size),
                         LS_EPROTO);
        assert_int_equal(out.iter, 77);
    }
}

static void the_first_version_holds_no_iteration(void **state)
{
    (void)state;
    const struct policy_value first = {.iter = 0, .version = 0};
    const struct policy_value second = {.iter = 0, .version = 1};
    const struct policy_value later = {.iter = 99, .version = 34};
    assert_int_equal(policy_value_iterations(&first), 0);
    assert_int_equal(policy_value_iterations(&second), 1);
    assert_int_equal(policy_value_iterations(&later), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_comes_back_as_it_was),
        cmocka_unit_test(its_weights_go_to_who_loads_it),
        cmocka_unit_test(what_is_none_is_refused),
        cmocka_unit_test(the_first_version_holds_no_iteration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
