#include "lockstep/learner_info.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TD_ERROR "td_error"

enum rule { RULE_MEAN, RULE_MIN, RULE_MAX };

struct number {
    const char *name; /* borrow */
    enum rule rule;
    double value;   /* the sum, the least or the most of what is a number */
    uint64_t count; /* of those */
};

struct ls_learner_info {
    size_t n;
    struct number numbers[LS_LEARNER_INFO_MAX];
    double *td_errors; /* own */
    size_t n_td_errors;
    size_t capacity; /* of td_errors */
};

int ls_learner_info_create(ls_learner_info **out)
{
    *out = NULL;
    ls_learner_info *const info = calloc(1, sizeof *info);
    if (info == NULL)
        return ls_error(LS_ENOMEM, "no memory for a learner info");
    *out = info;
    return LS_OK;
}

void ls_learner_info_destroy(ls_learner_info **info)
{
    if (info == NULL || *info == NULL)
        return;
    free((*info)->td_errors);
    free(*info);
    *info = NULL;
}

void ls_learner_info_clear(ls_learner_info *info)
{
    info->n = 0;
    info->n_td_errors = 0;
}

static enum rule rule_of(const char *name)
{
    if (strncmp(name, "min_", 4) == 0)
        return RULE_MIN;
    return strncmp(name, "max_", 4) == 0 ? RULE_MAX : RULE_MEAN;
}

static const struct number *find(const ls_learner_info *info, const char *name)
{
    for (size_t i = 0; i < info->n; i++)
        if (strcmp(info->numbers[i].name, name) == 0)
            return &info->numbers[i];
    return NULL;
}

/* The place of that name, a new one if need be. */
static int place_of(ls_learner_info *info, const char *name,
                    struct number **out)
{
    const struct number *const known = find(info, name);
    if (known != NULL) {
        *out = &info->numbers[known - info->numbers];
        return LS_OK;
    }
    if (info->n == LS_LEARNER_INFO_MAX)
        return ls_error(LS_ELIMIT,
                        "learner info: \"%s\" would be one more than %d names",
                        name, LS_LEARNER_INFO_MAX);
    *out = &info->numbers[info->n++];
    **out = (struct number){.name = name, .rule = rule_of(name)};
    return LS_OK;
}

/* Add what `count` numbers came to. */
static void add(struct number *number, double value, uint64_t count)
{
    if (count == 0)
        return;
    if (number->count == 0)
        number->value = value;
    else if (number->rule == RULE_MEAN)
        number->value += value;
    else if (number->rule == RULE_MIN ? value < number->value
                                      : value > number->value)
        number->value = value;
    number->count += count;
}

int ls_learner_info_add(ls_learner_info *info, const char *name, double value)
{
    struct number *number;
    const int status = place_of(info, name, &number);
    if (status == LS_OK)
        add(number, value, isnan(value) ? 0U : 1U);
    return status;
}

static int reserve(ls_learner_info *info, size_t n)
{
    if (n <= info->capacity)
        return LS_OK;
    const size_t capacity = n < SIZE_MAX / 2 ? n + n / 2 : n;
    double *const grown =
        capacity > SIZE_MAX / sizeof *grown
            ? NULL
            : realloc(info->td_errors, capacity * sizeof *grown);
    if (grown == NULL)
        return ls_error(LS_ENOMEM, "no memory for %zu TD errors", n);
    info->td_errors = grown;
    info->capacity = capacity;
    return LS_OK;
}

int ls_learner_info_add_td_errors(ls_learner_info *info, const double *values,
                                  size_t n)
{
    if (n == 0)
        return LS_OK;
    const int status = n > SIZE_MAX - info->n_td_errors
                           ? ls_error(LS_ENOMEM, "no memory for TD errors")
                           : reserve(info, info->n_td_errors + n);
    if (status != LS_OK)
        return status;
    memcpy(info->td_errors + info->n_td_errors, values, n * sizeof *values);
    info->n_td_errors += n;
    return LS_OK;
}

int ls_learner_info_merge(ls_learner_info *info, const ls_learner_info *from)
{
    for (size_t i = 0; i < from->n; i++) {
        struct number *number;
        const int status = place_of(info, from->numbers[i].name, &number);
        if (status != LS_OK)
            return status;
        add(number, from->numbers[i].value, from->numbers[i].count);
    }
    /* First room, then from where: an info may be added to itself. */
    const size_t n = from->n_td_errors;
    const int status = n <= SIZE_MAX - info->n_td_errors
                           ? reserve(info, info->n_td_errors + n)
                           : ls_error(LS_ENOMEM, "no memory for TD errors");
    return status == LS_OK
               ? ls_learner_info_add_td_errors(info, from->td_errors, n)
               : status;
}

void ls_learner_info_swap(ls_learner_info *one, ls_learner_info *other)
{
    const ls_learner_info kept = *one;
    *one = *other;
    *other = kept;
}

size_t ls_learner_info_count(const ls_learner_info *info)
{
    return info->n;
}

const char *ls_learner_info_name(const ls_learner_info *info, size_t index)
{
    return index < info->n ? info->numbers[index].name : NULL;
}

static double value_of(const struct number *number)
{
    if (number->count == 0)
        return NAN;
    return number->rule == RULE_MEAN ? number->value / (double)number->count
                                     : number->value;
}

double ls_learner_info_value(const ls_learner_info *info, size_t index)
{
    return index < info->n ? value_of(&info->numbers[index]) : (double)NAN;
}

double ls_learner_info_get(const ls_learner_info *info, const char *name)
{
    const struct number *const number = find(info, name);
    return number != NULL ? value_of(number) : NAN;
}

const double *ls_learner_info_td_errors(const ls_learner_info *info, size_t *n)
{
    *n = info->n_td_errors;
    return *n > 0 ? info->td_errors : NULL;
}

/* A figure of that name gives way to the errors themselves: a map has each key
 * once. */
static bool is_hidden(const ls_learner_info *info, size_t at)
{
    return info->n_td_errors > 0 &&
           strcmp(info->numbers[at].name, TD_ERROR) == 0;
}

void ls_learner_info_write(const ls_learner_info *info, ls_writer *writer)
{
    ls_write_map_begin(writer);
    for (size_t i = 0; i < info->n; i++) {
        if (is_hidden(info, i))
            continue;
        ls_write_string(writer, info->numbers[i].name);
        ls_write_double(writer, value_of(&info->numbers[i]));
    }
    if (info->n_td_errors > 0) {
        ls_write_string(writer, TD_ERROR);
        ls_write_array(writer, (uint32_t)info->n_td_errors);
        for (size_t i = 0; i < info->n_td_errors; i++)
            ls_write_double(writer, info->td_errors[i]);
    }
    ls_write_map_end(writer);
}
