/* plain_name.h - names of ASCII letters, digits, and marks such as "._-": they
 * are safe in paths, addresses and logs, whatever the locale.
 *
 * Thread: any. */
#ifndef LOCKSTEP_BASE_PLAIN_NAME_H
#define LOCKSTEP_BASE_PLAIN_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline bool plain_name_has(char letter, const char *marks)
{
    return (letter >= 'a' && letter <= 'z') ||
           (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') ||
           (letter != '\0' && strchr(marks, letter) != NULL);
}

/* How many bytes at the beginning of a text such a name may have. */
static inline size_t plain_name_span(const char *text, const char *marks)
{
    size_t n = 0;
    while (plain_name_has(text[n], marks))
        n++;
    return n;
}

/* Whether it is such a name, of 1 to `max` bytes. name: NULL is none. */
static inline bool plain_name_is(const char *name, size_t max,
                                 const char *marks)
{
    const size_t n = name != NULL ? plain_name_span(name, marks) : 0;
    return n >= 1 && n <= max && name[n] == '\0';
}

#endif
