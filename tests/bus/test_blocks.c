/* Payloads of 64 KiB and more between nodes of one host go through shared
 * memory: whole, in order, and counted; what cannot goes as it always did. */
#include "test.h"
#include "world_fixture.h"

#define KIB 1024u
#define MIB (1024u * 1024u)

struct pair_of {
    struct world world;
    struct counter heard, bad, tokens;
    size_t shared; /* that both have, in bytes */
    bool waits;    /* the handler, for a token each time */
    int until_told;
};

static uint8_t pattern(size_t at, uint8_t seed)
{
    return (uint8_t)(at * 31 + (at >> 13) + seed);
}

/* Its first byte says which it is. */
static int check_event(void *self, const struct ls_event *event)
{
    struct pair_of *p = self;
    const uint8_t *data = event->data;
    size_t at = 0;
    if (p->waits && !counter_reaches(&p->tokens, counter_get(&p->heard) + 1))
        return LS_ETIMEDOUT;
    while (at < event->size && data[at] == pattern(at, data[0]))
        at++;
    if (at != event->size)
        counter_add(&p->bad, 1);
    counter_add(&p->heard, 1);
    return LS_OK;
}

static void listen_all(ls_node *node, size_t index, void *self)
{
    if (index != 0)
        assert_ok(ls_on(node, "x", check_event, self));
}

static struct pair_of *tuned;

static void tune(struct ls_node_options *options, size_t index)
{
    (void)index;
    options->shared_bytes = tuned->shared;
    options->silence_ms = 20000;
}

static struct pair_of *pair_start(size_t n, const char *transport,
                                  size_t shared)
{
    struct pair_of *p = calloc(1, sizeof *p);
    assert_non_null(p);
    counter_init(&p->heard);
    counter_init(&p->bad);
    counter_init(&p->tokens);
    p->shared = shared;
    tuned = p;
    world_start(&p->world, &(struct world_plan){.n = n,
                                                .transport = transport,
                                                .tune = tune,
                                                .prepare = listen_all,
                                                .self = p});
    return p;
}

static void pair_end(struct pair_of *p)
{
    assert_int_equal(counter_get(&p->bad), 0);
    world_destroy(&p->world);
    counter_fini(&p->heard);
    counter_fini(&p->bad);
    counter_fini(&p->tokens);
    free(p);
}

static struct ls_node_stats stats_of(const struct pair_of *p, size_t index)
{
    struct ls_node_stats stats;
    ls_node_stats(p->world.at[index].node, &stats);
    return stats;
}

static void emit(struct pair_of *p, size_t size, uint8_t seed)
{
    uint8_t *const data = malloc(size);
    assert_non_null(data);
    for (size_t i = 0; i < size; i++)
        data[i] = pattern(i, seed);
    assert_ok(ls_emit(p->world.at[0].node, "x", data, size));
    free(data);
}

/* Emit until one has gone through shared memory; returns how many. */
static int emit_until_shared(struct pair_of *p, int readers)
{
    int n = 0;
    while (stats_of(p, 0).blocks == 0) {
        assert_in_range(n, 0, 20000);
        emit(p, 64 * KIB, (uint8_t)++n);
        assert_reaches(&p->heard, n * readers);
    }
    return n;
}

static void payloads_are_shared(const char *transport, size_t readers)
{
    struct pair_of *p = pair_start(1 + readers, transport, 64 * MIB);
    int n = emit_until_shared(p, (int)readers);
    static const size_t sizes[] = {64 * KIB,     64 * KIB + 1, 200 * KIB,
                                   MIB,          MIB + 1,      3 * MIB + 17,
                                   5 * MIB + 99, 20 * MIB};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        emit(p, sizes[i], (uint8_t)++n);
    assert_reaches(&p->heard, n * (int)readers);
    const struct ls_node_stats stats = stats_of(p, 0);
    assert_int_equal(stats.blocks + stats.blocks_full,
                     1 + sizeof sizes / sizeof *sizes);
    for (size_t i = 1; i <= readers; i++) {
        assert_int_equal(stats_of(p, i).refused, 0);
        assert_int_equal(stats_of(p, i).lost + stats_of(p, i).missed, 0);
    }
    pair_end(p);
}

TEST(large_payloads_between_nodes_of_a_host_go_through_shared_memory)
{
    payloads_are_shared("tcp", 1);
}

TEST(over_ipc_too_and_to_several_at_once)
{
    payloads_are_shared("ipc", 3);
}
