#include "report.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* A node that was started from an earlier version of the program may not have
 * all of them. */
#define FIELD(member, kind)                                                    \
    .name = #member, .type = LS_FIELD_##kind,                                  \
    .offset = offsetof(struct report, member), .presence = LS_MAY_MISS
#define INT(member)                                                            \
    {                                                                          \
        FIELD(member, INT)                                                     \
    }
#define DOUBLE(member, first)                                                  \
    {                                                                          \
        FIELD(member, DOUBLE), .fallback = (first), .nan = true                \
    }
#define TEXT(member)                                                           \
    {                                                                          \
        FIELD(member, CHARS), .size = sizeof((struct report *)0)->member       \
    }

static const struct ls_field fields[] = {
    {FIELD(kind, INT), .most = REPORT_N_KINDS - 1},
    INT(node),
    INT(iteration),
    INT(env_step),
    INT(env_episode),
    INT(train_iter),
    INT(discarded),
    INT(failed_saves),
    DOUBLE(env_steps_per_s, 0.0),
    DOUBLE(eval_value, (double)NAN),
    INT(episodes),
    INT(wait_ns),
    INT(load_ns),
    INT(train_ns),
    INT(overlap_ns),
    INT(trained),
    INT(policy_only),
    INT(commits),
    INT(works),
    INT(given_back),
    INT(failed_calls),
    INT(refused_calls),
    INT(dropped_samples),
    INT(store_refused),
    INT(epochs),
    INT(failures),
    INT(median_ns),
    INT(max_ns),
    INT(barrier_sent),
    INT(barrier_repeated),
    INT(samples),
    INT(infos),
    INT(done_infos),
    INT(batches),
    INT(requeued),
    INT(refused_starts),
    INT(expired),
    INT(refused_data),
    INT(pushed_out),
    INT(evicted_stale),
    INT(evicted_full),
    INT(evicted_lost),
    INT(late_samples),
    INT(priorities),
    INT(priorities_refused),
    DOUBLE(staleness, (double)NAN),
    INT(staleness_max),
    INT(sent),
    INT(sent_bytes),
    INT(lost),
    INT(dropped),
    INT(refused),
    INT(slowest),
    INT(slowest_ns),
    INT(peak_kib),
    INT(status),
    TEXT(endpoint),
    TEXT(weights),
    TEXT(unsaved),
    TEXT(losses),
    TEXT(refusal),
    {"metrics", LS_FIELD_BLOCK,
     .offset = offsetof(struct report, metrics.bytes),
     .size = REPORT_METRICS_MAX, .count = offsetof(struct report, metrics.size),
     .presence = LS_MAY_MISS},
    TEXT(text),
};

const struct ls_record report_record = {.name = "a report",
                                        .size = sizeof(struct report),
                                        .fields = fields,
                                        .n_fields =
                                            sizeof fields / sizeof fields[0],
                                        .open = true};

struct report report_of(uint32_t node, enum report_kind kind)
{
    return (struct report){
        .kind = kind, .node = node, .eval_value = NAN, .staleness = NAN};
}

void report_set_metrics(struct report *report, const void *data, size_t size)
{
    struct report_metrics *const metrics = &report->metrics;
    metrics->size = size <= sizeof metrics->bytes ? size : 0;
    if (metrics->size > 0)
        memcpy(metrics->bytes, data, metrics->size);
}
