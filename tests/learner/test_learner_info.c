#include "lockstep/learner_info.h"

#include <math.h>
#include <stdio.h>

#include "test.h"
#include "written.h"

static ls_learner_info *new_info(void)
{
    ls_learner_info *info;
    assert_ok(ls_learner_info_create(&info));
    return info;
}

static void add(ls_learner_info *info, const char *name, double value)
{
    assert_ok(ls_learner_info_add(info, name, value));
}

static void assert_number(const ls_learner_info *info, const char *name,
                          double wanted)
{
    const double value = ls_learner_info_get(info, name);
    if (!(value == wanted || (isnan(value) && isnan(wanted))))
        fail_msg("%s is %g, not %g", name, value, wanted);
}

TEST(numbers_of_one_name_become_their_mean)
{
    ls_learner_info *info = new_info();
    add(info, "loss", 1.0);
    add(info, "entropy", 7.0);
    add(info, "loss", 4.0);
    assert_number(info, "loss", 2.5);
    assert_number(info, "entropy", 7.0);
    assert_int_equal(ls_learner_info_count(info), 2);
    assert_string_equal(ls_learner_info_name(info, 0), "loss");
    assert_true(ls_learner_info_value(info, 0) == 2.5);
    assert_string_equal(ls_learner_info_name(info, 1), "entropy");
    ls_learner_info_destroy(&info);
}

TEST(min_and_max_keep_the_least_and_the_most)
{
    ls_learner_info *info = new_info();
    for (int i = -3; i <= 4; i++) {
        add(info, "min_ratio", i);
        add(info, "max_ratio", i);
        add(info, "minimum", i); /* not by its beginning alone */
    }
    assert_number(info, "min_ratio", -3.0);
    assert_number(info, "max_ratio", 4.0);
    assert_number(info, "minimum", 0.5);
    ls_learner_info_destroy(&info);
}

TEST(what_is_no_number_is_left_out)
{
    ls_learner_info *info = new_info();
    const char *const names[] = {"loss", "min_loss", "max_loss"};
    for (size_t i = 0; i < 3; i++) {
        add(info, names[i], NAN);
        assert_number(info, names[i], NAN);
        add(info, names[i], 2.0);
        add(info, names[i], NAN);
        add(info, names[i], 2.0);
        assert_number(info, names[i], 2.0);
    }
    assert_number(info, "unheard of", NAN);
    ls_learner_info_destroy(&info);
}

TEST(a_mean_over_devices_and_passes_weighs_each_number_the_same)
{
    ls_learner_info *first = new_info();
    ls_learner_info *second = new_info();
    ls_learner_info *all = new_info();
    add(first, "loss", 1.0);
    add(first, "loss", 2.0);
    add(first, "min_ratio", 3.0);
    add(first, "max_ratio", 3.0);
    add(second, "loss", NAN);
    add(second, "loss", 9.0);
    add(second, "min_ratio", NAN);
    add(second, "max_ratio", 5.0);
    assert_ok(ls_learner_info_merge(all, first));
    assert_ok(ls_learner_info_merge(all, second));
    assert_number(all, "loss", 4.0);
    assert_number(all, "min_ratio", 3.0);
    assert_number(all, "max_ratio", 5.0);
    ls_learner_info_destroy(&all);
    ls_learner_info_destroy(&second);
    ls_learner_info_destroy(&first);
}

TEST(td_errors_are_joined_in_order)
{
    ls_learner_info *one = new_info();
    ls_learner_info *other = new_info();
    size_t n;
    assert_null(ls_learner_info_td_errors(one, &n));
    assert_int_equal(n, 0);
    const double values[] = {1.0, 2.0, NAN, 4.0, 5.0};
    assert_ok(ls_learner_info_add_td_errors(one, values, 2));
    assert_ok(ls_learner_info_add_td_errors(other, values + 2, 3));
    assert_ok(ls_learner_info_add_td_errors(one, NULL, 0));
    assert_ok(ls_learner_info_merge(one, other));
    const double *const joined = ls_learner_info_td_errors(one, &n);
    assert_int_equal(n, 5);
    assert_memory_equal(joined, values, sizeof values);
    ls_learner_info_destroy(&other);
    ls_learner_info_destroy(&one);
}

TEST(an_info_may_be_added_to_itself)
{
    ls_learner_info *info = new_info();
    const double values[] = {1.0, 2.0, 3.0};
    size_t n;
    add(info, "loss", 2.0);
    assert_ok(ls_learner_info_add_td_errors(info, values, 3));
    assert_ok(ls_learner_info_merge(info, info));
    assert_number(info, "loss", 2.0);
    const double *const joined = ls_learner_info_td_errors(info, &n);
    assert_int_equal(n, 6);
    assert_memory_equal(joined, values, sizeof values);
    assert_memory_equal(joined + 3, values, sizeof values);
    ls_learner_info_destroy(&info);
}

TEST(clear_forgets_and_swap_exchanges)
{
    ls_learner_info *one = new_info();
    ls_learner_info *other = new_info();
    const double value = 3.0;
    size_t n;
    add(one, "loss", 1.0);
    assert_ok(ls_learner_info_add_td_errors(one, &value, 1));
    ls_learner_info_swap(one, other);
    assert_int_equal(ls_learner_info_count(one), 0);
    assert_number(other, "loss", 1.0);
    assert_true(ls_learner_info_td_errors(other, &n)[0] == 3.0);
    ls_learner_info_clear(other);
    assert_int_equal(ls_learner_info_count(other), 0);
    assert_null(ls_learner_info_td_errors(other, &n));
    ls_learner_info_destroy(&other);
    ls_learner_info_destroy(&one);
    ls_learner_info_destroy(&one);
    ls_learner_info_destroy(NULL);
}

TEST(so_many_names_and_no_more)
{
    static char names[LS_LEARNER_INFO_MAX + 1][8];
    ls_learner_info *full = new_info();
    ls_learner_info *other = new_info();
    for (size_t i = 0; i <= LS_LEARNER_INFO_MAX; i++)
        snprintf(names[i], sizeof names[i], "%zu", i);
    for (size_t i = 0; i < LS_LEARNER_INFO_MAX; i++)
        add(full, names[i], 1.0);
    const char *const more = names[LS_LEARNER_INFO_MAX];
    assert_fails(ls_learner_info_add(full, more, 1.0), LS_ELIMIT);
    assert_string_equal(ls_error_text(),
                        "learner info: \"32\" would be one more than 32 names");
    add(full, names[3], 3.0);
    assert_number(full, "3", 2.0);
    add(other, more, 1.0);
    assert_fails(ls_learner_info_merge(full, other), LS_ELIMIT);
    ls_learner_info_destroy(&other);
    ls_learner_info_destroy(&full);
}

TEST(names_are_in_the_order_of_their_first_number)
{
    ls_learner_info *info = new_info();
    add(info, "loss", 1.0);
    add(info, "return", NAN);
    add(info, "loss", 3.0);
    assert_int_equal(ls_learner_info_count(info), 2);
    assert_string_equal(ls_learner_info_name(info, 0), "loss");
    assert_true(ls_learner_info_value(info, 0) == 2.0);
    assert_string_equal(ls_learner_info_name(info, 1), "return");
    assert_true(isnan(ls_learner_info_value(info, 1)));
    assert_null(ls_learner_info_name(info, 2));
    assert_true(isnan(ls_learner_info_value(info, 2)));
    assert_true(isnan(ls_learner_info_get(info, "nothing")));
    ls_learner_info_clear(info);
    assert_null(ls_learner_info_name(info, 0));
    assert_true(isnan(ls_learner_info_value(info, 0)));
    ls_learner_info_destroy(&info);
}

static void assert_written(const ls_learner_info *info, const char *wanted)
{
    ls_writer *writer;
    assert_ok(ls_writer_create(&writer));
    ls_learner_info_write(info, writer);
    assert_json(writer, wanted);
}

TEST(it_is_written_as_a_map)
{
    ls_learner_info *info = new_info();
    assert_written(info, "{}");
    add(info, "loss", 0.5);
    add(info, "max_ratio", NAN);
    assert_written(info, "{\"loss\":0.5,\"max_ratio\":\"NaN\"}");
    const double values[] = {0.25, -1.5};
    assert_ok(ls_learner_info_add_td_errors(info, values, 2));
    assert_written(info, "{\"loss\":0.5,\"max_ratio\":\"NaN\","
                         "\"td_error\":[0.25,-1.5]}");
    add(info, "td_error", 7.0); /* the errors themselves say more */
    assert_written(info, "{\"loss\":0.5,\"max_ratio\":\"NaN\","
                         "\"td_error\":[0.25,-1.5]}");
    ls_learner_info_destroy(&info);
}
