/* Somebody comes while memory runs out. */
#include "allocations.h"
#include "membership_fixture.h"

/* From 1 on: the first is that of the machine. */
static bool fails_at(long n)
{
    if (n == 1) {
        assert_true(allocations_fail_at(0));
        void *volatile none = malloc(1);
        assert_null(none);
    }
    return allocations_fail_at(n);
}

/* Nobody says again what a subscription has said. */
TEST(who_found_no_memory_is_tried_again)
{
    int n_put_off = 0;
    (void)state;
    for (long n = 1; fails_at(n); n++) {
        struct machine *a = machine_with(LS_TOPOLOGY_MESH, false, ME, 3);
        (void)present(a, 4, FIRST);
        const struct member *four = membership_find(&a->m, 4);
        const bool put_off = four != NULL && four->barred;
        membership_announced(&a->m, a->now);
        if (put_off)
            assert_null(told(a, 4, LS_ELIMIT, FIRST));
        a->now += HEARTBEAT;
        (void)membership_tick(&a->m, a->now);
        if (put_off) {
            assert_false(four->barred);
            assert_string_equal(four->endpoint, "tcp://10.0.0.4:1");
            assert_true(dialled(a, 4));
        }
        n_put_off += put_off;
        end(a);
    }
    assert_int_equal(n_put_off, 1);
}

/* It would be dialled where it was before. */
TEST(who_found_no_memory_is_not_taken_for_its_earlier_life)
{
    const char elsewhere[] = "tcp://elsewhere:1";
    int n_unknown = 0;
    (void)state;
    for (long n = 1; fails_at(n); n++) {
        struct machine *a = machine();
        struct wire_presence p = presence_of(4, SECOND);
        strcpy(p.endpoint, elsewhere);
        if (present(a, 4, FIRST) == LS_OK)
            assert_ok(absent(a, 4, FIRST));
        const int status = present_as(a, 4, &p);
        const struct member *four = membership_find(&a->m, 4);
        if (four != NULL)
            assert_string_equal(four->endpoint,
                                status == LS_OK ? elsewhere : "");
        n_unknown += four != NULL && status != LS_OK;
        end(a);
    }
    assert_int_equal(n_unknown, 1);
}
