#include "weights.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report.h"

static int system_error(int os_errno, const char *what, const char *path)
{
    char text[REPORT_PATH_MAX + 32];
    (void)snprintf(text, sizeof text, "%s %s", what, path);
    return ls_error_from(os_errno, text);
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
    (void)snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
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

static int write_value(struct agent *agent, const struct weights_note *note,
                       ls_writer *out)
{
    ls_write_map(out, 7);
    ls_write_string(out, "format");
    ls_write_string(out, "lockstep.policy.1");
    ls_write_string(out, "plugin");
    ls_write_string(out, agent->plugin->name);
    ls_write_string(out, "plugin_version");
    ls_write_string(out, agent->plugin->version);
    ls_write_string(out, "seed");
    ls_write_uint(out, note->seed);
    ls_write_string(out, "train_iter");
    ls_write_int(out, note->train_iter);
    ls_write_string(out, "env_step");
    ls_write_int(out, note->env_step);
    ls_write_string(out, "weights");
    return agent->plugin->policy->save(agent->policy, out);
}

int weights_save(struct agent *agent, const struct weights_note *note,
                 const char *folder, char *path, size_t size)
{
    char file[REPORT_PATH_MAX];
    const int n = snprintf(file, sizeof file, "%s/policy.msgpack", folder);
    if (n < 0 || (size_t)n >= sizeof file || (size_t)n >= size)
        return ls_error(LS_ELIMIT, "the folder %.80s… has too long a name",
                        folder);
    const void *data;
    size_t bytes;
    ls_writer_clear(agent->writer);
    int status = write_value(agent, note, agent->writer);
    if (status == LS_OK)
        status = ls_writer_bytes(agent->writer, &data, &bytes);
    if (status == LS_OK)
        status = make_folders(folder);
    if (status == LS_OK)
        status = replace_file(folder, file, data, bytes);
    if (status == LS_OK)
        memcpy(path, file, (size_t)n + 1);
    return status;
}
