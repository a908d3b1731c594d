/* How often this process was forked. */
#include <pthread.h>

#include "forked.h"
#include "lockstep/status.h"

atomic_uint ls_forks;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void in_child(void)
{
    atomic_fetch_add_explicit(&ls_forks, 1, memory_order_relaxed);
}

static void watch(void)
{
    (void)pthread_atfork(NULL, NULL, in_child);
}

unsigned ls_forks_now(void)
{
    (void)pthread_once(&once, watch);
    return atomic_load_explicit(&ls_forks, memory_order_relaxed);
}

int ls_forked_error(const char *what)
{
    return ls_error(LS_ESTATE,
                    "%s belongs to the process that forked this one: fork "
                    "before you make it, or call exec in the child",
                    what);
}
