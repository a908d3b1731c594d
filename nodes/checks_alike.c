/* Who fail in the same epoch fail alike. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks_parts.h"

/* Reads `barrier "x", epoch 3: node 7 ...`: what a barrier's error says. */
static bool read_text(const char *text, uint64_t *epoch, uint32_t *named)
{
    const char *at = strstr(text, "\", epoch ");
    if (at == NULL || sscanf(at, "\", epoch %" SCNu64, epoch) != 1)
        return false;
    at = strstr(at, "node ");
    return at != NULL && sscanf(at, "node %" SCNu32, named) == 1;
}

/* Whether `life` has known the other one to be ready since then. */
static bool has_met(const struct check_life *life, const struct check_life *of,
                    int64_t by)
{
    const struct ready *ready =
        checks_find_ready(life, checks_id(of), of->incarnation);
    return ready != NULL && ready->at <= by;
}

static bool are_alike(const struct failure *a, const struct failure *b)
{
    return a->status == b->status && a->named == b->named;
}

static void compare(checks *self, const struct failure *a,
                    const struct failure *b)
{
    const int64_t from =
        a->entered_at < b->entered_at ? a->entered_at : b->entered_at;
    if (a->epoch != b->epoch || are_alike(a, b) ||
        !has_met(a->life, b->life, from) || !has_met(b->life, a->life, from))
        return;
    checks_accuse_difference(
        self, from,
        "alike: epoch %" PRIu64 ": node %" PRIu32
        " fails with %s and names node %" PRIu32 ", node %" PRIu32
        " with %s and node %" PRIu32,
        a->epoch, checks_id(a->life), ls_status_name(a->status), a->named,
        checks_id(b->life), ls_status_name(b->status), b->named);
}

void checks_note_failure(struct check_life *life, int status)
{
    checks *self = life->all;
    struct failure failure = {.life = life,
                              .status = status,
                              .entered_at = life->entered_at,
                              .previous = self->failures};
    if ((status != LS_ELOST && status != LS_EABORTED) ||
        !read_text(ls_error_text(), &failure.epoch, &failure.named))
        return;
    for (const struct failure *other = self->failures; other != NULL;
         other = other->previous)
        compare(self, &failure, other);
    self->failures = malloc(sizeof failure);
    if (self->failures == NULL) {
        self->failures = failure.previous;
        ls_simulation_violation(self->simulation, "checks: no memory");
        return;
    }
    *self->failures = failure;
}

void checks_forget_failures(checks *self)
{
    while (self->failures != NULL) {
        struct failure *previous = self->failures->previous;
        free(self->failures);
        self->failures = previous;
    }
}
