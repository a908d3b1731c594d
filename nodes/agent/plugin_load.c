#define _XOPEN_SOURCE 700 /* realpath */
#include "plugin_load.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct plugin {
    void *handle; /* own */
    const struct ls_plugin *table;
    char path[PATH_MAX];
};

/* Where was looked, for the message. */
struct search {
    char found[PATH_MAX];
    char tried[LS_ERROR_TEXT_MAX / 2];
    char nearest[NAME_MAX + 1]; /* to the name, of the plugins there are */
};

static bool try_file(struct search *search, const char *path)
{
    if (access(path, F_OK) == 0) {
        (void)snprintf(search->found, sizeof search->found, "%s", path);
        return true;
    }
    const size_t used = strlen(search->tried);
    (void)snprintf(search->tried + used, sizeof search->tried - used, "%s%s",
                   used == 0 ? "" : ", ", path);
    return false;
}

/* Somebody who misspelt a name is helped most by the right one. */
static void note_nearest(struct search *search, const char *folder,
                         const char *name)
{
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        char word[NAME_MAX + 1];
        const size_t length = strlen(entry->d_name);
        if (length < 4 || strcmp(entry->d_name + length - 3, ".so") != 0)
            continue;
        (void)snprintf(word, sizeof word, "%.*s", (int)length - 3,
                       entry->d_name);
        const char *only = word;
        if (ls_nearest(name, &only, 1) != NULL)
            memcpy(search->nearest, word, sizeof word);
    }
    if (entries != NULL)
        (void)closedir(entries);
}

static bool try_folder(struct search *search, const char *folder, int length,
                       const char *name)
{
    char path[PATH_MAX];
    const int n =
        snprintf(path, sizeof path, "%.*s/%s.so", length, folder, name);
    if (n < 0 || (size_t)n >= sizeof path)
        return false;
    if (try_file(search, path))
        return true;
    path[length] = '\0';
    note_nearest(search, path, name);
    return false;
}

static bool try_environment(struct search *search, const char *name)
{
    const char *folder = getenv("LOCKSTEP_PLUGIN_PATH");
    while (folder != NULL && *folder != '\0') {
        const size_t length = strcspn(folder, ":");
        if (length > 0 && try_folder(search, folder, (int)length, name))
            return true;
        folder += length;
        folder += *folder == ':';
    }
    return false;
}

/* The build folder is laid out as the installation is, so one place relative
 * to the program is right for both. */
static bool try_beside_program(struct search *search, const char *name)
{
    char path[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0)
        return false;
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    if (slash == NULL)
        return false;
    *slash = '\0';
    char folder[PATH_MAX];
    const int length =
        snprintf(folder, sizeof folder, "%s/%s", path, LOCKSTEP_PLUGINS);
    if (length < 0 || (size_t)length >= sizeof folder)
        return false;
    char *real = realpath(folder, NULL); /* for messages without /../ */
    const char *shown = real != NULL ? real : folder;
    const bool found = try_folder(search, shown, (int)strlen(shown), name);
    free(real);
    return found;
}

static bool try_path(struct search *search, const char *name,
                     const char *folder)
{
    char path[PATH_MAX];
    const bool relative = name[0] != '/' && folder[0] != '\0';
    const int n = snprintf(path, sizeof path, "%s%s%s", relative ? folder : "",
                           relative ? "/" : "", name);
    return n > 0 && (size_t)n < sizeof path && try_file(search, path);
}

static int find(struct search *search, const char *name, const char *folder)
{
    if (strchr(name, '/') != NULL) {
        if (try_path(search, name, folder))
            return LS_OK;
    } else if (try_environment(search, name) ||
               try_beside_program(search, name)) {
        return LS_OK;
    }
    const bool near = search->nearest[0] != '\0';
    return ls_error(LS_ENOENT,
                    "there is no plugin \"%s\"%s%s%s Looked for %s. Build "
                    "it, name it by its path, or put its folder into "
                    "LOCKSTEP_PLUGIN_PATH",
                    name, near ? "; did you mean \"" : ".", search->nearest,
                    near ? "\"?" : "", search->tried);
}

/* The function that a table lacks, of those that are called without asking. */
static const char *missing_function(const struct ls_env_ops *env,
                                    const struct ls_policy_ops *policy)
{
    const struct {
        bool is_there;
        const char *name;
    } needed[] = {
        {env->init != NULL, "env.init"},
        {env->fini != NULL, "env.fini"},
        {env->spec != NULL, "env.spec"},
        {env->reset != NULL, "env.reset"},
        {env->step != NULL, "env.step"},
        {policy->init != NULL, "policy.init"},
        {policy->fini != NULL, "policy.fini"},
        {policy->act != NULL, "policy.act"},
        {policy->learn != NULL, "policy.learn"},
        {policy->save != NULL, "policy.save"},
        {policy->load != NULL, "policy.load"},
    };
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (!needed[i].is_there)
            return needed[i].name;
    return NULL;
}

static int check_parts(const char *path, const char *whose,
                       const struct ls_state_part *parts, size_t n)
{
    if (n > 0 && parts == NULL)
        return ls_error(LS_EMISMATCH, "%s: %s.n_parts is %zu, and parts NULL",
                        path, whose, n);
    for (size_t i = 0; i < n; i++) {
        if (parts[i].name == NULL || parts[i].save == NULL ||
            parts[i].load == NULL)
            return ls_error(LS_EMISMATCH,
                            "%s: %s.parts[%zu] lacks its name, save() or "
                            "load()",
                            path, whose, i);
        for (size_t k = 0; k < i; k++)
            if (strcmp(parts[k].name, parts[i].name) == 0)
                return ls_error(LS_EMISMATCH,
                                "%s: two of %s.parts are named "
                                "%s",
                                path, whose, parts[i].name);
    }
    return LS_OK;
}

static int check_hooks(const char *path, const struct ls_policy_ops *policy)
{
    if (policy->n_hooks > 0 && policy->hooks == NULL)
        return ls_error(LS_EMISMATCH,
                        "%s: policy.n_hooks is %zu, and hooks NULL", path,
                        policy->n_hooks);
    for (size_t i = 0; i < policy->n_hooks; i++) {
        const struct ls_policy_hook *hook = &policy->hooks[i];
        if (hook->name == NULL || hook->fn == NULL)
            return ls_error(LS_EMISMATCH,
                            "%s: policy.hooks[%zu] lacks its name or fn()",
                            path, i);
        if ((unsigned)hook->position > LS_AFTER_RUN)
            return ls_error(LS_EMISMATCH,
                            "%s: policy.hooks[%zu], %s, has no position of "
                            "enum ls_hook_position",
                            path, i, hook->name);
    }
    return LS_OK;
}

/* What is missing would be a crash in the middle of a run. */
static int check_ops(const char *path, const struct ls_plugin *table)
{
    const struct ls_env_ops *env = table->env;
    const struct ls_policy_ops *policy = table->policy;
    const char *missing = missing_function(env, policy);
    if (missing != NULL)
        return ls_error(LS_EMISMATCH, "%s: its table has no %s()", path,
                        missing);
    int status = check_parts(path, "env", env->parts, env->n_parts);
    if (status == LS_OK)
        status = check_parts(path, "policy", policy->parts, policy->n_parts);
    return status == LS_OK ? check_hooks(path, policy) : status;
}

static int check_table(const struct plugin *plugin)
{
    const struct ls_plugin *table = plugin->table;
    if (table == NULL)
        return ls_error(LS_EMISMATCH, "%s: ls_plugin() returned nothing",
                        plugin->path);
    /* Only the ABI number is sure to be where we look for it. */
    if (table->abi != LS_PLUGIN_ABI)
        return ls_error(LS_EMISMATCH,
                        "%s is built for plugin ABI %u, and this lockstep "
                        "needs %u: rebuild it with this version's "
                        "lockstep/plugin.h",
                        plugin->path, (unsigned)table->abi,
                        (unsigned)LS_PLUGIN_ABI);
    if (table->name == NULL || table->version == NULL)
        return ls_error(LS_EMISMATCH, "%s: it has no name or no version",
                        plugin->path);
    if (table->env == NULL || table->policy == NULL)
        return ls_error(LS_EMISMATCH,
                        "%s brings no %s; a job needs an environment and a "
                        "policy",
                        plugin->path,
                        table->env == NULL ? "environment" : "policy");
    return check_ops(plugin->path, table);
}

static int open_plugin(struct plugin *plugin)
{
    plugin->handle = dlopen(plugin->path, RTLD_NOW | RTLD_LOCAL);
    if (plugin->handle == NULL)
        return ls_error(LS_EMISMATCH, "this is not a plugin: %s", dlerror());
    void *symbol = dlsym(plugin->handle, "ls_plugin");
    if (symbol == NULL)
        return ls_error(LS_EMISMATCH,
                        "%s is a library, but no plugin: it exports no "
                        "ls_plugin()",
                        plugin->path);
    /* ISO C has no cast from object to function pointers; POSIX promises that
     * dlsym's result is one: copy its bytes. */
    const struct ls_plugin *(*get)(void);
    memcpy(&get, &symbol, sizeof get);
    plugin->table = get();
    return check_table(plugin);
}

int plugin_load(struct plugin **out, const char *name, const char *folder)
{
    struct search search = {.found = ""};
    int status = find(&search, name, folder);
    if (status != LS_OK)
        return status;
    struct plugin *loaded = calloc(1, sizeof *loaded);
    if (loaded == NULL)
        return ls_error(LS_ENOMEM, "loading plugin %s", name);
    memcpy(loaded->path, search.found, sizeof loaded->path);
    status = open_plugin(loaded);
    if (status != LS_OK) {
        plugin_unload(&loaded);
        return status;
    }
    *out = loaded;
    return LS_OK;
}

void plugin_unload(struct plugin **loaded)
{
    if (loaded == NULL || *loaded == NULL)
        return;
    if ((*loaded)->handle != NULL)
        (void)dlclose((*loaded)->handle);
    free(*loaded);
    *loaded = NULL;
}

const struct ls_plugin *plugin_table(const struct plugin *loaded)
{
    return loaded->table;
}

const char *plugin_path(const struct plugin *loaded)
{
    return loaded->path;
}
