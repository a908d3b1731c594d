/* The fields that own memory.
 *
 * A list has no capacity beside its length: it is full when its length is a
 * power of two, and doubles then. So every list must grow one by one. */
#include <stdlib.h>
#include <string.h>

#include "lockstep/record.h"

static int no_memory(size_t size)
{
    return ls_error(LS_ENOMEM, "no memory for a field of %zu bytes", size);
}

int ls_text_set(char **field, const char *text)
{
    char *copy = NULL;
    if (text != NULL) {
        const size_t size = strlen(text) + 1;
        copy = malloc(size);
        if (copy == NULL)
            return no_memory(size);
        memcpy(copy, text, size);
    }
    free(*field);
    *field = copy;
    return LS_OK;
}

static int bytes_copy(struct ls_bytes *out, const void *data, size_t size)
{
    void *copy = NULL;
    if (size > 0) {
        copy = malloc(size);
        if (copy == NULL)
            return no_memory(size);
        memcpy(copy, data, size);
    }
    *out = (struct ls_bytes){copy, size};
    return LS_OK;
}

int ls_bytes_set(struct ls_bytes *field, const void *data, size_t size)
{
    struct ls_bytes copy;
    const int status = bytes_copy(&copy, data, size);
    if (status < 0)
        return status;
    free(field->data);
    *field = copy;
    return LS_OK;
}

int ls_bytes_set_written(struct ls_bytes *field, ls_writer *writer)
{
    const void *data;
    size_t size;
    const int status = ls_writer_bytes(writer, &data, &size);
    return status == LS_OK ? ls_bytes_set(field, data, size) : status;
}

static void *list_grown(void *list, size_t n, size_t item_size)
{
    if ((n & (n - 1)) != 0)
        return list;
    const size_t capacity = n == 0 ? 1 : 2 * n;
    return capacity > SIZE_MAX / item_size
               ? NULL
               : realloc(list, capacity * item_size);
}

int ls_numbers_append(struct ls_numbers *field, int64_t value)
{
    int64_t *values = list_grown(field->values, field->n, sizeof *values);
    if (values == NULL)
        return no_memory(field->n * sizeof *values);
    field->values = values;
    field->values[field->n++] = value;
    return LS_OK;
}

int ls_items_append(struct ls_items *field, const void *data, size_t size)
{
    struct ls_bytes *items = list_grown(field->items, field->n, sizeof *items);
    if (items == NULL)
        return no_memory(field->n * sizeof *items);
    field->items = items;
    const int status = bytes_copy(&items[field->n], data, size);
    if (status == LS_OK)
        field->n++;
    return status;
}

void ls_bytes_clear(struct ls_bytes *field)
{
    free(field->data);
    *field = (struct ls_bytes){NULL, 0};
}

void ls_numbers_clear(struct ls_numbers *field)
{
    free(field->values);
    *field = (struct ls_numbers){NULL, 0};
}

void ls_items_clear(struct ls_items *field)
{
    for (size_t i = 0; i < field->n; i++)
        free(field->items[i].data);
    free(field->items);
    *field = (struct ls_items){NULL, 0};
}
