/* bench_security - what it costs that peers prove who they are, and that what
 * they say is encrypted.
 *
 *   bench_security [--json] [--rounds N]
 *
 * Two processes over tcp in each of the modes none, plain and curve, all of
 * them there all the time, which take turns: emits, round trips from handler to
 * handler, calls and barriers. Of each round the ratio to `none`; of all of
 * them the mean, and the interval in which it lies with 95 % confidence. Where
 * that contains 1, no cost was seen. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "lockstep/barrier.h"
#include "lockstep/call.h"
#include "lockstep/event.h"
#include "process.h"

#define ROUNDS      20 /* unless --rounds says so */
#define SIZE        100
#define PATIENCE_MS 60000
#define N_MODES     3

enum what { EMITS, TRIPS, CALLS, BARRIERS, N_WHAT };

static const char *const modes[N_MODES] = {"none", "plain", "curve"};
static const struct {
    const char *name;
    long n; /* in one round */
} work[N_WHAT] = {[EMITS] = {"emit", 200000},
                  [TRIPS] = {"round trip", 2000},
                  [CALLS] = {"call", 1500},
                  [BARRIERS] = {"barrier", 1500}};

static void must(int status, const char *what)
{
    if (status != LS_OK)
        bench_fail(what);
}

/* ---- in a member's process ----------------------------------------------- */

struct member {
    uint32_t id;
    ls_security *security;
    ls_node *node;
    ls_rpc *calls;
    ls_barrier *barrier;
    long handled;
    int64_t from;
    struct bench_latch finished;
};

static void emit(struct member *member, const char *event)
{
    static const char data[SIZE];
    must(ls_emit_with(member->node,
                      &(struct ls_emission){.event = event,
                                            .data = data,
                                            .size = SIZE,
                                            .delivery = LS_DELIVERY_BLOCK,
                                            .timeout_ms = PATIENCE_MS}),
         "emit");
}

static int on_data(void *self, const struct ls_event *event)
{
    struct member *member = self;
    (void)event;
    if (member->handled++ == 0)
        member->from = bench_now();
    if (member->handled == work[EMITS].n)
        bench_latch_open(&member->finished);
    return LS_OK;
}

static int on_ping(void *self, const struct ls_event *event)
{
    (void)event;
    emit(self, "pong");
    return LS_OK;
}

static int on_pong(void *self, const struct ls_event *event)
{
    struct member *member = self;
    (void)event;
    if (++member->handled == work[TRIPS].n)
        bench_latch_open(&member->finished);
    else
        emit(member, "ping");
    return LS_OK;
}

static int echo(void *self, ls_request *request)
{
    size_t size;
    const void *data = ls_request_data(request, &size);
    (void)self;
    return ls_request_complete(&request, data, size);
}

static void ask(struct member *member)
{
    static const char data[SIZE];
    void *answer;
    size_t size;
    must(ls_call_ask(member->calls,
                     &(struct ls_call_options){.to = 2,
                                               .name = "echo",
                                               .data = data,
                                               .size = SIZE,
                                               .timeout_ms = PATIENCE_MS},
                     &answer, &size),
         "call");
    free(answer);
}

static void begin(struct member *member, const char *mode, const char *keys,
                  const char *seed)
{
    static const uint8_t secret[LS_SECRET_BYTES] = {1};
    struct ls_node_options options;
    if (strcmp(mode, "plain") == 0)
        must(ls_security_plain(&member->security, secret), "plain");
    else if (strcmp(mode, "curve") == 0)
        must(ls_security_curve(&member->security, keys, member->id), "curve");
    else
        must(ls_security_none(&member->security), "none");
    ls_node_options_init(&options);
    options.job = bench_job();
    options.id = member->id;
    options.world_size = 2;
    options.security = member->security;
    options.attach = &seed;
    options.n_attach = seed != NULL;
    must(ls_node_create(&member->node, &options), "create");
    bench_latch_init(&member->finished);
    must(ls_rpc_open(&member->calls, member->node, NULL), "calls");
    must(ls_rpc_serve(member->calls, "echo", LS_CALL_ANYONE, echo, NULL),
         "serve");
    must(ls_barrier_create(&member->barrier, member->node, NULL), "barrier");
    if (member->id == 1) {
        must(ls_on(member->node, "data", on_data, member), "on");
        must(ls_on(member->node, "pong", on_pong, member), "on");
    } else {
        must(ls_on(member->node, "ping", on_ping, member), "on");
    }
    must(ls_node_open(member->node), "open");
}

/* Its part of one round. Member 1 measures. */
static int64_t take_part(struct member *member, enum what what)
{
    const long n = work[what].n;
    const bool first = member->id == 1;
    member->from = bench_now();
    if (what == EMITS && first)
        bench_latch_wait(&member->finished, PATIENCE_MS);
    else if (what == TRIPS && first) {
        emit(member, "ping");
        bench_latch_wait(&member->finished, PATIENCE_MS);
    }
    for (long i = 0; i < n; i++) {
        if (what == EMITS && !first)
            emit(member, "data");
        else if (what == CALLS && first)
            ask(member);
        else if (what == BARRIERS)
            must(ls_barrier_wait(member->barrier, 0, PATIENCE_MS, NULL),
                 "barrier");
    }
    member->handled = 0;
    return (bench_now() - member->from) / n;
}

/* member ID MODE KEYS [SEED] */
static int run_member(char **arguments)
{
    struct member member = {.id = (uint32_t)atoi(arguments[0])};
    char line[PROCESS_LINE_MAX];
    begin(&member, arguments[1], arguments[2], arguments[3]);
    if (member.id == 1) {
        (void)snprintf(line, sizeof line, "1@%s",
                       ls_node_endpoint(member.node));
        parent_tell(line);
    }
    must(ls_node_join(member.node), "join");
    parent_tell("ready");
    while (parent_hear(line)) {
        (void)snprintf(line, sizeof line, "%" PRId64,
                       take_part(&member, (enum what)atoi(line)));
        parent_tell(line);
    }
    ls_barrier_destroy(&member.barrier);
    ls_rpc_close(&member.calls);
    ls_node_destroy(&member.node);
    ls_security_destroy(&member.security);
    bench_latch_fini(&member.finished);
    return 0;
}

/* ---- in the program's own ------------------------------------------------ */

static struct process members[N_MODES][2];

struct measured {
    int mode;
    enum what what;
    char name[40];
};

static void start_worlds(void)
{
    char keys[128], seed[PROCESS_LINE_MAX], line[PROCESS_LINE_MAX];
    (void)snprintf(keys, sizeof keys, "%s/keys", bench_folder());
    for (uint32_t id = 1; id <= 2; id++)
        must(ls_keys_create(keys, id, NULL, NULL), "keys");
    for (int mode = 0; mode < N_MODES; mode++) {
        const char *const first[] = {"member", "1", modes[mode], keys, NULL};
        const char *const second[] = {"member", "2",  modes[mode],
                                      keys,     seed, NULL};
        process_start(&members[mode][0], first);
        process_hear(&members[mode][0], seed);
        process_start(&members[mode][1], second);
        for (int i = 0; i < 2; i++)
            process_hear(&members[mode][i], line);
    }
}

static double measure(void *self)
{
    const struct measured *measured = self;
    char line[PROCESS_LINE_MAX];
    int64_t ns = 0;
    (void)snprintf(line, sizeof line, "%d", (int)measured->what);
    for (int i = 0; i < 2; i++)
        process_tell(&members[measured->mode][i], line);
    for (int i = 2; i-- > 0;) {
        process_hear(&members[measured->mode][i], line);
        ns = strtoll(line, NULL, 10); /* of member 1 */
    }
    return (double)ns / 1000;
}

int main(int argc, char **argv)
{
    static struct measured measured[N_WHAT][N_MODES];
    static struct bench_figure figures[N_WHAT][N_MODES];
    struct bench_options options;
    if (argc > 4 && strcmp(argv[1], "member") == 0)
        return run_member(argv + 2);
    bench_options_read(&options, argc, argv);
    if (argc == 1 || (argc == 2 && options.json))
        options.n_rounds = ROUNDS;
    process_init();
    start_worlds();
    for (int what = 0; what < N_WHAT; what++)
        for (int mode = 0; mode < N_MODES; mode++) {
            struct measured *one = &measured[what][mode];
            *one = (struct measured){.mode = mode, .what = (enum what)what};
            (void)snprintf(one->name, sizeof one->name, "%s, %s",
                           work[what].name, modes[mode]);
            figures[what][mode] = (struct bench_figure){
                .name = one->name, .unit = "us", .run = measure, .self = one};
        }
    bench_measure(figures[0], (size_t)N_WHAT * N_MODES, &options);
    for (int what = 0; what < N_WHAT; what++)
        for (int mode = 1; mode < N_MODES; mode++)
            bench_compare("security", measured[what][mode].name, "none",
                          &figures[what][0], &figures[what][mode], &options);
    bench_order(figures[0], (size_t)N_WHAT * N_MODES, &options);
    bench_print("security", figures[0], (size_t)N_WHAT * N_MODES, &options);
    for (int mode = 0; mode < N_MODES; mode++)
        for (int i = 0; i < 2; i++)
            process_end(&members[mode][i]);
    return 0;
}
