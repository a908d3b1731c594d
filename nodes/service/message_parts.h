/* message_parts.h - what the messages of learners and collectors share.
 * Thread: any. */
#ifndef LOCKSTEP_MESSAGE_PARTS_H
#define LOCKSTEP_MESSAGE_PARTS_H

#include "message_fields.h"
#include "messages.h"

static inline void write_text(ls_writer *out, const char *field,
                              const char *text)
{
    ls_write_string(out, field);
    ls_write_string(out, text);
}

static inline void write_int(ls_writer *out, const char *field, int64_t value)
{
    ls_write_string(out, field);
    ls_write_int(out, value);
}

static inline void write_bool(ls_writer *out, const char *field, bool value)
{
    ls_write_string(out, field);
    ls_write_bool(out, value);
}

static inline void write_number(ls_writer *out, const char *field, double value)
{
    ls_write_string(out, field);
    ls_write_double(out, value);
}

/* The first two fields of a map. */
static inline void write_key(ls_writer *out, const struct work_key *key)
{
    write_text(out, "task_id", key->task_id);
    write_int(out, "attempt", key->attempt);
}

static inline void read_work_key(struct message *message, struct work_key *key)
{
    message_name(message, "task_id", key->task_id);
    message_int(message, "attempt", 1, SERVICE_COUNT_MAX, &key->attempt);
}

static inline void write_resources(ls_writer *out, double gpu, double cpu)
{
    ls_write_string(out, "resource_info");
    ls_write_map(out, 2);
    write_number(out, "gpu", gpu);
    write_number(out, "cpu", cpu);
}

static inline void read_resources(struct message *message, double *gpu,
                                  double *cpu)
{
    struct message info;
    message_enter(message, "resource_info", &info);
    message_number(&info, "gpu", gpu);
    message_number(&info, "cpu", cpu);
    message_leave(message, &info);
}

/* The type of a struct that is read by read_STRUCT and owns nothing. */
#define MESSAGE_READ(type, name)                                               \
    int type##_read(struct type *out, const void *data, size_t size)           \
    {                                                                          \
        static const struct message_type kind = {name, sizeof(struct type),    \
                                                 read_##type, NULL};           \
        return message_read(&kind, out, data, size);                           \
    }

#endif
