#include "thread_state.h"

#include "thread_here.h"

_Thread_local struct thread_state *ls_thread_state_now
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

const void *ls_thread_here(void)
{
    return thread_state();
}

ls_runtime *ls_runtime_current(void)
{
    ls_runtime *const runtime = thread_state()->runtime;
    return runtime != NULL ? runtime : ls_runtime_threads();
}
