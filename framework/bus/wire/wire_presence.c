/* The subscriptions that say something: "~H…" I am here, "~R…" the one behind
 * me is here, "l…" that node listens to this event.
 *
 * What nodes have in common stands first: libzmq keeps each topic as a path in
 * a tree, a record for each byte that no other topic begins with, at both ends
 * of a connection, and the leaves of a star have the presences of all. */
#include "wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plain_name.h"

bool wire_name_valid(const char *name)
{
    const size_t size = name == NULL ? 0 : strnlen(name, LS_EVENT_MAX + 1);
    if (size == 0 || size > LS_EVENT_MAX)
        return false;
    for (size_t i = 0; i < size; i++)
        if (name[i] <= ' ' || name[i] > '~' || strchr("*?[]\\", name[i]))
            return false;
    return true;
}

int wire_name_refused(const char *name, const char *what)
{
    return ls_error(LS_EINVAL,
                    "\"%s\" is not %s: 1 to %d printable characters without "
                    "space * ? [ ] \\",
                    name == NULL ? "" : name, what, LS_EVENT_MAX);
}

bool wire_filter_valid(const char *name)
{
    char text[LS_EVENT_MAX + 1];
    const size_t size = name == NULL ? 0 : strnlen(name, LS_EVENT_MAX + 1);
    if (size == 0 || size > LS_EVENT_MAX || name[size - 1] != '*')
        return wire_name_valid(name);
    memcpy(text, name, size - 1);
    text[size - 1] = '\0';
    return size == 1 || wire_name_valid(text);
}

bool wire_word_valid(const char *word, size_t max, const char *extra)
{
    const size_t size = strnlen(word, max + 1);
    return size <= max && plain_name_span(word, extra) == size;
}

size_t wire_presence_statement(char out[WIRE_TOPIC_MAX],
                               const struct wire_presence *p)
{
    return (size_t)snprintf(out, WIRE_TOPIC_MAX,
                            "%s/%" PRIx64 "/%" PRIx64 "/%s/%s/%s/%" PRIu32
                            "/%" PRIx64,
                            p->job, p->config_hash, p->host, p->role, p->labels,
                            p->endpoint, p->id, p->incarnation);
}

/* libzmq before 4.3.5 spoils a connection over which it sends a subscription of
 * these sizes: with the name of its command it is over 255 bytes, and not
 * marked as such (zeromq/libzmq#4367). A presence has zeros before its link
 * then. */
enum { SPOILT_FIRST = 246, SPOILT_LAST = 255, PADDED = SPOILT_LAST + 1 };

static size_t pad(char *topic, size_t size)
{
    if (size < SPOILT_FIRST || size > SPOILT_LAST)
        return size;
    char *link = strchr(topic, '/') + 1;
    const size_t zeros = PADDED - size;
    memmove(link + zeros, link, strlen(link) + 1);
    memset(link, '0', zeros);
    return PADDED;
}

/* A presence has one spelling: these zeros only where pad() writes them. */
static const char *without_padding(const char *link, size_t size)
{
    const size_t zeros = link == NULL ? 0 : strspn(link, "0");
    return size == PADDED && zeros <= PADDED - SPOILT_FIRST ? link + zeros
                                                            : link;
}

size_t wire_presence_write(uint8_t *out, const struct wire_presence *p)
{
    char relay[16] = "", statement[WIRE_TOPIC_MAX];
    if (p->relayed)
        snprintf(relay, sizeof relay, "/%" PRIu32, p->relay);
    (void)wire_presence_statement(statement, p);
    const int size =
        snprintf((char *)out, WIRE_TOPIC_MAX, "%c%c%d/%" PRIx64 "%s/%s/%s",
                 WIRE_PRESENCE, p->relayed ? 'R' : 'H', WIRE_VERSION, p->link,
                 relay, statement, p->signature);
    return pad((char *)out, (size_t)size);
}

size_t wire_listen_write(uint8_t *out, const struct wire_listen *l)
{
    return (size_t)snprintf((char *)out, WIRE_TOPIC_MAX,
                            "%c%" PRIx64 "/%" PRIu32 "/%s", WIRE_LISTEN,
                            l->link, l->id, l->event);
}

/* The next part up to '/', or the rest when it is the last; NULL when there is
 * none. Cuts the text in place. */
static char *next_part(char **rest, bool last)
{
    char *part = *rest;
    if (part == NULL)
        return NULL;
    char *slash = last ? NULL : strchr(part, '/');
    if (!last && slash == NULL)
        return NULL;
    if (slash != NULL)
        *slash++ = '\0';
    *rest = slash;
    return part;
}

/* The part behind the last '/'; NULL when there is none. Cuts it off. */
static char *last_part(char *text)
{
    char *slash = text == NULL ? NULL : strrchr(text, '/');
    if (slash == NULL)
        return NULL;
    *slash = '\0';
    return slash + 1;
}

static bool number(const char *text, int base, uint64_t max, uint64_t *out)
{
    const size_t size = text == NULL ? 0 : strlen(text);
    if (size == 0 || size > 20 ||
        strspn(text, base == 16 ? "0123456789abcdef" : "0123456789") != size)
        return false;
    if ((base == 16 && size > 16) || (size > 1 && text[0] == '0'))
        return false; /* one number, one spelling */
    char *end;
    const unsigned long long value = strtoull(text, &end, base);
    if (value > max || (base == 10 && size == 20))
        return false;
    *out = value;
    return true;
}

static bool text_part(char *out, size_t max, const char *part)
{
    if (part == NULL || strlen(part) > max)
        return false;
    memcpy(out, part, strlen(part) + 1);
    return true;
}

static char *topic_text(char *buffer, const uint8_t *topic, size_t size)
{
    if (size >= WIRE_TOPIC_MAX || memchr(topic, '\0', size) != NULL)
        return NULL;
    memcpy(buffer, topic, size);
    buffer[size] = '\0';
    return buffer;
}

static bool signature_part(char *out, const char *part)
{
    return text_part(out, WIRE_SIGNATURE_MAX, part) &&
           strspn(part, "0123456789abcdef") == strlen(part);
}

/* Version, link and relay: what stands before the statement, in a topic of this
 * size. */
static int read_lead(char **rest, size_t size, struct wire_presence *p)
{
    uint64_t version = 0, relay = 0;
    p->relayed = (*rest)[1] == 'R';
    *rest += 2;
    if (!number(next_part(rest, false), 10, UINT32_MAX, &version))
        return ls_error(LS_EPROTO, "malformed presence: no version");
    if (version != WIRE_VERSION)
        return ls_error(LS_EMISMATCH,
                        "it speaks version %" PRIu64 " of the wire format, "
                        "this node speaks %d",
                        version, WIRE_VERSION);
    if (!number(without_padding(next_part(rest, false), size), 16, UINT64_MAX,
                &p->link) ||
        p->link == 0)
        return ls_error(LS_EPROTO, "malformed presence: no link");
    if (p->relayed && !number(next_part(rest, false), 10, UINT32_MAX, &relay))
        return ls_error(LS_EPROTO, "malformed presence: no relay");
    p->relay = (uint32_t)relay;
    return LS_OK;
}

int wire_presence_read(const uint8_t *topic, size_t size,
                       struct wire_presence *out)
{
    char buffer[WIRE_TOPIC_MAX];
    char *rest = topic_text(buffer, topic, size);
    struct wire_presence p = {0};
    uint64_t id = 0;
    if (rest == NULL || size < 3 || rest[0] != WIRE_PRESENCE ||
        (rest[1] != 'H' && rest[1] != 'R'))
        return ls_error(LS_EPROTO, "malformed presence");
    const int status = read_lead(&rest, size, &p);
    if (status != LS_OK)
        return status;
    /* The endpoint may have '/', so what stands behind it is found first. */
    if (!signature_part(p.signature, last_part(rest)) ||
        !number(last_part(rest), 16, UINT64_MAX, &p.incarnation) ||
        !number(last_part(rest), 10, UINT32_MAX, &id) ||
        !text_part(p.job, LS_JOB_MAX, next_part(&rest, false)) ||
        !number(next_part(&rest, false), 16, UINT64_MAX, &p.config_hash) ||
        !number(next_part(&rest, false), 16, UINT64_MAX, &p.host) ||
        !text_part(p.role, WIRE_ROLE_MAX, next_part(&rest, false)) ||
        !text_part(p.labels, WIRE_LABELS_MAX, next_part(&rest, false)) ||
        !text_part(p.endpoint, LS_ENDPOINT_MAX, next_part(&rest, true)) ||
        p.endpoint[0] == '\0' || p.incarnation == 0)
        return ls_error(LS_EPROTO, "malformed presence");
    p.id = (uint32_t)id;
    *out = p;
    return LS_OK;
}

int wire_listen_read(const uint8_t *topic, size_t size, struct wire_listen *out)
{
    char buffer[WIRE_TOPIC_MAX];
    char *rest = topic_text(buffer, topic, size);
    struct wire_listen l = {0};
    uint64_t id = 0;
    if (rest == NULL || rest[0] != WIRE_LISTEN)
        return ls_error(LS_EPROTO, "malformed listen topic");
    rest++;
    if (!number(next_part(&rest, false), 16, UINT64_MAX, &l.link) ||
        l.link == 0 || !number(next_part(&rest, false), 10, UINT32_MAX, &id) ||
        !text_part(l.event, LS_EVENT_MAX, next_part(&rest, true)) ||
        !wire_filter_valid(l.event))
        return ls_error(LS_EPROTO, "malformed listen topic");
    l.id = (uint32_t)id;
    *out = l;
    return LS_OK;
}
