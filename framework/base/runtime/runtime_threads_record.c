/* The record of a thread that was not spawned by the runtime: made when it is
 * first asked for, freed when the thread ends. It is not a thread-local
 * variable, since a library that dlopen() loads has room for some hundred bytes
 * of those. */
#include <pthread.h>
#include <stdlib.h>

#include "thread_state.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;

static void end_record(void *record)
{
    if (ls_thread_state_now == record)
        ls_thread_state_now = NULL;
    free(record);
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, end_record) == 0;
}

/* Threads that outlive the library would call end_record(). */
__attribute__((destructor)) static void unload(void)
{
    if (!has_key)
        return;
    has_key = false;
    end_record(pthread_getspecific(key));
    (void)pthread_key_delete(key);
}

struct thread_state *ls_thread_state_begin(void)
{
    /* For those that find no memory: they share it, and what it says of an
     * error may be another's. */
    static struct thread_state shared = {.node = -1};
    (void)pthread_once(&once, make_key);
    struct thread_state *own = has_key ? calloc(1, sizeof *own) : NULL;
    if (own == NULL || pthread_setspecific(key, own) != 0) {
        free(own);
        return ls_thread_state_now = &shared;
    }
    own->node = -1;
    return ls_thread_state_now = own;
}
