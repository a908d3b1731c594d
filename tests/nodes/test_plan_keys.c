/* Every key of a configuration, in every kind of job: where it does nothing it
 * is refused, with words that name the key, the job and what to do. The list of
 * keys is what reading a plan asks for. house.config_keys looks for each key in
 * the test that is said to show what it does, and on the page of keys. */
#include "plan_reading.h"

#include "../../framework/base/config/config_parts.h"
#include "test.h"

enum { IN_STEP = 1, SERVICE = 2, MEMBERS = 4, LEARNING = 3, ALL = 7 };

static const struct kind {
    int bit;
    const char *name, *text;
} kinds[] = {
    {IN_STEP, "a job in lock step",
     "plugin: p\nnodes: [{role: learner}, {role: collector, count: 2},\n"
     "  {role: evaluator}]\n"},
    {SERVICE, "a service job",
     "plugin: p\nnodes: [{role: coordinator, on_loss: restart},\n"
     "  {role: collector, count: 2}, {role: learner, count: 2}]\n"},
    {MEMBERS, "a job of members", "nodes: [{role: member, count: 3}]\n"},
};

/* A key, a value that is not its default, where it does something, what must be
 * set beside it, and the test that shows what it does. */
static const struct row {
    const char *path, *value;
    int heeded;
    const char *with, *with_value;
    const char *shown;
} rows[] = {
    /* clang-format off */
    {"job", "other", ALL, "", "", "tests/nodes/test_plan.c"},
    {"seed", "7", ALL, "", "", "tests/e2e/test_run_seeds.bats"},
    {"plugin", "q", LEARNING, "", "", "tests/e2e/test_bad_input.bats"},
    {"out", "elsewhere", ALL, "", "", "tests/e2e/test_run.bats"},
    {"env", "{a: 1}", LEARNING, "", "", "tests/e2e/test_sizes.bats"},
    {"policy", "{a: 1}", LEARNING, "", "", "tests/e2e/test_sizes.bats"},
    {"world.topology", "star", ALL, "", "", "tests/e2e/test_run.bats"},
    {"world.transport", "ipc", ALL, "", "", "tests/e2e/test_run.bats"},
    {"world.ports", "4000-4010", ALL, "", "", "tests/nodes/test_plan.c"},
    {"world.dir", "/tmp", ALL, "world.transport", "ipc", "tests/nodes/test_plan.c"},
    {"world.start_timeout_s", "2", ALL, "", "", "tests/e2e/test_waits.bats"},
    {"world.step_timeout_s", "9", ALL, "", "", "tests/e2e/test_waits.bats"},
    {"world.heartbeat_ms", "100", ALL, "", "", "tests/e2e/test_run_policy.bats"},
    {"world.silence_ms", "900", ALL, "", "", "tests/e2e/test_run_policy.bats"},
    {"world.shared_mib", "8", ALL, "", "", "tests/e2e/test_sim.bats"},
    {"world.insecure", "true", ALL, "", "", "tests/e2e/test_security.bats"},
    {"world.leases", "tcp://127.0.0.1:4000", ALL, "nodes.1", "{role: X, replicas: 1}",
     "tests/nodes/test_plan_lease.c"},
    {"security.mode", "curve", ALL, "security.keys", "k", "tests/e2e/test_security.bats"},
    {"security.keys", "k", ALL, "security.mode", "curve", "tests/e2e/test_security.bats"},
    {"security.allow", "192.0.2.7", ALL, "", "", "tests/nodes/test_plan_security.c"},
    {"security.deny", "192.0.2.7", ALL, "", "", "tests/nodes/test_plan_security.c"},
    {"nodes.0.role", "evaluator", 0, "", "", "tests/nodes/test_plan.c"}, /* no job */
    {"nodes.0.id", "9", ALL, "", "", "tests/nodes/test_plan.c"},
    {"nodes.0.count", "1", ALL, "", "", "tests/nodes/test_plan.c"},
    {"nodes.1.replicas", "1", ALL, "nodes.1", "{role: X}", "tests/nodes/test_plan_lease.c"},
    {"nodes.0.labels", "fast", 0, "", "", "tests/e2e/test_config_keys.bats"},
    {"nodes.0.host", "localhost", ALL, "", "", "tests/nodes/test_plan.c"},
    {"nodes.0.bind", "ipc:///tmp/{id}", ALL, "", "", "tests/nodes/test_plan.c"},
    {"nodes.0.advertise", "ipc:///tmp/a", ALL, "", "", "tests/nodes/test_plan.c"},
    {"nodes.0.attach", "ipc:///tmp/a", ALL, "", "", "tests/nodes/test_plan.c"},
    {"nodes.0.on_loss", "restart", ALL, "", "", "tests/e2e/test_run_policy.bats"},
    {"nodes.0.max_restarts", "1", ALL, "nodes.0.on_loss", "restart",
     "tests/e2e/test_run_policy.bats"},
    {"nodes.0.restart_window_s", "9", ALL, "nodes.0.on_loss", "restart",
     "tests/e2e/test_run_policy.bats"},
    {"nodes.0.backoff_ms", "1", ALL, "nodes.0.on_loss", "restart",
     "tests/e2e/test_run_policy.bats"},
    {"learner.queue", "4", LEARNING, "", "", "tests/nodes/test_plan.c"},
    {"learner.stacks", "2", LEARNING, "", "", "tests/nodes/test_training.c"},
    {"learner.loaders", "2", LEARNING, "", "", "tests/nodes/test_training.c"},
    {"learner.passes", "2", LEARNING, "", "", "tests/nodes/test_training.c"},
    {"learner.device", "cuda", LEARNING, "", "", "tests/e2e/test_run.bats"},
    {"learner.driver", "single", LEARNING, "", "", "tests/nodes/test_plan_shared.c"},
    {"learner.ranks", "2", SERVICE, "learner.driver", "bus",
     "tests/nodes/test_plan_shared.c"},
    {"checkpoint.every", "2", IN_STEP, "", "", "tests/e2e/test_resume.bats"},
    {"checkpoint.seconds", "2", IN_STEP, "", "", "tests/e2e/test_resume.bats"},
    {"checkpoint.keep_last", "3", IN_STEP, "", "", "tests/e2e/test_resume.bats"},
    {"checkpoint.keep_every", "2", IN_STEP, "", "", "tests/e2e/test_resume.bats"},
    {"checkpoint.best", "2", IN_STEP, "", "", "tests/e2e/test_resume.bats"},
    {"checkpoint.on_fail", "go_on", IN_STEP, "", "", "tests/e2e/test_resume.bats"},
    {"checkpoint.replay", "true", SERVICE, "coordinator.data.store", "files",
     "tests/e2e/test_service.bats"},
    {"collector.envs", "2", LEARNING, "", "", "tests/e2e/test_sizes.bats"},
    {"collector.steps", "2", LEARNING, "", "", "tests/e2e/test_sizes.bats"},
    {"collector.threads", "2", IN_STEP | SERVICE, "", "", "tests/e2e/test_config_keys.bats"},
    {"evaluator.episodes", "2", LEARNING, "", "", "tests/e2e/test_run.bats"},
    {"evaluator.solved", "9", LEARNING, "", "", "tests/e2e/test_run.bats"},
    {"evaluator.every", "2", IN_STEP, "", "", "tests/e2e/test_run.bats"},
    {"stop.env_step", "9", LEARNING, "", "", "tests/e2e/test_run.bats"},
    {"stop.minutes", "9", ALL, "", "", "tests/e2e/test_waits.bats"},
    {"trace.records", "8", ALL, "", "", "tests/e2e/test_trace.bats"},
    {"trace.all", "true", ALL, "", "", "tests/e2e/test_trace.bats"},
    {"barrier.epochs", "9", MEMBERS, "", "", "tests/e2e/test_sim.bats"},
    {"barrier.failures", "9", MEMBERS, "", "", "tests/e2e/test_leases.bats"},
    {"barrier.timeout_ms", "9", MEMBERS, "", "", "tests/nodes/test_checks_members.c"},
    {"barrier.pace_ms", "9", MEMBERS, "", "", "tests/e2e/test_sim.bats"},
    {"barrier.events", "9", MEMBERS, "", "", "tests/e2e/test_sim.bats"},
    {"sim.hosts", "2", ALL, "", "", "tests/e2e/test_sim.bats"},
    {"sim.epochs", "9", MEMBERS, "", "", "tests/e2e/test_sim_jobs.bats"},
    {"sim.events", "9", MEMBERS, "", "", "tests/e2e/test_sim.bats"},
    {"sim.blocking", "9", MEMBERS, "", "", "tests/e2e/test_sim.bats"},
    {"sim.pace_ms", "9", SERVICE | MEMBERS, "", "", "tests/e2e/test_sim.bats"},
    {"coordinator.iterations", "9", SERVICE, "", "", "tests/e2e/test_service.bats"},
    {"coordinator.eval_interval_s", "9", SERVICE, "", "", "tests/e2e/test_sizes.bats"},
    {"coordinator.batch", "9", SERVICE, "", "", "tests/e2e/test_sizes.bats"},
    {"coordinator.samples_per_work", "0", SERVICE, "", "", "tests/e2e/test_config_keys.bats"},
    {"coordinator.unroll", "9", SERVICE, "", "", "tests/e2e/test_sizes.bats"},
    {"coordinator.split", "2", SERVICE, "", "", "tests/e2e/test_config_keys.bats"},
    {"coordinator.ahead", "9", SERVICE, "", "", "tests/e2e/test_config_keys.bats"},
    {"coordinator.send_policy_freq", "9", SERVICE, "", "", "tests/e2e/test_config_keys.bats"},
    {"coordinator.send_info_freq", "9", SERVICE, "", "", "tests/e2e/test_config_keys.bats"},
    {"coordinator.patience_s", "9", SERVICE, "", "", "tests/e2e/test_service.bats"},
    {"coordinator.journal", "false", SERVICE, "", "", "tests/e2e/test_sim_service.bats"},
    {"coordinator.learner_expiry_s", "9", SERVICE, "", "", "tests/e2e/test_service.bats"},
    {"coordinator.collector_expiry_s", "9", SERVICE, "", "", "tests/e2e/test_config_keys.bats"},
    {"coordinator.retry_s", "9", SERVICE, "", "", "tests/e2e/test_service_faults.bats"},
    {"coordinator.channel", "9", SERVICE, "", "", "tests/e2e/test_service.bats"},
    {"coordinator.data.store", "files", SERVICE, "", "", "tests/e2e/test_service.bats"},
    {"coordinator.data.path_data", "/tmp", SERVICE, "coordinator.data.store", "files",
     "tests/nodes/test_plan_service.c"},
    {"coordinator.data.path_policy", "/tmp", SERVICE, "coordinator.data.store", "files",
     "tests/nodes/test_plan_service.c"},
    {"coordinator.data.max_mib", "9", SERVICE, "", "", "tests/e2e/test_sizes.bats"},
    {"coordinator.data.home", "0", SERVICE, "", "", "tests/e2e/test_config_keys.bats"},
    {"coordinator.replay.mode", "priority", SERVICE, "", "", "tests/e2e/test_config_keys.bats"},
    {"coordinator.replay.capacity", "99", SERVICE, "", "", "tests/nodes/test_replay.c"},
    {"coordinator.replay.min_size", "9", SERVICE, "", "", "tests/e2e/test_config_keys.bats"},
    {"coordinator.replay.valid_ratio", "2", SERVICE, "", "", "tests/e2e/test_config_keys.bats"},
    {"coordinator.replay.samples_per_insert", "2", SERVICE, "", "", "tests/nodes/test_replay.c"},
    {"coordinator.replay.error_buffer", "99", SERVICE, "coordinator.replay.samples_per_insert", "1",
     "tests/nodes/test_replay.c"},
    {"coordinator.replay.max_staleness", "9", SERVICE, "", "", "tests/e2e/test_config_keys.bats"},
    {"coordinator.replay.max_times_sampled", "9", SERVICE, "", "",
     "tests/e2e/test_config_keys.bats"},
    /* clang-format on */
};
#define N_ROWS (sizeof rows / sizeof rows[0])

/* The role that a second item of nodes has. */
static const char *second_role(int kind)
{
    return kind == MEMBERS ? "member" : "collector";
}

static void set(ls_config *config, int kind, const char *path,
                const char *value)
{
    char text[128];
    const char *mark = strstr(value, "X");
    if (mark == NULL || strncmp(path, "nodes.1", 7) != 0)
        (void)snprintf(text, sizeof text, "%s", value);
    else
        (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(mark - value),
                       value, second_role(kind), mark + 1);
    if (ls_config_set(config, path, text) != LS_OK)
        fail_msg("%s=%s: %s", path, text, ls_error_text());
}

static void read_row(struct plan *plan, const struct kind *kind,
                     const struct row *row)
{
    char text[512];
    ls_config *config = NULL;
    /* The members need a second item. */
    (void)snprintf(text, sizeof text, "%s",
                   kind->bit == MEMBERS
                       ? "nodes: [{role: member}, {role: member}]\n"
                       : kind->text);
    assert_ok(ls_config_parse(&config, "job.yaml", text));
    if (row->with[0] != '\0')
        set(config, kind->bit, row->with, row->with_value);
    set(config, kind->bit, row->path, row->value);
    assert_ok(plan_read(plan, &config, "job.yaml"));
    ls_config_accept_all(plan->env);
    ls_config_accept_all(plan->policy);
}

static const char *last_part(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot != NULL ? dot + 1 : path;
}

/* The key itself, or the section that it stands in, and the job. */
static void assert_refused(const struct kind *kind, const struct row *row,
                           const char *report)
{
    char section[64];
    (void)snprintf(section, sizeof section, "%.*s does nothing",
                   (int)strcspn(row->path, "."), row->path);
    const bool names = strstr(report, last_part(row->path)) != NULL ||
                       strstr(report, section) != NULL;
    const bool of_all = row->heeded == 0; /* no job has it */
    if (!names || (!of_all && strstr(report, kind->name) == NULL))
        fail_msg("%s in %s:\n%s", row->path, kind->name, report);
}

TEST(a_key_is_heeded_or_refused)
{
    for (size_t i = 0; i < N_ROWS; i++)
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
            struct plan plan;
            read_row(&plan, &kinds[k], &rows[i]);
            const int status = ls_config_finish(plan.config);
            const char *report = ls_config_report(plan.config);
            if ((rows[i].heeded & kinds[k].bit) == 0)
                assert_refused(&kinds[k], &rows[i], report);
            else if (status != LS_OK)
                fail_msg("%s in %s:\n%s", rows[i].path, kinds[k].name, report);
            plan_fini(&plan);
        }
}

/* What reading asks for ---------------------------------------------------- */

/* nodes.2.bind is nodes.N.bind. */
static bool is_row(const char *path)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        const char *row = rows[i].path;
        if (strcmp(row, path) == 0 ||
            (strncmp(row, "nodes.", 6) == 0 &&
             strncmp(path, "nodes.", 6) == 0 &&
             strcmp(last_part(row), last_part(path)) == 0))
            return true;
    }
    return false;
}

static bool is_section(const char *path)
{
    const size_t length = strlen(path);
    for (size_t i = 0; i < N_ROWS; i++)
        if (strncmp(rows[i].path, path, length) == 0 &&
            rows[i].path[length] == '.')
            return true;
    return false;
}

static void walk(const ls_config_section *section, const char *path)
{
    char below[128];
    for (size_t i = 0; i < section->n_asked; i++) {
        (void)snprintf(below, sizeof below, "%s%s", path, section->asked[i]);
        if (!is_section(below) && !is_row(below))
            fail_msg("%s is asked for, and is not in the table", below);
    }
    for (const ls_config_section *at = section->children; at != NULL;
         at = at->next) {
        if (at->index == LS_CONFIG_NO_INDEX)
            (void)snprintf(below, sizeof below, "%s%s.", path, at->key);
        else
            (void)snprintf(below, sizeof below, "%s%s.%zu.", path, at->key,
                           at->index);
        walk(at, below);
    }
}

TEST(the_table_has_every_key_that_is_asked_for)
{
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        struct plan plan;
        read_good(&plan, kinds[k].text);
        walk(ls_config_root(plan.config), "");
        plan_fini(&plan);
    }
}

TEST(what_goes_with_something_else_is_refused_without)
{
    static const struct {
        const char *more, *words;
    } cases[] = {
        {"world: {dir: /tmp}\n",
         "dir goes with transport: ipc; here it is tcp"},
        {"world: {transport: ipc, ports: 1-2}\n",
         "ports goes with transport: tcp, or with a node's host"},
        {"coordinator: {replay: {error_buffer: 99}}\n",
         "error_buffer goes with samples_per_insert"},
    };
    char text[512];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)snprintf(text, sizeof text, "%s%s", kinds[1].text, cases[i].more);
        assert_problem(text, "job.yaml:4:", cases[i].words);
    }
    assert_problem("plugin: p\nnodes: [{role: coordinator}, {role: learner},\n"
                   "  {role: collector}]\ncoordinator: {patience_s: 9}\n",
                   "job.yaml:4:27", "goes with on_loss: restart");
    assert_problem("plugin: p\nnodes: [{role: coordinator}, {role: learner},\n"
                   "  {role: collector}]\ncoordinator: {samples_per_work: 0}\n",
                   "job.yaml:4:33", "that takes two");
    assert_problem("plugin: p\nnodes: [{role: learner}, {role: collector}]\n"
                   "evaluator: {solved: 1}\n",
                   "job.yaml:3:1", "add {role: evaluator} to nodes");
    assert_problem("plugin: p\nnodes: [{role: coordinator}, {role: learner},\n"
                   "  {role: collector}]\ncheckpoint: {replay: true}\n",
                   "job.yaml:4:22", "say coordinator.data.store: files");
    assert_problem("plugin: p\nnodes: [{role: coordinator}, {role: learner},\n"
                   "  {role: collector}]\ncheckpoint: {replay: true}\n"
                   "coordinator: {journal: false, data: {store: files}}\n",
                   "job.yaml:4:22", "coordinator.journal is false");
    assert_problem("plugin: p\nnodes: [{role: coordinator}, {role: learner},\n"
                   "  {role: collector}]\ncheckpoint: {replay: true}\n"
                   "coordinator: {replay: {capacity: 1000001},\n"
                   "  data: {store: files}}\n",
                   "job.yaml:4:22", "up to 1000000 samples");
    assert_problem("plugin: p\nnodes: [{role: learner}, {role: collector}]\n"
                   "checkpoint: {best: 3}\n",
                   "job.yaml:3:20", "checkpoint.best needs a node");
}
