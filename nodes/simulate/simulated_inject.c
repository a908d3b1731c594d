/* The faults of a run, one after the other. */
#include "simulated_run.h"

/* NULL: all. A node that has not begun yet has no host: false. */
static bool host_of(const simulated *all, uint32_t id, ls_host **out)
{
    size_t index;
    *out = NULL;
    if (id == FAULT_ALL)
        return true;
    if (plan_find(all->options.plan, id, &index) != LS_OK ||
        all->current[index] == NULL)
        return false;
    *out = all->current[index]->host;
    return true;
}

static int let_link(simulated *all, const struct fault *fault,
                    const ls_host *from, const ls_host *to)
{
    switch (fault->kind) {
    case FAULT_CUT:
        return ls_network_cut(all->network, from, to);
    case FAULT_HEAL:
        ls_network_heal(all->network, from, to);
        return LS_OK;
    case FAULT_RESET:
        ls_network_reset(all->network, from, to);
        return LS_OK;
    default:
        return ls_network_shape(all->network, from, to, &fault->path);
    }
}

/* Rules are for hosts, and a new life has a new one: what lasts between nodes
 * is said again. The first `n` faults have happened. */
static void renew_links(simulated *all, uint32_t id, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct fault *fault = &all->faults[i];
        ls_host *from, *to;
        if ((fault->kind != FAULT_CUT && fault->kind != FAULT_SHAPE) ||
            (fault->from != id && fault->to != id) ||
            faults_is_undone(all->faults, n, i) ||
            !host_of(all, fault->from, &from) || !host_of(all, fault->to, &to))
            continue;
        int status = let_link(all, fault, from, to);
        if (status == LS_OK && fault->both)
            status = let_link(all, fault, to, from);
        if (status != LS_OK)
            ls_simulation_violation(all->simulation, "restart: %s",
                                    ls_error_text());
    }
}

static void restart(simulated *all, size_t index, size_t n_happened)
{
    struct life *life = all->current[index];
    if (!life->killed || all->watcher != NULL || all->n_done > 0)
        return;
    const struct plan_endpoints endpoints = life->endpoints;
    if (simulated_begin(all, index,
                        &(struct launch){.endpoints = &endpoints,
                                         .generation = life->generation + 1}) !=
        LS_OK)
        ls_simulation_violation(all->simulation, "restart: %s",
                                ls_error_text());
    else
        renew_links(all, all->options.plan->nodes[index].id, n_happened);
}

/* What is on the way to be written may come short. */
#define ALMOST_FULL 4096

static void fill(simulated *all, size_t index)
{
    struct ls_disk_stats stats;
    ls_disk_stats(all->disks[index], &stats);
    ls_disk_fill(
        all->disks[index],
        stats.bytes +
            ls_rng_below(ls_simulation_random(all->simulation), ALMOST_FULL));
}

static void let_disk(simulated *all, const struct fault *fault, size_t index)
{
    if (all->disks != NULL) {
        if (fault->kind == FAULT_POWER)
            ls_disk_power_cut(all->disks[index], all->current[index]->host);
        else if (fault->kind == FAULT_FULL)
            fill(all, index);
        else
            ls_disk_fill(all->disks[index], UINT64_MAX);
    }
    if (fault->kind == FAULT_POWER)
        simulated_kill(all, index);
}

static void let_node(simulated *all, const struct fault *fault)
{
    size_t index;
    if (plan_find(all->options.plan, fault->from, &index) != LS_OK ||
        all->current[index] == NULL)
        return;
    const struct life *life = all->current[index];
    switch (fault->kind) {
    case FAULT_PAUSE:
        if (!life->killed)
            ls_host_pause(life->host);
        if (life->check != NULL)
            checks_paused(life->check);
        break;
    case FAULT_RESUME:
        ls_host_resume(life->host);
        if (life->check != NULL)
            checks_resumed(life->check);
        break;
    case FAULT_KILL:
        simulated_kill(all, index);
        break;
    case FAULT_CLOCK:
        all->skews[index].offset_ns += fault->length_ns;
        ls_host_skew(life->host, all->skews[index].offset_ns,
                     all->skews[index].drift);
        if (life->check != NULL)
            checks_clock_set(life->check, fault->length_ns);
        break;
    case FAULT_STRANGER:
        simulated_stranger(all, fault, index);
        break;
    case FAULT_POWER:
    case FAULT_FULL:
    case FAULT_ROOM:
        let_disk(all, fault, index);
        break;
    default:
        restart(all, index, (size_t)(fault - all->faults));
        break;
    }
}

static void let_happen(simulated *all, const struct fault *fault)
{
    char text[96];
    faults_print(fault, text, sizeof text);
    ls_simulation_note(all->simulation, "fault: %s", text);
    all->injected[fault->kind]++;
    if (fault->kind >= FAULT_PAUSE) {
        let_node(all, fault);
        return;
    }
    ls_host *from, *to;
    if (!host_of(all, fault->from, &from) || !host_of(all, fault->to, &to))
        return;
    int status = let_link(all, fault, from, to);
    if (status == LS_OK && fault->both && fault->kind != FAULT_RESET)
        status = let_link(all, fault, to, from);
    if (status != LS_OK)
        ls_simulation_violation(all->simulation, "%s: %s", text,
                                ls_error_text());
}

void simulated_inject(void *arg)
{
    simulated *all = arg;
    ls_runtime *runtime = ls_simulation_runtime(all->simulation);
    for (size_t i = 0; i < all->n_faults && !all->closing; i++) {
        ls_rest_until(runtime, all->faults[i].at);
        if (!all->closing)
            let_happen(all, &all->faults[i]);
    }
}
