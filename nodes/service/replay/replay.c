#include "replay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/random.h"
#include "replay_data.h"
#include "replay_tree.h"

#define NO_SLOT SIZE_MAX

struct item {
    struct sample sample;
    struct replay_datum *datum; /* borrow: it uses it */
    uint64_t number;            /* of its unique id */
    uint64_t n_sampled;
    double priority;     /* of now; that of its sample is the first one */
    size_t older, newer; /* slots; NO_SLOT at the ends */
};

struct replay {
    struct replay_options options; /* defaults filled in; name is below */
    char name[REPLAY_NAME_MAX + 1];
    size_t least_items; /* below them inserts are free */
    struct item *items; /* own; by slot */
    size_t *free_slots; /* own; a stack of n_free */
    size_t n_free;
    size_t oldest, newest; /* in the order of coming; NO_SLOT: empty */
    size_t *batch;         /* own; max_batch slots, while one is drawn */
    double *weights;       /* own; of those slots */
    struct replay_tree tree;
    struct replay_data data;
    struct ls_rng rng;
    int64_t version;
    uint64_t next_number;
    double staleness_sum;
    struct replay_figures stats; /* size, lent and the mean are not kept up */
};

static size_t size_of(const struct replay *buffer)
{
    return buffer->options.capacity - buffer->n_free;
}

/* Create ----------------------------------------------------------------- */

static int wrong(const char *option, const char *expected)
{
    return ls_error(LS_EINVAL, "a replay buffer: %s: expected %s", option,
                    expected);
}

static int check_limiter(struct replay_options *options)
{
    const double ratio = options->samples_per_insert;
    if (!(ratio >= 0.0 && isfinite(ratio)))
        return wrong("samples_per_insert", "0 or more");
    const double least = ((double)options->max_batch + ratio) / 2;
    if (options->error_buffer == 0.0)
        options->error_buffer = least;
    if (!(options->error_buffer >= least && isfinite(options->error_buffer)))
        return wrong("error_buffer",
                     "at least half of max_batch + samples_per_insert");
    return LS_OK;
}

static int check_options(struct replay_options *options)
{
    const size_t capacity = options->capacity;
    if (!safe_name_is(options->name) || strlen(options->name) > REPLAY_NAME_MAX)
        return wrong("name", "1 to 42 of [A-Za-z0-9._@-]");
    if (options->mode != REPLAY_PRIORITY && options->mode != REPLAY_FIFO)
        return wrong("mode", "priority or fifo");
    if (capacity == 0 || capacity > REPLAY_CAPACITY_MAX)
        return wrong("capacity", "1 to 16777216");
    if (options->max_batch == 0 || options->max_batch > capacity)
        return wrong("max_batch", "1 to capacity");
    if (options->staleness_limit < 0)
        return wrong("staleness_limit", "0 or more");
    if (options->min_valid_ratio == 0.0)
        options->min_valid_ratio = 1.0;
    if (!(options->min_valid_ratio >= 1.0 &&
          options->min_valid_ratio * (double)options->max_batch <=
              (double)capacity))
        return wrong("min_valid_ratio", "at least 1, and that capacity holds "
                                        "so many times max_batch");
    if (options->min_size_to_sample > capacity)
        return wrong("min_size_to_sample", "at most capacity");
    if (options->mode == REPLAY_FIFO && options->max_times_sampled == 0)
        options->max_times_sampled = 1;
    return check_limiter(options);
}

static int allocate(struct replay *buffer)
{
    const size_t capacity = buffer->options.capacity;
    const size_t max_batch = buffer->options.max_batch;
    buffer->items = calloc(capacity, sizeof *buffer->items);
    buffer->free_slots = calloc(capacity, sizeof *buffer->free_slots);
    buffer->batch = calloc(max_batch, sizeof *buffer->batch);
    buffer->weights = calloc(max_batch, sizeof *buffer->weights);
    if (buffer->items == NULL || buffer->free_slots == NULL ||
        buffer->batch == NULL || buffer->weights == NULL)
        return ls_error(LS_ENOMEM, "a replay buffer of %zu items", capacity);
    const int status = replay_tree_init(&buffer->tree, capacity);
    return status == LS_OK ? replay_data_init(&buffer->data, capacity) : status;
}

int replay_create(struct replay **out, const struct replay_options *options)
{
    struct replay_options checked = *options;
    int status = check_options(&checked);
    if (status != LS_OK)
        return status;
    struct replay *buffer = calloc(1, sizeof *buffer);
    if (buffer == NULL)
        return ls_error(LS_ENOMEM, "a replay buffer");
    memcpy(buffer->name, checked.name, strlen(checked.name) + 1);
    buffer->options = checked;
    buffer->options.name = buffer->name;
    status = allocate(buffer);
    if (status != LS_OK) {
        replay_destroy(&buffer);
        return status;
    }
    const double needed =
        ceil(checked.min_valid_ratio * (double)checked.max_batch);
    buffer->least_items = (size_t)needed > checked.min_size_to_sample
                              ? (size_t)needed
                              : checked.min_size_to_sample;
    buffer->n_free = checked.capacity;
    for (size_t i = 0; i < checked.capacity; i++)
        buffer->free_slots[i] = checked.capacity - 1 - i;
    buffer->oldest = buffer->newest = NO_SLOT;
    ls_rng_seed(&buffer->rng, checked.seed, 0);
    *out = buffer;
    return LS_OK;
}

void replay_destroy(struct replay **buffer)
{
    if (buffer == NULL || *buffer == NULL)
        return;
    replay_tree_fini(&(*buffer)->tree);
    replay_data_fini(&(*buffer)->data);
    free((*buffer)->items);
    free((*buffer)->free_slots);
    free((*buffer)->batch);
    free((*buffer)->weights);
    free(*buffer);
    *buffer = NULL;
}

/* Items ------------------------------------------------------------------ */

static void put_in(struct replay *buffer, size_t slot,
                   const struct sample *sample, struct replay_datum *datum)
{
    struct item *item = &buffer->items[slot];
    *item = (struct item){.sample = *sample,
                          .datum = datum,
                          .number = buffer->next_number++,
                          .priority = sample->priority,
                          .older = buffer->newest,
                          .newer = NO_SLOT};
    if (buffer->newest == NO_SLOT)
        buffer->oldest = slot;
    else
        buffer->items[buffer->newest].newer = slot;
    buffer->newest = slot;
    replay_tree_weigh(&buffer->tree, slot,
                      sample->priority + REPLAY_PRIORITY_FLOOR);
    replay_tree_date(&buffer->tree, slot, sample->policy_version);
}

static void evict(struct replay *buffer, size_t slot, uint64_t *count)
{
    const struct item *item = &buffer->items[slot];
    if (item->older == NO_SLOT)
        buffer->oldest = item->newer;
    else
        buffer->items[item->older].newer = item->newer;
    if (item->newer == NO_SLOT)
        buffer->newest = item->older;
    else
        buffer->items[item->newer].older = item->older;
    replay_data_unuse(&buffer->data, item->datum);
    replay_tree_weigh(&buffer->tree, slot, 0.0);
    replay_tree_date(&buffer->tree, slot, REPLAY_TREE_EMPTY);
    buffer->free_slots[buffer->n_free++] = slot;
    (*count)++;
}

static bool is_stale(const struct replay *buffer, int64_t version)
{
    const int64_t limit = buffer->options.staleness_limit;
    return limit > 0 && version <= buffer->version - limit;
}

static void drop_stale(struct replay *buffer)
{
    while (size_of(buffer) > 0) {
        int64_t version;
        const size_t slot = replay_tree_oldest(&buffer->tree, &version);
        if (!is_stale(buffer, version))
            return;
        evict(buffer, slot, &buffer->stats.evicted_stale);
    }
}

void replay_set_version(struct replay *buffer, int64_t policy_version)
{
    if (policy_version <= buffer->version)
        return;
    buffer->version = policy_version;
    drop_stale(buffer);
}

/* Insert ----------------------------------------------------------------- */

/* How many samples more than wanted could be given now; cf. the limits in the
 * header. */
static double surplus(const struct replay *buffer, uint64_t inserted,
                      uint64_t sampled)
{
    const struct replay_options *options = &buffer->options;
    const double inserts =
        (double)inserted - (double)options->min_size_to_sample;
    return options->samples_per_insert * inserts - (double)sampled;
}

bool replay_may_insert(const struct replay *buffer)
{
    const struct replay_figures *stats = &buffer->stats;
    return buffer->options.samples_per_insert == 0.0 ||
           size_of(buffer) < buffer->least_items ||
           surplus(buffer, stats->inserted + 1, stats->sampled) <=
               buffer->options.error_buffer;
}

int64_t replay_room(const struct replay *buffer, int64_t useful, bool idle)
{
    const struct replay_options *options = &buffer->options;
    const int64_t size = (int64_t)size_of(buffer);
    const int64_t free_of_limits = (int64_t)buffer->least_items - size;
    int64_t room = INT32_MAX;
    if (options->samples_per_insert > 0.0)
        room = (int64_t)floor(
            (options->error_buffer -
             surplus(buffer, buffer->stats.inserted, buffer->stats.sampled)) /
            options->samples_per_insert);
    room = room > free_of_limits ? room : free_of_limits;
    if (options->mode == REPLAY_PRIORITY || options->staleness_limit == 0)
        return room;
    const int64_t batch = (int64_t)options->max_batch;
    int64_t in_time =
        useful * batch / (int64_t)options->max_times_sampled - size;
    if (idle && !replay_may_sample(buffer, options->max_batch))
        in_time = batch > free_of_limits ? batch : free_of_limits;
    return room < in_time ? room : in_time;
}

/* For data that is counted already. What is left may be too much, by as many as
 * a batch takes: without them nothing would ever be given out. */
static void make_room(struct replay *buffer)
{
    const uint64_t most = buffer->options.max_bytes;
    while (most > 0 && buffer->data.bytes > most &&
           size_of(buffer) >= buffer->least_items && buffer->oldest != NO_SLOT)
        evict(buffer, buffer->oldest, &buffer->stats.evicted_bytes);
}

int replay_insert(struct replay *buffer, const struct sample *sample)
{
    if (!safe_name_is(sample->data_id) || sample->policy_version < 0 ||
        sample->size < 0 ||
        !(sample->priority >= 0.0 && sample->priority <= SAMPLE_PRIORITY_MAX))
        return ls_error(LS_EINVAL,
                        "replay buffer %s: a sample that was not "
                        "checked",
                        buffer->name);
    if (!replay_may_insert(buffer))
        return ls_error(LS_EAGAIN,
                        "replay buffer %s: %llu inserts for %llu "
                        "samples given: wait for the learner",
                        buffer->name,
                        (unsigned long long)buffer->stats.inserted,
                        (unsigned long long)buffer->stats.sampled);
    struct replay_datum *datum;
    const int status = replay_data_use(&buffer->data, sample->data_id,
                                       (uint64_t)sample->size, &datum);
    if (status != LS_OK)
        return status;
    buffer->stats.inserted++;
    if (is_stale(buffer, sample->policy_version)) {
        buffer->stats.evicted_stale++;
        replay_data_unuse(&buffer->data, datum);
        return LS_OK;
    }
    if (buffer->n_free == 0)
        evict(buffer, buffer->oldest, &buffer->stats.evicted_overflow);
    make_room(buffer);
    put_in(buffer, buffer->free_slots[--buffer->n_free], sample, datum);
    return LS_OK;
}

/* Sample ----------------------------------------------------------------- */

static bool has_enough(const struct replay *buffer, size_t n)
{
    const size_t size = size_of(buffer);
    return size >= buffer->options.min_size_to_sample &&
           (double)size >= buffer->options.min_valid_ratio * (double)n;
}

static bool is_within_rate(const struct replay *buffer, size_t n)
{
    return buffer->options.samples_per_insert == 0.0 ||
           surplus(buffer, buffer->stats.inserted, buffer->stats.sampled + n) >=
               -buffer->options.error_buffer;
}

bool replay_may_sample(const struct replay *buffer, size_t n)
{
    return n > 0 && n <= buffer->options.max_batch && has_enough(buffer, n) &&
           is_within_rate(buffer, n);
}

static void choose_oldest(struct replay *buffer, size_t n)
{
    size_t slot = buffer->oldest;
    for (size_t i = 0; i < n; i++, slot = buffer->items[slot].newer)
        buffer->batch[i] = slot;
}

/* What is drawn weighs nothing until the batch is complete. */
static void choose_by_priority(struct replay *buffer, size_t n)
{
    struct replay_tree *tree = &buffer->tree;
    for (size_t i = 0; i < n; i++) {
        const double at = ls_rng_double(&buffer->rng) * replay_tree_total(tree);
        buffer->batch[i] = replay_tree_find(tree, at);
        buffer->weights[i] = replay_tree_weight(tree, buffer->batch[i]);
        replay_tree_weigh(tree, buffer->batch[i], 0.0);
    }
    for (size_t i = 0; i < n; i++)
        replay_tree_weigh(tree, buffer->batch[i], buffer->weights[i]);
}

static void name_item(const struct replay *buffer, const struct item *item,
                      char id[SAFE_NAME_MAX + 1])
{
    (void)snprintf(id, SAFE_NAME_MAX + 1, "%s_%llu", buffer->name,
                   (unsigned long long)item->number);
}

static int64_t staleness_of(const struct replay *buffer,
                            const struct item *item)
{
    const int64_t behind = buffer->version - item->sample.policy_version;
    return behind > 0 ? behind : 0;
}

/* It is drawn once more. */
static void count_drawn(struct replay *buffer, size_t slot)
{
    struct item *item = &buffer->items[slot];
    struct replay_figures *stats = &buffer->stats;
    const int64_t staleness = staleness_of(buffer, item);
    stats->sampled++;
    buffer->staleness_sum += (double)staleness;
    if (staleness > stats->staleness_max)
        stats->staleness_max = staleness;
    item->n_sampled++;
    if (item->n_sampled == buffer->options.max_times_sampled)
        evict(buffer, slot, &stats->evicted_used);
}

static void give(struct replay *buffer, size_t slot, struct drawn_sample *out)
{
    const struct item *item = &buffer->items[slot];
    *out = (struct drawn_sample){.sample = item->sample,
                                 .slot = (int64_t)slot,
                                 .staleness = staleness_of(buffer, item)};
    name_item(buffer, item, out->unique_id);
    replay_data_lend(&buffer->data, item->datum);
    count_drawn(buffer, slot);
}

int replay_sample(struct replay *buffer, size_t n, struct drawn_sample *out)
{
    if (n == 0 || n > buffer->options.max_batch)
        return ls_error(LS_EINVAL,
                        "replay buffer %s: a batch of %zu, expected "
                        "1 to %zu",
                        buffer->name, n, buffer->options.max_batch);
    const bool enough = has_enough(buffer, n);
    if (!enough || !is_within_rate(buffer, n))
        return ls_error(LS_EAGAIN,
                        "replay buffer %s: no batch of %zu: %s "
                        "(it has %zu)",
                        buffer->name, n,
                        enough ? "too few were inserted since the last"
                               : "too few items are there",
                        size_of(buffer));
    if (buffer->options.mode == REPLAY_FIFO)
        choose_oldest(buffer, n);
    else
        choose_by_priority(buffer, n);
    for (size_t i = 0; i < n; i++)
        give(buffer, buffer->batch[i], &out[i]);
    return LS_OK;
}

int replay_release(struct replay *buffer, const struct drawn_sample *drawn,
                   size_t n)
{
    int status = LS_OK;
    for (size_t i = 0; i < n && status == LS_OK; i++)
        status = replay_data_release(&buffer->data, drawn[i].sample.data_id);
    return status == LS_OK
               ? LS_OK
               : ls_error_at(status, "replay buffer %s", buffer->name);
}

void replay_lose(struct replay *buffer, uint32_t home)
{
    size_t slot = buffer->oldest;
    while (slot != NO_SLOT) {
        const size_t next = buffer->items[slot].newer;
        if (buffer->items[slot].sample.home == home)
            evict(buffer, slot, &buffer->stats.evicted_lost);
        slot = next;
    }
}

/* The rest --------------------------------------------------------------- */

static bool is_taken(const struct replay *buffer, size_t slot)
{
    return replay_tree_weight(&buffer->tree, slot) != 0.0;
}

/* The item of a slot that is taken; NULL: there is none. */
static const struct item *item_at(const struct replay *buffer, int64_t slot)
{
    if (slot < 0 || (uint64_t)slot >= buffer->options.capacity ||
        !is_taken(buffer, (size_t)slot))
        return NULL;
    return &buffer->items[slot];
}

bool replay_update_priority(struct replay *buffer,
                            const struct priority_update *update)
{
    const struct item *item = item_at(buffer, update->slot);
    char id[SAFE_NAME_MAX + 1] = "";
    if (item != NULL)
        name_item(buffer, item, id);
    if (item == NULL || strcmp(id, update->unique_id) != 0 ||
        !(update->priority >= 0.0 && update->priority <= SAMPLE_PRIORITY_MAX)) {
        buffer->stats.updates_refused++;
        return false;
    }
    buffer->items[update->slot].priority = update->priority;
    replay_tree_weigh(&buffer->tree, (size_t)update->slot,
                      update->priority + REPLAY_PRIORITY_FLOOR);
    buffer->stats.updates++;
    return true;
}

bool replay_take_dropped(struct replay *buffer, char data_id[SAFE_NAME_MAX + 1])
{
    return replay_data_take(&buffer->data, data_id);
}

void replay_close(struct replay *buffer)
{
    uint64_t uncounted = 0;
    while (buffer->oldest != NO_SLOT)
        evict(buffer, buffer->oldest, &uncounted);
    replay_data_release_all(&buffer->data);
}

void replay_figures(const struct replay *buffer, struct replay_figures *out)
{
    *out = buffer->stats;
    out->size = size_of(buffer);
    out->lent = buffer->data.lent;
    out->staleness_mean =
        out->sampled > 0 ? buffer->staleness_sum / (double)out->sampled : 0.0;
}

/* Over the lives --------------------------------------------------------- */

static void tell_item(const struct replay *buffer, size_t slot,
                      struct replay_item *out)
{
    const struct item *item = &buffer->items[slot];
    *out = (struct replay_item){.sample = item->sample,
                                .slot = (int64_t)slot,
                                .number = item->number,
                                .n_sampled = item->n_sampled};
    out->sample.priority = item->priority;
}

void replay_account(const struct replay *buffer, struct replay_account *out)
{
    *out = (struct replay_account){.version = buffer->version,
                                   .next_number = buffer->next_number,
                                   .staleness_sum = buffer->staleness_sum,
                                   .figures = buffer->stats};
}

int replay_each(const struct replay *buffer,
                int (*fn)(void *self, const struct replay_item *item),
                void *self)
{
    int status = LS_OK;
    for (size_t slot = buffer->oldest; slot != NO_SLOT && status == LS_OK;
         slot = buffer->items[slot].newer) {
        struct replay_item item;
        tell_item(buffer, slot, &item);
        status = fn(self, &item);
    }
    return status;
}

uint64_t replay_next_number(const struct replay *buffer)
{
    return buffer->next_number;
}

void replay_newest(const struct replay *buffer, uint64_t number,
                   struct replay_item *out)
{
    *out = (struct replay_item){.slot = -1, .number = number};
    if (buffer->next_number > number)
        tell_item(buffer, buffer->newest, out);
}

void replay_recall_account(struct replay *buffer,
                           const struct replay_account *account)
{
    buffer->version = account->version;
    buffer->next_number = account->next_number;
    buffer->staleness_sum = account->staleness_sum;
    buffer->stats = account->figures;
    drop_stale(buffer);
}

int replay_recall_item(struct replay *buffer, const struct replay_item *item,
                       bool is_new)
{
    const struct sample *sample = &item->sample;
    struct replay_figures *stats = &buffer->stats;
    struct replay_datum *datum;
    if (item->slot >= (int64_t)buffer->options.capacity)
        return ls_error(LS_EPROTO, "replay buffer %s: slot %lld of %zu",
                        buffer->name, (long long)item->slot,
                        buffer->options.capacity);
    stats->inserted += is_new ? 1 : 0;
    if (item->slot < 0 || is_stale(buffer, sample->policy_version)) {
        stats->evicted_stale++;
        return LS_OK;
    }
    const int status = replay_data_use(&buffer->data, sample->data_id,
                                       (uint64_t)sample->size, &datum);
    if (status != LS_OK)
        return status;
    if (buffer->n_free == 0)
        evict(buffer, buffer->oldest, &stats->evicted_overflow);
    const size_t slot = (size_t)item->slot;
    if (is_taken(buffer, slot)) /* that one went, and nobody said so */
        evict(buffer, slot, &stats->evicted_lost);
    const uint64_t next = buffer->next_number;
    buffer->n_free--;
    buffer->next_number = item->number;
    put_in(buffer, slot, sample, datum);
    if (buffer->next_number < next)
        buffer->next_number = next;
    buffer->items[slot].n_sampled = item->n_sampled;
    return LS_OK;
}

static bool is_item(const struct replay *buffer, int64_t slot, uint64_t number)
{
    const struct item *item = item_at(buffer, slot);
    return item != NULL && item->number == number;
}

void replay_recall_drawn(struct replay *buffer, int64_t slot, uint64_t number)
{
    if (is_item(buffer, slot, number))
        count_drawn(buffer, (size_t)slot);
    else
        buffer->stats.sampled++;
}

void replay_recall_priority(struct replay *buffer, int64_t slot,
                            uint64_t number, double priority)
{
    struct priority_update update = {.slot = slot, .priority = priority};
    (void)snprintf(update.unique_id, sizeof update.unique_id, "%s_%llu",
                   buffer->name, (unsigned long long)number);
    (void)replay_update_priority(buffer, &update);
}

void replay_check(struct replay *buffer,
                  bool (*fn)(void *self, const struct sample *sample),
                  void *self)
{
    char last[SAFE_NAME_MAX + 1] = "";
    bool is_whole = true;
    size_t slot = buffer->oldest;
    while (slot != NO_SLOT) {
        const struct item *item = &buffer->items[slot];
        const size_t next = item->newer;
        if (strcmp(last, item->sample.data_id) != 0)
            is_whole = fn(self, &item->sample);
        memcpy(last, item->sample.data_id, sizeof last);
        if (!is_whole)
            evict(buffer, slot, &buffer->stats.evicted_lost);
        slot = next;
    }
}

/* The slots that were free are not known in their order, so the next draws are
 * others than they would have been. */
void replay_recalled(struct replay *buffer)
{
    const size_t capacity = buffer->options.capacity;
    size_t n = 0;
    for (size_t i = 0; i < capacity; i++) {
        const size_t slot = capacity - 1 - i;
        if (!is_taken(buffer, slot))
            buffer->free_slots[n++] = slot;
    }
    ls_rng_seed(&buffer->rng, buffer->options.seed, buffer->stats.sampled);
}

bool replay_uses(const struct replay *buffer, const char *data_id)
{
    return replay_data_uses(&buffer->data, data_id);
}
