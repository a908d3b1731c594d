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
    return LS_OK;
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
