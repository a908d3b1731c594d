/* The simulated network without faults: what the bus may rely on. */
#include "closer_fixture.h"
#include "network_fixture.h"
#include "test.h"

/* ---- subscriptions ----------------------------------------------------- */

static void prefixes(struct net *net)
{
    struct ends e;
    ends_open(net, &e);
    end_publish(&e.pub, "y1");
    end_publish(&e.pub, "x1");
    end_publish(&e.pub, "x");
    end_publish(&e.pub, "");
    end_publish(&e.pub, "xx2");
    assert_hears(&e.sub, "x1 x xx2");
    end_subscribe(&e.sub, "y1", true);
    end_subscribe(&e.sub, "y", true);
    assert_hears(&e.pub, "+y1 +y");
    end_publish(&e.pub, "y12"); /* fits two, comes once */
    end_subscribe(&e.sub, "x", false);
    assert_hears(&e.pub, "-x");
    end_publish(&e.pub, "x3");
    end_publish(&e.pub, "y0");
    assert_hears(&e.sub, "y12 y0");
    ends_close(&e);
}

TEST(messages_go_to_those_who_subscribed_to_a_prefix)
{
    net_run(NULL, prefixes);
}

static void repeated(struct net *net)
{
    struct ends e;
    ends_open(net, &e);
    end_subscribe(&e.sub, "x", true);
    assert_hears(&e.pub, "+x");
    end_subscribe(&e.sub, "x", false);
    end_subscribe(&e.sub, "z", true);
    assert_hears(&e.pub, "+z"); /* it is still subscribed to x */
    end_publish(&e.pub, "x1");
    assert_hears(&e.sub, "x1");
    end_subscribe(&e.sub, "x", false);
    assert_hears(&e.pub, "-x");
    assert_true(transport_link_subscribe(e.sub.link, (const uint8_t *)"", 0,
                                         true) == LS_EINVAL);
    ends_close(&e);
}

TEST(a_topic_may_be_subscribed_to_more_than_once)
{
    net_run(NULL, repeated);
}

static void withdrawn(struct net *net)
{
    struct ends e;
    ends_open(net, &e);
    end_publish(&e.pub, "x1");
    end_subscribe(&e.sub, "a", true);
    assert_hears(&e.pub, "+a");
    assert_hears(&e.sub, "x1");
    end_publish(&e.pub, "x2");
    transport_link_close(&e.sub.link, false);
    end_listen(&e.pub, 0);
    assert_string_equal(e.pub.story, ""); /* it is told on the way */
    assert_hears(&e.pub, "-a -x");
    assert_int_equal(net_stats(net).broken, 1);
    assert_int_equal(net_stats(net).disconnects, 1);
    assert_balanced(net);
    ends_close(&e);
}

TEST(a_link_that_is_closed_takes_its_subscriptions_back)
{
    net_run(NULL, withdrawn);
}

static void closed_in_the_middle(struct net *net)
{
    static const struct transport_events events = {.message = closer_message,
                                                   .take = closer_take};
    struct closer closer;
    struct end pub;
    end_open(&pub, net->hosts[0], "tcp://127.0.0.1:21500");
    closer_open(&closer, ls_host_runtime(net->hosts[1]),
                "tcp://127.0.0.1:21501", NULL, pub.endpoint);
    assert_hears(&pub, "+x +x +x +x");
    end_publish(&pub, "x1");
    end_publish(&pub, "x2");
    net_rest(net, 100);
    for (int i = 0; i < 3; i++)
        (void)transport_poll(closer.transport, LS_NOW, &events, &closer);
    assert_int_equal(closer.n_heard, 1);
    assert_balanced(net);
    transport_close(&closer.transport);
    end_close(&pub);
}

TEST(whoever_is_told_of_a_message_may_close_links)
{
    net_run(NULL, closed_in_the_middle);
}

static void unwanted(struct net *net)
{
    struct ends e;
    ends_open(net, &e);
    end_publish(&e.pub, "x1");
    end_subscribe(&e.sub, "x", false);
    assert_hears(&e.sub, "x1");
    assert_hears(&e.pub, "-x");
    end_publish(&e.pub, "x2");
    end_listen(&e.sub, 10);
    assert_string_equal(e.sub.story, "");
    ends_close(&e);
}

TEST(what_was_on_its_way_when_it_was_taken_back_comes)
{
    net_run(NULL, unwanted);
}

/* ---- up ---------------------------------------------------------------- */

static void sent_up(struct net *net)
{
    struct ends e;
    struct end other;
    ends_open(net, &e);
    end_open(&other, net->hosts[2], "tcp://127.0.0.1:21502");
    end_dial(&other, e.pub.endpoint);
    end_subscribe(&other, "x", true);
    assert_hears(&e.pub, "+x");
    assert_ok(end_send_up(&e.sub, "x1"));
    assert_ok(end_send_up(&e.sub, "nobody subscribed to this"));
    end_subscribe(&e.sub, "y", true);
    assert_hears(&e.pub, "^x1 ^nobody subscribed to this +y");
    end_listen(&other, 10);
    assert_string_equal(other.story, "");
    assert_int_equal(net_stats(net).delivered, 2);
    assert_balanced(net);
    end_close(&other);
    ends_close(&e);
}

TEST(what_is_sent_up_comes_to_that_peer_alone_in_order)
{
    net_run(NULL, sent_up);
}

static void up_to_nobody(struct net *net)
{
    struct ends e;
    ends_open(net, &e);
    assert_ok(end_send_up(&e.sub, "1"));
    end_close(&e.pub);
    end_listen(&e.sub, 10);
    assert_int_equal(net_stats(net).broken, 1);
    assert_true(end_send_up(&e.sub, "2") == LS_EAGAIN);
    assert_balanced(net);
    end_close(&e.sub);
}

TEST(what_is_sent_up_is_lost_with_the_connection)
{
    net_run(NULL, up_to_nobody);
}

static void up_unread(struct net *net)
{
    struct ends e;
    ends_open(net, &e);
    assert_ok(end_send_up(&e.sub, "1"));
    net_rest(net, 100);
    assert_int_equal(net_stats(net).waiting, 1);
    end_close(&e.pub); /* it has come, and nobody reads it */
    assert_int_equal(net_stats(net).broken, 1);
    assert_balanced(net);
    end_close(&e.sub);
}

TEST(what_was_sent_up_and_not_read_is_lost)
{
    net_run(NULL, up_unread);
}

/* ---- connections ------------------------------------------------------- */

static void late(struct net *net)
{
    struct end pub, sub;
    end_open(&sub, net->hosts[1], "inproc://sub");
    end_dial(&sub, "tcp://127.0.0.1:21500");
    end_subscribe(&sub, "x", true);
    end_subscribe(&sub, "b", true);
    end_subscribe(&sub, "bb", true);
    end_subscribe(&sub, "a", true);
    net_rest(net, 5000);
    end_open(&pub, net->hosts[0], "tcp://127.0.0.1:21500-21999");
    assert_hears(&pub, "+a +b +bb +x"); /* in the order of their bytes */
    end_publish(&pub, "x1");
    assert_hears(&sub, "x1");
    end_close(&sub);
    end_close(&pub);
}

TEST(who_dials_too_early_is_connected_later)
{
    net_run(NULL, late);
}

static void last_words(struct net *net)
{
    struct ends e;
    struct end next;
    ends_open(net, &e);
    end_publish(&e.pub, "x1");
    end_publish(&e.pub, "x2");
    transport_unbind(e.pub.transport);
    transport_lock(e.pub.transport);
    assert_fails(transport_publish(e.pub.transport, "x3", 2, NULL, 0),
                 LS_ECLOSED);
    transport_unlock(e.pub.transport);
    transport_close(&e.pub.transport);
    assert_hears(&e.sub, "x1 x2");
    end_open(&next, net->hosts[2], "tcp://127.0.0.1:21500");
    assert_hears(&next, "+x");
    end_publish(&next, "x4");
    assert_hears(&e.sub, "x4");
    assert_int_equal(net_stats(net).connects, 2);
    assert_int_equal(net_stats(net).disconnects, 1);
    end_close(&e.sub);
    end_close(&next);
}

TEST(what_was_published_before_the_end_comes)
{
    net_run(NULL, last_words);
}

static void in_order(struct net *net)
{
    struct ends e;
    char wanted[1024] = "", word[16];
    ends_open(net, &e);
    for (int i = 0; i < 100; i++) {
        (void)snprintf(word, sizeof word, "x%d", i);
        end_publish(&e.pub, word);
        (void)snprintf(wanted + strlen(wanted), sizeof word, "%s%s",
                       i == 0 ? "" : " ", word);
    }
    assert_hears(&e.sub, wanted);
    assert_int_equal(net_stats(net).delivered, 100);
    assert_int_equal(net_stats(net).reordered, 0);
    assert_int_equal(net_stats(net).waiting, 0);
    assert_int_equal(net_stats(net).waiting_bytes, 0);
    ends_close(&e);
}

TEST(a_connection_keeps_the_order)
{
    net_run(&(struct ls_network_path){.delay_ns = LS_NS_PER_MS,
                                      .jitter_ns = 50 * LS_NS_PER_MS},
            in_order);
}

/* ---- frames ------------------------------------------------------------ */

static void release_once(void *data, void *hint)
{
    (void)data;
    ++*(int *)hint;
}

static void frames(struct net *net)
{
    static char body[] = "body";
    struct ends e;
    struct end other;
    struct message copy = {0};
    int released = 0;
    ends_open(net, &e);
    transport_lock(e.pub.transport);
    assert_ok(transport_publish_owned(e.pub.transport, "x1", 2, body, 4,
                                      release_once, &released));
    transport_unlock(e.pub.transport);
    assert_int_equal(released, 1);
    e.sub.keep = true;
    assert_hears(&e.sub, "x1|body");
    transport_copy(&copy, &e.sub.message);
    transport_release(&e.sub.message);
    assert_memory_equal(copy.tail, "body", 4);

    end_open(&other, net->hosts[2], "tcp://127.0.0.1:21502");
    end_dial(&other, e.sub.endpoint);
    end_subscribe(&other, "x", true);
    assert_hears(&e.sub, "+x");
    transport_lock(e.sub.transport);
    assert_ok(transport_republish(e.sub.transport, &copy));
    transport_unlock(e.sub.transport);
    transport_release(&copy);
    assert_hears(&other, "x1|body");
    end_close(&other);
    ends_close(&e);
}

TEST(two_frames_stay_two_when_copied_and_passed_on)
{
    net_run(NULL, frames);
}

/* ---- waiting ----------------------------------------------------------- */

static void waits(struct net *net)
{
    struct end end;
    end_open(&end, net->hosts[0], "inproc://waits");
    const int64_t before = net_now(net);
    const int64_t deadline = ls_now(end.runtime) + LS_NS_PER_S;
    (void)transport_poll(end.transport, deadline, &end_events, &end);
    assert_true(net_now(net) >= before + LS_NS_PER_S);
    transport_wake(end.transport);
    (void)transport_poll(end.transport, LS_FOREVER, &end_events, &end);
    assert_true(net_now(net) < before + 2 * LS_NS_PER_S);
    end_close(&end);
}

TEST(poll_ends_at_its_deadline_or_when_woken)
{
    net_run(NULL, waits);
}

/* ---- addresses --------------------------------------------------------- */

static void bind_fails(struct net *net, size_t host, const char *bind,
                       int wanted, const char *text)
{
    transport *t = NULL;
    char endpoint[LS_ENDPOINT_MAX + 1];
    assert_fails(open_transport(&t, ls_host_runtime(net->hosts[host]), bind,
                                NULL, endpoint),
                 wanted);
    assert_error_has(text);
}

static void addresses(struct net *net)
{
    struct end first, second, any;
    end_open(&first, net->hosts[0], "tcp://127.0.0.1:21500-21501");
    assert_string_equal(first.endpoint, "tcp://127.0.0.1:21500");
    end_open(&second, net->hosts[1], "tcp://127.0.0.1:21500-21501");
    assert_string_equal(second.endpoint, "tcp://127.0.0.1:21501");
    bind_fails(net, 2, "tcp://127.0.0.1:21500-21501", LS_EADDRINUSE,
               "every port");
    bind_fails(net, 2, "tcp://localhost:21500", LS_EADDRINUSE, "21500");
    bind_fails(net, 2, "tcp://a:21500", LS_EINVAL, "no address of this host");
    bind_fails(net, 2, "tcp://127.0.0.1:2-1", LS_EINVAL, "1 to 65535");
    bind_fails(net, 2, "tcp://127.0.0.1:99999", LS_EINVAL, "1 to 65535");
    bind_fails(net, 2, "tcp://127.0.0.1", LS_EINVAL, "a port");
    bind_fails(net, 2, "udp://127.0.0.1:1", LS_EINVAL, "none of tcp://");
    end_open(&any, net->hosts[2], "tcp://127.0.0.1:*");
    end_close(&any);
    end_open(&any, net->hosts[2], "inproc://any");
    bind_fails(net, 3, "inproc://any", LS_EADDRINUSE, "inproc://any");
    end_close(&any);
    end_open(&any, net->hosts[3], "inproc://any");
    end_close(&any);
    end_close(&second);
    end_close(&first);
}

TEST(an_address_is_bound_once)
{
    net_run(NULL, addresses);
}

static void named(struct net *net)
{
    struct end pub, sub;
    char why[256];
    end_open(&pub, net->hosts[0], "tcp://0.0.0.0:21500");
    assert_string_equal(pub.endpoint, "tcp://0.0.0.0:21500");
    end_open(&sub, net->hosts[1], "tcp://b:21500");
    end_dial(&sub, "tcp://a:21500");
    end_subscribe(&sub, "x", true);
    assert_hears(&pub, "+x");
    assert_false(transport_explain(sub.transport, "tcp://a:21500", false, 0,
                                   why, sizeof why));
    assert_string_equal(why, "");
    assert_false(transport_explain(sub.transport, "tcp://nowhere:1", false, 0,
                                   why, sizeof why));
    assert_string_equal(why, "the network has no host \"nowhere\"");
    end_close(&sub);
    end_close(&pub);
}

TEST(a_host_is_reached_by_its_name)
{
    net_run(NULL, named);
}

/* ---- probes ------------------------------------------------------------ */

static enum transport_probed probe(struct end *end, const char *endpoint)
{
    const unsigned before = end->n_answers;
    assert_ok(transport_probe(end->transport, endpoint));
    end_listen(end, 1100);
    assert_int_equal(end->n_answers, before + 1);
    return end->answer;
}

static void probes(struct net *net)
{
    struct ends e;
    ends_open(net, &e);
    assert_int_equal(probe(&e.sub, e.pub.endpoint), TRANSPORT_LISTENS);
    ls_host_pause(net->hosts[0]);
    assert_int_equal(probe(&e.sub, e.pub.endpoint), TRANSPORT_LISTENS);
    ls_host_resume(net->hosts[0]);
    assert_ok(ls_network_cut(net->network, net->hosts[0], net->hosts[1]));
    assert_int_equal(probe(&e.sub, e.pub.endpoint), TRANSPORT_UNKNOWN);
    ls_network_heal(net->network, net->hosts[0], net->hosts[1]);
    assert_int_equal(probe(&e.sub, "tcp://nowhere:1"), TRANSPORT_UNKNOWN);
    assert_int_equal(probe(&e.sub, "tcp://127.0.0.1:1"), TRANSPORT_REFUSES);
    assert_true(transport_probe(e.sub.transport, "udp://a:1") == LS_EINVAL);
    ls_network_kill(net->network, net->hosts[0]);
    assert_int_equal(probe(&e.sub, e.pub.endpoint), TRANSPORT_REFUSES);
    assert_int_equal(probe(&e.pub, e.sub.endpoint), TRANSPORT_REFUSES);
    assert_ok(transport_probe(e.sub.transport, e.pub.endpoint));
    ends_close(&e); /* nobody waits for that answer any more */
}

TEST(a_probe_tells_the_dead_from_the_cut_off)
{
    net_run(NULL, probes);
}

/* ---- the object -------------------------------------------------------- */

TEST(a_path_is_checked)
{
    static const struct ls_network_path wrong[] = {
        {.loss = -0.1},         {.loss = 1.1},    {.duplicate = 2},
        {.reorder = -1},        {.delay_ns = -1}, {.jitter_ns = -1},
        {.delay_ns = INT64_MAX}};
    struct net net;
    ls_network *none = (ls_network *)(void *)&none;
    net_open(&net, 1, NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_fails(ls_network_create(&none, net.simulation, &wrong[i]),
                     LS_EINVAL);
        assert_fails(ls_network_shape(net.network, NULL, NULL, &wrong[i]),
                     LS_EINVAL);
    }
    assert_null(none);
    net_close(&net);
}

TEST(a_host_joins_once)
{
    struct net net;
    net_open(&net, 1, NULL);
    assert_fails(ls_network_join(net.network, net.hosts[0]), LS_EEXIST);
    assert_error_has("\"a\"");
    net_close(&net);
    ls_network_destroy(NULL);
    ls_network_destroy(&net.network);
}
