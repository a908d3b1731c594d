/* network_fixture.h - a simulated network, and transports on it whose story is
 * told in words: "+t" a subscription came, "-t" it went, "t" a message of that
 * topic came, "t|x" one with a second frame, "^t" one was sent up. All in one
 * fiber. */
#ifndef NETWORK_FIXTURE_H
#define NETWORK_FIXTURE_H

#include "lockstep/network.h"
#include "transport_fixture.h"
#include "world_fixture.h"

#define NET_HOSTS 16

struct net {
    ls_simulation *simulation;
    ls_network *network;
    ls_host *hosts[NET_HOSTS];
    void (*body)(struct net *net);
    void *self;
};

static inline void net_body(void *arg)
{
    struct net *net = arg;
    net->body(net);
}

static inline void net_open(struct net *net, uint64_t seed,
                            const struct ls_network_path *path)
{
    static const char *const names[NET_HOSTS] = {"a", "b", "c", "d", "e", "f",
                                                 "g", "h", "i", "j", "k", "l",
                                                 "m", "n", "o", "p"};
    const struct ls_simulation_options options = {.seed = seed};
    memset(net, 0, sizeof *net);
    assert_ok(ls_simulation_create(&net->simulation, &options));
    assert_ok(ls_network_create(&net->network, net->simulation, path));
    for (size_t i = 0; i < NET_HOSTS; i++) {
        assert_ok(ls_host_create(&net->hosts[i], net->simulation, names[i]));
        assert_ok(ls_network_join(net->network, net->hosts[i]));
    }
}

/* As it is, slow, or slow and bad. */
static inline const struct ls_network_path *net_path_of(uint64_t seed)
{
    static const struct ls_network_path slow = {.delay_ns = 5 * LS_NS_PER_MS,
                                                .jitter_ns = 10 * LS_NS_PER_MS};
    static const struct ls_network_path bad = {.delay_ns = 5 * LS_NS_PER_MS,
                                               .jitter_ns = 10 * LS_NS_PER_MS,
                                               .loss = 0.1,
                                               .duplicate = 0.1,
                                               .reorder = 0.1};
    return seed % 3 == 0 ? NULL : seed % 3 == 1 ? &slow : &bad;
}

static inline void net_close(struct net *net)
{
    ls_network_destroy(&net->network);
    ls_simulation_destroy(&net->simulation);
}

/* Run body in a simulation of its own. */
static inline void net_run(const struct ls_network_path *path,
                           void (*body)(struct net *net))
{
    struct net net;
    net_open(&net, 1, path);
    net.body = body;
    assert_ok(ls_simulation_run(net.simulation, net_body, &net));
    net_close(&net);
}

static inline int64_t net_now(const struct net *net)
{
    return ls_simulation_now(net->simulation);
}

static inline void net_rest(struct net *net, int64_t ms)
{
    ls_rest_until(ls_simulation_runtime(net->simulation),
                  net_now(net) + ms * LS_NS_PER_MS);
}

static inline struct ls_network_stats net_stats(const struct net *net)
{
    struct ls_network_stats stats;
    ls_network_stats(net->network, &stats);
    return stats;
}

/* What was sent, and what became of it. */
static inline void assert_balanced(const struct net *net)
{
    const struct ls_network_stats s = net_stats(net);
    assert_int_equal(s.sent + s.duplicated,
                     s.delivered + s.lost + s.broken + s.waiting);
}

/* Options of the node on the host of that place: all attach to the first.
 * bind: where it is written. */
static inline void net_node(struct ls_node_options *out, char bind[64],
                            size_t index, size_t n, ls_runtime *runtime)
{
    static const char *const first[] = {"tcp://127.0.0.1:21500"};
    ls_node_options_init(out);
    (void)snprintf(bind, 64, "tcp://127.0.0.1:%zu", 21500 + index);
    out->id = (uint32_t)index + 1;
    out->bind = bind;
    out->attach = first;
    out->n_attach = index == 0 ? 0 : 1;
    out->world_size = (uint32_t)n;
    out->runtime = runtime;
}

/* ---- transports -------------------------------------------------------- */

struct end {
    transport *transport;
    transport_link *link;
    ls_runtime *runtime;
    char endpoint[LS_ENDPOINT_MAX + 1];
    char story[8192];
    struct message message;
    bool keep; /* do not release what comes */
    enum transport_probed answer;
    unsigned n_answers;
};

static inline void end_tell(struct end *end, const char *mark,
                            const uint8_t *text, size_t size)
{
    const size_t n = strlen(end->story);
    (void)snprintf(end->story + n, sizeof end->story - n, "%s%s%.*s",
                   n != 0 && mark[0] != '|' ? " " : "", mark, (int)size,
                   (const char *)text);
}

static inline void end_subscription(void *self, const uint8_t *topic,
                                    size_t size, bool subscribed,
                                    const struct speaker *by)
{
    (void)by;
    end_tell(self, subscribed ? "+" : "-", topic, size);
}

static inline void end_said(void *self, const uint8_t *frame, size_t size,
                            const struct speaker *by)
{
    assert_true(by->spoken && by->connection != 0);
    end_tell(self, "^", frame, size);
}

static inline struct message *end_take(void *self)
{
    struct end *end = self;
    return &end->message;
}

static inline void end_message(void *self, void *owner, struct message *message)
{
    struct end *end = self;
    assert_ptr_equal(owner, end);
    end_tell(end, "", message->head, message->head_size);
    if (message->n_frames == 2)
        end_tell(end, "|", message->tail, message->tail_size);
    if (!end->keep)
        transport_release(message);
}

static inline void end_probed(void *self, const char *endpoint,
                              enum transport_probed answer)
{
    struct end *end = self;
    (void)endpoint;
    end->answer = answer;
    end->n_answers++;
}

static const struct transport_events end_events = {.subscription =
                                                       end_subscription,
                                                   .said = end_said,
                                                   .message = end_message,
                                                   .take = end_take,
                                                   .probed = end_probed};

static inline void end_open(struct end *end, ls_host *host, const char *bind)
{
    memset(end, 0, sizeof *end);
    end->runtime = ls_host_runtime(host);
    assert_ok(open_transport(&end->transport, end->runtime, bind, NULL,
                             end->endpoint));
}

static inline void end_dial(struct end *end, const char *endpoint)
{
    assert_ok(transport_link_open(end->transport, &end->link, end));
    assert_ok(transport_link_connect(end->link, endpoint, false, 0));
}

static inline void end_subscribe(struct end *end, const char *topic, bool on)
{
    assert_ok(transport_link_subscribe(end->link, (const uint8_t *)topic,
                                       strlen(topic), on));
}

static inline void end_publish(struct end *end, const char *text)
{
    transport_lock(end->transport);
    assert_ok(transport_publish(end->transport, text, strlen(text), NULL, 0));
    transport_unlock(end->transport);
}

static inline int end_send_up(struct end *end, const char *text)
{
    return transport_link_send(end->link, text, strlen(text), NULL, 0);
}

static inline void end_close(struct end *end)
{
    transport_link_close(&end->link, false);
    transport_close(&end->transport);
}

/* Look at what comes for so long. */
static inline void end_listen(struct end *end, int64_t ms)
{
    const int64_t deadline = ls_now(end->runtime) + ms * LS_NS_PER_MS;
    while (ls_now(end->runtime) < deadline)
        (void)transport_poll(end->transport, deadline, &end_events, end);
}

/* What comes within a second; the story begins anew. */
static inline void end_hears(struct end *end, const char *story, int line)
{
    const int64_t deadline = ls_now(end->runtime) + LS_NS_PER_S;
    while (strcmp(end->story, story) != 0 && ls_now(end->runtime) < deadline)
        (void)transport_poll(end->transport, deadline, &end_events, end);
    if (strcmp(end->story, story) != 0) {
        print_error("\"%s\" was heard, not \"%s\"\n", end->story, story);
        _fail("the test", line);
    }
    end->story[0] = '\0';
}
#define assert_hears(end, story) end_hears((end), (story), __LINE__)

/* A publisher on host a, and a subscriber to "x" on host b. */
struct ends {
    struct end pub, sub;
};

static inline void ends_open(struct net *net, struct ends *ends)
{
    end_open(&ends->pub, net->hosts[0], "tcp://127.0.0.1:21500");
    end_open(&ends->sub, net->hosts[1], "tcp://127.0.0.1:21501");
    end_dial(&ends->sub, ends->pub.endpoint);
    end_subscribe(&ends->sub, "x", true);
    assert_hears(&ends->pub, "+x");
}

static inline void ends_close(struct ends *ends)
{
    end_close(&ends->sub);
    end_close(&ends->pub);
}

#endif
