/* A folder of checkpoints: what was saved is loaded, and nothing else is. */
#define FOLDER_IN "/dev/shm"

#include "file_bytes.h"
#include "latch.h"
#include "lockstep/checkpoint.h"

#include <math.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "lockstep/file.h"
#include "lockstep/runtime.h"
#include "state/checkpoint_state.h"
#include "state/folder_fixture.h"

EACH_TEST(folder_set_up, folder_tear_down)

static ls_checkpoints *open_one(const struct place *place)
{
    return open_checkpoints(&(struct ls_checkpoints_options){
        .folder = place->folder, .node = "n1", .commits = true});
}

static ls_checkpoints *open_to_look(const struct place *place)
{
    return open_checkpoints(
        &(struct ls_checkpoints_options){.folder = place->folder});
}

static bool is_there(const struct place *place, const char *name)
{
    char path[512];
    struct stat found;
    (void)snprintf(path, sizeof path, "%s/%s", place->folder, name);
    return stat(path, &found) == 0;
}

static unsigned n_files(const struct place *place)
{
    DIR *entries = opendir(place->folder);
    const struct dirent *entry;
    unsigned n = 0;
    assert_non_null(entries);
    while ((entry = readdir(entries)) != NULL)
        n += entry->d_name[0] != '.';
    assert_int_equal(closedir(entries), 0);
    return n;
}

/* ---- saving and loading ------------------------------------------------ */

TEST(what_was_saved_is_loaded)
{
    static const int64_t epochs[] = {0, 1, 7, 999999, 1000000, INT64_MAX};
    static const char *const names[] = {"000000",  "000001",
                                        "000007",  "999999",
                                        "1000000", "9223372036854775807"};
    const struct place *place = *state;
    struct node_state node;
    ls_checkpoints *checkpoints = open_one(place);
    state_make(&node, 0);
    for (size_t i = 0; i < 6; i++)
        save_epoch(checkpoints, epochs[i], &node);
    for (size_t i = 0; i < 6; i++) {
        char name[64];
        state_fill(&node, 33);
        assert_ok(load_one(checkpoints, epochs[i], &node));
        assert_true(state_is(&node, epochs[i]));
        (void)snprintf(name, sizeof name, "n1.%s", names[i]);
        assert_true(is_there(place, name));
        (void)snprintf(name, sizeof name, "manifest.%s", names[i]);
        assert_true(is_there(place, name));
    }
    assert_int_equal(n_files(place), 12); /* small blobs have no files */
    assert_int_equal(newest(checkpoints), INT64_MAX);
    has_epochs(checkpoints, "0 1 7 999999 1000000 9223372036854775807");
    assert_fails(load_one(checkpoints, 2, &node), LS_ENOENT);
    assert_ok(ls_checkpoints_close(&checkpoints));
    assert_null(checkpoints);
    assert_ok(ls_checkpoints_close(&checkpoints));
    checkpoints = open_to_look(place); /* as another program */
    assert_ok(load_one(checkpoints, 7, &node));
    assert_true(state_is(&node, 7));
    assert_ok(ls_checkpoints_verify(checkpoints, 7, NULL));
    assert_ok(ls_checkpoints_close(&checkpoints));
    state_free(&node);
}

/* The names of other files are not epochs. */
TEST(other_files_are_left_alone)
{
    static const char *const others[] = {
        "manifest.00001", "manifest.0000001", "manifest.00000x",
        "manifest.",      "manifest",         "manifest.99999999999999999999",
        "manifest.-00001"};
    const struct place *place = *state;
    struct node_state node;
    ls_checkpoints *checkpoints = open_one(place);
    state_make(&node, 0);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        char path[512];
        (void)snprintf(path, sizeof path, "%s/%s", place->folder, others[i]);
        write_bytes(path, "", 0);
    }
    save_epoch(checkpoints, 3, &node);
    has_epochs(checkpoints, "3");
    assert_ok(ls_checkpoints_rewind(checkpoints, LS_CHECKPOINT_NONE));
    has_epochs(checkpoints, "");
    assert_int_equal(n_files(place), sizeof others / sizeof others[0]);
    assert_ok(ls_checkpoints_close(&checkpoints));
    state_free(&node);
}

TEST(all_that_is_said_of_one_is_read)
{
    struct ls_checkpoint_metric metrics[] = {{"return", 1.5}, {"loss", 0.25}};
    struct ls_checkpoint_note notes[] = {{"last_epoch", (char *)"12"}};
    struct ls_checkpoint_entry entries[2];
    struct ls_checkpoint_manifest read;
    struct node_state node;
    ls_checkpoints *checkpoints = open_one(*state);
    state_make(&node, 5);
    assert_ok(ls_checkpoints_write(checkpoints, 12, node.blobs, &entries[0]));
    assert_string_equal(entries[0].node, "n1");
    entries[1] = (struct ls_checkpoint_entry){"elsewhere", 10, 20};
    const int64_t before = ls_wall_now(ls_runtime_threads());
    assert_ok(ls_checkpoints_commit(
        checkpoints, &(struct ls_checkpoint_manifest){.epoch = 12,
                                                      .run = "a run",
                                                      .stopped = true,
                                                      .entries = entries,
                                                      .n_entries = 2,
                                                      .metrics = metrics,
                                                      .n_metrics = 2,
                                                      .notes = notes,
                                                      .n_notes = 1}));
    assert_ok(ls_checkpoints_manifest(checkpoints, 12, &read));
    assert_int_equal(read.epoch, 12);
    assert_in_range(read.time_ns, before, ls_wall_now(ls_runtime_threads()));
    assert_string_equal(read.run, "a run");
    assert_true(read.stopped);
    assert_int_equal(read.n_entries, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(read.entries[i].node, entries[i].node);
        assert_int_equal(read.entries[i].size, entries[i].size);
        assert_int_equal(read.entries[i].check, entries[i].check);
        assert_ptr_equal(ls_checkpoint_manifest_entry(&read, entries[i].node),
                         &read.entries[i]);
    }
    assert_null(ls_checkpoint_manifest_entry(&read, "n"));
    assert_int_equal(read.n_metrics, 2);
    assert_string_equal(read.metrics[1].name, "loss");
    assert_true(read.metrics[1].value == 0.25);
    assert_string_equal(read.notes[0].name, "last_epoch");
    assert_string_equal(read.notes[0].text, "12");
    ls_checkpoint_manifest_clear(&read);
    /* One of its nodes is elsewhere. */
    size_t n_elsewhere = 0;
    int64_t epoch;
    assert_ok(ls_checkpoints_verify(checkpoints, 12, &n_elsewhere));
    assert_int_equal(n_elsewhere, 1);
    assert_fails(ls_checkpoints_verify(checkpoints, 12, NULL), LS_EPROTO);
    assert_error_has("elsewhere.000012 is missing");
    assert_ok(ls_checkpoints_newest(checkpoints, LS_CHECKPOINT_NONE, true, NULL,
                                    NULL, &epoch));
    assert_fails(ls_checkpoints_newest(checkpoints, LS_CHECKPOINT_NONE, false,
                                       NULL, NULL, &epoch),
                 LS_ENOENT);
    assert_fails(ls_checkpoints_has(checkpoints, 12, &entries[1]), LS_ENOENT);
    assert_ok(ls_checkpoints_close(&checkpoints));
    state_free(&node);
}

TEST(what_an_entry_holds_is_known_before)
{
    struct ls_checkpoint_entry entry;
    struct ls_checkpoint_blob *blobs;
    char text[LS_BLOB_FORM_TEXT_MAX];
    struct node_state node;
    size_t n;
    ls_checkpoints *checkpoints = open_one(*state);
    state_make(&node, 9);
    assert_ok(ls_checkpoints_write(checkpoints, 1, node.blobs, &entry));
    assert_ok(ls_checkpoints_blob_names(checkpoints, 1, &entry, &blobs, &n));
    assert_int_equal(n, 3);
    assert_string_equal(blobs[0].name, "weights");
    assert_string_equal(ls_blob_form_print(&blobs[0].form, text), "f32[3,4]");
    assert_string_equal(blobs[1].name, "counter");
    assert_string_equal(ls_blob_form_print(&blobs[1].form, text), "i64");
    assert_string_equal(blobs[2].name, "text");
    assert_string_equal(ls_blob_form_print(&blobs[2].form, text), "bytes[9]");
    free(blobs);
    assert_ok(ls_checkpoints_close(&checkpoints));
    state_free(&node);
}

TEST(some_can_be_loaded)
{
    static const char *const some[] = {"counter", "text", NULL};
    static const char *const strange[] = {"counter", "strange", NULL};
    static const char *const private[] = {"scratch", NULL};
    struct ls_checkpoint_entry entry;
    struct node_state node;
    ls_checkpoints *checkpoints = open_one(*state);
    state_make(&node, 9);
    assert_ok(ls_checkpoints_write(checkpoints, 1, node.blobs, &entry));
    state_fill(&node, 2);
    assert_ok(ls_checkpoints_load(checkpoints, 1, &entry, node.blobs, some));
    assert_int_equal(node.counter, 9);
    assert_string_equal(node.text, "jjjjjjjjj");
    assert_true(node.weights[0] == 2.0f);
    assert_fails(
        ls_checkpoints_load(checkpoints, 1, &entry, node.blobs, strange),
        LS_ENOENT);
    assert_error_has("n1.000001: there is no blob strange");
    assert_fails(
        ls_checkpoints_load(checkpoints, 1, &entry, node.blobs, private),
        LS_ENOENT);
    assert_ok(ls_blobs_remove(node.blobs, "text"));
    state_fill(&node, 2);
    assert_fails(ls_checkpoints_load(checkpoints, 1, &entry, node.blobs, some),
                 LS_ENOENT);
    assert_error_has("text is asked for, and not registered");
    assert_true(state_is(&node, 2)); /* before anything is loaded */
    assert_ok(ls_checkpoints_close(&checkpoints));
    state_free(&node);
}

/* Nothing is loaded when not all fit. */
TEST(blobs_that_do_not_fit_are_named)
{
    struct ls_checkpoint_entry entry;
    struct node_state node;
    const struct ls_blob more = {
        .name = "more", .form = {.type = LS_BLOB_I64}, .memory = &node.scratch};
    struct ls_blob other = {.name = "counter",
                            .form = {.type = LS_BLOB_F64},
                            .memory = &node.counter};
    ls_checkpoints *checkpoints = open_one(*state);
    state_make(&node, 9);
    assert_ok(ls_checkpoints_write(checkpoints, 1, node.blobs, &entry));
    state_fill(&node, 2);
    assert_ok(ls_blobs_add(node.blobs, &more));
    assert_fails(ls_checkpoints_load(checkpoints, 1, &entry, node.blobs, NULL),
                 LS_ENOENT);
    assert_error_has("there is no blob more");
    assert_ok(ls_blobs_remove(node.blobs, "more"));
    assert_ok(ls_blobs_remove(node.blobs, "counter"));
    assert_fails(ls_checkpoints_load(checkpoints, 1, &entry, node.blobs, NULL),
                 LS_EMISMATCH);
    assert_error_has("counter, which is not registered");
    assert_ok(ls_blobs_add(node.blobs, &other));
    assert_fails(ls_checkpoints_load(checkpoints, 1, &entry, node.blobs, NULL),
                 LS_EMISMATCH);
    assert_error_has("the blob counter is i64, and must be f64");
    assert_ok(ls_blobs_remove(node.blobs, "counter"));
    other.form = (struct ls_blob_form){LS_BLOB_I64, 1, {1}};
    assert_ok(ls_blobs_add(node.blobs, &other));
    assert_fails(ls_checkpoints_load(checkpoints, 1, &entry, node.blobs, NULL),
                 LS_EMISMATCH);
    assert_error_has("is i64, and must be i64[1]");
    assert_ok(ls_blobs_remove(node.blobs, "weights"));
    other =
        (struct ls_blob){.name = "weights", .ops = &text_ops, .self = &node};
    assert_ok(ls_blobs_add(node.blobs, &other));
    assert_fails(ls_checkpoints_load(checkpoints, 1, &entry, node.blobs,
                                     (const char *const[]){"weights", NULL}),
                 LS_EMISMATCH);
    assert_error_has("is f32[3,4], and must be bytes");
    assert_true(state_is(&node, 2));
    assert_ok(ls_checkpoints_close(&checkpoints));
    state_free(&node);
}

/* Ops that write and read in pieces, too few or too many bytes, or fail. */
struct odd {
    int64_t writes, reads; /* of 10 */
    int status;
};

static int odd_save(void *self, ls_blob_sink *sink)
{
    const struct odd *odd = self;
    int status = odd->status;
    for (int64_t i = 0; i < odd->writes && status == LS_OK; i++)
        status = ls_blob_sink_add(sink, "x", 1);
    return status;
}

static int odd_load(void *self, ls_blob_source *source)
{
    struct odd *odd = self;
    int status = odd->status;
    char byte;
    for (int64_t i = 0; i < odd->reads && status == LS_OK; i++)
        status = ls_blob_source_read(source, &byte, 1);
    return status;
}

static void odd_blobs(ls_blobs **out, struct odd *odd)
{
    static const struct ls_blob_ops ops = {.save = odd_save, .load = odd_load};
    assert_ok(ls_blobs_create(out));
    assert_ok(
        ls_blobs_add(*out, &(struct ls_blob){.name = "odd",
                                             .form = {LS_BLOB_U8, 1, {10}},
                                             .ops = &ops,
                                             .self = odd}));
}

TEST(ops_that_do_not_keep_to_the_size_are_named)
{
    struct odd odd = {10, 10, LS_OK};
    struct ls_checkpoint_entry entry;
    ls_blobs *blobs;
    ls_checkpoints *checkpoints = open_one(*state);
    odd_blobs(&blobs, &odd);
    assert_ok(ls_checkpoints_write(checkpoints, 1, blobs, &entry));
    odd.writes = 9;
    assert_fails(ls_checkpoints_write(checkpoints, 2, blobs, NULL),
                 LS_EHANDLER);
    assert_error_has("the blob odd: save() wrote 1 bytes less");
    odd.writes = 11;
    assert_fails(ls_checkpoints_write(checkpoints, 2, blobs, NULL), LS_ELIMIT);
    assert_error_has("odd");
    odd.status = LS_ENOENT;
    assert_fails(ls_checkpoints_write(checkpoints, 2, blobs, NULL), LS_ENOENT);
    assert_fails(ls_checkpoints_load(checkpoints, 1, &entry, blobs, NULL),
                 LS_ENOENT);
    odd.status = LS_OK;
    assert_ok(ls_checkpoints_load(checkpoints, 1, &entry, blobs, NULL));
    odd.reads = 11;
    assert_fails(ls_checkpoints_load(checkpoints, 1, &entry, blobs, NULL),
                 LS_EPROTO);
    assert_error_has("0 bytes are left of it");
    odd.reads = 9;
    assert_fails(ls_checkpoints_load(checkpoints, 1, &entry, blobs, NULL),
                 LS_EHANDLER);
    assert_error_has("load() left 1 bytes");
    assert_int_equal(n_files(*state), 1); /* none of epoch 2 */
    ls_blobs_destroy(&blobs);
    assert_ok(ls_checkpoints_close(&checkpoints));
}

/* Blobs of no bytes, of all sizes around the limits, and a node without any. */
TEST(blobs_may_be_small_or_large)
{
    static const uint64_t sizes[] = {0, 1, 65535, 65536, 65537, 300000};
    unsigned char *memory = calloc(2, 300000);
    struct ls_checkpoint_entry entry;
    ls_blobs *blobs;
    ls_checkpoints *checkpoints = open_one(*state);
    assert_non_null(memory);
    assert_ok(ls_blobs_create(&blobs));
    assert_ok(ls_checkpoints_write(checkpoints, 1, blobs, &entry));
    assert_ok(ls_checkpoints_load(checkpoints, 1, &entry, blobs, NULL));
    assert_int_equal(n_files(*state), 1);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const struct ls_blob blob = {.name = (const char[]){(char)('a' + i), 0},
                                     .form = {LS_BLOB_U8, 1, {sizes[i]}},
                                     .memory = memory + i};
        assert_ok(ls_blobs_add(blobs, &blob));
    }
    for (size_t i = 0; i < 300000; i++)
        memory[i] = (unsigned char)(i * i / 7);
    memcpy(memory + 300000, memory, 300000);
    assert_ok(ls_checkpoints_write(checkpoints, 1, blobs, &entry));
    assert_int_equal(n_files(*state), 3);
    memset(memory, 0, 300000);
    assert_ok(ls_checkpoints_has(checkpoints, 1, &entry));
    assert_ok(ls_checkpoints_load(checkpoints, 1, &entry, blobs, NULL));
    assert_memory_equal(memory, memory + 300000, 299999);
    free(memory);
    ls_blobs_destroy(&blobs);
    assert_ok(ls_checkpoints_close(&checkpoints));
}

/* ---- damage ------------------------------------------------------------ */

struct seen {
    int64_t epoch;
    unsigned n;
    char why[LS_ERROR_TEXT_MAX];
};

static void note_passed(void *self, int64_t epoch, const char *why)
{
    struct seen *seen = self;
    seen->epoch = epoch;
    seen->n++;
    (void)snprintf(seen->why, sizeof seen->why, "%s", why);
}

/* Epoch 2 is refused, this file is named, and epoch 1 is used. */
static void falls_back(ls_checkpoints *checkpoints, const char *file)
{
    struct seen seen = {.n = 0};
    int64_t epoch = 0;
    assert_ok(ls_checkpoints_newest(checkpoints, LS_CHECKPOINT_NONE, false,
                                    note_passed, &seen, &epoch));
    assert_int_equal(epoch, 1);
    assert_int_equal(seen.n, 1);
    assert_int_equal(seen.epoch, 2);
    assert_has(seen.why, file);
}

/* Every byte flipped, cut at every length, and gone. */
static void damage_all(const struct place *place, ls_checkpoints *checkpoints,
                       const char *file)
{
    char path[512];
    void *data;
    size_t size;
    (void)snprintf(path, sizeof path, "%s/%s", place->folder, file);
    assert_ok(ls_file_read(path, 4096, &data, &size));
    unsigned char *bytes = data;
    for (size_t at = 0; at < size; at++) {
        bytes[at] ^= (unsigned char)(1u << at % 8);
        write_bytes(path, bytes, size);
        falls_back(checkpoints, path);
        bytes[at] ^= (unsigned char)(1u << at % 8);
        write_bytes(path, bytes, at);
        falls_back(checkpoints, path);
    }
    write_bytes(path, bytes, size);
    assert_int_equal(newest(checkpoints), 2);
    free(data);
}

TEST(any_damage_is_seen_and_the_one_before_is_used)
{
    const struct place *place = *state;
    struct node_state node;
    ls_checkpoints *checkpoints = open_one(place);
    state_make(&node, 0);
    save_epoch(checkpoints, 1, &node);
    save_epoch(checkpoints, 2, &node);
    damage_all(place, checkpoints, "manifest.000002");
    damage_all(place, checkpoints, "n1.000002");
    assert_ok(load_one(checkpoints, 2, &node));
    assert_true(state_is(&node, 2));
    assert_ok(ls_checkpoints_close(&checkpoints));
    state_free(&node);
}

static int find_shard(void *self, const char *name)
{
    if (strncmp(name, "n1.000002+", 10) == 0)
        (void)snprintf(self, 300, "%s", name);
    return LS_OK;
}

/* A blob with a file of its own. */
TEST(a_damaged_shard_is_named)
{
    const struct place *place = *state;
    static unsigned char large[70000];
    struct node_state node;
    char shard[300] = "", path[512];
    void *data;
    size_t size;
    ls_checkpoints *checkpoints = open_one(place);
    state_make(&node, 0);
    assert_ok(ls_blobs_add(
        node.blobs, &(struct ls_blob){.name = "large",
                                      .form = {LS_BLOB_U8, 1, {sizeof large}},
                                      .memory = large}));
    save_epoch(checkpoints, 1, &node);
    save_epoch(checkpoints, 2, &node);
    assert_ok(ls_folder_each(place->folder, find_shard, shard));
    (void)snprintf(path, sizeof path, "%s/%s", place->folder, shard);
    assert_ok(ls_file_read(path, 100000, &data, &size));
    assert_int_equal(size, sizeof large);
    ((unsigned char *)data)[69999] ^= 1;
    write_bytes(path, data, size);
    falls_back(checkpoints, path);
    falls_back(checkpoints, "large of n1");
    assert_fails(load_one(checkpoints, 2, &node), LS_EPROTO);
    assert_error_has(path);
    write_bytes(path, data, size - 1);
    falls_back(checkpoints, path);
    assert_ok(ls_file_remove(path));
    falls_back(checkpoints, path);
    assert_fails(ls_checkpoints_verify(checkpoints, 2, NULL), LS_EPROTO);
    free(data);
    assert_ok(ls_checkpoints_close(&checkpoints));
    state_free(&node);
}

/* Whole, but of another time or another node. */
TEST(another_entry_is_none_of_this_checkpoint)
{
    const struct place *place = *state;
    struct node_state node;
    char from[512], to[512];
    void *data;
    size_t size;
    ls_checkpoints *checkpoints = open_one(place);
    state_make(&node, 0);
    save_epoch(checkpoints, 1, &node);
    save_epoch(checkpoints, 2, &node);
    (void)snprintf(from, sizeof from, "%s/n1.000001", place->folder);
    (void)snprintf(to, sizeof to, "%s/n1.000002", place->folder);
    assert_ok(ls_file_read(from, 4096, &data, &size));
    write_bytes(to, data, size);
    free(data);
    falls_back(checkpoints, "n1.000002 is not the entry");
    (void)snprintf(from, sizeof from, "%s/manifest.000001", place->folder);
    (void)snprintf(to, sizeof to, "%s/manifest.000002", place->folder);
    assert_ok(ls_file_read(from, 4096, &data, &size));
    write_bytes(to, data, size);
    free(data);
    falls_back(checkpoints, "manifest.000002 is the manifest of epoch 1");
    assert_ok(ls_checkpoints_close(&checkpoints));
    state_free(&node);
}

/* It may be whole, and then is not what an older one may stand in for. */
TEST(one_that_the_system_does_not_give_is_not_passed_over)
{
    const struct place *place = *state;
    struct node_state node;
    struct seen seen = {.n = 0};
    int64_t epoch = 77;
    char path[512];
    ls_checkpoints *checkpoints = open_one(place);
    state_make(&node, 0);
    save_epoch(checkpoints, 1, &node);
    (void)snprintf(path, sizeof path, "%s/manifest.000002", place->folder);
    assert_ok(ls_file_symlink("manifest.000002", path)); /* to itself */
    assert_fails(ls_checkpoints_newest(checkpoints, LS_CHECKPOINT_NONE, false,
                                       note_passed, &seen, &epoch),
                 LS_EIO);
    assert_error_has(path);
    assert_int_equal(seen.n, 0);
    assert_int_equal(epoch, 77);
    assert_ok(ls_file_remove(path));
    assert_int_equal(newest(checkpoints), 1);
    assert_ok(ls_checkpoints_close(&checkpoints));
    state_free(&node);
}

/* A whole entry of a vault, which no checkpoint has written. */
TEST(an_entry_of_something_else_is_none)
{
    const struct place *place = *state;
    struct ls_checkpoint_entry entry = {.node = "n1", .size = 3};
    struct ls_checkpoint_blob *blobs = (void *)&entry;
    struct node_state node;
    ls_vault *vault;
    ls_vault_reader *reader;
    size_t n = 7;
    ls_checkpoints *checkpoints = open_one(place);
    state_make(&node, 3);
    assert_ok(ls_vault_open(
        &vault,
        &(struct ls_vault_options){.folder = place->folder, .found = true}));
    assert_ok(ls_vault_put(vault, "n1.000001", "one", 3, false));
    assert_ok(ls_vault_reader_create(&reader, vault, "n1.000001"));
    entry.check = ls_vault_reader_check(reader);
    ls_vault_reader_destroy(&reader);
    ls_vault_close(&vault);
    assert_fails(ls_checkpoints_blob_names(checkpoints, 1, &entry, &blobs, &n),
                 LS_EPROTO);
    assert_error_has("n1.000001");
    assert_null(blobs);
    assert_int_equal(n, 0);
    assert_fails(ls_checkpoints_load(checkpoints, 1, &entry, node.blobs, NULL),
                 LS_EPROTO);
    assert_true(state_is(&node, 3));
    entry.node[1] = '2';
    assert_fails(ls_checkpoints_blob_names(checkpoints, 1, &entry, &blobs, &n),
                 LS_ENOENT);
    assert_ok(ls_checkpoints_close(&checkpoints));
    state_free(&node);
}

TEST(a_folder_in_the_place_of_a_file_is_damage)
{
    static const char *const names[] = {"n1.000002", "manifest.000002"};
    const struct place *place = *state;
    struct node_state node;
    char path[512];
    ls_checkpoints *checkpoints = open_one(place);
    state_make(&node, 0);
    save_epoch(checkpoints, 1, &node);
    save_epoch(checkpoints, 2, &node);
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", place->folder, names[i]);
        assert_ok(ls_file_remove(path));
        assert_ok(ls_folder_make(path));
        falls_back(checkpoints, names[i]);
        assert_fails(ls_checkpoints_verify(checkpoints, 2, NULL), LS_EPROTO);
        assert_error_has("it is a folder");
    }
    assert_ok(ls_checkpoints_rewind(checkpoints, 1));
    assert_ok(ls_checkpoints_close(&checkpoints));
    state_free(&node);
}

static void make_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(strlen(path) < sizeof address.sun_path);
    memcpy(address.sun_path, path, strlen(path));
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(close(fd), 0);
}

/* Nor does anybody wait for who would write into the pipe. */
TEST(a_pipe_or_a_socket_in_the_place_of_a_file_is_damage)
{
    static const char *const names[] = {"n1.000002", "manifest.000002"};
    const struct place *place = *state;
    struct node_state node;
    char path[512];
    ls_checkpoints *checkpoints = open_one(place);
    state_make(&node, 0);
    save_epoch(checkpoints, 1, &node);
    save_epoch(checkpoints, 2, &node);
    for (size_t i = 0; i < 4; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", place->folder, names[i / 2]);
        assert_ok(ls_file_remove(path));
        if (i % 2 == 0)
            assert_int_equal(mkfifo(path, 0600), 0);
        else
            make_socket(path);
        falls_back(checkpoints, names[i / 2]);
        assert_fails(ls_checkpoints_verify(checkpoints, 2, NULL), LS_EPROTO);
        assert_error_has("it is not a file");
    }
    assert_ok(ls_checkpoints_rewind(checkpoints, 1));
    assert_false(ls_file_exists(path));
    assert_ok(ls_checkpoints_close(&checkpoints));
    state_free(&node);
}

TEST(without_a_valid_one_there_is_none)
{
    const struct place *place = *state;
    struct seen seen = {.n = 0};
    struct node_state node;
    char path[512];
    int64_t epoch;
    ls_checkpoints *checkpoints = open_one(place);
    state_make(&node, 0);
    assert_fails(ls_checkpoints_newest(checkpoints, LS_CHECKPOINT_NONE, false,
                                       NULL, NULL, &epoch),
                 LS_ENOENT);
    /* An entry alone is not a checkpoint. */
    assert_ok(ls_checkpoints_write(checkpoints, 1, node.blobs, NULL));
    assert_fails(ls_checkpoints_newest(checkpoints, LS_CHECKPOINT_NONE, false,
                                       NULL, NULL, &epoch),
                 LS_ENOENT);
    assert_error_has(place->folder);
    save_epoch(checkpoints, 1, &node);
    save_epoch(checkpoints, 4, &node);
    assert_ok(ls_checkpoints_newest(checkpoints, 4, false, NULL, NULL, &epoch));
    assert_int_equal(epoch, 1);
    (void)snprintf(path, sizeof path, "%s/n1.000001", place->folder);
    assert_ok(ls_file_remove(path));
    assert_fails(ls_checkpoints_newest(checkpoints, 4, false, note_passed,
                                       &seen, &epoch),
                 LS_ENOENT);
    assert_int_equal(seen.n, 1);
    assert_ok(ls_checkpoints_close(&checkpoints));
    state_free(&node);
}

/* ---- owners ------------------------------------------------------------ */

TEST(two_owners_of_one_folder_are_refused)
{
    const struct place *place = *state;
    struct ls_checkpoints_options options = {
        .folder = place->folder, .node = "n1", .commits = true};
    ls_checkpoints *first = open_checkpoints(&options), *second;
    options.node = NULL; /* another run's committer */
    assert_fails(ls_checkpoints_open(&second, &options), LS_EAGAIN);
    assert_null(second);
    assert_error_has(place->folder);
    options.node = "n1"; /* the same node */
    options.commits = false;
    assert_fails(ls_checkpoints_open(&second, &options), LS_EAGAIN);
    assert_error_has("n1");
    options.node = "n2"; /* another node of the run */
    second = open_checkpoints(&options);
    assert_ok(ls_checkpoints_close(&second));
    second = open_to_look(place);
    assert_ok(ls_checkpoints_close(&second));
    assert_ok(ls_checkpoints_close(&first));
    options.commits = true;
    second = open_checkpoints(&options);
    assert_ok(ls_checkpoints_close(&second));
}

TEST(what_is_used_wrongly_is_an_error)
{
    static const char *const names[] = {"", ".a", "a/b", "manifest"};
    const struct place *place = *state;
    char longest[LS_CHECKPOINT_NODE_MAX + 2], path[100];
    struct ls_checkpoints_options options = {.folder = place->folder};
    ls_checkpoints *checkpoints;
    struct node_state node;
    state_make(&node, 1);
    for (size_t i = 0; i < 4; i++) {
        options.node = names[i];
        assert_fails(ls_checkpoints_open(&checkpoints, &options), LS_EINVAL);
    }
    memset(longest, 'n', sizeof longest);
    longest[LS_CHECKPOINT_NODE_MAX + 1] = '\0';
    options.node = longest;
    assert_fails(ls_checkpoints_open(&checkpoints, &options), LS_EINVAL);
    longest[LS_CHECKPOINT_NODE_MAX] = '\0';
    options.commits = true;
    checkpoints = open_checkpoints(&options);
    assert_ok(save_one(checkpoints, INT64_MAX, &node));
    assert_ok(load_one(checkpoints, INT64_MAX, &node));
    assert_ok(ls_checkpoints_close(&checkpoints));
    options.retention.best = 1;
    assert_fails(ls_checkpoints_open(&checkpoints, &options), LS_EINVAL);
    options.retention =
        (struct ls_checkpoint_retention){.metric = "loss", .last = 1};
    assert_fails(ls_checkpoints_open(&checkpoints, &options), LS_EINVAL);
    options.retention = (struct ls_checkpoint_retention){.every = -1};
    assert_fails(ls_checkpoints_open(&checkpoints, &options), LS_EINVAL);
    (void)snprintf(path, sizeof path, "%s/none", place->folder);
    options = (struct ls_checkpoints_options){.folder = path};
    assert_fails(ls_checkpoints_open(&checkpoints, &options), LS_ENOENT);
    assert_error_has("none");
    char longer[LS_PATH_MAX + 1];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    options.folder = longer;
    assert_fails(ls_checkpoints_open(&checkpoints, &options), LS_ELIMIT);
    assert_null(checkpoints);
    checkpoints = open_to_look(place);
    int64_t *own;
    size_t n;
    assert_ok(ls_checkpoints_own(checkpoints, &own, &n));
    assert_int_equal(n, 0);
    assert_null(own);
    struct ls_checkpoint_entry entry = {"n1", 1, 1};
    assert_fails(ls_checkpoints_write(checkpoints, 1, node.blobs, NULL),
                 LS_ESTATE);
    assert_fails(ls_checkpoints_commit(
                     checkpoints,
                     &(struct ls_checkpoint_manifest){
                         .epoch = 1, .entries = &entry, .n_entries = 1}),
                 LS_ESTATE);
    assert_fails(ls_checkpoints_drop(checkpoints, 1), LS_ESTATE);
    assert_fails(ls_checkpoints_wait(checkpoints, 0, NULL, NULL), LS_ENOENT);
    assert_ok(ls_checkpoints_close(&checkpoints));
    state_free(&node);
}

TEST(a_manifest_that_cannot_be_is_refused)
{
    struct ls_checkpoint_entry two[2] = {{"n1", 1, 1}, {"n1", 2, 2}};
    struct ls_checkpoint_entry bad = {"a/b", 1, 1}, entry;
    struct ls_checkpoint_manifest manifest = {.epoch = 1, .entries = two};
    struct node_state node;
    ls_checkpoints *checkpoints = open_one(*state);
    state_make(&node, 1);
    assert_fails(ls_checkpoints_commit(checkpoints, &manifest), LS_EINVAL);
    manifest.n_entries = 2;
    assert_fails(ls_checkpoints_commit(checkpoints, &manifest), LS_EINVAL);
    assert_error_has("n1 twice");
    manifest.entries = &bad;
    manifest.n_entries = 1;
    assert_fails(ls_checkpoints_commit(checkpoints, &manifest), LS_EINVAL);
    manifest.epoch = -1;
    assert_fails(ls_checkpoints_commit(checkpoints, &manifest), LS_EINVAL);
    assert_fails(ls_checkpoints_write(checkpoints, -1, node.blobs, NULL),
                 LS_EINVAL);
    /* The entry that lies here is not the one. */
    assert_ok(ls_checkpoints_write(checkpoints, 1, node.blobs, &entry));
    manifest.epoch = 1;
    manifest.entries = two;
    assert_fails(ls_checkpoints_commit(checkpoints, &manifest), LS_EPROTO);
    entry.check ^= 1;
    manifest.entries = &entry;
    assert_fails(ls_checkpoints_commit(checkpoints, &manifest), LS_EPROTO);
    assert_error_has("another checksum");
    has_epochs(checkpoints, "");
    entry.check ^= 1;
    assert_ok(ls_checkpoints_commit(checkpoints, &manifest));
    /* What is there is not written again, nor is one before it. */
    assert_fails(ls_checkpoints_commit(checkpoints, &manifest), LS_EEXIST);
    assert_fails(ls_checkpoints_write(checkpoints, 1, node.blobs, &entry),
                 LS_EEXIST);
    assert_fails(ls_checkpoints_write(checkpoints, 0, node.blobs, &entry),
                 LS_EEXIST);
    assert_error_has("a checkpoint of epoch 1");
    assert_ok(ls_checkpoints_close(&checkpoints));
    checkpoints = open_one(*state); /* nor by a run that does not resume */
    assert_fails(ls_checkpoints_write(checkpoints, 0, node.blobs, &entry),
                 LS_EEXIST);
    assert_ok(ls_checkpoints_close(&checkpoints));
    state_free(&node);
}

/* Another program may have written it, or another node sent it. */
TEST(a_note_without_a_text_is_none)
{
    struct ls_checkpoint_note notes[] = {{"ranks", NULL}};
    struct ls_checkpoint_entry entry = {"n1", 1, 1};
    const struct ls_checkpoint_manifest manifest = {
        .entries = &entry, .n_entries = 1, .notes = notes, .n_notes = 1};
    struct ls_checkpoint_manifest read = {.n_entries = 0};
    ls_writer *writer;
    const void *data;
    size_t size;
    assert_ok(ls_writer_create(&writer));
    ls_record_write(&ls_checkpoint_manifest_record, &manifest, writer);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_fails(ls_record_decode(&ls_checkpoint_manifest_record, &read, data,
                                  size, NULL),
                 LS_EPROTO);
    assert_error_has("text: it is not a text");
    ls_writer_destroy(&writer);
    ls_checkpoint_manifest_clear(&read);
}

TEST(a_folder_that_is_read_only_is_named)
{
    const struct place *place = *state;
    const struct ls_checkpoints_options options = {.folder = place->folder,
                                                   .node = "n2"};
    struct node_state node;
    ls_checkpoints *checkpoints = open_one(place), *second;
    state_make(&node, 1);
    save_epoch(checkpoints, 1, &node);
    assert_int_equal(chmod(place->folder, 0500), 0);
    if (access(place->folder, W_OK) != 0) { /* not as root */
        assert_fails(save_one(checkpoints, 2, &node), LS_EIO);
        assert_error_has(place->folder);
        assert_fails(ls_checkpoints_open(&second, &options), LS_EIO);
        assert_error_has(place->folder);
    }
    /* There no file can be made, not even by root. */
    assert_fails(ls_checkpoints_open(&second,
                                     &(struct ls_checkpoints_options){
                                         .folder = "/proc", .node = "n2"}),
                 LS_EIO);
    assert_error_has("/proc/.lock@n2");
    second = open_to_look(place);
    assert_int_equal(newest(second), 1);
    assert_ok(ls_checkpoints_close(&second));
    assert_int_equal(chmod(place->folder, 0700), 0);
    save_epoch(checkpoints, 2, &node);
    assert_int_equal(newest(checkpoints), 2);
    assert_ok(ls_checkpoints_close(&checkpoints));
    state_free(&node);
}

/* ---- retention --------------------------------------------------------- */

/* What is damaged is neither counted nor removed; what was never committed
 * goes; what is not of a checkpoint stays. */
TEST(retention_removes_its_own_alone)
{
    const struct place *place = *state;
    struct node_state node;
    char path[512];
    ls_checkpoints *checkpoints = open_checkpoints(
        &(struct ls_checkpoints_options){.folder = place->folder,
                                         .node = "n1",
                                         .commits = true,
                                         .retention = {.last = 2}});
    state_make(&node, 0);
    assert_ok(ls_checkpoints_write(checkpoints, 0, node.blobs, NULL));
    for (int64_t epoch = 1; epoch <= 3; epoch++)
        save_epoch(checkpoints, epoch, &node);
    has_epochs(checkpoints, "2 3");
    assert_false(is_there(place, "n1.000000"));
    assert_false(is_there(place, "n1.000001"));
    (void)snprintf(path, sizeof path, "%s/manifest.000003", place->folder);
    write_bytes(path, "x", 1);
    (void)snprintf(path, sizeof path, "%s/n2.000001", place->folder);
    write_bytes(path, "x", 1);
    save_epoch(checkpoints, 4, &node);
    has_epochs(checkpoints, "2 3 4");
    assert_true(is_there(place, "n1.000003"));
    save_epoch(checkpoints, 5, &node);
    has_epochs(checkpoints, "3 4 5");
    assert_true(is_there(place, "n2.000001"));
    assert_ok(ls_checkpoints_drop(checkpoints, 3)); /* even a damaged one */
    has_epochs(checkpoints, "4 5");
    assert_fails(ls_checkpoints_drop(checkpoints, 3), LS_ENOENT);
    assert_ok(ls_checkpoints_drop(checkpoints, 5));
    has_epochs(checkpoints, "4");
    save_epoch(checkpoints, 5, &node); /* it can be written again */
    assert_ok(ls_checkpoints_close(&checkpoints));
    state_free(&node);
}

TEST(retention_can_be_asked_for)
{
    const struct place *place = *state;
    const struct ls_checkpoints_options options = {
        .folder = place->folder, .commits = true, .retention = {.every = 3}};
    struct node_state node;
    ls_checkpoints *checkpoints = open_one(place);
    state_make(&node, 0);
    for (int64_t epoch = 1; epoch <= 8; epoch++)
        save_epoch(checkpoints, epoch, &node);
    assert_ok(ls_checkpoints_retain(checkpoints)); /* it keeps all */
    has_epochs(checkpoints, "1 2 3 4 5 6 7 8");
    assert_ok(ls_checkpoints_close(&checkpoints));
    checkpoints = open_checkpoints(&options);
    has_epochs(checkpoints, "1 2 3 4 5 6 7 8");
    assert_ok(ls_checkpoints_retain(checkpoints));
    has_epochs(checkpoints, "3 6 8");
    assert_false(is_there(place, "n1.000007"));
    assert_ok(ls_checkpoints_close(&checkpoints));
    checkpoints = open_to_look(place);
    assert_fails(ls_checkpoints_retain(checkpoints), LS_ESTATE);
    assert_ok(ls_checkpoints_close(&checkpoints));
    state_free(&node);
}

TEST(what_cannot_be_removed_is_said_and_the_others_go)
{
    const struct place *place = *state;
    const struct ls_checkpoints_options options = {
        .folder = place->folder, .commits = true, .retention = {.last = 1}};
    struct node_state node;
    char path[512], inside[544];
    ls_checkpoints *checkpoints = open_one(place);
    state_make(&node, 0);
    for (int64_t epoch = 1; epoch <= 4; epoch++)
        save_epoch(checkpoints, epoch, &node);
    assert_ok(ls_checkpoints_close(&checkpoints));
    (void)snprintf(path, sizeof path, "%s/n1.000002", place->folder);
    (void)snprintf(inside, sizeof inside, "%s/in", path);
    assert_ok(ls_file_remove(path));
    assert_ok(ls_folder_make(inside));
    checkpoints = open_checkpoints(&options);
    assert_fails(ls_checkpoints_retain(checkpoints), LS_EIO);
    assert_error_has(path);
    has_epochs(checkpoints, "4");
    assert_false(is_there(place, "n1.000001"));
    assert_false(is_there(place, "n1.000003"));
    assert_ok(ls_folder_remove(inside));
    assert_ok(ls_checkpoints_close(&checkpoints));
    state_free(&node);
}

/* Metrics of an epoch: "loss 2.5, return 7". */
static void has_metrics(ls_checkpoints *checkpoints, int64_t epoch,
                        const char *expected)
{
    struct ls_checkpoint_manifest manifest;
    char text[200] = "";
    assert_ok(ls_checkpoints_manifest(checkpoints, epoch, &manifest));
    for (size_t i = 0; i < manifest.n_metrics; i++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text),
                       "%s%s %g", i > 0 ? ", " : "", manifest.metrics[i].name,
                       manifest.metrics[i].value);
    ls_checkpoint_manifest_clear(&manifest);
    assert_string_equal(text, expected);
}

TEST(what_one_is_worth_can_be_said_later)
{
    struct node_state node;
    struct ls_checkpoint_metric metric = {"return", 7};
    struct ls_checkpoint_manifest before, after;
    ls_checkpoints *checkpoints = open_one(*state);
    state_make(&node, 0);
    save_epoch(checkpoints, 1, &node);
    save_epoch(checkpoints, 2, &node);
    assert_ok(ls_checkpoints_manifest(checkpoints, 1, &before));
    assert_ok(ls_checkpoints_set_metric(checkpoints, 1, &metric));
    has_metrics(checkpoints, 1, "return 7");
    has_metrics(checkpoints, 2, "");
    assert_ok(ls_checkpoints_set_metric(
        checkpoints, 1, &(struct ls_checkpoint_metric){"loss", 2.5}));
    metric.value = 8;
    assert_ok(ls_checkpoints_set_metric(checkpoints, 1, &metric));
    has_metrics(checkpoints, 1, "return 8, loss 2.5");
    /* Nothing else has changed. */
    assert_ok(ls_checkpoints_manifest(checkpoints, 1, &after));
    assert_int_equal(after.time_ns, before.time_ns);
    assert_memory_equal(after.entries, before.entries, sizeof *after.entries);
    ls_checkpoint_manifest_clear(&before);
    ls_checkpoint_manifest_clear(&after);
    assert_ok(ls_checkpoints_verify(checkpoints, 1, NULL));
    assert_int_equal(newest(checkpoints), 2);
    assert_ok(ls_checkpoints_close(&checkpoints));
    state_free(&node);
}

TEST(a_metric_that_cannot_be_said_is_an_error)
{
    struct node_state node;
    struct ls_checkpoint_metric metric = {"return", 7};
    ls_checkpoints *checkpoints = open_one(*state);
    state_make(&node, 0);
    save_epoch(checkpoints, 1, &node);
    assert_fails(ls_checkpoints_set_metric(checkpoints, 2, &metric), LS_ENOENT);
    char path[512];
    (void)snprintf(path, sizeof path, "%s/manifest.000002",
                   ((const struct place *)*state)->folder);
    write_bytes(path, "x", 1);
    assert_fails(ls_checkpoints_set_metric(checkpoints, 2, &metric), LS_EPROTO);
    assert_error_has(path);
    metric.name[0] = '\0';
    assert_fails(ls_checkpoints_set_metric(checkpoints, 1, &metric), LS_EINVAL);
    memset(metric.name, 'm', sizeof metric.name);
    assert_fails(ls_checkpoints_set_metric(checkpoints, 1, &metric), LS_EINVAL);
    for (int i = 0; i < LS_CHECKPOINT_VALUES_MAX; i++) {
        (void)snprintf(metric.name, sizeof metric.name, "m%d", i);
        assert_ok(ls_checkpoints_set_metric(checkpoints, 1, &metric));
    }
    assert_ok(ls_checkpoints_set_metric(checkpoints, 1, &metric));
    assert_fails(
        ls_checkpoints_set_metric(
            checkpoints, 1, &(struct ls_checkpoint_metric){"one more", 1}),
        LS_ELIMIT);
    assert_ok(ls_checkpoints_close(&checkpoints));
    checkpoints = open_to_look(*state);
    assert_fails(ls_checkpoints_set_metric(checkpoints, 1, &metric), LS_ESTATE);
    assert_ok(ls_checkpoints_close(&checkpoints));
    state_free(&node);
}

static void ranks_are(ls_checkpoints *checkpoints, const char *metric,
                      bool least, const char *expected)
{
    char text[100] = "";
    int64_t *epochs;
    size_t n;
    assert_ok(ls_checkpoints_ranked(checkpoints, metric, least, &epochs, &n));
    for (size_t i = 0; i < n; i++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d",
                       i > 0 ? " " : "", (int)epochs[i]);
    assert_true((epochs == NULL) == (n == 0));
    free(epochs);
    assert_string_equal(text, expected);
}

TEST(the_best_come_first_and_of_equals_the_newer)
{
    static const double values[] = {3, NAN, 9, 1, 9, 0}; /* the last has none */
    const struct place *place = *state;
    char path[512];
    struct node_state node;
    ls_checkpoints *checkpoints = open_one(place);
    state_make(&node, 0);
    ranks_are(checkpoints, "return", false, "");
    for (int64_t epoch = 0; epoch < 6; epoch++) {
        save_epoch(checkpoints, epoch, &node);
        if (epoch < 5)
            assert_ok(ls_checkpoints_set_metric(
                checkpoints, epoch,
                &(struct ls_checkpoint_metric){"return", values[epoch]}));
    }
    ranks_are(checkpoints, "return", false, "4 2 0 3");
    ranks_are(checkpoints, "return", true, "3 0 4 2");
    ranks_are(checkpoints, "loss", false, "");
    (void)snprintf(path, sizeof path, "%s/manifest.000004", place->folder);
    write_bytes(path, "X", 1);
    ranks_are(checkpoints, "return", false, "2 0 3");
    assert_ok(ls_checkpoints_close(&checkpoints));
    state_free(&node);
}

TEST(a_node_alone_keeps_what_it_is_told)
{
    static const int64_t kept[] = {2, 5, 7};
    struct node_state node;
    struct ls_checkpoint_entry entry;
    int64_t *own;
    size_t n;
    ls_checkpoints *checkpoints =
        open_checkpoints(&(struct ls_checkpoints_options){
            .folder = ((const struct place *)*state)->folder, .node = "n1"});
    state_make(&node, 0);
    for (int64_t epoch = 0; epoch < 10; epoch++)
        assert_ok(ls_checkpoints_write(checkpoints, epoch, node.blobs, &entry));
    assert_ok(ls_checkpoints_has(checkpoints, 9, &entry));
    assert_ok(ls_checkpoints_keep(checkpoints, kept, 3));
    assert_ok(ls_checkpoints_own(checkpoints, &own, &n));
    assert_int_equal(n, 5); /* later ones may be committed still */
    const int64_t expected[] = {2, 5, 7, 8, 9};
    assert_memory_equal(own, expected, sizeof expected);
    free(own);
    assert_ok(ls_checkpoints_keep(checkpoints, kept, 0));
    assert_ok(ls_checkpoints_rewind(checkpoints, 5));
    assert_ok(ls_checkpoints_own(checkpoints, &own, &n));
    assert_int_equal(n, 2);
    free(own);
    assert_ok(ls_checkpoints_close(&checkpoints));
    state_free(&node);
}

/* As the folder is now, also where somebody else has put one there. */
TEST(what_may_yet_be_saved_is_known_before)
{
    const struct place *place = *state;
    struct node_state node;
    char path[512], gone[512];
    ls_checkpoints *checkpoints = open_one(place);
    assert_ok(ls_checkpoints_check_later(checkpoints, 0));
    assert_fails(ls_checkpoints_check_later(checkpoints, -1), LS_EINVAL);
    state_make(&node, 0);
    save_epoch(checkpoints, 3, &node);
    for (int64_t epoch = 0; epoch <= 3; epoch++) {
        assert_fails(ls_checkpoints_check_later(checkpoints, epoch), LS_EEXIST);
        assert_error_has("a checkpoint of epoch 3");
    }
    assert_ok(ls_checkpoints_check_later(checkpoints, 4));
    (void)snprintf(path, sizeof path, "%s/manifest.000005", place->folder);
    write_bytes(path, "x", 1);
    assert_fails(ls_checkpoints_check_later(checkpoints, 4), LS_EEXIST);
    assert_ok(ls_checkpoints_check_later(checkpoints, 6));
    (void)snprintf(gone, sizeof gone, "%s.gone", place->folder);
    assert_ok(ls_file_rename(place->folder, gone));
    assert_fails(ls_checkpoints_check_later(checkpoints, 6), LS_EIO);
    assert_error_has(place->folder);
    assert_ok(ls_file_rename(gone, place->folder));
    assert_ok(ls_checkpoints_close(&checkpoints));
    state_free(&node);
}

TEST(a_run_can_go_on_from_an_earlier_one)
{
    struct node_state node;
    ls_checkpoints *checkpoints = open_one(*state);
    state_make(&node, 0);
    for (int64_t epoch = 1; epoch <= 5; epoch++)
        save_epoch(checkpoints, epoch, &node);
    assert_fails(save_one(checkpoints, 3, &node), LS_EEXIST);
    assert_ok(ls_checkpoints_rewind(checkpoints, 2));
    has_epochs(checkpoints, "1 2");
    assert_int_equal(n_files(*state), 4);
    save_epoch(checkpoints, 3, &node);
    has_epochs(checkpoints, "1 2 3");
    assert_ok(ls_checkpoints_close(&checkpoints));
    state_free(&node);
}

/* ---- behind ------------------------------------------------------------ */

static void count_done(void *self)
{
    __atomic_add_fetch((int *)self, 1, __ATOMIC_SEQ_CST);
}

TEST(what_is_written_behind_is_what_it_was)
{
    int done = 0;
    struct node_state node;
    struct ls_checkpoint_entry entry, again;
    int64_t epoch = 0;
    ls_checkpoints *checkpoints =
        open_checkpoints(&(struct ls_checkpoints_options){
            .folder = ((const struct place *)*state)->folder,
            .node = "n1",
            .done = count_done,
            .self = &done});
    state_make(&node, 0);
    assert_ok(ls_checkpoints_prepare(checkpoints, node.blobs));
    for (int64_t i = 1; i <= 7; i++) {
        state_fill(&node, i);
        assert_ok(ls_checkpoints_write_behind(checkpoints, i, node.blobs,
                                              LS_WAIT_DEFAULT));
        state_fill(&node, 100 + i); /* it goes on at once */
        if (i % 3 == 0)
            continue; /* the next one waits */
        assert_ok(
            ls_checkpoints_wait(checkpoints, LS_WAIT_DEFAULT, &epoch, &entry));
        assert_int_equal(epoch, i);
        assert_ok(
            ls_checkpoints_load(checkpoints, i, &entry, node.blobs, NULL));
        assert_true(state_is(&node, i));
        assert_fails(ls_checkpoints_wait(checkpoints, 0, NULL, NULL),
                     LS_ENOENT);
        /* The same bytes, written by the caller. */
        assert_ok(ls_checkpoints_write(checkpoints, i, node.blobs, &again));
        assert_int_equal(again.check, entry.check);
    }
    assert_ok(ls_checkpoints_close(&checkpoints));
    assert_int_equal(done, 7);
    state_free(&node);
}

/* Who is told that it has ended, and lets nobody go on before. */
static void wait_at_door(void *self)
{
    latch_wait(self);
}

TEST(who_does_not_wait_for_what_is_written_behind_loses_nothing)
{
    struct latch door;
    struct node_state node;
    struct ls_checkpoint_entry entry = {.size = 1};
    int64_t epoch = 77;
    latch_init(&door, 1);
    ls_checkpoints *checkpoints =
        open_checkpoints(&(struct ls_checkpoints_options){
            .folder = ((const struct place *)*state)->folder,
            .node = "n1",
            .done = wait_at_door,
            .self = &door});
    state_make(&node, 5);
    assert_ok(ls_checkpoints_write_behind(checkpoints, 5, node.blobs, 0));
    assert_fails(ls_checkpoints_wait(checkpoints, 0, &epoch, &entry),
                 LS_ETIMEDOUT);
    assert_error_has("epoch 5 is still being written");
    assert_int_equal(epoch, 77);
    assert_int_equal(entry.size, 1);
    assert_fails(ls_checkpoints_write_behind(checkpoints, 6, node.blobs, 1),
                 LS_ETIMEDOUT);
    latch_hit(&door);
    assert_ok(
        ls_checkpoints_wait(checkpoints, LS_WAIT_DEFAULT, &epoch, &entry));
    assert_int_equal(epoch, 5);
    assert_ok(ls_checkpoints_has(checkpoints, 5, &entry));
    assert_ok(ls_checkpoints_close(&checkpoints));
    latch_fini(&door);
    state_free(&node);
}

/* The blobs are copied before the call returns, and what fails then is its own
 * error. */
TEST(a_blob_that_fails_is_not_written_behind)
{
    struct odd odd = {10, 10, LS_ENOENT};
    ls_blobs *blobs;
    ls_checkpoints *checkpoints = open_one(*state);
    odd_blobs(&blobs, &odd);
    assert_fails(ls_checkpoints_write_behind(checkpoints, 1, blobs, 0),
                 LS_ENOENT);
    assert_error_has("odd");
    assert_fails(ls_checkpoints_wait(checkpoints, 0, NULL, NULL), LS_ENOENT);
    assert_int_equal(n_files(*state), 0);
    assert_fails(ls_checkpoints_write_behind(checkpoints, -1, blobs, 0),
                 LS_EINVAL);
    odd.status = LS_OK;
    assert_ok(ls_checkpoints_write_behind(checkpoints, 1, blobs, 0));
    assert_ok(ls_checkpoints_wait(checkpoints, LS_WAIT_DEFAULT, NULL, NULL));
    assert_int_equal(n_files(*state), 1);
    assert_ok(ls_checkpoints_close(&checkpoints));
    checkpoints = open_to_look(*state);
    assert_fails(ls_checkpoints_write_behind(checkpoints, 2, blobs, 0),
                 LS_ESTATE);
    assert_ok(ls_checkpoints_close(&checkpoints));
    ls_blobs_destroy(&blobs);
}

/* Where the folder was, there is a file. */
static void break_folder(const struct place *place, bool broken)
{
    char aside[512];
    (void)snprintf(aside, sizeof aside, "%s.aside", place->folder);
    if (broken) {
        assert_int_equal(rename(place->folder, aside), 0);
        write_bytes(place->folder, "x", 1);
    } else {
        assert_int_equal(remove(place->folder), 0);
        assert_int_equal(rename(aside, place->folder), 0);
    }
}

TEST(an_error_of_what_is_written_behind_reaches_the_next)
{
    const struct place *place = *state;
    struct node_state node;
    struct ls_checkpoint_entry entry;
    int64_t epoch = 0;
    ls_checkpoints *checkpoints = open_one(place);
    state_make(&node, 1);
    for (int way = 0; way < 6; way++) {
        break_folder(place, true);
        assert_ok(ls_checkpoints_write_behind(checkpoints, 5, node.blobs,
                                              LS_WAIT_DEFAULT));
        if (way == 0) {
            assert_fails(ls_checkpoints_write(checkpoints, 6, node.blobs, NULL),
                         LS_EIO);
        } else if (way == 1) {
            assert_fails(ls_checkpoints_write_behind(checkpoints, 6, node.blobs,
                                                     LS_WAIT_DEFAULT),
                         LS_EIO);
        } else if (way == 2) {
            assert_fails(ls_checkpoints_wait(checkpoints, LS_WAIT_DEFAULT,
                                             &epoch, &entry),
                         LS_EIO);
            assert_int_equal(epoch, 5);
        } else if (way == 3) {
            assert_fails(ls_checkpoints_prepare(checkpoints, node.blobs),
                         LS_EIO);
        } else if (way == 4) { /* it is of no use any more */
            break_folder(place, false);
            assert_ok(ls_checkpoints_rewind(checkpoints, 4));
            break_folder(place, true);
            assert_fails(ls_checkpoints_wait(checkpoints, 0, NULL, NULL),
                         LS_ENOENT);
        } else {
            assert_fails(ls_checkpoints_close(&checkpoints), LS_EIO);
        }
        assert_error_has(place->folder);
        if (way < 4)
            assert_error_has("the checkpoint of epoch 5, which was written "
                             "behind");
        break_folder(place, false);
        if (way < 5) /* once told it goes on */
            assert_ok(ls_checkpoints_write(checkpoints, 6, node.blobs, &entry));
    }
    assert_null(checkpoints);
    state_free(&node);
}

/* ---- what others say that they have written ----------------------------- */

/* What somebody says, of an entry that is written so; NULL: nothing. */
static int read_said(const struct ls_checkpoint_entry *entry,
                     struct ls_checkpoint_entry *out)
{
    ls_writer *writer;
    ls_document *document;
    const void *data;
    size_t size;
    assert_ok(ls_writer_create(&writer));
    if (entry != NULL)
        ls_record_write(&ls_checkpoint_entry_record, entry, writer);
    else
        ls_write_nil(writer);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_ok(ls_document_read(&document, data, size, NULL));
    const int status =
        ls_checkpoint_entry_read(out, ls_document_root(document), "n1");
    ls_document_destroy(&document);
    ls_writer_destroy(&writer);
    return status;
}

TEST(an_entry_that_is_said_to_be_written_is_the_nodes_own)
{
    const struct ls_checkpoint_entry own = {
        .node = "n1", .size = 12, .check = UINT64_MAX};
    const struct ls_checkpoint_entry other = {.node = "n2"};
    struct ls_checkpoint_entry read;
    (void)state;
    assert_ok(read_said(&own, &read));
    assert_string_equal(read.node, "n1");
    assert_int_equal(read.size, 12);
    assert_true(read.check == UINT64_MAX);
    assert_fails(read_said(&other, &read), LS_EPROTO);
    assert_error_has("the entry of \"n2\", and not that of \"n1\"");
    assert_fails(read_said(NULL, &read), LS_EPROTO);
    assert_error_has("an entry of a checkpoint");
}
