/* What is refused is counted, named, and told in few lines. */
#include "refusals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/log.h"
#include "lockstep/runtime.h"
#include "test.h"

#define NOW   (100 * LS_NS_PER_S)
#define WHILE (10 * LS_NS_PER_S)
#define LINES 20 /* of all, in one such while */

struct lines {
    size_t n;
    char last[4096];
};

static struct lines said;

static void keep(void *self, const char *line)
{
    struct lines *lines = self;
    lines->n++;
    (void)snprintf(lines->last, sizeof lines->last, "%s", line);
}

static int set_up(void **state)
{
    *state = calloc(1, sizeof(struct refusals));
    said = (struct lines){0};
    return *state == NULL ? -1 : ls_log_setup("warn");
}

static int tear_down(void **state)
{
    refusals_fini(*state);
    free(*state);
    return 0;
}

static void refuse(struct refusals *refusals, enum ls_refusal_kind kind,
                   const char *who, const char *why, int64_t now)
{
    (void)ls_error(LS_EPROTO, "%s", why);
    refusals_note(refusals, kind, who, 1, now);
}

static const struct ls_refusal *row(const struct refusals *refusals, size_t i)
{
    assert_true(i < refusals->n);
    return &refusals->rows[i].told;
}

static void assert_says(const char *part)
{
    if (strstr(said.last, part) == NULL)
        fail_msg("\"%s\" has no \"%s\"", said.last, part);
}

/* ---- counted and named ------------------------------------------------- */

EACH_TEST(set_up, tear_down)

TEST(every_kind_has_a_name_of_its_own)
{
    for (int i = 0; i < LS_REFUSAL_N_KINDS; i++) {
        const char *name = ls_refusal_kind_name((enum ls_refusal_kind)i);
        assert_non_null(name);
        assert_string_not_equal(name, "?");
        for (int j = 0; j < i; j++)
            assert_string_not_equal(
                name, ls_refusal_kind_name((enum ls_refusal_kind)j));
    }
    assert_string_equal(
        ls_refusal_kind_name((enum ls_refusal_kind)LS_REFUSAL_N_KINDS), "?");
}

TEST(without_refusals_there_is_nothing)
{
    struct refusals *refusals = *state;
    assert_int_equal(refusals->n, 0);
    refusals_fini(refusals);
    refuse(refusals, LS_REFUSAL_FORM, "node 7", "why", NOW);
    refusals_fini(refusals);
    assert_int_equal(refusals->n, 0);
    refuse(refusals, LS_REFUSAL_FORM, "node 7", "why", NOW); /* anew */
    assert_int_equal(row(refusals, 0)->n, 1);
}

TEST(it_keeps_who_did_what_how_often_when_and_why)
{
    struct refusals *refusals = *state;
    refuse(refusals, LS_REFUSAL_FORM, "node 7", "first", NOW);
    (void)ls_error(LS_EPROTO, "second");
    refusals_note(refusals, LS_REFUSAL_FORM, "node 7", 5, NOW + 3);
    assert_int_equal(refusals->n, 1);
    assert_int_equal(refusals->total, 6);
    assert_int_equal(row(refusals, 0)->kind, LS_REFUSAL_FORM);
    assert_string_equal(row(refusals, 0)->who, "node 7");
    assert_string_equal(row(refusals, 0)->why, "second");
    assert_string_equal(refusals->last, "second");
    assert_int_equal(row(refusals, 0)->n, 6);
    assert_true(row(refusals, 0)->last_at == NOW + 3);
}

TEST(kinds_and_offenders_are_kept_apart)
{
    struct refusals *refusals = *state;
    refuse(refusals, LS_REFUSAL_FORM, "node 7", "a", NOW);
    refuse(refusals, LS_REFUSAL_STALE, "node 7", "b", NOW);
    refuse(refusals, LS_REFUSAL_FORM, "node 8", "c", NOW);
    refuse(refusals, LS_REFUSAL_FORM, "", "d", NOW);
    refuse(refusals, LS_REFUSAL_FORM, "node 7", "e", NOW);
    assert_int_equal(refusals->n, 4);
    assert_int_equal(row(refusals, 0)->n, 2);
    assert_string_equal(row(refusals, 0)->why, "e");
    assert_string_equal(row(refusals, 1)->why, "b");
    assert_string_equal(row(refusals, 3)->who, "");
}

TEST(one_host_is_one_whatever_its_ports)
{
    struct refusals *refusals = *state;
    refuse(refusals, LS_REFUSAL_STRANGER, "10.0.0.1:5000", "a", NOW);
    refuse(refusals, LS_REFUSAL_STRANGER, "10.0.0.1:61000", "b", NOW);
    refuse(refusals, LS_REFUSAL_STRANGER, "[fd00::1]:5000", "c", NOW);
    refuse(refusals, LS_REFUSAL_STRANGER, "[fd00::1]:61000", "d", NOW);
    assert_int_equal(refusals->n, 2);
    assert_int_equal(row(refusals, 0)->n, 2);
    assert_string_equal(row(refusals, 0)->who, "10.0.0.1:61000"); /* the last */
    assert_int_equal(row(refusals, 1)->n, 2);
}

TEST(other_names_are_not_taken_for_one_host)
{
    struct refusals *refusals = *state;
    static const char *const names[] = {
        "10.0.0.1:5000",        "10.0.0.1",         "10.0.0.10:5000",
        "[fd00::1]:5000",       "[fd00::1:5]:5000", "tcp://10.0.0.1:5000",
        "tcp://10.0.0.1:5001",  "ipc:///tmp/a:1",   "ipc:///tmp/a:2",
        "10.0.0.1:ffff:10:9000"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        refuse(refusals, LS_REFUSAL_WORLD, names[i], "why", NOW);
    assert_int_equal(refusals->n, sizeof names / sizeof *names);
}

TEST(a_long_reason_is_cut_behind_a_character)
{
    struct refusals *refusals = *state;
    char why[402];
    for (size_t shift = 0; shift < 2; shift++) {
        size_t end = shift;
        memset(why, 'x', shift);
        for (; end < sizeof why - 2; end += 2)
            memcpy(why + end, "\xc3\xa9", 2);
        why[end] = '\0';
        refuse(refusals, LS_REFUSAL_FORM, "node 7", why, NOW);
        const size_t n = sizeof row(refusals, 0)->why - 2 + shift;
        assert_int_equal(strlen(row(refusals, 0)->why), n);
        assert_memory_equal(row(refusals, 0)->why, why, n);
    }
}

TEST(one_with_a_long_name_is_one)
{
    struct refusals *refusals = *state;
    char name[LS_ENDPOINT_MAX + 1];
    (void)snprintf(name, sizeof name, "tcp://%0120d:21500", 1);
    for (int i = 0; i < 3; i++)
        refuse(refusals, LS_REFUSAL_WORLD, name, "why", NOW);
    assert_int_equal(refusals->n, 1);
    assert_int_equal(row(refusals, 0)->n, 3);
    assert_int_equal(said.n, 1);
}

TEST(a_long_reason_is_cut)
{
    struct refusals *refusals = *state;
    char why[600];
    memset(why, 'x', sizeof why - 1);
    why[sizeof why - 1] = '\0';
    refuse(refusals, LS_REFUSAL_FORM, "node 7", why, NOW);
    assert_int_equal(strlen(row(refusals, 0)->why),
                     sizeof row(refusals, 0)->why - 1);
    assert_int_equal(strlen(refusals->last), sizeof refusals->last - 1);
}

TEST(of_many_offenders_the_worst_are_kept)
{
    struct refusals *refusals = *state;
    char name[32];
    for (int i = 0; i < REFUSALS_MAX; i++) {
        (void)snprintf(name, sizeof name, "node %d", i);
        refuse(refusals, LS_REFUSAL_FORM, name, "why", NOW);
        if (i != 5)
            refuse(refusals, LS_REFUSAL_FORM, name, "why", NOW);
    }
    refuse(refusals, LS_REFUSAL_FORM, "node 1000", "why", NOW);
    assert_int_equal(refusals->n, REFUSALS_MAX);
    assert_string_equal(row(refusals, 5)->who, "node 1000");
    assert_int_equal(row(refusals, 5)->n, 1);
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof name, "node %d", 2000 + i);
        refuse(refusals, LS_REFUSAL_FORM, name, "why", NOW);
    }
    assert_int_equal(refusals->n, REFUSALS_MAX);
    for (size_t i = 0; i < REFUSALS_MAX; i++)
        assert_int_equal(row(refusals, i)->n, i == 5 ? 1 : 2);
    assert_int_equal(refusals->total, 2 * REFUSALS_MAX - 1 + 1 + 1000);
}

/* ---- told -------------------------------------------------------------- */

TEST(the_first_is_told_at_once)
{
    struct refusals *refusals = *state;
    refuse(refusals, LS_REFUSAL_FORM, "node 7", "it is bad", NOW);
    assert_int_equal(said.n, 1);
    assert_says("refused node 7: it is bad");
    refuse(refusals, LS_REFUSAL_STALE, "node 7", "it is old", NOW);
    assert_int_equal(said.n, 2); /* another kind */
    refuse(refusals, LS_REFUSAL_FORM, "", "it is nobody", NOW);
    assert_says("refused somebody: it is nobody");
}

TEST(then_one_line_in_a_while_says_how_many)
{
    struct refusals *refusals = *state;
    for (int i = 0; i < 1000; i++)
        refuse(refusals, LS_REFUSAL_FORM, "node 7", "it is bad",
               NOW + i * (WHILE / 1000));
    assert_int_equal(said.n, 1);
    refuse(refusals, LS_REFUSAL_FORM, "node 7", "it is worse", NOW + WHILE);
    assert_int_equal(said.n, 2);
    assert_says("node 7, and 999 times more since the last line: it is worse");
    refuse(refusals, LS_REFUSAL_FORM, "node 7", "again", NOW + 2 * WHILE);
    assert_int_equal(said.n, 3);
    assert_says("refused node 7: again");
}

TEST(those_of_one_host_are_told_together)
{
    struct refusals *refusals = *state;
    char name[32];
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof name, "10.0.0.1:%d", 5000 + i);
        refuse(refusals, LS_REFUSAL_STRANGER, name, "why", NOW);
    }
    assert_int_equal(said.n, 1);
    assert_int_equal(refusals->n, 1);
}

TEST(many_offenders_fill_no_disk)
{
    struct refusals *refusals = *state;
    char name[32];
    for (int i = 0; i < 10000; i++) {
        (void)snprintf(name, sizeof name, "10.0.%d.%d:1", i / 250, i % 250);
        refuse(refusals, LS_REFUSAL_STRANGER, name, "why", NOW + i);
    }
    assert_int_equal(said.n, LINES);
    assert_int_equal(refusals->total, 10000);
    refuse(refusals, LS_REFUSAL_FORM, "node 7", "why", NOW + WHILE - 1);
    assert_int_equal(said.n, LINES);
    refuse(refusals, LS_REFUSAL_FORM, "node 7", "why", NOW + WHILE);
    assert_int_equal(said.n, LINES + 1);
    assert_says("node 7, and 1 times more since"); /* that one too */
}

int main(void)
{
    ls_log_redirect(keep, &said);
    return tests_run();
}
