/* config_parts.h - what the parts of ls_config share.
 *
 *   config_check.c   what libfyaml does not bear
 *   config_yaml.c    YAML text to a tree of nodes: the one user of libfyaml
 *   config_tree.c    nodes, and the memory of a config: an arena
 *   config_scalar.c  what a word means: a number, true, text
 *   config_nearest.c the nearest word
 *   config_report.c  problems: noted, sorted, printed with the line and a caret
 *   config_load.c    a whole config: read, overridden, hashed
 *   config_section.c sections, what was asked for, and what was not
 *   config.c         the getters of values
 *
 * All that a config points to lives in its arena, until it is destroyed. */
#ifndef LOCKSTEP_CONFIG_PARTS_H
#define LOCKSTEP_CONFIG_PARTS_H

#include <stdarg.h>
#include <stdio.h>

#include "lockstep/config.h"

/* What a file may hold, its aliases written out. */
#define LS_CONFIG_BYTES_MAX  ((size_t)1 << 20)
#define LS_CONFIG_DEPTH_MAX  32
#define LS_CONFIG_VALUES_MAX 16384

#define LS_CONFIG_NO_INDEX SIZE_MAX

/* A text that was read: the file, or the value of an override. */
struct config_source {
    const char *name;
    const char *text;
    size_t size;
    size_t order; /* of reading */
};

/* line and column count from 1; a column is a character. */
struct config_place {
    const struct config_source *source;
    int line;
    int column;
};

enum config_kind {
    CONFIG_NULL,
    CONFIG_BOOL,
    CONFIG_INTEGER, /* in int64_t */
    CONFIG_NUMBER,  /* any other number, huge integers among them */
    CONFIG_TEXT,
    CONFIG_LIST,
    CONFIG_MAPPING
};

/* A pair of a mapping, or an item of a list, which has no key. */
struct config_entry {
    const char *key;
    uint64_t key_hash;
    struct config_place place; /* of the key */
    struct config_node *value;
};

struct config_node {
    enum config_kind kind;
    struct config_place place;
    const char *text; /* of a scalar, as written, without quotes */
    union {
        bool truth;
        int64_t integer;
        double number;
    } as;
    struct config_entry *entries;
    size_t n_entries;
    size_t capacity;
};

struct config_problem {
    struct config_place place;
    size_t order; /* of noting */
    const char *text;
};

struct config_block; /* of the arena */

struct ls_config_section {
    ls_config *config;
    ls_config_section *parent; /* NULL: the root */
    const char *key;           /* under which the parent has it */
    size_t index;              /* in the list there, or LS_CONFIG_NO_INDEX */
    struct config_node *node;  /* a mapping; NULL: the file does not have it */
    struct config_place place;
    const char **asked; /* the keys asked for */
    size_t n_asked;
    size_t asked_capacity;
    bool accept_all;
    bool broken; /* something else is where it should be, and that is noted */
    ls_config_section *children; /* the sections asked for below it */
    ls_config_section *next;     /* the parent's next child */
};

struct ls_config {
    struct config_block *blocks; /* own */
    struct config_node *root;
    size_t n_values;
    size_t n_sources;
    struct config_problem *problems;
    size_t n_problems;
    size_t problems_capacity;
    size_t n_more_problems; /* left out */
    ls_config_section top;
    ls_config_section nowhere; /* stands in when there is no memory */
    bool no_memory;            /* somewhere on the way */
    char *report;              /* own */
};

/* config_tree.c */

/* Zeroed memory; NULL, and config->no_memory, when there is none. */
void *ls_config_allocate(ls_config *config, size_t size);
/* The `size` bytes and a NUL. */
const char *ls_config_copy(ls_config *config, const char *text, size_t size);
/* Room for one more in an array of `n` elements; the array, perhaps moved: keep
 * it, since its capacity has changed. NULL: no memory, and nothing has. */
void *ls_config_grow(ls_config *config, void *array, size_t n, size_t *capacity,
                     size_t element_size);
void ls_config_free_blocks(ls_config *config);

int ls_config_no_memory(void); /* LS_ENOMEM */
/* Errors: LS_ECONFIG over LS_CONFIG_VALUES_MAX; LS_ENOMEM. */
LS_MUST_USE int ls_config_new_node(ls_config *config,
                                   const struct config_place *place,
                                   enum config_kind kind,
                                   struct config_node **out);
/* All of it, for an alias. depth: at which it will stand.
 * Errors: as above; LS_ECONFIG also: nested too deep. */
LS_MUST_USE int ls_config_copy_node(ls_config *config,
                                    const struct config_node *node,
                                    const struct config_place *alias,
                                    size_t depth, struct config_node **out);
struct config_entry *ls_config_find(const struct config_node *mapping,
                                    const char *key);
/* key: NULL in a list; in a mapping it must be new there; already copied. */
LS_MUST_USE int ls_config_add(ls_config *config, struct config_node *parent,
                              const char *key, const struct config_place *place,
                              struct config_node *value);
uint64_t ls_config_hash_node(const struct config_node *node);

/* config_scalar.c */

/* Set the kind and value of a scalar that is written without quotes. */
void ls_config_resolve(struct config_node *node);
/* The text between single quotes, written out: '' is a quote, a line break is a
 * space, n more of them are n line breaks. NULL when there is no memory.
 * Source: YAML 1.2.2, 7.3.2. */
const char *ls_config_unquote(ls_config *config, const char *raw, size_t size);
/* What a value is, for messages: the text "abc". Returns `out`. */
const char *ls_config_describe(const struct config_node *node, char *out,
                               size_t size);

/* config_check.c */

/* Whether all is UTF-8, without control characters, which libfyaml drops or
 * stops at without a line, and without what it does not survive.
 * Errors: LS_ECONFIG. */
LS_MUST_USE int ls_config_check_text(const struct config_source *source);

/* config_yaml.c */

/* Read a source; *out is NULL when there is nothing in it.
 * Errors: LS_ECONFIG, LS_ENOMEM. */
LS_MUST_USE int ls_config_read_yaml(ls_config *config,
                                    const struct config_source *source,
                                    struct config_node **out);

/* config_section.c */

/* The entry under a key, NULL when there is none; it is thereby asked for. */
const struct config_entry *ls_config_ask(ls_config_section *section,
                                         const char *key);
/* Note that the value must be something else. index: of a list's item, or
 * LS_CONFIG_NO_INDEX. wanted: "a whole number". hint: "", or what to do. */
void ls_config_must_be(const ls_config_section *section, const char *key,
                       size_t index, const struct config_node *node,
                       const char *wanted, const char *hint);
/* Note every key that was not asked for, in this section and below. */
void ls_config_note_unknown(ls_config *config);

/* config_report.c */

/* Say what is wrong at a place, with its line, for ls_error_text(). */
int ls_config_error(int status, const struct config_place *place,
                    const char *format, ...) LS_PRINTF(3, 4);
/* The same, later, in ls_config_finish(). */
void ls_config_note(ls_config *config, const struct config_place *place,
                    const char *format, ...) LS_PRINTF(3, 4);
void ls_config_vnote(ls_config *config, const struct config_place *place,
                     const char *format, va_list arguments);
/* Sort the problems and print them into config->report. */
LS_MUST_USE int ls_config_print_report(ls_config *config);

/* Text from a file, made fit for a message: cut, and without control
 * characters. */
struct config_quote {
    char text[84];
};
struct config_quote ls_config_quote(const char *text);

#endif
