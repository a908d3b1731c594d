/* Payloads of events, and bodies of calls, in shared memory between real
 * processes, copied there or written there, whose readers are killed in their
 * handlers, at any instant, again and again: no other reader ever sees what was
 * not sent, and every block comes back. KILLS=500 kills as many. And an owner
 * that is killed while what it has lent is read. */
#define _GNU_SOURCE /* mkdtemp */
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sanitized.h"
#include "blocks_inside.h"
#include "lockstep/call.h"
#include "lockstep/payload.h"
#include "lockstep/random.h"
#include "test.h"
#include "world_fixture.h"

#define KIB  1024u
#define WITH 64u /* bytes between two that are looked at */

struct child {
    pid_t pid;
    int to, from; /* own */
};

/* ---- in a child -------------------------------------------------------- */

struct reader {
    int to;
    struct counter let_on; /* how often it was */
    bool told, bad;
    uint64_t n, n_bodies;
    struct ls_body kept; /* the latest body but one that came */
};

static void must(bool good)
{
    if (!good) {
        (void)fprintf(stderr, "a process fails: %s\n", ls_error_text());
        _exit(1);
    }
}

static char hear(int fd)
{
    char what = 0;
    return read(fd, &what, 1) == 1 ? what : '\0';
}

static void say(int fd, char what)
{
    must(write(fd, &what, 1) == 1);
}

static ls_node *new_node(uint32_t id, const char *peer)
{
    char bind[64];
    struct ls_node_options options;
    ls_node *node = NULL;
    ls_node_options_init(&options);
    (void)snprintf(bind, sizeof bind, "tcp://%s:*", loopback());
    options.job = "blocks-kill";
    options.id = id;
    options.bind = bind;
    options.attach = &peer;
    options.n_attach = peer == NULL ? 0 : 1;
    options.world_size = peer == NULL ? 1 : 2;
    options.world_max = 8;
    options.start_timeout_ms = LONG_MS;
    options.heartbeat_ms = 50;
    options.silence_ms = 20000;
    options.shared_bytes = 2048 * KIB;
    options.insecure = true; /* its secret would be made anew each time */
    must(ls_node_create(&node, &options) == LS_OK);
    return node;
}

static bool are_whole(const uint8_t *data, size_t size)
{
    for (size_t at = 0; at < size; at += WITH)
        if (data[at] != (uint8_t)(data[0] + at / WITH))
            return false;
    return true;
}

static bool is_whole(const struct ls_event *event)
{
    return are_whole(event->data, event->size);
}

static int on_large(void *self, const struct ls_event *event)
{
    struct reader *const reader = self;
    for (int i = 0; i < 3; i++)
        reader->bad = reader->bad || !is_whole(event);
    if (!reader->told)
        say(reader->to, 'h');
    reader->told = true;
    reader->n++;
    return LS_OK;
}

/* It is kept until the next one has come, which it outlives; and goes back. */
static int on_body(void *self, ls_request *request)
{
    struct reader *const reader = self;
    struct ls_body body;
    ls_request_take_body(request, &body);
    for (int i = 0; i < 3; i++)
        reader->bad = reader->bad || !are_whole(body.data, body.size);
    reader->bad =
        reader->bad || !are_whole(reader->kept.data, reader->kept.size);
    ls_body_release(&reader->kept);
    reader->kept = body;
    reader->n_bodies++;
    const struct ls_body answer = {.data = body.data, .size = body.size};
    return ls_request_complete_with(&request, NULL, 0, &answer);
}

/* It is held until the parent says so. */
static int on_hold(void *self, const struct ls_event *event)
{
    struct reader *const reader = self;
    say(reader->to, 'h');
    must(counter_reaches(&reader->let_on, 1));
    reader->bad = reader->bad || !is_whole(event) ||
                  !are_whole(reader->kept.data, reader->kept.size);
    say(reader->to, reader->bad ? 'b' : 'w');
    return LS_OK;
}

/* Until it is told to end; or is killed. */
static void be_reader(uint32_t id, const char *peer, int to, int from)
{
    struct reader reader = {.to = to};
    ls_node *node = new_node(id, peer);
    ls_rpc *calls = NULL;
    counter_init(&reader.let_on);
    must(ls_rpc_open(&calls, node, NULL) == LS_OK);
    must(ls_rpc_serve(calls, "body", LS_CALL_ANYONE, on_body, &reader) ==
         LS_OK);
    must(ls_on(node, "large", on_large, &reader) == LS_OK);
    must(ls_on(node, "hold", on_hold, &reader) == LS_OK);
    must(ls_node_start(node) == LS_OK);
    say(to, 'r');
    while (hear(from) != 'q')
        counter_add(&reader.let_on, 1);
    ls_rpc_close(&calls);
    must(ls_node_destroy(&node) == LS_OK);
    must(are_whole(reader.kept.data, reader.kept.size));
    ls_body_release(&reader.kept);
    must(!reader.bad && reader.n > 0 && reader.n_bodies > 0);
    _exit(0);
}

static uint8_t *new_payload(ls_node *node, uint8_t first, size_t size)
{
    void *data;
    must(ls_payload_alloc(&data, node, size) == LS_OK);
    for (size_t at = 0; at < size; at += WITH)
        ((uint8_t *)data)[at] = (uint8_t)(first + at / WITH);
    return data;
}

/* release: NULL: it is copied. */
static void emit(ls_node *node, const char *event, void *data, size_t size,
                 void (*release)(void *data, void *hint))
{
    must(ls_emit_with(node, &(struct ls_emission){.event = event,
                                                  .data = data,
                                                  .size = size,
                                                  .release = release}) ==
         LS_OK);
}

static void body_ended(void *self, ls_call *call)
{
    const struct ls_call_result *const result = ls_call_result(call);
    atomic_int *const open = self;
    must(result->state != LS_CALL_COMPLETED ||
         are_whole(result->body, result->body_size));
    ls_call_destroy(&call);
    atomic_fetch_sub(open, 1);
}

/* To one that may be there or not. */
static void send_body(ls_rpc *calls, uint32_t to, struct ls_body body,
                      atomic_int *open)
{
    ls_call *call;
    if (atomic_load(open) >= 4) {
        ls_body_release(&body);
        return;
    }
    atomic_fetch_add(open, 1);
    if (ls_call_start(&call, calls,
                      &(struct ls_call_options){.to = to,
                                                .name = "body",
                                                .body = body,
                                                .timeout_ms = LONG_MS,
                                                .ended = body_ended,
                                                .self = open}) != LS_OK)
        atomic_fetch_sub(open, 1);
}

/* As an event to all, and as a body to one: copied, or both as it is. */
static void send_one(ls_node *node, ls_rpc *calls, unsigned i, size_t size,
                     atomic_int *open)
{
    uint8_t *const data = new_payload(node, (uint8_t)i, size);
    const bool in_place = i % 4 < 2;
    struct ls_body body = {.data = data, .size = size};
    if (in_place)
        body.release = ls_payload_free;
    emit(node, "large", data, size, NULL);
    if (in_place)
        emit(node, "large", ls_payload_share(data), size, ls_payload_free);
    send_body(calls, 1 + i % 2, body, open);
    if (!in_place)
        ls_payload_free(data, NULL);
}

/* Those of the dead too: it is known when they are gone. kept: of bodies that
 * the living keep. */
static void await_blocks(ls_node *node, unsigned kept)
{
    const int64_t deadline = long_deadline();
    unsigned left = kept + 1;
    while (left > kept) {
        must(ls_now(ls_runtime_threads()) < deadline);
        transport_lock(node->transport);
        blocks_reap(node);
        left = node->blocks->pool.n;
        transport_unlock(node->transport);
        (void)sched_yield();
    }
}

static void be_owner(int to, int from)
{
    struct ls_node_stats stats = {0};
    struct ls_rng rng;
    ls_node *node = new_node(100, NULL);
    ls_rpc *calls = NULL;
    atomic_int open = 0;
    must(ls_rpc_open(&calls, node, NULL) == LS_OK);
    must(ls_node_start(node) == LS_OK);
    const char *const at = ls_node_endpoint(node);
    must(write(to, at, strlen(at) + 1) == (ssize_t)strlen(at) + 1);
    ls_rng_seed(&rng, 1, 1);
    must(hear(from) == 'g');
    must(fcntl(from, F_SETFL, O_NONBLOCK) == 0);
    for (unsigned i = 0; hear(from) != 'q'; i++) {
        send_one(node, calls, i, 64 * KIB + ls_rng_below(&rng, 190 * KIB),
                 &open);
    }
    ls_node_stats(node, &stats);
    must(stats.blocks > 0);
    while (atomic_load(&open) != 0)
        (void)sched_yield();
    await_blocks(node, 1); /* the steady reader's */
    ls_rpc_close(&calls);
    must(ls_node_destroy(&node) == LS_OK);
    _exit(0);
}

/* release: of what it lends. NULL: it is copied. */
static void lend_and_die(int to, int from,
                         void (*release)(void *data, void *hint))
{
    struct ls_node_stats stats = {0};
    ls_node *node = new_node(100, NULL);
    ls_rpc *calls = NULL;
    must(ls_rpc_open(&calls, node, NULL) == LS_OK);
    must(ls_node_start(node) == LS_OK);
    const char *const at = ls_node_endpoint(node);
    must(write(to, at, strlen(at) + 1) == (ssize_t)strlen(at) + 1);
    must(hear(from) == 'g');
    while (stats.blocks == 0) {
        emit(node, "large", new_payload(node, 7, 64 * KIB), 64 * KIB,
             ls_payload_free);
        ls_node_stats(node, &stats);
    }
    must(ls_call_ask(calls,
                     &(struct ls_call_options){
                         .to = 1,
                         .name = "body",
                         .body = {.data = new_payload(node, 5, 100 * KIB),
                                  .size = 100 * KIB,
                                  .release = release},
                         .timeout_ms = LONG_MS},
                     NULL, NULL) == LS_OK);
    emit(node, "hold", new_payload(node, 9, 200 * KIB), 200 * KIB, release);
    (void)hear(from);
    _exit(0);
}

static void copy_and_die(int to, int from)
{
    lend_and_die(to, from, NULL);
}

static void write_and_die(int to, int from)
{
    lend_and_die(to, from, ls_payload_free);
}

/* ---- the test's own ---------------------------------------------------- */

static void start(struct child *child, void (*owner)(int to, int from),
                  uint32_t id, const char *peer)
{
    int in[2], out[2];
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    child->pid = fork();
    assert_true(child->pid >= 0);
    if (child->pid == 0) {
        (void)close(in[1]);
        (void)close(out[0]);
        if (owner != NULL)
            owner(out[1], in[0]);
        be_reader(id, peer, out[1], in[0]);
    }
    (void)close(in[0]);
    (void)close(out[1]);
    child->to = in[1];
    child->from = out[0];
}

/* how: 0: it is told to end, and must do so well. */
static void end(struct child *child, int how)
{
    int status;
    if (how == 0)
        assert_int_equal(write(child->to, "q", 1), 1);
    else
        assert_int_equal(kill(child->pid, how), 0);
    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
    if (how == 0)
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    (void)close(child->to);
    (void)close(child->from);
}

static void hear_address(const struct child *owner, char *out)
{
    size_t n = 0;
    do
        assert_int_equal(read(owner->from, out + n, 1), 1);
    while (out[n++] != '\0');
}

/* The killed may leave sockets: in a folder of this test. */
static char folder[32];

static int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/lockstep-blocks-XXXXXX");
    return mkdtemp(folder) == NULL || setenv("XDG_RUNTIME_DIR", folder, 1) != 0;
}

static int tear_down(void **state)
{
    char path[64];
    glob_t found;
    (void)state;
    (void)snprintf(path, sizeof path, "%s/lockstep/*", folder);
    /* Also one of who was killed before it had its name. */
    if (glob(path, GLOB_PERIOD, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            (void)unlink(found.gl_pathv[i]);
        globfree(&found);
    }
    path[strlen(path) - 2] = '\0';
    return rmdir(path) != 0 || rmdir(folder) != 0;
}

EACH_TEST(set_up, tear_down)

TEST(readers_are_killed_in_their_handlers_and_nothing_is_wrong_or_lost)
{
    const char *const count = getenv("KILLS");
    const int kills = count != NULL ? atoi(count) : SANITIZED ? 4 : 12;
    char at[LS_ENDPOINT_MAX + 1];
    struct child owner, steady, victim;
    struct ls_rng rng;
    ls_rng_seed(&rng, 1, 2);
    start(&owner, be_owner, 0, NULL);
    hear_address(&owner, at);
    start(&steady, NULL, 1, at);
    assert_int_equal(hear(steady.from), 'r');
    assert_int_equal(write(owner.to, "g", 1), 1);
    for (int i = 0; i < kills; i++) {
        start(&victim, NULL, 2, at);
        while (hear(victim.from) != 'h')
            continue;
        const int64_t until = ls_now(ls_runtime_threads()) +
                              (int64_t)ls_rng_below(&rng, 5 * LS_NS_PER_MS);
        while (ls_now(ls_runtime_threads()) < until)
            continue;
        end(&victim, SIGKILL);
    }
    end(&owner, 0);
    end(&steady, 0);
}

static void kill_an_owner(void (*owner_main)(int to, int from))
{
    char at[LS_ENDPOINT_MAX + 1];
    struct child owner, reader;
    start(&owner, owner_main, 0, NULL);
    hear_address(&owner, at);
    start(&reader, NULL, 1, at);
    assert_int_equal(hear(reader.from), 'r');
    assert_int_equal(write(owner.to, "g", 1), 1);
    assert_int_equal(hear(reader.from), 'h'); /* "large" */
    assert_int_equal(hear(reader.from), 'h'); /* "hold" */
    end(&owner, SIGKILL);
    assert_int_equal(write(reader.to, "g", 1), 1);
    assert_int_equal(hear(reader.from), 'w');
    end(&reader, 0);
}

TEST(what_a_killed_owner_has_lent_is_read_to_its_end)
{
    kill_an_owner(copy_and_die);
    kill_an_owner(write_and_die);
}
