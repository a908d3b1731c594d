/* store_calls.h - what the members of a store on the bus say to each other, as
 * the data of calls to its home. Values are the bodies.
 *
 *   put:  [name, keep, rank], and the value → an answer
 *   get:  [name, ...] → an answer with the sizes of the values, which are the
 *         body, one behind the other; of the first ones, when all are more than
 *         STORE_GET_BYTES: the rest is asked for again
 *   drop: [name] → an answer
 *
 * An answer is [status, text], or [0, size, ...].
 * Thread: serial. */
#ifndef LOCKSTEP_STORE_CALLS_H
#define LOCKSTEP_STORE_CALLS_H

#include <stdbool.h>

#include "lockstep/codec.h"
#include "store.h"

#define STORE_PUT_CALL  "store.put"
#define STORE_GET_CALL  "store.get"
#define STORE_DROP_CALL "store.drop"

#define STORE_GET_BYTES ((size_t)32 << 20)

struct store_put_call {
    char name[SAFE_NAME_MAX + 1];
    bool keep;
    uint64_t rank;
};

struct store_names {
    size_t n;
    char at[STORE_GET_MAX][SAFE_NAME_MAX + 1];
};

struct store_answer {
    int status;
    char text[256];
    size_t n;
    uint64_t sizes[STORE_GET_MAX];
};

/* Each writes one value, and reads one back from a call's data.
 * Errors of reading: LS_EPROTO, which names the field; LS_ENOMEM. */
void store_put_write(const struct store_put_call *put, ls_writer *out);
LS_MUST_USE int store_put_read(struct store_put_call *out, const void *data,
                               size_t size);
void store_names_write(const char *const *names, size_t n, ls_writer *out);
LS_MUST_USE int store_names_read(struct store_names *out, const void *data,
                                 size_t size);
void store_answer_write(const struct store_answer *answer, ls_writer *out);
LS_MUST_USE int store_answer_read(struct store_answer *out, const void *data,
                                  size_t size);

#endif
