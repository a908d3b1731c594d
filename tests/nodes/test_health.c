/* Asking the nodes of this host how they are. */
#include "health.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/runtime.h"
#include "test.h"

#define WAIT_MS 20000

/* No other process has such a place. */
static uint64_t place_of_test(void)
{
    return UINT64_C(0xabcdef0000000000) + (uint64_t)getpid();
}

static void look(void *self, struct health *out)
{
    out->state = HEALTH_RUNNING;
    out->iterations = *(const int *)self;
}

/* A node that has no descriptor left; it says so on `to`, and again what its
 * process is then told to do on `from`. */
static void live_without_descriptors(uint64_t place, int from, int to)
{
    int iterations = 7;
    health_desk *desk;
    char byte;
    assert_ok(health_desk_open(&desk, place, 1, look, &iterations));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){.rlim_cur = 64,
                                                               .rlim_max = 64}),
                     0);
    int last = -1, fd;
    while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        last = fd;
    assert_int_equal(errno, EMFILE);
    assert_int_equal(write(to, "x", 1), 1);
    assert_int_equal(read(from, &byte, 1), 1);
    assert_int_equal(close(last), 0);
    assert_int_equal(write(to, "x", 1), 1);
    assert_int_equal(read(from, &byte, 1), 1);
    health_desk_close(&desk);
}

TEST(a_node_without_descriptors_answers_and_goes_on_answering)
{
    (void)state;
    const uint64_t place = place_of_test();
    int there[2], back[2];
    char byte;
    struct health health;
    assert_int_equal(pipe(there), 0);
    assert_int_equal(pipe(back), 0);
    const pid_t node = fork();
    assert_true(node >= 0);
    if (node == 0) {
        (void)alarm(60);
        live_without_descriptors(place, there[0], back[1]);
        _exit(0);
    }
    for (int i = 0; i < 2; i++) { /* none left; one left */
        assert_int_equal(read(back[0], &byte, 1), 1);
        for (int k = 0; k < 3; k++) {
            assert_ok(health_ask(&health, place, 1, WAIT_MS));
            assert_int_equal(health.iterations, 7);
            assert_int_equal(health.pid, node);
            health_clear(&health);
        }
        assert_int_equal(write(there[1], "x", 1), 1);
    }
    int status;
    assert_int_equal(waitpid(node, &status, 0), node);
    assert_int_equal(status, 0);
}

/* ---- foreign bytes ------------------------------------------------------- */

/* One that answers once with any bytes, one by one if told to, and then keeps
 * silent until it is let go. */
struct liar {
    int listens, ends[2];
    const void *bytes; /* NULL: it ends when it is asked, and takes nothing */
    size_t size;
    bool closes;
    ls_thread *thread;
};

static void lie(void *arg)
{
    struct liar *liar = arg;
    char byte;
    struct pollfd asked = {.fd = liar->listens, .events = POLLIN};
    assert_int_equal(poll(&asked, 1, WAIT_MS), 1);
    if (liar->bytes == NULL) {
        (void)close(liar->listens);
        liar->listens = -1;
        return;
    }
    const int fd = accept(liar->listens, NULL, NULL);
    assert_true(fd >= 0);
    assert_int_equal(send(fd, liar->bytes, liar->size, MSG_NOSIGNAL),
                     liar->size);
    if (!liar->closes)
        assert_int_equal(read(liar->ends[0], &byte, 1), 1);
    (void)close(fd);
}

static void liar_begin(struct liar *liar, const void *bytes, size_t size,
                       bool closes)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const int n = snprintf(name.sun_path + 1, sizeof name.sun_path - 1,
                           "lockstep/%lu/%016" PRIx64 "/1",
                           (unsigned long)geteuid(), place_of_test());
    *liar = (struct liar){.bytes = bytes, .size = size, .closes = closes};
    liar->listens = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(liar->listens, (const struct sockaddr *)&name,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
                                      1u + (size_t)n)),
                     0);
    assert_int_equal(listen(liar->listens, 1), 0);
    assert_int_equal(pipe(liar->ends), 0);
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &liar->thread, "liar", lie,
                              liar));
}

static void liar_end(struct liar *liar)
{
    assert_int_equal(write(liar->ends[1], "x", 1), 1);
    assert_ok(ls_thread_join(&liar->thread, LS_FOREVER));
    (void)close(liar->ends[0]);
    (void)close(liar->ends[1]);
    (void)close(liar->listens);
}

TEST(foreign_bytes_are_no_answer)
{
    (void)state;
    static const char long_text[] = "\x81\xa2"
                                    "at\xda\x01\x01"; /* 257 bytes follow */
    static const char many_peers[] = "\x81\xa5"
                                     "peers\xdd\xff\xff\xff\xff";
    static const struct {
        const char *bytes;
        size_t size;
    } lies[] = {{"hello", 5},
                {"\xc1", 1},
                {"\x80", 1},
                {"\x81\xa5state\x03", 8},
                {"\x93\x01\x02", 3},
                {long_text, sizeof long_text - 1},
                {many_peers, sizeof many_peers - 1}};
    struct health health;
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        struct liar liar;
        liar_begin(&liar, lies[i].bytes, lies[i].size, true);
        assert_fails(health_ask(&health, place_of_test(), 1, WAIT_MS),
                     LS_EPROTO);
        liar_end(&liar);
    }
}

TEST(who_ends_without_a_word_has_ended)
{
    (void)state;
    struct health health;
    struct liar liar;
    liar_begin(&liar, "", 0, true);
    assert_fails(health_ask(&health, place_of_test(), 1, WAIT_MS), LS_ENOENT);
    liar_end(&liar);
}

TEST(who_is_killed_while_it_is_asked_has_ended)
{
    (void)state;
    struct health health;
    struct liar liar;
    liar_begin(&liar, NULL, 0, true);
    assert_fails(health_ask(&health, place_of_test(), 1, WAIT_MS), LS_ENOENT);
    assert_error_has("node 1 ended");
    liar_end(&liar);
}

TEST(half_an_answer_is_waited_for_until_the_deadline)
{
    (void)state;
    struct health health;
    struct liar liar;
    liar_begin(&liar, "\x85", 1, false);
    assert_fails(health_ask(&health, place_of_test(), 1, 50), LS_ETIMEDOUT);
    liar_end(&liar);
}

static void tell_much(void *self, struct health *out)
{
    (void)self;
    out->state = HEALTH_RUNNING;
    out->incarnation = UINT64_MAX;
    out->lost = UINT64_MAX;
    out->step_ns = -1;
    out->env_step = INT64_MAX;
    out->peers = calloc(300, sizeof *out->peers);
    assert_non_null(out->peers);
    out->n_peers = 300;
    for (uint32_t i = 0; i < 300; i++) {
        out->peers[i].id = UINT32_MAX - i;
        out->peers[i].heard_ms = -1;
        memset(out->peers[i].endpoint, 'x', sizeof out->peers[i].endpoint - 1);
    }
}

TEST(all_are_asked_at_once_and_each_has_its_answer)
{
    (void)state;
    const uint64_t place = place_of_test();
    const uint32_t ids[] = {1, 7, UINT32_MAX};
    uint32_t found[8];
    struct health_answer answers[3];
    health_desk *desk;
    struct liar liar;
    assert_ok(health_desk_open(&desk, place, UINT32_MAX, tell_much, NULL));
    liar_begin(&liar, "", 0, false);
    assert_int_equal(health_find(place, found, 8), 2);
    assert_int_equal(health_find(place + 1, found, 8), 0);
    health_ask_all(answers, place, ids, 3, 1000);
    assert_int_equal(answers[0].status, LS_ETIMEDOUT);
    assert_string_equal(answers[0].text, "node 1 does not answer");
    assert_int_equal(answers[1].status, LS_ENOENT);
    assert_int_equal(answers[2].status, LS_OK);
    const struct health *health = &answers[2].health;
    assert_int_equal(health->pid, getpid());
    assert_true(health->lost == UINT64_MAX);
    assert_int_equal(health->step_ns, -1);
    assert_int_equal(health->n_peers, 300);
    assert_true(health->peers[299].id == UINT32_MAX - 299);
    assert_int_equal(health->peers[0].heard_ms, -1);
    assert_int_equal(strlen(health->peers[0].endpoint), 256);
    health_clear(&answers[2].health);
    liar_end(&liar);
    health_desk_close(&desk);
}
