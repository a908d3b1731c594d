/* Streams, as two state machines with a network of our own between them: no
 * thread, no socket, and no clock but a number. */
#include <string.h>

#include "base/seeds.h"
#include "lockstep/random.h"
#include "stream.h"
#include "test.h"

#define MS           LS_NS_PER_MS
#define WINDOW       64
#define WINDOW_BYTES 1000000

static void count_one(void *self, void *content)
{
    (void)content;
    ++*(unsigned *)self;
}

static void *content_of(uint64_t number)
{
    return (void *)(uintptr_t)number;
}

/* A sender that knows of much room. */
static struct stream_sender sender(void)
{
    struct stream_sender s;
    stream_sender_init(&s);
    s.room_messages = WINDOW;
    s.room_bytes = WINDOW_BYTES;
    return s;
}

static void push(struct stream_sender *s, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        assert_ok(stream_push(s, content_of(s->next), 1, false));
}

/* Transmit all that may be; returns how many, and the first of them. */
static unsigned transmit(struct stream_sender *s, int64_t now, uint64_t *first)
{
    unsigned n = 0;
    uint64_t number;
    bool again;
    while (stream_next(s, now, &number, &again) != NULL)
        if (n++ == 0 && first != NULL)
            *first = number;
    return n;
}

static unsigned acknowledge(struct stream_sender *s, uint64_t number,
                            uint64_t also, int64_t now)
{
    unsigned freed = 0;
    const struct stream_ack ack = {.sequence = s->last_ack + 1,
                                   .number = number,
                                   .also = also,
                                   .room_messages = WINDOW,
                                   .room_bytes = WINDOW_BYTES};
    (void)stream_acknowledge(s, &ack, now, count_one, &freed);
    return freed;
}

static void end(struct stream_sender *s)
{
    unsigned freed = 0;
    stream_sender_fini(s, count_one, &freed);
}

/* ---- the sender -------------------------------------------------------- */

TEST(each_is_transmitted_once_in_order)
{
    struct stream_sender s = sender();
    uint64_t number;
    bool again;
    push(&s, 3);
    for (uint64_t i = 1; i <= 3; i++) {
        const struct stream_item *item = stream_next(&s, 0, &number, &again);
        assert_non_null(item);
        assert_ptr_equal(item->content, content_of(i));
        assert_int_equal(number, i);
        assert_false(again);
    }
    assert_null(stream_next(&s, 0, &number, &again));
    end(&s);
}

TEST(an_acknowledgement_frees_all_up_to_it)
{
    struct stream_sender s = sender();
    push(&s, 5);
    assert_int_equal(transmit(&s, 0, NULL), 5);
    assert_int_equal(acknowledge(&s, 3, 0, 1), 3);
    assert_int_equal(acknowledge(&s, 3, 0, 2), 0);
    assert_int_equal(acknowledge(&s, 5, 0, 3), 2);
    assert_true(stream_is_idle(&s));
    end(&s);
}

TEST(an_acknowledgement_of_what_was_not_sent_is_ignored)
{
    struct stream_sender s = sender();
    push(&s, 5);
    assert_int_equal(acknowledge(&s, 1, 0, 0), 0);
    assert_int_equal(transmit(&s, 0, NULL), 5);
    assert_int_equal(acknowledge(&s, 6, ~UINT64_C(0), 0), 0);
    assert_int_equal(acknowledge(&s, UINT64_MAX, 0, 0), 0);
    end(&s);
}

TEST(an_overtaken_acknowledgement_is_ignored)
{
    struct stream_sender s = sender();
    unsigned freed = 0;
    push(&s, 4);
    (void)transmit(&s, 0, NULL);
    assert_int_equal(acknowledge(&s, 2, 0, 0), 2);
    const struct stream_ack old = {.sequence = s.last_ack, .number = 3};
    assert_false(stream_acknowledge(&s, &old, 0, count_one, &freed));
    assert_int_equal(freed, 0);
    assert_int_equal(s.room_messages, WINDOW);
    end(&s);
}

TEST(room_is_what_the_receiver_said)
{
    struct stream_sender s;
    unsigned freed = 0;
    stream_sender_init(&s);
    push(&s, STREAM_FIRST_MESSAGES);
    assert_false(stream_has_room(&s, 1, false));
    assert_true(stream_has_room(&s, 1, true)); /* control is outside */
    (void)transmit(&s, 0, NULL);
    const struct stream_ack ack = {
        .sequence = 1, .number = 10, .room_messages = 8, .room_bytes = 100};
    assert_true(stream_acknowledge(&s, &ack, 0, count_one, &freed));
    assert_true(stream_has_room(&s, 94, false));
    assert_false(stream_has_room(&s, 95, false));
    push(&s, 2);
    assert_false(stream_has_room(&s, 1, false));
    end(&s);
}

TEST(control_messages_are_bounded_too)
{
    struct stream_sender s = sender();
    for (unsigned i = 0; i < STREAM_CONTROL_MAX; i++) {
        assert_true(stream_has_room(&s, 1, true));
        assert_ok(stream_push(&s, content_of(1), 1, true));
    }
    assert_false(stream_has_room(&s, 1, true));
    assert_true(stream_has_room(&s, 1, false));
    end(&s);
}

/* Of what is under way the oldest alone at first, then twice as many. */
TEST(what_is_not_acknowledged_comes_again_later_each_time)
{
    struct stream_sender s = sender();
    uint64_t first = 0;
    assert_int_equal(stream_tick(&s, 0), LS_FOREVER);
    push(&s, 3);
    (void)transmit(&s, 0, NULL);
    assert_int_equal(stream_tick(&s, 19 * MS), 20 * MS);
    assert_int_equal(transmit(&s, 19 * MS, NULL), 0);
    int64_t now = 20 * MS, wait = 40 * MS;
    for (int i = 0; i < 8; i++) {
        assert_int_equal(stream_tick(&s, now), now + wait);
        assert_int_equal(transmit(&s, now, &first), i == 0   ? 1
                                                    : i == 1 ? 2
                                                             : 3);
        assert_int_equal(first, 1);
        now += wait;
        wait = 2 * wait < 500 * MS ? 2 * wait : 500 * MS;
    }
    (void)acknowledge(&s, 3, 0, now);
    assert_int_equal(stream_tick(&s, now), LS_FOREVER);
    end(&s);
}

TEST(the_wait_follows_the_network)
{
    struct stream_sender s = sender();
    int64_t now = 0;
    for (int i = 0; i < 50; i++) { /* 100 ms there and back */
        push(&s, 1);
        (void)transmit(&s, now, NULL);
        now += 100 * MS;
        (void)acknowledge(&s, s.next - 1, 0, now);
    }
    push(&s, 1);
    (void)transmit(&s, now, NULL);
    assert_int_equal(stream_tick(&s, now + 150 * MS), now + 200 * MS);
    end(&s);
}

/* Transmit one at a time, each acknowledged after so long. */
static int64_t talk(struct stream_sender *s, int64_t now, unsigned n,
                    int64_t round_trip)
{
    for (unsigned i = 0; i < n; i++) {
        push(s, 1);
        (void)transmit(s, now, NULL);
        now += round_trip;
        (void)acknowledge(s, s->next - 1, 0, now);
    }
    return now;
}

/* How long after its transmission the next one would be transmitted again. */
static int64_t wait_for_next(struct stream_sender *s, int64_t now)
{
    push(s, 1);
    (void)transmit(s, now, NULL);
    return stream_tick(s, now) - now;
}

static unsigned acknowledge_repeated(struct stream_sender *s, uint64_t number,
                                     int64_t now)
{
    unsigned freed = 0;
    const struct stream_ack ack = {.sequence = s->last_ack + 1,
                                   .number = number,
                                   .repeats = s->repeats + 1,
                                   .room_messages = WINDOW,
                                   .room_bytes = WINDOW_BYTES};
    (void)stream_acknowledge(s, &ack, now, count_one, &freed);
    return freed;
}

/* All is lost from now on: the clock transmits again, and again. */
static int64_t cut(struct stream_sender *s, int64_t now, int64_t end)
{
    for (int64_t at; now < end; now = at) {
        at = stream_tick(s, now);
        (void)transmit(s, now, NULL);
    }
    return end;
}

/* As on a busy host: the mean would be too short for half of them. */
TEST(the_wait_covers_how_far_round_trips_differ)
{
    struct stream_sender s = sender();
    int64_t now = 0;
    for (int i = 0; i < 100; i++)
        now = talk(&s, now, 1, i % 4 == 0 ? 60 * MS : 3 * MS);
    const int64_t wait = wait_for_next(&s, now);
    assert_true(wait > 60 * MS && wait < 200 * MS);
    now += 3 * MS;
    (void)acknowledge(&s, s.next - 1, 0, now);
    now = talk(&s, now, 30, 3 * MS); /* and no longer than they do */
    assert_int_equal(wait_for_next(&s, now), STREAM_RESEND_NS);
    end(&s);
}

TEST(a_cut_is_not_taken_for_a_round_trip)
{
    struct stream_sender s = sender();
    int64_t now = talk(&s, 0, 10, MS);
    push(&s, 3);
    (void)transmit(&s, now, NULL);
    now = cut(&s, now, now + 5 * LS_NS_PER_S);
    /* The network doubled what came at last; and once more. */
    assert_int_equal(acknowledge_repeated(&s, s.base, now), 1);
    assert_int_equal(acknowledge_repeated(&s, s.base, now), 1);
    assert_true(stream_tick(&s, now) - now <= STREAM_RESEND_MAX_NS);
    assert_int_equal(acknowledge(&s, s.base, 0, now), 1);
    now = talk(&s, now, 1, MS);
    assert_int_equal(wait_for_next(&s, now), STREAM_RESEND_NS);
    end(&s);
}

TEST(what_came_twice_is_waited_for_longer)
{
    struct stream_sender s = sender();
    int64_t now = talk(&s, 0, 10, MS);
    for (int i = 0; i < 10; i++) { /* now it takes 3 s, longer than any wait */
        push(&s, 1);
        (void)transmit(&s, now, NULL);
        now = cut(&s, now, now + 3 * LS_NS_PER_S);
        if (s.items[s.base & (s.capacity - 1)].again)
            (void)acknowledge_repeated(&s, s.base, now);
        else
            (void)acknowledge(&s, s.base, 0, now);
    }
    assert_int_equal(wait_for_next(&s, now), 6 * LS_NS_PER_S);
    end(&s);
}

/* The acknowledgement was lost, or the network doubled it. */
TEST(it_is_waited_for_not_much_longer_than_it_took)
{
    struct stream_sender s = sender();
    int64_t now = talk(&s, 0, 50, 30 * MS);
    for (int i = 0; i < 5; i++) {
        push(&s, 1);
        (void)transmit(&s, now, NULL);
        now = stream_tick(&s, now);
        (void)stream_tick(&s, now);
        (void)transmit(&s, now, NULL);
        now += 10 * MS;
        assert_int_equal(acknowledge_repeated(&s, s.base, now), 1);
    }
    assert_true(wait_for_next(&s, now) < 5 * 60 * MS); /* twice: 32 * 60 */
    end(&s);
}

/* One is acknowledged, and the acknowledgement before that was lost. */
static void acknowledge_late(struct stream_sender *s, uint64_t repeats,
                             int64_t now)
{
    unsigned freed = 0;
    const struct stream_ack ack = {.sequence = s->last_ack + 2,
                                   .number = s->base,
                                   .repeats = repeats,
                                   .room_messages = WINDOW,
                                   .room_bytes = WINDOW_BYTES};
    assert_true(stream_acknowledge(s, &ack, now, count_one, &freed));
    assert_int_equal(freed, 1);
}

/* It may have come long ago, and was sent again for want of an answer. */
TEST(when_an_answer_was_lost_the_next_one_teaches_nothing)
{
    struct stream_sender s = sender();
    int64_t now = talk(&s, 0, 50, 30 * MS);
    for (int i = 0; i < 10; i++) {
        push(&s, 1);
        (void)transmit(&s, now, NULL);
        acknowledge_late(&s, s.repeats, now += 59 * MS);
        push(&s, 1);
        (void)transmit(&s, now, NULL);
        now = stream_tick(&s, now);
        (void)stream_tick(&s, now);
        (void)transmit(&s, now, NULL);
        acknowledge_late(&s, s.repeats + 1, now += 30 * MS);
    }
    assert_int_equal(wait_for_next(&s, now), 60 * MS);
    acknowledge_late(&s, s.repeats, now += 20 * MS); /* as long at most */
    assert_true(wait_for_next(&s, now) < 60 * MS);
    end(&s);
}

TEST(the_first_wait_is_longer_for_more)
{
    struct stream_sender s = sender();
    for (unsigned i = 0; i < 2; i++)
        assert_ok(stream_push(&s, content_of(s.next), 8000, false));
    (void)transmit(&s, 0, NULL);
    assert_int_equal(stream_tick(&s, 0), 2 * 16000 * STREAM_BYTE_NS);
    (void)acknowledge(&s, 2, 0, MS); /* it is a fast one */
    assert_int_equal(wait_for_next(&s, MS), STREAM_RESEND_NS);
    end(&s);
}

/* A sender that never rests does not put the clock off. */
TEST(new_ones_do_not_delay_the_repeat_of_old_ones)
{
    struct stream_sender s = sender();
    int64_t now = talk(&s, 0, 1, MS);
    const int64_t at = now + wait_for_next(&s, now);
    for (; now < at; now += MS) {
        push(&s, 1);
        (void)transmit(&s, now, NULL);
    }
    uint64_t first = 0;
    (void)stream_tick(&s, at);
    assert_true(transmit(&s, at, &first) > 0);
    assert_int_equal(first, 2);
    end(&s);
}

TEST(a_gap_is_filled_once_at_once)
{
    struct stream_sender s = sender();
    uint64_t first = 0;
    push(&s, 10);
    (void)transmit(&s, 0, NULL);
    /* It has 1, 2, and 4 to 6: three is missing. */
    assert_int_equal(acknowledge(&s, 2, 0xe, 0), 2);
    assert_int_equal(transmit(&s, 0, &first), 1);
    assert_int_equal(first, 3);
    (void)acknowledge(&s, 2, 0xe, 0);
    assert_int_equal(transmit(&s, 0, &first), 0);
    /* By the clock it comes again, alone; what has arrived does not. */
    (void)stream_tick(&s, 20 * MS);
    assert_int_equal(transmit(&s, 20 * MS, &first), 1);
    assert_int_equal(first, 3);
    stream_rewind(&s);
    assert_int_equal(transmit(&s, 20 * MS, &first), 10 - 2 - 3);
    end(&s);
}

TEST(a_gap_that_was_filled_in_vain_is_filled_again)
{
    struct stream_sender s = sender();
    uint64_t first = 0;
    push(&s, 4);
    (void)transmit(&s, 0, NULL);
    (void)acknowledge(&s, 1, 0x6, 1 * MS); /* 2 is missing */
    assert_int_equal(transmit(&s, 1 * MS, &first), 1);
    assert_int_equal(first, 2);
    push(&s, 2);
    assert_int_equal(transmit(&s, 2 * MS, NULL), 2); /* 5 and 6 */
    /* 5 has come, which went after 2 went again: so that is lost, too. */
    (void)acknowledge(&s, 1, 0xe, 4 * MS);
    assert_int_equal(transmit(&s, 4 * MS, &first), 1);
    assert_int_equal(first, 2);
    /* 6 went before that. */
    (void)acknowledge(&s, 1, 0x1e, 5 * MS);
    assert_int_equal(transmit(&s, 5 * MS, NULL), 0);
    end(&s);
}

/* A receiver that stood still reads what is on its way to it. */
TEST(what_was_only_late_does_not_go_again)
{
    struct stream_sender s = sender();
    uint64_t first = 0;
    push(&s, 10);
    (void)transmit(&s, 0, NULL);
    (void)stream_tick(&s, 20 * MS);
    assert_int_equal(transmit(&s, 20 * MS, &first), 1);
    push(&s, 1); /* a new one does not wait for it */
    assert_int_equal(transmit(&s, 25 * MS, &first), 1);
    assert_int_equal(first, 11);
    (void)acknowledge(&s, 5, 0, 30 * MS);
    assert_int_equal(transmit(&s, 30 * MS, NULL), 0);
    /* Nor was that a round trip: a cut may have lain between. */
    (void)acknowledge(&s, 10, 0, 90 * MS);
    assert_int_equal(stream_tick(&s, 90 * MS), 90 * MS + STREAM_RESEND_NS);
    end(&s);
}

TEST(what_was_lost_goes_again_as_soon_as_one_of_it_has_come)
{
    struct stream_sender s = sender();
    uint64_t first = 0;
    push(&s, 10);
    (void)transmit(&s, 0, NULL);
    (void)stream_tick(&s, 20 * MS);
    assert_int_equal(transmit(&s, 20 * MS, NULL), 1);
    (void)acknowledge(&s, 1, 0, 21 * MS);
    assert_int_equal(transmit(&s, 21 * MS, &first), 9);
    assert_int_equal(first, 2);
    end(&s);
}

TEST(after_a_reconnect_a_burst_goes_first)
{
    struct stream_sender s = sender();
    uint64_t first = 0;
    s.room_messages = 3 * STREAM_BURST;
    push(&s, 2 * STREAM_BURST);
    (void)transmit(&s, 0, NULL);
    push(&s, 1);
    stream_rewind(&s);
    assert_int_equal(transmit(&s, 0, &first), STREAM_BURST);
    assert_int_equal(first, 1);
    (void)acknowledge(&s, 1, 0, 0);
    assert_int_equal(transmit(&s, 0, &first), 1);
    assert_int_equal(first, STREAM_BURST + 1);
    (void)acknowledge(&s, 2 * STREAM_BURST, 0, 0);
    assert_int_equal(transmit(&s, 0, &first), 1); /* the new one, last */
    assert_int_equal(first, 2 * STREAM_BURST + 1);
    end(&s);
}

/* ---- the receiver ------------------------------------------------------ */

TEST(what_is_next_is_delivered_and_else_held)
{
    struct stream_receiver r;
    unsigned freed = 0;
    stream_receiver_init(&r);
    assert_int_equal(stream_receive(&r, 1, content_of(1), 1, 100),
                     STREAM_DELIVER);
    assert_int_equal(stream_receive(&r, 3, content_of(3), 1, 100), STREAM_HOLD);
    assert_int_equal(stream_receive(&r, 4, content_of(4), 1, 100), STREAM_HOLD);
    assert_null(stream_take(&r));
    assert_int_equal(stream_also(&r), 0x6);
    assert_int_equal(stream_receive(&r, 2, content_of(2), 1, 100),
                     STREAM_DELIVER);
    assert_ptr_equal(stream_take(&r), content_of(3));
    assert_ptr_equal(stream_take(&r), content_of(4));
    assert_null(stream_take(&r));
    assert_int_equal(r.next, 5);
    stream_receiver_fini(&r, count_one, &freed);
    assert_int_equal(freed, 0);
}

TEST(what_came_before_is_repeated)
{
    struct stream_receiver r;
    unsigned freed = 0;
    stream_receiver_init(&r);
    (void)stream_receive(&r, 1, content_of(1), 1, 100);
    (void)stream_receive(&r, 3, content_of(3), 1, 100);
    assert_int_equal(stream_receive(&r, 1, content_of(1), 1, 100),
                     STREAM_REPEATED);
    assert_int_equal(stream_receive(&r, 3, content_of(3), 1, 100),
                     STREAM_REPEATED);
    assert_int_equal(stream_receive(&r, 0, content_of(1), 1, 100),
                     STREAM_REPEATED);
    stream_receiver_fini(&r, count_one, &freed);
    assert_int_equal(freed, 1);
}

TEST(what_is_held_is_bounded)
{
    struct stream_receiver r;
    unsigned freed = 0;
    stream_receiver_init(&r);
    assert_int_equal(
        stream_receive(&r, 1 + STREAM_REACH, content_of(9), 1, 100),
        STREAM_BEYOND);
    assert_int_equal(stream_receive(&r, UINT64_MAX, content_of(9), 1, 100),
                     STREAM_BEYOND);
    assert_int_equal(stream_receive(&r, STREAM_REACH, content_of(9), 60, 100),
                     STREAM_HOLD);
    assert_int_equal(stream_receive(&r, 2, content_of(2), 41, 100),
                     STREAM_BEYOND);
    assert_int_equal(stream_receive(&r, 2, content_of(2), 40, 100),
                     STREAM_HOLD);
    stream_receiver_fini(&r, count_one, &freed);
    assert_int_equal(freed, 2);
}

/* ---- both, over a bad network ------------------------------------------ */

#define IN_FLIGHT_MAX 512
#define N_MESSAGES    200

struct packet {
    bool is_ack;
    int64_t at;
    uint64_t number;
    struct stream_ack ack;
};

struct network {
    struct ls_rng rng;
    unsigned loss, doubled; /* of 256 */
    int64_t delay;
    struct packet packets[IN_FLIGHT_MAX];
    size_t n;
};

static void throw_in(struct network *net, struct packet packet, int64_t now)
{
    const unsigned luck = (unsigned)ls_rng_below(&net->rng, 256);
    unsigned copies = luck < net->loss ? 0 : 1;
    if (ls_rng_below(&net->rng, 256) < net->doubled)
        copies++;
    for (; copies != 0 && net->n < IN_FLIGHT_MAX; copies--) {
        packet.at =
            now + 1 + (int64_t)ls_rng_below(&net->rng, (uint64_t)net->delay);
        net->packets[net->n++] = packet;
    }
}

/* The next that arrives by `until`; false: none does. */
static bool take(struct network *net, int64_t until, struct packet *out)
{
    size_t first = net->n;
    for (size_t i = 0; i < net->n; i++)
        if (net->packets[i].at <= until &&
            (first == net->n || net->packets[i].at < net->packets[first].at))
            first = i;
    if (first == net->n)
        return false;
    *out = net->packets[first];
    net->packets[first] = net->packets[--net->n];
    return true;
}

struct run {
    struct network net;
    struct stream_sender s;
    struct stream_receiver r;
    uint64_t acks, delivered, freed, held; /* delivered, not handled */
    int64_t now;
};

static void release(void *self, void *content)
{
    struct run *run = self;
    assert_ptr_equal(content, content_of(++run->freed)); /* in order, once */
}

static void deliver(struct run *run, const void *content)
{
    assert_ptr_equal(content, content_of(++run->delivered));
    run->held++;
    assert_true(run->held <= WINDOW);
}

static void answer(struct run *run)
{
    const struct packet packet = {.is_ack = true,
                                  .ack = {.sequence = ++run->acks,
                                          .number = run->r.next - 1,
                                          .also = stream_also(&run->r),
                                          .room_messages = WINDOW - run->held,
                                          .room_bytes = WINDOW_BYTES}};
    throw_in(&run->net, packet, run->now);
}

static void arrive(struct run *run, const struct packet *packet)
{
    void *content;
    if (packet->is_ack) {
        (void)stream_acknowledge(&run->s, &packet->ack, run->now, release, run);
        return;
    }
    if (stream_receive(&run->r, packet->number, content_of(packet->number), 1,
                       WINDOW_BYTES) == STREAM_DELIVER)
        deliver(run, content_of(packet->number));
    while ((content = stream_take(&run->r)) != NULL)
        deliver(run, content);
    answer(run);
}

static void send_all(struct run *run)
{
    uint64_t number;
    bool again;
    while (run->s.next <= N_MESSAGES && stream_has_room(&run->s, 1, false))
        push(&run->s, 1);
    while (stream_next(&run->s, run->now, &number, &again) != NULL)
        throw_in(&run->net, (struct packet){.number = number}, run->now);
}

static void one_schedule(uint64_t seed)
{
    struct run run = {0};
    struct packet packet;
    unsigned none = 0;
    ls_rng_seed(&run.net.rng, seed, 0);
    run.net.loss = (unsigned)ls_rng_below(&run.net.rng, 120);
    run.net.doubled = (unsigned)ls_rng_below(&run.net.rng, 120);
    run.net.delay = 1 + (int64_t)ls_rng_below(&run.net.rng, 30 * MS);
    stream_sender_init(&run.s);
    stream_receiver_init(&run.r);
    while (run.freed < N_MESSAGES && run.now < 3000 * LS_NS_PER_S) {
        send_all(&run);
        if (ls_rng_below(&run.net.rng, 50) == 0) {
            run.net.n = 0; /* the connection breaks, and is made again */
            stream_rewind(&run.s);
        }
        run.held -= ls_rng_below(&run.net.rng, run.held + 1);
        if (ls_rng_below(&run.net.rng, 8) == 0)
            answer(&run); /* a heartbeat */
        run.now += MS;
        while (take(&run.net, run.now, &packet))
            arrive(&run, &packet);
        (void)stream_tick(&run.s, run.now);
    }
    if (run.freed != N_MESSAGES || run.delivered != N_MESSAGES)
        fail_msg("seed %llu: %llu delivered, %llu acknowledged of %d",
                 (unsigned long long)seed, (unsigned long long)run.delivered,
                 (unsigned long long)run.freed, N_MESSAGES);
    stream_receiver_fini(&run.r, count_one, &none);
    stream_sender_fini(&run.s, count_one, &none);
    assert_int_equal(none, 0);
}

TEST(exactly_once_in_order_whatever_the_network_does)
{
    const struct seeds seeds = seeds_of(4000);
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++)
        one_schedule(seed);
}
