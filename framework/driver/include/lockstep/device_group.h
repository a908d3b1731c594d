/* device_group.h - collectives on numbers that lie in the memory of devices.
 *
 * A group folds what is in host memory. Here the numbers come from a device and
 * go back to it, through the host buffer of their stack, in pieces: one is
 * copied while another is folded.
 * Thread: that of the group's rank, which no other uses meanwhile; as the
 * stack. Source: docs/driver.md. */
#ifndef LOCKSTEP_DEVICE_GROUP_H
#define LOCKSTEP_DEVICE_GROUP_H

#include "lockstep/device.h"
#include "lockstep/group.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Replace `count` numbers in the stack's device memory, from `offset` bytes on,
 * by their folds over all ranks. Kernels that were put on the stack's stream
 * before have written them; those that are put there after find the folds. The
 * host buffer has them as well. Every rank calls it, with the same count, type
 * and fold; the devices may differ.
 * name:    for errors and mismatches; NULL: "".
 * wait_ms: LS_WAIT_DEFAULT: a minute. For each piece.
 * Errors:  LS_EINVAL outside of the stack's capacity, or the offset is not a
 *          multiple of the number's size, or as ls_group_start(): nothing was
 *          begun; those of an operation of the group, and of
 *          ls_device_stack_wait(): the numbers are undefined then. A rank whose
 *          copies fail leaves the group, so that no other waits for it. */
LS_MUST_USE LS_API int
ls_group_all_reduce_stack(ls_group *group, const char *name,
                          ls_device_stack *stack, size_t offset, size_t count,
                          enum ls_group_type type, enum ls_group_fold fold,
                          int wait_ms);

#ifdef __cplusplus
}
#endif

#endif
