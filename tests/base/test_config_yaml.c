

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/config.h"
#include "test.h"

static ls_config *parse(const char *text)
{
    ls_config *config = NULL;
    if (ls_config_parse(&config, "t.yaml", text) != LS_OK)
        fail_msg("%s", ls_error_text());
    return config;
}

static void assert_no_yaml(int status, const char *text, const char *message)
{
    ls_config *config = (ls_config *)(void *)&config;
    assert_int_equal(ls_config_parse(&config, "t.yaml", text), status);
    assert_null(config);
    if (strncmp(ls_error_text(), message, strlen(message)) != 0)
        fail_msg("\"%s\" is not \"%s\"", ls_error_text(), message);
}

/* What was asked is all there was, and right. */
static void assert_clean(ls_config **config)
{
    if (ls_config_finish(*config) != LS_OK)
        fail_msg("%s", ls_config_report(*config));
    assert_string_equal(ls_config_report(*config), "");
    ls_config_destroy(config);
    assert_null(*config);
}

TEST(what_is_no_yaml_is_shown_with_a_caret)
{
    assert_no_yaml(LS_ECONFIG, "a: b: c\n",
                   "t.yaml:1:5: not YAML: invalid nested block mapping on the "
                   "same line\n"
                   "  1 | a: b: c\n"
                   "    |     ^");
    assert_no_yaml(LS_ECONFIG, "a: [1\n", "t.yaml:");
    assert_no_yaml(LS_ECONFIG, "- 1\n",
                   "t.yaml:1:1: the top must be a mapping");
    assert_no_yaml(LS_ECONFIG, "word\n", "t.yaml:1:1: the top must be");
    assert_no_yaml(LS_ECONFIG, "a: 1\n---\nb: 1\n", "t.yaml:2:1: a second");
    assert_no_yaml(LS_ECONFIG, "a: 1\r\nb: \xff",
                   "t.yaml:2:4: byte 0xff is not");
    assert_no_yaml(LS_ECONFIG, "a: \x01", "t.yaml:1:4: byte 0x01 is a control");
    assert_no_yaml(LS_ECONFIG, "a: \"x\\0y\"", "t.yaml:1:4: a text may not");
    assert_no_yaml(LS_ECONFIG, "[a]: 1", "t.yaml:1:1: a key must be");
    assert_no_yaml(LS_ECONFIG, "a: 1\n- ? a:\t:", "t.yaml:2:1: a line begins");
    assert_no_yaml(LS_ECONFIG, "\xEF\xBB\xBF? a:\t:", "t.yaml:1:1: a line");
    assert_no_yaml(LS_ECONFIG, "a: !!str 1", "t.yaml:1:10: tags");
    assert_no_yaml(LS_ECONFIG, "%YAML 1.1\n---\na: 1",
                   "t.yaml:1:1: directives");
}

TEST(aliases_and_merges_are_written_out)
{
    ls_config *config = parse("base: &base {lr: 1, steps: 2}\n"
                              "a: {<<: *base, lr: 3}\n"
                              "b: {<<: [{steps: 5}, *base]}\n"
                              "lr: &lr 4\n"
                              "again: *lr\n");
    ls_config_section *const root = ls_config_root(config);
    ls_config_accept_all(ls_config_section_at(root, "base"));
    ls_config_section *const a = ls_config_section_at(root, "a");
    ls_config_section *const b = ls_config_section_at(root, "b");
    assert_int_equal(ls_config_int(a, "lr", 0, 0, 9), 3);
    assert_int_equal(ls_config_int(a, "steps", 0, 0, 9), 2);
    assert_int_equal(ls_config_int(b, "lr", 0, 0, 9), 1);
    assert_int_equal(ls_config_int(b, "steps", 0, 0, 9), 5);
    assert_int_equal(ls_config_int(root, "lr", 0, 0, 9), 4);
    assert_int_equal(ls_config_int(root, "again", 0, 0, 9), 4);
    assert_clean(&config);
    assert_no_yaml(LS_ECONFIG, "a: *b", "t.yaml:1:5: there is no &b");
    assert_no_yaml(LS_ECONFIG, "a: &a [*a]", "t.yaml:1:9: *a is inside");
    assert_no_yaml(LS_ECONFIG, "a: {<<: 1}", "t.yaml:1:9: << takes");
}

TEST(texts_in_quotes_are_written_out)
{
    ls_config *config = parse("quotes: '''it''''s'' \"7\" '''''''''''''''\n"
                              "lines: ' one  \n"
                              "  two \r\n"
                              "\n"
                              "  \t three\n"
                              "  '\n"
                              "none: ''\n"
                              "'it''s': \"\\u00fc\\n\"\n"
                              "block: |\n"
                              "  a\n"
                              "   b\n");
    ls_config_section *const root = ls_config_root(config);
    assert_string_equal(ls_config_string(root, "quotes", ""),
                        "'it''s' \"7\" '''''''");
    assert_string_equal(ls_config_string(root, "lines", ""),
                        " one two\nthree ");
    assert_string_equal(ls_config_string(root, "none", "x"), "");
    assert_string_equal(ls_config_string(root, "it's", ""), "\xc3\xbc\n");
    assert_string_equal(ls_config_string(root, "block", ""), "a\n b\n");
    assert_clean(&config);
}

TEST(ten_lines_cannot_mean_a_billion_values)
{
    char text[1024] = "a0: &a0 [x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 10; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i,
                 i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
    assert_no_yaml(LS_ECONFIG, text, "t.yaml:");
    assert_error_has("more than 16384 values");
}

TEST(size_and_depth_are_limited)
{
    char deep[80] = "a: ";
    memset(deep + 3, '[', 31);
    memset(deep + 34, ']', 31);
    ls_config *config = parse(deep);
    ls_config_destroy(&config);
    memset(deep + 3, '[', 32);
    memset(deep + 35, ']', 32);
    assert_no_yaml(LS_ECONFIG, deep, "t.yaml:1:35: nested over 32");

    const size_t size = ((size_t)1 << 20) + 2;
    char *const text = malloc(size);
    assert_non_null(text);
    memset(text, '#', size - 1);
    text[size - 1] = '\0';
    assert_no_yaml(LS_ECONFIG, text, "t.yaml: over 1048576 bytes");
    text[size - 2] = '\0';
    config = parse(text);
    ls_config_destroy(&config);
    free(text);
}

TEST(a_long_line_is_shown_around_the_caret)
{
    char text[400];
    memset(text, ' ', sizeof text);
    memcpy(text, "a: [", 4);
    memcpy(text + 300, "\t\xc3\xbc, 17]", 9);
    text[309] = '\0';
    ls_config *config = parse(text);
    assert_int_equal(ls_config_n_strings(ls_config_root(config), "a"), 0);
    assert_fails(ls_config_finish(config), LS_ECONFIG);
    const char *const shown = strchr(ls_config_report(config), '\n') + 1;
    const char *const below = strchr(shown, '\n') + 1;
    const char *const item = strstr(shown, " \xc3\xbc, 17]\n");
    assert_non_null(item);
    /* One byte less for the \xc3\xbc, which is one column of two bytes. */
    assert_int_equal(strchr(below, '^') - below, item + 5 - shown - 1);
    ls_config_destroy(&config);
}
