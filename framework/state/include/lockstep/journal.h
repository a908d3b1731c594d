/* journal.h - an append-only file of records, for programs that must know after
 * a crash what they had begun.
 *
 * A record is there as a whole or not at all. Appended records survive the
 * process; flushed records also survive a loss of power. When the file is
 * opened, an unfinished end that a killed writer or a loss of power left is cut
 * off, and counted. Damage in a part that was flushed before a later record was
 * appended is an error, since nothing after it can be trusted. Only one process
 * at a time may have it open; the caller must ensure that.
 *
 * The file: 8 bytes "lsjrnl\r\n", a version (4 bytes), then records: length
 * (4), checksum of the length and the next field (4), how much of the file was
 * on disk when it was added (8), checksum of the payload (8), payload. Numbers
 * are little-endian; the checksums are XXH3 seeded with the record's offset, so
 * that bytes from elsewhere do not pass.
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

/* Called with each record of a journal that is being opened, in order. Borrow:
 * until it returns. An error makes the open fail. */
typedef int ls_journal_fn(void *self, const struct ls_journal_record *record);

struct ls_journal_options {
    const char *path;  /* copied; the file is created if it does not exist */
    ls_journal_fn *fn; /* NULL: records are only checked */
    void *self;
};

struct ls_journal_stats {
    uint64_t records; /* in the file */
    uint64_t bytes;   /* of the file */
    uint64_t torn;    /* bytes cut off when it was opened */
    uint64_t syncs;   /* of the file, since it was opened */
};

/* Open, and read all records; they and the name of the file are on disk when
 * this returns.
 * out:    own; NULL after an error; give it to ls_journal_close().
 * Errors: LS_EIO, which names the file; LS_EPROTO it is not a journal, or
 *         damaged: the text names the offset, and the file is unchanged;
 *         LS_EMISMATCH it has another version; LS_ELIMIT the path is too
 *         long; LS_ENOMEM; what fn returns, with the offset in the text. */
LS_MUST_USE LS_API int
ls_journal_open(ls_journal **out, const struct ls_journal_options *options);

/* Append one record, in one write.
 * Errors: LS_ELIMIT it is too long; LS_EIO nothing was appended, unless the
 *         disk could not tell: then every later append fails in the same way,
 *         and opening the file again shows it; LS_ENOMEM. */
LS_MUST_USE LS_API int
ls_journal_append(ls_journal *journal, const struct ls_journal_record *record);

/* Put all appended records on disk; free if there is nothing to do. A flush
 * costs as much for many records as for one.
 * Errors: LS_EIO: it is unknown which of them are on disk, and every later
 *         append fails. */
LS_MUST_USE LS_API int ls_journal_flush(ls_journal *journal);

/* Make these the only records: a new file, on disk, replaces the old one. Then
 * the journal is whole again, whatever failed before.
 * Errors: LS_ELIMIT, LS_ENOMEM; LS_EIO: the file has either the old records or
 *         the new ones, never both and never a part. */
LS_MUST_USE LS_API int
ls_journal_compact(ls_journal *journal, const struct ls_journal_record *records,
                   size_t n);

LS_API void ls_journal_stats(const ls_journal *journal,
                             struct ls_journal_stats *out);

/* Does not flush. NULL and a pointer to NULL are fine. */
LS_API void ls_journal_close(ls_journal **journal);

/* Remove the file, and anything that a killed writer left beside it. */
LS_API void ls_journal_remove(const char *path);

#ifdef __cplusplus
}
#endif

#endif
