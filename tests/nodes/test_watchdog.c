/* Each case is a process of its own, which the dog ends. */
#include "exit_code.h"
#include "test.h"
#include "watchdog.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { MOST_MS = 60000, CODE = 7, OTHER_CODE = 8, WORDS_CODE = 9 };

static void wait_for_ever(void)
{
    for (;;)
        (void)pause();
}

static watchdog *create(watchdog_say *say, void *self)
{
    watchdog *dog = NULL;
    if (watchdog_create(&dog, say, self) != LS_OK)
        _exit(1);
    return dog;
}

static void hangs(void)
{
    watchdog_set(create(NULL, NULL), 1, CODE, "it hung");
    wait_for_ever();
}

TEST(who_hangs_is_ended)
{
    assert_int_equal(exit_code_of(hangs), CODE);
}

static void hang_too(void *self, const char *text)
{
    (void)self;
    (void)text;
    wait_for_ever();
}

static void hangs_while_it_says_so(void)
{
    watchdog_set(create(hang_too, NULL), 1, CODE, "it hung");
    wait_for_ever();
}

TEST(nobody_waits_for_the_last_words)
{
    assert_int_equal(exit_code_of(hangs_while_it_says_so), CODE);
}

static void check_words(void *self, const char *text)
{
    if (strcmp(self, "self") == 0 && strcmp(text, "the second") == 0)
        _exit(WORDS_CODE);
}

static void is_set_thrice(void)
{
    static char self[] = "self";
    watchdog *dog = create(check_words, self);
    watchdog_set(dog, MOST_MS, OTHER_CODE, "the first");
    watchdog_set(dog, 1, CODE, "the second");
    watchdog_set(dog, MOST_MS, OTHER_CODE, "the third");
    wait_for_ever();
}

TEST(the_earliest_end_counts_with_its_words)
{
    assert_int_equal(exit_code_of(is_set_thrice), WORDS_CODE);
}

static void is_called_off(void)
{
    watchdog *dog = create(NULL, NULL);
    watchdog_set(dog, MOST_MS, CODE, "it hung");
    watchdog_set(dog, INT64_MAX, CODE, "never");
    watchdog_destroy(&dog);
    watchdog_destroy(&dog);
    watchdog_destroy(NULL);
    _exit(dog == NULL ? OTHER_CODE : 1);
}

TEST(who_ends_in_time_is_left_alone)
{
    assert_int_equal(exit_code_of(is_called_off), OTHER_CODE);
}
