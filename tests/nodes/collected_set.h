/* collected_set.h - what a collector of a test has collected. */
#ifndef LOCKSTEP_TEST_COLLECTED_SET_H
#define LOCKSTEP_TEST_COLLECTED_SET_H

#include <string.h>

#include "collector_service.h"

static inline int collected_set(struct collected_data *out, const void *data,
                                size_t size)
{
    const int status = collected_room(out, size);
    if (status == LS_OK)
        memcpy(out->bytes, data, size);
    return status;
}

#endif
