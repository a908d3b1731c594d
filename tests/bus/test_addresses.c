/* Nodes that are reached at another address than they advertise: where it
 * serves, it is kept, and where it fails, the other one is found. */
#include "severed_world.h"
#include "test.h"

#define N 1000 /* events: fewer than a window */

/* Node 1 has two addresses: its socket file, and a link that can be severed. It
 * advertises one of them, and node 2 is given the other. */
struct addresses {
    char directory[64], file[128];
    struct severed_link link;
    ls_node *one, *two;
    struct counter heard, lost;
};

static void on_member(void *self, const struct ls_member *member)
{
    struct addresses *addresses = self;
    if (member->state == LS_MEMBER_LOST)
        counter_add(&addresses->lost, 1);
}

static ls_node *create(uint32_t id, const char *bind, const char *advertise,
                       const char *attach, int silence_ms)
{
    struct ls_node_options options;
    ls_node *node;
    ls_node_options_init(&options);
    options.id = id;
    options.bind = bind;
    options.advertise = advertise;
    options.attach = &attach;
    options.n_attach = attach == NULL ? 0 : 1;
    options.world_size = 2;
    options.heartbeat_ms = 20;
    options.silence_ms = silence_ms;
    options.shared_bytes = 0; /* all is to go over the links */
    options.insecure = true;  /* a secret holds at two addresses only */
    options.start_timeout_ms = LONG_MS;
    assert_ok(ls_node_create(&node, &options));
    return node;
}

static void begin(struct addresses *addresses)
{
    char path[96];
    strcpy(addresses->directory, "/tmp/lockstep-test-XXXXXX");
    assert_non_null(mkdtemp(addresses->directory));
    (void)snprintf(path, sizeof path, "%s/0", addresses->directory);
    (void)snprintf(addresses->file, sizeof addresses->file, "ipc://%s", path);
    severed_init(&addresses->link, path);
    counter_init(&addresses->heard);
    counter_init(&addresses->lost);
}

static void start(struct addresses *addresses, const char *advertised,
                  const char *given, int silence_ms)
{
    addresses->one = create(1, addresses->file, advertised, NULL, silence_ms);
    addresses->two = create(2, "tcp://127.0.0.1:*", NULL, given, silence_ms);
    assert_ok(ls_on(addresses->two, "x", count, &addresses->heard));
    assert_ok(ls_node_on_member(addresses->one, on_member, addresses));
    assert_ok(ls_node_on_member(addresses->two, on_member, addresses));
    assert_ok(ls_node_open(addresses->one));
    assert_ok(ls_node_start(addresses->two));
    assert_ok(ls_node_join(addresses->one));
}

static void emit_and_hear(struct addresses *addresses)
{
    struct ls_node_stats stats;
    const int before = counter_get(&addresses->heard);
    for (int i = 0; i < N; i++)
        assert_ok(ls_emit(addresses->one, "x", NULL, 0));
    assert_reaches(&addresses->heard, before + N);
    ls_node_stats(addresses->two, &stats);
    assert_int_equal(stats.missed, 0);
    assert_int_equal(counter_get(&addresses->lost), 0);
}

static void end(struct addresses *addresses)
{
    ls_node_destroy(&addresses->two);
    ls_node_destroy(&addresses->one);
    severed_fini(&addresses->link);
    counter_fini(&addresses->heard);
    counter_fini(&addresses->lost);
    assert_int_equal(rmdir(addresses->directory), 0);
}

TEST(one_that_is_reached_where_it_was_given_needs_no_answer_elsewhere)
{
    struct addresses addresses;
    for (int i = 0; i < 8; i++) { /* its proof or its presence comes first */
        begin(&addresses);
        severed_reset(&addresses.link, LINK_HOLDS);
        start(&addresses, addresses.link.endpoint, addresses.file, 1000);
        emit_and_hear(&addresses);
        end(&addresses);
    }
}

TEST(nothing_is_lost_where_both_addresses_answer)
{
    struct addresses addresses;
    begin(&addresses);
    start(&addresses, addresses.link.endpoint, addresses.file, LONG_MS);
    emit_and_hear(&addresses);
    end(&addresses);
}

TEST(one_that_falls_silent_there_is_found_where_it_says_to_be)
{
    struct addresses addresses;
    begin(&addresses);
    start(&addresses, addresses.file, addresses.link.endpoint, LONG_MS);
    emit_and_hear(&addresses);
    severed_hold(&addresses.link);
    emit_until_heard(addresses.one, "x", &addresses.heard);
    assert_int_equal(counter_get(&addresses.lost), 0);
    end(&addresses);
}

/* The life before is held up, and speaks again when the next one is there. */
TEST(one_that_begins_again_elsewhere_is_followed)
{
    struct addresses addresses;
    begin(&addresses);
    start(&addresses, addresses.link.endpoint, addresses.link.endpoint, 300);
    emit_and_hear(&addresses);
    severed_hold(&addresses.link);
    assert_reaches(&addresses.lost, 1);
    ls_node *before = addresses.one;
    addresses.one = create(1, "tcp://127.0.0.1:*", NULL,
                           ls_node_endpoint(addresses.two), 300);
    assert_ok(ls_node_start(addresses.one));
    emit_until_heard(addresses.one, "x", &addresses.heard);
    severed_reset(&addresses.link, LINK_PASSES);
    emit_until_heard(addresses.one, "x", &addresses.heard);
    ls_node_destroy(&before);
    emit_until_heard(addresses.one, "x", &addresses.heard);
    /* It is still dialled where it was given, by whom alone it is found. */
    ls_node_destroy(&addresses.one);
    addresses.one =
        create(1, addresses.file, addresses.link.endpoint, NULL, 300);
    assert_ok(ls_node_start(addresses.one));
    emit_until_heard(addresses.one, "x", &addresses.heard);
    end(&addresses);
}
