/* Whose key is whose, as certificates come and go. */
#include "keyring.h"

#include <time.h>

#include "keys_fixture.h"
#include "lockstep/simulation.h"
#include "test.h"

/* ---- reading again ------------------------------------------------------ */

/* On a clock that goes when we want. */
static void in_simulation(struct scratch *scratch, void (*fn)(void *scratch))
{
    ls_simulation *simulation = NULL;
    assert_ok(ls_simulation_create(&simulation, NULL));
    const int status = ls_simulation_run(simulation, fn, scratch);
    if (status != LS_OK)
        fail_msg("%s", ls_error_text());
    ls_simulation_destroy(&simulation);
}

static void wait_ms(int ms)
{
    ls_runtime *runtime = ls_runtime_current();
    ls_rest_until(runtime, ls_now(runtime) + ms * LS_NS_PER_MS);
}

static void add_later(void *arg)
{
    struct scratch *scratch = arg;
    ls_security *security = open_keys(scratch);
    make(scratch, 5);
    assert_false(knows(security, 5)); /* read a moment ago */
    wait_ms(900);
    assert_false(knows(security, 5));
    wait_ms(200);
    assert_true(knows(security, 5));
    make(scratch, 6);
    wait_ms(900);
    assert_false(knows(security, 6)); /* the same period */
    wait_ms(200);
    assert_true(knows(security, 6));
    ls_security_destroy(&security);
}

EACH_TEST(keys_set_up, scratch_tear_down)

TEST(a_new_certificate_is_found_within_a_second)
{
    in_simulation(*state, add_later);
}

static void take_away(void *arg)
{
    struct scratch *scratch = arg;
    ls_security *security = open_keys(scratch);
    zcert_t *four = load(scratch, "node-4.cert");
    uint32_t id;
    bool enrolment;
    assert_int_equal(unlink(keys(scratch, "node-4.cert").text), 0);
    assert_ok(credentials_check_curve(security, zcert_public_key(four), &id,
                                      &enrolment));
    wait_ms(1100);
    assert_fails(credentials_check_curve(security, zcert_public_key(four), &id,
                                         &enrolment),
                 LS_ENOENT);
    assert_false(knows(security, 4));
    assert_true(knows(security, OWN));
    zcert_destroy(&four);
    ls_security_destroy(&security);
}

TEST(who_is_taken_away_does_not_come_in_again)
{
    in_simulation(*state, take_away);
}

static void replace(void *arg)
{
    struct scratch *scratch = arg;
    const struct path path = keys(scratch, "node-4.cert");
    ls_security *security = open_keys(scratch);
    struct stat was, is;
    char before[CREDENTIALS_KEY_MAX], after[CREDENTIALS_KEY_MAX];
    assert_ok(credentials_server_key(security, 4, before));
    assert_int_equal(stat(path.text, &was), 0);
    assert_int_equal(unlink(path.text), 0);
    assert_int_equal(unlink(keys(scratch, "node-4.cert_secret").text), 0);
    make(scratch, 4);
    const struct timespec times[] = {was.st_atim, was.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, path.text, times, 0), 0);
    assert_int_equal(stat(path.text, &is), 0);
    assert_int_equal(is.st_size, was.st_size);
    wait_ms(1100);
    assert_ok(credentials_server_key(security, 4, after));
    assert_string_not_equal(after, before);
    ls_security_destroy(&security);
}

TEST(a_replaced_certificate_of_the_same_size_and_time_is_seen)
{
    in_simulation(*state, replace);
}

static void allow_later(void *arg)
{
    struct scratch *scratch = arg;
    const struct path path = keys(scratch, "node-4.cert");
    assert_int_equal(chmod(path.text, 0666), 0);
    ls_security *security = open_keys(scratch);
    assert_int_equal(chmod(path.text, 0644), 0);
    wait_ms(1100);
    assert_true(knows(security, 4));
    ls_security_destroy(&security);
}

TEST(a_certificate_that_was_left_out_for_its_mode_is_seen_later)
{
    in_simulation(*state, allow_later);
}

static void break_folder(void *arg)
{
    struct scratch *scratch = arg;
    ls_security *security = open_keys(scratch);
    copy_file(keys(scratch, "node-4.cert").text,
              keys(scratch, "copy.cert").text);
    make(scratch, 5);
    for (int i = 0; i < 3; i++) {
        wait_ms(1100);
        assert_true(knows(security, 4));
        assert_false(knows(security, 5));
        assert_int_equal(scratch->n_lines, 1);
    }
    assert_non_null(strstr(scratch->last_line, "stay as they were"));
    assert_non_null(strstr(scratch->last_line, "copy.cert and "));
    assert_int_equal(unlink(keys(scratch, "copy.cert").text), 0);
    wait_ms(1100);
    assert_true(knows(security, 5));
    ls_security_destroy(&security);
}

TEST(a_folder_that_went_wrong_changes_nothing)
{
    in_simulation(*state, break_folder);
}

static void take_folder_away(void *arg)
{
    struct scratch *scratch = arg;
    ls_security *security = open_keys(scratch);
    const struct path folder = keys(scratch, ""), away = in(scratch, "away");
    assert_int_equal(rename(folder.text, away.text), 0);
    for (int i = 0; i < 3; i++) {
        wait_ms(1100);
        assert_true(knows(security, 4));
        assert_int_equal(scratch->n_lines, 1);
    }
    assert_int_equal(rename(away.text, folder.text), 0);
    make(scratch, 5);
    wait_ms(1100);
    assert_true(knows(security, 5));
    ls_security_destroy(&security);
}

TEST(a_folder_that_is_gone_changes_nothing)
{
    in_simulation(*state, take_folder_away);
}

static void watch_the_bad(void *arg)
{
    struct scratch *scratch = arg;
    write_file(keys(scratch, "bad.cert").text, "bad", 3, 0644);
    ls_security *security = open_keys(scratch);
    for (int i = 0; i < 3; i++) {
        wait_ms(1100);
        assert_false(knows(security, 9));
    }
    assert_int_equal(scratch->n_lines, 1);
    ls_security_destroy(&security);
}

TEST(a_malformed_certificate_is_warned_of_once)
{
    in_simulation(*state, watch_the_bad);
}

/* ---- ls_security_trust() ------------------------------------------------ */

struct pair {
    char text[LS_PUBLIC_KEY_MAX];
    uint8_t key[KEY_BYTES];
};

static struct pair new_key(void)
{
    struct pair pair;
    char secret[LS_PUBLIC_KEY_MAX];
    assert_true(key_make(pair.text, secret));
    assert_true(key_read(pair.text, pair.key));
    return pair;
}

static bool is_of(ls_security *security, const struct pair *pair,
                  uint32_t wanted)
{
    uint32_t id = wanted + 1;
    bool enrolment = true;
    return credentials_check_curve(security, pair->key, &id, &enrolment) ==
               LS_OK &&
           id == wanted && !enrolment;
}

TEST(a_trusted_key_is_a_nodes)
{
    ls_security *security = open_keys(*state);
    const struct pair pair = new_key();
    char key[CREDENTIALS_KEY_MAX], signature[CREDENTIALS_SIGNATURE_MAX];
    assert_ok(ls_security_trust(security, 9, pair.text));
    assert_true(is_of(security, &pair, 9));
    assert_ok(credentials_server_key(security, 9, key));
    assert_string_equal(key, pair.text);
    assert_true(credentials_suits(security, 9, "any", "labels"));
    assert_ok(credentials_sign(security, "x", 1, signature));
    assert_false(credentials_signed(security, 9, "x", 1, signature));
    ls_security_destroy(&security);
}

TEST(a_trusted_key_replaces_the_one_before)
{
    ls_security *security = open_keys(*state);
    const struct pair first = new_key(), second = new_key();
    assert_ok(ls_security_trust(security, 9, first.text));
    assert_ok(ls_security_trust(security, 9, first.text));
    assert_ok(ls_security_trust(security, 9, second.text));
    assert_true(is_of(security, &second, 9));
    assert_false(is_of(security, &first, 9));
    assert_ok(ls_security_trust(security, 10, first.text));
    assert_true(is_of(security, &first, 10));
    ls_security_destroy(&security);
}

TEST(a_certificate_is_not_replaced)
{
    ls_security *security = open_keys(*state);
    const struct pair pair = new_key();
    char four[CREDENTIALS_KEY_MAX];
    assert_ok(credentials_server_key(security, 4, four));
    failed(ls_security_trust(security, 4, pair.text), LS_EEXIST,
           "certificate of node 4");
    failed(ls_security_trust(security, OWN, pair.text), LS_EEXIST,
           "certificate of node 3");
    failed(ls_security_trust(security, 9, four), LS_EMISMATCH, "with this key");
    assert_ok(ls_security_trust(security, 9, pair.text));
    failed(ls_security_trust(security, 10, pair.text), LS_EMISMATCH, "node 9");
    assert_true(is_of(security, &pair, 9));
    ls_security_destroy(&security);
}

TEST(what_is_no_key_is_not_trusted)
{
    ls_security *security = open_keys(*state);
    static const char *const bad[] = {
        NULL, "", "short", KEY "0", "~ne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        failed(ls_security_trust(security, 9, bad[i]), LS_EINVAL, "Z85");
    ls_security_destroy(&security);
}

static void trust_and_certify(void *arg)
{
    struct scratch *scratch = arg;
    ls_security *security = open_keys(scratch);
    const struct pair trusted = new_key(), kept = new_key();
    assert_ok(ls_security_trust(security, 5, trusted.text));
    assert_ok(ls_security_trust(security, 9, kept.text));
    make(scratch, 5);
    wait_ms(1100);
    assert_false(is_of(security, &trusted, 5));
    char key[CREDENTIALS_KEY_MAX];
    assert_ok(credentials_server_key(security, 5, key));
    assert_string_not_equal(key, trusted.text);
    assert_true(is_of(security, &kept, 9));
    ls_security_destroy(&security);
}

TEST(a_certificate_ends_a_trust)
{
    in_simulation(*state, trust_and_certify);
}

/* ---- threads ------------------------------------------------------------ */

#define N_THREADS 4
#define N_TURNS   300

struct shared {
    ls_security *security;
    struct pair pairs[2];
};

/* One of each, in turn; what comes of it depends on the others. */
static void use(void *arg)
{
    struct shared *shared = arg;
    ls_security *security = shared->security;
    char key[CREDENTIALS_KEY_MAX], signature[CREDENTIALS_SIGNATURE_MAX];
    for (size_t i = 0; i < N_TURNS; i++) {
        const struct pair *pair = &shared->pairs[i % 2];
        uint32_t id = 9;
        bool enrolment;
        if (ls_security_trust(security, 9, pair->text) != LS_OK ||
            credentials_server_key(security, 4, key) != LS_OK ||
            credentials_server_key(security, 9, key) != LS_OK ||
            credentials_sign(security, "x", 1, signature) != LS_OK ||
            !credentials_signed(security, OWN, "x", 1, signature) ||
            !credentials_suits(security, 4, "any", "any") ||
            ls_security_allow(security, "192.0.2.1") != LS_OK ||
            ls_security_deny(security, "192.0.2.2") != LS_OK ||
            credentials_admits(security, "192.0.2.2"))
            abort();
        if (credentials_check_curve(security, pair->key, &id, &enrolment) ==
                LS_OK &&
            id != 9)
            abort();
    }
}

TEST(threads_share_one)
{
    ls_runtime *runtime = ls_runtime_threads();
    struct shared shared = {.security = open_keys(*state),
                            .pairs = {new_key(), new_key()}};
    ls_thread *threads[N_THREADS] = {NULL};
    for (size_t i = 0; i < N_THREADS; i++)
        assert_ok(ls_thread_spawn(runtime, &threads[i], "use", use, &shared));
    for (size_t i = 0; i < N_THREADS; i++)
        assert_ok(ls_thread_join(&threads[i], LS_FOREVER));
    ls_security_destroy(&shared.security);
}

int main(void)
{
    if (sodium_init() < 0)
        return 1;
    return tests_run();
}
