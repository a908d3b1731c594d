/* What is kept here is at hand, and what others keep is asked for. */
#include "store_bus.h"

#include <stdlib.h>
#include <string.h>

#include "lockstep/log.h"
#include "store_home.h"
#include "store_parts.h"

struct store_bus {
    struct store store;
    ls_runtime *runtime;
    ls_rpc *calls;
    struct store_home *home; /* own */
    uint32_t self, coordinator, channel;
};

static uint32_t keeper_of(const struct store_bus *bus, const char *name)
{
    uint32_t id;
    return store_data_home(name, &id) ? id : bus->coordinator;
}

static void copy_name(store_name out, const char *name)
{
    memcpy(out, name, strlen(name) + 1);
}

/* Calls ------------------------------------------------------------------ */

/* What the end of a call means of a store; the text is kept. */
static int of_call(int status)
{
    switch (status) {
    case LS_ENOENT: /* no such member */
        return LS_ELOST;
    case LS_EABORTED: /* refused: too much to do */
        return LS_EAGAIN;
    case LS_ECANCELED: /* this node closes its calls */
        return LS_ECLOSED;
    case LS_EHANDLER: /* it cannot read what this node wrote */
        return LS_EPROTO;
    default:
        return status;
    }
}

/* body: given. ended: as of a call. */
static int begin(struct store_bus *bus, ls_call **out, uint32_t to,
                 const struct ls_record *record, const void *what,
                 const struct ls_body *body, int wait_ms,
                 void (*ended)(void *self, ls_call *call))
{
    struct ls_call_options options = {.to = to,
                                      .channel = bus->channel,
                                      .name = record->name,
                                      .body = *body,
                                      .timeout_ms = wait_ms,
                                      .ended = ended};
    ls_writer *writer;
    int status = ls_writer_create(&writer);
    if (status == LS_OK) {
        ls_record_write(record, what, writer);
        status = ls_writer_bytes(writer, &options.data, &options.size);
    }
    if (status == LS_OK)
        status = ls_call_start(out, bus->calls, &options);
    else
        ls_body_release(&options.body);
    ls_writer_destroy(&writer);
    return status == LS_OK ? LS_OK : ls_error_at(of_call(status), "a store");
}

static int of_result(const struct ls_call_result *result)
{
    switch (result->state) {
    case LS_CALL_COMPLETED:
        return LS_OK;
    case LS_CALL_START_FAILED:
        return ls_error(result->code == LS_CALL_TOO_LONG ? LS_ELIMIT
                                                         : LS_EAGAIN,
                        "a store: %s", result->text);
    case LS_CALL_LOST:
        return ls_error(LS_ELOST, "a store: %s", result->text);
    case LS_CALL_TIMEOUT:
        return ls_error(LS_ETIMEDOUT, "a store: %s", result->text);
    case LS_CALL_CANCELLED:
        return ls_error(LS_ECLOSED, "a store: %s", result->text);
    default:
        return ls_error(LS_EPROTO, "a store: %s", result->text);
    }
}

/* Wait for its end, and read the answer. */
static int end(ls_call *call, struct store_answer *answer)
{
    int status = ls_call_wait(call, LS_WAIT_DEFAULT);
    const struct ls_call_result *result =
        status == LS_OK ? ls_call_result(call) : NULL;
    if (status == LS_OK)
        status = of_result(result);
    if (status == LS_OK)
        status = store_call_read(&store_answer_record, answer, result->data,
                                 result->size);
    if (status == LS_OK && answer->status != LS_OK)
        status = ls_error((int)answer->status, "%s", answer->text);
    return status;
}

/* Where nothing but a status comes back. */
static int tell(struct store_bus *bus, uint32_t to,
                const struct ls_record *record, const void *what,
                const struct ls_body *body, int wait_ms)
{
    struct store_answer *answer = malloc(sizeof *answer);
    struct ls_body given = *body;
    ls_call *call = NULL;
    int status;
    if (answer == NULL) {
        ls_body_release(&given);
        return ls_error(LS_ENOMEM, "a store");
    }
    status = begin(bus, &call, to, record, what, body, wait_ms, NULL);
    if (status == LS_OK)
        status = end(call, answer);
    ls_call_destroy(&call);
    free(answer);
    return status;
}

/* Puts ------------------------------------------------------------------- */

/* What is kept here outlives the put. */
static int own(struct ls_body *body)
{
    if (body->release != NULL)
        return LS_OK;
    void *copy = malloc(body->size + 1);
    if (copy == NULL)
        return ls_error(LS_ENOMEM, "a store: %zu bytes", body->size);
    if (body->size > 0)
        memcpy(copy, body->data, body->size);
    *body = (struct ls_body){copy, body->size, store_free, NULL};
    return LS_OK;
}

static int bus_put(struct store *store, const struct store_put *put)
{
    struct store_bus *bus = (struct store_bus *)store;
    const uint32_t to = keeper_of(bus, put->name);
    struct ls_body body = {(void *)(uintptr_t)put->data, put->size,
                           put->release, put->hint};
    struct store_put_call call = {.keep = put->keep, .rank = put->rank};
    copy_name(call.name, put->name);
    if (to != bus->self)
        return tell(bus, to, &store_put_record, &call, &body, put->wait_ms);
    const int status = own(&body);
    return status == LS_OK ? store_home_put(bus->home, &call, &body) : status;
}

/* Gets ------------------------------------------------------------------- */

/* Parts that lie one behind the other in one value, asked for as one. */
struct range {
    size_t first, n; /* of the parts */
    uint32_t keeper;
    bool asked; /* or got */
};

/* A call for ranges of one keeper. */
struct question {
    ls_call *call; /* own */
    size_t n;      /* of its ranges */
    size_t ranges[STORE_GET_MAX];
};

/* Scratch. */
struct get {
    struct store_bus *bus;
    const struct store_part *parts; /* borrow */
    size_t n;
    int64_t deadline;
    struct store_blob blobs[STORE_GET_MAX]; /* own; of the parts */
    struct range ranges[STORE_GET_MAX];
    struct store_range wire[STORE_GET_MAX]; /* what they are in a call */
    size_t n_ranges;
    struct store_answer answer;
};

#define ALONE_BYTES ((uint64_t)64 << 10) /* copied together below */

static void make_ranges(struct get *get)
{
    for (size_t i = 0; i < get->n; i++) {
        const struct store_part *part = &get->parts[i];
        struct store_range *last =
            get->n_ranges > 0 ? &get->wire[get->n_ranges - 1] : NULL;
        if (last != NULL && part->size > 0 && last->size > 0 &&
            part->at == last->at + last->size &&
            strcmp(last->name, part->name) == 0) {
            last->size += part->size;
            get->ranges[get->n_ranges - 1].n++;
            continue;
        }
        struct range *range = &get->ranges[get->n_ranges];
        *range = (struct range){
            .first = i, .n = 1, .keeper = keeper_of(get->bus, part->name)};
        copy_name(get->wire[get->n_ranges].name, part->name);
        get->wire[get->n_ranges].at = part->at;
        get->wire[get->n_ranges++].size = part->size;
    }
}

/* The parts of a range, out of its bytes, which they share. */
static void cut(struct get *get, const struct range *range,
                struct store_bytes *bytes, uint64_t at, uint64_t size)
{
    for (size_t i = range->first; i < range->first + range->n; i++) {
        const uint64_t own_size = range->n > 1 ? get->parts[i].size : size;
        get->blobs[i] = store_bytes_blob(bytes, at, (size_t)own_size);
        at += own_size;
    }
}

static int take_here(struct get *get, size_t index)
{
    struct store_blob blob;
    const int status = store_home_get(get->bus->home, &get->wire[index], &blob);
    if (status != LS_OK)
        return status;
    struct ls_body body = {blob.data, blob.size, blob.release, blob.hint};
    struct store_bytes *bytes = store_bytes_create(&body);
    if (bytes == NULL)
        return ls_error(LS_ENOMEM, "a store: %s", get->wire[index].name);
    cut(get, &get->ranges[index], bytes, 0, blob.size);
    store_bytes_release(bytes);
    return LS_OK;
}

/* Ask for all ranges of a keeper that are short, or for one that is long. */
static int ask(struct get *get, struct question *question, size_t index)
{
    static const struct ls_body none = {NULL, 0, NULL, NULL};
    struct store_range *parts = calloc(get->n_ranges - index, sizeof *parts);
    const int64_t left = get->deadline - ls_now(get->bus->runtime);
    const uint32_t keeper = get->ranges[index].keeper;
    const bool alone = get->wire[index].size >= ALONE_BYTES;
    if (parts == NULL)
        return ls_error(LS_ENOMEM, "a store");
    question->n = 0;
    for (size_t i = index; i < get->n_ranges; i++) {
        struct range *range = &get->ranges[i];
        if (i != index && (alone || range->asked || range->keeper != keeper ||
                           get->wire[i].size >= ALONE_BYTES))
            continue;
        range->asked = true;
        parts[question->n] = get->wire[i];
        question->ranges[question->n++] = i;
    }
    const int status =
        left <= 0 ? ls_error(LS_ETIMEDOUT, "a store: the deadline passed")
                  : begin(get->bus, &question->call, keeper, &store_get_record,
                          &(struct store_get_call){question->n, parts}, &none,
                          (int)(left / LS_NS_PER_MS) + 1, NULL);
    free(parts);
    return status;
}

/* Whether the answer is one to this question. */
static int check_answer(const struct get *get, const struct question *question,
                        size_t size)
{
    const struct store_answer *answer = &get->answer;
    uint64_t all = 0;
    bool fits = answer->n > 0 && answer->n <= question->n;
    for (size_t i = 0; i < answer->n && fits; i++) {
        const uint64_t wanted = get->wire[question->ranges[i]].size;
        fits = answer->sizes[i] <= size - all &&
               (wanted == 0 || wanted == answer->sizes[i]);
        all += fits ? answer->sizes[i] : 0;
    }
    return fits && all == size
               ? LS_OK
               : ls_error(LS_EPROTO,
                          "a store: %zu values in %zu bytes for %zu names",
                          answer->n, size, question->n);
}

/* What did not fit into the answer is asked for again. */
static int take_answer(struct get *get, struct question *question)
{
    struct ls_body body;
    int status = end(question->call, &get->answer);
    if (status != LS_OK)
        return status;
    ls_call_take_body(question->call, &body);
    status = check_answer(get, question, body.size);
    if (status != LS_OK) {
        ls_body_release(&body);
        return status;
    }
    struct store_bytes *bytes = store_bytes_create(&body);
    if (bytes == NULL)
        return ls_error(LS_ENOMEM, "a store");
    uint64_t at = 0;
    for (size_t i = 0; i < question->n; i++) {
        struct range *range = &get->ranges[question->ranges[i]];
        range->asked = i < get->answer.n;
        if (!range->asked)
            continue;
        cut(get, range, bytes, at, get->answer.sizes[i]);
        at += get->answer.sizes[i];
    }
    store_bytes_release(bytes);
    return LS_OK;
}

/* All that is still to be asked for, at the same time. */
static int get_round(struct get *get, bool *more)
{
    struct question *questions = calloc(get->n_ranges, sizeof *questions);
    size_t n = 0;
    int status = questions == NULL ? ls_error(LS_ENOMEM, "a store") : LS_OK;
    for (size_t i = 0; i < get->n_ranges && status == LS_OK; i++) {
        if (get->ranges[i].asked)
            continue;
        if (get->ranges[i].keeper == get->bus->self) {
            get->ranges[i].asked = true;
            status = take_here(get, i);
        } else {
            status = ask(get, &questions[n++], i);
        }
    }
    for (size_t i = 0; i < n && status == LS_OK; i++)
        status = take_answer(get, &questions[i]);
    for (size_t i = 0; i < n; i++)
        ls_call_destroy(&questions[i].call);
    free(questions);
    *more = false;
    for (size_t i = 0; i < get->n_ranges; i++)
        *more = *more || !get->ranges[i].asked;
    return status;
}

static int bus_get(struct store *store, const struct store_part *parts,
                   size_t n, struct store_blob *out, int wait_ms)
{
    struct store_bus *bus = (struct store_bus *)store;
    struct get *get = calloc(1, sizeof *get);
    bool more = true;
    int status = LS_OK;
    if (get == NULL)
        return ls_error(LS_ENOMEM, "a store: %zu names", n);
    get->bus = bus;
    get->parts = parts;
    get->n = n;
    get->deadline = ls_deadline(bus->runtime, wait_ms);
    make_ranges(get);
    while (more && status == LS_OK)
        status = get_round(get, &more);
    if (status == LS_OK)
        memcpy(out, get->blobs, n * sizeof *out);
    for (size_t i = 0; i < n && status != LS_OK; i++)
        store_blob_fini(&get->blobs[i]);
    free(get);
    return status;
}

/* Drops ------------------------------------------------------------------ */

static int bus_drop(struct store *store, const char *name, int wait_ms)
{
    static const struct ls_body none = {NULL, 0, NULL, NULL};
    struct store_bus *bus = (struct store_bus *)store;
    const uint32_t to = keeper_of(bus, name);
    store_name names[1];
    if (to == bus->self)
        return store_home_drop(bus->home, name);
    copy_name(names[0], name);
    return tell(bus, to, &store_drop_record,
                &(struct store_drop_call){1, names}, &none, wait_ms);
}

static void forgotten(void *self, ls_call *call)
{
    (void)self;
    ls_call_destroy(&call);
}

/* The names of one keeper; those of one that is gone are gone with it. */
static void forget_at(struct store_bus *bus, uint32_t keeper, store_name *names,
                      size_t n)
{
    static const struct ls_body none = {NULL, 0, NULL, NULL};
    ls_call *call;
    if (begin(bus, &call, keeper, &store_drop_record,
              &(struct store_drop_call){n, names}, &none, 0,
              forgotten) != LS_OK)
        ls_log_debug("store: node %u drops nothing: %s", (unsigned)keeper,
                     ls_error_text());
}

static void bus_forget(struct store *store, const char *const *names, size_t n)
{
    struct store_bus *bus = (struct store_bus *)store;
    store_name *some = malloc(STORE_GET_MAX * sizeof *some);
    bool *done = calloc(n, sizeof *done);
    for (size_t i = 0; i < n && some != NULL && done != NULL; i++) {
        size_t n_some = 0;
        if (done[i] || !safe_name_is(names[i]))
            continue;
        const uint32_t keeper = keeper_of(bus, names[i]);
        for (size_t k = i; k < n && n_some < STORE_GET_MAX; k++) {
            if (done[k] || !safe_name_is(names[k]) ||
                keeper_of(bus, names[k]) != keeper)
                continue;
            done[k] = true;
            if (keeper != bus->self)
                copy_name(some[n_some++], names[k]);
            else if (store_home_drop(bus->home, names[k]) != LS_OK)
                ls_log_warn("store: %s stays: %s", names[k], ls_error_text());
        }
        if (n_some > 0)
            forget_at(bus, keeper, some, n_some);
    }
    free(done);
    free(some);
}

/* Life ------------------------------------------------------------------- */

static void bus_close(struct store *store)
{
    struct store_bus *bus = (struct store_bus *)store;
    store_home_close(&bus->home);
    free(bus);
}

void store_bus_stats(struct store *store, struct store_home_stats *out)
{
    store_home_stats(((struct store_bus *)store)->home, out);
}

static const struct store_ops operations = {.put = bus_put,
                                            .get = bus_get,
                                            .drop = bus_drop,
                                            .forget = bus_forget,
                                            .close = bus_close};

int store_bus_open(struct store **out, const struct store_bus_options *options)
{
    struct store_bus *bus = calloc(1, sizeof *bus);
    if (bus == NULL)
        return ls_error(LS_ENOMEM, "a store");
    bus->store.ops = &operations;
    bus->runtime = ls_node_runtime(options->node);
    bus->calls = options->calls;
    bus->self = ls_node_id(options->node);
    bus->coordinator = options->coordinator;
    bus->channel = options->channel;
    const int status = store_home_open(
        &bus->home,
        &(struct store_home_options){.node = options->node,
                                     .calls = options->calls,
                                     .coordinator = options->coordinator,
                                     .max_bytes = options->max_bytes,
                                     .keep = options->keep});
    if (status != LS_OK) {
        free(bus);
        return status;
    }
    *out = &bus->store;
    return LS_OK;
}
