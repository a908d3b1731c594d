/* test.h - TEST(name) { … } is a test; a program runs those of its files, in
 * the order of their lines. It has `state`, of cmocka.
 *
 *     EACH_TEST(set_up, tear_down)      around each test of the program
 *     TEST_WITH(name, set_up, tear_down) { … }     around this one instead
 *     TEST_OF(function, set_up, tear_down)         a function that is one
 * already
 *
 * A main of one's own ends with tests_run(). */
#ifndef SUPPORT_TEST_H
#define SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "asserts.h"

void test_add(int line, struct CMUnitTest test);
void test_each(CMFixtureFunction set_up, CMFixtureFunction tear_down);

/* set_up and tear_down, or NULL, are around all; what main returns. */
int tests_run_with(CMFixtureFunction set_up, CMFixtureFunction tear_down);
static inline int tests_run(void)
{
    return tests_run_with(NULL, NULL);
}

#define TEST_BEGINS(name)                                                      \
    __attribute__((constructor)) static void known_##name(void)
#define TEST_OF_NAME(label, function, set_up, tear_down)                       \
    TEST_BEGINS(label)                                                         \
    {                                                                          \
        test_add(__LINE__, (struct CMUnitTest){#label, (function), (set_up),   \
                                               (tear_down), NULL});            \
    }

#define EACH_TEST(set_up, tear_down)                                           \
    TEST_BEGINS(each_test)                                                     \
    {                                                                          \
        test_each((set_up), (tear_down));                                      \
    }
#define TEST(name) TEST_WITH(name, NULL, NULL)
#define TEST_WITH(name, set_up, tear_down)                                     \
    static void test_##name(void **state);                                     \
    TEST_OF_NAME(name, test_##name, set_up, tear_down)                         \
    static void test_##name(__attribute__((unused)) void **state)
#define TEST_OF(function, set_up, tear_down)                                   \
    TEST_OF_NAME(function##_##set_up, function, set_up, tear_down)

#endif
