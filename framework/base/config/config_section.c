/* Sections and lists of a configuration, and keys that nobody asked for. */
#include "config_parts.h"

#include <string.h>

/* Where a value is, as its path: nodes.0.bind. */
struct path_text {
    char text[240];
    size_t used;
};

static void append(struct path_text *path, const char *text)
{
    const int length =
        snprintf(path->text + path->used, sizeof path->text - path->used,
                 "%s%s", path->used > 0 ? "." : "", text);
    path->used += (size_t)length;
    if (path->used >= sizeof path->text)
        path->used = sizeof path->text - 1;
}

static void append_index(struct path_text *path, size_t index)
{
    char number[24];
    if (index == LS_CONFIG_NO_INDEX)
        return;
    snprintf(number, sizeof number, "%zu", index);
    append(path, number);
}

static void append_section(struct path_text *path,
                           const ls_config_section *section)
{
    if (section->parent == NULL)
        return;
    append_section(path, section->parent);
    append(path, section->key);
    append_index(path, section->index);
}

static struct path_text path_of(const ls_config_section *section,
                                const char *key, size_t index)
{
    struct path_text path = {.used = 0};
    append_section(&path, section);
    append(&path, key);
    append_index(&path, index);
    return path;
}

static bool is_asked(const ls_config_section *section, const char *key)
{
    for (size_t i = 0; i < section->n_asked; i++)
        if (strcmp(section->asked[i], key) == 0)
            return true;
    return false;
}

static void note_asked(ls_config_section *section, const char *key)
{
    if (is_asked(section, key))
        return;
    ls_config *const config = section->config;
    const char *const copy = ls_config_copy(config, key, strlen(key));
    const char **const asked =
        copy == NULL ? NULL
                     : ls_config_grow(config, section->asked, section->n_asked,
                                      &section->asked_capacity, sizeof(*asked));
    if (asked == NULL)
        return;
    section->asked = asked;
    asked[section->n_asked++] = copy;
}

static const struct config_entry *find(const ls_config_section *section,
                                       const char *key)
{
    return section->node != NULL ? ls_config_find(section->node, key) : NULL;
}

const struct config_entry *ls_config_ask(ls_config_section *section,
                                         const char *key)
{
    note_asked(section, key);
    return find(section, key);
}

void ls_config_must_be(const ls_config_section *section, const char *key,
                       size_t index, const struct config_node *node,
                       const char *wanted, const char *hint)
{
    char found[120];
    ls_config_note(section->config, &node->place, "\"%s\" must be %s, not %s%s",
                   path_of(section, key, index).text, wanted,
                   ls_config_describe(node, found, sizeof found), hint);
}

bool ls_config_has(ls_config_section *section, const char *key)
{
    return ls_config_ask(section, key) != NULL;
}

bool ls_config_require(ls_config_section *section, const char *key)
{
    if (ls_config_ask(section, key) != NULL)
        return true;
    if (!section->broken)
        ls_config_note(section->config, &section->place, "missing key \"%s\"",
                       path_of(section, key, LS_CONFIG_NO_INDEX).text);
    return false;
}

/* A section is made once, so that what is asked of it adds up. */
static ls_config_section *child(ls_config_section *section, const char *key,
                                size_t index)
{
    for (ls_config_section *at = section->children; at != NULL; at = at->next)
        if (at->index == index && strcmp(at->key, key) == 0)
            return at;
    ls_config *const config = section->config;
    ls_config_section *const made = ls_config_allocate(config, sizeof *made);
    const char *const copy = ls_config_copy(config, key, strlen(key));
    if (made == NULL || copy == NULL)
        return &config->nowhere;
    *made = (ls_config_section){.config = config,
                                .parent = section,
                                .key = copy,
                                .index = index,
                                .place = section->place,
                                .broken = section->broken,
                                .next = section->children};
    section->children = made;
    return made;
}

ls_config_section *ls_config_section_at(ls_config_section *section,
                                        const char *key)
{
    const struct config_entry *const entry = ls_config_ask(section, key);
    ls_config_section *const below = child(section, key, LS_CONFIG_NO_INDEX);
    if (entry == NULL || below == &section->config->nowhere)
        return below;
    below->place = entry->place;
    if (entry->value->kind == CONFIG_MAPPING) {
        below->node = entry->value;
    } else if (entry->value->kind != CONFIG_NULL) {
        below->broken = true;
        ls_config_must_be(section, key, LS_CONFIG_NO_INDEX, entry->value,
                          "a mapping", "");
    }
    return below;
}

/* The list under a key; NULL when there is none, or nothing in it. */
static const struct config_node *list_of(ls_config_section *section,
                                         const char *key)
{
    const struct config_entry *const entry = ls_config_ask(section, key);
    if (entry == NULL || entry->value->kind == CONFIG_NULL)
        return NULL;
    if (entry->value->kind == CONFIG_LIST)
        return entry->value;
    ls_config_must_be(section, key, LS_CONFIG_NO_INDEX, entry->value,
                      "a list of mappings", "");
    return NULL;
}

size_t ls_config_n_sections(ls_config_section *section, const char *key)
{
    const struct config_node *const list = list_of(section, key);
    if (list == NULL)
        return 0;
    for (size_t i = 0; i < list->n_entries; i++)
        if (list->entries[i].value->kind != CONFIG_MAPPING)
            ls_config_must_be(section, key, i, list->entries[i].value,
                              "a mapping", "");
    return list->n_entries;
}

ls_config_section *ls_config_item(ls_config_section *section, const char *key,
                                  size_t index)
{
    const struct config_node *const list = list_of(section, key);
    ls_config_section *const item = child(section, key, index);
    if (list == NULL || index >= list->n_entries ||
        item == &section->config->nowhere)
        return item;
    struct config_node *const node = list->entries[index].value;
    item->place = node->place;
    if (node->kind == CONFIG_MAPPING) {
        item->node = node;
    } else {
        item->broken = true;
        ls_config_must_be(section, key, index, node, "a mapping", "");
    }
    return item;
}

void ls_config_problem(ls_config_section *section, const char *key,
                       const char *format, ...)
{
    const struct config_place *place = &section->place;
    const struct config_entry *const entry =
        key != NULL ? ls_config_ask(section, key) : NULL;
    if (entry != NULL)
        place = entry->value->entries != NULL ? &entry->place
                                              : &entry->value->place;
    va_list arguments;
    va_start(arguments, format);
    ls_config_vnote(section->config, place, format, arguments);
    va_end(arguments);
}

void ls_config_accept_all(ls_config_section *section)
{
    section->accept_all = true;
}

/* The section at or below this one in which the key is known; NULL: none. */
static const ls_config_section *home_of(const ls_config_section *section,
                                        const char *key)
{
    if (is_asked(section, key))
        return section;
    const ls_config_section *home = NULL;
    for (const ls_config_section *below = section->children;
         below != NULL && home == NULL; below = below->next)
        home = home_of(below, key);
    return home;
}

static void note_unknown_key(const ls_config_section *section,
                             const struct config_entry *entry)
{
    struct path_text path;
    const char *meant =
        ls_nearest(entry->key, section->asked, section->n_asked);
    const struct config_quote key = ls_config_quote(entry->key);
    const ls_config_section *const home =
        meant == NULL ? home_of(&section->config->top, entry->key) : NULL;
    if (home != NULL) { /* right, but for where it stands */
        path = path_of(home, entry->key, LS_CONFIG_NO_INDEX);
        meant = path.text;
    }
    if (meant != NULL) {
        ls_config_note(section->config, &entry->place,
                       "unknown key \"%s\"; did you mean \"%s\"?", key.text,
                       meant);
        return;
    }
    char known[200] = "";
    size_t used = 0;
    for (size_t i = 0; i < section->n_asked && used < sizeof known; i++)
        used += (size_t)snprintf(
            known + used, sizeof known - used, "%s%s",
            i > 0 ? ", " : "; known here: ", section->asked[i]);
    ls_config_note(section->config, &entry->place, "unknown key \"%s\"%s%s",
                   key.text, known, used >= sizeof known ? "..." : "");
}

static void note_unknown(const ls_config_section *section)
{
    if (section->accept_all)
        return;
    const struct config_node *const node = section->node;
    for (size_t i = 0; node != NULL && i < node->n_entries; i++)
        if (!is_asked(section, node->entries[i].key))
            note_unknown_key(section, &node->entries[i]);
    for (const ls_config_section *below = section->children; below != NULL;
         below = below->next)
        note_unknown(below);
}

void ls_config_note_unknown(ls_config *config)
{
    note_unknown(&config->top);
}

uint64_t ls_config_section_hash(const ls_config_section *section)
{
    const struct config_node none = {.kind = CONFIG_MAPPING};
    return ls_config_hash_node(section->node != NULL ? section->node : &none);
}
