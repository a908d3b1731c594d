#include "json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/config.h"

#include "output.h"

int json_print_line(ls_writer *value)
{
    char *text;
    const int status = ls_writer_print(value, &text);
    if (status != LS_OK)
        return status;
    printf("%s\n", text);
    (void)output_flush(); /* it remembers */
    free(text);
    return LS_OK;
}

/* JSON is YAML, so the reader of configurations takes it, and says where it is
 * wrong. */
int json_read(const char *text, ls_writer *out)
{
    ls_config *config = NULL;
    const int status = ls_config_parse(&config, "argument", text);
    if (status == LS_OK)
        ls_config_write(config, out);
    ls_config_destroy(&config);
    return status == LS_ECONFIG ? LS_EINVAL : status;
}

void json_string(ls_writer *out, const char *key, const char *value)
{
    ls_write_string(out, key);
    ls_write_any_string(out, value);
}

void json_int(ls_writer *out, const char *key, int64_t value)
{
    ls_write_string(out, key);
    ls_write_int(out, value);
}

void json_double(ls_writer *out, const char *key, double value)
{
    ls_write_string(out, key);
    if (isfinite(value))
        ls_write_double(out, value);
    else
        ls_write_nil(out);
}

void json_bool(ls_writer *out, const char *key, bool value)
{
    ls_write_string(out, key);
    ls_write_bool(out, value);
}

static void copy_scalar(ls_writer *out, const ls_value *value)
{
    const char *text;
    int64_t whole;
    double number;
    if (ls_value_string(value, &text) == LS_OK)
        ls_write_string(out, text);
    else if (ls_value_int(value, &whole) == LS_OK)
        ls_write_int(out, whole);
    else if (ls_value_double(value, &number) == LS_OK && isfinite(number))
        ls_write_double(out, number);
    else
        ls_write_nil(out);
}

/* As deep as a document may be. */
static void copy_value(ls_writer *out, const ls_value *value)
{
    const enum ls_value_type type = ls_value_type(value);
    const bool is_map = type == LS_VALUE_MAP;
    const size_t n = ls_value_size(value);
    if (!is_map && type != LS_VALUE_ARRAY) {
        copy_scalar(out, value);
        return;
    }
    if (is_map)
        ls_write_map(out, (uint32_t)n);
    else
        ls_write_array(out, (uint32_t)n);
    for (size_t i = 0; i < n; i++) {
        if (is_map)
            ls_write_string(out, ls_value_key(value, i));
        copy_value(out, ls_value_at(value, i));
    }
}

void json_msgpack(ls_writer *out, const char *key, const void *data,
                  size_t size)
{
    ls_document *document = NULL;
    ls_write_string(out, key);
    if (ls_document_read(&document, data, size, NULL) == LS_OK)
        copy_value(out, ls_document_root(document));
    else
        ls_write_nil(out);
    ls_document_destroy(&document);
}
