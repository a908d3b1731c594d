/* Keys that are of no node yet, and what the enrolment key opens: the place
 * where ids are given out, and nothing else. */
#include "keys_fixture.h"
#include "lockstep/call.h"
#include "test.h"

#define GIVER 3 /* OWN, where ids are given out as well */
#define ASKER 4000

static int enrolled_set_up(void **state)
{
    (void)keys_set_up(state);
    assert_ok(ls_keys_create_enrolment(keys(*state, "").text));
    return 0;
}

/* ---- a key in a file ---------------------------------------------------- */

TEST_WITH(a_key_is_made_once_and_read_again, scratch_set_up, scratch_tear_down)
{
    struct scratch *scratch = *state;
    const struct path path = in(scratch, "one.key");
    char made[LS_PUBLIC_KEY_MAX], read[LS_PUBLIC_KEY_MAX];
    uint8_t key[KEY_BYTES];
    assert_ok(ls_key_create(path.text, made));
    assert_int_equal(mode_of(path.text), 0600);
    assert_true(key_read(made, key));
    assert_ok(ls_key_read(path.text, read));
    assert_string_equal(read, made);
    failed(ls_key_create(path.text, made), LS_EEXIST, path.text);
    assert_string_equal(read, made);
}

TEST_WITH(what_is_no_file_of_a_key_is_refused, scratch_set_up,
          scratch_tear_down)
{
    struct scratch *scratch = *state;
    const struct path path = in(scratch, "one.key");
    char key[LS_PUBLIC_KEY_MAX];
    failed(ls_key_create(NULL, key), LS_EINVAL, "path");
    failed(ls_key_create("", key), LS_EINVAL, "path");
    failed(ls_key_read(NULL, key), LS_EINVAL, "path");
    failed(ls_key_create(in(scratch, "no/one.key").text, key), LS_ENOENT, "no");
    failed(ls_key_read(path.text, key), LS_ENOENT, path.text);
    assert_ok(ls_key_create(path.text, key));
    assert_int_equal(chmod(path.text, 0640), 0);
    failed(ls_key_read(path.text, key), LS_ECONFIG, "chmod");
    static const char *const bad[] = {"",         KEY,          KEY "\r",
                                      KEY "\n\n", "~" KEY "\n", KEY "~\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        write_file(path.text, bad[i], strlen(bad[i]), 0600);
        failed(ls_key_read(path.text, key), LS_ECONFIG, path.text);
    }
}

/* ---- whose security it is ----------------------------------------------- */

TEST_WITH(a_leased_key_speaks_for_the_id_that_was_given, keys_set_up,
          scratch_tear_down)
{
    struct scratch *scratch = *state;
    const struct path path = in(scratch, "one.key");
    char made[LS_PUBLIC_KEY_MAX], own[LS_PUBLIC_KEY_MAX];
    ls_security *security = NULL;
    assert_ok(ls_key_create(path.text, made));
    assert_ok(
        ls_security_leased(&security, keys(scratch, "").text, 9, path.text));
    assert_ok(ls_security_public_key(security, own));
    assert_string_equal(own, made);
    assert_true(knows(security, 9));
    assert_true(knows(security, OWN));
    ls_security_destroy(&security);
}

TEST_WITH(a_leased_key_for_a_node_with_a_certificate_is_refused, keys_set_up,
          scratch_tear_down)
{
    struct scratch *scratch = *state;
    const struct path path = in(scratch, "one.key");
    const struct path folder = keys(scratch, "");
    char made[LS_PUBLIC_KEY_MAX];
    ls_security *security = NULL;
    failed(ls_security_leased(&security, folder.text, 9, NULL), LS_EINVAL,
           "no file");
    failed(ls_security_leased(&security, folder.text, 9, path.text), LS_ENOENT,
           path.text);
    assert_ok(ls_key_create(path.text, made));
    failed(ls_security_leased(&security, folder.text, 4, path.text), LS_ECONFIG,
           "node-4.cert");
    failed(
        ls_security_leased(&security, in(scratch, "none").text, 9, path.text),
        LS_ENOENT, "none");
    assert_null(security);
}

TEST_WITH(giving_and_asking_need_the_enrolment_key, keys_set_up,
          scratch_tear_down)
{
    struct scratch *scratch = *state;
    const struct path folder = keys(scratch, "");
    ls_security *security = NULL;
    failed(ls_security_giving(&security, folder.text, GIVER), LS_ENOENT,
           "keygen");
    failed(ls_security_asking(&security, folder.text), LS_ENOENT,
           "--enrolment");
    assert_ok(ls_keys_create_enrolment(folder.text));
    failed(ls_security_giving(&security, folder.text, 9), LS_ENOENT, "--id 9");
    assert_null(security);
    copy_file(keys(scratch, "node-4.cert_secret").text,
              keys(scratch, "other").text);
    assert_int_equal(unlink(keys(scratch, "enrolment.cert_secret").text), 0);
    assert_int_equal(rename(keys(scratch, "other").text,
                            keys(scratch, "enrolment.cert_secret").text),
                     0);
    assert_int_equal(chmod(keys(scratch, "enrolment.cert_secret").text, 0600),
                     0);
    failed(ls_security_asking(&security, folder.text), LS_ECONFIG,
           "not the enrolment key");
}

TEST_WITH(who_is_distrusted_is_nobody, keys_set_up, scratch_tear_down)
{
    struct scratch *scratch = *state;
    ls_security *security = open_keys(scratch), *plain = NULL;
    assert_ok(ls_security_trust(security, 9, KEY));
    assert_true(knows(security, 9));
    assert_ok(ls_security_distrust(security, 9));
    assert_false(knows(security, 9));
    assert_ok(ls_security_distrust(security, 9));
    assert_ok(ls_security_distrust(security, 4));
    assert_true(knows(security, 4)); /* by its certificate */
    assert_ok(ls_security_trust(security, 10, KEY));
    ls_security_destroy(&security);
    assert_ok(ls_security_none(&plain));
    failed(ls_security_distrust(plain, 9), LS_ESTATE, "curve only");
    ls_security_destroy(&plain);
}

/* ---- what it opens ------------------------------------------------------ */

static int answer(void *self, ls_request *request)
{
    (void)self;
    return ls_request_complete(&request, "9", 1);
}

struct place {
    char bind[LS_ENDPOINT_MAX + 1];
    ls_node *node;
    ls_rpc *calls;
};

static void open_place(struct place *place, const struct scratch *scratch,
                       uint32_t id, const char *attach, ls_security *security)
{
    struct ls_node_options options;
    ls_node_options_init(&options);
    (void)snprintf(place->bind, sizeof place->bind, "ipc://%s/%u.ipc",
                   scratch->folder, (unsigned)id);
    options.id = id;
    options.bind = place->bind;
    options.attach = &attach;
    options.n_attach = attach != NULL;
    options.topology = LS_TOPOLOGY_ALONE;
    options.world_size = attach != NULL ? 2 : 1;
    options.members = attach != NULL ? (uint32_t[]){id, GIVER} : NULL;
    options.world_max = 0;
    options.security = security;
    options.start_timeout_ms = 30000;
    options.linger_ms = 0;
    assert_ok(ls_node_create(&place->node, &options));
    assert_ok(ls_rpc_open(&place->calls, place->node, NULL));
    assert_ok(ls_rpc_serve(place->calls, "id", LS_CALL_ANYONE, answer, NULL));
}

static void close_place(struct place *place)
{
    ls_rpc_close(&place->calls);
    ls_node_destroy(&place->node);
}

/* Whether somebody comes in at node GIVER, and is answered. status: of its
 * start. */
static int meet(const struct scratch *scratch, ls_security *giver,
                ls_security *asker, uint32_t id)
{
    struct place at, from;
    char attach[LS_ENDPOINT_MAX + 16];
    void *data = NULL;
    size_t size = 0;
    open_place(&at, scratch, GIVER, NULL, giver);
    assert_ok(ls_node_start(at.node));
    (void)snprintf(attach, sizeof attach, "%u@%s", GIVER, at.bind);
    open_place(&from, scratch, id, attach, asker);
    const int status = ls_node_start(from.node);
    if (status == LS_OK) {
        assert_ok(ls_call_ask(
            from.calls, &(struct ls_call_options){.to = GIVER, .name = "id"},
            &data, &size));
        assert_int_equal(size, 1);
        free(data);
    } else {
        char text[LS_ERROR_TEXT_MAX];
        struct ls_refusal refusal;
        (void)snprintf(text, sizeof text, "%s", ls_error_text());
        assert_true(ls_node_refusals(at.node, &refusal, 1) >= 1);
        (void)ls_error(status, "%.200s; %s", text, refusal.why);
    }
    close_place(&from);
    close_place(&at);
    return status;
}

TEST_WITH(it_is_answered_where_ids_are_given_out, enrolled_set_up,
          scratch_tear_down)
{
    struct scratch *scratch = *state;
    const struct path folder = keys(scratch, "");
    ls_security *giver = NULL, *asker = NULL;
    assert_ok(ls_security_giving(&giver, folder.text, GIVER));
    assert_ok(ls_security_asking(&asker, folder.text));
    assert_ok(meet(scratch, giver, asker, ASKER));
    ls_security_destroy(&asker);
    ls_security_destroy(&giver);
}

TEST_WITH(it_opens_no_other_node, enrolled_set_up, scratch_tear_down)
{
    struct scratch *scratch = *state;
    ls_security *member = open_keys(scratch), *asker = NULL;
    assert_ok(ls_security_asking(&asker, keys(scratch, "").text));
    failed(meet(scratch, member, asker, 4), LS_EMISMATCH, "enrolment key");
    ls_security_destroy(&asker);
    ls_security_destroy(&member);
}

TEST_WITH(no_other_key_opens_where_ids_are_given_out, enrolled_set_up,
          scratch_tear_down)
{
    struct scratch *scratch = *state;
    const struct path folder = keys(scratch, "");
    ls_security *giver = NULL, *member = NULL;
    assert_ok(ls_security_giving(&giver, folder.text, GIVER));
    assert_ok(ls_security_curve(&member, folder.text, 4));
    failed(meet(scratch, giver, member, 4), LS_EMISMATCH, "node 4");
    ls_security_destroy(&member);
    ls_security_destroy(&giver);
}

TEST_WITH(another_enrolment_key_opens_nothing, enrolled_set_up,
          scratch_tear_down)
{
    struct scratch *scratch = *state;
    const struct path folder = keys(scratch, "");
    ls_security *giver = NULL, *asker = NULL;
    assert_ok(ls_security_giving(&giver, folder.text, GIVER));
    const struct path other = in(scratch, "other");
    assert_ok(ls_keys_create_enrolment(other.text));
    copy_file(keys(scratch, "node-3.cert").text,
              in(scratch, "other/node-3.cert").text);
    assert_ok(ls_security_asking(&asker, other.text));
    failed(meet(scratch, giver, asker, ASKER), LS_EMISMATCH, ENROLMENT_FILE);
    ls_security_destroy(&asker);
    ls_security_destroy(&giver);
}

/* ---- a key that is known a moment later --------------------------------- */

struct late {
    ls_mutex lock;
    ls_cond changed;
    bool refused; /* the one whose key is not known yet */
    bool dialled; /* a new time, by that one */
};

/* Before the first line, which is when the level is read. */
__attribute__((constructor)) static void log_what_is_dialled(void)
{
    (void)setenv("LS_LOG", "debug", 1);
}

static void notice(void *self, const char *line)
{
    struct late *late = self;
    ls_mutex_lock(&late->lock);
    late->refused = late->refused || strstr(line, "has the key") != NULL;
    late->dialled = late->dialled || strstr(line, "anew") != NULL;
    ls_cond_broadcast(&late->changed);
    ls_mutex_unlock(&late->lock);
}

static void start_one(void *node)
{
    assert_ok(ls_node_start(node));
}

static ls_node *one_of_three(const struct scratch *scratch, uint32_t id,
                             ls_security *security)
{
    struct ends ends;
    struct ls_node_options options = by_ipc(scratch, id, security, &ends);
    ls_node *node = NULL;
    options.world_size = 3;
    options.members = (uint32_t[]){OWN, 4, 5};
    options.silence_ms = 60000; /* what is hearsay is dialled anew after that */
    assert_ok(ls_node_create(&node, &options));
    return node;
}

/* What node 4 knows at first: nodes 3 and 4. */
static void know_some(const struct scratch *scratch)
{
    static const char *const known[] = {"node-3.cert", "node-4.cert",
                                        "node-4.cert_secret"};
    make(scratch, 5);
    assert_int_equal(mkdir(in(scratch, "some").text, 0700), 0);
    for (size_t i = 0; i < 3; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "some/%s", known[i]);
        copy_file(keys(scratch, known[i]).text, in(scratch, name).text);
        assert_int_equal(chmod(in(scratch, name).text, i < 2 ? 0644 : 0600), 0);
    }
}

/* Node 5 has heard of node 4, which refuses its key; then node 4 is told the
 * key, and shows itself. Returns whether node 5 has dialled it anew. */
static bool meet_late(const struct scratch *scratch)
{
    struct late late = {.refused = false};
    ls_security *security[3] = {NULL};
    ls_node *nodes[3];
    ls_thread *threads[3];
    ls_runtime *runtime = ls_runtime_threads();
    const struct path all = keys(scratch, "");
    char key[LS_PUBLIC_KEY_MAX];
    assert_ok(ls_security_curve(&security[0], all.text, OWN));
    assert_ok(ls_security_curve(&security[1], in(scratch, "some").text, 4));
    assert_ok(ls_security_curve(&security[2], all.text, 5));
    assert_ok(ls_security_public_key(security[2], key));
    assert_ok(ls_mutex_init(&late.lock, runtime));
    assert_ok(ls_cond_init(&late.changed, runtime));
    ls_log_redirect(notice, &late);
    for (size_t i = 0; i < 3; i++) {
        nodes[i] = one_of_three(scratch, OWN + (uint32_t)i, security[i]);
        assert_ok(ls_thread_spawn(runtime, &threads[i], "start", start_one,
                                  nodes[i]));
    }
    ls_mutex_lock(&late.lock);
    while (!late.refused)
        assert_ok(ls_cond_wait(&late.changed, &late.lock,
                               ls_deadline(runtime, 30000)));
    ls_mutex_unlock(&late.lock);
    assert_ok(ls_security_trust(security[1], 5, key));
    for (size_t i = 0; i < 3; i++)
        assert_ok(ls_thread_join(&threads[i], LS_FOREVER));
    for (size_t i = 0; i < 3; i++) {
        ls_node_destroy(&nodes[i]);
        ls_security_destroy(&security[i]);
    }
    ls_log_redirect(NULL, NULL);
    ls_cond_fini(&late.changed);
    ls_mutex_fini(&late.lock);
    return late.dialled;
}

/* libzmq connects again by itself, or waits until the handshake has timed out:
 * about every second time. */
TEST_WITH(who_was_refused_is_soon_in_once_its_key_is_known, keys_set_up,
          scratch_tear_down)
{
    bool dialled = false;
    know_some(*state);
    for (int i = 0; i < 30 && !dialled; i++)
        dialled = meet_late(*state);
    assert_true(dialled);
}
