/* call_wire.h - the messages of calls as bytes, on the channel "ls.call".
 * Layout: docs/wire-format.md#calls.
 * Thread: any; nothing is kept. */
#ifndef LOCKSTEP_BUS_CALL_WIRE_H
#define LOCKSTEP_BUS_CALL_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/call.h"

/* The numbers are those on the wire. */
enum call_kind {
    CALL_REQUEST = 1,
    CALL_STARTED = 2,   /* the handler has returned, and not answered yet */
    CALL_COMPLETED = 3, /* this and the next two end it */
    CALL_FAILED = 4,
    CALL_REFUSED = 5,
    CALL_CANCEL = 6 /* by the one that asked */
    /* 7 and 8 are a request and a completed with a body. */
};

struct payload;

/* What is not of its kind is 0. Borrow: name, data and text, from whoever made
 * them; after decoding, from the bytes. */
struct call_message {
    enum call_kind kind;
    uint64_t to;     /* the incarnation of the receiver that is meant */
    uint64_t number; /* of the call, at the one that asks; from 1 */
    bool broken;     /* REQUEST: only the above could be read */
    uint32_t left_ms;
    uint32_t channel;
    const char *name; /* not NUL-terminated, as text */
    size_t name_size;
    const void *data; /* REQUEST, COMPLETED */
    size_t size;
    uint32_t body_size;      /* the same: of the body that follows it */
    struct payload *payload; /* borrow; that body, where it is sent */
    uint32_t code;           /* REFUSED; not 0 */
    const char *text;        /* FAILED, REFUSED: any bytes */
    size_t text_size;
};

#define CALL_CHANNEL    "ls.call"
#define CALL_NUMBER_MAX (UINT64_C(1) << 62)
/* The most that one message takes: an array, its head, and all that a request
 * has. */
#define CALL_WIRE_MAX (21 + 3 * 5 + 2 + LS_EVENT_MAX + 5 + LS_CALL_DATA_MAX)
/* The most that one without a name and data takes. */
#define CALL_WIRE_SHORT_MAX (21 + 5 + 3 + LS_CALL_TEXT_MAX)

/* What the parts of a body say that they are of, and back. */
static inline uint64_t call_wire_body(uint64_t number, bool answer)
{
    return number << 1 | (answer ? 1 : 0);
}

/* Write a message, into room for the most; returns its size in bytes. */
size_t call_wire_encode(const struct call_message *message, unsigned char *out);

/* Read one.
 * out:    written on success only.
 * Errors: LS_EPROTO for anything that encode could not have written. */
LS_MUST_USE int call_wire_decode(const void *data, size_t size,
                                 struct call_message *out);

#endif
