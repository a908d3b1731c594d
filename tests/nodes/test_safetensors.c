/* Tensors as a file: what is written is the format, and what is none is
 * refused. */
#include "safetensors.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lockstep/file.h"

struct place {
    char folder[64];
    char path[96];
};

static int set_up(void **state)
{
    static struct place place;
    strcpy(place.folder, "/tmp/lockstep-safetensors-XXXXXX");
    *state = &place;
    if (mkdtemp(place.folder) == NULL)
        return 1;
    (void)snprintf(place.path, sizeof place.path, "%s/a", place.folder);
    return 0;
}

static int tear_down(void **state)
{
    struct place *place = *state;
    (void)unlink(place->path);
    return rmdir(place->folder); /* fails when anything else is left */
}

static const float floats[] = {1.5f, -2.0f};
static const double one = 0.5;
static const uint8_t bytes[] = {7, 8, 9};
static const struct safetensors_tensor tensors[] = {
    {"a", {LS_BLOB_F32, 2, {1, 2}}, floats},
    {"b", {LS_BLOB_F64, 0, {0}}, &one},
    {"c", {LS_BLOB_BYTES, 1, {3}}, bytes},
};

EACH_TEST(set_up, tear_down)

TEST(a_file_has_its_header_and_then_the_numbers)
{
    const struct place *place = *state;
    static const char header[] =
        "{\"__metadata__\":{\"k\":\"v\"},"
        "\"a\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
        "\"b\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[8,16]},"
        "\"c\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[16,19]}}";
    void *data;
    size_t size;
    uint64_t length;
    assert_ok(safetensors_write(place->path, tensors, 3,
                                &(struct safetensors_note){"k", "v"}, 1));
    assert_ok(ls_file_read(place->path, 4096, &data, &size));
    memcpy(&length, data, 8);
    const char *at = (const char *)data + 8;
    assert_true(length >= sizeof header - 1 && length < sizeof header + 7);
    assert_int_equal(length % 8, 0);
    assert_int_equal(size, 8 + length + 19);
    assert_memory_equal(at, header, sizeof header - 1);
    for (size_t i = sizeof header - 1; i < length; i++)
        assert_int_equal(at[i], ' ');
    assert_memory_equal(at + length, floats, 8);
    assert_memory_equal(at + length + 8, &one, 8);
    assert_memory_equal(at + length + 16, bytes, 3);
    free(data);
}

TEST(a_file_takes_the_place_of_another)
{
    const struct place *place = *state;
    void *data;
    size_t first, second;
    assert_ok(safetensors_write(place->path, tensors, 3, NULL, 0));
    assert_ok(ls_file_read(place->path, 4096, &data, &first));
    free(data);
    assert_ok(safetensors_write(place->path, tensors, 0, NULL, 0));
    assert_ok(ls_file_read(place->path, 4096, &data, &second));
    free(data);
    assert_true(second < first && second % 8 == 0);
}

TEST(types_have_names)
{
    assert_string_equal(safetensors_type(LS_BLOB_F32), "F32");
    assert_string_equal(safetensors_type(LS_BLOB_F64), "F64");
    assert_string_equal(safetensors_type(LS_BLOB_I32), "I32");
    assert_string_equal(safetensors_type(LS_BLOB_I64), "I64");
    assert_string_equal(safetensors_type(LS_BLOB_U8), "U8");
    assert_string_equal(safetensors_type(LS_BLOB_BYTES), "U8");
}

TEST(what_a_policy_acts_by_goes_out_as_it_is)
{
    struct ls_tensor tensor = {
        .name = "a", .space = {LS_I32, 2, {2, 3}}, .data = bytes};
    struct safetensors_tensor out;
    (void)state;
    assert_ok(safetensors_of(&tensor, &out));
    assert_string_equal(out.name, "a");
    assert_int_equal(out.form.type, LS_BLOB_I32);
    assert_int_equal(out.form.n_dims, 2);
    assert_int_equal(out.form.shape[1], 3);
    assert_ptr_equal(out.data, bytes);
    tensor.space.n_dims = LS_SHAPE_MAX + 1;
    assert_fails(safetensors_of(&tensor, &out), LS_EHANDLER);
    assert_error_has("tensor a has no shape");
    memset(tensor.name, 'x', sizeof tensor.name);
    assert_fails(safetensors_of(&tensor, &out), LS_EHANDLER);
    assert_error_has("does not end");
}

static void refused(const struct place *place,
                    const struct safetensors_tensor *tensor, const char *text)
{
    const struct safetensors_tensor two[] = {tensors[0], *tensor};
    assert_fails(safetensors_write(place->path, two, 2, NULL, 0), LS_EHANDLER);
    assert_error_has(text);
    assert_false(ls_file_exists(place->path));
}

TEST(tensors_that_are_none_are_refused)
{
    struct safetensors_tensor tensor = tensors[1];
    const struct place *place = *state;
    tensor.name = "a";
    refused(place, &tensor, "there are two tensors a");
    tensor.name = "";
    refused(place, &tensor, "tensor 1 has no name");
    tensor.name = "__metadata__";
    refused(place, &tensor, "tensor 1 has no name");
    tensor.name = "\xff";
    refused(place, &tensor, "names of the tensors");
    tensor = tensors[1];
    tensor.form.n_dims = LS_BLOB_DIMS_MAX + 1;
    refused(place, &tensor, "tensor b");
}

TEST(where_it_cannot_be_written_is_told)
{
    char path[LS_PATH_MAX];
    assert_fails(
        safetensors_write("/tmp/lockstep-none/none/a", tensors, 1, NULL, 0),
        LS_EIO);
    assert_error_has("/tmp/lockstep-none/none/a");
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    assert_fails(safetensors_write(path, tensors, 1, NULL, 0), LS_ELIMIT);
}

/* Such as /dev/stdout, and what it leads to. */
TEST(what_is_no_file_of_its_own_is_not_replaced)
{
    const struct place *place = *state;
    char target[LS_PATH_MAX];
    assert_ok(ls_file_symlink("elsewhere", place->path));
    assert_fails(safetensors_write(place->path, tensors, 3, NULL, 0),
                 LS_EEXIST);
    assert_error_has("is a link");
    assert_ok(ls_file_read_link(place->path, target));
    assert_int_equal(unlink(place->path), 0);
    assert_int_equal(mkfifo(place->path, 0600), 0);
    assert_fails(safetensors_write(place->path, tensors, 3, NULL, 0), LS_EIO);
    assert_error_has("not a regular file");
}
