#include "event_access.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bus.h"
#include "word_list.h"

struct event_access {
    struct event_access *next;
    enum event_access_kind { ACCESS_ID, ACCESS_ROLE, ACCESS_LABEL } kind;
    uint32_t id;
    char word[WIRE_LABELS_MAX + 1];
};

void event_access_free(struct event_access *list)
{
    while (list != NULL) {
        struct event_access *next = list->next;
        free(list);
        list = next;
    }
}

/* "3", "role:learner", "label:fast" */
static bool read_who(const char *who, struct event_access *out)
{
    static const struct {
        const char *prefix;
        enum event_access_kind kind;
    } words[] = {{"role:", ACCESS_ROLE}, {"label:", ACCESS_LABEL}};
    char *end;
    if (who == NULL)
        return false;
    for (size_t i = 0; i < 2; i++) {
        const size_t n = strlen(words[i].prefix);
        if (strncmp(who, words[i].prefix, n) != 0)
            continue;
        out->kind = words[i].kind;
        snprintf(out->word, sizeof out->word, "%s", who + n);
        return out->word[0] != '\0' &&
               wire_word_valid(who + n, WIRE_LABELS_MAX, "._-");
    }
    const unsigned long long id = strtoull(who, &end, 10);
    out->kind = ACCESS_ID;
    out->id = (uint32_t)id;
    return who[0] >= '0' && who[0] <= '9' && *end == '\0' && id <= UINT32_MAX;
}

int ls_node_allow(ls_node *node, const char *event, const char *who)
{
    struct event_entry *entry;
    struct event_access one = {.next = NULL};
    if (node_check(node) != LS_OK)
        return LS_ESTATE;
    if (!wire_name_valid(event) || !read_who(who, &one))
        return ls_error(LS_EINVAL,
                        "event \"%s\" from \"%s\": expected an event name, and "
                        "an id, role:WORD or label:WORD",
                        event == NULL ? "" : event, who == NULL ? "" : who);
    const int status = events_get(node, event, strlen(event), true, &entry);
    if (status != LS_OK)
        return status;
    struct event_access *copy = malloc(sizeof *copy);
    if (copy == NULL)
        return ls_error(LS_ENOMEM, "no memory for an access list");
    *copy = one;
    ls_mutex_lock(&node->router.lock);
    copy->next = atomic_load(&entry->access);
    atomic_store(&entry->access, copy);
    ls_mutex_unlock(&node->router.lock);
    return LS_OK;
}

static bool is_meant(const struct event_access *access,
                     const struct member *origin)
{
    switch (access->kind) {
    case ACCESS_ROLE:
        return word_list_has(origin->role, access->word, strlen(access->word));
    case ACCESS_LABEL:
        return word_list_has(origin->labels, access->word,
                             strlen(access->word));
    default:
        return origin->id == access->id;
    }
}

bool event_access_admits(ls_node *node, const struct event_entry *entry,
                         const struct member *origin)
{
    const struct event_access *access = atomic_load(&entry->access);
    if (access == NULL)
        return true;
    for (; access != NULL; access = access->next)
        if (is_meant(access, origin))
            return true;
    (void)ls_error(LS_EPROTO, "node %u may not emit event \"%s\" here",
                   origin->id, entry->name);
    bus_refuse_member(node, origin, LS_REFUSAL_ACCESS);
    return false;
}
