/* progress_line.h - a line that shows where a run is.
 *
 * It is rewritten in place on a terminal, else whole lines, at most one a
 * second, with the last always shown. The same text again writes nothing.
 * Colours in the text (ESC[…m) are left out when NO_COLOR is set, and off
 * terminals; other control characters become blanks. Thread: any. */
#ifndef PROGRESS_LINE_H
#define PROGRESS_LINE_H

#include "lockstep/runtime.h"

typedef struct progress_line progress_line;

/* fd: where to; borrow. terminal: -1 look, 0 no, 1 yes.
 * out: own. Errors: LS_ENOMEM. */
LS_MUST_USE int progress_line_create(progress_line **out, ls_runtime *runtime,
                                     int fd, int terminal);
/* text: one line without newline; cut to the terminal's width, and to 1000
 * bytes. copied */
void progress_line_show(progress_line *line, const char *text);
/* Show the last text for good and end the line; clear takes it away, so that
 * something else can be printed. */
void progress_line_end(progress_line *line);
void progress_line_clear(progress_line *line);
void progress_line_destroy(progress_line **line);

#endif
