/* asserts.h - what a status and an error's text should be, named when they are
 * not. */
#ifndef SUPPORT_ASSERTS_H
#define SUPPORT_ASSERTS_H

#include <string.h>

#include "lockstep/status.h"

#define assert_ok(call) assert_status((call), LS_OK, #call, __FILE__, __LINE__)
#define assert_fails(call, wanted)                                             \
    assert_status((call), (wanted), #call, __FILE__, __LINE__)
#define assert_has(text, part) assert_text((text), (part), __FILE__, __LINE__)
#define assert_error_has(part) assert_has(ls_error_text(), (part))

static inline void assert_status(int status, int wanted, const char *call,
                                 const char *file, int line)
{
    if (status == wanted)
        return;
    print_error("%s: %s, not %s: %s\n", call, ls_status_name(status),
                ls_status_name(wanted), ls_error_text());
    _fail(file, line);
}

static inline void assert_text(const char *text, const char *part,
                               const char *file, int line)
{
    if (strstr(text, part) != NULL)
        return;
    print_error("\"%s\" has no \"%s\"\n", text, part);
    _fail(file, line);
}

#endif
