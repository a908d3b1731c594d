/* Which addresses are dialled, how many of those that only others name, and
 * who is asked whether it still runs: by a node that has stopped, so that
 * nothing happens by itself. */
#include "bus.h"
#include "links.h"
#include "node_fixture.h"
#include "test.h"

enum { MOST = 256, MOST_HEARSAY = 16 }; /* without an answer */

static ls_node *node;

static void begin(void)
{
    const struct ls_node_options options = usual(1);
    node = started(&options);
    assert_ok(ls_node_stop(node, LS_OK));
    transport_lock(node->transport);
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

/* As when there are no more descriptors. */
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
