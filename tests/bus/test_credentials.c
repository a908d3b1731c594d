/* Who proves what to whom: passwords and proofs, keys and roles. */
#include "credentials.h"

#include "credentials_fixture.h"
#include "test.h"

#define ADDRESS "tcp://127.0.0.1:21500"
#define CLAIM                                                                  \
    {                                                                          \
        .id = ID, .incarnation = UINT64_C(0x123456789abcdef),                  \
        .address = ADDRESS                                                     \
    }

/* Printed by credentials_vectors.py. */
static const char password_text[] =
    "2 123456789abcdef "
    "224d2cbce0df5389f1e05894b4637671d9a35922a0ad3d09b8fa4958d612afcb " ADDRESS;
static const char proof_hex[] =
    "499beb57448a0c8c19fb789a6b930fe3f583febcd1f29b423bd020eb1c525209";

/* ---- passwords ---------------------------------------------------------- */

static int check(const ls_security *security, const char *user,
                 const char *password, struct credentials_claim *out)
{
    return credentials_check_plain(security, user, strlen(user), password,
                                   strlen(password), out);
}

TEST(a_password_is_what_the_page_says)
{
    ls_security *security = plain(0);
    const struct credentials_claim claim = CLAIM;
    char user[CREDENTIALS_USER_MAX], password[CREDENTIALS_PASSWORD_MAX];
    assert_ok(credentials_password(security, &claim, user, password));
    assert_string_equal(user, "3");
    assert_string_equal(password, password_text);
    ls_security_destroy(&security);
}

TEST(a_listener_reads_the_claim)
{
    ls_security *security = plain(0);
    struct credentials_claim claim;
    assert_ok(check(security, "3", password_text, &claim));
    assert_int_equal(claim.id, 3);
    assert_true(claim.incarnation == UINT64_C(0x123456789abcdef));
    assert_string_equal(claim.address, ADDRESS);
    ls_security_destroy(&security);
}

TEST(the_ends_of_ranges_come_back)
{
    ls_security *security = plain(0);
    struct credentials_claim claim = {.id = UINT32_MAX,
                                      .incarnation = UINT64_MAX};
    struct credentials_claim again;
    char user[CREDENTIALS_USER_MAX], password[CREDENTIALS_PASSWORD_MAX];
    memset(claim.address, 'a', 171);
    assert_ok(credentials_password(security, &claim, user, password));
    assert_int_equal(strlen(password), 255);
    assert_ok(check(security, user, password, &again));
    assert_int_equal(again.id, UINT32_MAX);
    assert_true(again.incarnation == UINT64_MAX);
    assert_string_equal(again.address, claim.address);

    claim = (struct credentials_claim){.address = "~"};
    assert_ok(credentials_password(security, &claim, user, password));
    assert_ok(check(security, "0", password, &again));
    assert_int_equal(again.id, 0);
    assert_true(again.incarnation == 0);
    ls_security_destroy(&security);
}

TEST(an_address_that_is_too_long_or_no_text_is_refused)
{
    ls_security *security = plain(0);
    struct credentials_claim claim = {.incarnation = UINT64_MAX};
    char user[CREDENTIALS_USER_MAX], password[CREDENTIALS_PASSWORD_MAX];
    static const char *const bad[] = {"", "two words", "tab\t", "\xc3\xa4"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        memcpy(claim.address, bad[i], strlen(bad[i]) + 1);
        failed(credentials_password(security, &claim, user, password),
               LS_EINVAL, "visible ASCII");
    }
    memset(claim.address, 'a', 172);
    failed(credentials_password(security, &claim, user, password), LS_EINVAL,
           "1 bytes too long");
    memset(claim.address, 'a', sizeof claim.address); /* without an end */
    failed(credentials_password(security, &claim, user, password), LS_EINVAL,
           "1 to 255");
    ls_security_destroy(&security);
}

TEST(another_secret_is_refused)
{
    ls_security *other = plain(1);
    struct credentials_claim claim;
    failed(check(other, "3", password_text, &claim), LS_EMISMATCH,
           "node 3 does not know the secret");
    ls_security_destroy(&other);
}

TEST(a_password_is_of_one_node_alone)
{
    ls_security *security = plain(0);
    struct credentials_claim claim;
    failed(check(security, "4", password_text, &claim), LS_EMISMATCH, "node 4");
    ls_security_destroy(&security);
}

/* Exactly so many bytes on the heap: a sanitizer sees a read beyond them. */
static int check_bytes(const ls_security *security, const void *user,
                       size_t user_size, const void *password,
                       size_t password_size)
{
    struct credentials_claim claim = {.id = 77};
    char *u = malloc(user_size + 1), *p = malloc(password_size + 1);
    assert_non_null(u);
    assert_non_null(p);
    memcpy(u + 1, user, user_size);
    memcpy(p + 1, password, password_size);
    const int status = credentials_check_plain(security, u + 1, user_size,
                                               p + 1, password_size, &claim);
    free(u);
    free(p);
    if (status != LS_OK)
        assert_int_equal(claim.id, 77); /* written on success only */
    return status;
}

TEST(every_cut_and_every_changed_byte_is_refused)
{
    ls_security *security = plain(0);
    char bytes[sizeof password_text];
    const size_t size = sizeof password_text - 1;
    for (size_t n = 0; n < size; n++)
        assert_int_not_equal(check_bytes(security, "3", 1, password_text, n),
                             LS_OK);
    memcpy(bytes, password_text, sizeof bytes);
    for (size_t at = 0; at < size; at++) {
        for (unsigned value = 0; value < 256; value++) {
            bytes[at] = (char)value;
            const int status = check_bytes(security, "3", 1, bytes, size);
            assert_int_equal(status == LS_OK, bytes[at] == password_text[at]);
        }
        bytes[at] = password_text[at];
    }
    ls_security_destroy(&security);
}

TEST(every_other_user_is_refused)
{
    ls_security *security = plain(0);
    for (unsigned value = 0; value < 256; value++) {
        const char user = (char)value;
        assert_int_equal(check_bytes(security, &user, 1, password_text,
                                     sizeof password_text - 1) == LS_OK,
                         user == '3');
    }
    static const char *const bad[] = {
        "",    "03",         "3 ", " 3",  "+3",
        "0x3", "4294967296", "-1", "3\n", "99999999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_not_equal(check_bytes(security, bad[i], strlen(bad[i]),
                                         password_text,
                                         sizeof password_text - 1),
                             LS_OK);
    assert_int_not_equal(check_bytes(security, "3", 2,
                                     password_text, /* with its NUL */
                                     sizeof password_text - 1),
                         LS_OK);
    ls_security_destroy(&security);
}

TEST(bytes_of_a_wrong_form_say_what_is_wrong)
{
    ls_security *security = plain(0);
    struct credentials_claim claim;
    char long_one[400];
    memset(long_one, 'a', sizeof long_one);
    long_one[sizeof long_one - 1] = '\0';
    failed(check(security, "x", password_text, &claim), LS_EPROTO, "not an id");
    failed(check(security, "4294967299", password_text, &claim), LS_EPROTO,
           "not an id");
    failed(check(security, "3", long_one, &claim), LS_EPROTO, "255");
    failed(check(security, "3", "3 0 0 a", &claim), LS_EPROTO, "version");
    failed(check(security, "3", "2 xyz", &claim), LS_EPROTO, "incarnation");
    failed(check(security, "3", "2 00000000000000000 ", &claim), LS_EPROTO,
           "incarnation");
    failed(check(security, "3", "2 0 abc a", &claim), LS_EPROTO, "hash");
    memcpy(long_one, password_text, 84);
    long_one[84] = '\0';
    long_one[83] = '\x7f';
    failed(check(security, "3", long_one, &claim), LS_EPROTO, "address");
    failed(credentials_check_plain(security, NULL, 0, NULL, 0, &claim),
           LS_EPROTO, "not an id");
    failed(credentials_check_plain(security, "3", 1, NULL, 0, &claim),
           LS_EPROTO, "255");
    ls_security_destroy(&security);
}

TEST(passwords_are_of_plain_only)
{
    ls_security *securities[] = {none(), curve(*state, ID)};
    struct credentials_claim claim = CLAIM;
    char user[CREDENTIALS_USER_MAX], password[CREDENTIALS_PASSWORD_MAX];
    for (size_t i = 0; i < 2; i++) {
        failed(credentials_password(securities[i], &claim, user, password),
               LS_ESTATE, "not plain");
        failed(check(securities[i], "3", password_text, &claim), LS_ESTATE,
               "not plain");
        ls_security_destroy(&securities[i]);
    }
}

/* ---- proofs ------------------------------------------------------------- */

TEST(a_proof_is_what_the_page_says)
{
    ls_security *security = plain(0);
    const struct credentials_claim claim = CLAIM;
    uint8_t proof[CREDENTIALS_PROOF_BYTES], wanted[CREDENTIALS_PROOF_BYTES];
    from_hex(proof_hex, wanted, sizeof wanted);
    assert_int_equal(credentials_prove(security, "c0ffee", &claim, proof),
                     sizeof proof);
    assert_memory_equal(proof, wanted, sizeof wanted);
    assert_true(
        credentials_proved(security, "c0ffee", &claim, proof, sizeof proof));
    ls_security_destroy(&security);
}

TEST(a_proof_is_of_one_claim_challenge_and_secret)
{
    ls_security *security = plain(0), *other = plain(1);
    const struct credentials_claim claim = CLAIM;
    const size_t size = CREDENTIALS_PROOF_BYTES;
    struct credentials_claim wrong[] = {CLAIM, CLAIM, CLAIM};
    uint8_t proof[CREDENTIALS_PROOF_BYTES];
    (void)credentials_prove(security, "c0ffee", &claim, proof);
    wrong[0].id++;
    wrong[1].incarnation++;
    wrong[2].address[0] = 'T';
    for (size_t i = 0; i < 3; i++)
        assert_false(
            credentials_proved(security, "c0ffee", &wrong[i], proof, size));
    assert_false(credentials_proved(security, "c0ffe", &claim, proof, size));
    assert_false(credentials_proved(other, "c0ffee", &claim, proof, size));
    /* Where one text ends and the next begins is part of it. */
    wrong[2] = claim;
    wrong[2].address[strlen(ADDRESS) - 1] = '\0';
    assert_false(
        credentials_proved(security, "0c0ffee", &wrong[2], proof, size));
    ls_security_destroy(&security);
    ls_security_destroy(&other);
}

TEST(every_cut_and_every_changed_byte_of_a_proof)
{
    ls_security *security = plain(0);
    const struct credentials_claim claim = CLAIM;
    uint8_t proof[CREDENTIALS_PROOF_BYTES + 1] = {0};
    (void)credentials_prove(security, "x", &claim, proof);
    for (size_t n = 0; n <= sizeof proof; n++)
        assert_int_equal(credentials_proved(security, "x", &claim, proof, n),
                         n == CREDENTIALS_PROOF_BYTES);
    for (size_t at = 0; at < CREDENTIALS_PROOF_BYTES; at++) {
        proof[at] ^= 1;
        assert_false(credentials_proved(security, "x", &claim, proof,
                                        CREDENTIALS_PROOF_BYTES));
        proof[at] ^= 1;
    }
    ls_security_destroy(&security);
}

TEST(without_plain_there_is_nothing_to_prove)
{
    ls_security *securities[] = {none(), curve(*state, ID)};
    const struct credentials_claim claim = CLAIM;
    uint8_t proof[CREDENTIALS_PROOF_BYTES] = {0};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(credentials_prove(securities[i], "x", &claim, proof),
                         0);
        assert_true(credentials_proved(securities[i], "x", &claim, NULL, 0));
        assert_false(credentials_proved(securities[i], "x", &claim, proof,
                                        sizeof proof));
        ls_security_destroy(&securities[i]);
    }
}

/* ---- keys --------------------------------------------------------------- */

TEST(a_key_is_known_by_its_certificate)
{
    ls_security *security = curve(*state, ID);
    char text[CREDENTIALS_KEY_MAX];
    uint8_t key[KEY_BYTES];
    uint32_t id = 0;
    bool enrolment = true;
    assert_ok(credentials_server_key(security, 4, text));
    assert_true(key_read(text, key));
    assert_ok(credentials_check_curve(security, key, &id, &enrolment));
    assert_int_equal(id, 4);
    assert_false(enrolment);
    key[31] ^= 1;
    id = 77;
    failed(credentials_check_curve(security, key, &id, &enrolment), LS_ENOENT,
           "copy its node-ID.cert there");
    assert_int_equal(id, 77);
    ls_security_destroy(&security);
}

TEST(the_enrolment_key_is_of_no_node)
{
    struct scratch *scratch = *state;
    ls_security *security = curve(scratch, ID);
    char text[4096];
    uint8_t key[KEY_BYTES];
    uint32_t id = 77;
    bool enrolment = false;
    (void)read_file(in(scratch, "keys/enrolment.cert").text, text, sizeof text);
    char *at = strstr(text, "public-key = \"");
    assert_non_null(at);
    at += strlen("public-key = \"");
    at[40] = '\0';
    assert_true(key_read(at, key));
    assert_ok(credentials_check_curve(security, key, &id, &enrolment));
    assert_true(enrolment);
    assert_int_equal(id, 77);
    ls_security_destroy(&security);
}

TEST(a_node_has_its_own_keys)
{
    ls_security *security = curve(*state, ID), *other = curve(*state, 4);
    char public_key[CREDENTIALS_KEY_MAX], secret_key[CREDENTIALS_KEY_MAX];
    char seen[CREDENTIALS_KEY_MAX], told[LS_PUBLIC_KEY_MAX];
    uint8_t secret[KEY_BYTES], public[KEY_BYTES];
    assert_ok(credentials_own_keys(security, public_key, secret_key));
    assert_true(key_read(secret_key, secret));
    assert_int_equal(crypto_scalarmult_base(public, secret), 0);
    key_write(public, seen);
    assert_string_equal(seen, public_key);
    assert_ok(credentials_server_key(other, ID, seen));
    assert_string_equal(seen, public_key);
    assert_ok(ls_security_public_key(security, told));
    assert_string_equal(told, public_key);
    ls_security_destroy(&security);
    ls_security_destroy(&other);
}

TEST(an_unknown_node_has_no_key)
{
    struct scratch *scratch = *state;
    ls_security *security = curve(scratch, ID);
    char text[CREDENTIALS_KEY_MAX];
    failed(credentials_server_key(security, 5, text), LS_ENOENT,
           "no certificate of node 5 in");
    failed(credentials_server_key(security, 5, text), LS_ENOENT,
           "copy node-5.cert there");
    failed(credentials_server_key(security, 5, text), LS_ENOENT,
           scratch->folder);
    ls_security_destroy(&security);
}

TEST(keys_are_of_curve_only)
{
    ls_security *securities[] = {none(), plain(0)};
    char public_key[CREDENTIALS_KEY_MAX], secret_key[CREDENTIALS_KEY_MAX];
    const uint8_t key[KEY_BYTES] = {0};
    uint32_t id;
    bool enrolment;
    for (size_t i = 0; i < 2; i++) {
        ls_security *security = securities[i];
        failed(credentials_check_curve(security, key, &id, &enrolment),
               LS_ESTATE, "not curve");
        failed(credentials_own_keys(security, public_key, secret_key),
               LS_ESTATE, "not curve");
        failed(credentials_server_key(security, 3, public_key), LS_ESTATE,
               "not curve");
        failed(ls_security_public_key(security, public_key), LS_ESTATE,
               "curve only");
        failed(ls_security_trust(security, 3, public_key), LS_ESTATE,
               "curve only");
        ls_security_destroy(&security);
    }
}

/* ---- roles and labels --------------------------------------------------- */

TEST(a_certificate_fixes_the_role_and_bounds_the_labels)
{
    ls_security *security = curve(*state, 4);
    static const struct {
        const char *role, *labels;
        bool suits;
    } cases[] = {
        {"learner", "fast,gpu", true},
        {"learner", "gpu,fast", true},
        {"learner", "gpu", true},
        {"learner", "", true},
        {"learner", "fast,,gpu", true},
        {"learner", "gp", false},
        {"learner", "gpus", false},
        {"learner", "fast,slow", false},
        {"learner", "fast.gpu", false},
        {"collector", "gpu", false},
        {"", "gpu", false},
        {"learne", "", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (credentials_suits(security, ID, cases[i].role, cases[i].labels) !=
            cases[i].suits)
            fail_msg("%s, %s", cases[i].role, cases[i].labels);
    /* One that fixes nothing, and none at all. */
    assert_true(credentials_suits(security, 4, "anything", "at,all"));
    assert_false(credentials_suits(security, 5, "learner", "gpu"));
    ls_security_destroy(&security);
}

TEST(without_certificates_everyone_is_what_it_says)
{
    ls_security *securities[] = {none(), plain(0)};
    for (size_t i = 0; i < 2; i++) {
        assert_true(credentials_suits(securities[i], 3, "anything", "at,all"));
        ls_security_destroy(&securities[i]);
    }
}

/* ---- the object --------------------------------------------------------- */

TEST(a_security_says_its_mode)
{
    ls_security *securities[] = {none(), plain(0), curve(*state, ID)};
    static const enum ls_security_mode modes[] = {
        LS_SECURITY_NONE, LS_SECURITY_PLAIN, LS_SECURITY_CURVE};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(ls_security_mode(securities[i]), modes[i]);
        ls_security_destroy(&securities[i]);
        assert_null(securities[i]);
        ls_security_destroy(&securities[i]);
    }
    ls_security_destroy(NULL);
}

TEST(no_secret_is_no_secret)
{
    static const uint8_t zeros[LS_SECRET_BYTES];
    ls_security *security = NULL;
    failed(ls_security_plain(&security, zeros), LS_EINVAL, "32 random bytes");
    failed(ls_security_plain(&security, NULL), LS_EINVAL, "32 random bytes");
    assert_null(security);
}

int main(void)
{
    if (sodium_init() < 0)
        return 1;
    return tests_run_with(scratch_set_up, scratch_tear_down);
}
