/* Delta debugging: parts of the list are taken away, halves first, then ever
 * smaller ones; what is still broken without a part is gone on with. A fault
 * and what ends it go together: a cut that nobody heals is another fault. */
#include "sweep_minimize.h"

#include <stdlib.h>
#include <string.h>

#include "sweep_seed.h"

struct search {
    const struct sweep_options *options;
    const char *promise; /* "events: ..." */
    size_t promise_size; /* up to the colon */
    uint64_t seed;
    struct faults now;   /* the smallest that is broken; script: own */
    struct fault *tried; /* own; room for all */
    size_t *pairs;       /* own; of each: what ends it, or itself */
    int64_t deadline;
    uint64_t runs;
    bool stopped;
    int status; /* LS_ENOMEM */
};

/* Whether the same promise is broken with these. */
static bool is_broken(struct search *search, const struct faults *faults)
{
    struct sweep_options options = *search->options;
    struct sweep_seed one;
    char *story = NULL;
    if (search->stopped || search->status != LS_OK)
        return false;
    options.faults = faults;
    options.log = NULL;
    search->status = sweep_one(&one, &story, &options, search->seed);
    free(story);
    search->runs++;
    search->stopped = ls_now(ls_runtime_threads()) >= search->deadline ||
                      !options.progress(options.self, search->runs);
    return search->status == LS_OK && one.violated &&
           strncmp(one.text, search->promise, search->promise_size) == 0;
}

static bool ends(const struct fault *end, const struct fault *fault)
{
    return end->kind == faults_end_of(fault->kind) &&
           end->from == fault->from && end->to == fault->to &&
           end->both == fault->both;
}

/* Each end belongs to one fault: the first before it that has none. */
static void find_pairs(struct search *search)
{
    const struct faults *now = &search->now;
    for (size_t i = 0; i < now->n_script; i++)
        search->pairs[i] = i;
    for (size_t i = 0; i < now->n_script; i++) {
        for (size_t k = i + 1; k < now->n_script && search->pairs[i] == i;
             k++) {
            if (search->pairs[k] != k ||
                !ends(&now->script[k], &now->script[i]))
                continue;
            search->pairs[k] = i;
            break;
        }
    }
}

/* Take `n` units away from the first on. Returns whether that is still broken,
 * which then is what is gone on with. */
static bool take(struct search *search, size_t first, size_t n)
{
    struct faults without = search->now;
    size_t unit = 0, kept = 0;
    find_pairs(search);
    for (size_t i = 0; i < search->now.n_script; i++) {
        const size_t head = search->pairs[i];
        size_t at = 0; /* the number of its unit */
        for (size_t k = 0; k < head; k++)
            at += search->pairs[k] == k ? 1 : 0;
        unit = at;
        if (unit < first || unit >= first + n)
            search->tried[kept++] = search->now.script[i];
    }
    without.script = search->tried;
    without.n_script = kept;
    if (kept == search->now.n_script || !is_broken(search, &without))
        return false;
    memcpy(search->now.script, search->tried, kept * sizeof *search->tried);
    search->now.n_script = kept;
    return true;
}

static size_t count_units(struct search *search)
{
    size_t n = 0;
    find_pairs(search);
    for (size_t i = 0; i < search->now.n_script; i++)
        n += search->pairs[i] == i ? 1 : 0;
    return n;
}

static void shrink_script(struct search *search)
{
    size_t size = count_units(search);
    while (size > 0 && !search->stopped) {
        bool taken = false;
        for (size_t first = 0;
             first < count_units(search) && !search->stopped;) {
            if (take(search, first, size))
                taken = true;
            else
                first += size;
        }
        if (!taken || size > 1)
            size /= 2;
    }
}

/* The network and the clocks, one trait after the other. */
static void shrink_rest(struct search *search)
{
    for (int trait = 0; trait < 6; trait++) {
        struct faults without = search->now;
        switch (trait) {
        case 0:
            without.random.offset_ns = 0;
            break;
        case 1:
            without.random.drift = 0.0;
            break;
        case 2:
            without.path.reorder = 0.0;
            break;
        case 3:
            without.path.duplicate = 0.0;
            break;
        case 4:
            without.path.loss = 0.0;
            break;
        default:
            without.path.jitter_ns = 0;
            break;
        }
        if (is_broken(search, &without))
            search->now = without;
    }
}

/* The faults of the seed, as a script. */
static int write_down(struct search *search)
{
    const struct sweep_options *options = search->options;
    struct faults *now = &search->now;
    struct fault *list = NULL;
    size_t n = 0;
    const int status =
        simulated_faults(&(struct simulated_options){.plan = options->plan,
                                                     .faults = options->faults,
                                                     .seed = search->seed},
                         &list, &n);
    if (status != LS_OK)
        return status;
    *now = (struct faults){
        .path = options->faults->path,
        .random = {.offset_ns = options->faults->random.offset_ns,
                   .drift = options->faults->random.drift},
        .script = list,
        .n_script = n};
    search->tried = calloc(n + 1, sizeof *search->tried);
    search->pairs = calloc(n + 1, sizeof *search->pairs);
    return search->tried != NULL && search->pairs != NULL
               ? LS_OK
               : ls_error(LS_ENOMEM, "taking faults away");
}

int sweep_minimize(struct sweep_minimized *out,
                   const struct sweep_options *options,
                   const struct sweep_result *result, int64_t wait_ns)
{
    struct search search = {.options = options,
                            .promise = result->text,
                            .promise_size = strcspn(result->text, ":"),
                            .seed = result->seed,
                            .deadline = ls_now(ls_runtime_threads()) + wait_ns};
    if (strncmp(result->text, "crash:", 6) == 0)
        return ls_error(LS_ESTATE, "a seed that crashes the program cannot be "
                                   "made smaller in it");
    int status = write_down(&search);
    const size_t n_before = search.now.n_script;
    if (status == LS_OK && !is_broken(&search, &search.now))
        status = search.status != LS_OK
                     ? search.status
                     : ls_error(LS_ESTATE, "with its faults written down the "
                                           "seed breaks nothing");
    if (status == LS_OK) {
        shrink_script(&search);
        shrink_rest(&search);
        status = search.status;
    }
    free(search.tried);
    free(search.pairs);
    if (status != LS_OK) {
        faults_fini(&search.now);
        return status;
    }
    *out = (struct sweep_minimized){.faults = search.now,
                                    .n_before = n_before,
                                    .runs = search.runs,
                                    .in_time = !search.stopped};
    return LS_OK;
}
