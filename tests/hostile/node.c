/* An honest node among attackers, as a process of its own:
 *
 *   hostile_node MODE SECRET ID BIND [SEED...]
 *   hostile_node MODE SECRET ID lives N
 *
 * MODE is none, plain or curve; SECRET the file of the secret, or the folder of
 * the keys. Nodes 1 to 3 are the honest ones. Each emits "plain" (policy block)
 * and "both" (policies reliable and latest in turn) every few milliseconds, and
 * hears those of the others. It prints "at INCARNATION ENDPOINT", "formed", and
 * an answer to each line of its input:
 *
 *   figures             "figures KEY=NUMBER ..."
 *   await KEY NUMBER    the same, when that figure is not smaller any more;
 *                       "late KEY=NUMBER ..." after 30 s
 *   client ID            the same, when node ID is a member that is ready
 *   refusals            "refusal KIND TIMES WHO: WHY" for each, then "end"
 *   burst N BYTES       emit "large" N times; then "figures"
 *   hold, let           handlers of "large" wait from now on, or no more
 *   hush                emit no more; then "figures"
 *   end                 leave
 *
 * With `lives` it opens and destroys N nodes, one after the other: it prints
 * "at" for each, and goes on with the next line of its input. */
#include <dirent.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <lockstep/lockstep.h>

#define WAIT_MS  30000
#define N_HONEST 3
#define PACE_MS  2

/* What was heard of one of the others. */
struct heard {
    uint64_t plain, sure, latest; /* its own number of the last one */
    bool ready;
};

struct figures {
    ls_mutex lock;
    ls_cond changed;
    struct heard of[N_HONEST + 1];
    uint64_t wrong;   /* in the name of an honest node, but not its next one */
    uint64_t foreign; /* of anybody else */
    uint64_t finish, flush, large;
    uint64_t lost, left, clients_gone; /* honest ones, and others */
    uint64_t failed;                   /* emits */
    uint64_t plain, sure, latest;      /* emitted */
    int64_t longest_ns;                /* emit */
    bool hush, hold;
};

static struct figures figures;
static ls_node *node;
static uint32_t id;

static int failed(const char *what)
{
    fprintf(stderr, "hostile_node: %s: %s\n", what, ls_error_text());
    return 1;
}

/* ---- what it hears ----------------------------------------------------- */

static bool is_honest(uint32_t who)
{
    return who >= 1 && who <= N_HONEST;
}

/* "plain 2 17": the 17th of node 2. */
static bool read_event(const struct ls_event *event, char *word, uint64_t *n)
{
    char text[64] = "";
    uint32_t from = 0;
    if (event->size >= sizeof text)
        return false;
    memcpy(text, event->data, event->size);
    return sscanf(text, "%15s %" SCNu32 " %" SCNu64, word, &from, n) == 3 &&
           from == event->origin;
}

static int on_event(void *self, const struct ls_event *event)
{
    char word[16] = "";
    uint64_t n = 0;
    (void)self;
    ls_mutex_lock(&figures.lock);
    if (!is_honest(event->origin)) {
        figures.foreign++;
    } else if (!read_event(event, word, &n)) {
        figures.wrong++;
    } else {
        struct heard *of = &figures.of[event->origin];
        const bool latest = strcmp(word, "latest") == 0;
        uint64_t *last = latest                      ? &of->latest
                         : strcmp(word, "sure") == 0 ? &of->sure
                                                     : &of->plain;
        if (latest ? n <= *last : n != *last + 1)
            figures.wrong++;
        *last = n;
    }
    ls_cond_broadcast(&figures.changed);
    ls_mutex_unlock(&figures.lock);
    return LS_OK;
}

static int on_other(void *self, const struct ls_event *event)
{
    uint64_t *count = self;
    (void)event;
    ls_mutex_lock(&figures.lock);
    ++*count;
    ls_cond_broadcast(&figures.changed);
    ls_mutex_unlock(&figures.lock);
    return LS_OK;
}

static void on_member(void *self, const struct ls_member *member)
{
    (void)self;
    ls_mutex_lock(&figures.lock);
    if (!is_honest(member->id)) {
        figures.clients_gone += member->state == LS_MEMBER_READY ? 0 : 1;
    } else {
        figures.of[member->id].ready = member->state == LS_MEMBER_READY;
        figures.lost += member->state == LS_MEMBER_LOST ? 1 : 0;
        figures.left += member->state == LS_MEMBER_LEFT ? 1 : 0;
    }
    ls_cond_broadcast(&figures.changed);
    ls_mutex_unlock(&figures.lock);
}

static int on_large(void *self, const struct ls_event *event)
{
    ls_runtime *runtime = ls_node_runtime(node);
    const int64_t deadline = ls_deadline(runtime, WAIT_MS);
    ls_mutex_lock(&figures.lock);
    while (figures.hold &&
           ls_cond_wait(&figures.changed, &figures.lock, deadline) == LS_OK)
        ;
    ls_mutex_unlock(&figures.lock);
    return on_other(self, event);
}

/* ---- what it emits ----------------------------------------------------- */

static void emit(const char *event, const char *word, enum ls_delivery policy,
                 uint64_t *count)
{
    char text[64];
    const int size = snprintf(text, sizeof text, "%s %" PRIu32 " %" PRIu64,
                              word, id, *count + 1);
    const struct ls_emission emission = {.event = event,
                                         .data = text,
                                         .size = (size_t)size,
                                         .scope = LS_SCOPE_REMOTE,
                                         .delivery = policy};
    ls_runtime *runtime = ls_node_runtime(node);
    const int64_t began = ls_now(runtime);
    const int status = ls_emit_with(node, &emission);
    const int64_t took = ls_now(runtime) - began;
    ls_mutex_lock(&figures.lock);
    *count += status == LS_OK ? 1 : 0;
    figures.failed += status == LS_OK ? 0 : 1;
    if (took > figures.longest_ns)
        figures.longest_ns = took;
    ls_mutex_unlock(&figures.lock);
    if (status != LS_OK)
        (void)failed(event);
}

static void emit_on(void *self)
{
    (void)self;
    ls_mutex_lock(&figures.lock);
    while (!figures.hush) {
        ls_mutex_unlock(&figures.lock);
        emit("plain", "plain", LS_DELIVERY_BLOCK, &figures.plain);
        emit("both", "sure", LS_DELIVERY_RELIABLE, &figures.sure);
        emit("both", "latest", LS_DELIVERY_LATEST, &figures.latest);
        ls_mutex_lock(&figures.lock);
        const int64_t next = ls_deadline(ls_node_runtime(node), PACE_MS);
        while (!figures.hush &&
               ls_cond_wait(&figures.changed, &figures.lock, next) == LS_OK)
            ;
    }
    ls_mutex_unlock(&figures.lock);
}

/* ---- figures ----------------------------------------------------------- */

static long pages_kib(void)
{
    long size = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file != NULL && fscanf(file, "%ld %ld", &size, &pages) != 2)
        pages = 0;
    if (file != NULL)
        (void)fclose(file);
    return pages * 4;
}

static long count_open(void)
{
    long n = 0;
    DIR *entries = opendir("/proc/self/fd");
    while (entries != NULL && readdir(entries) != NULL)
        n++;
    if (entries != NULL)
        (void)closedir(entries);
    return n;
}

struct row {
    char key[24];
    uint64_t value;
};
#define ROWS_MAX 64

static size_t put(struct row *rows, size_t n, const char *key, uint64_t value)
{
    (void)snprintf(rows[n].key, sizeof rows[n].key, "%s", key);
    rows[n].value = value;
    return n + 1;
}

static size_t put_heard(struct row *rows, size_t n)
{
    uint64_t rounds = UINT64_MAX, ready = 0;
    for (uint32_t i = 1; i <= N_HONEST; i++) {
        const struct heard *of = &figures.of[i];
        char key[24];
        if (i == id)
            continue;
        (void)snprintf(key, sizeof key, "plain%" PRIu32, i);
        n = put(rows, n, key, of->plain);
        (void)snprintf(key, sizeof key, "sure%" PRIu32, i);
        n = put(rows, n, key, of->sure);
        (void)snprintf(key, sizeof key, "latest%" PRIu32, i);
        n = put(rows, n, key, of->latest);
        rounds = of->plain < rounds ? of->plain : rounds;
        rounds = of->sure < rounds ? of->sure : rounds;
        ready += of->ready ? 1 : 0;
    }
    n = put(rows, n, "rounds", rounds);
    return put(rows, n, "ready", ready);
}

static size_t put_refused(struct row *rows, size_t n)
{
    static struct ls_refusal refusals[64];
    uint64_t of[LS_REFUSAL_N_KINDS] = {0};
    size_t n_refusals = ls_node_refusals(node, refusals, 64);
    for (size_t i = 0; i < n_refusals && i < 64; i++)
        of[refusals[i].kind] += refusals[i].n;
    for (int i = 0; i < LS_REFUSAL_N_KINDS; i++)
        n = put(rows, n, ls_refusal_kind_name((enum ls_refusal_kind)i), of[i]);
    return n;
}

static size_t put_all(struct row *rows)
{
    struct ls_node_stats stats;
    struct rusage usage;
    ls_node_stats(node, &stats);
    (void)getrusage(RUSAGE_SELF, &usage);
    ls_mutex_lock(&figures.lock);
    size_t n = put_heard(rows, 0);
    n = put(rows, n, "emitted_plain", figures.plain);
    n = put(rows, n, "emitted_sure", figures.sure);
    n = put(rows, n, "emitted_latest", figures.latest);
    n = put(rows, n, "wrong", figures.wrong);
    n = put(rows, n, "foreign", figures.foreign);
    n = put(rows, n, "finish", figures.finish);
    n = put(rows, n, "flush", figures.flush);
    n = put(rows, n, "large", figures.large);
    n = put(rows, n, "lost", figures.lost);
    n = put(rows, n, "left", figures.left);
    n = put(rows, n, "clients_gone", figures.clients_gone);
    n = put(rows, n, "failed", figures.failed);
    n = put(rows, n, "longest_ms", (uint64_t)(figures.longest_ns / 1000000));
    ls_mutex_unlock(&figures.lock);
    n = put(rows, n, "rejoined", stats.rejoined);
    n = put(rows, n, "refused", stats.refused);
    n = put(rows, n, "missed", stats.missed);
    n = put(rows, n, "dropped", stats.dropped);
    n = put(rows, n, "lost_messages", stats.lost);
    n = put(rows, n, "unacknowledged", stats.unacknowledged);
    n = put(rows, n, "slowest", stats.slowest);
    n = put(rows, n, "incarnation", ls_node_incarnation(node));
    n = put(rows, n, "rss_kib", (uint64_t)pages_kib());
    n = put(rows, n, "peak_kib", (uint64_t)usage.ru_maxrss);
    n = put(rows, n, "open", (uint64_t)count_open());
    return put_refused(rows, n);
}

static void say_figures(const char *word)
{
    struct row rows[ROWS_MAX];
    const size_t n = put_all(rows);
    printf("%s", word);
    for (size_t i = 0; i < n; i++)
        printf(" %s=%" PRIu64, rows[i].key, rows[i].value);
    printf("\n");
}

static bool is_client(uint32_t who)
{
    static struct ls_member members[4096];
    const size_t n = ls_node_members(node, members, 4096);
    for (size_t i = 0; i < n && i < 4096; i++)
        if (members[i].id == who)
            return members[i].state == LS_MEMBER_READY;
    return false;
}

static bool has_come(const char *key, uint64_t least)
{
    struct row rows[ROWS_MAX];
    if (strcmp(key, "client") == 0)
        return is_client((uint32_t)least);
    const size_t n = put_all(rows);
    for (size_t i = 0; i < n; i++)
        if (strcmp(rows[i].key, key) == 0)
            return rows[i].value >= least;
    return false;
}

static void await(const char *key, uint64_t least)
{
    ls_runtime *runtime = ls_node_runtime(node);
    const int64_t deadline = ls_deadline(runtime, WAIT_MS);
    bool come = has_come(key, least);
    while (!come && ls_now(runtime) < deadline) {
        /* Not all figures tell when they change. */
        ls_mutex_lock(&figures.lock);
        (void)!ls_cond_wait(&figures.changed, &figures.lock,
                            ls_deadline(runtime, 5));
        ls_mutex_unlock(&figures.lock);
        come = has_come(key, least);
    }
    say_figures(come ? "figures" : "late");
}

static void say_refusals(void)
{
    static struct ls_refusal refusals[64];
    const size_t n = ls_node_refusals(node, refusals, 64);
    for (size_t i = 0; i < n && i < 64; i++)
        printf("refusal %s %" PRIu64 " %s: %s\n",
               ls_refusal_kind_name(refusals[i].kind), refusals[i].n,
               refusals[i].who, refusals[i].why);
    puts("end");
}

/* ---- what it is asked to do -------------------------------------------- */

static void burst(uint64_t n, uint64_t size)
{
    void *data = calloc(1, size);
    for (uint64_t i = 0; data != NULL && i < n; i++)
        if (ls_emit(node, "large", data, size) != LS_OK)
            (void)failed("burst");
    free(data);
    say_figures("figures");
}

static void hold(bool on)
{
    ls_mutex_lock(&figures.lock);
    figures.hold = on;
    ls_cond_broadcast(&figures.changed);
    ls_mutex_unlock(&figures.lock);
    say_figures("figures");
}

static void hush(ls_thread **emitting)
{
    ls_mutex_lock(&figures.lock);
    figures.hush = true;
    ls_cond_broadcast(&figures.changed);
    ls_mutex_unlock(&figures.lock);
    (void)!ls_thread_join(emitting, LS_FOREVER);
    say_figures("figures");
}

static int answer(void)
{
    char line[128], word[32] = "", key[32] = "";
    uint64_t a = 0, b = 0;
    ls_thread *emitting = NULL;
    if (ls_thread_spawn(ls_node_runtime(node), &emitting, "emits", emit_on,
                        NULL) != LS_OK)
        return failed("thread");
    while (fgets(line, sizeof line, stdin) != NULL &&
           strcmp(word, "end") != 0) {
        (void)sscanf(line, "%31s", word);
        if (sscanf(line, "await %31s %" SCNu64, key, &a) == 2)
            await(key, a);
        else if (sscanf(line, "client %" SCNu64, &a) == 1)
            await("client", a);
        else if (sscanf(line, "burst %" SCNu64 " %" SCNu64, &a, &b) == 2)
            burst(a, b);
        else if (strcmp(word, "figures") == 0)
            say_figures("figures");
        else if (strcmp(word, "refusals") == 0)
            say_refusals();
        else if (strcmp(word, "hold") == 0 || strcmp(word, "let") == 0)
            hold(strcmp(word, "hold") == 0);
        else if (strcmp(word, "hush") == 0)
            hush(&emitting);
        else
            break;
    }
    ls_mutex_lock(&figures.lock);
    figures.hush = true;
    ls_cond_broadcast(&figures.changed);
    ls_mutex_unlock(&figures.lock);
    return ls_thread_join(&emitting, LS_FOREVER) == LS_OK ? 0 : failed("join");
}

static int prepare(void)
{
    static const char *const events[] = {"plain", "both"};
    int status = LS_OK;
    for (size_t i = 0; i < 2 && status == LS_OK; i++)
        status = ls_on(node, events[i], on_event, NULL);
    if (status == LS_OK)
        status = ls_on(node, "ls.finish", on_other, &figures.finish);
    if (status == LS_OK)
        status = ls_on(node, "flush", on_other, &figures.flush);
    if (status == LS_OK)
        status = ls_on(node, "large", on_large, &figures.large);
    if (status == LS_OK)
        status = ls_node_allow(node, "ls.finish", "1");
    if (status == LS_OK)
        status = ls_node_on_member(node, on_member, NULL);
    return status;
}

static void say_at(void)
{
    printf("at %" PRIu64 " %s\n", ls_node_incarnation(node),
           ls_node_endpoint(node));
}

static int take_part(void)
{
    if (prepare() != LS_OK || ls_node_open(node) != LS_OK)
        return failed("open");
    say_at();
    if (ls_node_join(node) != LS_OK)
        return failed("join");
    puts("formed");
    const int code = answer();
    ls_node_stop(node, LS_OK);
    return code;
}

static int live(const struct ls_node_options *options, uint64_t lives)
{
    char line[32];
    for (uint64_t i = 0; i < lives; i++) {
        if (ls_node_create(&node, options) != LS_OK || prepare() != LS_OK ||
            ls_node_open(node) != LS_OK)
            return failed("open");
        say_at();
        if (fgets(line, sizeof line, stdin) == NULL)
            return failed("input");
        ls_node_destroy(&node);
    }
    puts("lived");
    return 0;
}

static int secure(struct ls_node_options *options, const char *mode,
                  const char *secret)
{
    options->insecure = strcmp(mode, "none") == 0;
    if (strcmp(mode, "plain") == 0)
        return ls_security_file(&options->security, secret);
    if (strcmp(mode, "curve") == 0)
        return ls_security_curve(&options->security, secret, id);
    return LS_OK;
}

static int run(struct ls_node_options *options, int argc, char **argv)
{
    if (ls_mutex_init(&figures.lock, ls_runtime_threads()) != LS_OK ||
        ls_cond_init(&figures.changed, ls_runtime_threads()) != LS_OK)
        return failed("lock");
    if (strcmp(argv[4], "lives") == 0) {
        options->bind = "tcp://127.0.0.1:*";
        return live(options, strtoull(argv[5], NULL, 10));
    }
    options->bind = argv[4];
    options->attach = (const char *const *)&argv[5];
    options->n_attach = (size_t)argc - 5;
    options->world_size = is_honest(id) ? N_HONEST : N_HONEST + 1;
    options->world_max = 64; /* attackers come in */
    if (ls_node_create(&node, options) != LS_OK)
        return failed("create");
    const int code = take_part();
    ls_node_destroy(&node);
    return code;
}

int main(int argc, char **argv)
{
    if (argc < 5 || (strcmp(argv[4], "lives") == 0 && argc != 6)) {
        fputs("usage: hostile_node MODE SECRET ID BIND|lives [SEED...|N]\n",
              stderr);
        return 2;
    }
    struct ls_node_options options;
    setvbuf(stdout, NULL, _IOLBF, 0);
    ls_node_options_init(&options);
    id = options.id = (uint32_t)strtoul(argv[3], NULL, 10);
    options.heartbeat_ms = 100;
    options.silence_ms = 20000; /* two cores that others use, too */
    options.start_timeout_ms = WAIT_MS;
    if (secure(&options, argv[1], argv[2]) != LS_OK)
        return failed("security");
    const int code = run(&options, argc, argv);
    ls_security_destroy(&options.security);
    return code;
}
