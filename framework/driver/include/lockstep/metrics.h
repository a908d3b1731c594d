/* metrics.h - figures of all ranks in one file, which rank 0 writes.
 *
 * Each rank notes its figures; when all flush, rank 0 appends them, in the
 * order of ranks, each as a line of JSON:
 *
 *     {"step":12,"rank":1,"name":"loss","value":0.25}
 *
 * A number that JSON lacks is "NaN", "Infinity" or "-Infinity". How far the
 * file has come is saved with checkpoints: a training that goes on from one
 * cuts off what came later, so that no figure is there twice. If the file is
 * shorter by then, as it was moved away, they go on behind what there is, and
 * the log says so. Thread: the rank's. */
#ifndef LOCKSTEP_METRICS_H
#define LOCKSTEP_METRICS_H

#include "lockstep/driver.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The longest name, in bytes without the NUL. */
#define LS_METRIC_NAME_MAX 95

typedef struct ls_metrics ls_metrics;

/* Before ls_driver_load(). All ranks call this, flush and close.
 * out:    own; NULL after an error; give it to ls_metrics_close() before the
 *         driver's function returns.
 * path:   copied; in rank 0. What is in the file is overwritten by the first
 *         flush, unless a checkpoint was loaded that says how much to keep.
 * Errors: LS_EEXIST the driver has one; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_metrics_open(ls_metrics **out, ls_driver *driver,
                                       const char *path);
/* What was not flushed is dropped, and the log says how much it was. NULL and a
 * pointer to NULL are fine. */
LS_API void ls_metrics_close(ls_metrics **metrics);

/* Note a figure of this rank.
 * name:   copied; UTF-8.
 * Errors: LS_EINVAL the name is empty, too long or not UTF-8; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_metrics_add(ls_metrics *metrics, const char *name,
                                      int64_t step, double value);

/* Write what all ranks have noted. It is on disk when this returns.
 * Errors: those of a collective; in rank 0 LS_EIO, elsewhere then LS_EABORTED:
 *         the figures are dropped. LS_ESTATE in a section without the others
 *         (ls_driver_without_sync()): they are kept. */
LS_MUST_USE LS_API int ls_metrics_flush(ls_metrics *metrics);

#ifdef __cplusplus
}
#endif

#endif
