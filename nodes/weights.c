#include "weights.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report.h"

#define FORMAT "lockstep.policy.1"
#define PART   ".part"

static int system_error(int os_errno, const char *what, const char *path)
{
    char text[REPORT_PATH_MAX + 32];
    (void)snprintf(text, sizeof text, "%s %s", what, path);
    return ls_error_from(os_errno, text);
}

static int too_long(const char *folder)
{
    return ls_error(LS_ELIMIT, "the folder %.80s… has too long a name", folder);
}

static int make_path(char path[REPORT_PATH_MAX], const char *folder,
                     const char *name)
{
    const int n = snprintf(path, REPORT_PATH_MAX, "%s/%s", folder, name);
    return n >= 0 && n < REPORT_PATH_MAX ? LS_OK : too_long(folder);
}

/* Make a folder and those above it. */
static int make_folders(const char *folder)
{
    char path[REPORT_PATH_MAX];
    (void)snprintf(path, sizeof path, "%s", folder);
    for (char *at = path + 1;; at++) {
        if (*at != '/' && *at != '\0')
            continue;
        const char end = *at;
        *at = '\0';
        if (mkdir(path, 0777) < 0 && errno != EEXIST)
            return system_error(errno, "making the folder", path);
        if (end == '\0')
            return LS_OK;
        *at = end;
    }
}

static int write_data(int fd, const void *data, size_t size, const char *path)
{
    const char *at = data;
    while (size > 0) {
        const ssize_t n = write(fd, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return system_error(errno, "writing", path);
        at += n;
        size -= (size_t)n;
    }
    if (fsync(fd) < 0)
        return system_error(errno, "writing", path);
    return LS_OK;
}

/* The rename itself is on disk only when the folder is. */
static int sync_folder(const char *folder)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return system_error(errno, "opening", folder);
    const int failed = fsync(fd) < 0 ? errno : 0;
    (void)close(fd);
    return failed == 0 || failed == EINVAL /* some file systems have no such */
               ? LS_OK
               : system_error(failed, "writing", folder);
}

static int replace_file(const char *folder, const char *path, const void *data,
                        size_t size)
{
    char temporary[REPORT_PATH_MAX + 16];
    /* Always the same name: one that a killed learner left is written over. */
    (void)snprintf(temporary, sizeof temporary, "%s" PART, path);
    const int fd =
        open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return system_error(errno, "writing", temporary);
    int status = write_data(fd, data, size, temporary);
    if (close(fd) < 0 && status == LS_OK)
        status = system_error(errno, "writing", temporary);
    if (status == LS_OK && rename(temporary, path) < 0)
        status = system_error(errno, "renaming to", path);
    if (status != LS_OK) {
        (void)unlink(temporary);
        return status;
    }
    return sync_folder(folder);
}

static const struct count {
    const char *name;
    size_t offset;
} counts[] = {
    {"iteration", offsetof(struct weights_note, iteration)},
    {"train_iter", offsetof(struct weights_note, train_iter)},
    {"env_step", offsetof(struct weights_note, env_step)},
    {"env_episode", offsetof(struct weights_note, env_episode)},
};
#define N_COUNTS (sizeof counts / sizeof counts[0])

static int64_t *count_at(struct weights_note *note, size_t i)
{
    return (int64_t *)((char *)note + counts[i].offset);
}

static int write_value(struct agent *agent, const struct weights_note *note,
                       ls_writer *out)
{
    struct weights_note copy = *note;
    ls_write_map(out, 9);
    ls_write_string(out, "format");
    ls_write_string(out, FORMAT);
    ls_write_string(out, "plugin");
    ls_write_string(out, agent->plugin->name);
    ls_write_string(out, "plugin_version");
    ls_write_string(out, agent->plugin->version);
    ls_write_string(out, "seed");
    ls_write_uint(out, note->seed);
    for (size_t i = 0; i < N_COUNTS; i++) {
        ls_write_string(out, counts[i].name);
        ls_write_int(out, *count_at(&copy, i));
    }
    ls_write_string(out, "weights");
    return agent->plugin->policy->save(agent->policy, out);
}

int weights_save(struct agent *agent, const struct weights_note *note,
                 const char *folder, const char *name, char *path, size_t size)
{
    char file[REPORT_PATH_MAX];
    int status = make_path(file, folder, name);
    if (status != LS_OK)
        return status;
    const size_t length = strlen(file) + 1;
    if (length > size)
        return too_long(folder);
    const void *data;
    size_t bytes;
    ls_writer_clear(agent->writer);
    status = write_value(agent, note, agent->writer);
    if (status == LS_OK)
        status = ls_writer_bytes(agent->writer, &data, &bytes);
    if (status == LS_OK)
        status = make_folders(folder);
    if (status == LS_OK)
        status = replace_file(folder, file, data, bytes);
    if (status == LS_OK)
        memcpy(path, file, length);
    return status;
}

/* Reading ---------------------------------------------------------------- */

/* data: own. */
static int read_all(FILE *file, const char *path, void **data, size_t *size)
{
    char *bytes = NULL;
    size_t used = 0, capacity = 0, n;
    do {
        if (used == capacity) {
            capacity = capacity > 0 ? 2 * capacity : 65536;
            char *grown = realloc(bytes, capacity);
            if (grown == NULL) {
                free(bytes);
                return ls_error(LS_ENOMEM, "reading %s", path);
            }
            bytes = grown;
        }
        n = fread(bytes + used, 1, capacity - used, file);
        used += n;
    } while (n > 0);
    if (ferror(file)) {
        const int failed = errno;
        free(bytes);
        return system_error(failed, "reading", path);
    }
    *data = bytes;
    *size = used;
    return LS_OK;
}

static bool has_text(const ls_value *map, const char *key, const char *text)
{
    const char *found;
    return ls_value_string(ls_value_get(map, key), &found) == LS_OK &&
           strcmp(found, text) == 0;
}

/* Whether it is what this run's learner has written. */
static int check_origin(const struct agent *agent, const ls_value *map,
                        uint64_t seed)
{
    uint64_t found = 0;
    if (!has_text(map, "format", FORMAT))
        return ls_error(LS_EPROTO, "it is no file of format %s", FORMAT);
    if (!has_text(map, "plugin", agent->plugin->name) ||
        !has_text(map, "plugin_version", agent->plugin->version))
        return ls_error(LS_EMISMATCH, "it is of another plugin than %s %s",
                        agent->plugin->name, agent->plugin->version);
    if (ls_value_uint(ls_value_get(map, "seed"), &found) != LS_OK ||
        found != seed)
        return ls_error(LS_EMISMATCH, "it is of a run with another seed");
    return LS_OK;
}

static int take(struct agent *agent, const ls_value *map,
                struct weights_note *out)
{
    struct weights_note note = {.seed = out->seed};
    int status = check_origin(agent, map, note.seed);
    for (size_t i = 0; i < N_COUNTS && status == LS_OK; i++) {
        status =
            ls_value_int(ls_value_get(map, counts[i].name), count_at(&note, i));
        if (status != LS_OK)
            (void)ls_error_at(status, "%s", counts[i].name);
    }
    const ls_value *weights = ls_value_get(map, "weights");
    if (status == LS_OK && weights == NULL)
        status = ls_error(LS_EPROTO, "it holds no weights");
    if (status == LS_OK)
        status = agent->plugin->policy->load(agent->policy, weights);
    if (status == LS_OK)
        *out = note;
    return status;
}

int weights_load(struct agent *agent, uint64_t seed, const char *folder,
                 const char *name, struct weights_note *out)
{
    const struct ls_codec_limits limits = {
        .max_bytes = (size_t)1 << 30, .max_depth = 16, .max_objects = 65536};
    char path[REPORT_PATH_MAX];
    void *data = NULL;
    size_t size = 0;
    int status = make_path(path, folder, name);
    if (status != LS_OK)
        return status;
    FILE *file = fopen(path, "rb");
    if (file == NULL && errno == ENOENT)
        return ls_error(LS_ENOENT, "there is no %s", path);
    if (file == NULL)
        return system_error(errno, "reading", path);
    status = read_all(file, path, &data, &size);
    (void)fclose(file);
    if (status != LS_OK)
        return status;
    ls_document *document = NULL;
    struct weights_note note = {.seed = seed};
    status = ls_document_read(&document, data, size, &limits);
    free(data);
    if (status == LS_OK)
        status = take(agent, ls_document_root(document), &note);
    ls_document_destroy(&document);
    if (status != LS_OK)
        return ls_error_at(status, "%s", path);
    *out = note;
    return LS_OK;
}

void weights_tidy(const char *folder)
{
    weights_remove(folder, WEIGHTS_FINAL PART);
    weights_remove(folder, WEIGHTS_CHECKPOINT PART);
}

void weights_remove(const char *folder, const char *name)
{
    char path[REPORT_PATH_MAX];
    if (make_path(path, folder, name) == LS_OK)
        (void)unlink(path);
}
