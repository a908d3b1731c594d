#include "wire.h"

#include <string.h>
#include <xxhash.h>

#include "fixed_form.h"

#define WIRE_FLAGS                                                             \
    (WIRE_FLAG_DROP | WIRE_FLAG_WITHDRAW | WIRE_FLAG_LATEST | WIRE_FLAG_TELL | \
     WIRE_FLAG_BLOCK)
#define MEMBER_FIELDS 11

uint32_t wire_job_hash(const char *job)
{
    return XXH32(job, strlen(job), WIRE_VERSION);
}

/* ---- writing ----------------------------------------------------------- */

size_t wire_topic_event(uint8_t *out, const char *event)
{
    const size_t size = strlen(event);
    out[0] = WIRE_EVENT;
    memcpy(out + 1, event, size + 1);
    return size + 2;
}

size_t wire_topic_inbox(uint8_t *out, uint32_t id)
{
    /* For each message: what snprintf() takes for it can be seen. */
    size_t digits = 1;
    for (uint32_t rest = id; rest >= 10; rest /= 10)
        digits++;
    out[0] = WIRE_INBOX;
    for (size_t i = digits; i > 0; i--, id /= 10)
        out[i] = (uint8_t)('0' + id % 10);
    out[digits + 1] = '\0';
    return digits + 2;
}

size_t wire_topic_inboxes(uint8_t *out)
{
    out[0] = WIRE_INBOX;
    return 1;
}

size_t wire_topic_control(uint8_t *out)
{
    out[0] = WIRE_CONTROL;
    out[1] = '\0';
    return 2;
}

size_t wire_topic_challenge(uint8_t *out, const char *challenge)
{
    out[0] = WIRE_CHALLENGE;
    memcpy(out + 1, challenge, WIRE_CHALLENGE_SIZE);
    out[1 + WIRE_CHALLENGE_SIZE] = '\0';
    return WIRE_CHALLENGE_SIZE + 2;
}

static unsigned header_arity(enum wire_kind kind)
{
    switch (kind) {
    case WIRE_KIND_CHUNK:
        return 11;
    case WIRE_KIND_VERDICT:
        return 13;
    case WIRE_KIND_HEARTBEAT:
        return 10;
    case WIRE_KIND_CREDIT:
        return 12;
    case WIRE_KIND_RELIABLE:
    case WIRE_KIND_ACK:
        return 14;
    default:
        return 9;
    }
}

size_t wire_header_write(uint8_t *out, const struct wire_header *header)
{
    uint8_t *at = out;
    *at++ = (uint8_t)(FORM_ARRAY | header_arity(header->kind));
    *at++ = WIRE_VERSION;
    *at++ = (uint8_t)header->kind;
    at = fixed_write_32(at, FORM_UINT32, header->job);
    at = fixed_write_32(at, FORM_UINT32, header->origin);
    at = fixed_write_u64(at, header->incarnation);
    at = fixed_write_u64(at, header->sequence);
    *at++ = header->flags;
    at = fixed_write_string(at, header->name, header->name_size);
    switch (header->kind) {
    case WIRE_KIND_CREDIT:
        at = fixed_write_u64(at, header->limit_messages);
        at = fixed_write_u64(at, header->limit_bytes);
        at = fixed_write_u64(at, header->arrived_messages);
        return (size_t)(fixed_write_u64(at, header->arrived_bytes) - out);
    case WIRE_KIND_FAREWELL:
        return (
            size_t)(fixed_write_32(at, FORM_INT32, (uint32_t)header->reason) -
                    out);
    case WIRE_KIND_BATCH:
        return (size_t)(fixed_write_32(at, FORM_ARRAY32, header->total) - out);
    case WIRE_KIND_CHUNK:
        at = fixed_write_32(at, FORM_UINT32, header->total);
        at = fixed_write_32(at, FORM_UINT32, header->offset);
        break;
    case WIRE_KIND_HEARTBEAT:
        at = fixed_write_u64(at, header->config_hash);
        break;
    case WIRE_KIND_VERDICT:
        at = fixed_write_32(at, FORM_INT32, (uint32_t)header->reason);
        at = fixed_write_u64(at, header->subject);
        at = fixed_write_32(at, FORM_UINT32, header->members);
        at = fixed_write_32(at, FORM_UINT32, header->silence_ms);
        break;
    case WIRE_KIND_RELIABLE:
        at = fixed_write_u64(at, header->to_incarnation);
        at = fixed_write_u64(at, header->number);
        *at++ = (uint8_t)header->of;
        at = fixed_write_32(at, FORM_UINT32, header->total);
        at = fixed_write_32(at, FORM_UINT32, header->offset);
        break;
    case WIRE_KIND_ACK:
        at = fixed_write_u64(at, header->to_incarnation);
        at = fixed_write_u64(at, header->number);
        at = fixed_write_u64(at, header->also);
        at = fixed_write_u64(at, header->repeats);
        at = fixed_write_u64(at, header->limit_messages);
        return (size_t)(fixed_write_u64(at, header->limit_bytes) - out);
    default:
        break;
    }
    if (header->data == NULL)
        *at++ = FORM_NIL;
    else
        at = fixed_write_32(at, FORM_BIN32, (uint32_t)header->size);
    return (size_t)(at - out);
}

size_t wire_batch_write(uint8_t *out, const void *data, size_t size)
{
    return (size_t)(fixed_write_binary(out, data, size) - out);
}

void wire_batch_count(uint8_t *payloads, uint32_t n)
{
    (void)fixed_write_32(payloads - 5, FORM_ARRAY32, n);
}

void wire_batch_next(const uint8_t **at, const uint8_t **data, size_t *size)
{
    *size = (size_t)(*at)[1] << 8 | (*at)[2];
    *data = *at + WIRE_BATCH_LEAD;
    *at = *data + *size;
}

/* ---- reading ----------------------------------------------------------- */

/* Each get_* moves the cursor and tells whether the bytes were as they must
 * be; after a false nothing more is read. */

static bool get_byte(struct wire_cursor *c, uint8_t *out)
{
    if (c->at >= c->end)
        return false;
    *out = *c->at++;
    return true;
}

static bool get_raw32(struct wire_cursor *c, uint8_t form, uint32_t *out)
{
    if (c->end - c->at < 5 || c->at[0] != form)
        return false;
    *out = fixed_get_u32(c->at + 1);
    c->at += 5;
    return true;
}

static bool get_u64(struct wire_cursor *c, uint64_t *out)
{
    if (c->end - c->at < 9 || c->at[0] != FORM_UINT64)
        return false;
    *out = fixed_get_u64(c->at + 1);
    c->at += 9;
    return true;
}

static bool get_str(struct wire_cursor *c, const char **text, size_t *size)
{
    if (c->end - c->at < 2 || c->at[0] != FORM_STR8 ||
        c->end - c->at - 2 < c->at[1])
        return false;
    *size = c->at[1];
    *text = (const char *)c->at + 2;
    c->at += 2 + *size;
    return true;
}

static int malformed(const char *what)
{
    return ls_error(LS_EPROTO, "malformed %s", what);
}

static bool decimal(const char *text, size_t size, uint64_t max, uint64_t *out)
{
    if (size == 0 || size > 20 || (size > 1 && text[0] == '0'))
        return false; /* one number, one spelling */
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        const uint64_t digit = (uint64_t)(text[i] - '0');
        if (value > (max - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

static bool is_challenge(const char *text, size_t size)
{
    if (size != WIRE_CHALLENGE_SIZE)
        return false;
    for (size_t i = 0; i < size; i++)
        if (!((text[i] >= '0' && text[i] <= '9') ||
              (text[i] >= 'a' && text[i] <= 'f')))
            return false;
    return true;
}

/* The topic ends at its NUL; the header begins behind it. */
static int topic_read(struct wire_cursor *c, char *topic_class, uint32_t *to,
                      const char **event, size_t *event_size)
{
    const uint8_t *nul = memchr(c->at, '\0', (size_t)(c->end - c->at));
    if (nul == NULL || nul - c->at > 1 + LS_EVENT_MAX)
        return malformed("topic: no NUL where it must end");
    const char *text = (const char *)c->at + 1;
    const size_t size = nul == c->at ? 0 : (size_t)(nul - c->at) - 1;
    *topic_class = (char)c->at[0];
    uint64_t id = 0;
    switch (*topic_class) {
    case WIRE_CHALLENGE:
        if (!is_challenge(text, size))
            return malformed("challenge");
        break;
    case WIRE_CONTROL:
        if (size != 0)
            return malformed("control topic");
        break;
    case WIRE_EVENT:
        if (size == 0)
            return malformed("event topic: it is empty");
        *event = text;
        *event_size = size;
        break;
    case WIRE_INBOX:
        if (!decimal(text, size, UINT32_MAX, &id))
            return malformed("inbox topic: its id is not a number");
        *to = (uint32_t)id;
        break;
    default:
        return malformed("topic: unknown class");
    }
    c->at = nul + 1;
    return LS_OK;
}

static bool payload_read(struct wire_cursor *c, struct wire_header *header)
{
    uint32_t size;
    if (c->at < c->end && *c->at == FORM_NIL) {
        c->at++;
        header->data = NULL;
        return true;
    }
    if (!get_raw32(c, FORM_BIN32, &size) || (size_t)(c->end - c->at) < size)
        return false;
    header->data = c->at;
    header->size = size;
    c->at += size;
    return true;
}

/* Every payload in its bounds, and as many as it says. */
static bool batch_read(struct wire_cursor *c, struct wire_header *h)
{
    if (!get_raw32(c, FORM_ARRAY32, &h->total) || h->total == 0)
        return false;
    h->data = c->at;
    for (uint32_t i = 0; i < h->total; i++) {
        if (c->end - c->at < WIRE_BATCH_LEAD || c->at[0] != FORM_BIN16)
            return false;
        const size_t size = (size_t)c->at[1] << 8 | c->at[2];
        if (size > WIRE_BATCH_PAYLOAD_MAX ||
            (size_t)(c->end - c->at) < WIRE_BATCH_LEAD + size)
            return false;
        c->at += WIRE_BATCH_LEAD + size;
    }
    h->size = (size_t)(c->at - h->data);
    return true;
}

static bool reliable_read(struct wire_cursor *c, struct wire_header *h)
{
    uint8_t of;
    if (!get_u64(c, &h->to_incarnation) || !get_u64(c, &h->number) ||
        !get_byte(c, &of) || !get_raw32(c, FORM_UINT32, &h->total) ||
        !get_raw32(c, FORM_UINT32, &h->offset))
        return false;
    h->of = (enum wire_kind)of;
    return (of == WIRE_KIND_EVENT || of == WIRE_KIND_CHUNK ||
            of == WIRE_KIND_CHANNEL) &&
           h->number != 0 && h->name_size != 0 && payload_read(c, h);
}

static bool get_reason(struct wire_cursor *c, int32_t *out)
{
    uint32_t reason;
    if (!get_raw32(c, FORM_INT32, &reason))
        return false;
    *out = (int32_t)reason;
    return true;
}

static bool tail_read(struct wire_cursor *c, struct wire_header *h)
{
    switch (h->kind) {
    case WIRE_KIND_CREDIT:
        return get_u64(c, &h->limit_messages) && get_u64(c, &h->limit_bytes) &&
               get_u64(c, &h->arrived_messages) &&
               get_u64(c, &h->arrived_bytes);
    case WIRE_KIND_FAREWELL:
        return get_reason(c, &h->reason);
    case WIRE_KIND_VERDICT:
        return get_reason(c, &h->reason) && get_u64(c, &h->subject) &&
               get_raw32(c, FORM_UINT32, &h->members) &&
               get_raw32(c, FORM_UINT32, &h->silence_ms) && payload_read(c, h);
    case WIRE_KIND_BATCH:
        return batch_read(c, h);
    case WIRE_KIND_CHUNK:
        return get_raw32(c, FORM_UINT32, &h->total) &&
               get_raw32(c, FORM_UINT32, &h->offset) && payload_read(c, h);
    case WIRE_KIND_HEARTBEAT:
        return get_u64(c, &h->config_hash) && payload_read(c, h);
    case WIRE_KIND_RELIABLE:
        return reliable_read(c, h);
    case WIRE_KIND_ACK:
        return get_u64(c, &h->to_incarnation) && get_u64(c, &h->number) &&
               get_u64(c, &h->also) && get_u64(c, &h->repeats) &&
               get_u64(c, &h->limit_messages) && get_u64(c, &h->limit_bytes);
    default:
        return payload_read(c, h);
    }
}

/* What is on a topic goes to those who subscribed to it: so it is what the
 * topic says, or a hub would count it for others. */
static bool suits_topic(char topic_class, const struct wire_header *h)
{
    const bool event = h->kind == WIRE_KIND_EVENT ||
                       h->kind == WIRE_KIND_CHUNK || h->kind == WIRE_KIND_BATCH;
    return (h->kind == WIRE_KIND_PROOF) == (topic_class == WIRE_CHALLENGE) &&
           !(event && topic_class == WIRE_CONTROL) &&
           !(h->name_size != 0 && topic_class == WIRE_EVENT);
}

int wire_header_read(const uint8_t *frame, size_t size, char *topic_class,
                     uint32_t *to, struct wire_header *header)
{
    struct wire_cursor c = {frame, frame + size, 0};
    struct wire_header h = {0};
    const char *event = NULL;
    size_t event_size = 0;
    const int status = topic_read(&c, topic_class, to, &event, &event_size);
    if (status != LS_OK)
        return status;
    uint8_t arity, version, kind;
    if (!get_byte(&c, &arity) || !get_byte(&c, &version) ||
        !get_byte(&c, &kind))
        return malformed("header: too short");
    if (version != WIRE_VERSION)
        return ls_error(LS_EPROTO, "a header of version %u; this is version %d",
                        version, WIRE_VERSION);
    if (kind < WIRE_KIND_EVENT || kind > WIRE_KIND_PROOF)
        return malformed("header: unknown kind");
    h.kind = (enum wire_kind)kind;
    if (arity != (FORM_ARRAY | header_arity(h.kind)) ||
        !get_raw32(&c, FORM_UINT32, &h.job) ||
        !get_raw32(&c, FORM_UINT32, &h.origin) ||
        !get_u64(&c, &h.incarnation) || !get_u64(&c, &h.sequence) ||
        !get_byte(&c, &h.flags) || (h.flags & ~WIRE_FLAGS) != 0 ||
        !get_str(&c, &h.name, &h.name_size) || h.name_size > LS_EVENT_MAX ||
        !tail_read(&c, &h))
        return malformed("header");
    if (c.at != c.end)
        return malformed("header: bytes left over");
    if (!suits_topic(*topic_class, &h))
        return malformed("header: of a kind or name that its topic has not");
    if (h.name_size == 0) {
        h.name = event;
        h.name_size = event_size;
    }
    *header = h;
    return LS_OK;
}

bool wire_payload_fits(const struct wire_header *h, size_t size)
{
    const bool part =
        h->kind == WIRE_KIND_CHUNK ||
        (h->kind == WIRE_KIND_RELIABLE && h->of == WIRE_KIND_CHUNK);
    if ((h->flags & WIRE_FLAG_WITHDRAW) != 0) /* which no window counts */
        return part && h->offset == 0 && size == 0;
    if (part)
        return size != 0 && h->offset < h->total &&
               size <= h->total - h->offset;
    if (h->kind == WIRE_KIND_RELIABLE)
        return h->offset == 0 && h->total == size;
    return true;
}

/* ---- members ----------------------------------------------------------- */

size_t wire_members_size(size_t n)
{
    return 5 + n * (1 + 5 + 9 + 1 + 5 + 2 + LS_ENDPOINT_MAX + 6 * 9);
}

size_t wire_members_begin(uint8_t *out, uint32_t n)
{
    return (size_t)(fixed_write_32(out, FORM_ARRAY32, n) - out);
}

size_t wire_member_write(uint8_t *out, const struct wire_member *member)
{
    uint8_t *at = out;
    *at++ = FORM_ARRAY | MEMBER_FIELDS;
    at = fixed_write_32(at, FORM_UINT32, member->id);
    at = fixed_write_u64(at, member->incarnation);
    *at++ = (uint8_t)member->state;
    at = fixed_write_32(at, FORM_INT32, (uint32_t)member->reason);
    at = fixed_write_string(at, member->endpoint, strlen(member->endpoint));
    at = fixed_write_u64(at, member->sent_messages);
    at = fixed_write_u64(at, member->sent_bytes);
    at = fixed_write_u64(at, member->limit_messages);
    at = fixed_write_u64(at, member->limit_bytes);
    at = fixed_write_u64(at, member->arrived_messages);
    return (size_t)(fixed_write_u64(at, member->arrived_bytes) - out);
}

int wire_members_read(struct wire_cursor *cursor, const uint8_t *data,
                      size_t size)
{
    struct wire_cursor c = {data, data, 0};
    if (data != NULL)
        c.end += size;
    if (!get_raw32(&c, FORM_ARRAY32, &c.left))
        return malformed("heartbeat: no list of members");
    *cursor = c;
    return LS_OK;
}

int wire_member_read(struct wire_cursor *c, struct wire_member *out)
{
    if (c->left == 0)
        return c->at == c->end ? 0 : malformed("heartbeat: bytes left over");
    struct wire_member m = {0};
    uint8_t arity, state;
    const char *endpoint;
    size_t size;
    if (!get_byte(c, &arity) || arity != (FORM_ARRAY | MEMBER_FIELDS) ||
        !get_raw32(c, FORM_UINT32, &m.id) || !get_u64(c, &m.incarnation) ||
        !get_byte(c, &state) || state > WIRE_MEMBER_READY ||
        !get_reason(c, &m.reason) || !get_str(c, &endpoint, &size) ||
        memchr(endpoint, '\0', size) != NULL || !get_u64(c, &m.sent_messages) ||
        !get_u64(c, &m.sent_bytes) || !get_u64(c, &m.limit_messages) ||
        !get_u64(c, &m.limit_bytes) || !get_u64(c, &m.arrived_messages) ||
        !get_u64(c, &m.arrived_bytes))
        return malformed("heartbeat: a member of it");
    m.state = (enum wire_member_state)state;
    memcpy(m.endpoint, endpoint, size);
    c->left--;
    *out = m;
    return 1;
}
