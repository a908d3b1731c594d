/* Going on as a new incarnation, in place: the connections stay, all accounts
 * and sequences begin anew. Why and when is decided in
 * framework/bus/membership.
 */
#include <stdio.h>
#include <string.h>

#include "assembly.h"
#include "delivery.h"

static void forget_sequences(ls_node *node)
{
    for (struct event_entry *entry = NULL;
         (entry = events_next(node, entry)) != NULL;)
        for (size_t p = 0; p < N_DELIVERIES; p++)
            if (!deliveries[p].keeps)
                entry->sequences[p] = 0;
}

static bool had_anybody(const struct membership *world)
{
    for (size_t i = 0; i < world->n; i++)
        if (world->at[i]->was_ready)
            return true;
    return false;
}

void rejoin(ls_node *node)
{
    char text[LS_ERROR_TEXT_MAX];
    struct membership *world = &node->world;
    const bool had_any = had_anybody(world);
    uint64_t next = 0;
    if (!world->rejoins || world->leaving)
        return;
    batch_flush(node);
    while (next == 0 || next == node->me.incarnation)
        next = ls_entropy(node->runtime);
    links_renew(node, next);
    assembly_drop(node, NULL);
    forget_sequences(node);
    snprintf(text, sizeof text, "%s; it has rejoined as a new member",
             world->rejoin_text);
    membership_renew(world, next, node->loop.now);
    const struct member self = {.id = node->options.id,
                                .incarnation = next,
                                .host = node->me.host,
                                .role = node->me.role,
                                .labels = node->me.labels,
                                .endpoint = node->me.endpoint,
                                .state = LS_MEMBER_READY};
    world_tell(node, &self);
    node->figures.stats.rejoined++;
    if (!had_any) { /* nobody noticed, and nothing was lost */
        ls_log_info("bus: %s", text);
        return;
    }
    ls_log_error("bus: %s", text);
    (void)ls_error(LS_ELOST, "%s", text);
    dispatch_keep_error(node, LS_ELOST);
}
