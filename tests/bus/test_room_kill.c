/* Rooms of real processes, which are killed or stopped at any instant of any
 * operation: nobody is early, hangs, or disagrees. KILLS=2000 kills as many. */
#define _GNU_SOURCE /* MAP_ANONYMOUS, mkdtemp */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sanitized.h"
#include "lockstep/random.h"
#include "room_fixture.h"

enum { MEMBERS = 4, OPS = 12, WAIT_MS = 60000, GRACE_MS = 30000 };

struct ending {
    int status;
    char text[200];
};

/* What the processes of a room share with the test. */
struct board {
    atomic_uint begun[MEMBERS], ended[MEMBERS];
    atomic_bool early;
    struct ending endings[MEMBERS][OPS];
};

struct member {
    pid_t pid;
    int to, from; /* own; to the process, and from it */
    int losses;   /* own; to its thread that hears of them */
    bool gone;
};

static ls_runtime *threads(void)
{
    return ls_runtime_threads();
}

static void say(int fd, char what)
{
    assert_int_equal(write(fd, &what, 1), 1);
}

static char hear(int fd)
{
    char what = 0;
    return read(fd, &what, 1) == 1 ? what : '\0';
}

/* ---- a member's process -------------------------------------------------- */

struct ears {
    ls_room *room;
    int fd;
};

/* What the bus does: it tells of losses, on a thread of its own. */
static void hear_losses(void *arg)
{
    const struct ears *const ears = arg;
    for (char place; (place = hear(ears->fd)) != '\0';)
        core_lose(&ears->room->core, (unsigned)(place - '0'));
}

static void check_begun(struct board *board, const ls_room *room, unsigned op)
{
    for (unsigned i = 0; i < room->n; i++)
        if (ls_room_counts(room, i) && board->begun[i] < op + 1)
            board->early = true;
}

/* Beyond the end of its time in the room it writes to its buffer, if it has
 * one: nobody may see that. */
static void scribble(ls_room *room, const struct part_memory *memory)
{
    if (room->core.out && memory->buffer != NULL)
        memset(ls_room_buffer_own(memory->buffer), 0xee, 4096);
}

static void be_member(struct board *board, ls_room *room, uint64_t seed)
{
    static struct part_memory memory;
    struct ls_rng rng;
    ls_rng_seed(&rng, seed, 5);
    for (unsigned i = 0; i < OPS; i++) {
        struct ending *const ending = &board->endings[room->me][i];
        const struct part_op op = {
            .kind = i == 0 ? PART_BUFFER
                           : (enum part_kind)(ls_rng_next(&rng) % PART_N_KINDS),
            .number = i,
            .size = ls_rng_next(&rng) % PART_MOST,
            .root = (unsigned)(ls_rng_next(&rng) % room->n),
            .lends = part_lends((uint32_t)ls_rng_next(&rng)),
            .wait_ms = WAIT_MS};
        board->begun[room->me] = i + 1;
        ending->status = part_do(room, &op, &memory);
        if (ending->status == LS_OK)
            check_begun(board, room, i);
        else
            (void)snprintf(ending->text, sizeof ending->text, "%s",
                           ls_error_text());
        board->ended[room->me] = i + 1;
    }
    scribble(room, &memory);
}

static void run_member(struct board *board, unsigned me, const char *folder,
                       int from, int to, int losses, uint64_t seed)
{
    ls_room *const room =
        part_create(threads(), MEMBERS, me, PART_CHUNK_BYTES, GRACE_MS);
    struct part_offers offers = part_offer(room, folder);
    say(to, 'o');
    (void)hear(from);
    part_join(room, folder);
    say(to, 'j');
    struct ears ears = {room, losses};
    ls_thread *thread;
    assert_ok(ls_thread_spawn(threads(), &thread, "ears", hear_losses, &ears));
    (void)hear(from);
    part_offers_end(&offers);
    be_member(board, room, seed);
    _exit(0);
}

/* ---- the test's own ------------------------------------------------------ */

static void start_member(struct board *board, struct member *members,
                         unsigned me, const char *folder, uint64_t seed)
{
    int in[2], out[2], losses[2];
    struct member *const m = &members[me];
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    assert_int_equal(pipe(losses), 0);
    m->pid = fork();
    assert_true(m->pid >= 0);
    if (m->pid == 0) {
        (void)setenv("CMOCKA_TEST_ABORT", "1", 1); /* a failure ends it */
        for (unsigned i = 0; i < me; i++) {
            close(members[i].to);
            close(members[i].losses);
        }
        close(in[1]);
        close(losses[1]);
        run_member(board, me, folder, in[0], out[1], losses[0], seed);
    }
    close(in[0]);
    close(out[1]);
    close(losses[0]);
    m->to = in[1];
    m->from = out[0];
    m->losses = losses[1];
}

/* What the killed have left. */
static void clear(const char *folder)
{
    for (unsigned i = 0; i < MEMBERS; i++) {
        char path[108];
        for (unsigned of = 0; of < 2; of++) {
            part_path(path, sizeof path, folder, i, of);
            (void)unlink(path);
        }
    }
}

static void start_room(struct board *board, struct member *members,
                       const char *folder, uint64_t seed)
{
    memset(members, 0, MEMBERS * sizeof *members);
    clear(folder);
    for (unsigned i = 0; i < MEMBERS; i++)
        start_member(board, members, i, folder, seed);
    for (unsigned i = 0; i < MEMBERS; i++)
        assert_int_equal(hear(members[i].from), 'o');
    for (unsigned i = 0; i < MEMBERS; i++)
        say(members[i].to, 'g');
    for (unsigned i = 0; i < MEMBERS; i++)
        assert_int_equal(hear(members[i].from), 'j');
}

static void let_go(const struct member *members)
{
    for (unsigned i = 0; i < MEMBERS; i++)
        say(members[i].to, 'g');
}

static void tell_loss(struct member *members, unsigned who)
{
    members[who].gone = true;
    for (unsigned i = 0; i < MEMBERS; i++)
        if (!members[i].gone) {
            /* Who is through hears no more. */
            const char what = (char)('0' + who);
            const ssize_t n = write(members[i].losses, &what, 1);
            assert_true(n == 1 || errno == EPIPE);
        }
}

static void await_end(struct member *member)
{
    int how;
    assert_int_equal(waitpid(member->pid, &how, 0), member->pid);
    close(member->to);
    close(member->from);
    close(member->losses);
    if (!member->gone)
        assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
}

static void await_ends(struct member *members)
{
    for (unsigned i = 0; i < MEMBERS; i++)
        if (!members[i].gone)
            await_end(&members[i]);
}

static void check_board(const struct board *board, const struct member *members,
                        uint64_t seed)
{
    unsigned first = 0;
    while (members[first].gone)
        first++;
    for (unsigned i = first; i < MEMBERS; i++)
        for (unsigned o = 0; o < OPS && !members[i].gone; o++) {
            const struct ending *const a = &board->endings[first][o];
            const struct ending *const b = &board->endings[i][o];
            if (a->status != b->status || strcmp(a->text, b->text) != 0 ||
                (a->status != LS_OK && a->status != LS_ELOST))
                fail_msg("SEED=%llu, operation %u: %s \"%s\" and %s \"%s\"",
                         (unsigned long long)seed, o, ls_status_name(a->status),
                         a->text, ls_status_name(b->status), b->text);
        }
    assert_false(board->early);
}

/* Until a random instant of the room's life. */
static void pass_time(struct ls_rng *rng, int64_t most_ns)
{
    const int64_t until =
        ls_now(threads()) + (int64_t)(ls_rng_next(rng) % (uint64_t)most_ns);
    while (ls_now(threads()) < until)
        continue;
}

static struct board *new_board(void)
{
    struct board *const board =
        mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(board != MAP_FAILED);
    return board;
}

/* Returns how many were killed. */
static unsigned kill_some(const char *folder, uint64_t seed)
{
    struct member members[MEMBERS];
    struct board *const board = new_board();
    struct ls_rng rng;
    ls_rng_seed(&rng, seed, 6);
    start_room(board, members, folder, seed);
    const unsigned n = 1 + (unsigned)(ls_rng_next(&rng) % 2);
    let_go(members);
    for (unsigned i = 0; i < n; i++) {
        const unsigned who = (unsigned)(ls_rng_next(&rng) % MEMBERS);
        pass_time(&rng, 2 * LS_NS_PER_MS);
        if (members[who].gone)
            continue;
        (void)kill(members[who].pid, SIGKILL);
        members[who].gone = true;
        await_end(&members[who]);
        tell_loss(members, who);
    }
    await_ends(members);
    check_board(board, members, seed);
    munmap(board, sizeof *board);
    return n;
}

static void in_folder(void (*fn)(const char *folder))
{
    char folder[] = "/tmp/lockstep-room-XXXXXX";
    (void)signal(SIGPIPE, SIG_IGN);
    assert_non_null(mkdtemp(folder));
    fn(folder);
    /* Nothing is left but sockets of the killed. */
    clear(folder);
    assert_int_equal(rmdir(folder), 0);
}

static void kill_many(const char *folder)
{
    const char *const count = getenv("KILLS"), *const first = getenv("SEED");
    const unsigned kills = count != NULL ? (unsigned)atoi(count)
                           : SANITIZED   ? 10
                                         : 60;
    uint64_t seed = first != NULL ? strtoull(first, NULL, 10) : 1;
    for (unsigned n = 0; n < kills; seed++)
        n += kill_some(folder, seed);
}

TEST(survivors_of_kills_at_any_instant_agree)
{
    in_folder(kill_many);
}

static void stop_one(const char *folder)
{
    struct member members[MEMBERS];
    for (uint64_t seed = 1; seed <= (SANITIZED ? 1 : 12); seed++) {
        struct board *const board = new_board();
        struct ls_rng rng;
        ls_rng_seed(&rng, seed, 8);
        start_room(board, members, folder, seed);
        const unsigned who = (unsigned)(ls_rng_next(&rng) % MEMBERS);
        let_go(members);
        pass_time(&rng, LS_NS_PER_MS);
        assert_int_equal(kill(members[who].pid, SIGSTOP), 0);
        tell_loss(members, who);
        await_ends(members);
        check_board(board, members, seed);
        assert_int_equal(kill(members[who].pid, SIGCONT), 0);
        await_end(&members[who]);
        assert_int_equal(board->ended[who], OPS);
        /* If the others have not been through without noticing. */
        const struct ending *const last = &board->endings[who][OPS - 1];
        if (last->status != LS_OK) {
            assert_int_equal(last->status, LS_ELOST);
            assert_has(last->text, "this one");
        }
        munmap(board, sizeof *board);
    }
}

TEST(who_is_stopped_is_shut_out_and_finds_that_out_when_it_goes_on)
{
    in_folder(stop_one);
}
