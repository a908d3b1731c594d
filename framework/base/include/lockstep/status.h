/* status.h - the one table of results, and the text of the last error.
 *
 * Every function that can fail returns an int: LS_OK, or one of the negative
 * codes below; counts are >= 0. Outputs are written only on success. The
 * exception is an object made for the caller (T **out): it is NULL after an
 * error, and NULL may be destroyed. The codes cross the wire, so they never
 * change.
 *
 * Besides the code, the failing function leaves a sentence that says what was
 * wrong, where, and what to do about it: ls_error_text(). It belongs to the
 * calling thread and stays until the next failure there.
 * Thread: any. */
#ifndef LOCKSTEP_STATUS_H
#define LOCKSTEP_STATUS_H

#include <stddef.h>

#if defined(__GNUC__)
#define LS_API          __attribute__((visibility("default")))
#define LS_MUST_USE     __attribute__((warn_unused_result))
#define LS_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define LS_API
#define LS_MUST_USE
#define LS_PRINTF(f, a)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* name, code, exit code of a program that ends with it, sentence */
#define LS_STATUS_MAP(X)                                                       \
    X(LS_OK, 0, 0, "done")                                                     \
    X(LS_EINVAL, -1, 2, "an argument is outside what the call allows")         \
    X(LS_ENOMEM, -2, 1, "out of memory")                                       \
    X(LS_ETIMEDOUT, -3, 124, "the deadline passed")                            \
    X(LS_EAGAIN, -4, 75, "no room or nothing there now; try again later")      \
    X(LS_ECLOSED, -5, 1, "it is closed: stopped, or being stopped")            \
    X(LS_ESTATE, -6, 1, "not allowed in this state")                           \
    X(LS_EPROTO, -7, 1, "bytes that break the format")                         \
    X(LS_ELIMIT, -8, 1, "a limit on size, depth or count was exceeded")        \
    X(LS_ENOENT, -9, 78, "there is no such thing")                             \
    X(LS_EEXIST, -10, 78, "it exists already")                                 \
    X(LS_EADDRINUSE, -11, 75, "the address is in use")                         \
    X(LS_EUNREACHABLE, -12, 69, "a peer cannot be reached")                    \
    X(LS_ELOST, -13, 69, "a member of the world was lost")                     \
    X(LS_EMISMATCH, -14, 78, "two sides disagree on a version or setting")     \
    X(LS_ECONFIG, -15, 78, "the configuration is wrong")                       \
    X(LS_EIO, -16, 1, "the operating system refused")                          \
    X(LS_ECANCELED, -17, 1, "it was cancelled")                                \
    X(LS_EHANDLER, -18, 1, "a handler or a step failed")                       \
    X(LS_EABORTED, -19, 1, "another member gave up, and so must this one")     \
    X(LS_EINVARIANT, -20, 1, "a promise of the simulated system is broken")

enum ls_status {
#define LS_STATUS_ENUM(name, code, exit_code, sentence) name = (code),
    LS_STATUS_MAP(LS_STATUS_ENUM)
#undef LS_STATUS_ENUM
};

/* Longest error text that is kept, its NUL included, in bytes. */
#define LS_ERROR_TEXT_MAX 1024

/* The name of a code, "LS_EINVAL"; "LS_?" for a number that is not one. */
LS_API const char *ls_status_name(int status);

/* The sentence of a code, without a full stop. */
LS_API const char *ls_status_sentence(int status);

/* The exit code for a program that ends with `status`: 0 done, 1 failed,
 * 2 usage, 69 peer unreachable, 75 try again, 78 bad config, 124 timeout. */
LS_API int ls_status_exit_code(int status);

/* Set ls_error_text(), and return `status` unchanged, so that a function can
 * end with `return ls_error(LS_EINVAL, "…", …);`. Clears cause and cookie. A
 * text of LS_ENOMEM without "memory" ends with "out of memory".
 * format: copied; cut at LS_ERROR_TEXT_MAX. A byte that is not UTF-8 becomes
 *         '?', so that the text can be sent and written anywhere. */
LS_API int ls_error(int status, const char *format, ...) LS_PRINTF(2, 3);

/* Put "where: " in front of the last text of this thread; return `status`.
 * Keeps cause and cookie. */
LS_API int ls_error_at(int status, const char *format, ...) LS_PRINTF(2, 3);

/* The code for an errno, with the text "<what>: <strerror>". Read errno once,
 * directly after the call that failed, and pass it in. */
LS_API int ls_error_from(int os_errno, const char *what);

/* Clear the last text of this thread: for callers of code that may fail without
 * leaving one. */
LS_API void ls_error_clear(void);

/* The last error's text on this thread; "" when there was none.
 * Borrow: until the next failure on this thread. */
LS_API const char *ls_error_text(void);

/* The first cause of the last error, if it differs from the status that was
 * returned: for LS_EABORTED, the status of the member that gave up first.
 * LS_OK: unknown. Set it after ls_error(). */
LS_API int ls_error_cause(void);
LS_API void ls_error_set_cause(int status);

/* A number of the program's own beside the last error, with which a binding
 * finds the exception that its callback raised. It travels with the text: from
 * a handler to ls_node_take_error(), from a step to ls_task_run(). 0: none. Set
 * it after ls_error(). */
LS_API unsigned long long ls_error_cookie(void);
LS_API void ls_error_set_cookie(unsigned long long cookie);

/* A failure, for code that carries it to another thread. */
struct ls_failure {
    int status; /* LS_OK: none */
    int cause;
    unsigned long long cookie;
    char text[LS_ERROR_TEXT_MAX];
};
/* Copy the last error of this thread, with its status. */
LS_API void ls_failure_keep(struct ls_failure *out, int status);
/* Make it the last error of this thread, unless it is LS_OK. Returns its
 * status. */
LS_API int ls_failure_return(const struct ls_failure *failure);

#ifdef __cplusplus
}
#endif

#endif
