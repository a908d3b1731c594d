/* All global blobs as bytes, for a message: the size of their names, the names
 * (the shard blob_names of an entry), then the bytes of each. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "blob_flow.h"
#include "checkpoint_format.h"
#include "checkpoint_inside.h"

/* ---- packing ------------------------------------------------------------- */

static int save_all(const ls_blobs *blobs, const struct blob_names *names,
                    unsigned char *at)
{
    int status = LS_OK;
    for (size_t i = 0; i < names->n && status == LS_OK; i++) {
        uint64_t size = 0;
        status = ls_blob_form_bytes(&names->blobs[i].form, &size);
        ls_blob_sink sink = {.add = blob_copy, .self = &at, .left = size};
        if (status == LS_OK)
            status =
                blob_save(ls_blobs_find(blobs, names->blobs[i].name), &sink);
    }
    return status;
}

static int pack(const ls_blobs *blobs, const struct blob_names *names,
                ls_writer *writer, void **data, size_t *size)
{
    const void *head;
    size_t head_size;
    uint64_t all = 0;
    ls_record_write(&blob_names_record, names, writer);
    int status = ls_writer_bytes(writer, &head, &head_size);
    for (size_t i = 0; i < names->n && status == LS_OK; i++) {
        uint64_t one = 0;
        status = ls_blob_form_bytes(&names->blobs[i].form, &one);
        all += one;
    }
    if (status != LS_OK)
        return status;
    const uint64_t prefix = head_size;
    const size_t bytes = sizeof prefix + head_size + (size_t)all;
    unsigned char *packed = malloc(bytes);
    if (packed == NULL)
        return ls_error(LS_ENOMEM, "blobs of %zu bytes", bytes);
    memcpy(packed, &prefix, sizeof prefix);
    memcpy(packed + sizeof prefix, head, head_size);
    status = save_all(blobs, names, packed + sizeof prefix + head_size);
    if (status != LS_OK) {
        free(packed);
        return status;
    }
    *data = packed;
    *size = bytes;
    return LS_OK;
}

int ls_blobs_pack(const ls_blobs *blobs, void **data, size_t *size)
{
    struct blob_names names;
    ls_writer *writer = NULL;
    int status = checkpoint_measure(blobs, &names);
    if (status == LS_OK)
        status = ls_writer_create(&writer);
    if (status == LS_OK)
        status = pack(blobs, &names, writer, data, size);
    ls_writer_destroy(&writer);
    free(names.blobs);
    return status;
}

/* ---- unpacking ----------------------------------------------------------- */

/* What is left to read. */
struct packed {
    struct blob_names names; /* own */
    unsigned char *at;
    size_t left;
};

static int take(struct packed *packed, uint64_t size, unsigned char **out)
{
    if (size > packed->left)
        return ls_error(LS_EPROTO, "blobs of another node end too early");
    *out = packed->at;
    packed->at += size;
    packed->left -= (size_t)size;
    return LS_OK;
}

static int open_packed(struct packed *out, const void *data, size_t size)
{
    unsigned char *head = NULL;
    uint64_t head_size = 0;
    *out = (struct packed){.at = (unsigned char *)data, .left = size};
    int status = take(out, sizeof head_size, &head);
    if (status == LS_OK) {
        memcpy(&head_size, head, sizeof head_size);
        status = take(out, head_size, &head);
    }
    if (status == LS_OK)
        status = ls_record_decode(&blob_names_record, &out->names, head,
                                  (size_t)head_size, NULL);
    if (status != LS_OK && status != LS_ENOMEM)
        return ls_error_at(LS_EPROTO, "what another node sent of its blobs");
    return status;
}

int ls_blobs_view(ls_blobs **out, const void *data, size_t size)
{
    *out = NULL;
    struct packed packed;
    ls_blobs *blobs = NULL;
    int status = open_packed(&packed, data, size);
    if (status == LS_OK)
        status = ls_blobs_create(&blobs);
    for (size_t i = 0; i < packed.names.n && status == LS_OK; i++) {
        const struct ls_checkpoint_blob *one = &packed.names.blobs[i];
        unsigned char *memory = NULL;
        uint64_t bytes = 0;
        status = ls_blob_form_bytes(&one->form, &bytes);
        if (status == LS_OK)
            status = take(&packed, bytes, &memory);
        if (status == LS_OK)
            status = ls_blobs_add(blobs, &(struct ls_blob){.name = one->name,
                                                           .form = one->form,
                                                           .memory = memory});
    }
    ls_record_clear(&blob_names_record, &packed.names);
    if (status == LS_OK && packed.left > 0)
        status =
            ls_error(LS_EPROTO, "blobs of another node have %zu bytes more",
                     packed.left);
    if (status == LS_OK)
        *out = blobs;
    else
        ls_blobs_destroy(&blobs);
    return status == LS_EINVAL || status == LS_EEXIST ? LS_EPROTO : status;
}

static int read_packed(void *self, void *data, size_t size)
{
    unsigned char **at = self;
    memcpy(data, *at, size);
    *at += size;
    return LS_OK;
}

static int load_one(const ls_blobs *blobs, const struct ls_blob *from)
{
    unsigned char *at = from->memory;
    ls_blob_source source = {.read = read_packed, .self = &at};
    const int status = ls_blob_form_bytes(&from->form, &source.size);
    return status == LS_OK
               ? blob_load(ls_blobs_find(blobs, from->name), &source)
               : status;
}

int ls_blobs_unpack(const ls_blobs *blobs, const void *data, size_t size)
{
    struct packed packed;
    ls_blobs *from = NULL;
    int status = open_packed(&packed, data, size);
    if (status == LS_OK)
        status = checkpoint_check_load(blobs, &packed.names, NULL);
    ls_record_clear(&blob_names_record, &packed.names);
    if (status == LS_OK)
        status = ls_blobs_view(&from, data, size);
    for (size_t i = 0; status == LS_OK && i < ls_blobs_n(from); i++)
        status = load_one(blobs, ls_blobs_at(from, i));
    ls_blobs_destroy(&from);
    return status;
}
