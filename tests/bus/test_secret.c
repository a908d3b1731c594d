/* Secrets in files: who may have made them, and that all who ask get the same.
 */
#include "lockstep/security.h"

#include <spawn.h>
#include <sys/wait.h>

#include <sodium.h>

#include "credentials.h"
#include "lockstep/runtime.h"
#include "security_fixture.h"
#include "test.h"

extern char **environ;

/* What only those who know the secret can say; it tells two of them apart. */
struct voice {
    char text[CREDENTIALS_SIGNATURE_MAX];
};

static struct voice voice_of(ls_security *security)
{
    struct voice voice;
    assert_ok(credentials_sign(security, "x", 1, voice.text));
    return voice;
}

static struct voice voice_of_file(const char *path)
{
    ls_security *security = NULL;
    const int status = ls_security_file(&security, path);
    if (status != LS_OK)
        fail_msg("%s", ls_error_text());
    assert_int_equal(ls_security_mode(security), LS_SECURITY_PLAIN);
    const struct voice voice = voice_of(security);
    ls_security_destroy(&security);
    return voice;
}

static struct voice voice_of_job(const char *job)
{
    ls_security *security = NULL;
    const int status = ls_security_job(&security, job);
    if (status != LS_OK)
        fail_msg("%s", ls_error_text());
    const struct voice voice = voice_of(security);
    ls_security_destroy(&security);
    return voice;
}

static void file_fails(const char *path, int wanted, const char *word)
{
    ls_security *security = NULL;
    failed(ls_security_file(&security, path), wanted, word);
    assert_null(security);
}

static void job_fails(const char *job, int wanted, const char *word)
{
    ls_security *security = NULL;
    failed(ls_security_job(&security, job), wanted, word);
    assert_null(security);
}

/* ---- ls_secret_create() ------------------------------------------------- */

EACH_TEST(scratch_set_up, scratch_tear_down)

TEST(a_secret_is_written_for_this_user_alone)
{
    const struct path path = in(*state, "secret");
    uint8_t secret[LS_SECRET_BYTES];
    char bytes[LS_SECRET_BYTES + 2];
    const mode_t before = umask(0);
    const int status = ls_secret_create(path.text, secret);
    (void)umask(before);
    assert_int_equal(status, LS_OK);
    assert_int_equal(mode_of(path.text), 0600);
    assert_int_equal(read_file(path.text, bytes, sizeof bytes), sizeof secret);
    assert_memory_equal(bytes, secret, sizeof secret);
    assert_int_equal(count_files(((struct scratch *)*state)->folder), 1);
}

TEST(each_secret_is_another)
{
    uint8_t one[LS_SECRET_BYTES], other[LS_SECRET_BYTES];
    assert_ok(ls_secret_create(in(*state, "one").text, one));
    assert_ok(ls_secret_create(in(*state, "other").text, other));
    assert_memory_not_equal(one, other, sizeof one);
    assert_ok(ls_secret_create(in(*state, "third").text, NULL));
}

TEST(a_secret_in_the_current_folder)
{
    struct scratch *scratch = *state;
    char here[256];
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(scratch->folder), 0);
    assert_ok(ls_secret_create("secret", NULL));
    assert_string_not_equal(voice_of_file("secret").text, "");
    failed(ls_secret_create("secret", NULL), LS_EEXIST, "secret is there");
    assert_int_equal(chdir(here), 0);
}

TEST(nothing_is_overwritten)
{
    struct scratch *scratch = *state;
    const struct path path = in(scratch, "secret");
    uint8_t secret[LS_SECRET_BYTES] = {7};
    char bytes[8];
    write_file(path.text, "mine", 4, 0644);
    failed(ls_secret_create(path.text, secret), LS_EEXIST, path.text);
    assert_int_equal(secret[0], 7);
    (void)read_file(path.text, bytes, sizeof bytes);
    assert_string_equal(bytes, "mine");
    /* Nor is anything written through a link. */
    const struct path link = in(scratch, "link"), away = in(scratch, "away");
    assert_int_equal(symlink(away.text, link.text), 0);
    failed(ls_secret_create(link.text, NULL), LS_EEXIST, link.text);
    assert_false(is_there(away.text));
    assert_int_equal(count_files(scratch->folder), 2); /* no half of one */
}

TEST(a_secret_needs_a_place)
{
    failed(ls_secret_create(in(*state, "absent/secret").text, NULL), LS_ENOENT,
           "absent is not there");
    failed(ls_secret_create(NULL, NULL), LS_EINVAL, "path");
    failed(ls_secret_create("", NULL), LS_EINVAL, "path");
    failed(ls_secret_create("folder/", NULL), LS_EINVAL, "names no file");
    write_file(in(*state, "file").text, "", 0, 0600);
    failed(ls_secret_create(in(*state, "file/secret").text, NULL), LS_ECONFIG,
           "is not a folder");
}

/* ---- ls_security_file() ------------------------------------------------- */

TEST(all_who_read_a_file_know_the_same)
{
    const struct path path = in(*state, "secret");
    uint8_t secret[LS_SECRET_BYTES];
    ls_security *security = NULL;
    assert_ok(ls_secret_create(path.text, secret));
    assert_ok(ls_security_plain(&security, secret));
    assert_string_equal(voice_of_file(path.text).text, voice_of(security).text);
    ls_security_destroy(&security);
}

TEST(a_file_that_others_may_use_is_refused)
{
    const struct path path = in(*state, "secret");
    assert_ok(ls_secret_create(path.text, NULL));
    for (mode_t open_to = 1; open_to <= 077; open_to++) {
        assert_int_equal(chmod(path.text, 0600 | open_to), 0);
        file_fails(path.text, LS_ECONFIG, "chmod go-rwx");
        file_fails(path.text, LS_ECONFIG, path.text);
    }
    assert_int_equal(chmod(path.text, 0400), 0);
    (void)voice_of_file(path.text);
}

TEST(a_file_of_another_user_is_refused)
{
    const struct path path = in(*state, "secret");
    assert_ok(ls_secret_create(path.text, NULL));
    if (chown(path.text, geteuid() + 1, (gid_t)-1) != 0)
        skip(); /* only root gives files away */
    file_fails(path.text, LS_ECONFIG, "belongs to user");
}

TEST(only_a_regular_file_is_read)
{
    const struct path path = in(*state, "secret"), link = in(*state, "link");
    const struct path fifo = in(*state, "fifo"), folder = in(*state, "folder");
    assert_ok(ls_secret_create(path.text, NULL));
    assert_int_equal(symlink(path.text, link.text), 0);
    assert_int_equal(mkfifo(fifo.text, 0600), 0);
    assert_int_equal(mkdir(folder.text, 0700), 0);
    file_fails(link.text, LS_ECONFIG, "is a symbolic link");
    file_fails(fifo.text, LS_ECONFIG, "not a regular file");
    file_fails(folder.text, LS_ECONFIG, "not a regular file");
}

TEST(a_secret_has_its_size)
{
    const struct path path = in(*state, "secret");
    char bytes[64];
    memset(bytes, 'x', sizeof bytes);
    write_file(path.text, bytes, LS_SECRET_BYTES - 1, 0600);
    file_fails(path.text, LS_ECONFIG, "has 31 bytes");
    write_file(path.text, bytes, LS_SECRET_BYTES + 1, 0600);
    file_fails(path.text, LS_ECONFIG, "more than 32 bytes");
    write_file(path.text, bytes, 0, 0600);
    file_fails(path.text, LS_ECONFIG, "has 0 bytes");
    memset(bytes, 0, sizeof bytes);
    write_file(path.text, bytes, LS_SECRET_BYTES, 0600);
    file_fails(path.text, LS_ECONFIG, "random bytes");
}

TEST(a_file_must_be_there)
{
    file_fails(in(*state, "absent").text, LS_ENOENT, "absent is not there");
    file_fails(NULL, LS_EINVAL, "path");
    file_fails("", LS_EINVAL, "path");
}

/* ---- ls_security_job() -------------------------------------------------- */

static struct path job_path(const char *job)
{
    struct path path;
    assert_ok(ls_secret_job_path(job, path.text, sizeof path.text));
    return path;
}

TEST(the_first_creates_the_secret_and_the_next_reads_it)
{
    const struct voice first = voice_of_job("train");
    assert_string_equal(voice_of_job("train").text, first.text);
    assert_string_not_equal(voice_of_job("other").text, first.text);
    const struct path path = job_path("train");
    assert_string_equal(path.text, in(*state, "lockstep/train/secret").text);
    assert_string_equal(voice_of_file(path.text).text, first.text);
}

TEST(the_folders_of_a_job_are_open_to_nobody_else)
{
    const mode_t before = umask(0);
    (void)voice_of_job("train");
    (void)umask(before);
    assert_int_equal(mode_of(in(*state, "lockstep").text), 0700);
    assert_int_equal(mode_of(in(*state, "lockstep/train").text), 0700);
    assert_int_equal(mode_of(in(*state, "lockstep/train/secret").text), 0600);
    assert_int_equal(count_files(in(*state, "lockstep/train").text), 1);
}

TEST(a_removed_secret_is_made_anew)
{
    const struct voice first = voice_of_job("train");
    assert_int_equal(unlink(job_path("train").text), 0);
    assert_string_not_equal(voice_of_job("train").text, first.text);
}

TEST(names_of_jobs)
{
    struct scratch *scratch = *state;
    char long_one[LS_JOB_MAX + 2];
    memset(long_one, 'j', sizeof long_one);
    long_one[LS_JOB_MAX + 1] = '\0';
    const char *const bad[] = {"",    ".",   "..", "a/b", "../a",
                               "a b", "a\n", "ä",  NULL,  long_one};
    char path[512];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        job_fails(bad[i], LS_EINVAL, "not a name of a job");
        failed(ls_secret_job_path(bad[i], path, sizeof path), LS_EINVAL,
               "not a name of a job");
    }
    assert_int_equal(count_files(scratch->folder), 0);
    long_one[LS_JOB_MAX] = '\0';
    (void)voice_of_job(long_one);
    (void)voice_of_job("...");
}

TEST(a_path_that_does_not_fit)
{
    char path[512] = "as before";
    const size_t size = strlen(job_path("train").text) + 1;
    failed(ls_secret_job_path("train", path, size - 1), LS_ELIMIT, "room");
    failed(ls_secret_job_path("train", path, 0), LS_ELIMIT, "room");
    assert_string_equal(path, "as before");
    assert_ok(ls_secret_job_path("train", path, size));
}

TEST(a_folder_that_others_may_use_is_refused)
{
    static const char *const folders[] = {"lockstep", "lockstep/train"};
    (void)voice_of_job("train");
    for (size_t i = 0; i < 2; i++) {
        const struct path folder = in(*state, folders[i]);
        for (mode_t open_to = 1; open_to <= 077; open_to++) {
            assert_int_equal(chmod(folder.text, 0700 | open_to), 0);
            job_fails("train", LS_ECONFIG, "chmod go-rwx");
            job_fails("train", LS_ECONFIG, folder.text);
        }
        assert_int_equal(chmod(folder.text, 0700), 0);
    }
    (void)voice_of_job("train");
}

TEST(a_folder_of_another_user_is_refused)
{
    static const char *const folders[] = {"lockstep/train", "lockstep"};
    (void)voice_of_job("train");
    for (size_t i = 0; i < 2; i++) {
        const struct path folder = in(*state, folders[i]);
        if (chown(folder.text, geteuid() + 1, (gid_t)-1) != 0)
            skip(); /* only root gives files away */
        job_fails("train", LS_ECONFIG, "belongs to user");
        job_fails("train", LS_ECONFIG, "somebody else may have made it");
        assert_int_equal(chown(folder.text, geteuid(), (gid_t)-1), 0);
    }
}

TEST(a_folder_that_is_a_link_or_a_file_is_refused)
{
    const struct path elsewhere = in(*state, "elsewhere");
    const struct path folder = in(*state, "lockstep");
    const struct path job = in(*state, "lockstep/train");
    assert_int_equal(mkdir(elsewhere.text, 0700), 0);
    assert_int_equal(symlink(elsewhere.text, folder.text), 0);
    job_fails("train", LS_ECONFIG, "is a symbolic link");
    assert_int_equal(count_files(elsewhere.text), 0);
    assert_int_equal(unlink(folder.text), 0);
    assert_int_equal(mkdir(folder.text, 0700), 0);
    assert_int_equal(symlink(elsewhere.text, job.text), 0);
    job_fails("train", LS_ECONFIG, "is a symbolic link");
    assert_int_equal(count_files(elsewhere.text), 0);
    assert_int_equal(unlink(job.text), 0);
    write_file(job.text, "", 0, 0700);
    job_fails("train", LS_ECONFIG, "is not a folder");
}

TEST(a_secret_of_a_job_that_is_none_is_refused)
{
    const struct path secret = in(*state, "lockstep/train/secret");
    const struct path elsewhere = in(*state, "elsewhere");
    (void)voice_of_job("train");
    write_file(secret.text, "short", 5, 0600);
    job_fails("train", LS_ECONFIG, "has 5 bytes");
    assert_int_equal(unlink(secret.text), 0);
    assert_int_equal(symlink(elsewhere.text, secret.text), 0);
    job_fails("train", LS_ECONFIG, "is a symbolic link");
    assert_false(is_there(elsewhere.text));
}

/* ---- where that is ------------------------------------------------------ */

static struct path fallback(const char *job)
{
    struct path path;
    (void)snprintf(path.text, sizeof path.text, "/tmp/lockstep-%lu/%s/secret",
                   (unsigned long)geteuid(), job);
    return path;
}

static void expect_fallback(const char *runtime_dir)
{
    assert_int_equal(setenv("XDG_RUNTIME_DIR", runtime_dir, 1), 0);
    assert_string_equal(job_path("train").text, fallback("train").text);
}

TEST(a_runtime_folder_that_is_not_ours_is_not_used)
{
    struct scratch *scratch = *state;
    const struct path link = in(scratch, "link"), file = in(scratch, "file");
    const struct path other = in(scratch, "other");
    assert_int_equal(unsetenv("XDG_RUNTIME_DIR"), 0);
    assert_string_equal(job_path("train").text, fallback("train").text);
    expect_fallback("");
    expect_fallback("relative");
    expect_fallback(in(scratch, "absent").text);
    assert_int_equal(symlink(scratch->folder, link.text), 0);
    expect_fallback(link.text);
    write_file(file.text, "", 0, 0600);
    expect_fallback(file.text);
    assert_int_equal(chmod(scratch->folder, 0755), 0);
    expect_fallback(scratch->folder);
    assert_int_equal(chmod(scratch->folder, 0700), 0);
    assert_int_equal(mkdir(other.text, 0700), 0);
    if (chown(other.text, geteuid() + 1, (gid_t)-1) == 0)
        expect_fallback(other.text);
}

TEST(without_a_runtime_folder_it_is_in_tmp)
{
    struct path folder;
    (void)snprintf(folder.text, sizeof folder.text, "test-%ld", (long)getpid());
    assert_int_equal(unsetenv("XDG_RUNTIME_DIR"), 0);
    const struct path path = job_path(folder.text);
    const struct voice first = voice_of_job(folder.text);
    assert_string_equal(voice_of_file(path.text).text, first.text);
    /* Both folders, where the upper one is not another's, too. */
    struct path at = path;
    assert_int_equal(unlink(at.text), 0);
    *strrchr(at.text, '/') = '\0';
    assert_int_equal(rmdir(at.text), 0);
    *strrchr(at.text, '/') = '\0';
    (void)rmdir(at.text);
}

/* ---- at once ------------------------------------------------------------ */

#define N_AT_ONCE 8
#define N_ROUNDS  50

struct crowd {
    char job[32];
    struct voice heard[N_AT_ONCE];
    size_t next; /* under lock */
    ls_mutex lock;
};

static void ask(void *arg)
{
    struct crowd *crowd = arg;
    /* Released together, as soon as the last of them is there. */
    ls_mutex_lock(&crowd->lock);
    const size_t index = crowd->next++;
    ls_mutex_unlock(&crowd->lock);
    crowd->heard[index] = voice_of_job(crowd->job);
}

TEST(threads_that_ask_at_once_agree)
{
    ls_runtime *runtime = ls_runtime_threads();
    struct crowd crowd;
    assert_ok(ls_mutex_init(&crowd.lock, runtime));
    for (size_t round = 0; round < N_ROUNDS; round++) {
        ls_thread *threads[N_AT_ONCE] = {NULL};
        (void)snprintf(crowd.job, sizeof crowd.job, "job-%zu", round);
        crowd.next = 0;
        ls_mutex_lock(&crowd.lock);
        for (size_t i = 0; i < N_AT_ONCE; i++)
            assert_ok(
                ls_thread_spawn(runtime, &threads[i], "ask", ask, &crowd));
        ls_mutex_unlock(&crowd.lock);
        for (size_t i = 0; i < N_AT_ONCE; i++)
            assert_ok(ls_thread_join(&threads[i], LS_FOREVER));
        for (size_t i = 1; i < N_AT_ONCE; i++)
            assert_string_equal(crowd.heard[i].text, crowd.heard[0].text);
    }
    ls_mutex_fini(&crowd.lock);
}

/* This program with a job as its word says its voice on stdout. */
static pid_t spawn_voice(const char *job, int out)
{
    char word[32];
    (void)snprintf(word, sizeof word, "%s", job);
    char program[] = "/proc/self/exe";
    char *arguments[] = {program, word, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid = 0;
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(
        posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO), 0);
    assert_int_equal(
        posix_spawn(&pid, program, &actions, NULL, arguments, environ), 0);
    assert_int_equal(posix_spawn_file_actions_destroy(&actions), 0);
    return pid;
}

static int say_voice(const char *job)
{
    ls_security *security = NULL;
    if (ls_security_job(&security, job) != LS_OK)
        return 1;
    const struct voice voice = voice_of(security);
    ls_security_destroy(&security);
    return write(STDOUT_FILENO, voice.text, strlen(voice.text)) > 0 ? 0 : 1;
}

TEST(processes_that_ask_at_once_agree)
{
    for (size_t round = 0; round < 5; round++) {
        char job[32], heard[N_AT_ONCE * CREDENTIALS_SIGNATURE_MAX];
        int ends[2];
        pid_t pids[N_AT_ONCE];
        (void)snprintf(job, sizeof job, "job-%zu", round);
        assert_int_equal(pipe(ends), 0);
        for (size_t i = 0; i < N_AT_ONCE; i++)
            pids[i] = spawn_voice(job, ends[1]);
        for (size_t i = 0; i < N_AT_ONCE; i++) {
            int status = 0;
            assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
            assert_int_equal(status, 0);
        }
        assert_int_equal(close(ends[1]), 0);
        const ssize_t n = read(ends[0], heard, sizeof heard);
        assert_int_equal(n, N_AT_ONCE * 32);
        for (size_t i = 1; i < N_AT_ONCE; i++)
            assert_memory_equal(heard + 32 * i, heard, 32);
        assert_int_equal(close(ends[0]), 0);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return say_voice(argv[1]);
    return tests_run();
}
