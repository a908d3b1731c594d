/* What a barrier's errors say. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "barrier_parts.h"

struct ls_member *ls_barrier_copy_members(const ls_barrier *barrier, size_t *n)
{
    const size_t capacity = ls_node_members(barrier->node, NULL, 0);
    struct ls_member *members =
        capacity == 0 ? NULL : calloc(capacity, sizeof *members);
    *n = 0;
    if (members != NULL) {
        *n = ls_node_members(barrier->node, members, capacity);
        if (*n > capacity)
            *n = capacity;
    }
    return members;
}

/* A sentence that grows, cut where it must. */
struct text {
    char bytes[LS_ERROR_TEXT_MAX];
    size_t size;
};

static void LS_PRINTF(2, 3) append(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(text->bytes + text->size,
                            sizeof text->bytes - text->size, format, arguments);
    va_end(arguments);
    text->size += n > 0 ? (size_t)n : 0;
    if (text->size >= sizeof text->bytes)
        text->size = sizeof text->bytes - 1;
}

static void append_heard(struct text *text, int64_t now, uint32_t id,
                         const struct ls_member *members, size_t n)
{
    const struct ls_member *member = NULL;
    for (size_t i = 0; i < n; i++) {
        if (members[i].id == id)
            member = &members[i];
    }
    if (member == NULL || member->heard_at == 0)
        append(text, "never heard");
    else
        append(text, "heard %.1f s ago",
               (double)(now - member->heard_at) / (double)LS_NS_PER_S);
}

static void append_elsewhere(const ls_barrier *barrier, struct text *text,
                             uint32_t id)
{
    for (size_t i = 0; i < LS_BARRIER_ELSEWHERE_MAX; i++) {
        const struct ls_barrier_elsewhere *one = &barrier->elsewhere[i];
        if (one->id == id && one->text[0] != '\0')
            append(text, ", has no barrier of this name, %s", one->text);
    }
}

size_t ls_barrier_say_where(const ls_barrier *barrier,
                            char text[static LS_BARRIER_REASON_MAX])
{
    /* Names may be longer than there is room for. */
    const int n =
        snprintf(text, LS_BARRIER_REASON_MAX, "%s barrier \"%.40s\"",
                 barrier->waiting ? "waits in" : "has", barrier->name);
    return n < 0 ? 0 : (size_t)n;
}

/* The place of what is known of a member; NULL: nothing is. */
static struct ls_barrier_elsewhere *find_elsewhere(ls_barrier *barrier,
                                                   uint32_t id)
{
    for (size_t i = 0; i < LS_BARRIER_ELSEWHERE_MAX; i++) {
        struct ls_barrier_elsewhere *one = &barrier->elsewhere[i];
        if (one->id == id && one->text[0] != '\0')
            return one;
    }
    return NULL;
}

void ls_barrier_note_elsewhere(ls_barrier *barrier, uint32_t from,
                               const struct ls_barrier_message *message)
{
    struct ls_barrier_elsewhere *one = find_elsewhere(barrier, from);
    if (message->kind != LS_BARRIER_UNKNOWN) {
        if (one != NULL)
            one->text[0] = '\0';
        return;
    }
    /* Each of its barriers answers; the one it waits in says most. */
    if (one != NULL && message->reason[0] != 'w')
        return;
    if (one == NULL)
        one =
            &barrier
                 ->elsewhere[barrier->n_elsewhere++ % LS_BARRIER_ELSEWHERE_MAX];
    one->id = from;
    snprintf(one->text, sizeof one->text, "%.*s", (int)message->reason_size,
             message->reason);
}

/* ": node 7 (last in epoch 3, heard 0.2 s ago), …" */
static void append_missing(ls_barrier *barrier, struct text *text,
                           const struct ls_epoch_reason *reason)
{
    size_t n;
    struct ls_member *members = ls_barrier_copy_members(barrier, &n);
    const int64_t now = ls_now(barrier->runtime);
    for (size_t i = 0; i < reason->n_missing; i++) {
        const struct ls_barrier_missing *missing = &reason->missing[i];
        append(text, "%s node %" PRIu32 " (", i == 0 ? ":" : ",", missing->id);
        if (missing->rounds == 0)
            append(text, "entered none");
        else
            append(text, "last in epoch %" PRIu64, missing->rounds - 1);
        if (missing->id != ls_node_id(barrier->node)) {
            append(text, ", ");
            append_heard(text, now, missing->id, members, n);
            append_elsewhere(barrier, text, missing->id);
        }
        append(text, ")");
    }
    if (reason->n_lacking > reason->n_missing)
        append(text, ", and %zu more", reason->n_lacking - reason->n_missing);
    free(members);
}

int ls_barrier_explain(ls_barrier *barrier, const struct ls_epoch_end *end)
{
    const struct ls_epoch_reason *reason = &end->reason;
    struct text text = {.size = 0};
    append(&text, "barrier \"%s\", epoch %" PRIu64 ": ", barrier->name,
           end->epoch);
    if ((end->status == LS_EABORTED || reason->final) &&
        reason->origin != barrier->epoch->id)
        append(&text, "node %" PRIu32 " gave up with %s: ", reason->origin,
               ls_status_name(reason->status));
    append(&text, "%s", reason->text);
    if (reason->n_lacking > 0 && end->status != LS_ELOST) {
        append(&text, "; missing");
        append_missing(barrier, &text, reason);
    }
    return ls_error(end->status, "%s", text.bytes);
}
