#include "payload.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/status.h"

#include "transport.h"

struct payload {
    _Atomic size_t users;
    void *data;
    size_t size;
    void (*release)(void *data, void *hint); /* NULL: data is behind this */
    void *hint;
};

int payload_create(struct payload **out, const void *data, size_t size,
                   void (*release)(void *data, void *hint), void *hint)
{
    struct payload *payload =
        malloc(sizeof *payload + (release == NULL ? size : 0));
    if (payload == NULL) {
        if (release != NULL)
            release((void *)(uintptr_t)data, hint);
        return ls_error(LS_ENOMEM, "no memory for a payload of %zu bytes",
                        size);
    }
    *payload = (struct payload){.data = (void *)(uintptr_t)data,
                                .size = size,
                                .release = release,
                                .hint = hint};
    atomic_init(&payload->users, 1);
    if (release == NULL) {
        payload->data = payload + 1;
        if (size != 0)
            memcpy(payload->data, data, size);
    }
    *out = payload;
    return LS_OK;
}

const void *payload_data(const struct payload *payload)
{
    return payload->data;
}

size_t payload_size(const struct payload *payload)
{
    return payload->size;
}

void *payload_hint(const struct payload *payload,
                   void (*release)(void *data, void *hint))
{
    return payload->release == release ? payload->hint : NULL;
}

struct payload *payload_share(struct payload *payload)
{
    atomic_fetch_add(&payload->users, 1);
    return payload;
}

void payload_drop(struct payload *payload)
{
    if (payload == NULL || atomic_fetch_sub(&payload->users, 1) != 1)
        return;
    if (payload->release != NULL)
        payload->release(payload->data, payload->hint);
    free(payload);
}

void payload_released(void *data, void *hint)
{
    (void)data;
    transport_released();
    payload_drop(hint);
}
