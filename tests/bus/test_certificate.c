/* Certificates that are left out, and all that are not. */
#include "certificate.h"

#include "keys_fixture.h"
#include "test.h"

/* ---- certificates that are left out ------------------------------------- */

#define SIGN       "000102030405060708090a0b0c0d0e0f000102030405060708090a0b0c0d0e0f"
#define GOOD_CURVE "curve\n    public-key = \"" KEY "\"\n"
#define GOOD_META  "metadata\n    id = \"9\"\n    sign = \"" SIGN "\"\n"

static const struct {
    const char *text, *word;
} malformed[] = {
    {"", "either an id or enrolment"},
    {"metadata\n    sign = \"" SIGN "\"\n" GOOD_CURVE, "either an id"},
    {"metadata\n    id = \"9\"\n    enrolment = \"yes\"\n" GOOD_CURVE,
     "either an id"},
    {"metadata\n    enrolment = \"no\"\n" GOOD_CURVE, "must be \"yes\""},
    {"metadata\n    id = \"\"\n" GOOD_CURVE, "32 bits"},
    {"metadata\n    id = \"09\"\n" GOOD_CURVE, "32 bits"},
    {"metadata\n    id = \"-9\"\n" GOOD_CURVE, "32 bits"},
    {"metadata\n    id = \"9 \"\n" GOOD_CURVE, "32 bits"},
    {"metadata\n    id = \"4294967296\"\n" GOOD_CURVE, "32 bits"},
    {"metadata\n    id = \"99999999999999999999999\"\n" GOOD_CURVE, "32 bits"},
    {"metadata\n    id = \"9\"\n" GOOD_CURVE, "sign, 64"},
    {"metadata\n    id = \"9\"\n    sign = \"00\"\n" GOOD_CURVE, "sign, 64"},
    {"metadata\n    id = \"9\"\n    sign = \"" SIGN "0\"\n" GOOD_CURVE,
     "sign, 64"},
    {"metadata\n    id = \"9\"\n    sign = \"" SIGN "00\"\n" GOOD_CURVE,
     "sign, 64"},
    {"metadata\n    id = \"9\"\n    role = \"a b\"\n" GOOD_CURVE, "role must"},
    {"metadata\n    id = \"9\"\n    labels = \"a;b\"\n" GOOD_CURVE,
     "labels must"},
    {GOOD_META, "public-key is not a key"},
    {GOOD_META "curve\n    public-key = \"short\"\n",
     "public-key is not a key"},
    {GOOD_META "curve\n    public-key = \"" KEY "0\"\n", "not a key in Z85"},
    /* a character that Z85 has not, and a group that is over 32 bits */
    {GOOD_META "curve\n    public-key = \"~ne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV"
               "{hID\"\n",
     "not a key in Z85"},
    {GOOD_META "curve\n    public-key = \"#####w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV"
               "{hID\"\n",
     "not a key in Z85"},
    {"metadata\n  id = \"9\"\n", "line 2 has a wrong indentation"},
    {"    id = \"9\"\n", "line 1 has a wrong indentation"},
    {"metadata\n    a\n        b = 1\n", "line 3 has a wrong indentation"},
    {"metadata\n  # comment\n", "line 2 has a wrong indentation"},
    {"metadata\n   \r# comment\n", "line 2 has a wrong indentation"},
    {"metadata\n    id = \"9\n", "line 2 has a quote that does not end"},
    {"metadata\n    id = \"9\" 9\n", "line 2 has text behind its end"},
    {"metadata extra\n", "line 1 has text behind its end"},
    {"= 9\n", "line 1 has no name"},
    {"/metadata\n", "line 1 has no name"},
    {"metadata/id = 9\n", "line 1 has text behind its end"},
    {"\xff\xfe", "line 1 has no name"},
};

/* stdout is the program's own, and CZMQ would write there. */
static struct path silence(const struct scratch *scratch, int *saved)
{
    const struct path path = in(scratch, "stdout");
    assert_int_equal(fflush(stdout), 0);
    *saved = dup(STDOUT_FILENO);
    const int fd = open(path.text, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(*saved >= 0 && fd >= 0);
    assert_int_equal(dup2(fd, STDOUT_FILENO), STDOUT_FILENO);
    assert_int_equal(close(fd), 0);
    return path;
}

static void restore(const struct path *path, int saved)
{
    struct stat is;
    assert_int_equal(fflush(stdout), 0);
    assert_int_equal(dup2(saved, STDOUT_FILENO), STDOUT_FILENO);
    assert_int_equal(close(saved), 0);
    assert_int_equal(stat(path->text, &is), 0);
    assert_int_equal(is.st_size, 0);
}

TEST_WITH(a_malformed_certificate_is_left_out_with_a_warning, keys_set_up,
          scratch_tear_down)
{
    struct scratch *scratch = *state;
    const struct path path = keys(scratch, "bad.cert");
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        int saved;
        write_file(path.text, malformed[i].text, strlen(malformed[i].text),
                   0644);
        scratch->n_lines = 0;
        const struct path heard = silence(scratch, &saved);
        ls_security *security = open_keys(scratch);
        restore(&heard, saved);
        if (scratch->n_lines != 1 ||
            strstr(scratch->last_line, malformed[i].word) == NULL ||
            strstr(scratch->last_line, path.text) == NULL)
            fail_msg("%s: %d lines, %s", malformed[i].text, scratch->n_lines,
                     scratch->last_line);
        assert_true(knows(security, 4));
        assert_false(knows(security, 9));
        ls_security_destroy(&security);
    }
}

TEST_WITH(a_certificate_that_is_no_text_is_left_out, keys_set_up,
          scratch_tear_down)
{
    struct scratch *scratch = *state;
    static const char nul[] = GOOD_META "\0" GOOD_CURVE;
    char large[CERTIFICATE_MAX + 1];
    memset(large, '\n', sizeof large);
    write_file(keys(scratch, "nul.cert").text, nul, sizeof nul - 1, 0644);
    ls_security *security = open_keys(scratch);
    assert_non_null(strstr(scratch->last_line, "it is not a text"));
    ls_security_destroy(&security);
    write_file(keys(scratch, "nul.cert").text, large, sizeof large, 0644);
    security = open_keys(scratch);
    assert_non_null(strstr(scratch->last_line, "more than 4096 bytes"));
    ls_security_destroy(&security);
    write_file(keys(scratch, "nul.cert").text, large, sizeof large - 1, 0644);
    security = open_keys(scratch);
    assert_non_null(strstr(scratch->last_line, "either an id"));
    assert_int_equal(scratch->n_lines, 3);
    ls_security_destroy(&security);
}

TEST_WITH(all_forms_of_zpl_are_read, keys_set_up, scratch_tear_down)
{
    struct scratch *scratch = *state;
    static const char *const good[] = {
        GOOD_META GOOD_CURVE,
        GOOD_CURVE GOOD_META,
        "# a comment\n\n   \n" GOOD_META "    # one more\n" GOOD_CURVE,
        "metadata # a comment\r\n    id=9\r\n    sign = '" SIGN "' # of it\r\n"
        "curve\r\n    public-key = '" KEY "'",
        "more = 1\n    and = \"more, \xc3\xa4\"\n" GOOD_META GOOD_CURVE,
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        write_file(keys(scratch, "good.cert").text, good[i], strlen(good[i]),
                   0644);
        ls_security *security = open_keys(scratch);
        if (!knows(security, 9) || scratch->n_lines != 0)
            fail_msg("%s: %s", good[i], scratch->last_line);
        ls_security_destroy(&security);
    }
}

/* CZMQ reads whatever was let through to it, and has nothing to say. */
TEST_WITH(changed_certificates_never_reach_stdout, scratch_set_up,
          scratch_tear_down)
{
    static const char text[] = GOOD_META GOOD_CURVE;
    static const char values[] = "\n\r\t #'\"=/a0\x80\xff";
    char changed[sizeof text];
    struct certificate certificate;
    int saved;
    size_t n_read = 0;
    const struct path heard = silence(*state, &saved);
    for (size_t at = 0; at < sizeof text - 1; at++) {
        for (size_t i = 0; i < sizeof values; i++) { /* the NUL, too */
            memcpy(changed, text, sizeof text);
            changed[at] = values[i];
            const int status =
                certificate_read(changed, sizeof text - 1, &certificate);
            n_read += status == LS_OK;
            if (status != LS_OK)
                assert_string_not_equal(ls_error_text(), "CZMQ cannot read it");
        }
        if (certificate_read(text, at, &certificate) == LS_OK)
            n_read++;
    }
    restore(&heard, saved);
    assert_true(n_read > 0);
}

TEST_WITH(a_certificate_that_others_may_write_is_left_out, keys_set_up,
          scratch_tear_down)
{
    struct scratch *scratch = *state;
    const struct path path = keys(scratch, "node-4.cert");
    assert_int_equal(chmod(path.text, 0664), 0);
    ls_security *security = open_keys(scratch);
    assert_int_equal(scratch->n_lines, 1);
    assert_non_null(strstr(scratch->last_line, "chmod go-w"));
    assert_non_null(strstr(scratch->last_line, path.text));
    assert_false(knows(security, 4));
    ls_security_destroy(&security);
}

int main(void)
{
    if (sodium_init() < 0)
        return 1;
    return tests_run();
}
