#include "pace.h"

void pace_init(struct pace *pace)
{
    *pace = (struct pace){.bytes = PACE_FIRST_BYTES};
}

size_t pace_piece(const struct pace *pace, size_t most)
{
    const size_t half = pace->bytes / 2;
    const size_t piece = half < PACE_LEAST_BYTES ? PACE_LEAST_BYTES : half;
    return piece < most ? piece : most;
}

bool pace_asks(struct pace *pace, uint64_t sent, uint64_t under_way,
               int64_t now)
{
    if (pace->asked_at != 0 || pace->bytes >= PACE_MOST_BYTES ||
        under_way < pace->bytes / 2)
        return false;
    pace->asked_bytes = sent;
    pace->asked_at = now;
    return true;
}

void pace_arrived(struct pace *pace, uint64_t arrived, int64_t now)
{
    if (pace->asked_at == 0 || arrived < pace->asked_bytes)
        return;
    const int64_t took = now - pace->asked_at;
    pace->asked_at = 0;
    if (took <= PACE_NS / 2) {
        pace->bytes *= 2;
    } else if (took > PACE_NS) {
        const double share = (double)PACE_NS / (double)took;
        const double less = (double)pace->bytes * share;
        pace->bytes = less < PACE_LEAST_BYTES ? PACE_LEAST_BYTES : (size_t)less;
        pace->slow = true;
    }
}

void pace_again(struct pace *pace)
{
    pace->asked_at = 0;
}
