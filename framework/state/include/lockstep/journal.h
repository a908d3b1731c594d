/* journal.h - a file that records are added to, for who must know after its
 * death what it had begun.
 *
 * A record is there as a whole or not at all. What was added outlives its
 * process; what was flushed outlives a loss of power as well. What a killed or
 * powerless writer left unfinished at the end is cut off when the file is
 * opened, and counted. Damage in what was flushed before a later record came is
 * an error, since what stands behind it cannot be trusted then. One process at
 * a time may have it open; that is the caller's to see to.
 *
 * The file: 8 bytes "lsjrnl\r\n", a version (4 bytes), then records: length
 * (4), checksum of the length and the next field (4), how much of the file was
 * on disk when it was added (8), checksum of the payload (8), payload. Numbers
 * are little-endian; the checksums are XXH3 seeded with the record's place, so
 * that bytes of elsewhere do not pass.
 * Thread: serial. */
#ifndef LOCKSTEP_JOURNAL_H
#define LOCKSTEP_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The longest record, in bytes. */
#define LS_JOURNAL_RECORD_MAX (16u << 20)

typedef struct ls_journal ls_journal;

struct ls_journal_record {
    const void *data;
    size_t size; /* may be 0 */
};

/* Given each record of a journal that is opened, in order. Borrow: until it
 * returns. An error ends the opening. */
typedef int ls_journal_fn(void *self, const struct ls_journal_record *record);

struct ls_journal_options {
    const char *path;  /* copied; the file is made when there is none */
    ls_journal_fn *fn; /* NULL: records are checked alone */
    void *self;
};

struct ls_journal_stats {
    uint64_t records; /* in the file */
    uint64_t bytes;   /* of the file */
    uint64_t torn;    /* bytes that were cut off when it was opened */
    uint64_t syncs;   /* of the file, since it was opened */
};

/* Open, and read what is there; all of that is on disk when this returns, and
 * the name of the file too.
 * out:    own; NULL after an error; give it to ls_journal_close().
 * Errors: LS_EIO, which names the file; LS_EPROTO it is no journal, or damaged:
 *         the text names the offset, and the file is left as it is;
 *         LS_EMISMATCH it is of another version; LS_ELIMIT the path is too
 *         long; LS_ENOMEM; what fn returns, with the offset in the text. */
LS_MUST_USE LS_API int
ls_journal_open(ls_journal **out, const struct ls_journal_options *options);

/* Add one record, in one write.
 * Errors: LS_ELIMIT it is too long; LS_EIO, and nothing was added, unless the
 *         disk could not even tell that: then every later append fails the same
 *         way, and opening anew tells; LS_ENOMEM. */
LS_MUST_USE LS_API int
ls_journal_append(ls_journal *journal, const struct ls_journal_record *record);

/* Have on disk what was added; nothing to do is free. One flush for many
 * records costs what it costs for one.
 * Errors: LS_EIO: which of them are on disk is not known, and every later
 *         append fails. */
LS_MUST_USE LS_API int ls_journal_flush(ls_journal *journal);

/* Make these the only records: a new file takes the place of the old one, on
 * disk.
 * Errors: LS_ELIMIT, LS_ENOMEM; LS_EIO: the old records are still there, or the
 *         new ones are, never both or a part. */
LS_MUST_USE LS_API int
ls_journal_compact(ls_journal *journal, const struct ls_journal_record *records,
                   size_t n);

LS_API void ls_journal_stats(const ls_journal *journal,
                             struct ls_journal_stats *out);

/* Flushes nothing. NULL and a pointer to NULL are fine. */
LS_API void ls_journal_close(ls_journal **journal);

/* Remove the file, and what a writer that was killed has left beside it. */
LS_API void ls_journal_remove(const char *path);

#ifdef __cplusplus
}
#endif

#endif
