/* fake_cuda.h - a CUDA driver in host memory, and what tests make it do.
 *
 * GPUs have 32 MiB of host memory, and each stream is a thread that does
 * what it was asked for, in order. It insists on what the real one does: on a
 * current context, on streams and memory that are alive.
 * Thread: any. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stddef.h>

/* Numbers of cuda.h that tests look for. */
enum {
    FAKE_INVALID_CONTEXT = 201,
    FAKE_ILLEGAL_ADDRESS = 700,
    FAKE_UNKNOWN = 999
};

/* As new: two GPUs of 1 MiB, nothing held, nothing fails. */
void fake_cuda_reset(void);

void fake_cuda_set_gpus(int n);

/* Let the function of this name fail; NULL: none. Borrow: the name. */
void fake_cuda_fail(const char *function, int result);

/* Let the next copy fail when its turn comes, and all after it. */
void fake_cuda_fail_copy(int result);

/* Let streams do nothing until they are let go. */
void fake_cuda_hold(void);
void fake_cuda_let_go(void);

/* Return when a callback has been asked for. */
void fake_cuda_await_callback(void);

/* Whether a stream has come to where an event was recorded. */
int fake_cuda_event_is_reached(const void *event);

/* How much there is that was created and not destroyed. */
size_t fake_cuda_n_alive(void);

/* Whether this thread has the context of GPU `number`, and only it. */
int fake_cuda_is_bound(int number);

#endif
