#include "json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/config.h"

#include "output.h"

static int print_document(const ls_document *document, char **out)
{
    const ls_value *root = ls_document_root(document);
    const size_t size = ls_value_print(root, NULL, 0) + 1;
    char *text = malloc(size);
    if (text == NULL)
        return ls_error(LS_ENOMEM, "printing JSON");
    (void)ls_value_print(root, text, size);
    *out = text;
    return LS_OK;
}

/* Of what this program has written itself. An answer that was as deep and as
 * large as it may be is in a map here. */
static const struct ls_codec_limits any = {
    .max_bytes = SIZE_MAX, .max_depth = 32, .max_objects = UINT32_MAX};

int json_line(ls_writer *value, char **out)
{
    const void *data;
    size_t size;
    int status = ls_writer_bytes(value, &data, &size);
    if (status != LS_OK)
        return status;
    ls_document *document = NULL;
    status = ls_document_read(&document, data, size, &any);
    if (status == LS_OK)
        status = print_document(document, out);
    ls_document_destroy(&document);
    return status;
}

int json_print_line(ls_writer *value)
{
    char *text;
    const int status = json_line(value, &text);
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
