/* service_options.h - what a service of a member is made of, be it a learner's
 * or a collector's. */
#ifndef LOCKSTEP_SERVICE_OPTIONS_H
#define LOCKSTEP_SERVICE_OPTIONS_H

#include "lockstep/call.h"

#include "service_sabotage.h"
#include "service_watch.h"
#include "store.h"

/* The step in which it waits for work, for as long as there is none. */
#define SERVICE_IDLE_STEP "await work"

struct service_options {
    ls_node *node;       /* borrow, longer than the service; not yet started, if
                          * no call may be missed */
    ls_rpc *calls;       /* borrow; closed before the service is destroyed */
    struct store *store; /* borrow, longer than the service */
    uint32_t coordinator; /* id of the node that will call it */
    uint32_t channel;     /* that other members of its kind serve; 0: any */
    double gpu, cpu;      /* what "resource" answers: GPUs, and processors, of
                           * which there may be a part */
    int patience_ms;   /* how long a lost coordinator is waited for; 0: not */
    int store_wait_ms; /* for one put or get; 0: default 10000 */
    const struct service_watch *watch; /* borrow; NULL: nobody */
    enum service_sabotage sabotage;
};

/* What a service of a member counts, whatever its works are. */
struct service_figures {
    int64_t works;      /* begun */
    int64_t given_back; /* because something failed */
    int64_t failed;     /* calls: whose data or policy could not be had */
    int64_t refused;    /* calls: of other works or attempts, malformed, or not
                         * asked for */
};

#endif
