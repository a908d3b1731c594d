/* device_group_promises.h - what lockstep/device_group.h promises of any
 * device: each rank is a thread with a stack of its own. */
#ifndef LOCKSTEP_TESTS_DEVICE_GROUP_PROMISES_H
#define LOCKSTEP_TESTS_DEVICE_GROUP_PROMISES_H

#include "lockstep/device_group.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

enum { REDUCE_RANKS = 3 };

struct reduce_rank {
    const char *device;
    ls_group *group;
    size_t offset, count; /* of floats */
    void (*before)(void); /* called when they are on the device; or NULL */
    uint32_t rank;
    int status;
    char text[256];
    bool is_right;
};

/* What rank r brings: whole numbers, so sums are exact. */
static inline float brought(uint32_t rank, size_t i)
{
    return (float)((i % 1000) * (rank + 1));
}

/* The numbers reach the device, are folded there as far as the caller sees, and
 * come back to a host buffer that was written over meanwhile. */
static inline int reduce_on(struct reduce_rank *self, ls_device_stack *stack)
{
    const size_t size = self->count * sizeof(float);
    float *host = (void *)((char *)ls_device_stack_host(stack) + self->offset);
    const bool apart =
        ls_device_stack_memory(stack) != (uintptr_t)ls_device_stack_host(stack);
    for (size_t i = 0; i < self->count; i++)
        host[i] = brought(self->rank, i);
    int status = ls_device_stack_upload(stack, self->offset, size);
    if (status == LS_OK)
        status = ls_device_stack_wait(stack, LS_FOREVER);
    if (apart)
        memset(host, 0xff, size);
    if (self->before != NULL)
        self->before();
    if (status == LS_OK)
        status = ls_group_all_reduce_stack(
            self->group, "gradients", stack, self->offset, self->count,
            LS_GROUP_F32, LS_GROUP_SUM, LS_WAIT_DEFAULT);
    if (apart)
        memset(host, 0xff, size);
    if (status == LS_OK)
        status = ls_device_stack_download(stack, self->offset, size);
    if (status == LS_OK)
        status = ls_device_stack_wait(stack, LS_FOREVER);
    self->is_right = status == LS_OK;
    for (size_t i = 0; i < self->count && self->is_right; i++)
        self->is_right = host[i] == brought(0, i) * 6; /* 1 + 2 + 3 */
    return status;
}

static inline void reduce_rank(void *arg)
{
    struct reduce_rank *self = arg;
    ls_device *device = NULL;
    ls_device_stack *stack = NULL;
    self->status = ls_device_open(&device, ls_runtime_threads(), self->device);
    if (self->status == LS_OK)
        self->status = ls_device_stack_create(
            &stack, device, self->offset + self->count * sizeof(float) + 4);
    if (self->status == LS_OK)
        self->status = reduce_on(self, stack);
    (void)strncpy(self->text, ls_error_text(), sizeof self->text - 1);
    ls_device_stack_destroy(&stack);
    ls_device_close(&device);
}

static inline void reduce_all(struct reduce_rank *ranks)
{
    ls_group *groups[REDUCE_RANKS];
    ls_thread *threads[REDUCE_RANKS];
    assert_ok(ls_group_threads(groups, ls_runtime_threads(), REDUCE_RANKS));
    for (uint32_t i = 0; i < REDUCE_RANKS; i++) {
        ranks[i].rank = i;
        ranks[i].group = groups[i];
        assert_ok(ls_thread_spawn(ls_runtime_threads(), &threads[i], "rank",
                                  reduce_rank, &ranks[i]));
    }
    for (uint32_t i = 0; i < REDUCE_RANKS; i++)
        assert_ok(ls_thread_join(&threads[i], LS_FOREVER));
    for (uint32_t i = 0; i < REDUCE_RANKS; i++)
        assert_ok(ls_group_destroy(&groups[i]));
}

/* One piece of 4 MiB, a part of one, several, and nothing. */
static inline void numbers_of_all_ranks_are_folded(const char *device)
{
    static const size_t counts[] = {
        0, 1, 1000, 1 << 20, (1 << 20) + 1, (3 << 20) + 77};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        struct reduce_rank ranks[REDUCE_RANKS] = {{.device = NULL}};
        for (size_t i = 0; i < REDUCE_RANKS; i++)
            ranks[i] = (struct reduce_rank){
                .device = device, .offset = 64, .count = counts[k]};
        reduce_all(ranks);
        for (size_t i = 0; i < REDUCE_RANKS; i++)
            assert_true(ranks[i].status == LS_OK && ranks[i].is_right);
    }
}

#endif
