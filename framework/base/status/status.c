#include "lockstep/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "text_cut.h"
#include "thread_state.h"
#include "utf8.h"

const char *ls_status_name(int status)
{
    switch (status) {
#define NAME_CASE(name, code, exit_code, sentence)                             \
    case name:                                                                 \
        return #name;
        LS_STATUS_MAP(NAME_CASE)
#undef NAME_CASE
    default:
        return "LS_?";
    }
}

const char *ls_status_sentence(int status)
{
    switch (status) {
#define SENTENCE_CASE(name, code, exit_code, sentence)                         \
    case name:                                                                 \
        return sentence;
        LS_STATUS_MAP(SENTENCE_CASE)
#undef SENTENCE_CASE
    default:
        return "an unknown status";
    }
}

int ls_status_exit_code(int status)
{
    switch (status) {
#define EXIT_CODE_CASE(name, code, exit_code, sentence)                        \
    case name:                                                                 \
        return exit_code;
        LS_STATUS_MAP(EXIT_CODE_CASE)
#undef EXIT_CODE_CASE
    default:
        return 1;
    }
}

/* Names of files and words of peers may be any bytes, and a text goes where
 * only characters can: into reports, messages, JSON. */
static void replace_what_is_no_character(char *text)
{
    while (*text != '\0') {
        const bool is_ascii = (unsigned char)*text < 0x80;
        size_t n = is_ascii ? 1 : ls_utf8_character(text, strlen(text));
        if (n == 0) {
            *text = '?';
            n = 1;
        }
        text += n;
    }
}

/* Made beside the last text and copied then: the arguments may point into
 * it. */
static void keep_text(const char *tail, const char *format, va_list arguments)
{
    char text[LS_ERROR_TEXT_MAX];
    const int wanted = vsnprintf(text, sizeof text, format, arguments);
    size_t length = wanted < 0 ? 0 : (size_t)wanted;
    if (wanted < 0)
        text[0] = '\0';
    if (tail != NULL && tail[0] != '\0' && length < sizeof text)
        length +=
            (size_t)snprintf(text + length, sizeof text - length, ": %s", tail);
    if (length >= sizeof text)
        text_drop_half(text);
    replace_what_is_no_character(text);
    memcpy(thread_state()->error.text, text, strlen(text) + 1);
}

static void forget_rest(void)
{
    thread_state()->error.cause = LS_OK;
    thread_state()->error.cookie = 0;
}

/* Most texts of LS_ENOMEM name only what the memory was to be for. */
static void say_memory(void)
{
    char *text = thread_state()->error.text;
    const size_t length = strlen(text);
    if (strstr(text, "memory") == NULL)
        (void)snprintf(text + length, LS_ERROR_TEXT_MAX - length,
                       "%sout of memory", length == 0 ? "" : ": ");
}

int ls_error(int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    keep_text(NULL, format, arguments);
    va_end(arguments);
    if (status == LS_ENOMEM)
        say_memory();
    forget_rest();
    return status;
}

int ls_error_at(int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    keep_text(thread_state()->error.text, format, arguments);
    va_end(arguments);
    return status;
}

static int status_from(int os_errno)
{
    switch (os_errno) {
    case EINVAL:
        return LS_EINVAL;
    case ENOMEM:
        return LS_ENOMEM;
    case ETIMEDOUT:
        return LS_ETIMEDOUT;
    case EAGAIN:
    case EINTR:
        return LS_EAGAIN;
    case ENOENT:
        return LS_ENOENT;
    case EEXIST:
        return LS_EEXIST;
    case EADDRINUSE:
        return LS_EADDRINUSE;
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETUNREACH:
        return LS_EUNREACHABLE;
    case ECANCELED:
        return LS_ECANCELED;
    default:
        return LS_EIO;
    }
}

int ls_error_from(int os_errno, const char *what)
{
    char reason[128];
    if (strerror_r(os_errno, reason, sizeof reason) != 0)
        snprintf(reason, sizeof reason, "error %d", os_errno);
    return ls_error(status_from(os_errno), "%s: %s", what, reason);
}

void ls_error_clear(void)
{
    thread_state()->error.text[0] = '\0';
    forget_rest();
}

const char *ls_error_text(void)
{
    return thread_state()->error.text;
}

int ls_error_cause(void)
{
    return thread_state()->error.cause;
}

void ls_error_set_cause(int status)
{
    thread_state()->error.cause = status;
}

unsigned long long ls_error_cookie(void)
{
    return thread_state()->error.cookie;
}

void ls_error_set_cookie(unsigned long long cookie)
{
    thread_state()->error.cookie = cookie;
}

void ls_failure_keep(struct ls_failure *out, int status)
{
    *out = thread_state()->error;
    out->status = status;
}

int ls_failure_return(const struct ls_failure *failure)
{
    if (failure->status != LS_OK)
        thread_state()->error = *failure;
    return failure->status;
}
