/* Faults of the simulated network: each does what network.h says. */
#include "network_fixture.h"
#include "test.h"

static void publish_many(struct ends *e, int n)
{
    for (int i = 0; i < n; i++)
        end_publish(&e->pub, "x");
}

/* How many words were heard; the story begins anew. */
static int heard(struct end *end)
{
    int n = end->story[0] != '\0' ? 1 : 0;
    for (const char *at = end->story; *at != '\0'; at++)
        n += *at == ' ' ? 1 : 0;
    end->story[0] = '\0';
    return n;
}

/* ---- one by one -------------------------------------------------------- */

static void losing(struct net *net)
{
    struct ends e;
    ends_open(net, &e);
    publish_many(&e, 1000);
    end_listen(&e.sub, 100);
    const struct ls_network_stats s = net_stats(net);
    assert_int_equal(heard(&e.sub), s.delivered);
    assert_int_equal(s.sent, 1000);
    assert_in_range(s.lost, 50, 150);
    assert_balanced(net);
    ends_close(&e);
}

TEST(lost_messages_are_counted)
{
    net_run(&(struct ls_network_path){.loss = 0.1}, losing);
}

static void doubling(struct net *net)
{
    struct ends e;
    ends_open(net, &e);
    publish_many(&e, 1000);
    end_listen(&e.sub, 100);
    const struct ls_network_stats s = net_stats(net);
    assert_int_equal(heard(&e.sub), 1000 + s.duplicated);
    assert_in_range(s.duplicated, 50, 150);
    assert_balanced(net);
    ends_close(&e);
}

TEST(doubled_messages_are_counted)
{
    net_run(&(struct ls_network_path){.duplicate = 0.1}, doubling);
}

static void overtaking(struct net *net)
{
    struct ends e;
    char word[16];
    int last = -1, overtaken = 0;
    ends_open(net, &e);
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(word, sizeof word, "x%d", i);
        end_publish(&e.pub, word);
    }
    end_listen(&e.sub, 100);
    for (const char *at = strchr(e.sub.story, 'x'); at != NULL;
         at = strchr(at + 1, 'x')) {
        const int n = atoi(at + 1);
        overtaken += n < last ? 1 : 0;
        last = n > last ? n : last;
    }
    assert_int_equal(heard(&e.sub), 1000);
    assert_true(overtaken > 50);
    assert_int_equal(net_stats(net).reordered, overtaken);
    ends_close(&e);
}

TEST(overtaken_messages_are_counted)
{
    net_run(&(struct ls_network_path){.reorder = 0.1}, overtaking);
}

static void up(struct net *net)
{
    struct ends e;
    ends_open(net, &e);
    for (int i = 0; i < 1000; i++)
        assert_ok(end_send_up(&e.sub, "x"));
    end_listen(&e.pub, 100);
    const struct ls_network_stats s = net_stats(net);
    assert_int_equal(s.sent, 1000);
    assert_int_equal(heard(&e.pub), s.delivered);
    assert_in_range(s.lost, 50, 150);
    assert_in_range(s.duplicated, 50, 150);
    assert_in_range(s.reordered, 50, 500);
    assert_balanced(net);
    ends_close(&e);
}

TEST(what_is_sent_up_is_not_spared)
{
    net_run(&(struct ls_network_path){.loss = 0.1,
                                      .duplicate = 0.1,
                                      .reorder = 0.1},
            up);
}

static void every_fault(struct net *net)
{
    struct ends e;
    ends_open(net, &e);
    end_subscribe(&e.sub, "a", true);
    end_subscribe(&e.sub, "b", true);
    end_subscribe(&e.sub, "b", false);
    assert_hears(&e.pub, "+a +b -b");
    ends_close(&e);
}

TEST(subscriptions_are_spared)
{
    net_run(&(struct ls_network_path){.loss = 1, .duplicate = 1, .reorder = 1},
            every_fault);
}

static void narrow(struct net *net)
{
    char text[1001] = "x";
    struct ends e;
    memset(text + 1, '.', sizeof text - 2);
    ends_open(net, &e);
    for (int i = 0; i < 4; i++)
        end_publish(&e.pub, text); /* a second each */
    end_listen(&e.sub, 2500);
    assert_int_equal(heard(&e.sub), 2);
    assert_int_equal(net_stats(net).waiting, 2);
    assert_int_equal(net_stats(net).waiting_bytes, 2000);
    end_listen(&e.sub, 2500);
    assert_int_equal(heard(&e.sub), 2);
    ends_close(&e);
}

TEST(a_narrow_path_takes_its_time)
{
    net_run(&(struct ls_network_path){.bytes_per_s = 1000}, narrow);
}

static void shaping(struct net *net)
{
    ls_host *a = net->hosts[0], *b = net->hosts[1];
    const struct ls_network_path deaf = {.loss = 1}, fine = {.loss = 0};
    struct ends e;
    ends_open(net, &e);
    assert_ok(ls_network_shape(net->network, b, a, &deaf)); /* the other way */
    end_publish(&e.pub, "x1");
    assert_ok(ls_network_shape(net->network, a, NULL, &deaf));
    end_publish(&e.pub, "x2");
    assert_ok(ls_network_shape(net->network, a, b, &fine));
    end_publish(&e.pub, "x3");
    assert_ok(ls_network_shape(net->network, NULL, NULL, &deaf));
    end_publish(&e.pub, "x4");
    assert_ok(ls_network_shape(net->network, NULL, NULL, &fine));
    end_publish(&e.pub, "x5");
    assert_hears(&e.sub, "x1 x3 x5");
    ends_close(&e);
}

TEST(the_latest_shape_that_fits_holds)
{
    net_run(NULL, shaping);
}

/* ---- cuts -------------------------------------------------------------- */

static void short_cut(struct net *net)
{
    struct ends e;
    ends_open(net, &e);
    end_publish(&e.pub, "x1");
    assert_ok(ls_network_cut(net->network, net->hosts[0], net->hosts[1]));
    end_publish(&e.pub, "x2");
    end_subscribe(&e.sub, "y", true); /* the other way is open */
    assert_hears(&e.pub, "+y");
    end_listen(&e.sub, 2900);
    assert_string_equal(e.sub.story, "");
    ls_network_heal(net->network, NULL, net->hosts[1]);
    end_publish(&e.pub, "x3");
    assert_hears(&e.sub, "x1 x2 x3");
    end_listen(&e.sub, 1000);
    assert_int_equal(net_stats(net).disconnects, 0);
    assert_int_equal(net_stats(net).broken, 0);
    ends_close(&e);
}

TEST(a_short_cut_delays_and_loses_nothing)
{
    net_run(NULL, short_cut);
}

/* from, to: which way of the two is cut. */
static void long_cut(struct net *net, const ls_host *from, const ls_host *to)
{
    struct ends e;
    ends_open(net, &e);
    assert_ok(ls_network_cut(net->network, from, to));
    const int64_t since = net_now(net);
    end_publish(&e.pub, "x1");
    const int64_t deadline = ls_now(e.pub.runtime) + 10 * LS_NS_PER_S;
    while (e.pub.story[0] == '\0' && ls_now(e.pub.runtime) < deadline)
        (void)transport_poll(e.pub.transport, deadline, &end_events, &e.pub);
    assert_hears(&e.pub, "-x");
    assert_true(net_now(net) >= since + 3 * LS_NS_PER_S);
    assert_true(net_now(net) < since + 4 * LS_NS_PER_S);
    end_listen(&e.pub, 5000);
    assert_string_equal(e.pub.story, "");
    ls_network_heal(net->network, NULL, NULL);
    end_listen(&e.pub, 2500);
    assert_hears(&e.pub, "+x");
    end_publish(&e.pub, "x2");
    end_listen(&e.sub, 100);
    assert_hears(&e.sub, from == net->hosts[1] ? "x1 x2" : "x2");
    assert_balanced(net);
    ends_close(&e);
}

static void cut_down(struct net *net)
{
    long_cut(net, net->hosts[0], net->hosts[1]);
    assert_int_equal(net_stats(net).broken, 1);
}

static void cut_up(struct net *net)
{
    long_cut(net, net->hosts[1], net->hosts[0]);
    assert_int_equal(net_stats(net).broken, 0);
}

static void cut_all(struct net *net)
{
    long_cut(net, NULL, NULL);
}

TEST(a_cut_of_3_s_either_way_closes_a_connection)
{
    net_run(NULL, cut_down);
    net_run(NULL, cut_up);
    net_run(NULL, cut_all);
}

static void two_cuts(struct net *net)
{
    ls_host *a = net->hosts[0], *b = net->hosts[1];
    struct ends e;
    ends_open(net, &e);
    for (int i = 0; i < 2; i++) {
        assert_ok(ls_network_cut(net->network, a, NULL));
        end_listen(&e.pub, 2000);
        ls_network_heal(net->network, a, b); /* the others stay cut */
        end_listen(&e.pub, 500);
    }
    assert_string_equal(e.pub.story, "");
    assert_int_equal(net_stats(net).disconnects, 0);
    ends_close(&e);
}

TEST(cuts_do_not_add_up)
{
    net_run(NULL, two_cuts);
}

/* ---- connections that end ---------------------------------------------- */

static void resetting(struct net *net)
{
    struct ends e;
    ends_open(net, &e);
    end_subscribe(&e.sub, "a", true);
    assert_hears(&e.pub, "+a");
    end_publish(&e.pub, "x1");
    ls_network_reset(net->network, net->hosts[2], NULL); /* others */
    ls_network_reset(net->network, net->hosts[1], net->hosts[0]);
    const int64_t since = net_now(net);
    assert_hears(&e.pub, "-a -x");
    assert_hears(&e.pub, "+a +x");
    assert_true(net_now(net) >= since + 10 * LS_NS_PER_MS);
    end_publish(&e.pub, "x2");
    assert_hears(&e.sub, "x2");
    assert_int_equal(net_stats(net).broken, 1);
    assert_int_equal(net_stats(net).connects, 2);
    assert_balanced(net);
    ends_close(&e);
}

TEST(a_reset_loses_what_is_under_way_and_connects_again)
{
    net_run(NULL, resetting);
}

static void killing(struct net *net)
{
    struct ends e;
    struct end other;
    ends_open(net, &e);
    end_open(&other, net->hosts[2], "tcp://127.0.0.1:21502");
    end_dial(&other, e.sub.endpoint);
    end_subscribe(&other, "o", true);
    assert_hears(&e.sub, "+o");
    ls_network_kill(net->network, net->hosts[1]);
    assert_true(ls_host_is_dead(net->hosts[1]));
    /* Its peers learn of it, and it of them; nothing leaves it. */
    assert_hears(&e.pub, "-x");
    end_publish(&e.sub, "o1");
    assert_hears(&e.sub, "-o");
    end_listen(&other, 1000);
    assert_string_equal(other.story, "");
    end_listen(&e.pub, 1000);
    assert_string_equal(e.pub.story, "");
    /* Its address is free for another life. */
    struct end again;
    end_open(&again, net->hosts[3], "tcp://127.0.0.1:21501");
    assert_hears(&again, "+o");
    end_close(&again);
    end_close(&other);
    ends_close(&e);
}

TEST(the_dead_are_cut_off_and_do_not_know_why)
{
    net_run(NULL, killing);
}

static void pausing(struct net *net)
{
    struct ends e;
    ends_open(net, &e);
    ls_host_pause(net->hosts[1]);
    end_publish(&e.pub, "x1");
    end_listen(&e.pub, 60000);
    assert_string_equal(e.pub.story, "");
    assert_int_equal(net_stats(net).waiting, 1);
    ls_host_resume(net->hosts[1]);
    assert_hears(&e.sub, "x1");
    ends_close(&e);
}

TEST(what_comes_to_a_paused_host_waits)
{
    net_run(NULL, pausing);
}
