/* group_wire.h - a group's messages as bytes. Layout: docs/collectives.md.
 * Thread: any; nothing is kept. */
#ifndef GROUP_WIRE_H
#define GROUP_WIRE_H

#include "call.h"

/* The numbers are those on the wire. */
enum group_message_kind {
    GROUP_COMMIT = 1, /* a message of the commit, with what rides on it */
    GROUP_WANT = 2,   /* I have so much of this flow: send up to there */
    GROUP_DATA = 3,   /* a piece of a flow */
    GROUP_END = 4     /* SEND and RECEIVE: how my half has ended */
};

/* Longest text of an END, in bytes. */
#define GROUP_WIRE_TEXT_MAX 250

struct group_message {
    enum group_message_kind kind;
    bool again; /* WANT: asked before */
    bool pair;  /* of SEND and RECEIVE: `number` counts those of this pair */
    uint64_t generation;
    uint64_t number; /* of the operation; all but COMMIT, as lane */
    uint32_t lane;
    uint64_t have, upto;    /* WANT; DATA: have is where the piece begins */
    int status;             /* END: LS_OK or negative */
    struct group_form form; /* WANT, END, COMMIT if has_form */
    bool has_form;

    /* Borrow: from whoever made it; after decoding from the bytes. */
    const unsigned char *commit; /* COMMIT: of barrier_wire.h */
    size_t commit_size;
    const char *text; /* END */
    size_t text_size;
    const unsigned char *data; /* DATA, and COMMIT if has_data: what rides */
    size_t data_size;
    bool has_data;
};

/* All but data, which comes last. */
#define GROUP_WIRE_HEAD_MAX 1280

/* Write a message up to its data, which follows as it is. Returns how many
 * bytes were written. */
size_t group_wire_encode(const struct group_message *message,
                         unsigned char out[GROUP_WIRE_HEAD_MAX]);

/* Errors: LS_EPROTO for anything that encode could not have written. */
LS_MUST_USE int group_wire_decode(const void *bytes, size_t size,
                                  struct group_message *out);

#endif
