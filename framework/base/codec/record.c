/* Writing and reading by a table. Design notes:
 *
 * - The document has been checked: its keys are texts, and each is there once.
 *   So a map with as many keys as fields were found has no other key, and the
 *   search for one is for the error text only.
 * - What is read goes into zeroed memory first: a struct is never seen half
 *   read, and clearing it frees what was made until then. */
#include "lockstep/record.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void *at(const void *data, size_t offset)
{
    return (char *)(uintptr_t)data + offset;
}

static size_t count_of(const struct ls_field *field, const void *data)
{
    return *(const size_t *)at(data, field->count);
}

size_t ls_field_size(const struct ls_field *field)
{
    switch (field->type) {
    case LS_FIELD_BOOL:
    case LS_FIELD_HAS:
        return sizeof(bool);
    case LS_FIELD_INT:
    case LS_FIELD_UINT:
    case LS_FIELD_DOUBLE:
        return sizeof(int64_t);
    case LS_FIELD_UINT32:
        return sizeof(uint32_t);
    case LS_FIELD_TEXT:
    case LS_FIELD_STRING:
        return sizeof(char *);
    case LS_FIELD_BYTES:
        return sizeof(struct ls_bytes);
    case LS_FIELD_NUMBERS:
        return sizeof(struct ls_numbers);
    case LS_FIELD_ITEMS:
        return sizeof(struct ls_items);
    case LS_FIELD_CHARS:
    case LS_FIELD_BLOCK:
        return field->size;
    case LS_FIELD_RECORD:
        return field->record->size;
    case LS_FIELD_LIST:
        return field->own ? sizeof(void *)
                          : (size_t)field->most * ls_field_size(field->item);
    case LS_FIELD_OTHER:
        return field->other->size;
    }
    return 0;
}

/* Item `index` of a list. */
static void *item_at(const struct ls_field *field, const void *data,
                     size_t index)
{
    void *first = at(data, field->offset);
    if (field->own)
        first = *(void **)first;
    return at(first, index * ls_field_size(field->item));
}

/* Writing ---------------------------------------------------------------- */

static void write_numbers(const struct ls_numbers *numbers, ls_writer *out)
{
    ls_write_array(out, (uint32_t)numbers->n);
    for (size_t i = 0; i < numbers->n; i++)
        ls_write_int(out, numbers->values[i]);
}

static void write_items(const struct ls_items *items, ls_writer *out)
{
    ls_write_array(out, (uint32_t)items->n);
    for (size_t i = 0; i < items->n; i++)
        ls_write_binary(out, items->items[i].data, items->items[i].size);
}

static void write_list(const struct ls_field *field, const void *data,
                       ls_writer *out)
{
    const size_t n = count_of(field, data);
    ls_write_array(out, (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        ls_field_write(field->item, item_at(field, data, i), out);
}

static void write_double(const struct ls_field *field, double number,
                         ls_writer *out)
{
    if (field->nan && isnan(number))
        ls_write_nil(out);
    else
        ls_write_double(out, number);
}

void ls_field_write(const struct ls_field *field, const void *data,
                    ls_writer *out)
{
    const void *const from = at(data, field->offset);
    const struct ls_bytes *bytes = from;
    switch (field->type) {
    case LS_FIELD_BOOL:
        ls_write_bool(out, *(const bool *)from);
        break;
    case LS_FIELD_INT:
        ls_write_int(out, *(const int64_t *)from);
        break;
    case LS_FIELD_UINT:
        ls_write_uint(out, *(const uint64_t *)from);
        break;
    case LS_FIELD_UINT32:
        ls_write_uint(out, *(const uint32_t *)from);
        break;
    case LS_FIELD_DOUBLE:
        write_double(field, *(const double *)from, out);
        break;
    case LS_FIELD_TEXT:
    case LS_FIELD_STRING:
        ls_write_string(out, *(const char *const *)from);
        break;
    case LS_FIELD_CHARS:
        ls_write_string(out, from);
        break;
    case LS_FIELD_BYTES:
        ls_write_binary(out, bytes->data, bytes->size);
        break;
    case LS_FIELD_BLOCK:
        ls_write_binary(out, from, count_of(field, data));
        break;
    case LS_FIELD_NUMBERS:
        write_numbers(from, out);
        break;
    case LS_FIELD_ITEMS:
        write_items(from, out);
        break;
    case LS_FIELD_RECORD:
        ls_record_write(field->record, from, out);
        break;
    case LS_FIELD_LIST:
        write_list(field, data, out);
        break;
    case LS_FIELD_OTHER:
        field->other->write(from, out);
        break;
    case LS_FIELD_HAS:
        break;
    }
}

static bool is_set(const struct ls_field *field, const void *data)
{
    const char *from = at(data, field->offset);
    if (field->type == LS_FIELD_CHARS)
        return from[0] != '\0';
    if (field->type == LS_FIELD_LIST || field->type == LS_FIELD_BLOCK)
        return count_of(field, data) > 0;
    bool set = false;
    for (size_t i = 0; i < ls_field_size(field) && !set; i++)
        set = from[i] != 0;
    return set;
}

/* Whether it is to be written, or must be there to be read. */
static bool is_due(const struct ls_field *field, const void *data)
{
    if (field->presence == LS_IF_FLAG || field->presence == LS_IF_NO_FLAG)
        return (*(const char *)at(data, field->flag) != 0) ==
               (field->presence == LS_IF_FLAG);
    return field->presence != LS_IF_SET || is_set(field, data);
}

static bool is_named(const char *name, const char *const *names)
{
    while (names != NULL && *names != NULL && strcmp(*names, name) != 0)
        names++;
    return names == NULL || *names != NULL;
}

void ls_record_write_pairs(const struct ls_record *record, const void *data,
                           const char *const *names, ls_writer *out)
{
    for (size_t i = 0; i < record->n_fields; i++) {
        const struct ls_field *field = &record->fields[i];
        if (field->type == LS_FIELD_HAS || !is_due(field, data) ||
            !is_named(field->name, names))
            continue;
        ls_write_string(out, field->name);
        ls_field_write(field, data, out);
    }
}

void ls_record_write(const struct ls_record *record, const void *data,
                     ls_writer *out)
{
    ls_write_map_begin(out);
    ls_record_write_pairs(record, data, NULL, out);
    ls_write_map_end(out);
}

/* Reading ---------------------------------------------------------------- */

static int read_int(const struct ls_field *field, int64_t *out,
                    const ls_value *value)
{
    int64_t number;
    const int status = ls_value_int(value, &number);
    if (status != LS_OK)
        return status;
    if ((field->least != 0 || field->most != 0) &&
        (number < field->least || number > field->most))
        return ls_error(LS_EPROTO, "it is %lld, and must be %lld to %lld",
                        (long long)number, (long long)field->least,
                        (long long)field->most);
    *out = number;
    return LS_OK;
}

static int read_uint(const struct ls_field *field, uint64_t most, uint64_t *out,
                     const ls_value *value)
{
    uint64_t number;
    const int status = ls_value_uint(value, &number);
    if (status != LS_OK)
        return status;
    const uint64_t least = (uint64_t)field->least;
    if (field->most != 0)
        most = (uint64_t)field->most;
    if (number < least || number > most)
        return ls_error(LS_EPROTO, "it is %llu, and must be %llu to %llu",
                        (unsigned long long)number, (unsigned long long)least,
                        (unsigned long long)most);
    *out = number;
    return LS_OK;
}

static int read_uint32(const struct ls_field *field, uint32_t *out,
                       const ls_value *value)
{
    uint64_t number = 0;
    const int status = read_uint(field, UINT32_MAX, &number, value);
    if (status == LS_OK)
        *out = (uint32_t)number;
    return status;
}

static int read_double(const struct ls_field *field, double *out,
                       const ls_value *value)
{
    double number = NAN;
    if (!field->nan || ls_value_type(value) != LS_VALUE_NIL) {
        const int status = ls_value_double(value, &number);
        if (status != LS_OK)
            return status;
    }
    if ((field->low != 0.0 || field->high != 0.0) &&
        !(number >= field->low && number <= field->high))
        return ls_error(LS_EPROTO, "it is %g, and must be %g to %g", number,
                        field->low, field->high);
    *out = number;
    return LS_OK;
}

static int read_string(const char **out, const ls_value *value)
{
    *out = NULL;
    return ls_value_type(value) == LS_VALUE_NIL ? LS_OK
                                                : ls_value_string(value, out);
}

static int read_text(char **out, const ls_value *value)
{
    const char *text;
    const int status = read_string(&text, value);
    return status == LS_OK ? ls_text_set(out, text) : status;
}

static int read_chars(const struct ls_field *field, char *out,
                      const ls_value *value)
{
    const char *text;
    const int status = ls_value_string(value, &text);
    if (status != LS_OK)
        return status;
    const size_t length = strlen(text);
    if (length >= field->size)
        return ls_error(LS_EPROTO, "over %zu bytes: it has %zu",
                        field->size - 1, length);
    memcpy(out, text, length + 1);
    return LS_OK;
}

static int too_long(size_t size, size_t most)
{
    return size <= most
               ? LS_OK
               : ls_error(LS_EPROTO, "over %zu bytes: it has %zu", most, size);
}

static int read_bytes(const struct ls_field *field, struct ls_bytes *out,
                      const ls_value *value)
{
    const void *bytes;
    size_t size;
    int status = ls_value_binary(value, &bytes, &size);
    if (status == LS_OK && field->most != 0)
        status = too_long(size, (size_t)field->most);
    return status == LS_OK ? ls_bytes_set(out, bytes, size) : status;
}

static int read_block(const struct ls_field *field, void *data,
                      const ls_value *value)
{
    const void *bytes;
    size_t size;
    int status = ls_value_binary(value, &bytes, &size);
    if (status == LS_OK)
        status = too_long(size, field->size);
    if (status != LS_OK)
        return status;
    *(size_t *)at(data, field->count) = size;
    if (size > 0)
        memcpy(at(data, field->offset), bytes, size);
    return LS_OK;
}

static int check_array(const ls_value *value)
{
    return ls_value_type(value) == LS_VALUE_ARRAY
               ? LS_OK
               : ls_error(LS_EPROTO, "it is not an array");
}

static int read_numbers(struct ls_numbers *out, const ls_value *value)
{
    struct ls_numbers read = {NULL, 0};
    int status = check_array(value);
    const size_t n = ls_value_size(value);
    for (size_t i = 0; i < n && status == LS_OK; i++) {
        int64_t number;
        status = ls_value_int(ls_value_at(value, i), &number);
        if (status == LS_OK)
            status = ls_numbers_append(&read, number);
    }
    if (status != LS_OK) {
        ls_numbers_clear(&read);
        return status;
    }
    ls_numbers_clear(out);
    *out = read;
    return LS_OK;
}

static int read_items(struct ls_items *out, const ls_value *value)
{
    struct ls_items read = {NULL, 0};
    int status = check_array(value);
    const size_t n = ls_value_size(value);
    for (size_t i = 0; i < n && status == LS_OK; i++) {
        const void *data;
        size_t size;
        status = ls_value_binary(ls_value_at(value, i), &data, &size);
        if (status == LS_OK)
            status = ls_items_append(&read, data, size);
    }
    if (status != LS_OK) {
        ls_items_clear(&read);
        return status;
    }
    ls_items_clear(out);
    *out = read;
    return LS_OK;
}

static int read_list(const struct ls_field *field, void *data,
                     const ls_value *value)
{
    const size_t n = ls_value_size(value);
    if (ls_value_type(value) != LS_VALUE_ARRAY || n < (size_t)field->least ||
        n > (size_t)field->most)
        return ls_error(LS_EPROTO, "it is not a list of %lld to %lld",
                        (long long)field->least, (long long)field->most);
    ls_field_reset(field, data);
    if (field->own && n > 0) {
        void *items = calloc(n, ls_field_size(field->item));
        if (items == NULL)
            return ls_error(LS_ENOMEM, "a list of %zu", n);
        *(void **)at(data, field->offset) = items;
    }
    size_t *const count = at(data, field->count);
    for (; *count < n; ++*count) {
        const int status =
            ls_field_read(field->item, item_at(field, data, *count),
                          ls_value_at(value, *count));
        if (status != LS_OK) {
            ls_field_reset(field->item, item_at(field, data, *count));
            return ls_error_at(status, "item %zu", *count);
        }
    }
    return LS_OK;
}

static int read_value(const struct ls_field *field, void *data,
                      const ls_value *value)
{
    void *const to = at(data, field->offset);
    switch (field->type) {
    case LS_FIELD_BOOL:
        return ls_value_bool(value, to);
    case LS_FIELD_INT:
        return read_int(field, to, value);
    case LS_FIELD_UINT:
        return read_uint(field, UINT64_MAX, to, value);
    case LS_FIELD_UINT32:
        return read_uint32(field, to, value);
    case LS_FIELD_DOUBLE:
        return read_double(field, to, value);
    case LS_FIELD_TEXT:
        return read_text(to, value);
    case LS_FIELD_STRING:
        return read_string(to, value);
    case LS_FIELD_CHARS:
        return read_chars(field, to, value);
    case LS_FIELD_BYTES:
        return read_bytes(field, to, value);
    case LS_FIELD_BLOCK:
        return read_block(field, data, value);
    case LS_FIELD_NUMBERS:
        return read_numbers(to, value);
    case LS_FIELD_ITEMS:
        return read_items(to, value);
    case LS_FIELD_RECORD:
        return ls_record_read_into(field->record, to, value);
    case LS_FIELD_LIST:
        return read_list(field, data, value);
    case LS_FIELD_OTHER:
        return field->other->read(to, value);
    case LS_FIELD_HAS:
        break;
    }
    return LS_OK;
}

int ls_field_read(const struct ls_field *field, void *data,
                  const ls_value *value)
{
    const int status = read_value(field, data, value);
    return status == LS_OK && field->check != NULL
               ? field->check(at(data, field->offset))
               : status;
}

/* The key of the line that decides whether this one is there. */
static const char *flag_name(const struct ls_record *record,
                             const struct ls_field *field)
{
    size_t i = 0;
    while (i + 1 < record->n_fields && record->fields[i].offset != field->flag)
        i++;
    return record->fields[i].name;
}

static int not_due(const struct ls_record *record, const struct ls_field *field)
{
    return ls_error(LS_EPROTO, "it must not be there %s %s",
                    field->presence == LS_IF_FLAG ? "without" : "beside",
                    flag_name(record, field));
}

/* found: counts the values that fields were read from. */
static int read_field(const struct ls_record *record,
                      const struct ls_field *field, void *data,
                      const ls_value *map, size_t *found)
{
    const ls_value *value = ls_value_get(map, field->name);
    if (field->type == LS_FIELD_HAS) {
        *(bool *)at(data, field->offset) = value != NULL;
        return LS_OK;
    }
    const bool by_flag =
        field->presence == LS_IF_FLAG || field->presence == LS_IF_NO_FLAG;
    const bool due = by_flag && is_due(field, data);
    if (value == NULL && (field->presence == LS_ALWAYS || due))
        return ls_error(LS_EPROTO, "it is missing");
    if (value == NULL) {
        ls_field_reset(field, data);
        return LS_OK;
    }
    if (by_flag && !due)
        return not_due(record, field);
    ++*found;
    return ls_field_read(field, data, value);
}

/* Bytes of a peer: what is not printable does not reach a log. */
static int unknown_key(const char *key, size_t index)
{
    size_t n = 0;
    while (isgraph((unsigned char)key[n]))
        n++;
    if (n > 0 && n <= 64 && key[n] == '\0')
        return ls_error(LS_EPROTO, "%s: there is no such field", key);
    return ls_error(LS_EPROTO, "field %zu has no name that is known", index);
}

static int find_unknown(const struct ls_record *record, const ls_value *map)
{
    for (size_t i = 0; i < ls_value_size(map); i++) {
        const char *key = ls_value_key(map, i);
        size_t k = 0;
        while (k < record->n_fields && strcmp(record->fields[k].name, key) != 0)
            k++;
        if (k == record->n_fields)
            return unknown_key(key, i);
    }
    return LS_OK;
}

/* What goes wrong has the name of the field, and no name of the record. */
int ls_record_read_into(const struct ls_record *record, void *data,
                        const ls_value *map)
{
    if (ls_value_type(map) != LS_VALUE_MAP)
        return ls_error(LS_EPROTO, "it is not a map");
    size_t found = 0;
    for (size_t i = 0; i < record->n_fields; i++) {
        const struct ls_field *field = &record->fields[i];
        const int status = read_field(record, field, data, map, &found);
        if (status != LS_OK)
            return ls_error_at(status, "%s", field->name);
    }
    if (!record->open && found < ls_value_size(map)) {
        const int status = find_unknown(record, map);
        if (status != LS_OK)
            return status;
    }
    return record->check != NULL ? record->check(data) : LS_OK;
}

int ls_record_read(const struct ls_record *record, void *out,
                   const ls_value *map)
{
    void *made = calloc(1, record->size);
    if (made == NULL)
        return ls_error(LS_ENOMEM, "%s: no memory for %zu bytes", record->name,
                        record->size);
    const int status = ls_record_read_into(record, made, map);
    if (status == LS_OK)
        memcpy(out, made, record->size);
    else
        ls_record_clear(record, made);
    free(made);
    return status == LS_OK ? LS_OK : ls_error_at(status, "%s", record->name);
}

int ls_record_decode(const struct ls_record *record, void *out,
                     const void *bytes, size_t size,
                     const struct ls_codec_limits *limits)
{
    ls_document *document = NULL;
    int status = ls_document_read(&document, bytes, size, limits);
    if (status != LS_OK)
        return ls_error_at(status == LS_ENOMEM ? status : LS_EPROTO, "%s",
                           record->name);
    status = ls_record_read(record, out, ls_document_root(document));
    ls_document_destroy(&document);
    return status;
}

/* Clearing --------------------------------------------------------------- */

static void reset_list(const struct ls_field *field, void *data)
{
    size_t *const count = at(data, field->count);
    for (size_t i = 0; i < *count; i++)
        ls_field_reset(field->item, item_at(field, data, i));
    *count = 0;
    if (!field->own)
        return;
    void **const items = at(data, field->offset);
    free(*items);
    *items = NULL;
}

void ls_field_reset(const struct ls_field *field, void *data)
{
    void *const to = at(data, field->offset);
    switch (field->type) {
    case LS_FIELD_BOOL:
        *(bool *)to = field->fallback != 0;
        break;
    case LS_FIELD_INT:
        *(int64_t *)to = (int64_t)field->fallback;
        break;
    case LS_FIELD_DOUBLE:
        *(double *)to = field->fallback;
        break;
    case LS_FIELD_TEXT:
        free(*(char **)to);
        *(char **)to = NULL;
        break;
    case LS_FIELD_BYTES:
        ls_bytes_clear(to);
        break;
    case LS_FIELD_NUMBERS:
        ls_numbers_clear(to);
        break;
    case LS_FIELD_ITEMS:
        ls_items_clear(to);
        break;
    case LS_FIELD_BLOCK:
        *(size_t *)at(data, field->count) = 0;
        break;
    case LS_FIELD_RECORD:
        ls_record_clear(field->record, to);
        break;
    case LS_FIELD_LIST:
        reset_list(field, data);
        break;
    default:
        memset(to, 0, ls_field_size(field));
    }
}

void ls_record_clear(const struct ls_record *record, void *data)
{
    for (size_t i = 0; i < record->n_fields; i++)
        ls_field_reset(&record->fields[i], data);
}
