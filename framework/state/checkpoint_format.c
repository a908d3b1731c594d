#include "checkpoint_format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vault_manifest.h"

#define DIGITS 6 /* of an epoch, at least */

/* Names ------------------------------------------------------------------ */

void checkpoint_name(char out[LS_VAULT_NAME_MAX + 1], const char *node,
                     int64_t epoch)
{
    (void)snprintf(out, LS_VAULT_NAME_MAX + 1, "%.*s.%0*" PRId64,
                   LS_CHECKPOINT_NODE_MAX, node, DIGITS, epoch);
}

bool checkpoint_epoch(const char *name, const char *node, int64_t *epoch)
{
    char again[LS_VAULT_NAME_MAX + 1];
    const char *dot = strrchr(name, '.');
    if (dot == NULL || dot[1] < '0' || dot[1] > '9')
        return false;
    errno = 0;
    *epoch = strtoll(dot + 1, NULL, 10);
    checkpoint_name(again, node, *epoch);
    return errno == 0 && strcmp(again, name) == 0;
}

int checkpoint_check_node(const char *node)
{
    const int status = vault_check_name("a node of a checkpoint", node);
    if (status != LS_OK)
        return status;
    if (strcmp(node, MANIFEST) == 0)
        return ls_error(LS_EINVAL,
                        "a node of a checkpoint cannot be called " MANIFEST);
    return strlen(node) <= LS_CHECKPOINT_NODE_MAX
               ? LS_OK
               : ls_error(LS_EINVAL,
                          "the node %s has too long a name for a checkpoint: "
                          "%d bytes at most",
                          node, LS_CHECKPOINT_NODE_MAX);
}

static int check_node_field(const void *at)
{
    return checkpoint_check_node(at) == LS_OK
               ? LS_OK
               : ls_error(LS_EPROTO, "it is not a node's name");
}

/* Formats ---------------------------------------------------------------- */

#define N(fields) (sizeof(fields) / sizeof(fields)[0])

/* The first field of a record: which one it is, and of which version. */
#define FORMAT(name, text)                                                     \
    static void write_##name(const void *at, ls_writer *out)                   \
    {                                                                          \
        (void)at;                                                              \
        ls_write_string(out, text);                                            \
    }                                                                          \
    static int read_##name(void *at, const ls_value *value)                    \
    {                                                                          \
        const char *found = NULL;                                              \
        (void)at;                                                              \
        return ls_value_string(value, &found) == LS_OK &&                      \
                       strcmp(found, text) == 0                                \
                   ? LS_OK                                                     \
                   : ls_error(LS_EPROTO, "it is not " text);                   \
    }                                                                          \
    static const struct ls_field_other name = {0, write_##name, read_##name};

FORMAT(blobs_format, "lockstep.blobs.1")
FORMAT(checkpoint_format, "lockstep.checkpoint.1")

/* The blobs of an entry -------------------------------------------------- */

static void write_type(const void *at, ls_writer *out)
{
    ls_write_string(out, ls_blob_type_name(*(const enum ls_blob_type *)at));
}

static int read_type(void *at, const ls_value *value)
{
    const char *name = NULL;
    return ls_value_string(value, &name) == LS_OK && ls_blob_type_read(name, at)
               ? LS_OK
               : ls_error(LS_EPROTO, "it is not a type of a blob");
}

static int check_blob(const void *data)
{
    const struct ls_checkpoint_blob *blob = data;
    uint64_t size;
    return vault_is_name(blob->name) &&
                   ls_blob_form_bytes(&blob->form, &size) == LS_OK
               ? LS_OK
               : ls_error(LS_EPROTO, "it is not a blob");
}

#define IN(member) offsetof(struct ls_checkpoint_blob, member)
static const struct ls_field_other type_field = {sizeof(enum ls_blob_type),
                                                 write_type, read_type};
static const struct ls_field dim = {.type = LS_FIELD_UINT};
static const struct ls_field blob_fields[] = {
    {"name", LS_FIELD_CHARS, IN(name), .size = LS_VAULT_NAME_MAX + 1},
    {"type", LS_FIELD_OTHER, IN(form.type), .other = &type_field},
    {"shape", LS_FIELD_LIST, IN(form.shape), .item = &dim,
     .count = IN(form.n_dims), .most = LS_BLOB_DIMS_MAX},
};
#undef IN
static const struct ls_record blob_record = {
    "a blob",     sizeof(struct ls_checkpoint_blob),
    blob_fields,  N(blob_fields),
    .open = true, .check = check_blob};
static const struct ls_field blob_item = {.type = LS_FIELD_RECORD,
                                          .record = &blob_record};

static const struct ls_field blob_names_fields[] = {
    {"format", LS_FIELD_OTHER, .other = &blobs_format},
    {"blobs", LS_FIELD_LIST, offsetof(struct blob_names, blobs),
     .item = &blob_item, .count = offsetof(struct blob_names, n),
     .most = LS_BLOBS_MAX, .own = true},
};
const struct ls_record blob_names_record = {
    "blob_names", sizeof(struct blob_names), blob_names_fields,
    N(blob_names_fields), .open = true};

/* The manifest ----------------------------------------------------------- */

#define IN(member) offsetof(struct ls_checkpoint_entry, member)
static const struct ls_field entry_fields[] = {
    {"node", LS_FIELD_CHARS, IN(node), .size = LS_CHECKPOINT_NODE_MAX + 1,
     .check = check_node_field},
    {"size", LS_FIELD_UINT, IN(size), .presence = LS_ALWAYS},
    {"xxh3", LS_FIELD_UINT, IN(check), .presence = LS_ALWAYS},
};
#undef IN
const struct ls_record ls_checkpoint_entry_record = {
    "an entry of a checkpoint", sizeof(struct ls_checkpoint_entry),
    entry_fields, N(entry_fields), .open = true};

int ls_checkpoint_entry_read(struct ls_checkpoint_entry *out,
                             const ls_value *said, const char *node)
{
    struct ls_checkpoint_entry entry;
    const int status =
        ls_record_read(&ls_checkpoint_entry_record, &entry, said);
    if (status != LS_OK)
        return status;
    if (strcmp(entry.node, node) != 0)
        return ls_error(LS_EPROTO,
                        "it has written the entry of \"%s\", and not that of "
                        "\"%s\"",
                        entry.node, node);
    *out = entry;
    return LS_OK;
}

static const struct ls_field entry_item = {
    .type = LS_FIELD_RECORD, .record = &ls_checkpoint_entry_record};

#define IN(member) offsetof(struct ls_checkpoint_metric, member)
static const struct ls_field metric_fields[] = {
    {"name", LS_FIELD_CHARS, IN(name), .size = LS_CHECKPOINT_TEXT_MAX},
    {"value", LS_FIELD_DOUBLE, IN(value), .presence = LS_ALWAYS},
};
#undef IN
static const struct ls_record metric_record = {
    "a metric", sizeof(struct ls_checkpoint_metric), metric_fields,
    N(metric_fields), .open = true};
static const struct ls_field metric_item = {.type = LS_FIELD_RECORD,
                                            .record = &metric_record};

/* The format has nil for no text; a note says something. */
static int check_text(const void *at)
{
    return *(char *const *)at != NULL ? LS_OK
                                      : ls_error(LS_EPROTO, "it is not a text");
}

#define IN(member) offsetof(struct ls_checkpoint_note, member)
static const struct ls_field note_fields[] = {
    {"name", LS_FIELD_CHARS, IN(name), .size = LS_CHECKPOINT_TEXT_MAX},
    {"text", LS_FIELD_TEXT, IN(text), .check = check_text,
     .presence = LS_ALWAYS},
};
#undef IN
static const struct ls_record note_record = {
    "a note", sizeof(struct ls_checkpoint_note), note_fields, N(note_fields),
    .open = true};
static const struct ls_field note_item = {.type = LS_FIELD_RECORD,
                                          .record = &note_record};

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int check_manifest(const void *data)
{
    const struct ls_checkpoint_manifest *manifest = data;
    const size_t n = manifest->n_entries;
    const char **names = malloc((n + 1) * sizeof *names);
    if (names == NULL)
        return ls_error(LS_ENOMEM, "no memory for %zu names", n);
    for (size_t i = 0; i < n; i++)
        names[i] = manifest->entries[i].node;
    qsort(names, n, sizeof *names, by_name);
    int status = LS_OK;
    for (size_t i = 1; i < n && status == LS_OK; i++) {
        if (strcmp(names[i - 1], names[i]) == 0)
            status = ls_error(LS_EPROTO, "it has the node %s twice", names[i]);
    }
    free(names);
    return status;
}

#define IN(member) offsetof(struct ls_checkpoint_manifest, member)
static const struct ls_field manifest_fields[] = {
    {"format", LS_FIELD_OTHER, .other = &checkpoint_format},
    {"epoch", LS_FIELD_INT, IN(epoch), .least = 0, .most = INT64_MAX},
    {"time_ns", LS_FIELD_INT, IN(time_ns), .presence = LS_ALWAYS},
    {"run", LS_FIELD_CHARS, IN(run), .size = LS_CHECKPOINT_TEXT_MAX},
    {"stopped", LS_FIELD_BOOL, IN(stopped), .presence = LS_ALWAYS},
    {"entries", LS_FIELD_LIST, IN(entries), .item = &entry_item,
     .count = IN(n_entries), .least = 1, .most = LS_CHECKPOINT_NODES_MAX,
     .own = true},
    {"metrics", LS_FIELD_LIST, IN(metrics), .item = &metric_item,
     .count = IN(n_metrics), .most = LS_CHECKPOINT_VALUES_MAX, .own = true},
    {"notes", LS_FIELD_LIST, IN(notes), .item = &note_item,
     .count = IN(n_notes), .most = LS_CHECKPOINT_VALUES_MAX, .own = true},
};
#undef IN
const struct ls_record ls_checkpoint_manifest_record = {
    "a checkpoint",  sizeof(struct ls_checkpoint_manifest),
    manifest_fields, N(manifest_fields),
    .open = true,    .check = check_manifest};

void ls_checkpoint_manifest_clear(struct ls_checkpoint_manifest *gone)
{
    ls_record_clear(&ls_checkpoint_manifest_record, gone);
}

const struct ls_checkpoint_entry *
ls_checkpoint_manifest_entry(const struct ls_checkpoint_manifest *manifest,
                             const char *node)
{
    for (size_t i = 0; i < manifest->n_entries; i++) {
        if (strcmp(manifest->entries[i].node, node) == 0)
            return &manifest->entries[i];
    }
    return NULL;
}
