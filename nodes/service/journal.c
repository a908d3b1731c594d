#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "files.h"

#define UNFINISHED  ".new" /* while it is compacted */
#define MAGIC_SIZE  8
#define VERSION     1
#define HEAD_SIZE   12 /* of the file */
#define RECORD_HEAD 16 /* of a record */

static const unsigned char magic[MAGIC_SIZE] = {'l', 's', 'j',  'r',
                                                'n', 'l', '\r', '\n'};

struct journal {
    char path[FILES_PATH_MAX];
    bool durable;
    bool broken;           /* what stands at the end of the file is not known */
    int fd;                /* own */
    unsigned char *buffer; /* own; for one record with its head */
    size_t capacity;
    struct journal_stats stats;
};

/* Bytes ------------------------------------------------------------------ */

static void put_le(unsigned char *to, uint64_t value, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get_le(const unsigned char *from, int n)
{
    uint64_t value = 0;
    for (int i = 0; i < n; i++)
        value |= (uint64_t)from[i] << (8 * i);
    return value;
}

static void write_head(unsigned char head[HEAD_SIZE])
{
    memcpy(head, magic, MAGIC_SIZE);
    put_le(head + MAGIC_SIZE, VERSION, 4);
}

static uint32_t length_check(const unsigned char *length, uint64_t offset)
{
    return (uint32_t)XXH3_64bits_withSeed(length, 4, offset);
}

/* Write a record that stands at `offset` of the file. */
static void write_record(unsigned char *to, uint64_t offset,
                         const struct journal_record *record)
{
    put_le(to, record->size, 4);
    put_le(to + 4, length_check(to, offset), 4);
    if (record->size > 0)
        memcpy(to + RECORD_HEAD, record->data, record->size);
    put_le(to + 8, XXH3_64bits_withSeed(to + RECORD_HEAD, record->size, offset),
           8);
}

static int reserve(struct journal *journal, size_t size)
{
    if (size <= journal->capacity)
        return LS_OK;
    unsigned char *grown = realloc(journal->buffer, size);
    if (grown == NULL)
        return ls_error(LS_ENOMEM, "the journal %s: a record of %zu bytes",
                        journal->path, size);
    journal->buffer = grown;
    journal->capacity = size;
    return LS_OK;
}

static int check_size(const struct journal *journal,
                      const struct journal_record *record)
{
    return record->size <= JOURNAL_RECORD_MAX
               ? LS_OK
               : ls_error(LS_ELIMIT,
                          "the journal %s: a record of %zu bytes, at most %u "
                          "are allowed",
                          journal->path, record->size, JOURNAL_RECORD_MAX);
}

/* Read ------------------------------------------------------------------- */

static int read_at(const struct journal *journal, unsigned char *to,
                   size_t size, uint64_t offset)
{
    while (size > 0) {
        const ssize_t n = pread(journal->fd, to, size, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return files_error(errno, "reading", journal->path);
        if (n == 0)
            return ls_error(LS_EIO, "reading %s: it was cut short",
                            journal->path);
        to += n;
        size -= (size_t)n;
        offset += (uint64_t)n;
    }
    return LS_OK;
}

static int damaged(const struct journal *journal, uint64_t offset)
{
    return ls_error(LS_EPROTO,
                    "the journal %s is damaged at byte %llu: put a copy in its "
                    "place, or remove it to begin anew",
                    journal->path, (unsigned long long)offset);
}

/* Space that was given to the file and never written reads as zeros. */
static int is_all_zero(struct journal *journal, uint64_t offset, uint64_t end,
                       bool *all_zero)
{
    unsigned char chunk[4096];
    *all_zero = true;
    while (offset < end && *all_zero) {
        const size_t n =
            end - offset < sizeof chunk ? (size_t)(end - offset) : sizeof chunk;
        const int status = read_at(journal, chunk, n, offset);
        if (status != LS_OK)
            return status;
        for (size_t i = 0; i < n && *all_zero; i++)
            *all_zero = chunk[i] == 0;
        offset += n;
    }
    return LS_OK;
}

/* Read the record at `offset` into the buffer. *size is that of its payload;
 * *torn: what is there until `end` was never finished. */
static int read_record(struct journal *journal, uint64_t offset, uint64_t end,
                       size_t *size, bool *torn)
{
    unsigned char head[RECORD_HEAD];
    *torn = end - offset < RECORD_HEAD;
    if (*torn)
        return LS_OK;
    int status = read_at(journal, head, RECORD_HEAD, offset);
    if (status != LS_OK)
        return status;
    *size = (size_t)get_le(head, 4);
    if (get_le(head + 4, 4) != length_check(head, offset) ||
        *size > JOURNAL_RECORD_MAX) {
        status = is_all_zero(journal, offset, end, torn);
        return status == LS_OK && !*torn ? damaged(journal, offset) : status;
    }
    *torn = end - offset - RECORD_HEAD < *size;
    if (*torn)
        return LS_OK;
    status = reserve(journal, *size + 1);
    if (status == LS_OK)
        status = read_at(journal, journal->buffer, *size, offset + RECORD_HEAD);
    if (status != LS_OK || XXH3_64bits_withSeed(journal->buffer, *size,
                                                offset) == get_le(head + 8, 8))
        return status;
    /* The last one may not have reached the disk before its length did. */
    *torn = offset + RECORD_HEAD + *size == end;
    return *torn ? LS_OK : damaged(journal, offset);
}

static int give(const struct journal_options *options,
                const struct journal *journal, uint64_t offset, size_t size)
{
    if (options->fn == NULL)
        return LS_OK;
    const struct journal_record record = {journal->buffer, size};
    const int status = options->fn(options->self, &record);
    return status == LS_OK
               ? LS_OK
               : ls_error_at(status, "the journal %s, byte %llu", journal->path,
                             (unsigned long long)offset);
}

static int cut_off(struct journal *journal, uint64_t end)
{
    if (ftruncate(journal->fd, (off_t)end) < 0)
        return files_error(errno, "cutting the end off", journal->path);
    if (journal->durable && fsync(journal->fd) < 0)
        return files_error(errno, "writing", journal->path);
    return LS_OK;
}

static int read_records(struct journal *journal,
                        const struct journal_options *options, uint64_t end)
{
    uint64_t offset = HEAD_SIZE;
    bool torn = false;
    while (offset < end) {
        size_t size = 0;
        int status = read_record(journal, offset, end, &size, &torn);
        if (status == LS_OK && torn)
            break;
        if (status == LS_OK)
            status = give(options, journal, offset, size);
        if (status != LS_OK)
            return status;
        offset += RECORD_HEAD + size;
        journal->stats.records++;
    }
    journal->stats.bytes = offset;
    journal->stats.torn = end - offset;
    return torn ? cut_off(journal, offset) : LS_OK;
}

/* Open ------------------------------------------------------------------- */

/* The head is the first thing written, so a part of it is all there is when
 * that was interrupted. */
static int begin(struct journal *journal, uint64_t end)
{
    unsigned char head[HEAD_SIZE], found[HEAD_SIZE];
    write_head(head);
    int status = read_at(journal, found, (size_t)end, 0);
    if (status == LS_OK && memcmp(head, found, (size_t)end) != 0)
        status = ls_error(LS_EPROTO, "%s is no journal", journal->path);
    if (status != LS_OK)
        return status;
    const struct files_part part = {head + end, HEAD_SIZE - (size_t)end};
    status = lseek(journal->fd, (off_t)end, SEEK_SET) < 0
                 ? files_error(errno, "writing", journal->path)
                 : files_write(journal->fd, &part, journal->path);
    if (status == LS_OK && journal->durable && fsync(journal->fd) < 0)
        status = files_error(errno, "writing", journal->path);
    if (status == LS_OK && journal->durable)
        status = files_sync_folder_of(journal->path);
    if (status == LS_OK)
        journal->stats =
            (struct journal_stats){.bytes = HEAD_SIZE, .torn = end};
    return status;
}

static int read_file(struct journal *journal,
                     const struct journal_options *options)
{
    struct stat found;
    unsigned char head[HEAD_SIZE];
    if (fstat(journal->fd, &found) < 0)
        return files_error(errno, "reading", journal->path);
    if (!S_ISREG(found.st_mode))
        return ls_error(LS_EIO, "%s is no regular file", journal->path);
    const uint64_t end = (uint64_t)found.st_size;
    if (end < HEAD_SIZE)
        return begin(journal, end);
    const int status = read_at(journal, head, HEAD_SIZE, 0);
    if (status != LS_OK)
        return status;
    if (memcmp(head, magic, MAGIC_SIZE) != 0)
        return ls_error(LS_EPROTO, "%s is no journal", journal->path);
    const uint64_t version = get_le(head + MAGIC_SIZE, 4);
    if (version != VERSION)
        return ls_error(LS_EMISMATCH,
                        "the journal %s is of version %llu, and this program "
                        "reads version %d",
                        journal->path, (unsigned long long)version, VERSION);
    return read_records(journal, options, end);
}

int journal_open(struct journal **out, const struct journal_options *options)
{
    if (strlen(options->path) >= FILES_PATH_MAX)
        return ls_error(LS_ELIMIT, "the journal %.80s… has too long a path",
                        options->path);
    struct journal *journal = calloc(1, sizeof *journal);
    if (journal == NULL)
        return ls_error(LS_ENOMEM, "the journal %s", options->path);
    memcpy(journal->path, options->path, strlen(options->path) + 1);
    journal->durable = options->durable;
    journal->fd = open(journal->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    int status = journal->fd < 0 ? files_error(errno, "opening", journal->path)
                                 : read_file(journal, options);
    if (status == LS_OK)
        status = reserve(journal, RECORD_HEAD);
    if (status != LS_OK) {
        journal_close(&journal);
        return status;
    }
    *out = journal;
    return LS_OK;
}

void journal_close(struct journal **journal)
{
    if (journal == NULL || *journal == NULL)
        return;
    if ((*journal)->fd >= 0)
        (void)close((*journal)->fd);
    free((*journal)->buffer);
    free(*journal);
    *journal = NULL;
}

void journal_stats(const struct journal *journal, struct journal_stats *out)
{
    *out = journal->stats;
}

/* Write ------------------------------------------------------------------ */

/* One write, as far as the system does it in one. */
static int write_at(const struct journal *journal, const unsigned char *from,
                    size_t size, uint64_t offset)
{
    while (size > 0) {
        const ssize_t n = pwrite(journal->fd, from, size, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return files_error(errno, "writing", journal->path);
        from += n;
        size -= (size_t)n;
        offset += (uint64_t)n;
    }
    return LS_OK;
}

int journal_append(struct journal *journal, const struct journal_record *record)
{
    int status = check_size(journal, record);
    if (status == LS_OK && journal->broken)
        status = ls_error(LS_EIO,
                          "writing %s: an earlier write failed; open "
                          "it anew",
                          journal->path);
    const size_t size = RECORD_HEAD + record->size;
    if (status == LS_OK)
        status = reserve(journal, size);
    if (status != LS_OK)
        return status;
    const uint64_t offset = journal->stats.bytes;
    write_record(journal->buffer, offset, record);
    status = write_at(journal, journal->buffer, size, offset);
    if (status != LS_OK) {
        /* What was written of it would stand before the next record. */
        journal->broken = ftruncate(journal->fd, (off_t)offset) < 0;
        return status;
    }
    if (journal->durable && fdatasync(journal->fd) < 0) {
        /* The system may have forgotten the bytes that it could not write: no
         * later sync tells whether they are on disk. */
        journal->broken = true;
        return files_error(errno, "writing", journal->path);
    }
    journal->stats.bytes += size;
    journal->stats.records++;
    return LS_OK;
}

static int write_all(const struct journal *journal,
                     const struct journal_record *records, size_t n,
                     unsigned char **out, size_t *out_size)
{
    size_t size = HEAD_SIZE;
    for (size_t i = 0; i < n; i++) {
        const int status = check_size(journal, &records[i]);
        if (status != LS_OK)
            return status;
        size += RECORD_HEAD + records[i].size;
    }
    unsigned char *bytes = malloc(size);
    if (bytes == NULL)
        return ls_error(LS_ENOMEM, "the journal %s of %zu bytes", journal->path,
                        size);
    write_head(bytes);
    size_t offset = HEAD_SIZE;
    for (size_t i = 0; i < n; i++) {
        write_record(bytes + offset, offset, &records[i]);
        offset += RECORD_HEAD + records[i].size;
    }
    *out = bytes;
    *out_size = size;
    return LS_OK;
}

/* Whether the file that is open is the one that has the name. */
static bool has_name(const struct journal *journal)
{
    struct stat open_one, named;
    return fstat(journal->fd, &open_one) == 0 &&
           stat(journal->path, &named) == 0 &&
           open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

int journal_compact(struct journal *journal,
                    const struct journal_record *records, size_t n)
{
    char temporary[FILES_PATH_MAX + 16];
    unsigned char *bytes = NULL;
    struct files_part part = {NULL, 0};
    int status = write_all(journal, records, n, &bytes, &part.size);
    if (status != LS_OK)
        return status;
    part.data = bytes;
    (void)snprintf(temporary, sizeof temporary, "%s" UNFINISHED, journal->path);
    status = files_replace(journal->path, temporary, &part, 1, true);
    free(bytes);
    int fd = -1;
    if (status == LS_OK) {
        fd = open(journal->path, O_RDWR | O_CLOEXEC);
        if (fd < 0)
            status = files_error(errno, "opening", journal->path);
    }
    if (status != LS_OK) {
        journal->broken = journal->broken || !has_name(journal);
        return status;
    }
    (void)close(journal->fd);
    journal->fd = fd;
    journal->broken = false;
    journal->stats.bytes = part.size;
    journal->stats.records = n;
    return LS_OK;
}

void journal_remove(const char *path)
{
    char temporary[FILES_PATH_MAX + 16];
    (void)snprintf(temporary, sizeof temporary, "%s" UNFINISHED, path);
    (void)unlink(temporary);
    (void)unlink(path);
}
