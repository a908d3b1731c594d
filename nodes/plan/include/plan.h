/* plan.h - what a configuration asks for: the nodes, with ids, roles and
 * endpoints, and the settings of the roles.
 *
 * Reading is pure: it looks at the file alone and notes every problem at its
 * place. `check`, `run` and `node` all work from the plan, so what check shows
 * is what runs.
 * Thread: serial. */
#ifndef LOCKSTEP_PLAN_H
#define LOCKSTEP_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/config.h"
#include "lockstep/node.h"

#include "plan_security.h"
#include "plan_service.h"

enum plan_role {
    PLAN_LEARNER,
    PLAN_COLLECTOR,
    PLAN_EVALUATOR,
    PLAN_MEMBER,      /* only keeps step with the others; needs no plugin */
    PLAN_COORDINATOR, /* gives work to learners and collectors, who then do not
                       * go in step: a service job */
    PLAN_N_ROLES
};
extern const char *const plan_role_names[PLAN_N_ROLES + 1]; /* NULL at last */

enum plan_transport { PLAN_TCP, PLAN_IPC, PLAN_INPROC };
extern const char *const plan_transport_names[];
extern const char *const plan_topology_names[];

/* What becomes of the run when a node fails. */
enum plan_on_loss {
    PLAN_FAIL,   /* it fails too */
    PLAN_GO_ON,  /* it goes on without the node */
    PLAN_RESTART /* the node is started again, and the others wait for it */
};
extern const char *const plan_on_loss_names[];

#define PLAN_NODES_MAX   1024
#define PLAN_ATTACH_MAX  16
#define PLAN_DEVICES_MAX 64

/* No restart waits longer. */
#define PLAN_BACKOFF_MAX_MS 10000
/* Restarts that are counted by a window are at most so many. */
#define PLAN_WINDOW_RESTARTS_MAX 64

/* Texts: own; "" where the file says nothing. */
struct plan_node {
    uint32_t id;
    enum plan_role role;
    bool leased; /* whoever asks is given the id: plan_lease.h */
    enum plan_on_loss on_loss;
    unsigned max_restarts;   /* of the node in a run; with PLAN_RESTART */
    double restart_window_s; /* or within any such time; 0: in the run */
    int backoff_ms;          /* before the first; each further one waits twice
                              * as long as the one before */
    char *host;              /* under which others reach it, when it runs alone;
                              * "{hostname}": plan_host_is_own() */
    int port;                /* with host */
    char *bind;
    char *advertise;
    char *attach[PLAN_ATTACH_MAX];
    size_t n_attach;
};

struct plan_world {
    enum ls_topology topology;
    enum plan_transport transport;
    int first_port, last_port;
    const char *dir; /* of ipc sockets; NULL: none named. borrow: config */
    int start_timeout_ms, step_timeout_ms;
    int heartbeat_ms, silence_ms;
    int shared_mib;     /* -1: not named */
    bool insecure;      /* nobody is asked who he is: plan_security.h */
    const char *leases; /* where ids are given out; NULL: plan_lease_place().
                         * borrow: config */
};

/* A node's life is counted within one of its run's, and these after another:
 * so many are set apart for each. */
#define PLAN_LIFE_RESTARTS 4096u

/* What members do. */
struct plan_barrier {
    int64_t epochs;   /* to go through together */
    int64_t failures; /* epochs that may fail before a member gives up */
    int timeout_ms;   /* of each wait */
    int pace_ms;      /* between two epochs: 0 to so much, at random */
    int64_t events;   /* reliable ones that each emits before each epoch */
    int64_t blocking; /* the same of policy block, in windows of few */
    int sabotage;     /* enum ls_sabotage; what to break on purpose */
    int bus_sabotage; /* enum ls_bus_sabotage; the same, of all nodes */
};

/* What shares the work of learning, each with an equal part of every batch. */
enum plan_driver {
    PLAN_SINGLE,  /* nobody: one device of one learner */
    PLAN_THREADS, /* the devices of one learner */
    PLAN_BUS      /* all learners, with their devices: plan_is_shared() */
};
extern const char *const plan_driver_names[];

/* How the learner trains: lockstep/learner.h. */
struct plan_learner {
    enum plan_driver driver;
    size_t queue, stacks, loaders;
    unsigned passes; /* over the trajectories of each iteration */
    size_t ranks;    /* learners that share each batch; the rest stands by */
    const char *devices[PLAN_DEVICES_MAX]; /* borrow: config */
    size_t n_devices;                      /* >= 1; each has its share */
};

/* When the nodes of a job in lock step are saved, beside the beginning and the
 * end: lockstep/checkpoint_step.h. */
struct plan_checkpoint {
    int64_t every;                 /* iterations; 0: not so */
    double seconds;                /* 0: not so */
    int64_t keep_last, keep_every; /* which stay; 0: none */
    int64_t best;                  /* so many by PLAN_METRIC, too */
    bool goes_on;                  /* after a save that failed */
    int64_t from;                  /* epoch that the run goes on from; or: */
};
#define PLAN_FROM_NEWEST INT64_C(-1)
#define PLAN_FROM_BEST   INT64_C(-2)
#define PLAN_METRIC      "return" /* of an evaluation, in checkpoints */

/* What members do instead in `lockstep sim`, where failures are borne. */
struct plan_sim {
    uint32_t hosts; /* that the nodes are on, in turn; 0: nothing is shared,
                     * unless world.shared_mib says so */
    int64_t epochs, events, blocking;
    int pace_ms;
};

/* How many bytes the job moves and keeps: plan_sizes.h. */
struct plan_sizes {
    uint64_t sample;   /* a trajectory, as it is sent: of a service job the data
                        * of a sample, before it is split */
    uint64_t policy;   /* as it is before it has learned */
    uint64_t training; /* and what its training goes on from; 0: nothing */
    uint64_t replay;   /* what all samples of a replay buffer may take in the
                        * store; 0: no limit */
};

struct plan {
    ls_config *config; /* own */
    char *path;        /* own; of the file */
    const char *job;   /* this and the others: borrow: config */
    uint64_t seed;
    const char *plugin;
    char *here;   /* own; the current folder when it was read; "": unknown */
    char *out;    /* own; the folder of the job */
    char *folder; /* own; in it that of the run: plan_set_folder() */
    bool folder_found;  /* by its name "latest": another makes it */
    unsigned lives;     /* that the run had before this one */
    uint64_t hash;      /* of the file, and of the plugin's version */
    int patience_ms;    /* plan_be_patient(); 0: as the file says */
    const char *record; /* where its run is recorded; NULL: nowhere. Borrow */
    struct tape *tape;  /* what its run replays; NULL: nothing. Borrow */

    struct plan_world world;
    struct plan_security security;
    struct plan_node *nodes; /* own; n_nodes, in the file's order */
    size_t n_nodes;
    size_t first; /* index of the coordinator, else the learner, else the first
                   * member: the star's hub, the mesh's seed */

    size_t envs, steps;    /* of each collector */
    size_t threads;        /* that step its environments */
    size_t episodes;       /* of an evaluation */
    double solved;         /* mean return that ends the run; NaN: none does */
    int64_t every;         /* evaluate each so many updates */
    int64_t stop_env_step; /* 0: no such end */
    double stop_minutes;   /* 0: no such end */
    size_t trace_records;  /* of each node's flight recorder; 0: it has none */
    bool trace_all; /* it leaves out nothing, and is written at the end */

    struct plan_learner learner;
    struct plan_checkpoint checkpoint;
    struct plan_barrier barrier;
    struct plan_sim sim;
    struct plan_service service; /* where there is a coordinator */
    struct plan_sizes sizes;     /* 0 without a plugin */

    ls_config_section *env, *policy; /* the plugin's */
};

/* Fill the plan from a configuration; problems are noted there, for
 * ls_config_finish(), and the plan then holds defaults in their place.
 * config: moved on success.
 * Errors: LS_ENOMEM. */
LS_MUST_USE int plan_read(struct plan *out, ls_config **config,
                          const char *path);
void plan_fini(struct plan *plan);

/* Part of plan_read(): the list `nodes`. Errors: LS_ENOMEM. */
LS_MUST_USE int plan_read_nodes(struct plan *plan, ls_config_section *root);

/* Another: that the learners suit learner.driver. */
void plan_check_learners(const struct plan *plan, ls_config_section *root);

/* Whether its nodes are members, which have nothing to learn. */
bool plan_is_of_members(const struct plan *plan);
/* Whether a coordinator gives the others their work. */
bool plan_is_service(const struct plan *plan);
/* How many batches a learner of a coordinator may have at once: one that trains
 * and one to come, at least. */
int64_t plan_learner_batches(const struct plan *plan);
/* The most samples that a replay buffer keeps at a time. */
int64_t plan_samples_kept(const struct plan *plan);
size_t plan_count(const struct plan *plan, enum plan_role role);

/* That all nodes of a plan have, and clients (client.h) do not: so a barrier
 * among the former is not waited for at the latter. */
#define PLAN_LABEL       "planned"
#define PLAN_CLIENTS_MAX 8
/* How many may be in its world, with its clients. */
uint32_t plan_world_max(const struct plan *plan);

/* That its nodes serve calls under: call.h. */
uint32_t plan_channel(const struct plan *plan);

/* How long an iteration may take: each of three parts (collect, learn,
 * evaluate) step_timeout_s; of members, a pause and a barrier. In ms. */
int64_t plan_iteration_ms(const struct plan *plan);
/* By when, from the beginning of a run, it must have ended by stop.minutes,
 * which must be set: what is under way then may be an iteration, and a wait for
 * one that was lost. In ms. */
int64_t plan_stop_ms(const struct plan *plan);

/* A number for this job with this `out`, as an absolute path: two that run on
 * a host at once differ in it. */
uint64_t plan_place(const struct plan *plan);
uint64_t plan_place_of(const char *job, const char *out);

/* Have its nodes wait so long for each other, for a debugger: nobody is lost,
 * and no wait is over, before. Waits that are longer stay as they are. */
void plan_be_patient(struct plan *plan, int patience_ms);

/* Whether the run can outlive a node. */
bool plan_can_lose_nodes(const struct plan *plan);

/* Have the nodes of one run refuse those of another run of the same file: when
 * a node dies, the other run may get its port. pid: of the run. */
void plan_set_run(struct plan *plan, long pid);

#define PLAN_LATEST "latest"

/* The folder of its run, which is out/`name`, and where a service job keeps its
 * files: in it, or where the file says, in a folder named by job and `tag`.
 * Before, it is that of the run that was begun last: PLAN_LATEST.
 * Errors: LS_ENOMEM. */
LS_MUST_USE int plan_set_folder(struct plan *plan, const char *name,
                                const char *tag);

/* A hash of all that decides what is learned, and of nothing else: not when the
 * job ends, where its nodes are, or how they are watched. */
uint64_t plan_learning_hash(const struct plan *plan);

/* Find a node. Errors: LS_EINVAL there is none: lists those there are. */
LS_MUST_USE int plan_find(const struct plan *plan, uint32_t id, size_t *index);

/* Whether several learners of a job in step share each batch: learner i, in the
 * order of ids, learns from what the i-th part of the collectors brings. */
bool plan_is_shared(const struct plan *plan);
/* How many learners share each batch, of either kind of job; 1: none does. */
size_t plan_ranks(const struct plan *plan);
/* Which part a learner or collector of such a job has; 0 in all others. */
size_t plan_part(const struct plan *plan, size_t index);
/* The words that a node says its role with: "learner"; with several learners
 * "learner,learner.0", and "collector,collector.0" of those whose data it
 * learns from. Returns text. */
#define PLAN_ROLE_MAX 32
const char *plan_role_words(const struct plan *plan, size_t index,
                            char text[PLAN_ROLE_MAX]);

/* The role of this name, as in plan_role_names. false: there is none. */
bool plan_role_named(const char *name, enum plan_role *out);

/* What each node of the job has, of its plan and by default: the rest is its
 * own. Borrows the name of the job. */
void plan_node_options(const struct plan *plan, struct ls_node_options *out);
/* The end of a start with those options, `status`: one that took too long is
 * told with the key that gives it longer. */
int plan_start_ended(int status);

/* Whether its host is "{hostname}", the name of whichever machine it runs on:
 * others hear of it only from the node itself. */
bool plan_host_is_own(const struct plan_node *node);

/* Where a node is attached to: an endpoint, and before it, with keys, the id of
 * the node that is to answer there: "3@tcp://127.0.0.1:21500". */
#define PLAN_ADDRESS_MAX (LS_ENDPOINT_MAX + 12)

/* Where a node listens and whom it attaches to. */
struct plan_endpoints {
    char bind[LS_ENDPOINT_MAX + 1];
    char advertise[LS_ENDPOINT_MAX + 1]; /* "": what was bound */
    char attach[PLAN_ATTACH_MAX][PLAN_ADDRESS_MAX];
    size_t n_attach;
};

/* For a node among all others on this machine, as `run` starts them: `host`
 * does not count, and those that name nobody attach to the first node.
 * first: its endpoint once it is known; NULL: it is not, or this is it.
 * dir:   for ipc sockets.
 * Errors: LS_ECONFIG an endpoint would be too long, or, with keys, it is not
 *         known which node is at one that is attached to. */
LS_MUST_USE int plan_endpoints_here(const struct plan *plan, size_t index,
                                    const char *first, const char *dir,
                                    struct plan_endpoints *out);

/* For a node that is started by itself: the others are found through the first
 * node's host or fixed endpoint.
 * Errors: those of plan_endpoints_here(). */
LS_MUST_USE int plan_endpoints_alone(const struct plan *plan, size_t index,
                                     struct plan_endpoints *out);

/* Write the address under which a node is attached to at an endpoint. */
void plan_put_address(const struct plan *plan, size_t index,
                      const char *endpoint, char out[PLAN_ADDRESS_MAX]);

/* Write one that the user gave: with keys, and where he left it out, the id of
 * the node that the plan has there.
 * Errors: LS_ECONFIG it has none there; the address is too long. */
LS_MUST_USE int plan_copy_address(const struct plan *plan, const char *address,
                                  char out[PLAN_ADDRESS_MAX]);

/* Print into the place of an endpoint: LS_ENDPOINT_MAX + 1 bytes. Errors:
 * LS_ECONFIG it is longer. */
LS_MUST_USE int plan_put_endpoint(char *to, const char *format, ...)
    LS_PRINTF(2, 3);

/* What is wrong with the form of an endpoint, in words for a message; NULL:
 * nothing. listen: it is for bind, so a range of ports is fine. */
const char *plan_endpoint_fault(const char *endpoint, bool listen);
/* "21500", or "21500-21999". False: these are no ports. */
bool plan_read_ports(const char *text, int *first, int *last);
/* Whether all of it is visible ASCII: an address in a password is. */
bool plan_is_visible(const char *text);
/* What is wrong with an endpoint in a password, if nodes show one. */
const char *plan_password_fault(const struct plan *plan, const char *endpoint);
/* The form of one that is attached to, which may begin with an id. */
const char *plan_address_fault(const char *address);
/* Its endpoint. Borrow: part of it. */
const char *plan_address_endpoint(const char *address);
/* Whether an endpoint is reached from this machine only. */
bool plan_endpoint_is_local(const char *endpoint);
/* All interfaces of this host, as "tcp://HOST" of the same family. */
const char *plan_endpoint_everywhere(const char *endpoint);

/* Print it: a table for people, or one JSON object. Errors: LS_ENOMEM. */
LS_MUST_USE int plan_print(const struct plan *plan, bool json);

#endif
