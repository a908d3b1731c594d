/* plan_security.h - who may speak to the nodes of a job: the section `security`
 * of its configuration.
 *
 * Thread: serial. */
#ifndef LOCKSTEP_PLAN_SECURITY_H
#define LOCKSTEP_PLAN_SECURITY_H

#include <stdbool.h>
#include <stddef.h>

#include "lockstep/config.h"
#include "lockstep/security.h"

struct plan;

/* Of the lists of addresses, each. */
#define PLAN_HOSTS_MAX 256

struct plan_hosts {
    const char *items[PLAN_HOSTS_MAX]; /* borrow: config */
    size_t n;
};

struct plan_security {
    enum ls_security_mode mode; /* none: world.insecure */
    char *keys;                 /* own; the folder; NULL but with curve */
    struct plan_hosts allow, deny;
};

/* Part of plan_read(), after its world. Errors: LS_ENOMEM. */
LS_MUST_USE int plan_read_security(struct plan *plan, ls_config_section *root);
void plan_fini_security(struct plan_security *security);

/* Whether each node has a key of its own. */
bool plan_has_keys(const struct plan *plan);
/* Whether a run has a secret for its nodes: with keys, in one process, or where
 * nobody is asked, it needs none. */
bool plan_has_secret(const struct plan *plan);

/* Who may speak, in a few words. */
const char *plan_security_text(const struct plan *plan);
/* What `world.insecure` means, as one line for the user; NULL: it is not set.
 */
const char *plan_security_warning(const struct plan *plan);

/* Whether a node with this id may say so of itself: a node of the job what it
 * is there, and any node what no node of the job says. A service gives works to
 * whoever says that it does such: only PLAN_LABEL is of its own nodes alone. */
bool plan_suits(const struct plan *plan, uint32_t id, const char *role,
                const char *labels);

#endif
