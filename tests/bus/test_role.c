/* Roles and labels are those that a node's certificate gives it, as the others
 * have it: whatever it says of itself. */
#include "keys_fixture.h"
#include "lockstep/event.h"
#include "lockstep/node.h"
#include "shared_memory.h"
#include "test.h"

#define OTHER 4

static ls_node *created(const struct scratch *scratch, uint32_t id,
                        ls_security *security, const char *role,
                        const char *labels)
{
    struct ls_node_options options;
    char bind[LS_ENDPOINT_MAX + 1], attach[LS_ENDPOINT_MAX + 1];
    ls_node *node = NULL;
    (void)snprintf(bind, sizeof bind, "ipc://%s/%u.ipc", scratch->folder,
                   (unsigned)id);
    (void)snprintf(attach, sizeof attach, "3@ipc://%s/3.ipc", scratch->folder);
    ls_node_options_init(&options);
    options.id = id;
    options.bind = bind;
    options.attach = &(const char *){attach};
    options.n_attach = id != OWN;
    options.topology = LS_TOPOLOGY_ALONE;
    options.world_size = id != OWN ? 2 : 1;
    options.members = id != OWN ? (uint32_t[]){OWN, OTHER} : NULL;
    options.world_max = 0;
    options.role = role;
    options.labels = labels;
    options.security = security;
    options.start_timeout_ms = 30000;
    options.linger_ms = 0;
    assert_ok(ls_node_create(&node, &options));
    return node;
}

struct coming {
    ls_node *node;
    int status;
};

static void start(void *self)
{
    struct coming *coming = self;
    coming->status = ls_node_start(coming->node);
}

/* Then it gives up: nobody tells who is refused. */
static void await_refusal(ls_node *node, const char *why)
{
    ls_runtime *const runtime = ls_runtime_threads();
    const int64_t deadline = ls_deadline(runtime, 30000);
    struct ls_refusal refusal;
    while (ls_node_refusals(node, &refusal, 1) == 0) {
        assert_true(ls_now(runtime) < deadline);
        ls_yield_core(runtime);
    }
    assert_int_equal(refusal.kind, LS_REFUSAL_IDENTITY);
    assert_has(refusal.why, why);
}

/* Node 4 is to come to node 3; what lies in its folder is its own to write.
 * refused: why; NULL: it is let in. */
static void comes(const struct scratch *scratch, const char *folder,
                  const char *role, const char *labels, const char *refused)
{
    ls_security *here = open_keys(scratch), *there = NULL;
    ls_thread *thread = NULL;
    assert_ok(ls_security_curve(&there, in(scratch, folder).text, OTHER));
    ls_node *node = created(scratch, OWN, here, "", "");
    struct coming other = {.node =
                               created(scratch, OTHER, there, role, labels)};
    assert_ok(ls_node_start(node));
    assert_ok(
        ls_thread_spawn(ls_runtime_threads(), &thread, "start", start, &other));
    if (refused != NULL) {
        await_refusal(node, refused);
        ls_node_interrupt(other.node, LS_ECANCELED);
    }
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    assert_int_equal(other.status, refused != NULL ? LS_ECANCELED : LS_OK);
    assert_ok(ls_node_destroy(&other.node));
    assert_ok(ls_node_destroy(&node));
    ls_security_destroy(&there);
    ls_security_destroy(&here);
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
    comes(*state, "keys", "collector", "gpu", NULL);
    comes(*state, "keys", "collector", "", NULL);
}

TEST_WITH(and_with_no_other_role_or_label, role_set_up, scratch_tear_down)
{
    comes(*state, "own", "learner", "gpu",
          "gives itself role \"learner\" and labels \"gpu\"");
}
