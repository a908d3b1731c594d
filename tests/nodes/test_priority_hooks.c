/* What a service does around its work, and in which order. */
#include "priority_hooks.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

/* What ran, one letter each. */
static char ran[64];

static int note(void *self, int64_t last_iter)
{
    (void)last_iter;
    strncat(ran, self, sizeof ran - strlen(ran) - 1);
    return LS_OK;
}

static int fail_loudly(void *self, int64_t last_iter)
{
    (void)last_iter;
    strncat(ran, self, sizeof ran - strlen(ran) - 1);
    return ls_error(LS_EIO, "the disk is full");
}

static int fail_silently(void *self, int64_t last_iter)
{
    (void)self;
    return last_iter >= 0 ? LS_EHANDLER : LS_OK;
}

static struct hook hook_of(char *name, enum hook_position position,
                           int priority)
{
    return (struct hook){.name = name,
                         .position = position,
                         .priority = priority,
                         .fn = note,
                         .self = name};
}

static void add(struct priority_hooks *hooks, struct hook hook)
{
    assert_ok(priority_hooks_add(hooks, &hook));
}

static void runs(const struct priority_hooks *hooks,
                 enum hook_position position, int64_t last_iter,
                 const char *expected)
{
    ran[0] = '\0';
    assert_ok(priority_hooks_run(hooks, position, last_iter));
    assert_string_equal(ran, expected);
}

TEST(they_run_by_priority_and_equal_ones_as_added)
{
    struct priority_hooks hooks = {.n = 0};
    static char send[] = "s", log[] = "l", checkpoint[] = "c", reduce[] = "r",
                first[] = "f";
    add(&hooks, hook_of(send, HOOK_AFTER_ITER, 100));
    add(&hooks, hook_of(log, HOOK_AFTER_ITER, 20));
    add(&hooks, hook_of(checkpoint, HOOK_AFTER_ITER, 20));
    add(&hooks, hook_of(reduce, HOOK_AFTER_ITER, 10));
    add(&hooks, hook_of(first, HOOK_AFTER_ITER, -5));
    runs(&hooks, HOOK_AFTER_ITER, 0, "frlcs");
}

TEST(each_runs_at_its_position_alone)
{
    struct priority_hooks hooks = {.n = 0};
    static char names[HOOK_N_POSITIONS][2] = {"a", "b", "c", "d"};
    runs(&hooks, HOOK_BEFORE_RUN, 0, "");
    for (int i = HOOK_N_POSITIONS - 1; i >= 0; i--)
        add(&hooks, hook_of(names[i], (enum hook_position)i, i));
    for (int i = 0; i < HOOK_N_POSITIONS; i++)
        runs(&hooks, (enum hook_position)i, 0, names[i]);
    assert_string_equal(hook_position_name(HOOK_BEFORE_RUN), "before_run");
    assert_string_equal(hook_position_name(HOOK_BEFORE_ITER), "before_iter");
    assert_string_equal(hook_position_name(HOOK_AFTER_ITER), "after_iter");
    assert_string_equal(hook_position_name(HOOK_AFTER_RUN), "after_run");
    assert_string_equal(hook_position_name(HOOK_N_POSITIONS), "?");
}

TEST(every_counts_iterations_from_the_first)
{
    struct priority_hooks hooks = {.n = 0};
    static char all[] = "1", third[] = "3";
    struct hook hook = hook_of(third, HOOK_AFTER_ITER, 0);
    hook.every = 3;
    add(&hooks, hook);
    add(&hooks, hook_of(all, HOOK_AFTER_ITER, 1));
    for (int64_t i = 0; i < 9; i++)
        runs(&hooks, HOOK_AFTER_ITER, i, i % 3 == 0 ? "31" : "1");
}

TEST(the_first_that_fails_ends_it_and_is_named)
{
    struct priority_hooks hooks = {.n = 0};
    static char before[] = "b", bad[] = "save", after[] = "a";
    add(&hooks, hook_of(before, HOOK_AFTER_RUN, 1));
    struct hook hook = hook_of(bad, HOOK_AFTER_RUN, 2);
    hook.fn = fail_loudly;
    add(&hooks, hook);
    add(&hooks, hook_of(after, HOOK_AFTER_RUN, 3));
    ran[0] = '\0';
    assert_fails(priority_hooks_run(&hooks, HOOK_AFTER_RUN, 7), LS_EIO);
    assert_string_equal(ran, "bsave");
    assert_string_equal(ls_error_text(), "hook save at after_run, iteration 7: "
                                         "the disk is full");
}

TEST(one_that_says_nothing_is_named_without_an_old_reason)
{
    struct priority_hooks hooks = {.n = 0};
    static char mute[] = "mute";
    struct hook hook = hook_of(mute, HOOK_BEFORE_ITER, 0);
    hook.fn = fail_silently;
    add(&hooks, hook);
    (void)ls_error(LS_EIO, "long ago");
    assert_fails(priority_hooks_run(&hooks, HOOK_BEFORE_ITER, 0), LS_EHANDLER);
    assert_null(strstr(ls_error_text(), "long ago"));
    assert_error_has("hook mute at before_iter");
}

TEST(what_is_no_hook_is_refused)
{
    struct priority_hooks hooks = {.n = 0};
    static char name[] = "n", empty[] = "";
    const struct hook good = hook_of(name, HOOK_AFTER_ITER, 0);
    struct hook bad[6] = {good, good, good, good, good, good};
    bad[0].name = NULL;
    bad[1].name = empty;
    bad[2].fn = NULL;
    bad[3].position = HOOK_N_POSITIONS;
    bad[4].every = -1;
    bad[5].position = HOOK_BEFORE_RUN;
    bad[5].every = 1;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_fails(priority_hooks_add(&hooks, &bad[i]), LS_EINVAL);
    add(&hooks, good);
    assert_fails(priority_hooks_add(&hooks, &good), LS_EEXIST);
    add(&hooks, hook_of(name, HOOK_BEFORE_ITER, 0));
}

TEST(there_is_room_for_so_many)
{
    struct priority_hooks hooks = {.n = 0};
    static char names[HOOKS_MAX + 1][8];
    for (int i = 0; i <= HOOKS_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "%d", i);
        const struct hook hook = hook_of(names[i], HOOK_AFTER_RUN, 0);
        assert_int_equal(priority_hooks_add(&hooks, &hook),
                         i < HOOKS_MAX ? LS_OK : LS_ELIMIT);
    }
}
