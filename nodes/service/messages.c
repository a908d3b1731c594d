#include "messages.h"

#include "message_parts.h"

/* What asks for nothing, and what answers a start ------------------------- */

static void read_nothing(struct message *message, void *out)
{
    (void)message;
    (void)out;
}

void service_nothing_write(ls_writer *out)
{
    ls_write_map(out, 0);
}

int service_nothing_read(const void *data, size_t size)
{
    char nothing;
    return message_read(
        &(struct message_type){CALL_RESOURCE, 1, read_nothing, NULL}, &nothing,
        data, size);
}

static void read_started(struct message *message, void *out)
{
    const ls_value *value = message_value(message, "message");
    const char *text;
    (void)out;
    if (value != NULL && ls_value_string(value, &text) != LS_OK)
        message_wrong(message, "message");
}

void service_started_write(const char *message, ls_writer *out)
{
    ls_write_map(out, 1);
    ls_write_string(out, "message");
    ls_write_string(out, message);
}

int service_started_read(const void *data, size_t size)
{
    char nothing;
    return message_read(
        &(struct message_type){"start answer", 1, read_started, NULL}, &nothing,
        data, size);
}

/* The key ---------------------------------------------------------------- */

static void read_work_key_only(struct message *message, void *out)
{
    read_work_key(message, out);
}

void work_key_write(const struct work_key *in, ls_writer *out)
{
    ls_write_map(out, 2);
    write_key(out, in);
}

int work_key_read(struct work_key *out, const void *data, size_t size)
{
    static const struct message_type kind = {"work", sizeof(struct work_key),
                                             read_work_key_only, NULL};
    return message_read(&kind, out, data, size);
}

/* resource --------------------------------------------------------------- */

static void read_service_resource(struct message *message, void *out)
{
    struct service_resource *resource = out;
    message_number(message, "gpu", &resource->gpu);
    message_number(message, "cpu", &resource->cpu);
    if (!message_has(message, "task_id") && !message_has(message, "attempt") &&
        !message_has(message, "progress"))
        return;
    message_name(message, "task_id", resource->task_id);
    message_int(message, "attempt", 1, SERVICE_COUNT_MAX, &resource->attempt);
    message_int(message, "progress", 0, SERVICE_COUNT_MAX, &resource->progress);
}

void service_resource_write(const struct service_resource *in, ls_writer *out)
{
    const bool holds = in->task_id[0] != '\0';
    ls_write_map(out, holds ? 5 : 2);
    write_number(out, "gpu", in->gpu);
    write_number(out, "cpu", in->cpu);
    if (!holds)
        return;
    write_text(out, "task_id", in->task_id);
    write_int(out, "attempt", in->attempt);
    write_int(out, "progress", in->progress);
}

MESSAGE_READ(service_resource, "resource answer")
