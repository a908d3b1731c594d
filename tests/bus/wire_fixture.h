/* wire_fixture.h - frames for the tests of the wire. */
#ifndef LOCKSTEP_TESTS_BUS_WIRE_FIXTURE_H
#define LOCKSTEP_TESTS_BUS_WIRE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire.h"

/* A frame of exactly its size on the heap: a read beyond it is seen by the
 * sanitizers. */
struct bytes {
    uint8_t *data;
    size_t size;
};

static inline struct bytes copy_of(const uint8_t *data, size_t size)
{
    struct bytes bytes = {malloc(size == 0 ? 1 : size), size};
    assert_non_null(bytes.data);
    if (size != 0)
        memcpy(bytes.data, data, size);
    return bytes;
}

/* A header whose numbers use every bit that they may. */
static inline struct wire_header header_of(enum wire_kind kind)
{
    return (struct wire_header){.kind = kind,
                                .job = 0xdeadbeef,
                                .origin = 4294967295u,
                                .incarnation = UINT64_MAX - 1,
                                .sequence = 1ull << 63,
                                .flags = WIRE_FLAG_DROP};
}

#endif
