/* Words of YAML as values, by the core schema of YAML 1.2: yes, no, on and off
 * are text, 010 is ten.
 * Source: YAML 1.2.2, 10.3.2. */
#include "config_parts.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_one_of(const char *text, const char *const *words)
{
    for (size_t i = 0; words[i] != NULL; i++)
        if (strcmp(text, words[i]) == 0)
            return true;
    return false;
}

static const char *skip_sign(const char *text)
{
    return *text == '-' || *text == '+' ? text + 1 : text;
}

static const char *skip_digits(const char *text)
{
    return text + strspn(text, "0123456789");
}

/* The base of an integer, or 0 when it is none. */
static int integer_base(const char *text)
{
    if (strncmp(text, "0x", 2) == 0)
        return text[2] != '\0' &&
                       text[2 + strspn(text + 2, "0123456789abcdefABCDEF")] ==
                           '\0'
                   ? 16
                   : 0;
    if (strncmp(text, "0o", 2) == 0)
        return text[2] != '\0' && text[2 + strspn(text + 2, "01234567")] == '\0'
                   ? 8
                   : 0;
    const char *const digits = skip_sign(text);
    return *digits != '\0' && *skip_digits(digits) == '\0' ? 10 : 0;
}

static bool is_decimal(const char *text)
{
    const char *const start = skip_sign(text);
    const char *at = skip_digits(start);
    size_t n_digits = (size_t)(at - start);
    if (*at == '.') {
        const char *const fraction = at + 1;
        at = skip_digits(fraction);
        n_digits += (size_t)(at - fraction);
    }
    if (n_digits == 0)
        return false;
    if (*at == 'e' || *at == 'E') {
        const char *const exponent = skip_sign(at + 1);
        at = skip_digits(exponent);
        if (at == exponent)
            return false;
    }
    return *at == '\0';
}

static bool is_not_finite(const char *text, double *out)
{
    static const char *const infinite[] = {".inf", ".Inf", ".INF", NULL};
    static const char *const nan_words[] = {".nan", ".NaN", ".NAN", NULL};
    if (is_one_of(text, nan_words)) {
        *out = (double)NAN;
        return true;
    }
    if (!is_one_of(skip_sign(text), infinite))
        return false;
    *out = *text == '-' ? -HUGE_VAL : HUGE_VAL;
    return true;
}

/* strtod() with the point as decimal mark, whatever the program's locale. */
static double read_number(const char *text)
{
    const locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (plain == (locale_t)0)
        return strtod(text, NULL);
    const locale_t before = uselocale(plain);
    const double number = strtod(text, NULL);
    uselocale(before);
    freelocale(plain);
    return number;
}

static void resolve_integer(struct config_node *node, int base)
{
    const char *const digits = base == 8 ? node->text + 2 : node->text;
    errno = 0;
    const long long integer = strtoll(digits, NULL, base);
    if (errno == 0) {
        node->kind = CONFIG_INTEGER;
        node->as.integer = integer;
        return;
    }
    node->kind = CONFIG_NUMBER;
    node->as.number = base == 8 ? HUGE_VAL : read_number(node->text);
}

void ls_config_resolve(struct config_node *node)
{
    static const char *const nothing[] = {"",     "~",    "null",
                                          "Null", "NULL", NULL};
    static const char *const yes[] = {"true", "True", "TRUE", NULL};
    static const char *const no[] = {"false", "False", "FALSE", NULL};
    const char *const text = node->text;
    const int base = integer_base(text);
    double number;
    if (base != 0) {
        resolve_integer(node, base);
    } else if (is_decimal(text)) {
        node->kind = CONFIG_NUMBER;
        node->as.number = read_number(text);
    } else if (is_not_finite(text, &number)) {
        node->kind = CONFIG_NUMBER;
        node->as.number = number;
    } else if (is_one_of(text, nothing)) {
        node->kind = CONFIG_NULL;
    } else if (is_one_of(text, yes) || is_one_of(text, no)) {
        node->kind = CONFIG_BOOL;
        node->as.truth = is_one_of(text, yes);
    } else {
        node->kind = CONFIG_TEXT;
    }
}

static bool is_blank(char character)
{
    return character == ' ' || character == '\t';
}

/* Pass the line breaks at `at`, and the blanks around them. */
static const char *pass_breaks(const char *at, const char *end,
                               size_t *n_breaks)
{
    for (*n_breaks = 0; at < end; at++) {
        if (*at == '\r' && at + 1 < end && at[1] == '\n')
            at++;
        if (*at == '\n' || *at == '\r')
            ++*n_breaks;
        else if (!is_blank(*at))
            break;
    }
    return at;
}

const char *ls_config_unquote(ls_config *config, const char *raw, size_t size)
{
    char *const text = ls_config_allocate(config, size + 1);
    if (text == NULL)
        return NULL;
    const char *const end = raw + size;
    size_t used = 0;
    size_t kept = 0; /* of it, what is not a blank at the end of a line */
    for (const char *at = raw; at < end;) {
        if (*at != '\n' && *at != '\r') {
            text[used++] = *at;
            kept = is_blank(*at) ? kept : used;
            at += *at == '\'' ? 2 : 1;
            continue;
        }
        size_t n_breaks;
        at = pass_breaks(at, end, &n_breaks);
        const size_t n_written = n_breaks > 1 ? n_breaks - 1 : 1;
        memset(text + kept, n_breaks > 1 ? '\n' : ' ', n_written);
        kept += n_written;
        used = kept;
    }
    text[used] = '\0';
    return text;
}

const char *ls_config_describe(const struct config_node *node, char *out,
                               size_t size)
{
    const char *kind = NULL;
    switch (node->kind) {
    case CONFIG_NULL:
        kind = "nothing";
        break;
    case CONFIG_LIST:
        kind = "a list";
        break;
    case CONFIG_MAPPING:
        kind = "a mapping";
        break;
    default:
        break;
    }
    if (kind != NULL)
        snprintf(out, size, "%s", kind);
    else if (node->kind == CONFIG_TEXT)
        snprintf(out, size, "the text \"%s\"",
                 ls_config_quote(node->text).text);
    else
        snprintf(out, size, "%s%s",
                 node->kind == CONFIG_BOOL ? "" : "the number ",
                 ls_config_quote(node->text).text);
    return out;
}
