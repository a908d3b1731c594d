/* The members' side of a store on the bus.
 *
 * Bytes that come are matched to gets by their length and hash. They may come
 * before the answer that says what they are, and after the get has given up:
 * so each get has a number, bytes note which number comes next when they do,
 * and those that came before the oldest open get began are of no use. */
#include "store_bus.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/event.h"
#include "store_parts.h"
#include "store_wire.h"

#define DEFAULT_MAX_BYTES ((size_t)64 << 20)

struct arrival {
    struct arrival *next;
    uint64_t before; /* gets from this number on began after it came */
    struct store_value value;
    void *data; /* own; NULL: out of memory */
};

struct open_get {
    struct open_get *next;
    uint64_t number;
};

struct store_bus {
    struct store store;
    ls_node *node;
    ls_calls *calls;
    ls_runtime *runtime;
    uint32_t home, channel;
    size_t max_bytes;
    char event[LS_EVENT_MAX + 1];
    bool hears, watches; /* the event; members */
    ls_mutex lock;
    ls_cond changed;
    struct arrival *arrivals; /* the newest first */
    struct open_get *gets;
    uint64_t next_number;
    uint64_t n_lost; /* times that the home was lost */
};

/* Calls ------------------------------------------------------------------ */

static int time_left(const struct store_bus *bus, int64_t deadline,
                     int *wait_ms)
{
    const int64_t left = deadline - ls_now(bus->runtime);
    if (left <= 0)
        return ls_error(LS_ETIMEDOUT, "a store: the deadline passed");
    *wait_ms = (int)(left / LS_NS_PER_MS) + 1;
    return LS_OK;
}

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

/* Make the call whose data is in `writer`, and read its answer. */
static int ask(const struct store_bus *bus, const char *name, ls_writer *writer,
               int64_t deadline, struct store_answer *out)
{
    struct ls_call_options options = {
        .to = bus->home, .channel = bus->channel, .name = name};
    int status = ls_writer_bytes(writer, &options.data, &options.size);
    if (status == LS_OK)
        status = time_left(bus, deadline, &options.wait_ms);
    if (status != LS_OK)
        return status;
    void *answer = NULL;
    size_t size = 0;
    status = ls_calls_ask(bus->calls, &options, &answer, &size);
    if (status != LS_OK)
        return ls_error_at(of_call(status), "a store");
    status = store_answer_read(out, answer, size);
    free(answer);
    if (status == LS_OK && out->status != LS_OK)
        status = ls_error(out->status, "%s", out->text);
    return status;
}

/* Put -------------------------------------------------------------------- */

/* The incarnation of the home; 0: it is not there. */
static uint64_t life_of_home(const struct store_bus *bus)
{
    if (ls_node_id(bus->node) == bus->home)
        return ls_node_incarnation(bus->node);
    uint64_t life = 0;
    size_t n = ls_node_members(bus->node, NULL, 0), capacity;
    struct ls_member *members = NULL;
    do {
        capacity = n;
        free(members);
        members = calloc(capacity + 1, sizeof *members);
        if (members == NULL)
            return 0;
        n = ls_node_members(bus->node, members, capacity);
    } while (n > capacity);
    for (size_t i = 0; i < n; i++) {
        if (members[i].id == bus->home && members[i].state == LS_MEMBER_READY)
            life = members[i].incarnation;
    }
    free(members);
    return life;
}

/* Send the bytes. The data is released or copied, whatever is returned. */
static int send_bytes(const struct store_bus *bus, const struct store_put *put,
                      int64_t deadline)
{
    struct ls_emission emission = {.event = STORE_PUT_EVENT,
                                   .data = put->data,
                                   .size = put->size,
                                   .policy = LS_POLICY_RELIABLE,
                                   .to_one = true,
                                   .to = bus->home,
                                   .release = put->release,
                                   .hint = put->hint};
    int status = time_left(bus, deadline, &emission.wait_ms);
    if (status != LS_OK) {
        store_put_release(put);
        return status;
    }
    status = ls_emit_with(bus->node, &emission);
    if (status == LS_EAGAIN) /* for a store that means: full */
        status = LS_ETIMEDOUT;
    if (status == LS_ENOENT)
        status = LS_ELOST;
    return status == LS_OK ? LS_OK
                           : ls_error_at(status, "a store: %s", put->name);
}

static int claim_bytes(const struct store_bus *bus,
                       const struct store_claim *claim, int64_t deadline)
{
    ls_writer *writer = NULL;
    struct store_answer *answer = malloc(sizeof *answer);
    int status = answer != NULL
                     ? LS_OK
                     : ls_error(LS_ENOMEM, "a store: %s", claim->name);
    if (status == LS_OK)
        status = ls_writer_create(&writer);
    if (status == LS_OK) {
        store_claim_write(claim, writer);
        status = ask(bus, STORE_PUT_CALL, writer, deadline, answer);
    }
    ls_writer_destroy(&writer);
    free(answer);
    return status;
}

static int bus_put(struct store *store, const struct store_put *put)
{
    const struct store_bus *bus = (const struct store_bus *)store;
    const int64_t deadline = ls_deadline(bus->runtime, put->wait_ms);
    const uint64_t own_life = ls_node_incarnation(bus->node);
    struct store_claim claim = {
        .keep = put->keep, .rank = put->rank, .home = life_of_home(bus)};
    int status = LS_OK;
    if (put->size > bus->max_bytes)
        status = ls_error(LS_ELIMIT,
                          "a store: %s has %zu bytes, at most %zu are allowed",
                          put->name, put->size, bus->max_bytes);
    else if (claim.home == 0)
        status = ls_error(LS_ELOST,
                          "a store: %s: node %u, which keeps the "
                          "bytes, is not there",
                          put->name, bus->home);
    if (status != LS_OK) {
        store_put_release(put);
        return status;
    }
    memcpy(claim.name, put->name, strlen(put->name) + 1);
    claim.value = store_value_of(put->data, put->size);
    status = send_bytes(bus, put, deadline);
    if (status == LS_OK && ls_node_incarnation(bus->node) != own_life)
        status = ls_error(LS_ELOST,
                          "a store: %s: this node was taken for dead "
                          "meanwhile",
                          put->name);
    return status == LS_OK ? claim_bytes(bus, &claim, deadline) : status;
}

/* Get -------------------------------------------------------------------- */

static int on_bytes(void *self, const struct ls_event *event)
{
    struct store_bus *bus = self;
    if (event->origin != bus->home)
        return LS_OK;
    struct arrival *arrival = calloc(1, sizeof *arrival);
    if (arrival == NULL)
        return LS_OK; /* as if it had not come */
    arrival->value = store_value_of(event->data, event->size);
    arrival->data = malloc(event->size > 0 ? event->size : 1);
    if (arrival->data != NULL && event->size > 0)
        memcpy(arrival->data, event->data, event->size);
    ls_mutex_lock(&bus->lock);
    const bool is_wanted = bus->gets != NULL;
    if (is_wanted) {
        arrival->before = bus->next_number;
        arrival->next = bus->arrivals;
        bus->arrivals = arrival;
        ls_cond_broadcast(&bus->changed);
    }
    ls_mutex_unlock(&bus->lock);
    if (!is_wanted) {
        free(arrival->data);
        free(arrival);
    }
    return LS_OK;
}

static void on_member(void *self, const struct ls_member *member)
{
    struct store_bus *bus = self;
    if (member->id != bus->home ||
        (member->state != LS_MEMBER_LEFT && member->state != LS_MEMBER_LOST))
        return;
    ls_mutex_lock(&bus->lock);
    bus->n_lost++;
    ls_cond_broadcast(&bus->changed);
    ls_mutex_unlock(&bus->lock);
}

/* Returns how often the home was lost so far. */
static uint64_t begin_get(struct store_bus *bus, struct open_get *get)
{
    ls_mutex_lock(&bus->lock);
    get->number = bus->next_number++;
    get->next = bus->gets;
    bus->gets = get;
    const uint64_t n_lost = bus->n_lost;
    ls_mutex_unlock(&bus->lock);
    return n_lost;
}

static void end_get(struct store_bus *bus, struct open_get *get)
{
    uint64_t oldest = UINT64_MAX;
    struct arrival *useless = NULL;
    ls_mutex_lock(&bus->lock);
    for (struct open_get **at = &bus->gets; *at != NULL;) {
        if (*at == get) {
            *at = get->next;
            continue;
        }
        oldest = (*at)->number < oldest ? (*at)->number : oldest;
        at = &(*at)->next;
    }
    for (struct arrival **at = &bus->arrivals; *at != NULL;) {
        struct arrival *arrival = *at;
        if (arrival->before > oldest) {
            at = &arrival->next;
            continue;
        }
        *at = arrival->next;
        arrival->next = useless;
        useless = arrival;
    }
    ls_mutex_unlock(&bus->lock);
    while (useless != NULL) {
        struct arrival *arrival = useless;
        useless = arrival->next;
        free(arrival->data);
        free(arrival);
    }
}

/* Take the bytes that are the value; false: they have not come. */
static bool take_bytes(struct store_bus *bus, struct store_value value,
                       struct store_blob *out)
{
    struct arrival **at = &bus->arrivals;
    while (*at != NULL && !store_value_equal((*at)->value, value))
        at = &(*at)->next;
    struct arrival *arrival = *at;
    if (arrival == NULL)
        return false;
    *at = arrival->next;
    *out = (struct store_blob){arrival->data, (size_t)value.size};
    free(arrival);
    return true;
}

/* Wait until all values have come.
 * Errors: LS_ELOST, LS_ETIMEDOUT, LS_ENOMEM. */
static int wait_for_bytes(struct store_bus *bus,
                          const struct store_answer *answer, uint64_t n_lost,
                          int64_t deadline, struct store_blob *out)
{
    int status = LS_OK;
    ls_mutex_lock(&bus->lock);
    for (size_t i = 0; i < answer->n && status == LS_OK;) {
        if (take_bytes(bus, answer->values[i], &out[i])) {
            if (out[i++].data == NULL)
                status = ls_error(LS_ENOMEM, "a store");
        } else if (bus->n_lost != n_lost) {
            status = ls_error(LS_ELOST,
                              "a store: node %u, which keeps the "
                              "bytes, was lost",
                              bus->home);
        } else if (ls_cond_wait(&bus->changed, &bus->lock, deadline) != LS_OK) {
            status = ls_error(LS_ETIMEDOUT, "a store: the deadline passed");
        }
    }
    ls_mutex_unlock(&bus->lock);
    return status;
}

static int ask_for(const struct store_bus *bus, const char *const *names,
                   size_t n, int64_t deadline, struct store_answer *answer)
{
    ls_writer *writer = NULL;
    int status = ls_writer_create(&writer);
    if (status == LS_OK) {
        store_names_write(names, n, writer);
        status = ask(bus, STORE_GET_CALL, writer, deadline, answer);
    }
    ls_writer_destroy(&writer);
    if (status == LS_OK && answer->n != n)
        status = ls_error(LS_EPROTO, "a store: %zu values for %zu names",
                          answer->n, n);
    return status;
}

static int bus_get(struct store *store, const char *const *names, size_t n,
                   struct store_blob *out, int wait_ms)
{
    struct store_bus *bus = (struct store_bus *)store;
    const int64_t deadline = ls_deadline(bus->runtime, wait_ms);
    struct store_answer *answer = malloc(sizeof *answer);
    struct store_blob *blobs = calloc(n, sizeof *blobs);
    struct open_get get;
    int status = answer != NULL && blobs != NULL
                     ? LS_OK
                     : ls_error(LS_ENOMEM, "a store: %zu names", n);
    if (status == LS_OK) {
        const uint64_t n_lost = begin_get(bus, &get);
        status = ask_for(bus, names, n, deadline, answer);
        if (status == LS_OK)
            status = wait_for_bytes(bus, answer, n_lost, deadline, blobs);
        end_get(bus, &get);
    }
    if (status == LS_OK)
        memcpy(out, blobs, n * sizeof *blobs);
    for (size_t i = 0; i < n && blobs != NULL && status != LS_OK; i++)
        store_blob_fini(&blobs[i]);
    free(answer);
    free(blobs);
    return status;
}

/* The rest --------------------------------------------------------------- */

static int bus_drop(struct store *store, const char *name, int wait_ms)
{
    const struct store_bus *bus = (const struct store_bus *)store;
    const int64_t deadline = ls_deadline(bus->runtime, wait_ms);
    ls_writer *writer = NULL;
    struct store_answer *answer = malloc(sizeof *answer);
    int status = answer != NULL ? ls_writer_create(&writer)
                                : ls_error(LS_ENOMEM, "a store: %s", name);
    if (status == LS_OK) {
        store_drop_write(name, writer);
        status = ask(bus, STORE_DROP_CALL, writer, deadline, answer);
    }
    ls_writer_destroy(&writer);
    free(answer);
    return status;
}

/* It cannot fail for what is there. */
static void must(int status)
{
    assert(status == LS_OK);
    (void)status;
}

static void bus_close(struct store *store)
{
    struct store_bus *bus = (struct store_bus *)store;
    if (bus->hears)
        must(ls_off(bus->node, bus->event, on_bytes, bus));
    if (bus->watches)
        must(ls_node_on_member(bus->node, NULL, bus));
    ls_cond_fini(&bus->changed);
    ls_mutex_fini(&bus->lock);
    free(bus);
}

static const struct store_ops operations = {
    .put = bus_put, .get = bus_get, .drop = bus_drop, .close = bus_close};

int store_bus_open(struct store **out, const struct store_bus_options *options)
{
    struct store_bus *bus = calloc(1, sizeof *bus);
    if (bus == NULL)
        return ls_error(LS_ENOMEM, "a store");
    bus->store.ops = &operations;
    bus->node = options->node;
    bus->calls = options->calls;
    bus->runtime = ls_node_runtime(options->node);
    bus->home = options->home;
    bus->channel = options->channel;
    bus->max_bytes =
        options->max_bytes > 0 ? options->max_bytes : DEFAULT_MAX_BYTES;
    (void)snprintf(bus->event, sizeof bus->event, STORE_DATA_EVENT,
                   ls_node_id(bus->node));
    int status = ls_mutex_init(&bus->lock, bus->runtime);
    if (status == LS_OK)
        status = ls_cond_init(&bus->changed, bus->runtime);
    if (status == LS_OK) {
        status = ls_on(bus->node, bus->event, on_bytes, bus);
        bus->hears = status == LS_OK;
    }
    if (status == LS_OK) {
        status = ls_node_on_member(bus->node, on_member, bus);
        bus->watches = status == LS_OK;
    }
    if (status != LS_OK) {
        bus_close(&bus->store);
        return status;
    }
    *out = &bus->store;
    return LS_OK;
}
