/* replay_data.h - who still needs which data: references by data_id.
 *
 * An item of the buffer is a user of its data, and so is everyone who was given
 * such an item and has not done with it. Data that has lost its last user waits
 * to be taken, and comes back to life when it is used again before.
 * Thread: serial. */
#ifndef LOCKSTEP_REPLAY_DATA_H
#define LOCKSTEP_REPLAY_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"
#include "safe_name.h"

/* One piece of data. Borrow: while it is used. */
struct replay_datum {
    char id[SAFE_NAME_MAX + 1];
    uint64_t items, lent; /* its users */
    uint64_t size;        /* bytes, as its first user said */
    bool dropped;         /* it is in the list of those */
    struct replay_datum *next_in_bucket, *next_dropped;
};

struct replay_data {
    struct replay_datum **buckets; /* own */
    size_t n_buckets;              /* a power of two */
    struct replay_datum *first_dropped, **last_dropped;
    size_t lent;    /* of all data */
    uint64_t bytes; /* of all that is used */
};

/* Errors: LS_ENOMEM. */
LS_MUST_USE int replay_data_init(struct replay_data *out, size_t n_expected);
void replay_data_fini(struct replay_data *data);

/* One item more uses it. size: bytes. Errors: LS_ENOMEM. */
LS_MUST_USE int replay_data_use(struct replay_data *data, const char *id,
                                uint64_t size, struct replay_datum **out);
void replay_data_unuse(struct replay_data *data, struct replay_datum *datum);

void replay_data_lend(struct replay_data *data, struct replay_datum *datum);
/* Errors: LS_ENOENT it is not lent. */
LS_MUST_USE int replay_data_release(struct replay_data *data, const char *id);

bool replay_data_uses(const struct replay_data *data, const char *id);

/* Nobody uses any of it. Those who hold items must have given them up. */
void replay_data_release_all(struct replay_data *data);

/* Take one that nobody uses; false: there is none. */
bool replay_data_take(struct replay_data *data, char id[SAFE_NAME_MAX + 1]);

#endif
