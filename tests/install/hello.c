/* hello.c - a program that has only what is installed: it links, starts, and
 * finds the library's own words for a status. */
#include <stdio.h>

#include <lockstep/lockstep.h>

int main(void)
{
    ls_writer *writer = NULL;
    int err = ls_writer_create(&writer);
    if (err != LS_OK) {
        fprintf(stderr, "hello: %s\n", ls_error_text());
        return ls_status_exit_code(err);
    }
    ls_write_string(writer, "hello");
    const void *bytes = NULL;
    size_t size = 0;
    err = ls_writer_bytes(writer, &bytes, &size);
    printf("%s: %zu bytes\n", ls_status_sentence(err), size);
    ls_writer_destroy(&writer);
    return ls_status_exit_code(err);
}
