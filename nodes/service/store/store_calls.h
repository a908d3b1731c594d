/* store_calls.h - what the nodes of a store on the bus say to each other, as
 * the data of calls to who keeps a value. Values are the bodies.
 *
 *   store.put:  {name, keep, rank}, and the value → an answer
 *   store.get:  {parts: [{name, at, size}, …]} → an answer with the sizes of
 *               the parts, which are the body, one behind the other; of the
 *               first ones, when all are more than STORE_GET_BYTES: the rest is
 *               asked for again
 *   store.drop: {names: […]} → an answer
 *
 * An answer is {status, text, sizes}.
 * Thread: any. */
#ifndef LOCKSTEP_STORE_CALLS_H
#define LOCKSTEP_STORE_CALLS_H

#include <stdbool.h>

#include "lockstep/record.h"
#include "store.h"

#define STORE_PUT_CALL  "store.put"
#define STORE_GET_CALL  "store.get"
#define STORE_DROP_CALL "store.drop"

#define STORE_GET_BYTES ((size_t)32 << 20)

typedef char store_name[SAFE_NAME_MAX + 1];

struct store_put_call {
    store_name name;
    bool keep;
    uint64_t rank;
};

struct store_range {
    store_name name;
    uint64_t at, size; /* as those of a struct store_part */
};

struct store_get_call {
    size_t n;
    struct store_range *parts; /* own when read */
};

struct store_drop_call {
    size_t n;
    store_name *names; /* own when read */
};

struct store_answer {
    int64_t status;
    char text[256];
    size_t n;
    uint64_t sizes[STORE_GET_MAX];
};

/* A call's data, for ls_record_write() and store_call_read(). */
extern const struct ls_record store_put_record, store_get_record,
    store_drop_record, store_answer_record;

/* Errors: LS_EPROTO, which names the field; LS_ENOMEM. */
LS_MUST_USE int store_call_read(const struct ls_record *record, void *out,
                                const void *data, size_t size);

#endif
