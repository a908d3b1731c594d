#include "exchange_inbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchange_merge.h"
#include "word_list.h"

struct sender {
    uint32_t id;
    uint64_t incarnation;
    enum ls_member_state state; /* SEEN: has only sent so far */
    bool in_role;
    bool mourned; /* its loss has been taken */
    int reason;
    uint64_t ended; /* the last run that it ended; 0: none */
    uint64_t dropped;
    char role[sizeof((struct ls_member *)NULL)->role];
    struct ls_exchange_message *queue; /* own; room for `depth` */
    size_t n;
};

struct ls_exchange_inbox {
    const char *from; /* borrow */
    size_t depth;
    struct sender *senders; /* own; in order of id */
    size_t n;
    uint64_t round;
    uint64_t stale; /* messages of earlier rounds */
};

int ls_exchange_inbox_create(ls_exchange_inbox **out, const char *from,
                             size_t depth)
{
    ls_exchange_inbox *inbox = calloc(1, sizeof *inbox);
    if (inbox == NULL)
        return ls_error(LS_ENOMEM, "exchange: no memory for an inbox");
    inbox->from = from;
    inbox->depth = depth;
    *out = inbox;
    return LS_OK;
}

static void sender_clear(struct sender *sender)
{
    while (sender->n > 0)
        free(sender->queue[--sender->n].data);
}

void ls_exchange_inbox_destroy(ls_exchange_inbox **inbox)
{
    if (inbox == NULL || *inbox == NULL)
        return;
    for (size_t i = 0; i < (*inbox)->n; i++) {
        sender_clear(&(*inbox)->senders[i]);
        free((*inbox)->senders[i].queue);
    }
    free((*inbox)->senders);
    free(*inbox);
    *inbox = NULL;
}

static int no_memory(uint32_t id)
{
    return ls_error(LS_ENOMEM, "exchange: no memory for what node %u sends",
                    (unsigned)id);
}

static size_t place_of(const ls_exchange_inbox *inbox, uint32_t id)
{
    size_t at = 0;
    while (at < inbox->n && inbox->senders[at].id < id)
        at++;
    return at;
}

/* NULL: no memory. */
static struct sender *sender_add(ls_exchange_inbox *inbox, size_t at,
                                 uint32_t id)
{
    struct sender *senders =
        realloc(inbox->senders, (inbox->n + 1) * sizeof *senders);
    if (senders == NULL)
        return NULL;
    inbox->senders = senders;
    struct ls_exchange_message *queue = calloc(inbox->depth, sizeof *queue);
    if (queue == NULL)
        return NULL;
    memmove(&senders[at + 1], &senders[at], (inbox->n - at) * sizeof *senders);
    senders[at] = (struct sender){.id = id, .queue = queue};
    inbox->n++;
    return &senders[at];
}

/* The sender in this life of it; NULL: no memory. */
static struct sender *sender_of(ls_exchange_inbox *inbox, uint32_t id,
                                uint64_t incarnation)
{
    const size_t at = place_of(inbox, id);
    struct sender *sender = at < inbox->n && inbox->senders[at].id == id
                                ? &inbox->senders[at]
                                : sender_add(inbox, at, id);
    if (sender != NULL && sender->incarnation != incarnation) {
        sender_clear(sender);
        sender->incarnation = incarnation;
        sender->state = LS_MEMBER_SEEN;
        sender->mourned = false;
        sender->ended = 0;
    }
    return sender;
}

static bool is_in_role(const ls_exchange_inbox *inbox, const char *roles)
{
    return word_list_meets(roles, inbox->from);
}

static bool is_gone(const struct ls_member *member)
{
    return member->state == LS_MEMBER_LEFT || member->state == LS_MEMBER_LOST;
}

int ls_exchange_inbox_member(ls_exchange_inbox *inbox,
                             const struct ls_member *member)
{
    const bool in_role = is_in_role(inbox, member->role);
    const size_t at = place_of(inbox, member->id);
    const bool known = at < inbox->n && inbox->senders[at].id == member->id;
    if (!known && !in_role && is_gone(member))
        return LS_OK;
    /* The end of an earlier life says nothing about this one. */
    if (known && is_gone(member) &&
        inbox->senders[at].incarnation != member->incarnation)
        return LS_OK;
    struct sender *sender = sender_of(inbox, member->id, member->incarnation);
    if (sender == NULL)
        return no_memory(member->id);
    sender->state = member->state;
    sender->reason = member->reason;
    if (member->state == LS_MEMBER_READY)
        sender->mourned = false;
    sender->in_role = in_role;
    memcpy(sender->role, member->role, sizeof sender->role);
    if (!in_role)
        sender_clear(sender);
    return LS_OK;
}

int ls_exchange_inbox_members(ls_exchange_inbox *inbox,
                              const struct ls_member *members, size_t n)
{
    int status = LS_OK;
    for (size_t i = 0; i < n && status == LS_OK; i++) {
        const struct ls_member *member = &members[i];
        const size_t at = place_of(inbox, member->id);
        const struct sender *known =
            at < inbox->n && inbox->senders[at].id == member->id
                ? &inbox->senders[at]
                : NULL;
        if (member->state == LS_MEMBER_READY &&
            (known == NULL || known->incarnation != member->incarnation ||
             known->state == LS_MEMBER_SEEN))
            status = ls_exchange_inbox_member(inbox, member);
    }
    return status;
}

int ls_exchange_inbox_put(ls_exchange_inbox *inbox, uint32_t id,
                          uint64_t incarnation, const void *data, size_t size,
                          uint64_t *dropped)
{
    const uint64_t round = ls_exchange_round_of(data, size);
    *dropped = 0;
    if (round < inbox->round) {
        inbox->stale++;
        return LS_OK;
    }
    struct sender *sender = sender_of(inbox, id, incarnation);
    if (sender != NULL && sender->state != LS_MEMBER_SEEN && !sender->in_role)
        return LS_OK; /* it is none that sends */
    void *copy = malloc(size > 0 ? size : 1);
    if (sender == NULL || copy == NULL) {
        free(copy);
        return no_memory(id);
    }
    if (size > 0)
        memcpy(copy, data, size);
    if (sender->n == inbox->depth) {
        *dropped = ++sender->dropped;
        free(sender->queue[0].data);
        memmove(&sender->queue[0], &sender->queue[1],
                --sender->n * sizeof *sender->queue);
    }
    sender->queue[sender->n++] =
        (struct ls_exchange_message){id, round, copy, size};
    return LS_OK;
}

int ls_exchange_inbox_end(ls_exchange_inbox *inbox, uint32_t id,
                          uint64_t incarnation, uint64_t run)
{
    struct sender *sender = sender_of(inbox, id, incarnation);
    if (sender == NULL)
        return no_memory(id);
    sender->ended = run;
    return LS_OK;
}

static bool was_lost(const struct sender *sender)
{
    return sender->state == LS_MEMBER_LOST ||
           (sender->state == LS_MEMBER_LEFT && sender->reason != LS_OK);
}

/* Rounds only grow along a queue, but for what a peer may say. */
static size_t discard_before(struct sender *sender, uint64_t round)
{
    size_t kept = 0;
    const size_t n = sender->n;
    for (size_t i = 0; i < n; i++) {
        if (sender->queue[i].round < round)
            free(sender->queue[i].data);
        else
            sender->queue[kept++] = sender->queue[i];
    }
    sender->n = kept;
    return n - kept;
}

void ls_exchange_inbox_begin(ls_exchange_inbox *inbox, uint64_t round)
{
    inbox->round = round;
    for (size_t i = 0; i < inbox->n; i++) {
        struct sender *sender = &inbox->senders[i];
        inbox->stale += discard_before(sender, round);
        sender->mourned = sender->mourned || was_lost(sender);
    }
}

uint64_t ls_exchange_inbox_stale(const ls_exchange_inbox *inbox)
{
    return inbox->stale;
}

/* Its loss is a failure of this run, and was not taken yet. */
static bool is_loss(const struct sender *sender, uint64_t run)
{
    return sender->in_role && was_lost(sender) && !sender->mourned &&
           sender->ended < run;
}

/* What an empty queue means. */
static void look_at(const struct sender *sender, uint64_t run,
                    struct ls_exchange_look *look)
{
    if (!sender->in_role)
        return;
    if (is_loss(sender, run))
        look->lost++;
    else if (sender->state == LS_MEMBER_LEFT || sender->state == LS_MEMBER_LOST)
        look->left++;
    else if (sender->ended >= run)
        look->ended++;
    else if (sender->state == LS_MEMBER_READY)
        look->awaited++;
}

void ls_exchange_inbox_look(const ls_exchange_inbox *inbox, uint64_t run,
                            struct ls_exchange_look *out)
{
    struct ls_exchange_look look = {.queued = 0};
    for (size_t i = 0; i < inbox->n; i++) {
        if (inbox->senders[i].n > 0)
            look.queued++;
        else
            look_at(&inbox->senders[i], run, &look);
    }
    *out = look;
}

size_t ls_exchange_inbox_take(ls_exchange_inbox *inbox,
                              struct ls_exchange_message *out, size_t capacity)
{
    size_t taken = 0;
    for (size_t i = 0; i < inbox->n && taken < capacity; i++) {
        struct sender *sender = &inbox->senders[i];
        if (sender->n == 0)
            continue;
        out[taken++] = sender->queue[0];
        memmove(&sender->queue[0], &sender->queue[1],
                --sender->n * sizeof *sender->queue);
    }
    return taken;
}

static const char *end_of(const struct sender *sender)
{
    return sender->state == LS_MEMBER_LOST ? "was lost" : "left with an error";
}

int ls_exchange_inbox_take_loss(ls_exchange_inbox *inbox, uint64_t run)
{
    const struct sender *first = NULL;
    for (size_t i = 0; i < inbox->n; i++) {
        struct sender *sender = &inbox->senders[i];
        if (!is_loss(sender, run) || sender->n > 0)
            continue;
        sender->mourned = true;
        if (first == NULL)
            first = sender;
    }
    if (first == NULL)
        return ls_error(LS_ELOST, "no sender is left");
    return ls_error(LS_ELOST, "node %u (%s) %s: %s", (unsigned)first->id,
                    first->role, end_of(first),
                    ls_status_sentence(first->reason));
}

int ls_exchange_inbox_none_left(const ls_exchange_inbox *inbox)
{
    const char *text = "no node that sends is left, and nobody has finished "
                       "the run";
    for (size_t i = 0; i < inbox->n; i++) {
        const struct sender *sender = &inbox->senders[i];
        if (sender->in_role && was_lost(sender))
            return ls_error(LS_ELOST, "%s: node %u (%s) %s: %s", text,
                            (unsigned)sender->id, sender->role, end_of(sender),
                            ls_status_sentence(sender->reason));
    }
    return ls_error(LS_ELOST, "%s", text);
}

void ls_exchange_inbox_print_awaited(const ls_exchange_inbox *inbox,
                                     uint64_t run, bool ended, char *text,
                                     size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < inbox->n; i++) {
        const struct sender *sender = &inbox->senders[i];
        struct ls_exchange_look look = {.queued = 0};
        look_at(sender, run, &look);
        const bool has_ended = ended && look.ended > 0;
        if (sender->n > 0 || (look.awaited == 0 && !has_ended) || used >= size)
            continue;
        const int n =
            snprintf(text + used, size - used, "%snode %u (%s)%s",
                     used > 0 ? ", " : "", (unsigned)sender->id, sender->role,
                     has_ended ? ", which has ended its run" : "");
        used += (size_t)n;
    }
}
