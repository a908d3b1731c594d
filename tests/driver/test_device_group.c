/* Numbers in the memory of devices: of the processor, and of a CUDA driver in
 * host memory. */
#include "device_group_promises.h"
#include "fake_cuda.h"

static int reset(void **state)
{
    (void)state;
    fake_cuda_reset();
    return 0;
}

EACH_TEST(reset, NULL)

TEST(numbers_are_folded_on_the_processor)
{
    numbers_of_all_ranks_are_folded("cpu");
}

TEST(numbers_are_folded_in_the_memory_of_a_gpu)
{
    numbers_of_all_ranks_are_folded("cuda");
    assert_int_equal(fake_cuda_n_alive(), 0);
}

TEST(what_is_outside_of_the_stack_is_refused)
{
    ls_group *group;
    ls_device *device;
    ls_device_stack *stack;
    assert_ok(ls_group_threads(&group, ls_runtime_threads(), 1));
    assert_ok(ls_device_open(&device, ls_runtime_threads(), "cpu"));
    assert_ok(ls_device_stack_create(&stack, device, 64));
    static const struct {
        size_t offset, count;
        enum ls_group_type type;
    } wrong[] = {{0, 17, LS_GROUP_F32},        {0, 9, LS_GROUP_I64},
                 {2, 1, LS_GROUP_I32},         {4, 1, LS_GROUP_F64},
                 {65, 0, LS_GROUP_I32},        {0, SIZE_MAX, LS_GROUP_F32},
                 {0, 1, (enum ls_group_type)9}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_fails(ls_group_all_reduce_stack(
                         group, NULL, stack, wrong[i].offset, wrong[i].count,
                         wrong[i].type, LS_GROUP_SUM, LS_WAIT_DEFAULT),
                     LS_EINVAL);
    assert_fails(ls_group_all_reduce_stack(group, NULL, stack, 0, 16,
                                           LS_GROUP_F32, (enum ls_group_fold)9,
                                           LS_WAIT_DEFAULT),
                 LS_EINVAL);
    assert_fails(ls_group_all_reduce_stack(
                     group, "a name of more than thirty-one bytes", stack, 0,
                     16, LS_GROUP_F32, LS_GROUP_SUM, LS_WAIT_DEFAULT),
                 LS_EINVAL);
    assert_ok(ls_group_all_reduce_stack(group, NULL, stack, 0, 16, LS_GROUP_F32,
                                        LS_GROUP_SUM, LS_WAIT_DEFAULT));
    ls_device_stack_destroy(&stack);
    ls_device_close(&device);
    assert_ok(ls_group_destroy(&group));
}

static void fail_copy(void)
{
    fake_cuda_fail_copy(FAKE_ILLEGAL_ADDRESS);
}

/* It is copied before anything is folded, so the others wait for this rank. */
TEST(a_copy_that_fails_in_one_rank_ends_it_in_all)
{
    struct reduce_rank ranks[REDUCE_RANKS];
    for (size_t i = 0; i < REDUCE_RANKS; i++)
        ranks[i] = (struct reduce_rank){.device = i == 1 ? "cuda" : "cpu",
                                        .count = 3 << 20,
                                        .before = i == 1 ? fail_copy : NULL};
    reduce_all(ranks);
    assert_int_equal(ranks[1].status, LS_EIO);
    assert_int_equal(ranks[0].status, LS_EABORTED);
    assert_int_equal(ranks[2].status, LS_EABORTED);
    assert_non_null(strstr(ranks[0].text, "rank 1"));
}

/* Twice: ranks that name it otherwise, and then alike. */
struct again_rank {
    ls_group *group;
    uint32_t rank;
    const char *device;
    int statuses[2];
    bool is_right;
};

enum { AGAIN_COUNT = (2 << 20) + 5 }; /* three pieces */

static int reduce_again(struct again_rank *self, ls_device_stack *stack)
{
    const char *const names[2] = {self->rank == 0 ? "one" : "other", "alike"};
    const size_t size = AGAIN_COUNT * sizeof(float);
    float *const host = ls_device_stack_host(stack);
    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < AGAIN_COUNT; i++)
            host[i] = brought(self->rank, i);
        int status = ls_device_stack_upload(stack, 0, size);
        if (status == LS_OK)
            status = ls_device_stack_wait(stack, LS_FOREVER);
        if (status != LS_OK)
            return status;
        self->statuses[turn] = ls_group_all_reduce_stack(
            self->group, names[turn], stack, 0, AGAIN_COUNT, LS_GROUP_F32,
            LS_GROUP_SUM, LS_WAIT_DEFAULT);
    }
    self->is_right = true;
    for (size_t i = 0; i < AGAIN_COUNT && self->is_right; i++)
        self->is_right = host[i] == brought(0, i) * 3; /* 1 + 2 */
    return LS_OK;
}

static void again_rank(void *arg)
{
    struct again_rank *self = arg;
    ls_device *device = NULL;
    ls_device_stack *stack = NULL;
    int status = ls_device_open(&device, ls_runtime_threads(), self->device);
    if (status == LS_OK)
        status =
            ls_device_stack_create(&stack, device, AGAIN_COUNT * sizeof(float));
    if (status == LS_OK)
        status = reduce_again(self, stack);
    if (status != LS_OK)
        self->is_right = false;
    ls_device_stack_destroy(&stack);
    ls_device_close(&device);
}

static void a_mismatch_ends_only_one(const char *device)
{
    ls_group *groups[2];
    ls_thread *threads[2];
    struct again_rank ranks[2] = {{.group = NULL}};
    assert_ok(ls_group_threads(groups, ls_runtime_threads(), 2));
    for (uint32_t i = 0; i < 2; i++) {
        ranks[i] = (struct again_rank){
            .group = groups[i], .rank = i, .device = device};
        assert_ok(ls_thread_spawn(ls_runtime_threads(), &threads[i], "rank",
                                  again_rank, &ranks[i]));
    }
    for (uint32_t i = 0; i < 2; i++)
        assert_ok(ls_thread_join(&threads[i], LS_FOREVER));
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(ranks[i].statuses[0], LS_EMISMATCH);
        assert_int_equal(ranks[i].statuses[1], LS_OK);
        assert_true(ranks[i].is_right);
        assert_ok(ls_group_destroy(&groups[i]));
    }
}

TEST(what_fails_alike_in_all_ranks_can_be_tried_again)
{
    a_mismatch_ends_only_one("cpu");
    a_mismatch_ends_only_one("cuda");
}
