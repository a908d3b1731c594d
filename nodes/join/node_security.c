#include "node_security.h"

#include <errno.h>
#include <unistd.h>

#include "lockstep/file.h"

static int set_hosts(ls_security *security, const struct plan_hosts *hosts,
                     int (*set)(ls_security *security, const char *address))
{
    int status = LS_OK;
    for (size_t i = 0; i < hosts->n && status == LS_OK; i++)
        status = set(security, hosts->items[i]);
    return status;
}

static int set_lists(ls_security **security, const struct plan *plan)
{
    int status = set_hosts(*security, &plan->security.allow, ls_security_allow);
    if (status == LS_OK)
        status = set_hosts(*security, &plan->security.deny, ls_security_deny);
    if (status != LS_OK)
        ls_security_destroy(security);
    return status;
}

static int check_folder(const struct plan *plan)
{
    const char *keys = plan->security.keys;
    if (access(keys, F_OK) < 0 && errno == ENOENT)
        return ls_error(LS_ENOENT,
                        "security.keys: there is no folder %s; \"lockstep "
                        "keygen %s %s\" makes it",
                        keys, keys, plan->path);
    return LS_OK;
}

static int open_keys(ls_security **out, const struct plan *plan, uint32_t id)
{
    const int status = check_folder(plan);
    return status == LS_OK ? ls_security_curve(out, plan->security.keys, id)
                           : status;
}

int node_security_open(ls_security **out, const struct plan *plan, uint32_t id,
                       const struct run_secret *secret)
{
    ls_security *made = NULL;
    int status = LS_OK;
    *out = NULL;
    if (plan->world.transport == PLAN_INPROC)
        return LS_OK;
    if (plan_has_keys(plan))
        status = open_keys(&made, plan, id);
    else if (plan->security.mode == LS_SECURITY_NONE)
        status = ls_security_none(&made);
    else if (secret != NULL && secret->there)
        status = ls_security_plain(&made, secret->bytes);
    else
        status = ls_security_job(&made, plan->job);
    if (status == LS_OK)
        status = set_lists(&made, plan);
    if (status != LS_OK)
        return ls_error_at(status, "%s: node %u", plan->path, (unsigned)id);
    *out = made;
    return LS_OK;
}

int node_security_open_client(ls_security **out, const struct plan *plan,
                              uint32_t id, bool running)
{
    char path[LS_PATH_MAX];
    if (!running || !plan_has_secret(plan))
        return node_security_open(out, plan, id, NULL);
    int status = run_secret_path(plan, path, sizeof path);
    if (status == LS_OK)
        status = ls_security_file(out, path);
    /* A run that could not write its file has told of that. */
    return status == LS_ENOENT ? node_security_open(out, plan, id, NULL)
                               : status;
}

/* ---- ids that are given out --------------------------------------------- */

static int with_lists(ls_security **out, ls_security *made, int status,
                      const struct plan *plan)
{
    if (status == LS_OK)
        status = set_lists(&made, plan);
    if (status != LS_OK)
        return ls_error_at(status, "%s", plan->path);
    *out = made;
    return LS_OK;
}

int node_security_open_giving(ls_security **out, const struct plan *plan,
                              uint32_t id)
{
    ls_security *made = NULL;
    int status = check_folder(plan);
    if (status == LS_OK)
        status = ls_security_giving(&made, plan->security.keys, id);
    return with_lists(out, made, status, plan);
}

int node_security_open_asking(ls_security **out, const struct plan *plan)
{
    ls_security *made = NULL;
    int status = check_folder(plan);
    if (status == LS_OK)
        status = ls_security_asking(&made, plan->security.keys);
    return with_lists(out, made, status, plan);
}

int node_security_open_leased(ls_security **out, const struct plan *plan,
                              uint32_t id, const char *path)
{
    ls_security *made = NULL;
    int status = check_folder(plan);
    if (status == LS_OK)
        status = ls_security_leased(&made, plan->security.keys, id, path);
    return with_lists(out, made, status, plan);
}
