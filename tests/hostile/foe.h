/* foe.h - an attacker made of bare sockets: one at which it is dialled, one
 * with which it subscribes at one node. It may have what a member has, or less,
 * and says whatever it is told to. */
#ifndef HOSTILE_FOE_H
#define HOSTILE_FOE_H

#include "siege.h"
#include "wire.h"

enum foe_has {
    FOE_MEMBER, /* the secret, or a key of its own; in mode none nothing */
    FOE_FALSE,  /* another secret, or a key that nobody knows */
    FOE_NOTHING /* it does not try to prove anything */
};

struct foe {
    struct foe *next;
    struct siege *siege;
    enum foe_has has;
    void *xpub, *sub;
    ls_security *security; /* borrow; curve: own */
    char endpoint[LS_ENDPOINT_MAX + 1];
    struct process *node;       /* where it subscribes; NULL: nowhere */
    uint32_t id, proves;        /* whom it proves to be, to who dials it */
    uint64_t incarnation, link; /* of its presence */
    uint64_t proves_life, sequence;
    bool silent;       /* it proves nothing */
    bool deaf;         /* it reads nothing of what it subscribed to */
    unsigned proofs;   /* that it was given */
    unsigned verdicts; /* that it was told, and about itself */
    unsigned here[8];  /* presences of nodes 1 to 7 at its own socket */
    /* What it says as soon as its node shows itself over a connection. With
     * keys that may make another one soon, and what was said over the first is
     * lost. NULL: nothing. */
    void (*greet)(struct foe *foe);
};

bool foes_begin(struct siege *siege);
void foes_end(struct siege *siege);
/* Look after all that are open: answer challenges, read what comes. */
void foes_pump(struct siege *siege);
void foes_close(struct siege *siege);

/* A new one, with an id that was never used. node: NULL: it only listens. */
struct foe *foe_open(struct siege *siege, enum foe_has has,
                     struct process *node);
/* With this id: in plain it has the secret, so it may say so. */
struct foe *foe_open_as(struct siege *siege, enum foe_has has, uint32_t id,
                        struct process *node, const char *bind, bool deaf);
void foe_close(struct foe *foe);

void foe_subscribe(struct foe *foe, const void *topic, size_t size, bool on);
/* As node `id`, over its own connection. Zero: what the foe has itself. */
struct foe_presence {
    uint32_t id;
    uint64_t incarnation, link;
    const char *endpoint, *role;
    bool relayed;
    uint32_t relay;
};
void foe_present(struct foe *foe, const struct foe_presence *as, bool on);
void foe_listen(struct foe *foe, uint32_t as, const char *event, bool on);

/* Control and inbox are subscribed to, and it is present, as itself. */
void foe_be_present(struct foe *foe);
/* Present, proved and ready: a member. */
bool foe_join(struct foe *foe);
/* Whether the node has shown itself within the time. */
bool foe_is_dialled(struct foe *foe, uint32_t by);
/* Whether the node has taken its presence back within the time. */
bool foe_is_dropped(struct foe *foe, uint32_t by, int64_t within_ms);

/* Whether a challenge is answered within the time: then all that was subscribed
 * to before has been read. */
bool foe_is_answered(struct foe *foe);
/* Whether the node says within the time that it is not a member. */
bool foe_is_told(struct foe *foe);

struct wire_header foe_header(struct foe *foe, enum wire_kind kind);
/* Topic, header and payload in one frame; event NULL: control, or the inbox of
 * its node, as the kind wants it. Returns its
 * size. out: WIRE_HEAD_MAX more than the payload. */
size_t foe_frame(const struct foe *foe, uint8_t *out, const char *event,
                 struct wire_header *header, const void *data, size_t size);
/* Returns false when nobody takes it within 100 ms. */
bool foe_send(struct foe *foe, const void *frame, size_t size);
/* Up the connection at which it subscribes. */
void foe_send_up(struct foe *foe, const void *frame, size_t size);
bool foe_say(struct foe *foe, const char *event, struct wire_header *header,
             const void *data, size_t size);
/* What it lists; `as` NULL: its node, ready. */
void foe_heartbeat(struct foe *foe, const struct wire_member *as, uint32_t n);
struct wire_member foe_lists(const struct foe *foe);

#endif
