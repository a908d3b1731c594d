/* Shared memory in a simulation. Design notes:
 *
 * - The memory is real, and each host has mappings of its own; so what a host
 *   may not write, it cannot, and a severed memory behaves as it does for real.
 * - A word is known by its memory and where in it the word lies, as a futex is
 *   by its page: hosts see it at different addresses.
 * - Between any two loads and stores another thread may run. A store of a host
 *   that was killed is not made: it would have been too late.
 * - Who waits for several words does so one after the other, as in the kernel:
 *   it waits for a word, looks at it, and goes to the next; what happens
 *   meanwhile to one that is yet to come is not seen as a wake. */
#define _GNU_SOURCE /* F_DUPFD_CLOEXEC */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory_ops.h"
#include "runtime_sim.h"

/* A yield takes so long, at least. */
enum { YIELD_NS = 100 };

struct sim_offer {
    ls_offer base;
    struct sim_offer *next;
    const ls_memory *memory; /* borrow */
    char *path;              /* own */
    uint8_t key[LS_MEMORY_KEY_BYTES];
};

struct sim_word {
    uint64_t memory; /* 0: it lies in none */
    uintptr_t at;
};

/* Lies on the stack of the thread that waits. */
struct sim_waiter {
    struct sim_waiter *next;
    struct sim_thread *thread;
    struct sim_word words[LS_WORDS_MAX];
    size_t n;   /* that it waits for, so far */
    bool woken; /* before it sleeps */
};

static ls_simulation *simulation_of(ls_runtime *runtime)
{
    return sim_host(runtime)->simulation;
}

static int sim_available(void)
{
    return LS_OK;
}

static void sim_mapped(ls_memory *memory)
{
    ls_simulation *const simulation = simulation_of(memory->runtime);
    if (memory->number == 0)
        memory->number = ++simulation->n_memories;
    memory->next = simulation->memories;
    simulation->memories = memory;
}

static void sim_unmapped(ls_memory *memory)
{
    ls_memory **at = &simulation_of(memory->runtime)->memories;
    while (*at != memory)
        at = &(*at)->next;
    *at = memory->next;
}

static struct sim_word word_of(const ls_simulation *simulation,
                               const ls_word *word)
{
    const uintptr_t at = (uintptr_t)word;
    for (const ls_memory *m = simulation->memories; m != NULL; m = m->next)
        if (at - (uintptr_t)m->base < m->size)
            return (struct sim_word){m->number, at - (uintptr_t)m->base};
    return (struct sim_word){0, at};
}

static int sim_offer_begin(ls_offer **out, ls_memory *memory, const char *path,
                           const uint8_t *key)
{
    struct sim_offer *const made = calloc(1, sizeof *made);
    char *const copy = malloc(strlen(path) + 1);
    if (made == NULL || copy == NULL) {
        free(made);
        free(copy);
        return ls_error(LS_ENOMEM, "no memory for an offer of memory");
    }
    made->base.runtime = memory->runtime;
    made->memory = memory;
    made->path = strcpy(copy, path);
    memcpy(made->key, key, sizeof made->key);
    ls_simulation *const simulation = simulation_of(memory->runtime);
    made->next = simulation->offers;
    simulation->offers = made;
    *out = &made->base;
    return LS_OK;
}

static void sim_offer_end(ls_offer *base)
{
    struct sim_offer *const gone = (struct sim_offer *)(void *)base;
    struct sim_offer **at = &simulation_of(base->runtime)->offers;
    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    free(gone->path);
    free(gone);
}

static int sim_folder(ls_runtime *runtime, char *out, size_t size,
                      uint64_t *host)
{
    const uint32_t machine = sim_host(runtime)->machine;
    (void)snprintf(out, size, "sim%" PRIu32, machine);
    if (host != NULL)
        *host = UINT64_C(1) + machine;
    return LS_OK;
}

static int sim_take(ls_memory *memory, const char *path, const uint8_t *key,
                    int64_t deadline)
{
    (void)deadline;
    ls_simulation *const simulation = simulation_of(memory->runtime);
    ls_sim_may_switch(simulation); /* offers may end meanwhile */
    const struct sim_offer *offer = simulation->offers;
    while (offer != NULL && (strcmp(offer->path, path) != 0 ||
                             sim_host(offer->base.runtime)->dead))
        offer = offer->next;
    if (offer == NULL || memcmp(offer->key, key, sizeof offer->key) != 0)
        return ls_error(LS_EUNREACHABLE,
                        "nobody offers memory at %s to this host", path);
    memory->fd = fcntl(offer->memory->lent, F_DUPFD_CLOEXEC, 0);
    memory->number = offer->memory->number;
    return memory->fd < 0 ? ls_error(LS_EIO, "no descriptor for memory")
                          : LS_OK;
}

/* The owner's, of a memory that was taken; NULL: it has been destroyed. */
static const ls_memory *find_own(const ls_memory *memory)
{
    const ls_memory *own = simulation_of(memory->runtime)->memories;
    while (own != NULL && (!own->is_own || own->number != memory->number))
        own = own->next;
    return own;
}

/* A host that was killed has not closed its descriptors. */
static bool sim_is_orphan(const ls_memory *memory)
{
    const ls_memory *const own = find_own(memory);
    return own == NULL || sim_host(own->runtime)->dead;
}

/* Threads of a host that was killed run on until they notice. */
static void rung(ls_memory *memory)
{
    memory->was_rung = true;
    if (memory->hears != NULL && memory->hears->wait == SIM_WAITS_BELL)
        ls_sim_wake(memory->hears);
    if (memory->rung != NULL && !sim_host(memory->runtime)->dead)
        memory->rung(memory->rung_self);
}

static void sim_ring(const ls_memory *memory)
{
    ls_simulation *const simulation = simulation_of(memory->runtime);
    if (!sim_host(memory->runtime)->dead)
        for (ls_memory *m = simulation->memories; m != NULL; m = m->next)
            if (m->is_own &&
                (m->number == memory->number || m->hears_too == memory->number))
                rung(m);
    ls_sim_may_switch(simulation);
}

static int sim_add_bell(ls_memory *memory)
{
    (void)memory;
    return LS_OK;
}

static int sim_hear_too(ls_memory *memory, const ls_memory *other)
{
    memory->hears_too = other->number;
    return LS_OK;
}

static int sim_hear(ls_memory *memory, int64_t deadline)
{
    ls_simulation *const simulation = simulation_of(memory->runtime);
    ls_sim_may_switch(simulation);
    if (!memory->was_rung) {
        memory->hears = simulation->current;
        (void)ls_sim_wait(sim_host(memory->runtime), NULL, SIM_WAITS_BELL,
                          memory, deadline);
        memory->hears = NULL;
    }
    const bool was_rung = memory->was_rung;
    memory->was_rung = false;
    return was_rung ? LS_OK : LS_ETIMEDOUT;
}

static void unlink_waiter(ls_simulation *simulation, struct sim_waiter *waiter)
{
    struct sim_waiter **at = &simulation->waiters;
    while (*at != waiter)
        at = &(*at)->next;
    *at = waiter->next;
}

/* Errors: LS_EAGAIN one of them has changed, or was woken. */
static int wait_for_each(struct sim_waiter *waiter, ls_simulation *simulation,
                         const struct ls_awaited *words, size_t n)
{
    for (size_t i = 0; i < n && !waiter->woken; i++) {
        ls_sim_may_switch(simulation);
        waiter->words[waiter->n++] = word_of(simulation, words[i].word);
        if (atomic_load(words[i].word) != words[i].value)
            return LS_EAGAIN;
    }
    return waiter->woken ? LS_EAGAIN : LS_OK;
}

static int sim_words_wait(ls_runtime *runtime, const struct ls_awaited *words,
                          size_t n, int64_t deadline)
{
    ls_simulation *const simulation = simulation_of(runtime);
    struct sim_waiter waiter = {.next = simulation->waiters,
                                .thread = simulation->current};
    simulation->waiters = &waiter;
    const bool ends = wait_for_each(&waiter, simulation, words, n) != LS_OK ||
                      ls_sim_wait(sim_host(runtime), NULL, SIM_WAITS_WORDS,
                                  words[0].word, deadline);
    unlink_waiter(simulation, &waiter);
    return ends ? LS_OK : LS_ETIMEDOUT;
}

static bool waits_for(const struct sim_waiter *waiter, struct sim_word word)
{
    for (size_t i = 0; i < waiter->n; i++)
        if (waiter->words[i].memory == word.memory &&
            waiter->words[i].at == word.at)
            return true;
    return false;
}

static void sim_word_wake(ls_runtime *runtime, const ls_word *word)
{
    ls_simulation *const simulation = simulation_of(runtime);
    const struct sim_word key = word_of(simulation, word);
    if (!sim_host(runtime)->dead)
        for (struct sim_waiter *w = simulation->waiters; w != NULL; w = w->next)
            if (waits_for(w, key)) {
                w->woken = true;
                if (w->thread->wait == SIM_WAITS_WORDS)
                    ls_sim_wake(w->thread);
            }
    ls_sim_may_switch(simulation);
}

static void sim_yield(ls_runtime *runtime)
{
    ls_simulation *const simulation = simulation_of(runtime);
    simulation->now += YIELD_NS;
    if (simulation->current != NULL)
        ls_sim_switch(simulation);
}

static bool sim_touch(ls_runtime *runtime)
{
    ls_sim_may_switch(simulation_of(runtime));
    return !sim_host(runtime)->dead;
}

const struct ls_memory_ops ls_memory_sim = {
    .available = sim_available,
    .mapped = sim_mapped,
    .unmapped = sim_unmapped,
    .offer_begin = sim_offer_begin,
    .offer_end = sim_offer_end,
    .folder = sim_folder,
    .take = sim_take,
    .is_orphan = sim_is_orphan,
    .ring = sim_ring,
    .add_bell = sim_add_bell,
    .hear_too = sim_hear_too,
    .hear = sim_hear,
    .words_wait = sim_words_wait,
    .word_wake = sim_word_wake,
    .yield = sim_yield,
    .touch = sim_touch,
};
