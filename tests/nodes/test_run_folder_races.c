/* Runs that are begun at the same moment, or killed at any: no two share a
 * folder, and nothing is left that would be in the way of the next. */
#include "run_folder.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/log.h"

#include "state/power_trial.h"
#include "test.h"

/* ---- killed at any moment: on a simulated disk --------------------------- */

static const struct run_folder_options simulated = {
    .out = "out/job", .job = "job", .learning = 7};

/* What a life has come to, before its power was cut. */
struct life {
    unsigned before; /* lives before it */
    bool begun, kept, ended;
};

static void live_once(struct room *room)
{
    struct life *life = room->self;
    struct run_folder folder;
    life->kept = life->ended = false;
    life->begun = run_folder_begin(&folder, &simulated) == LS_OK;
    if (!life->begun)
        return;
    assert_int_equal(folder.lives, life->before);
    life->kept = ls_folder_make("out/job/1/kept") == LS_OK;
    run_folder_end(&folder, true);
    life->ended = !ls_host_is_dead(room->host);
}

/* As above, and is killed as it works. */
static void be_interrupted(struct room *room)
{
    struct life *life = room->self;
    struct run_folder folder;
    assert_ok(run_folder_begin(&folder, &simulated));
    life->before = 1;
    (void)ls_file_close(&folder.record);
}

static void judge_life(struct room *room)
{
    const struct life *life = room->self;
    const unsigned before = life->before;
    struct run_folder folder;
    if (run_folder_begin(&folder, &simulated) != LS_OK)
        fail_msg("%s", ls_error_text());
    if (life->ended)
        assert_int_equal(folder.lives, 0);
    else if (life->kept) /* unless its end was on disk */
        assert_true(folder.lives == before + 1 || folder.lives == 0);
    else if (life->begun)
        assert_int_equal(folder.lives, before + 1);
    else
        assert_true(folder.lives == before || folder.lives == before + 1);
    run_folder_end(&folder, false);
}

TEST(killed_at_any_moment_it_blocks_nobody)
{
    struct life life = {.before = 0};
    play_all(&(struct trial){.during = live_once,
                             .after = judge_life,
                             .self = &life},
             20);
    play_all(&(struct trial){.before = be_interrupted,
                             .during = live_once,
                             .after = judge_life,
                             .self = &life},
             20);
}

enum then { STAYS, IS_KILLED, LEAVES_NOTHING };

struct one {
    struct run_folder_options options;
    enum then then;
    struct run_folder folder;
    int status;
};

static void begin_one(void *arg)
{
    struct one *one = arg;
    one->status = run_folder_begin(&one->folder, &one->options);
    if (one->status != LS_OK)
        return;
    if (one->then == IS_KILLED)
        (void)ls_file_close(&one->folder.record);
    else if (one->then == LEAVES_NOTHING)
        run_folder_end(&one->folder, false);
}

/* What is there is its own. */
static void judge_one(void *arg)
{
    struct one *one = arg;
    struct run_folder node;
    if (one->status != LS_OK || one->then == LEAVES_NOTHING)
        return;
    assert_ok(run_folder_join(&node, "out/job", one->folder.name, false));
    assert_string_equal(node.token, one->folder.token);
    (void)ls_file_close(&one->folder.record);
}

static void on_each(ls_host *hosts[2], void (*fn)(void *one), struct one two[2])
{
    ls_thread *threads[2];
    for (int i = 0; i < 2; i++)
        assert_ok(ls_thread_spawn(ls_host_runtime(hosts[i]), &threads[i], "one",
                                  fn, &two[i]));
    for (int i = 0; i < 2; i++)
        assert_ok(ls_thread_join(&threads[i], LS_FOREVER));
}

static void begin_both(struct room *room)
{
    const struct one *as = room->self;
    struct one two[2] = {*as, *as};
    /* Of which a sync takes no time, so that each goes in steps that are
     * alike, and the seed alone draws whose is next. */
    ls_disk *disk, *other = room->disk;
    assert_ok(ls_disk_create(&disk, room->simulation,
                             &(struct ls_disk_options){.sync_ns = 1}));
    room->disk = disk;
    ls_host *hosts[] = {room_host(room, "a"), room_host(room, "b")};
    two[1].then = STAYS;
    on_each(hosts, begin_one, two);
    assert_true(two[0].status == LS_OK || two[1].status == LS_OK);
    for (int i = 0; i < 2; i++)
        assert_true(two[i].status == LS_OK ||
                    (two[i].status == LS_EAGAIN && !as->options.fresh));
    on_each(hosts, judge_one, two);
    ls_disk_destroy(&disk);
    room->disk = other;
}

TEST(two_machines_never_share_a_folder)
{
    const struct seeds seeds = seeds_of(1000);
    struct one as = {.options = simulated};
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        as.then = (enum then)(seed % 3);
        as.options.fresh = as.then != STAYS;
        (void)room_run(seed, begin_both, &as);
    }
}

/* ---- two at once ------------------------------------------------------- */

/* The same command, once the pipe is closed: its folder, and how it went; then
 * it is killed. */
struct begun {
    int status;
    char name[RUN_FOLDER_NAME_MAX + 1];
    char said[256];
};

static void begin_and_wait(const struct run_folder_options *options,
                           const int go[2], const int told[2])
{
    struct run_folder folder;
    struct begun begun = {.name = ""};
    char byte;
    (void)close(go[1]);
    if (read(go[0], &byte, 1) != 0)
        _exit(1);
    begun.status = run_folder_begin(&folder, options);
    if (begun.status == LS_OK)
        memcpy(begun.name, folder.name, sizeof folder.name);
    else
        (void)snprintf(begun.said, sizeof begun.said, "%s", ls_error_text());
    if (write(told[1], &begun, sizeof begun) != (ssize_t)sizeof begun)
        _exit(1);
    for (;;)
        (void)pause();
}

static void begin_two_at_once(const struct run_folder_options *options,
                              struct begun two[2])
{
    int go[2], told[2];
    pid_t pids[2];
    assert_int_equal(pipe(go), 0);
    assert_int_equal(pipe(told), 0);
    for (int i = 0; i < 2; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0)
            begin_and_wait(options, go, told);
    }
    (void)close(go[0]);
    (void)close(go[1]);
    (void)close(told[1]);
    for (int i = 0; i < 2; i++)
        assert_int_equal(read(told[0], &two[i], sizeof two[i]), sizeof two[i]);
    (void)close(told[0]);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kill(pids[i], SIGKILL), 0);
        assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
    }
}

/* Whoever of them has begun can be found. */
static void assert_latest_is_of(const struct begun two[2], const char *out)
{
    char link[128], to[LS_PATH_MAX];
    (void)snprintf(link, sizeof link, "%s/latest", out);
    assert_ok(ls_file_read_link(link, to));
    assert_true(strcmp(to, two[0].name) == 0 || strcmp(to, two[1].name) == 0);
}

static void begin_round(const char *out, bool fresh)
{
    struct run_folder_options options = {
        .out = out, .job = "job", .learning = 7, .fresh = fresh};
    struct begun two[2];
    struct run_folder folder;
    begin_two_at_once(&options, two);
    for (int i = 0; i < 2; i++)
        if (two[i].status != LS_OK && (two[i].status != LS_EAGAIN || fresh))
            fail_msg("%s", two[i].said);
    assert_true(two[0].status == LS_OK || two[1].status == LS_OK);
    assert_string_not_equal(two[0].name, two[1].name);
    assert_latest_is_of(two, out);
    /* They were killed, and the next goes on. */
    options.fresh = false;
    assert_ok(run_folder_begin(&folder, &options));
    assert_int_equal(folder.lives, 1);
    run_folder_end(&folder, true);
}

TEST(two_processes_never_share_a_folder)
{
    char root[] = "/tmp/lockstep-test-XXXXXX", out[64], command[64];
    assert_non_null(mkdtemp(root));
    const struct seeds rounds = seeds_of(40);
    for (uint64_t i = rounds.first; i < rounds.end; i++) {
        (void)snprintf(out, sizeof out, "%s/%u", root, (unsigned)i);
        begin_round(out, i % 2 == 1);
    }
    (void)snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    /* Simulated disks have no links, of which each run would tell. */
    if (ls_log_setup("error") != LS_OK)
        return 1;
    return tests_run();
}
