/* `lockstep checkpoint diff`: which blobs two checkpoints do not have in
 * common, and by how much their numbers differ. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_folder.h"
#include "json.h"

/* One of the two. */
struct side {
    struct ls_checkpoint_manifest manifest;
    /* Of the node that is looked at; NULL: it has none. */
    const struct ls_checkpoint_entry *entry;
    struct ls_checkpoint_blob *blobs; /* own */
    size_t n;
};

/* What came of one blob. */
struct difference {
    const char *what; /* "differs", "form", "only in the first" … */
    uint64_t n;       /* numbers, or bytes */
    uint64_t n_differ;
    uint64_t n_nan;   /* of those: |a - b| is not a number */
    double most, sum; /* of |a - b| of the others */
};

struct diff {
    const struct checkpoint_folder *folder; /* borrow */
    struct side sides[2];
    size_t n_differ; /* blobs */
};

/* ---- numbers ------------------------------------------------------------- */

/* |a - b|. Of integers exactly, before it is rounded: neighbours beyond 2^53
 * differ by 1. */
static double distance(const unsigned char *a, const unsigned char *b,
                       enum ls_blob_type type)
{
    int32_t i32[2];
    int64_t i64[2];
    float f32[2];
    double f64[2];
    switch (type) {
    case LS_BLOB_I32:
        memcpy(&i32[0], a, sizeof i32[0]);
        memcpy(&i32[1], b, sizeof i32[1]);
        return fabs((double)i32[0] - (double)i32[1]);
    case LS_BLOB_I64:
        memcpy(&i64[0], a, sizeof i64[0]);
        memcpy(&i64[1], b, sizeof i64[1]);
        return (double)(i64[0] > i64[1] ? (uint64_t)i64[0] - (uint64_t)i64[1]
                                        : (uint64_t)i64[1] - (uint64_t)i64[0]);
    case LS_BLOB_F32:
        memcpy(&f32[0], a, sizeof f32[0]);
        memcpy(&f32[1], b, sizeof f32[1]);
        return fabs((double)f32[0] - (double)f32[1]);
    case LS_BLOB_F64:
        memcpy(&f64[0], a, sizeof f64[0]);
        memcpy(&f64[1], b, sizeof f64[1]);
        return fabs(f64[0] - f64[1]);
    case LS_BLOB_BYTES:
    case LS_BLOB_U8:
        break;
    }
    return fabs((double)*a - (double)*b);
}

static size_t size_of(enum ls_blob_type type)
{
    uint64_t size = 1;
    const struct ls_blob_form one = {.type = type};
    return type != LS_BLOB_BYTES && ls_blob_form_bytes(&one, &size) == LS_OK
               ? (size_t)size
               : 1;
}

static void compare(const unsigned char *a, const unsigned char *b,
                    const struct ls_blob_form *form, uint64_t bytes,
                    struct difference *out)
{
    const size_t size = size_of(form->type);
    out->n = bytes / size;
    for (uint64_t i = 0; i < out->n; i++) {
        if (memcmp(a + i * size, b + i * size, size) == 0)
            continue;
        const double by = distance(a + i * size, b + i * size, form->type);
        out->n_differ++;
        if (isnan(by)) {
            out->n_nan++;
            continue;
        }
        out->most = fmax(out->most, by);
        out->sum += by;
    }
    out->what = out->n_differ > 0 ? "differs" : NULL;
}

static int compare_blobs(const struct diff *diff,
                         const struct ls_checkpoint_blob *a,
                         const struct ls_checkpoint_blob *b,
                         struct difference *out)
{
    char forms[2][LS_BLOB_FORM_TEXT_MAX];
    uint64_t bytes = 0;
    void *data[2] = {NULL, NULL};
    if (strcmp(ls_blob_form_print(&a->form, forms[0]),
               ls_blob_form_print(&b->form, forms[1])) != 0) {
        out->what = "has another form";
        return LS_OK;
    }
    int status = ls_blob_form_bytes(&a->form, &bytes);
    for (size_t i = 0; i < 2 && status == LS_OK; i++)
        status = checkpoint_folder_load(
            diff->folder, diff->sides[i].manifest.epoch, diff->sides[i].entry,
            i == 0 ? a : b, &data[i]);
    if (status == LS_OK)
        compare(data[0], data[1], &a->form, bytes, out);
    free(data[0]);
    free(data[1]);
    return status;
}

/* ---- what is shown ------------------------------------------------------- */

/* Of those that differ by a number. */
static double mean(const struct difference *found)
{
    return found->sum / (double)(found->n_differ - found->n_nan);
}

static void print_numbers(const struct difference *found)
{
    printf("%" PRIu64 " of %" PRIu64 " differ", found->n_differ, found->n);
    if (found->n_differ > found->n_nan)
        printf(", by %.6g at most, %.6g on average", found->most, mean(found));
    if (found->n_nan > 0)
        printf(", %" PRIu64 " by what is not a number", found->n_nan);
    printf("\n");
}

static void print(const char *node, const struct ls_checkpoint_blob *blob,
                  const struct difference *found)
{
    char form[LS_BLOB_FORM_TEXT_MAX];
    const bool is_bytes = blob->form.type == LS_BLOB_BYTES;
    printf("%s  %s  %s  ", node, blob->name,
           ls_blob_form_print(&blob->form, form));
    if (found->n_differ == 0)
        printf("%s\n", found->what);
    else if (is_bytes)
        printf("%" PRIu64 " of %" PRIu64 " bytes differ\n", found->n_differ,
               found->n);
    else
        print_numbers(found);
}

static int print_json(const char *node, const struct ls_checkpoint_blob *blob,
                      const struct difference *found)
{
    ls_writer *out = NULL;
    int status = ls_writer_create(&out);
    if (status != LS_OK)
        return status;
    const bool is_bytes = blob->form.type == LS_BLOB_BYTES;
    ls_write_map_begin(out);
    json_string(out, "event", "differs");
    json_string(out, "node", node);
    json_string(out, "blob", blob->name);
    json_string(out, "type", ls_blob_type_name(blob->form.type));
    json_string(out, "what", found->what);
    if (found->n_differ > 0) {
        json_int(out, "n", (int64_t)found->n);
        json_int(out, "n_differ", (int64_t)found->n_differ);
    }
    if (found->n_differ > 0 && !is_bytes)
        json_int(out, "n_nan", (int64_t)found->n_nan);
    if (found->n_differ > found->n_nan && !is_bytes) {
        json_double(out, "most", found->most);
        json_double(out, "mean", mean(found));
    }
    ls_write_map_end(out);
    status = json_print_line(out);
    ls_writer_destroy(&out);
    return status;
}

static int tell(struct diff *diff, const char *node,
                const struct ls_checkpoint_blob *blob,
                const struct difference *found)
{
    if (found->what == NULL)
        return LS_OK;
    diff->n_differ++;
    if (diff->folder->options->json)
        return print_json(node, blob, found);
    print(node, blob, found);
    return LS_OK;
}

/* ---- nodes --------------------------------------------------------------- */

static const struct ls_checkpoint_blob *find(const struct side *side,
                                             const char *name)
{
    for (size_t i = 0; i < side->n; i++)
        if (strcmp(side->blobs[i].name, name) == 0)
            return &side->blobs[i];
    return NULL;
}

static int compare_node(struct diff *diff, const char *node)
{
    int status = LS_OK;
    for (size_t i = 0; i < diff->sides[0].n && status == LS_OK; i++) {
        const struct ls_checkpoint_blob *blob = &diff->sides[0].blobs[i];
        const struct ls_checkpoint_blob *other =
            find(&diff->sides[1], blob->name);
        struct difference found = {.what = "is in the first only"};
        if (other != NULL)
            status = compare_blobs(diff, blob, other, &found);
        if (status == LS_OK)
            status = tell(diff, node, blob, &found);
    }
    for (size_t i = 0; i < diff->sides[1].n && status == LS_OK; i++) {
        const struct ls_checkpoint_blob *blob = &diff->sides[1].blobs[i];
        if (find(&diff->sides[0], blob->name) == NULL)
            status =
                tell(diff, node, blob,
                     &(struct difference){.what = "is in the second only"});
    }
    return status;
}

/* Entries with one checksum are the same, and need not be read. */
static int look_at(struct diff *diff, const char *node)
{
    struct side *a = &diff->sides[0], *b = &diff->sides[1];
    int status = LS_OK;
    for (size_t i = 0; i < 2; i++)
        diff->sides[i].entry =
            ls_checkpoint_manifest_entry(&diff->sides[i].manifest, node);
    if (a->entry != NULL && b->entry != NULL &&
        a->entry->check == b->entry->check && a->entry->size == b->entry->size)
        return LS_OK;
    for (size_t i = 0; i < 2 && status == LS_OK; i++) {
        struct side *side = &diff->sides[i];
        if (side->entry != NULL)
            status = ls_checkpoints_blob_names(
                diff->folder->checkpoints, side->manifest.epoch, side->entry,
                &side->blobs, &side->n);
    }
    if (status == LS_OK)
        status = compare_node(diff, node);
    for (size_t i = 0; i < 2; i++) {
        free(diff->sides[i].blobs);
        diff->sides[i].blobs = NULL;
        diff->sides[i].n = 0;
    }
    return status;
}

static int compare_all(struct diff *diff)
{
    int status = LS_OK;
    for (size_t side = 0; side < 2 && status == LS_OK; side++) {
        const struct ls_checkpoint_manifest *manifest =
            &diff->sides[side].manifest;
        for (size_t i = 0; i < manifest->n_entries && status == LS_OK; i++) {
            const char *node = manifest->entries[i].node;
            if (side == 0 || ls_checkpoint_manifest_entry(
                                 &diff->sides[0].manifest, node) == NULL)
                status = look_at(diff, node);
        }
    }
    return status;
}

static int print_sum(const struct diff *diff)
{
    ls_writer *out = NULL;
    int status = ls_writer_create(&out);
    if (status != LS_OK)
        return status;
    ls_write_map(out, 4);
    json_string(out, "event", "diff");
    json_int(out, "first", diff->sides[0].manifest.epoch);
    json_int(out, "second", diff->sides[1].manifest.epoch);
    json_int(out, "differ", (int64_t)diff->n_differ);
    status = json_print_line(out);
    ls_writer_destroy(&out);
    return status;
}

int checkpoint_diff(const struct options *options)
{
    struct checkpoint_folder folder;
    struct diff diff = {.folder = &folder};
    int status = checkpoint_folder_open(&folder, options, NULL);
    for (size_t i = 0; i < 2 && status == LS_OK; i++)
        status =
            checkpoint_folder_manifest(&folder, i, &diff.sides[i].manifest);
    if (status == LS_OK)
        status = compare_all(&diff);
    if (status == LS_OK && options->json)
        status = print_sum(&diff);
    else if (status == LS_OK && diff.n_differ == 0)
        printf("the same\n");
    for (size_t i = 0; i < 2; i++)
        ls_checkpoint_manifest_clear(&diff.sides[i].manifest);
    checkpoint_folder_close(&folder);
    return status;
}
