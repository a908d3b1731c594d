/* A rank that failed: it leaves, and the first cause is reported. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lockstep/file.h"
#include "lockstep/log.h"

#include "driver_inside.h"
#include "over.h"

/* ---- the report ---------------------------------------------------------- */

static void put_text(ls_writer *out, const char *key, const char *text)
{
    ls_write_string(out, key);
    ls_write_any_string(out, text);
}

static void write_report(ls_writer *out, const struct ls_exception *what)
{
    ls_write_map_begin(out);
    put_text(out, "exc_type", what->type);
    put_text(out, "exc_value", what->value);
    put_text(out, "exc_time", what->time);
    ls_write_string(out, "exc_global_rank");
    ls_write_int(out, what->global_rank);
    ls_write_string(out, "exc_local_rank");
    ls_write_int(out, what->local_rank);
    ls_write_string(out, "node");
    ls_write_int(out, what->node);
    put_text(out, "step", what->step);
    put_text(out, "text", what->text);
    ls_write_map_end(out);
}

static int replace(const char *path, const char *line)
{
    char temporary[LS_PATH_MAX + LS_FILE_UNIQUE_MAX],
        unique[LS_FILE_UNIQUE_MAX], target[LS_PATH_MAX];
    const struct ls_file_part parts[] = {{line, strlen(line)}, {"\n", 1}};
    if (ls_file_read_link(path, target) == LS_OK)
        return ls_error(LS_EEXIST, "it is a link, which is not replaced");
    ls_file_unique(unique);
    (void)snprintf(temporary, sizeof temporary, "%s.%s", path, unique);
    return ls_file_replace(path, temporary, parts, 2, false);
}

static void write_down(struct driver_run *run, const struct ls_exception *what)
{
    const char *const path = run->options->report;
    ls_writer *out = NULL;
    char *line = NULL;
    if (path == NULL)
        return;
    int status = ls_writer_create(&out);
    if (status == LS_OK) {
        write_report(out, what);
        status = ls_writer_print(out, &line);
    }
    if (status == LS_OK)
        status = replace(path, line);
    if (status != LS_OK)
        ls_log_warn("driver: the report %s is not written: %s", path,
                    ls_error_text());
    free(line);
    ls_writer_destroy(&out);
}

/* ---- leaving ------------------------------------------------------------- */

/* What another rank's failure looks like from here; so does that of somebody
 * whom this rank alone has asked. */
static bool may_be_passed_on(int status)
{
    return status == LS_EABORTED || status == LS_ELOST;
}

/* Before this rank has left. */
static bool is_passed_on(const ls_driver *driver, int status)
{
    return may_be_passed_on(status) &&
           ((status == LS_EABORTED && driver->was_told) ||
            group_is_over_by_another(driver->group));
}

static void now(const ls_driver *driver, char out[32])
{
    const time_t at = (time_t)(ls_wall_now(driver->run->runtime) / LS_NS_PER_S);
    struct tm parts;
    out[0] = '\0';
    if (gmtime_r(&at, &parts) != NULL)
        (void)strftime(out, 32, "%Y-%m-%d-%H:%M:%S", &parts);
}

/* Which failure the run ends with: the first one that is a cause, else what was
 * passed on first. One that may have been passed on in another group, as a
 * sub-group of these ranks, gives way to one that cannot. */
static void keep(struct driver_run *run, const ls_driver *driver,
                 const struct ls_exception *what,
                 const struct ls_failure *failure)
{
    const bool is_sure = !may_be_passed_on(what->status);
    ls_mutex_lock(&run->mutex);
    const bool is_first = what->is_first && (!run->first_is_a_cause ||
                                             (is_sure && !run->first_is_sure));
    if (run->first.status == LS_OK || is_first) {
        (void)ls_failure_return(failure);
        if (what->is_first)
            (void)ls_error_at(failure->status, "rank %u", driver->rank);
        ls_failure_keep(&run->first, failure->status);
        run->first_is_a_cause = what->is_first;
        run->first_is_sure = what->is_first && is_sure;
    }
    if (is_first)
        write_down(run, what);
    ls_mutex_unlock(&run->mutex);
}

void ls_driver_on_exception(ls_driver *driver, int status, const char *step,
                            struct ls_exception *out)
{
    struct ls_failure failure;
    struct ls_exception mine, *const what = out != NULL ? out : &mine;
    ls_failure_keep(&failure, status);
    *what = (struct ls_exception){.status = status,
                                  .type = ls_status_name(status),
                                  .global_rank = driver->rank,
                                  .local_rank = driver->local_rank,
                                  .step = step != NULL ? step : "",
                                  .is_first = !is_passed_on(driver, status)};
    const int before = snprintf(what->text, sizeof what->text, "%.60s%s",
                                what->step, what->step[0] != '\0' ? ": " : "");
    what->value = what->text + before;
    memcpy(what->text + before, failure.text, strlen(failure.text) + 1);
    now(driver, what->time);
    if (ls_group_id(driver->group, driver->rank, &what->node) != LS_OK)
        what->node = driver->rank;
    if (!driver->has_failed) {
        driver->has_failed = true;
        ls_group_leave(driver->group, status);
        keep(driver->run, driver, what, &failure);
    }
    (void)ls_failure_return(&failure);
}
