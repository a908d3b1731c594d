/* call_post.h - messages of calls that cannot be sent just now: they wait here,
 * each member's in their order, until the member has room. No lock, socket or
 * clock.
 * Thread: serial. */
#ifndef LOCKSTEP_BUS_CALL_POST_H
#define LOCKSTEP_BUS_CALL_POST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

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

/* All for one member; there is none when nothing waits. */
struct call_box {
    struct call_box *next;
    uint32_t to;
    struct call_letter *first, *last;
    size_t n_answers;
};

struct call_post {
    struct call_box *boxes;
    size_t n_answers; /* of all */
    uint64_t dropped;
};

/* Whether something waits for it, and so what follows must wait, too. */
bool call_post_waits(const struct call_post *post, uint32_t to);
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

/* Send what can be sent. send: LS_OK; LS_EAGAIN there is no room at the member,
 * which will be told; LS_ENOMEM nothing can be sent just now; any other: the
 * member is not there, and all for it is dropped. Returns whether memory was
 * lacking, so that it should be done again. */
typedef int call_send_fn(void *self, uint32_t to, const void *bytes,
                         size_t size);
bool call_post_flush(struct call_post *post, call_send_fn *send, void *self);

#endif
