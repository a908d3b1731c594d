/* A plugin that goes wrong on demand: `env: {fault: crash, at: 100}`. Without
 * a fault it is the smallest that works: the return of an episode is 10, and
 * 1000 when a file is there: `env: {prize: FILE}`. An observation has as many
 * floats as `env: {observation: N}` says, a policy as many bytes as
 * `policy: {bytes: N}`. With `env: {together: N, at: M}` it fails in its M-th
 * step unless N environments of the process were in a step at the same time by
 * then: until they were, each waits a little for others. With `env: {slow:
 * FILE, slow_ms: N}` the first process that steps one makes the file, with its
 * pid in it, and each of its steps takes N ms. With `env: {gate: FILE, at: M}`
 * an environment does not end its M-th step before that file is there. With
 * `policy: {apart: true}`
 * several that learn together come to different weights. With `env: {locale:
 * true}` it sets the locale that the environment asks for, and with `env: {cd:
 * FOLDER}` it changes to that folder. With `env: {spared: N}` the first N
 * environments of the process do not hang in init. Its version is the process's
 * FAULTY_VERSION, or 1. */
#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lockstep/plugin.h"
#include "lockstep/runtime.h"

enum fault {
    NONE,
    FAIL,
    CRASH,
    QUIT,
    HANG,
    NOT_FINITE,
    STAY,
    SAY,
    EXIT,
    HANG_IN_INIT, /* whoever has it, and does not wait for a step */
    HANG_IN_FINI
};
static const char *const faults[] = {
    "none", "fail", "crash", "quit",         "hang",         "nan",
    "stay", "say",  "exit",  "hang in init", "hang in fini", NULL};

struct env {
    enum fault fault;
    int64_t at, n_steps; /* the fault comes with this step */
    int in_episode;
    int64_t together; /* 0: it does not matter */
    char prize[256];  /* "": none */
    char slow[256];   /* "": none */
    char gate[256];   /* "": none */
    int64_t slow_ms;
    bool is_slow;
    int64_t n_observation;
};

struct policy {
    int64_t n_seen, n_bytes;
    bool is_apart;
};

/* Where the environments of one node meet: it makes them one after another. */
static struct {
    ls_mutex lock;
    ls_cond changed;
    int64_t users, inside, most;
} meeting;

static int meeting_join(void)
{
    if (meeting.users++ != 0)
        return LS_OK;
    const int status = ls_mutex_init(&meeting.lock, ls_runtime_threads());
    return status == LS_OK
               ? ls_cond_init(&meeting.changed, ls_runtime_threads())
               : status;
}

static void meeting_leave(void)
{
    if (--meeting.users != 0)
        return;
    ls_cond_fini(&meeting.changed);
    ls_mutex_fini(&meeting.lock);
}

static void hang(void)
{
    (void)fprintf(stderr, "faulty: about to hang\n");
    for (;;)
        (void)pause();
}

static int env_init(void *env, ls_config_section *config, uint64_t seed)
{
    struct env *self = env;
    (void)seed;
    self->fault = (enum fault)ls_config_choice(config, "fault", NONE, faults);
    self->at = ls_config_int(config, "at", 100, 1, INT64_MAX);
    self->n_observation = ls_config_int(config, "observation", 1, 1, 1 << 20);
    self->together = ls_config_int(config, "together", 0, 0, 64);
    self->slow_ms = ls_config_int(config, "slow_ms", 20, 0, 1000);
    const char *slow = ls_config_string(config, "slow", "");
    (void)snprintf(self->slow, sizeof self->slow, "%s", slow);
    const char *gate = ls_config_string(config, "gate", "");
    (void)snprintf(self->gate, sizeof self->gate, "%s", gate);
    const char *prize = ls_config_string(config, "prize", "");
    (void)snprintf(self->prize, sizeof self->prize, "%s", prize);
    if (ls_config_bool(config, "locale", false) &&
        setlocale(LC_ALL, "") == NULL)
        return ls_error(LS_ENOENT, "there is no such locale");
    const char *folder = ls_config_string(config, "cd", ".");
    if (chdir(folder) != 0)
        return ls_error(LS_ENOENT, "there is no folder %s", folder);
    static atomic_int n_inits;
    const int64_t spared = ls_config_int(config, "spared", 0, 0, 1000);
    if (self->fault == HANG_IN_INIT && atomic_fetch_add(&n_inits, 1) >= spared)
        hang();
    return self->together > 0 ? meeting_join() : LS_OK;
}

static void fini(void *state)
{
    (void)state;
}

static void env_fini(void *env)
{
    const struct env *self = env;
    if ((self->fault == STAY && self->n_steps >= self->at) ||
        self->fault == HANG_IN_FINI)
        hang();
    if (self->together > 0)
        meeting_leave();
}

static void env_spec(const void *env, struct ls_env_spec *out)
{
    const struct env *self = env;
    *out = (struct ls_env_spec){
        .observation = {LS_F32, 1, {(size_t)self->n_observation}},
        .action = {.type = LS_I32},
        .n_choices = 2,
        .max_steps = 10};
}

static int env_reset(void *env, void *observation)
{
    struct env *self = env;
    self->in_episode = 0;
    memset(observation, 0, (size_t)self->n_observation * sizeof(float));
    return LS_OK;
}

static int go_wrong(enum fault fault)
{
    switch (fault) {
    case FAIL:
        (void)fprintf(stderr, "faulty: about to fail\n");
        return ls_error(LS_EIO, "the cart fell off the table");
    case CRASH:
        (void)fprintf(stderr, "faulty: about to crash\n");
        (void)raise(SIGSEGV);
        break;
    case QUIT:
        _exit(3);
    case EXIT:
        exit(0);
    case HANG:
        hang();
        break;
    case SAY:
        (void)fprintf(stderr, "faulty: goes on\n");
        break;
    case NONE:
    case NOT_FINITE:
    case STAY:
    case HANG_IN_INIT:
    case HANG_IN_FINI:
        break;
    }
    return LS_OK;
}

#define MEET_MS 50

static int meet(const struct env *self)
{
    const int64_t deadline = ls_deadline(ls_runtime_threads(), MEET_MS);
    int status = LS_OK;
    ls_mutex_lock(&meeting.lock);
    if (++meeting.inside > meeting.most) {
        meeting.most = meeting.inside;
        ls_cond_broadcast(&meeting.changed);
    }
    while (meeting.most < self->together && status == LS_OK)
        status = ls_cond_wait(&meeting.changed, &meeting.lock, deadline);
    meeting.inside--;
    const int64_t seen = meeting.most;
    ls_mutex_unlock(&meeting.lock);
    return seen >= self->together || self->n_steps < self->at
               ? LS_OK
               : ls_error(LS_EHANDLER,
                          "%d of %d environments were stepped at once",
                          (int)seen, (int)self->together);
}

static bool is_first(const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0)
        return false;
    (void)dprintf(fd, "%ld\n", (long)getpid());
    (void)close(fd);
    return true;
}

static void be_slow(struct env *self)
{
    ls_runtime *runtime = ls_runtime_current();
    if (self->n_steps == 1)
        self->is_slow = is_first(self->slow);
    if (self->is_slow)
        ls_rest_until(runtime, ls_deadline(runtime, (int)self->slow_ms));
}

#define LOOK_MS 10

static void wait_at_gate(const struct env *self)
{
    ls_runtime *runtime = ls_runtime_current();
    while (access(self->gate, F_OK) != 0)
        ls_rest_until(runtime, ls_deadline(runtime, LOOK_MS));
}

static int env_step(void *env, const void *action, void *observation,
                    float *reward, bool *terminated, bool *truncated)
{
    struct env *self = env;
    (void)action;
    const bool now = ++self->n_steps == self->at;
    int status = now ? go_wrong(self->fault) : LS_OK;
    if (status == LS_OK && self->together > 0)
        status = meet(self);
    if (status == LS_OK && self->slow[0] != '\0')
        be_slow(self);
    if (status == LS_OK && now && self->gate[0] != '\0')
        wait_at_gate(self);
    if (status != LS_OK)
        return status;
    self->in_episode++;
    memset(observation, 0, (size_t)self->n_observation * sizeof(float));
    *(float *)observation = (float)self->in_episode;
    *reward = now && self->fault == NOT_FINITE ? NAN : 1.0f;
    *terminated = self->in_episode == 10;
    if (*terminated && self->prize[0] != '\0' && access(self->prize, F_OK) == 0)
        *reward = 991.0f;
    *truncated = false;
    return LS_OK;
}

static int policy_init(void *policy, ls_config_section *config,
                       const struct ls_env_spec *spec, uint64_t seed)
{
    struct policy *self = policy;
    (void)spec;
    (void)seed;
    self->n_bytes = ls_config_int(config, "bytes", 0, 0, 1 << 30);
    self->is_apart = ls_config_bool(config, "apart", false);
    return LS_OK;
}

static int policy_act(void *policy, const struct ls_act *rows)
{
    int32_t *actions = rows->actions;
    (void)policy;
    for (size_t i = 0; i < rows->n; i++)
        actions[i] = rows->explore ? (int32_t)(rows->noise[i] & 1) : 0;
    return LS_OK;
}

static int policy_learn(void *policy, const struct ls_learn_batch *batch,
                        struct ls_learn_info *info)
{
    struct policy *self = policy;
    for (size_t i = 0; i < batch->n; i++)
        self->n_seen += (int64_t)batch->trajectories[i].n;
    if (self->is_apart && batch->group != NULL)
        self->n_seen += (int64_t)ls_group_rank(batch->group);
    info->n = 0;
    return LS_OK;
}

static int policy_save(const void *policy, ls_writer *out)
{
    const struct policy *self = policy;
    if (self->n_bytes == 0) {
        ls_write_int(out, self->n_seen);
        return LS_OK;
    }
    char *padding = calloc(1, (size_t)self->n_bytes);
    if (padding == NULL)
        return ls_error(LS_ENOMEM, "faulty: padding");
    ls_write_array(out, 2);
    ls_write_int(out, self->n_seen);
    ls_write_binary(out, padding, (size_t)self->n_bytes);
    free(padding);
    return LS_OK;
}

static int policy_load(void *policy, const ls_value *in)
{
    struct policy *self = policy;
    return ls_value_int(self->n_bytes == 0 ? in : ls_value_at(in, 0),
                        &self->n_seen);
}

LS_API const struct ls_plugin *ls_plugin(void)
{
    static const struct ls_env_ops env = {.state_bytes = sizeof(struct env),
                                          .init = env_init,
                                          .fini = env_fini,
                                          .spec = env_spec,
                                          .reset = env_reset,
                                          .step = env_step};
    static const struct ls_policy_ops policy = {.state_bytes =
                                                    sizeof(struct policy),
                                                .n_extras = 0,
                                                .learns_in_group = true,
                                                .init = policy_init,
                                                .fini = fini,
                                                .act = policy_act,
                                                .learn = policy_learn,
                                                .save = policy_save,
                                                .load = policy_load};
    static struct ls_plugin table = {
        .abi = LS_PLUGIN_ABI, .name = "faulty", .env = &env, .policy = &policy};
    const char *version = getenv("FAULTY_VERSION");
    table.version = version != NULL ? version : "1";
    return &table;
}
