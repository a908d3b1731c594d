/* fake_parts.h - what the files of the fake driver share. */
#ifndef FAKE_PARTS_H
#define FAKE_PARTS_H

#include "lockstep/runtime.h"

#include "device_cuda_driver.h"
#include "fake_cuda.h"

#define DECLARE(member, symbol, ...) cuda_result symbol(__VA_ARGS__);
CUDA_DRIVER_MAP(DECLARE)
#undef DECLARE

enum { FAKE_GPUS = 2 };

struct cuda_context_state {
    char is_one; /* only its address counts */
};

struct cuda_event_state {
    bool reached;
};

/* All of it is under the one mutex. */
struct fake {
    bool ready;
    ls_mutex mutex;
    ls_cond changed;
    int n_gpus;
    bool initialised, held;
    const char *failing;
    cuda_result failing_with;
    cuda_result copy_fails; /* the next one, when its turn comes */
    cuda_result broken;     /* what every stream says since then */
    size_t n_alive, n_calls;
    struct cuda_context_state contexts[FAKE_GPUS];
};

extern struct fake fake;

void fake_lock(void);
/* Tells those that wait that something may have changed. */
void fake_unlock(void);
void fake_await_change(void);

/* What each function does first: without a context, or with one. */
cuda_result fake_begin(const char *function);
cuda_result fake_begin_in_context(const char *function);

/* Something was created (1), or is no more (-1). */
void fake_alive(int change);

#endif
