/* How plugins are found, and which are refused. */
#include "plugin_load.h"
#include "test.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where CMake puts them: beside this program. */
static char folder[PATH_MAX];

static int find_folder(void **state)
{
    (void)state;
    const ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 16);
    assert_true(n > 0);
    folder[n] = '\0';
    char *slash = strrchr(folder, '/');
    memcpy(slash, "/plugins", sizeof "/plugins");
    return setenv("LOCKSTEP_PLUGIN_PATH", folder, 1);
}

static void assert_refused(const char *name, int status, const char *because)
{
    struct plugin *plugin = NULL;
    assert_int_equal(plugin_load(&plugin, name, ""), status);
    assert_null(plugin);
    if (strstr(ls_error_text(), because) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", ls_error_text(), because);
}

TEST(name_is_found_in_the_plugin_path)
{
    struct plugin *plugin = NULL;
    assert_ok(plugin_load(&plugin, "faulty", ""));
    assert_string_equal(plugin_table(plugin)->name, "faulty");
    assert_non_null(strstr(plugin_path(plugin), "/plugins/faulty.so"));
    plugin_unload(&plugin);
    assert_null(plugin);
    plugin_unload(&plugin);
    plugin_unload(NULL);
}

TEST(every_folder_of_the_plugin_path_is_searched)
{
    char path[2 * PATH_MAX];
    (void)snprintf(path, sizeof path, ":/nonexistent:%s:", folder);
    assert_int_equal(setenv("LOCKSTEP_PLUGIN_PATH", path, 1), 0);
    struct plugin *plugin = NULL;
    assert_ok(plugin_load(&plugin, "faulty", ""));
    plugin_unload(&plugin);
    assert_int_equal(setenv("LOCKSTEP_PLUGIN_PATH", folder, 1), 0);
}

TEST(path_is_taken_from_the_folder_given)
{
    struct plugin *plugin = NULL;
    assert_ok(plugin_load(&plugin, "./faulty.so", folder));
    plugin_unload(&plugin);
    assert_fails(plugin_load(&plugin, "./faulty.so", "/nonexistent"),
                 LS_ENOENT);
    char whole[PATH_MAX + 16];
    (void)snprintf(whole, sizeof whole, "%s/faulty.so", folder);
    assert_ok(plugin_load(&plugin, whole, "/nonexistent"));
    plugin_unload(&plugin);
}

TEST(missing_one_lists_where_was_looked)
{
    assert_refused("nowhere", LS_ENOENT, "/plugins/nowhere.so");
    assert_refused("nowhere", LS_ENOENT, "LOCKSTEP_PLUGIN_PATH");
    assert_refused("/nonexistent/a.so", LS_ENOENT, "/nonexistent/a.so");
}

TEST(missing_one_suggests_the_nearest)
{
    assert_refused("faultly", LS_ENOENT, "did you mean \"faulty\"?");
}

TEST(other_abi_is_refused_with_both_numbers)
{
    char number[32];
    (void)snprintf(number, sizeof number, "ABI %d", LS_PLUGIN_ABI + 1000);
    assert_refused("old", LS_EMISMATCH, number);
    (void)snprintf(number, sizeof number, "needs %d", LS_PLUGIN_ABI);
    assert_refused("old", LS_EMISMATCH, number);
}

TEST(library_without_the_symbol_is_refused)
{
    assert_refused("empty", LS_EMISMATCH, "exports no ls_plugin()");
}

TEST(half_a_plugin_is_refused)
{
    assert_refused("half", LS_EMISMATCH, "brings no policy");
}

TEST(what_a_table_lacks_is_named)
{
    static const struct {
        const char *gap, *because;
    } cases[] = {
        {"env.init", "no env.init()"},
        {"env.fini", "no env.fini()"},
        {"env.spec", "no env.spec()"},
        {"env.reset", "no env.reset()"},
        {"env.step", "no env.step()"},
        {"policy.init", "no policy.init()"},
        {"policy.fini", "no policy.fini()"},
        {"policy.act", "no policy.act()"},
        {"policy.learn", "no policy.learn()"},
        {"policy.save", "no policy.save()"},
        {"policy.load", "no policy.load()"},
        {"env.parts", "env.n_parts is 2, and parts NULL"},
        {"policy.parts", "policy.n_parts is 2, and parts NULL"},
        {"policy.hooks", "policy.n_hooks is 1, and hooks NULL"},
        {"a part's load", "env.parts[0] lacks its name, save() or load()"},
        {"a name of its own", "two of env.parts are named a"},
        {"a hook's fn", "policy.hooks[0] lacks its name or fn()"},
        {"a position", "policy.hooks[0], h, has no position"},
    };
    struct plugin *plugin = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(setenv("GAP", cases[i].gap, 1), 0);
        assert_refused("gaps", LS_EMISMATCH, cases[i].because);
    }
    assert_int_equal(unsetenv("GAP"), 0);
    assert_ok(plugin_load(&plugin, "gaps", ""));
    plugin_unload(&plugin);
}

TEST(file_that_is_no_library_is_refused)
{
    assert_refused("/etc/passwd", LS_EMISMATCH, "not a plugin");
}

int main(void)
{
    return tests_run_with(find_folder, NULL);
}
