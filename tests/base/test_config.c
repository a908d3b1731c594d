

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lockstep/config.h"
#include "sanitized.h"
#include "test.h"

static ls_config *parse(const char *text)
{
    ls_config *config = NULL;
    if (ls_config_parse(&config, "t.yaml", text) != LS_OK)
        fail_msg("%s", ls_error_text());
    return config;
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

static void assert_reported(ls_config **config, const char *report)
{
    assert_fails(ls_config_finish(*config), LS_ECONFIG);
    assert_string_equal(ls_config_report(*config), report);
    assert_memory_equal(report, ls_error_text(), strlen(ls_error_text()));
    ls_config_destroy(config);
}

static uint64_t hash_of(const char *text)
{
    ls_config *config = parse(text);
    const uint64_t hash = ls_config_hash(config);
    ls_config_destroy(&config);
    return hash;
}

TEST(getters_return_what_the_file_says)
{
    static const char *const kinds[] = {"slow", "fast", NULL};
    ls_config *config = parse("steps: 64\n"
                              "hex: 0x10\n"
                              "octal: 0o17\n"
                              "ten: 010\n"
                              "rate: 1e-3\n"
                              "whole: 2\n"
                              "on: true\n"
                              "name: \"64\"\n"
                              "kind: fast\n"
                              "peers: [a, \"b\"]\n"
                              "peer: c\n");
    ls_config_section *const root = ls_config_root(config);
    assert_int_equal(ls_config_int(root, "steps", 1, 0, 100), 64);
    assert_int_equal(ls_config_int(root, "hex", 1, 0, 100), 16);
    assert_int_equal(ls_config_int(root, "octal", 1, 0, 100), 15);
    assert_int_equal(ls_config_int(root, "ten", 1, 0, 100), 10);
    assert_true(ls_config_double(root, "rate", 1, 0, 1) == 1e-3);
    assert_true(ls_config_double(root, "whole", 1, 0, 2) == 2);
    assert_true(ls_config_bool(root, "on", false));
    assert_string_equal(ls_config_string(root, "name", NULL), "64");
    assert_int_equal(ls_config_choice(root, "kind", 0, kinds), 1);
    assert_int_equal(ls_config_n_strings(root, "peers"), 2);
    assert_string_equal(ls_config_string_at(root, "peers", 1), "b");
    assert_null(ls_config_string_at(root, "peers", 2));
    assert_int_equal(ls_config_n_strings(root, "peer"), 1);
    assert_string_equal(ls_config_string_at(root, "peer", 0), "c");
    assert_clean(&config);
}

TEST(what_the_file_does_not_have_is_the_default)
{
    static const char *const kinds[] = {"slow", "fast", NULL};
    ls_config *config = parse("# nothing\n");
    ls_config_section *const root = ls_config_root(config);
    ls_config_section *const below =
        ls_config_section_at(ls_config_section_at(root, "a"), "b");
    assert_int_equal(ls_config_int(below, "x", 7, 0, 100), 7);
    assert_true(ls_config_double(below, "x", 0.5, 0, 1) == 0.5);
    assert_true(ls_config_bool(below, "x", true));
    assert_null(ls_config_string(below, "x", NULL));
    assert_int_equal(ls_config_choice(below, "x", -1, kinds), -1);
    assert_int_equal(ls_config_n_strings(below, "x"), 0);
    assert_null(ls_config_string_at(below, "x", 0));
    assert_int_equal(ls_config_n_sections(below, "x"), 0);
    ls_config_section *const item = ls_config_item(below, "x", 3);
    assert_false(ls_config_has(item, "y"));
    assert_clean(&config);
}

TEST(sections_and_lists_of_them_are_read)
{
    ls_config *config = parse("learner:\n"
                              "  lr: 0.5\n"
                              "actor:\n"
                              "nodes:\n"
                              "  - {bind: a}\n"
                              "  - bind: b\n");
    ls_config_section *const root = ls_config_root(config);
    ls_config_section *const learner = ls_config_section_at(root, "learner");
    assert_ptr_equal(ls_config_section_at(root, "learner"), learner);
    assert_true(ls_config_double(learner, "lr", 0, 0, 1) == 0.5);
    assert_false(ls_config_has(ls_config_section_at(root, "actor"), "n"));
    assert_int_equal(ls_config_n_sections(root, "nodes"), 2);
    ls_config_section *const node = ls_config_item(root, "nodes", 1);
    assert_string_equal(ls_config_string(node, "bind", ""), "b");
    assert_ptr_equal(ls_config_item(root, "nodes", 1), node);
    assert_clean(&config);
}

TEST(an_unknown_key_is_shown_with_the_nearest)
{
    ls_config *config = parse("actor:\n"
                              "\n"
                              "    colector: {steps: 64}\n");
    ls_config_section *const actor =
        ls_config_section_at(ls_config_root(config), "actor");
    (void)ls_config_section_at(actor, "collector");
    assert_reported(
        &config,
        "t.yaml:3:5: unknown key \"colector\"; did you mean \"collector\"?\n"
        "  3 |     colector: {steps: 64}\n"
        "    |     ^\n");
}

TEST(a_key_that_stands_elsewhere_is_shown_with_its_place)
{
    ls_config *config = parse("patience: 1\n"
                              "peers: [{}]\n");
    ls_config_section *const root = ls_config_root(config);
    (void)ls_config_int(root, "steps", 0, 0, 9);
    assert_int_equal(ls_config_n_sections(root, "peers"), 1);
    (void)ls_config_int(ls_config_item(root, "peers", 0), "patience", 0, 0, 9);
    assert_reported(&config, "t.yaml:1:1: unknown key \"patience\"; did you "
                             "mean \"peers.0.patience\"?\n"
                             "  1 | patience: 1\n"
                             "    | ^\n");
}

TEST(a_key_near_to_none_is_shown_with_those_known)
{
    ls_config *config = parse("speed: 1\n");
    (void)ls_config_int(ls_config_root(config), "steps", 0, 0, 9);
    (void)ls_config_bool(ls_config_root(config), "on", false);
    assert_reported(&config, "t.yaml:1:1: unknown key \"speed\"; known here: "
                             "steps, on\n"
                             "  1 | speed: 1\n"
                             "    | ^\n");
}

TEST(every_problem_is_reported_by_line)
{
    static const char *const kinds[] = {"slow", "fast", NULL};
    ls_config *config = parse("kind: fst\n"
                              "rate: 2\n"
                              "steps: \"64\"\n"
                              "steps: 3\n"
                              "on: yes\n"
                              "peers: [a, 1]\n"
                              "extra: 1\n");
    ls_config_section *const root = ls_config_root(config);
    ls_config_section *const net = ls_config_section_at(root, "net");
    assert_int_equal(ls_config_n_strings(root, "peers"), 0);
    assert_false(ls_config_bool(root, "on", false));
    assert_int_equal(ls_config_int(root, "steps", 5, 1, 9), 5);
    assert_int_equal(ls_config_int(root, "steps", 5, 1, 9), 5);
    assert_true(ls_config_double(root, "rate", 0.5, 0, 1) == 0.5);
    assert_int_equal(ls_config_choice(root, "kind", 0, kinds), 0);
    assert_false(ls_config_require(net, "port"));
    ls_config_problem(root, "rate", "the rate of %d is too much", 2);
    assert_reported(
        &config,
        "t.yaml:1:1: missing key \"net.port\"\n"
        "  1 | kind: fst\n"
        "    | ^\n"
        "t.yaml:1:7: \"kind\" must be one of slow, fast, not the text \"fst\"; "
        "did you mean \"fast\"?\n"
        "  1 | kind: fst\n"
        "    |       ^\n"
        "t.yaml:2:7: \"rate\" must be a finite number from 0 to 1, not the "
        "number 2\n"
        "  2 | rate: 2\n"
        "    |       ^\n"
        "t.yaml:2:7: the rate of 2 is too much\n"
        "  2 | rate: 2\n"
        "    |       ^\n"
        "t.yaml:3:8: \"steps\" must be a whole number from 1 to 9, not the "
        "text \"64\"\n"
        "  3 | steps: \"64\"\n"
        "    |        ^\n"
        "t.yaml:4:1: duplicate key \"steps\"; the first is on line 3\n"
        "  4 | steps: 3\n"
        "    | ^\n"
        "t.yaml:5:5: \"on\" must be true or false, not the text \"yes\"\n"
        "  5 | on: yes\n"
        "    |     ^\n"
        "t.yaml:6:12: \"peers.1\" must be a text, not the number 1; put it in "
        "quotes\n"
        "  6 | peers: [a, 1]\n"
        "    |            ^\n"
        "t.yaml:7:1: unknown key \"extra\"; known here: net, peers, on, steps, "
        "rate, kind\n"
        "  7 | extra: 1\n"
        "    | ^\n");
}

TEST(limits_of_a_range_are_named_only_where_there_are)
{
    ls_config *config = parse("a: x\nb: x\nc: x\nd: .inf\ne: 1e999\n"
                              "f: 9999999999999999999\ng: 0\n"
                              "h: -9999999999999999999\n");
    ls_config_section *const root = ls_config_root(config);
    (void)ls_config_int(root, "a", 0, INT64_MIN, INT64_MAX);
    (void)ls_config_int(root, "b", 0, 1, INT64_MAX);
    (void)ls_config_int(root, "c", 0, INT64_MIN, 1);
    assert_true(ls_config_double(root, "d", 2, -HUGE_VAL, HUGE_VAL) == 2);
    assert_true(ls_config_double(root, "e", 2, 0, DBL_MAX) == 2);
    assert_int_equal(ls_config_int(root, "f", 3, 0, INT64_MAX), 3);
    assert_int_equal(ls_config_int(root, "g", 3, 1, 9), 3);
    assert_int_equal(ls_config_int(root, "h", 3, INT64_MIN, INT64_MAX), 3);
    assert_fails(ls_config_finish(config), LS_ECONFIG);
    const char *const report = ls_config_report(config);
    assert_non_null(strstr(report, "\"a\" must be a whole number, not"));
    assert_non_null(strstr(report, "\"b\" must be a whole number, at least 1"));
    assert_non_null(strstr(report, "\"c\" must be a whole number, at most 1,"));
    assert_non_null(strstr(report, "\"d\" must be a finite number, not"));
    assert_non_null(
        strstr(report, "\"e\" must be a finite number, at least 0"));
    assert_non_null(strstr(report, "\"f\" must be a whole number from 0 to "
                                   "9223372036854775807, not the number "
                                   "9999999999999999999\n"));
    assert_non_null(strstr(report, "\"h\" must be a whole number, at least "
                                   "-9223372036854775808, not the number"));
    ls_config_destroy(&config);
}

TEST(a_section_that_is_something_else_is_one_problem)
{
    ls_config *config = parse("net: 5\nnodes: {}\nmore: [{a: 1}, 2]\n");
    ls_config_section *const root = ls_config_root(config);
    assert_false(ls_config_require(ls_config_section_at(root, "net"), "port"));
    assert_int_equal(ls_config_n_sections(root, "nodes"), 0);
    assert_int_equal(ls_config_n_sections(root, "more"), 2);
    assert_true(ls_config_has(ls_config_item(root, "more", 0), "a"));
    assert_false(ls_config_require(ls_config_item(root, "more", 1), "a"));
    assert_reported(&config,
                    "t.yaml:1:6: \"net\" must be a mapping, not the number 5\n"
                    "  1 | net: 5\n"
                    "    |      ^\n"
                    "t.yaml:2:8: \"nodes\" must be a list of mappings, not a "
                    "mapping\n"
                    "  2 | nodes: {}\n"
                    "    |        ^\n"
                    "t.yaml:3:16: \"more.1\" must be a mapping, not the number "
                    "2\n"
                    "  3 | more: [{a: 1}, 2]\n"
                    "    |                ^\n");
}

TEST(a_choice_is_read_as_it_is_written)
{
    static const char *const names[] = {"1", "0x2", "true", NULL};
    ls_config *config = parse("a: 1\nb: 0x2\nc: true\nd: 2\n");
    ls_config_section *const root = ls_config_root(config);
    assert_int_equal(ls_config_choice(root, "a", -1, names), 0);
    assert_int_equal(ls_config_choice(root, "b", -1, names), 1);
    assert_int_equal(ls_config_choice(root, "c", -1, names), 2);
    assert_int_equal(ls_config_choice(root, "d", -1, names), -1);
    assert_fails(ls_config_finish(config), LS_ECONFIG);
    ls_config_destroy(&config);
}

/* And they are the same however often it is asked for. */
TEST(of_many_problems_the_first_thousand_are_reported)
{
    enum { MANY = 1003 };
    static char text[MANY * 8], report[200 * MANY];
    size_t used = 0;
    for (int i = 0; i < MANY; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "k%d: 1\n", i);
    ls_config *config = parse(text);
    assert_fails(ls_config_finish(config), LS_ECONFIG);
    assert_error_has("t.yaml:1:1: unknown key \"k0\"");
    assert_has(ls_config_report(config), "unknown key \"k999\"");
    assert_has(ls_config_report(config), "and 3 more problems\n");
    assert_null(strstr(ls_config_report(config), "\"k1000\""));
    (void)snprintf(report, sizeof report, "%s", ls_config_report(config));
    assert_fails(ls_config_finish(config), LS_ECONFIG);
    assert_string_equal(ls_config_report(config), report);
    ls_config_destroy(&config);
}

TEST(what_another_program_reads_is_accepted)
{
    ls_config *config = parse("extra: {a: {b: 1}, c: 2}\n");
    ls_config_section *const extra =
        ls_config_section_at(ls_config_root(config), "extra");
    (void)ls_config_section_at(extra, "a");
    ls_config_accept_all(extra);
    assert_clean(&config);
}

TEST(overrides_replace_and_add)
{
    ls_config *config = parse("learner: {lr: 0.5}\nnodes: [{bind: a}]\nnet:\n");
    assert_ok(ls_config_set(config, "learner.lr", "0.25"));
    assert_ok(ls_config_set(config, "nodes.0.bind", "b"));
    assert_ok(ls_config_set(config, "net.tcp.port", "5"));
    assert_ok(ls_config_set(config, "peers", "[x, y]"));
    ls_config_section *const root = ls_config_root(config);
    ls_config_section *const tcp =
        ls_config_section_at(ls_config_section_at(root, "net"), "tcp");
    assert_true(ls_config_double(ls_config_section_at(root, "learner"), "lr", 0,
                                 0, 1) == 0.25);
    assert_string_equal(
        ls_config_string(ls_config_item(root, "nodes", 0), "bind", ""), "b");
    assert_int_equal(ls_config_int(tcp, "port", 0, 0, 9), 5);
    assert_int_equal(ls_config_n_strings(root, "peers"), 2);
    assert_fails(ls_config_set(config, "late", "1"), LS_ESTATE);
    assert_clean(&config);
}

TEST(a_wrong_override_is_refused)
{
    ls_config *config = parse("a: 1\nlist: [x]\n");
    assert_fails(ls_config_set(config, "a.b", "1"), LS_EINVAL);
    assert_error_has("below the number 1");
    assert_fails(ls_config_set(config, "list.1", "1"), LS_EINVAL);
    assert_fails(ls_config_set(config, "list.x", "1"), LS_EINVAL);
    assert_fails(ls_config_set(config, "a..b", "1"), LS_EINVAL);
    assert_fails(ls_config_set(config, "new..b", "1"), LS_EINVAL);
    assert_fails(ls_config_set(config, "new.", "1"), LS_EINVAL);
    assert_fails(ls_config_set(config, "", "1"), LS_EINVAL);
    assert_fails(ls_config_set(config, "a", "b: c: d"), LS_EINVAL);
    assert_error_has("a:1:5: not YAML");
    char path[100];
    for (size_t i = 0; i < sizeof path; i++)
        path[i] = i % 2 == 0 ? 'k' : '.';
    path[sizeof path - 1] = '\0';
    assert_fails(ls_config_set(config, path, "1"), LS_EINVAL);
    memset(path, '[', 33);
    memset(path + 33, ']', 33);
    path[66] = '\0';
    assert_fails(ls_config_set(config, "a", path), LS_EINVAL);
    static char large[(1 << 20) + 2];
    memset(large, '#', sizeof large - 1);
    assert_fails(ls_config_set(config, "a", large), LS_ELIMIT);
    assert_false(ls_config_has(ls_config_root(config), "new"));
    ls_config_destroy(&config);
}

TEST(a_bad_overriding_value_is_shown)
{
    ls_config *config = parse("lr: 1\n");
    assert_ok(ls_config_set(config, "lr", "high"));
    (void)ls_config_double(ls_config_root(config), "lr", 0, 0, 1);
    assert_reported(&config,
                    "lr:1:1: \"lr\" must be a finite number from 0 to 1, not "
                    "the text \"high\"\n"
                    "  1 | high\n"
                    "    | ^\n");
}

TEST(files_are_read_and_named)
{
    char path[] = "/tmp/lockstep-config-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "lr: 1\n", 6), 6);
    close(fd);
    ls_config *config = NULL;
    assert_ok(ls_config_load(&config, path));
    assert_int_equal(ls_config_int(ls_config_root(config), "lr", 0, 0, 9), 1);
    assert_clean(&config);
    assert_int_equal(truncate(path, (1 << 20) + 1), 0);
    assert_fails(ls_config_load(&config, path), LS_ECONFIG);
    assert_error_has(path);
    unlink(path);
    assert_fails(ls_config_load(&config, path), LS_ENOENT);
    assert_error_has(path);
    assert_fails(ls_config_load(&config, "/tmp"), LS_EIO);
    assert_null(config);
}

TEST(the_hash_is_of_the_meaning)
{
    const uint64_t hash = hash_of("a: 1\nb: {c: [x, 2.5], d: true}\n");
    assert_true(hash == hash_of("b:\n  d: true\n  c:\n  - 'x'\n  - 2.50\n"
                                "a: 0x1 # one\n"));
    assert_true(hash != hash_of("a: 2\nb: {c: [x, 2.5], d: true}\n"));
    assert_true(hash != hash_of("a: \"1\"\nb: {c: [x, 2.5], d: true}\n"));
    assert_true(hash != hash_of("a: 1.0\nb: {c: [x, 2.5], d: true}\n"));
    assert_true(hash != hash_of("a: 1\nb: {c: [2.5, x], d: true}\n"));
    assert_true(hash != hash_of("a: 1\nb: {c: [x, 2.5]}\nd: true\n"));
    assert_true(hash_of("a: b\nc: d") != hash_of("a: d\nc: b"));
    assert_true(hash_of("a: []") != hash_of("a: {}"));
    ls_config *config = parse("a: 1\nb: {c: [x, 3], d: true}\n");
    assert_ok(ls_config_set(config, "b.c.1", "2.5"));
    assert_true(hash == ls_config_hash(config));
    ls_config_destroy(&config);
}

TEST(a_section_has_a_hash_of_its_own)
{
    ls_config *config = parse("a: {b: {c: 1}}\nd: {c: 0x1}\ne: {}\n");
    ls_config_section *root = ls_config_root(config);
    ls_config_section *a = ls_config_section_at(root, "a");
    const uint64_t b = ls_config_section_hash(ls_config_section_at(a, "b"));
    assert_true(b == hash_of("c: 1"));
    assert_true(b == ls_config_section_hash(ls_config_section_at(root, "d")));
    assert_true(ls_config_section_hash(root) == ls_config_hash(config));
    assert_true(ls_config_section_hash(ls_config_section_at(root, "e")) ==
                ls_config_section_hash(ls_config_section_at(root, "none")));
    assert_true(ls_config_section_hash(a) != b);
    ls_config_destroy(&config);
}

TEST(the_nearest_word_is_one_slip_away)
{
    static const char *const names[] = {"collector", "learner", "lr", "on"};
    assert_string_equal(ls_nearest("colector", names, 4), "collector");
    assert_string_equal(ls_nearest("learnre", names, 4), "learner");
    assert_string_equal(ls_nearest("lr", names, 4), "lr");
    assert_null(ls_nearest("l", names, 4));
    assert_string_equal(ls_nearest("lt", names, 4), "lr");
    assert_string_equal(ls_nearest("kolecktor", names, 4), "collector");
    assert_string_equal(ls_nearest("rl", names, 4), "lr");
    assert_null(ls_nearest("actor", names, 4));
    assert_null(ls_nearest("", names, 4));
    assert_null(ls_nearest("lr", names, 0));
}

TEST(a_config_is_written_as_one_value)
{
    ls_config *config =
        parse("{\"a\": 1, \"b\": [true, null, 2.5, \"x\\n\"], \"c\": {}}");
    ls_writer *writer = NULL;
    ls_document *document = NULL;
    const void *data;
    size_t size;
    char text[64];
    assert_ok(ls_writer_create(&writer));
    ls_config_write(config, writer);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_ok(ls_document_read(&document, data, size, NULL));
    (void)ls_value_print(ls_document_root(document), text, sizeof text);
    assert_string_equal(text, "{\"a\":1,\"b\":[true,null,2.5,\"x\\n\"],"
                              "\"c\":{}}");
    ls_document_destroy(&document);
    ls_writer_destroy(&writer);
    ls_config_destroy(&config);
}

TEST(a_section_is_written_as_one_value)
{
    ls_config *config = parse("a: {b: 1, c: [x]}\n");
    ls_config_section *root = ls_config_root(config);
    const ls_config_section *sections[] = {ls_config_section_at(root, "a"),
                                           ls_config_section_at(root, "none"),
                                           NULL};
    ls_writer *writer = NULL;
    ls_document *document = NULL;
    const void *data;
    size_t size;
    char text[64];
    assert_ok(ls_writer_create(&writer));
    ls_write_array(writer, 3);
    for (size_t i = 0; i < 3; i++)
        ls_config_section_write(sections[i], writer);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_ok(ls_document_read(&document, data, size, NULL));
    (void)ls_value_print(ls_document_root(document), text, sizeof text);
    assert_string_equal(text, "[{\"b\":1,\"c\":[\"x\"]},{},{}]");
    ls_document_destroy(&document);
    ls_writer_destroy(&writer);
    ls_config_destroy(&config);
}

/* A key that there is no memory for is forgotten; those before it stay. */
TEST(without_memory_for_one_key_the_others_are_known)
{
    if (SANITIZED)
        skip(); /* they need the address space themselves */
    const size_t size = 64u << 20;
    char *const huge = malloc(size);
    struct rlimit before;
    assert_non_null(huge);
    memset(huge, 'k', size - 1);
    huge[size - 1] = '\0';
    ls_config *config = parse("first: 1\nsecond: 2\nthird: 3\nfourth: 4\n");
    ls_config_section *const root = ls_config_root(config);
    assert_true(ls_config_has(root, "first"));
    assert_true(ls_config_has(root, "second"));
    assert_true(ls_config_has(root, "third"));
    assert_true(ls_config_has(root, "fourth"));
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
    const bool has = ls_config_has(root, huge);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_false(has);
    free(huge);
    assert_false(ls_config_has(root, "fifth"));
    assert_false(ls_config_has(root, "sixth"));
    assert_fails(ls_config_finish(config), LS_ENOMEM);
    assert_string_equal(ls_config_report(config), "");
    ls_config_destroy(&config);
}

TEST(destroying_nothing_is_fine)
{
    ls_config *config = NULL;
    ls_config_destroy(NULL);
    ls_config_destroy(&config);
}
