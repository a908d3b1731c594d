/* The figures of a learner. */
#include "learner_parts.h"

#include <math.h>

/* Of nothing: 0, as a timer says it. */
static double mean_ms(const struct stage *stage)
{
    struct ls_window_summary summary;
    ls_window_summary(stage->recent, &summary);
    if (summary.held == 0)
        return 0.0;
    const double us = summary.mean / (double)LS_NS_PER_US;
    return round(us) / 1000.0;
}

/* Under the mutex. */
static int copy_latest(const ls_learner *learner, ls_learner_info *out)
{
    ls_learner_info_clear(out);
    return ls_learner_info_merge(out, learner->latest);
}

int ls_learner_metrics(ls_learner *learner, struct ls_learner_metrics *out,
                       bool overwrite)
{
    struct ls_learner_metrics metrics = {.learner = out->learner};
    ls_mutex_lock(&learner->mutex);
    ls_window_summary(learner->queue_sizes, &metrics.learner_queue);
    metrics.learner_grad_time_ms = mean_ms(&learner->grad);
    metrics.learner_load_time_ms = mean_ms(&learner->load);
    metrics.learner_load_wait_time_ms = mean_ms(&learner->load_wait);
    metrics.learner_dequeue_time_ms = mean_ms(&learner->dequeue);
    const int status = overwrite && out->learner != NULL
                           ? copy_latest(learner, out->learner)
                           : LS_OK;
    ls_mutex_unlock(&learner->mutex);
    if (status == LS_OK)
        *out = metrics;
    return status;
}

static void write_number(ls_writer *writer, const char *name, double value)
{
    ls_write_string(writer, name);
    ls_write_double(writer, value);
}

static void write_queue(const struct ls_window_summary *queue,
                        ls_writer *writer)
{
    const uint32_t n = queue->held == 0 ? 0 : 5;
    ls_write_map(writer, 4);
    ls_write_string(writer, "size_count");
    ls_write_uint(writer, queue->count);
    write_number(writer, "size_mean", queue->mean);
    write_number(writer, "size_std", queue->std);
    ls_write_string(writer, "size_quantiles");
    ls_write_array(writer, n);
    for (uint32_t i = 0; i < n; i++)
        ls_write_double(writer, queue->quantiles[i]);
}

static void write_times(const struct ls_learner_metrics *metrics,
                        ls_writer *writer)
{
    ls_write_map(writer, 4);
    write_number(writer, "learner_grad_time_ms", metrics->learner_grad_time_ms);
    write_number(writer, "learner_load_time_ms", metrics->learner_load_time_ms);
    write_number(writer, "learner_load_wait_time_ms",
                 metrics->learner_load_wait_time_ms);
    write_number(writer, "learner_dequeue_time_ms",
                 metrics->learner_dequeue_time_ms);
}

void ls_learner_metrics_write(const struct ls_learner_metrics *metrics,
                              ls_writer *writer)
{
    ls_write_map(writer, 1);
    ls_write_string(writer, "info");
    ls_write_map(writer, 3);
    ls_write_string(writer, "learner_queue");
    write_queue(&metrics->learner_queue, writer);
    ls_write_string(writer, "learner");
    if (metrics->learner != NULL)
        ls_learner_info_write(metrics->learner, writer);
    else
        ls_write_map(writer, 0);
    ls_write_string(writer, "timing_breakdown");
    write_times(metrics, writer);
}
