#include "split.h"

int split_trajectory(const struct ls_trajectory *whole,
                     const struct trajectory_shape *shape,
                     const struct sample *sample, struct ls_trajectory *out)
{
    const uint64_t n = whole->n;
    const uint64_t begin = sample->split ? (uint64_t)sample->split_begin : 0;
    const uint64_t length = (uint64_t)sample->unroll_len;
    if (length == 0 || begin > n || length > n - begin ||
        (!sample->split && length != n))
        return ls_error(LS_EPROTO,
                        "sample %s: steps %llu to %llu of a trajectory of "
                        "%llu",
                        sample->data_id, (unsigned long long)begin,
                        (unsigned long long)(begin + length),
                        (unsigned long long)n);
    const size_t at = (size_t)begin;
    *out = (struct ls_trajectory){
        .n = (size_t)length,
        .observations = whole->observations + at * shape->n_observation,
        .next_observations =
            whole->next_observations + at * shape->n_observation,
        .actions = whole->actions + at * shape->n_action,
        .rewards = whole->rewards + at,
        .extras = whole->extras + at * shape->n_extras,
        .terminated = whole->terminated + at,
        .truncated = whole->truncated + at};
    return LS_OK;
}

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
