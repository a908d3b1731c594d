/* place.h, as a specification. */
#include "lockstep/place.h"

#include <stddef.h>

#include "test.h"

static bool is_there(const char *place)
{
    assert_ok(ls_place_check(place));
    return ls_place_has(place, 3, "reader", "gpu,fast");
}

TEST(all_is_for_every_node_and_so_is_nothing)
{
    assert_true(is_there("all"));
    assert_true(is_there(NULL));
}

TEST(ids_name_nodes_one_by_one)
{
    assert_true(is_there("id:3"));
    assert_true(is_there("id:1, 3"));
    assert_false(is_there("id:1,33"));
}

TEST(a_node_has_one_role_of_those_named)
{
    assert_true(is_there("role:reader"));
    assert_true(is_there("role:writer,reader"));
    assert_false(is_there("role:read"));
}

TEST(a_node_has_any_of_the_labels_named)
{
    assert_true(is_there("label:fast"));
    assert_true(is_there("label:big,gpu"));
    assert_false(is_there("label:big"));
    assert_false(ls_place_has("label:big", 3, "reader", ""));
}

TEST(what_is_no_place_is_refused_and_shown)
{
    static const char *const wrong[] = {"",
                                        "every",
                                        "id",
                                        "id:",
                                        "id:1,x",
                                        "role:",
                                        "label",
                                        "id:4294967296",
                                        "id:07",
                                        "id:1,00",
                                        "node:3",
                                        "role:a\"b",
                                        "label:x,caf\xc3\xa9",
                                        "role:a;b"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_fails(ls_place_check(wrong[i]), LS_EINVAL);
        assert_error_has("is not a place");
    }
}
