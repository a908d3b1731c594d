/* What nodes in step agree upon at the end of an iteration, as a barrier says
 * it to the task. */
#include "task_help.h"
#include "test.h"

static uint32_t wish(void *self)
{
    return *(const uint32_t *)self;
}

static uint32_t wish_twice(void *self)
{
    return *(const uint32_t *)self << 1;
}

TEST(the_wishes_of_all_that_are_asked_are_one)
{
    uint32_t save = LS_WISH_SAVE, own = 8u;
    ls_task *task = task_plain();
    assert_false(ls_task_has_wishes(task));
    assert_int_equal(ls_task_wishes(task), 0);
    assert_ok(ls_task_on_wish(task, wish, &save));
    assert_ok(ls_task_on_wish(task, wish, &own));
    assert_true(ls_task_has_wishes(task));
    assert_int_equal(ls_task_wishes(task), LS_WISH_SAVE | 8u);
    assert_ok(ls_task_on_wish(task, wish_twice, &save)); /* in its place */
    assert_int_equal(ls_task_wishes(task), LS_WISH_SAVE_NOW | 8u);
    own = 0x10u | 4u; /* the first of them is none */
    assert_int_equal(ls_task_wishes(task), LS_WISH_SAVE_NOW | 4u);
    assert_ok(ls_task_on_wish(task, NULL, &save));
    assert_ok(ls_task_on_wish(task, NULL, &save)); /* it is not there */
    assert_int_equal(ls_task_wishes(task), 4u);
    assert_ok(ls_task_on_wish(task, NULL, &own));
    assert_false(ls_task_has_wishes(task));
    ls_task_destroy(&task);
}

/* A step as a barrier is: it agrees in each iteration but the last. Those
 * before it see that in their backward halves. */
struct agreed {
    uint64_t n;           /* iterations */
    uint32_t seen[3];     /* wishes; 0: there was no agreement */
    uint32_t last_of[3];  /* the last of its ids */
    bool there_before[3]; /* one from before, when an iteration began */
};

static int sees(ls_step *step, void *self)
{
    struct agreed *agreed = self;
    const ls_task *task = ls_step_task(step);
    const uint64_t at = ls_task_iterations(task);
    agreed->there_before[at] = ls_task_agreement(task) != NULL;
    const int status = ls_yield(step);
    const struct ls_agreement *what = ls_task_agreement(task);
    if (what != NULL) {
        agreed->seen[at] = what->wishes;
        agreed->last_of[at] = what->ids[what->n - 1];
    }
    return status;
}

static int agrees(ls_step *step, void *self)
{
    uint32_t ids[3] = {4, 9, 4294967295u};
    ls_task *task = ls_step_task(step);
    const uint64_t at = ls_task_iterations(task);
    (void)self;
    if (at == 2)
        return LS_OK;
    const int status = ls_task_agree(
        task,
        &(struct ls_agreement){.wishes = 1u << at, .ids = ids, .n = at + 2});
    memset(ids, 0, sizeof ids); /* copied */
    return status;
}

TEST(an_agreement_is_of_its_iteration)
{
    struct agreed agreed = {.n = 0};
    ls_task *task = task_plain();
    assert_null(ls_task_agreement(task));
    assert_ok(ls_task_use_fn(task, sees, &agreed));
    assert_ok(ls_task_use_fn(task, agrees, &agreed));
    assert_ok(ls_task_run(task, 3));
    for (size_t i = 0; i < 3; i++)
        assert_false(agreed.there_before[i]);
    assert_int_equal(agreed.seen[0], 1u);
    assert_int_equal(agreed.seen[1], 2u);
    assert_int_equal(agreed.seen[2], 0);
    assert_int_equal(agreed.last_of[0], 9);
    assert_int_equal(agreed.last_of[1], 4294967295u);
    ls_task_destroy(&task);
}
