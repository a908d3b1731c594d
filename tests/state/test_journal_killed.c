/* A process that adds to a journal is killed in the middle of it. */
#include "lockstep/journal.h"

#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/random.h"
#include "state/folder_fixture.h"
#include "test.h"

extern char **environ;

struct counted {
    uint64_t first, n;
};

static int count(void *self, const struct ls_journal_record *record)
{
    struct counted *counted = self;
    uint64_t number;
    assert_true(record->size >= sizeof number);
    memcpy(&number, record->data, sizeof number);
    if (counted->n == 0)
        counted->first = number;
    assert_int_equal(number, counted->first + counted->n);
    for (size_t i = sizeof number; i < record->size; i++)
        assert_int_equal(((const unsigned char *)record->data)[i],
                         (unsigned char)number);
    counted->n++;
    return LS_OK;
}

static struct ls_journal_record numbered(unsigned char *data, uint64_t number)
{
    const size_t size = sizeof number + number * 37 % 500;
    memset(data, (int)(number & 0xff), size);
    memcpy(data, &number, sizeof number);
    return (struct ls_journal_record){data, size};
}

/* Numbers without end; each is told on stdout when it has been added. From time
 * to time only the last stays. */
static int be_writer(const char *path)
{
    ls_journal *journal;
    struct counted counted = {0, 0};
    unsigned char data[600];
    if (ls_journal_open(&journal,
                        &(struct ls_journal_options){
                            .path = path, .fn = count, .self = &counted}) !=
        LS_OK)
        return 1;
    for (uint64_t number = counted.first + counted.n;; number++) {
        const struct ls_journal_record record = numbered(data, number);
        const int status = number % 16 == 15
                               ? ls_journal_compact(journal, &record, 1)
                               : ls_journal_append(journal, &record);
        if (status != LS_OK ||
            write(STDOUT_FILENO, &number, sizeof number) != sizeof number)
            return 1;
    }
}

static pid_t start_writer(const char *path, int *out)
{
    int pipe_ends[2];
    assert_int_equal(pipe(pipe_ends), 0);
    char program[] = "/proc/self/exe", role[] = "writer", name[128];
    (void)snprintf(name, sizeof name, "%s", path);
    char *arguments[] = {program, role, name, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, pipe_ends[0]);
    posix_spawn_file_actions_addclose(&actions, pipe_ends[1]);
    pid_t pid;
    assert_int_equal(
        posix_spawn(&pid, program, &actions, NULL, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    assert_int_equal(close(pipe_ends[1]), 0);
    *out = pipe_ends[0];
    return pid;
}

EACH_TEST(folder_set_up, folder_tear_down)

TEST(a_killed_writer_has_added_all_that_it_told)
{
    const struct place *place = *state;
    struct ls_rng rng;
    ls_rng_seed(&rng, 4, 0);
    for (int life = 0; life < 60; life++) {
        int from;
        const pid_t pid = start_writer(place->path, &from);
        uint64_t told = 0;
        const uint64_t wanted = 1 + ls_rng_below(&rng, 60);
        for (uint64_t i = 0; i < wanted; i++)
            assert_int_equal(read(from, &told, sizeof told), sizeof told);
        assert_int_equal(kill(pid, SIGKILL), 0);
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        while (read(from, &told, sizeof told) == sizeof told)
            continue;
        assert_int_equal(close(from), 0);
        ls_journal *journal;
        struct counted counted = {0, 0};
        assert_ok(ls_journal_open(
            &journal, &(struct ls_journal_options){
                          .path = place->path, .fn = count, .self = &counted}));
        const uint64_t last = counted.first + counted.n - 1;
        assert_in_range(last, told, told + 1);
        ls_journal_close(&journal);
    }
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "writer") == 0)
        return be_writer(argv[2]);
    return tests_run();
}
