/* exit_code.h - what ends a process, or takes its streams, in one of its own.
 */
#ifndef EXIT_CODE_H
#define EXIT_CODE_H

#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

/* The exit code of a process that does this; 0: it has come to its end. */
static inline int exit_code_of(void (*body)(void))
{
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        body();
        _exit(0);
    }
    int how;
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFEXITED(how));
    return WEXITSTATUS(how);
}

#endif
