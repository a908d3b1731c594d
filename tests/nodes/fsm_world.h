/* fsm_world.h - a coordinator's machine among members that are models: time,
 * calls and faults all come from a seed.
 *
 * Members answer as the services do: one work each; calls in the order in which
 * they were made; a learner demands the next batch while it trains on one. The
 * world checks, event by event, that no work is in two living hands, that what
 * is dropped is of no use to anyone, and that what is over is over.
 * A violation is kept as a text; the schedule ends with it. */
#ifndef LOCKSTEP_TESTS_FSM_WORLD_H
#define LOCKSTEP_TESTS_FSM_WORLD_H

#include "fsm_state.h"

enum {
    WORLD_MEMBERS = 8,
    WORLD_CALLS = 256,
    WORLD_EVENTS = 1024,
    WORLD_SAMPLES = 16384,
    WORLD_RECORDS = 65536,
    WORLD_WORKS = 8192
};

/* Of each chance, in thousandths. */
struct world_faults {
    int lose;   /* of each event: a member dies; it comes back later */
    int quit;   /* of each event: the coordinator is killed, and restarted */
    int refuse; /* of each start: busy, or refused */
    int fail;   /* of each call */
    int garble; /* of each answer */
    int mute;   /* of each answer: it never comes */
    int forget; /* of each event: a member takes its master for lost */
    int decay;  /* of each piece of data, when a coordinator begins again: it is
                 * damaged */
};

struct world_member {
    uint32_t id;
    bool learner, alive;
    uint64_t incarnation;
    bool connected; /* to the coordinator of now */

    bool holds, eval;
    struct work_key key;
    service_name buffer_id, policy_id;
    int64_t goal, batch_size, progress;

    int queued, training;     /* batches */
    uint64_t learns[2];       /* calls of them; 0: nobody waits */
    uint64_t demand, collect; /* calls that wait to be answered */
    int64_t want;             /* pieces of data, says its collect call */
    int64_t in_at, out_at;    /* when the last message came and went */
};

#define WORLD_DATA_MAX 65536 /* its batches are small */

struct world_call {
    uint64_t number; /* 0: none */
    uint32_t to;
    uint64_t incarnation;
    char name[32];
    unsigned char data[WORLD_DATA_MAX];
    size_t size;
    bool seen; /* the member has begun it */
    bool answered;
    struct ls_call_result result;
    unsigned char *answer; /* own */
};

enum world_event_kind {
    WORLD_ARRIVES, /* a call at its member */
    WORLD_ENDS,    /* an answer at the coordinator */
    WORLD_EXPIRES, /* the deadline of a call */
    WORLD_TRAINED,
    WORLD_COLLECTED,
    WORLD_MEMBER, /* the coordinator is told of it */
    WORLD_RETURNS
};

struct world_event {
    int64_t at;
    uint64_t order;
    enum world_event_kind kind;
    uint64_t number; /* of a call */
    size_t member;
    uint64_t incarnation;
    bool ready;
    unsigned life; /* of the coordinator; 0: whichever */
};

struct world_sample {
    service_name data_id;
    bool taken;     /* by a call that was open at the member */
    bool delivered; /* the coordinator has seen it */
    int dropped;
    uint64_t draws; /* of all its parts */
};

struct world_record {
    void *data; /* own */
    size_t size;
};

struct world {
    struct fsm_options options;
    struct world_faults faults;
    struct ls_rng rng;
    fsm *fsm; /* own */
    unsigned life;
    int64_t now;
    uint64_t last_order, last_incarnation, events_run;

    struct world_member members[WORLD_MEMBERS];
    size_t n_members;
    struct world_call *calls; /* own; WORLD_CALLS */
    struct world_event events[WORLD_EVENTS];
    size_t n_events;
    struct world_sample *samples; /* own */
    size_t n_samples;
    struct work_key *begun; /* own; the last attempt of each work */
    size_t n_begun;
    struct world_record *records; /* own */
    size_t n_records;
    ls_writer *writer; /* own */

    /* The policy as it lies in the store: iterations, and commits. */
    int64_t iter, version;
    double value_per_version; /* what an evaluation brings */

    /* What was seen. */
    int64_t infos, done_infos;
    bool is_done, clean; /* clean: no close has been lost */
    bool lossy;          /* answers may have been lost */
    uint64_t kept;       /* samples that another life has gone on with */
    int done_status;
    char done_text[512], done_name[SAFE_NAME_MAX + 1];
    char last_warning[1024];
    char violation[256];
};

void world_create(struct world *world, uint64_t seed, size_t learners,
                  size_t collectors);
/* With world->options and faults as they are now. */
void world_begin(struct world *world);
/* One event; false: the job is over, or something is wrong. */
bool world_step(struct world *world);
void world_run(struct world *world);
void world_destroy(struct world *world);

/* By hand. */
void world_lose(struct world *world, size_t member);
void world_restart(struct world *world);
/* A learner is asked to learn from these. */
void world_drawn(struct world *world, const struct world_call *call);
void world_violate(struct world *world, const char *format, ...)
    LS_PRINTF(2, 3);

/* fsm_world.c, for fsm_world_members.c. */
bool world_chance(struct world *world, int thousandths);
int64_t world_delay(struct world *world, int64_t most_us);
void world_at(struct world *world, struct world_event event);
struct world_call *world_call(struct world *world, uint64_t number);
/* size 0: the writer's. */
void world_answer(struct world *world, struct world_member *member,
                  uint64_t number, enum ls_call_state state, int code,
                  const char *text);

struct world_member *world_member_of(struct world *world, uint32_t id);

/* fsm_world_checks.c */
void world_check(struct world *world);
void world_drop(struct world *world, const char *name);
void world_finish(struct world *world, const struct fsm_action *action);

/* fsm_world_members.c */
void world_member_serves(struct world *world, struct world_member *member,
                         struct world_call *call);
void world_member_trained(struct world *world, struct world_member *member);
void world_member_collected(struct world *world, struct world_member *member);
void world_member_alone(struct world_member *member);

#endif
