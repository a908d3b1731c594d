/* Weights as a file: what is written comes back, and nothing else does. */
#include "weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file_bytes.h"
#include "lockstep/vault.h"
#include "report.h"
#include "test.h"

/* A policy that is one number. */
static int save(const void *policy, ls_writer *out)
{
    ls_write_int(out, *(const int64_t *)policy);
    return LS_OK;
}

static int load(void *policy, const ls_value *in)
{
    return ls_value_int(in, policy);
}

static const struct ls_policy_ops ops = {.save = save, .load = load};
static const struct ls_plugin plugin = {
    .name = "number", .version = "1", .policy = &ops};

struct place {
    char folder[64];
    struct agent agent;
    int64_t number;
};

static int set_up(void **state)
{
    static struct place place;
    memset(&place, 0, sizeof place);
    strcpy(place.folder, "/tmp/lockstep-weights-XXXXXX");
    place.agent = (struct agent){.plugin = &plugin, .policy = &place.number};
    *state = &place;
    return mkdtemp(place.folder) == NULL ||
           ls_writer_create(&place.agent.writer) != LS_OK;
}

static int tear_down(void **state)
{
    struct place *place = *state;
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", place->folder, WEIGHTS_FINAL);
    (void)unlink(path);
    ls_writer_destroy(&place->agent.writer);
    return rmdir(place->folder); /* fails when anything else is left */
}

static const struct weights_note note = {.seed = 5,
                                         .iteration = 9,
                                         .train_iter = 8,
                                         .env_step = 1 << 20,
                                         .env_episode = 77};

static void write_number(struct place *place, int64_t number)
{
    char path[REPORT_PATH_MAX];
    place->number = number;
    assert_ok(weights_save(&place->agent, &note, true, place->folder,
                           WEIGHTS_FINAL, path, sizeof path));
    assert_non_null(strstr(path, "/policy.msgpack"));
}

static int read_number(struct place *place, uint64_t seed,
                       struct weights_note *out)
{
    ls_vault *vault;
    void *data = NULL;
    size_t size = 0;
    place->number = -1;
    assert_ok(ls_vault_open(
        &vault,
        &(struct ls_vault_options){.folder = place->folder, .found = true}));
    int status = ls_vault_get(vault, WEIGHTS_FINAL, 4096, &data, &size);
    ls_vault_close(&vault);
    if (status == LS_OK)
        status = weights_read(&place->agent, seed, data, size, out);
    free(data);
    return status;
}

EACH_TEST(set_up, tear_down)

TEST(what_was_saved_last_is_loaded)
{
    struct place *place = *state;
    struct weights_note loaded;
    write_number(place, 41);
    write_number(place, 42);
    assert_ok(read_number(place, 5, &loaded));
    assert_int_equal(place->number, 42);
    assert_memory_equal(&loaded, &note, sizeof note);
}

TEST(no_file_is_no_entry)
{
    struct weights_note loaded;
    assert_fails(read_number(*state, 5, &loaded), LS_ENOENT);
    assert_error_has("policy.msgpack");
}

TEST(weights_of_another_run_are_refused)
{
    struct place *place = *state;
    struct weights_note loaded;
    write_number(place, 42);
    assert_fails(read_number(place, 6, &loaded), LS_EMISMATCH);
    static const struct ls_plugin others[] = {
        {.name = "other", .version = "1", .policy = &ops},
        {.name = "number", .version = "2", .policy = &ops},
    };
    for (size_t i = 0; i < 2; i++) {
        place->agent.plugin = &others[i];
        assert_fails(read_number(place, 5, &loaded), LS_EMISMATCH);
        assert_int_equal(place->number, -1);
    }
}

TEST(a_file_that_is_cut_anywhere_is_refused)
{
    struct place *place = *state;
    struct weights_note loaded;
    char path[128], bytes[512];
    write_number(place, 42);
    (void)snprintf(path, sizeof path, "%s/%s", place->folder, WEIGHTS_FINAL);
    const size_t size = read_bytes(path, bytes, sizeof bytes);
    assert_in_range(size, 100, sizeof bytes - 1);
    for (size_t n = 0; n < size; n++) {
        write_bytes(path, bytes, n);
        assert_fails(read_number(place, 5, &loaded), LS_EPROTO);
        assert_int_equal(place->number, -1);
    }
}

TEST(an_opened_file_says_what_it_is_of)
{
    struct place *place = *state;
    struct weights_file file;
    ls_config *config = NULL;
    char text[64];
    assert_ok(ls_config_parse(&config, "job.yaml", "env: {a: 1.5}"));
    place->agent.env_section =
        ls_config_section_at(ls_config_root(config), "env");
    write_number(place, 42);
    assert_ok(weights_open(&file, place->folder, WEIGHTS_FINAL));
    assert_string_equal(file.plugin, "number");
    assert_string_equal(file.plugin_version, "1");
    assert_memory_equal(&file.note, &note, sizeof note);
    (void)ls_value_print(file.env, text, sizeof text);
    assert_string_equal(text, "{\"a\":1.5}");
    assert_int_equal(ls_value_type(file.policy), LS_VALUE_MAP);
    assert_int_equal(ls_value_type(file.weights), LS_VALUE_INT);
    assert_non_null(file.training);
    place->number = 0;
    assert_ok(weights_use(&place->agent, &file));
    assert_int_equal(place->number, 42);
    static const struct ls_plugin other = {
        .name = "number", .version = "2", .policy = &ops};
    place->agent.plugin = &other;
    assert_fails(weights_use(&place->agent, &file), LS_EMISMATCH);
    assert_error_has("it is from plugin number 1, and this is number 2");
    weights_close(&file);
    ls_config_destroy(&config);
}

/* A table, each entry by itself, and inside of many others. */
enum { ENTRIES = 100000, LEVELS = 20 };

static int save_table(const void *policy, ls_writer *out)
{
    for (size_t i = 0; i < LEVELS; i++)
        ls_write_array(out, 1);
    ls_write_array(out, ENTRIES);
    for (size_t i = 0; i < ENTRIES; i++)
        ls_write_int(out, *(const int64_t *)policy);
    return LS_OK;
}

static int load_table(void *policy, const ls_value *in)
{
    for (size_t i = 0; i < LEVELS; i++)
        in = ls_value_at(in, 0);
    assert_int_equal(ls_value_size(in), ENTRIES);
    return ls_value_int(ls_value_at(in, ENTRIES - 1), policy);
}

TEST(what_a_policy_can_write_it_can_read)
{
    static const struct ls_policy_ops large_ops = {.save = save_table,
                                                   .load = load_table};
    static const struct ls_plugin large = {
        .name = "table", .version = "1", .policy = &large_ops};
    struct place *place = *state;
    struct weights_file file;
    struct ls_bytes bytes = {.data = NULL};
    place->agent.plugin = &large;
    write_number(place, 42);
    assert_ok(agent_save(&place->agent, &bytes));
    place->number = 0;
    assert_ok(agent_load(&place->agent, &bytes));
    assert_int_equal(place->number, 42);
    ls_bytes_clear(&bytes);
    assert_ok(weights_open(&file, place->folder, WEIGHTS_FINAL));
    place->number = 0;
    assert_ok(weights_use(&place->agent, &file));
    assert_int_equal(place->number, 42);
    weights_close(&file);
}

static int fail_silently(void *policy, const ls_value *in)
{
    (void)policy;
    (void)in;
    return LS_EMISMATCH;
}

TEST(a_plugin_that_refuses_weights_without_a_word_is_named)
{
    static const struct ls_policy_ops mute_ops = {.save = save,
                                                  .load = fail_silently};
    static const struct ls_plugin mute = {
        .name = "number", .version = "1", .policy = &mute_ops};
    struct place *place = *state;
    struct weights_file file;
    write_number(place, 42);
    assert_ok(weights_open(&file, place->folder, WEIGHTS_FINAL));
    place->agent.plugin = &mute;
    assert_fails(ls_error(LS_EIO, "of something else"), LS_EIO);
    assert_fails(weights_use(&place->agent, &file), LS_EMISMATCH);
    assert_error_has("plugin number: policy: load: it returned");
    weights_close(&file);
}

TEST(a_plugin_that_is_named_by_a_path_is_seen)
{
    static const struct ls_plugin path = {
        .name = "./number.so", .version = "1", .policy = &ops};
    struct place *place = *state;
    struct weights_file file;
    write_number(place, 42);
    assert_ok(weights_open(&file, place->folder, WEIGHTS_FINAL));
    assert_true(weights_names_plugin(&file));
    weights_close(&file);
    place->agent.plugin = &path;
    write_number(place, 42);
    assert_ok(weights_open(&file, place->folder, WEIGHTS_FINAL));
    assert_false(weights_names_plugin(&file));
    weights_close(&file);
}

TEST(what_is_not_a_file_of_weights_is_not_opened)
{
    struct place *place = *state;
    struct weights_file file;
    ls_vault *vault;
    assert_fails(weights_open(&file, place->folder, "none"), LS_ENOENT);
    assert_fails(weights_open(&file, place->folder, "a b"), LS_EINVAL);
    assert_ok(ls_vault_open(
        &vault, &(struct ls_vault_options){.folder = place->folder}));
    assert_ok(ls_vault_put(vault, WEIGHTS_FINAL, "\x80", 1, false));
    ls_vault_close(&vault);
    assert_fails(weights_open(&file, place->folder, WEIGHTS_FINAL), LS_EPROTO);
    assert_error_has("it is not a file of format lockstep.policy.1");
}

/* Were it LS_ENOENT, a learner would begin with nothing learned. */
TEST(weights_that_lack_a_field_are_refused)
{
    static const char *const fields[] = {
        "format",     "plugin",   "plugin_version", "seed",   "iteration",
        "train_iter", "env_step", "env_episode",    "weights"};
    struct place *place = *state;
    struct weights_note loaded;
    ls_vault *vault;
    void *data;
    size_t size;
    write_number(place, 42);
    assert_ok(ls_vault_open(
        &vault, &(struct ls_vault_options){.folder = place->folder}));
    assert_ok(ls_vault_get(vault, WEIGHTS_FINAL, 512, &data, &size));
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        char *at = data;
        while (memcmp(at + 1, fields[i], strlen(fields[i])) != 0 ||
               *at != (char)(0xa0 + strlen(fields[i])))
            at++;
        at[1]++; /* another name */
        assert_ok(ls_vault_put(vault, WEIGHTS_FINAL, data, size, false));
        at[1]--;
        const int status = read_number(place, 5, &loaded);
        if (status != LS_EPROTO && status != LS_EMISMATCH)
            fail_msg("%s: %s", fields[i], ls_status_name(status));
    }
    free(data);
    ls_vault_close(&vault);
}

/* Whoever opens it finds the map at its beginning. */
TEST(the_file_begins_with_its_map)
{
    struct place *place = *state;
    char path[128], bytes[512];
    write_number(place, 42);
    (void)snprintf(path, sizeof path, "%s/%s", place->folder, WEIGHTS_FINAL);
    const size_t size = read_bytes(path, bytes, sizeof bytes);
    assert_in_range(size, 100, sizeof bytes - 1);
    assert_int_equal((unsigned char)bytes[0], 0x8c); /* of twelve pairs */
    assert_memory_equal(bytes + 1,
                        "\xa6"
                        "format",
                        7);
}

TEST(what_a_killed_learner_left_is_removed)
{
    struct place *place = *state;
    struct weights_note loaded;
    write_number(place, 42);
    char host[65] = "", path[256];
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    (void)snprintf(path, sizeof path, "%s/.part@%ld@1@0@%s", place->folder,
                   0x7ffffffL, host);
    write_bytes(path, "", 0);
    weights_tidy(place->folder); /* else the folder could not be removed */
    assert_ok(read_number(place, 5, &loaded));
}
