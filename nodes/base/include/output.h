/* output.h - what the program writes to stdout, and whether it got there.
 *
 * Commands print as they like; that a disk is full, or that nobody reads any
 * more, is noticed here, once for all of them. A run is not ended by the first:
 * its work is worth more than its log.
 * Thread: serial, with all that writes to stdout. */
#ifndef LOCKSTEP_OUTPUT_H
#define LOCKSTEP_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lockstep/status.h"

/* Before anything is written or opened: a closed pipe is an error as others
 * are, so that a command can end in good order, and what was closed from the
 * beginning stays unused. */
void output_init(void);

/* Have written all that was printed so far. Once it has failed it fails so from
 * then on.
 * Errors: LS_ECLOSED nobody reads it; LS_EIO it cannot be written: the text
 *         says why. */
int output_flush(void);

/* The exit code of the program, from that of its command: when something was
 * not written, 128 + SIGPIPE if nobody read it, and 1 otherwise, with a line on
 * stderr; a command that failed has its own. */
int output_end(int exit_code);

/* What somebody else's file says, on a terminal: a `?` for each control
 * character, so that it steers nothing.
 * lines: newlines stay. size: of `to`; the rest is cut off. Returns to. */
const char *output_said(const char *said, bool lines, char *to, size_t size);

/* fprintf() of a text with such words in it: each goes through output_said(),
 * with its newlines. */
void output_print(FILE *to, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A line of a summary; of text as output_said() has it. */
void output_row(const char *name, const char *text);

/* A whole number with its thousands apart. */
struct count_text {
    char text[32];
};
struct count_text output_count(int64_t value);

#endif
