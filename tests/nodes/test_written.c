/* Files that a user has named for a result; and the names of signals. */
#include "written.h"

#include "signal_name.h"
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/lockstep-written-XXXXXX";
static char path[64], link_path[64];

static int set_up(void **state)
{
    (void)state;
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    (void)snprintf(path, sizeof path, "%s/result", folder);
    (void)snprintf(link_path, sizeof link_path, "%s/link", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    (void)unlink(path);
    (void)unlink(link_path);
    return rmdir(folder); /* nothing else was left */
}

EACH_TEST(set_up, tear_down)

static int replace(const char *at, const char *text)
{
    const struct ls_file_part part = {text, strlen(text)};
    return written_replace(at, &part, 1, false);
}

static void assert_contains(const char *at, const char *wanted)
{
    char text[64] = "";
    FILE *file = fopen(at, "r");
    assert_non_null(file);
    (void)!fread(text, 1, sizeof text - 1, file);
    assert_int_equal(fclose(file), 0);
    assert_string_equal(text, wanted);
}

TEST(a_file_has_what_was_written_last)
{
    assert_ok(replace(path, "one"));
    assert_contains(path, "one");
    assert_ok(replace(path, "the other"));
    assert_contains(path, "the other");
}

TEST(a_link_is_not_replaced_nor_what_it_leads_to)
{
    assert_ok(replace(path, "one"));
    assert_int_equal(symlink(path, link_path), 0);
    assert_fails(replace(link_path, "two"), LS_EEXIST);
    assert_error_has("is a link, which is not replaced");
    assert_contains(path, "one");
}

TEST(only_what_has_its_form_may_be_replaced)
{
    static const struct written_form form = {"a result", "re?ult\n"};
    static const char *const fine[] = {"", "re", "result\n", "re:ult\nof two"};
    static const char *const others[] = {"mine", "result of two"};
    assert_ok(written_check(path, &form));
    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++) {
        assert_ok(replace(path, fine[i]));
        assert_ok(written_check(path, &form));
        assert_ok(written_check_replaced(path, &form));
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_ok(replace(path, others[i]));
        assert_fails(written_check(path, &form), LS_EEXIST);
        assert_error_has("result exists, and is not a result: name another");
    }
}

TEST(what_could_not_be_replaced_is_known_before)
{
    static const struct written_form form = {"a result", "one"};
    char none[128];
    assert_ok(replace(path, "one"));
    assert_int_equal(symlink(path, link_path), 0);
    assert_ok(written_check(link_path, &form));
    assert_fails(written_check_replaced(link_path, &form), LS_EEXIST);
    (void)snprintf(none, sizeof none, "%s/none/result", folder);
    assert_fails(written_check_replaced(none, &form), LS_ENOENT);
    assert_error_has("none/result: its folder does not exist");
    assert_fails(written_check_replaced("/dev/null", &form), LS_EIO);
    assert_fails(replace(none, "one"), LS_EIO);
    assert_null(strstr(ls_error_text(), ".part"));
}

TEST(a_name_that_is_too_long_is_refused)
{
    static char name[LS_PATH_MAX];
    memset(name, 'x', sizeof name - 1);
    assert_fails(replace(name, "one"), LS_ELIMIT);
}

TEST(signals_have_their_names)
{
    assert_string_equal(signal_name(SIGKILL), "SIGKILL");
    assert_string_equal(signal_name(SIGABRT), "SIGABRT");
    assert_string_equal(signal_name(SIGXFSZ), "SIGXFSZ");
    assert_string_equal(signal_name(0), "a signal");
}
