/* trajectory_room.h - a trajectory with memory of its own. */
#ifndef TRAJECTORY_ROOM_H
#define TRAJECTORY_ROOM_H

#include <stdlib.h>
#include <string.h>

#include "trajectory_codec.h"

/* With room for n_max steps. */
struct trajectory {
    struct ls_trajectory view; /* points into memory */
    void *memory;              /* own */
};

/* n is 0. Errors: LS_ENOMEM. */
static inline int trajectory_init(struct trajectory *out,
                                  const struct trajectory_shape *shape)
{
    size_t bytes = 0;
    const int status = trajectory_bytes(shape, &bytes);
    if (status != LS_OK)
        return status;
    out->memory = malloc(bytes);
    if (out->memory == NULL)
        return ls_error(LS_ENOMEM, "a trajectory of %zu steps", shape->n_max);
    out->view = trajectory_in(out->memory, shape);
    return LS_OK;
}

static inline void trajectory_fini(struct trajectory *trajectory)
{
    free(trajectory->memory);
    memset(trajectory, 0, sizeof *trajectory);
}

#endif
