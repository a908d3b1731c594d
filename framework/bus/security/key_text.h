/* key_text.h - keys of 32 bytes as 40 characters of Z85.
 *
 * Each key has one text: libzmq reads no group of five characters that stands
 * for more than 32 bits.
 * Thread: pure functions.
 * Source: RFC 32 (Z85) of rfc.zeromq.org. */
#ifndef LOCKSTEP_BUS_KEY_TEXT_H
#define LOCKSTEP_BUS_KEY_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "lockstep/security.h"

#define KEY_BYTES 32

/* false: the text is not a key. What it was read from and what it is read into
 * may be secret; no copy is left behind. */
bool key_read(const char *text, uint8_t out[KEY_BYTES]);
void key_write(const uint8_t key[KEY_BYTES], char out[LS_PUBLIC_KEY_MAX]);

/* A fresh pair. false: there are no random numbers to be had. */
bool key_make(char public_key[LS_PUBLIC_KEY_MAX],
              char secret_key[LS_PUBLIC_KEY_MAX]);

#endif
