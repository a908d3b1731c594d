/* lockstep - the program. */
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "command.h"
#include "help.h"
#include "output.h"
#include "version.h"

int command_version(const struct options *options)
{
    (void)options;
    printf("lockstep %s\n", version_text());
    return 0;
}

int command_help(const struct options *options)
{
    const int status = help_print(stdout, options->topic);
    return status == LS_OK ? 0 : command_failed(status);
}

static int do_command(const struct options *options)
{
#define COMMAND_DOES(NAME, name, takes_job) [COMMAND_##NAME] = command_##name,
    static int (*const does[])(const struct options *) = {
        COMMAND_MAP(COMMAND_DOES)};
    if (options->command != COMMAND_NONE)
        return does[options->command](options);
    help_print_short(stderr);
    return ls_status_exit_code(LS_EINVAL);
}

static pid_t program; /* not a child that a plugin forks */
static bool is_over;

/* A plugin, or a library of its, may call exit(0): what it ends in the middle
 * must not look like what went well. */
static void refuse_exit(void)
{
    if (is_over || getpid() != program)
        return;
    (void)fputs("lockstep: a plugin, or what it uses, called exit() before "
                "this was done\n",
                stderr);
    _exit(ls_status_exit_code(LS_EHANDLER));
}

/* What this thread writes and reads has a point in its numbers, whatever locale
 * a plugin, or a library of its, sets for the process. */
static void keep_point(void)
{
    const locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (plain != (locale_t)0)
        (void)uselocale(plain);
}

int main(int argc, char **argv)
{
    struct options options;
    keep_point();
    output_init();
    program = getpid();
    (void)atexit(refuse_exit);
    /* Whoever started this may ignore it: then no child's end is known. */
    (void)signal(SIGCHLD, SIG_DFL);
    const int status = options_parse(&options, argc, argv);
    const int exit_code = output_end(status == LS_OK ? do_command(&options)
                                                     : command_failed(status));
    is_over = true;
    return exit_code;
}
