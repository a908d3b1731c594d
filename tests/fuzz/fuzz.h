/* fuzz.h - what the fuzzers share. */
#ifndef LOCKSTEP_FUZZ_H
#define LOCKSTEP_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed);

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* What must be so; the fuzzer takes anything else for a crash. */
#define must(condition)                                                        \
    ((condition) ? (void)0 : fuzz_failed(#condition, __FILE__, __LINE__))
_Noreturn void fuzz_failed(const char *condition, const char *file, int line);

/* Inputs that are a msgpack value behind `skip` bytes, or values each behind
 * its length in two bytes: change them so that they mostly stay that. As
 * LLVMFuzzerCustomMutator(). */
size_t fuzz_mutate(uint8_t *data, size_t size, size_t max_size, unsigned seed,
                   size_t skip);
size_t fuzz_mutate_frames(uint8_t *data, size_t size, size_t max_size,
                          unsigned seed, size_t skip);

/* A copy with a NUL behind it. own: free() it. */
char *fuzz_text(const uint8_t *data, size_t size);

/* A folder of this process's own, removed at its end, with what is in it. */
const char *fuzz_folder(void);
/* Replace a file in it, open to nobody else. Returns its path; borrow: until
 * the next call. */
const char *fuzz_file(const char *name, const void *data, size_t size);

/* What was written, which must be one value. Borrow: until the writer is used
 * again. */
struct fuzz_bytes {
    const void *data;
    size_t size;
};
struct fuzz_bytes fuzz_written(ls_writer *writer);

/* FUZZ_MESSAGE(NAME, TYPE, READ, WRITE, FINI) makes the function
 *   static void NAME(const uint8_t *data, size_t size)
 * Bytes that are taken for a TYPE are written and read again, and that is
 * written as the same bytes. Bytes that are not leave a sentence. */
#define FUZZ_MESSAGE(name, type, read, write, fini)                            \
    static void name(const uint8_t *data, size_t size)                         \
    {                                                                          \
        static type first, second;                                             \
        memset(&first, 0, sizeof first);                                       \
        memset(&second, 0, sizeof second);                                     \
        ls_error_clear();                                                      \
        if ((read)(&first, data, size) != LS_OK) {                             \
            must(ls_error_text()[0] != '\0');                                  \
            return;                                                            \
        }                                                                      \
        ls_writer *one = NULL, *other = NULL;                                  \
        must(ls_writer_create(&one) == LS_OK);                                 \
        must(ls_writer_create(&other) == LS_OK);                               \
        (write)(&first, one);                                                  \
        const struct fuzz_bytes before = fuzz_written(one);                    \
        must((read)(&second, before.data, before.size) == LS_OK);              \
        (write)(&second, other);                                               \
        const struct fuzz_bytes after = fuzz_written(other);                   \
        must(before.size == after.size &&                                      \
             memcmp(before.data, after.data, after.size) == 0);                \
        (fini)(&first);                                                        \
        (fini)(&second);                                                       \
        ls_writer_destroy(&one);                                               \
        ls_writer_destroy(&other);                                             \
    }

/* FUZZ_RECORD(NAME, TYPE, RECORD): the same of a record (lockstep/record.h). */
#define FUZZ_RECORD(name, type, record)                                        \
    static int name##_read(type *out, const void *data, size_t size)           \
    {                                                                          \
        return ls_record_decode(&(record), out, data, size, NULL);             \
    }                                                                          \
    static void name##_write(const type *in, ls_writer *out)                   \
    {                                                                          \
        char text[64];                                                         \
        must(ls_record_print(&(record), in, text, sizeof text) >=              \
             strlen(text));                                                    \
        ls_record_write(&(record), in, out);                                   \
    }                                                                          \
    static void name##_clear(type *value)                                      \
    {                                                                          \
        ls_record_clear(&(record), value);                                     \
    }                                                                          \
    FUZZ_MESSAGE(name, type, name##_read, name##_write, name##_clear)

/* For a FINI where nothing is owned. */
static inline void fuzz_owns_nothing(const void *value)
{
    (void)value;
}

#endif
