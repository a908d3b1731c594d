/* The members' side of a store on the bus. */
#include "store_bus.h"

#include <stdlib.h>
#include <string.h>

#include "store_calls.h"
#include "store_parts.h"

struct store_bus {
    struct store store;
    ls_runtime *runtime;
    ls_rpc *calls;
    uint32_t home, channel;
    size_t max_bytes;
};

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

/* Make a call whose data is in `writer`, and read its answer. body: given with
 * it. bytes: own; what comes back. */
static int ask(const struct store_bus *bus, const char *name, ls_writer *writer,
               const struct ls_body *body, int wait_ms,
               struct store_answer *out, struct ls_body *bytes)
{
    struct ls_call_options options = {.to = bus->home,
                                      .channel = bus->channel,
                                      .name = name,
                                      .body = *body,
                                      .timeout_ms = wait_ms};
    struct ls_body given = *body;
    void *answer = NULL;
    size_t size = 0;
    int status = ls_writer_bytes(writer, &options.data, &options.size);
    if (status != LS_OK) {
        ls_body_release(&given);
        return status;
    }
    status = ls_call_ask_body(bus->calls, &options, &answer, &size, bytes);
    if (status != LS_OK)
        return ls_error_at(of_call(status), "a store");
    status = store_answer_read(out, answer, size);
    free(answer);
    if (status == LS_OK && out->status != LS_OK)
        status = ls_error(out->status, "%s", out->text);
    if (status != LS_OK)
        ls_body_release(bytes);
    return status;
}

/* The same where nothing but a status comes back. */
static int tell(const struct store_bus *bus, const char *name,
                ls_writer *writer, const struct ls_body *body, int wait_ms)
{
    struct store_answer *answer = malloc(sizeof *answer);
    struct ls_body given = *body, bytes = {.data = NULL};
    if (answer == NULL) {
        ls_body_release(&given);
        return ls_error(LS_ENOMEM, "a store");
    }
    const int status = ask(bus, name, writer, body, wait_ms, answer, &bytes);
    ls_body_release(&bytes);
    free(answer);
    return status;
}

static int too_long(const struct store_bus *bus, const struct store_put *put)
{
    return ls_error(LS_ELIMIT,
                    "a store: %s has %zu bytes, at most %zu are allowed",
                    put->name, put->size, bus->max_bytes);
}

static int bus_put(struct store *store, const struct store_put *put)
{
    const struct store_bus *bus = (const struct store_bus *)store;
    const struct ls_body body = {(void *)(uintptr_t)put->data, put->size,
                                 put->release, put->hint};
    struct store_put_call call = {.keep = put->keep, .rank = put->rank};
    ls_writer *writer = NULL;
    int status = put->size > bus->max_bytes ? too_long(bus, put)
                                            : ls_writer_create(&writer);
    if (status != LS_OK) {
        store_put_release(put);
        return status;
    }
    memcpy(call.name, put->name, strlen(put->name) + 1);
    store_put_write(&call, writer);
    status = tell(bus, STORE_PUT_CALL, writer, &body, put->wait_ms);
    ls_writer_destroy(&writer);
    return status;
}

/* Its parts as values of their own; a single one is kept as it came. */
static int share_out(struct ls_body *bytes, const struct store_answer *answer,
                     struct store_blob *out)
{
    const char *at = bytes->data != NULL ? bytes->data : "";
    if (answer->n == 1 && bytes->size != 0) {
        out[0] = (struct store_blob){bytes->data, bytes->size, bytes->release,
                                     bytes->hint};
        *bytes = (struct ls_body){.data = NULL};
        return LS_OK;
    }
    for (size_t i = 0; i < answer->n; i++) {
        const size_t size = (size_t)answer->sizes[i];
        out[i] = (struct store_blob){.data = malloc(size + 1), .size = size};
        if (out[i].data == NULL)
            return ls_error(LS_ENOMEM, "a store: %zu bytes", size);
        if (size != 0)
            memcpy(out[i].data, at, size);
        at += size;
    }
    return LS_OK;
}

/* Whether the answer is one to this question. */
static int check_answer(const struct store_answer *answer, size_t n,
                        size_t size)
{
    uint64_t all = 0;
    bool fits = true;
    for (size_t i = 0; i < answer->n && fits; i++) {
        fits = answer->sizes[i] <= size - all;
        all += fits ? answer->sizes[i] : 0;
    }
    if (answer->n == 0 || answer->n > n || !fits || all != size)
        return ls_error(LS_EPROTO,
                        "a store: %zu values in %zu bytes for %zu names",
                        answer->n, size, n);
    return LS_OK;
}

/* Scratch: the answer, and the values that came. */
struct get {
    struct store_answer answer;
    struct store_blob blobs[STORE_GET_MAX];
    size_t n;
};

/* Some more, by one call. */
static int get_some(const struct store_bus *bus, struct get *get,
                    const char *const *names, size_t n, int wait_ms)
{
    static const struct ls_body none = {NULL, 0, NULL, NULL};
    struct ls_body bytes = none;
    ls_writer *writer = NULL;
    int status = ls_writer_create(&writer);
    if (status != LS_OK)
        return status;
    store_names_write(names, n, writer);
    status =
        ask(bus, STORE_GET_CALL, writer, &none, wait_ms, &get->answer, &bytes);
    if (status == LS_OK)
        status = check_answer(&get->answer, n, bytes.size);
    if (status == LS_OK)
        status = share_out(&bytes, &get->answer, &get->blobs[get->n]);
    if (status == LS_OK)
        get->n += get->answer.n;
    ls_body_release(&bytes);
    ls_writer_destroy(&writer);
    return status;
}

static int get_all(const struct store_bus *bus, struct get *get,
                   const char *const *names, size_t n, int wait_ms)
{
    const int64_t deadline = ls_deadline(bus->runtime, wait_ms);
    int status = get_some(bus, get, names, n, wait_ms);
    while (status == LS_OK && get->n < n) {
        const int64_t left = deadline - ls_now(bus->runtime);
        if (left <= 0)
            return ls_error(LS_ETIMEDOUT, "a store: the deadline passed");
        status = get_some(bus, get, names + get->n, n - get->n,
                          (int)(left / LS_NS_PER_MS) + 1);
    }
    return status;
}

static int bus_get(struct store *store, const char *const *names, size_t n,
                   struct store_blob *out, int wait_ms)
{
    struct get *get = calloc(1, sizeof *get);
    if (get == NULL)
        return ls_error(LS_ENOMEM, "a store: %zu names", n);
    const int status =
        get_all((const struct store_bus *)store, get, names, n, wait_ms);
    if (status == LS_OK)
        memcpy(out, get->blobs, n * sizeof *out);
    for (size_t i = 0; i < n && status != LS_OK; i++)
        store_blob_fini(&get->blobs[i]);
    free(get);
    return status;
}

static int bus_drop(struct store *store, const char *name, int wait_ms)
{
    static const struct ls_body none = {NULL, 0, NULL, NULL};
    const struct store_bus *bus = (const struct store_bus *)store;
    ls_writer *writer = NULL;
    int status = ls_writer_create(&writer);
    if (status == LS_OK) {
        store_names_write(&name, 1, writer);
        status = tell(bus, STORE_DROP_CALL, writer, &none, wait_ms);
    }
    ls_writer_destroy(&writer);
    return status;
}

static void bus_close(struct store *store)
{
    free(store);
}

static const struct store_ops operations = {
    .put = bus_put, .get = bus_get, .drop = bus_drop, .close = bus_close};

int store_bus_open(struct store **out, const struct store_bus_options *options)
{
    struct store_bus *bus = calloc(1, sizeof *bus);
    if (bus == NULL)
        return ls_error(LS_ENOMEM, "a store");
    bus->store.ops = &operations;
    bus->runtime = ls_node_runtime(options->node);
    bus->calls = options->calls;
    bus->home = options->home;
    bus->channel = options->channel;
    bus->max_bytes =
        options->max_bytes > 0 ? options->max_bytes : LS_CALL_BODY_BYTES;
    *out = &bus->store;
    return LS_OK;
}
