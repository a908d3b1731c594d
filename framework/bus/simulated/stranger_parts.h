/* stranger_parts.h - what the files of a stranger share. */
#ifndef LOCKSTEP_BUS_STRANGER_PARTS_H
#define LOCKSTEP_BUS_STRANGER_PARTS_H

#include "stranger.h"

#include "transport.h"
#include "wire.h"

#define STRANGER_KNOWN_MAX 32

enum stranger_manner {
    STRANGER_MUTE,   /* present, and proves nothing to who dials it */
    STRANGER_PROVED, /* and proves who it is, and lists nobody */
    STRANGER_CLIENT  /* and is a member, as who calls a node is */
};
#define STRANGER_N_MANNERS 3

/* A life of a node that has dialled it. */
struct victim {
    uint32_t id;
    uint64_t incarnation;
    char endpoint[LS_ENDPOINT_MAX + 1];
    struct wire_presence shown; /* as it was, and may be signed */
    unsigned here;              /* presences in force */
};

struct stranger_link {
    transport_link *link;
    uint64_t number;
    char endpoint[LS_ENDPOINT_MAX + 1];
};

struct ls_stranger {
    struct ls_stranger_options options;
    ls_runtime *runtime;
    ls_security *none;    /* own; NULL: it can prove who it is */
    transport *transport; /* own */
    char endpoint[LS_ENDPOINT_MAX + 1];
    struct stranger_link links[STRANGER_NODES_MAX]; /* own; n_links */
    size_t n_links;
    struct victim victims[STRANGER_KNOWN_MAX]; /* n_victims, the latest last */
    size_t n_victims;
    struct ls_rng rng;
    enum stranger_manner manner;
    uint64_t incarnation, before; /* of it; the life before: 0: none */
    uint64_t sequence, heartbeats;
    bool present; /* it has said that it is here */
    int64_t next_at, heartbeat_at, until;
    uint64_t acts;
    struct message message; /* the one that is being read */
    bool stopped;
    ls_thread *thread; /* own */
};

/* 0 … below - 1. */
uint64_t stranger_draw(ls_stranger *self, uint64_t below);

/* stranger.c */
void stranger_subscribe(const struct stranger_link *link, const uint8_t *topic,
                        size_t size, bool on);
/* As itself, over all of its links. */
void stranger_present(ls_stranger *self, bool on);
/* Close a link, and dial the same address again. */
void stranger_dial_again(ls_stranger *self, struct stranger_link *link);

/* stranger_frames.c: what it says where it is dialled. Lock held. */
struct wire_header stranger_header(ls_stranger *self, enum wire_kind kind);
void stranger_say(const ls_stranger *self, const char *event,
                  const struct victim *to, struct wire_header *header,
                  const void *data, size_t size);
/* A frame that any member may send, of some kind. Returns its size. */
#define STRANGER_FRAME_MAX 2048
size_t stranger_honest(ls_stranger *self, const struct victim *to,
                       uint8_t out[STRANGER_FRAME_MAX]);
/* Some bytes of it changed, cut out and put in; returns the new size. */
size_t stranger_mutate(ls_stranger *self, uint8_t *bytes, size_t size,
                       size_t most);
/* n of these are listed besides those that are here. */
void stranger_heartbeat(ls_stranger *self, const struct wire_member *more,
                        uint32_t n);
void stranger_prove(ls_stranger *self, const char *challenge, uint32_t id,
                    uint64_t incarnation);

/* stranger_acts.c: do something that is drawn. Lock not held. */
void stranger_act(ls_stranger *self);

#endif
