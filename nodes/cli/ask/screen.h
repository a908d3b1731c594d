/* screen.h - a terminal that is drawn on as a whole, and read key by key.
 *
 * While it is open, keys are not echoed, Ctrl-C is one of them, and what was on
 * the terminal is kept aside. All of that is as before after screen_end(), and
 * after SIGINT, SIGTERM, SIGHUP and SIGQUIT, which end the process.
 * Thread: owner; one for the process. */
#ifndef LOCKSTEP_SCREEN_H
#define LOCKSTEP_SCREEN_H

#include <stdbool.h>
#include <termios.h>

#include "lockstep/runtime.h"
#include "lockstep/signal.h"

struct screen {
    struct termios before;
    ls_mutex mutex; /* who writes to the terminal has it */
    ls_signals *signals;
};

/* Errors: LS_EINVAL stdin or stdout is not a terminal; LS_EIO. */
LS_MUST_USE int screen_begin(struct screen *out);
/* Once; NULL is fine. */
void screen_end(struct screen *screen);

/* Lines, cut to what the terminal has room for now.
 * Errors: LS_EIO nothing can be written to it. */
LS_MUST_USE int screen_show(struct screen *screen, const char *text);

/* Wait for a key, `seconds` at most: 0.1 to 25.
 * *goes_on: false: it was q, Ctrl-C or Ctrl-D.
 * Errors: LS_EIO the terminal is gone. */
LS_MUST_USE int screen_wait(struct screen *screen, double seconds,
                            bool *goes_on);

#endif
