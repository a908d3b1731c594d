/* What a barrier's options mean to its state machine. */
#include <inttypes.h>
#include <string.h>

#include "barrier_discard.h"
#include "barrier_parts.h"

/* Whether `word` is one of those in a list, "learner,evaluator". */
static bool has_word(const char *list, const char *word)
{
    const size_t size = strlen(word);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',' ? 1 : 0;
        if (strncmp(at, word, size) == 0 &&
            (at[size] == '\0' || at[size] == ','))
            return true;
    }
    return false;
}

bool ls_barrier_has_member(const ls_barrier *barrier,
                           const struct ls_member *member)
{
    return barrier->group[0] == '\0' ||
           has_word(member->role, barrier->group) ||
           has_word(member->labels, barrier->group);
}

static uint32_t hash_bytes(uint32_t hash, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * UINT32_C(16777619);
    return hash;
}

/* Numbers as bytes in one order, so that machines agree. */
static uint32_t hash_number(uint32_t hash, uint32_t number)
{
    const unsigned char bytes[4] = {
        (unsigned char)(number >> 24), (unsigned char)(number >> 16),
        (unsigned char)(number >> 8), (unsigned char)number};
    return hash_bytes(hash, bytes, sizeof bytes);
}

struct ls_epoch_rules ls_barrier_rules(const ls_node *node,
                                       const struct ls_barrier_options *options)
{
    const bool go_on = options->on_loss == LS_ON_LOSS_GO_ON;
    const bool any = options->expected == LS_BARRIER_ANY;
    const uint32_t expected = any ? 0 : options->expected;
    const uint32_t size = ls_node_world_size(node);
    const uint32_t max = ls_node_world_max(node);
    struct ls_epoch_rules rules = {
        .least = expected,
        .most = go_on ? 0 : expected,
        .room = max > size ? max : 0,
        .fanout = options->fanout,
        .go_on = go_on,
        .grace_ns = options->grace_ms * LS_NS_PER_MS,
    };
    if (expected == 0 && !any && options->group == NULL) {
        rules.least = go_on ? 1 : size;
        rules.most = max > size ? max : size;
    }
    const char *group = options->group == NULL ? "" : options->group;
    uint32_t hash = hash_bytes(UINT32_C(2166136261), group, strlen(group));
    hash = hash_number(hash, options->expected);
    hash = hash_number(hash, options->fanout);
    rules.hash = hash_number(hash, go_on ? 1 : 0);
    return rules;
}

bool ls_barrier_is_in(const ls_node *node, const char *group)
{
    return group[0] != '\0' && (has_word(ls_node_role(node), group) ||
                                has_word(ls_node_labels(node), group));
}

int ls_barrier_check(const ls_node *node, const char *name,
                     const struct ls_barrier_options *options)
{
    const size_t most = LS_EVENT_MAX + 1 - sizeof LS_BARRIER_CHANNEL;
    if (name[0] == '\0' || strlen(name) > most)
        return ls_error(LS_EINVAL,
                        "barrier \"%.32s\": its name has not 1 to %zu bytes",
                        name, most);
    if (options->grace_ms < 0)
        return ls_error(LS_EINVAL, "barrier \"%s\": grace_ms is %d", name,
                        options->grace_ms);
    if (options->group != NULL && !ls_barrier_is_in(node, options->group))
        return ls_error(LS_EINVAL,
                        "barrier \"%s\": node %" PRIu32
                        " is not in its group \"%.32s\": its role is \"%s\", "
                        "its labels are \"%s\"",
                        name, ls_node_id(node), options->group,
                        ls_node_role(node), ls_node_labels(node));
    return LS_OK;
}
