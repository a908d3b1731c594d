#include "lease_trust.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/log.h"

#include "lease.h"
#include "lease_table.h"
#include "plan_lease.h"

/* All leased ids of the plan, as a table that the lines are read into. */
static int read_table(const struct lease_trust *trust, const char *text,
                      struct lease_table *out)
{
    const struct plan *plan = trust->plan;
    size_t n = 0;
    int status = lease_table_init(out, plan->n_nodes);
    if (status != LS_OK)
        return status;
    for (size_t i = 0; i < plan->n_nodes; i++)
        if (plan->nodes[i].leased)
            out->leases[n++].id = plan->nodes[i].id;
    out->n = n;
    status = lease_table_read(out, text, 0);
    if (status != LS_OK)
        lease_table_fini(out);
    return status;
}

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
    char *text = malloc(size + 1);
    if (text == NULL)
        return ls_error(LS_ENOMEM, "hearing whose keys are whose");
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    int status = strlen(text) == size
                     ? read_table(trust, text, &table)
                     : ls_error(LS_EPROTO, "there is a NUL in it");
    if (status == LS_OK) {
        apply(trust, &table);
        lease_table_fini(&table);
    }
    free(text);
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
    const int status = ls_event_allow(node, LEASE_EVENT, giver);
    return status == LS_OK ? ls_on(node, LEASE_EVENT, on_leases, trust)
                           : status;
}
