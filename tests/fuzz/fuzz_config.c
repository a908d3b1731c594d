/* Any text as a configuration: read, overridden, asked for everything. Behind
 * a NUL each, the input may go on with a path and a value to set. */
#include "fuzz.h"
#include "lockstep/config.h"

static const char *const keys[] = {"a", "b", "lr", "nodes", "0"};
static const char *const choices[] = {"fast", "slow", NULL};

static void ask_values(ls_config_section *section, const char *key)
{
    const int64_t whole = ls_config_int(section, key, 1, 0, 9);
    must(whole >= 0 && whole <= 9);
    const double number = ls_config_double(section, key, 0.5, 0, 1);
    must(number >= 0 && number <= 1);
    (void)ls_config_bool(section, key, true);
    must(ls_config_string(section, key, "") != NULL);
    const int choice = ls_config_choice(section, key, 0, choices);
    must(choice == 0 || choice == 1);
    const size_t n = ls_config_n_strings(section, key);
    for (size_t i = 0; i < n; i++)
        must(ls_config_string_at(section, key, i) != NULL);
    must(n == 0 || ls_config_string_at(section, key, n) == NULL);
    ls_config_problem(section, key, "of the caller's own, with %s", key);
}

static void ask_section(ls_config_section *section, int depth)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (!ls_config_require(section, keys[i]))
            continue;
        ask_values(section, keys[i]);
        if (depth == 0)
            continue;
        ask_section(ls_config_section_at(section, keys[i]), depth - 1);
        const size_t n = ls_config_n_sections(section, keys[i]);
        for (size_t j = 0; j < n && j < 4; j++)
            ask_section(ls_config_item(section, keys[i], j), depth - 1);
    }
}

static void finish(ls_config *config)
{
    const int status = ls_config_finish(config);
    const bool clean = ls_config_report(config)[0] == '\0';
    must(status == LS_OK ? clean : status == LS_ECONFIG && !clean);
}

/* The text behind this one's NUL; "" at the end. */
static const char *text_after(const char *text, const char *end)
{
    const char *const next = text + strlen(text) + 1;
    return next < end ? next : "";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *const text = fuzz_text(data, size);
    const char *const path = text_after(text, text + size);
    const char *const value =
        *path != '\0' ? text_after(path, text + size) : "";

    ls_config *config = NULL;
    ls_config *twin = NULL;
    const int status = ls_config_parse(&config, "fuzz.yaml", text);
    must(ls_config_parse(&twin, "fuzz.yaml", text) == status);
    if (status == LS_OK) {
        must(ls_config_hash(config) == ls_config_hash(twin));
        if (*path != '\0' && ls_config_set(config, path, value) == LS_OK)
            must(ls_config_set(twin, path, value) == LS_OK &&
                 ls_config_hash(config) == ls_config_hash(twin));
        ask_section(ls_config_root(config), 2);
        finish(config);
        ls_config_accept_all(ls_config_root(twin));
        finish(twin);
    } else {
        must(config == NULL && ls_error_text()[0] != '\0');
    }
    ls_config_destroy(&config);
    ls_config_destroy(&twin);
    free(text);
    return 0;
}
