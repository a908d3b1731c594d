/* What must outlive a loss of power, and a full disk: the power is cut before
 * each operation of it, and many times, since what is lost is drawn. */
#include "lockstep/journal.h"

#include "state/power_trial.h"
#include "test.h"

/* ---- files ------------------------------------------------------------- */

/* Longer than a page, so that parts of it can be lost. */
#define LONG 9000

struct replaced {
    char old[LONG], new[LONG];
    bool durable;
    bool done;         /* it returned LS_OK */
    unsigned torn;     /* seen so often: neither the one nor the other */
    unsigned old_seen; /* and these */
    unsigned new_seen;
};

static int replace(const char *path, const char *bytes, bool durable)
{
    char temporary[64];
    const struct ls_file_part parts[] = {{bytes, 10}, {bytes + 10, LONG - 10}};
    (void)snprintf(temporary, sizeof temporary, "%s.new", path);
    return ls_file_replace(path, temporary, parts, 2, durable);
}

static void put_old(struct room *room)
{
    struct replaced *self = room->self;
    assert_ok(ls_folder_make("out/job"));
    assert_ok(replace("out/job/f", self->old, true));
}

static void put_new(struct room *room)
{
    struct replaced *self = room->self;
    self->done = replace("out/job/f", self->new, self->durable) == LS_OK;
}

static void judge_replaced(struct room *room)
{
    struct replaced *self = room->self;
    void *data = NULL;
    size_t size = 0;
    assert_ok(ls_file_read("out/job/f", LONG, &data, &size));
    const bool old = size == LONG && memcmp(data, self->old, LONG) == 0;
    const bool new = size == LONG &&memcmp(data, self->new, LONG) == 0;
    free(data);
    self->torn += !old && !new;
    self->old_seen += old;
    self->new_seen += new;
    if (self->durable && self->done)
        assert_true(new);
    if (self->durable)
        assert_true(old || new);
}

static struct replaced play_replace(bool durable)
{
    struct replaced self = {.durable = durable};
    memset(self.old, 'o', sizeof self.old);
    memset(self.new, 'n', sizeof self.new);
    play_all(&(struct trial){.before = put_old,
                             .during = put_new,
                             .after = judge_replaced,
                             .self = &self},
             200);
    return self;
}

TEST(a_durable_replace_is_old_or_new)
{
    const struct replaced seen = play_replace(true);
    assert_true(seen.old_seen > 0 && seen.new_seen > 0);
}

/* So the one above shows something. */
TEST(another_replace_may_be_torn)
{
    const struct replaced seen = play_replace(false);
    assert_true(seen.torn > 0 && seen.old_seen > 0 && seen.new_seen > 0);
}

static void put_first(struct room *room)
{
    struct replaced *self = room->self;
    self->done = ls_folder_make("out/job") == LS_OK &&
                 replace("out/job/f", self->new, true) == LS_OK;
}

static void root_cause(struct room *room)
{
    const struct replaced *self = room->self;
    if (self->done || ls_file_exists("out/job/f"))
        judge_replaced(room);
}

TEST(a_file_in_a_folder_that_was_made_is_there)
{
    struct replaced self = {.durable = true};
    memset(self.new, 'n', sizeof self.new);
    play_all(&(struct trial){.during = put_first,
                             .after = root_cause,
                             .self = &self},
             200);
    assert_true(self.new_seen > 0);
    assert_int_equal(self.old_seen, 0);
}

/* A life is killed while a folder that it has made is synced; the next one
 * finds that folder, puts a file into it, and loses power. */
static void make_until_killed(void *arg)
{
    const struct room *room = arg;
    const int status = ls_folder_make("out/job");
    assert_true(status == LS_OK || ls_host_is_dead(room->host));
}

static void make_and_die(struct room *room)
{
    ls_runtime *runtime = ls_simulation_runtime(room->simulation);
    ls_thread *thread;
    room->host = room_host(room, "a");
    assert_ok(ls_thread_spawn(ls_host_runtime(room->host), &thread, "life",
                              make_until_killed, room));
    ls_rest_until(runtime, LS_NS_PER_US);
    ls_host_kill(room->host);
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
}

static void put_and_fall(struct room *room)
{
    struct replaced *self = room->self;
    put_first(room);
    assert_true(self->done);
    ls_disk_power_cut(room->disk, room->host);
}

static void die_and_fall(struct room *room)
{
    make_and_die(room);
    room_live(room, "a", put_and_fall);
    room_live(room, "a", root_cause);
}

TEST(also_in_one_that_a_killed_life_has_made)
{
    const struct seeds seeds = seeds_of(200);
    struct replaced self = {.durable = true};
    memset(self.new, 'n', sizeof self.new);
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++)
        (void)room_run(seed, die_and_fall, &self);
    assert_true(self.new_seen > 0);
}

/* ---- the journal ------------------------------------------------------- */

/* Records are numbers from 1 on, each with some bytes. */
struct numbers {
    uint64_t added;       /* the last one that was asked for */
    uint64_t flushed;     /* the last one that is on disk, as it was told */
    uint64_t kept;        /* the last one before which some may be missing */
    uint64_t first, last; /* that were found; 0: none */
    uint64_t cut_off;     /* in all rooms, bytes that were torn */
};

static struct ls_journal_record record_of(uint64_t number, char bytes[3000])
{
    const size_t size = 8 + (size_t)(number * 977 % 2900);
    memset(bytes, (int)number, size);
    memcpy(bytes, &number, sizeof number);
    return (struct ls_journal_record){bytes, size};
}

static int count(void *self, const struct ls_journal_record *record)
{
    struct numbers *numbers = self;
    uint64_t number;
    char bytes[3000];
    memcpy(&number, record->data, sizeof number);
    const struct ls_journal_record expected = record_of(number, bytes);
    assert_int_equal(record->size, expected.size);
    assert_memory_equal(record->data, expected.data, expected.size);
    if (numbers->first == 0)
        numbers->first = number;
    else
        assert_int_equal(number, numbers->last + 1);
    numbers->last = number;
    return LS_OK;
}

static int open_journal(struct numbers *numbers, ls_journal **out)
{
    numbers->first = numbers->last = 0;
    return ls_journal_open(
        out, &(struct ls_journal_options){
                 .path = "job/journal", .fn = count, .self = numbers});
}

static int add(struct numbers *numbers, ls_journal *journal, unsigned n)
{
    char bytes[3000];
    int status = LS_OK;
    for (unsigned i = 0; i < n && status == LS_OK; i++) {
        const struct ls_journal_record record =
            record_of(numbers->added + 1, bytes);
        numbers->added++;
        status = ls_journal_append(journal, &record);
    }
    if (status == LS_OK)
        status = ls_journal_flush(journal);
    if (status == LS_OK)
        numbers->flushed = numbers->added;
    return status;
}

static int compact(struct numbers *numbers, ls_journal *journal)
{
    char bytes[3000];
    const struct ls_journal_record record = record_of(numbers->added, bytes);
    const int status = ls_journal_compact(journal, &record, 1);
    if (status == LS_OK)
        numbers->kept = numbers->added;
    return status;
}

static void write_journal(struct room *room)
{
    struct numbers *numbers = room->self;
    *numbers = (struct numbers){.cut_off = numbers->cut_off};
    ls_journal *journal = NULL;
    int status = ls_folder_make("job");
    if (status == LS_OK)
        status = open_journal(numbers, &journal);
    for (unsigned i = 1; i < 5 && status == LS_OK; i++)
        status = add(numbers, journal, i);
    if (status == LS_OK)
        status = compact(numbers, journal);
    for (unsigned i = 1; i < 4 && status == LS_OK; i++)
        status = add(numbers, journal, i);
    ls_journal_close(&journal);
}

/* All that was flushed is there, and no record without the one before it. */
static void judge_journal(struct room *room)
{
    struct numbers *numbers = room->self;
    ls_journal *journal = NULL;
    struct ls_journal_stats stats;
    assert_ok(ls_folder_make("job"));
    assert_ok(open_journal(numbers, &journal));
    assert_in_range(numbers->last, numbers->flushed, numbers->added);
    if (numbers->kept > 0)
        assert_int_equal(numbers->first, numbers->kept);
    else if (numbers->last > 0) /* it was compacted, or was not yet */
        assert_true(numbers->first == 1 || numbers->first == numbers->added);
    ls_journal_stats(journal, &stats);
    numbers->cut_off += stats.torn;
    /* And it goes on. */
    numbers->added = numbers->last;
    assert_ok(add(numbers, journal, 1));
    ls_journal_close(&journal);
    assert_ok(open_journal(numbers, &journal));
    assert_int_equal(numbers->last, numbers->added);
    ls_journal_close(&journal);
}

TEST(a_journal_keeps_what_was_flushed)
{
    struct numbers numbers = {.added = 0};
    play_all(&(struct trial){.during = write_journal,
                             .after = judge_journal,
                             .self = &numbers},
             100);
    assert_true(numbers.cut_off > 0);
}

/* A life is killed with records that it has not flushed; the next reads them,
 * so it may act on them, and loses power. */
static void add_and_die(struct room *room)
{
    struct numbers *numbers = room->self;
    ls_journal *journal;
    char bytes[3000];
    *numbers = (struct numbers){.added = 3};
    assert_ok(ls_folder_make("job"));
    assert_ok(open_journal(numbers, &journal));
    for (uint64_t i = 1; i <= numbers->added; i++) {
        const struct ls_journal_record record = record_of(i, bytes);
        assert_ok(ls_journal_append(journal, &record));
    }
    ls_host_kill(room->host);
    ls_journal_close(&journal);
}

static void read_and_fall(struct room *room)
{
    struct numbers *numbers = room->self;
    ls_journal *journal;
    assert_ok(open_journal(numbers, &journal));
    assert_int_equal(numbers->last, 3);
    numbers->flushed = 3;
    ls_disk_power_cut(room->disk, room->host);
    ls_journal_close(&journal);
}

static void kill_and_cut(struct room *room)
{
    room_live(room, "a", add_and_die);
    room_live(room, "a", read_and_fall);
    room_live(room, "a", judge_journal);
}

TEST(what_a_journal_has_told_its_reader_stays)
{
    const struct seeds seeds = seeds_of(200);
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        struct numbers numbers = {.added = 0};
        (void)room_run(seed, kill_and_cut, &numbers);
    }
}

/* ---- full disks -------------------------------------------------------- */

static void fill_and_replace(struct room *room)
{
    struct replaced *self = room->self;
    put_old(room);
    for (uint64_t room_left = 0;; room_left += 1 + room_left / 8) {
        ls_disk_fill(room->disk, room_stats(room).bytes + room_left);
        self->done = replace("out/job/f", self->new, true) == LS_OK;
        if (self->done)
            break;
        self->new_seen = 0;
        judge_replaced(room);
        assert_int_equal(self->new_seen, 0);
        assert_int_equal(room_stats(room).files, 3); /* two of them folders */
    }
    judge_replaced(room);
}

static void fill_for_replace(struct room *room)
{
    room_live(room, "a", fill_and_replace);
}

TEST(a_full_disk_leaves_what_was)
{
    struct replaced self = {.durable = true};
    memset(self.old, 'o', sizeof self.old);
    memset(self.new, 'n', sizeof self.new);
    (void)room_run(1, fill_for_replace, &self);
}

static void fill_and_add(struct room *room)
{
    struct numbers *numbers = room->self;
    ls_journal *journal;
    assert_ok(ls_folder_make("job"));
    assert_ok(open_journal(numbers, &journal));
    assert_ok(add(numbers, journal, 3));
    for (uint64_t left = 0;; left += 1 + left / 8) {
        char bytes[3000];
        const struct ls_journal_record record = record_of(4, bytes);
        struct ls_journal_stats stats;
        ls_journal *again;
        ls_disk_fill(room->disk, room_stats(room).bytes + left);
        if (ls_journal_append(journal, &record) == LS_OK)
            break;
        assert_fails(ls_journal_compact(journal, &record, 1), LS_EIO);
        ls_journal_stats(journal, &stats);
        assert_int_equal(stats.records, 3);
        assert_int_equal(stats.bytes, room_stats(room).bytes);
        assert_ok(open_journal(numbers, &again));
        ls_journal_stats(again, &stats);
        assert_int_equal(stats.torn, 0);
        assert_int_equal(numbers->last, 3);
        ls_journal_close(&again);
    }
    numbers->added = 4;
    ls_disk_fill(room->disk, UINT64_MAX);
    assert_ok(add(numbers, journal, 1));
    ls_journal_close(&journal);
    judge_journal(room);
}

static void fill_for_add(struct room *room)
{
    room_live(room, "a", fill_and_add);
}

TEST(a_journal_on_a_full_disk_is_as_it_was)
{
    struct numbers numbers = {.added = 0};
    (void)room_run(1, fill_for_add, &numbers);
}
