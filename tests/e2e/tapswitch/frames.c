#include "frames.h"

#include <stdlib.h>
#include <string.h>

#include <lockstep/runtime.h>

static bool before(const struct frame *a, const struct frame *b)
{
    return a->due != b->due ? a->due < b->due : a->number < b->number;
}

bool frames_push(struct frames *frames, int64_t due, unsigned from, unsigned to,
                 const unsigned char *bytes, size_t size)
{
    if (frames->n == FRAMES_MAX || size > FRAME_BYTES_MAX)
        return false;
    struct frame frame = {due, ++frames->numbers, from, to, size, malloc(size)};
    if (frame.bytes == NULL)
        return false;
    memcpy(frame.bytes, bytes, size);
    size_t at = frames->n++;
    while (at > 0 && before(&frame, &frames->heap[(at - 1) / 2])) {
        frames->heap[at] = frames->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    frames->heap[at] = frame;
    return true;
}

bool frames_pop(struct frames *frames, int64_t now, struct frame *out)
{
    if (frames_next_due(frames) > now)
        return false;
    *out = frames->heap[0];
    const struct frame last = frames->heap[--frames->n];
    size_t at = 0;
    for (size_t child = 1; child < frames->n; child = 2 * at + 1) {
        if (child + 1 < frames->n &&
            before(&frames->heap[child + 1], &frames->heap[child]))
            child++;
        if (before(&last, &frames->heap[child]))
            break;
        frames->heap[at] = frames->heap[child];
        at = child;
    }
    frames->heap[at] = last;
    return true;
}

int64_t frames_next_due(const struct frames *frames)
{
    return frames->n == 0 ? LS_FOREVER : frames->heap[0].due;
}
