/* factory.h - what the functions that make middleware share. */
#ifndef LOCKSTEP_FACTORY_H
#define LOCKSTEP_FACTORY_H

#include <stdio.h>

#include "lockstep/task.h"

/* A middleware that could not be made: carries the status, and the last error
 * text of this thread, to ls_task_use(). */
static inline struct ls_middleware middleware_failed(const char *name,
                                                     int status)
{
    struct ls_middleware failed = {.name = name, .status = status};
    (void)snprintf(failed.error, sizeof failed.error, "%s: %.200s", name,
                   ls_error_text());
    return failed;
}

#endif
