#include "call_intake.h"

#include <stdlib.h>
#include <string.h>

#include "blocks.h"

#define KEEP_BYTES 4096 /* shorter ones are copied: a message holds more */
#define ALIGNMENT  8    /* and what lies badly in its message */

static void free_data(void *data, void *hint)
{
    (void)hint;
    free(data);
}

void ls_body_release(struct ls_body *body)
{
    if (body == NULL)
        return;
    if (body->release != NULL)
        body->release(body->data, body->hint);
    *body = (struct ls_body){NULL, 0, NULL, NULL};
}

int ls_body_keep(struct ls_body *body)
{
    if (body->release != blocks_give_back)
        return LS_OK;
    void *const copy = malloc(body->size);
    if (copy == NULL)
        return ls_error(LS_ENOMEM, "no memory for a body of %zu bytes",
                        body->size);
    struct ls_body lent = *body;
    memcpy(copy, lent.data, lent.size);
    *body = (struct ls_body){copy, lent.size, free_data, NULL};
    ls_body_release(&lent);
    return LS_OK;
}

static bool begin(struct call_intake *intake, size_t size)
{
    void *data = malloc(size);
    if (data == NULL)
        return false;
    intake->body = (struct ls_body){data, size, free_data, NULL};
    return true;
}

enum intake_verdict call_intake_add(struct call_intake *intake, size_t size,
                                    struct ls_channel_part *part)
{
    if (part->total != size || part->offset != intake->filled ||
        part->size == 0 || part->size > size - intake->filled)
        return INTAKE_WRONG;
    if (part->size == size && size > KEEP_BYTES &&
        (uintptr_t)part->data % ALIGNMENT == 0) {
        intake->body = (struct ls_body){(void *)(uintptr_t)part->data, size,
                                        part->release, part->hint};
        part->taken = true;
    } else {
        if (intake->filled == 0 && !begin(intake, size))
            return INTAKE_NO_MEMORY;
        memcpy((char *)intake->body.data + intake->filled, part->data,
               part->size);
    }
    intake->filled += part->size;
    return intake->filled == size ? INTAKE_WHOLE : INTAKE_MORE;
}

struct ls_body call_intake_take(struct call_intake *intake)
{
    const struct ls_body body = intake->body;
    *intake = (struct call_intake){{NULL, 0, NULL, NULL}, 0};
    return body;
}

void call_intake_drop(struct call_intake *intake)
{
    struct ls_body body = call_intake_take(intake);
    ls_body_release(&body);
}
