/* written.h - what was written, as JSON. */
#ifndef WRITTEN_H
#define WRITTEN_H

#include "lockstep/codec.h"

/* Takes the writer. */
static inline void assert_json(ls_writer *writer, const char *wanted)
{
    ls_document *document;
    const void *data;
    size_t size;
    char text[512];
    assert_int_equal(ls_writer_bytes(writer, &data, &size), LS_OK);
    assert_int_equal(ls_document_read(&document, data, size, NULL), LS_OK);
    (void)ls_value_print(ls_document_root(document), text, sizeof text);
    assert_string_equal(text, wanted);
    ls_document_destroy(&document);
    ls_writer_destroy(&writer);
}

#endif
