/* call_post.h - messages of calls that cannot be sent just now, and bodies,
 * which go in parts: they wait here, each member's in their order, until the
 * member has room. Bodies to one member take turns, behind all messages. No
 * lock, socket or clock.
 * Thread: serial. */
#ifndef LOCKSTEP_BUS_CALL_POST_H
#define LOCKSTEP_BUS_CALL_POST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"
#include "payload.h"

/* What waits for one member, besides what its own calls bound. */
#define CALL_POST_ANSWERS 65536

struct call_box;

struct call_letter {
    struct call_letter *before, *after;
    struct call_box *box;
    struct call_letter **owner; /* where its owner knows it; NULL: nowhere */
    uint64_t life;              /* of the one that it is for */
    bool answer;
    size_t size;
    unsigned char bytes[];
};

/* A body on its way out. */
struct call_body {
    struct call_body *next;
    uint64_t life; /* of the one that it is for */
    uint64_t id;   /* call_wire_body() */
    bool answer;
    struct payload *payload; /* own */
    size_t at;               /* so much has gone */
};

/* All for one member; there is none when nothing waits. */
struct call_box {
    struct call_box *next;
    uint32_t to;
    struct call_letter *first, *last;
    struct call_body *bodies; /* whose turn it is first */
    size_t n_answers;         /* letters and bodies */
};

struct call_post {
    struct call_box *boxes;
    uint64_t dropped;
};

/* Whether a message waits for it, and so what follows must wait, too. */
bool call_post_waits(const struct call_post *post, uint32_t to);
/* How many answers wait for it. */
size_t call_post_answers(const struct call_post *post, uint32_t to);
/* bytes: copied. answer: the last to a call of that member. owner: set to it,
 * and to NULL when it is gone; NULL: nobody is told. Errors: LS_ENOMEM;
 * LS_ELIMIT too many answers; both count as dropped. */
int call_post_add(struct call_post *post, uint32_t to, uint64_t life,
                  bool answer, const void *bytes, size_t size,
                  struct call_letter **owner);
/* Take one out, unsent. */
void call_post_withdraw(struct call_post *post, struct call_letter *letter);
/* A member is gone, and so are those for that life of it. */
void call_post_lose(struct call_post *post, uint32_t to, uint64_t life);
void call_post_clear(struct call_post *post);

/* Take in a body, before the message that it belongs to is sent. payload:
 * shared. Errors: LS_ENOMEM, which counts as dropped. */
int call_post_add_body(struct call_post *post, uint32_t to, uint64_t life,
                       uint64_t id, bool answer, struct payload *payload);
/* Nobody waits for it any more. Returns whether it was there. */
bool call_post_drop_body(struct call_post *post, uint32_t to, uint64_t life,
                         uint64_t id);
/* Drop every body of an answer; fn is told of each. */
typedef void call_body_fn(void *self, uint32_t to,
                          const struct call_body *body);
void call_post_drop_answers(struct call_post *post, call_body_fn *fn,
                            void *self);

/* Send what can be sent. send: LS_OK; LS_EAGAIN there is no room at the member,
 * which will be told; LS_ENOMEM nothing can be sent just now; any other: the
 * member is not there, and all for it is dropped. Returns whether memory was
 * lacking, so that it should be done again. */
typedef int call_send_fn(void *self, uint32_t to, const void *bytes,
                         size_t size);
/* Send the next part of a body, and move body->at; returns the same; or
 * LS_ELOST: it alone is dropped, the life that it was for has ended. */
typedef int call_send_part_fn(void *self, uint32_t to, struct call_body *body);
bool call_post_flush(struct call_post *post, call_send_fn *send,
                     call_send_part_fn *send_part, void *self);

#endif
