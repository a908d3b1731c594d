/* One file for all: figures are noted where they are, and meet when all ranks
 * do anyway. */
#include "lockstep/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "driver_inside.h"
#include "lockstep/file.h"
#include "lockstep/log.h"

/* A flush of more goes in several rounds: what one value may be is limited. */
enum { ROUND = 8192 };

struct figure {
    char name[LS_METRIC_NAME_MAX + 1];
    int64_t step;
    double value;
};

struct ls_metrics {
    ls_driver *driver;      /* borrow */
    char *path;             /* own */
    struct figure *figures; /* own */
    size_t n, room;
    ls_writer *writer; /* own; of names that are checked, of rounds, of lines */
    int64_t size;      /* of the file; the blob "metrics" */
};

int ls_metrics_open(ls_metrics **out, ls_driver *driver, const char *path)
{
    *out = NULL;
    ls_metrics *metrics = calloc(1, sizeof *metrics);
    if (metrics == NULL || (metrics->path = strdup(path)) == NULL) {
        free(metrics);
        return ls_error(LS_ENOMEM, "no memory for metrics");
    }
    int status = ls_writer_create(&metrics->writer);
    if (status == LS_OK)
        status = ls_blobs_add(ls_driver_blobs(driver),
                              &(struct ls_blob){.name = "metrics",
                                                .form = {.type = LS_BLOB_I64},
                                                .memory = &metrics->size});
    if (status == LS_OK)
        metrics->driver = driver;
    else
        ls_metrics_close(&metrics);
    *out = metrics;
    return status;
}

void ls_metrics_close(ls_metrics **gone)
{
    ls_metrics *metrics = gone == NULL ? NULL : *gone;
    if (metrics == NULL)
        return;
    *gone = NULL;
    if (metrics->n > 0)
        ls_log_warn("metrics: %zu figures of rank %u are not in %s: they were "
                    "not flushed",
                    metrics->n, ls_driver_rank(metrics->driver), metrics->path);
    if (metrics->driver != NULL)
        (void)ls_blobs_remove(ls_driver_blobs(metrics->driver), "metrics");
    ls_writer_destroy(&metrics->writer);
    free(metrics->figures);
    free(metrics->path);
    free(metrics);
}

/* ---- noting -------------------------------------------------------------- */

static int check_name(ls_metrics *metrics, const char *name)
{
    const void *data;
    size_t size;
    if (name[0] == '\0' || strlen(name) > LS_METRIC_NAME_MAX)
        return ls_error(LS_EINVAL,
                        "metrics: \"%.80s\" is not a name: it has 1 to %d "
                        "bytes",
                        name, LS_METRIC_NAME_MAX);
    ls_writer_clear(metrics->writer);
    ls_write_string(metrics->writer, name);
    return ls_writer_bytes(metrics->writer, &data, &size);
}

int ls_metrics_add(ls_metrics *metrics, const char *name, int64_t step,
                   double value)
{
    const int status = check_name(metrics, name);
    if (status != LS_OK)
        return status;
    if (metrics->n == metrics->room) {
        const size_t room = 2 * metrics->room + 64;
        struct figure *grown = realloc(metrics->figures, room * sizeof *grown);
        if (grown == NULL)
            return ls_error(LS_ENOMEM, "metrics: no memory for %zu figures",
                            room);
        metrics->figures = grown;
        metrics->room = room;
    }
    struct figure *const figure = &metrics->figures[metrics->n++];
    *figure = (struct figure){.step = step, .value = value};
    memcpy(figure->name, name, strlen(name) + 1);
    return LS_OK;
}

/* ---- writing ------------------------------------------------------------- */

struct text {
    char *data; /* own */
    size_t n, room;
};

static int append_line(struct text *text, const ls_value *line)
{
    const size_t n = ls_value_print(line, NULL, 0);
    if (text->n + n + 2 > text->room) {
        const size_t room = 2 * text->room + n + 4096;
        char *grown = realloc(text->data, room);
        if (grown == NULL)
            return ls_error(LS_ENOMEM, "metrics: no memory for lines");
        text->data = grown;
        text->room = room;
    }
    (void)ls_value_print(line, text->data + text->n, n + 1);
    text->n += n;
    text->data[text->n++] = '\n';
    return LS_OK;
}

/* A round is a list of name, step and value, one after the other. */
static int read_figure(const ls_value *round, size_t at, struct figure *out)
{
    const char *name;
    int status = ls_value_string(ls_value_at(round, at), &name);
    if (status == LS_OK && strlen(name) > LS_METRIC_NAME_MAX)
        status = ls_error(LS_EPROTO, "metrics: a name is too long");
    if (status == LS_OK)
        status = ls_value_int(ls_value_at(round, at + 1), &out->step);
    if (status == LS_OK)
        status = ls_value_double(ls_value_at(round, at + 2), &out->value);
    if (status == LS_OK)
        memcpy(out->name, name, strlen(name) + 1);
    return status;
}

static int add_line(ls_metrics *metrics, const struct figure *figure,
                    uint32_t rank, struct text *text)
{
    ls_writer *const out = metrics->writer;
    ls_document *document = NULL;
    const void *data;
    size_t size;
    ls_writer_clear(out);
    ls_write_map(out, 4);
    ls_write_string(out, "step");
    ls_write_int(out, figure->step);
    ls_write_string(out, "rank");
    ls_write_uint(out, rank);
    ls_write_string(out, "name");
    ls_write_string(out, figure->name);
    ls_write_string(out, "value");
    ls_write_double(out, figure->value);
    int status = ls_writer_bytes(out, &data, &size);
    if (status == LS_OK)
        status = ls_document_read(&document, data, size, NULL);
    if (status == LS_OK)
        status = append_line(text, ls_document_root(document));
    ls_document_destroy(&document);
    return status;
}

static int add_lines(ls_metrics *metrics, const ls_value *round, uint32_t rank,
                     struct text *text)
{
    struct figure figure;
    int status = LS_OK;
    for (size_t i = 0; i < ls_value_size(round) && status == LS_OK; i += 3) {
        status = read_figure(round, i, &figure);
        if (status == LS_OK)
            status = add_line(metrics, &figure, rank, text);
    }
    return status;
}

/* The file was moved away, or cut, since the checkpoint was saved: no zeros are
 * put in the place of what is missing. */
static void lose(ls_metrics *metrics, uint64_t size)
{
    ls_log_warn("metrics: %s has %llu bytes, and had %lld when the checkpoint "
                "was saved: figures go on behind what there is",
                metrics->path, (unsigned long long)size,
                (long long)metrics->size);
    metrics->size = (int64_t)size;
}

static int append_to_file(ls_metrics *metrics, const struct text *text)
{
    ls_file *file = NULL;
    uint64_t size = 0;
    int status =
        ls_file_open(&file, metrics->path, LS_FILE_WRITE | LS_FILE_CREATE);
    if (status == LS_ENOENT)
        status = LS_EIO; /* its folder */
    if (status == LS_OK)
        status = ls_file_size(file, &size);
    if (status == LS_OK && size < (uint64_t)metrics->size)
        lose(metrics, size);
    /* Of a training that went on from before; or of another one. */
    if (status == LS_OK && size > (uint64_t)metrics->size)
        status = ls_file_cut(file, (uint64_t)metrics->size);
    if (status == LS_OK && text->n > 0)
        status = ls_file_write_at(file, text->data, text->n,
                                  (uint64_t)metrics->size);
    /* A checkpoint must not say more than there is. */
    if (status == LS_OK)
        status = ls_file_sync(file);
    if (status == LS_OK && metrics->size == 0)
        status = ls_file_sync_name(metrics->path);
    const int closed = ls_file_close(&file);
    return status == LS_OK ? closed : status;
}

/* ---- flushing ------------------------------------------------------------ */

static void write_round(const ls_metrics *metrics, size_t from, size_t n)
{
    ls_writer *const out = metrics->writer;
    ls_writer_clear(out);
    ls_write_array(out, (uint32_t)(3 * n));
    for (size_t i = from; i < from + n; i++) {
        ls_write_string(out, metrics->figures[i].name);
        ls_write_int(out, metrics->figures[i].step);
        ls_write_double(out, metrics->figures[i].value);
    }
}

/* In rank 0; then all know how long the file is. */
static int write_all(ls_metrics *metrics, ls_document *const *all, size_t n)
{
    struct text text = {.data = NULL};
    int status = LS_OK;
    for (size_t i = 0; i < n && status == LS_OK; i++)
        status =
            add_lines(metrics, ls_document_root(all[i]), (uint32_t)i, &text);
    if (status == LS_OK)
        status = append_to_file(metrics, &text);
    if (status == LS_OK)
        metrics->size += (int64_t)text.n;
    free(text.data);
    return status;
}

static int flush_round(ls_metrics *metrics, size_t from, size_t n)
{
    ls_driver *const driver = metrics->driver;
    ls_document **all = calloc(ls_driver_size(driver), sizeof all[0]);
    size_t n_all = 0;
    int status = all != NULL
                     ? LS_OK
                     : ls_error(LS_ENOMEM, "metrics: no memory to flush");
    write_round(metrics, from, n);
    if (status == LS_OK)
        status =
            ls_driver_all_gather_object(driver, metrics->writer, all, &n_all);
    int written = LS_OK;
    if (status == LS_OK && ls_driver_rank(driver) == 0)
        written = write_all(metrics, all, n_all);
    for (size_t i = 0; i < n_all; i++)
        ls_document_destroy(&all[i]);
    free(all);
    return status == LS_OK ? driver_agree(driver, written) : status;
}

int ls_metrics_flush(ls_metrics *metrics)
{
    size_t from = 0;
    bool more = true;
    int status = driver_need_all(metrics->driver);
    if (status != LS_OK)
        return status;
    while (status == LS_OK && more) {
        const size_t left = metrics->n - from;
        const size_t n = left < ROUND ? left : ROUND;
        status = flush_round(metrics, from, n);
        from += n;
        if (status == LS_OK)
            status = ls_driver_any(metrics->driver, from < metrics->n, &more);
    }
    metrics->n = 0;
    return status;
}
