#include "safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "written.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "numbers go out as they lie in memory, little-endian");

#define NOTES "__metadata__"

const char *safetensors_type(enum ls_blob_type type)
{
    static const char *const types[] = {
        [LS_BLOB_BYTES] = "U8", [LS_BLOB_U8] = "U8",   [LS_BLOB_I32] = "I32",
        [LS_BLOB_I64] = "I64",  [LS_BLOB_F32] = "F32", [LS_BLOB_F64] = "F64"};
    return types[type];
}

int safetensors_of(const struct ls_tensor *tensor,
                   struct safetensors_tensor *out)
{
    static const enum ls_blob_type types[] = {[LS_F32] = LS_BLOB_F32,
                                              [LS_F64] = LS_BLOB_F64,
                                              [LS_I32] = LS_BLOB_I32,
                                              [LS_U8] = LS_BLOB_U8};
    const struct ls_space *space = &tensor->space;
    if (memchr(tensor->name, '\0', sizeof tensor->name) == NULL)
        return ls_error(LS_EHANDLER, "a tensor's name does not end");
    if ((unsigned)space->type > LS_U8 || space->n_dims > LS_SHAPE_MAX)
        return ls_error(LS_EHANDLER,
                        "tensor %s has no shape that lockstep/plugin.h names",
                        tensor->name);
    *out = (struct safetensors_tensor){
        .name = tensor->name,
        .form = {.type = types[space->type], .n_dims = space->n_dims},
        .data = tensor->data};
    for (size_t i = 0; i < space->n_dims; i++)
        out->form.shape[i] = space->shape[i];
    return LS_OK;
}

static int check(const struct safetensors_tensor *tensors, size_t i,
                 uint64_t *size)
{
    const char *name = tensors[i].name;
    if (name[0] == '\0' || strcmp(name, NOTES) == 0)
        return ls_error(LS_EHANDLER, "tensor %zu has no name", i);
    for (size_t other = 0; other < i; other++)
        if (strcmp(tensors[other].name, name) == 0)
            return ls_error(LS_EHANDLER, "there are two tensors %s", name);
    return ls_blob_form_bytes(&tensors[i].form, size) == LS_OK
               ? LS_OK
               : ls_error_at(LS_EHANDLER, "tensor %s", name);
}

static void write_notes(ls_writer *out, const struct safetensors_note *notes,
                        size_t n)
{
    ls_write_string(out, NOTES);
    ls_write_map(out, (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        json_string(out, notes[i].key, notes[i].value);
}

static void write_tensor(ls_writer *out,
                         const struct safetensors_tensor *tensor,
                         uint64_t begin, uint64_t size)
{
    const struct ls_blob_form *form = &tensor->form;
    ls_write_string(out, tensor->name);
    ls_write_map(out, 3);
    json_string(out, "dtype", safetensors_type(form->type));
    ls_write_string(out, "shape");
    ls_write_array(out, (uint32_t)form->n_dims);
    for (size_t i = 0; i < form->n_dims; i++)
        ls_write_uint(out, form->shape[i]);
    ls_write_string(out, "data_offsets");
    ls_write_array(out, 2);
    ls_write_uint(out, begin);
    ls_write_uint(out, begin + size);
}

/* parts: of the numbers, n of them.
 * out:   own: free() it. */
static int make_header(const struct safetensors_tensor *tensors, size_t n,
                       const struct safetensors_note *notes, size_t n_notes,
                       struct ls_file_part *parts, char **out)
{
    ls_writer *writer = NULL;
    uint64_t begin = 0;
    int status = ls_writer_create(&writer);
    if (status != LS_OK)
        return status;
    ls_write_map(writer, (uint32_t)n + 1);
    write_notes(writer, notes, n_notes);
    for (size_t i = 0; i < n && status == LS_OK; i++) {
        uint64_t size = 0;
        status = check(tensors, i, &size);
        if (status == LS_OK)
            write_tensor(writer, &tensors[i], begin, size);
        parts[i] = (struct ls_file_part){tensors[i].data, (size_t)size};
        begin += size;
    }
    if (status == LS_OK)
        status = ls_writer_print(writer, out);
    if (status == LS_EINVAL) /* a text that is none */
        status = ls_error_at(LS_EHANDLER, "the names of the tensors");
    ls_writer_destroy(&writer);
    return status;
}

int safetensors_write(const char *path,
                      const struct safetensors_tensor *tensors, size_t n,
                      const struct safetensors_note *notes, size_t n_notes)
{
    static const char blanks[] = "        ";
    char *header = NULL;
    struct ls_file_part *parts = calloc(n + 3, sizeof *parts);
    if (parts == NULL)
        return ls_error(LS_ENOMEM, "%zu tensors", n);
    int status = make_header(tensors, n, notes, n_notes, parts + 3, &header);
    if (status == LS_OK) {
        const size_t length = strlen(header), padding = -length % 8;
        const uint64_t size = length + padding;
        parts[0] = (struct ls_file_part){&size, sizeof size};
        parts[1] = (struct ls_file_part){header, length};
        parts[2] = (struct ls_file_part){blanks, padding};
        status = written_replace(path, parts, n + 3, true);
    }
    free(header);
    free(parts);
    return status;
}
