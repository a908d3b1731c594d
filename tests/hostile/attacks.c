#include "attacks.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <zmq.h>

#include "foe.h"

#define HOST      "127.0.0.1" /* how one is named that proves no id */
#define LIVES     60
#define N_HAMMERS 2

/* How a node names a foe that is let in. */
static const char *name_of(const struct foe *foe)
{
    static char name[32];
    (void)snprintf(name, sizeof name, "node %" PRIu32, foe->id);
    return foe->siege->mode == LS_SECURITY_NONE ? HOST : name;
}

/* ---- at the door ------------------------------------------------------- */

static int raw_tcp(unsigned port)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 &&
        connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

static unsigned port_of(const char *endpoint)
{
    return (unsigned)strtoul(strrchr(endpoint, ':') + 1, NULL, 10);
}

/* Begin to speak, and see that this is counted and named. The connection stays:
 * one that goes first may only have thought better of it. libzmq may end it
 * before the node has looked who it was: so it is done again. */
#define SPEAK_MAX 100
static void speak_and_be_named(struct siege *siege, const void *bytes,
                               size_t size)
{
    struct process *node = &siege->nodes[0];
    int fds[SPEAK_MAX];
    int n = 0;
    bool named = false;
    while (n < SPEAK_MAX && !named) {
        const int fd = fds[n] = raw_tcp(port_of(node->endpoint));
        if (fd >= 0)
            (void)!send(fd, bytes, size, MSG_NOSIGNAL);
        if (!case_grows(siege, node, "stranger", (uint64_t)++n))
            break;
        named = case_names(siege, node, "stranger", HOST);
    }
    while (n-- > 0)
        if (fds[n] >= 0)
            (void)close(fds[n]);
    if (!named)
        case_fails(siege, "node 1 does not name who does it");
}

void attack_strangers(struct siege *siege)
{
    static const char name[] = "strangers at the door";
    struct process *node = &siege->nodes[0];
    if (siege->mode == LS_SECURITY_NONE) {
        case_skip(siege, name, UNGUARDED ": whoever comes may come in");
        return;
    }
    case_begin(siege, name);
    uint8_t greeting[64] = {0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0};
    memcpy(greeting + 12, "NULL", 4);
    speak_and_be_named(siege, greeting, sizeof greeting);
    for (uint32_t i = 0; i < 2; i++) {
        const uint64_t before =
            figure(process_ask(siege, node, "figures"), "stranger") -
            figure(node->before, "stranger");
        struct foe *foe = foe_open_as(siege, FOE_FALSE, i == 0 ? FIRST_FOE : 2,
                                      node, "tcp://127.0.0.1:*", false);
        foe_be_present(foe);
        case_refused(siege, node, "stranger", before + 1, HOST);
        if (foe->here[1] != 0)
            case_fails(siege, "stranger %u is dialled", i);
    }
    if (!process_logged(node, "refused " HOST))
        case_fails(siege, "the log of node 1 does not name them");
    case_end(siege);
}

struct hammer {
    atomic_uint port; /* 0: it ends */
    atomic_uint n;    /* connections */
};

static void knock(struct hammer *hammer)
{
    const int fd = raw_tcp(atomic_load(&hammer->port));
    atomic_fetch_add(&hammer->n, 1);
    if (fd < 0)
        return;
    (void)!send(fd, "\1", 1, MSG_NOSIGNAL);
    (void)!send(fd, "\0\1\1", 1 + atomic_load(&hammer->n) % 3, MSG_NOSIGNAL);
    (void)close(fd);
}

static void hammer(void *self)
{
    struct hammer *hammer = self;
    while (atomic_load(&hammer->port) != 0)
        knock(hammer);
}

static void hammer_lives(struct siege *siege)
{
    static const char *const arguments[] = {"lives", "60", NULL};
    struct hammer work = {.port = 1};
    ls_thread *threads[N_HAMMERS] = {NULL};
    struct process process;
    bool lives = process_start(siege, &process, 9, arguments) &&
                 process_at(siege, &process);
    atomic_store(&work.port, port_of(lives ? process.endpoint : ":1"));
    for (int i = 0; i < N_HAMMERS; i++)
        (void)!ls_thread_spawn(ls_runtime_threads(), &threads[i], "hammer",
                               hammer, &work);
    for (int life = 1; life < LIVES && lives; life++) {
        for (int i = 0; i < 8; i++)
            knock(&work);
        lives =
            write(process.in, "next\n", 5) == 5 && process_at(siege, &process);
        if (lives)
            atomic_store(&work.port, port_of(process.endpoint));
    }
    if (!lives || strcmp(process_ask(siege, &process, "last"), "lived") != 0)
        case_fails(siege, "the node does not live on: %s", process.line);
    atomic_store(&work.port, 0);
    for (int i = 0; i < N_HAMMERS; i++)
        (void)!ls_thread_join(&threads[i], LS_FOREVER);
    const int code = process_end(&process);
    if (code != 0)
        case_fails(siege, "the node that closes ends with %d", code);
}

void attack_old_protocol(struct siege *siege)
{
    case_begin(siege, "01 00, as of ZMTP 1.0, to a node that lives");
    speak_and_be_named(siege, "\1\0\1\1", 4);
    case_end(siege);
    case_begin(siege, "01 00, as of ZMTP 1.0, while a node closes");
    hammer_lives(siege);
    case_end(siege);
}

/* ---- present, and no member -------------------------------------------- */

static void listen_to_all(struct foe *foe)
{
    foe_listen(foe, foe->id, "plain", true);
    foe_listen(foe, foe->id, "both", true);
}

void attack_never_ready(struct siege *siege)
{
    struct process *node = &siege->nodes[0];
    case_begin(siege, "present, and never ready");
    struct foe *mute = foe_open(siege, FOE_MEMBER, node);
    mute->silent = true;
    listen_to_all(mute);
    foe_be_present(mute);
    struct foe *proved = foe_open(siege, FOE_MEMBER, node);
    listen_to_all(proved);
    foe_be_present(proved);
    (void)foe_is_dialled(proved, 1);
    for (size_t i = 0; i < N_HONEST; i++)
        (void)case_grows(siege, &siege->nodes[i], "rounds", 100);
    if (figure(process_ask(siege, node, "figures"), "slowest") >= FIRST_FOE)
        case_fails(siege, "emits have waited for it");
    case_end(siege);
}

/* A farewell, a verdict, an event and a heartbeat of node 2. */
static void speak_as_2(struct foe *foe, const struct process *to)
{
    static const char forged[] = "plain 2 999999999";
    struct process *node_2 = &foe->siege->nodes[1];
    const uint32_t id = foe->id;
    const uint64_t life = foe->incarnation;
    foe->id = 2;
    foe->incarnation = node_2->incarnation;
    struct wire_header header = foe_header(foe, WIRE_KIND_VERDICT);
    header.sequence = 0;
    header.reason = LS_ELOST;
    header.subject = to->incarnation;
    header.members = 1000;
    (void)foe_say(foe, NULL, &header, NULL, 0);
    header = foe_header(foe, WIRE_KIND_EVENT);
    (void)foe_say(foe, "plain", &header, forged, sizeof forged - 1);
    header = foe_header(foe, WIRE_KIND_FAREWELL);
    header.sequence = 0;
    (void)foe_say(foe, NULL, &header, NULL, 0);
    foe->id = id;
    foe->incarnation = life;
}

void attack_hearsay(struct siege *siege)
{
    struct process *node = &siege->nodes[0];
    case_begin(siege, "whoever is dialled by hearsay speaks as another");
    struct foe *member = foe_open(siege, FOE_MEMBER, node);
    struct foe *other = foe_open(siege, FOE_MEMBER, NULL);
    other->silent = true;
    if (foe_join(member)) {
        struct wire_member lie = {.id = other->id,
                                  .incarnation = other->incarnation,
                                  .state = WIRE_MEMBER_READY};
        memcpy(lie.endpoint, other->endpoint, sizeof lie.endpoint);
        foe_heartbeat(member, &lie, 1);
        (void)foe_is_dialled(other, 1);
        speak_as_2(other, node); /* first of all */
        other->proves = 2;
        other->proves_life = siege->nodes[1].incarnation;
        other->silent = false;
        case_refused(siege, node, "identity", 1, other->endpoint);
        speak_as_2(other, node);
        other->proves = other->id; /* as itself it is believed, as 2 not */
        other->proves_life = other->incarnation;
        const uint64_t wanted = figure(node->before, "identity") + 4;
        const int64_t deadline = now_ms() + WAIT_MS;
        while (figure(process_ask(siege, node, "figures"), "identity") <
                   wanted &&
               now_ms() < deadline)
            speak_as_2(other, node);
        (void)case_grows(siege, node, "identity", 4);
    }
    case_end(siege);
}

void attack_unsubscribe(struct siege *siege)
{
    struct process *node = &siege->nodes[0];
    const struct process *victim = &siege->nodes[1];
    case_begin(siege, "the end of another's presence and listening");
    struct foe *foe = foe_open(siege, FOE_MEMBER, node);
    for (uint64_t link = 1; link < 20; link++) {
        const struct foe_presence as = {.id = 2,
                                        .incarnation = victim->incarnation,
                                        .link = link,
                                        .endpoint = victim->endpoint};
        foe_present(foe, &as, true);
        foe_present(foe, &as, false);
        foe->link = link;
        foe_listen(foe, 2, "plain", true);
        foe_listen(foe, 2, "both", true);
        foe_listen(foe, 2, "plain", false);
        foe_listen(foe, 2, "both", false);
    }
    if (foe_join(foe) && siege->mode != LS_SECURITY_NONE)
        case_refused(siege, node, "identity", 100, name_of(foe));
    for (size_t i = 0; i < N_HONEST; i++)
        (void)case_grows(siege, &siege->nodes[i], "rounds", 100);
    case_end(siege);
}

void attack_presence(struct siege *siege)
{
    struct process *node = &siege->nodes[0];
    const struct foe_presence as_2 = {
        .id = 2, .incarnation = 4711, .endpoint = siege->nodes[1].endpoint};
    const struct foe_presence as_1 = {
        .id = 1, .incarnation = 4711, .endpoint = siege->nodes[0].endpoint};
    case_begin(siege, "another life at a living member's own endpoint");
    struct foe *foe = foe_open(siege, FOE_MEMBER, node);
    foe_present(foe, &as_2, true);
    foe_present(foe, &as_1, true);
    case_refused(siege, node,
                 siege->mode == LS_SECURITY_NONE ? "world" : "identity", 2,
                 name_of(foe));
    case_end(siege);

    if (siege->mode == LS_SECURITY_PLAIN) {
        case_begin(siege, "the same, by one that has the secret");
        foe =
            foe_open_as(siege, FOE_MEMBER, 2, node, "tcp://127.0.0.1:*", false);
        foe_present(foe, &as_2, true);
        case_refused(siege, node, "world", 1, "node 2");
        case_end(siege);
    }

    case_begin(siege, "a relayed presence in a mesh");
    foe = foe_open(siege, FOE_MEMBER, node);
    const struct foe_presence relayed = {
        .id = 3, .relayed = true, .relay = foe->id};
    foe_present(foe, &relayed, true);
    case_refused(siege, node, "identity", 1, name_of(foe));
    case_end(siege);
}

static void judge_its_node(struct foe *foe, int reason, uint32_t members)
{
    struct wire_header header = foe_header(foe, WIRE_KIND_VERDICT);
    header.sequence = 0;
    header.reason = reason;
    header.subject = foe->node->incarnation;
    header.members = members;
    (void)foe_say(foe, NULL, &header, NULL, 0);
}

static void judge_in_all_ways(struct foe *foe)
{
    static const int reasons[] = {LS_ELOST, LS_ESTATE, LS_EEXIST, LS_ELIMIT};
    for (size_t i = 0; i < 4; i++)
        judge_its_node(foe, reasons[i], 1000);
}

void attack_verdict(struct siege *siege)
{
    struct process *node = &siege->nodes[0];
    case_begin(siege, "a verdict of one that was never ready");
    struct foe *foe = foe_open(siege, FOE_MEMBER, node);
    foe->greet = judge_in_all_ways;
    foe_be_present(foe);
    (void)foe_is_dialled(foe, 1);
    case_refused(siege, node, "identity", 2, foe->endpoint);
    case_end(siege);
}

/* Five that are present say that node 2 is lost: more than there are members.
 * With keys it takes five keys. It believes them and rejoins: that is known,
 * and comes last, since another life of node 2 is wrong to every other case. */
#define N_ACCUSERS 5

static void accuse(struct foe *foe)
{
    judge_its_node(foe, LS_ELOST, 0);
}

void attack_accusers(struct siege *siege)
{
    static const char name[] = "verdicts of more accusers than members";
    struct process *node = &siege->nodes[1];
    if (siege->mode == LS_SECURITY_NONE) {
        case_skip(siege, name, UNGUARDED ": one stranger can be many");
        return;
    }
    case_begin(siege, name);
    siege->expected = true;
    for (int i = 0; i < N_ACCUSERS; i++) {
        struct foe *foe = foe_open(siege, FOE_MEMBER, node);
        foe->greet = accuse;
        foe_be_present(foe);
        (void)foe_is_dialled(foe, 2);
    }
    const uint64_t wanted = figure(node->before, "identity") + N_ACCUSERS;
    const int64_t deadline = now_ms() + WAIT_MS;
    while (figure(process_ask(siege, node, "figures"), "identity") < wanted &&
           figure(node->line, "rejoined") == 0 && now_ms() < deadline)
        ;
    if (figure(node->line, "rejoined") != 0)
        case_fails(siege, "node 2 has rejoined");
    else {
        siege->expected = false;
        case_fails(siege, "node 2 has not rejoined: expect it no more");
    }
    foes_close(siege);
    siege->expected = false;
}

/* ---- members that misbehave -------------------------------------------- */

#define FLOOD_FRAMES 300

static void flood(struct siege *siege, bool reliable)
{
    struct process *node = &siege->nodes[0];
    struct foe *foe = foe_open(siege, FOE_MEMBER, node);
    void *data = calloc(1, WIRE_CHUNK_BYTES);
    if (data != NULL && foe_join(foe)) {
        const int64_t deadline = now_ms() + WAIT_MS;
        (void)process_ask(siege, node, "hold"); /* its window stays shut */
        for (uint64_t i = 1; i <= FLOOD_FRAMES; i++) {
            struct wire_header header = foe_header(
                foe, reliable ? WIRE_KIND_RELIABLE : WIRE_KIND_EVENT);
            header.to_incarnation = node->incarnation;
            header.number = i;
            header.of = WIRE_KIND_EVENT;
            header.total = reliable ? WIRE_CHUNK_BYTES : 0;
            /* Whoever is cut off is subscribed to by nobody: it is sent. */
            while (!foe_say(foe, "large", &header, data, WIRE_CHUNK_BYTES) &&
                   now_ms() < deadline)
                foes_pump(siege);
            foes_pump(siege);
        }
        char name[32];
        (void)snprintf(name, sizeof name, "node %" PRIu32, foe->id);
        if (!foe_is_dropped(foe, 1, WAIT_MS / 5))
            case_fails(siege, "it is not cut off");
        (void)process_ask(siege, node, "let");
        case_refused(siege, node, "window", 1, name);
        if (!process_logged(node, "more than it was granted"))
            case_fails(siege, "the log of node 1 does not say so");
    }
    free(data);
}

void attack_window(struct siege *siege)
{
    case_begin(siege, "300 MiB of events past a window");
    flood(siege, false);
    case_end(siege);
    case_begin(siege, "300 MiB of reliable events past a window");
    flood(siege, true);
    case_end(siege);
}

void attack_deaf(struct siege *siege)
{
    struct process *node = &siege->nodes[0];
    case_begin(siege, "a subscriber that reads nothing");
    struct foe *foe = foe_open_as(siege, FOE_MEMBER, siege->next_id++, node,
                                  "tcp://127.0.0.1:*", true);
    uint8_t topic[WIRE_TOPIC_MAX];
    foe_subscribe(foe, topic, wire_topic_event(topic, "large"), true);
    /* Its own connection is read in order: what is asked behind the first
     * subscription is answered after it is in force. */
    foe_subscribe(foe, "~", 1, true);
    (void)case_grows(siege, node, "refused", 1);
    (void)process_ask(siege, node, "burst 1700 61440");
    case_refused(siege, node, "window", 1, HOST);
    if (!process_logged(node, "does not read what it subscribed to"))
        case_fails(siege, "the log of node 1 does not say so");
    for (size_t i = 1; i < N_HONEST; i++)
        (void)case_grows(siege, &siege->nodes[i], "large", 1700);
    case_end(siege);
}

void attack_topics(struct siege *siege)
{
    struct process *node = &siege->nodes[0];
    case_begin(siege, "20 MB of subscriptions on one connection");
    struct foe *foe = foe_open(siege, FOE_MEMBER, node);
    char topic[600];
    memset(topic, 'x', sizeof topic);
    topic[0] = WIRE_EVENT;
    for (int i = 0; i < 20000000 / 600; i++) {
        (void)snprintf(topic + sizeof topic - 8, 8, "%07d", i);
        foe_subscribe(foe, topic, sizeof topic, true);
    }
    /* Its line in the log may be that of another from this host. */
    case_refused(siege, node, "window", 1, "subscribed to more than");
    case_end(siege);
}

void attack_finish(struct siege *siege)
{
    struct process *node = &siege->nodes[0];
    char name[32];
    case_begin(siege, "an empty ls.finish");
    struct foe *foe = foe_open(siege, FOE_MEMBER, node);
    (void)snprintf(name, sizeof name, "node %" PRIu32, foe->id);
    if (foe_join(foe)) {
        struct wire_header header = foe_header(foe, WIRE_KIND_EVENT);
        (void)foe_say(foe, "ls.finish", &header, "", 0);
        case_refused(siege, node, "access", 1, name);
        header = foe_header(foe, WIRE_KIND_RELIABLE);
        header.to_incarnation = node->incarnation;
        header.number = 1;
        header.of = WIRE_KIND_EVENT;
        (void)foe_say(foe, "ls.finish", &header, "", 0);
        case_refused(siege, node, "access", 2, name);
    }
    case_end(siege);
}

static void chunk(struct foe *foe, uint32_t total, uint32_t offset, size_t size)
{
    struct wire_header header = foe_header(foe, WIRE_KIND_CHUNK);
    header.sequence = 9;
    header.total = total;
    header.offset = offset;
    (void)foe_say(foe, "large", &header, "chunk", size);
}

static void flush(struct foe *foe)
{
    struct wire_header header = foe_header(foe, WIRE_KIND_EVENT);
    header.sequence = 0;
    (void)foe_say(foe, "flush", &header, "", 0);
    (void)case_grows(foe->siege, foe->node, "flush", 1);
}

void attack_figures(struct siege *siege)
{
    struct process *node = &siege->nodes[0];
    char name[32];
    case_begin(siege, "chunks with a wrong total");
    struct foe *foe = foe_open(siege, FOE_MEMBER, node);
    (void)snprintf(name, sizeof name, "node %" PRIu32, foe->id);
    if (foe_join(foe)) {
        for (int i = 0; i < 200; i++)
            chunk(foe, 60u << 20, 0, 4);
        chunk(foe, UINT32_MAX, 0, 4);
        chunk(foe, 100, 0, 4);
        chunk(foe, 100, 8, 4);
        chunk(foe, 6, 0, 4);
        chunk(foe, 6, 4, 4);
        chunk(foe, 0, 0, 4);
        flush(foe);
        case_refused(siege, node, "form", 2, name);
        if (figure(process_ask(siege, node, "figures"), "large") !=
            figure(node->before, "large"))
            case_fails(siege, "an event was made of them");
    }
    case_end(siege);

    case_begin(siege, "2^63 messages said to be sent");
    foe = foe_open(siege, FOE_MEMBER, node);
    (void)snprintf(name, sizeof name, "node %" PRIu32, foe->id);
    if (foe_join(foe)) {
        struct wire_member you = foe_lists(foe);
        you.sent_messages = you.sent_bytes = 1ull << 63;
        foe_heartbeat(foe, &you, 1);
        case_refused(siege, node, "form", 1, name);
    }
    case_end(siege);
}

void attack_old_life(struct siege *siege)
{
    struct process *node = &siege->nodes[0];
    case_begin(siege, "a life that was lost");
    struct foe *foe = foe_open(siege, FOE_MEMBER, node);
    const uint32_t id = foe->id;
    const uint64_t life = foe->incarnation;
    if (foe_join(foe)) {
        foe_close(foe);
        (void)case_grows(siege, node, "clients_gone", 1);
        foe = foe_open_as(siege, FOE_MEMBER, id, node, "tcp://127.0.0.1:*",
                          false);
        foe->incarnation = foe->proves_life = life;
        foe_be_present(foe);
        const uint64_t handled =
            figure(process_ask(siege, node, "figures"), "flush");
        struct wire_header header = foe_header(foe, WIRE_KIND_EVENT);
        header.sequence = 0;
        if (!foe_is_told(foe))
            case_fails(siege, "it is not told that it was lost");
        foe_heartbeat(foe, NULL, 0);
        (void)foe_say(foe, "flush", &header, "", 0);
        for (size_t i = 0; i < N_HONEST; i++)
            (void)case_grows(siege, &siege->nodes[i], "rounds", 100);
        if (figure(process_ask(siege, node, "figures"), "flush") != handled)
            case_fails(siege, "its event is handled");
    }
    case_end(siege);
}

#define N_ADDRESSES 500

void attack_addresses(struct siege *siege)
{
    static struct wire_member lies[N_ADDRESSES];
    struct process *node = &siege->nodes[0];
    case_begin(siege, "a heartbeat that names 500 addresses");
    struct foe *foe = foe_open(siege, FOE_MEMBER, node);
    if (foe_join(foe)) {
        for (uint32_t i = 0; i < N_ADDRESSES; i++) {
            lies[i] = (struct wire_member){.id = 1000 + i,
                                           .incarnation = 1 + i,
                                           .state = WIRE_MEMBER_READY};
            (void)snprintf(lies[i].endpoint, sizeof lies[i].endpoint,
                           "ipc://%s/nobody-%u", siege->folder, i);
        }
        for (int i = 0; i < 10; i++)
            foe_heartbeat(foe, lies, N_ADDRESSES);
        struct wire_header header = foe_header(foe, WIRE_KIND_EVENT);
        (void)foe_say(foe, "flush", &header, "", 0);
        (void)case_grows(siege, node, "flush", 1);
        const uint64_t open =
            figure(process_ask(siege, node, "figures"), "open");
        if (open > figure(node->before, "open") + 100)
            case_fails(siege, "node 1 has %" PRIu64 " descriptors open", open);
    }
    case_end(siege);
}

/* The second has no key, and what was made for the first must not be left
 * half: it is looked after for as long as it takes to ask there again. */
void attack_address_of_two(struct siege *siege)
{
    struct process *node = &siege->nodes[0];
    case_begin(siege, "an address that is named for two nodes");
    struct foe *foe = foe_open(siege, FOE_MEMBER, node);
    const uint32_t ids[] = {siege->next_id++, 5000};
    if (foe_join(foe)) {
        for (uint32_t i = 0; i < 2; i++) {
            struct wire_member lie = {
                .id = ids[i], .incarnation = 1 + i, .state = WIRE_MEMBER_READY};
            (void)snprintf(lie.endpoint, sizeof lie.endpoint,
                           "ipc://%s/somebody", siege->folder);
            foe_heartbeat(foe, &lie, 1);
        }
        (void)case_grows(siege, node, "rounds", 500);
    }
    case_end(siege);
}

/* ---- at another's address ---------------------------------------------- */

static void squat_and_bind(struct siege *siege, const struct foe *squatter)
{
    const char *const arguments[] = {squatter->endpoint, NULL};
    struct process late;
    if (!process_start(siege, &late, 4, arguments))
        return;
    const int code = process_end(&late);
    if (code == 0 || code >= 128 ||
        !process_logged(&late, "another program has this address"))
        case_fails(siege, "the node that finds its address taken ends with %d",
                   code);
}

/* Node 5 is told that node 4 is there. */
static void squat_and_dial(struct siege *siege, const struct foe *squatter)
{
    char first[LS_ENDPOINT_MAX + 16], second[LS_ENDPOINT_MAX + 16];
    (void)snprintf(first, sizeof first, "4@%s", squatter->endpoint);
    (void)snprintf(second, sizeof second, "1@%s", siege->nodes[0].endpoint);
    const char *const arguments[] = {"tcp://127.0.0.1:*", first, second, NULL};
    struct process fifth;
    if (!process_start(siege, &fifth, 5, arguments) ||
        !process_at(siege, &fifth))
        case_fails(siege, "node 5 does not start");
    else if (strcmp(process_line(siege, &fifth), "formed") != 0)
        case_fails(siege, "node 5 is not a member: %s", fifth.line);
    else if (siege->mode == LS_SECURITY_PLAIN) {
        (void)process_ask(siege, &fifth, "await stranger 1");
        if (!process_logged(&fifth, "cannot prove to be node 4"))
            case_fails(siege, "node 5 does not name the squatter");
    }
    if (squatter->here[5] != 0 && siege->mode == LS_SECURITY_CURVE)
        case_fails(siege, "the squatter was shown a presence");
    const int code = process_end(&fifth);
    if (code != 0)
        case_fails(siege, "node 5 ends with %d", code);
}

void attack_squat(struct siege *siege)
{
    static const char name[] = "a squatter who poses as the node";
    case_begin(siege, "a squatter at a node's address");
    struct foe *squatter =
        foe_open_as(siege, FOE_FALSE, 4, NULL, "tcp://127.0.0.1:*", false);
    squat_and_bind(siege, squatter);
    case_end(siege);
    if (siege->mode == LS_SECURITY_NONE) {
        case_skip(siege, name,
                  UNGUARDED ": whoever listens there is believed to be it");
        return;
    }
    case_begin(siege, name);
    squatter =
        foe_open_as(siege, FOE_FALSE, 4, NULL, "tcp://127.0.0.1:*", false);
    squat_and_dial(siege, squatter);
    case_end(siege);
}

#define N_SAID 10

void attack_up(struct siege *siege)
{
    uint8_t frame[WIRE_HEAD_MAX + 8];
    struct process *node = &siege->nodes[0];
    case_begin(siege, "a barrier's message that is sent up as another");
    struct foe *foe = foe_open(siege, FOE_MEMBER, node);
    if (foe_join(foe)) {
        struct wire_header header = foe_header(foe, WIRE_KIND_CHANNEL);
        header.origin = siege->nodes[1].id;
        header.incarnation = siege->nodes[1].incarnation;
        header.name = "ls.barrier.step";
        header.name_size = strlen(header.name);
        const size_t size = foe_frame(foe, frame, NULL, &header, "12345678", 8);
        for (int i = 0; i < N_SAID; i++)
            foe_send_up(foe, frame, size);
        case_refused(siege, node, "identity", N_SAID, "speaks as node 2");
    }
    case_end(siege);
}
