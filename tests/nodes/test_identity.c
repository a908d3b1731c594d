/* Keys of nodes that are given their ids: kept, shared out, and made where
 * there are too few. */
#include "identity.h"

#include "bus/security_fixture.h"
#include "test.h"

static struct path keys_of(const struct scratch *scratch)
{
    return in(scratch, "some/keys");
}

static void open_it(struct identity *out, const char *folder)
{
    if (identity_open(out, folder, "job") != LS_OK)
        fail_msg("%s", ls_error_text());
}

EACH_TEST(scratch_set_up, scratch_tear_down)

TEST(it_is_the_same_the_next_time)
{
    struct scratch *scratch = *state;
    const struct path keys = keys_of(scratch);
    struct identity first, next;
    open_it(&first, keys.text);
    assert_true(first.lasting);
    identity_close(&first);
    assert_string_equal(first.path, "");
    open_it(&next, keys.text);
    assert_string_equal(next.key, first.key);
    identity_close(&next);
    identity_close(&next);
}

TEST(several_at_once_have_one_each)
{
    struct scratch *scratch = *state;
    const struct path keys = keys_of(scratch);
    struct identity all[4], again;
    for (size_t i = 0; i < 4; i++) {
        open_it(&all[i], keys.text);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(all[i].key, all[j].key);
    }
    identity_close(&all[2]);
    open_it(&again, keys.text);
    assert_string_equal(again.key, all[2].key);
    identity_close(&again);
    identity_close(&all[0]);
    identity_close(&all[1]);
    identity_close(&all[3]);
}

TEST(it_lies_where_the_state_of_programs_lies)
{
    struct scratch *scratch = *state;
    struct identity identity;
    char path[256];
    assert_int_equal(setenv("XDG_STATE_HOME", scratch->folder, 1), 0);
    open_it(&identity, NULL);
    (void)snprintf(path, sizeof path, "%s/lockstep/job/replica-0.key",
                   scratch->folder);
    assert_string_equal(identity.path, path);
    identity_close(&identity);
    assert_int_equal(unsetenv("XDG_STATE_HOME"), 0);
    assert_int_equal(setenv("HOME", scratch->folder, 1), 0);
    open_it(&identity, NULL);
    (void)snprintf(path, sizeof path,
                   "%s/.local/state/lockstep/job/replica-0.key",
                   scratch->folder);
    assert_string_equal(identity.path, path);
    identity_close(&identity);
    assert_int_equal(scratch->n_lines, 0);
}

TEST(without_a_folder_it_is_of_one_life)
{
    struct scratch *scratch = *state;
    struct identity identity;
    char path[LS_PATH_MAX];
    assert_int_equal(setenv("XDG_STATE_HOME", "/dev/null/x", 1), 0);
    open_it(&identity, NULL);
    assert_false(identity.lasting);
    assert_int_equal(scratch->n_lines, 1);
    memcpy(path, identity.path, sizeof path);
    assert_int_equal(access(path, R_OK), 0);
    identity_close(&identity);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(unsetenv("XDG_STATE_HOME"), 0);
}

TEST(what_cannot_be_is_told)
{
    struct scratch *scratch = *state;
    const struct path keys = keys_of(scratch);
    struct identity identity = {.path = ""};
    char path[256], long_name[LS_PATH_MAX + 8];
    assert_fails(identity_open(&identity, "/dev/null/x", "job"), LS_EIO);
    assert_error_has("/dev/null");
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    assert_fails(identity_open(&identity, long_name, "job"), LS_ELIMIT);
    open_it(&identity, keys.text);
    memcpy(path, identity.path, sizeof path);
    identity_close(&identity);
    assert_int_equal(chmod(path, 0644), 0);
    assert_fails(identity_open(&identity, keys.text, "job"), LS_ECONFIG);
    assert_error_has("chmod");
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(truncate(path, 10), 0);
    assert_fails(identity_open(&identity, keys.text, "job"), LS_ECONFIG);
    assert_error_has(path);
    assert_int_equal(unlink(path), 0);
    open_it(&identity, keys.text);
    identity_close(&identity);
}
