/* log.h - lines for people, on stderr.
 *
 * LS_LOG sets a level (error, warn, info, debug, trace; default warn) and
 * optionally the format, as in LS_LOG=debug,json. Every line has the time, the
 * level, and the calling thread's node and step. Text:
 *   12:03:44.512 warn  node 3 [collect] bus: node 5 is slow: …
 * JSON lines: {"time":…,"level":"warn","node":3,"step":"collect","text":"…"}
 * "node" and "step" are omitted if there is none. One call writes one whole
 * line, with one write(2); a line over 4095 bytes is cut and ends in an
 * ellipsis. Control bytes are escaped: \n, \x1b. A stderr that nobody reads (a
 * stopped terminal, a full pipe) holds up a thread for half a second, once;
 * then lines are left out until one is read, as they are on a full disk, and
 * the next line says how many, or else the end of the process, if that is read
 * within half a second.
 * Times are UTC; levels are coloured on a terminal, unless NO_COLOR is set. On
 * a thread of a simulation times are virtual, and warnings and errors are also
 * noted in the simulation's log (lockstep/simulation.h), whatever LS_LOG says.
 * Thread: any. */
#ifndef LOCKSTEP_LOG_H
#define LOCKSTEP_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "lockstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ls_log_level {
    LS_LOG_ERROR,
    LS_LOG_WARN,
    LS_LOG_INFO,
    LS_LOG_DEBUG,
    LS_LOG_TRACE
};

/* Read the setting from text like LS_LOG's; whatever it does not name takes its
 * default. The environment is read before the first line is written, unless
 * this was called first; a bad LS_LOG is ignored, and a line says so.
 * Errors: LS_EINVAL a word is none of these; nothing has changed. */
LS_MUST_USE LS_API int ls_log_setup(const char *setting);

/* Whether a line of this level would be written or noted. */
LS_API bool ls_log_enabled(enum ls_log_level level);

/* Write a line. Use the macros: they skip the arguments of unwritten lines. */
LS_API void ls_log_write(enum ls_log_level level, const char *format, ...)
    LS_PRINTF(2, 3);

/* Set the node (negative: none) and the step (borrow, until changed; NULL:
 * none) that the calling thread now works for; and get them. The system shows
 * a thread that the runtime has spawned as "2 ls-bus" then. */
LS_API void ls_log_set_node(int64_t node);
LS_API void ls_log_set_step(const char *step);
LS_API int64_t ls_log_node(void);
LS_API const char *ls_log_step(void);

/* Send whole lines (without their newline) to fn instead of stderr; NULL: to
 * stderr again. For tests, and for programs with their own log.
 * fn: called under the log's lock; must not log. */
LS_API void ls_log_redirect(void (*fn)(void *self, const char *line),
                            void *self);

#define LS_LOG_AT(level, ...)                                                  \
    do {                                                                       \
        if (ls_log_enabled(level))                                             \
            ls_log_write(level, __VA_ARGS__);                                  \
    } while (0)
#define ls_log_error(...) LS_LOG_AT(LS_LOG_ERROR, __VA_ARGS__)
#define ls_log_warn(...)  LS_LOG_AT(LS_LOG_WARN, __VA_ARGS__)
#define ls_log_info(...)  LS_LOG_AT(LS_LOG_INFO, __VA_ARGS__)
#define ls_log_debug(...) LS_LOG_AT(LS_LOG_DEBUG, __VA_ARGS__)
#define ls_log_trace(...) LS_LOG_AT(LS_LOG_TRACE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif

#endif
