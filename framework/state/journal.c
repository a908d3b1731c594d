#include "lockstep/journal.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "lockstep/file.h"

#define UNFINISHED  ".new" /* while it is compacted */
#define MAGIC_SIZE  8
#define VERSION     2
#define HEAD_SIZE   12 /* of the file */
#define RECORD_HEAD 24 /* of a record */

static const unsigned char magic[MAGIC_SIZE] = {'l', 's', 'j',  'r',
                                                'n', 'l', '\r', '\n'};

struct ls_journal {
    char path[LS_PATH_MAX];
    bool broken;           /* what stands at the end of the file is not known */
    ls_file *file;         /* own */
    uint64_t flushed;      /* so much of it is on disk */
    unsigned char *buffer; /* own; for one record with its head */
    size_t capacity;
    struct ls_journal_stats stats;
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

/* The head of a record, as it is read. */
struct record_head {
    size_t size; /* of the payload */
    uint64_t flushed;
    uint64_t payload_check;
};

static uint32_t head_check(const unsigned char *head, uint64_t offset)
{
    unsigned char checked[12];
    memcpy(checked, head, 4);
    memcpy(checked + 4, head + 8, 8);
    return (uint32_t)XXH3_64bits_withSeed(checked, sizeof checked, offset);
}

/* Write a record that stands at `offset` of the file. */
static void write_record(unsigned char *to, uint64_t offset, uint64_t flushed,
                         const struct ls_journal_record *record)
{
    put_le(to, record->size, 4);
    put_le(to + 8, flushed, 8);
    put_le(to + 4, head_check(to, offset), 4);
    if (record->size > 0)
        memcpy(to + RECORD_HEAD, record->data, record->size);
    put_le(to + 16,
           XXH3_64bits_withSeed(to + RECORD_HEAD, record->size, offset), 8);
}

static bool read_head(const unsigned char *from, uint64_t offset,
                      struct record_head *out)
{
    out->size = (size_t)get_le(from, 4);
    out->flushed = get_le(from + 8, 8);
    out->payload_check = get_le(from + 16, 8);
    return get_le(from + 4, 4) == head_check(from, offset) &&
           out->size <= LS_JOURNAL_RECORD_MAX;
}

static int reserve(ls_journal *journal, size_t size)
{
    if (size <= journal->capacity)
        return LS_OK;
    unsigned char *grown = realloc(journal->buffer, size);
    if (grown == NULL)
        return ls_error(LS_ENOMEM, "the journal %s: %zu bytes of it",
                        journal->path, size);
    journal->buffer = grown;
    journal->capacity = size;
    return LS_OK;
}

static int check_size(const ls_journal *journal,
                      const struct ls_journal_record *record)
{
    return record->size <= LS_JOURNAL_RECORD_MAX
               ? LS_OK
               : ls_error(LS_ELIMIT,
                          "the journal %s: a record of %zu bytes, at most %u "
                          "are allowed",
                          journal->path, record->size, LS_JOURNAL_RECORD_MAX);
}

/* Read ------------------------------------------------------------------- */

static int damaged(const ls_journal *journal, uint64_t offset)
{
    return ls_error(LS_EPROTO,
                    "the journal %s is damaged at byte %llu: put a copy in its "
                    "place, or remove it to begin anew",
                    journal->path, (unsigned long long)offset);
}

/* What is at `offset` is not a record. A disk that lost power may have kept any
 * part of what was not flushed, so records may stand behind it: only one that
 * was added when this one was on disk tells that it is damaged. */
static int look_behind(ls_journal *journal, uint64_t offset, uint64_t end)
{
    const size_t size = (size_t)(end - offset);
    struct record_head head;
    int status = reserve(journal, size);
    if (status == LS_OK)
        status = ls_file_read_at(journal->file, journal->buffer, size, offset);
    for (size_t at = 1; at + RECORD_HEAD <= size && status == LS_OK; at++) {
        const unsigned char *from = journal->buffer + at;
        if (read_head(from, offset + at, &head) && head.flushed > offset &&
            head.size <= size - at - RECORD_HEAD &&
            XXH3_64bits_withSeed(from + RECORD_HEAD, head.size, offset + at) ==
                head.payload_check)
            status = damaged(journal, offset);
    }
    return status;
}

/* Read the record at `offset` into the buffer. *size is that of its payload;
 * *torn: what is there until `end` was never finished. */
static int read_record(ls_journal *journal, uint64_t offset, uint64_t end,
                       size_t *size, bool *torn)
{
    unsigned char bytes[RECORD_HEAD];
    struct record_head head = {.size = 0};
    int status = LS_OK;
    bool good = end - offset >= RECORD_HEAD;
    if (good)
        status = ls_file_read_at(journal->file, bytes, RECORD_HEAD, offset);
    good = good && status == LS_OK && read_head(bytes, offset, &head) &&
           head.size <= end - offset - RECORD_HEAD;
    if (good)
        status = reserve(journal, head.size + 1);
    if (good && status == LS_OK)
        status = ls_file_read_at(journal->file, journal->buffer, head.size,
                                 offset + RECORD_HEAD);
    if (status != LS_OK)
        return status;
    *size = head.size;
    *torn = !good || XXH3_64bits_withSeed(journal->buffer, head.size, offset) !=
                         head.payload_check;
    return *torn ? look_behind(journal, offset, end) : LS_OK;
}

static int give(const struct ls_journal_options *options,
                const ls_journal *journal, uint64_t offset, size_t size)
{
    if (options->fn == NULL)
        return LS_OK;
    const struct ls_journal_record record = {journal->buffer, size};
    const int status = options->fn(options->self, &record);
    return status == LS_OK
               ? LS_OK
               : ls_error_at(status, "the journal %s, byte %llu", journal->path,
                             (unsigned long long)offset);
}

static int read_records(ls_journal *journal,
                        const struct ls_journal_options *options, uint64_t end)
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
    return torn ? ls_file_cut(journal->file, offset) : LS_OK;
}

/* Open ------------------------------------------------------------------- */

/* The head is the first thing written, so a part of it is all there is when
 * that was interrupted. */
static int begin(ls_journal *journal, uint64_t end)
{
    unsigned char head[HEAD_SIZE], found[HEAD_SIZE];
    write_head(head);
    int status = ls_file_read_at(journal->file, found, (size_t)end, 0);
    if (status == LS_OK && memcmp(head, found, (size_t)end) != 0)
        status = ls_error(LS_EPROTO, "%s is not a journal", journal->path);
    if (status == LS_OK)
        status = ls_file_write_at(journal->file, head + end,
                                  HEAD_SIZE - (size_t)end, end);
    if (status == LS_OK)
        journal->stats =
            (struct ls_journal_stats){.bytes = HEAD_SIZE, .torn = end};
    return status;
}

static int read_file(ls_journal *journal,
                     const struct ls_journal_options *options)
{
    unsigned char head[HEAD_SIZE];
    uint64_t end;
    int status = ls_file_size(journal->file, &end);
    if (status == LS_OK && end < HEAD_SIZE)
        return begin(journal, end);
    if (status == LS_OK)
        status = ls_file_read_at(journal->file, head, HEAD_SIZE, 0);
    if (status != LS_OK)
        return status;
    if (memcmp(head, magic, MAGIC_SIZE) != 0)
        return ls_error(LS_EPROTO, "%s is not a journal", journal->path);
    const uint64_t version = get_le(head + MAGIC_SIZE, 4);
    if (version != VERSION)
        return ls_error(LS_EMISMATCH,
                        "the journal %s is of version %llu, and this program "
                        "reads version %d",
                        journal->path, (unsigned long long)version, VERSION);
    return read_records(journal, options, end);
}

static int sync_file(ls_journal *journal)
{
    journal->stats.syncs++;
    const int status = ls_file_sync(journal->file);
    if (status == LS_OK)
        journal->flushed = journal->stats.bytes;
    return status;
}

int ls_journal_open(ls_journal **out, const struct ls_journal_options *options)
{
    *out = NULL;
    if (strlen(options->path) + strlen(UNFINISHED) >= LS_PATH_MAX)
        return ls_error(LS_ELIMIT, "the journal %.80s… has too long a path",
                        options->path);
    ls_journal *journal = calloc(1, sizeof *journal);
    if (journal == NULL)
        return ls_error(LS_ENOMEM, "the journal %s", options->path);
    memcpy(journal->path, options->path, strlen(options->path) + 1);
    int status = ls_file_open(&journal->file, journal->path,
                              LS_FILE_WRITE | LS_FILE_CREATE);
    if (status == LS_ENOENT) /* a folder above it */
        status = ls_error_at(LS_EIO, "opening the journal");
    if (status == LS_OK)
        status = read_file(journal, options);
    if (status == LS_OK)
        status = reserve(journal, RECORD_HEAD);
    /* A writer that was killed may not have come to it, and what is read here
     * is acted upon. */
    if (status == LS_OK)
        status = sync_file(journal);
    if (status == LS_OK)
        status = ls_file_sync_name(journal->path);
    if (status != LS_OK) {
        ls_journal_close(&journal);
        return status;
    }
    *out = journal;
    return LS_OK;
}

void ls_journal_close(ls_journal **journal)
{
    if (journal == NULL || *journal == NULL)
        return;
    (void)ls_file_close(&(*journal)->file); /* a flush has told */
    free((*journal)->buffer);
    free(*journal);
    *journal = NULL;
}

void ls_journal_stats(const ls_journal *journal, struct ls_journal_stats *out)
{
    *out = journal->stats;
}

/* Write ------------------------------------------------------------------ */

static int check_broken(const ls_journal *journal)
{
    return journal->broken
               ? ls_error(LS_EIO,
                          "writing %s: an earlier write failed; open it anew",
                          journal->path)
               : LS_OK;
}

int ls_journal_append(ls_journal *journal,
                      const struct ls_journal_record *record)
{
    const size_t size = RECORD_HEAD + record->size;
    const uint64_t offset = journal->stats.bytes;
    int status = check_size(journal, record);
    if (status == LS_OK)
        status = check_broken(journal);
    if (status == LS_OK)
        status = reserve(journal, size);
    if (status != LS_OK)
        return status;
    write_record(journal->buffer, offset, journal->flushed, record);
    status = ls_file_write_at(journal->file, journal->buffer, size, offset);
    if (status != LS_OK) {
        /* What was written of it would stand before the next record. */
        char text[LS_ERROR_TEXT_MAX];
        (void)snprintf(text, sizeof text, "%s", ls_error_text());
        journal->broken = ls_file_cut(journal->file, offset) != LS_OK;
        return ls_error(status, "%s", text);
    }
    journal->stats.bytes += size;
    journal->stats.records++;
    return LS_OK;
}

int ls_journal_flush(ls_journal *journal)
{
    int status = check_broken(journal);
    if (status == LS_OK && journal->flushed < journal->stats.bytes) {
        status = sync_file(journal);
        journal->broken = status != LS_OK;
    }
    return status;
}

/* It takes its name when all of it is on disk, so its records say that. */
static int write_all(const ls_journal *journal,
                     const struct ls_journal_record *records, size_t n,
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
        write_record(bytes + offset, offset, size, &records[i]);
        offset += RECORD_HEAD + records[i].size;
    }
    *out = bytes;
    *out_size = size;
    return LS_OK;
}

int ls_journal_compact(ls_journal *journal,
                       const struct ls_journal_record *records, size_t n)
{
    char temporary[LS_PATH_MAX + 16];
    unsigned char *bytes = NULL;
    struct ls_file_part part = {NULL, 0};
    int status = write_all(journal, records, n, &bytes, &part.size);
    if (status != LS_OK)
        return status;
    part.data = bytes;
    (void)snprintf(temporary, sizeof temporary, "%s" UNFINISHED, journal->path);
    status = ls_file_replace(journal->path, temporary, &part, 1, true);
    free(bytes);
    ls_file *file = NULL;
    if (status == LS_OK)
        status = ls_file_open(&file, journal->path, LS_FILE_WRITE);
    if (status != LS_OK) {
        journal->broken = journal->broken || !ls_file_is_named(journal->file);
        return status == LS_ENOENT ? LS_EIO : status;
    }
    (void)ls_file_close(&journal->file);
    journal->file = file;
    journal->broken = false;
    journal->flushed = part.size;
    journal->stats.bytes = part.size;
    journal->stats.records = n;
    return LS_OK;
}

void ls_journal_remove(const char *path)
{
    char temporary[LS_PATH_MAX + 16];
    (void)snprintf(temporary, sizeof temporary, "%s" UNFINISHED, path);
    (void)ls_file_remove(temporary);
    (void)ls_file_remove(path);
}
