/* Which addresses are dialled, how many of those that only others name, and
 * who is asked whether it still runs: by a node that has stopped, so that
 * nothing happens by itself. */
#include "bus.h"
#include "links.h"
#include "node_fixture.h"
#include "test.h"

enum { MOST = 256, MOST_HEARSAY = 16 }; /* without an answer */

static ls_node *node;

static void begin_with(const char *const *attach, size_t n)
{
    struct ls_node_options options = usual(1);
    options.attach = attach;
    options.n_attach = n;
    node = started(&options);
    assert_ok(ls_node_stop(node, LS_OK));
    transport_lock(node->transport);
}

static void begin(void)
{
    begin_with(NULL, 0);
}

static void end(void)
{
    for (struct link *link = node->links; link != NULL; link = link->next)
        link->closing = true;
    links_close_marked(node);
    assert_null(node->links);
    transport_unlock(node->transport);
    assert_ok(ls_node_destroy(&node));
}

static const char *address(unsigned n)
{
    static char text[32];
    (void)snprintf(text, sizeof text, "inproc://nobody-%u", n);
    return text;
}

static struct link *dialled(unsigned n)
{
    return link_find(node, address(n));
}

/* Whom a peer names, and is known by nothing else. */
static int by_hearsay(unsigned n)
{
    return link_dial(node, address(n), false, true, n);
}

/* Who has said it itself: it is not known as whom yet. */
static int found(unsigned n)
{
    return link_dial(node, address(n), false, false, 0);
}

static int given(unsigned n)
{
    return link_dial(node, address(n), true, false, 0);
}

TEST(of_those_that_others_name_so_many_are_dialled_until_one_answers)
{
    struct peer other = {.member = {.id = 3}};
    unsigned n = 2;
    begin();
    for (; n < 2 + MOST_HEARSAY; n++)
        assert_ok(by_hearsay(n));
    assert_fails(by_hearsay(n), LS_ELIMIT);
    assert_error_has("too many addresses that peers named did not answer");
    assert_null(dialled(n));
    assert_ok(found(n)); /* it says so itself */
    assert_fails(by_hearsay(n + 1), LS_ELIMIT);
    dialled(3)->peer = &other;
    assert_ok(by_hearsay(n + 1));
    dialled(3)->peer = NULL;
    end();
}

TEST(of_all_but_those_that_the_user_gave_there_is_a_most_too)
{
    unsigned n = 2;
    begin();
    for (unsigned i = 0; i < 3; i++)
        assert_ok(given(n++));
    for (unsigned i = 0; i < MOST; i++)
        assert_ok(found(n++));
    assert_fails(found(n), LS_ELIMIT);
    assert_fails(by_hearsay(n), LS_ELIMIT);
    assert_ok(given(n));
    end();
}

TEST(an_address_is_dialled_once_and_the_own_never)
{
    begin();
    assert_ok(link_dial(node, node->me.endpoint, true, false, 0));
    assert_null(node->links);
    assert_ok(by_hearsay(2));
    struct link *const link = node->links;
    assert_true(link->hearsay && link->known && !link->attached);
    assert_int_equal(link->id, 2);
    assert_true(link->redial_ns == node->options.silence_ms * LS_NS_PER_MS);
    assert_ok(found(2)); /* it says so itself now */
    assert_ok(given(2));
    assert_ptr_equal(node->links, link);
    assert_null(link->next);
    assert_true(!link->hearsay && link->attached);
    assert_true(link->redial_ns == LINK_REDIAL_NS);
    end();
}

static int named(unsigned n, uint32_t id)
{
    return link_dial(node, address(n), false, true, id);
}

/* By a member whose heartbeats name somebody else there each time. */
TEST(an_address_is_dialled_as_each_that_others_name_for_a_silence)
{
    begin();
    assert_ok(by_hearsay(2));
    struct link *const link = dialled(2);
    assert_fails(named(2, 3), LS_ELIMIT);
    assert_error_has("inproc://nobody-2 is not dialled as node 3");
    assert_int_equal(link->id, 2);
    node->loop.now = link->heard_at + node->options.silence_ms * LS_NS_PER_MS;
    assert_ok(named(2, 3));
    assert_int_equal(link->id, 3);
    assert_fails(named(2, 4), LS_ELIMIT);
    membership_note(&node->world, 4, 44)->n_present = 1;
    assert_ok(named(2, 4)); /* it says so itself */
    assert_int_equal(link->id, 4);
    end();
}

static int no_socket(transport *t, transport_link **out, void *owner)
{
    (void)t, (void)out, (void)owner;
    return ls_error(LS_ELIMIT, "no more sockets");
}

/* It is time to dial anew. */
static void redial(const struct link *link)
{
    node->world.leaving = false;
    node->loop.now = link->heard_at + link->redial_ns;
    (void)links_tick(node, node->loop.now);
    links_close_marked(node);
}

TEST(who_stood_still_itself_gives_up_nobody_that_it_could_not_hear)
{
    begin();
    assert_ok(by_hearsay(2));
    struct link *const link = dialled(2);
    const int64_t late = 5 * link->redial_ns;
    const int64_t now = link->heard_at + late;
    node->world.leaving = false;
    links_excuse(node, late, now);
    (void)links_tick(node, now);
    assert_false(link->closing);
    redial(link); /* and then after as long as ever */
    assert_null(dialled(2));
    node->world.leaving = true;
    end();
}

/* As a client that has left before this node dialled it. */
TEST(who_is_not_named_any_more_is_given_up_and_that_is_no_refusal)
{
    begin();
    assert_ok(by_hearsay(2));
    assert_ok(by_hearsay(3));
    struct link *const named = dialled(3);
    node->loop.now = named->heard_at + named->redial_ns - 1;
    assert_ok(by_hearsay(3)); /* by a heartbeat */
    redial(dialled(2));
    assert_null(dialled(2));
    assert_null(dialled(3));
    struct ls_refusal refusal;
    transport_unlock(node->transport);
    assert_int_equal(ls_node_refusals(node, &refusal, 1), 1);
    transport_lock(node->transport);
    assert_has(refusal.why, "spoke of node 3 there, and nobody answers");
    node->world.leaving = true;
    end();
}

TEST(what_was_heard_after_ones_own_stop_is_not_of_a_time_to_come)
{
    begin();
    assert_ok(given(2));
    const int64_t now = dialled(2)->heard_at + 1;
    links_excuse(node, 2 * LS_NS_PER_S, now);
    assert_true(dialled(2)->heard_at == now);
    end();
}

/* Where node 2 is away, and node 3 waits for a place: what shows that node 2
 * has begun a new life gives that place to node 3, which says to be there too.
 */
TEST(who_answers_where_another_is_dialled_by_that_is_not_heard)
{
    static const char at[] = "inproc://nobody-2";
    begin();
    node->world.leaving = false;
    assert_ok(link_dial(node, at, true, true, 2));
    struct link *const link = dialled(2);
    struct member *const gone = membership_note(&node->world, 2, 1);
    gone->endpoint = at;
    gone->state = LS_MEMBER_READY;
    gone->was_ready = gone->linked = true;
    gone->away_at = 1;
    gone->heard_at = 1;
    link->peer = peer_of(gone);
    link->life = 1;
    peer_of(gone)->link = link;
    struct member *const next = membership_note(&node->world, 3, 1);
    assert_ok(member_texts(
        next, &(struct wire_presence){.endpoint = "inproc://nobody-2"}));
    next->barred = true;
    next->n_present = 1;
    const struct transport_ops *const ops = node->transport->ops;
    struct transport_ops none = *ops;
    none.link_open = no_socket;
    node->transport->ops = &none;
    struct wire_header header = bus_header(node, WIRE_KIND_PROOF);
    struct message message = {.n_frames = 1};
    uint8_t head[1 + WIRE_CHALLENGE_SIZE];
    memcpy(head + 1, link->challenge, WIRE_CHALLENGE_SIZE);
    message.head = head;
    header.origin = 2;
    header.incarnation = 7;
    answer_read(node, link, &message, &header);
    assert_int_equal(gone->incarnation, 7);
    assert_null(link->transport);
    assert_int_equal(link->id, 3);
    assert_int_equal(link->life, 1);
    node->transport->ops = ops;
    end();
}

static void count_line(void *self, const char *line)
{
    *(int *)self += strstr(line, "node 2") != NULL ? 1 : 0;
}

/* Over a connection that is kept for whoever comes. */
TEST(who_says_to_be_another_life_each_time_does_not_fill_the_log)
{
    int lines = 0;
    bool early;
    begin();
    assert_ok(given(2));
    struct link *const link = dialled(2);
    struct member *const member = membership_note(&node->world, 2, 1);
    link->peer = peer_of(member);
    peer_of(member)->link = link;
    member->linked = true;
    ls_log_redirect(count_line, &lines);
    for (uint64_t life = 2; life < 100; life++) {
        struct wire_header header = bus_header(node, WIRE_KIND_CHANNEL);
        header.origin = 2;
        header.incarnation = life;
        member->heard_at = 1;
        assert_ptr_equal(answer_origin(node, link, &header, &early),
                         peer_of(member));
        assert_int_equal(member->incarnation, life);
    }
    ls_log_redirect(NULL, NULL);
    assert_int_equal(lines, 0);
    end();
}

TEST(where_there_was_no_socket_one_that_the_user_gave_is_dialled_again)
{
    begin();
    assert_ok(given(2));
    struct link *const link = dialled(2);
    const struct transport_ops *const ops = node->transport->ops;
    struct transport_ops none = *ops;
    none.link_open = no_socket;
    node->transport->ops = &none;
    for (int i = 0; i < 3; i++) {
        redial(link);
        assert_ptr_equal(dialled(2), link);
        assert_null(link->transport);
    }
    /* Nothing is subscribed to there meanwhile. */
    link_retire(node, link, true);
    link_present(node, link);
    node->transport->ops = ops;
    redial(link);
    assert_ptr_equal(dialled(2), link);
    assert_non_null(link->transport);
    end();
}

/* As when there are no more descriptors. */
static void forget(struct message *message)
{
    message->n_frames = 0;
}

static const struct transport_ops copied = {.release = forget};

/* It has sent more than it was granted. */
static void send_too_much(struct peer *peer)
{
    struct wire_header header = bus_header(node, WIRE_KIND_EVENT);
    struct message *const message = bus_take(node);
    assert_non_null(message);
    header.origin = peer->member.id;
    header.incarnation = peer->member.incarnation;
    header.name = "x";
    header.name_size = 1;
    header.data = message->small;
    size_t n = wire_topic_inbox(message->small, node->options.id);
    n += wire_header_write(message->small + n, &header);
    message->transport = &copied;
    message->n_frames = 1;
    message->head = message->small;
    message->head_size = n;
    peer->hop->counts = true;
    peer->hop->got_messages = peer->hop->kept_messages = 1u << 30;
    transport_unlock(node->transport);
    bus_near(node, peer, message);
    transport_lock(node->transport);
}

TEST(who_is_cut_off_leaves_its_address_to_who_is_there_too)
{
    static const char at[] = "inproc://nobody-2";
    begin();
    node->world.leaving = false;
    assert_ok(by_hearsay(2));
    struct link *const link = dialled(2);
    struct member *const out = membership_note(&node->world, 2, 1);
    out->endpoint = at;
    out->state = LS_MEMBER_READY;
    out->was_ready = out->linked = true;
    assert_ok(flow_open(peer_of(out)));
    link->peer = peer_of(out);
    link->life = 1;
    peer_of(out)->link = link;
    struct member *const heir = membership_note(&node->world, 3, 1);
    heir->endpoint = at;
    heir->n_present = 1;
    send_too_much(peer_of(out));
    assert_int_equal(out->state, LS_MEMBER_LOST);
    assert_int_equal(out->reason, LS_EPROTO);
    assert_int_equal(link->id, 3);
    assert_false(link->closing);
    end();
}

/* As of a member that was cut off, whose socket is closed only after that. */
TEST(nor_is_one_that_is_to_be_met_again_forgotten)
{
    begin_with((const char *const[]){"inproc://nobody-9"}, 1);
    for (struct link *link = node->links; link != NULL; link = link->next)
        link->closing = true;
    links_close_marked(node);
    assert_true(node->world.formed);
    const struct transport_ops *const ops = node->transport->ops;
    struct transport_ops none = *ops;
    none.link_open = no_socket;
    node->transport->ops = &none;
    atomic_store(&node->join.dial_wanted, true);
    join_dial(node);
    assert_null(dialled(9));
    node->transport->ops = ops;
    join_dial(node);
    assert_true(dialled(9)->attached);
    assert_int_equal(node->world.fatal, LS_OK);
    end();
}

TEST(who_cannot_be_asked_whether_it_runs_is_not_taken_for_gone)
{
    begin();
    struct member *const member = membership_note(&node->world, 2, 22);
    assert_non_null(member);
    member->endpoint = "nonsense";
    member->state = LS_MEMBER_READY;
    member->away_at = 1;
    member->probe = PROBE_WANTED;
    world_probe(node);
    assert_int_equal(member->probe, PROBE_WANTED); /* nobody has asked */
    node->world.probes_wanted = true;
    world_probe(node);
    assert_int_not_equal(member->probe, PROBE_WANTED);
    assert_int_equal(member->state, LS_MEMBER_READY);
    end();
}
