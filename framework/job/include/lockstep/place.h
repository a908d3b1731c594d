/* place.h - for which nodes something is: a task of a job, a work of a
 * coordinator.
 *
 * A place is a text: "all"; "id:3,4"; "role:reader", "label:gpu,fast": whoever
 * has one of them, which are of [A-Za-z0-9._-] as in struct ls_node_options.
 * NULL is all.
 * Thread: any. Source: docs/jobs.md, "What a job is". */
#ifndef LOCKSTEP_PLACE_H
#define LOCKSTEP_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "lockstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Errors: LS_EINVAL it is none; the text shows it, and what one is. */
LS_MUST_USE LS_API int ls_place_check(const char *place);

/* Whether it is for the node with this id, role and list of labels, as in
 * struct ls_member. place: a text that ls_place_check() takes. */
LS_API bool ls_place_has(const char *place, uint32_t id, const char *role,
                         const char *labels);

#ifdef __cplusplus
}
#endif

#endif
