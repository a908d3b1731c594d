/* access.h - which addresses may come in at all.
 *
 * Thread: any. */
#ifndef LOCKSTEP_BUS_ACCESS_H
#define LOCKSTEP_BUS_ACCESS_H

#include <stdbool.h>

#include "lockstep/status.h"

struct access;

/* Errors: LS_ENOMEM. */
LS_MUST_USE int access_create(struct access **out);
void access_destroy(struct access **access);

/* ls_security_allow() and ls_security_deny(). Errors: LS_EINVAL. */
LS_MUST_USE int access_allow(struct access *access, const char *address);
LS_MUST_USE int access_deny(struct access *access, const char *address);

bool access_admits(struct access *access, const char *address);

#endif
