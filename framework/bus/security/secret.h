/* secret.h - secrets of a job, in files.
 *
 * Source: XDG Base Directory Specification 0.8, on XDG_RUNTIME_DIR. */
#ifndef LOCKSTEP_BUS_SECRET_H
#define LOCKSTEP_BUS_SECRET_H

#include "lockstep/security.h"

/* What ls_security_file() and ls_security_job() read, with their errors.
 * out: wipe it after use. */
LS_MUST_USE int secret_read(const char *path, uint8_t out[LS_SECRET_BYTES]);
LS_MUST_USE int secret_of_job(const char *job, uint8_t out[LS_SECRET_BYTES]);

#endif
