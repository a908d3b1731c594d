/* What an exchange sends, and the merge. Design notes:
 *
 * - A part is read into a scratch context of the same type, looked at, and
 *   moved from there: so a part is merged whole or not at all, the context's
 *   own code is the only one that knows how a field looks in msgpack, and the
 *   bytes of items and weights are copied once.
 * - An empty list takes over the other's memory as it is; a list that has
 *   something grows through context.h, which alone knows its capacity. */
#include "exchange_merge.h"

#include <stdlib.h>
#include <string.h>

#include "fields.h"
#include "word_list.h"

enum {
    NAME_BYTES = 256,
    END_BYTES = 16, /* an end has at most 14, a part over 30 */
    MAX_DEPTH = 16,
    MAX_OBJECTS = 1 << 22 /* bounds what a document reserves for hostile bytes
                           * to some ten times their size */
};

union amount {
    int64_t integer;
    double number;
};

struct planned {
    const struct ls_field *field;
    bool increment;
    const struct ls_field *items; /* what a list of indices points into */
    union amount base;            /* increment: what has been sent */
    union amount got;             /* increment: of the part at hand */
    bool present;                 /* in the part at hand */
};

struct ls_exchange_plan {
    ls_context *scratch; /* own */
    struct planned *fields;
    size_t n;
    size_t n_increments;
    const char **names; /* of those that are not increments, for writing */
};

static int plan_add(ls_exchange_plan *plan, const struct ls_context_type *type,
                    const char *word, size_t length, bool increment)
{
    char name[NAME_BYTES];
    if (length >= sizeof name)
        return ls_error(LS_ENOENT, "exchange: no field has so long a name: %s",
                        word);
    memcpy(name, word, length);
    name[length] = '\0';
    const struct ls_field *field = ls_context_field(type, name);
    if (field == NULL)
        return ls_error(LS_ENOENT, "exchange: context %s has no field \"%s\"",
                        type->name, name);
    if (increment && field->type != LS_FIELD_INT &&
        field->type != LS_FIELD_DOUBLE)
        return ls_error(LS_EINVAL,
                        "exchange: \"%s\" is not a number, and can be no "
                        "increment: name it in fields",
                        name);
    struct planned *added = &plan->fields[plan->n];
    for (struct planned *other = plan->fields; other < added; other++) {
        if (other->field == field)
            return ls_error(LS_EINVAL, "exchange: \"%s\" is named twice", name);
        if (other->field->type == LS_FIELD_ITEMS)
            added->items = other->field;
    }
    added->field = field;
    added->increment = increment;
    if (increment)
        plan->n_increments++;
    else
        plan->names[plan->n - plan->n_increments] = field->name;
    plan->n++;
    return LS_OK;
}

static size_t count_words(const char *list)
{
    size_t n = 0, length;
    while (word_list_next(&list, &length) != NULL)
        n++;
    return n;
}

static int plan_fill(ls_exchange_plan *plan, ls_context *context,
                     const char *fields, const char *increments)
{
    const struct ls_context_type *type = ls_context_type_of(context);
    int status = LS_OK;
    const char *word;
    size_t length;
    while (status == LS_OK && (word = word_list_next(&fields, &length)) != NULL)
        status = plan_add(plan, type, word, length, false);
    while (status == LS_OK &&
           (word = word_list_next(&increments, &length)) != NULL)
        status = plan_add(plan, type, word, length, true);
    if (status == LS_OK)
        status = ls_context_create(&plan->scratch, type);
    if (status == LS_OK)
        ls_exchange_sent(plan, context);
    return status;
}

int ls_exchange_plan_create(ls_exchange_plan **out, ls_context *context,
                            const char *fields, const char *increments)
{
    const size_t n = count_words(fields) + count_words(increments);
    if (n == 0)
        return ls_error(LS_EINVAL, "exchange: name at least one field");
    ls_exchange_plan *plan = calloc(1, sizeof *plan);
    if (plan != NULL) {
        plan->fields = calloc(n, sizeof *plan->fields);
        plan->names = calloc(n, sizeof *plan->names);
    }
    int status = LS_OK;
    if (plan == NULL || plan->fields == NULL || plan->names == NULL)
        status = ls_error(LS_ENOMEM, "exchange: no memory for %zu fields", n);
    else
        status = plan_fill(plan, context, fields, increments);
    if (status != LS_OK)
        ls_exchange_plan_destroy(&plan);
    else
        *out = plan;
    return status;
}

void ls_exchange_plan_destroy(ls_exchange_plan **plan)
{
    if (plan == NULL || *plan == NULL)
        return;
    ls_context_destroy(&(*plan)->scratch);
    free((*plan)->fields);
    free((*plan)->names);
    free(*plan);
    *plan = NULL;
}

int ls_exchange_write(const ls_exchange_plan *plan, ls_context *context,
                      uint64_t round, ls_writer *out)
{
    ls_write_map_begin(out);
    ls_write_string(out, "round");
    ls_write_uint(out, round);
    ls_write_string(out, "iteration");
    ls_write_int(out, ls_field_int(context, "total_step", 0));
    ls_write_string(out, "values");
    const int status = ls_context_write(context, plan->names,
                                        plan->n - plan->n_increments, out);
    if (status != LS_OK)
        return status;
    ls_write_string(out, "increments");
    ls_write_map_begin(out);
    for (size_t i = 0; i < plan->n; i++) {
        const struct planned *each = &plan->fields[i];
        if (!each->increment)
            continue;
        const void *at = ls_field_at(context, each->field);
        ls_write_string(out, each->field->name);
        if (each->field->type == LS_FIELD_DOUBLE)
            ls_write_double(out, *(const double *)at - each->base.number);
        else /* modulo 2^64, as the receiver's sum */
            ls_write_int(out, (int64_t)((uint64_t) * (const int64_t *)at -
                                        (uint64_t)each->base.integer));
    }
    ls_write_map_end(out);
    ls_write_map_end(out);
    return LS_OK;
}

void ls_exchange_sent(ls_exchange_plan *plan, ls_context *context)
{
    for (size_t i = 0; i < plan->n; i++) {
        struct planned *each = &plan->fields[i];
        const void *at = ls_field_at(context, each->field);
        if (each->increment && each->field->type == LS_FIELD_DOUBLE)
            each->base.number = *(const double *)at;
        else if (each->increment)
            each->base.integer = *(const int64_t *)at;
    }
}

void ls_exchange_write_end(uint64_t run, ls_writer *out)
{
    ls_write_map(out, 1);
    ls_write_string(out, "end");
    ls_write_uint(out, run);
}

/* Reading ---------------------------------------------------------------- */

bool ls_exchange_is_end(const void *data, size_t size, uint64_t *run)
{
    ls_document *document = NULL;
    if (size > END_BYTES ||
        ls_document_read(&document, data, size, NULL) != LS_OK)
        return false;
    const bool end =
        ls_value_uint(ls_value_get(ls_document_root(document), "end"), run) ==
        LS_OK;
    ls_document_destroy(&document);
    return end;
}

uint64_t ls_exchange_round_of(const void *data, size_t size)
{
    static const unsigned char before[] = "\x84\xa5round";
    const size_t at = sizeof before - 1;
    const unsigned char *bytes = data;
    if (size <= at || memcmp(bytes, before, at) != 0)
        return 0;
    const unsigned char form = bytes[at];
    if (form <= 0x7f)
        return form;
    /* uint 8, 16, 32, 64: big-endian after the form */
    const size_t n =
        form >= 0xcc && form <= 0xcf ? (size_t)1 << (form - 0xcc) : 0;
    uint64_t round = 0;
    for (size_t i = 0; i < n && at + n < size; i++)
        round = round << 8 | bytes[at + 1 + i];
    return round;
}

int ls_exchange_part_read(struct ls_exchange_part *out, uint32_t sender,
                          const void *data, size_t size)
{
    struct ls_exchange_part part = {.sender = sender};
    const struct ls_codec_limits limits = {size, MAX_DEPTH, MAX_OBJECTS};
    int status = ls_document_read(&part.document, data, size, &limits);
    if (status == LS_OK)
        status = ls_value_int(
            ls_value_get(ls_document_root(part.document), "iteration"),
            &part.iteration);
    if (status != LS_OK) {
        ls_exchange_part_fini(&part);
        return ls_error_at(status == LS_ENOENT ? LS_EPROTO : status,
                           "the message of node %u", (unsigned)sender);
    }
    *out = part;
    return LS_OK;
}

void ls_exchange_part_fini(struct ls_exchange_part *part)
{
    ls_document_destroy(&part->document);
}

/* Merging ---------------------------------------------------------------- */

static int check_indices(ls_exchange_plan *plan, const struct planned *each)
{
    const struct ls_numbers *numbers = ls_field_at(plan->scratch, each->field);
    const struct ls_items *items = ls_field_at(plan->scratch, each->items);
    for (size_t i = 0; i < numbers->n; i++)
        if (numbers->values[i] < 0 || (uint64_t)numbers->values[i] > items->n)
            return ls_error(LS_EPROTO, "%s: index %lld of %zu %s",
                            each->field->name, (long long)numbers->values[i],
                            items->n, each->items->name);
    return LS_OK;
}

static int read_value(ls_exchange_plan *plan, const struct planned *each,
                      const ls_value *value)
{
    const int status =
        ls_field_read(each->field, ls_context_data(plan->scratch), value);
    if (status < 0)
        return ls_error_at(status, "field %s", each->field->name);
    return each->items != NULL && each->field->type == LS_FIELD_NUMBERS
               ? check_indices(plan, each)
               : LS_OK;
}

/* The sum must fit; the context is what it would be added to. */
static int read_increment(struct planned *each, const ls_value *value,
                          ls_context *context)
{
    int status;
    if (each->field->type == LS_FIELD_DOUBLE) {
        status = ls_value_double(value, &each->got.number);
    } else {
        status = ls_value_int(value, &each->got.integer);
        const int64_t now = *(const int64_t *)ls_field_at(context, each->field);
        const int64_t add = status == LS_OK ? each->got.integer : 0;
        if ((add > 0 && now > INT64_MAX - add) ||
            (add < 0 && now < INT64_MIN - add))
            return ls_error(LS_EPROTO, "%s: %lld and %lld do not fit",
                            each->field->name, (long long)now, (long long)add);
    }
    return status == LS_OK ? status
                           : ls_error_at(status, "%s", each->field->name);
}

/* Read a part into the scratch context and the plan, and check it. What else
 * it has is of a sender with another plan. */
static int part_open(ls_exchange_plan *plan, ls_context *context,
                     const struct ls_exchange_part *part)
{
    const ls_value *root = ls_document_root(part->document);
    const ls_value *values = ls_value_get(root, "values");
    const ls_value *increments = ls_value_get(root, "increments");
    for (size_t i = 0; i < plan->n; i++)
        if (plan->fields[i].field->type == LS_FIELD_ITEMS)
            ls_items_clear(ls_field_at(plan->scratch, plan->fields[i].field));
    int status = ls_value_type(values) == LS_VALUE_MAP
                     ? LS_OK
                     : ls_error(LS_EPROTO, "values: it is not a map");
    for (size_t i = 0; i < plan->n && status == LS_OK; i++) {
        struct planned *each = &plan->fields[i];
        const ls_value *value = ls_value_get(
            each->increment ? increments : values, each->field->name);
        each->present = value != NULL;
        if (each->present && each->increment)
            status = read_increment(each, value, context);
        else if (each->present)
            status = read_value(plan, each, value);
    }
    return status;
}

static int append_items(struct ls_items *to, struct ls_items *from)
{
    if (to->n == 0) {
        ls_items_clear(to);
        *to = *from;
        *from = (struct ls_items){NULL, 0};
        return LS_OK;
    }
    for (size_t i = 0; i < from->n; i++) {
        const int status = ls_items_append(to, NULL, 0);
        if (status != LS_OK)
            return status;
        to->items[to->n - 1] = from->items[i];
        from->items[i] = (struct ls_bytes){NULL, 0};
    }
    return LS_OK;
}

static int append_numbers(struct ls_numbers *to, const struct ls_numbers *from,
                          size_t shift)
{
    int status = LS_OK;
    for (size_t i = 0; i < from->n && status == LS_OK; i++)
        status = ls_numbers_append(to, from->values[i] + (int64_t)shift);
    return status;
}

static void add_increment(struct planned *each, void *to)
{
    if (each->field->type == LS_FIELD_DOUBLE) {
        *(double *)to += each->got.number;
        each->base.number += each->got.number;
    } else { /* what others did is not ours to send on */
        *(int64_t *)to += each->got.integer;
        each->base.integer = (int64_t)((uint64_t)each->base.integer +
                                       (uint64_t)each->got.integer);
    }
}

/* The scratch context gets what is replaced, and frees it. */
static void swap(void *a, void *b, size_t size)
{
    unsigned char kept[sizeof(struct ls_bytes)]; /* the largest of them */
    memcpy(kept, a, size);
    memcpy(a, b, size);
    memcpy(b, kept, size);
}

static int merge_field(ls_exchange_plan *plan, ls_context *context,
                       struct planned *each, bool newest)
{
    void *to = ls_field_at(context, each->field);
    void *from = ls_field_at(plan->scratch, each->field);
    if (each->increment)
        add_increment(each, to);
    else if (each->field->type == LS_FIELD_NUMBERS) {
        const struct ls_items *items =
            each->items == NULL ? NULL : ls_field_at(context, each->items);
        return append_numbers(to, from, items == NULL ? 0 : items->n);
    } else if (each->field->type == LS_FIELD_ITEMS)
        return append_items(to, from);
    else if (newest)
        swap(to, from, ls_field_size(each->field));
    return LS_OK;
}

static int merge_part(ls_exchange_plan *plan, ls_context *context,
                      const struct ls_exchange_part *part, bool newest)
{
    int status = part_open(plan, context, part);
    /* From the last to the first: so indices, which are named after their
     * items, see how many there were before. */
    for (size_t i = plan->n; i-- > 0 && status == LS_OK;)
        if (plan->fields[i].present)
            status = merge_field(plan, context, &plan->fields[i], newest);
    return status == LS_OK ? status
                           : ls_error_at(status, "the message of node %u",
                                         (unsigned)part->sender);
}

int ls_exchange_merge(ls_exchange_plan *plan, ls_context *context,
                      const struct ls_exchange_part *parts, size_t n)
{
    int64_t newest = INT64_MIN;
    for (size_t i = 0; i < n; i++) {
        const bool is_newest = parts[i].iteration >= newest;
        const int status = merge_part(plan, context, &parts[i], is_newest);
        if (status != LS_OK)
            return status;
        if (is_newest)
            newest = parts[i].iteration;
    }
    return LS_OK;
}
