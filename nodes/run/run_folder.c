#define _XOPEN_SOURCE 700 /* realpath */
#include "run_folder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lockstep/log.h"
#include "lockstep/runtime.h"

#include "plan.h"

#define FORMAT     "lockstep run 1"
#define GOES_ON    "goes on\n"
#define DONE       "ended\n"
#define BEGIN_MAX  512       /* of a record, as it is made */
#define RECORD_MAX (1 << 20) /* with a line for each life */
#define NUMBER_MAX 999999999u
/* What no job learns, as its hash says: in the record of a run aside. */
#define NOT_LEARNING UINT64_C(0)
/* How often others, who leave nothing, may take a folder away just as it is
 * made; but `out` may also be a link to nowhere. */
#define GONE_MAX 100

/* What a record says. */
struct record {
    char job[128];
    char token[RUN_FOLDER_TOKEN_MAX + 1];
    uint64_t learning;
    unsigned lives;
    bool done;
    size_t size; /* what stands behind it was never finished */
};

/* With room for what is put behind it: a record, a file that takes its place.
 */
static int join(char out[LS_PATH_MAX], const char *folder, const char *name)
{
    return ls_file_path(out, LS_PATH_MAX - 64, folder, name);
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
                    "%s is not a record of a run: remove it, and that run will "
                    "not be gone on with",
                    path);
}

static int is_record(void *self, const char *name)
{
    (void)self;
    return strcmp(name, RUN_FOLDER_RECORD) == 0 ? LS_OK : LS_EEXIST;
}

/* Who was killed, or lost power, as the record was made has left the beginning
 * of one, and nothing else: beside what a run has left it is damaged. */
static bool is_unfinished(const char *text, const char *path)
{
    static const char begins[] = FORMAT "\njob ";
    const size_t size = strlen(text), least = sizeof begins - 1;
    char folder[LS_PATH_MAX];
    unsigned lines = 0;
    for (const char *at = text; *at != '\0'; at++)
        lines += *at == '\n';
    if (lines >= 4 || strncmp(text, begins, size < least ? size : least) != 0)
        return false;
    (void)snprintf(folder, sizeof folder, "%.*s",
                   (int)(strlen(path) - sizeof RUN_FOLDER_RECORD), path);
    return ls_folder_each(folder, is_record, NULL) != LS_EEXIST;
}

static int parse(const char *text, const char *path, struct record *out)
{
    int end = 0;
    if (is_unfinished(text, path))
        return ls_error(LS_ENOENT, "the run of %s has not begun", path);
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
    char *text = calloc(1, size + 1);
    if (text == NULL)
        status = ls_error(LS_ENOMEM, "reading %s", path);
    else if (size > 0)
        memcpy(text, data, size);
    free(data);
    if (status == LS_OK)
        status = parse(text, path, out);
    free(text);
    return status;
}

/* A line more, on disk when it returns. */
static int add_line(ls_file *record, const char *line)
{
    uint64_t size;
    int status = ls_file_size(record, &size);
    if (status == LS_OK)
        status = ls_file_write_at(record, line, strlen(line), size);
    return status == LS_OK ? ls_file_sync(record) : status;
}

/* flags: LS_FILE_CREATE or 0. */
static int open_locked(ls_file **out, const char *path, unsigned flags,
                       bool shared)
{
    int status = ls_file_open(out, path, LS_FILE_WRITE | flags);
    if (status == LS_OK)
        status = ls_file_lock(*out, shared);
    if (status == LS_OK && !ls_file_is_named(*out))
        status = ls_error(LS_ENOENT, "%s is gone", path);
    if (status != LS_OK)
        (void)ls_file_close(out);
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

struct search {
    const struct run_folder_options *options;
    unsigned highest;     /* of all; 0: there is none */
    unsigned same;        /* of those that learn the same; 0: none */
    struct record record; /* of that one */
};

static bool is_same(const struct record *record,
                    const struct run_folder_options *options)
{
    return record->learning == options->learning &&
           strcmp(record->job, options->job) == 0;
}

static int look_at(void *self, const char *name)
{
    struct search *search = self;
    const unsigned number = number_of(name);
    char path[LS_PATH_MAX];
    struct record record;
    if (number == 0)
        return LS_OK; /* it is none */
    if (number > search->highest)
        search->highest = number;
    int status = record_path(path, search->options->out, name);
    if (status != LS_OK || number < search->same)
        return status;
    status = read_record(path, &record);
    if (status == LS_ENOENT)
        return LS_OK; /* it is not a run's, or the run has not begun */
    if (status != LS_OK)
        return status;
    if (is_same(&record, search->options)) {
        search->same = number;
        search->record = record;
    }
    return LS_OK;
}

/* ---- a look from outside ------------------------------------------------- */

int run_folder_look(struct run_folder_look *out, const char *path)
{
    char at[LS_PATH_MAX], file[LS_PATH_MAX + sizeof RUN_FOLDER_RECORD];
    struct record record = {.done = false};
    int status = join(at, path, PLAN_LATEST);
    if (status != LS_OK)
        return status;
    char *real = realpath(ls_file_exists(at) ? at : path, NULL);
    if (real == NULL)
        return ls_error(LS_ENOENT, "%s: there is no such folder", path);
    const size_t size = strlen(real);
    if (size < sizeof out->path)
        memcpy(out->path, real, size + 1);
    free(real);
    if (size >= sizeof out->path)
        return ls_error(LS_ELIMIT, "%.80s… has too long a name", path);
    const char *slash = strrchr(out->path, '/'); /* it is absolute */
    (void)snprintf(file, sizeof file, "%s/" RUN_FOLDER_RECORD, out->path);
    if (!ls_file_exists(file))
        return ls_error(LS_ENOENT,
                        "%s is not the folder of a run: it has no "
                        "file " RUN_FOLDER_RECORD,
                        path);
    status = read_record(file, &record);
    if (status != LS_OK)
        return status;
    memcpy(out->job, record.job, sizeof out->job);
    (void)snprintf(out->out, sizeof out->out, "%.*s",
                   (int)(slash > out->path ? slash - out->path : 1), out->path);
    out->name = slash + 1;
    out->done = record.done;
    return LS_OK;
}

bool run_folder_is_busy(const struct run_folder_look *look)
{
    char file[LS_PATH_MAX + sizeof RUN_FOLDER_RECORD];
    ls_file *record = NULL;
    (void)snprintf(file, sizeof file, "%s/" RUN_FOLDER_RECORD, look->path);
    const int status = open_locked(&record, file, 0, false);
    if (status == LS_OK)
        (void)ls_file_close(&record);
    return status == LS_EAGAIN;
}

/* ---- latest -------------------------------------------------------------- */

int run_folder_point(const char *link, const char *to)
{
    char made[LS_PATH_MAX], found[LS_PATH_MAX];
    const int n = snprintf(made, sizeof made, "%s.%s", link, to);
    if (n < 0 || (size_t)n >= sizeof made)
        return ls_error(LS_ELIMIT, "%.80s… has too long a name", link);
    if (ls_file_read_link(link, found) == LS_EINVAL)
        return ls_error(LS_EEXIST,
                        "%s is not this program's, and stays as it is", link);
    (void)ls_file_remove(made); /* of who was killed just here */
    int status = ls_file_symlink(to, made);
    if (status == LS_OK)
        status = ls_file_rename(made, link);
    return status;
}

bool run_folder_points(const char *link, const char *to)
{
    char found[LS_PATH_MAX];
    return ls_file_read_link(link, found) == LS_OK && strcmp(found, to) == 0;
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

/* ---- begin --------------------------------------------------------------- */

static int write_record(struct run_folder *folder,
                        const struct run_folder_options *options)
{
    char text[BEGIN_MAX], path[LS_PATH_MAX];
    const uint64_t token = ls_entropy(ls_runtime_current());
    (void)snprintf(folder->token, sizeof folder->token, "%08" PRIx32,
                   (uint32_t)token);
    (void)snprintf(
        text, sizeof text, FORMAT "\njob %s\nlearning %" PRIx64 "\ntoken %s\n",
        options->job, options->aside ? NOT_LEARNING : options->learning,
        folder->token);
    int status = record_path(path, folder->out, folder->name);
    if (status == LS_OK)
        status = add_line(folder->record, text);
    return status == LS_OK ? ls_file_sync_name(path) : status;
}

/* The folder of this number is the one's that locks an empty record in it.
 * Errors: LS_EAGAIN that is another; LS_ENOENT it was taken away meanwhile. */
static int take(struct run_folder *folder, unsigned number)
{
    char path[LS_PATH_MAX], record[LS_PATH_MAX];
    uint64_t size = 0;
    (void)snprintf(folder->name, sizeof folder->name, "%u", number);
    int status = join(path, folder->out, folder->name);
    if (status == LS_OK)
        status = record_path(record, folder->out, folder->name);
    if (status != LS_OK)
        return status;
    status = ls_folder_make(path);
    if (status == LS_OK)
        status = open_locked(&folder->record, record, LS_FILE_CREATE, false);
    if (status == LS_OK)
        status = ls_file_size(folder->record, &size);
    if (status == LS_OK && size > 0) {
        (void)ls_file_close(&folder->record);
        status = LS_EAGAIN;
    }
    folder->made = status != LS_EAGAIN && status != LS_ENOENT;
    return status;
}

/* A folder that is new, numbered behind all that there are. */
static int begin_new(struct run_folder *folder, unsigned highest,
                     const struct run_folder_options *options)
{
    char text[LS_ERROR_TEXT_MAX];
    int status = LS_EAGAIN;
    unsigned gone = 0;
    while (
        (status == LS_EAGAIN || (status == LS_ENOENT && ++gone < GONE_MAX)) &&
        highest < NUMBER_MAX)
        status = take(folder, ++highest);
    if (status == LS_EAGAIN)
        return ls_error(LS_ELIMIT, "%s: there are too many runs", folder->out);
    if (status == LS_OK)
        status = write_record(folder, options);
    if (status == LS_OK)
        return LS_OK;
    (void)snprintf(text, sizeof text, "%s", ls_error_text());
    run_folder_end(folder, false);
    return ls_error(status == LS_ENOENT ? LS_EIO : status, "%s", text);
}

static int busy(const struct run_folder *folder)
{
    return ls_error(LS_EAGAIN,
                    "run %s of this job is in progress, in %s/%s: wait for "
                    "it to end, or begin another beside it with --fresh",
                    folder->name, folder->out, folder->name);
}

/* Errors: LS_ENOENT it has ended just now, and left nothing. */
static int go_on(struct run_folder *folder, const struct search *search)
{
    char path[LS_PATH_MAX];
    struct record record;
    (void)snprintf(folder->name, sizeof folder->name, "%u", search->same);
    int status = record_path(path, folder->out, folder->name);
    if (status == LS_OK)
        status = open_locked(&folder->record, path, 0, false);
    if (status == LS_EAGAIN)
        return busy(folder);
    if (status == LS_OK)
        status = read_record(path, &record);
    if (status == LS_OK && record.done)
        status = busy(folder); /* it has ended just now */
    if (status == LS_OK)
        status = ls_file_cut(folder->record, record.size);
    if (status == LS_OK)
        status = add_line(folder->record, GOES_ON);
    if (status != LS_OK) {
        (void)ls_file_close(&folder->record);
        return status;
    }
    memcpy(folder->token, record.token, sizeof folder->token);
    folder->lives = record.lives;
    return LS_OK;
}

/* The run of a number that is asked for, in place of the last one. */
static int look_for(struct search *search, const char *name)
{
    const struct run_folder_options *options = search->options;
    char path[LS_PATH_MAX];
    struct record record;
    int status = record_path(path, options->out, name);
    if (status == LS_OK)
        status = number_of(name) > 0 ? read_record(path, &record) : LS_ENOENT;
    if (status == LS_ENOENT)
        return ls_error(LS_ENOENT, "--resume %s: there is no run %s in %s",
                        name, name, options->out);
    if (status != LS_OK)
        return status;
    if (!is_same(&record, options))
        return ls_error(LS_EMISMATCH,
                        "--resume %s: the run in %s/%s would learn something "
                        "else: resume it with the configuration, --seed and "
                        "--set that it was begun with",
                        name, options->out, name);
    search->same = number_of(name);
    search->record = record;
    return LS_OK;
}

/* There must be a run to go on with. */
static int check_resume(struct search *search)
{
    const struct run_folder_options *options = search->options;
    int status = LS_OK;
    if (strcmp(options->resume, PLAN_LATEST) != 0)
        status = look_for(search, options->resume);
    else if (search->same == 0)
        status = ls_error(LS_ENOENT,
                          "--resume: there is no run in %s that would learn "
                          "the same; leave out --resume to begin one",
                          options->out);
    if (status == LS_OK && search->record.done)
        status = ls_error(LS_ENOENT,
                          "--resume: the run in %s/%u has ended, and there is "
                          "nothing left to do; leave out --resume to begin "
                          "another",
                          options->out, search->same);
    return status;
}

/* What is damaged there would end the search for the run to go on with. */
static int check_records(const char *out)
{
    const struct run_folder_options none = {.out = out, .job = ""};
    struct search search = {.options = &none};
    return ls_file_exists(out) ? ls_folder_each(out, look_at, &search) : LS_OK;
}

int run_folder_check(const char *out)
{
    char path[LS_PATH_MAX + 2], text[LS_PATH_MAX + 64];
    int status = join(path, out, ".");
    if (status != LS_OK)
        return status;
    /* The nearest that is there. */
    while (!ls_file_exists(path)) {
        char *slash = strrchr(path, '/');
        if (slash == NULL)
            (void)snprintf(path, sizeof path, ".");
        else
            slash[slash == path] = '\0';
    }
    (void)snprintf(text, sizeof text, "writing in the folder %s", path);
    memcpy(path + strlen(path), "/.", sizeof "/.");
    return access(path, W_OK | X_OK) == 0 ? check_records(out)
                                          : ls_error_from(errno, text);
}

int run_folder_begin(struct run_folder *out,
                     const struct run_folder_options *options)
{
    struct run_folder folder = {.name = ""};
    struct search search = {.options = options};
    char path[LS_PATH_MAX];
    int status = join(path, options->out, PLAN_LATEST);
    if (status != LS_OK)
        return status;
    (void)snprintf(folder.out, sizeof folder.out, "%s", options->out);
    folder.made_out = !ls_file_exists(options->out);
    if (options->resume == NULL)
        status = ls_folder_make(options->out);
    if (status == LS_OK)
        status = ls_folder_each(options->out, look_at, &search);
    if (status != LS_OK && status != LS_ENOENT)
        return status;
    if (options->resume != NULL) {
        status = check_resume(&search);
        if (status != LS_OK)
            return status;
    }
    const bool could = search.same != 0 && !search.record.done;
    const bool goes_on = could && !options->fresh;
    folder.behind = could && options->fresh ? search.same : 0;
    status = goes_on ? go_on(&folder, &search) : LS_ENOENT;
    if (status == LS_ENOENT && options->resume == NULL)
        status = begin_new(&folder, search.highest, options);
    if (status != LS_OK)
        return status;
    point(folder.out, folder.name);
    *out = folder;
    return LS_OK;
}

int run_folder_share(struct run_folder *folder)
{
    return ls_file_lock(folder->record, true);
}

int run_folder_join(struct run_folder *out, const char *job_folder,
                    const char *name, bool keeps)
{
    struct run_folder folder = {.name = ""};
    struct record record;
    char path[LS_PATH_MAX];
    if (number_of(name) == 0)
        return ls_error(LS_EINVAL, "--run %s: expected the number of a run",
                        name);
    int status = record_path(path, job_folder, name);
    if (status == LS_OK)
        status = read_record(path, &record);
    if (status == LS_OK && keeps)
        status = open_locked(&folder.record, path, 0, true);
    if (status != LS_OK)
        return status;
    (void)snprintf(folder.out, sizeof folder.out, "%s", job_folder);
    (void)snprintf(folder.name, sizeof folder.name, "%s", name);
    memcpy(folder.token, record.token, sizeof folder.token);
    folder.lives = record.lives - 1;
    *out = folder;
    return LS_OK;
}

/* ---- end ----------------------------------------------------------------- */

struct last {
    const char *out;
    unsigned highest;
};

/* What has no record is not a run's. */
static int note_run(void *self, const char *name)
{
    struct last *last = self;
    char path[LS_PATH_MAX];
    struct record record;
    if (number_of(name) > last->highest &&
        record_path(path, last->out, name) == LS_OK &&
        read_record(path, &record) == LS_OK)
        last->highest = number_of(name);
    return LS_OK;
}

static void remove_empty(const struct run_folder *folder)
{
    char path[LS_PATH_MAX], record[LS_PATH_MAX], link[LS_PATH_MAX];
    char name[16];
    struct last last = {.out = folder->out};
    if (join(path, folder->out, folder->name) != LS_OK ||
        join(link, folder->out, PLAN_LATEST) != LS_OK ||
        record_path(record, folder->out, folder->name) != LS_OK ||
        ls_folder_each(path, is_record, NULL) != LS_OK)
        return;
    if (folder->record != NULL)
        (void)ls_file_remove(record);
    if (ls_folder_remove(path) != LS_OK)
        return; /* another has come meanwhile */
    const bool latest = run_folder_points(link, folder->name);
    if (latest)
        (void)ls_file_remove(link);
    if (latest && ls_folder_each(folder->out, note_run, &last) == LS_OK &&
        last.highest > 0) {
        (void)snprintf(name, sizeof name, "%u", last.highest);
        point(folder->out, name);
    }
    if (folder->made_out)
        (void)ls_folder_remove(folder->out); /* unless something is in it */
}

void run_folder_end(struct run_folder *folder, bool done)
{
    if (folder->name[0] == '\0')
        return;
    if (done && folder->record != NULL &&
        add_line(folder->record, DONE) != LS_OK)
        ls_log_warn("the same command will resume this run although it has "
                    "ended: %s",
                    ls_error_text());
    if (folder->made)
        remove_empty(folder);
    (void)ls_file_close(&folder->record);
    folder->name[0] = '\0';
}
