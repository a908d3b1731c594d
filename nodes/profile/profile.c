/* Records are sorted by kind, name and number while clocks are compared and
 * whenever one is looked for; the order of time that files have is not needed
 * any more. */
#include "profile.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/file.h"

#include "sum.h"

/* No clock has shown more, either way: 73 years in ns. The difference of two
 * such times, and twice that, can be told. */
#define TIME_MAX (INT64_C(1) << 61)

/* A file has at most so many records of 48 bytes, and names. */
#define FILE_MAX ((size_t)1 << 30)

/* ---- records by kind, name and number ------------------------------------ */

static int compare_keys(const struct ls_trace_record *a, uint8_t kind,
                        uint16_t name, uint64_t number)
{
    if (a->kind != kind)
        return a->kind < kind ? -1 : 1;
    if (a->name != name)
        return a->name < name ? -1 : 1;
    return (a->number > number) - (a->number < number);
}

static int compare_records(const void *a, const void *b)
{
    const struct ls_trace_record *const p = a, *const q = b;
    const int order = compare_keys(p, q->kind, q->name, q->number);
    return order != 0
               ? order
               : (p->begin_ns > q->begin_ns) - (p->begin_ns < q->begin_ns);
}

const struct ls_trace_record *profile_record(const struct profile *profile,
                                             size_t node, uint8_t kind,
                                             uint16_t name, uint64_t number)
{
    const struct ls_trace_file *const file = &profile->nodes[node].file;
    size_t low = 0, high = file->n_records;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (compare_keys(&file->records[mid], kind, name, number) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low < file->n_records &&
                   compare_keys(&file->records[low], kind, name, number) == 0
               ? &file->records[low]
               : NULL;
}

size_t profile_find(const struct profile *profile, uint32_t id)
{
    size_t i = 0;
    while (i < profile->n_nodes && profile->nodes[i].file.node != id)
        i++;
    return i;
}

size_t profile_name(const struct profile *profile, const char *text)
{
    size_t i = 0;
    while (i < profile->n_names && strcmp(profile->names[i], text) != 0)
        i++;
    return i;
}

/* ---- names --------------------------------------------------------------- */

static int add_name(struct profile *profile, const char *text, uint16_t *out)
{
    const size_t at = profile_name(profile, text);
    if (at >= UINT16_MAX) /* PROFILE_NO_STEP */
        return ls_error(LS_ELIMIT, "more than %d names in a run", UINT16_MAX);
    if (at == profile->n_names) {
        char **const names =
            realloc(profile->names, (at + 1) * sizeof *profile->names);
        if (names == NULL)
            return ls_error(LS_ENOMEM, "no memory for names");
        profile->names = names;
        names[at] = strdup(text);
        if (names[at] == NULL)
            return ls_error(LS_ENOMEM, "no memory for names");
        profile->n_names++;
    }
    *out = (uint16_t)at;
    return LS_OK;
}

static int unite_names(struct profile *profile, struct ls_trace_file *file)
{
    uint16_t *const is = calloc(file->n_names, sizeof *is);
    int status =
        is == NULL ? ls_error(LS_ENOMEM, "no memory for names") : LS_OK;
    for (size_t i = 0; i < file->n_names && status == LS_OK; i++)
        status = add_name(profile, file->names[i], &is[i]);
    for (size_t i = 0; i < file->n_records && status == LS_OK; i++) {
        struct ls_trace_record *const record = &file->records[i];
        record->name = is[record->name];
        record->thread = is[record->thread];
        if (record->end_ns == LS_TRACE_OPEN)
            record->end_ns = file->now_ns > record->begin_ns ? file->now_ns
                                                             : record->begin_ns;
    }
    free(is);
    return status;
}

/* ---- clocks -------------------------------------------------------------- */

struct bounds {
    struct clock_bound *items; /* own */
    size_t n, capacity;
};

static int add_bound(struct bounds *bounds, int64_t here, int64_t there,
                     bool most)
{
    if (bounds->n == bounds->capacity) {
        const size_t capacity = 2 * bounds->capacity + 64;
        struct clock_bound *const items =
            realloc(bounds->items, capacity * sizeof *items);
        if (items == NULL)
            return ls_error(LS_ENOMEM, "no memory to compare clocks");
        bounds->items = items;
        bounds->capacity = capacity;
    }
    bounds->items[bounds->n++] = (struct clock_bound){here, there, most};
    return LS_OK;
}

/* What came to `to` from `from` was sent before. swapped: the clock here is
 * that of `from`. */
static int add_messages(const struct profile *profile, size_t from, size_t to,
                        bool swapped, struct bounds *out)
{
    const struct ls_trace_file *const file = &profile->nodes[to].file;
    const struct ls_trace_file *const origin = &profile->nodes[from].file;
    int status = LS_OK;
    for (size_t i = 0; i < file->n_records && status == LS_OK; i++) {
        const struct ls_trace_record *const came = &file->records[i];
        const bool beat = came->kind == LS_TRACE_HEARD;
        if ((!beat && came->kind != LS_TRACE_RECEIVE) || came->number == 0 ||
            came->peer != origin->node ||
            came->life != (uint32_t)origin->incarnation)
            continue;
        const struct ls_trace_record *const sent =
            profile_record(profile, from, beat ? LS_TRACE_BEAT : LS_TRACE_SEND,
                           came->name, came->number);
        if (sent != NULL)
            status =
                swapped ? add_bound(out, sent->begin_ns, came->begin_ns, true)
                        : add_bound(out, came->begin_ns, sent->begin_ns, false);
    }
    return status;
}

/* Nobody leaves an epoch before everyone has entered it. */
static int add_epochs(const struct profile *profile, size_t here, size_t there,
                      struct bounds *out)
{
    const struct ls_trace_file *const file = &profile->nodes[here].file;
    int status = LS_OK;
    for (size_t i = 0; i < file->n_records && status == LS_OK; i++) {
        const struct ls_trace_record *const mine = &file->records[i];
        if (mine->kind != LS_TRACE_BARRIER || mine->size != 0)
            continue;
        const struct ls_trace_record *const its = profile_record(
            profile, there, LS_TRACE_BARRIER, mine->name, mine->number);
        if (its == NULL || its->size != 0)
            continue;
        status = add_bound(out, mine->begin_ns, its->end_ns, true);
        if (status == LS_OK)
            status = add_bound(out, mine->end_ns, its->begin_ns, false);
    }
    return status;
}

/* Errors: LS_ENOENT they have not met. */
static int compare_clocks(struct profile *profile, size_t here, size_t there)
{
    struct bounds bounds = {.n = 0};
    int status = add_messages(profile, there, here, false, &bounds);
    if (status == LS_OK)
        status = add_messages(profile, here, there, true, &bounds);
    if (status == LS_OK)
        status = add_epochs(profile, here, there, &bounds);
    if (status == LS_OK)
        status = clock_fit(&profile->nodes[here].clock, bounds.items, bounds.n);
    free(bounds.items);
    return status;
}

/* Compare each node with one that is aligned; the first node first. */
static int align(struct profile *profile)
{
    bool more = true;
    profile->nodes[0].aligned = true; /* and its own parent */
    while (more) {
        more = false;
        for (size_t i = 0; i < profile->n_nodes; i++) {
            struct profile_node *const node = &profile->nodes[i];
            for (size_t j = 0; j < profile->n_nodes && !node->aligned; j++) {
                if (!profile->nodes[j].aligned)
                    continue;
                const int status = compare_clocks(profile, i, j);
                if (status == LS_ENOMEM)
                    return status;
                if (status == LS_OK) {
                    node->parent = j;
                    node->aligned = more = true;
                }
            }
        }
    }
    return LS_OK;
}

static int64_t on_first_clock(const struct profile *profile, size_t node,
                              int64_t at)
{
    const struct profile_node *from = &profile->nodes[node];
    if (!from->aligned) {
        const struct ls_trace_file *const first = &profile->nodes[0].file;
        return sum_of(
            at,
            difference_of(difference_of(from->file.wall_ns, from->file.now_ns),
                          difference_of(first->wall_ns, first->now_ns)));
    }
    while (node != from->parent) {
        at = clock_fit_there(&from->clock, at);
        node = from->parent;
        from = &profile->nodes[node];
    }
    return at;
}

static bool is_time(int64_t at)
{
    return at >= -TIME_MAX && at <= TIME_MAX;
}

static int check_times(const struct profile *profile, size_t node)
{
    const struct ls_trace_file *const file = &profile->nodes[node].file;
    bool right = is_time(file->now_ns);
    for (size_t i = 0; i < file->n_records && right; i++)
        right = is_time(file->records[i].begin_ns) &&
                is_time(file->records[i].end_ns);
    return right ? LS_OK
                 : ls_error(LS_EPROTO,
                            "the recording of node %" PRIu32
                            " has a time that no clock of this run shows",
                            file->node);
}

static int translate(struct profile *profile)
{
    int status = LS_OK;
    for (size_t i = 1; i < profile->n_nodes && status == LS_OK; i++) {
        struct ls_trace_file *const file = &profile->nodes[i].file;
        for (size_t k = 0; k < file->n_records; k++) {
            struct ls_trace_record *const record = &file->records[k];
            record->begin_ns = on_first_clock(profile, i, record->begin_ns);
            record->end_ns = on_first_clock(profile, i, record->end_ns);
        }
        status = check_times(profile, i);
    }
    return status;
}

/* own: the time by the node's clock. */
static double error_at(const struct profile *profile, size_t node, int64_t at,
                       int64_t *own)
{
    const struct profile_node *const from = &profile->nodes[node];
    *own = at;
    if (!from->aligned)
        return INFINITY;
    if (from->parent == node)
        return 0.0;
    const double error = error_at(profile, from->parent, at, own);
    *own = clock_fit_here(&from->clock, *own);
    return error + clock_fit_error(&from->clock, *own);
}

double profile_error(const struct profile *profile, size_t node, int64_t at)
{
    int64_t own;
    return error_at(profile, node, at, &own);
}

/* ---- reading ------------------------------------------------------------- */

static int compare_nodes(const void *a, const void *b)
{
    const struct profile_node *const p = a, *const q = b;
    return (p->file.node > q->file.node) - (p->file.node < q->file.node);
}

static int check_nodes(const struct profile *profile)
{
    for (size_t i = 1; i < profile->n_nodes; i++) {
        const struct ls_trace_file *const one = &profile->nodes[i - 1].file;
        const struct ls_trace_file *const other = &profile->nodes[i].file;
        if (one->node == other->node)
            return ls_error(LS_EMISMATCH,
                            "there are two recordings of node %" PRIu32,
                            one->node);
        if (strcmp(one->job, other->job) != 0)
            return ls_error(LS_EMISMATCH,
                            "the recordings are of two jobs, %s (node %" PRIu32
                            ") and %s (node %" PRIu32 ")",
                            one->job, one->node, other->job, other->node);
    }
    return LS_OK;
}

int profile_make(struct profile *out, struct ls_trace_file *files, size_t n)
{
    struct profile made = {.n_nodes = n};
    int status = LS_OK;
    if (n == 0)
        return ls_error(LS_ENOENT, "no recordings");
    made.nodes = calloc(n, sizeof *made.nodes);
    for (size_t i = 0; i < n; i++) {
        if (made.nodes != NULL)
            made.nodes[i].file = files[i];
        else
            ls_trace_clear(&files[i]);
        files[i] = (struct ls_trace_file){.n_names = 0};
    }
    if (made.nodes == NULL)
        return ls_error(LS_ENOMEM, "%zu recordings", n);
    qsort(made.nodes, n, sizeof *made.nodes, compare_nodes);
    status = check_nodes(&made);
    for (size_t i = 0; i < n && status == LS_OK; i++) {
        struct ls_trace_file *const file = &made.nodes[i].file;
        status = unite_names(&made, file);
        if (status == LS_OK)
            status = check_times(&made, i);
        if (status == LS_OK)
            qsort(file->records, file->n_records, sizeof *file->records,
                  compare_records);
    }
    if (status == LS_OK)
        status = align(&made);
    if (status == LS_OK)
        status = translate(&made);
    if (status != LS_OK) {
        profile_clear(&made);
        return status;
    }
    *out = made;
    return LS_OK;
}

void profile_clear(struct profile *profile)
{
    for (size_t i = 0; i < profile->n_nodes; i++) {
        struct profile_node *const node = &profile->nodes[i];
        ls_trace_clear(&node->file);
        clock_fit_clear(&node->clock);
    }
    for (size_t i = 0; i < profile->n_names; i++)
        free(profile->names[i]);
    free(profile->names);
    free(profile->nodes);
    *profile = (struct profile){.n_nodes = 0};
}

struct reading {
    const char *folder;
    struct ls_trace_file *files; /* own */
    size_t n;
};

static int read_one(struct ls_trace_file *out, const char *path,
                    const char *name)
{
    char expected[64];
    void *data;
    size_t size;
    int status = ls_file_read(path, FILE_MAX, &data, &size);
    if (status != LS_OK)
        return status;
    status = ls_trace_decode(out, data, size);
    free(data);
    if (status != LS_OK)
        return ls_error_at(status, "%s", path);
    (void)snprintf(expected, sizeof expected, "node-%" PRIu32 PROFILE_SUFFIX,
                   out->node);
    if (strcmp(name, expected) == 0)
        return LS_OK;
    status = ls_error(LS_EMISMATCH, "%s: it is a recording of node %" PRIu32,
                      path, out->node);
    ls_trace_clear(out);
    return status;
}

static int note_file(void *self, const char *name)
{
    struct reading *const reading = self;
    char path[LS_PATH_MAX];
    const size_t length = strlen(name);
    const size_t suffix = strlen(PROFILE_SUFFIX);
    if (length < suffix || strcmp(name + length - suffix, PROFILE_SUFFIX) != 0)
        return LS_OK;
    int status = ls_file_path(path, sizeof path, reading->folder, name);
    if (status != LS_OK)
        return status;
    struct ls_trace_file *const files =
        realloc(reading->files, (reading->n + 1) * sizeof *files);
    if (files == NULL)
        return ls_error(LS_ENOMEM, "no memory for recordings");
    reading->files = files;
    status = read_one(&files[reading->n], path, name);
    reading->n += status == LS_OK;
    return status;
}

int profile_read(struct profile *out, const char *folder)
{
    struct reading reading = {.folder = folder};
    int status = ls_folder_each(folder, note_file, &reading);
    if (status == LS_OK && reading.n == 0)
        status = LS_ENOENT;
    if (status == LS_OK)
        status = profile_make(out, reading.files, reading.n);
    else if (status == LS_ENOENT)
        status = ls_error(status,
                          "%s: there is no recording: lockstep profile makes "
                          "one of a whole run",
                          folder);
    for (size_t i = 0; i < reading.n; i++)
        ls_trace_clear(&reading.files[i]);
    free(reading.files);
    return status;
}
