#include "tally.h"

#include <math.h>
#include <string.h>

static struct tally_item *find(const struct tally *tally, const char *name)
{
    for (size_t i = 0; i < tally->n; i++) {
        if (strcmp(tally->items[i].name, name) == 0)
            return (struct tally_item *)&tally->items[i];
    }
    return NULL;
}

static int add(struct tally *tally, const char *name, double value,
               double weight)
{
    struct tally_item *item = find(tally, name);
    if (item == NULL) {
        if (tally->n == LS_LEARNER_INFO_MAX || strlen(name) > TALLY_NAME_MAX)
            return ls_error(LS_ELIMIT,
                            "the figure %.80s: there are %d at most, with "
                            "names of %d bytes",
                            name, LS_LEARNER_INFO_MAX, TALLY_NAME_MAX);
        item = &tally->items[tally->n++];
        *item = (struct tally_item){.weight = 0.0};
        memcpy(item->name, name, strlen(name) + 1);
    }
    const bool is_first = !(item->weight > 0.0);
    if (!(weight > 0.0))
        return LS_OK;
    if (strncmp(name, "min_", 4) == 0)
        item->value = is_first || value < item->value ? value : item->value;
    else if (strncmp(name, "max_", 4) == 0)
        item->value = is_first || value > item->value ? value : item->value;
    else
        item->value += value;
    item->weight += weight;
    return LS_OK;
}

static bool is_mean(const char *name)
{
    return strncmp(name, "min_", 4) != 0 && strncmp(name, "max_", 4) != 0;
}

int tally_add(struct tally *tally, const ls_learner_info *figures, size_t n)
{
    for (size_t i = 0; i < ls_learner_info_count(figures); i++) {
        const char *const name = ls_learner_info_name(figures, i);
        const double value = ls_learner_info_value(figures, i);
        const double weight = isnan(value) ? 0.0 : (double)n;
        const int status =
            add(tally, name, is_mean(name) ? value * weight : value, weight);
        if (status != LS_OK)
            return status;
    }
    return LS_OK;
}

void tally_write(const struct tally *tally, ls_writer *out)
{
    ls_write_map(out, (uint32_t)tally->n);
    for (size_t i = 0; i < tally->n; i++) {
        ls_write_string(out, tally->items[i].name);
        ls_write_array(out, 2);
        ls_write_double(out, tally->items[i].value);
        ls_write_double(out, tally->items[i].weight);
    }
}

int tally_merge(struct tally *tally, const ls_value *other)
{
    for (size_t i = 0; i < ls_value_size(other); i++) {
        const char *const name = ls_value_key(other, i);
        const ls_value *const pair = ls_value_at(other, i);
        double value, weight;
        int status = name != NULL
                         ? ls_value_double(ls_value_at(pair, 0), &value)
                         : ls_error(LS_EPROTO, "figures that are no map");
        if (status == LS_OK)
            status = ls_value_double(ls_value_at(pair, 1), &weight);
        if (status == LS_OK)
            status = add(tally, name, value, weight);
        if (status != LS_OK)
            return status;
    }
    return LS_OK;
}

double tally_get(const struct tally *tally, const char *name)
{
    const struct tally_item *const item = find(tally, name);
    if (item == NULL || !(item->weight > 0.0))
        return (double)NAN;
    return is_mean(name) ? item->value / item->weight : item->value;
}
