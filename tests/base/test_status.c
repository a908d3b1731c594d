#include "lockstep/status.h"

#include <errno.h>
#include <string.h>

#include "lockstep/runtime.h"
#include "test.h"

TEST(every_code_keeps_its_name_number_and_exit_code)
{
    static const struct {
        int status;
        int number;
        const char *name;
        int exit_code;
    } rows[] = {
        {LS_OK, 0, "LS_OK", 0},
        {LS_EINVAL, -1, "LS_EINVAL", 2},
        {LS_ENOMEM, -2, "LS_ENOMEM", 1},
        {LS_ETIMEDOUT, -3, "LS_ETIMEDOUT", 124},
        {LS_EAGAIN, -4, "LS_EAGAIN", 75},
        {LS_ECLOSED, -5, "LS_ECLOSED", 1},
        {LS_ESTATE, -6, "LS_ESTATE", 1},
        {LS_EPROTO, -7, "LS_EPROTO", 1},
        {LS_ELIMIT, -8, "LS_ELIMIT", 1},
        {LS_ENOENT, -9, "LS_ENOENT", 78},
        {LS_EEXIST, -10, "LS_EEXIST", 78},
        {LS_EADDRINUSE, -11, "LS_EADDRINUSE", 75},
        {LS_EUNREACHABLE, -12, "LS_EUNREACHABLE", 69},
        {LS_ELOST, -13, "LS_ELOST", 69},
        {LS_EMISMATCH, -14, "LS_EMISMATCH", 78},
        {LS_ECONFIG, -15, "LS_ECONFIG", 78},
        {LS_EIO, -16, "LS_EIO", 1},
        {LS_ECANCELED, -17, "LS_ECANCELED", 1},
        {LS_EHANDLER, -18, "LS_EHANDLER", 1},
        {LS_EABORTED, -19, "LS_EABORTED", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(rows[i].status, rows[i].number);
        assert_string_equal(ls_status_name(rows[i].status), rows[i].name);
        assert_int_equal(ls_status_exit_code(rows[i].status),
                         rows[i].exit_code);
    }
}

TEST(every_code_has_a_sentence_without_a_full_stop)
{
    for (int status = LS_OK; status >= LS_EABORTED; status--) {
        const char *sentence = ls_status_sentence(status);
        assert_true(strlen(sentence) > 0);
        assert_int_not_equal(sentence[strlen(sentence) - 1], '.');
    }
    assert_string_equal(ls_status_sentence(LS_ENOMEM), "out of memory");
}

TEST(a_number_that_is_no_code_is_named_as_such)
{
    assert_string_equal(ls_status_name(1), "LS_?");
    assert_string_equal(ls_status_name(-21), "LS_?");
    assert_true(strlen(ls_status_sentence(-21)) > 0);
    assert_int_equal(ls_status_exit_code(-21), 1);
}

TEST(error_keeps_the_text_and_returns_the_status)
{
    assert_fails(ls_error(LS_ELIMIT, "%d is over %s", 7, "six"), LS_ELIMIT);
    assert_string_equal(ls_error_text(), "7 is over six");
    assert_int_equal(ls_error(42, "x"), 42);
    assert_string_equal(ls_error_text(), "x");
}

TEST(what_lacks_memory_says_so)
{
    assert_fails(ls_error(LS_ENOMEM, "%d tasks", 7), LS_ENOMEM);
    assert_string_equal(ls_error_text(), "7 tasks: out of memory");
    assert_fails(ls_error(LS_ENOMEM, "%s", ls_error_text()), LS_ENOMEM);
    assert_string_equal(ls_error_text(), "7 tasks: out of memory");
    assert_fails(ls_error(LS_ENOMEM, "no memory for a queue"), LS_ENOMEM);
    assert_string_equal(ls_error_text(), "no memory for a queue");
    assert_fails(ls_error(LS_ENOMEM, "%s", ""), LS_ENOMEM);
    assert_string_equal(ls_error_text(), "out of memory");
}

TEST(error_may_quote_the_text_before_it)
{
    (void)ls_error(LS_EIO, "disk gone");
    (void)ls_error(LS_EHANDLER, "handler: %s (%s)", ls_error_text(),
                   ls_error_text());
    assert_string_equal(ls_error_text(), "handler: disk gone (disk gone)");
}

TEST(error_at_puts_a_place_in_front)
{
    (void)ls_error(LS_ECONFIG, "not a number");
    assert_fails(ls_error_at(LS_ECONFIG, "line %d", 3), LS_ECONFIG);
    assert_fails(ls_error_at(LS_EHANDLER, "a.yaml"), LS_EHANDLER);
    assert_string_equal(ls_error_text(), "a.yaml: line 3: not a number");
}

TEST(error_at_may_quote_the_text_before_it)
{
    (void)ls_error(LS_EIO, "one");
    (void)ls_error_at(LS_EIO, "<%s>", ls_error_text());
    assert_string_equal(ls_error_text(), "<one>: one");
}

TEST(a_long_text_is_cut)
{
    char text[2 * LS_ERROR_TEXT_MAX];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    (void)ls_error(LS_EIO, "%s", text);
    assert_int_equal(strlen(ls_error_text()), LS_ERROR_TEXT_MAX - 1);
    (void)ls_error_at(LS_EIO, "y");
    assert_int_equal(strlen(ls_error_text()), LS_ERROR_TEXT_MAX - 1);
    assert_memory_equal(ls_error_text(), "y: xxx", 6);
    (void)ls_error_at(LS_EIO, "%s", text);
    assert_int_equal(strlen(ls_error_text()), LS_ERROR_TEXT_MAX - 1);
}

TEST(a_text_is_never_cut_inside_of_a_character)
{
    static const char *const characters[] = {"é", "…", "😀"};
    for (size_t i = 0; i < sizeof characters / sizeof *characters; i++) {
        const size_t size = strlen(characters[i]);
        for (size_t fitting = 0; fitting <= size; fitting++) {
            const size_t before = LS_ERROR_TEXT_MAX - 1 - fitting;
            char text[LS_ERROR_TEXT_MAX + 8];
            memset(text, 'x', before);
            strcpy(text + before, characters[i]);
            (void)ls_error(LS_EIO, "%s", text);
            assert_int_equal(strlen(ls_error_text()),
                             fitting == size ? before + size : before);
        }
    }
}

TEST(bytes_that_are_no_characters_are_replaced)
{
    (void)ls_error(LS_EIO, "opening caf\xe9 and café: %s", "\xff\xf0\x9f");
    assert_string_equal(ls_error_text(), "opening caf? and café: ???");
    (void)ls_error_at(LS_EIO, "in \xc3");
    assert_string_equal(ls_error_text(), "in ?: opening caf? and café: ???");
}

TEST(error_from_gives_the_code_and_the_reason)
{
    static const struct {
        int os_errno;
        int status;
    } rows[] = {
        {EINVAL, LS_EINVAL},
        {ENOMEM, LS_ENOMEM},
        {ETIMEDOUT, LS_ETIMEDOUT},
        {EAGAIN, LS_EAGAIN},
        {EINTR, LS_EAGAIN},
        {ENOENT, LS_ENOENT},
        {EEXIST, LS_EEXIST},
        {EADDRINUSE, LS_EADDRINUSE},
        {ECONNREFUSED, LS_EUNREACHABLE},
        {EHOSTUNREACH, LS_EUNREACHABLE},
        {ECANCELED, LS_ECANCELED},
        {EACCES, LS_EIO},
        {EIO, LS_EIO},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(ls_error_from(rows[i].os_errno, "it"), rows[i].status);
    (void)ls_error_from(ENOENT, "open 'a.yaml'");
    assert_string_equal(ls_error_text(),
                        "open 'a.yaml': No such file or directory");
}

struct texts {
    char first[32];
    char second[32];
};

static void fail_elsewhere(void *arg)
{
    struct texts *texts = arg;
    strcpy(texts->first, ls_error_text());
    (void)ls_error(LS_EIO, "there");
    strcpy(texts->second, ls_error_text());
}

TEST(each_thread_has_a_text_of_its_own)
{
    struct texts texts;
    ls_thread *thread;
    (void)ls_error(LS_EIO, "here");
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &thread, "other",
                              fail_elsewhere, &texts));
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    assert_string_equal(texts.first, "");
    assert_string_equal(texts.second, "there");
    assert_string_equal(ls_error_text(), "here");
}

TEST(a_new_error_has_no_cause_and_no_cookie)
{
    (void)ls_error(LS_EABORTED, "node 2 gave up");
    ls_error_set_cause(LS_EIO);
    ls_error_set_cookie(UINT64_MAX);
    (void)ls_error_at(LS_EABORTED, "step barrier");
    assert_int_equal(ls_error_cause(), LS_EIO);
    assert_true(ls_error_cookie() == UINT64_MAX);
    (void)ls_error(LS_EINVAL, "another");
    assert_ok(ls_error_cause());
    assert_true(ls_error_cookie() == 0);
    ls_error_set_cause(LS_EIO);
    ls_error_set_cookie(7);
    ls_error_clear();
    assert_ok(ls_error_cause());
    assert_true(ls_error_cookie() == 0);
}

static void keep_elsewhere(void *arg)
{
    (void)ls_error(LS_EHANDLER, "there");
    ls_error_set_cause(LS_EPROTO);
    ls_error_set_cookie(99);
    ls_failure_keep(arg, LS_EHANDLER);
}

TEST(a_failure_is_carried_to_another_thread)
{
    struct ls_failure failure;
    ls_thread *thread;
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &thread, "other",
                              keep_elsewhere, &failure));
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    (void)ls_error(LS_EIO, "here");
    assert_fails(ls_failure_return(&failure), LS_EHANDLER);
    assert_string_equal(ls_error_text(), "there");
    assert_int_equal(ls_error_cause(), LS_EPROTO);
    assert_true(ls_error_cookie() == 99);
    assert_ok(ls_failure_return(&(struct ls_failure){.text = "none"}));
    assert_string_equal(ls_error_text(), "there");
}

TEST(a_place_without_a_text_stands_alone)
{
    ls_error_clear();
    (void)ls_error_at(LS_EIO, "here");
    assert_string_equal(ls_error_text(), "here");
}
