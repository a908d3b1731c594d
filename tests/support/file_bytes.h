/* file_bytes.h - a file as a test finds it, or wants it found. */
#ifndef SUPPORT_FILE_BYTES_H
#define SUPPORT_FILE_BYTES_H

#include <stdio.h>

#include "test.h"

static inline void write_bytes(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Its first `size` bytes; returns how many it has of them. */
static inline size_t read_bytes(const char *path, void *data, size_t size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t n = fread(data, 1, size, file);
    assert_int_equal(fclose(file), 0);
    return n;
}

#endif
