#define _XOPEN_SOURCE 700 /* realpath */
#include "compose.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/file.h"
#include "lockstep/log.h"
#include "lockstep/security.h"

#include "child.h"
#include "compose_file.h"
#include "node_arguments.h"
#include "socket_folder.h"

/* For one call of docker or docker-compose, and then for it to end when it is
 * told to, in seconds; coreutils' timeout sees to it. */
#define CALL_S "60"
#define KILL_S "10"
#define SAID   512

#define FILE_NAME "compose.yaml"

struct compose {
    const struct options *options; /* borrow */
    const struct plan *plan;       /* borrow */
    supervisor *watcher;           /* borrow */
    child **children;              /* own; n_nodes, NULL: not started */
    struct arguments *commands;    /* own; n_nodes */
    bool quiet;    /* no life that is over can still note anything */
    bool made;     /* there are containers */
    bool one_word; /* it is docker-compose, not docker compose */
    const char *image;
    char project[32];
    char config[LS_PATH_MAX], out[LS_PATH_MAX], own_keys[LS_PATH_MAX];
    char path[LS_PATH_MAX];    /* of the file */
    struct socket_folder keys; /* that were made, for this user alone */
};

/* ---- calls of docker ---------------------------------------------------- */

/* The line that says what is wrong, else the last one. */
static void read_said(int fd, char said[SAID])
{
    char bytes[4096];
    size_t used = 0;
    for (;;) {
        const ssize_t n = read(fd, bytes + used, sizeof bytes - 1 - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        used += (size_t)n;
        if (used == sizeof bytes - 1) { /* keep the end */
            memmove(bytes, bytes + used / 2, used - used / 2);
            used -= used / 2;
        }
    }
    while (used > 0 && (bytes[used - 1] == '\n' || bytes[used - 1] == '\r'))
        used--;
    bytes[used] = '\0';
    const char *line = strstr(bytes, "ERROR: ");
    const char *last = strrchr(bytes, '\n');
    if (line == NULL)
        line = last != NULL ? last + 1 : bytes;
    (void)snprintf(said, SAID, "%.*s", (int)strcspn(line, "\n"), line);
}

/* Run it to its end. *code: its exit code; 127: there is no such program. */
static int call(const struct arguments *arguments, int *code, char said[SAID])
{
    int ends[2];
    pid_t pid;
    posix_spawn_file_actions_t actions;
    int status = spawn_pipe(ends);
    if (status != LS_OK)
        return status;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed == 0)
        failed = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO,
                                                  "/dev/null", O_RDONLY, 0);
    if (failed == 0)
        failed = posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    if (failed == 0)
        failed = posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    status = failed == 0 ? spawn_tool(&pid, arguments, &actions)
                         : ls_error_from(failed, "calling docker");
    (void)posix_spawn_file_actions_destroy(&actions);
    if (status == LS_OK) {
        int how = 0;
        (void)close(ends[1]);
        ends[1] = -1;
        read_said(ends[0], said);
        while (waitpid(pid, &how, 0) < 0 && errno == EINTR)
            continue;
        *code = WIFEXITED(how) ? WEXITSTATUS(how) : 1;
    }
    spawn_close_pipe(ends);
    return status;
}

static void begin_call(struct arguments *to, const char *program)
{
    arguments_add(to, "timeout");
    arguments_add(to, "-k");
    arguments_add(to, KILL_S);
    arguments_add(to, CALL_S);
    arguments_add(to, program);
}

/* words: to NULL. */
static int docker(int *code, char said[SAID], ...)
{
    struct arguments arguments = {.n = 0};
    va_list words;
    const char *word;
    begin_call(&arguments, "docker");
    va_start(words, said);
    while ((word = va_arg(words, const char *)) != NULL)
        arguments_add(&arguments, word);
    va_end(words);
    const int status = call(&arguments, code, said);
    arguments_fini(&arguments);
    return status;
}

/* docker-compose with these words, to NULL, for the file. */
static int run_compose(const compose *self, ...)
{
    struct arguments arguments = {.n = 0};
    char said[SAID] = "";
    va_list words;
    const char *word;
    int code = 0;
    begin_call(&arguments, self->one_word ? "docker-compose" : "docker");
    if (!self->one_word)
        arguments_add(&arguments, "compose");
    arguments_add_pair(&arguments, "-p", self->project);
    arguments_add_pair(&arguments, "-f", self->path);
    va_start(words, self);
    while ((word = va_arg(words, const char *)) != NULL)
        arguments_add(&arguments, word);
    va_end(words);
    const int status = call(&arguments, &code, said);
    arguments_fini(&arguments);
    if (status != LS_OK || code == 0)
        return status;
    const bool overlaps = strstr(said, "overlaps") != NULL;
    return ls_error(LS_EIO, "docker-compose, with %s: %s%s", self->path,
                    code == 124 ? "no end after " CALL_S " s: this machine is "
                                  "too busy, or Docker hangs"
                                : said,
                    overlaps ? "; LOCKSTEP_SUBNET names another network, as in "
                               "198.18.44.0/24"
                             : "");
}

/* ---- what must be there ------------------------------------------------- */

static int check_docker(void)
{
    char said[SAID] = "";
    int code = 0;
    const int status = docker(&code, said, "version", (char *)NULL);
    if (status != LS_OK || code == 0)
        return status;
    if (code == 127)
        return ls_error(LS_EUNREACHABLE,
                        "--as compose takes Docker, and there is no program "
                        "docker; on Debian: apt-get install docker.io "
                        "docker-compose");
    return ls_error(LS_EUNREACHABLE,
                    "--as compose takes Docker, which does not answer: %s; "
                    "start it, systemctl start docker, and let this user speak "
                    "to it, adduser USER docker",
                    said);
}

static int check_program(compose *self)
{
    char said[SAID] = "";
    int code = 0;
    struct arguments arguments = {.n = 0};
    begin_call(&arguments, "docker-compose");
    arguments_add(&arguments, "version");
    int status = call(&arguments, &code, said);
    arguments_fini(&arguments);
    self->one_word = code == 0;
    if (status == LS_OK && code != 0)
        status = docker(&code, said, "compose", "version", (char *)NULL);
    if (status == LS_OK && code != 0)
        return ls_error(LS_EUNREACHABLE,
                        "--as compose takes docker-compose, which is not "
                        "there; on Debian: apt-get install docker-compose");
    return status;
}

static int check_image(const compose *self)
{
    char said[SAID] = "";
    int code = 0;
    const int status =
        docker(&code, said, "image", "inspect", self->image, (char *)NULL);
    if (status != LS_OK || code == 0)
        return status;
    return ls_error(LS_EUNREACHABLE,
                    "there is no image %s: make it in the source folder, "
                    "docker build -t %s -f docker/Dockerfile . (see "
                    "docker/README.md), or name another by LOCKSTEP_IMAGE",
                    self->image, self->image);
}

static int check_plan(const struct plan *plan)
{
    if (plan->world.transport == PLAN_TCP)
        return LS_OK;
    return ls_error(LS_ECONFIG,
                    "%s: world.transport %s does not join containers: say "
                    "--set world.transport=tcp",
                    plan->path, plan_transport_names[plan->world.transport]);
}

static int check(compose *self)
{
    int status = check_plan(self->plan);
    if (status == LS_OK)
        status = check_docker();
    if (status == LS_OK)
        status = check_program(self);
    return status == LS_OK ? check_image(self) : status;
}

/* ---- keys --------------------------------------------------------------- */

/* The secret goes where its own container alone sees it; what is left in its
 * place is what that one is mounted over. */
static int make_key(const compose *self, const struct plan_node *node)
{
    char all[LS_PATH_MAX + 64], from[LS_PATH_MAX + 128], to[LS_PATH_MAX + 64];
    (void)snprintf(all, sizeof all, "%s/all", self->keys.path);
    (void)snprintf(from, sizeof from, "%s/node-%u.cert_secret", all,
                   (unsigned)node->id);
    (void)snprintf(to, sizeof to, "%s/secret/node-%u.cert_secret",
                   self->keys.path, (unsigned)node->id);
    int status =
        ls_keys_create(all, node->id, plan_role_names[node->role], PLAN_LABEL);
    if (status == LS_OK)
        status = ls_file_rename(from, to);
    if (status != LS_OK)
        return status;
    char temporary[sizeof from + 8];
    (void)snprintf(temporary, sizeof temporary, "%s.new", from);
    return ls_file_replace(from, temporary, NULL, 0, false);
}

static int make_keys(compose *self)
{
    char all[sizeof self->keys.path + 16], secret[sizeof all];
    if (!plan_has_secret(self->plan))
        return LS_OK;
    int status = socket_folder_make(&self->keys, "");
    (void)snprintf(all, sizeof all, "%s/all", self->keys.path);
    (void)snprintf(secret, sizeof secret, "%s/secret", self->keys.path);
    if (status == LS_OK)
        status = ls_folder_make(all);
    if (status == LS_OK)
        status = ls_folder_make(secret);
    for (size_t i = 0; i < self->plan->n_nodes && status == LS_OK; i++)
        status = make_key(self, &self->plan->nodes[i]);
    return status;
}

static int remove_name(void *folder, const char *name)
{
    char path[2 * LS_PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/%s", (const char *)folder, name);
    return ls_file_remove(path);
}

static void remove_keys(compose *self)
{
    static const char *const parts[] = {"all", "secret"};
    char folder[sizeof self->keys.path + 16];
    for (size_t i = 0; i < 2 && self->keys.path[0] != '\0'; i++) {
        (void)snprintf(folder, sizeof folder, "%s/%s", self->keys.path,
                       parts[i]);
        if (ls_folder_each(folder, remove_name, folder) != LS_OK)
            ls_log_warn("keys of the run stay: %s", ls_error_text());
        (void)ls_folder_remove(folder);
    }
    socket_folder_remove(&self->keys);
}

/* ---- the file ----------------------------------------------------------- */

static struct compose_file describe(const compose *self)
{
    return (struct compose_file){
        .plan = self->plan,
        .project = self->project,
        .config = self->config,
        .out = self->out,
        .keys = self->own_keys[0] != '\0' ? self->own_keys : NULL,
        .made = self->keys.path[0] != '\0' ? self->keys.path : NULL,
        .commands = self->commands,
        .user = (unsigned long)getuid(),
        .group = (unsigned long)getgid(),
    };
}

static int write_file(const compose *self)
{
    char *text = NULL;
    size_t size = 0;
    char temporary[LS_PATH_MAX + 8];
    const struct compose_file file = describe(self);
    int status = compose_file_text(&file, &text, &size);
    (void)snprintf(temporary, sizeof temporary, "%s.new", self->path);
    if (status == LS_OK)
        status = ls_file_replace(self->path, temporary,
                                 &(struct ls_file_part){text, size}, 1, false);
    free(text);
    return status;
}

/* Where a node of the plan is, whoever dials it. */
static void put_address(const compose *self, uint32_t id,
                        char out[PLAN_ADDRESS_MAX])
{
    const bool secured = self->plan->security.mode != LS_SECURITY_NONE;
    char before[16] = ""; /* with keys, who is to answer there */
    if (secured)
        (void)snprintf(before, sizeof before, "%u@", (unsigned)id);
    (void)snprintf(out, PLAN_ADDRESS_MAX, "%stcp://node-%u:%d", before,
                   (unsigned)id, self->plan->world.first_port);
}

/* Those that it was given here are the nodes' own, if it was given any; what a
 * configuration says is of another network. */
static void find_endpoints(const compose *self, size_t index,
                           const struct plan_endpoints *given,
                           struct plan_endpoints *out)
{
    const struct plan *plan = self->plan;
    const int port = plan->world.first_port;
    memset(out, 0, sizeof *out);
    (void)snprintf(out->bind, sizeof out->bind, "tcp://0.0.0.0:%d", port);
    (void)snprintf(out->advertise, sizeof out->advertise, "tcp://node-%u:%d",
                   (unsigned)plan->nodes[index].id, port);
    for (size_t i = 0; given != NULL && i < given->n_attach; i++) {
        unsigned id;
        if (sscanf(plan_address_endpoint(given->attach[i]),
                   "tcp://node-%u:", &id) == 1)
            put_address(self, id, out->attach[out->n_attach++]);
    }
    if (out->n_attach == 0 && index != plan->first)
        put_address(self, plan->nodes[plan->first].id,
                    out->attach[out->n_attach++]);
}

static int make_command(compose *self, size_t index,
                        const struct launch *launch,
                        const struct plan_endpoints *given)
{
    struct plan_endpoints endpoints;
    struct arguments *to = &self->commands[index];
    struct launch here = *launch;
    here.endpoints = &endpoints;
    find_endpoints(self, index, given, &endpoints);
    arguments_fini(to);
    node_arguments(to, self->plan, index, self->options, &here, self->out);
    if (self->keys.path[0] != '\0') {
        arguments_add_set(to, "security.mode", "curve");
        arguments_add_set(to, "security.keys", COMPOSE_KEYS);
    }
    arguments_add_number(to, "--report-fd", STDOUT_FILENO);
    arguments_add(to, "--");
    arguments_add(to, self->config);
    return to->status;
}

/* ---- the launcher ------------------------------------------------------- */

/* All, before the first is started: docker-compose is slow to begin with. */
static int make_containers(compose *self, const struct launch *launch)
{
    int status = LS_OK;
    for (size_t i = 0; i < self->plan->n_nodes && status == LS_OK; i++)
        status = make_command(self, i, launch, NULL);
    if (status == LS_OK)
        status = write_file(self);
    if (status != LS_OK)
        return status;
    self->made = true;
    return run_compose(self, "up", "--no-start", (char *)NULL);
}

/* One anew: its command is of another life. */
static int make_again(compose *self, size_t index, const struct launch *launch)
{
    char service[32];
    (void)snprintf(service, sizeof service, "node-%u",
                   (unsigned)self->plan->nodes[index].id);
    int status = make_command(self, index, launch, launch->endpoints);
    if (status == LS_OK)
        status = write_file(self);
    return status == LS_OK
               ? run_compose(self, "up", "--no-start", "--no-deps",
                             "--force-recreate", service, (char *)NULL)
               : status;
}

static int start(void *self_, size_t index, const struct launch *launch)
{
    compose *self = self_;
    char name[COMPOSE_NAME_MAX + 1];
    const struct compose_file file = describe(self);
    struct arguments arguments = {.n = 0};
    const bool again = self->children[index] != NULL;
    self->quiet = child_destroy(&self->children[index]) && self->quiet;
    int status = LS_OK;
    if (!self->made)
        status = make_containers(self, launch);
    else if (again)
        status = make_again(self, index, launch);
    compose_name(&file, index, name);
    arguments_add(&arguments, "docker");
    arguments_add(&arguments, "start");
    arguments_add(&arguments, "--attach");
    arguments_add(&arguments, name);
    if (status == LS_OK)
        status = child_start_tool(&self->children[index], &arguments, index,
                                  self->watcher);
    arguments_fini(&arguments);
    return status;
}

/* The client passes a signal on; it cannot pass on SIGKILL. */
static void stop(void *self_, size_t index, bool hard)
{
    compose *self = self_;
    char name[COMPOSE_NAME_MAX + 1], said[SAID] = "";
    const struct compose_file file = describe(self);
    int code = 0;
    if (self->children[index] == NULL)
        return;
    if (hard) {
        compose_name(&file, index, name);
        (void)docker(&code, said, "kill", name, (char *)NULL);
    }
    child_kill(self->children[index], hard ? SIGKILL : SIGTERM);
}

/* ---- its life ----------------------------------------------------------- */

static int find_path(const char *path, char out[LS_PATH_MAX])
{
    char *real = realpath(path, NULL);
    if (real == NULL)
        return ls_error_from(errno, path);
    const int n = snprintf(out, LS_PATH_MAX, "%s", real);
    free(real);
    return n >= 0 && n < LS_PATH_MAX
               ? LS_OK
               : ls_error(LS_ELIMIT, "%s has too long a name", path);
}

static int find_paths(compose *self)
{
    const struct plan *plan = self->plan;
    int status = find_path(self->options->config, self->config);
    if (status == LS_OK)
        status = find_path(plan->out, self->out);
    if (status == LS_OK && plan_has_keys(plan))
        status = find_path(plan->security.keys, self->own_keys);
    if (status == LS_OK)
        status = ls_file_path(self->path, sizeof self->path, plan->folder,
                              FILE_NAME);
    return status;
}

int compose_create(compose **out, const struct options *options,
                   const struct plan *plan, supervisor *watcher)
{
    compose *made = calloc(1, sizeof *made);
    if (made == NULL)
        return ls_error(LS_ENOMEM, "starting the nodes");
    const char *image = getenv("LOCKSTEP_IMAGE");
    made->options = options;
    made->plan = plan;
    made->watcher = watcher;
    made->quiet = true;
    made->image = image != NULL && image[0] != '\0' ? image : "lockstep";
    (void)snprintf(made->project, sizeof made->project, "lockstep-%ld",
                   (long)getpid());
    made->children = calloc(plan->n_nodes, sizeof *made->children);
    made->commands = calloc(plan->n_nodes, sizeof *made->commands);
    int status = made->children != NULL && made->commands != NULL
                     ? LS_OK
                     : ls_error(LS_ENOMEM, "starting the nodes");
    if (status == LS_OK)
        status = check(made);
    if (status == LS_OK)
        status = find_paths(made);
    if (status == LS_OK)
        status = make_keys(made);
    *out = made;
    if (status != LS_OK) {
        char text[LS_ERROR_TEXT_MAX];
        (void)snprintf(text, sizeof text, "%s", ls_error_text());
        (void)compose_destroy(out);
        return ls_error(status, "%s", text);
    }
    return LS_OK;
}

bool compose_destroy(compose **self)
{
    if (self == NULL || *self == NULL)
        return true;
    compose *ended = *self;
    bool quiet = ended->quiet;
    /* First: it ends what would not end when it was told to. */
    if (ended->made &&
        run_compose(ended, "down", "-v", "-t", "2", (char *)NULL) != LS_OK)
        ls_log_warn("containers of the run stay: %s", ls_error_text());
    for (size_t i = 0; ended->children != NULL && i < ended->plan->n_nodes; i++)
        quiet = child_destroy(&ended->children[i]) && quiet;
    remove_keys(ended);
    for (size_t i = 0; ended->commands != NULL && i < ended->plan->n_nodes; i++)
        arguments_fini(&ended->commands[i]);
    free(ended->children);
    free(ended->commands);
    free(ended);
    *self = NULL;
    return quiet;
}

struct launcher compose_launcher(compose *self)
{
    return (struct launcher){.start = start, .stop = stop, .self = self};
}
