/* Folders of simulated nodes: each life begins with what the one before left,
 * and nothing that is written later is in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "simulated_home.h"

static void put(const char *folder, const char *name, const char *text)
{
    char path[SIMULATED_PATH_MAX + 64];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

static void holds(const char *folder, const char *name, const char *text)
{
    char path[SIMULATED_PATH_MAX + 64], found[64] = "";
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *in = fopen(path, "r");
    if (in != NULL) {
        assert_non_null(fgets(found, sizeof found, in));
        assert_int_equal(fclose(in), 0);
    }
    assert_string_equal(found, text);
}

static void test_the_first_folder_is_empty(void **state)
{
    struct simulated_homes homes;
    char home[SIMULATED_PATH_MAX];
    (void)state;
    assert_int_equal(simulated_homes_make(&homes), LS_OK);
    assert_int_equal(simulated_homes_add(&homes, NULL, home), LS_OK);
    assert_int_equal(rmdir(home), 0);
    simulated_homes_remove(&homes);
}

static void
test_a_later_life_sees_what_was_there_when_the_last_ended(void **state)
{
    struct simulated_homes homes;
    char home[SIMULATED_PATH_MAX], next[SIMULATED_PATH_MAX],
        inner[SIMULATED_PATH_MAX + 16];
    (void)state;
    assert_int_equal(simulated_homes_make(&homes), LS_OK);
    assert_int_equal(simulated_homes_add(&homes, NULL, home), LS_OK);
    put(home, "journal", "one");
    (void)snprintf(inner, sizeof inner, "%s/policy", home);
    assert_int_equal(mkdir(inner, 0700), 0);
    put(inner, "weights", "7");
    assert_int_equal(simulated_homes_add(&homes, home, next), LS_OK);
    put(home, "journal", "two");
    holds(next, "journal", "one");
    holds(next, "policy/weights", "7");
    simulated_homes_remove(&homes);
}

static void test_nothing_is_left(void **state)
{
    struct simulated_homes homes;
    char home[SIMULATED_PATH_MAX], root[SIMULATED_PATH_MAX];
    (void)state;
    assert_int_equal(simulated_homes_make(&homes), LS_OK);
    memcpy(root, homes.root, sizeof root);
    assert_int_equal(simulated_homes_add(&homes, NULL, home), LS_OK);
    put(home, "journal", "one");
    simulated_homes_remove(&homes);
    assert_int_not_equal(access(root, F_OK), 0);
    simulated_homes_remove(&homes);
}

static void test_what_cannot_be_copied_is_named(void **state)
{
    struct simulated_homes homes;
    char home[SIMULATED_PATH_MAX];
    (void)state;
    assert_int_equal(simulated_homes_make(&homes), LS_OK);
    assert_int_equal(simulated_homes_add(&homes, "/nowhere/at/all", home),
                     LS_ENOENT);
    assert_non_null(strstr(ls_error_text(), "/nowhere/at/all"));
    simulated_homes_remove(&homes);
    assert_int_equal(setenv("TMPDIR", "/nowhere/at/all", 1), 0);
    assert_int_equal(simulated_homes_make(&homes), LS_ENOENT);
    assert_int_equal(unsetenv("TMPDIR"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_folder_is_empty),
        cmocka_unit_test(
            test_a_later_life_sees_what_was_there_when_the_last_ended),
        cmocka_unit_test(test_nothing_is_left),
        cmocka_unit_test(test_what_cannot_be_copied_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
