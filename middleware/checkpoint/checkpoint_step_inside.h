/* checkpoint_step_inside.h - the inside of the step that saves: what its files
 * share. The step itself, and when it saves: mw_checkpoint.c; how a run begins
 * and ends on all nodes: checkpoint_meet.c; what others ask of this node:
 * checkpoint_serve.c. */
#ifndef LOCKSTEP_MW_CHECKPOINT_STEP_INSIDE_H
#define LOCKSTEP_MW_CHECKPOINT_STEP_INSIDE_H

#include "lane.h"
#include "lockstep/channel.h"
#include "lockstep/checkpoint_step.h"
#include "lockstep/file.h"
#include "lockstep/signal.h"
#include "saves.h"

#define TEXT_MAX 101 /* of names, with the NUL */

/* A node that has come to the beginning or the end of a run, and waits there
 * for the one that leads. */
struct waiter {
    ls_request *request;
    uint32_t from;
    bool ends;
    int64_t epoch;
};

/* What is known of another node, since it began. */
struct peer {
    uint32_t id;
    bool keeps;  /* it has blobs */
    bool folder; /* and a folder for them */
};

struct ls_checkpoint_step {
    ls_task *task;                             /* borrow */
    ls_node *node;                             /* borrow; NULL: no world */
    struct ls_checkpoint_step_options options; /* its texts are these: */
    char name[TEXT_MAX], group[TEXT_MAX], run[LS_CHECKPOINT_TEXT_MAX];
    char metric[LS_CHECKPOINT_TEXT_MAX], folder[LS_PATH_MAX];
    char what[TEXT_MAX + 16]; /* for messages */
    struct saves saves;
    struct lane lane;
    ls_signals *signals; /* own; NULL: none is watched */

    /* The task's thread. */
    bool in_run, opened, resumed, rewinds;
    bool ends; /* all have agreed that the run ends with this iteration */
    int64_t began_at;   /* the last save */
    int64_t saved_here; /* epoch of the last save that this node took part in */
    double best;        /* of the metric; NaN: there was none */
    bool wished;        /* for a request, in this iteration */
    uint32_t *nodes;    /* own; those of a save */
    bool *guests;       /* own */
    size_t n_nodes, room;

    struct asker asker;        /* its mutex is of what follows */
    bool stands;               /* its blobs do not change */
    bool moving;               /* they are being read or written */
    bool released;             /* they may again */
    int64_t stands_at;         /* which epoch; LS_CHECKPOINT_NONE: any */
    int64_t over_at;           /* the last whose save is over, in this run;
                                * LS_CHECKPOINT_NONE: none */
    uint64_t begun;            /* how often it stood as any: at a beginning */
    struct ls_failure unready; /* of before_save() */
    bool leader_lost;          /* since this node has begun its run with it */
    uint64_t losses;           /* of members */
    uint32_t last_lost;        /* the last of them */
    bool has_begun;            /* where it is led: whoever comes may go on */
    bool wanted, wanted_now;   /* a save was requested */
    int64_t epoch;             /* ls_checkpoint_epoch() */
    uint64_t failures;
    struct waiter *waiters; /* own */
    size_t n_waiters;
    struct peer *peers; /* own */
    size_t n_peers;
};

static inline bool step_leads(const ls_checkpoint_step *self)
{
    return self->saves.leader == self->saves.id;
}

/* ---- mw_checkpoint.c ---- */
int64_t *step_total(ls_checkpoint_step *self);
/* How long the one that leads may take for all that it does at one place: it
 * waits for the others, looks, loads and saves. */
int step_patience_ms(const ls_checkpoint_step *self);
/* Why it saves. */
enum step_why {
    STEP_BEGIN, /* never behind */
    STEP_ITERATION,
    STEP_AT_ONCE, /* the same, not behind */
    STEP_LAST,    /* it ends after this iteration; never behind */
    STEP_END      /* the same, as all have agreed */
};
#define STEP_WHY_BEGIN "begin" /* as the nodes and the manifest are told */
/* Where it is led, and elsewhere: save this epoch, together. */
LS_MUST_USE int step_save(ls_checkpoint_step *self, int64_t epoch,
                          enum step_why why);
/* From here on its blobs do not change, until step_go_on(). */
void step_stand(ls_checkpoint_step *self, int64_t epoch);
void step_go_on(ls_checkpoint_step *self);
/* The same, ready to be saved as this epoch. What cannot be saved fails where
 * it is asked for: so all hear of it. */
void step_prepare(ls_checkpoint_step *self, int64_t epoch, int64_t stands_at);
/* Wait, with the mutex held, until *flag or *other (NULL: nothing else); the
 * run may be cancelled. Errors: that; LS_ETIMEDOUT. */
LS_MUST_USE int step_wait(ls_checkpoint_step *self, const bool *flag,
                          const bool *other, struct ls_due *due);

/* ---- checkpoint_meet.c ---- */

/* Whether a member takes part in saves. */
bool step_is_in_group(const ls_checkpoint_step *self, const char *role,
                      const char *labels);
/* Whose blobs are saved: those of these nodes that have some. NULL: of all
 * that are ready. */
LS_MUST_USE int step_choose(ls_checkpoint_step *self, const uint32_t *ids,
                            size_t n);
/* The first iteration of a run: all go on from the same checkpoint. */
LS_MUST_USE int step_begin(ls_checkpoint_step *self);
/* A run that ended well. saves: not in an iteration that was saved. */
LS_MUST_USE int step_end(ls_checkpoint_step *self, bool saves);
/* Whoever waits here gets an answer. ends: only those at the end of a run. */
void step_dismiss(ls_checkpoint_step *self, bool ends, int status);

/* ---- checkpoint_serve.c ---- */
int step_on_request(void *self, ls_request *request);
int step_answer(void *self, struct question *question);
extern const struct saves_ops step_saves_ops;

#endif
