#include "safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/file.h"

#include "json.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "numbers go out as they lie in memory, little-endian");

#define NOTES "__metadata__"

const char *safetensors_type(enum ls_element type)
{
    static const char *const types[] = {"F32", "F64", "I32", "U8"};
    return types[type];
}

static int check(const struct ls_tensor *tensors, size_t i)
{
    const struct ls_tensor *tensor = &tensors[i];
    const struct ls_space *space = &tensor->space;
    if (memchr(tensor->name, '\0', sizeof tensor->name) == NULL ||
        tensor->name[0] == '\0' || strcmp(tensor->name, NOTES) == 0)
        return ls_error(LS_EHANDLER, "tensor %zu has no name", i);
    for (size_t other = 0; other < i; other++)
        if (strcmp(tensors[other].name, tensor->name) == 0)
            return ls_error(LS_EHANDLER, "there are two tensors %s",
                            tensor->name);
    if ((unsigned)space->type > LS_U8 || space->n_dims > LS_SHAPE_MAX)
        return ls_error(LS_EHANDLER,
                        "tensor %s has no shape that lockstep/plugin.h names",
                        tensor->name);
    return LS_OK;
}

static void write_notes(ls_writer *out, const struct safetensors_note *notes,
                        size_t n)
{
    ls_write_string(out, NOTES);
    ls_write_map(out, (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        json_string(out, notes[i].key, notes[i].value);
}

static void write_tensor(ls_writer *out, const struct ls_tensor *tensor,
                         size_t begin)
{
    const struct ls_space *space = &tensor->space;
    ls_write_string(out, tensor->name);
    ls_write_map(out, 3);
    json_string(out, "dtype", safetensors_type(space->type));
    ls_write_string(out, "shape");
    ls_write_array(out, (uint32_t)space->n_dims);
    for (size_t i = 0; i < space->n_dims; i++)
        ls_write_uint(out, space->shape[i]);
    ls_write_string(out, "data_offsets");
    ls_write_array(out, 2);
    ls_write_uint(out, begin);
    ls_write_uint(out, begin + ls_space_bytes(space));
}

/* out: own: free() it. */
static int make_header(const struct ls_tensor *tensors, size_t n,
                       const struct safetensors_note *notes, size_t n_notes,
                       char **out)
{
    ls_writer *writer = NULL;
    size_t begin = 0;
    int status = ls_writer_create(&writer);
    if (status != LS_OK)
        return status;
    ls_write_map(writer, (uint32_t)n + 1);
    write_notes(writer, notes, n_notes);
    for (size_t i = 0; i < n && status == LS_OK; i++) {
        status = check(tensors, i);
        if (status == LS_OK)
            write_tensor(writer, &tensors[i], begin);
        begin += status == LS_OK ? ls_space_bytes(&tensors[i].space) : 0;
    }
    if (status == LS_OK)
        status = json_line(writer, out);
    if (status == LS_EINVAL) /* a text that is none */
        status = ls_error_at(LS_EHANDLER, "the names of the tensors");
    ls_writer_destroy(&writer);
    return status;
}

static int replace(const char *path, const struct ls_file_part *parts, size_t n)
{
    char unique[LS_FILE_UNIQUE_MAX], temporary[LS_PATH_MAX];
    ls_file_unique(unique);
    const int length =
        snprintf(temporary, sizeof temporary, "%s.part@%s", path, unique);
    return length < 0 || (size_t)length >= sizeof temporary
               ? ls_error(LS_ELIMIT, "%.80s… has too long a name", path)
               : ls_file_replace(path, temporary, parts, n, true);
}

int safetensors_write(const char *path, const struct ls_tensor *tensors,
                      size_t n, const struct safetensors_note *notes,
                      size_t n_notes)
{
    static const char blanks[] = "        ";
    char *header = NULL;
    struct ls_file_part *parts = calloc(n + 3, sizeof *parts);
    if (parts == NULL)
        return ls_error(LS_ENOMEM, "%zu tensors", n);
    int status = make_header(tensors, n, notes, n_notes, &header);
    if (status == LS_OK) {
        const size_t length = strlen(header), padding = -length % 8;
        const uint64_t size = length + padding;
        parts[0] = (struct ls_file_part){&size, sizeof size};
        parts[1] = (struct ls_file_part){header, length};
        parts[2] = (struct ls_file_part){blanks, padding};
        for (size_t i = 0; i < n; i++)
            parts[i + 3] = (struct ls_file_part){
                tensors[i].data, ls_space_bytes(&tensors[i].space)};
        status = replace(path, parts, n + 3);
    }
    free(header);
    free(parts);
    return status;
}
