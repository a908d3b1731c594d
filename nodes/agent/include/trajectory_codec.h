/* trajectory_codec.h - a trajectory as one msgpack value, and back.
 *
 * A map: "n", and for each array of struct ls_trajectory a binary of its
 * numbers, little-endian. What comes back is checked against the shapes that
 * this node expects, so that bytes from a peer can neither overrun an array nor
 * bring a number that is none into the learning.
 * Thread: serial. */
#ifndef LOCKSTEP_TRAJECTORY_CODEC_H
#define LOCKSTEP_TRAJECTORY_CODEC_H

#include "lockstep/plugin.h"

struct trajectory_shape {
    struct ls_space observation, action; /* as plugin.h bounds them */
    size_t n_extras;
    uint32_t n_choices; /* 0: actions are free */
    size_t n_max;       /* steps at most */
};

/* The longest value that is read: bytes. */
#define TRAJECTORY_VALUE_MAX ((size_t)1 << 30)

/* How long the value of one with n_max steps is, at most. */
uint64_t trajectory_value_bytes(const struct trajectory_shape *shape);

/* How much memory one takes. Errors: LS_ENOMEM: more than there can be. */
LS_MUST_USE int trajectory_bytes(const struct trajectory_shape *shape,
                                 size_t *bytes);

/* Lay one out in that much memory, aligned as malloc() does; n is 0. Each array
 * begins on a boundary of TRAJECTORY_ALIGNMENT bytes. */
#define TRAJECTORY_ALIGNMENT 16
struct ls_trajectory trajectory_in(void *memory,
                                   const struct trajectory_shape *shape);

/* The steps from `begin` on, `n` of them. whole: of this shape.
 * out:    a view into it: borrow, as long as that; written on success only.
 * Errors: LS_EPROTO it has not so many steps, or n is 0. */
LS_MUST_USE int trajectory_part(const struct ls_trajectory *whole,
                                const struct trajectory_shape *shape,
                                size_t begin, size_t n,
                                struct ls_trajectory *out);

/* Write it as exactly one value.
 * Errors: LS_EHANDLER a float is not finite or a choice is none: the array
 *         and the step are named; it is the plugin's doing. */
LS_MUST_USE int trajectory_write(const struct ls_trajectory *trajectory,
                                 const struct trajectory_shape *shape,
                                 ls_writer *out);

/* Read it back into a trajectory made for this shape.
 * Errors: LS_EPROTO no such value, another shape, more than n_max steps, a
 *         float that is not finite, a flag or a choice that is none. The
 *         trajectory's contents are then undefined, its n is 0. */
LS_MUST_USE int trajectory_read(struct ls_trajectory *trajectory,
                                const struct trajectory_shape *shape,
                                const void *data, size_t size);

#endif
