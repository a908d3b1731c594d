/* Any bytes as what a peer may send: the first says as what they are read. What
 * is read lies within them, and comes back when it is written again. */
#include "fuzz.h"
#include "wire.h"

static void members(const uint8_t *data, size_t size)
{
    struct wire_cursor cursor;
    struct wire_member member;
    int status = wire_members_read(&cursor, data, size);
    while (status >= 0 && (status = wire_member_read(&cursor, &member)) == 1) {
        uint8_t written[512];
        struct wire_member again;
        const size_t n = wire_member_write(written, &member);
        struct wire_cursor one = {written, written + n, 1};
        must(wire_member_read(&one, &again) == 1);
        must(memcmp(&again, &member, sizeof member) == 0);
    }
    must(status <= 0);
}

/* Written from what was read, it is what was read. */
static void write_again(const uint8_t *frame, size_t size,
                        const struct wire_header *header)
{
    const uint8_t *nul = memchr(frame, '\0', size);
    const size_t topic = (size_t)(nul - frame) + 1;
    const uint8_t *name = (const uint8_t *)header->name;
    struct wire_header again = *header;
    uint8_t head[2 * WIRE_HEAD_MAX];
    if (name != NULL && name < frame + topic)
        again.name_size = 0; /* the topic's */
    const size_t n = wire_header_write(head, &again);
    must(n <= WIRE_HEAD_MAX && topic + n <= size);
    must(memcmp(head, frame + topic, n) == 0);
}

static void header(const uint8_t *frame, size_t size)
{
    struct wire_header h;
    char topic_class;
    uint32_t to = 0;
    if (wire_header_read(frame, size, &topic_class, &to, &h) != LS_OK)
        return;
    const uint8_t *end = frame + size;
    const uint8_t *name = (const uint8_t *)h.name;
    must(h.name_size <= LS_EVENT_MAX);
    must(h.name_size == 0 || (name > frame && name + h.name_size <= end));
    if (h.data != NULL && h.kind != WIRE_KIND_BATCH)
        must(h.data > frame && h.data + h.size == end);
    if (h.kind == WIRE_KIND_HEARTBEAT)
        members(h.data, h.size);
    if (h.kind == WIRE_KIND_BATCH) {
        const uint8_t *at = h.data, *data;
        size_t n;
        for (uint32_t i = 0; i < h.total; i++) {
            wire_batch_next(&at, &data, &n);
            must(data > frame && data + n <= end && at == data + n);
        }
        must(at == end);
    }
    write_again(frame, size, &h);
}

static void presence(const uint8_t *topic, size_t size)
{
    struct wire_presence p, again;
    uint8_t written[WIRE_TOPIC_MAX];
    if (wire_presence_read(topic, size, &p) != LS_OK)
        return;
    const size_t n = wire_presence_write(written, &p);
    must(n < WIRE_TOPIC_MAX);
    must(wire_presence_read(written, n, &again) == LS_OK);
    must(memcmp(&p, &again, sizeof p) == 0);
}

static void listening(const uint8_t *topic, size_t size)
{
    struct wire_listen l, again;
    uint8_t written[WIRE_TOPIC_MAX];
    if (wire_listen_read(topic, size, &l) != LS_OK)
        return;
    must(wire_filter_valid(l.event));
    const size_t n = wire_listen_write(written, &l);
    must(wire_listen_read(written, n, &again) == LS_OK);
    must(l.id == again.id && l.link == again.link &&
         strcmp(l.event, again.event) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    switch (data[0] % 4) {
    case 0:
        header(data + 1, size - 1);
        break;
    case 1:
        presence(data + 1, size - 1);
        break;
    case 2:
        listening(data + 1, size - 1);
        break;
    default:
        members(data + 1, size - 1);
    }
    return 0;
}
