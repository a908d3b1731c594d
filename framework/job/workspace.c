/* The blobs that tasks make: registered like any, with memory that lives as
 * long as the workspace. */
#include <stdlib.h>
#include <string.h>

#include "job_parts.h"

struct memory {
    struct memory *next;
    max_align_t bytes[];
};

int workspace_init(struct workspace *space)
{
    space->memory = NULL;
    return ls_blobs_create(&space->blobs);
}

void workspace_fini(struct workspace *space)
{
    ls_blobs_destroy(&space->blobs);
    while (space->memory != NULL) {
        struct memory *next = space->memory->next;
        free(space->memory);
        space->memory = next;
    }
}

static int make(struct workspace *space, const char *name,
                const struct ls_blob_form *form, void **memory)
{
    uint64_t size;
    int status = ls_blob_form_bytes(form, &size);
    if (status != LS_OK)
        return status;
    struct memory *made = NULL;
    if (size < SIZE_MAX - sizeof *made)
        made = calloc(1, sizeof *made + (size_t)size);
    if (made == NULL)
        return ls_error(LS_ENOMEM, "blob %s", name);
    status = ls_blobs_add(
        space->blobs,
        &(struct ls_blob){.name = name, .form = *form, .memory = made->bytes});
    if (status != LS_OK) {
        free(made);
        return status;
    }
    made->next = space->memory;
    space->memory = made;
    *memory = made->bytes;
    return LS_OK;
}

static bool same_form(const struct ls_blob_form *a,
                      const struct ls_blob_form *b)
{
    return a->type == b->type && a->n_dims == b->n_dims &&
           memcmp(a->shape, b->shape, a->n_dims * sizeof *a->shape) == 0;
}

static bool is_made(const struct workspace *space, const void *memory)
{
    const struct memory *at = space->memory;
    while (at != NULL && at->bytes != memory)
        at = at->next;
    return at != NULL;
}

int workspace_reform(struct workspace *space, const char *name,
                     const struct ls_blob_form *form, void **memory)
{
    const struct ls_blob *blob = ls_blobs_find(space->blobs, name);
    if (blob != NULL && is_made(space, blob->memory) &&
        !same_form(&blob->form, form))
        (void)ls_blobs_remove(space->blobs, name);
    return workspace_blob(space, NULL, name, form, memory);
}

int workspace_blob(struct workspace *space, const struct workspace *parent,
                   const char *name, const struct ls_blob_form *form,
                   void **memory)
{
    char have[LS_BLOB_FORM_TEXT_MAX], want[LS_BLOB_FORM_TEXT_MAX];
    const struct ls_blob *blob = ls_blobs_find(space->blobs, name);
    if (blob == NULL && parent != NULL)
        blob = ls_blobs_find(parent->blobs, name);
    if (blob == NULL)
        return make(space, name, form, memory);
    if (blob->memory == NULL)
        return ls_error(LS_EMISMATCH,
                        "blob %s has functions, and no memory of its own",
                        name);
    if (!same_form(&blob->form, form))
        return ls_error(LS_EMISMATCH, "blob %s is %s, and not %s", name,
                        ls_blob_form_print(&blob->form, have),
                        ls_blob_form_print(form, want));
    *memory = blob->memory;
    return LS_OK;
}
