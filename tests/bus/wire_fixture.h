/* wire_fixture.h - frames for the tests of the wire. */
#ifndef LOCKSTEP_TESTS_BUS_WIRE_FIXTURE_H
#define LOCKSTEP_TESTS_BUS_WIRE_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "test.h"
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

/* Read it with each byte of it changed to every value: whatever comes of that,
 * the sanitizers see a read beyond it. */
static inline void read_every_change(uint8_t *data, size_t size,
                                     int (*read)(const uint8_t *data,
                                                 size_t size))
{
    for (size_t at = 0; at < size; at++) {
        const uint8_t was = data[at];
        for (unsigned value = 0; value < 256; value++) {
            data[at] = (uint8_t)value;
            (void)read(data, size);
        }
        data[at] = was;
    }
}

#endif
