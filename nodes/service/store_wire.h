/* store_wire.h - what the members of a store on the bus say to each other.
 *
 * Values travel as bare bytes in events, so that none is copied to put a head
 * before it; what they are is said in calls, where a value is named by its
 * length and its hash. Two values of equal bytes may stand for each other.
 *
 *   put:  the event "ls.store.put" with the bytes, and the call "store.put":
 *         {name, size, hash, keep, rank, home} → {status}. Either may come
 *         first.
 *   get:  the call "store.get": {names: [...]} → {status, values: [size, hash,
 *         ...]}, and for each name the event "ls.store.data.ID" with its bytes,
 *         to the member ID that asked. Either may come first.
 *   drop: the call "store.drop": {name} → {status}.
 *
 * An answer's status is LS_OK, or why not, with "text". The events' names are
 * those of the framework, for whoever emits them learns from the call that the
 * other was lost, and must not fail for it.
 * Thread: serial. */
#ifndef LOCKSTEP_STORE_WIRE_H
#define LOCKSTEP_STORE_WIRE_H

#include <stdbool.h>

#include "lockstep/codec.h"
#include "store.h"

#define STORE_PUT_EVENT  "ls.store.put"
#define STORE_DATA_EVENT "ls.store.data.%u" /* id of the member that asked */
#define STORE_PUT_CALL   "store.put"
#define STORE_GET_CALL   "store.get"
#define STORE_DROP_CALL  "store.drop"

/* Bytes, by what they are. */
struct store_value {
    uint64_t size, hash; /* XXH3 */
};

struct store_claim {
    char name[SAFE_NAME_MAX + 1];
    struct store_value value;
    bool keep;
    uint64_t rank;
    uint64_t home; /* incarnation of the home that the bytes were sent to */
};

struct store_names {
    size_t n;
    char at[STORE_GET_MAX][SAFE_NAME_MAX + 1];
};

struct store_answer {
    int status;
    char text[256];
    size_t n;
    struct store_value values[STORE_GET_MAX];
};

struct store_value store_value_of(const void *data, size_t size);
bool store_value_equal(struct store_value a, struct store_value b);

/* Each writes one value, and reads one back from a call's data.
 * Errors of reading: LS_EPROTO, which names the field; LS_ENOMEM. */
void store_claim_write(const struct store_claim *claim, ls_writer *out);
LS_MUST_USE int store_claim_read(struct store_claim *out, const void *data,
                                 size_t size);
void store_names_write(const char *const *names, size_t n, ls_writer *out);
LS_MUST_USE int store_names_read(struct store_names *out, const void *data,
                                 size_t size);
void store_drop_write(const char *name, ls_writer *out);
LS_MUST_USE int store_drop_read(char name[SAFE_NAME_MAX + 1], const void *data,
                                size_t size);
void store_answer_write(const struct store_answer *answer, ls_writer *out);
LS_MUST_USE int store_answer_read(struct store_answer *out, const void *data,
                                  size_t size);

#endif
