/* watchdog.h - what ends this process when it does not end by itself.
 *
 * Stopping is bounded, also when a plugin hangs in its own code, or nobody
 * reads what is written: once it is set, the process has so long to go, or it
 * is made to. Thread: any. */
#ifndef LOCKSTEP_WATCHDOG_H
#define LOCKSTEP_WATCHDOG_H

#include "lockstep/status.h"

typedef struct watchdog watchdog;

/* out: own; give it to watchdog_destroy(), which calls it off.
 * Errors: LS_EAGAIN no room for a thread; LS_ENOMEM. */
LS_MUST_USE int watchdog_create(watchdog **out);
void watchdog_destroy(watchdog **watchdog);

/* Unless it is destroyed before, end the process `wait_ms` from now, with this
 * exit code and this line on stderr. Of several calls the earliest end counts.
 * text: borrow: until destroy. */
void watchdog_set(watchdog *watchdog, int wait_ms, int exit_code,
                  const char *text);

#endif
