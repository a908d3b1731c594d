#include "faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const fault_names[FAULT_N_KINDS + 1] = {
    "cut",     "heal",     "reset", "shape", "pause", "resume", "kill",
    "restart", "stranger", "clock", "power", "full",  "room",   NULL};

static const struct preset {
    const char *name;
    const char *text;
} presets[] = {
    {"none", ""},
    {"lossy", "network: {delay_ms: 1, jitter_ms: 5, loss: 0.05,\n"
              "          duplicate: 0.05, reorder: 0.1}\n"},
    {"cuts", "random:\n"
             "  cuts: {count: 4, one_way: 0.5, length_ms: 5000}\n"
             "  resets: 4\n"
             "  within_s: 3\n"},
    {"pauses", "random:\n"
               "  pauses: {count: 3, length_ms: 4000}\n"
               "  skew: {offset_ms: 1000, drift: 0.001}\n"
               "  steps: {count: 2, by_ms: 500}\n"
               "  within_s: 3\n"},
    {"crashes", "random:\n"
                "  kills: 3\n"
                "  power_cuts: 2\n"
                "  full: {count: 1, length_ms: 1000}\n"
                "  restart_ms: 500\n"
                "  within_s: 3\n"},
    {"stranger", "random:\n"
                 "  strangers: {count: 3, length_ms: 4000}\n"
                 "  within_s: 2\n"},
    {"all", "network: {delay_ms: 1, jitter_ms: 5, loss: 0.05,\n"
            "          duplicate: 0.05, reorder: 0.1}\n"
            "random:\n"
            "  cuts: {count: 2, one_way: 0.5, length_ms: 5000}\n"
            "  resets: 3\n"
            "  pauses: {count: 2, length_ms: 4000}\n"
            "  kills: 2\n"
            "  power_cuts: 1\n"
            "  full: {count: 1, length_ms: 1000}\n"
            "  restart_ms: 500\n"
            "  skew: {offset_ms: 1000, drift: 0.001}\n"
            "  steps: {count: 2, by_ms: 500}\n"
            "  within_s: 3\n"},
};
#define N_PRESETS (sizeof presets / sizeof presets[0])

#define DAY_MS 86400000.0

static int64_t read_ms(ls_config_section *section, const char *key,
                       double fallback)
{
    return (int64_t)(ls_config_double(section, key, fallback, 0.0, DAY_MS) *
                     (double)LS_NS_PER_MS);
}

static struct ls_network_path read_path(ls_config_section *section,
                                        const struct ls_network_path *from)
{
    const double ms = (double)LS_NS_PER_MS;
    return (struct ls_network_path){
        .delay_ns = read_ms(section, "delay_ms", (double)from->delay_ns / ms),
        .jitter_ns =
            read_ms(section, "jitter_ms", (double)from->jitter_ns / ms),
        .loss = ls_config_double(section, "loss", from->loss, 0.0, 1.0),
        .duplicate =
            ls_config_double(section, "duplicate", from->duplicate, 0.0, 1.0),
        .reorder =
            ls_config_double(section, "reorder", from->reorder, 0.0, 1.0),
        .bytes_per_s = (uint64_t)ls_config_int(
            section, "bytes_per_s", (int64_t)from->bytes_per_s, 0, INT64_MAX),
    };
}

static void read_random(struct faults_random *out, ls_config_section *section)
{
    ls_config_section *cuts = ls_config_section_at(section, "cuts");
    ls_config_section *pauses = ls_config_section_at(section, "pauses");
    ls_config_section *strangers = ls_config_section_at(section, "strangers");
    ls_config_section *full = ls_config_section_at(section, "full");
    ls_config_section *skew = ls_config_section_at(section, "skew");
    ls_config_section *steps = ls_config_section_at(section, "steps");
    out->cuts = (uint64_t)ls_config_int(cuts, "count", 0, 0, 1000);
    out->one_way = ls_config_double(cuts, "one_way", 0.5, 0.0, 1.0);
    out->cut_ns = read_ms(cuts, "length_ms", 1000.0);
    out->resets = (uint64_t)ls_config_int(section, "resets", 0, 0, 1000);
    out->pauses = (uint64_t)ls_config_int(pauses, "count", 0, 0, 1000);
    out->pause_ns = read_ms(pauses, "length_ms", 1000.0);
    out->kills = (uint64_t)ls_config_int(section, "kills", 0, 0, 1000);
    out->strangers = (uint64_t)ls_config_int(strangers, "count", 0, 0, 1000);
    out->stranger_ns = read_ms(strangers, "length_ms", 1000.0);
    out->power_cuts =
        (uint64_t)ls_config_int(section, "power_cuts", 0, 0, 1000);
    out->full = (uint64_t)ls_config_int(full, "count", 0, 0, 1000);
    out->full_ns = read_ms(full, "length_ms", 1000.0);
    out->restart_ns = read_ms(section, "restart_ms", 500.0);
    out->offset_ns = read_ms(skew, "offset_ms", 0.0);
    out->drift = ls_config_double(skew, "drift", 0.0, 0.0, 0.1);
    out->steps = (uint64_t)ls_config_int(steps, "count", 0, 0, 1000);
    out->step_ns = read_ms(steps, "by_ms", 500.0);
    out->within_ns =
        (int64_t)(ls_config_double(section, "within_s", 3.0, 0.001, 86400.0) *
                  (double)LS_NS_PER_S);
}

static bool is_id(const struct plan *plan, uint64_t id)
{
    for (size_t i = 0; i < plan->n_nodes; i++) {
        if (plan->nodes[i].id == id)
            return true;
    }
    return false;
}

/* One end of a link: an id or "all"; moves *text behind it. */
static bool read_end(const char **text, uint32_t *out)
{
    char *end;
    *out = FAULT_ALL;
    if (strncmp(*text, "all", 3) == 0) {
        *text += 3;
        return true;
    }
    if (**text < '0' || **text > '9')
        return false;
    const unsigned long long id = strtoull(*text, &end, 10);
    *out = (uint32_t)id;
    *text = end;
    return id < FAULT_ALL;
}

/* "0 > 2": from 0 to 2; "0 - 2": both ways; "all" stands for every node. */
static void read_link(struct fault *out, ls_config_section *item,
                      const char *key, const struct plan *plan)
{
    const char *text = ls_config_string(item, key, NULL);
    if (text == NULL)
        return;
    const char *at = text;
    char way = '\0';
    bool good = read_end(&at, &out->from);
    int used = 0;
    good = good && sscanf(at, " %c %n", &way, &used) == 1 &&
           (way == '>' || way == '-');
    at += used;
    good = good && read_end(&at, &out->to) && *at == '\0';
    out->both = way == '-';
    if (!good)
        ls_config_problem(item, key,
                          "\"%s\" is not a link: write \"0 > 2\" for one way, "
                          "\"0 - 2\" for both, \"2 - all\" for every link of 2",
                          text);
    else if ((out->from != FAULT_ALL && !is_id(plan, out->from)) ||
             (out->to != FAULT_ALL && !is_id(plan, out->to)))
        ls_config_problem(item, key, "%s has no such node", plan->path);
}

static void read_node(struct fault *out, ls_config_section *item,
                      const char *key, const struct plan *plan)
{
    out->from = (uint32_t)ls_config_int(item, key, 0, 0, UINT32_MAX - 1);
    if (!is_id(plan, out->from))
        ls_config_problem(item, key, "%s has no node %u", plan->path,
                          (unsigned)out->from);
}

/* The one fault that an item names; FAULT_N_KINDS when it names none. */
static enum fault_kind read_kind(ls_config_section *item)
{
    enum fault_kind found = FAULT_N_KINDS;
    for (size_t i = 0; i < FAULT_N_KINDS; i++) {
        if (!ls_config_has(item, fault_names[i]))
            continue;
        if (found != FAULT_N_KINDS)
            ls_config_problem(item, fault_names[i],
                              "one fault an item; this one has a %s already",
                              fault_names[found]);
        found = (enum fault_kind)i;
    }
    if (found == FAULT_N_KINDS)
        ls_config_problem(
            item, NULL,
            "what happens then? One of cut, heal, reset, shape, "
            "pause, resume, kill, restart, stranger, clock, power, full and "
            "room must be here");
    return found;
}

enum fault_kind faults_end_of(enum fault_kind kind)
{
    switch (kind) {
    case FAULT_CUT:
        return FAULT_HEAL;
    case FAULT_SHAPE:
        return FAULT_SHAPE;
    case FAULT_PAUSE:
        return FAULT_RESUME;
    case FAULT_KILL:
    case FAULT_POWER:
        return FAULT_RESTART;
    case FAULT_FULL:
        return FAULT_ROOM;
    default:
        return FAULT_N_KINDS;
    }
}

/* Two places are there for it. */
static void read_item(struct faults *out, ls_config_section *item,
                      const struct plan *plan)
{
    struct fault fault = {.kind = read_kind(item)};
    (void)ls_config_require(item, "at");
    /* One that was drawn may end, or restart, days after it began. */
    fault.at = (int64_t)(ls_config_double(item, "at", 0.0, 0.0, 4 * 86400.0) *
                         (double)LS_NS_PER_S);
    if (fault.kind < FAULT_PAUSE)
        read_link(&fault, item, fault_names[fault.kind], plan);
    else if (fault.kind < FAULT_N_KINDS)
        read_node(&fault, item, fault_names[fault.kind], plan);
    if (fault.kind == FAULT_SHAPE)
        fault.path =
            read_path(ls_config_section_at(item, "network"), &out->path);
    if (fault.kind == FAULT_STRANGER && ls_config_has(item, "for_ms"))
        fault.length_ns = read_ms(item, "for_ms", 0.0);
    if (fault.kind == FAULT_CLOCK) {
        (void)ls_config_require(item, "by_ms");
        fault.length_ns =
            (int64_t)(ls_config_double(item, "by_ms", 0.0, -DAY_MS, DAY_MS) *
                      (double)LS_NS_PER_MS);
    }
    struct fault end = fault;
    end.kind = faults_end_of(fault.kind);
    end.path = out->path;
    if (fault.kind == FAULT_N_KINDS)
        return;
    out->script[out->n_script++] = fault;
    if (end.kind != FAULT_N_KINDS && ls_config_has(item, "for_ms")) {
        end.at += read_ms(item, "for_ms", 0.0);
        out->script[out->n_script++] = end;
    }
}

static int read_faults(struct faults *out, const struct plan *plan)
{
    static const struct ls_network_path near = {.delay_ns = 50 * LS_NS_PER_US};
    ls_config_section *root = ls_config_root(out->config);
    out->path = read_path(ls_config_section_at(root, "network"), &near);
    read_random(&out->random, ls_config_section_at(root, "random"));
    const size_t n = ls_config_n_sections(root, "script");
    out->script = calloc(2 * n + 1, sizeof *out->script);
    if (out->script == NULL)
        return ls_error(LS_ENOMEM, "reading faults");
    for (size_t i = 0; i < n; i++)
        read_item(out, ls_config_item(root, "script", i), plan);
    return ls_config_finish(out->config);
}

const char *faults_preset(const char *name)
{
    for (size_t i = 0; i < N_PRESETS; i++) {
        if (strcmp(presets[i].name, name) == 0)
            return presets[i].text;
    }
    return NULL;
}

static int no_such(const char *name)
{
    const char *names[N_PRESETS];
    for (size_t i = 0; i < N_PRESETS; i++)
        names[i] = presets[i].name;
    const char *nearest = ls_nearest(name, names, N_PRESETS);
    if (nearest != NULL)
        return ls_error(LS_ENOENT,
                        "faults %s: no such file; did you mean \"%s\"?", name,
                        nearest);
    return ls_error(
        LS_ENOENT,
        "faults %s: no such file, and none of none, lossy, cuts, "
        "pauses, crashes, stranger and all; see lockstep help faults",
        name);
}

int faults_load(struct faults *out, const char *name, const struct plan *plan)
{
    memset(out, 0, sizeof *out);
    const char *text = faults_preset(name);
    const int status = text != NULL ? ls_config_parse(&out->config, name, text)
                                    : ls_config_load(&out->config, name);
    if (status == LS_ENOENT)
        return no_such(name);
    return status == LS_OK ? read_faults(out, plan) : status;
}

void faults_fini(struct faults *faults)
{
    ls_config_destroy(&faults->config);
    free(faults->script);
    memset(faults, 0, sizeof *faults);
}
