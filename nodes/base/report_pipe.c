/* Records over a pipe: four bytes of length, little-endian, and the value. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lockstep/runtime.h"

#include "report.h"

#define FRAME_MAX 65536u

struct report_pipe {
    int fd;
    ls_mutex mutex;
    ls_writer *writer; /* own; under mutex */
};

int report_pipe_create(report_pipe **out, int fd)
{
    report_pipe *pipe = calloc(1, sizeof *pipe);
    if (pipe == NULL)
        return ls_error(LS_ENOMEM, "the report pipe");
    pipe->fd = fd;
    int status = ls_writer_create(&pipe->writer);
    if (status == LS_OK)
        status = ls_mutex_init(&pipe->mutex, ls_runtime_threads());
    if (status != LS_OK) {
        ls_writer_destroy(&pipe->writer);
        free(pipe);
        return status;
    }
    *out = pipe;
    return LS_OK;
}

void report_pipe_destroy(report_pipe **pipe)
{
    if (pipe == NULL || *pipe == NULL)
        return;
    ls_mutex_fini(&(*pipe)->mutex);
    ls_writer_destroy(&(*pipe)->writer);
    free(*pipe);
    *pipe = NULL;
}

/* A watcher that has gone does not concern the node: it is told by a signal
 * when it has to end. */
static void write_all(int fd, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        const ssize_t n = write(fd, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        at += n;
        size -= (size_t)n;
    }
}

/* A text that was cut may end with half a character, which is no reason to lose
 * the report. */
static void clean(struct report *report)
{
    for (size_t i = 0; i < report_record.n_fields; i++) {
        const struct ls_field *field = &report_record.fields[i];
        if (field->type != LS_FIELD_CHARS)
            continue;
        char *at = (char *)report + field->offset;
        for (; *at != '\0'; at++)
            if ((unsigned char)*at >= 0x80)
                *at = '?';
    }
}

static int encode(ls_writer *writer, const struct report *report,
                  const void **data, size_t *size)
{
    ls_writer_clear(writer);
    ls_record_write(&report_record, report, writer);
    const int status = ls_writer_bytes(writer, data, size);
    if (status != LS_EINVAL)
        return status;
    struct report cleaned = *report;
    clean(&cleaned);
    ls_writer_clear(writer);
    ls_record_write(&report_record, &cleaned, writer);
    return ls_writer_bytes(writer, data, size);
}

static void put(void *self, const struct report *report)
{
    report_pipe *pipe = self;
    const void *data;
    size_t size;
    ls_mutex_lock(&pipe->mutex);
    if (encode(pipe->writer, report, &data, &size) == LS_OK &&
        size <= FRAME_MAX) {
        const unsigned char length[4] = {
            (unsigned char)size, (unsigned char)(size >> 8),
            (unsigned char)(size >> 16), (unsigned char)(size >> 24)};
        write_all(pipe->fd, length, sizeof length);
        write_all(pipe->fd, data, size);
    }
    ls_mutex_unlock(&pipe->mutex);
}

struct report_sink report_pipe_sink(report_pipe *pipe)
{
    return (struct report_sink){put, pipe};
}

/* Read exactly `size` bytes. Returns how many came before the end, or -1. */
static ssize_t read_all(int fd, void *data, size_t size)
{
    size_t got = 0;
    while (got < size) {
        const ssize_t n = read(fd, (char *)data + got, size - got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        got += (size_t)n;
    }
    return (ssize_t)got;
}

static int drain(int fd, struct report_sink sink, unsigned char *frame)
{
    for (;;) {
        unsigned char length[4];
        ssize_t n = read_all(fd, length, sizeof length);
        if (n < 0)
            return ls_error_from(errno, "reading a report");
        if (n < (ssize_t)sizeof length)
            return LS_OK; /* a writer that was killed may leave a part */
        const size_t size = (size_t)length[0] | (size_t)length[1] << 8 |
                            (size_t)length[2] << 16 | (size_t)length[3] << 24;
        if (size > FRAME_MAX)
            return ls_error(LS_EPROTO, "a report of %zu bytes", size);
        n = read_all(fd, frame, size);
        if (n < 0)
            return ls_error_from(errno, "reading a report");
        if ((size_t)n < size)
            return LS_OK;
        struct report report;
        const int status =
            ls_record_decode(&report_record, &report, frame, size, NULL);
        if (status != LS_OK)
            return status;
        sink.put(sink.self, &report);
    }
}

int report_drain(int fd, struct report_sink sink)
{
    unsigned char *frame = malloc(FRAME_MAX);
    if (frame == NULL)
        return ls_error(LS_ENOMEM, "reading reports");
    const int status = drain(fd, sink, frame);
    free(frame);
    return status;
}
