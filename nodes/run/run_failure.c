#include "run_failure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lockstep/file.h"
#include "lockstep/runtime.h"

#include "json.h"

static int make_path(char path[LS_PATH_MAX], const struct plan *plan)
{
    return ls_file_path(path, LS_PATH_MAX, plan->folder, RUN_FAILURE_NAME);
}

static bool has_folder(const struct plan *plan)
{
    return plan->folder != NULL && !plan->folder_found;
}

/* "step collect: …", or "in step collect for 2.0 s", or without the time. */
void run_failure_step(const char *text, char *step, size_t size)
{
    static const char error[] = "step ", where[] = "in step ";
    const bool now = strncmp(text, where, sizeof where - 1) == 0;
    const char *name = NULL, *end = NULL;
    if (now) {
        name = text + sizeof where - 1;
        end = strstr(name, " for ");
        end = end != NULL ? end : name + strlen(name);
    } else if (strncmp(text, error, sizeof error - 1) == 0) {
        name = text + sizeof error - 1;
        end = strstr(name, ": ");
    }
    (void)snprintf(step, size, "%.*s", end != NULL ? (int)(end - name) : 0,
                   end != NULL ? name : "");
}

static void put_number(ls_writer *out, const char *key, bool there,
                       int64_t number)
{
    ls_write_string(out, key);
    if (there)
        ls_write_int(out, number);
    else
        ls_write_nil(out);
}

static void put(ls_writer *out, const struct plan *plan,
                const struct run_failure *failure)
{
    const bool node = failure->index < plan->n_nodes;
    const time_t at = (time_t)(failure->wall_ns / LS_NS_PER_S);
    char time[32] = "", step[256];
    struct tm parts;
    if (gmtime_r(&at, &parts) != NULL)
        (void)strftime(time, sizeof time, "%Y-%m-%d-%H:%M:%S", &parts);
    run_failure_step(failure->where, step, sizeof step);
    ls_write_map_begin(out);
    json_string(out, "exc_type", failure->type);
    json_string(out, "exc_value", failure->value);
    json_string(out, "exc_time", time);
    /* A run starts all of its nodes on one host. */
    put_number(out, "exc_global_rank", node, (int64_t)failure->index);
    put_number(out, "exc_local_rank", node, (int64_t)failure->index);
    put_number(out, "node", node, node ? plan->nodes[failure->index].id : 0);
    json_string(out, "step", step[0] != '\0' ? step : NULL);
    json_string(out, "text", failure->text);
    ls_write_map_end(out);
}

static int replace(const char *path, ls_writer *value)
{
    char temporary[LS_PATH_MAX + 8];
    char *line = NULL;
    const int status = ls_writer_print(value, &line);
    if (status != LS_OK)
        return status;
    (void)snprintf(temporary, sizeof temporary, "%s.part", path);
    const struct ls_file_part parts[] = {{line, strlen(line)}, {"\n", 1}};
    const int written = ls_file_replace(path, temporary, parts, 2, false);
    free(line);
    return written;
}

int run_failure_write(const struct plan *plan,
                      const struct run_failure *failure)
{
    char path[LS_PATH_MAX];
    ls_writer *out = NULL;
    if (!has_folder(plan))
        return LS_OK;
    int status = make_path(path, plan);
    if (status == LS_OK)
        status = ls_writer_create(&out);
    if (status == LS_OK) {
        put(out, plan, failure);
        status = replace(path, out);
    }
    ls_writer_destroy(&out);
    return status;
}

void run_failure_remove(const struct plan *plan)
{
    char path[LS_PATH_MAX];
    if (has_folder(plan) && plan->lives > 0 && make_path(path, plan) == LS_OK)
        (void)ls_file_remove(path);
}
