/* wire.h - the bytes between nodes: topics, presence, headers.
 *
 * docs/wire-format.md is normative. A message is one frame, topic then header
 * then payload, or two when the payload travels without a copy. The header is
 * one msgpack array, written and read here by hand in fixed-width forms: at
 * some millions of messages a second a general library would take a third of
 * each message's time. Every byte that is read is hostile.
 * Thread: pure functions. */
#ifndef LOCKSTEP_BUS_WIRE_H
#define LOCKSTEP_BUS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/node.h"

#define WIRE_VERSION 3

/* Topic classes, in the byte order in which a subscriber replays them: when
 * the presence arrives, all else is in force. */
#define WIRE_CHALLENGE 'a'
#define WIRE_CONTROL   'c'
#define WIRE_EVENT     'e'
#define WIRE_INBOX     'i'
#define WIRE_LISTEN    'l'
#define WIRE_PRESENCE  '~'

#define WIRE_ROLE_MAX   31
#define WIRE_LABELS_MAX 63
#define WIRE_TOPIC_MAX  640
/* Hexadecimal digits. */
#define WIRE_CHALLENGE_SIZE 32
#define WIRE_SIGNATURE_MAX  128

/* Payloads over this travel in chunks of it, so that a long message starves
 * neither heartbeats nor barriers (docs/decisions/0005-chunks.md). */
#define WIRE_CHUNK_BYTES (1024u * 1024u)
/* Topic, header and name of any message fit in this. */
#define WIRE_HEAD_MAX 512

enum wire_kind {
    WIRE_KIND_EVENT = 1, /* a whole event */
    WIRE_KIND_CHUNK,     /* a part of a long one */
    WIRE_KIND_HEARTBEAT, /* who is there, and the accounts */
    WIRE_KIND_CREDIT,    /* how far a sender may go */
    WIRE_KIND_CHANNEL,   /* a control message of a protocol */
    WIRE_KIND_FAREWELL,  /* the sender leaves, and why */
    WIRE_KIND_BATCH,     /* several short events of one name */
    WIRE_KIND_VERDICT,   /* the receiver is not a member here, and why */
    WIRE_KIND_RELIABLE,  /* an event, a part of one or a control message, in
                          * the stream from its origin to one node */
    WIRE_KIND_ACK,       /* how far such a stream has come */
    WIRE_KIND_PROOF      /* who publishes here: the answer to a challenge */
};

enum {
    WIRE_FLAG_DROP = 1,     /* delivery drop: a relay need not hold it */
    WIRE_FLAG_WITHDRAW = 2, /* a chunked event ends here, incomplete */
    WIRE_FLAG_LATEST = 4,   /* delivery latest: older values are of no use */
    WIRE_FLAG_TELL = 8,     /* CREDIT, RELIABLE: say at once what has come */
    WIRE_FLAG_BLOCK = 16    /* EVENT, RELIABLE of it: the payload is a handle of
                             * one in shared memory */
};

struct wire_header {
    enum wire_kind kind;
    uint32_t job; /* wire_job_hash() */
    uint32_t origin;
    uint64_t incarnation;
    uint64_t sequence; /* 0: outside the sequence */
    uint8_t flags;
    const char *name; /* not NUL-terminated; event or channel; may be empty
                       * where the topic has it; HEARTBEAT, PROOF: the job */
    size_t name_size;
    uint32_t total; /* CHUNK, RELIABLE: bytes of the whole payload; BATCH:
                     * events */
    uint32_t offset;
    uint64_t to_incarnation; /* RELIABLE, ACK: the life it is meant for */
    uint64_t number;         /* RELIABLE: in the stream; ACK: all up to it */
    enum wire_kind of;       /* RELIABLE: EVENT, CHUNK or CHANNEL */
    uint64_t also;           /* ACK: bit i: and number + 1 + i */
    uint64_t repeats;        /* ACK: how many came more than once */
    uint64_t config_hash;    /* HEARTBEAT */
    uint64_t limit_messages; /* CREDIT; ACK: room beyond number */
    uint64_t limit_bytes;
    uint64_t arrived_messages; /* CREDIT: what has come, handled or not */
    uint64_t arrived_bytes;
    int32_t reason;      /* FAREWELL, VERDICT */
    uint64_t subject;    /* VERDICT: the incarnation that it is about */
    uint32_t members;    /* VERDICT: how many the sender counts in its world */
    uint32_t silence_ms; /* VERDICT */
    const uint8_t *data; /* payload inside the first frame; NULL: it is the
                          * second frame */
    size_t size;
};

uint32_t wire_job_hash(const char *job);

/* Write a topic into out[WIRE_TOPIC_MAX]; returns its size. */
size_t wire_topic_event(uint8_t *out, const char *event);
size_t wire_topic_inbox(uint8_t *out, uint32_t id);
/* What all inboxes begin with. */
size_t wire_topic_inboxes(uint8_t *out);
size_t wire_topic_control(uint8_t *out);
/* challenge: WIRE_CHALLENGE_SIZE digits. */
size_t wire_topic_challenge(uint8_t *out, const char *challenge);

/* Write header and, unless header->data is NULL, the lead of an inline payload
 * of header->size bytes, which the caller appends. Returns the bytes written,
 * at most WIRE_HEAD_MAX - topic. */
size_t wire_header_write(uint8_t *out, const struct wire_header *header);

/* Read topic and header of a first frame. inbox: whether the topic is an inbox
 * (its id in *to), else it is an event's (its name in header->name, when the
 * header has none) or control.
 * Errors: LS_EPROTO with what is wrong. */
int wire_header_read(const uint8_t *frame, size_t size, char *topic_class,
                     uint32_t *to, struct wire_header *header);
/* Whether the payload of a message, `size` bytes, is what its total and offset
 * say. */
bool wire_payload_fits(const struct wire_header *header, size_t size);

/* Payloads of a batch: each is a bin 16. Write one; returns the bytes. */
#define WIRE_BATCH_PAYLOAD_MAX 1024
#define WIRE_BATCH_LEAD        3
size_t wire_batch_write(uint8_t *out, const void *data, size_t size);
/* Set the count in a batch's header, written before it was known. */
void wire_batch_count(uint8_t *payloads, uint32_t n);
/* Read the next payload of a checked batch; *at moves on. */
void wire_batch_next(const uint8_t **at, const uint8_t **data, size_t *size);

/* What a presence tells. */
struct wire_presence {
    uint64_t link;  /* the number of the link that it comes over, which only
                     * its two ends know; not 0 */
    bool relayed;   /* it is reached through: */
    uint32_t relay; /* this node, whose link it is */
    /* By the node that is present, of what wire_presence_statement() gives;
     * "" where nothing is signed. */
    char signature[WIRE_SIGNATURE_MAX + 1];
    char job[LS_JOB_MAX + 1];
    uint32_t id;
    uint64_t incarnation;
    uint64_t config_hash;
    uint64_t host; /* those that have the same share memory; 0: none */
    char role[WIRE_ROLE_MAX + 1];
    char labels[WIRE_LABELS_MAX + 1];
    char endpoint[LS_ENDPOINT_MAX + 1];
};
size_t wire_presence_write(uint8_t *out, const struct wire_presence *presence);
/* What a presence says of its node, the same on every link: to be signed. */
size_t wire_presence_statement(char out[WIRE_TOPIC_MAX],
                               const struct wire_presence *presence);
int wire_presence_read(const uint8_t *topic, size_t size,
                       struct wire_presence *out);

struct wire_listen {
    uint64_t link; /* as in the presence */
    uint32_t id;   /* who listens */
    char event[LS_EVENT_MAX + 1];
};
size_t wire_listen_write(uint8_t *out, const struct wire_listen *listen);
int wire_listen_read(const uint8_t *topic, size_t size,
                     struct wire_listen *out);

/* A heartbeat's payload: a list of members, each as the sender knows it. */
enum wire_member_state {
    WIRE_MEMBER_ABSENT,
    WIRE_MEMBER_PRESENT, /* its presence is at the sender: it hears all of it */
    WIRE_MEMBER_LEFT,    /* only of those whom the sender relays, for a while */
    WIRE_MEMBER_LOST,    /* the same */
    WIRE_MEMBER_READY    /* present, and what is sent to it is counted */
};
struct wire_member {
    uint32_t id;
    uint64_t incarnation;
    enum wire_member_state state;
    int32_t reason; /* of who left or is lost */
    char endpoint[LS_ENDPOINT_MAX + 1];
    uint64_t sent_messages; /* the sender's account of what it sent it */
    uint64_t sent_bytes;
    uint64_t limit_messages; /* how far it may send to the sender */
    uint64_t limit_bytes;
    uint64_t arrived_messages; /* what has come from it */
    uint64_t arrived_bytes;
};
/* Bytes that a list of n members takes at most. */
size_t wire_members_size(size_t n);
size_t wire_members_begin(uint8_t *out, uint32_t n);
size_t wire_member_write(uint8_t *out, const struct wire_member *member);

struct wire_cursor {
    const uint8_t *at, *end;
    uint32_t left; /* members still to be read */
};
int wire_members_read(struct wire_cursor *cursor, const uint8_t *data,
                      size_t size);
/* Returns 1 with a member, 0 at the end, LS_EPROTO. */
int wire_member_read(struct wire_cursor *cursor, struct wire_member *out);

/* Whether text is a valid event or channel name, a job, a role, labels. */
bool wire_name_valid(const char *name);
/* LS_EINVAL, with a text: name, which may be NULL, is not valid as `what`, "an
 * event name". */
int wire_name_refused(const char *name, const char *what);
/* The same, or what names begin with, maybe nothing, and '*'. */
bool wire_filter_valid(const char *name);
bool wire_word_valid(const char *word, size_t max, const char *extra);

#endif
