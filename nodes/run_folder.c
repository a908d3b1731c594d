#include "run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lockstep/log.h"
#include "lockstep/runtime.h"

#include "plan.h"

#define FORMAT     "lockstep run 1"
#define GOES_ON    "goes on\n"
#define DONE       "ended\n"
#define RECORD_MAX 4096
#define NUMBER_MAX 999999999u
#define NEW_LINK   ".new"

/* What a record says. */
struct record {
    char job[128];
    char token[RUN_FOLDER_TOKEN_MAX + 1];
    uint64_t learning;
    unsigned lives;
    bool done;
    size_t size; /* what stands behind it was never finished */
};

static int failed_at(int os_errno, const char *what, const char *path)
{
    char text[LS_PATH_MAX + 64];
    (void)snprintf(text, sizeof text, "%s %s", what, path);
    (void)ls_error_from(os_errno, text);
    return LS_EIO;
}

static int join(char out[LS_PATH_MAX], const char *folder, const char *name)
{
    const int n = snprintf(out, LS_PATH_MAX, "%s/%s", folder, name);
    return n >= 0 && n < LS_PATH_MAX - 64
               ? LS_OK
               : ls_error(LS_ELIMIT, "the folder %.80s… has too long a name",
                          folder);
}

static int record_path(char out[LS_PATH_MAX], const char *folder,
                       const char *name)
{
    char inside[RUN_FOLDER_NAME_MAX + sizeof RUN_FOLDER_RECORD + 1];
    (void)snprintf(inside, sizeof inside, "%.*s/" RUN_FOLDER_RECORD,
                   RUN_FOLDER_NAME_MAX, name);
    return join(out, folder, inside);
}

/* ---- records ------------------------------------------------------------ */

static int no_record(const char *path)
{
    return ls_error(LS_EPROTO,
                    "%s is no record of a run: remove it, and that run will "
                    "not be gone on with",
                    path);
}

static int parse(const char *text, const char *path, struct record *out)
{
    int end = 0;
    struct record record = {.done = false};
    if (sscanf(text,
               FORMAT "\njob %127[^\n]\nlearning %16" SCNx64
                      "\ntoken %16[0-9a-f]\n%n",
               record.job, &record.learning, record.token, &end) != 3 ||
        end == 0)
        return no_record(path);
    const char *at = text + end;
    for (; strncmp(at, GOES_ON, sizeof GOES_ON - 1) == 0;
         at += sizeof GOES_ON - 1)
        record.lives++;
    record.lives++;
    record.done = strncmp(at, DONE, sizeof DONE - 1) == 0;
    record.size = (size_t)(at - text);
    *out = record;
    return LS_OK;
}

static int read_record(const char *path, struct record *out)
{
    void *data;
    size_t size;
    int status = ls_file_read(path, RECORD_MAX, &data, &size);
    if (status == LS_ELIMIT)
        return no_record(path);
    if (status != LS_OK)
        return status;
    char text[RECORD_MAX + 1];
    memcpy(text, data, size);
    text[size] = '\0';
    free(data);
    return parse(text, path, out);
}

/* A line more, on disk when it returns. */
static int add_line(int fd, const char *line, const char *path)
{
    size_t left = strlen(line);
    while (left > 0) {
        const ssize_t n = write(fd, line, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return failed_at(errno, "writing", path);
        line += n;
        left -= (size_t)n;
    }
    return fsync(fd) < 0 ? failed_at(errno, "writing", path) : LS_OK;
}

static int lock(int fd, int how, const char *path)
{
    if (flock(fd, how | LOCK_NB) == 0)
        return LS_OK;
    return errno == EWOULDBLOCK || errno == EINTR
               ? ls_error(LS_EAGAIN, "%s is locked", path)
               : failed_at(errno, "locking", path);
}

static int open_locked(const char *path, int how, int *fd)
{
    const int opened = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
    if (opened < 0)
        return failed_at(errno, "opening", path);
    const int status = lock(opened, how, path);
    if (status != LS_OK)
        (void)close(opened);
    else
        *fd = opened;
    return status;
}

/* ---- the runs that there are --------------------------------------------- */

/* The number that a folder's name is; 0: it is none. */
static unsigned number_of(const char *name)
{
    char *end;
    if (name[0] < '1' || name[0] > '9' || strlen(name) > 9)
        return 0;
    const unsigned long number = strtoul(name, &end, 10);
    return *end == '\0' && number <= NUMBER_MAX ? (unsigned)number : 0;
}

/* Call fn with the name of each run, until it fails. */
static int each_run(const char *out, int (*fn)(void *self, const char *name),
                    void *self)
{
    DIR *entries = opendir(out);
    const struct dirent *entry = NULL;
    int status = LS_OK;
    if (entries == NULL)
        return failed_at(errno, "reading the folder", out);
    while (status == LS_OK && (entry = readdir(entries)) != NULL)
        if (number_of(entry->d_name) != 0)
            status = fn(self, entry->d_name);
    (void)closedir(entries);
    return status;
}

struct search {
    const struct run_folder_options *options;
    unsigned highest;     /* of all; 0: there is none */
    unsigned same;        /* of those that learn the same; 0: none */
    struct record record; /* of that one */
};

static int look_at(void *self, const char *name)
{
    struct search *search = self;
    const unsigned number = number_of(name);
    char path[LS_PATH_MAX];
    struct record record;
    if (number > search->highest)
        search->highest = number;
    int status = record_path(path, search->options->out, name);
    if (status != LS_OK || number < search->same)
        return status;
    status = read_record(path, &record);
    if (status == LS_ENOENT)
        return LS_OK; /* it is not a run's, or the run has just begun */
    if (status != LS_OK)
        return status;
    if (record.learning == search->options->learning &&
        strcmp(record.job, search->options->job) == 0) {
        search->same = number;
        search->record = record;
    }
    return LS_OK;
}

/* ---- latest ----------------------------------------------------------------
 */

int run_folder_point(const char *link, const char *to)
{
    char made[LS_PATH_MAX];
    struct stat found;
    const int n = snprintf(made, sizeof made, "%s" NEW_LINK, link);
    if (n < 0 || (size_t)n >= sizeof made)
        return ls_error(LS_ELIMIT, "%.80s… has too long a name", link);
    if (lstat(link, &found) == 0 && !S_ISLNK(found.st_mode))
        return ls_error(LS_EEXIST,
                        "%s is not this program's, and stays as it is", link);
    (void)unlink(made);
    if (symlink(to, made) == 0 && rename(made, link) == 0)
        return LS_OK;
    const int failed = errno;
    (void)unlink(made);
    return failed_at(failed, "making the link", link);
}

bool run_folder_points(const char *link, const char *to)
{
    char found[LS_PATH_MAX];
    const ssize_t n = readlink(link, found, sizeof found - 1);
    if (n < 0)
        return false;
    found[n] = '\0';
    return strcmp(found, to) == 0;
}

/* `latest` points to it. */
static void point(const char *out, const char *name)
{
    char link[LS_PATH_MAX];
    if (join(link, out, PLAN_LATEST) == LS_OK &&
        run_folder_point(link, name) != LS_OK)
        ls_log_warn("lockstep call will not find this run: %s",
                    ls_error_text());
}

/* ---- begin ------------------------------------------------------------------
 */

static int write_record(struct run_folder *folder, const char *path,
                        const struct run_folder_options *options)
{
    char text[RECORD_MAX];
    const uint64_t token = ls_entropy(ls_runtime_threads());
    (void)snprintf(folder->token, sizeof folder->token, "%08" PRIx32,
                   (uint32_t)token);
    (void)snprintf(text, sizeof text,
                   FORMAT "\njob %s\nlearning %" PRIx64 "\ntoken %s\n",
                   options->job, options->learning, folder->token);
    const int fd =
        open(path, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return failed_at(errno, "making", path);
    int status = lock(fd, LOCK_EX, path);
    if (status == LS_OK)
        status = add_line(fd, text, path);
    if (status == LS_OK)
        status = ls_file_sync_name(path);
    if (status != LS_OK) {
        (void)unlink(path);
        (void)close(fd);
        return status;
    }
    folder->record = fd;
    return LS_OK;
}

/* A folder that is new, numbered behind all that there are. */
static int begin_new(struct run_folder *folder, unsigned highest,
                     const struct run_folder_options *options)
{
    char path[LS_PATH_MAX];
    for (unsigned number = highest + 1; number <= NUMBER_MAX; number++) {
        (void)snprintf(folder->name, sizeof folder->name, "%u", number);
        int status = join(path, folder->out, folder->name);
        if (status != LS_OK)
            return status;
        const int failed = mkdir(path, 0777) < 0 ? errno : 0;
        if (failed == EEXIST)
            continue; /* another has just begun */
        if (failed != 0)
            return failed_at(failed, "making the folder", path);
        folder->made = true;
        status = record_path(path, folder->out, folder->name);
        if (status == LS_OK)
            status = write_record(folder, path, options);
        if (status != LS_OK)
            run_folder_end(folder, false);
        return status;
    }
    return ls_error(LS_ELIMIT, "%s: there are too many runs", folder->out);
}

static int busy(const struct run_folder *folder)
{
    return ls_error(LS_EAGAIN,
                    "run %s of this job is going on, in %s/%s: wait for its "
                    "end, or begin another beside it with --fresh",
                    folder->name, folder->out, folder->name);
}

static int go_on(struct run_folder *folder, const struct search *search)
{
    char path[LS_PATH_MAX];
    struct record record;
    (void)snprintf(folder->name, sizeof folder->name, "%u", search->same);
    int status = record_path(path, folder->out, folder->name);
    if (status == LS_OK)
        status = open_locked(path, LOCK_EX, &folder->record);
    if (status == LS_EAGAIN)
        return busy(folder);
    if (status == LS_OK)
        status = read_record(path, &record);
    if (status == LS_OK && record.done)
        status = busy(folder); /* it has ended just now */
    if (status == LS_OK && ftruncate(folder->record, (off_t)record.size) < 0)
        status = failed_at(errno, "writing", path);
    if (status == LS_OK)
        status = add_line(folder->record, GOES_ON, path);
    if (status != LS_OK) {
        run_folder_end(folder, false);
        return status;
    }
    memcpy(folder->token, record.token, sizeof folder->token);
    folder->lives = record.lives;
    return LS_OK;
}

int run_folder_check(const char *out)
{
    char path[LS_PATH_MAX];
    struct stat found;
    int status = join(path, out, ".");
    if (status != LS_OK)
        return status;
    /* The nearest that is there. */
    while (stat(path, &found) < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        char *slash = strrchr(path, '/');
        if (slash == NULL)
            (void)snprintf(path, sizeof path, ".");
        else
            slash[slash == path] = '\0';
    }
    if (!S_ISDIR(found.st_mode))
        return failed_at(ENOTDIR, "making the folder", path);
    return access(path, W_OK | X_OK) == 0
               ? LS_OK
               : failed_at(errno, "writing in the folder", path);
}

int run_folder_begin(struct run_folder *out,
                     const struct run_folder_options *options)
{
    struct run_folder folder = {.record = -1};
    struct search search = {.options = options};
    char path[LS_PATH_MAX];
    int status = join(path, options->out, PLAN_LATEST);
    if (status != LS_OK)
        return status;
    (void)snprintf(folder.out, sizeof folder.out, "%s", options->out);
    folder.made_out = access(options->out, F_OK) < 0;
    status = ls_folder_make(options->out);
    if (status == LS_OK)
        status = each_run(options->out, look_at, &search);
    if (status != LS_OK)
        return status;
    const bool could = search.same != 0 && !search.record.done;
    const bool goes_on = could && !options->fresh;
    folder.behind = could && options->fresh ? search.same : 0;
    status = goes_on ? go_on(&folder, &search)
                     : begin_new(&folder, search.highest, options);
    if (status != LS_OK)
        return status;
    point(folder.out, folder.name);
    *out = folder;
    return LS_OK;
}

int run_folder_share(struct run_folder *folder)
{
    char path[LS_PATH_MAX];
    const int status = record_path(path, folder->out, folder->name);
    return status == LS_OK ? lock(folder->record, LOCK_SH, path) : status;
}

int run_folder_join(struct run_folder *out, const char *job_folder,
                    const char *name, bool keeps)
{
    struct run_folder folder = {.record = -1};
    struct record record;
    char path[LS_PATH_MAX];
    if (number_of(name) == 0)
        return ls_error(LS_EINVAL, "--run %s: expected the number of a run",
                        name);
    int status = record_path(path, job_folder, name);
    if (status == LS_OK)
        status = read_record(path, &record);
    if (status == LS_OK && keeps)
        status = open_locked(path, LOCK_SH, &folder.record);
    if (status != LS_OK)
        return status;
    (void)snprintf(folder.out, sizeof folder.out, "%s", job_folder);
    (void)snprintf(folder.name, sizeof folder.name, "%s", name);
    memcpy(folder.token, record.token, sizeof folder.token);
    folder.lives = record.lives - 1;
    *out = folder;
    return LS_OK;
}

/* ---- end
 * --------------------------------------------------------------------- */

static int note_run(void *self, const char *name)
{
    unsigned *highest = self;
    if (number_of(name) > *highest)
        *highest = number_of(name);
    return LS_OK;
}

/* Whether nothing is in it but the record. */
static bool is_empty(const char *path)
{
    DIR *entries = opendir(path);
    const struct dirent *entry;
    bool empty = entries != NULL;
    while (empty && (entry = readdir(entries)) != NULL)
        empty = strcmp(entry->d_name, ".") == 0 ||
                strcmp(entry->d_name, "..") == 0 ||
                strcmp(entry->d_name, RUN_FOLDER_RECORD) == 0;
    if (entries != NULL)
        (void)closedir(entries);
    return empty;
}

static void remove_empty(const struct run_folder *folder)
{
    char path[LS_PATH_MAX], record[LS_PATH_MAX], link[LS_PATH_MAX];
    char name[16];
    unsigned highest = 0;
    if (join(path, folder->out, folder->name) != LS_OK ||
        join(link, folder->out, PLAN_LATEST) != LS_OK ||
        record_path(record, folder->out, folder->name) != LS_OK ||
        !is_empty(path))
        return;
    const bool latest = run_folder_points(link, folder->name);
    (void)unlink(record);
    (void)rmdir(path);
    if (latest)
        (void)unlink(link);
    if (latest && each_run(folder->out, note_run, &highest) == LS_OK &&
        highest > 0) {
        (void)snprintf(name, sizeof name, "%u", highest);
        point(folder->out, name);
    }
    if (folder->made_out)
        (void)rmdir(folder->out); /* unless something is in it */
}

void run_folder_end(struct run_folder *folder, bool done)
{
    char path[LS_PATH_MAX];
    if (folder->name[0] == '\0')
        return;
    if (done && folder->record >= 0 &&
        (record_path(path, folder->out, folder->name) != LS_OK ||
         add_line(folder->record, DONE, path) != LS_OK))
        ls_log_warn("the same command will go on with this run, which has "
                    "ended: %s",
                    ls_error_text());
    if (folder->made)
        remove_empty(folder);
    if (folder->record >= 0)
        (void)close(folder->record);
    folder->record = -1;
    folder->name[0] = '\0';
}
