/* forked.h - whether this process is a copy, made by fork(2), of the one in
 * which an object was made. The copy has none of its threads, and its locks as
 * they were at that moment: nobody may wait for either. */
#ifndef LOCKSTEP_FORKED_H
#define LOCKSTEP_FORKED_H

#include <stdatomic.h>
#include <stdbool.h>

/* How many forks lie between this process and the first. */
extern atomic_uint ls_forks;

/* For an object that is being made, to keep: counts from now on. */
unsigned ls_forks_now(void);

static inline bool ls_forked_since(unsigned forks)
{
    return atomic_load_explicit(&ls_forks, memory_order_relaxed) != forks;
}

/* LS_ESTATE, with the text that says so of `what`. */
int ls_forked_error(const char *what);

#endif
