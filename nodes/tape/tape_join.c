/* The parts of the nodes become one file. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "lockstep/file.h"

#include "tape_format.h"
#include "written.h"

/* Beside the parts. */
#define OTHER_MAX  (LS_PATH_MAX + 8)
#define HEAD       ".head" /* what is known of the run, while it is recorded */
#define UNFINISHED ".part" /* a recording that is being written */

static const char *beside(char other[OTHER_MAX], const char *path,
                          const char *ending)
{
    (void)snprintf(other, OTHER_MAX, "%s%s", path, ending);
    return other;
}

int tape_part_path(char *path, const char *file, uint32_t id)
{
    const int n = snprintf(path, LS_PATH_MAX, "%s.node-%" PRIu32, file, id);
    return n >= 0 && n < LS_PATH_MAX
               ? LS_OK
               : ls_error(LS_ELIMIT, "%s is too long a path", file);
}

void tape_clean(const char *path, const struct tape_about *about)
{
    char part[LS_PATH_MAX], other[OTHER_MAX];
    (void)ls_file_remove(beside(other, path, HEAD));
    for (size_t i = 0; i < about->n_nodes; i++)
        if (tape_part_path(part, path, about->nodes[i].id) == LS_OK)
            (void)ls_file_remove(part);
}

uint64_t tape_hash_file(const char *path)
{
    void *data;
    size_t size;
    if (ls_file_read(path, SIZE_MAX, &data, &size) != LS_OK)
        return 0;
    const uint64_t hash = XXH3_64bits(data, size);
    free(data);
    return hash;
}

/* out: own; NULL: there is none. A part that was broken off ends with its last
 * whole record. */
static int read_part(const char *path, struct tape_node *node, void **out)
{
    char part[LS_PATH_MAX];
    void *data = NULL;
    size_t size = 0;
    struct tape_head head;
    uint64_t length;
    *out = NULL;
    node->bytes = 0;
    node->whole = false;
    int status = tape_part_path(part, path, node->id);
    if (status == LS_OK)
        status = ls_file_read(part, SIZE_MAX, &data, &size);
    if (status == LS_ENOENT)
        return LS_OK; /* it never began */
    if (status != LS_OK)
        return status;
    while (!node->whole &&
           tape_head_read(&head, (unsigned char *)data + node->bytes,
                          size - node->bytes, &length)) {
        node->bytes += length;
        node->whole = head.kind == TAPE_END;
    }
    *out = data;
    return LS_OK;
}

struct sink {
    ls_file *file; /* own */
    uint64_t at;
    XXH3_state_t *hash; /* own */
};

static int put(struct sink *to, const void *data, size_t size)
{
    const int status = ls_file_write_at(to->file, data, size, to->at);
    if (size > 0)
        XXH3_64bits_update(to->hash, data, size);
    to->at += size;
    return status;
}

static int put_header(struct sink *to, size_t map_size)
{
    unsigned char header[TAPE_HEADER];
    memcpy(header, TAPE_MAGIC, TAPE_MAGIC_SIZE);
    tape_put32(header + 8, TAPE_VERSION);
    tape_put32(header + 12, (uint32_t)map_size);
    tape_put64(header + 16, to->at);
    tape_put64(header + 24, XXH3_64bits_digest(to->hash));
    return ls_file_write_at(to->file, header, sizeof header, 0);
}

static int put_all(struct sink *to, const char *path, struct tape_about *about,
                   ls_writer *writer)
{
    const void *map = NULL;
    size_t map_size = 0;
    void *data;
    ls_record_write(&tape_about_record, about, writer);
    int status = ls_writer_bytes(writer, &map, &map_size);
    to->at = TAPE_HEADER;
    XXH3_64bits_reset(to->hash);
    if (status == LS_OK)
        status = put(to, map, map_size);
    for (size_t i = 0; i < about->n_nodes && status == LS_OK; i++) {
        status = read_part(path, &about->nodes[i], &data);
        if (status == LS_OK)
            status = put(to, data, (size_t)about->nodes[i].bytes);
        free(data);
    }
    return status == LS_OK ? put_header(to, map_size) : status;
}

/* What could not be written whole only takes room on a disk that may be full.
 */
static int write_file(struct sink *to, const char *path, const char *file,
                      struct tape_about *about, ls_writer *writer)
{
    char temporary[OTHER_MAX];
    int status = ls_file_open(&to->file, beside(temporary, path, UNFINISHED),
                              LS_FILE_WRITE | LS_FILE_CREATE | LS_FILE_EMPTY);
    if (status != LS_OK)
        return status;
    status = put_all(to, path, about, writer);
    const int closed = ls_file_close(&to->file);
    if (status == LS_OK)
        status = closed;
    if (status == LS_OK)
        status = ls_file_rename(temporary, file);
    if (status != LS_OK) {
        struct ls_failure why;
        ls_failure_keep(&why, status);
        (void)ls_file_remove(temporary);
        return ls_failure_return(&why);
    }
    return LS_OK;
}

/* Of the first bytes of a file: */
typedef bool looks(const void *self, const unsigned char *begin, size_t size);

static bool looks_recorded(const void *self, const unsigned char *begin,
                           size_t size)
{
    (void)self;
    return size >= TAPE_MAGIC_SIZE &&
           memcmp(begin, TAPE_MAGIC, TAPE_MAGIC_SIZE) == 0;
}

/* The header is written last. */
static bool looks_unfinished(const void *self, const unsigned char *begin,
                             size_t size)
{
    static const unsigned char hole[TAPE_HEAD];
    return memcmp(begin, hole, size < TAPE_HEAD ? size : TAPE_HEAD) == 0 ||
           looks_recorded(self, begin, size);
}

static bool looks_of_node(const void *self, const unsigned char *begin,
                          size_t size)
{
    (void)self;
    return begin[0] >= TAPE_EMITS && begin[0] <= TAPE_END &&
           (size == 1 || begin[1] == 0);
}

static int check_replaced(ls_file *file, const char *path, looks *ours)
{
    return written_check_open(file, path, "a recording", ours, NULL);
}

int tape_claim(ls_file **out, const char *path)
{
    ls_file *file = NULL;
    int status = ls_file_open(&file, path, LS_FILE_WRITE | LS_FILE_CREATE);
    if (status == LS_OK)
        status = check_replaced(file, path, looks_recorded);
    if (status == LS_OK && (status = ls_file_lock(file, false)) == LS_EAGAIN)
        status = ls_error(LS_EAGAIN,
                          "%s: another run is being recorded there: wait for "
                          "its end, or name another file",
                          path);
    if (status != LS_OK) {
        struct ls_failure why;
        ls_failure_keep(&why, status);
        (void)ls_file_close(&file);
        return ls_failure_return(&why);
    }
    *out = file;
    return LS_OK;
}

/* Into `file`: what is known of the run, and what there is of its parts. */
static int write_tape(const char *path, const char *file,
                      struct tape_about *about)
{
    struct sink to = {.hash = XXH3_createState()};
    ls_writer *writer = NULL;
    int status = to.hash == NULL ? ls_error(LS_ENOMEM, "a recording")
                                 : ls_writer_create(&writer);
    if (status == LS_OK)
        status = write_file(&to, path, file, about, writer);
    ls_writer_destroy(&writer);
    XXH3_freeState(to.hash);
    return status;
}

/* What may be there before a run: nothing, or what an earlier one has left. */
static int check_left(const char *path, looks *ours)
{
    ls_file *file = NULL;
    int status = ls_file_open(&file, path, 0);
    if (status == LS_OK)
        status = check_replaced(file, path, ours);
    (void)ls_file_close(&file); /* nothing was written */
    return status == LS_ENOENT ? LS_OK : status;
}

static int check_beside(const char *path, const struct tape_about *about)
{
    char other[OTHER_MAX];
    int status = check_left(beside(other, path, HEAD), looks_recorded);
    if (status == LS_OK)
        status = check_left(beside(other, path, UNFINISHED), looks_unfinished);
    for (size_t i = 0; i < about->n_nodes && status == LS_OK; i++) {
        status = tape_part_path(other, path, about->nodes[i].id);
        if (status == LS_OK)
            status = check_left(other, looks_of_node);
    }
    return status;
}

/* The earlier run may have had other nodes. */
static void clean_left(const char *path, const char *head)
{
    struct tape *left;
    if (tape_open(&left, head) != LS_OK)
        return;
    tape_clean(path, tape_about(left));
    tape_close(&left);
}

int tape_begin(const char *path, struct tape_about *about)
{
    char head[OTHER_MAX];
    const int status = check_beside(path, about);
    if (status != LS_OK)
        return status;
    clean_left(path, beside(head, path, HEAD));
    tape_clean(path, about);
    return write_tape(path, head, about);
}

int tape_join(const char *path, struct tape_about *about)
{
    void *data;
    int status = LS_OK;
    for (size_t i = 0; i < about->n_nodes && status == LS_OK; i++) {
        status = read_part(path, &about->nodes[i], &data);
        free(data);
    }
    if (status == LS_OK)
        status = write_tape(path, path, about);
    if (status == LS_OK)
        tape_clean(path, about);
    return status;
}

static int join_left(const char *path, const char *head)
{
    struct tape *begun;
    const int status = tape_open(&begun, head);
    if (status != LS_OK)
        return status;
    struct tape_about about = *tape_about(begun);
    about.done = false;
    const int joined = tape_join(path, &about);
    tape_close(&begun);
    return joined;
}

int tape_join_left(const char *path)
{
    char head[OTHER_MAX];
    ls_file *claim;
    if (!ls_file_exists(beside(head, path, HEAD)))
        return ls_error(LS_ENOENT, "%s: there is no such file", head);
    const int status = tape_claim(&claim, path);
    if (status != LS_OK)
        return status;
    const int joined = join_left(path, head);
    (void)ls_file_close(&claim);
    return joined;
}
