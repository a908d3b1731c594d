#include "lease_trust.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lockstep/log.h"

#include "lease.h"
#include "lease_table.h"
#include "plan_lease.h"

/* Those first whose key is theirs no more: it may be another's by now. */
static void apply(const struct lease_trust *trust,
                  const struct lease_table *table)
{
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < table->n; i++) {
            const struct lease *lease = &table->leases[i];
            int status = LS_OK;
            if (lease->id == trust->id)
                continue;
            if (pass == 0 && lease->key[0] == '\0')
                status = ls_security_distrust(trust->security, lease->id);
            if (pass == 1 && lease->key[0] != '\0')
                status =
                    ls_security_trust(trust->security, lease->id, lease->key);
            if (status != LS_OK)
                ls_log_warn("leases: node %" PRIu32 ": %s", lease->id,
                            ls_error_text());
        }
}

int lease_trust_read(const struct lease_trust *trust, const void *data,
                     size_t size)
{
    struct lease_table table = {.n = 0};
    int status = lease_table_of_plan(trust->plan, &table);
    if (status == LS_OK)
        status = lease_table_read(&table, data, size, 0);
    if (status == LS_OK)
        apply(trust, &table);
    lease_table_fini(&table);
    return status;
}

static int on_leases(void *self, const struct ls_event *event)
{
    if (lease_trust_read(self, event->data, event->size) != LS_OK)
        ls_log_warn("leases of node %" PRIu32 " are not understood: %s",
                    event->origin, ls_error_text());
    return LS_OK;
}

int lease_trust_begin(struct lease_trust *trust, ls_node *node)
{
    const struct plan *plan = trust->plan;
    char giver[16];
    (void)snprintf(giver, sizeof giver, "%" PRIu32,
                   plan->nodes[plan_lease_giver(plan)].id);
    const int status = ls_node_allow(node, LEASE_EVENT, giver);
    return status == LS_OK ? ls_on(node, LEASE_EVENT, on_leases, trust)
                           : status;
}
