/* saves.h: what a node answers that saves together with others. */
#include <limits.h>
#include <string.h>

#include "lockstep/file.h"
#include "runtime_ops.h"
#include "saves.h"
#include "state/folder_fixture.h"
#include "test.h"

static int nothing(void *self, struct question *question)
{
    (void)self;
    (void)question;
    return LS_OK;
}

static int answer_here(void *self, struct question *question)
{
    return saves_answer(self, question);
}

/* What this one is asked, of an entry and no epoch, as a status. */
static int answer(struct saves *saves, const char *what)
{
    const struct ls_checkpoint_entry entry = {.node = "node-1"};
    ls_writer *writer;
    ls_document *document;
    const void *data;
    size_t size;
    assert_ok(ls_writer_create(&writer));
    ls_write_map(writer, 2);
    ls_write_string(writer, "do");
    ls_write_string(writer, what);
    ls_write_string(writer, "entries");
    ls_write_array(writer, 1);
    ls_record_write(&ls_checkpoint_entry_record, &entry, writer);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_ok(ls_document_read(&document, data, size, NULL));
    const int status = saves_answer(
        saves, &(struct question){.said = ls_document_root(document)});
    ls_document_destroy(&document);
    ls_writer_destroy(&writer);
    return status;
}

/* Of node 1 alone, whose owner does nothing. place: borrow. */
static void open_saves(struct saves *saves, struct asker *asker,
                       ls_runtime *runtime, question_fn *alone,
                       const struct place *place)
{
    static const struct saves_ops none = {.still = NULL};
    static const uint32_t nodes[] = {1};
    *asker = (struct asker){.calls = NULL};
    *saves = (struct saves){.asker = asker,
                            .what = "job sums",
                            .run = "sums",
                            .id = 1,
                            .leader = 1,
                            .folder = place->folder,
                            .timeout_ms = 30000,
                            .nodes = nodes,
                            .n_nodes = 1,
                            .ops = &none};
    assert_ok(asker_init(asker, runtime, NULL, "", alone, saves));
    assert_ok(saves_init(saves, runtime));
    assert_ok(ls_blobs_create(&saves->blobs));
}

static void add_number(struct saves *saves, int64_t *number)
{
    assert_ok(ls_blobs_add(saves->blobs,
                           &(struct ls_blob){.name = "number",
                                             .form = {.type = LS_BLOB_I64},
                                             .memory = number}));
}

/* The newest checkpoint, which is whole; LS_CHECKPOINT_NONE: there is none. */
static int64_t newest_of(struct saves *saves)
{
    struct saves_found found = {.others = false};
    const int status = saves_newest(saves, LS_CHECKPOINT_NONE, true, &found);
    const int64_t epoch =
        status == LS_OK ? found.manifest.epoch : LS_CHECKPOINT_NONE;
    saves_found_clear(&found);
    return epoch;
}

static void close_saves(struct saves *saves)
{
    assert_ok(saves_close(saves));
    ls_blobs_destroy(&saves->blobs);
    saves_fini(saves);
    asker_fini(saves->asker);
}

/* Each of its functions may be missing. */
TEST_WITH(what_its_owner_does_not_do_is_refused, folder_set_up,
          folder_tear_down)
{
    struct asker asker;
    struct saves saves;
    open_saves(&saves, &asker, ls_runtime_threads(), nothing, *state);
    assert_ok(saves_open(&saves));
    assert_int_equal(answer(&saves, "divide"), LS_EPROTO);
    assert_non_null(strstr(ls_error_text(), "no such question to job sums"));
    assert_int_equal(answer(&saves, "no such"), LS_EPROTO);
    close_saves(&saves);
}

/* ---- what a callback returns ---- */

static int write_nothing(void *self, ls_blob_sink *sink)
{
    (void)self;
    (void)sink;
    return LS_OK;
}

static int returned; /* by a load, which may be in a binding */

static int load_wrongly(void *self, ls_blob_source *source)
{
    (void)self;
    (void)source;
    return returned;
}

static int no_bytes(void *self, uint64_t *out)
{
    (void)self;
    *out = 0;
    return LS_OK;
}

/* What is no status is a failure, too. */
TEST_WITH(a_load_that_returns_anything_has_failed, folder_set_up,
          folder_tear_down)
{
    static const struct ls_blob_ops ops = {
        .size = no_bytes, .save = write_nothing, .load = load_wrongly};
    static const int rows[][2] = {{LS_OK, LS_OK},        {LS_EIO, LS_EIO},
                                  {-999, -999},          {1, LS_EHANDLER},
                                  {-1000, LS_EHANDLER},  {INT_MAX, LS_EHANDLER},
                                  {INT_MIN, LS_EHANDLER}};
    const struct saves_point point = {.epoch = 3};
    struct saves_found found = {.others = false};
    struct asker asker;
    struct saves saves;
    open_saves(&saves, &asker, ls_runtime_threads(), answer_here, *state);
    assert_ok(ls_blobs_add(saves.blobs,
                           &(struct ls_blob){.name = "queue", .ops = &ops}));
    assert_ok(saves_open(&saves));
    assert_ok(saves_save(&saves, &point));
    assert_ok(saves_newest(&saves, LS_CHECKPOINT_NONE, true, &found));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        returned = rows[i][0];
        assert_int_equal(saves_load(&saves, &found, NULL), rows[i][1]);
        if (rows[i][1] != LS_OK)
            assert_error_has("queue");
    }
    saves_found_clear(&found);
    close_saves(&saves);
}

/* ---- what is not said ---- */

/* Of an epoch that nobody said, all would be removed. */
TEST_WITH(a_rewind_to_no_epoch_is_refused, folder_set_up, folder_tear_down)
{
    const struct saves_point point = {.epoch = 3};
    struct asker asker;
    struct saves saves;
    int64_t number = 7;
    open_saves(&saves, &asker, ls_runtime_threads(), answer_here, *state);
    add_number(&saves, &number);
    assert_ok(saves_open(&saves));
    assert_ok(saves_save(&saves, &point));
    assert_int_equal(answer(&saves, "rewind"), LS_EPROTO);
    assert_error_has("to which epoch");
    assert_int_equal(newest_of(&saves), 3);
    close_saves(&saves);
}

TEST_WITH(without_a_folder_nothing_is_loaded_but_what_is_sent, folder_set_up,
          folder_tear_down)
{
    struct asker asker;
    struct saves saves;
    open_saves(&saves, &asker, ls_runtime_threads(), nothing, *state);
    saves.leader = 2;
    saves.folder = NULL;
    saves.sends = true;
    assert_ok(saves_open(&saves));
    assert_int_equal(answer(&saves, "load"), LS_EPROTO);
    assert_error_has("nothing was sent");
    close_saves(&saves);
}

/* ---- behind, without a thread ---- */

static int refuse_thread(ls_runtime *runtime, ls_thread **out, const char *name,
                         void (*fn)(void *arg), void *arg)
{
    if (strcmp(name, "job-save") == 0)
        return ls_error(LS_EAGAIN, "no thread");
    return ls_runtime_threads()->ops->thread_spawn(runtime, out, name, fn, arg);
}

/* All nodes have their copies by then: nothing is in the way of the save. */
TEST_WITH(without_a_thread_it_is_saved_at_once, folder_set_up, folder_tear_down)
{
    struct ls_runtime_ops ops = *ls_runtime_threads()->ops;
    ls_runtime runtime = {.ops = &ops};
    const struct saves_point point = {.epoch = 3};
    struct asker asker;
    struct saves saves;
    int64_t number = 7, epoch = 0;
    ops.thread_spawn = refuse_thread;
    open_saves(&saves, &asker, &runtime, answer_here, *state);
    add_number(&saves, &number);
    assert_ok(saves_open(&saves));
    assert_ok(saves_save_behind(&saves, &point, &epoch));
    assert_false(saves_is_busy(&saves));
    assert_ok(saves_finish(&saves, &epoch));
    assert_int_equal(epoch, 3);
    assert_int_equal(newest_of(&saves), 3);
    close_saves(&saves);
}

/* ---- of nobody ---- */

TEST_WITH(a_save_of_no_node_is_refused, folder_set_up, folder_tear_down)
{
    const struct saves_point point = {.epoch = 3};
    struct asker asker;
    struct saves saves;
    int64_t epoch;
    open_saves(&saves, &asker, ls_runtime_threads(), answer_here, *state);
    saves.n_nodes = 0;
    assert_ok(saves_open(&saves));
    assert_fails(saves_save(&saves, &point), LS_EINVAL);
    assert_error_has("no node has blobs");
    assert_fails(saves_save_behind(&saves, &point, &epoch), LS_EINVAL);
    assert_error_has("epoch 3 was not saved");
    close_saves(&saves);
}

/* ---- what a node says that it wrote ---- */

static int write_anothers(void *self, struct question *question)
{
    const struct ls_checkpoint_entry entry = {.node = "node-2"};
    const char *what;
    assert_ok(ls_value_string(ls_value_get(question->said, "do"), &what));
    if (strcmp(what, "write") != 0)
        return saves_answer(self, question);
    ls_write_string(question->answer, "entry");
    ls_record_write(&ls_checkpoint_entry_record, &entry, question->answer);
    return LS_OK;
}

/* It could not be found again by the name of the node. */
TEST_WITH(an_entry_under_another_name_is_in_no_checkpoint, folder_set_up,
          folder_tear_down)
{
    struct asker asker;
    struct saves saves;
    int64_t number = 7;
    open_saves(&saves, &asker, ls_runtime_threads(), write_anothers, *state);
    add_number(&saves, &number);
    assert_ok(saves_open(&saves));
    assert_fails(saves_save(&saves, &(struct saves_point){.epoch = 3}),
                 LS_EPROTO);
    assert_error_has("node 1: it has written the entry of \"node-2\"");
    assert_int_equal(newest_of(&saves), LS_CHECKPOINT_NONE);
    close_saves(&saves);
}

/* ---- what earlier ones were worth ---- */

TEST_WITH(one_that_has_no_room_for_that_is_in_no_saves_way, folder_set_up,
          folder_tear_down)
{
    struct ls_checkpoint_metric metric = {.name = ""};
    struct asker asker;
    struct saves saves;
    int64_t number = 7;
    open_saves(&saves, &asker, ls_runtime_threads(), answer_here, *state);
    saves.metric = "return";
    add_number(&saves, &number);
    assert_ok(saves_open(&saves));
    assert_ok(saves_save(&saves, &(struct saves_point){.epoch = 1}));
    for (int i = 0; i < LS_CHECKPOINT_VALUES_MAX; i++) {
        (void)snprintf(metric.name, sizeof metric.name, "other-%d", i);
        assert_ok(ls_checkpoints_set_metric(saves.store, 1, &metric));
    }
    assert_ok(saves_judge(&saves, 1, 1, 475));
    assert_ok(saves_save(&saves, &(struct saves_point){.epoch = 2}));
    assert_int_equal(newest_of(&saves), 2);
    close_saves(&saves);
}

/* ---- what is there ---- */

/* A node with a folder of its own, or without one, does not know which epochs
 * there are. */
static void save_again(const struct place *place, const struct place *own)
{
    static const int64_t epochs[] = {3, 2, 0};
    const struct saves_point point = {.epoch = 3};
    struct asker asker, other;
    struct saves saves, node;
    int64_t number = 7, epoch;
    open_saves(&node, &other, ls_runtime_threads(), nothing,
               own != NULL ? own : place);
    node.leader = 2;
    node.sends = own == NULL;
    if (node.sends)
        node.folder = NULL;
    add_number(&node, &number);
    open_saves(&saves, &asker, ls_runtime_threads(), answer_here, place);
    ls_blobs_destroy(&saves.blobs);
    asker.self = &node;
    saves.id = saves.leader = 2;
    saves.guests = &node.sends;
    assert_ok(saves_open(&node));
    assert_ok(saves_open(&saves));
    assert_ok(saves_save(&saves, &point));
    number = 8;
    for (size_t i = 0; i < sizeof epochs / sizeof epochs[0]; i++) {
        const struct saves_point again = {.epoch = epochs[i]};
        assert_fails(saves_save(&saves, &again), LS_EEXIST);
        assert_error_has("a checkpoint of epoch 3");
        assert_fails(saves_save_behind(&saves, &again, &epoch), LS_EEXIST);
        assert_error_has("was not saved");
        assert_int_equal(newest_of(&saves), 3);
    }
    assert_ok(saves_save(&saves, &(struct saves_point){.epoch = 4}));
    assert_int_equal(newest_of(&saves), 4);
    close_saves(&saves);
    close_saves(&node);
}

TEST_WITH(what_is_saved_is_not_saved_again, folder_set_up, folder_tear_down)
{
    struct place own;
    void *place = NULL;
    assert_int_equal(folder_set_up(&place), 0);
    own = *(struct place *)place;
    save_again(*state, &own);
    assert_int_equal(folder_tear_down(&place), 0);
}

TEST_WITH(nor_of_a_node_without_a_folder, folder_set_up, folder_tear_down)
{
    save_again(*state, NULL);
}

/* As where nothing can be written. */
TEST_WITH(a_folder_that_is_gone_is_a_fault_of_the_disk, folder_set_up,
          folder_tear_down)
{
    const struct place *place = *state;
    const struct saves_point point = {.epoch = 3};
    struct asker asker;
    struct saves saves;
    int64_t number = 7, epoch;
    char gone[128];
    (void)snprintf(gone, sizeof gone, "%s.gone", place->folder);
    open_saves(&saves, &asker, ls_runtime_threads(), answer_here, place);
    add_number(&saves, &number);
    assert_ok(saves_open(&saves));
    assert_ok(ls_file_rename(place->folder, gone));
    assert_fails(saves_save(&saves, &point), LS_EIO);
    assert_error_has(place->folder);
    assert_fails(saves_save_behind(&saves, &point, &epoch), LS_EIO);
    assert_error_has(place->folder);
    assert_ok(ls_file_rename(gone, place->folder));
    close_saves(&saves);
}
