#include "plain_name.h"
#include "test.h"

TEST(letters_digits_and_marks_make_a_name)
{
    assert_true(plain_name_is("azAZ09._-", 9, "._-"));
    assert_true(plain_name_is("a", 1, ""));
}

TEST(nothing_else_makes_one)
{
    static const char *const others[] = {NULL,  "",    "a b", "a/b",     "a@",
                                         "a`z", "a[Z", "a:9", "\xc3\xa4"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(plain_name_is(others[i], 8, "._-"));
    assert_false(plain_name_is("12345", 4, ""));
}

TEST(a_name_ends_where_its_letters_end)
{
    assert_int_equal(plain_name_span("job-7,other", "-"), 5);
    assert_int_equal(plain_name_span("job-7", ""), 3);
    assert_int_equal(plain_name_span("", "._-"), 0);
}
