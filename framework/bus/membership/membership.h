/* membership.h - who is there, who may have an id, and who may say so.
 *
 * A state machine without socket, lock or clock. What a node sees and hears is
 * put in, with the time; what follows is told through ops. It decides all of:
 *
 * - who is ready: whose presence is here, who has been heard over a link that
 *   has proved to be its own, who lists this node, and whom this node has
 *   listed. Until then a peer may do nothing but become ready;
 * - who may have an id when two want it: the one that is there, unless it is
 *   gone, and gone is asked of its host;
 * - who may say that somebody left or is lost: itself, the hub of a star about
 *   its leaves, and about this node a member that was ready with it.
 *
 * Lives have random numbers and no order. One that has ended is never believed
 * again; one that is not known competes with the one that is.
 *
 * An op must not call back in. Thread: serial; of the fields of a member
 * heard_at alone may be written from outside at any time. */
#ifndef LOCKSTEP_BUS_MEMBERSHIP_H
#define LOCKSTEP_BUS_MEMBERSHIP_H

#include <stdatomic.h>

#include "lockstep/node.h"
#include "lockstep/runtime.h"

#include "speaker.h"
#include "wire.h"

#define MEMBERSHIP_MAX      4096
#define MEMBERSHIP_SHOWINGS 4 /* links over which one peer may be present */
#define MEMBERSHIP_LIVES    8 /* that have ended, remembered of each id */
/* A peer that is present has so many times of silence to become ready; then it
 * takes no place in a full world any more. */
#define MEMBERSHIP_PATIENCE 2

/* A presence in force here. */
struct showing {
    uint64_t link; /* its number, which only its two ends know */
    uint64_t incarnation;
    uint64_t connection; /* that it came over last */
    unsigned n;          /* an old connection may end after a new one began */
};

enum probe_state { PROBE_NONE, PROBE_WANTED, PROBE_ASKED };

/* Another node, or one that may become a member. */
struct member {
    uint32_t id;
    uint64_t incarnation;
    /* As its presence has them, all of one and the same; 0, "" before the
     * first. Texts in texts. */
    uint64_t host, config_hash;
    const char *role, *labels, *endpoint;
    const char *signature; /* of all these; "" of one that is relayed */
    const char *as_role;   /* " (learner)", for messages; "" without a role */
    char *texts;           /* own */
    enum ls_member_state state;
    int reason;
    _Atomic int64_t heard_at; /* over a link that is proved; 0: never */
    struct showing showings[MEMBERSHIP_SHOWINGS];
    unsigned n_present;     /* all of theirs */
    struct member *via;     /* the hub that relays it; NULL: direct */
    bool linked;            /* kept by the caller: it is dialled */
    bool was_ready;         /* in this life */
    bool announced;         /* a heartbeat has listed it */
    bool lists_me;          /* its heartbeat says that it has my presence */
    bool ready_there;       /* and that this node is ready there */
    bool barred;            /* the world is full without it */
    bool late;              /* present for long, and not ready */
    int64_t present_at;     /* since when; 0: it is not */
    int64_t disputed_at;    /* it has ended this node, or lives all the same; 0:
                             * neither */
    int64_t reminded_at;    /* it was told what it is, out of turn */
    int64_t away_at;        /* when its presence went; 0: it is not away */
    int64_t ended_at;       /* when it left or was lost */
    enum probe_state probe; /* whether somebody listens at its endpoint */
    int64_t probe_at;       /* not before */
    int64_t probe_every;
    uint64_t heartbeats;         /* the number of its last */
    struct wire_presence *rival; /* own; another with this id: n_rival != 0 */
    uint64_t rival_connection;
    unsigned n_rival;
    int64_t rival_at;
    struct ended_life {
        uint64_t incarnation;  /* 0: none */
        bool lost;             /* else it has left */
    } ended[MEMBERSHIP_LIVES]; /* a ring */
    unsigned n_ended;
    size_t slot;   /* of all records, for: */
    uint64_t *has; /* whom it has as members; own, n_has words */
    size_t n_has;
};

/* ---- the life of one member -------------------------------------------- */

/* What became of it. */
enum member_change {
    MEMBER_SAME,
    MEMBER_BECAME_READY,
    MEMBER_AWAY,     /* ready, but its presence is gone */
    MEMBER_RETURNED, /* from there */
    MEMBER_ENDED,    /* was ready, and left or is lost */
    MEMBER_FORGOTTEN /* left or is lost without ever having been ready */
};
void member_begin(struct member *member, uint64_t incarnation);
void member_no_texts(struct member *member);
/* Those of a presence are its own from now on, and what it has signed of them.
 * Errors: LS_ENOMEM; it has those that it had. */
int member_texts(struct member *member, const struct wire_presence *presence);
bool member_has_ended(const struct member *member);
/* It has said nothing yet of whom it has as members. */
void member_has_none(struct member *member);
/* Whether this life of it has; and not by leaving. */
bool member_ended_as(const struct member *member, uint64_t incarnation);
bool member_lost_as(const struct member *member, uint64_t incarnation);
/* Whether it hears all that is published here. */
bool member_hears(const struct member *member);
/* Whether it is to be told of what is emitted now: ready, and connected. */
bool member_is_here(const struct member *member);
/* Whether its id is taken. */
bool member_is_alive(const struct member *member);
/* Whether nothing but a place in the world is wanting. */
bool member_may_be_ready(const struct member *member);
/* Ready when it may be. */
enum member_change member_settle(struct member *member);
enum member_change member_appears(struct member *member, int64_t now);
enum member_change member_disappears(struct member *member, int64_t now);
enum member_change member_leaves(struct member *member, int reason);
enum member_change member_is_lost(struct member *member, int reason);
/* refuses: its host lives, and says that nobody listens at its endpoint. */
enum member_change member_probed(struct member *member, bool refuses,
                                 int64_t now, int64_t heartbeat);
/* Its host is to be asked, from now on. */
void member_ask(struct member *member, int64_t now);
/* Lowers *next to when it has to be looked at again; asks for a probe by
 * PROBE_WANTED. */
enum member_change member_tick(struct member *member, int64_t now,
                               int64_t silence, int64_t *next);
/* This node itself has not looked for so long, until now. */
void member_excuse(struct member *member, int64_t late, int64_t now);
/* The showing of this link and life, or NULL. */
struct showing *member_showing(struct member *member, uint64_t link,
                               uint64_t incarnation);
/* Whether it may be present over a link of this number, in any life. */
bool member_shows(const struct member *member, uint64_t link);
/* Whether it is present over this connection, in any life. */
bool member_shows_over(const struct member *member, uint64_t connection);

/* ---- all of them ------------------------------------------------------- */

struct membership_options {
    uint32_t id;
    const char *job; /* this and the next three: borrow */
    const char *endpoint;
    const char *role, *labels;
    uint64_t config_hash;
    enum ls_topology topology;
    bool hub;
    uint32_t world_max;
    const uint32_t *members; /* whom it waits for; n_members. Borrow; NULL:
                              * anybody */
    uint32_t n_members;
    int64_t heartbeat_ns, silence_ns;
    size_t member_size; /* bytes of the caller's struct around each member,
                         * which begins with it */
};

/* What a peer that is here and no member is told. */
struct verdict {
    uint32_t to;      /* id */
    int reason;       /* docs/wire-format.md */
    uint64_t subject; /* the incarnation that it is about */
    uint32_t members;
    uint32_t silence_ms;
    const char *text; /* "" for most. Borrow: until the op returns */
};

struct membership_ops {
    /* A member begins a life: what was counted in one before is void. */
    void (*began)(void *self, struct member *member);
    void (*changed)(void *self, struct member *member,
                    enum member_change change);
    /* Somebody is to be dialled: this member, or (NULL) one that another
     * speaks of, by that id. Returns false: that address is not dialled. */
    bool (*dial)(void *self, struct member *member, uint32_t id,
                 const char *endpoint);
    void (*tell)(void *self, const struct verdict *verdict);
};

struct membership {
    struct membership_options options;
    const struct membership_ops *ops;
    void *self;
    struct member **at; /* by id; own */
    size_t n, capacity;
    uint64_t incarnation; /* of this node */
    uint64_t version;     /* changes when an emit's targets may; from 1 */
    bool has_hub;         /* of a leaf: it is known who that is: */
    uint32_t hub;
    bool formed;   /* this node has joined its world */
    bool leaving;  /* said farewell: dials nobody any more */
    bool announce; /* a heartbeat is due at once */
    bool probes_wanted;
    bool renewing; /* within membership_renew(): nobody is gone in truth */
    bool rejoins;  /* it was declared lost: why, in rejoin_text */
    char rejoin_text[256];
    /* Of a barred member whose texts found no memory: it is tried again with
     * the next heartbeat. link 0: there is none. One is enough: who comes next
     * finds no memory either, and is barred for good. */
    struct wire_presence put_off;
    int64_t looked_at;
    int64_t stood_ns; /* this node, in all that looked_at has shown */
    int fatal;        /* why the node cannot be; LS_OK */
    char fatal_text[LS_ERROR_TEXT_MAX];
    char hint[256]; /* what others say of why it is not ready; "" */
};

/* Errors: none; memory is taken when there is somebody. */
void membership_init(struct membership *m,
                     const struct membership_options *options,
                     const struct membership_ops *ops, void *self);
/* The members are given to fn one by one, then freed. */
void membership_fini(struct membership *m,
                     void (*fn)(void *self, struct member *member));
void membership_begin(struct membership *m, uint64_t incarnation);

struct member *membership_find(const struct membership *m, uint32_t id);
/* The member of this id in this life, made if need be. NULL: another life of
 * it is there, this one has ended, or there is no room for more. */
struct member *membership_note(struct membership *m, uint32_t id,
                               uint64_t incarnation);
/* Do what follows from a change, which the life of a member has told. */
void membership_apply(struct membership *m, struct member *member,
                      enum member_change change, int64_t now);
/* That it is ready now, or left in peace: it was a member all the same. */
bool membership_has(const struct member *member);
/* And this node there: whatever it emits from now on is for this node too. */
bool membership_has_both_ways(const struct member *member);
size_t membership_n_ready(const struct membership *m);
size_t membership_n_both_ways(const struct membership *m);
/* This node cannot be: joining ends with this. */
void membership_fail(struct membership *m, int status, const char *text);

/* Each of the next returns LS_OK, or why what was said is refused: LS_EPROTO
 * nobody who is honest says it; LS_EMISMATCH it is of another world;
 * LS_EEXIST, LS_ELIMIT the id, or the world, is taken; LS_ENOENT it is not for
 * this node to judge: older, or overtaken. The text says what. */

/* Whether a presence is of this world, and its speaker's to show. */
int membership_may_show(const struct membership *m, const struct speaker *by,
                        const struct wire_presence *presence);
/* A presence came, or went. */
int membership_present(struct membership *m, const struct speaker *by,
                       const struct wire_presence *presence, int64_t now);
int membership_absent(struct membership *m, const struct speaker *by,
                      const struct wire_presence *presence, int64_t now);
/* The node of this presence, which it shows itself, has another role or other
 * labels than are its own: it is told so. */
void membership_unsuited(struct membership *m,
                         const struct wire_presence *presence);
/* Whether somebody is present over this connection; and ready, if asked for. */
bool membership_shows_over(const struct membership *m, uint64_t connection,
                           bool ready);
/* Whether what came up a connection may be of this id, who is present over it;
 * or over which nobody else is: what waited for a new connection comes before
 * the presence. Errors: LS_EPROTO it is another's. */
int membership_may_send_up(const struct membership *m, const struct speaker *by,
                           uint32_t id, bool shown);
/* Whether a listening, or its end, is its own to say: of this id. */
int membership_may_listen(const struct membership *m, const struct speaker *by,
                          uint32_t id);

/* Who answers at an address that this node dialled. */
struct answer {
    uint32_t id;
    uint64_t incarnation;
    bool expected; /* it was dialled as node: */
    uint32_t as;
    const char *endpoint;  /* borrow */
    struct member *member; /* who answered there before; NULL: nobody */
};
/* out: the member. Errors: and LS_ESTATE it is this node itself. */
int membership_answers(struct membership *m, const struct answer *answer,
                       int64_t now, struct member **out);
/* It answers at an address that the user gave: to a leaf it is the hub. */
void membership_attached(struct membership *m, struct member *member,
                         int64_t now);
/* A message of `origin` came over the link of `peer`, whose it is unless that
 * relays: the member that sent it. early: out: it is one that the hub speaks
 * for, and whose presence is not here yet. */
int membership_origin(struct membership *m, struct member *peer,
                      uint32_t origin, uint64_t incarnation, int64_t now,
                      struct member **out, bool *early);

/* A heartbeat of this member, in number; LS_ENOENT: overtaken. Then its list,
 * one by one, and its end. */
int membership_heartbeat(struct member *from, uint64_t number);
void membership_listed(struct membership *m, struct member *from,
                       const struct wire_member *listed, int64_t now);
void membership_list_ends(struct membership *m, struct member *from,
                          bool listed_me, int64_t now);
void membership_farewell(struct membership *m, struct member *member,
                         int reason, int64_t now);
/* attached: over a link to an address that the user gave. */
int membership_verdict(struct membership *m, struct member *from,
                       const struct verdict *verdict, bool attached,
                       int64_t now);

/* It is heard and no member: it is told what it is, but not with each word. */
void membership_remind(struct membership *m, struct member *member,
                       int64_t now);

/* Whether it stands in this node's heartbeats, and as what. */
bool membership_lists(const struct membership *m, const struct member *member,
                      int64_t now);
enum wire_member_state membership_lists_as(const struct member *member);
/* A heartbeat with all of those has been published; who is not a member is told
 * why. */
void membership_announced(struct membership *m, int64_t now);

void membership_probed(struct membership *m, const char *endpoint, bool refuses,
                       int64_t now);
/* How long this node has stood still in all, up to now. */
int64_t membership_stood_ns(const struct membership *m, int64_t now);
/* Look for silence; returns when to look again. */
int64_t membership_tick(struct membership *m, int64_t now);
/* This node goes on as another life; all others are met again: each that was
 * ready is lost, and begins anew in the life that it is in. */
void membership_renew(struct membership *m, uint64_t incarnation, int64_t now);

#endif
