#include "test.h"

#include <stdbool.h>
#include <stdlib.h>

enum { TESTS_MAX = 256 };

static struct CMUnitTest tests[TESTS_MAX];
static int lines[TESTS_MAX];
static size_t n_tests;
static CMFixtureFunction set_up_each, tear_down_each;

void test_add(int line, struct CMUnitTest test)
{
    if (n_tests == TESTS_MAX)
        abort();
    size_t at = n_tests++; /* tests of one line stay in their order */
    for (; at > 0 && lines[at - 1] > line; at--) {
        tests[at] = tests[at - 1];
        lines[at] = lines[at - 1];
    }
    tests[at] = test;
    lines[at] = line;
}

void test_each(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    set_up_each = set_up;
    tear_down_each = tear_down;
}

int tests_run_with(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    for (size_t i = 0; i < n_tests; i++) {
        const bool has_own =
            tests[i].setup_func != NULL || tests[i].teardown_func != NULL;
        if (!has_own) {
            tests[i].setup_func = set_up_each;
            tests[i].teardown_func = tear_down_each;
        }
    }
    return _cmocka_run_group_tests("tests", tests, n_tests, set_up, tear_down);
}
