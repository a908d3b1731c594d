/* journal.h - a file that records are added to, for who must know after its
 * death what it had begun.
 *
 * The file: 8 bytes "lsjrnl\r\n", a version (4 bytes), then records: length
 * (4), checksum of the length (4), checksum of the payload (8), payload.
 * Numbers are little-endian; the checksums are XXH3 seeded with the record's
 * place, so that bytes of elsewhere do not pass.
 *
 * A record is there as a whole or not at all: what a killed or powerless writer
 * left unfinished at the end is cut off when the file is opened, and counted.
 * Damage before the end is an error, since what stands behind it cannot be
 * trusted then. One process at a time may have it open; that is the caller's to
 * see to.
 * Thread: serial. */
#ifndef LOCKSTEP_JOURNAL_H
#define LOCKSTEP_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

/* The longest record, in bytes. */
#define JOURNAL_RECORD_MAX (16u << 20)

struct journal;

struct journal_record {
    const void *data;
    size_t size; /* may be 0 */
};

/* Given each record of a journal that is opened, in order. Borrow: until it
 * returns. An error ends the opening. */
typedef int journal_fn(void *self, const struct journal_record *record);

struct journal_options {
    const char *path; /* copied; the file is made when there is none */
    bool durable;     /* an append is on disk when it returns; else it outlives
                       * the process, but not a power cut */
    journal_fn *fn;   /* NULL: records are checked alone */
    void *self;
};

struct journal_stats {
    uint64_t records; /* in the file */
    uint64_t bytes;   /* of the file */
    uint64_t torn;    /* bytes that were cut off when it was opened */
};

/* Open, and read what is there.
 * out:    own; written on success only; give it to journal_close().
 * Errors: LS_EIO, which names the file; LS_EPROTO it is no journal, or damaged:
 *         the text names the offset, and the file is left as it is;
 *         LS_EMISMATCH it is of another version; LS_ELIMIT the path is too
 *         long; LS_ENOMEM; what fn returns, with the offset in the text. */
LS_MUST_USE int journal_open(struct journal **out,
                             const struct journal_options *options);

/* Add one record, in one write.
 * Errors: LS_ELIMIT it is too long; LS_EIO, and nothing was added, unless the
 *         disk could not even tell that: then every later append fails the same
 *         way, and opening anew tells; LS_ENOMEM. */
LS_MUST_USE int journal_append(struct journal *journal,
                               const struct journal_record *record);

/* Make these the only records: a new file takes the place of the old one, on
 * disk, durable or not.
 * Errors: LS_ELIMIT, LS_ENOMEM; LS_EIO: the old records are still there, or the
 *         new ones are, never both or a part. */
LS_MUST_USE int journal_compact(struct journal *journal,
                                const struct journal_record *records, size_t n);

void journal_stats(const struct journal *journal, struct journal_stats *out);

/* NULL and a pointer to NULL are fine. */
void journal_close(struct journal **journal);

/* Remove the file, and what a writer that was killed has left beside it. */
void journal_remove(const char *path);

#endif
