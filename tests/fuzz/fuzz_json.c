/* Any text as the argument of a call: as a value, printed as JSON, and read
 * again, it is the same value. By the first byte, any bytes as an answer, or as
 * a text of unknown origin: what is printed is JSON, on one line. */
#include "json.h"

#include "fuzz.h"

static ls_writer *read_text(const char *text)
{
    ls_writer *writer = NULL;
    must(ls_writer_create(&writer) == LS_OK);
    if (json_read(text, writer) != LS_OK)
        ls_writer_destroy(&writer);
    return writer;
}

/* own. NULL: the value is more than a document takes. */
static char *print(const struct fuzz_bytes *bytes)
{
    ls_document *document = NULL;
    if (ls_document_read(&document, bytes->data, bytes->size, NULL) != LS_OK)
        return NULL;
    const size_t size = ls_value_print(ls_document_root(document), NULL, 0) + 1;
    char *const text = malloc(size);
    must(text != NULL);
    must(ls_value_print(ls_document_root(document), text, size) == size - 1);
    must(strlen(text) == size - 1 && strchr(text, '\n') == NULL);
    ls_document_destroy(&document);
    return text;
}

/* What is not a number, or endless, is a text in JSON: so texts are compared.
 */
static void argument(const uint8_t *data, size_t size)
{
    char *const text = fuzz_text(data, size);
    ls_writer *first = read_text(text);
    char *before = NULL;
    if (first != NULL) {
        const struct fuzz_bytes bytes = fuzz_written(first);
        before = print(&bytes);
    }
    if (before != NULL) {
        ls_writer *second = read_text(before);
        must(second != NULL);
        const struct fuzz_bytes bytes = fuzz_written(second);
        char *const after = print(&bytes);
        must(after != NULL && strcmp(before, after) == 0);
        ls_writer_destroy(&second);
        free(after);
    }
    ls_writer_destroy(&first);
    free(before);
    free(text);
}

/* {"key": …} as one line, which must be read as JSON. */
static void line(ls_writer *writer)
{
    char *printed = NULL;
    must(ls_writer_print(writer, &printed) == LS_OK);
    must(strchr(printed, '\n') == NULL);
    ls_writer *again = read_text(printed);
    must(again != NULL);
    ls_writer_destroy(&again);
    free(printed);
}

static void answer(const uint8_t *data, size_t size)
{
    ls_writer *writer = NULL;
    must(ls_writer_create(&writer) == LS_OK);
    ls_write_map(writer, 1);
    json_msgpack(writer, "key", data, size);
    line(writer);
    ls_writer_destroy(&writer);
}

static void origin(const uint8_t *data, size_t size)
{
    ls_writer *writer = NULL;
    char *const text = fuzz_text(data, size);
    must(ls_writer_create(&writer) == LS_OK);
    ls_write_map(writer, 1);
    json_string(writer, "key", text);
    line(writer);
    ls_writer_destroy(&writer);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && data[0] == '#')
        answer(data + 1, size - 1);
    else if (size > 0 && data[0] == '%')
        origin(data + 1, size - 1);
    else
        argument(data, size);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    return size > 0 && data[0] == '#'
               ? fuzz_mutate(data, size, max_size, seed, 1)
               : LLVMFuzzerMutate(data, size, max_size);
}
