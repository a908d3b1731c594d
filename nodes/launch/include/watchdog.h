/* watchdog.h - what ends this process when it does not end by itself.
 *
 * Stopping is bounded, also when a plugin hangs in its own code, or nobody
 * reads what is written: once it is set, the process has so long to go, or it
 * is made to. Thread: any. */
#ifndef LOCKSTEP_WATCHDOG_H
#define LOCKSTEP_WATCHDOG_H

#include <stdint.h>

#include "lockstep/status.h"

typedef struct watchdog watchdog;

/* Says why the process is ended: the text of watchdog_set(), and whatever may
 * be known besides. It runs on a thread of its own, and when it hangs too, the
 * process does not wait for it. */
typedef void watchdog_say(void *self, const char *text);

/* out: own; give it to watchdog_destroy(), which calls it off. say: NULL: a
 * line on stderr.
 * Errors: LS_EAGAIN no room for a thread; LS_ENOMEM. */
LS_MUST_USE int watchdog_create(watchdog **out, watchdog_say *say, void *self);
void watchdog_destroy(watchdog **watchdog);

/* Unless it is destroyed before, say why, and end the process `wait_ms` from
 * now with this exit code. Of several calls the earliest end counts.
 * text: borrow: until destroy. */
void watchdog_set(watchdog *watchdog, int64_t wait_ms, int exit_code,
                  const char *text);

#endif
