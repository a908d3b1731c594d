/* Which of several failures is told as the first cause. */
#include "judge.h"

#include <signal.h>

#include "lockstep/status.h"
#include "test.h"

static unsigned next_order;

static struct judge_end done(void)
{
    return (struct judge_end){
        .over = true, .reported = true, .order = ++next_order};
}

static struct judge_end failed(int status)
{
    return (struct judge_end){.over = true,
                              .reported = true,
                              .status = status,
                              .exit_code = 1,
                              .order = ++next_order};
}

static struct judge_end killed(int signal)
{
    return (struct judge_end){
        .over = true, .signal = signal, .order = ++next_order};
}

static size_t first_of(const struct judge_end *ends, size_t n)
{
    enum judge_rank rank;
    return judge_first(ends, n, &rank);
}

TEST(nothing_failed)
{
    const struct judge_end ends[] = {done(), {.over = false}, done()};
    enum judge_rank rank;
    assert_int_equal(judge_first(ends, 3, &rank), 3);
    assert_int_equal(rank, JUDGE_NOTHING);
}

TEST(first_own_failure_wins)
{
    struct judge_end ends[3] = {done(), failed(LS_EHANDLER), failed(LS_EIO)};
    assert_int_equal(first_of(ends, 3), 1);
    ends[1].order = 99;
    assert_int_equal(first_of(ends, 3), 2);
}

TEST(killed_goes_before_those_who_lost_it)
{
    const struct judge_end ends[] = {failed(LS_ELOST), failed(LS_EABORTED),
                                     killed(SIGKILL)};
    enum judge_rank rank;
    assert_int_equal(judge_first(ends, 3, &rank), 2);
    assert_int_equal(rank, JUDGE_CAUSE);
}

TEST(own_error_goes_before_those_who_waited)
{
    const int followers[] = {LS_ELOST, LS_EABORTED, LS_ECLOSED, LS_EUNREACHABLE,
                             LS_ETIMEDOUT};
    for (size_t i = 0; i < sizeof followers / sizeof followers[0]; i++) {
        const struct judge_end ends[] = {failed(followers[i]),
                                         failed(LS_EADDRINUSE)};
        assert_int_equal(first_of(ends, 2), 1);
    }
}

TEST(without_a_cause_the_first_follower_is_told)
{
    const struct judge_end ends[] = {done(), failed(LS_ELOST),
                                     failed(LS_EUNREACHABLE)};
    enum judge_rank rank;
    assert_int_equal(judge_first(ends, 3, &rank), 1);
    assert_int_equal(rank, JUDGE_FOLLOWER);
}

TEST(what_came_after_the_word_to_stop_does_not_count)
{
    struct judge_end ends[] = {failed(LS_ELOST), failed(LS_ECANCELED),
                               killed(SIGKILL)};
    ends[1].told = true;
    ends[2].told = true;
    assert_int_equal(first_of(ends, 3), 0);
}

TEST(gone_without_a_word_is_a_cause)
{
    const struct judge_end silent = {.over = true, .order = 1};
    assert_int_equal(judge_rank(&silent), JUDGE_CAUSE);
    const struct judge_end quit = {.over = true, .exit_code = 3, .order = 1};
    assert_int_equal(judge_rank(&quit), JUDGE_CAUSE);
}

TEST(crash_after_the_last_word_is_a_cause)
{
    struct judge_end end = done();
    end.exit_code = 66; /* as of a sanitizer, at exit */
    assert_int_equal(judge_rank(&end), JUDGE_CAUSE);
    end = done();
    end.signal = SIGSEGV;
    assert_int_equal(judge_rank(&end), JUDGE_CAUSE);
}

TEST(exit_code_is_that_of_the_status)
{
    const struct {
        struct judge_end end;
        int exit_code;
    } cases[] = {
        {killed(SIGKILL), 1},        {failed(LS_EADDRINUSE), 75},
        {failed(LS_ECONFIG), 78},    {failed(LS_EUNREACHABLE), 69},
        {failed(LS_ETIMEDOUT), 124}, {failed(LS_EHANDLER), 1},
        {failed(LS_EINVAL), 1}, /* usage is what the user typed, not this */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(judge_exit_code(&cases[i].end), cases[i].exit_code);
}
