#include "report.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum field_type { FIELD_INT, FIELD_DOUBLE, FIELD_TEXT, FIELD_METRICS };

struct field {
    const char *name;
    enum field_type type;
    size_t offset;
    size_t size; /* of a text's array */
};

#define INT(member)                                                            \
    {                                                                          \
#member, FIELD_INT, offsetof(struct report, member), 0                 \
    }
#define DOUBLE(member)                                                         \
    {                                                                          \
#member, FIELD_DOUBLE, offsetof(struct report, member), 0              \
    }
#define TEXT(member)                                                           \
    {                                                                          \
#member, FIELD_TEXT, offsetof(struct report, member),                  \
            sizeof((struct report *)0)->member                                 \
    }

#define METRICS(member)                                                        \
    {                                                                          \
#member, FIELD_METRICS, offsetof(struct report, member), 0             \
    }

static const struct field fields[] = {
    INT(kind),
    INT(node),
    INT(iteration),
    INT(env_step),
    INT(env_episode),
    INT(train_iter),
    DOUBLE(env_steps_per_s),
    DOUBLE(eval_value),
    INT(episodes),
    DOUBLE(grad_ms),
    DOUBLE(load_ms),
    DOUBLE(load_wait_ms),
    DOUBLE(dequeue_ms),
    INT(wait_ns),
    INT(load_ns),
    INT(train_ns),
    INT(overlap_ns),
    INT(epochs),
    INT(failures),
    INT(median_ns),
    INT(max_ns),
    INT(barrier_sent),
    INT(barrier_repeated),
    INT(samples),
    INT(infos),
    INT(done_infos),
    INT(requeued),
    INT(expired),
    INT(refused_data),
    INT(pushed_out),
    INT(evicted_stale),
    INT(evicted_full),
    INT(late_samples),
    DOUBLE(staleness),
    INT(sent),
    INT(sent_bytes),
    INT(received),
    INT(lost),
    INT(dropped),
    INT(refused),
    INT(slowest),
    INT(slowest_ns),
    INT(peak_kib),
    INT(status),
    TEXT(endpoint),
    TEXT(weights),
    TEXT(losses),
    TEXT(refusal),
    METRICS(metrics),
    TEXT(text),
};
#define N_FIELDS (sizeof fields / sizeof fields[0])

struct report report_of(uint32_t node, enum report_kind kind)
{
    return (struct report){
        .kind = kind, .node = node, .eval_value = NAN, .staleness = NAN};
}

void report_write(const struct report *report, ls_writer *out)
{
    const char *base = (const char *)report;
    ls_write_map(out, N_FIELDS);
    for (size_t i = 0; i < N_FIELDS; i++) {
        const char *at = base + fields[i].offset;
        const struct report_metrics *metrics;
        int64_t whole;
        double number;
        ls_write_string(out, fields[i].name);
        switch (fields[i].type) {
        case FIELD_INT:
            memcpy(&whole, at, sizeof whole);
            ls_write_int(out, whole);
            break;
        case FIELD_DOUBLE:
            memcpy(&number, at, sizeof number);
            if (isnan(number))
                ls_write_nil(out);
            else
                ls_write_double(out, number);
            break;
        case FIELD_TEXT:
            ls_write_string(out, at);
            break;
        case FIELD_METRICS:
            metrics = (const struct report_metrics *)(const void *)at;
            ls_write_binary(out, metrics->bytes, metrics->size);
            break;
        }
    }
}

void report_set_metrics(struct report *report, const void *data, size_t size)
{
    struct report_metrics *const metrics = &report->metrics;
    metrics->size = size <= sizeof metrics->bytes ? size : 0;
    if (metrics->size > 0)
        memcpy(metrics->bytes, data, metrics->size);
}

static int read_metrics(struct report_metrics *out, const ls_value *value)
{
    const void *data;
    size_t size;
    const int status = ls_value_binary(value, &data, &size);
    if (status != LS_OK)
        return status;
    if (size > sizeof out->bytes)
        return ls_error(LS_EPROTO, "%zu bytes of metrics", size);
    out->size = size;
    if (size > 0)
        memcpy(out->bytes, data, size);
    return LS_OK;
}

static int read_field(char *to, const struct field *field,
                      const ls_value *value)
{
    int64_t whole = 0;
    double number = NAN;
    const char *text = "";
    int status = LS_OK;
    switch (field->type) {
    case FIELD_INT:
        status = ls_value_int(value, &whole);
        memcpy(to, &whole, sizeof whole);
        break;
    case FIELD_DOUBLE:
        if (ls_value_type(value) != LS_VALUE_NIL)
            status = ls_value_double(value, &number);
        memcpy(to, &number, sizeof number);
        break;
    case FIELD_TEXT:
        status = ls_value_string(value, &text);
        if (status == LS_OK && strlen(text) >= field->size)
            status = ls_error(LS_EPROTO, "%zu bytes of text", strlen(text));
        if (status == LS_OK)
            memcpy(to, text, strlen(text) + 1);
        break;
    case FIELD_METRICS:
        status = read_metrics((struct report_metrics *)(void *)to, value);
        break;
    }
    return status == LS_OK
               ? LS_OK
               : ls_error_at(LS_EPROTO, "a report: %s", field->name);
}

static int read_map(struct report *out, const ls_value *map)
{
    if (ls_value_type(map) != LS_VALUE_MAP)
        return ls_error(LS_EPROTO, "a report that is no map");
    for (size_t i = 0; i < N_FIELDS; i++) {
        const ls_value *value = ls_value_get(map, fields[i].name);
        if (value == NULL)
            continue;
        const int status =
            read_field((char *)out + fields[i].offset, &fields[i], value);
        if (status != LS_OK)
            return status;
    }
    if (out->kind < 0 || out->kind >= REPORT_N_KINDS)
        return ls_error(LS_EPROTO, "a report of unknown kind %lld",
                        (long long)out->kind);
    return LS_OK;
}

int report_read(struct report *out, const void *data, size_t size)
{
    ls_document *document = NULL;
    int status = ls_document_read(&document, data, size, NULL);
    if (status != LS_OK)
        return ls_error_at(status, "a report");
    struct report report = {.eval_value = NAN, .staleness = NAN};
    status = read_map(&report, ls_document_root(document));
    ls_document_destroy(&document);
    if (status == LS_OK)
        *out = report;
    return status;
}
