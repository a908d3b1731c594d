/* Channels: control messages between members. */
#include "lockstep/channel.h"

#include "channels.h"
#include "test.h"
#include "world_fixture.h"

/* One end: what came on it. */
struct end {
    ls_channel *channel;
    ls_node *node;
    struct counter messages, members, timers, closed;
    uint32_t from;
    uint64_t incarnation;
    char data[64];
    size_t size;
    struct ls_member member;
    int64_t timer_at;
    struct counter may_leave; /* where the op waits */
    bool slow;
    bool closes; /* the op closes its own channel */
    bool echoes;
};

static void on_message(void *self, uint32_t from, uint64_t incarnation,
                       const void *data, size_t size)
{
    struct end *end = self;
    end->from = from;
    end->incarnation = incarnation;
    end->size = size;
    if (size <= sizeof end->data && size != 0)
        memcpy(end->data, data, size);
    if (end->echoes && ls_channel_send(end->channel, from, data, size) != LS_OK)
        abort();
    if (end->closes)
        ls_channel_close(&end->channel);
    counter_add(&end->messages, 1);
    if (end->slow && !counter_reaches(&end->may_leave, 1))
        abort();
}

static void on_member(void *self, const struct ls_member *member)
{
    struct end *end = self;
    end->member = *member;
    counter_add(&end->members, 1);
}

static void on_timer(void *self, int64_t now)
{
    struct end *end = self;
    end->timer_at = now;
    counter_add(&end->timers, 1);
}

static const struct ls_channel_ops ops = {
    .message = on_message, .member = on_member, .timer = on_timer};

static void end_open(ls_node *node, size_t index, void *self)
{
    struct end *end = (struct end *)self + index;
    end->node = node;
    counter_init(&end->messages);
    counter_init(&end->members);
    counter_init(&end->timers);
    counter_init(&end->may_leave);
    assert_ok(ls_channel_open(&end->channel, node, "talk", &ops, end));
}

struct talk {
    struct world world;
    struct end ends[3];
    size_t n;
};

static struct talk *talk_start(size_t n, enum ls_topology topology)
{
    struct talk *talk = calloc(1, sizeof *talk);
    assert_non_null(talk);
    talk->n = n;
    world_start(&talk->world, &(struct world_plan){.n = n,
                                                   .topology = topology,
                                                   .prepare = end_open,
                                                   .self = talk->ends});
    return talk;
}

static void talk_end(struct talk *talk)
{
    for (size_t i = 0; i < talk->n; i++)
        ls_channel_close(&talk->ends[i].channel);
    world_destroy(&talk->world);
    for (size_t i = 0; i < talk->n; i++) {
        counter_fini(&talk->ends[i].messages);
        counter_fini(&talk->ends[i].members);
        counter_fini(&talk->ends[i].timers);
        counter_fini(&talk->ends[i].may_leave);
    }
    free(talk);
}

static void sends_both_ways(enum ls_topology topology)
{
    struct talk *talk = talk_start(3, topology);
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 3; j++)
            if (i != j)
                assert_ok(ls_channel_send(talk->ends[i].channel,
                                          (uint32_t)j + 1, "hello", 6));
    for (size_t i = 0; i < 3; i++)
        assert_reaches(&talk->ends[i].messages, 2);
    talk->ends[2].echoes = true;
    assert_ok(ls_channel_send(talk->ends[1].channel, 3, "there and back", 15));
    assert_reaches(&talk->ends[1].messages, 3);
    assert_int_equal(talk->ends[1].from, 3);
    assert_true(talk->ends[1].incarnation ==
                ls_node_incarnation(talk->ends[2].node));
    assert_string_equal(talk->ends[1].data, "there and back");
    assert_int_equal(counter_get(&talk->ends[0].messages), 2);
    talk_end(talk);
}

TEST(messages_reach_the_channel_of_that_member)
{
    sends_both_ways(LS_TOPOLOGY_MESH);
    sends_both_ways(LS_TOPOLOGY_STAR); /* through the hub */
}

TEST(messages_of_every_size_come_whole)
{
    struct talk *talk = talk_start(2, LS_TOPOLOGY_MESH);
    static char large[LS_CHANNEL_MESSAGE_MAX + 1];
    assert_ok(ls_channel_send(talk->ends[0].channel, 2, NULL, 0));
    assert_reaches(&talk->ends[1].messages, 1);
    assert_int_equal(talk->ends[1].size, 0);
    assert_ok(ls_channel_send(talk->ends[0].channel, 2, large,
                              LS_CHANNEL_MESSAGE_MAX));
    assert_reaches(&talk->ends[1].messages, 2);
    assert_int_equal(talk->ends[1].size, LS_CHANNEL_MESSAGE_MAX);
    assert_fails(ls_channel_send(talk->ends[0].channel, 2, large,
                                 LS_CHANNEL_MESSAGE_MAX + 1),
                 LS_ELIMIT);
    talk_end(talk);
}

TEST(two_pieces_arrive_as_one)
{
    struct talk *talk = talk_start(2, LS_TOPOLOGY_MESH);
    static char large[LS_CHANNEL_MESSAGE_MAX];
    ls_channel *channel = talk->ends[0].channel;
    assert_ok(ls_channel_send_two(channel, 2, "head, ", 6, "and data", 9));
    assert_reaches(&talk->ends[1].messages, 1);
    assert_string_equal(talk->ends[1].data, "head, and data");
    assert_ok(ls_channel_send_two(channel, 2, "alone", 6, NULL, 0));
    assert_reaches(&talk->ends[1].messages, 2);
    assert_string_equal(talk->ends[1].data, "alone");
    assert_ok(ls_channel_send_two(channel, 2, large, LS_CHANNEL_HEAD_MAX, large,
                                  sizeof large - LS_CHANNEL_HEAD_MAX));
    assert_reaches(&talk->ends[1].messages, 3);
    assert_int_equal(talk->ends[1].size, LS_CHANNEL_MESSAGE_MAX);
    assert_fails(ls_channel_send_two(channel, 2, large, LS_CHANNEL_HEAD_MAX + 1,
                                     NULL, 0),
                 LS_ELIMIT);
    assert_fails(ls_channel_send_two(channel, 2, large, 1, large, sizeof large),
                 LS_ELIMIT);
    talk_end(talk);
}

/* Answers on the channel that was meant. */
static void on_stray(void *self, const char *name, uint32_t from,
                     uint64_t incarnation, const void *data, size_t size)
{
    struct end *end = self;
    end->incarnation = incarnation;
    if (strcmp(name, "lonely") != 0 ||
        ls_channel_answer(end->channel, name, from, data, size) != LS_OK)
        abort();
    counter_add(&end->messages, 1);
}

TEST(a_message_for_no_channel_is_a_stray)
{
    struct talk *talk = talk_start(2, LS_TOPOLOGY_MESH);
    const struct ls_channel_ops catch = {.message = on_message,
                                         .stray = on_stray};
    struct end *lonely = &talk->ends[0];
    struct end *catcher = &talk->ends[1];
    ls_channel_close(&lonely->channel);
    ls_channel_close(&catcher->channel);
    assert_ok(ls_channel_open(&lonely->channel, lonely->node, "lonely", &ops,
                              lonely));
    assert_ok(ls_channel_open(&catcher->channel, catcher->node, "catch", &catch,
                              catcher));
    assert_ok(ls_channel_send(lonely->channel, 2, "anyone?", 8));
    assert_reaches(&catcher->messages, 1);
    assert_true(catcher->incarnation == ls_node_incarnation(lonely->node));
    assert_reaches(&lonely->messages, 1);
    assert_string_equal(lonely->data, "anyone?");
    assert_fails(ls_channel_answer(lonely->channel, "", 2, "", 1), LS_EINVAL);
    assert_fails(ls_channel_answer(lonely->channel, "catch", 9, "", 1),
                 LS_ENOENT);
    talk_end(talk);
}

TEST(sending_to_nobody_is_told)
{
    struct talk *talk = talk_start(2, LS_TOPOLOGY_MESH);
    assert_fails(ls_channel_send(talk->ends[0].channel, 77, "x", 1), LS_ENOENT);
    assert_error_has("node 77 is not present");
    ls_node_stop(talk->world.at[0].node, LS_OK);
    assert_fails(ls_channel_send(talk->ends[0].channel, 2, "x", 1), LS_ECLOSED);
    talk_end(talk);
}

TEST(a_channel_that_is_not_open_there_loses_the_message)
{
    struct talk *talk = talk_start(2, LS_TOPOLOGY_MESH);
    ls_channel *other;
    assert_ok(ls_channel_open(&other, talk->world.at[0].node, "other", &ops,
                              &talk->ends[0]));
    assert_ok(ls_channel_send(other, 2, "x", 1));
    assert_ok(ls_channel_send(talk->ends[0].channel, 2, "y", 1));
    assert_reaches(&talk->ends[1].messages, 1);
    assert_int_equal(talk->ends[1].data[0], 'y');
    ls_channel_close(&other);
    talk_end(talk);
}

/* ---- opening and closing ----------------------------------------------- */

TEST(opening_is_refused_when_it_cannot_be)
{
    struct talk *talk = talk_start(1, LS_TOPOLOGY_MESH);
    static const struct ls_channel_ops deaf = {.timer = on_timer};
    ls_node *node = talk->world.at[0].node;
    ls_channel *channel = (ls_channel *)(void *)&channel;
    assert_fails(ls_channel_open(&channel, node, "", &ops, NULL), LS_EINVAL);
    assert_fails(ls_channel_open(&channel, node, "a b", &ops, NULL), LS_EINVAL);
    assert_fails(ls_channel_open(&channel, node, NULL, &ops, NULL), LS_EINVAL);
    assert_error_has("\"\" is not a name of a channel: 1 to 128 printable");
    assert_fails(ls_channel_open(&channel, node, "x", NULL, NULL), LS_EINVAL);
    assert_fails(ls_channel_open(&channel, node, "x", &deaf, NULL), LS_EINVAL);
    assert_fails(ls_channel_open(&channel, node, "talk", &ops, NULL),
                 LS_EEXIST);
    ls_channel_close(&talk->ends[0].channel);
    assert_ok(ls_channel_open(&channel, node, "talk", &ops, NULL));
    ls_channel_close(&channel);
    assert_null(channel);
    ls_channel_close(&channel);
    ls_channel_close(NULL);
    ls_node_stop(node, LS_OK);
    assert_fails(ls_channel_open(&channel, node, "x", &ops, NULL), LS_ECLOSED);
    talk_end(talk);
}

struct closing {
    struct end *end;
    int entered;
};

static void close_it(void *self)
{
    struct closing *closing = self;
    ls_channel_close(&closing->end->channel);
}

TEST(close_waits_for_the_running_op)
{
    struct talk *talk = talk_start(2, LS_TOPOLOGY_MESH);
    struct end *end = &talk->ends[1];
    struct closing closing = {.end = end};
    ls_thread *thread;
    end->slow = true;
    assert_ok(ls_channel_send(talk->ends[0].channel, 2, "x", 1));
    assert_reaches(&end->messages, 1);
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &thread, "close", close_it,
                              &closing));
    assert_fails(ls_thread_join(&thread, ls_deadline(ls_runtime_threads(), 5)),
                 LS_ETIMEDOUT);
    counter_add(&end->may_leave, 1);
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    assert_null(end->channel);
    talk_end(talk);
}

TEST(an_op_may_close_its_channel)
{
    struct talk *talk = talk_start(2, LS_TOPOLOGY_MESH);
    talk->ends[1].closes = true;
    for (int i = 0; i < 3; i++)
        assert_ok(ls_channel_send(talk->ends[0].channel, 2, "x", 1));
    assert_reaches(&talk->ends[1].messages, 1);
    talk_end(talk);
}

struct last_words {
    ls_channel *channel;
    ls_node *node;
    int stopped; /* a status */
};

static void on_closed(void *self)
{
    struct last_words *words = self;
    words->stopped = ls_node_stop(words->node, 0);
    ls_channel_close(&words->channel);
}

/* It runs on the thread that stops the node, which would wait for itself. */
TEST(an_op_that_is_told_that_the_node_stops_may_close_its_channel_and_not_stop)
{
    static const struct ls_channel_ops last = {.message = on_message,
                                               .closed = on_closed};
    struct talk *talk = talk_start(2, LS_TOPOLOGY_MESH);
    struct last_words words = {.node = talk->ends[1].node};
    assert_ok(
        ls_channel_open(&words.channel, words.node, "last", &last, &words));
    assert_ok(ls_node_stop(words.node, 0));
    assert_int_equal(words.stopped, LS_ESTATE);
    assert_null(words.channel);
    assert_ok(ls_node_stop(words.node, 0));
    talk_end(talk);
}

/* ---- members and timers ------------------------------------------------ */

TEST(members_are_told)
{
    struct talk *talk = talk_start(2, LS_TOPOLOGY_MESH);
    assert_reaches(&talk->ends[0].members, 1);
    assert_int_equal(talk->ends[0].member.id, 2);
    assert_int_equal(talk->ends[0].member.state, LS_MEMBER_READY);
    ls_node_stop(talk->world.at[1].node, LS_EABORTED);
    assert_reaches(&talk->ends[0].members, 2);
    assert_int_equal(talk->ends[0].member.state, LS_MEMBER_LEFT);
    assert_int_equal(talk->ends[0].member.reason, LS_EABORTED);
    talk_end(talk);
}

/* What comes between its opening and the next look of the bus thread, which an
 * op of another channel holds. */
TEST(a_new_channel_is_told_of_no_member_before_all_that_are_there)
{
    const struct ls_member ready = {.id = 2, .state = LS_MEMBER_READY};
    struct talk *talk = talk_start(2, LS_TOPOLOGY_MESH);
    struct end *end = &talk->ends[1];
    struct end late = {.from = 0};
    assert_reaches(&end->members, 1);
    end->slow = true;
    assert_ok(ls_channel_send(talk->ends[0].channel, 2, "x", 1));
    assert_reaches(&end->messages, 1);
    counter_init(&late.members);
    assert_ok(ls_channel_open(&late.channel, end->node, "late", &ops, &late));
    channels_member(end->node, &ready);
    assert_int_equal(counter_get(&late.members), 0);
    counter_add(&end->may_leave, 1);
    assert_reaches(&late.members, 1);
    assert_int_equal(late.member.id, 1);
    ls_channel_close(&late.channel);
    assert_int_equal(counter_get(&late.members), 1);
    counter_fini(&late.members);
    talk_end(talk);
}

TEST(a_timer_comes_once_and_not_before_its_time)
{
    struct talk *talk = talk_start(1, LS_TOPOLOGY_MESH);
    struct end *end = &talk->ends[0];
    const int64_t at = ls_now(ls_runtime_threads()) + 3 * LS_NS_PER_MS;
    ls_channel_wake_at(end->channel, at);
    assert_reaches(&end->timers, 1);
    assert_true(end->timer_at >= at);
    ls_channel_wake_at(end->channel, at); /* it has passed: at once */
    assert_reaches(&end->timers, 2);
    assert_int_equal(counter_get(&end->timers), 2);
    talk_end(talk);
}

TEST(the_last_time_that_was_set_counts)
{
    struct talk *talk = talk_start(1, LS_TOPOLOGY_MESH);
    struct end *end = &talk->ends[0];
    const int64_t now = ls_now(ls_runtime_threads());
    ls_channel_wake_at(end->channel, now + 20 * LS_NS_PER_MS);
    ls_channel_wake_at(end->channel, LS_FOREVER); /* not at all */
    ls_channel *other;
    struct end again = {0};
    counter_init(&again.timers);
    assert_ok(ls_channel_open(&other, end->node, "other", &ops, &again));
    ls_channel_wake_at(other, now + 30 * LS_NS_PER_MS);
    assert_reaches(&again.timers, 1); /* later than the first would be */
    assert_int_equal(counter_get(&end->timers), 0);
    ls_channel_close(&other);
    counter_fini(&again.timers);
    talk_end(talk);
}

TEST(a_channel_without_an_op_for_timers_has_none)
{
    static const struct ls_channel_ops timeless = {.message = on_message};
    struct talk *talk = talk_start(1, LS_TOPOLOGY_MESH);
    struct end *end = &talk->ends[0];
    ls_channel *channel;
    assert_ok(ls_channel_open(&channel, end->node, "timeless", &timeless, end));
    ls_channel_wake_at(channel, LS_NOW);
    assert_true(channels_tick(end->node, LS_NOW + 1) == LS_FOREVER);
    ls_channel_close(&channel);
    talk_end(talk);
}

/* ---- an op does not wait ------------------------------------------------ */

static void keep_little(struct ls_node_options *options, size_t index)
{
    (void)index;
    options->window_messages = 16;
}

/* Does what could wait for what only its own thread brings. */
struct eager {
    ls_node *node;
    ls_waiter *waiter;
    struct counter held, done;
    int waited, looked, taken, emitted;
};

static void waits_and_emits(void *self, uint32_t from, uint64_t incarnation,
                            const void *data, size_t size)
{
    struct eager *eager = self;
    const struct ls_emission emission = {.event = "x", .timeout_ms = LONG_MS};
    (void)from, (void)incarnation, (void)data, (void)size;
    eager->waited = ls_wait_for(eager->node, "x", LONG_MS, NULL, NULL);
    eager->taken = ls_waiter_wait(eager->waiter, LONG_MS, NULL, NULL);
    eager->looked = ls_waiter_wait(eager->waiter, 0, NULL, NULL);
    do
        eager->emitted = ls_emit_with(eager->node, &emission);
    while (eager->emitted == LS_OK);
    counter_add(&eager->done, 1);
}

static int holds(void *self, const struct ls_event *event)
{
    struct eager *eager = self;
    (void)event;
    return counter_reaches(&eager->held, 1) ? LS_OK : LS_ETIMEDOUT;
}

TEST(an_op_that_would_wait_for_its_own_thread_is_refused)
{
    static const struct ls_channel_ops busy = {.message = waits_and_emits};
    struct world *world = calloc(1, sizeof *world);
    struct eager eager = {.waited = LS_OK};
    ls_channel *channel, *other;
    counter_init(&eager.held);
    counter_init(&eager.done);
    world_create(world, &(struct world_plan){.n = 2, .tune = keep_little});
    eager.node = world->at[0].node;
    assert_ok(ls_on(world->at[1].node, "x", holds, &eager));
    assert_ok(ls_channel_open(&channel, eager.node, "busy", &busy, &eager));
    assert_ok(ls_channel_open(&other, world->at[1].node, "busy", &busy, NULL));
    world_join(world);
    assert_ok(ls_waiter_create(&eager.waiter, eager.node, "y", 0));
    assert_ok(ls_channel_send_reliable(other, 1, "x", 1));
    assert_reaches(&eager.done, 1);
    assert_int_equal(eager.waited, LS_ESTATE);
    assert_int_equal(eager.taken, LS_ESTATE);
    assert_int_equal(eager.looked, LS_ETIMEDOUT);
    assert_int_equal(eager.emitted, LS_EAGAIN);
    counter_add(&eager.held, 1);
    assert_ok(ls_waiter_destroy(&eager.waiter));
    ls_channel_close(&channel);
    ls_channel_close(&other);
    world_destroy(world);
    counter_fini(&eager.held);
    counter_fini(&eager.done);
    free(world);
}

/* ---- the dispatch thread ----------------------------------------------- */

/* What ran on it, in order: 'e' for an event, else what was asked for. */
struct story {
    ls_channel *channel;
    char text[64];
    struct counter n;
};

static void tell(struct story *story, char what)
{
    story->text[strlen(story->text)] = what;
    counter_add(&story->n, 1);
}

static int on_event(void *self, const struct ls_event *event)
{
    (void)event;
    tell(self, 'e');
    return LS_OK;
}

static void on_dispatched(void *self, int what)
{
    tell(self, (char)what);
}

static void on_asked(void *self, uint32_t from, uint64_t incarnation,
                     const void *data, size_t size)
{
    struct story *story = self;
    (void)from, (void)incarnation, (void)size;
    if (ls_channel_dispatch(story->channel, *(const char *)data) != LS_OK)
        abort();
}

TEST(an_op_on_the_dispatch_thread_comes_after_events)
{
    static const struct ls_channel_ops with_errands = {
        .message = on_asked, .dispatched = on_dispatched};
    struct talk *talk = talk_start(2, LS_TOPOLOGY_MESH);
    ls_node *from = talk->world.at[0].node, *to = talk->world.at[1].node;
    struct story story = {.text = ""};
    struct counter known;
    ls_channel *asker;
    counter_init(&story.n);
    counter_init(&known);
    assert_ok(
        ls_channel_open(&story.channel, to, "errands", &with_errands, &story));
    assert_ok(ls_channel_open(&asker, from, "errands", &with_errands, NULL));
    assert_ok(ls_on(to, "x", on_event, &story));
    assert_ok(ls_on(to, "known", count, &known)); /* and so "x" is, too */
    emit_until_heard(from, "known", &known);
    for (char what = 'a'; what < 'j'; what++) {
        assert_ok(ls_emit_with(
            from, &(struct ls_emission){.event = "x",
                                        .delivery = LS_DELIVERY_RELIABLE,
                                        .timeout_ms = LONG_MS}));
        assert_ok(ls_channel_send_reliable(asker, 2, &what, 1));
    }
    assert_reaches(&story.n, 18);
    assert_string_equal(story.text, "eaebecedeeefegehei");
    assert_ok(ls_channel_dispatch(story.channel, 'z')); /* from any thread */
    assert_reaches(&story.n, 19);
    ls_channel_close(&asker);
    ls_node_stop(to, LS_OK);
    assert_fails(ls_channel_dispatch(story.channel, 'z'), LS_ECLOSED);
    ls_channel_close(&story.channel);
    talk_end(talk);
    counter_fini(&story.n);
    counter_fini(&known);
}

TEST(a_channel_without_an_op_on_the_dispatch_thread_is_refused_one)
{
    struct talk *talk = talk_start(1, LS_TOPOLOGY_MESH);
    assert_fails(ls_channel_dispatch(talk->ends[0].channel, 'z'), LS_EINVAL);
    assert_error_has("\"talk\": there is no op `dispatched`");
    talk_end(talk);
}

static bool is_never_over(void *self)
{
    (void)self;
    return false;
}

TEST(on_a_node_that_is_not_open_nobody_is_listened_to)
{
    struct ls_node_options options;
    ls_node *node = NULL;
    ls_channel *channel;
    ls_mutex mutex;
    ls_cond cond;
    ls_node_options_init(&options);
    options.bind = "inproc://not-open";
    assert_ok(ls_node_create(&node, &options));
    assert_ok(ls_channel_open(&channel, node, "talk", &ops, NULL));
    assert_ok(ls_mutex_init(&mutex, ls_runtime_threads()));
    assert_ok(ls_cond_init(&cond, ls_runtime_threads()));
    assert_ok(ls_channel_listen(channel, LS_FOREVER)); /* nobody is near */
    assert_false(ls_channel_borrow(channel));
    ls_mutex_lock(&mutex);
    assert_int_equal(
        ls_channel_attend(channel, &cond, &mutex, is_never_over, LS_NOW),
        LS_ETIMEDOUT);
    ls_mutex_unlock(&mutex);
    ls_channel_ring(channel);
    ls_channel_close(&channel);
    ls_cond_fini(&cond);
    ls_mutex_fini(&mutex);
    assert_ok(ls_node_destroy(&node));
}
