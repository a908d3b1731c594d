/* barrier_post.h - a few barrier state machines and the letters between them,
 * handed over one by one as a test says. Three nodes have the ids 7, 1000000
 * and 4294967295, unless a test says otherwise; the first leads. */
#ifndef BARRIER_POST_H
#define BARRIER_POST_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "barrier_epoch.h"
#include "lockstep/runtime.h"
#include "test.h"

#define MS    LS_NS_PER_MS
#define NEVER LS_FOREVER

enum { LEADER, SECOND, THIRD };

/* A test of more members defines their ids, in order. */
#ifndef POST_IDS
#define POST_IDS 7, 1000000, 4294967295u
#endif

static const uint32_t ids[] = {POST_IDS};
enum { N_NODES = sizeof ids / sizeof ids[0] };

struct letter {
    size_t from;
    size_t to;
    uint64_t incarnation;
    size_t size;
    unsigned char bytes[LS_BARRIER_WIRE_MAX];
};

/* Letters in the order in which they were sent. */
struct post {
    struct ls_epoch *nodes[N_NODES];
    size_t n;
    struct letter letters[64];
    size_t n_letters;
    size_t n_sent;
    int64_t now;
};

static inline void create_post_by(struct post *post, size_t n,
                                  const struct ls_epoch_rules *rules)
{
    memset(post, 0, sizeof *post);
    post->n = n;
    post->now = 1000 * MS;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(ls_epoch_create(&post->nodes[i], ids[i], rules),
                         LS_OK);
        ls_epoch_set_self(post->nodes[i], 100 + i, 0);
        for (size_t k = 0; k < n; k++) {
            if (k != i)
                assert_int_equal(ls_epoch_joined(post->nodes[i], post->now,
                                                 ids[k], 100 + k, 0),
                                 LS_OK);
        }
    }
}

static inline void create_post(struct post *post, size_t n)
{
    const struct ls_epoch_rules rules = {.least = (uint32_t)n,
                                         .most = (uint32_t)n};
    create_post_by(post, n, &rules);
}

static inline void destroy_post(struct post *post)
{
    for (size_t i = 0; i < post->n; i++)
        ls_epoch_destroy(&post->nodes[i]);
}

static inline size_t place_of(uint32_t id)
{
    for (size_t i = 0; i < N_NODES; i++) {
        if (ids[i] == id)
            return i;
    }
    fail_msg("no node %u", id);
    return 0;
}

/* Take what a node has to say. */
static inline void collect(struct post *post, size_t from)
{
    size_t n;
    const struct ls_epoch_out *out = ls_epoch_take(post->nodes[from], &n);
    for (size_t i = 0; i < n; i++) {
        struct letter *letter = &post->letters[post->n_letters++];
        letter->from = from;
        letter->to = place_of(out[i].to);
        letter->incarnation = post->nodes[from]->incarnation;
        letter->size = ls_barrier_wire_encode(&out[i].message, letter->bytes);
        post->n_sent++;
    }
}

static inline void enter(struct post *post, size_t node, uint32_t flags)
{
    ls_epoch_enter(post->nodes[node], post->now, NEVER, flags);
    collect(post, node);
}

static inline void hand_over(struct post *post, const struct letter *letter)
{
    struct ls_barrier_missing scratch[LS_BARRIER_MISSING_MAX];
    struct ls_barrier_message message;
    assert_int_equal(
        ls_barrier_wire_decode(letter->bytes, letter->size, &message, scratch),
        LS_OK);
    ls_epoch_receive(post->nodes[letter->to], post->now, ids[letter->from],
                     letter->incarnation, &message);
    collect(post, letter->to);
}

/* The oldest letter, out of the post. */
static inline struct letter next_letter(struct post *post)
{
    assert_true(post->n_letters > 0);
    const struct letter letter = post->letters[0];
    memmove(post->letters, post->letters + 1,
            --post->n_letters * sizeof post->letters[0]);
    return letter;
}

static inline void deliver(struct post *post, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct letter letter = next_letter(post);
        hand_over(post, &letter);
    }
}

static inline void deliver_all(struct post *post)
{
    while (post->n_letters > 0)
        deliver(post, 1);
}

static inline void lose_all(struct post *post)
{
    post->n_letters = 0;
}

static inline void lost(struct post *post, size_t at, size_t gone)
{
    ls_epoch_lost(post->nodes[at], post->now, ids[gone], 100 + gone);
    collect(post, at);
}

static inline void pass(struct post *post, int64_t ns)
{
    post->now += ns;
    for (size_t i = 0; i < post->n; i++) {
        ls_epoch_tick(post->nodes[i], post->now);
        collect(post, i);
    }
}

/* What a letter says. */
static inline enum ls_barrier_kind kind_of(const struct letter *letter)
{
    struct ls_barrier_missing scratch[LS_BARRIER_MISSING_MAX];
    struct ls_barrier_message message;
    assert_int_equal(
        ls_barrier_wire_decode(letter->bytes, letter->size, &message, scratch),
        LS_OK);
    return message.kind;
}

static inline void expect_letter(struct post *post, size_t from, size_t to,
                                 enum ls_barrier_kind kind)
{
    const struct letter letter = next_letter(post);
    assert_int_equal(letter.from, from);
    assert_int_equal(letter.to, to);
    assert_int_equal(kind_of(&letter), kind);
}

static const struct ls_epoch_end *end_of(const struct post *post, size_t node)
{
    const struct ls_epoch_end *end = ls_epoch_end(post->nodes[node]);
    assert_non_null(end);
    return end;
}

static inline void expect_end(const struct post *post, size_t node, int status,
                              uint64_t epoch)
{
    assert_int_equal(end_of(post, node)->status, status);
    assert_int_equal(end_of(post, node)->epoch, epoch);
}

static inline void expect_all_left(const struct post *post, uint64_t epoch)
{
    for (size_t i = 0; i < post->n; i++)
        expect_end(post, i, LS_OK, epoch);
}

static inline bool waits(const struct post *post, size_t node)
{
    return ls_epoch_end(post->nodes[node]) == NULL;
}

static inline void run_epoch(struct post *post)
{
    for (size_t i = 0; i < post->n; i++)
        enter(post, i, 1u << i);
    deliver_all(post);
}

/* Everyone has entered, and the leader has said so. */
static inline void get_ready(struct post *post)
{
    for (size_t i = post->n; i-- > 0;)
        enter(post, i, 1u << i);
    deliver(post, 2);
}

#endif
