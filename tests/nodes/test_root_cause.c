/* Which of several failures is told as the first cause. */
#include "root_cause.h"

#include <signal.h>

#include "lockstep/status.h"
#include "test.h"

static unsigned next_order;

static struct node_end done(void)
{
    return (struct node_end){
        .over = true, .reported = true, .order = ++next_order};
}

static struct node_end failed(int status)
{
    return (struct node_end){.over = true,
                             .reported = true,
                             .status = status,
                             .exit_code = 1,
                             .order = ++next_order};
}

static struct node_end killed(int signal)
{
    return (struct node_end){
        .over = true, .signal = signal, .order = ++next_order};
}

static size_t first_of(const struct node_end *ends, size_t n)
{
    enum cause_rank rank;
    return root_cause(ends, n, &rank);
}

TEST(nothing_failed)
{
    const struct node_end ends[] = {done(), {.over = false}, done()};
    enum cause_rank rank;
    assert_int_equal(root_cause(ends, 3, &rank), 3);
    assert_int_equal(rank, CAUSE_NOTHING);
}

TEST(first_own_failure_wins)
{
    struct node_end ends[3] = {done(), failed(LS_EHANDLER), failed(LS_EIO)};
    assert_int_equal(first_of(ends, 3), 1);
    ends[1].order = 99;
    assert_int_equal(first_of(ends, 3), 2);
}

TEST(killed_goes_before_those_who_lost_it)
{
    const struct node_end ends[] = {failed(LS_ELOST), failed(LS_EABORTED),
                                    killed(SIGKILL)};
    enum cause_rank rank;
    assert_int_equal(root_cause(ends, 3, &rank), 2);
    assert_int_equal(rank, CAUSE_FIRST);
}

TEST(own_error_goes_before_those_who_waited)
{
    const int followers[] = {LS_ELOST, LS_EABORTED, LS_ECLOSED, LS_EUNREACHABLE,
                             LS_ETIMEDOUT};
    for (size_t i = 0; i < sizeof followers / sizeof followers[0]; i++) {
        const struct node_end ends[] = {failed(followers[i]),
                                        failed(LS_EADDRINUSE)};
        assert_int_equal(first_of(ends, 2), 1);
    }
}

TEST(without_a_cause_the_first_follower_is_told)
{
    const struct node_end ends[] = {done(), failed(LS_ELOST),
                                    failed(LS_EUNREACHABLE)};
    enum cause_rank rank;
    assert_int_equal(root_cause(ends, 3, &rank), 1);
    assert_int_equal(rank, CAUSE_FOLLOWER);
}

TEST(what_came_after_the_word_to_stop_does_not_count)
{
    struct node_end ends[] = {failed(LS_ELOST), failed(LS_ECANCELED),
                              killed(SIGKILL)};
    ends[1].told = true;
    ends[2].told = true;
    assert_int_equal(first_of(ends, 3), 0);
}

TEST(gone_without_a_word_is_a_cause)
{
    const struct node_end silent = {.over = true, .order = 1};
    assert_int_equal(cause_rank(&silent), CAUSE_FIRST);
    const struct node_end quit = {.over = true, .exit_code = 3, .order = 1};
    assert_int_equal(cause_rank(&quit), CAUSE_FIRST);
}

TEST(crash_after_the_last_word_is_a_cause)
{
    struct node_end end = done();
    end.exit_code = 66; /* as of a sanitizer, at exit */
    assert_int_equal(cause_rank(&end), CAUSE_FIRST);
    end = done();
    end.signal = SIGSEGV;
    assert_int_equal(cause_rank(&end), CAUSE_FIRST);
}

TEST(exit_code_is_that_of_the_status)
{
    const struct {
        struct node_end end;
        int exit_code;
    } cases[] = {
        {killed(SIGKILL), 1},        {failed(LS_EADDRINUSE), 75},
        {failed(LS_ECONFIG), 78},    {failed(LS_EUNREACHABLE), 69},
        {failed(LS_ETIMEDOUT), 124}, {failed(LS_EHANDLER), 1},
        {failed(LS_EINVAL), 1}, /* usage is what the user typed, not this */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(node_end_exit_code(&cases[i].end), cases[i].exit_code);
}
