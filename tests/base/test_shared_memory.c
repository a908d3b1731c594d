/* What shared_memory.h promises, on threads and in a simulation. */
#define _GNU_SOURCE /* seals, mmap */
#include "shared_memory.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory_ops.h"
#include "runtime_ops.h"
#include "simulated.h"
#include "test.h"

static const uint8_t key[LS_MEMORY_KEY_BYTES] = "a key, 16 bytes";

/* Where a test offers its memory; in a simulation a name. */
static char folder[32];
static char path[64];

static ls_memory *made(ls_runtime *runtime, size_t size)
{
    ls_memory *memory = NULL;
    assert_ok(ls_memory_create(&memory, runtime, "test", size));
    return memory;
}

static ls_memory *taken(ls_runtime *runtime, ls_memory *from)
{
    ls_offer *offer = NULL;
    ls_memory *memory = NULL;
    assert_ok(ls_offer_begin(&offer, from, path, key));
    assert_ok(ls_memory_take(&memory, runtime, path, key, 1,
                             ls_deadline(runtime, 60000)));
    ls_offer_end(&offer);
    assert_null(offer);
    return memory;
}

static void what_the_owner_writes_is_read_by_others(ls_runtime *runtime)
{
    ls_memory *own = made(runtime, 5000);
    assert_int_equal(ls_memory_size(own) % ls_memory_pages(1), 0);
    assert_true(ls_memory_size(own) >= 5000);
    assert_ok(ls_memory_reserve(own, 0, 5000));
    char *const bytes = ls_memory_own(own);
    assert_int_equal(bytes[4999], 0);
    ls_memory *other = taken(runtime, own);
    strcpy(bytes + 100, "seen");
    assert_string_equal((const char *)ls_memory_data(other) + 100, "seen");
    assert_null(ls_memory_own(other));
    ls_memory_destroy(&own);
    assert_null(own);
    assert_string_equal((const char *)ls_memory_data(other) + 100, "seen");
    ls_memory_destroy(&other);
    ls_memory_destroy(&other);
}

static void nobody_but_the_owner_can_write(ls_runtime *runtime)
{
    ls_memory *own = made(runtime, 1);
    ls_memory *other = taken(runtime, own);
    assert_true(mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, other->fd,
                     0) == MAP_FAILED);
    assert_int_equal(mprotect(other->base, 1, PROT_READ | PROT_WRITE), -1);
    assert_int_equal(write(other->fd, "x", 1), -1);
    assert_int_equal(ftruncate(other->fd, 0), -1);
    assert_int_equal(ftruncate(own->fd, 0), -1);
    ls_memory_destroy(&own);
    ls_memory_destroy(&other);
}

static void a_severed_memory_is_written_for_nobody_else(ls_runtime *runtime)
{
    ls_memory *own = made(runtime, 1);
    ls_memory *other = taken(runtime, own);
    char *const bytes = ls_memory_own(own);
    bytes[0] = 'a';
    ls_memory_sever(own);
    assert_int_equal(bytes[0], 'a');
    bytes[0] = 'b';
    assert_int_equal(*(const char *)ls_memory_data(other), 'a');
    ls_memory_destroy(&own);
    ls_memory_destroy(&other);
}

static void a_view_joins_parts_of_several(ls_runtime *runtime)
{
    const size_t page = ls_memory_pages(1);
    const void *view;
    ls_memory *a = made(runtime, 3 * page), *b = made(runtime, 3 * page);
    ((char *)ls_memory_own(a))[page] = 'a';
    ((char *)ls_memory_own(b))[2 * page] = 'b';
    const struct ls_memory_piece pieces[] = {{a, page, page},
                                             {b, page, 2 * page}};
    assert_ok(ls_memory_view(&view, pieces, 2));
    const char *const bytes = view;
    assert_int_equal(bytes[0], 'a');
    assert_int_equal(bytes[2 * page], 'b');
    ls_memory_destroy(&a);
    ls_memory_destroy(&b);
    assert_int_equal(bytes[2 * page], 'b');
    ls_memory_view_end(view, 3 * page);
}

static void only_who_has_the_key_takes_it(ls_runtime *runtime)
{
    const uint8_t other_key[LS_MEMORY_KEY_BYTES] = "another key ...";
    const int64_t deadline = ls_deadline(runtime, 60000);
    ls_memory *own = made(runtime, 100), *other = NULL;
    ls_offer *offer = NULL;
    assert_fails(ls_memory_take(&other, runtime, path, key, 1, deadline),
                 LS_EUNREACHABLE);
    assert_error_has(path);
    assert_ok(ls_offer_begin(&offer, own, path, key));
    assert_fails(ls_memory_take(&other, runtime, path, other_key, 1, deadline),
                 LS_EUNREACHABLE);
    assert_null(other);
    assert_fails(ls_memory_take(&other, runtime, path, key,
                                ls_memory_size(own) + 1, deadline),
                 LS_EPROTO);
    assert_error_has("are needed");
    assert_ok(ls_memory_take(&other, runtime, path, key, ls_memory_size(own),
                             deadline));
    ls_memory_destroy(&other);
    ls_offer_end(&offer);
    assert_fails(ls_memory_take(&other, runtime, path, key, 1, deadline),
                 LS_EUNREACHABLE);
    ls_memory_destroy(&own);
}

/* ---- words --------------------------------------------------------------- */

struct bell {
    ls_runtime *runtime;
    ls_memory *memory;
};

static void ring(void *arg)
{
    const struct bell *const bell = arg;
    ls_word *const words = ls_memory_own(bell->memory);
    atomic_store(&words[1], 1);
    ls_word_wake(bell->runtime, &words[1]);
}

static void who_waits_for_words_is_woken_by_any(ls_runtime *runtime)
{
    struct bell bell = {runtime, made(runtime, 100)};
    ls_memory *other = taken(runtime, bell.memory);
    const ls_word *const words = ls_memory_data(other);
    const struct ls_awaited both[] = {{&words[0], 0}, {&words[1], 0}};
    ls_thread *thread;
    spawn(runtime, &thread, ring, &bell);
    while (atomic_load(&words[1]) == 0)
        assert_ok(ls_words_wait(runtime, both, 2, LS_FOREVER));
    join(&thread);
    ls_memory_destroy(&bell.memory);
    ls_memory_destroy(&other);
}

static void a_word_that_has_changed_is_not_waited_for(ls_runtime *runtime)
{
    ls_memory *own = made(runtime, 100);
    ls_word *const words = ls_memory_own(own);
    const struct ls_awaited both[] = {{&words[0], 0}, {&words[1], 0}};
    assert_fails(ls_words_wait(runtime, both, 2, LS_NOW), LS_ETIMEDOUT);
    assert_fails(ls_words_wait(runtime, both, 2, ls_deadline(runtime, 1)),
                 LS_ETIMEDOUT);
    atomic_store(&words[1], 7);
    assert_ok(ls_words_wait(runtime, both, 2, LS_FOREVER));
    ls_yield_core(runtime);
    ls_memory_destroy(&own);
}

static void ring_bell(void *arg)
{
    ls_memory_ring(arg);
}

static void its_owner_waits_for_the_bell_that_any_may_ring(ls_runtime *runtime)
{
    ls_memory *own = made(runtime, 100);
    ls_thread *thread;
    assert_ok(ls_memory_add_bell(own));
    ls_memory *other = taken(runtime, own);
    assert_fails(ls_memory_hear(own, LS_NOW), LS_ETIMEDOUT);
    assert_fails(ls_memory_hear(own, ls_deadline(runtime, 1)), LS_ETIMEDOUT);
    spawn(runtime, &thread, ring_bell, other);
    assert_ok(ls_memory_hear(own, LS_FOREVER));
    join(&thread);
    ls_memory_ring(other); /* twice is once */
    ls_memory_ring(own);
    assert_ok(ls_memory_hear(own, LS_NOW));
    assert_fails(ls_memory_hear(own, LS_NOW), LS_ETIMEDOUT);
    ls_memory_destroy(&other);
    ls_memory_destroy(&own);
}

static void who_hears_the_bell_of_another_is_woken_by_that(ls_runtime *runtime)
{
    ls_memory *own = made(runtime, 100), *gong = made(runtime, 100);
    assert_ok(ls_memory_add_bell(own));
    assert_ok(ls_memory_add_bell(gong));
    ls_memory *one = taken(runtime, gong), *other = taken(runtime, gong);
    assert_ok(ls_memory_hear_too(own, one));
    ls_memory_ring(other);
    assert_ok(ls_memory_hear(own, LS_NOW));
    assert_ok(ls_memory_hear(gong, LS_NOW));
    assert_fails(ls_memory_hear(own, LS_NOW), LS_ETIMEDOUT);
    ls_memory_ring(own);
    assert_fails(ls_memory_hear(gong, LS_NOW), LS_ETIMEDOUT);
    ls_memory_destroy(&gong); /* its bell stays */
    ls_memory_ring(other);
    assert_ok(ls_memory_hear(own, LS_NOW));
    ls_memory_ring(other);
    ls_memory_ring(own); /* both at once */
    assert_ok(ls_memory_hear(own, LS_FOREVER));
    assert_fails(ls_memory_hear(own, LS_NOW), LS_ETIMEDOUT);
    ls_memory_destroy(&one);
    ls_memory_destroy(&other);
    ls_memory_destroy(&own);
}

TEST(a_memory_without_a_bell_cannot_be_heard)
{
    ls_runtime *const runtime = ls_runtime_threads();
    ls_memory *own = made(runtime, 100), *mute = made(runtime, 100);
    assert_ok(ls_memory_add_bell(own));
    assert_fails(ls_memory_hear_too(own, mute), LS_EPROTO);
    assert_error_has("has none");
    ls_memory_destroy(&mute);
    ls_memory_destroy(&own);
}

static void one_that_its_owner_has_destroyed_is_an_orphan(ls_runtime *runtime)
{
    ls_memory *own = made(runtime, 100);
    ls_memory *one = taken(runtime, own), *other = taken(runtime, own);
    assert_false(ls_memory_is_orphan(one));
    ls_memory_destroy(&one);
    assert_false(ls_memory_is_orphan(other));
    ls_memory_destroy(&own);
    assert_true(ls_memory_is_orphan(other));
    assert_true(ls_memory_is_orphan(other));
    ls_memory_destroy(&other);
}

#define PROMISES(X)                                                            \
    X(what_the_owner_writes_is_read_by_others)                                 \
    X(nobody_but_the_owner_can_write)                                          \
    X(a_severed_memory_is_written_for_nobody_else)                             \
    X(a_view_joins_parts_of_several)                                           \
    X(only_who_has_the_key_takes_it)                                           \
    X(one_that_its_owner_has_destroyed_is_an_orphan)                           \
    X(who_waits_for_words_is_woken_by_any)                                     \
    X(a_word_that_has_changed_is_not_waited_for)                               \
    X(its_owner_waits_for_the_bell_that_any_may_ring)                          \
    X(who_hears_the_bell_of_another_is_woken_by_that)

/* ---- on threads ---------------------------------------------------------- */

static int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/lockstep-test-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return 1;
    (void)snprintf(path, sizeof path, "%s/offer", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(folder); /* nothing is left there */
}

EACH_TEST(set_up, tear_down)

#define ON_THREADS(name)                                                       \
    TEST(name##_on_threads)                                                    \
    {                                                                          \
        name(ls_runtime_threads());                                            \
    }
PROMISES(ON_THREADS)

TEST(a_process_that_is_killed_leaves_an_orphan)
{
    ls_runtime *const runtime = ls_runtime_threads();
    int ready[2];
    char said = 0;
    assert_int_equal(pipe(ready), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        ls_memory *const own = made(runtime, 100);
        ls_offer *offer = NULL;
        assert_ok(ls_offer_begin(&offer, own, path, key));
        (void)!write(ready[1], "r", 1);
        for (;;)
            (void)pause();
    }
    assert_int_equal(read(ready[0], &said, 1), 1);
    ls_memory *other = NULL;
    assert_ok(ls_memory_take(&other, runtime, path, key, 1,
                             ls_deadline(runtime, 60000)));
    assert_false(ls_memory_is_orphan(other));
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(ls_memory_is_orphan(other));
    ls_memory_destroy(&other);
    (void)unlink(path);
    (void)close(ready[0]);
    (void)close(ready[1]);
}

static void limit_files(rlim_t most)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = most;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* It would be killed by the kernel. */
TEST(what_is_larger_than_files_may_be_is_refused)
{
    ls_memory *memory;
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit_files(ls_memory_pages(1));
    const int status =
        ls_memory_create(&memory, ls_runtime_threads(), "test", 5000);
    const int fits = ls_memory_create(&memory, ls_runtime_threads(), "test",
                                      ls_memory_pages(1));
    ls_memory_destroy(&memory);
    limit_files(before.rlim_cur);
    assert_int_equal(status, LS_EIO);
    assert_int_equal(fits, LS_OK);
}

TEST(what_is_no_sealed_memory_is_refused)
{
    ls_runtime *const runtime = ls_runtime_threads();
    FILE *const file = tmpfile();
    assert_non_null(file);
    /* Who offers can send any descriptor. */
    ls_memory liar = {.runtime = runtime, .lent = fileno(file)};
    ls_memory *memory = NULL;
    ls_offer *offer = NULL;
    assert_ok(ls_offer_begin(&offer, &liar, path, key));
    assert_fails(ls_memory_take(&memory, runtime, path, key, 1,
                                ls_deadline(runtime, 60000)),
                 LS_EPROTO);
    assert_error_has("no sealed memory");
    ls_offer_end(&offer);
    liar.lent = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_ok(ls_offer_begin(&offer, &liar, path, key));
    assert_fails(ls_memory_take(&memory, runtime, path, key, 1,
                                ls_deadline(runtime, 60000)),
                 LS_EPROTO);
    ls_offer_end(&offer);
    close(liar.lent);
    (void)fclose(file);
}

TEST(who_never_answers_is_waited_for_until_the_deadline)
{
    ls_runtime *const runtime = ls_runtime_threads();
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    ls_memory *memory = NULL;
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    strcpy(address.sun_path, path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_fails(ls_memory_take(&memory, runtime, path, key, 1,
                                ls_deadline(runtime, 10)),
                 LS_ETIMEDOUT);
    assert_fails(ls_memory_take(&memory, runtime, path, key, 1, LS_NOW),
                 LS_ETIMEDOUT);
    close(fd);
    unlink(path);
}

struct generous {
    int listener, ends[2], asker; /* open until it is joined: what is closed
                                   * leaves room */
    int memory;  /* what it sends as one; and an end of a pipe as a bell */
    bool scarce; /* one of them can be opened then, and no more */
};

static void leave_one(void)
{
    const int next = dup(STDERR_FILENO);
    struct rlimit limit;
    assert_true(next >= 0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = (rlim_t)next + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* Answers the first that asks. */
static void send_two(void *self)
{
    struct generous *generous = self;
    char byte = 0, control[CMSG_SPACE(2 * sizeof(int))] = {0};
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr packet = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = control,
                            .msg_controllen = sizeof control};
    struct cmsghdr *const header = CMSG_FIRSTHDR(&packet);
    const int two[2] = {generous->memory, generous->ends[1]};
    const int asker = accept(generous->listener, NULL, NULL);
    generous->asker = asker;
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof two);
    memcpy(CMSG_DATA(header), two, sizeof two);
    char said[LS_MEMORY_KEY_BYTES];
    assert_int_equal(recv(asker, said, sizeof said, 0), sizeof said);
    if (generous->scarce)
        leave_one();
    assert_int_equal(sendmsg(asker, &packet, 0), 1);
}

/* Of two descriptors, a memory (-1: an end of a pipe) and an end of a pipe. */
static void none_is_kept(int memory_fd, bool scarce, int status,
                         const char *why)
{
    ls_runtime *const runtime = ls_runtime_threads();
    struct generous generous = {.listener = socket(AF_UNIX, SOCK_SEQPACKET, 0),
                                .scarce = scarce};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    ls_memory *memory = NULL;
    ls_thread *thread = NULL;
    struct rlimit before;
    char byte;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    strcpy(address.sun_path, path);
    assert_int_equal(
        bind(generous.listener, (struct sockaddr *)&address, sizeof address),
        0);
    assert_int_equal(listen(generous.listener, 1), 0);
    assert_int_equal(pipe2(generous.ends, O_NONBLOCK), 0);
    generous.memory = memory_fd < 0 ? generous.ends[1] : memory_fd;
    assert_ok(
        ls_thread_spawn(runtime, &thread, "generous", send_two, &generous));
    const int taken_as = ls_memory_take(&memory, runtime, path, key, 1,
                                        ls_deadline(runtime, 60000));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_fails(taken_as, status);
    assert_error_has(why);
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    close(generous.asker);
    close(generous.ends[1]);
    assert_int_equal(read(generous.ends[0], &byte, 1), 0); /* no writer */
    close(generous.ends[0]);
    close(generous.listener);
    unlink(path);
}

TEST(of_what_is_no_memory_or_no_bell_nothing_is_kept)
{
    ls_memory *own = made(ls_runtime_threads(), 100);
    none_is_kept(-1, false, LS_EPROTO, "no sealed memory");
    none_is_kept(own->lent, false, LS_EPROTO, "no bell");
    ls_memory_destroy(&own);
}

/* Its owner would sleep on what is written for it. */
TEST(a_memory_whose_bell_could_not_be_opened_here_is_refused)
{
    ls_memory *own = made(ls_runtime_threads(), 100);
    none_is_kept(own->lent, true, LS_EUNREACHABLE, path);
    ls_memory_destroy(&own);
}

/* ---- bells --------------------------------------------------------------- */

static uint64_t heard(int bell)
{
    uint64_t n = 0;
    return read(bell, &n, sizeof n) == (ssize_t)sizeof n ? n : 0;
}

TEST(who_takes_a_memory_can_ring_its_owners_bell)
{
    ls_runtime *const runtime = ls_runtime_threads();
    const int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const uint64_t full = UINT64_MAX - 1;
    ls_memory *own = made(runtime, 100);
    ls_memory *deaf = taken(runtime, own);
    assert_ok(ls_memory_set_bell(own, bell, NULL, NULL));
    ls_memory *one = taken(runtime, own), *other = taken(runtime, own);
    ls_memory_ring(deaf); /* it was taken before there was one */
    assert_int_equal(heard(bell), 0);
    ls_memory_ring(one);
    ls_memory_ring(other);
    assert_int_equal(heard(bell), 2);
    assert_int_equal(write(bell, &full, sizeof full), sizeof full);
    ls_memory_ring(one); /* nobody listens: it does not wait */
    assert_true(heard(bell) == full);
    ls_memory_destroy(&own);
    ls_memory_ring(one); /* nor does it matter when the owner is gone */
    ls_memory_destroy(&one);
    ls_memory_destroy(&other);
    ls_memory_destroy(&deaf);
    close(bell);
}

TEST(a_bell_needs_a_descriptor)
{
    ls_memory *own = made(ls_runtime_threads(), 100);
    struct rlimit before, none;
    const int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)bell + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_fails(ls_memory_set_bell(own, bell, NULL, NULL), LS_ELIMIT);
    assert_fails(ls_memory_add_bell(own), LS_ELIMIT);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_ok(ls_memory_set_bell(own, bell, NULL, NULL));
    assert_ok(ls_memory_set_bell(own, -1, NULL, NULL));
    ls_memory_destroy(&own);
    close(bell);
}

TEST(an_offer_at_a_path_that_cannot_be_is_refused)
{
    ls_memory *own = made(ls_runtime_threads(), 1);
    ls_offer *offer = NULL;
    char longest[200];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_fails(ls_offer_begin(&offer, own, longest, key), LS_EINVAL);
    assert_error_has("107 bytes");
    assert_fails(ls_offer_begin(&offer, own, "/nowhere/at/all", key),
                 LS_ENOENT);
    assert_error_has("/nowhere/at/all");
    assert_null(offer);
    ls_memory_destroy(&own);
}

TEST(an_offer_replaces_nothing)
{
    ls_memory *own = made(ls_runtime_threads(), 1);
    ls_offer *offer = NULL;
    assert_int_equal(symlink("mine", path), 0);
    assert_fails(ls_offer_begin(&offer, own, path, key), LS_EEXIST);
    assert_error_has(path);
    assert_int_equal(unlink(path), 0);
    ls_memory_destroy(&own);
}

/* ---- what killed processes leave --------------------------------------- */

/* The path of a new offer of this host. */
static char *named(char out[LS_OFFER_PATH_BYTES])
{
    char name[LS_OFFER_NAME_BYTES];
    ls_offer_name(ls_runtime_threads(), name);
    assert_ok(ls_offer_path(folder, name, out));
    return out;
}

static void make_old(const char *file)
{
    const struct timespec times[] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    assert_int_equal(utimensat(AT_FDCWD, file, times, AT_SYMLINK_NOFOLLOW), 0);
}

static bool is_there(const char *file)
{
    struct stat about;
    return lstat(file, &about) == 0;
}

/* Somebody makes an offer, and ends it. */
static void offer_once(void)
{
    char here[LS_OFFER_PATH_BYTES];
    ls_memory *own = made(ls_runtime_threads(), 1);
    ls_offer *offer = NULL;
    assert_ok(ls_offer_begin(&offer, own, named(here), key));
    assert_true(is_there(here));
    ls_offer_end(&offer);
    assert_false(is_there(here));
    ls_memory_destroy(&own);
}

/* A process that offers its memory at `at`, and is killed. */
static void offer_and_die(const char *at)
{
    int ready[2];
    char said = 0;
    assert_int_equal(pipe(ready), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        ls_memory *const own = made(ls_runtime_threads(), 1);
        ls_offer *offer = NULL;
        assert_ok(ls_offer_begin(&offer, own, at, key));
        (void)!write(ready[1], "r", 1);
        for (;;)
            (void)pause();
    }
    assert_int_equal(read(ready[0], &said, 1), 1);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    (void)close(ready[0]);
    (void)close(ready[1]);
}

/* A socket that is bound and never listens. */
static void bind_only(const char *at)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    strcpy(address.sun_path, at);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
}

TEST(who_makes_an_offer_removes_those_of_killed_processes)
{
    char left[LS_OFFER_PATH_BYTES], hidden[LS_OFFER_PATH_BYTES];
    offer_and_die(named(left));
    char name[LS_OFFER_NAME_BYTES];
    ls_offer_name(ls_runtime_threads(), name);
    (void)snprintf(hidden, sizeof hidden, "%s/.%s", folder, name);
    bind_only(hidden); /* it was killed before it listened */
    offer_once();
    assert_true(is_there(left)); /* they are young, and may be about to begin */
    assert_true(is_there(hidden));
    make_old(left);
    make_old(hidden);
    offer_once();
    assert_false(is_there(left));
    assert_false(is_there(hidden));
}

TEST(one_that_has_an_owner_stays)
{
    ls_runtime *const runtime = ls_runtime_threads();
    char here[LS_OFFER_PATH_BYTES];
    ls_memory *own = made(runtime, 1), *other = NULL;
    ls_offer *offer = NULL;
    assert_ok(ls_offer_begin(&offer, own, named(here), key));
    make_old(here);
    offer_once();
    assert_ok(ls_memory_take(&other, runtime, here, key, 1,
                             ls_deadline(runtime, 60000)));
    ls_offer_end(&offer);
    ls_memory_destroy(&own);
    ls_memory_destroy(&other);
}

TEST(one_whose_owner_stands_still_stays)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    int waiting[8], n = 0, status = 0;
    named(address.sun_path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 0), 0);
    make_old(address.sun_path);
    while (status == 0 && n < 8) { /* until no more may wait */
        waiting[n] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
        status =
            connect(waiting[n++], (struct sockaddr *)&address, sizeof address);
    }
    assert_int_equal(status, -1);
    offer_once();
    assert_true(is_there(address.sun_path));
    while (n > 0)
        close(waiting[--n]);
    close(fd);
    unlink(address.sun_path);
}

TEST(what_is_no_offer_of_this_host_stays)
{
    char other_host[LS_OFFER_PATH_BYTES], file[LS_OFFER_PATH_BYTES],
        other[LS_OFFER_PATH_BYTES], longer[LS_OFFER_PATH_BYTES];
    char *const host = strrchr(named(other_host), '-') - 1;
    *host = *host == '0' ? '1' : '0';
    (void)snprintf(other, sizeof other, "%s/offer", folder);
    (void)snprintf(longer, sizeof longer, "%s0", named(file));
    bind_only(other_host);
    bind_only(other);
    bind_only(longer);
    const int fd = open(file, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
    const char *const all[] = {other_host, other, longer, file};
    for (size_t i = 0; i < 4; i++)
        make_old(all[i]);
    offer_once();
    for (size_t i = 0; i < 4; i++) {
        assert_true(is_there(all[i]));
        assert_int_equal(unlink(all[i]), 0);
    }
}

/* The offer of this process, which is about to listen, is taken for one of a
 * dead one: so often. */
static int taken_for_dead;

int listen(int fd, int backlog) /* in place of libc's */
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t size = sizeof address;
    if (taken_for_dead > 0) {
        taken_for_dead--;
        assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size),
                         0);
        assert_int_equal(unlink(address.sun_path), 0);
    }
    return (int)syscall(SYS_listen, fd, backlog);
}

TEST(one_that_is_removed_before_it_listens_is_made_again)
{
    ls_runtime *const runtime = ls_runtime_threads();
    char here[LS_OFFER_PATH_BYTES];
    ls_memory *own = made(runtime, 1), *other = NULL;
    ls_offer *offer = NULL;
    taken_for_dead = 2;
    assert_ok(ls_offer_begin(&offer, own, named(here), key));
    assert_int_equal(taken_for_dead, 0);
    assert_ok(ls_memory_take(&other, runtime, here, key, 1,
                             ls_deadline(runtime, 60000)));
    ls_memory_destroy(&other);
    ls_offer_end(&offer);
    taken_for_dead = 3;
    assert_fails(ls_offer_begin(&offer, own, named(here), key), LS_ENOENT);
    assert_int_equal(taken_for_dead, 0);
    ls_memory_destroy(&own);
}

TEST(the_usual_folder_is_this_users_alone)
{
    char out[108];
    assert_int_equal(setenv("XDG_RUNTIME_DIR", folder, 1), 0);
    assert_ok(ls_offer_folder(ls_runtime_threads(), out, sizeof out, NULL));
    assert_has(out, folder);
    assert_ok(ls_offer_folder(ls_runtime_threads(), out, sizeof out, NULL));
    assert_int_equal(chmod(out, 0777), 0);
    assert_fails(ls_offer_folder(ls_runtime_threads(), out, sizeof out, NULL),
                 LS_EIO);
    assert_int_equal(rmdir(out), 0);
}

/* As after sudo: that user could make none there any more. */
TEST(in_the_runtime_folder_of_another_user_nothing_is_made)
{
    char out[108], others[64], made[128];
    (void)snprintf(others, sizeof others, "%s/others", folder);
    assert_int_equal(mkdir(others, 0700), 0);
    const bool given = chown(others, 65534, (gid_t)-1) == 0;
    const char *const runs[] = {given ? others : "/usr", "."};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(setenv("XDG_RUNTIME_DIR", runs[i], 1), 0);
        assert_ok(ls_offer_folder(ls_runtime_threads(), out, sizeof out, NULL));
        assert_has(out, "/tmp/lockstep-");
        (void)snprintf(made, sizeof made, "%s/lockstep", runs[i]);
        assert_int_not_equal(access(made, F_OK), 0);
    }
    assert_int_equal(rmdir(others), 0);
}

static uint64_t host_by(const char *runtime_folder)
{
    char out[108];
    uint64_t host = 0;
    assert_int_equal(setenv("XDG_RUNTIME_DIR", runtime_folder, 1), 0);
    assert_ok(ls_offer_folder(ls_runtime_threads(), out, sizeof out, &host));
    assert_int_equal(rmdir(out), 0);
    return host;
}

TEST(those_who_find_one_folder_have_one_number)
{
    char within[64], linked[64];
    (void)snprintf(within, sizeof within, "%s/within", folder);
    (void)snprintf(linked, sizeof linked, "%s/linked", folder);
    assert_int_equal(mkdir(within, 0700), 0);
    assert_int_equal(symlink(".", linked), 0);
    char out[108];
    uint64_t first = 0, again = 0;
    assert_int_equal(setenv("XDG_RUNTIME_DIR", folder, 1), 0);
    assert_ok(ls_offer_folder(ls_runtime_threads(), out, sizeof out, &first));
    assert_int_not_equal(first, 0);
    assert_int_not_equal(first, host_by(within));
    assert_int_equal(setenv("XDG_RUNTIME_DIR", linked, 1), 0);
    assert_ok(ls_offer_folder(ls_runtime_threads(), out, sizeof out, &again));
    assert_int_equal(first, again);
    assert_int_equal(rmdir(out), 0);
    assert_int_equal(rmdir(within), 0);
    assert_int_equal(unlink(linked), 0);
}

/* ---- in a simulation ----------------------------------------------------- */

static void keep(void (*fn)(ls_runtime *runtime))
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        ls_simulation *simulation = simulate(seed);
        struct promise promise = {
            fn, ls_host_runtime(new_host(simulation, "host"))};
        run(simulation, start_on_runtime, &promise);
        ls_simulation_destroy(&simulation);
    }
}

#define IN_SIMULATION(name)                                                    \
    TEST(name##_in_a_simulation)                                               \
    {                                                                          \
        keep(name);                                                            \
    }
PROMISES(IN_SIMULATION)

struct two {
    ls_simulation *simulation;
    ls_host *hosts[2];
    bool apart;
};

/* What is offered on one host, at the path that the other has of that name. */
static void offer_and_take(void *arg)
{
    struct two *const two = arg;
    ls_runtime *runtimes[2];
    char folders[2][32], paths[2][LS_OFFER_PATH_BYTES];
    uint64_t numbers[2];
    for (int i = 0; i < 2; i++) {
        runtimes[i] = ls_host_runtime(two->hosts[i]);
        assert_ok(ls_offer_folder(runtimes[i], folders[i], sizeof folders[i],
                                  &numbers[i]));
        assert_ok(ls_offer_path(folders[i], "offer", paths[i]));
        assert_int_not_equal(numbers[i], 0);
    }
    assert_true((numbers[0] == numbers[1]) == !two->apart);
    ls_memory *own = made(runtimes[0], 100), *other = NULL;
    ls_offer *offer = NULL;
    assert_ok(ls_offer_begin(&offer, own, paths[0], key));
    assert_int_equal(ls_memory_take(&other, runtimes[1], paths[1], key, 1,
                                    ls_deadline(runtimes[1], 1000)),
                     two->apart ? LS_EUNREACHABLE : LS_OK);
    ls_offer_end(&offer);
    ls_memory_destroy(&other);
    ls_memory_destroy(&own);
}

TEST(hosts_of_one_machine_share_memory_and_others_do_not)
{
    for (uint32_t machine = 0; machine < 2; machine++) {
        struct two two = {.apart = machine != 0};
        assert_ok(ls_simulation_create(&two.simulation, NULL));
        assert_ok(ls_host_create(&two.hosts[0], two.simulation, "a"));
        assert_ok(ls_host_create(&two.hosts[1], two.simulation, "b"));
        ls_host_set_machine(two.hosts[1], machine);
        assert_ok(ls_simulation_run(two.simulation, offer_and_take, &two));
        ls_simulation_destroy(&two.simulation);
    }
}

static void note_rung(void *self)
{
    ++*(int *)self;
}

static void ring_there(ls_runtime *runtime)
{
    int n = 0;
    ls_memory *own = made(runtime, 100);
    ls_memory *other = taken(runtime, own);
    ls_memory_ring(other);
    assert_ok(ls_memory_set_bell(own, -1, note_rung, &n));
    ls_memory_ring(other);
    assert_int_equal(n, 1);
    assert_ok(ls_memory_set_bell(own, -1, NULL, NULL));
    ls_memory_ring(other);
    assert_int_equal(n, 1);
    ls_memory_destroy(&own);
    ls_memory_ring(other);
    ls_memory_destroy(&other);
}

TEST(in_a_simulation_a_function_hears_the_bell)
{
    keep(ring_there);
}

static ls_memory *lonely;

static void wait_for_nobody(ls_runtime *runtime)
{
    lonely = made(runtime, 100);
    const struct ls_awaited one = {ls_memory_own(lonely), 0};
    (void)!ls_words_wait(runtime, &one, 1, LS_FOREVER);
}

static void wait_for_a_bell(ls_runtime *runtime)
{
    lonely = made(runtime, 100);
    assert_ok(ls_memory_add_bell(lonely));
    (void)!ls_memory_hear(lonely, LS_FOREVER);
}

static void is_said_of(void (*fn)(ls_runtime *runtime), const char *what)
{
    ls_simulation *simulation;
    assert_ok(ls_simulation_create(&simulation, NULL));
    struct promise promise = {fn, ls_simulation_runtime(simulation)};
    assert_fails(ls_simulation_run(simulation, start_on_runtime, &promise),
                 LS_ESTATE);
    assert_error_has(what);
    ls_memory_destroy(&lonely);
    ls_simulation_destroy(&simulation);
}

TEST(a_simulation_says_who_waits_for_words_or_a_bell)
{
    is_said_of(wait_for_nobody, "waits for words of shared memory");
    is_said_of(wait_for_a_bell, "waits for the bell of its memory");
}
