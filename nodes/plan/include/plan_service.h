/* plan_service.h - the section `coordinator` of a configuration: what the
 * coordinator of a service job asks for, and how it is done.
 *
 * Thread: serial. */
#ifndef LOCKSTEP_PLAN_SERVICE_H
#define LOCKSTEP_PLAN_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "lockstep/config.h"

#include "coordinator_settings.h"

struct plan;

/* Where the data and the policies are. */
enum plan_store { PLAN_STORE_BUS, PLAN_STORE_FILES };
extern const char *const plan_store_names[];

struct plan_service {
    /* But for what other sections of the file say, or the sizes of the plugin:
     * plan_coordinator_options() adds that. */
    struct fsm_options fsm;
    double patience_s; /* a member keeps its work so long without its
                        * coordinator */
    bool journal;      /* of the works, for the coordinator's restart */
    int64_t channel;   /* that the members serve */
    enum plan_store store;
    const char *data_at, *policy_at; /* as the file has them; "": nothing */
    char *path_data, *path_policy;   /* own; folders of this run, with
                                      * PLAN_STORE_FILES */
    int64_t max_mib; /* that a node may keep, with PLAN_STORE_BUS */
    int pace_ms;     /* before a learner learns: 0 to so much, at random */
};

/* All that a coordinator is told to do. */
void plan_coordinator_options(const struct plan *plan, struct fsm_options *out);

/* "fifo", "priority". */
const char *plan_replay_name(const struct plan *plan);

/* Part of plan_read(), after nodes and roles. */
void plan_read_service(struct plan *plan, ls_config_section *root);
/* Part of plan_set_folder(). Errors: LS_ENOMEM. */
LS_MUST_USE int plan_set_service_folders(struct plan *plan, const char *tag);
void plan_fini_service(struct plan_service *service);

#endif
