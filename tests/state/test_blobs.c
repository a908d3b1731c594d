/* The registry of a node's blobs. */
#include "lockstep/blobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

static ls_blobs *make(void)
{
    ls_blobs *blobs;
    assert_ok(ls_blobs_create(&blobs));
    return blobs;
}

static int nothing(void *self, ls_blob_sink *sink)
{
    (void)self;
    (void)sink;
    return LS_OK;
}

static int take_nothing(void *self, ls_blob_source *source)
{
    (void)self;
    (void)source;
    return LS_OK;
}

static int no_size(void *self, uint64_t *out)
{
    (void)self;
    *out = 0;
    return LS_OK;
}

TEST(a_form_has_a_size_and_a_text)
{
    static const struct {
        struct ls_blob_form form;
        uint64_t size;
        const char *text;
    } forms[] = {
        {{.type = LS_BLOB_I64}, 8, "i64"},
        {{LS_BLOB_F32, 2, {3, 4}}, 48, "f32[3,4]"},
        {{LS_BLOB_BYTES, 1, {17}}, 17, "bytes[17]"},
        {{LS_BLOB_U8, 1, {0}}, 0, "u8[0]"},
        {{LS_BLOB_F64, 8, {1, 2, 1, 2, 1, 2, 1, 2}},
         128,
         "f64[1,2,1,2,1,2,1,2]"},
        {{LS_BLOB_I32, 1, {INT64_MAX / 4}},
         INT64_MAX / 4 * UINT64_C(4),
         "i32[2305843009213693951]"},
    };
    char text[LS_BLOB_FORM_TEXT_MAX];
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        uint64_t size;
        enum ls_blob_type type;
        assert_ok(ls_blob_form_bytes(&forms[i].form, &size));
        assert_int_equal(size, forms[i].size);
        assert_string_equal(ls_blob_form_print(&forms[i].form, text),
                            forms[i].text);
        assert_true(
            ls_blob_type_read(ls_blob_type_name(forms[i].form.type), &type));
        assert_int_equal(type, forms[i].form.type);
    }
    const struct ls_blob_form longest = {LS_BLOB_F64,
                                         8,
                                         {UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                          UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                          UINT64_MAX, UINT64_MAX}};
    assert_int_equal(strlen(ls_blob_form_print(&longest, text)),
                     3 + 8 * 20 + 9);
}

TEST(what_is_no_form_is_refused)
{
    static const struct ls_blob_form none[] = {
        {.type = (enum ls_blob_type)6},
        {.type = LS_BLOB_F32, .n_dims = 9},
        {.type = LS_BLOB_BYTES},
        {LS_BLOB_F64, 2, {UINT64_C(1) << 32, UINT64_C(1) << 31}},
        {LS_BLOB_U8, 1, {UINT64_C(1) << 63}},
    };
    enum ls_blob_type type;
    uint64_t size;
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_fails(ls_blob_form_bytes(&none[i], &size), LS_EINVAL);
    assert_false(ls_blob_type_read("f16", &type));
    assert_null(ls_blob_type_name((enum ls_blob_type)6));
}

TEST(what_is_no_blob_is_refused)
{
    static const struct ls_blob_ops saves = {.save = nothing},
                                    loads = {.load = take_nothing},
                                    sized = {no_size, nothing, take_nothing};
    char byte;
    const struct {
        struct ls_blob blob;
        const char *says;
    } none[] = {
        {{.name = ".a", .memory = &byte}, "\".a\" is not a name"},
        {{.name = "blob_names", .memory = &byte}, "blob_names"},
        {{.name = "a"}, "neither"},
        {{.name = "a", .memory = &byte, .ops = &sized}, "both"},
        {{.name = "a", .ops = &saves}, "do not load"},
        {{.name = "a", .ops = &loads}, "do not save"},
        {{.name = "a", .form = {.type = LS_BLOB_U8}, .ops = &sized}, "array"},
        {{.name = "a", .memory = &byte}, "the blob a: type 0"},
    };
    ls_blobs *blobs = make();
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        assert_fails(ls_blobs_add(blobs, &none[i].blob), LS_EINVAL);
        assert_error_has(none[i].says);
    }
    assert_int_equal(ls_blobs_n(blobs), 0);
    ls_blobs_destroy(&blobs);
    assert_null(blobs);
    ls_blobs_destroy(&blobs);
    ls_blobs_destroy(NULL);
}

TEST(blobs_are_kept_in_order)
{
    ls_blobs *blobs = make();
    char name[8] = "b0";
    int64_t number;
    struct ls_blob blob = {
        .name = name, .form = {.type = LS_BLOB_I64}, .memory = &number};
    for (char i = '0'; i <= '9'; i++) {
        name[1] = i;
        blob.is_private = i % 2 == 1;
        assert_ok(ls_blobs_add(blobs, &blob));
    }
    assert_fails(ls_blobs_add(blobs, &blob), LS_EEXIST);
    assert_error_has("b9");
    assert_string_equal(ls_blobs_at(blobs, 3)->name, "b3");
    assert_ptr_equal(ls_blobs_find(blobs, "b3"), ls_blobs_at(blobs, 3));
    assert_null(ls_blobs_at(blobs, 10));
    assert_ok(ls_blobs_remove(blobs, "b2"));
    assert_fails(ls_blobs_remove(blobs, "b2"), LS_ENOENT);
    ls_blobs_remove_private(blobs);
    assert_int_equal(ls_blobs_n(blobs), 4);
    assert_string_equal(ls_blobs_at(blobs, 0)->name, "b0");
    assert_string_equal(ls_blobs_at(blobs, 1)->name, "b4");
    assert_string_equal(ls_blobs_at(blobs, 3)->name, "b8");
    ls_blobs_destroy(&blobs);
}

TEST(global_blobs_are_limited)
{
    ls_blobs *blobs = make();
    int64_t number;
    char name[8];
    struct ls_blob blob = {
        .name = name, .form = {.type = LS_BLOB_I64}, .memory = &number};
    for (unsigned i = 0; i <= LS_BLOBS_MAX; i++) {
        (void)snprintf(name, sizeof name, "b%u", i);
        if (i < LS_BLOBS_MAX)
            assert_ok(ls_blobs_add(blobs, &blob));
    }
    assert_fails(ls_blobs_add(blobs, &blob), LS_ELIMIT);
    blob.is_private = true;
    assert_ok(ls_blobs_add(blobs, &blob));
    ls_blobs_destroy(&blobs);
}

static int three_bytes(void *self, uint64_t *out)
{
    (void)self;
    *out = 3;
    return LS_OK;
}

static int save_text(void *self, ls_blob_sink *sink)
{
    return ls_blob_sink_add(sink, self, 3);
}

static int load_text(void *self, ls_blob_source *source)
{
    const uint64_t size = ls_blob_source_size(source);
    if (size > 3)
        return ls_error(LS_EPROTO, "%d bytes", (int)size);
    return ls_blob_source_read(source, self, (size_t)size);
}

TEST(a_blob_is_packed_and_unpacked_in_memory)
{
    static const struct ls_blob_ops ops = {three_bytes, save_text, load_text};
    float numbers[2] = {1.5f, -2.0f};
    char text[] = "abc";
    const struct ls_blob array = {
        .name = "a", .form = {LS_BLOB_F32, 1, {2}}, .memory = numbers};
    const struct ls_blob bytes = {.name = "b",
                                  .form = {LS_BLOB_BYTES, 1, {0}},
                                  .ops = &ops,
                                  .self = text};
    void *data;
    size_t size;
    assert_ok(ls_blob_pack(&array, &data, &size));
    assert_int_equal(size, 8);
    numbers[0] = numbers[1] = 0.0f;
    assert_ok(ls_blob_unpack(&array, data, size));
    assert_true(numbers[0] == 1.5f && numbers[1] == -2.0f);
    assert_fails(ls_blob_unpack(&array, data, 4), LS_EMISMATCH);
    assert_error_has("the blob a has 8 bytes, not 4");
    free(data);
    assert_ok(ls_blob_pack(&bytes, &data, &size));
    assert_int_equal(size, 3);
    memset(text, 'x', 3);
    assert_ok(ls_blob_unpack(&bytes, data, size));
    assert_string_equal(text, "abc");
    free(data);
    assert_ok(ls_blob_unpack(&bytes, NULL, 0));
    assert_fails(ls_blob_unpack(&bytes, "long text", 9), LS_EPROTO);
    assert_error_has("the blob b: 9 bytes");
}

static int no_bytes(void *self, uint64_t *out)
{
    (void)self;
    *out = 0;
    return LS_OK;
}

static int save_nothing(void *self, ls_blob_sink *sink)
{
    return ls_blob_sink_add(sink, self, 0);
}

static int load_nothing(void *self, ls_blob_source *source)
{
    return ls_blob_source_read(source, self, 0);
}

/* Which may be nowhere. */
TEST(of_nothing_no_byte_is_copied)
{
    static const struct ls_blob_ops ops = {no_bytes, save_nothing,
                                           load_nothing};
    const struct ls_blob none = {
        .name = "none", .form = {.type = LS_BLOB_BYTES}, .ops = &ops};
    ls_blobs *blobs = make();
    void *data;
    size_t size;
    assert_ok(ls_blobs_add(blobs, &none));
    assert_ok(ls_blob_pack(&none, &data, &size));
    assert_int_equal(size, 0);
    assert_ok(ls_blob_unpack(&none, data, size));
    free(data);
    assert_ok(ls_blobs_pack(blobs, &data, &size));
    assert_ok(ls_blobs_unpack(blobs, data, size));
    free(data);
    ls_blobs_destroy(&blobs);
}

static int save_more(void *self, ls_blob_sink *sink)
{
    const int status = ls_blob_sink_add(sink, self, 2);
    return status == LS_OK ? ls_blob_sink_add(sink, self, 2) : status;
}

TEST(a_blob_has_no_more_bytes_than_it_said)
{
    static const struct ls_blob_ops ops = {three_bytes, save_more, load_text};
    char text[] = "abcd";
    const struct ls_blob bytes = {.name = "b",
                                  .form = {LS_BLOB_BYTES, 1, {0}},
                                  .ops = &ops,
                                  .self = text};
    void *data = &data;
    size_t size;
    assert_fails(ls_blob_pack(&bytes, &data, &size), LS_ELIMIT);
    assert_error_has("the blob b");
    assert_ptr_equal(data, &data);
}

TEST(a_blob_that_fails_is_not_packed)
{
    static const struct ls_blob_ops ops = {three_bytes, nothing, take_nothing};
    const struct ls_blob bytes = {
        .name = "b", .form = {LS_BLOB_BYTES, 1, {0}}, .ops = &ops};
    void *data = &data;
    size_t size;
    assert_fails(ls_blob_pack(&bytes, &data, &size), LS_EHANDLER);
    assert_error_has("3 bytes less");
    assert_ptr_equal(data, &data); /* written on success only */
    assert_fails(ls_blob_unpack(&bytes, "abc", 3), LS_EHANDLER);
}

static int fails_to_size(void *self, uint64_t *out)
{
    (void)self;
    (void)out;
    return ls_error(LS_ENOENT, "no weights yet");
}

static int too_large(void *self, uint64_t *out)
{
    (void)self;
    *out = UINT64_C(1) << 63;
    return LS_OK;
}

TEST(a_blob_that_cannot_be_measured_is_not_packed)
{
    static const struct ls_blob_ops fails = {fails_to_size, nothing,
                                             take_nothing},
                                    large = {too_large, nothing, take_nothing};
    struct ls_blob blob = {.name = "b", .ops = &fails};
    void *data = &data;
    size_t size = 7;
    assert_fails(ls_blob_pack(&blob, &data, &size), LS_ENOENT);
    assert_error_has("the blob b: no weights yet");
    blob.ops = &large;
    assert_fails(ls_blob_pack(&blob, &data, &size), LS_EINVAL);
    assert_error_has("the blob b");
    assert_ptr_equal(data, &data);
    assert_int_equal(size, 7);
}
