/* Which key has which id: each promise of the table, and all of them under
 * orders of events that nobody thought of. */
#include "lease_table.h"

#include <stdio.h>
#include <string.h>

#include "base/seeds.h"
#include "lockstep/random.h"
#include "test.h"

enum { COLLECTOR, LEARNER };

/* Ids 1 to 3 for collectors, 7 for a learner. */
static struct lease_table table_of_four(void)
{
    static const uint32_t ids[] = {1, 2, 3, 7};
    struct lease_table table;
    assert_ok(lease_table_init(&table, 4));
    for (size_t i = 0; i < 4; i++) {
        table.leases[i].id = ids[i];
        table.leases[i].role = ids[i] == 7 ? LEARNER : COLLECTOR;
    }
    return table;
}

struct key {
    char text[LS_PUBLIC_KEY_MAX];
};

static struct key key_of(unsigned number)
{
    struct key key;
    (void)snprintf(key.text, sizeof key.text, "%040u", number);
    return key;
}

/* The id, or why there is none. */
static int64_t ask(struct lease_table *table, unsigned key, uint64_t life,
                   int64_t now)
{
    const struct key text = key_of(key);
    const struct lease *lease = NULL;
    const int status = lease_table_ask(table,
                                       &(struct lease_ask){.role = COLLECTOR,
                                                           .key = text.text,
                                                           .lasting = key < 100,
                                                           .life = life},
                                       now, &lease);
    return status == LS_OK ? (int64_t)lease->id : status;
}

static void refused(int64_t answer, int wanted, const char *words)
{
    assert_int_equal(answer, wanted);
    if (strstr(ls_error_text(), words) == NULL)
        fail_msg("\"%s\" has no \"%s\"", ls_error_text(), words);
}

TEST(each_key_has_an_id_of_its_own)
{
    struct lease_table table = table_of_four();
    assert_int_equal(ask(&table, 10, 1, 0), 1);
    assert_int_equal(ask(&table, 11, 2, 0), 2);
    assert_int_equal(ask(&table, 12, 3, 0), 3);
    lease_table_fini(&table);
}

TEST(the_same_key_has_the_same_id_after_a_restart)
{
    struct lease_table table = table_of_four();
    assert_int_equal(ask(&table, 10, 1, 0), 1);
    assert_int_equal(ask(&table, 11, 2, 0), 2);
    lease_table_came(&table, 1);
    lease_table_came(&table, 2);
    lease_table_gone(&table, 2, false, 5);
    lease_table_gone(&table, 1, true, 6);
    assert_int_equal(ask(&table, 12, 3, 7), 3); /* theirs are kept */
    assert_int_equal(ask(&table, 11, 4, LEASE_PROMISE_NS * 9), 2);
    assert_int_equal(ask(&table, 10, 5, LEASE_PROMISE_NS * 9), 1);
    lease_table_fini(&table);
}

TEST(two_at_once_with_one_key_are_one_too_many)
{
    struct lease_table table = table_of_four();
    assert_int_equal(ask(&table, 10, 1, 0), 1);
    assert_int_equal(ask(&table, 10, 1, 1), 1); /* the same asks again */
    refused(ask(&table, 10, 2, 1), LS_EEXIST,
            "node 1 has this key, and is exp");
    lease_table_came(&table, 1);
    refused(ask(&table, 10, 2, 2), LS_EEXIST, "there: end it first");
    refused(ask(&table, 10, 1, 2), LS_EEXIST, "--identity");
    lease_table_gone(&table, 1, false, 3);
    assert_int_equal(ask(&table, 10, 2, 3), 1);
    lease_table_fini(&table);
}

TEST(who_does_not_come_is_not_expected_for_ever)
{
    struct lease_table table = table_of_four();
    assert_int_equal(ask(&table, 10, 1, 0), 1);
    assert_int_equal(ask(&table, 10, 2, LEASE_PROMISE_NS), 1);
    assert_int_equal(ask(&table, 100, 3, 0), 2);
    assert_int_equal(ask(&table, 11, 4, LEASE_PROMISE_NS), 2);
    lease_table_fini(&table);
}

TEST(none_free_is_told_with_what_to_do)
{
    struct lease_table table = table_of_four();
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(ask(&table, 10 + i, i + 1, 0), i + 1);
    lease_table_came(&table, 2);
    lease_table_gone(&table, 2, false, 1);
    refused(ask(&table, 20, 9, 1), LS_EAGAIN, "3, of which 1 are kept");
    assert_int_equal(ask(&table, 11, 10, 1), 2);
    lease_table_fini(&table);
}

TEST(a_key_of_one_life_gives_its_id_back)
{
    struct lease_table table = table_of_four();
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(ask(&table, 100 + i, i + 1, 0), i + 1);
        lease_table_came(&table, i + 1);
    }
    lease_table_gone(&table, 3, true, 1);
    assert_int_equal(ask(&table, 200, 9, 1), 3);
    lease_table_gone(&table, 1, false, 1); /* it may yet come back */
    refused(ask(&table, 201, 10, 2), LS_EAGAIN, "3, of which 0");
    lease_table_came(&table, 1);
    lease_table_gone(&table, 1, false, 2);
    assert_int_equal(ask(&table, 201, 10, 2 + LEASE_PROMISE_NS), 1);
    lease_table_fini(&table);
}

TEST(a_role_has_its_own_ids)
{
    struct lease_table table = table_of_four();
    const struct key key = key_of(10);
    const struct lease *lease;
    struct lease_ask asks = {
        .role = LEARNER, .key = key.text, .lasting = true, .life = 1};
    assert_ok(lease_table_ask(&table, &asks, 0, &lease));
    assert_int_equal(lease->id, 7);
    refused(ask(&table, 10, 1, 0), LS_EMISMATCH, "7, which is of another role");
    lease_table_fini(&table);
}

TEST(a_barred_id_is_nobodys)
{
    struct lease_table table = table_of_four();
    assert_int_equal(ask(&table, 10, 1, 0), 1);
    lease_table_bar(&table, 1);
    lease_table_bar(&table, 99);
    assert_int_equal(ask(&table, 10, 1, 0), 2);
    lease_table_came(&table, 1);
    lease_table_gone(&table, 1, true, 0);
    assert_int_equal(ask(&table, 11, 2, 0), 3);
    refused(ask(&table, 12, 3, 0), LS_EAGAIN, "given out");
    lease_table_fini(&table);
}

TEST(a_revoked_key_has_no_id)
{
    struct lease_table table = table_of_four();
    const struct key key = key_of(10);
    assert_null(lease_table_revoke(&table, key.text));
    assert_int_equal(ask(&table, 10, 1, 0), 1);
    lease_table_came(&table, 1);
    assert_int_equal(lease_table_revoke(&table, key.text)->id, 1);
    assert_null(lease_table_revoke(&table, key.text));
    lease_table_gone(&table, 1, false, 0);
    assert_int_equal(ask(&table, 11, 2, 0), 1);
    lease_table_fini(&table);
}

TEST(an_id_is_not_free_while_a_node_is_there_by_it)
{
    struct lease_table table = table_of_four();
    const struct key key = key_of(10);
    assert_int_equal(ask(&table, 10, 1, 0), 1);
    lease_table_came(&table, 1);
    assert_int_equal(lease_table_revoke(&table, key.text)->id, 1);
    assert_int_equal(ask(&table, 11, 2, 0), 2);
    lease_table_gone(&table, 1, false, 0);
    assert_int_equal(ask(&table, 12, 3, 0), 1);
    lease_table_fini(&table);
}

TEST(one_that_comes_after_its_promise_keeps_its_id_to_itself)
{
    struct lease_table table = table_of_four();
    assert_int_equal(ask(&table, 100, 1, 0), 1);
    assert_int_equal(ask(&table, 11, 2, 0), 2);
    assert_int_equal(ask(&table, 11, 2, LEASE_PROMISE_NS), 2);
    lease_table_came(&table, 1);
    assert_int_equal(ask(&table, 12, 3, LEASE_PROMISE_NS), 3);
    refused(ask(&table, 13, 4, LEASE_PROMISE_NS), LS_EAGAIN, "given out");
    lease_table_gone(&table, 1, true, LEASE_PROMISE_NS);
    assert_int_equal(ask(&table, 13, 4, LEASE_PROMISE_NS), 1);
    lease_table_fini(&table);
}

/* ---- as text ------------------------------------------------------------ */

TEST(it_is_read_as_it_was_written)
{
    struct lease_table table = table_of_four(), next = table_of_four();
    char text[4 * LEASE_LINE_MAX];
    assert_int_equal(ask(&table, 10, 1, 0), 1);
    assert_int_equal(ask(&table, 100, 2, 0), 2);
    assert_int_equal(ask(&table, 101, 2, 0), 3);
    lease_table_came(&table, 1);
    lease_table_came(&table, 2);
    lease_table_came(&table, 3);
    const size_t size = lease_table_write(&table, text, sizeof text);
    assert_int_equal(size, strlen(text));
    assert_int_equal(lease_table_write(&table, NULL, 0), size);
    assert_ok(lease_table_read(&next, text, size, 0));
    assert_int_equal(ask(&next, 10, 9, 1), 1); /* away: it was kept */
    assert_int_equal(ask(&next, 100, 9, 1), 2);
    lease_table_came(&next, 2);
    assert_int_equal(ask(&next, 11, 10, LEASE_PROMISE_NS), 3);
    refused(ask(&next, 12, 11, LEASE_PROMISE_NS), LS_EAGAIN, "given out");
    lease_table_fini(&table);
    lease_table_fini(&next);
}

TEST(what_the_table_has_not_is_left_out)
{
    struct lease_table table = table_of_four();
    const struct key ten = key_of(10), eleven = key_of(11);
    char text[256], again[256];
    (void)snprintf(text, sizeof text,
                   "99 %s lasting\n2 %s lasting\n2 %s lasting\n1 %s lasting\n",
                   eleven.text, ten.text, eleven.text, ten.text);
    assert_ok(lease_table_read(&table, text, strlen(text), 0));
    (void)lease_table_write(&table, again, sizeof again);
    (void)snprintf(text, sizeof text, "2 %s lasting\n", ten.text);
    assert_string_equal(again, text);
    lease_table_fini(&table);
}

TEST(a_wrong_line_is_named_and_nothing_is_read)
{
    static const char *const bad[] = {
        "x",
        "\n",
        "1",
        "1 ",
        "1 k lasting\n",
        "01 %s lasting\n",
        "4294967296 %s lasting\n",
        "1 %s\n",
        "1 %s forever\n",
        "1 %s lasting",
        "1 %s lasting \n",
        "-1 %s lasting\n",
        "1  %s lasting\n",
        "1 %s0 lasting\n",
    };
    struct lease_table table = table_of_four();
    const struct key key = key_of(10);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[256], again[256];
        const char *at = strstr(bad[i], "%s");
        (void)snprintf(text, sizeof text, "2 %s lasting\n%.*s%s%s", key.text,
                       (int)(at != NULL ? at - bad[i] : 99), bad[i],
                       at != NULL ? key.text : "", at != NULL ? at + 2 : "");
        refused(lease_table_read(&table, text, strlen(text), 0), LS_EPROTO,
                "line 2: ");
        assert_int_equal(lease_table_write(&table, again, sizeof again), 0);
    }
    lease_table_fini(&table);
}

/* ---- whatever happens --------------------------------------------------- */

#define N_KEYS 8

/* What is true of the nodes themselves. */
struct model {
    bool here[N_KEYS];
    uint32_t id[N_KEYS]; /* that a lasting key was given; 0: none yet */
};

static unsigned number_of(size_t key)
{
    return key < N_KEYS / 2 ? (unsigned)key : 100 + (unsigned)key;
}

static void check_model(const struct lease_table *table,
                        const struct model *model)
{
    for (size_t i = 0; i < table->n; i++) {
        const struct lease *lease = &table->leases[i];
        for (size_t j = 0; j < i; j++)
            assert_true(lease->key[0] == '\0' ||
                        strcmp(lease->key, table->leases[j].key) != 0);
        assert_int_equal(lease->key[0] == '\0', lease->state == LEASE_FREE);
    }
    for (size_t k = 0; k < N_KEYS; k++)
        for (size_t other = 0; other < k; other++)
            assert_true(!model->here[k] || !model->here[other] ||
                        model->id[k] != model->id[other]);
}

static void one_event(struct lease_table *table, struct model *model,
                      struct ls_rng *rng, int64_t now)
{
    const size_t key = ls_rng_below(rng, N_KEYS);
    const bool lasting = key < N_KEYS / 2;
    if (model->here[key] && ls_rng_below(rng, 2) == 0) {
        lease_table_gone(table, model->id[key], ls_rng_below(rng, 2) == 0, now);
        model->here[key] = false;
        return;
    }
    const int64_t answer =
        ask(table, number_of(key), 1 + ls_rng_below(rng, 3), now);
    if (model->here[key])
        assert_int_equal(answer, LS_EEXIST);
    if (answer < 0)
        return;
    if (lasting && model->id[key] != 0)
        assert_int_equal(answer, model->id[key]);
    model->id[key] = (uint32_t)answer;
    if (ls_rng_below(rng, 3) == 0)
        return; /* it never comes */
    lease_table_came(table, model->id[key]);
    model->here[key] = true;
}

TEST(no_order_of_events_gives_one_id_to_two)
{
    const struct seeds seeds = seeds_of(500);
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        struct lease_table table = table_of_four();
        struct model model = {.here = {false}};
        struct ls_rng rng;
        int64_t now = 0;
        ls_rng_seed(&rng, seed, 0);
        for (size_t i = 0; i < 200; i++) {
            now += (int64_t)ls_rng_below(&rng, LEASE_PROMISE_NS / 2);
            one_event(&table, &model, &rng, now);
            check_model(&table, &model);
        }
        lease_table_fini(&table);
    }
}
