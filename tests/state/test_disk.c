/* The simulated disk: what a kill, a loss of power, and fullness do to it. */
#include "lockstep/disk.h"

#include "state/file_promises.h"
#include "state/machine.h"
#include "test.h"

#define SEEDS 300

#define PROMISE(name)                                                          \
    static void life_of_##name(struct room *room)                              \
    {                                                                          \
        (void)room;                                                            \
        assert_ok(ls_folder_make("/a/folder"));                                \
        name("/a/folder");                                                     \
    }                                                                          \
    static void run_##name(struct room *room)                                  \
    {                                                                          \
        room_live(room, "a", life_of_##name);                                  \
    }                                                                          \
    TEST(name)                                                                 \
    {                                                                          \
        (void)room_run(1, run_##name, NULL);                                   \
    }
FILE_PROMISES(PROMISE)
#undef PROMISE

/* ---- kills ------------------------------------------------------------- */

static void write_and_die(struct room *room)
{
    char text[64];
    ls_file *file;
    room_write("f", "kept", false);
    assert_ok(ls_file_open(&file, "f", LS_FILE_WRITE));
    assert_ok(ls_file_lock(file, false));
    ls_host_kill(room->host);
    /* A ghost from here on. */
    assert_fails(ls_file_write_at(file, "lost", 4, 0), LS_EIO);
    assert_fails(ls_file_cut(file, 0), LS_EIO);
    assert_fails(ls_file_sync(file), LS_EIO);
    assert_fails(ls_file_read_at(file, text, 1, 0), LS_EIO);
    assert_fails(ls_file_remove("f"), LS_EIO);
    assert_fails(ls_file_rename("f", "g"), LS_EIO);
    assert_fails(ls_folder_make("d"), LS_EIO);
    assert_fails(ls_folder_each("/", NULL, NULL), LS_EIO);
    assert_false(ls_file_exists("f"));
    ls_file *other = NULL;
    assert_fails(ls_file_open(&other, "g", LS_FILE_WRITE | LS_FILE_CREATE),
                 LS_EIO);
    assert_null(other);
    *(ls_file **)room->self = file;
}

static void find_all(struct room *room)
{
    char text[64];
    ls_file *file;
    assert_string_equal(room_read("f", text), "kept");
    assert_string_equal(room_read("g", text), "-");
    assert_ok(ls_file_open(&file, "f", 0));
    assert_ok(ls_file_lock(file, false));
    /* The ghost ends, and takes nothing with it. */
    (void)ls_file_close(room->self);
    ls_file *other;
    assert_ok(ls_file_open(&other, "f", 0));
    assert_fails(ls_file_lock(other, false), LS_EAGAIN);
    (void)ls_file_close(&other);
    (void)ls_file_close(&file);
}

static void kill_one(struct room *room)
{
    room_live(room, "a", write_and_die);
    room_live(room, "a", find_all);
    assert_int_equal(room_stats(room).power_cuts, 0);
}

TEST(a_kill_loses_nothing_and_its_threads_do_no_more)
{
    ls_file *left = NULL;
    (void)room_run(1, kill_one, &left);
}

/* ---- bytes ------------------------------------------------------------- */

/* Which of the outcomes that may be were seen. */
struct seen {
    const char *const *expected;
    bool seen[16];
};

static void note(struct seen *seen, const char *text)
{
    size_t i = 0;
    while (seen->expected[i] != NULL && strcmp(seen->expected[i], text) != 0)
        i++;
    if (seen->expected[i] == NULL)
        fail_msg("\"%s\" was not to be expected", text);
    seen->seen[i] = true;
}

/* Run it with many seeds: each expected outcome is seen, and no other. */
static void sees(void (*fn)(struct room *room), const char *const *expected)
{
    struct seen seen = {.expected = expected};
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        (void)room_run(seed, fn, &seen);
    for (size_t i = 0; expected[i] != NULL; i++)
        if (!seen.seen[i])
            fail_msg("\"%s\" was never seen", expected[i]);
}

static void note_file(struct room *room)
{
    char text[64];
    note(room->self, room_read("f", text));
}

static void write_two(struct room *room)
{
    ls_file *file;
    room_write("f", "abcd", true);
    assert_ok(ls_file_open(&file, "f", LS_FILE_WRITE));
    assert_ok(ls_file_write_at(file, "X", 1, 1));
    assert_ok(ls_file_write_at(file, "YZ", 2, 5));
    assert_ok(ls_file_close(&file));
    ls_disk_power_cut(room->disk, room->host);
}

static void lose_writes(struct room *room)
{
    room_live(room, "a", write_two);
    room_live(room, "a", note_file);
}

static const char *const after_two_writes[] = {
    "abcd", "aXcd", "abcd0YZ", "aXcd0YZ", "abcd0Y", "aXcd0Y", NULL};

TEST(each_write_survives_or_not_and_the_last_is_torn)
{
    sees(lose_writes, after_two_writes);
}

static void write_pages(struct room *room)
{
    ls_file *file;
    char *bytes = malloc(3 * 4096);
    assert_non_null(bytes);
    memset(bytes, 'x', 3 * 4096);
    room_write("f", "", true);
    assert_ok(ls_file_open(&file, "f", LS_FILE_WRITE));
    assert_ok(ls_file_write_at(file, bytes, 3 * 4096, 100));
    assert_ok(ls_file_close(&file));
    free(bytes);
    ls_disk_power_cut(room->disk, room->host);
}

static void note_pages(struct room *room)
{
    unsigned char *data;
    size_t size;
    void *read;
    assert_ok(ls_file_read("f", 100000, &read, &size));
    data = read;
    const bool second = size > 5000 && data[5000] == 'x';
    const bool third = size > 9000 && data[9000] == 'x';
    note(room->self, third ? second ? "all" : "hole" : "less");
    free(read);
}

static void lose_pages(struct room *room)
{
    room_live(room, "a", write_pages);
    room_live(room, "a", note_pages);
}

TEST(a_long_write_is_lost_page_by_page)
{
    static const char *const expected[] = {"all", "hole", "less", NULL};
    sees(lose_pages, expected);
}

static void cut_and_write(struct room *room)
{
    ls_file *file;
    room_write("f", "abcd", true);
    assert_ok(ls_file_open(&file, "f", LS_FILE_WRITE));
    assert_ok(ls_file_cut(file, 1));
    assert_ok(ls_file_write_at(file, "X", 1, 4));
    assert_ok(ls_file_close(&file));
    ls_disk_power_cut(room->disk, room->host);
}

static void lose_cuts(struct room *room)
{
    room_live(room, "a", cut_and_write);
    room_live(room, "a", note_file);
}

TEST(a_cut_survives_or_not)
{
    static const char *const expected[] = {"abcd", "a", "abcdX", "a000X", NULL};
    sees(lose_cuts, expected);
}

static void sync_and_fall(struct room *room)
{
    room_write("f", "synced", true);
    ls_disk_power_cut(room->disk, room->host);
}

static void lose_nothing(struct room *room)
{
    room_live(room, "a", sync_and_fall);
    room_live(room, "a", note_file);
    assert_int_equal(room_stats(room).lost_writes, 0);
    assert_int_equal(room_stats(room).lost_names, 0);
}

TEST(what_was_synced_stays)
{
    static const char *const expected[] = {"synced", NULL};
    sees(lose_nothing, expected);
}

/* ---- names ------------------------------------------------------------- */

static void change_names(struct room *room)
{
    room_write("a", "1", true);
    room_write("b", "2", true);
    assert_ok(ls_file_rename("a", "b"));
    room_write("c", "3", false);
    assert_ok(ls_file_remove("b"));
    ls_disk_power_cut(room->disk, room->host);
}

static void note_names(struct room *room)
{
    char a[64], b[64], text[200];
    (void)snprintf(text, sizeof text, "%s %s %s", room_read("a", a),
                   room_read("b", b), ls_file_exists("c") ? "c" : "-");
    note(room->self, text);
}

static void lose_names(struct room *room)
{
    room_live(room, "a", change_names);
    room_live(room, "a", note_names);
}

TEST(names_survive_in_order)
{
    static const char *const expected[] = {"1 2 -", "- 1 -", "- 1 c", "- - c",
                                           NULL};
    sees(lose_names, expected);
}

static void sync_bytes_alone(struct room *room)
{
    ls_file *file;
    assert_ok(ls_file_open(&file, "f", LS_FILE_WRITE | LS_FILE_CREATE));
    assert_ok(ls_file_write_at(file, "x", 1, 0));
    assert_ok(ls_file_sync(file));
    assert_ok(ls_file_close(&file));
    ls_disk_power_cut(room->disk, room->host);
}

static void lose_a_name(struct room *room)
{
    room_live(room, "a", sync_bytes_alone);
    room_live(room, "a", note_file);
}

TEST(syncing_a_file_says_nothing_of_its_name)
{
    static const char *const expected[] = {"-", "x", NULL};
    sees(lose_a_name, expected);
}

static void remove_a_folder(struct room *room)
{
    assert_ok(ls_folder_make("d"));
    room_write("d/f", "1", true);
    assert_ok(ls_file_remove("d/f"));
    assert_ok(ls_folder_remove("d"));
    ls_disk_power_cut(room->disk, room->host);
}

static void note_folder(struct room *room)
{
    char text[64];
    note(room->self, !ls_file_exists("d") ? "gone" : room_read("d/f", text));
}

static void lose_a_folder(struct room *room)
{
    room_live(room, "a", remove_a_folder);
    room_live(room, "a", note_folder);
}

TEST(a_folder_that_was_removed_may_be_back)
{
    static const char *const expected[] = {"gone", "-", "1", NULL};
    sees(lose_a_folder, expected);
}

/* ---- machines ---------------------------------------------------------- */

static void write_unsynced(struct room *room)
{
    room_write("f", "x", true);
    room_write("f", "y", false);
    ls_host_kill(room->host);
}

static void lose_power(struct room *room)
{
    ls_disk_power_cut(room->disk, room->host);
}

static void lose_of_an_earlier_life(struct room *room)
{
    room_live(room, "a", write_unsynced);
    room_live(room, "a", lose_power);
    room_live(room, "a", note_file);
}

TEST(power_takes_what_an_earlier_life_had_not_synced)
{
    static const char *const expected[] = {"x", "y", "", NULL};
    sees(lose_of_an_earlier_life, expected);
}

static void lose_of_another(struct room *room)
{
    room_live(room, "a", write_unsynced);
    room_live(room, "b", lose_power);
    room_live(room, "a", note_file);
}

TEST(the_power_of_another_machine_takes_nothing)
{
    static const char *const expected[] = {"y", NULL};
    sees(lose_of_another, expected);
}

static void look(struct room *room)
{
    char text[64];
    (void)room;
    assert_string_equal(room_read("f", text), "y");
}

static void lose_what_was_seen(struct room *room)
{
    room_live(room, "a", write_unsynced);
    room_live(room, "b", look);
    room_live(room, "a", lose_power);
    room_live(room, "a", note_file);
}

TEST(what_another_machine_has_seen_is_synced)
{
    static const char *const expected[] = {"y", NULL};
    sees(lose_what_was_seen, expected);
}

static void wait_for_power(void *arg)
{
    struct room *room = arg;
    ls_rest_until(ls_simulation_runtime(room->simulation), LS_NS_PER_US);
    ls_disk_power_cut(room->disk, room->host);
}

static void sync_too_late(struct room *room)
{
    ls_file *file;
    ls_thread *thread;
    assert_ok(ls_file_open(&file, "f", LS_FILE_WRITE | LS_FILE_CREATE));
    assert_ok(ls_thread_spawn(ls_simulation_runtime(room->simulation), &thread,
                              "power", wait_for_power, room));
    const int status = ls_file_sync(file);
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    note(room->self, status == LS_OK ? "synced" : "cut");
    assert_true(ls_host_is_dead(room->host));
    (void)ls_file_close(&file);
}

static void cut_a_sync(struct room *room)
{
    room_live(room, "a", sync_too_late);
}

TEST(power_may_go_in_the_middle_of_a_sync)
{
    static const char *const expected[] = {"cut", NULL};
    sees(cut_a_sync, expected);
}

/* ---- fullness ---------------------------------------------------------- */

static void fill(struct room *room)
{
    ls_file *file;
    char text[64];
    room_write("f", "abcd", false);
    room_write("g", "abcd", false);
    ls_disk_fill(room->disk, 10);
    assert_ok(ls_file_open(&file, "f", LS_FILE_WRITE));
    assert_fails(ls_file_write_at(file, "1234567", 7, 0), LS_EIO);
    assert_error_has("No space");
    assert_string_equal(room_read("f", text), "123456"); /* it came short */
    assert_ok(ls_file_write_at(file, "xy", 2, 4));
    assert_fails(ls_file_write_at(file, "z", 1, 100), LS_EIO);
    assert_int_equal(room_stats(room).bytes, 10);
    assert_int_equal(room_stats(room).files, 2);
    assert_int_equal(room_stats(room).refused, 2);
    ls_file *more;
    assert_fails(ls_file_open(&more, "h", LS_FILE_WRITE | LS_FILE_CREATE),
                 LS_EIO);
    assert_fails(ls_folder_make("d"), LS_EIO);
    assert_ok(ls_file_remove("g"));
    assert_ok(ls_file_write_at(file, "1234", 4, 6));
    ls_disk_fill(room->disk, UINT64_MAX);
    assert_ok(ls_file_write_at(file, "z", 1, 100));
    assert_ok(ls_file_close(&file));
}

static void fill_one(struct room *room)
{
    room_live(room, "a", fill);
}

TEST(a_full_disk_takes_what_fits)
{
    (void)room_run(1, fill_one, NULL);
}

/* ---- the rest ---------------------------------------------------------- */

static void try_what_is_refused(struct room *room)
{
    (void)room;
    assert_ok(ls_folder_make("d"));
    room_write("f", "x", false);
    assert_fails(ls_file_symlink("f", "link"), LS_EIO);
    char target[LS_PATH_MAX];
    assert_fails(ls_file_read_link("f", target), LS_EINVAL);
    assert_fails(ls_file_read_link("link", target), LS_ENOENT);
    assert_fails(ls_file_rename("f", "d/f"), LS_EIO);
    assert_fails(ls_file_rename("d", "/"), LS_EIO);
    assert_fails(ls_folder_remove("/"), LS_EIO);
    assert_true(ls_file_exists("/f"));
    assert_true(ls_file_exists("./f"));
}

static void make_a_name(struct room *room)
{
    ls_file_unique(room->self);
    ls_host_kill(room->host);
}

static void find_it_left_over(struct room *room)
{
    char own[LS_FILE_UNIQUE_MAX];
    ls_file_unique(own);
    assert_true(ls_file_is_left_over(room->self));
    assert_false(ls_file_is_left_over(own));
}

static void make_and_join(struct room *room)
{
    room_live(room, "a", try_what_is_refused);
    assert_fails(ls_disk_join(room->disk, room->host), LS_EEXIST);
    room_live(room, "b", make_a_name);
    room_live(room, "b", find_it_left_over);
    ls_disk *disk = NULL;
    assert_fails(ls_disk_create(&disk, room->simulation,
                                &(struct ls_disk_options){.sync_ns = -1}),
                 LS_EINVAL);
    assert_null(disk);
    ls_disk_destroy(&disk);
    ls_disk_destroy(NULL);
}

TEST(what_a_disk_refuses)
{
    char name[LS_FILE_UNIQUE_MAX];
    (void)room_run(1, make_and_join, name);
}

static void cut_after_some(struct room *room)
{
    ls_disk_power_cut_after(room->disk, room->host, 2);
    assert_fails(ls_folder_remove("none"), LS_ENOENT); /* one */
    room->n =
        (uint64_t)-ls_folder_make("d"); /* two, and then the sync of "/" */
    assert_true(ls_host_is_dead(room->host));
}

static void cut_one(struct room *room)
{
    room_live(room, "a", cut_after_some);
    assert_int_equal(room->n, -LS_EIO);
    assert_int_equal(room_stats(room).power_cuts, 1);
    /* A new life is not cut. */
    room_live(room, "a", try_what_is_refused);
}

static uint64_t changes_by_open(const struct room *room, const char *path,
                                unsigned flags)
{
    const uint64_t before = room_stats(room).changes;
    ls_file *file;
    assert_ok(ls_file_open(&file, path, flags));
    const uint64_t after = room_stats(room).changes;
    assert_ok(ls_file_close(&file));
    return after - before;
}

static void open_for_all(struct room *room)
{
    const unsigned make = LS_FILE_WRITE | LS_FILE_CREATE;
    assert_int_equal(changes_by_open(room, "f", make), 1);
    assert_int_equal(changes_by_open(room, "f", LS_FILE_WRITE), 0);
    assert_int_equal(changes_by_open(room, "f", 0), 0);
    assert_int_equal(changes_by_open(room, "f", LS_FILE_WRITE | LS_FILE_EMPTY),
                     1);
}

static void open_one(struct room *room)
{
    room_live(room, "a", open_for_all);
}

TEST(an_open_that_makes_or_empties_is_an_operation)
{
    (void)room_run(1, open_one, NULL);
}

TEST(power_may_be_cut_at_any_operation)
{
    (void)room_run(1, cut_one, NULL);
}

static void do_some(struct room *room)
{
    for (int i = 0; i < 5; i++)
        lose_writes(room);
}

TEST(one_seed_is_one_story)
{
    struct seen seen = {.expected = after_two_writes};
    const uint64_t hash = room_run(3, do_some, &seen);
    assert_true(hash == room_run(3, do_some, &seen));
    assert_true(hash != room_run(4, do_some, &seen));
}
