/* policy_value.h: a policy as it lies in the store. */
#include "policy_value.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

TEST(it_comes_back_as_it_was)
{
    ls_writer *writer;
    const void *data;
    size_t size;
    struct policy_value out;
    const struct policy_value value = {
        .iter = 4, .version = 5, .attempt = 6, .weights = {(void *)"abc", 3}};
    assert_ok(ls_writer_create(&writer));
    policy_value_write(&value, writer);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_ok(policy_value_read(&out, data, size));
    assert_int_equal(out.iter, 4);
    assert_int_equal(out.version, 5);
    assert_int_equal(out.attempt, 6);
    assert_int_equal(out.weights.size, 3);
    assert_memory_equal(out.weights.data, "abc", 3);
    ls_bytes_clear(&out.weights);
    for (size_t cut = 0; cut < size; cut++) {
        void *part = malloc(cut + 1);
        memcpy(part, data, cut);
        assert_fails(policy_value_read(&out, part, cut), LS_EPROTO);
        assert_error_has("a policy");
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

TEST(its_weights_go_to_who_loads_it)
{
    static const char bytes[] =
        "\x83\xa4iter\x04\xa7version\x05\xa6policy\xc4\x03"
        "abc";
    const size_t size = sizeof bytes - 1;
    struct taker taker = {.status = LS_EMISMATCH};
    struct policy_value out = {.iter = 77};
    assert_fails(policy_value_load(&out, bytes, size, take, &taker),
                 LS_EMISMATCH);
    taker.status = LS_OK;
    assert_fails(policy_value_load(&out, bytes, size - 1, take, &taker),
                 LS_EPROTO);
    assert_int_equal(out.iter, 77);
    assert_ok(policy_value_load(&out, bytes, size, take, &taker));
    assert_string_equal(taker.weights, "abc");
    assert_int_equal(out.iter, 4);
    assert_int_equal(out.version, 5);
    assert_null(out.weights.data);
}

TEST(what_is_none_is_refused)
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
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct policy_value out = {.iter = 77};
        assert_fails(policy_value_read(&out, bad[i].bytes, bad[i].size),
                     LS_EPROTO);
        assert_int_equal(out.iter, 77);
    }
}

TEST(two_versions_of_a_training_have_two_names)
{
    char a[SAFE_NAME_MAX + 1], b[SAFE_NAME_MAX + 1], c[SAFE_NAME_MAX + 1];
    char longest[SAFE_NAME_MAX + 1];
    assert_ok(policy_training_name(a, "policy_1", 4));
    assert_ok(policy_training_name(b, "policy_1", 5));
    assert_ok(policy_training_name(c, "policy_1", 6));
    assert_string_equal(a, "policy_1.training0");
    assert_string_equal(b, "policy_1.training1");
    assert_string_equal(a, c);
    memset(longest, 'a', SAFE_NAME_MAX);
    longest[SAFE_NAME_MAX] = '\0';
    assert_fails(policy_training_name(a, longest, 0), LS_ELIMIT);
    longest[SAFE_NAME_MAX - strlen(".training0")] = '\0';
    assert_ok(policy_training_name(a, longest, 0));
    assert_true(safe_name_is(a));
}

TEST(the_first_version_holds_no_iteration)
{
    const struct policy_value first = {.iter = 0, .version = 0};
    const struct policy_value second = {.iter = 0, .version = 1};
    const struct policy_value later = {.iter = 99, .version = 34};
    assert_int_equal(policy_value_iterations(&first), 0);
    assert_int_equal(policy_value_iterations(&second), 1);
    assert_int_equal(policy_value_iterations(&later), 100);
}
