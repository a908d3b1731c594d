#include "lockstep/blobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blob_flow.h"
#include "checkpoint_format.h"
#include "vault_manifest.h"

struct ls_blobs {
    struct ls_blob *all; /* own; with their names */
    size_t n, room;
};

/* Forms ------------------------------------------------------------------ */

static const struct {
    const char *name;
    uint64_t size;
} types[] = {
    [LS_BLOB_BYTES] = {"bytes", 1}, [LS_BLOB_U8] = {"u8", 1},
    [LS_BLOB_I32] = {"i32", 4},     [LS_BLOB_I64] = {"i64", 8},
    [LS_BLOB_F32] = {"f32", 4},     [LS_BLOB_F64] = {"f64", 8},
};
#define N_TYPES (sizeof types / sizeof types[0])

const char *ls_blob_type_name(enum ls_blob_type type)
{
    return (size_t)type < N_TYPES ? types[type].name : NULL;
}

bool ls_blob_type_read(const char *name, enum ls_blob_type *out)
{
    for (size_t i = 0; i < N_TYPES; i++) {
        if (strcmp(types[i].name, name) == 0) {
            *out = (enum ls_blob_type)i;
            return true;
        }
    }
    return false;
}

int ls_blob_form_bytes(const struct ls_blob_form *form, uint64_t *out)
{
    if ((size_t)form->type >= N_TYPES || form->n_dims > LS_BLOB_DIMS_MAX ||
        (form->type == LS_BLOB_BYTES && form->n_dims != 1))
        return ls_error(LS_EINVAL,
                        "type %d with %zu dimensions is not a form of a blob",
                        (int)form->type, form->n_dims);
    uint64_t size = types[form->type].size;
    for (size_t i = 0; i < form->n_dims; i++) {
        const uint64_t n = form->shape[i];
        if (n > 0 && size > INT64_MAX / n)
            return ls_error(LS_EINVAL, "a blob has too many bytes");
        size *= n;
    }
    *out = size;
    return LS_OK;
}

const char *ls_blob_form_print(const struct ls_blob_form *form,
                               char text[LS_BLOB_FORM_TEXT_MAX])
{
    const char *type = ls_blob_type_name(form->type);
    size_t at = (size_t)snprintf(text, LS_BLOB_FORM_TEXT_MAX, "%s",
                                 type != NULL ? type : "?");
    for (size_t i = 0; i < form->n_dims && i < LS_BLOB_DIMS_MAX; i++)
        at += (size_t)snprintf(text + at, LS_BLOB_FORM_TEXT_MAX - at, "%c%llu",
                               i == 0 ? '[' : ',',
                               (unsigned long long)form->shape[i]);
    if (form->n_dims > 0)
        (void)snprintf(text + at, LS_BLOB_FORM_TEXT_MAX - at, "]");
    return text;
}

/* The registry ----------------------------------------------------------- */

int ls_blobs_create(ls_blobs **out)
{
    *out = NULL;
    ls_blobs *blobs = calloc(1, sizeof *blobs);
    if (blobs == NULL)
        return ls_error(LS_ENOMEM, "no memory for blobs");
    *out = blobs;
    return LS_OK;
}

void ls_blobs_destroy(ls_blobs **gone)
{
    ls_blobs *blobs = gone == NULL ? NULL : *gone;
    if (blobs == NULL)
        return;
    *gone = NULL;
    for (size_t i = 0; i < blobs->n; i++)
        free((char *)blobs->all[i].name);
    free(blobs->all);
    free(blobs);
}

static bool is_any_size(const struct ls_blob *blob)
{
    return blob->memory == NULL && blob->ops->size != NULL;
}

static int check_blob(const struct ls_blob *blob)
{
    uint64_t size;
    const int status = vault_check_name("a blob", blob->name);
    if (status != LS_OK)
        return status;
    if (strcmp(blob->name, BLOB_NAMES) == 0)
        return ls_error(LS_EINVAL, "a blob cannot be called " BLOB_NAMES);
    if ((blob->memory == NULL) == (blob->ops == NULL))
        return ls_error(LS_EINVAL,
                        "the blob %s has %s: give it memory, or ops to save "
                        "and load it",
                        blob->name, blob->memory == NULL ? "neither" : "both");
    if (blob->ops != NULL &&
        (blob->ops->save == NULL || blob->ops->load == NULL))
        return ls_error(LS_EINVAL, "the blob %s has ops that do not %s it",
                        blob->name, blob->ops->save == NULL ? "save" : "load");
    if (is_any_size(blob))
        return blob->form.type == LS_BLOB_BYTES
                   ? LS_OK
                   : ls_error(LS_EINVAL,
                              "the blob %s is an array, and its ops have "
                              "size(), which is for bytes",
                              blob->name);
    return ls_blob_form_bytes(&blob->form, &size) == LS_OK
               ? LS_OK
               : ls_error_at(LS_EINVAL, "the blob %s", blob->name);
}

static int grow(ls_blobs *blobs)
{
    if (blobs->n < blobs->room)
        return LS_OK;
    const size_t room = 2 * blobs->room + 8;
    struct ls_blob *grown = realloc(blobs->all, room * sizeof *grown);
    if (grown == NULL)
        return ls_error(LS_ENOMEM, "no memory for %zu blobs", room);
    blobs->all = grown;
    blobs->room = room;
    return LS_OK;
}

static size_t n_global(const ls_blobs *blobs)
{
    size_t n = 0;
    for (size_t i = 0; i < blobs->n; i++)
        n += !blobs->all[i].is_private;
    return n;
}

int ls_blobs_add(ls_blobs *blobs, const struct ls_blob *blob)
{
    int status = check_blob(blob);
    if (status == LS_OK && ls_blobs_find(blobs, blob->name) != NULL)
        status = ls_error(LS_EEXIST, "there is a blob %s already", blob->name);
    if (status == LS_OK && !blob->is_private && n_global(blobs) >= LS_BLOBS_MAX)
        status = ls_error(LS_ELIMIT, "the blob %s is one more than %d",
                          blob->name, LS_BLOBS_MAX);
    if (status == LS_OK)
        status = grow(blobs);
    if (status != LS_OK)
        return status;
    struct ls_blob *added = &blobs->all[blobs->n];
    *added = *blob;
    added->name = strdup(blob->name);
    if (added->name == NULL)
        return ls_error(LS_ENOMEM, "no memory for the blob %s", blob->name);
    blobs->n++;
    return LS_OK;
}

static void remove_at(ls_blobs *blobs, size_t at)
{
    free((char *)blobs->all[at].name);
    blobs->n--;
    memmove(&blobs->all[at], &blobs->all[at + 1],
            (blobs->n - at) * sizeof blobs->all[0]);
}

int ls_blobs_remove(ls_blobs *blobs, const char *name)
{
    const struct ls_blob *found = ls_blobs_find(blobs, name);
    if (found == NULL)
        return ls_error(LS_ENOENT, "there is no blob %s", name);
    remove_at(blobs, (size_t)(found - blobs->all));
    return LS_OK;
}

void ls_blobs_remove_private(ls_blobs *blobs)
{
    for (size_t i = blobs->n; i-- > 0;) {
        if (blobs->all[i].is_private)
            remove_at(blobs, i);
    }
}

size_t ls_blobs_n(const ls_blobs *blobs)
{
    return blobs->n;
}

const struct ls_blob *ls_blobs_at(const ls_blobs *blobs, size_t at)
{
    return at < blobs->n ? &blobs->all[at] : NULL;
}

const struct ls_blob *ls_blobs_find(const ls_blobs *blobs, const char *name)
{
    for (size_t i = 0; i < blobs->n; i++) {
        if (strcmp(blobs->all[i].name, name) == 0)
            return &blobs->all[i];
    }
    return NULL;
}

/* Saving and loading ----------------------------------------------------- */

int ls_blob_sink_add(ls_blob_sink *sink, const void *data, size_t size)
{
    if (size > sink->left)
        return ls_error(LS_ELIMIT,
                        "the blob %s: save() writes %llu bytes more "
                        "than the blob has",
                        sink->name, (unsigned long long)(size - sink->left));
    sink->left -= size;
    return size > 0 ? sink->add(sink->self, data, size) : LS_OK;
}

uint64_t ls_blob_source_size(const ls_blob_source *source)
{
    return source->size;
}

int ls_blob_source_read(ls_blob_source *source, void *data, size_t size)
{
    if (size > source->left)
        return ls_error(LS_EPROTO,
                        "the blob %s: %llu bytes are left of it, and %zu are "
                        "to be read",
                        source->name, (unsigned long long)source->left, size);
    source->left -= size;
    return size > 0 ? source->read(source->self, data, size) : LS_OK;
}

int blob_measure(const struct ls_blob *blob, struct ls_blob_form *out)
{
    *out = blob->form;
    if (!is_any_size(blob))
        return LS_OK;
    uint64_t size = 0;
    const int status = blob->ops->size(blob->self, &size);
    if (status != LS_OK)
        return ls_error_at(status, "the blob %s", blob->name);
    *out = (struct ls_blob_form){LS_BLOB_BYTES, 1, {size}};
    return size <= INT64_MAX
               ? LS_OK
               : ls_error(LS_EINVAL, "the blob %s has too many bytes",
                          blob->name);
}

int blob_save(const struct ls_blob *blob, ls_blob_sink *sink)
{
    int status = LS_OK;
    sink->name = blob->name;
    if (blob->memory == NULL) {
        status = blob->ops->save(blob->self, sink);
        if (status != LS_OK)
            return ls_error_at(status, "the blob %s", blob->name);
        return sink->left == 0
                   ? LS_OK
                   : ls_error(LS_EHANDLER,
                              "the blob %s: save() wrote %llu "
                              "bytes less than the blob has",
                              blob->name, (unsigned long long)sink->left);
    }
    const unsigned char *at = blob->memory;
    while (sink->left > 0 && status == LS_OK) {
        const size_t n =
            sink->left < BLOB_PIECE ? (size_t)sink->left : BLOB_PIECE;
        status = ls_blob_sink_add(sink, at, n);
        at += n;
    }
    return status;
}

int blob_load(const struct ls_blob *blob, ls_blob_source *source)
{
    int status = LS_OK;
    source->name = blob->name;
    source->left = source->size;
    if (blob->memory == NULL) {
        status = blob->ops->load(blob->self, source);
        if (status != LS_OK)
            return ls_error_at(status, "the blob %s", blob->name);
        return source->left == 0
                   ? LS_OK
                   : ls_error(LS_EHANDLER,
                              "the blob %s: load() left %llu "
                              "bytes of it",
                              blob->name, (unsigned long long)source->left);
    }
    unsigned char *at = blob->memory;
    while (source->left > 0 && status == LS_OK) {
        const size_t n =
            source->left < BLOB_PIECE ? (size_t)source->left : BLOB_PIECE;
        status = ls_blob_source_read(source, at, n);
        at += n;
    }
    return status;
}

int blob_check_form(const struct ls_blob *blob,
                    const struct ls_blob_form *found)
{
    char is[LS_BLOB_FORM_TEXT_MAX], must[LS_BLOB_FORM_TEXT_MAX];
    if (is_any_size(blob) && found->type == LS_BLOB_BYTES)
        return LS_OK;
    const struct ls_blob_form *form = &blob->form;
    if (form->type == found->type && form->n_dims == found->n_dims &&
        memcmp(form->shape, found->shape,
               form->n_dims * sizeof form->shape[0]) == 0)
        return LS_OK;
    return ls_error(LS_EMISMATCH, "the blob %s is %s, and must be %s",
                    blob->name, ls_blob_form_print(found, is),
                    is_any_size(blob) ? "bytes"
                                      : ls_blob_form_print(form, must));
}

/* In memory --------------------------------------------------------------- */

int blob_copy(void *self, const void *data, size_t size)
{
    unsigned char **at = self;
    memcpy(*at, data, size);
    *at += size;
    return LS_OK;
}

int ls_blob_pack(const struct ls_blob *blob, void **data, size_t *size)
{
    struct ls_blob_form form;
    uint64_t bytes = 0;
    int status = blob_measure(blob, &form);
    if (status == LS_OK)
        status = ls_blob_form_bytes(&form, &bytes);
    if (status != LS_OK)
        return status;
    unsigned char *const packed = malloc(bytes > 0 ? (size_t)bytes : 1);
    if (packed == NULL)
        return ls_error(LS_ENOMEM, "no memory for the %llu bytes of blob %s",
                        (unsigned long long)bytes, blob->name);
    unsigned char *at = packed;
    ls_blob_sink sink = {.add = blob_copy, .self = &at, .left = bytes};
    status = blob_save(blob, &sink);
    if (status != LS_OK) {
        free(packed);
        return status;
    }
    *data = packed;
    *size = (size_t)bytes;
    return LS_OK;
}

static int copy_in(void *self, void *data, size_t size)
{
    const unsigned char **at = self;
    memcpy(data, *at, size);
    *at += size;
    return LS_OK;
}

int ls_blob_unpack(const struct ls_blob *blob, const void *data, size_t size)
{
    uint64_t bytes = size;
    if (!is_any_size(blob)) {
        const int status = ls_blob_form_bytes(&blob->form, &bytes);
        if (status != LS_OK)
            return status;
    }
    if (bytes != size)
        return ls_error(LS_EMISMATCH, "the blob %s has %llu bytes, not %zu",
                        blob->name, (unsigned long long)bytes, size);
    const unsigned char *at = data;
    ls_blob_source source = {.read = copy_in, .self = &at, .size = size};
    return blob_load(blob, &source);
}
