#include "plan_keys.h"

#include "plan.h"

/* Kinds of job. */
enum kind {
    IN_STEP = 1, /* a learner and collectors that go in step */
    SERVICE = 2, /* those that a coordinator gives work to */
    MEMBERS = 4  /* nodes that only keep step */
};

/* A key, or a section, that is refused in some kinds of job. */
struct limit {
    const char *section; /* NULL: the root */
    const char *key;     /* NULL: the section as a whole */
    unsigned
        kinds; /* of the others; also those that refuse the whole section */
    const char *instead;
};

static const char of_coordinators[] =
    "a coordinator has its journal, and a learner of it commits its policy "
    "each coordinator.send_policy_freq iterations; leave it out, or say "
    "checkpoint.replay";

static const char as_it_is[] =
    "`lockstep sim` runs such a job as it is; leave it out";

static const struct limit limits[] = {
    {NULL, "plugin", IN_STEP | SERVICE, "they load none; leave it out"},
    {"env", NULL, IN_STEP | SERVICE, "they load no plugin; leave it out"},
    {"policy", NULL, IN_STEP | SERVICE, "they load no plugin; leave it out"},
    {"collector", NULL, IN_STEP | SERVICE,
     "they collect nothing; leave it out"},
    {"evaluator", NULL, IN_STEP | SERVICE,
     "they evaluate nothing; leave it out"},
    {"learner", NULL, IN_STEP | SERVICE, "they learn nothing; leave it out"},
    {"learner", "ranks", SERVICE,
     "with driver: bus all learners share each batch; leave it out"},
    {"checkpoint", NULL, IN_STEP | SERVICE,
     "members have nothing to save; leave it out"},
    {"checkpoint", "every", IN_STEP | MEMBERS, of_coordinators},
    {"checkpoint", "seconds", IN_STEP | MEMBERS, of_coordinators},
    {"checkpoint", "keep_last", IN_STEP | MEMBERS, of_coordinators},
    {"checkpoint", "keep_every", IN_STEP | MEMBERS, of_coordinators},
    {"checkpoint", "best", IN_STEP | MEMBERS, of_coordinators},
    {"checkpoint", "on_fail", IN_STEP | MEMBERS, of_coordinators},
    {"checkpoint", "replay", SERVICE | MEMBERS,
     "it is for jobs with a coordinator, whose buffer it keeps; leave it out"},
    {"coordinator", NULL, SERVICE,
     "there is no node of the role coordinator to heed it"},
    {"barrier", NULL, MEMBERS,
     "it is for jobs of {role: member}; leave it out. What bounds the waits "
     "here is world.step_timeout_s"},
    {"sim", "epochs", SERVICE | MEMBERS, as_it_is},
    {"sim", "epochs", MEMBERS | IN_STEP,
     "it is for jobs of {role: member}; here coordinator.iterations counts"},
    {"sim", "events", MEMBERS,
     "it is for jobs of {role: member}; leave it out"},
    {"sim", "blocking", MEMBERS,
     "it is for jobs of {role: member}; leave it out"},
    {"sim", "pace_ms", SERVICE | MEMBERS, as_it_is},
    {"evaluator", "every", IN_STEP | MEMBERS,
     "a coordinator evaluates by the clock: see coordinator.eval_interval_s"},
    {"stop", "env_step", IN_STEP | SERVICE,
     "they end after barrier.epochs, or by stop.minutes"},
};

static enum kind kind_of(const struct plan *plan)
{
    if (plan_is_of_members(plan))
        return MEMBERS;
    return plan_is_service(plan) ? SERVICE : IN_STEP;
}

static const char *name_of(enum kind kind)
{
    switch (kind) {
    case MEMBERS:
        return "a job of members";
    case SERVICE:
        return "a service job";
    case IN_STEP:
        break;
    }
    return "a job in lock step";
}

static void refuse(const struct limit *limit, enum kind kind,
                   ls_config_section *root)
{
    ls_config_section *section =
        limit->section != NULL && limit->key != NULL
            ? ls_config_section_at(root, limit->section)
            : root;
    const char *key = limit->key != NULL ? limit->key : limit->section;
    if (!ls_config_has(section, key))
        return;
    ls_config_problem(section, key, "%s%s%s does nothing in %s: %s",
                      section != root ? limit->section : "",
                      section != root ? "." : "", key, name_of(kind),
                      limit->instead);
    if (limit->key == NULL) /* one problem for all that stands in it */
        ls_config_accept_all(ls_config_section_at(root, key));
}

static bool any_host(const struct plan *plan)
{
    for (size_t i = 0; i < plan->n_nodes; i++)
        if (plan->nodes[i].host[0] != '\0')
            return true;
    return false;
}

/* Keys that go with a transport. */
static void refuse_places(const struct plan *plan, ls_config_section *root)
{
    ls_config_section *world = ls_config_section_at(root, "world");
    const char *transport = plan_transport_names[plan->world.transport];
    if (plan->world.transport != PLAN_IPC && ls_config_has(world, "dir"))
        ls_config_problem(world, "dir",
                          "dir goes with transport: ipc; here it is %s",
                          transport);
    if (plan->world.transport != PLAN_TCP && !any_host(plan) &&
        ls_config_has(world, "ports"))
        ls_config_problem(world, "ports",
                          "ports goes with transport: tcp, or with a node's "
                          "host; here it is %s",
                          transport);
}

void plan_refuse_keys(const struct plan *plan, ls_config_section *root)
{
    const enum kind kind = kind_of(plan);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if ((limits[i].kinds & kind) == 0)
            refuse(&limits[i], kind, root);
    if (kind == IN_STEP && plan_count(plan, PLAN_EVALUATOR) == 0 &&
        ls_config_has(root, "evaluator"))
        ls_config_problem(root, "evaluator",
                          "evaluator does nothing in a job in lock step "
                          "without a node that evaluates: add "
                          "{role: evaluator} to nodes");
    if (kind == IN_STEP && plan_count(plan, PLAN_EVALUATOR) == 0 &&
        ls_config_has(ls_config_section_at(root, "checkpoint"), "best"))
        ls_config_problem(ls_config_section_at(root, "checkpoint"), "best",
                          "checkpoint.best needs a node that finds out how "
                          "good each is: add {role: evaluator} to nodes");
    refuse_places(plan, root);
}
