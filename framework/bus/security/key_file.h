/* key_file.h - a key that is of no node yet, in a file: ls_key_create().
 *
 * The file holds the 40 characters of the secret key, and a line's end. What
 * else there is to know follows from it.
 * Thread: any. */
#ifndef LOCKSTEP_BUS_KEY_FILE_H
#define LOCKSTEP_BUS_KEY_FILE_H

#include "certificate.h"

/* Fill in the keys of a certificate from such a file.
 * secret: wipe it after use.
 * Errors: those of ls_key_read(). */
LS_MUST_USE int key_file_read(const char *path, struct certificate *certificate,
                              struct certificate_secret *secret);

#endif
