#include "keyring_folder.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "keyed_hash.h"
#include "lockstep/log.h"

#define SUFFIX ".cert"

/* ---- the tables --------------------------------------------------------- */

static void free_entry(void **item)
{
    free(*item);
    *item = NULL;
}

void keyring_table_init(struct keyring_table *table)
{
    table->by_key = zhashx_new();
    table->by_id = zhashx_new();
    zhashx_set_destructor(table->by_key, free_entry);
}

void keyring_table_fini(struct keyring_table *table)
{
    zhashx_destroy(&table->by_id);
    zhashx_destroy(&table->by_key);
}

struct id_text {
    char text[16];
};

static struct id_text id_text(uint32_t id)
{
    struct id_text text;
    (void)snprintf(text.text, sizeof text.text, "%" PRIu32, id);
    return text;
}

struct keyring_entry *keyring_table_id(const struct keyring_table *table,
                                       uint32_t id)
{
    return zhashx_lookup(table->by_id, id_text(id).text);
}

struct keyring_entry *keyring_table_key(const struct keyring_table *table,
                                        const char *public_key)
{
    return zhashx_lookup(table->by_key, public_key);
}

static int twice(const struct keyring_entry *one,
                 const struct keyring_entry *other, const char *folder,
                 const char *what)
{
    return ls_error(LS_ECONFIG,
                    "%s/%s and %s/%s have the same %s: one key is of one node; "
                    "remove one of them",
                    folder, one->file, folder, other->file, what);
}

int keyring_table_put(struct keyring_table *table,
                      const struct keyring_entry *entry, const char *folder)
{
    const struct certificate *certificate = &entry->certificate;
    const struct keyring_entry *there =
        keyring_table_key(table, certificate->public_key);
    if (there != NULL)
        return twice(there, entry, folder, "key");
    there = certificate->enrolment ? NULL
                                   : keyring_table_id(table, certificate->id);
    if (there != NULL)
        return twice(there, entry, folder, "id");
    struct keyring_entry *copy = malloc(sizeof *copy);
    if (copy == NULL)
        return ls_error(LS_ENOMEM, "no memory for a certificate");
    *copy = *entry;
    (void)zhashx_insert(table->by_key, certificate->public_key, copy);
    if (!certificate->enrolment)
        (void)zhashx_insert(table->by_id, id_text(certificate->id).text, copy);
    return LS_OK;
}

void keyring_table_remove(struct keyring_table *table,
                          struct keyring_entry *entry)
{
    if (!entry->certificate.enrolment)
        zhashx_delete(table->by_id, id_text(entry->certificate.id).text);
    zhashx_delete(table->by_key, entry->certificate.public_key);
}

/* ---- the files ---------------------------------------------------------- */

/* The names of a folder's certificates, sorted: their order on disk is any. */
struct names {
    char **items; /* own, and each of them */
    size_t n, room;
};

static void names_fini(struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->items[i]);
    free(names->items);
}

static bool is_certificate(const char *name)
{
    const size_t size = strlen(name), suffix = strlen(SUFFIX);
    return size > suffix && name[0] != '.' &&
           strcmp(name + size - suffix, SUFFIX) == 0;
}

static int add_name(struct names *names, const char *name)
{
    if (names->n == KEYRING_FILES_MAX)
        return ls_error(LS_ELIMIT, "over %d certificates", KEYRING_FILES_MAX);
    if (names->n == names->room) {
        const size_t room = names->room > 0 ? 2 * names->room : 64;
        char **items = realloc(names->items, room * sizeof *items);
        if (items == NULL)
            return ls_error(LS_ENOMEM, "no memory for names of files");
        names->items = items;
        names->room = room;
    }
    names->items[names->n] = strdup(name);
    if (names->items[names->n] == NULL)
        return ls_error(LS_ENOMEM, "no memory for names of files");
    names->n++;
    return LS_OK;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list(const struct guarded_folder *folder, struct names *out)
{
    /* The stream closes the descriptor that it is given, and a second open
     * begins at the first entry. */
    const int fd = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
    if (entries == NULL) {
        const int failed = errno;
        if (fd >= 0)
            (void)close(fd);
        return ls_error_from(failed, folder->path);
    }
    int status = LS_OK;
    const struct dirent *entry;
    while (status == LS_OK && (entry = readdir(entries)) != NULL)
        if (is_certificate(entry->d_name))
            status = add_name(out, entry->d_name);
    (void)closedir(entries);
    if (status == LS_OK && out->n > 0)
        qsort(out->items, out->n, sizeof *out->items, by_bytes);
    return status;
}

/* A file that cannot be read is part of the hash as such: that it can be again
 * is a change. */
static void hash_file(struct keyed_hash *hash, const char *name, int status,
                      const char *bytes, size_t size)
{
    keyed_hash_bytes(hash, name, strlen(name) + 1);
    keyed_hash_u32(hash, (uint32_t)status);
    keyed_hash_u32(hash, (uint32_t)size);
    keyed_hash_bytes(hash, bytes, size);
}

static int read_file(const struct guarded_folder *folder, const char *name,
                     struct keyring_table *into, struct keyed_hash *hash)
{
    struct keyring_entry entry = {.signs = true};
    char bytes[CERTIFICATE_MAX + 1];
    size_t size = 0;
    int status = guarded_read(folder, name, GUARD_WRITING, bytes,
                              CERTIFICATE_MAX, &size);
    hash_file(hash, name, status, bytes, size);
    if (into == NULL)
        return LS_OK;
    if (status == LS_OK && strlen(name) >= sizeof entry.file)
        status = ls_error(LS_ECONFIG, "its name is too long");
    if (status == LS_OK)
        status = certificate_read(bytes, size, &entry.certificate);
    if (status != LS_OK) {
        ls_log_warn("certificate %s/%s is not used: %s", folder->path, name,
                    ls_error_text());
        return LS_OK;
    }
    memcpy(entry.file, name, strlen(name) + 1);
    return keyring_table_put(into, &entry, folder->path);
}

int keyring_folder_read(const char *path, struct keyring_table *into,
                        uint8_t hash[KEYRING_HASH_BYTES])
{
    struct guarded_folder folder;
    struct names names = {0};
    struct keyed_hash state;
    keyed_hash_begin(&state, NULL, "lockstep folder", KEYRING_HASH_BYTES);
    int status = guarded_open(&folder, path, GUARD_WRITING, false);
    if (status == LS_OK)
        status = list(&folder, &names);
    for (size_t i = 0; i < names.n && status == LS_OK; i++)
        status = read_file(&folder, names.items[i], into, &state);
    keyed_hash_u32(&state, (uint32_t)status);
    keyed_hash_end(&state, hash);
    guarded_close(&folder);
    names_fini(&names);
    return status;
}
