/* Keys and certificates: files that are made, and what a node needs to speak.
 */
#include "lockstep/security.h"

#include <signal.h>

#include "keys_fixture.h"
#include "test.h"

/* ---- making ------------------------------------------------------------- */

TEST_WITH(a_node_gets_a_certificate_and_a_secret_key, scratch_set_up,
          scratch_tear_down)
{
    const mode_t before = umask(022);
    assert_ok(
        ls_keys_create(keys(*state, "").text, 7, "collector", "fast,gpu"));
    assert_int_equal(umask(before), 022);
    assert_int_equal(mode_of(keys(*state, "").text), 0700);
    assert_int_equal(mode_of(keys(*state, "node-7.cert").text), 0644);
    assert_int_equal(mode_of(keys(*state, "node-7.cert_secret").text), 0600);
    assert_int_equal(count_files(keys(*state, "").text), 2);
    char text[CERTIFICATE_MAX];
    (void)read_file(keys(*state, "node-7.cert").text, text, sizeof text);
    assert_null(strstr(text, "secret-key"));
    assert_non_null(strstr(text, "id = \"7\""));
}

TEST_WITH(czmq_reads_what_is_written, scratch_set_up, scratch_tear_down)
{
    const struct path certificate = keys(*state, "node-7.cert");
    assert_ok(
        ls_keys_create(keys(*state, "").text, 7, "collector", "fast,gpu"));
    zcert_t *both = load(*state, "node-7.cert"); /* reads the secret one */
    uint8_t public_key[KEY_BYTES];
    assert_int_equal(crypto_scalarmult_base(public_key, zcert_secret_key(both)),
                     0);
    assert_memory_equal(public_key, zcert_public_key(both), KEY_BYTES);
    assert_string_equal(zcert_meta(both, "id"), "7");
    assert_string_equal(zcert_meta(both, "role"), "collector");
    assert_string_equal(zcert_meta(both, "labels"), "fast,gpu");
    assert_int_equal(strlen(zcert_meta(both, "sign")), 64);

    assert_int_equal(unlink(keys(*state, "node-7.cert_secret").text), 0);
    zcertstore_t *store = zcertstore_new(keys(*state, "").text);
    zcert_t *found = zcertstore_lookup(store, zcert_public_txt(both));
    assert_non_null(found);
    assert_string_equal(zcert_meta(found, "id"), "7");
    assert_true(is_there(certificate.text));
    zcertstore_destroy(&store);
    zcert_destroy(&both);
}

TEST_WITH(a_certificate_of_czmq_is_read, scratch_set_up, scratch_tear_down)
{
    zcert_t *cert = zcert_new();
    uint8_t sign[crypto_sign_PUBLICKEYBYTES];
    uint8_t secret_sign[crypto_sign_SECRETKEYBYTES];
    char hex[2 * sizeof sign + 1];
    certificate_sign_keys(zcert_secret_key(cert), sign, secret_sign);
    (void)sodium_bin2hex(hex, sizeof hex, sign, sizeof sign);
    zcert_set_meta(cert, "id", "%d", OWN);
    zcert_set_meta(cert, "sign", "%s", hex);
    zcert_set_meta(cert, "organisation", "%s", "of no interest");
    assert_int_equal(mkdir(keys(*state, "").text, 0700), 0);
    assert_int_equal(zcert_save(cert, keys(*state, "node-3.cert").text), 0);
    ls_security *security = open_keys(*state);
    char key[LS_PUBLIC_KEY_MAX];
    assert_ok(ls_security_public_key(security, key));
    assert_string_equal(key, zcert_public_txt(cert));
    ls_security_destroy(&security);
    zcert_destroy(&cert);
}

TEST_WITH(no_role_and_an_empty_one, scratch_set_up, scratch_tear_down)
{
    assert_ok(ls_keys_create(keys(*state, "").text, 3, NULL, NULL));
    assert_ok(ls_keys_create(keys(*state, "").text, 4, "", ""));
    ls_security *security = open_keys(*state);
    assert_true(credentials_suits(security, 3, "any", "any"));
    assert_true(credentials_suits(security, 4, "", ""));
    assert_false(credentials_suits(security, 4, "any", ""));
    assert_false(credentials_suits(security, 4, "", "any"));
    ls_security_destroy(&security);
}

TEST_WITH(every_id_and_the_longest_words, scratch_set_up, scratch_tear_down)
{
    char role[WIRE_ROLE_MAX + 2], labels[WIRE_LABELS_MAX + 2];
    memset(role, 'r', sizeof role);
    memset(labels, 'l', sizeof labels);
    role[WIRE_ROLE_MAX] = labels[WIRE_LABELS_MAX] = '\0';
    make(*state, OWN);
    assert_ok(ls_keys_create(keys(*state, "").text, UINT32_MAX, role, labels));
    make(*state, 0);
    ls_security *security = open_keys(*state);
    assert_true(knows(security, 0));
    assert_true(knows(security, UINT32_MAX));
    assert_true(credentials_suits(security, UINT32_MAX, role, labels));
    ls_security_destroy(&security);
}

TEST_WITH(nothing_is_overwritten, scratch_set_up, scratch_tear_down)
{
    struct scratch *scratch = *state;
    static const char *const names[] = {"node-7.cert", "node-7.cert_secret"};
    assert_int_equal(mkdir(keys(scratch, "").text, 0700), 0);
    for (size_t i = 0; i < 2; i++) {
        char text[8];
        const struct path path = keys(scratch, names[i]);
        write_file(path.text, "mine", 4, 0644);
        failed(ls_keys_create(keys(scratch, "").text, 7, NULL, NULL), LS_EEXIST,
               path.text);
        (void)read_file(path.text, text, sizeof text);
        assert_string_equal(text, "mine");
        assert_int_equal(count_files(keys(scratch, "").text), 1);
        assert_int_equal(unlink(path.text), 0);
    }
    assert_ok(ls_keys_create_enrolment(keys(scratch, "").text));
    failed(ls_keys_create_enrolment(keys(scratch, "").text), LS_EEXIST,
           "enrolment.cert");
}

TEST_WITH(wrong_arguments_make_nothing, scratch_set_up, scratch_tear_down)
{
    const char *folder = keys(*state, "").text;
    char role[WIRE_ROLE_MAX + 2], labels[WIRE_LABELS_MAX + 2];
    memset(role, 'r', sizeof role);
    memset(labels, 'l', sizeof labels);
    role[WIRE_ROLE_MAX + 1] = labels[WIRE_LABELS_MAX + 1] = '\0';
    const char *const bad_roles[] = {role, "a b", "a\"b", "a\nb"};
    const char *const bad_labels[] = {labels, "a b", "a;b", "\xc3\xa4"};
    for (size_t i = 0; i < 4; i++) {
        failed(ls_keys_create(folder, 7, bad_roles[i], NULL), LS_EINVAL,
               "role \"");
        failed(ls_keys_create(folder, 7, NULL, bad_labels[i]), LS_EINVAL,
               "labels \"");
    }
    failed(ls_keys_create(NULL, 7, NULL, NULL), LS_EINVAL, "path");
    failed(ls_keys_create("", 7, NULL, NULL), LS_EINVAL, "path");
    failed(ls_keys_create_enrolment(NULL), LS_EINVAL, "path");
    assert_false(is_there(folder));
}

TEST_WITH(a_folder_is_made_but_not_its_parents, scratch_set_up,
          scratch_tear_down)
{
    failed(ls_keys_create(in(*state, "absent/keys").text, 7, NULL, NULL),
           LS_ENOENT, "absent/keys");
    write_file(in(*state, "file").text, "", 0, 0600);
    failed(ls_keys_create(in(*state, "file").text, 7, NULL, NULL), LS_ECONFIG,
           "is not a folder");
}

/* ---- opening ------------------------------------------------------------ */

TEST_WITH(a_folder_must_be_there, scratch_set_up, scratch_tear_down)
{
    ls_security *security = NULL;
    open_fails(*state, LS_ENOENT, "keys is not there");
    failed(ls_security_curve(&security, NULL, OWN), LS_EINVAL, "no folder");
    failed(ls_security_curve(&security, "", OWN), LS_EINVAL, "no folder");
    char long_one[GUARDED_PATH_MAX + 1];
    memset(long_one, 'a', sizeof long_one);
    long_one[GUARDED_PATH_MAX] = '\0';
    failed(ls_security_curve(&security, long_one, OWN), LS_EINVAL, "bytes");
    write_file(keys(*state, "").text, "", 0, 0600);
    open_fails(*state, LS_ECONFIG, "is not a folder");
}

TEST_WITH(a_folder_that_others_may_write_to_is_refused, scratch_set_up,
          scratch_tear_down)
{
    const struct path folder = keys(*state, "");
    make(*state, OWN);
    static const mode_t modes[] = {0720, 0702, 01777, 0775};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        assert_int_equal(chmod(folder.text, modes[i]), 0);
        open_fails(*state, LS_ECONFIG, "chmod go-w");
        open_fails(*state, LS_ECONFIG, "others may write to ");
        failed(ls_keys_create(folder.text, 7, NULL, NULL), LS_ECONFIG,
               "chmod go-w");
    }
    assert_int_equal(chmod(folder.text, 0755), 0);
    ls_security *security = open_keys(*state);
    ls_security_destroy(&security);
}

TEST_WITH(without_its_secret_key_no_node_speaks, keys_set_up, scratch_tear_down)
{
    assert_int_equal(unlink(keys(*state, "node-3.cert_secret").text), 0);
    open_fails(*state, LS_ENOENT, "has no node-3.cert_secret");
    open_fails(*state, LS_ENOENT, "lockstep keygen");
}

TEST_WITH(a_secret_key_that_others_may_read_is_refused, keys_set_up,
          scratch_tear_down)
{
    const struct path path = keys(*state, "node-3.cert_secret");
    for (mode_t open_to = 1; open_to <= 077; open_to++) {
        assert_int_equal(chmod(path.text, 0600 | open_to), 0);
        open_fails(*state, LS_ECONFIG, "chmod go-rwx");
        open_fails(*state, LS_ECONFIG, "others may read or write ");
        open_fails(*state, LS_ECONFIG, path.text);
    }
    const struct path away = keys(*state, "away");
    assert_int_equal(chmod(path.text, 0600), 0);
    assert_int_equal(rename(path.text, away.text), 0);
    assert_int_equal(symlink(away.text, path.text), 0);
    open_fails(*state, LS_ECONFIG, "is a symbolic link");
}

TEST_WITH(a_secret_file_of_another_node_is_refused, keys_set_up,
          scratch_tear_down)
{
    assert_int_equal(rename(keys(*state, "node-4.cert_secret").text,
                            keys(*state, "node-3.cert_secret").text),
                     0);
    open_fails(*state, LS_ECONFIG, "it is not of node 3");
    assert_int_equal(unlink(keys(*state, "node-3.cert_secret").text), 0);
    assert_ok(ls_keys_create_enrolment(keys(*state, "").text));
    assert_int_equal(rename(keys(*state, "enrolment.cert_secret").text,
                            keys(*state, "node-3.cert_secret").text),
                     0);
    open_fails(*state, LS_ECONFIG, "it is not of node 3");
}

TEST_WITH(halves_that_do_not_belong_together_are_refused, keys_set_up,
          scratch_tear_down)
{
    const struct path path = keys(*state, "node-3.cert_secret");
    zcert_t *own = load(*state, "node-3.cert");
    zcert_t *other = load(*state, "node-4.cert");
    edit_file(path.text, zcert_public_txt(own), zcert_public_txt(other));
    open_fails(*state, LS_ECONFIG, "does not belong to its secret-key");
    edit_file(path.text, zcert_public_txt(other), zcert_public_txt(own));
    edit_file(path.text, zcert_meta(own, "sign"), zcert_meta(other, "sign"));
    open_fails(*state, LS_ECONFIG, "does not belong to its secret-key");
    edit_file(path.text, zcert_meta(other, "sign"), zcert_meta(own, "sign"));
    edit_file(path.text, "secret-key = \"", "secret-key = \"\\");
    open_fails(*state, LS_ECONFIG, "secret-key is not a key");
    edit_file(path.text, "secret-key", "secrets");
    open_fails(*state, LS_ECONFIG, "secret-key is not a key");
    zcert_destroy(&own);
    zcert_destroy(&other);
}

TEST_WITH(one_certificate_per_node_and_per_key, keys_set_up, scratch_tear_down)
{
    struct scratch *scratch = *state;
    const struct path four = keys(scratch, "node-4.cert");
    const struct path copy = keys(scratch, "copy.cert");
    copy_file(four.text, copy.text);
    open_fails(scratch, LS_ECONFIG, "copy.cert and ");
    open_fails(scratch, LS_ECONFIG, "node-4.cert have the same key");
    edit_file(copy.text, "id = \"4\"", "id = \"5\"");
    open_fails(scratch, LS_ECONFIG, "have the same key");
    assert_int_equal(unlink(copy.text), 0);
    make(scratch, 5);
    edit_file(keys(scratch, "node-5.cert").text, "id = \"5\"", "id = \"4\"");
    open_fails(scratch, LS_ECONFIG, "node-5.cert have the same id");
    open_fails(scratch, LS_ECONFIG, "node-4.cert and ");
}

TEST_WITH(its_own_certificate_may_be_missing_but_not_another, keys_set_up,
          scratch_tear_down)
{
    struct scratch *scratch = *state;
    const struct path path = keys(scratch, "node-3.cert");
    assert_int_equal(unlink(path.text), 0);
    ls_security *security = open_keys(scratch);
    assert_true(knows(security, OWN));
    ls_security_destroy(&security);
    copy_file(keys(scratch, "node-4.cert").text, path.text);
    assert_int_equal(unlink(keys(scratch, "node-4.cert").text), 0);
    edit_file(path.text, "id = \"4\"", "id = \"3\"");
    open_fails(scratch, LS_ECONFIG, "node-3.cert_secret have the same id");
}

TEST_WITH(more_certificates_than_there_may_be, keys_set_up, scratch_tear_down)
{
    struct scratch *scratch = *state;
    const struct path first = keys(scratch, "node-4.cert");
    for (unsigned i = 0; i < KEYRING_FILES_MAX - 1; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "%u.cert", i);
        assert_int_equal(link(first.text, keys(scratch, name).text), 0);
    }
    open_fails(scratch, LS_ELIMIT, "over 16384 certificates");
}

TEST_WITH(files_that_are_no_certificates_do_not_count, keys_set_up,
          scratch_tear_down)
{
    struct scratch *scratch = *state;
    static const char *const names[] = {".cert", ".hidden.cert", "node-4.cert~",
                                        "node-4.pem", "README"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        write_file(keys(scratch, names[i]).text, "any", 3, 0644);
    ls_security *security = open_keys(scratch);
    assert_int_equal(scratch->n_lines, 0);
    ls_security_destroy(&security);
}

TEST_WITH(a_relative_folder_is_found_from_elsewhere, keys_set_up,
          scratch_tear_down)
{
    struct scratch *scratch = *state;
    char here[256];
    ls_security *security = NULL;
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(scratch->folder), 0);
    const int status = ls_security_curve(&security, "keys", OWN);
    assert_int_equal(chdir(here), 0);
    assert_int_equal(status, LS_OK);
    char key[CREDENTIALS_KEY_MAX];
    failed(credentials_server_key(security, 5, key), LS_ENOENT,
           keys(scratch, "").text);
    ls_security_destroy(&security);
}

/* ---- keys as text ------------------------------------------------------- */

/* Source: the test keys of zmq_curve(7). */
TEST_WITH(keys_in_z85, scratch_set_up, scratch_tear_down)
{
    static const struct {
        const char *hex, *text;
    } pairs[] = {
        {"bb88471d65e2659b30c55a5321cebb5aab2b70a398645c26dca2b2fcb43fc518",
         "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"},
        {"7bb864b489afa3671fbe69101f94b38972f24816dfb01b51656b3fec8dfd0888",
         "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs"},
        {"0000000000000000000000000000000000000000000000000000000000000000",
         "0000000000000000000000000000000000000000"},
        {"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
         "%nSc0%nSc0%nSc0%nSc0%nSc0%nSc0%nSc0%nSc0"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        uint8_t key[KEY_BYTES];
        char hex[2 * KEY_BYTES + 1], text[CREDENTIALS_KEY_MAX];
        assert_true(key_read(pairs[i].text, key));
        (void)sodium_bin2hex(hex, sizeof hex, key, sizeof key);
        assert_string_equal(hex, pairs[i].hex);
        key_write(key, text);
        assert_string_equal(text, pairs[i].text);
    }
    uint8_t key[KEY_BYTES];
    assert_false(key_read("%nSc1%nSc0%nSc0%nSc0%nSc0%nSc0%nSc0%nSc0", key));
}

/* ---- CZMQ --------------------------------------------------------------- */

TEST_WITH(signals_are_left_as_they_were, keys_set_up, scratch_tear_down)
{
    struct sigaction is;
    make(*state, 5);
    ls_security *security = open_keys(*state);
    assert_true(knows(security, 5));
    ls_security_destroy(&security);
    assert_int_equal(sigaction(SIGINT, NULL, &is), 0);
    assert_true(is.sa_handler == SIG_DFL);
    assert_int_equal(sigaction(SIGTERM, NULL, &is), 0);
    assert_true(is.sa_handler == SIG_DFL);
}

int main(void)
{
    if (sodium_init() < 0)
        return 1;
    return tests_run();
}
