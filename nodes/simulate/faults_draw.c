/* One run's faults, drawn from a seed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "faults.h"

struct list {
    struct fault *faults;
    size_t n;
};

static int64_t draw_up_to(struct ls_rng *rng, int64_t most)
{
    return (int64_t)ls_rng_below(rng, (uint64_t)most + 1);
}

static void add(struct list *list, struct fault fault, enum fault_kind end,
                int64_t length)
{
    list->faults[list->n++] = fault;
    if (end == FAULT_N_KINDS)
        return;
    fault.kind = end;
    fault.at += length;
    list->faults[list->n++] = fault;
}

/* Two different nodes, if there are two. */
static void draw_link(const struct plan *plan, struct ls_rng *rng,
                      struct fault *out)
{
    const size_t n = plan->n_nodes;
    const size_t from = (size_t)ls_rng_below(rng, n);
    const size_t step = n > 1 ? 1 + (size_t)ls_rng_below(rng, n - 1) : 0;
    out->from = plan->nodes[from].id;
    out->to = plan->nodes[(from + step) % n].id;
}

static void draw_one(struct list *list, enum fault_kind kind,
                     const struct faults_random *random,
                     const struct plan *plan, struct ls_rng *rng)
{
    struct fault fault = {.kind = kind,
                          .at = draw_up_to(rng, random->within_ns)};
    draw_link(plan, rng, &fault);
    switch (kind) {
    case FAULT_CUT:
        fault.both = ls_rng_double(rng) >= random->one_way;
        add(list, fault, FAULT_HEAL, draw_up_to(rng, random->cut_ns));
        break;
    case FAULT_PAUSE:
        add(list, fault, FAULT_RESUME, draw_up_to(rng, random->pause_ns));
        break;
    case FAULT_KILL:
    case FAULT_POWER:
        add(list, fault, random->restart_ns > 0 ? FAULT_RESTART : FAULT_N_KINDS,
            random->restart_ns / 2 + draw_up_to(rng, random->restart_ns));
        break;
    case FAULT_FULL:
        add(list, fault, FAULT_ROOM, draw_up_to(rng, random->full_ns));
        break;
    case FAULT_STRANGER:
        fault.length_ns = 1 + draw_up_to(rng, random->stranger_ns);
        add(list, fault, FAULT_N_KINDS, 0);
        break;
    case FAULT_CLOCK:
        fault.length_ns =
            draw_up_to(rng, 2 * random->step_ns) - random->step_ns;
        add(list, fault, FAULT_N_KINDS, 0);
        break;
    default:
        fault.both = true;
        add(list, fault, FAULT_N_KINDS, 0);
        break;
    }
}

static void draw_all(struct list *list, const struct faults_random *random,
                     const struct plan *plan, struct ls_rng *rng)
{
    const struct {
        enum fault_kind kind;
        uint64_t most;
    } parts[] = {
        {FAULT_CUT, random->cuts},           {FAULT_RESET, random->resets},
        {FAULT_PAUSE, random->pauses},       {FAULT_KILL, random->kills},
        {FAULT_STRANGER, random->strangers}, {FAULT_CLOCK, random->steps},
        {FAULT_POWER, random->power_cuts},   {FAULT_FULL, random->full}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const uint64_t n = ls_rng_below(rng, parts[i].most + 1);
        for (uint64_t k = 0; k < n; k++)
            draw_one(list, parts[i].kind, random, plan, rng);
    }
}

/* Stable: what the file has first, comes first. */
static void sort(struct fault *faults, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const struct fault fault = faults[i];
        size_t k = i;
        for (; k > 0 && faults[k - 1].at > fault.at; k--)
            faults[k] = faults[k - 1];
        faults[k] = fault;
    }
}

int faults_draw(const struct faults *faults, const struct plan *plan,
                struct ls_rng *rng, struct fault **out, size_t *n)
{
    const struct faults_random *random = &faults->random;
    const size_t most =
        faults->n_script +
        2 * (size_t)(random->cuts + random->resets + random->pauses +
                     random->kills + random->strangers + random->steps +
                     random->power_cuts + random->full);
    struct list list = {.faults = calloc(most + 1, sizeof *list.faults)};
    if (list.faults == NULL)
        return ls_error(LS_ENOMEM, "drawing faults");
    for (size_t i = 0; i < faults->n_script; i++)
        list.faults[list.n++] = faults->script[i];
    draw_all(&list, random, plan, rng);
    sort(list.faults, list.n);
    *out = list.faults;
    *n = list.n;
    return LS_OK;
}

static bool covers(uint32_t wide, uint32_t narrow)
{
    return wide == FAULT_ALL || wide == narrow;
}

bool faults_is_undone(const struct fault *list, size_t n, size_t i)
{
    const struct fault *fault = &list[i];
    const enum fault_kind wanted = faults_end_of(fault->kind);
    if (wanted == FAULT_N_KINDS)
        return true;
    const bool is_link = fault->kind < FAULT_PAUSE;
    for (size_t k = i + 1; k < n; k++) {
        const struct fault *later = &list[k];
        if (later->kind == wanted && covers(later->from, fault->from) &&
            (!is_link ||
             (covers(later->to, fault->to) && (later->both || !fault->both))))
            return true;
    }
    return false;
}

void faults_draw_skew(const struct faults *faults, struct ls_rng *rng,
                      int64_t *offset_ns, double *drift)
{
    /* Ahead only: a clock that is set back stands still until it is true. */
    *offset_ns = draw_up_to(rng, faults->random.offset_ns);
    *drift = (2.0 * ls_rng_double(rng) - 1.0) * faults->random.drift;
}

static void print_id(uint32_t id, char *text, size_t size)
{
    if (id == FAULT_ALL)
        (void)snprintf(text, size, "all");
    else
        (void)snprintf(text, size, "%" PRIu32, id);
}

void faults_print(const struct fault *fault, char *text, size_t size)
{
    char from[16], to[16];
    print_id(fault->from, from, sizeof from);
    print_id(fault->to, to, sizeof to);
    const double at = (double)fault->at / (double)LS_NS_PER_S;
    if (fault->kind == FAULT_STRANGER && fault->length_ns != 0)
        (void)snprintf(text, size, "%.3f s: %s %s, for_ms: %" PRId64, at,
                       fault_names[fault->kind], from,
                       fault->length_ns / LS_NS_PER_MS);
    else if (fault->kind == FAULT_CLOCK)
        (void)snprintf(text, size, "%.3f s: %s %s, by_ms: %" PRId64, at,
                       fault_names[fault->kind], from,
                       fault->length_ns / LS_NS_PER_MS);
    else if (fault->kind >= FAULT_PAUSE)
        (void)snprintf(text, size, "%.3f s: %s %s", at,
                       fault_names[fault->kind], from);
    else
        (void)snprintf(text, size, "%.3f s: %s %s %c %s", at,
                       fault_names[fault->kind], from, fault->both ? '-' : '>',
                       to);
}
