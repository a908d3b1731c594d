#include "plan_security.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"
#include "word_list.h"

/* As the file calls the modes that it may choose. */
static const char *const mode_names[] = {"plain", "curve", NULL};

/* A folder is named from the file's own, as a plugin is. */
static char *from_file(const char *file, const char *folder)
{
    const char *slash = strrchr(file, '/');
    const int length =
        slash == NULL || folder[0] == '/' ? 0 : (int)(slash - file) + 1;
    const size_t size = (size_t)length + strlen(folder) + 1;
    char *path = malloc(size);
    if (path != NULL)
        (void)snprintf(path, size, "%.*s%s", length, file, folder);
    return path;
}

static int read_keys(struct plan *plan, ls_config_section *section)
{
    struct plan_security *security = &plan->security;
    const char *keys = ls_config_string(section, "keys", NULL);
    const bool curve = security->mode == LS_SECURITY_CURVE;
    if (curve && !ls_config_require(section, "keys"))
        return LS_OK;
    if (keys != NULL && !curve)
        ls_config_problem(section, "keys",
                          "keys are for mode: curve; here it is plain");
    if (keys != NULL && keys[0] == '\0')
        ls_config_problem(section, "keys",
                          "the folder has no name; \"lockstep keygen keys "
                          "%s\" makes one",
                          plan->path);
    if (keys == NULL || !curve)
        return LS_OK;
    security->keys = from_file(plan->path, keys);
    return security->keys != NULL ? LS_OK
                                  : ls_error(LS_ENOMEM, "reading security");
}

/* The library says what an address is. */
static void check_host(ls_config_section *section, const char *key,
                       const char *host, ls_security *judge)
{
    if (ls_security_allow(judge, host) == LS_EINVAL)
        ls_config_problem(section, key, "%s", ls_error_text());
}

static void read_hosts(struct plan_hosts *out, ls_config_section *section,
                       const char *key, ls_security *judge)
{
    const size_t n = ls_config_n_strings(section, key);
    if (n > PLAN_HOSTS_MAX)
        ls_config_problem(section, key, "%zu addresses; at most %d", n,
                          PLAN_HOSTS_MAX);
    for (size_t i = 0; i < n && i < PLAN_HOSTS_MAX; i++) {
        const char *host = ls_config_string_at(section, key, i);
        check_host(section, key, host, judge);
        out->items[out->n++] = host;
    }
}

static int read_lists(struct plan_security *security,
                      ls_config_section *section)
{
    ls_security *judge = NULL;
    const int status = ls_security_none(&judge);
    if (status != LS_OK)
        return status;
    read_hosts(&security->allow, section, "allow", judge);
    read_hosts(&security->deny, section, "deny", judge);
    ls_security_destroy(&judge);
    return LS_OK;
}

int plan_read_security(struct plan *plan, ls_config_section *root)
{
    struct plan_security *security = &plan->security;
    ls_config_section *section = ls_config_section_at(root, "security");
    const bool chosen = ls_config_has(section, "mode");
    security->mode = ls_config_choice(section, "mode", 0, mode_names) == 0
                         ? LS_SECURITY_PLAIN
                         : LS_SECURITY_CURVE;
    int status = read_keys(plan, section);
    if (status == LS_OK)
        status = read_lists(security, section);
    if (!plan->world.insecure)
        return status;
    if (chosen)
        ls_config_problem(section, "mode",
                          "world: {insecure: true} needs no proof of identity, "
                          "so it excludes a mode; leave one of them out");
    security->mode = LS_SECURITY_NONE;
    return status;
}

void plan_fini_security(struct plan_security *security)
{
    free(security->keys);
    security->keys = NULL;
}

bool plan_has_keys(const struct plan *plan)
{
    return plan->security.mode == LS_SECURITY_CURVE;
}

bool plan_has_secret(const struct plan *plan)
{
    return plan->security.mode == LS_SECURITY_PLAIN &&
           plan->world.transport != PLAN_INPROC;
}

const char *plan_security_text(const struct plan *plan)
{
    switch (plan->security.mode) {
    case LS_SECURITY_CURVE:
        return "each with its own key, encrypted";
    case LS_SECURITY_NONE:
        return "insecure: anyone who can reach them may speak";
    case LS_SECURITY_PLAIN:
        break;
    }
    return plan_has_secret(plan)
               ? "nodes that know the secret of the job may speak"
               : "within one process";
}

const char *plan_security_warning(const struct plan *plan)
{
    return plan->world.insecure
               ? "insecure: true: anyone who can reach the nodes of this job "
                 "may "
                 "speak to them, and their traffic is not encrypted"
               : NULL;
}

bool plan_suits(const struct plan *plan, uint32_t id, const char *role,
                const char *labels)
{
    char words[PLAN_ROLE_MAX];
    size_t index;
    if (plan_find(plan, id, &index) == LS_OK &&
        strcmp(role, plan_role_words(plan, index, words)) == 0 &&
        strcmp(labels, PLAN_LABEL) == 0)
        return true;
    bool claims = word_lists_have(role, labels, PLAN_LABEL);
    const size_t n = plan_is_service(plan) ? 0 : plan->n_nodes;
    for (size_t i = 0; i < n && !claims; i++) {
        (void)plan_role_words(plan, i, words);
        claims = word_list_meets(words, role) || word_list_meets(words, labels);
    }
    return !claims;
}
