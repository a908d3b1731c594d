/* payload.h - bytes that several messages share, freed with the last of them.
 * Thread: any. */
#ifndef LOCKSTEP_BUS_PAYLOAD_H
#define LOCKSTEP_BUS_PAYLOAD_H

#include <stddef.h>

struct payload;

/* A payload with one user. release: data is moved, and given back by
 * release(data, hint), also on failure; NULL: data is copied.
 * Errors: LS_ENOMEM. */
int payload_create(struct payload **out, const void *data, size_t size,
                   void (*release)(void *data, void *hint), void *hint);
const void *payload_data(const struct payload *payload);
size_t payload_size(const struct payload *payload);
/* The hint of that release function, or NULL: another releases it. */
void *payload_hint(const struct payload *payload,
                   void (*release)(void *data, void *hint));
/* One more user; returns the payload. */
struct payload *payload_share(struct payload *payload);
/* A user is done with it. */
void payload_drop(struct payload *payload);
/* The same as a release function, its hint the payload. */
void payload_released(void *data, void *hint);

#endif
