/* plan_service.h - the section `coordinator` of a configuration: what the
 * coordinator of a service job asks for, and how it is done.
 *
 * Thread: serial. */
#ifndef LOCKSTEP_PLAN_SERVICE_H
#define LOCKSTEP_PLAN_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "lockstep/config.h"

struct plan;

/* Where the data and the policies are. */
enum plan_store { PLAN_STORE_BUS, PLAN_STORE_FILES };
extern const char *const plan_store_names[];

#define PLAN_HOME_MAKER (-1)

enum plan_replay_mode { PLAN_REPLAY_FIFO, PLAN_REPLAY_PRIORITY };
extern const char *const plan_replay_names[];

/* What the fields mean in full: replay.h. */
struct plan_replay {
    enum plan_replay_mode mode;
    int64_t capacity, min_size;
    double samples_per_insert, error_buffer; /* 0: no limiter; its default */
    int64_t max_staleness;                   /* versions; 0: any */
    int64_t max_times_sampled;               /* 0: any; fifo: once */
    double valid_ratio;
};

struct plan_service {
    int64_t iterations;       /* of the learner work; 0: until it is solved */
    double eval_interval_s;   /* between two evaluations; 0: always one */
    int64_t batch;            /* samples of an iteration */
    int64_t samples_per_work; /* then the collector is free for another work; 0:
                               * never, and one collector is kept free to
                               * evaluate */
    int64_t unroll, split;    /* steps of a sample; parts that it is cut into */
    int64_t ahead; /* trajectories that a collector makes before it is
                    * asked again, besides one */
    int64_t send_policy_freq, send_info_freq; /* each so many iterations */
    double patience_s; /* a member keeps its work so long without its
                        * coordinator */
    bool journal;      /* of the works, for the coordinator's restart */
    double learner_expiry_s, collector_expiry_s; /* of a work that nobody can
                                                  * have */
    double retry_s;  /* of a start that was refused */
    int64_t channel; /* that the members serve */
    enum plan_store store;
    const char *data_at, *policy_at; /* as the file has them; "": nothing */
    char *path_data, *path_policy;   /* own; folders of this run, with
                                      * PLAN_STORE_FILES */
    int64_t max_mib; /* that a node may keep, with PLAN_STORE_BUS */
    int64_t home;    /* id of the node that keeps the data, with PLAN_STORE_BUS;
                      * PLAN_HOME_MAKER: whoever makes it does */
    struct plan_replay replay;
    int pace_ms;  /* before a learner learns: 0 to so much, at random */
    int sabotage; /* enum service_sabotage; what to break on purpose */
};

/* Part of plan_read(), after nodes and roles. */
void plan_read_service(struct plan *plan, ls_config_section *root);
/* Part of plan_set_folder(). Errors: LS_ENOMEM. */
LS_MUST_USE int plan_set_service_folders(struct plan *plan, const char *tag);
void plan_fini_service(struct plan_service *service);

#endif
