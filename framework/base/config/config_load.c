/* A configuration out of a file or a string. */
#include "config_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The source lives as long as the config: places point to it. */
static struct config_source *add_source(ls_config *config, const char *name,
                                        const char *text, size_t size)
{
    struct config_source *const source =
        ls_config_allocate(config, sizeof *source);
    if (source == NULL)
        return NULL;
    source->name = ls_config_copy(config, name, strlen(name));
    source->text = ls_config_copy(config, text, size);
    source->size = size;
    source->order = config->n_sources++;
    return source->name != NULL && source->text != NULL ? source : NULL;
}

static int read_root(ls_config *config, const struct config_source *source)
{
    const struct config_place start = {source, 1, 1};
    struct config_node *root = NULL;
    int status = ls_config_read_yaml(config, source, &root);
    if (status != LS_OK)
        return status;
    if (root == NULL || root->kind == CONFIG_NULL)
        status = ls_config_new_node(config, &start, CONFIG_MAPPING, &root);
    if (status != LS_OK)
        return status;
    if (root->kind != CONFIG_MAPPING) {
        char found[120];
        return ls_config_error(LS_ECONFIG, &root->place,
                               "the top must be a mapping (key: value), not %s",
                               ls_config_describe(root, found, sizeof found));
    }
    config->root = root;
    return LS_OK;
}

static int parse(ls_config **out, const char *name, const char *text,
                 size_t size)
{
    if (size > LS_CONFIG_BYTES_MAX)
        return ls_error(LS_ECONFIG, "%s: over %zu bytes", name,
                        LS_CONFIG_BYTES_MAX);
    ls_config *config = calloc(1, sizeof *config);
    if (config == NULL)
        return ls_config_no_memory();
    const struct config_source *const source =
        add_source(config, name, text, size);
    const int status =
        source != NULL ? read_root(config, source) : ls_config_no_memory();
    if (status != LS_OK) {
        ls_config_destroy(&config);
        return status;
    }
    config->top = (ls_config_section){.config = config,
                                      .index = LS_CONFIG_NO_INDEX,
                                      .node = config->root,
                                      .place = config->root->place};
    config->nowhere = config->top;
    config->nowhere.node = NULL;
    config->nowhere.broken = true;
    *out = config;
    return LS_OK;
}

int ls_config_parse(ls_config **out, const char *name, const char *text)
{
    *out = NULL;
    return parse(out, name, text, strlen(text));
}

/* One byte more than is allowed, so that a file over the limit is seen. */
static int read_file(FILE *file, const char *path, char *text, size_t *size)
{
    errno = 0;
    *size = fread(text, 1, LS_CONFIG_BYTES_MAX + 1, file);
    const int os_errno = errno;
    if (ferror(file))
        return ls_error_from(os_errno != 0 ? os_errno : EIO, path);
    return LS_OK;
}

int ls_config_load(ls_config **out, const char *path)
{
    *out = NULL;
    FILE *const file = fopen(path, "rb");
    if (file == NULL)
        return ls_error_from(errno, path);
    char *const text = malloc(LS_CONFIG_BYTES_MAX + 1);
    size_t size = 0;
    int status = text != NULL ? read_file(file, path, text, &size)
                              : ls_config_no_memory();
    fclose(file);
    if (status == LS_OK)
        status = parse(out, path, text, size);
    free(text);
    return status;
}

void ls_config_destroy(ls_config **config)
{
    if (config == NULL || *config == NULL)
        return;
    ls_config_free_blocks(*config);
    free((*config)->report);
    free(*config);
    *config = NULL;
}

ls_config_section *ls_config_root(ls_config *config)
{
    return &config->top;
}

/* A path on its way to a value. */
struct walk {
    ls_config *config;
    struct config_place place; /* of the override */
    const char *path;
    const char *at; /* the key that is next; NULL at the end */
    int status;     /* why a step returned NULL */
};

static const char *next_key(struct walk *walk)
{
    const size_t length = strcspn(walk->at, ".");
    const char *const key = ls_config_copy(walk->config, walk->at, length);
    if (key == NULL)
        walk->status = ls_config_no_memory();
    walk->at = walk->at[length] == '.' ? walk->at + length + 1 : NULL;
    return key;
}

static struct config_entry *
find_item(struct walk *walk, const struct config_node *list, const char *key)
{
    errno = 0;
    const unsigned long index = strtoul(key, NULL, 10);
    if (key[strspn(key, "0123456789")] == '\0' && errno == 0 &&
        index < list->n_entries)
        return &list->entries[index];
    walk->status =
        ls_error(LS_EINVAL,
                 "the path \"%s\" has \"%s\" for an item of a list of %zu, "
                 "numbered from 0",
                 walk->path, key, list->n_entries);
    return NULL;
}

static struct config_entry *
add_pair(struct walk *walk, struct config_node *mapping, const char *key)
{
    struct config_node *empty = NULL;
    walk->status =
        ls_config_new_node(walk->config, &walk->place, CONFIG_NULL, &empty);
    if (walk->status == LS_OK)
        walk->status =
            ls_config_add(walk->config, mapping, key, &walk->place, empty);
    return walk->status == LS_OK ? &mapping->entries[mapping->n_entries - 1]
                                 : NULL;
}

/* The place under a key, made when a mapping does not have it. */
static struct config_entry *find_slot(struct walk *walk,
                                      struct config_node *node, const char *key)
{
    if (node->kind == CONFIG_NULL)
        node->kind = CONFIG_MAPPING;
    if (node->kind == CONFIG_LIST)
        return find_item(walk, node, key);
    if (node->kind == CONFIG_MAPPING) {
        struct config_entry *const found = ls_config_find(node, key);
        return found != NULL ? found : add_pair(walk, node, key);
    }
    char found[120];
    walk->status =
        ls_error(LS_EINVAL, "the path \"%s\" has \"%s\" below %s", walk->path,
                 key, ls_config_describe(node, found, sizeof found));
    return NULL;
}

/* Before the walk, which makes mappings on its way. */
static int check_path(const char *path)
{
    size_t n_keys = 0;
    for (const char *at = path;; at++) {
        const size_t length = strcspn(at, ".");
        if (length == 0)
            return ls_error(LS_EINVAL, "the path \"%s\" has an empty key",
                            path);
        n_keys++;
        at += length;
        if (*at == '\0')
            break;
    }
    if (n_keys > LS_CONFIG_DEPTH_MAX)
        return ls_error(LS_EINVAL, "the path \"%s\" is over %d keys long", path,
                        LS_CONFIG_DEPTH_MAX);
    return LS_OK;
}

static int put_value(struct walk *walk, struct config_node *value)
{
    struct config_entry *slot = NULL;
    const int status = check_path(walk->path);
    if (status != LS_OK)
        return status;
    do {
        struct config_node *const node =
            slot != NULL ? slot->value : walk->config->root;
        const char *const key = next_key(walk);
        slot = key != NULL ? find_slot(walk, node, key) : NULL;
        if (slot == NULL)
            return walk->status;
    } while (walk->at != NULL);
    slot->value = value;
    return LS_OK;
}

int ls_config_set(ls_config *config, const char *path, const char *value)
{
    if (config->top.n_asked > 0)
        return ls_error(LS_ESTATE, "%s: set it before anything is read", path);
    if (strlen(value) > LS_CONFIG_BYTES_MAX)
        return ls_error(LS_ELIMIT, "%s: over %zu bytes", path,
                        LS_CONFIG_BYTES_MAX);
    const struct config_source *const source =
        add_source(config, path, value, strlen(value));
    if (source == NULL)
        return ls_config_no_memory();
    struct walk walk = {.config = config,
                        .place = {source, 1, 1},
                        .path = source->name,
                        .at = source->name};
    struct config_node *node = NULL;
    int status = ls_config_read_yaml(config, source, &node);
    if (status == LS_OK && node == NULL)
        status = ls_config_new_node(config, &walk.place, CONFIG_NULL, &node);
    if (status == LS_OK)
        status = put_value(&walk, node);
    return status == LS_ECONFIG ? LS_EINVAL : status;
}

uint64_t ls_config_hash(const ls_config *config)
{
    return ls_config_hash_node(config->root);
}
