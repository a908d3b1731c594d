/* Roles and labels are those that a node's certificate gives it, as the others
 * have it: whatever it says of itself. */
#include "keys_fixture.h"
#include "lockstep/event.h"
#include "lockstep/node.h"
#include "shared_memory.h"
#include "test.h"

#define OTHER 4
#define FIRST 5 /* whom the others attach to */

static ls_node *created(const struct scratch *scratch, uint32_t id,
                        ls_security *security, const char *role,
                        const char *labels)
{
    struct ends ends;
    struct ls_node_options options = by_ipc(scratch, id, security, &ends);
    ls_node *node = NULL;
    options.topology = LS_TOPOLOGY_ALONE;
    options.world_size = id != OWN ? 2 : 1;
    options.members = id != OWN ? (uint32_t[]){OWN, OTHER} : NULL;
    options.world_max = 0;
    options.role = role;
    options.labels = labels;
    assert_ok(ls_node_create(&node, &options));
    return node;
}

struct coming {
    ls_node *node;
    int status;
    char text[LS_ERROR_TEXT_MAX];
};

static void start(void *self)
{
    struct coming *coming = self;
    coming->status = ls_node_start(coming->node);
    if (coming->status != LS_OK)
        (void)snprintf(coming->text, sizeof coming->text, "%s",
                       ls_error_text());
}

/* Node 4 comes to a node, and both end. here: set to why it is refused there,
 * if it is. */
static void meet(ls_node **node, struct coming *other, struct ls_refusal *here)
{
    ls_thread *thread = NULL;
    assert_ok(ls_node_start(*node));
    assert_ok(
        ls_thread_spawn(ls_runtime_threads(), &thread, "start", start, other));
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    if (other->status != LS_OK)
        (void)ls_node_refusals(*node, here, 1);
    assert_ok(ls_node_destroy(&other->node));
    assert_ok(ls_node_destroy(node));
}

/* Node 4 comes to node 3; what lies in its folder is its own to write. */
static void comes(const struct scratch *scratch, const char *folder,
                  const char *role, const char *labels, struct coming *other,
                  struct ls_refusal *here)
{
    ls_security *own = open_keys(scratch), *theirs = NULL;
    assert_ok(ls_security_curve(&theirs, in(scratch, folder).text, OTHER));
    ls_node *node = created(scratch, OWN, own, "", "");
    other->node = created(scratch, OTHER, theirs, role, labels);
    meet(&node, other, here);
    ls_security_destroy(&theirs);
    ls_security_destroy(&own);
}

/* The keys that all have, and those of node 4, which says other things of
 * itself there. */
static int role_set_up(void **state)
{
    static const char *const files[] = {"node-3.cert", "node-4.cert",
                                        "node-4.cert_secret"};
    (void)scratch_set_up(state);
    const struct scratch *scratch = *state;
    assert_ok(ls_keys_create(keys(scratch, "").text, OWN, NULL, NULL));
    assert_ok(
        ls_keys_create(keys(scratch, "").text, OTHER, "collector", "gpu"));
    assert_int_equal(mkdir(in(scratch, "own").text, 0700), 0);
    for (size_t i = 0; i < 3; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "own/%s", files[i]);
        copy_file(keys(scratch, files[i]).text, in(scratch, name).text);
        if (i != 0) {
            edit_file(in(scratch, name).text, "collector", "learner");
            edit_file(in(scratch, name).text, "gpu", "gpu,fast");
        }
        assert_int_equal(chmod(in(scratch, name).text, i < 2 ? 0644 : 0600), 0);
    }
    return 0;
}

TEST_WITH(a_node_is_let_in_with_the_role_of_its_certificate, role_set_up,
          scratch_tear_down)
{
    struct coming other = {0};
    comes(*state, "keys", "collector", "gpu", &other, NULL);
    assert_int_equal(other.status, LS_OK);
    comes(*state, "keys", "collector", "", &other, NULL);
    assert_int_equal(other.status, LS_OK);
}

TEST_WITH(and_with_no_other_role_or_label_and_is_told_why, role_set_up,
          scratch_tear_down)
{
    struct coming other = {0};
    struct ls_refusal here = {0};
    comes(*state, "own", "learner", "gpu", &other, &here);
    assert_int_equal(here.kind, LS_REFUSAL_IDENTITY);
    assert_has(here.why, "gives itself role \"learner\" and labels \"gpu\"");
    assert_int_equal(other.status, LS_EMISMATCH);
    assert_has(other.text,
               "node 3 does not let it in with role \"learner\" and "
               "labels \"gpu\"");
    assert_has(other.text, "node-4.cert");
}

/* Of a mesh of three, by the certificates of a folder. */
static ls_node *member(const struct scratch *scratch, uint32_t id,
                       const char *folder, ls_security **security)
{
    static const uint32_t members[] = {OWN, OTHER, FIRST};
    struct ends ends;
    assert_ok(ls_security_curve(security, in(scratch, folder).text, id));
    struct ls_node_options options = by_ipc(scratch, id, *security, &ends);
    (void)snprintf(ends.attach, sizeof ends.attach, "%d@ipc://%s/%d.ipc", FIRST,
                   scratch->folder, FIRST);
    options.n_attach = id != FIRST;
    options.world_size = 3;
    options.members = members;
    options.role = id == OTHER ? "learner" : "";
    ls_node *node = NULL;
    assert_ok(ls_node_create(&node, &options));
    assert_ok(ls_node_open(node));
    return node;
}

static void join(void *self)
{
    struct coming *coming = self;
    coming->status = ls_node_join(coming->node);
    if (coming->status != LS_OK)
        (void)snprintf(coming->text, sizeof coming->text, "%s",
                       ls_error_text());
}

/* Node 5 lets node 4 in, and node 3, of which it learns there, does not. */
TEST_WITH(one_that_it_waits_for_may_refuse_it_too, role_set_up,
          scratch_tear_down)
{
    static const uint32_t ids[] = {FIRST, OWN, OTHER};
    static const char *const folders[] = {"own", "keys", "own"};
    static const char *const files[] = {"node-5.cert", "node-5.cert_secret"};
    const struct scratch *scratch = *state;
    struct coming nodes[3];
    ls_security *security[3];
    ls_thread *threads[3];
    assert_ok(ls_keys_create(keys(scratch, "").text, FIRST, NULL, NULL));
    for (size_t i = 0; i < 2; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "own/%s", files[i]);
        copy_file(keys(scratch, files[i]).text, in(scratch, name).text);
        assert_int_equal(chmod(in(scratch, name).text, i < 1 ? 0644 : 0600), 0);
    }
    for (size_t i = 0; i < 3; i++)
        nodes[i].node = member(scratch, ids[i], folders[i], &security[i]);
    for (size_t i = 0; i < 3; i++)
        assert_ok(ls_thread_spawn(ls_runtime_threads(), &threads[i], "join",
                                  join, &nodes[i]));
    assert_ok(ls_thread_join(&threads[2], LS_FOREVER));
    assert_int_equal(nodes[2].status, LS_EMISMATCH);
    assert_has(nodes[2].text,
               "node 3 does not let it in with role \"learner\"");
    for (size_t i = 0; i < 2; i++) {
        assert_ok(ls_node_stop(nodes[i].node, LS_OK));
        assert_ok(ls_thread_join(&threads[i], LS_FOREVER));
    }
    for (size_t i = 3; i > 0; i--) {
        assert_ok(ls_node_destroy(&nodes[i - 1].node));
        ls_security_destroy(&security[i - 1]);
    }
}

/* What node 3 lets others be. */
static bool suits(void *self, uint32_t id, const char *role, const char *labels)
{
    const char *const only = self;
    return id == OTHER && strcmp(role, only) == 0 && strcmp(labels, "") == 0;
}

/* Node 4 comes to node 3, which is told who may be what; without keys. */
static int comes_as(const char *role, struct coming *other,
                    struct ls_refusal *here)
{
    const char *const own = "inproc://role-own";
    struct ls_node_options options;
    ls_node *node;
    ls_node_options_init(&options);
    options.topology = LS_TOPOLOGY_ALONE;
    options.id = OWN;
    options.bind = own;
    options.suits = suits;
    options.suits_self = "learner";
    assert_ok(ls_node_create(&node, &options));
    ls_node_options_init(&options);
    options.topology = LS_TOPOLOGY_ALONE;
    options.id = OTHER;
    options.bind = "inproc://role-other";
    options.attach = &own;
    options.n_attach = 1;
    options.world_size = 2;
    options.role = role;
    assert_ok(ls_node_create(&other->node, &options));
    meet(&node, other, here);
    return other->status;
}

TEST(a_program_says_who_may_be_what_with_and_without_keys)
{
    struct coming other = {0};
    struct ls_refusal here = {0};
    assert_int_equal(comes_as("learner", &other, NULL), LS_OK);
    assert_int_equal(comes_as("coordinator", &other, &here), LS_EMISMATCH);
    assert_has(other.text, "node 3 does not let it in with role "
                           "\"coordinator\" and labels \"\": the job");
    assert_int_equal(here.kind, LS_REFUSAL_IDENTITY);
    assert_has(here.why, "gives itself role \"coordinator\" and labels \"\", "
                         "which it may not have here");
}

TEST_WITH(it_does_not_open_against_its_own_certificate, role_set_up,
          scratch_tear_down)
{
    ls_security *security = NULL;
    assert_ok(ls_security_curve(&security, keys(*state, "").text, OTHER));
    ls_node *node = created(*state, OTHER, security, "learner", "gpu");
    failed(ls_node_open(node), LS_EMISMATCH,
           "gives it role \"collector\" and labels \"gpu\"");
    assert_ok(ls_node_destroy(&node));
    node = created(*state, OTHER, security, "collector", "fast");
    failed(ls_node_open(node), LS_EMISMATCH, "labels \"fast\"");
    assert_ok(ls_node_destroy(&node));
    ls_security_destroy(&security);
}
