/* thread_here.h - the running thread, also one that nobody spawned. */
#ifndef LOCKSTEP_THREAD_HERE_H
#define LOCKSTEP_THREAD_HERE_H

/* The same for each call on a thread, and another on each other that lives. Not
 * to be followed. */
const void *ls_thread_here(void);

#endif
