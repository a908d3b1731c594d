/* Which samples a rank takes next: a position in a shuffled epoch. */
#include "lockstep/sampler.h"

#include <stdlib.h>
#include <string.h>

#include "lockstep/random.h"

struct ls_sampler {
    uint64_t seed, epoch, length;
    enum ls_spread spread;
    uint32_t rank, ranks;
    uint64_t batch_size;
    bool drop_last;

    uint64_t *order; /* own; of `ordered`; NULL: 0, 1, 2 … */
    bool is_ordered;

    uint64_t base; /* consumed by all ranks before this iteration */
    bool iterates;
    bool exhausted;           /* no batch was left to draw */
    uint64_t drawn, consumed; /* batches of this iteration */

    ls_writer *saved; /* own; the blob that is being saved */
};

static const char *const spreads[] = {[LS_SPREAD_PAD] = "dist",
                                      [LS_SPREAD_CUT] = "cut",
                                      [LS_SPREAD_EXACT] = "unrepeatdist"};
#define N_SPREADS (sizeof spreads / sizeof spreads[0])

const char *ls_spread_name(enum ls_spread spread)
{
    return (size_t)spread < N_SPREADS ? spreads[spread] : NULL;
}

/* How much is left -------------------------------------------------------- */

/* Samples for this rank behind the first `consumed` ones of all. */
static uint64_t samples_behind(const ls_sampler *sampler, uint64_t consumed)
{
    if (consumed >= sampler->length)
        return 0;
    const uint64_t left = sampler->length - consumed;
    const uint64_t whole = left / sampler->ranks, rest = left % sampler->ranks;
    switch (sampler->spread) {
    case LS_SPREAD_PAD:
        return whole + (rest > 0);
    case LS_SPREAD_EXACT:
        return whole + (sampler->rank < rest);
    case LS_SPREAD_CUT:
    default:
        return whole;
    }
}

static uint64_t batches_of(const ls_sampler *sampler, uint64_t samples)
{
    return samples / sampler->batch_size +
           (!sampler->drop_last && samples % sampler->batch_size > 0);
}

/* What all ranks have consumed when each has consumed n batches now. */
static uint64_t consumed_by_all(const ls_sampler *sampler, uint64_t n)
{
    return sampler->base + sampler->ranks * sampler->batch_size * n;
}

uint64_t ls_sampler_samples(const ls_sampler *sampler)
{
    return samples_behind(sampler, 0);
}

uint64_t ls_sampler_batches(const ls_sampler *sampler)
{
    return batches_of(sampler, samples_behind(sampler, 0));
}

uint64_t ls_sampler_remaining(const ls_sampler *sampler)
{
    return batches_of(sampler, samples_behind(sampler, sampler->base)) -
           sampler->consumed;
}

uint64_t ls_sampler_batch_index(const ls_sampler *sampler)
{
    return ls_sampler_batches(sampler) - ls_sampler_remaining(sampler);
}

uint64_t ls_sampler_epoch(const ls_sampler *sampler)
{
    return sampler->epoch;
}

/* Made and set ------------------------------------------------------------ */

static int check_ranks(uint32_t rank, uint32_t ranks)
{
    if (ranks == 0 || ranks > LS_SAMPLER_RANKS_MAX || rank >= ranks)
        return ls_error(LS_EINVAL,
                        "a sampler cannot be rank %u of %u: ranks are 1 to %u, "
                        "and count from 0",
                        rank, ranks, LS_SAMPLER_RANKS_MAX);
    return LS_OK;
}

static int check_batch_size(uint32_t batch_size)
{
    if (batch_size == 0 || batch_size > LS_SAMPLER_BATCH_MAX)
        return ls_error(LS_EINVAL,
                        "a batch of %u samples: it has 1 to %d of them",
                        batch_size, LS_SAMPLER_BATCH_MAX);
    return LS_OK;
}

static int check(const struct ls_sampler_options *options)
{
    if (options->length == 0 || options->length > LS_SAMPLER_LENGTH_MAX)
        return ls_error(LS_EINVAL,
                        "a sampler for %llu samples: a data set has 1 to 2^48",
                        (unsigned long long)options->length);
    if (ls_spread_name(options->spread) == NULL)
        return ls_error(LS_EINVAL, "%d is not a spread of a sampler",
                        (int)options->spread);
    const int status =
        check_ranks(options->rank, options->ranks == 0 ? 1 : options->ranks);
    return status != LS_OK || options->batch_size == 0
               ? status
               : check_batch_size(options->batch_size);
}

static int make_order(const ls_sampler *sampler, uint64_t **out)
{
    *out = malloc((size_t)sampler->length * sizeof **out);
    return *out != NULL
               ? LS_OK
               : ls_error(LS_ENOMEM, "no memory for the order of %llu samples",
                          (unsigned long long)sampler->length);
}

int ls_sampler_create(ls_sampler **out,
                      const struct ls_sampler_options *options)
{
    *out = NULL;
    int status = check(options);
    if (status != LS_OK)
        return status;
    ls_sampler *sampler = calloc(1, sizeof *sampler);
    if (sampler == NULL)
        return ls_error(LS_ENOMEM, "no memory for a sampler");
    sampler->seed = options->seed;
    sampler->length = options->length;
    sampler->spread = options->spread;
    sampler->rank = options->rank;
    sampler->ranks = options->ranks == 0 ? 1 : options->ranks;
    sampler->batch_size = options->batch_size == 0 ? 1 : options->batch_size;
    sampler->drop_last = options->drop_last;
    if (!options->in_order)
        status = make_order(sampler, &sampler->order);
    if (status != LS_OK) {
        ls_sampler_destroy(&sampler);
        return status;
    }
    *out = sampler;
    return LS_OK;
}

void ls_sampler_destroy(ls_sampler **gone)
{
    ls_sampler *sampler = gone == NULL ? NULL : *gone;
    if (sampler == NULL)
        return;
    *gone = NULL;
    ls_writer_destroy(&sampler->saved);
    free(sampler->order);
    free(sampler);
}

static int refuse_while_iterating(const ls_sampler *sampler, const char *what)
{
    if (!sampler->iterates)
        return LS_OK;
    return ls_error(LS_ESTATE,
                    "%s of a sampler cannot change during an iteration: it is "
                    "at batch %llu of epoch %llu; go to the end, or call "
                    "ls_sampler_end()",
                    what, (unsigned long long)ls_sampler_batch_index(sampler),
                    (unsigned long long)sampler->epoch);
}

int ls_sampler_set_epoch(ls_sampler *sampler, uint64_t epoch)
{
    const int status = refuse_while_iterating(sampler, "the epoch");
    if (status != LS_OK || epoch == sampler->epoch)
        return status;
    sampler->epoch = epoch;
    sampler->base = 0;
    sampler->is_ordered = false;
    return LS_OK;
}

int ls_sampler_set_ranks(ls_sampler *sampler, uint32_t rank, uint32_t ranks)
{
    int status = refuse_while_iterating(sampler, "the ranks");
    if (status == LS_OK)
        status = check_ranks(rank, ranks);
    if (status != LS_OK)
        return status;
    sampler->rank = rank;
    sampler->ranks = ranks;
    return LS_OK;
}

int ls_sampler_set_batches(ls_sampler *sampler, uint32_t batch_size,
                           bool drop_last)
{
    int status = refuse_while_iterating(sampler, "the batches");
    if (status == LS_OK)
        status = check_batch_size(batch_size);
    if (status != LS_OK)
        return status;
    sampler->batch_size = batch_size;
    sampler->drop_last = drop_last;
    return LS_OK;
}

/* Iteration --------------------------------------------------------------- */

/* Fisher and Yates' shuffle, from the end: Durstenfeld, "Algorithm 235: Random
 * permutation", CACM 7(7), 1964. It begins anew in each epoch, so that an order
 * does not depend on those before it. */
static void shuffle(ls_sampler *sampler)
{
    uint64_t *const order = sampler->order;
    struct ls_rng rng;
    ls_rng_seed(&rng, sampler->seed, sampler->epoch);
    for (uint64_t i = 0; i < sampler->length; i++)
        order[i] = i;
    for (uint64_t i = sampler->length - 1; i > 0; i--) {
        const uint64_t j = ls_rng_below(&rng, i + 1);
        const uint64_t moved = order[i];
        order[i] = order[j];
        order[j] = moved;
    }
    sampler->is_ordered = true;
}

static void finish_if_done(ls_sampler *sampler)
{
    if (!sampler->exhausted || sampler->consumed < sampler->drawn)
        return;
    sampler->iterates = sampler->exhausted = false;
    sampler->base = sampler->drawn = sampler->consumed = 0;
}

int ls_sampler_next(ls_sampler *sampler, uint64_t *indices, size_t *n)
{
    const uint64_t samples = samples_behind(sampler, sampler->base);
    sampler->iterates = true;
    if (sampler->drawn >= batches_of(sampler, samples)) {
        sampler->exhausted = true;
        finish_if_done(sampler);
        *n = 0;
        return LS_OK;
    }
    if (sampler->order != NULL && !sampler->is_ordered)
        shuffle(sampler);
    const uint64_t from = sampler->drawn * sampler->batch_size;
    const uint64_t left = samples - from;
    *n = (size_t)(left < sampler->batch_size ? left : sampler->batch_size);
    for (uint64_t i = 0; i < *n; i++) {
        /* What pads the end begins again at the first one. */
        const uint64_t at =
            (sampler->base + sampler->rank + (from + i) * sampler->ranks) %
            sampler->length;
        indices[i] = sampler->order != NULL ? sampler->order[at] : at;
    }
    sampler->drawn++;
    return LS_OK;
}

int ls_sampler_consume(ls_sampler *sampler, uint64_t n)
{
    if (n > sampler->drawn - sampler->consumed)
        return ls_error(
            LS_EINVAL,
            "%llu batches of a sampler cannot be consumed: %llu "
            "are drawn",
            (unsigned long long)n,
            (unsigned long long)(sampler->drawn - sampler->consumed));
    sampler->consumed += n;
    finish_if_done(sampler);
    return LS_OK;
}

void ls_sampler_end(ls_sampler *sampler)
{
    sampler->base = consumed_by_all(sampler, sampler->consumed);
    sampler->drawn = sampler->consumed = 0;
    sampler->iterates = sampler->exhausted = false;
}

/* State ------------------------------------------------------------------- */

#define AT(member) .offset = offsetof(struct ls_sampler_state, member)
static const struct ls_field state_fields[] = {
    {.name = "seed", .type = LS_FIELD_UINT, AT(seed)},
    {.name = "epoch", .type = LS_FIELD_UINT, AT(epoch)},
    {.name = "consumed", .type = LS_FIELD_UINT, AT(consumed)},
    {.name = "type",
     .type = LS_FIELD_CHARS,
     AT(type),
     .size = sizeof((struct ls_sampler_state *)NULL)->type},
    {.name = "length", .type = LS_FIELD_UINT, AT(length)},
    {.name = "shuffle", .type = LS_FIELD_BOOL, AT(shuffle)},
};

const struct ls_record ls_sampler_state_record = {
    .name = "the state of a sampler",
    .size = sizeof(struct ls_sampler_state),
    .fields = state_fields,
    .n_fields = sizeof state_fields / sizeof state_fields[0]};

void ls_sampler_save(const ls_sampler *sampler, struct ls_sampler_state *out)
{
    *out = (struct ls_sampler_state){
        .seed = sampler->seed,
        .epoch = sampler->epoch,
        .consumed = consumed_by_all(sampler, sampler->consumed),
        .length = sampler->length,
        .shuffle = sampler->order != NULL};
    memcpy(out->type, spreads[sampler->spread],
           strlen(spreads[sampler->spread]) + 1);
}

static int check_state(const ls_sampler *sampler,
                       const struct ls_sampler_state *state)
{
    const int status = refuse_while_iterating(sampler, "the state");
    if (status != LS_OK)
        return status;
    if (state->length != sampler->length)
        return ls_error(LS_EMISMATCH,
                        "the state of a sampler for %llu samples cannot be "
                        "loaded: the data set has %llu",
                        (unsigned long long)state->length,
                        (unsigned long long)sampler->length);
    if (strcmp(state->type, spreads[sampler->spread]) != 0)
        return ls_error(LS_EMISMATCH,
                        "the state of a sampler of type %s cannot be loaded: "
                        "this one is %s",
                        state->type, spreads[sampler->spread]);
    return LS_OK;
}

int ls_sampler_load(ls_sampler *sampler, const struct ls_sampler_state *state)
{
    int status = check_state(sampler, state);
    if (status == LS_OK && state->shuffle && sampler->order == NULL)
        status = make_order(sampler, &sampler->order);
    if (status != LS_OK)
        return status;
    if (!state->shuffle) {
        free(sampler->order);
        sampler->order = NULL;
    }
    sampler->seed = state->seed;
    sampler->epoch = state->epoch;
    sampler->base = state->consumed < state->length ? state->consumed : 0;
    sampler->is_ordered = false;
    return LS_OK;
}

/* As a blob --------------------------------------------------------------- */

static int measure_blob(void *self, uint64_t *out)
{
    ls_sampler *sampler = self;
    struct ls_sampler_state state;
    const void *data;
    size_t size;
    int status = LS_OK;
    if (sampler->saved == NULL)
        status = ls_writer_create(&sampler->saved);
    if (status != LS_OK)
        return status;
    ls_writer_clear(sampler->saved);
    ls_sampler_save(sampler, &state);
    ls_record_write(&ls_sampler_state_record, &state, sampler->saved);
    status = ls_writer_bytes(sampler->saved, &data, &size);
    if (status == LS_OK)
        *out = size;
    return status;
}

static int save_blob(void *self, ls_blob_sink *sink)
{
    ls_sampler *sampler = self;
    const void *data;
    size_t size;
    const int status = ls_writer_bytes(sampler->saved, &data, &size);
    return status == LS_OK ? ls_blob_sink_add(sink, data, size) : status;
}

static int load_blob(void *self, ls_blob_source *source)
{
    unsigned char data[256]; /* the longest state is 110 bytes */
    struct ls_sampler_state state;
    const uint64_t size = ls_blob_source_size(source);
    if (size > sizeof data)
        return ls_error(LS_EPROTO, "%llu bytes are not the state of a sampler",
                        (unsigned long long)size);
    int status = ls_blob_source_read(source, data, (size_t)size);
    if (status == LS_OK)
        status = ls_record_decode(&ls_sampler_state_record, &state, data,
                                  (size_t)size, NULL);
    return status == LS_OK ? ls_sampler_load(self, &state) : status;
}

int ls_sampler_add_blob(ls_sampler *sampler, ls_blobs *blobs, const char *name)
{
    static const struct ls_blob_ops ops = {
        .size = measure_blob, .save = save_blob, .load = load_blob};
    return ls_blobs_add(blobs,
                        &(struct ls_blob){.name = name,
                                          .form = {LS_BLOB_BYTES, 1, {0}},
                                          .ops = &ops,
                                          .self = sampler});
}
