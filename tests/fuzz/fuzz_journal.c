/* Any bytes as a journal; or, by the first byte, as records, and damage to the
 * journal of them. A record is there as a whole or not at all, and what is
 * read, added and made anew is what is read later. A file that is refused stays
 * as it is. */
#include "lockstep/journal.h"

#include <unistd.h>

#include "lockstep/file.h"

#include "fuzz.h"

enum { RECORDS_MAX = 16, FILE_MAX = 1 << 20 };

struct records {
    struct ls_journal_record items[RECORDS_MAX]; /* their data: own */
    size_t n;
};

static int keep(void *self, const struct ls_journal_record *record)
{
    struct records *const records = self;
    if (records->n == RECORDS_MAX)
        return ls_error(LS_ELIMIT, "more records than are kept here");
    void *const data = malloc(record->size + 1);
    must(data != NULL);
    if (record->size > 0)
        memcpy(data, record->data, record->size);
    records->items[records->n++] =
        (struct ls_journal_record){data, record->size};
    return LS_OK;
}

static void forget(struct records *records)
{
    for (size_t i = 0; i < records->n; i++)
        free((void *)records->items[i].data);
    records->n = 0;
}

/* The first n of both are the same. */
static void same(const struct records *a, const struct records *b, size_t n)
{
    must(n <= a->n && n <= b->n);
    for (size_t i = 0; i < n; i++) {
        must(a->items[i].size == b->items[i].size);
        must(memcmp(a->items[i].data, b->items[i].data, a->items[i].size) == 0);
    }
}

static int open_journal(ls_journal **out, const char *path,
                        struct records *records)
{
    return ls_journal_open(out, &(struct ls_journal_options){
                                    .path = path, .fn = keep, .self = records});
}

/* What is found at the next opening. */
static void reopen(ls_journal **journal, const char *path,
                   struct records *records)
{
    struct ls_journal_stats stats;
    ls_journal_close(journal);
    forget(records);
    must(open_journal(journal, path, records) == LS_OK);
    ls_journal_stats(*journal, &stats);
    must(stats.torn == 0 && stats.records == records->n);
}

static void go_on(ls_journal **journal, const char *path, struct records *found)
{
    static const struct ls_journal_record added = {"one more", 8};
    struct records later = {.n = 0};
    reopen(journal, path, &later);
    must(later.n == found->n);
    same(found, &later, found->n);
    if (found->n < RECORDS_MAX) {
        must(ls_journal_append(*journal, &added) == LS_OK);
        reopen(journal, path, &later);
        must(later.n == found->n + 1);
        same(found, &later, found->n);
        must(later.items[found->n].size == added.size);
    }
    must(ls_journal_compact(*journal, found->items, found->n) == LS_OK);
    reopen(journal, path, &later);
    must(later.n == found->n);
    same(found, &later, found->n);
    forget(&later);
}

/* written: what the file held before it was damaged; or NULL. */
static void read_file(const char *path, const struct records *written,
                      const void *bytes, size_t size)
{
    ls_journal *journal = NULL;
    struct records found = {.n = 0};
    ls_error_clear();
    const int status = open_journal(&journal, path, &found);
    if (written != NULL)
        same(written, &found, found.n);
    if (status == LS_OK) {
        go_on(&journal, path, &found);
    } else {
        void *left = NULL;
        size_t n = 0;
        must(ls_error_text()[0] != '\0');
        must(ls_file_read(path, FILE_MAX, &left, &n) == LS_OK);
        must(n == size && memcmp(left, bytes, n) == 0);
        free(left);
    }
    forget(&found);
    ls_journal_close(&journal);
}

/* Each record behind its length, in a byte. Returns what is left. */
static size_t write_records(const char *path, struct records *written,
                            const uint8_t *data, size_t size)
{
    ls_journal *journal = NULL;
    (void)unlink(path);
    must(open_journal(&journal, path, written) == LS_OK);
    const uint8_t n = size > 0 ? data[0] % RECORDS_MAX : 0;
    size_t at = size > 0 ? 1 : 0;
    while (written->n < n && at < size) {
        const size_t left = size - at - 1;
        const size_t length = data[at] < left ? data[at] : left;
        const struct ls_journal_record record = {data + at + 1, length};
        must(ls_journal_append(journal, &record) == LS_OK);
        must(keep(written, &record) == LS_OK);
        at += 1 + length;
    }
    ls_journal_close(&journal);
    return size - at;
}

/* Three bytes for each: a place, and what happens there. 0: the file ends. */
static void damage(unsigned char *bytes, size_t *size, const uint8_t *how,
                   size_t n)
{
    for (; n >= 3 && *size > 0; n -= 3, how += 3) {
        const size_t place = ((size_t)how[0] << 8 | how[1]) % *size;
        if (how[2] == 0)
            *size = place;
        else
            bytes[place] ^= how[2];
    }
}

static void damaged(const uint8_t *data, size_t size)
{
    struct records written = {.n = 0};
    void *bytes = NULL;
    size_t n = 0;
    const char *path = fuzz_file("journal", "", 0);
    const size_t left = write_records(path, &written, data, size);
    must(ls_file_read(path, FILE_MAX, &bytes, &n) == LS_OK);
    damage(bytes, &n, data + size - left, left);
    path = fuzz_file("journal", bytes, n);
    read_file(path, &written, bytes, n);
    free(bytes);
    forget(&written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && data[0] == '#')
        damaged(data + 1, size - 1);
    else
        read_file(fuzz_file("journal", data, size), NULL, data, size);
    return 0;
}
