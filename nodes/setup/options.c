#define _XOPEN_SOURCE 700 /* realpath */
#include "options.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lockstep/config.h"
#include "lockstep/runtime.h"

#include "plan.h"

enum option_kind {
    OPTION_SEED,
    OPTION_SET,
    OPTION_OUT,
    OPTION_JSON,
    OPTION_AS,
    OPTION_TIMEOUT,
    OPTION_NODES,
    OPTION_FAULTS,
    OPTION_EVENT_LOG,
    OPTION_SEEDS,
    OPTION_FIRST,
    OPTION_SABOTAGE,
    OPTION_MINIMIZE,
    OPTION_JOBS,
    OPTION_EVERY,
    OPTION_BENCH, /* read by parse_bench() */
    OPTION_ENROLMENT,
    OPTION_ID,
    OPTION_ROLE,
    OPTION_IDENTITY,
    OPTION_BIND,
    OPTION_ADVERTISE,
    OPTION_ATTACH,
    OPTION_REPORT_FD,
    OPTION_SECRET_FD,
    OPTION_PARENT,
    OPTION_LIFE,
    OPTION_GONE,
    OPTION_RUN,
    OPTION_FRESH,
    OPTION_COVERAGE,
    OPTION_WAIT_MS,
    OPTION_CHANNEL,
    OPTION_STEPS,
    OPTION_HTML,
    OPTION_METRICS,
    OPTION_PFTRACE,
    OPTION_WITHIN,
    OPTION_WATCH,
    OPTION_STOP,
    OPTION_REFRESH,
    OPTION_PATIENCE,
    OPTION_RECORD,
    OPTION_OUTPUT,
    OPTION_EPISODES,
    OPTION_FORCE,
    OPTION_RESUME,
    OPTION_EPOCH,
    OPTION_KEEP_LAST,
    OPTION_KEEP_EVERY,
    OPTION_KEEP_BEST,
    OPTION_METRIC,
    OPTION_LEAST,
    OPTION_OF_NODE,
    OPTION_BLOB
};

#define ON(command)                   (1u << (command))
#define ON_JOB(NAME, name, takes_job) | ((takes_job) ? ON(COMMAND_##NAME) : 0u)
#define ON_ALL                        (0u COMMAND_MAP(ON_JOB))
#define ON_RUN                        (ON(COMMAND_RUN) | ON(COMMAND_PROFILE))
#define ON_SIM                        (ON_RUN | ON(COMMAND_SIM))
#define ON_REPLAY                     ON(COMMAND_REPLAY)
#define ON_PROFILE                    (ON(COMMAND_PROFILE) | ON(COMMAND_TRACE))
#define ON_JOIN                       (ON(COMMAND_NODE) | ON(COMMAND_CALL))
#define ON_BENCH                      ON(COMMAND_BENCH)
#define ON_POLICY                     (ON(COMMAND_EVAL) | ON(COMMAND_EXPORT))
#define ON_KEYS                       ON(COMMAND_KEYGEN)
#define ON_CHECKPOINT                 ON(COMMAND_CHECKPOINT)

/* A day. */
#define WAIT_MS_MAX 86400000

static const struct option_spec {
    const char *name;
    enum option_kind kind;
    const char *value; /* what follows it, for messages; NULL: nothing */
    unsigned on;       /* the commands that take it */
} specs[] = {
    {"--seed", OPTION_SEED, "a number", ON_ALL | ON(COMMAND_EVAL)},
    {"--set", OPTION_SET, "key=value", ON_ALL | ON_KEYS | ON_POLICY},
    {"--out", OPTION_OUT, "a folder", ON_ALL},
    {"--json", OPTION_JSON, NULL,
     ON_ALL | ON_BENCH | ON_KEYS | ON(COMMAND_TRACE) | ON_POLICY |
         ON_CHECKPOINT},
    {"--nodes", OPTION_NODES, "a number of nodes", ON_ALL | ON_KEYS},
    {"--as", OPTION_AS, "processes, threads, sim or compose", ON_RUN},
    {"--timeout", OPTION_TIMEOUT, "seconds", ON_RUN | ON_REPLAY},
    {"--faults", OPTION_FAULTS, "a name or a file", ON_SIM},
    {"--event-log", OPTION_EVENT_LOG, "a file", ON_SIM | ON_REPLAY},
    {"--seeds", OPTION_SEEDS, "a number of seeds", ON(COMMAND_SIM)},
    {"--first", OPTION_FIRST, "a seed", ON(COMMAND_SIM)},
    {"--sabotage", OPTION_SABOTAGE, "what to break", ON(COMMAND_SIM)},
    {"--minimize", OPTION_MINIMIZE, "a file", ON(COMMAND_SIM)},
    {"--jobs", OPTION_JOBS, "a number of processes", ON(COMMAND_SIM)},
    {"--coverage", OPTION_COVERAGE, NULL, ON(COMMAND_SIM)},
    {"--every", OPTION_EVERY, "a number of seeds", ON(COMMAND_SIM)},
    {"--devices", OPTION_BENCH, "names of devices", ON_BENCH},
    {"--seconds", OPTION_BENCH, "seconds", ON_BENCH},
    {"--queue", OPTION_BENCH, "a number of batches", ON_BENCH},
    {"--stacks", OPTION_BENCH, "a number of stacks", ON_BENCH},
    {"--loaders", OPTION_BENCH, "a number of threads", ON_BENCH},
    {"--passes", OPTION_BENCH, "a number of passes", ON_BENCH},
    {"--load-us", OPTION_BENCH, "a time in us", ON_BENCH},
    {"--train-us", OPTION_BENCH, "a time in us", ON_BENCH},
    {"--batch-bytes", OPTION_BENCH, "a number of bytes", ON_BENCH},
    {"--enrolment", OPTION_ENROLMENT, NULL, ON_KEYS},
    {"--id", OPTION_ID, "a node's id", ON_JOIN | ON_KEYS | ON(COMMAND_HEALTH)},
    {"--role", OPTION_ROLE, "a role", ON(COMMAND_NODE)},
    {"--identity", OPTION_IDENTITY, "a folder", ON(COMMAND_NODE)},
    {"--bind", OPTION_BIND, "an endpoint", ON_JOIN},
    {"--advertise", OPTION_ADVERTISE, "an endpoint", ON_JOIN},
    {"--attach", OPTION_ATTACH, "an endpoint", ON_JOIN},
    {"--report-fd", OPTION_REPORT_FD, "a descriptor", ON(COMMAND_NODE)},
    {"--secret-fd", OPTION_SECRET_FD, "a descriptor", ON(COMMAND_NODE)},
    {"--parent", OPTION_PARENT, "a process id", ON(COMMAND_NODE)},
    {"--life", OPTION_LIFE, "a number", ON(COMMAND_NODE)},
    {"--run", OPTION_RUN, "a number", ON(COMMAND_NODE)},
    {"--fresh", OPTION_FRESH, NULL, ON(COMMAND_RUN) | ON(COMMAND_NODE)},
    {"--resume", OPTION_RESUME, "latest, or the number of a run",
     ON(COMMAND_RUN)},
    {"--epoch", OPTION_EPOCH, "best, or the epoch of a checkpoint",
     ON(COMMAND_RUN) | ON(COMMAND_NODE) | ON_POLICY},
    {"--gone", OPTION_GONE, "ids", ON(COMMAND_NODE)},
    {"--wait-ms", OPTION_WAIT_MS, "milliseconds", ON(COMMAND_CALL)},
    {"--channel", OPTION_CHANNEL, "a number", ON(COMMAND_CALL)},
    {"--steps", OPTION_STEPS, "a number of iterations", ON(COMMAND_PROFILE)},
    {"--html", OPTION_HTML, "a file", ON_PROFILE},
    {"--metrics", OPTION_METRICS, "a file", ON_PROFILE},
    {"--trace", OPTION_PFTRACE, "a file", ON(COMMAND_PROFILE)},
    {"--out", OPTION_PFTRACE, "a file", ON(COMMAND_TRACE)},
    {"--patience", OPTION_PATIENCE, "seconds",
     ON(COMMAND_RUN) | ON(COMMAND_NODE)},
    {"--record", OPTION_RECORD, "a file", ON(COMMAND_RUN) | ON(COMMAND_NODE)},
    {"--output", OPTION_OUTPUT, "all, only_error or a folder", ON(COMMAND_RUN)},
    {"--out", OPTION_OUT, "a file", ON(COMMAND_EXPORT) | ON_CHECKPOINT},
    {"--force", OPTION_FORCE, NULL, ON(COMMAND_EXPORT) | ON_CHECKPOINT},
    {"--episodes", OPTION_EPISODES, "a number of episodes", ON(COMMAND_EVAL)},
    {"--node", OPTION_ID, "a node's id", ON_REPLAY},
    {"--within", OPTION_WITHIN, "seconds", ON(COMMAND_HEALTH)},
    {"--stop-is-done", OPTION_STOP, NULL, ON(COMMAND_NODE)},
    {"--watch", OPTION_WATCH, NULL, ON(COMMAND_STATUS)},
    {"--every", OPTION_REFRESH, "seconds",
     ON(COMMAND_STATUS) | ON(COMMAND_TOP)},
    {"--keep-last", OPTION_KEEP_LAST, "a number of checkpoints", ON_CHECKPOINT},
    {"--every", OPTION_KEEP_EVERY, "a number of epochs", ON_CHECKPOINT},
    {"--best", OPTION_KEEP_BEST, "a number of checkpoints", ON_CHECKPOINT},
    {"--metric", OPTION_METRIC, "the name of a metric", ON_CHECKPOINT},
    {"--least", OPTION_LEAST, NULL, ON_CHECKPOINT},
    {"--node", OPTION_OF_NODE, "a node's name", ON_CHECKPOINT},
    {"--blob", OPTION_BLOB, "a blob's name", ON_CHECKPOINT},
};
#define N_SPECS (sizeof specs / sizeof specs[0])

#define COMMAND_NAME(NAME, name, takes_job) [COMMAND_##NAME] = #name,
static const char *const command_names[] = {[COMMAND_NONE] = "",
                                            COMMAND_MAP(COMMAND_NAME)};
#define N_COMMANDS (sizeof command_names / sizeof command_names[0])

static int parse_between(const char *name, const char *text, uint64_t min,
                         uint64_t max, uint64_t *out)
{
    char *end;
    assert(text != NULL); /* the option takes a value, so it has one */
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 ||
        value < min || value > max)
        return ls_error(
            LS_EINVAL, "%s %s: expected a whole number from %llu to %llu", name,
            text, (unsigned long long)min, (unsigned long long)max);
    *out = value;
    return LS_OK;
}

static int parse_whole(const char *name, const char *text, uint64_t max,
                       uint64_t *out)
{
    return parse_between(name, text, 0, max, out);
}

static int parse_epoch(const char *name, const char *text, int64_t *out)
{
    uint64_t epoch = 0;
    if (strcmp(text, "best") == 0) {
        *out = PLAN_FROM_BEST;
        return LS_OK;
    }
    if (parse_whole(name, text, INT64_MAX, &epoch) != LS_OK)
        return ls_error(LS_EINVAL,
                        "%s %s: expected best, or the whole number of an epoch",
                        name, text);
    *out = (int64_t)epoch;
    return LS_OK;
}

static int parse_seconds(const char *name, const char *text, double *out)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value) || value <= 0.0 ||
        value > 1e9)
        return ls_error(LS_EINVAL,
                        "%s %s: expected seconds, more than 0, as in %s 30",
                        name, text, name);
    *out = value;
    return LS_OK;
}

static int parse_refresh(const char *name, const char *text, double *out)
{
    double seconds;
    const int status = parse_seconds(name, text, &seconds);
    if (status == LS_OK && seconds >= 0.1 && seconds <= 25.0)
        *out = seconds;
    else if (status == LS_OK)
        return ls_error(LS_EINVAL, "%s %s: expected 0.1 to 25 seconds", name,
                        text);
    return status;
}

static int parse_set(struct options *out, char *text)
{
    char *equals = strchr(text, '=');
    if (equals == NULL || equals == text)
        return ls_error(LS_EINVAL,
                        "--set %s: expected key=value, as in "
                        "--set collector.steps=128",
                        text);
    if (out->n_sets == OPTIONS_REPEATS_MAX)
        return ls_error(LS_EINVAL, "--set: at most %d of them",
                        OPTIONS_REPEATS_MAX);
    *equals = '\0';
    out->sets[out->n_sets].path = text;
    out->sets[out->n_sets].value = equals + 1;
    out->n_sets++;
    return LS_OK;
}

/* --nodes 9 is --set nodes.0.count=9. */
static int parse_nodes(struct options *out, const char *name, const char *text)
{
    uint64_t number;
    const int status = parse_whole(name, text, UINT32_MAX, &number);
    if (status != LS_OK)
        return status;
    if (out->n_sets == OPTIONS_REPEATS_MAX)
        return ls_error(LS_EINVAL, "--set: at most %d of them",
                        OPTIONS_REPEATS_MAX);
    out->sets[out->n_sets].path = "nodes.0.count";
    out->sets[out->n_sets].value = text;
    out->n_sets++;
    return LS_OK;
}

static int parse_as(struct options *out, const char *text)
{
    static const char *const names[] = {[AS_PROCESSES] = "processes",
                                        [AS_THREADS] = "threads",
                                        [AS_SIM] = "sim",
                                        [AS_COMPOSE] = "compose"};
    const size_t n = sizeof names / sizeof names[0];
    for (size_t i = 0; i < n; i++) {
        if (strcmp(text, names[i]) == 0) {
            out->as = (enum options_as)i;
            return LS_OK;
        }
    }
    const char *nearest = ls_nearest(text, names, n);
    if (nearest != NULL)
        return ls_error(LS_EINVAL, "--as %s: did you mean \"%s\"?", text,
                        nearest);
    return ls_error(LS_EINVAL,
                    "--as %s: expected processes, threads, sim or compose",
                    text);
}

/* Where an option goes whose value is taken as it is; NULL: it is not one. */
static const char **place_of(struct options *out, enum option_kind kind)
{
    switch (kind) {
    case OPTION_OUT:
        return &out->out;
    case OPTION_ROLE:
        return &out->role;
    case OPTION_IDENTITY:
        return &out->identity;
    case OPTION_RUN:
        return &out->run;
    case OPTION_BIND:
        return &out->bind;
    case OPTION_ADVERTISE:
        return &out->advertise;
    case OPTION_FAULTS:
        return &out->faults;
    case OPTION_EVENT_LOG:
        return &out->event_log;
    case OPTION_SABOTAGE:
        return &out->sabotage;
    case OPTION_MINIMIZE:
        return &out->minimize;
    case OPTION_HTML:
        return &out->html;
    case OPTION_METRICS:
        return &out->metrics;
    case OPTION_PFTRACE:
        return &out->pftrace;
    case OPTION_RECORD:
        return &out->record;
    case OPTION_RESUME:
        return &out->resume;
    case OPTION_METRIC:
        return &out->checkpoint.metric;
    case OPTION_OF_NODE:
        return &out->checkpoint.node;
    case OPTION_BLOB:
        return &out->checkpoint.blob;
    default:
        return NULL;
    }
}

/* Numbers that fit an int, or 32 bits. */
static int parse_small(struct options *out, const struct option_spec *spec,
                       const char *text)
{
    uint64_t number = 0;
    const bool is_int = spec->kind == OPTION_REPORT_FD ||
                        spec->kind == OPTION_SECRET_FD ||
                        spec->kind == OPTION_PARENT;
    const uint64_t most = spec->kind == OPTION_WAIT_MS ? WAIT_MS_MAX
                          : is_int                     ? INT_MAX
                                                       : UINT32_MAX;
    const int status = parse_whole(spec->name, text, most, &number);
    switch (spec->kind) {
    case OPTION_ID:
        out->id = (uint32_t)number;
        out->has_id = true;
        break;
    case OPTION_REPORT_FD:
        out->report_fd = (int)number;
        break;
    case OPTION_SECRET_FD:
        out->secret_fd = (int)number;
        break;
    case OPTION_PARENT:
        out->parent = (long)number;
        break;
    case OPTION_WAIT_MS:
        out->wait_ms = number > 0 ? (int)number : 1;
        break;
    case OPTION_CHANNEL:
        out->channel = (uint32_t)number;
        break;
    case OPTION_LIFE:
        out->life = (unsigned)number;
        break;
    default:
        break;
    }
    return status;
}

/* ---- what `lockstep bench` takes ---- */

#define IN_BENCH(member) offsetof(struct options, bench.member)

/* Where whole numbers go, and what they may be. */
static const struct whole {
    const char *name;
    size_t at; /* of a uint64_t */
    uint64_t min, max;
} wholes[] = {
    {"--queue", IN_BENCH(queue), 1, 1000000},
    {"--stacks", IN_BENCH(stacks), 1, 1024},
    {"--loaders", IN_BENCH(loaders), 0, 1024},
    {"--passes", IN_BENCH(passes), 1, 1000000},
    {"--load-us", IN_BENCH(load_us), 0, 60000000},
    {"--train-us", IN_BENCH(train_us), 0, 60000000},
    {"--batch-bytes", IN_BENCH(batch_bytes), 1, UINT64_C(1) << 40},
};
#define N_WHOLES (sizeof wholes / sizeof wholes[0])

static void bench_init(struct options *out)
{
    out->bench.devices = "cpu";
    out->bench.queue = 16;
    out->bench.stacks = 4;
    out->bench.loaders = 4;
    out->bench.passes = 1;
    out->bench.load_us = 2000;
    out->bench.train_us = 2000;
    out->bench.batch_bytes = 1 << 20;
    out->bench.seconds = 3;
}

static int read_whole(struct options *out, const struct whole *whole,
                      const char *text)
{
    uint64_t number;
    const int status =
        parse_between(whole->name, text, whole->min, whole->max, &number);
    if (status == LS_OK)
        memcpy((char *)out + whole->at, &number, sizeof number);
    return status;
}

static int parse_bench(struct options *out, const char *name, const char *text)
{
    for (size_t i = 0; i < N_WHOLES; i++)
        if (strcmp(name, wholes[i].name) == 0)
            return read_whole(out, &wholes[i], text);
    if (strcmp(name, "--seconds") == 0)
        return parse_seconds(name, text, &out->bench.seconds);
    out->bench.devices = text; /* --devices, the last one */
    return LS_OK;
}

static int bench_word(struct options *out, const char *text)
{
    if (out->bench.what != NULL || strcmp(text, "learner") != 0)
        return ls_error(LS_EINVAL,
                        "\"%s\" is nothing to measure; as in: lockstep bench "
                        "learner --stacks 4",
                        text);
    out->bench.what = text;
    return LS_OK;
}

static int bench_complete(const struct options *options)
{
    if (options->bench.what != NULL)
        return LS_OK;
    return ls_error(LS_EINVAL, "measure what? As in: lockstep bench learner");
}

/* ---- what `lockstep keygen` takes ---- */

static int keygen_id(struct options *out, const char *text)
{
    uint64_t id;
    const int status = parse_between("--id", text, 0, UINT32_MAX, &id);
    if (status != LS_OK)
        return status;
    for (size_t i = 0; i < out->n_ids; i++)
        if (out->ids[i] == id)
            return ls_error(LS_EINVAL, "--id %s: it is given twice", text);
    if (out->n_ids == OPTIONS_REPEATS_MAX)
        return ls_error(LS_EINVAL, "--id: at most %d of them",
                        OPTIONS_REPEATS_MAX);
    out->ids[out->n_ids++] = (uint32_t)id;
    return LS_OK;
}

static int keygen_word(struct options *out, const char *text)
{
    if (out->folder != NULL && out->config != NULL)
        return ls_error(LS_EINVAL,
                        "\"%s\" is one word too many: there is one folder and "
                        "one configuration",
                        text);
    *(out->folder == NULL ? &out->folder : &out->config) = text;
    return LS_OK;
}

static int keygen_complete(const struct options *options)
{
    if (options->folder == NULL)
        return ls_error(LS_EINVAL, "which folder? As in: lockstep keygen keys "
                                   "--id 3");
    if (options->config == NULL && options->n_ids == 0 && !options->enrolment)
        return ls_error(LS_EINVAL,
                        "keys for which nodes? As in: lockstep keygen %s "
                        "--id 3, or lockstep keygen %s job.yaml",
                        options->folder, options->folder);
    if (options->config == NULL && options->n_sets > 0)
        return ls_error(LS_EINVAL,
                        "--set %s is for a configuration: name it, as in "
                        "lockstep keygen %s job.yaml",
                        options->sets[0].path, options->folder);
    return LS_OK;
}

/* A folder of such a name is made with a slash in it. */
static int parse_output(struct options *out, const char *text)
{
    static const char *const names[] = {"all", "only_error"};
    const bool is_name =
        strcmp(text, names[0]) == 0 || strcmp(text, names[1]) == 0;
    const char *nearest =
        strchr(text, '/') == NULL ? ls_nearest(text, names, 2) : NULL;
    if (text[0] == '\0')
        return ls_error(LS_EINVAL, "--output: expected all, only_error or a "
                                   "folder");
    if (!is_name && nearest != NULL)
        return ls_error(LS_EINVAL,
                        "--output %s: did you mean \"%s\"? A folder of that "
                        "name is ./%s",
                        text, nearest, text);
    out->output = text;
    return LS_OK;
}

/* ---- what `lockstep eval` and `lockstep export` take ---- */

static int policy_word(struct options *out, const char *text)
{
    if (out->policy != NULL && out->config != NULL)
        return ls_error(LS_EINVAL,
                        "\"%s\" is one word too many: there is one policy and "
                        "one configuration",
                        text);
    *(out->policy == NULL ? &out->policy : &out->config) = text;
    return LS_OK;
}

static int policy_complete(const struct options *options)
{
    if (options->policy == NULL)
        return ls_error(LS_EINVAL,
                        "which policy? As in: lockstep %s out/cartpole/latest",
                        command_names[options->command]);
    if (options->command == COMMAND_EXPORT && options->out == NULL)
        return ls_error(LS_EINVAL,
                        "to which file? As in: lockstep export %s --out "
                        "policy.safetensors",
                        options->policy);
    return LS_OK;
}

/* ---- what `lockstep checkpoint` takes ---- */

/* What it does, with how many epochs, and which options are its own. */
static const struct verb {
    const char *name;
    size_t least, most; /* epochs */
    bool is_export, is_rm;
} verbs[] = {
    {"ls", 0, 0, false, false},
    {"show", 0, 1, false, false},
    {"verify", 0, OPTIONS_REPEATS_MAX, false, false},
    {"diff", 2, 2, false, false},
    {"export", 0, 1, true, false},
    {"rm", 0, OPTIONS_REPEATS_MAX, false, true},
};
#define N_VERBS (sizeof verbs / sizeof verbs[0])

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < N_VERBS; i++)
        if (strcmp(name, verbs[i].name) == 0)
            return &verbs[i];
    return NULL;
}

static int take_verb(struct options *out, const char *text)
{
    const char *names[N_VERBS];
    for (size_t i = 0; i < N_VERBS; i++)
        names[i] = verbs[i].name;
    out->checkpoint.verb = text;
    if (find_verb(text) != NULL)
        return LS_OK;
    const char *nearest = ls_nearest(text, names, N_VERBS);
    if (nearest != NULL)
        return ls_error(LS_EINVAL, "checkpoint %s: did you mean \"%s\"?", text,
                        nearest);
    return ls_error(LS_EINVAL,
                    "checkpoint %s: there are ls, show, verify, diff, export "
                    "and rm; as in: lockstep checkpoint ls out/cartpole/latest",
                    text);
}

static int checkpoint_word(struct options *out, const char *text)
{
    if (out->checkpoint.verb == NULL)
        return take_verb(out, text);
    if (out->checkpoint.path == NULL) {
        out->checkpoint.path = text;
        return LS_OK;
    }
    if (out->checkpoint.n_epochs == OPTIONS_REPEATS_MAX)
        return ls_error(LS_EINVAL, "at most %d epochs", OPTIONS_REPEATS_MAX);
    return parse_epoch("epoch", text,
                       &out->checkpoint.epochs[out->checkpoint.n_epochs++]);
}

static bool has_rule(const struct options *options)
{
    return options->checkpoint.keep_last > 0 ||
           options->checkpoint.keep_every > 0 ||
           options->checkpoint.keep_best > 0;
}

static bool asks_for_best(const struct options *options)
{
    bool found = false;
    for (size_t i = 0; i < options->checkpoint.n_epochs; i++)
        found = found || options->checkpoint.epochs[i] == PLAN_FROM_BEST;
    return found;
}

/* Options that belong to another verb; NULL: none. */
static const char *foreign_option(const struct options *options,
                                  const struct verb *verb)
{
    if (!verb->is_export && options->out != NULL)
        return "--out";
    if (!verb->is_export && options->force)
        return "--force";
    if (!verb->is_export && options->checkpoint.node != NULL)
        return "--node";
    if (!verb->is_export && options->checkpoint.blob != NULL)
        return "--blob";
    if (!verb->is_rm && has_rule(options))
        return "a rule of what to keep";
    if (options->checkpoint.keep_best == 0 && !asks_for_best(options) &&
        (options->checkpoint.metric != NULL || options->checkpoint.least))
        return verb->is_rm ? "--metric or --least without --best"
                           : "--metric or --least without the epoch best";
    return NULL;
}

static int checkpoint_complete(const struct options *options)
{
    const char *name = options->checkpoint.verb;
    if (name == NULL || options->checkpoint.path == NULL)
        return ls_error(
            LS_EINVAL, "%s? As in: lockstep checkpoint %s out/cartpole/latest",
            name == NULL ? "do what with checkpoints" : "which folder, or run",
            name == NULL ? "ls" : name);
    const struct verb *verb = find_verb(name);
    const size_t n = options->checkpoint.n_epochs;
    const char *foreign = foreign_option(options, verb);
    if (foreign != NULL)
        return ls_error(LS_EINVAL, "checkpoint %s: %s does nothing here", name,
                        foreign);
    if (n < verb->least || n > verb->most)
        return ls_error(LS_EINVAL,
                        "checkpoint %s: %zu epoch%s given, and it takes %s",
                        name, n, n == 1 ? " was" : "s were",
                        verb->most == 0   ? "none"
                        : verb->least > 0 ? "two, as in: checkpoint diff RUN 3 "
                                            "7"
                                          : "one at most");
    if (verb->is_export && options->out == NULL)
        return ls_error(LS_EINVAL,
                        "to which file? As in: lockstep checkpoint export %s "
                        "--out state.safetensors",
                        options->checkpoint.path);
    if (verb->is_rm && asks_for_best(options))
        return ls_error(LS_EINVAL,
                        "checkpoint rm: name epochs by their numbers; --best K "
                        "removes all but the best K");
    if (verb->is_rm && (n > 0) == has_rule(options))
        return ls_error(LS_EINVAL,
                        "checkpoint rm: name epochs, or what to keep by "
                        "--keep-last, --every or --best%s",
                        n > 0 ? ", not both" : "");
    return LS_OK;
}

/* An option that nothing follows. */
static bool *flag_of(struct options *out, enum option_kind kind)
{
    switch (kind) {
    case OPTION_JSON:
        return &out->json;
    case OPTION_FRESH:
        return &out->fresh;
    case OPTION_FORCE:
        return &out->force;
    case OPTION_COVERAGE:
        return &out->coverage;
    case OPTION_WATCH:
        return &out->watch;
    case OPTION_STOP:
        return &out->stop_is_done;
    case OPTION_LEAST:
        return &out->checkpoint.least;
    default:
        return &out->enrolment;
    }
}

/* Those that are a number from 1 on. Returns NULL: it is none. */
static uint64_t *count_of(struct options *out, enum option_kind kind,
                          uint64_t *most)
{
    *most = INT64_MAX;
    switch (kind) {
    case OPTION_SEEDS:
        return &out->n_seeds;
    case OPTION_STEPS:
        *most = 1000000000;
        return &out->n_steps;
    case OPTION_EPISODES:
        *most = 1000000000;
        return &out->n_episodes;
    case OPTION_JOBS:
        *most = LS_CORES_MAX;
        return &out->jobs;
    case OPTION_EVERY:
        *most = LS_CORES_MAX;
        return &out->every;
    case OPTION_KEEP_LAST:
        *most = INT32_MAX;
        return &out->checkpoint.keep_last;
    case OPTION_KEEP_EVERY:
        return &out->checkpoint.keep_every;
    case OPTION_KEEP_BEST:
        *most = INT32_MAX;
        return &out->checkpoint.keep_best;
    default:
        return NULL;
    }
}

static int parse_value(struct options *out, const struct option_spec *spec,
                       char *text)
{
    if (text == NULL) {
        *flag_of(out, spec->kind) = true;
        return LS_OK;
    }
    if (spec->kind == OPTION_ID && out->command == COMMAND_KEYGEN)
        return keygen_id(out, text);
    const char **place = place_of(out, spec->kind);
    if (place != NULL) {
        *place = text;
        return LS_OK;
    }
    uint64_t most;
    uint64_t *const count = count_of(out, spec->kind, &most);
    if (count != NULL)
        return parse_between(spec->name, text, 1, most, count);
    switch (spec->kind) {
    case OPTION_SEED:
        out->seed = text;
        return parse_whole(spec->name, text, INT64_MAX, &out->first_seed);
    case OPTION_SET:
        return parse_set(out, text);
    case OPTION_AS:
        return parse_as(out, text);
    case OPTION_OUTPUT:
        return parse_output(out, text);
    case OPTION_TIMEOUT:
        return parse_seconds(spec->name, text, &out->timeout_s);
    case OPTION_PATIENCE:
        out->patience = text;
        return parse_seconds(spec->name, text, &out->patience_s);
    case OPTION_WITHIN:
        return parse_seconds(spec->name, text, &out->within_s);
    case OPTION_REFRESH:
        return parse_refresh(spec->name, text, &out->every_s);
    case OPTION_NODES:
        return parse_nodes(out, spec->name, text);
    case OPTION_FIRST:
        return parse_whole(spec->name, text, INT64_MAX, &out->first_seed);
    case OPTION_EPOCH:
        return parse_epoch(spec->name, text, &out->epoch);
    case OPTION_ATTACH:
        if (out->n_attach == OPTIONS_REPEATS_MAX)
            return ls_error(LS_EINVAL, "--attach: at most %d of them",
                            OPTIONS_REPEATS_MAX);
        out->attach[out->n_attach++] = text;
        return LS_OK;
    default:
        return parse_small(out, spec, text);
    }
}

/* What may follow --resume, or be left out. */
static bool is_run(const char *text)
{
    return strcmp(text, "latest") == 0 ||
           (text[0] != '\0' && text[strspn(text, "0123456789")] == '\0');
}

static int unknown_option(enum command command, const char *text)
{
    const char *names[N_SPECS];
    size_t n = 0;
    for (size_t i = 0; i < N_SPECS; i++) {
        if (strcmp(specs[i].name, text) == 0)
            return ls_error(LS_EINVAL,
                            "%s is not an option of \"lockstep %s\"; see "
                            "lockstep help %s",
                            text, command_names[command],
                            command_names[command]);
        if (specs[i].on & ON(command))
            names[n++] = specs[i].name;
    }
    const char *nearest = ls_nearest(text, names, n);
    if (nearest != NULL)
        return ls_error(LS_EINVAL, "unknown option %s; did you mean \"%s\"?",
                        text, nearest);
    return ls_error(LS_EINVAL, "unknown option %s; see lockstep help %s", text,
                    command_names[command]);
}

/* argv[*at] begins with a dash: "--name", "--name value" or "--name=value". */
static int parse_option(struct options *out, int argc, char **argv, int *at)
{
    static char latest[] = "latest";
    char *text = argv[*at];
    if (strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0) {
        out->topic = command_names[out->command];
        out->command = COMMAND_HELP;
        return LS_OK;
    }
    char *value = strchr(text, '=');
    if (value != NULL)
        *value++ = '\0';

    const struct option_spec *spec = NULL;
    for (size_t i = 0; i < N_SPECS && spec == NULL; i++) {
        if (strcmp(specs[i].name, text) == 0 &&
            (specs[i].on & ON(out->command)))
            spec = &specs[i];
    }
    if (spec == NULL)
        return unknown_option(out->command, text);
    if (spec->value == NULL && value != NULL)
        return ls_error(LS_EINVAL, "%s takes no value, and \"%s\" was given",
                        text, value);
    if (spec->kind == OPTION_RESUME && value == NULL)
        value = *at + 1 < argc && (is_run(argv[*at + 1]) ||
                                   strcmp(argv[*at + 1], "best") == 0)
                    ? argv[++*at]
                    : latest;
    if (spec->value != NULL && value == NULL) {
        if (*at + 1 >= argc)
            return ls_error(LS_EINVAL, "%s: %s must follow it", text,
                            spec->value);
        value = argv[++*at];
    }
    return spec->kind == OPTION_BENCH ? parse_bench(out, spec->name, value)
                                      : parse_value(out, spec, value);
}

static int parse_command(struct options *out, const char *text)
{
    for (size_t i = COMMAND_HELP; i < N_COMMANDS; i++) {
        if (strcmp(text, command_names[i]) == 0) {
            out->command = (enum command)i;
            return LS_OK;
        }
    }
    if (strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0) {
        out->command = COMMAND_HELP;
        return LS_OK;
    }
    if (strcmp(text, "--version") == 0 || strcmp(text, "-V") == 0) {
        out->command = COMMAND_VERSION;
        return LS_OK;
    }
    if (access(text, F_OK) == 0)
        return ls_error(LS_EINVAL,
                        "%s is a file; did you mean \"lockstep run %s\"?", text,
                        text);
    const char *nearest = ls_nearest(text, command_names + 1, N_COMMANDS - 1);
    if (nearest != NULL)
        return ls_error(LS_EINVAL,
                        "there is no \"lockstep %s\"; did you mean \"%s\"?",
                        text, nearest);
#define COMMAND_LISTED(NAME, name, takes_job) ", " #name
    static const char list[] = COMMAND_MAP(COMMAND_LISTED);
    return ls_error(LS_EINVAL, "there is no \"lockstep %s\"; there are %s",
                    text, list + sizeof ", " - 1);
}

static int parse_word(struct options *out, const char *text)
{
    if (out->command == COMMAND_HELP && out->topic == NULL) {
        out->topic = text;
        return LS_OK;
    }
    if (out->command == COMMAND_HELP || out->command == COMMAND_VERSION)
        return ls_error(LS_EINVAL, "\"%s\" is one word too many", text);
    const char **places[] = {&out->config, &out->node, &out->name,
                             &out->argument};
    for (size_t i = 0; i < 4 && out->command == COMMAND_CALL; i++) {
        if (*places[i] != NULL)
            continue;
        *places[i] = text;
        return LS_OK;
    }
    if (out->command == COMMAND_CALL)
        return ls_error(LS_EINVAL,
                        "\"%s\" is one word too many: is what is asked in "
                        "quotes, as in '{\"key\": 1}'?",
                        text);
    if (out->command == COMMAND_BENCH)
        return bench_word(out, text);
    if (out->command == COMMAND_KEYGEN)
        return keygen_word(out, text);
    if (ON(out->command) & ON_POLICY)
        return policy_word(out, text);
    if (out->command == COMMAND_CHECKPOINT)
        return checkpoint_word(out, text);
    if (out->config != NULL)
        return ls_error(LS_EINVAL,
                        "two configurations, %s and %s; one run takes one",
                        out->config, text);
    out->config = text;
    return LS_OK;
}

static int check_node(const struct options *options)
{
    if (options->identity != NULL && !options->has_id && options->role == NULL)
        return ls_error(LS_EINVAL,
                        "--identity is for a node that is given its id: say "
                        "--role as well");
    if (options->has_id && (options->role != NULL || options->identity != NULL))
        return ls_error(LS_EINVAL,
                        "%s is for a node that is given its id; this one "
                        "brings --id %u",
                        options->role != NULL ? "--role" : "--identity",
                        (unsigned)options->id);
    return LS_OK;
}

/* What the command is about must be said. */
static int check_words(const struct options *options)
{
    const char *command = command_names[options->command];
    if (options->command == COMMAND_BENCH)
        return bench_complete(options);
    if (options->command == COMMAND_KEYGEN)
        return keygen_complete(options);
    if (ON(options->command) & ON_POLICY)
        return policy_complete(options);
    if (options->command == COMMAND_CHECKPOINT)
        return checkpoint_complete(options);
    if (options->config != NULL)
        return LS_OK;
    if (options->command == COMMAND_TRACE ||
        options->command == COMMAND_STATUS || options->command == COMMAND_TOP)
        return ls_error(LS_EINVAL,
                        "which run? As in: lockstep %s out/cartpole/latest",
                        command);
    if (options->command == COMMAND_REPLAY)
        return ls_error(LS_EINVAL, "which recording? As in: lockstep replay "
                                   "run.lsrec");
    return ls_error(LS_EINVAL,
                    "which configuration? As in: lockstep %s "
                    "configs/cartpole.yaml%s",
                    command,
                    options->command == COMMAND_CALL   ? " 0 ping"
                    : options->command == COMMAND_NODE ? " --id 0"
                                                       : "");
}

static int check_resume(const struct options *options)
{
    if (options->resume == NULL)
        return options->epoch != PLAN_FROM_NEWEST &&
                       (options->fresh || options->record)
                   ? ls_error(LS_EINVAL,
                              "--epoch is of a run that is resumed: "
                              "leave out it or %s",
                              options->fresh ? "--fresh" : "--record")
                   : LS_OK;
    if (!is_run(options->resume))
        return ls_error(LS_EINVAL,
                        "--resume=%s: expected latest, or the number of a "
                        "run%s",
                        options->resume,
                        strcmp(options->resume, "best") == 0
                            ? "; its best checkpoint is --epoch best"
                            : "");
    if (options->fresh || options->record != NULL)
        return ls_error(LS_EINVAL,
                        "%s begins a new run: leave out it or --resume",
                        options->fresh ? "--fresh" : "--record");
    return LS_OK;
}

static int check_complete(const struct options *options)
{
    int status = options->command < COMMAND_RUN ? LS_OK : check_words(options);
    if (status == LS_OK)
        status = check_resume(options);
    if (status != LS_OK)
        return status;
    if (options->command == COMMAND_TOP && options->json)
        return ls_error(LS_EINVAL, "--json is for lockstep status");
    if (options->command == COMMAND_NODE)
        return check_node(options);
    if (options->command == COMMAND_CALL && options->name == NULL)
        return ls_error(LS_EINVAL, "which %s? As in: lockstep call %s 1 ping",
                        options->node == NULL ? "node" : "call",
                        options->config);
    if (options->jobs > 1 && options->event_log != NULL)
        return ls_error(LS_EINVAL,
                        "--event-log is of one process: leave out --jobs %llu",
                        (unsigned long long)options->jobs);
    if (options->seed != NULL && options->n_seeds != 0)
        return ls_error(LS_EINVAL,
                        "--seed is for one seed; for %llu from there on: "
                        "--first %s --seeds %llu",
                        (unsigned long long)options->n_seeds, options->seed,
                        (unsigned long long)options->n_seeds);
    if (options->command == COMMAND_PROFILE && options->as == AS_COMPOSE)
        return ls_error(LS_EINVAL,
                        "--as compose: the recordings would be in containers; "
                        "profile processes or threads");
    if (options->output != NULL &&
        (options->as == AS_THREADS || options->as == AS_SIM))
        return ls_error(LS_EINVAL,
                        "--output: nodes that are no processes write to this "
                        "one's stderr; leave out --as %s",
                        options->as == AS_SIM ? "sim" : "threads");
    if (options->record != NULL && options->as == AS_COMPOSE)
        return ls_error(LS_EINVAL,
                        "--as compose: the recordings would be in containers; "
                        "record processes or threads");
    if (options->command != COMMAND_SIM && options->as != AS_SIM &&
        (options->faults != NULL || options->event_log != NULL))
        return ls_error(LS_EINVAL, "%s is for a simulation: add --as sim",
                        options->faults != NULL ? "--faults" : "--event-log");
    return LS_OK;
}

static bool is_same_file(const char *a, const char *b)
{
    char *const real_a = realpath(a, NULL), *const real_b = realpath(b, NULL);
    const bool same =
        real_a != NULL && real_b != NULL && strcmp(real_a, real_b) == 0;
    free(real_a);
    free(real_b);
    return same;
}

/* One slip of completion would have what is read replaced by what is written.
 */
static int check_outputs(const struct options *options)
{
    const char *const read[] = {options->config, options->faults};
    const struct {
        const char *option, *path;
    } written[] = {{"--event-log", options->event_log},
                   {"--minimize", options->minimize},
                   {"--html", options->html},
                   {"--metrics", options->metrics},
                   {options->command == COMMAND_TRACE ? "--out" : "--trace",
                    options->pftrace}};
    for (size_t i = 0; i < sizeof read / sizeof read[0]; i++)
        for (size_t k = 0; k < sizeof written / sizeof written[0]; k++)
            if (read[i] != NULL && written[k].path != NULL &&
                is_same_file(read[i], written[k].path))
                return ls_error(LS_EINVAL,
                                "%s %s would replace what is read: name "
                                "another file",
                                written[k].option, written[k].path);
    return LS_OK;
}

int options_parse(struct options *out, int argc, char **argv)
{
    struct options options = {.report_fd = -1,
                              .secret_fd = -1,
                              .epoch = PLAN_FROM_NEWEST,
                              .wait_ms = 10000,
                              .every_s = 1.0};
    bench_init(&options);
    if (argc < 2) {
        *out = options;
        return LS_OK;
    }
    int status = parse_command(&options, argv[1]);
    const bool help = options.command == COMMAND_HELP;
    bool only_words = false;
    for (int i = 2; i < argc && status == LS_OK; i++) {
        if (help && argv[i][0] == '-')
            continue;
        if (options.command == COMMAND_HELP && !help)
            break; /* --help was among the options: the rest does not count */
        if (!only_words && strcmp(argv[i], "--") == 0)
            only_words = true;
        else if (!only_words && argv[i][0] == '-' && argv[i][1] != '\0')
            status = parse_option(&options, argc, argv, &i);
        else
            status = parse_word(&options, argv[i]);
    }
    if (status == LS_OK)
        status = check_complete(&options);
    if (status == LS_OK)
        status = check_outputs(&options);
    if (options.n_seeds == 0)
        options.n_seeds = options.seed != NULL ? 1 : 100;
    if (options.command == COMMAND_RUN && options.epoch != PLAN_FROM_NEWEST &&
        options.resume == NULL)
        options.resume = "latest";
    if (status == LS_OK)
        *out = options;
    return status;
}
