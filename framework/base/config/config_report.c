/* Every problem of a configuration, with its line and a caret. */
#include "config_parts.h"

#include <stdlib.h>
#include <string.h>

#include "utf8.h"

/* Problems that are kept; of a broken file the rest is only counted. */
#define PROBLEMS_MAX 1000

/* Columns of a line that are shown. */
#define COLUMNS_SHOWN 96

struct config_quote ls_config_quote(const char *text)
{
    struct config_quote quote = {""};
    const size_t room = sizeof quote.text - sizeof "...";
    size_t used = 0;
    size_t left = strlen(text);
    while (left > 0) {
        size_t size = ls_utf8_character(text, left);
        const bool clean =
            size > 0 && (unsigned char)*text >= 0x20 && *text != 0x7F;
        size = size > 0 ? size : 1;
        if (used + size > room) {
            memcpy(quote.text + used, "...", 3);
            break;
        }
        if (clean)
            memcpy(quote.text + used, text, size);
        else
            quote.text[used] = '?';
        used += clean ? size : 1;
        text += size;
        left -= size;
    }
    return quote;
}

/* The length of a line break of YAML at `at`; 0 for none. */
static size_t break_length(const char *at, const char *end)
{
    if (at >= end || (*at != '\n' && *at != '\r'))
        return 0;
    return *at == '\r' && at + 1 < end && at[1] == '\n' ? 2 : 1;
}

static const char *find_line(const struct config_source *source, int line,
                             size_t *length)
{
    const char *const end = source->text + source->size;
    const char *start = source->text;
    for (int i = 1; i < line && start < end;) {
        const size_t skipped = break_length(start, end);
        start += skipped > 0 ? skipped : 1;
        i += skipped > 0;
    }
    const char *at = start;
    while (at < end && break_length(at, end) == 0)
        at++;
    *length = (size_t)(at - start);
    return start;
}

/* One character that takes one column: a tab would shift the caret. */
static void print_character(FILE *out, const char *character, size_t size)
{
    const unsigned char first = (unsigned char)*character;
    if (first == '\t')
        fputc(' ', out);
    else if (first < 0x20 || first == 0x7F)
        fputc('?', out);
    else
        fwrite(character, 1, size, out);
}

/* The line, and a caret below the column. Of a long line, the part around. */
static void print_excerpt(FILE *out, const struct config_place *place)
{
    size_t left;
    const char *at = find_line(place->source, place->line, &left);
    const int skipped =
        place->column > COLUMNS_SHOWN ? place->column - COLUMNS_SHOWN / 2 : 0;
    const int width = fprintf(out, "\n%3d", place->line) - 1;
    fputs(" | ", out);
    for (int column = 1; left > 0 && column <= skipped + COLUMNS_SHOWN;
         column++) {
        size_t size = ls_utf8_character(at, left);
        size = size > 0 ? size : 1;
        if (column > skipped)
            print_character(out, at, size);
        at += size;
        left -= size;
    }
    fprintf(out, "\n%*s | %*s", width, "", place->column - skipped, "^");
}

static void print_problem(FILE *out, const struct config_place *place,
                          const char *text)
{
    fprintf(out, "%s:%d:%d: %s", place->source->name, place->line,
            place->column, text);
    print_excerpt(out, place);
}

static char *format_text(const char *format, va_list arguments)
{
    char *text = NULL;
    size_t size = 0;
    FILE *const out = open_memstream(&text, &size);
    if (out == NULL)
        return NULL;
    vfprintf(out, format, arguments);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

int ls_config_error(int status, const struct config_place *place,
                    const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *const text = format_text(format, arguments);
    va_end(arguments);
    char *whole = NULL;
    size_t size = 0;
    FILE *const out = text != NULL ? open_memstream(&whole, &size) : NULL;
    if (out != NULL) {
        print_problem(out, place, text);
        if (fclose(out) != 0) {
            free(whole);
            whole = NULL;
        }
    }
    if (whole != NULL)
        ls_error(status, "%s", whole);
    else
        status = ls_error(LS_ENOMEM, "no memory for a message");
    free(whole);
    free(text);
    return status;
}

static bool same_place(const struct config_place *a,
                       const struct config_place *b)
{
    return a->source == b->source && a->line == b->line &&
           a->column == b->column;
}

static bool is_noted(const ls_config *config, const struct config_place *place,
                     const char *text)
{
    for (size_t i = 0; i < config->n_problems; i++)
        if (same_place(&config->problems[i].place, place) &&
            strcmp(config->problems[i].text, text) == 0)
            return true;
    return false;
}

/* A getter may be called twice for one key; its problem is one. */
static void keep_problem(ls_config *config, const struct config_place *place,
                         const char *text)
{
    if (is_noted(config, place, text))
        return;
    if (config->n_problems >= PROBLEMS_MAX) {
        config->n_more_problems++;
        return;
    }
    const char *const copy = ls_config_copy(config, text, strlen(text));
    struct config_problem *const problems =
        copy == NULL
            ? NULL
            : ls_config_grow(config, config->problems, config->n_problems,
                             &config->problems_capacity, sizeof *problems);
    if (problems == NULL)
        return;
    config->problems = problems;
    problems[config->n_problems] = (struct config_problem){
        .place = *place, .order = config->n_problems, .text = copy};
    config->n_problems++;
}

void ls_config_vnote(ls_config *config, const struct config_place *place,
                     const char *format, va_list arguments)
{
    char *const text = format_text(format, arguments);
    if (text != NULL)
        keep_problem(config, place, text);
    else
        config->no_memory = true;
    free(text);
}

void ls_config_note(ls_config *config, const struct config_place *place,
                    const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    ls_config_vnote(config, place, format, arguments);
    va_end(arguments);
}

static int compare_sizes(size_t a, size_t b)
{
    return (a > b) - (a < b);
}

static int compare_problems(const void *a, const void *b)
{
    const struct config_problem *const one = a;
    const struct config_problem *const other = b;
    int order =
        compare_sizes(one->place.source->order, other->place.source->order);
    if (order == 0)
        order = one->place.line - other->place.line;
    if (order == 0)
        order = one->place.column - other->place.column;
    return order != 0 ? order : compare_sizes(one->order, other->order);
}

int ls_config_print_report(ls_config *config)
{
    char *text = NULL;
    size_t size = 0;
    FILE *const out = open_memstream(&text, &size);
    if (out == NULL)
        return ls_error(LS_ENOMEM, "no memory for the report");
    if (config->n_problems > 0)
        qsort(config->problems, config->n_problems, sizeof *config->problems,
              compare_problems);
    for (size_t i = 0; i < config->n_problems; i++) {
        print_problem(out, &config->problems[i].place,
                      config->problems[i].text);
        fputc('\n', out);
    }
    if (config->n_more_problems > 0)
        fprintf(out, "and %zu more problems\n", config->n_more_problems);
    if (fclose(out) != 0) {
        free(text);
        return ls_error(LS_ENOMEM, "no memory for the report");
    }
    free(config->report);
    config->report = text;
    return LS_OK;
}
