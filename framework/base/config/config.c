#include "lockstep/config.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "config_parts.h"

/* What a value must be, for a message: "a number from 0 to 1". */
struct wanted {
    char text[240];
};

static struct wanted wanted_range(const char *what, const char *min,
                                  const char *max)
{
    struct wanted wanted;
    const char *const before = min != NULL && max != NULL ? " from "
                               : min != NULL              ? ", at least "
                                                          : "";
    const char *const between = min != NULL && max != NULL ? " to "
                                : max != NULL              ? ", at most "
                                                           : "";
    snprintf(wanted.text, sizeof wanted.text, "%s%s%s%s%s", what, before,
             min != NULL ? min : "", between, max != NULL ? max : "");
    return wanted;
}

static const struct config_node *value_of(ls_config_section *section,
                                          const char *key)
{
    const struct config_entry *const entry = ls_config_ask(section, key);
    return entry != NULL ? entry->value : NULL;
}

static void must_be(const ls_config_section *section, const char *key,
                    const struct config_node *node, const char *wanted)
{
    ls_config_must_be(section, key, LS_CONFIG_NO_INDEX, node, wanted, "");
}

/* Such a number needs to hear of a limit that all others keep. */
static bool is_below_all(const struct config_node *node)
{
    return node->kind == CONFIG_NUMBER && node->as.number <= -0x1p63;
}

static bool is_above_all(const struct config_node *node)
{
    return node->kind == CONFIG_NUMBER && node->as.number >= 0x1p63;
}

int64_t ls_config_int(ls_config_section *section, const char *key,
                      int64_t fallback, int64_t min, int64_t max)
{
    const struct config_node *const node = value_of(section, key);
    if (node == NULL)
        return fallback;
    if (node->kind == CONFIG_INTEGER && node->as.integer >= min &&
        node->as.integer <= max)
        return node->as.integer;
    char low[24];
    char high[24];
    snprintf(low, sizeof low, "%" PRId64, min);
    snprintf(high, sizeof high, "%" PRId64, max);
    const bool has_min = min > INT64_MIN || is_below_all(node);
    const bool has_max = max < INT64_MAX || is_above_all(node);
    must_be(section, key, node,
            wanted_range("a whole number", has_min ? low : NULL,
                         has_max ? high : NULL)
                .text);
    return fallback;
}

/* Whether the value is a finite number. */
static bool read_finite(const struct config_node *node, double *out)
{
    if (node->kind == CONFIG_INTEGER)
        *out = (double)node->as.integer;
    else if (node->kind == CONFIG_NUMBER)
        *out = node->as.number;
    else
        return false;
    return isfinite(*out);
}

double ls_config_double(ls_config_section *section, const char *key,
                        double fallback, double min, double max)
{
    const struct config_node *const node = value_of(section, key);
    if (node == NULL)
        return fallback;
    double number;
    if (read_finite(node, &number) && number >= min && number <= max)
        return number;
    char low[40];
    char high[40];
    snprintf(low, sizeof low, "%.15g", min);
    snprintf(high, sizeof high, "%.15g", max);
    must_be(section, key, node,
            wanted_range("a finite number", min > -DBL_MAX ? low : NULL,
                         max < DBL_MAX ? high : NULL)
                .text);
    return fallback;
}

bool ls_config_bool(ls_config_section *section, const char *key, bool fallback)
{
    const struct config_node *const node = value_of(section, key);
    if (node == NULL)
        return fallback;
    if (node->kind == CONFIG_BOOL)
        return node->as.truth;
    must_be(section, key, node, "true or false");
    return fallback;
}

static bool is_scalar(const struct config_node *node)
{
    return node->kind != CONFIG_NULL && node->kind != CONFIG_LIST &&
           node->kind != CONFIG_MAPPING;
}

/* The text of a value; else NULL, and a problem. */
static const char *text_of(const ls_config_section *section, const char *key,
                           size_t index, const struct config_node *node,
                           const char *wanted)
{
    if (node->kind == CONFIG_TEXT)
        return node->text;
    ls_config_must_be(section, key, index, node, wanted,
                      is_scalar(node) ? "; put it in quotes" : "");
    return NULL;
}

const char *ls_config_string(ls_config_section *section, const char *key,
                             const char *fallback)
{
    const struct config_node *const node = value_of(section, key);
    if (node == NULL)
        return fallback;
    const char *const text =
        text_of(section, key, LS_CONFIG_NO_INDEX, node, "a text");
    return text != NULL ? text : fallback;
}

static void note_no_choice(ls_config_section *section, const char *key,
                           const struct config_node *node,
                           const char *const *names, size_t n)
{
    struct wanted wanted;
    size_t used = 0;
    for (size_t i = 0; i < n && used < sizeof wanted.text; i++)
        used += (size_t)snprintf(wanted.text + used, sizeof wanted.text - used,
                                 "%s%s", i > 0 ? ", " : "one of ", names[i]);
    if (n == 0)
        snprintf(wanted.text, sizeof wanted.text, "left out");
    const char *const nearest =
        is_scalar(node) ? ls_nearest(node->text, names, n) : NULL;
    char hint[120] = "";
    if (nearest != NULL)
        snprintf(hint, sizeof hint, "; did you mean \"%s\"?", nearest);
    ls_config_must_be(section, key, LS_CONFIG_NO_INDEX, node, wanted.text,
                      hint);
}

int ls_config_choice(ls_config_section *section, const char *key, int fallback,
                     const char *const *names)
{
    const struct config_node *const node = value_of(section, key);
    if (node == NULL)
        return fallback;
    size_t n = 0;
    for (; names[n] != NULL; n++)
        if (is_scalar(node) && strcmp(node->text, names[n]) == 0)
            return (int)n;
    note_no_choice(section, key, node, names, n);
    return fallback;
}

size_t ls_config_n_strings(ls_config_section *section, const char *key)
{
    const struct config_node *const node = value_of(section, key);
    if (node == NULL || node->kind == CONFIG_NULL)
        return 0;
    if (node->kind != CONFIG_LIST)
        return text_of(section, key, LS_CONFIG_NO_INDEX, node,
                       "a list of texts") != NULL;
    bool all_texts = true;
    for (size_t i = 0; i < node->n_entries; i++)
        if (text_of(section, key, i, node->entries[i].value, "a text") == NULL)
            all_texts = false;
    return all_texts ? node->n_entries : 0;
}

const char *ls_config_string_at(ls_config_section *section, const char *key,
                                size_t index)
{
    const struct config_node *node = value_of(section, key);
    if (node == NULL)
        return NULL;
    if (node->kind == CONFIG_LIST)
        node = index < node->n_entries ? node->entries[index].value : NULL;
    else if (index > 0)
        node = NULL;
    return node != NULL && node->kind == CONFIG_TEXT ? node->text : NULL;
}

int ls_config_finish(ls_config *config)
{
    const size_t more = config->n_more_problems;
    ls_config_note_unknown(config);
    const int status = ls_config_print_report(config);
    config->n_more_problems = more; /* the next call finds those again */
    if (status != LS_OK)
        return status;
    if (config->no_memory)
        return ls_error(LS_ENOMEM, "no memory for the configuration");
    if (config->n_problems == 0)
        return LS_OK;
    return ls_config_error(LS_ECONFIG, &config->problems[0].place, "%s",
                           config->problems[0].text);
}

const char *ls_config_report(const ls_config *config)
{
    return config->report != NULL ? config->report : "";
}
