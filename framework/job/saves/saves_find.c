/* Which checkpoint the nodes go on from, and loading it, as the node that leads
 * sees it: the newest that all have whole. */
#include <inttypes.h>
#include <stdlib.h>

#include "lockstep/log.h"
#include "saves.h"

void saves_found_clear(struct saves_found *found)
{
    ls_checkpoint_manifest_clear(&found->manifest);
}

const struct ls_checkpoint_entry *saves_entry(const struct saves_found *found,
                                              uint32_t id)
{
    char name[LS_CHECKPOINT_NODE_MAX + 1];
    saves_name(id, name);
    return ls_checkpoint_manifest_entry(&found->manifest, name);
}

static void passed_over(void *self, int64_t epoch, const char *why)
{
    const struct saves *saves = self;
    ls_log_warn("%s: epoch %" PRId64 " is passed over: %s", saves->what, epoch,
                why);
}

/* Who has saved it: by the nodes that there are, or others. */
static int check_entries(const struct saves *saves, struct saves_found *found)
{
    const struct ls_checkpoint_manifest *manifest = &found->manifest;
    size_t n = 0;
    for (size_t i = 0; i < saves->n_nodes; i++)
        n += saves_entry(found, saves->nodes[i]) != NULL ? 1 : 0;
    found->others = n != saves->n_nodes || n != manifest->n_entries;
    if (!found->others || saves->others != SAVES_REFUSE)
        return LS_OK;
    return ls_error(LS_EMISMATCH,
                    "epoch %" PRId64 " is of %zu nodes, of which %zu are among "
                    "the %zu whose blobs this job saves: `elastic` goes on "
                    "with others",
                    manifest->epoch, manifest->n_entries, n, saves->n_nodes);
}

/* ---- questions --------------------------------------------------------- */

struct search {
    struct saves *saves;
    const struct saves_found *found;
    const char *const *names; /* NULL: all blobs */
    uint32_t *ids;            /* own; of those that are asked */
    size_t n;
};

/* Whom a question about it is for: all; or those that are in it. */
static int choose(struct search *search, bool guests_too)
{
    const struct saves *saves = search->saves;
    search->ids = calloc(saves->n_nodes + 1, sizeof *search->ids);
    if (search->ids == NULL)
        return ls_error(LS_ENOMEM, "%zu nodes", saves->n_nodes);
    for (size_t i = 0; i < saves->n_nodes; i++) {
        const bool is_in = saves->others != SAVES_SKIP ||
                           saves_entry(search->found, saves->nodes[i]) != NULL;
        const bool is_guest = saves->guests != NULL && saves->guests[i];
        if (is_in && (guests_too || !is_guest))
            search->ids[search->n++] = saves->nodes[i];
    }
    return LS_OK;
}

static bool is_guest(const struct saves *saves, uint32_t id)
{
    for (size_t i = 0; saves->guests != NULL && i < saves->n_nodes; i++)
        if (saves->nodes[i] == id)
            return saves->guests[i];
    return false;
}

static void write_epoch(const struct search *search, ls_writer *writer,
                        const char *what)
{
    ls_write_string(writer, "do");
    ls_write_string(writer, what);
    ls_write_string(writer, "epoch");
    ls_write_int(writer, search->found->manifest.epoch);
}

static bool is_divided(const struct search *search)
{
    return search->found->others && search->saves->others == SAVES_DIVIDE;
}

/* That of node i; if they are divided, each step-th from `first` on. */
static void write_entries(const struct search *search, ls_writer *writer,
                          size_t i, size_t first, size_t step)
{
    const struct ls_checkpoint_manifest *manifest = &search->found->manifest;
    const size_t n = manifest->n_entries;
    ls_write_string(writer, "entries");
    if (!is_divided(search)) {
        ls_write_array(writer, 1);
        ls_record_write(&ls_checkpoint_entry_record,
                        saves_entry(search->found, search->ids[i]), writer);
        return;
    }
    ls_write_array(writer,
                   first < n ? (uint32_t)((n - first + step - 1) / step) : 0);
    for (size_t at = first; at < n; at += step)
        ls_record_write(&ls_checkpoint_entry_record, &manifest->entries[at],
                        writer);
}

/* All entries are looked at, each by one node. */
static int write_has(void *self, ls_writer *writer, struct ls_body *body,
                     size_t i)
{
    const struct search *search = self;
    (void)body;
    ls_write_map(writer, 3);
    write_epoch(search, writer, "has");
    write_entries(search, writer, i, i, search->n);
    return LS_OK;
}

static int ask(struct search *search, bool guests_too, ask_fn *write)
{
    const struct saves *saves = search->saves;
    int status = choose(search, guests_too);
    if (status == LS_OK)
        status = ask_each(saves->asker, search->ids, search->n, write, search,
                          saves->timeout_ms);
    free(search->ids);
    return status;
}

/* ---- which one --------------------------------------------------------- */

/* The entries of nodes without a folder lie here. With the mutex held. */
static int look_at_guests(struct saves *saves, const struct saves_found *found)
{
    int status = LS_OK;
    for (size_t i = 0; saves->guests != NULL && i < saves->n_nodes; i++) {
        const struct ls_checkpoint_entry *entry =
            saves_entry(found, saves->nodes[i]);
        if (status == LS_OK && saves->guests[i] && entry != NULL)
            status =
                ls_checkpoints_has(saves->store, found->manifest.epoch, entry);
    }
    return status;
}

int saves_look_at(struct saves *saves, int64_t epoch, struct saves_found *out)
{
    struct search search = {.saves = saves, .found = out};
    saves_found_clear(out);
    ls_mutex_lock(&saves->mutex);
    int status = ls_checkpoints_manifest(saves->store, epoch, &out->manifest);
    if (status == LS_OK)
        status = look_at_guests(saves, out);
    ls_mutex_unlock(&saves->mutex);
    if (status == LS_OK)
        status = check_entries(saves, out);
    return status == LS_OK ? ask(&search, false, write_has) : status;
}

/* How many there are, damaged ones too. */
static int count(struct saves *saves, size_t *n)
{
    int64_t *epochs = NULL;
    *n = 0;
    if (saves->store == NULL)
        return LS_OK;
    ls_mutex_lock(&saves->mutex);
    const int status = ls_checkpoints_list(saves->store, &epochs, n);
    ls_mutex_unlock(&saves->mutex);
    if (status == LS_OK)
        free(epochs);
    return status;
}

int saves_check_none(struct saves *saves)
{
    size_t n;
    const int status = count(saves, &n);
    if (status != LS_OK || n == 0)
        return status;
    return ls_error(LS_EEXIST,
                    "%s: %s has %zu checkpoints: resume, or choose another "
                    "folder",
                    saves->what, saves->folder, n);
}

int saves_newest(struct saves *saves, int64_t before, bool ends,
                 struct saves_found *out)
{
    int64_t epoch = 0;
    int status;
    for (;;) {
        ls_mutex_lock(&saves->mutex);
        status = ls_checkpoints_newest(saves->store, before, true, passed_over,
                                       saves, &epoch);
        ls_mutex_unlock(&saves->mutex);
        if (status != LS_OK)
            break;
        status = saves_look_at(saves, epoch, out);
        if (status == LS_OK && out->manifest.stopped && !ends)
            ls_log_info("%s: epoch %" PRId64 " was the end", saves->what,
                        epoch);
        else if (status != LS_ENOENT && status != LS_EPROTO)
            return status;
        else
            passed_over(saves, epoch, ls_error_text());
        before = epoch;
    }
    size_t n = 0;
    if (status == LS_ENOENT)
        status = count(saves, &n);
    if (status != LS_OK)
        return status;
    return n == 0 ? ls_error(LS_ENOENT, "%s: %s has no checkpoint", saves->what,
                             saves->folder)
                  : ls_error(LS_EPROTO,
                             "%s: none of the %zu checkpoints in %s can be "
                             "used; the log says why",
                             saves->what, n, saves->folder);
}

int saves_best(struct saves *saves, struct saves_found *out)
{
    const struct ls_checkpoint_retention *retention = &saves->retention;
    int64_t *epochs = NULL;
    size_t n = 0;
    ls_mutex_lock(&saves->mutex);
    int status = ls_checkpoints_ranked(saves->store, saves->metric,
                                       retention->least, &epochs, &n);
    ls_mutex_unlock(&saves->mutex);
    bool found = false;
    for (size_t i = 0; i < n && status == LS_OK && !found; i++) {
        status = saves_look_at(saves, epochs[i], out);
        found = status == LS_OK;
        if (status == LS_EPROTO || status == LS_ENOENT) {
            passed_over(saves, epochs[i], ls_error_text());
            status = LS_OK;
        }
    }
    free(epochs);
    if (found || status != LS_OK)
        return status;
    return n == 0 ? ls_error(LS_ENOENT,
                             "%s: no checkpoint in %s has the metric %s: none "
                             "was evaluated yet",
                             saves->what, saves->folder, saves->metric)
                  : ls_error(LS_EPROTO,
                             "%s: none of the %zu checkpoints in %s that have "
                             "the metric %s can be used; the log says why",
                             saves->what, n, saves->folder, saves->metric);
}

/* ---- loading ----------------------------------------------------------- */

static int read_blob(struct saves *saves, const struct search *search,
                     const struct ls_checkpoint_entry *entry,
                     const struct ls_checkpoint_blob *blob, ls_blobs *blobs,
                     void **memory)
{
    uint64_t size = 0;
    int status = ls_blob_form_bytes(&blob->form, &size);
    *memory = status == LS_OK ? malloc((size_t)size + 1) : NULL;
    if (status == LS_OK && *memory == NULL)
        status =
            ls_error(LS_ENOMEM, "%" PRIu64 " bytes of %s", size, entry->node);
    if (status == LS_OK)
        status = ls_blobs_add(blobs, &(struct ls_blob){.name = blob->name,
                                                       .form = blob->form,
                                                       .memory = *memory});
    return status == LS_OK
               ? ls_checkpoints_load(
                     saves->store, search->found->manifest.epoch, entry, blobs,
                     (const char *const[]){blob->name, NULL})
               : status;
}

/* With the mutex held: what a node without a folder is sent. */
static int read_entry(struct saves *saves, const struct search *search,
                      const struct ls_checkpoint_entry *entry,
                      struct ls_body *body)
{
    struct ls_checkpoint_blob *names = NULL;
    size_t n = 0;
    ls_blobs *blobs = NULL;
    int status = ls_checkpoints_blob_names(
        saves->store, search->found->manifest.epoch, entry, &names, &n);
    void **memories = calloc(n + 1, sizeof *memories);
    if (status == LS_OK && memories == NULL)
        status = ls_error(LS_ENOMEM, "%zu blobs", n);
    if (status == LS_OK)
        status = ls_blobs_create(&blobs);
    for (size_t i = 0; i < n && status == LS_OK; i++)
        status =
            read_blob(saves, search, entry, &names[i], blobs, &memories[i]);
    if (status == LS_OK)
        status = saves_pack(blobs, body);
    for (size_t i = 0; i < n && memories != NULL; i++)
        free(memories[i]);
    ls_blobs_destroy(&blobs);
    free(memories);
    free(names);
    return status;
}

static int write_load(void *self, ls_writer *writer, struct ls_body *body,
                      size_t i)
{
    const struct search *search = self;
    struct saves *saves = search->saves;
    int status = LS_OK;
    uint32_t n = 0;
    while (search->names != NULL && search->names[n] != NULL)
        n++;
    ls_write_map(writer, 4);
    write_epoch(search, writer, is_divided(search) ? "divide" : "load");
    write_entries(search, writer, i, 0, 1);
    ls_write_string(writer, "names");
    ls_write_array(writer, n);
    for (uint32_t at = 0; at < n; at++)
        ls_write_string(writer, search->names[at]);
    if (is_guest(saves, search->ids[i])) {
        ls_mutex_lock(&saves->mutex);
        status = read_entry(saves, search,
                            saves_entry(search->found, search->ids[i]), body);
        ls_mutex_unlock(&saves->mutex);
    }
    return status;
}

int saves_load(struct saves *saves, const struct saves_found *found,
               const char *const *names)
{
    struct search search = {.saves = saves, .found = found, .names = names};
    return ask(&search, true, write_load);
}

/* ---- rewinding --------------------------------------------------------- */

static int write_rewind(void *self, ls_writer *writer, struct ls_body *body,
                        size_t i)
{
    (void)body;
    (void)i;
    ls_write_map(writer, 2);
    ls_write_string(writer, "do");
    ls_write_string(writer, "rewind");
    ls_write_string(writer, "epoch");
    ls_write_int(writer, *(const int64_t *)self);
    return LS_OK;
}

/* Their manifests name what lies here of nodes without a folder. */
static int rewind_nodes(struct saves *saves, int64_t epoch)
{
    struct search search = {.saves = saves};
    search.ids = calloc(saves->n_nodes + 1, sizeof *search.ids);
    if (search.ids == NULL)
        return ls_error(LS_ENOMEM, "%zu nodes", saves->n_nodes);
    for (size_t i = 0; i < saves->n_nodes; i++)
        if (!is_guest(saves, saves->nodes[i]))
            search.ids[search.n++] = saves->nodes[i];
    const int status = ask_each(saves->asker, search.ids, search.n,
                                write_rewind, &epoch, saves->timeout_ms);
    free(search.ids);
    return status;
}

int saves_rewind(struct saves *saves, int64_t epoch)
{
    ls_mutex_lock(&saves->mutex);
    int status = ls_checkpoints_rewind(saves->store, epoch);
    if (status == LS_OK)
        status = saves_rewind_hosted(saves, epoch);
    ls_mutex_unlock(&saves->mutex);
    return status == LS_OK ? rewind_nodes(saves, epoch) : status;
}
