#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "outlet.h"

/* Why writing to stdout failed first, an errno; 0: it has not. stdout is one
 * for the process, and so is this. */
static int failed;

/* Larger than any page of help: else the C library writes part of it by itself,
 * and keeps no reason when that fails. */
static char buffer[1 << 16];

/* Or the next file that is opened would be stdout or stderr, and what is said
 * would be written into it. To read only, so to write fails as before. */
static void keep_streams_apart(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        (void)close(fd);
}

void output_init(void)
{
    keep_streams_apart();
    (void)setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* what is too large is an error */
}

int output_flush(void)
{
    errno = 0;
    if ((fflush(stdout) != 0 || ferror(stdout)) && failed == 0)
        failed = errno != 0 ? errno : EIO;
    if (failed == 0)
        failed = outlet_failed();
    if (failed == 0)
        return LS_OK;
    return failed == EPIPE
               ? ls_error(LS_ECLOSED, "nobody reads stdout any more")
               : ls_error(LS_EIO, "stdout: not all could be written: %s",
                          strerror(failed));
}

int output_end(int exit_code)
{
    outlet_drain();
    const int status = output_flush();
    if (status == LS_EIO)
        (void)fprintf(stderr, "lockstep: %s\n", ls_error_text());
    if (status == LS_OK || exit_code != 0)
        return exit_code;
    return status == LS_ECLOSED ? 128 + SIGPIPE : ls_status_exit_code(status);
}

void output_row(const char *name, const char *text)
{
    output_print(stdout, "  %-13s  %s\n", name, text);
}

struct count_text output_count(int64_t value)
{
    char digits[24];
    struct count_text out;
    const int n = snprintf(digits, sizeof digits, "%lld", (long long)value);
    size_t used = 0;
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0 && digits[i - 1] != '-')
            out.text[used++] = ',';
        out.text[used++] = digits[i];
    }
    out.text[used] = '\0';
    return out;
}

/* Those of UTF-8, of two bytes, are some more. */
const char *output_said(const char *said, bool lines, char *to, size_t size)
{
    size_t n = 0;
    for (const unsigned char *at = (const unsigned char *)said;
         *at != '\0' && n < size - 1; at++) {
        const bool c1 = at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0;
        const bool c0 = at[0] < 0x20 || at[0] == 0x7f;
        to[n++] = c1 || (c0 && !(lines && at[0] == '\n')) ? '?' : (char)at[0];
        at += c1;
    }
    to[n] = '\0';
    return to;
}

/* What there is no memory for is cut off. */
void output_print(FILE *to, const char *format, ...)
{
    char cut[LS_ERROR_TEXT_MAX], *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    const int wanted = vsnprintf(cut, sizeof cut, format, arguments);
    va_end(arguments);
    if (wanted >= (int)sizeof cut)
        text = malloc((size_t)wanted + 1);
    if (text != NULL) {
        va_start(arguments, format);
        (void)vsnprintf(text, (size_t)wanted + 1, format, arguments);
        va_end(arguments);
    }
    char *said = text != NULL ? text : cut;
    if (wanted > 0) /* in its own place, since it grows no longer by that */
        (void)fputs(output_said(said, true, said, strlen(said) + 1), to);
    free(text);
}
