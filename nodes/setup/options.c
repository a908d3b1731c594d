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

static int parse_epoch(const char *name, const char *text, int64_t *out)
{
    uint64_t epoch = 0;
    if (strcmp(text, "best") == 0) {
        *out = PLAN_FROM_BEST;
        return LS_OK;
    }
    if (parse_between(name, text, 0, INT64_MAX, &epoch) != LS_OK)
        return ls_error(LS_EINVAL,
                        "%s %s: expected best, or the whole number of an epoch",
                        name, text);
    *out = (int64_t)epoch;
    return LS_OK;
}

/* ---- how options are read ---- */

struct option_spec;

/* Reads what follows an option; text: NULL: nothing does. */
typedef int option_fn(struct options *out, const struct option_spec *spec,
                      char *text);

struct option_spec {
    const char *name;
    const char *value; /* what follows it, for messages; NULL: nothing */
    unsigned on;       /* the commands that take it */
    option_fn *read;
    size_t at;            /* in struct options: where it goes */
    uint64_t least, most; /* of a number */
};

static void *place_of(struct options *out, const struct option_spec *spec)
{
    return (char *)out + spec->at;
}

static int read_flag(struct options *out, const struct option_spec *spec,
                     char *text)
{
    (void)text;
    *(bool *)place_of(out, spec) = true;
    return LS_OK;
}

static int read_text(struct options *out, const struct option_spec *spec,
                     char *text)
{
    *(const char **)place_of(out, spec) = text;
    return LS_OK;
}

static int read_count(struct options *out, const struct option_spec *spec,
                      char *text)
{
    return parse_between(spec->name, text, spec->least, spec->most,
                         place_of(out, spec));
}

/* An int, or one of its size without a sign. */
static int read_number(struct options *out, const struct option_spec *spec,
                       char *text)
{
    uint64_t number = 0;
    const int status = parse_between(spec->name, text, 0, spec->most, &number);
    *(unsigned *)place_of(out, spec) = (unsigned)number;
    return status;
}

static int read_seconds(struct options *out, const struct option_spec *spec,
                        char *text)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value) || value <= 0.0 ||
        value > 1e9)
        return ls_error(LS_EINVAL,
                        "%s %s: expected seconds, more than 0, as in %s 30",
                        spec->name, text, spec->name);
    *(double *)place_of(out, spec) = value;
    return LS_OK;
}

static int read_epoch(struct options *out, const struct option_spec *spec,
                      char *text)
{
    return parse_epoch(spec->name, text, place_of(out, spec));
}

static int read_seed(struct options *out, const struct option_spec *spec,
                     char *text)
{
    out->seed = text;
    return read_count(out, spec, text);
}

static int read_patience(struct options *out, const struct option_spec *spec,
                         char *text)
{
    out->patience = text;
    return read_seconds(out, spec, text);
}

static int read_wait(struct options *out, const struct option_spec *spec,
                     char *text)
{
    const int status = read_number(out, spec, text);
    if (out->wait_ms == 0)
        out->wait_ms = 1;
    return status;
}

static int read_refresh(struct options *out, const struct option_spec *spec,
                        char *text)
{
    const int status = read_seconds(out, spec, text);
    return status != LS_OK || (out->every_s >= 0.1 && out->every_s <= 25.0)
               ? status
               : ls_error(LS_EINVAL, "%s %s: expected 0.1 to 25 seconds",
                          spec->name, text);
}

static int check_repeats(const char *name, size_t n)
{
    return n < OPTIONS_REPEATS_MAX
               ? LS_OK
               : ls_error(LS_EINVAL, "%s: at most %d of them", name,
                          OPTIONS_REPEATS_MAX);
}

static int add_id(struct options *out, const char *text, uint32_t id)
{
    for (size_t i = 0; i < out->n_ids; i++)
        if (out->ids[i] == id)
            return ls_error(LS_EINVAL, "--id %s: it is given twice", text);
    const int status = check_repeats("--id", out->n_ids);
    if (status == LS_OK)
        out->ids[out->n_ids++] = id;
    return status;
}

static int read_id(struct options *out, const struct option_spec *spec,
                   char *text)
{
    uint64_t id = 0;
    const int status = parse_between(spec->name, text, 0, UINT32_MAX, &id);
    if (status == LS_OK && out->command == COMMAND_KEYGEN)
        return add_id(out, text, (uint32_t)id);
    out->id = (uint32_t)id;
    out->has_id = true;
    return status;
}

static int add_set(struct options *out, const char *path, const char *value)
{
    const int status = check_repeats("--set", out->n_sets);
    if (status != LS_OK)
        return status;
    out->sets[out->n_sets].path = path;
    out->sets[out->n_sets++].value = value;
    return LS_OK;
}

static int read_set(struct options *out, const struct option_spec *spec,
                    char *text)
{
    char *equals = strchr(text, '=');
    (void)spec;
    if (equals == NULL || equals == text)
        return ls_error(LS_EINVAL,
                        "--set %s: expected key=value, as in "
                        "--set collector.steps=128",
                        text);
    *equals = '\0';
    return add_set(out, text, equals + 1);
}

/* --nodes 9 is --set nodes.0.count=9. */
static int read_nodes(struct options *out, const struct option_spec *spec,
                      char *text)
{
    uint64_t number;
    const int status = parse_between(spec->name, text, 0, UINT32_MAX, &number);
    return status == LS_OK ? add_set(out, "nodes.0.count", text) : status;
}

static int read_attach(struct options *out, const struct option_spec *spec,
                       char *text)
{
    const int status = check_repeats(spec->name, out->n_attach);
    if (status == LS_OK)
        out->attach[out->n_attach++] = text;
    return status;
}

static int read_as(struct options *out, const struct option_spec *spec,
                   char *text)
{
    (void)spec;
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

/* A folder of such a name is made with a slash in it. */
static int read_output(struct options *out, const struct option_spec *spec,
                       char *text)
{
    (void)spec;
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

/* ---- the options ---- */

#define AT(member)         offsetof(struct options, member)
#define FLAG(member)       .read = read_flag, .at = AT(member)
#define TEXT(member)       .read = read_text, .at = AT(member)
#define SECONDS(member)    .read = read_seconds, .at = AT(member)
#define NUMBER(member, to) .read = read_number, .at = AT(member), .most = (to)
#define COUNT(member, from, to)                                                \
    .read = read_count, .at = AT(member), .least = (from), .most = (to)

static const struct option_spec specs[] = {
    {"--seed", "a number", ON_ALL | ON(COMMAND_EVAL), .read = read_seed,
     .at = AT(first_seed), .most = INT64_MAX},
    {"--set", "key=value", ON_ALL | ON_KEYS | ON_POLICY, .read = read_set},
    {"--out", "a folder", ON_ALL, TEXT(out)},
    {"--json", NULL,
     ON_ALL | ON_BENCH | ON_KEYS | ON(COMMAND_TRACE) | ON_POLICY |
         ON_CHECKPOINT,
     FLAG(json)},
    {"--nodes", "a number of nodes", ON_ALL | ON_KEYS, .read = read_nodes},
    {"--as", "processes, threads, sim or compose", ON_RUN, .read = read_as},
    {"--timeout", "seconds", ON_RUN | ON_REPLAY, SECONDS(timeout_s)},
    {"--faults", "a name or a file", ON_SIM, TEXT(faults)},
    {"--event-log", "a file", ON_SIM | ON_REPLAY, TEXT(event_log)},
    {"--seeds", "a number of seeds", ON(COMMAND_SIM),
     COUNT(n_seeds, 1, INT64_MAX)},
    {"--first", "a seed", ON(COMMAND_SIM), COUNT(first_seed, 0, INT64_MAX)},
    {"--sabotage", "what to break", ON(COMMAND_SIM), TEXT(sabotage)},
    {"--minimize", "a file", ON(COMMAND_SIM), TEXT(minimize)},
    {"--jobs", "a number of processes", ON(COMMAND_SIM),
     COUNT(jobs, 1, LS_CORES_MAX)},
    {"--coverage", NULL, ON(COMMAND_SIM), FLAG(coverage)},
    {"--every", "a number of seeds", ON(COMMAND_SIM),
     COUNT(every, 1, LS_CORES_MAX)},
    {"--devices", "names of devices", ON_BENCH, TEXT(bench.devices)},
    {"--seconds", "seconds", ON_BENCH, SECONDS(bench.seconds)},
    {"--queue", "a number of batches", ON_BENCH,
     COUNT(bench.queue, 1, 1000000)},
    {"--stacks", "a number of stacks", ON_BENCH, COUNT(bench.stacks, 1, 1024)},
    {"--loaders", "a number of threads", ON_BENCH,
     COUNT(bench.loaders, 0, 1024)},
    {"--passes", "a number of passes", ON_BENCH,
     COUNT(bench.passes, 1, 1000000)},
    {"--load-us", "a time in us", ON_BENCH, COUNT(bench.load_us, 0, 60000000)},
    {"--train-us", "a time in us", ON_BENCH,
     COUNT(bench.train_us, 0, 60000000)},
    {"--batch-bytes", "a number of bytes", ON_BENCH,
     COUNT(bench.batch_bytes, 1, UINT64_C(1) << 40)},
    {"--enrolment", NULL, ON_KEYS, FLAG(enrolment)},
    {"--id", "a node's id", ON_JOIN | ON_KEYS | ON(COMMAND_HEALTH),
     .read = read_id},
    {"--role", "a role", ON(COMMAND_NODE), TEXT(role)},
    {"--identity", "a folder", ON(COMMAND_NODE), TEXT(identity)},
    {"--bind", "an endpoint", ON_JOIN, TEXT(bind)},
    {"--advertise", "an endpoint", ON_JOIN, TEXT(advertise)},
    {"--attach", "an endpoint", ON_JOIN, .read = read_attach},
    {"--report-fd", "a descriptor", ON(COMMAND_NODE),
     NUMBER(report_fd, INT_MAX)},
    {"--secret-fd", "a descriptor", ON(COMMAND_NODE),
     NUMBER(secret_fd, INT_MAX)},
    {"--parent", "a process id", ON(COMMAND_NODE), NUMBER(parent, INT_MAX)},
    {"--life", "a number", ON(COMMAND_NODE), NUMBER(life, UINT32_MAX)},
    {"--run", "a number", ON(COMMAND_NODE), TEXT(run)},
    {"--fresh", NULL, ON(COMMAND_RUN) | ON(COMMAND_NODE), FLAG(fresh)},
    {"--resume", "latest, or the number of a run", ON(COMMAND_RUN),
     TEXT(resume)},
    {"--epoch", "best, or the epoch of a checkpoint",
     ON(COMMAND_RUN) | ON(COMMAND_NODE) | ON_POLICY, .read = read_epoch,
     .at = AT(epoch)},
    {"--gone", "ids", ON(COMMAND_NODE), TEXT(gone)},
    {"--wait-ms", "milliseconds", ON(COMMAND_CALL), .read = read_wait,
     .at = AT(wait_ms), .most = WAIT_MS_MAX},
    {"--channel", "a number", ON(COMMAND_CALL), NUMBER(channel, UINT32_MAX)},
    {"--steps", "a number of iterations", ON(COMMAND_PROFILE),
     COUNT(n_steps, 1, 1000000000)},
    {"--html", "a file", ON_PROFILE, TEXT(html)},
    {"--metrics", "a file", ON_PROFILE, TEXT(metrics)},
    {"--trace", "a file", ON(COMMAND_PROFILE), TEXT(pftrace)},
    {"--out", "a file", ON(COMMAND_TRACE), TEXT(pftrace)},
    {"--patience", "seconds", ON(COMMAND_RUN) | ON(COMMAND_NODE),
     .read = read_patience, .at = AT(patience_s)},
    {"--record", "a file", ON(COMMAND_RUN) | ON(COMMAND_NODE), TEXT(record)},
    {"--output", "all, only_error or a folder", ON(COMMAND_RUN),
     .read = read_output},
    {"--out", "a file", ON(COMMAND_EXPORT) | ON_CHECKPOINT, TEXT(out)},
    {"--force", NULL, ON(COMMAND_EXPORT) | ON_CHECKPOINT, FLAG(force)},
    {"--episodes", "a number of episodes", ON(COMMAND_EVAL),
     COUNT(n_episodes, 1, 1000000000)},
    {"--node", "a node's id", ON_REPLAY, .read = read_id, .at = AT(id),
     .most = UINT32_MAX},
    {"--within", "seconds", ON(COMMAND_HEALTH), SECONDS(within_s)},
    {"--stop-is-done", NULL, ON(COMMAND_NODE), FLAG(stop_is_done)},
    {"--watch", NULL, ON(COMMAND_STATUS), FLAG(watch)},
    {"--every", "seconds", ON(COMMAND_STATUS) | ON(COMMAND_TOP),
     .read = read_refresh, .at = AT(every_s)},
    {"--keep-last", "a number of checkpoints", ON_CHECKPOINT,
     COUNT(checkpoint.keep_last, 1, INT32_MAX)},
    {"--every", "a number of epochs", ON_CHECKPOINT,
     COUNT(checkpoint.keep_every, 1, INT64_MAX)},
    {"--best", "a number of checkpoints", ON_CHECKPOINT,
     COUNT(checkpoint.keep_best, 1, INT32_MAX)},
    {"--metric", "the name of a metric", ON_CHECKPOINT,
     TEXT(checkpoint.metric)},
    {"--least", NULL, ON_CHECKPOINT, FLAG(checkpoint.least)},
    {"--node", "a node's name", ON_CHECKPOINT, TEXT(checkpoint.node)},
    {"--blob", "a blob's name", ON_CHECKPOINT, TEXT(checkpoint.blob)},
};
#define N_SPECS (sizeof specs / sizeof specs[0])

/* ---- what `lockstep bench` takes ---- */

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

/* One that comes before a configuration. */
static int word_before(struct options *out, const char **place,
                       const char *what, const char *text)
{
    if (*place != NULL && out->config != NULL)
        return ls_error(LS_EINVAL,
                        "\"%s\" is one word too many: there is one %s and one "
                        "configuration",
                        text, what);
    *(*place == NULL ? place : &out->config) = text;
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

/* ---- what `lockstep eval` and `lockstep export` take ---- */

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

static bool names_path(const struct option_spec *spec)
{
    return spec->value != NULL && (strcmp(spec->value, "a file") == 0 ||
                                   strcmp(spec->value, "a folder") == 0);
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
    if (spec->at == AT(resume) && value == NULL)
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
    if (value != NULL && value[0] == '\0' && names_path(spec))
        return ls_error(LS_EINVAL, "%s: %s must follow it, not \"\"", text,
                        spec->value);
    return spec->read(out, spec, value);
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
        return word_before(out, &out->folder, "folder", text);
    if (ON(out->command) & ON_POLICY)
        return word_before(out, &out->policy, "policy", text);
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
    const bool same = strcmp(a, b) == 0 || (real_a != NULL && real_b != NULL &&
                                            strcmp(real_a, real_b) == 0);
    free(real_a);
    free(real_b);
    return same;
}

/* One slip of completion would have what is read, or was written just before,
 * replaced by what is written. */
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
    for (size_t k = 1; k < sizeof written / sizeof written[0]; k++)
        for (size_t i = 0; i < k; i++)
            if (written[i].path != NULL && written[k].path != NULL &&
                is_same_file(written[i].path, written[k].path))
                return ls_error(LS_EINVAL,
                                "%s and %s would both be written to %s: name "
                                "two files",
                                written[i].option, written[k].option,
                                written[k].path);
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
