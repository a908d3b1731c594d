#include "split.h"

void split_sample(const struct sample *whole, int64_t part, int64_t n_parts,
                  struct sample *out)
{
    struct sample sample = *whole;
    if (n_parts > 1) {
        sample.unroll_len = whole->unroll_len / n_parts;
        sample.split = true;
        sample.split_begin = part * sample.unroll_len;
    }
    *out = sample;
}
