#define _GNU_SOURCE /* pipe2() */
#include "siege.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <zmq.h>

#include "base/sanitized.h"
#include "foe.h"

/* What an honest node may ever take: some windows and the 32 MiB that may wait
 * to be sent; a sanitizer keeps what was freed. */
#define PEAK_MAX_KIB ((SANITIZED ? 1024u : 256u) * 1024u)
#define OPEN_MAX_    400u
#define ROUNDS       20u
#define LONGEST_MS   9000u /* an emit that waits for a foe waits 10 s */

int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- processes --------------------------------------------------------- */

static void become(const struct siege *siege, uint32_t id, const char *log,
                   const char *const *arguments, const int *in, const int *out)
{
    char number[16];
    const char *argv[16] = {siege->program, siege->mode_name, siege->secret,
                            number};
    size_t n = 4;
    (void)snprintf(number, sizeof number, "%" PRIu32, id);
    for (size_t i = 0; arguments[i] != NULL && n < 15; i++)
        argv[n++] = arguments[i];
    const int err = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (dup2(in[0], STDIN_FILENO) >= 0 && dup2(out[1], STDOUT_FILENO) >= 0 &&
        dup2(err, STDERR_FILENO) >= 0)
        execv(siege->program, (char *const *)(uintptr_t)argv);
    _exit(127);
}

bool process_start(struct siege *siege, struct process *process, uint32_t id,
                   const char *const *arguments)
{
    static unsigned n_started;
    int in[2], out[2];
    *process = (struct process){.id = id};
    (void)snprintf(process->log, sizeof process->log, "%s/log-%u",
                   siege->folder, ++n_started);
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        return false;
    process->pid = fork();
    if (process->pid == 0)
        become(siege, id, process->log, arguments, in, out);
    (void)close(in[0]);
    (void)close(out[1]);
    process->in = in[1];
    process->out = out[0];
    return process->pid > 0;
}

/* What came already, up to a newline. */
static bool take_line(struct process *process)
{
    char *end = memchr(process->rest, '\n', process->n_rest);
    if (end == NULL)
        return false;
    const size_t n = (size_t)(end - process->rest);
    const size_t fits = n < LINE_MAX_ - 1 ? n : LINE_MAX_ - 1;
    memcpy(process->line, process->rest, fits);
    process->line[fits] = '\0';
    process->n_rest -= n + 1;
    memmove(process->rest, end + 1, process->n_rest);
    return true;
}

const char *process_line(struct siege *siege, struct process *process)
{
    const int64_t deadline = now_ms() + 2 * WAIT_MS;
    while (!take_line(process)) {
        struct pollfd fd = {.fd = process->out, .events = POLLIN};
        const int ready = poll(&fd, 1, LOOK_MS);
        foes_pump(siege);
        if (ready == 0 && now_ms() < deadline)
            continue;
        const size_t room = sizeof process->rest - process->n_rest;
        const ssize_t n =
            ready <= 0
                ? 0
                : read(process->out, process->rest + process->n_rest, room);
        if (n <= 0) {
            process->line[0] = '\0';
            break;
        }
        process->n_rest += (size_t)n;
    }
    return process->line;
}

const char *process_ask(struct siege *siege, struct process *process,
                        const char *format, ...)
{
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    line[n++] = '\n';
    if (write(process->in, line, (size_t)n) != n) {
        process->line[0] = '\0';
        return process->line;
    }
    return process_line(siege, process);
}

bool process_at(struct siege *siege, struct process *process)
{
    return sscanf(process_line(siege, process), "at %" SCNu64 " %255s",
                  &process->incarnation, process->endpoint) == 2;
}

int process_end(struct process *process)
{
    int status = 0;
    pid_t ended = 0;
    if (process->pid <= 0)
        return 0;
    (void)close(process->in);
    /* Its output ends with it; what is still in there must not hold it up. */
    const int64_t deadline = now_ms() + WAIT_MS;
    while (now_ms() < deadline) {
        struct pollfd fd = {.fd = process->out, .events = POLLIN};
        if (poll(&fd, 1, (int)(deadline - now_ms())) > 0 &&
            read(process->out, process->rest, sizeof process->rest) <= 0)
            break;
    }
    if (now_ms() >= deadline)
        (void)kill(process->pid, SIGKILL);
    do
        ended = waitpid(process->pid, &status, 0);
    while (ended < 0);
    (void)close(process->out);
    process->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool process_logged(const struct process *process, const char *words)
{
    char line[LINE_MAX_];
    bool found = false;
    FILE *log = fopen(process->log, "r");
    while (log != NULL && !found && fgets(line, sizeof line, log) != NULL)
        found = strstr(line, words) != NULL;
    if (log != NULL)
        (void)fclose(log);
    return found;
}

static void show_log(const struct process *process)
{
    char line[LINE_MAX_];
    FILE *log = fopen(process->log, "r");
    printf("# log of node %" PRIu32 "\n", process->id);
    while (log != NULL && fgets(line, sizeof line, log) != NULL)
        printf("#   %s", line);
    if (log != NULL)
        (void)fclose(log);
}

uint64_t figure(const char *line, const char *key)
{
    const size_t n = strlen(key);
    for (const char *at = strchr(line, ' '); at != NULL; at = strchr(at, ' ')) {
        at++;
        if (strncmp(at, key, n) == 0 && at[n] == '=')
            return strtoull(at + n + 1, NULL, 10);
    }
    return UINT64_MAX;
}

/* ---- the world --------------------------------------------------------- */

static bool make_secrets(struct siege *siege)
{
    if (siege->mode == LS_SECURITY_NONE)
        return ls_security_none(&siege->security) == LS_OK;
    (void)snprintf(siege->secret, sizeof siege->secret, "%s/secret",
                   siege->folder);
    (void)snprintf(siege->false_keys, sizeof siege->false_keys, "%s/false",
                   siege->folder);
    if (siege->mode == LS_SECURITY_PLAIN)
        return ls_secret_create(siege->secret, NULL) == LS_OK &&
               ls_security_file(&siege->security, siege->secret) == LS_OK &&
               ls_secret_create(siege->false_keys, NULL) == LS_OK &&
               ls_security_file(&siege->false_security, siege->false_keys) ==
                   LS_OK;
    for (uint32_t id = 1; id < FIRST_FOE + N_FOES; id++)
        if ((id < 10 || id >= FIRST_FOE) &&
            (ls_keys_create(siege->secret, id, NULL, NULL) != LS_OK ||
             ls_keys_create(siege->false_keys, id, NULL, NULL) != LS_OK))
            return false;
    return ls_security_curve(&siege->security, siege->secret, FIRST_FOE) ==
           LS_OK;
}

static bool start_nodes(struct siege *siege)
{
    char seed[LS_ENDPOINT_MAX + 16];
    for (uint32_t i = 0; i < N_HONEST; i++) {
        struct process *node = &siege->nodes[i];
        const char *arguments[] = {"tcp://127.0.0.1:*", i == 0 ? NULL : seed,
                                   NULL};
        if (!process_start(siege, node, i + 1, arguments) ||
            !process_at(siege, node))
            return false;
        if (i == 0)
            (void)snprintf(seed, sizeof seed, "1@%s", node->endpoint);
    }
    for (uint32_t i = 0; i < N_HONEST; i++)
        if (strcmp(process_line(siege, &siege->nodes[i]), "formed") != 0)
            return false;
    return true;
}

bool siege_begin(struct siege *siege, const char *mode, const char *program)
{
    *siege = (struct siege){.mode_name = mode,
                            .program = program,
                            .secret = "-",
                            .next_id = FIRST_FOE,
                            .seed = 20261122};
    siege->mode = strcmp(mode, "curve") == 0   ? LS_SECURITY_CURVE
                  : strcmp(mode, "plain") == 0 ? LS_SECURITY_PLAIN
                                               : LS_SECURITY_NONE;
    (void)signal(SIGPIPE, SIG_IGN);
    memcpy(siege->folder, "/tmp/lockstep-XXXXXX",
           sizeof "/tmp/lockstep-XXXXXX");
    siege->zctx = zmq_ctx_new();
    if (siege->zctx == NULL || mkdtemp(siege->folder) == NULL ||
        !make_secrets(siege) || !foes_begin(siege)) {
        printf("# %s\n", ls_error_text());
        return false;
    }
    siege->name = "the world forms";
    if (start_nodes(siege))
        return true;
    case_fails(siege, "it does not");
    return false;
}

bool siege_stands(struct siege *siege)
{
    for (size_t i = 0; i < N_HONEST; i++)
        if (process_ask(siege, &siege->nodes[i], "figures")[0] == '\0')
            return false;
    return true;
}

static void remove_folder(const char *path)
{
    DIR *entries = opendir(path);
    const struct dirent *entry;
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        char inner[512];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        (void)snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (unlink(inner) != 0)
            remove_folder(inner);
    }
    if (entries != NULL)
        (void)closedir(entries);
    (void)rmdir(path);
}

void siege_end(struct siege *siege)
{
    for (size_t i = 0; i < N_HONEST; i++) {
        struct process *node = &siege->nodes[i];
        const int code = process_end(node);
        siege->name = "the nodes leave";
        if (code != 0)
            case_fails(siege, "node %" PRIu32 " ended with %d", node->id, code);
        if (siege->failures != 0)
            show_log(node);
    }
    foes_end(siege);
    ls_security_destroy(&siege->security);
    ls_security_destroy(&siege->false_security);
    remove_folder(siege->folder);
}

/* ---- cases ------------------------------------------------------------- */

void case_begin(struct siege *siege, const char *name)
{
    siege->name = name;
    siege->began_ms = now_ms();
    siege->n_wrong = siege->failures + siege->n_expected;
    for (size_t i = 0; i < N_HONEST; i++) {
        struct process *node = &siege->nodes[i];
        memcpy(node->before, process_ask(siege, node, "figures"),
               sizeof node->before);
    }
}

void case_fails(struct siege *siege, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("%s %s: %s: ", siege->expected ? "expected failure" : "FAILED",
           siege->mode_name, siege->name);
    (void)vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    siege->failures += siege->expected ? 0 : 1;
    siege->n_expected += siege->expected ? 1 : 0;
}

void case_skip(const struct siege *siege, const char *name, const char *why)
{
    printf("skipped %s: %s: %s\n", siege->mode_name, name, why);
}

bool case_grows(struct siege *siege, struct process *node, const char *key,
                uint64_t by)
{
    const uint64_t least = figure(node->before, key) + by;
    const char *line =
        process_ask(siege, node, "await %s %" PRIu64, key, least);
    if (strncmp(line, "figures", 7) == 0)
        return true;
    case_fails(siege, "node %" PRIu32 ": %s stays below %" PRIu64 ": %s",
               node->id, key, least, line);
    return false;
}

bool case_names(struct siege *siege, struct process *node, const char *kind,
                const char *words)
{
    bool named = false;
    const char *line = process_ask(siege, node, "refusals");
    for (; line[0] != '\0' && strcmp(line, "end") != 0;
         line = process_line(siege, node))
        named = named ||
                (strstr(line, kind) != NULL && strstr(line, words) != NULL);
    return named;
}

void case_refused(struct siege *siege, struct process *node, const char *kind,
                  uint64_t n, const char *words)
{
    if (case_grows(siege, node, kind, n) &&
        !case_names(siege, node, kind, words))
        case_fails(siege, "node %" PRIu32 " names nobody with \"%s\" (%s)",
                   node->id, words, kind);
}

static void judge(struct siege *siege, struct process *node)
{
    static const struct {
        const char *key;
        uint64_t least, most;
    } bounds[] = {
        {"lost", 0, 0},
        {"left", 0, 0},
        {"rejoined", 0, 0},
        {"wrong", 0, 0},
        {"failed", 0, 0},
        {"dropped", 0, 0},
        {"finish", 0, 0},
        {"ready", N_HONEST - 1, N_HONEST - 1},
        {"longest_ms", 0, LONGEST_MS},
        {"peak_kib", 0, PEAK_MAX_KIB},
        {"open", 0, OPEN_MAX_},
    };
    if (!case_grows(siege, node, "rounds", ROUNDS))
        return;
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        const uint64_t is = figure(node->line, bounds[i].key);
        if (is < bounds[i].least || is > bounds[i].most)
            case_fails(siege, "node %" PRIu32 ": %s is %" PRIu64, node->id,
                       bounds[i].key, is);
    }
    if (figure(node->line, "incarnation") != node->incarnation)
        case_fails(siege, "node %" PRIu32 " lives another life", node->id);
}

void case_end(struct siege *siege)
{
    uint64_t peak = 0, refused = 0;
    foes_close(siege);
    for (size_t i = 0; i < N_HONEST; i++) {
        struct process *node = &siege->nodes[i];
        judge(siege, node);
        const uint64_t kib = figure(node->line, "peak_kib");
        peak = kib > peak ? kib : peak;
        refused +=
            figure(node->line, "refused") - figure(node->before, "refused");
    }
    if (siege->n_wrong == siege->failures + siege->n_expected)
        printf("ok %s: %s (refused %" PRIu64 ", peak %" PRIu64 " MiB, %" PRId64
               " ms)\n",
               siege->mode_name, siege->name, refused, peak / 1024,
               now_ms() - siege->began_ms);
    (void)fflush(stdout);
}
