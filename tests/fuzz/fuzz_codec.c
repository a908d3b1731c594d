/* Any bytes: checked, read, written again and read once more; the two documents
 * must be the same. */
#include "fuzz.h"
#include "lockstep/codec.h"

/* A string with a NUL inside is read, but cannot be written: a binary here. */
static void write_string(ls_writer *writer, const ls_value *value)
{
    const char *text = NULL;
    if (ls_value_string(value, &text) == LS_OK) {
        must(strlen(text) == ls_value_size(value));
        ls_write_string(writer, text);
    } else {
        ls_write_binary(writer, "", 0);
    }
}

static void write_integer(ls_writer *writer, const ls_value *value)
{
    int64_t integer = 0;
    uint64_t whole = 0;
    if (ls_value_int(value, &integer) == LS_OK)
        ls_write_int(writer, integer);
    else if (ls_value_uint(value, &whole) == LS_OK)
        ls_write_uint(writer, whole);
    else
        abort();
}

static void write_binary(ls_writer *writer, const ls_value *value)
{
    const void *data = NULL;
    size_t size = 0;
    must(ls_value_binary(value, &data, &size) == LS_OK);
    ls_write_binary(writer, data, size);
}

static void write_value(ls_writer *writer, const ls_value *value);

static void write_items(ls_writer *writer, const ls_value *value, bool is_map)
{
    const size_t n = ls_value_size(value);
    if (is_map)
        ls_write_map(writer, (uint32_t)n);
    else
        ls_write_array(writer, (uint32_t)n);
    for (size_t i = 0; i < n; i++) {
        const ls_value *const item = ls_value_at(value, i);
        must(item != NULL);
        if (is_map) {
            const char *const key = ls_value_key(value, i);
            ls_write_string(writer, key);
            must(n > 64 || ls_value_get(value, key) == item);
        }
        write_value(writer, item);
    }
}

static void write_value(ls_writer *writer, const ls_value *value)
{
    bool truth = false;
    double number = 0;
    switch (ls_value_type(value)) {
    case LS_VALUE_NIL:
        ls_write_nil(writer);
        break;
    case LS_VALUE_BOOL:
        must(ls_value_bool(value, &truth) == LS_OK);
        ls_write_bool(writer, truth);
        break;
    case LS_VALUE_INT:
        write_integer(writer, value);
        break;
    case LS_VALUE_DOUBLE:
        must(ls_value_double(value, &number) == LS_OK);
        ls_write_double(writer, number);
        break;
    case LS_VALUE_STRING:
        write_string(writer, value);
        break;
    case LS_VALUE_BINARY:
        write_binary(writer, value);
        break;
    case LS_VALUE_ARRAY:
        write_items(writer, value, false);
        break;
    case LS_VALUE_MAP:
        write_items(writer, value, true);
        break;
    }
}

/* The document as new bytes; the writer owns them. */
static ls_writer *write_document(const ls_document *document, const void **data,
                                 size_t *size)
{
    ls_writer *writer = NULL;
    must(ls_writer_create(&writer) == LS_OK);
    write_value(writer, ls_document_root(document));
    must(ls_writer_bytes(writer, data, size) == LS_OK);
    return writer;
}

static void print(const ls_document *document)
{
    char text[64];
    const size_t wanted =
        ls_value_print(ls_document_root(document), text, sizeof text);
    must(strlen(text) <= wanted && strlen(text) < sizeof text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct ls_codec_limits again = {
        .max_bytes = SIZE_MAX, .max_depth = 32, .max_objects = UINT32_MAX};
    const int checked = ls_codec_check(data, size, NULL);
    ls_document *document = NULL;
    const int status = ls_document_read(&document, data, size, NULL);
    must(checked == LS_OK ? status == LS_OK || status == LS_EPROTO
                          : status == checked);
    if (status != LS_OK) {
        must(document == NULL && ls_error_text()[0] != '\0');
        return 0;
    }
    print(document);
    const void *first = NULL;
    const void *second = NULL;
    size_t first_size = 0;
    size_t second_size = 0;
    ls_writer *one = write_document(document, &first, &first_size);
    ls_document *copy = NULL;
    must(ls_document_read(&copy, first, first_size, &again) == LS_OK);
    ls_writer *other = write_document(copy, &second, &second_size);
    must(first_size == second_size && memcmp(first, second, first_size) == 0);
    ls_writer_destroy(&one);
    ls_writer_destroy(&other);
    ls_document_destroy(&copy);
    ls_document_destroy(&document);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    return fuzz_mutate(data, size, max_size, seed, 0);
}
