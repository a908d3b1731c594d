/* The line that shows where a run is. Design notes:
 *
 * - `text` is what was asked for last, `drawn` what the reader sees: on a
 *   terminal the line in place, else the last whole line.
 * - The width is asked for at every change: windows are resized, and an ioctl
 *   is nothing beside the write. One column stays free, since a terminal that
 *   is full to the edge may already have wrapped.
 * - A screen that cannot be written to must not stop a run: what write(2) says
 *   is not looked at beyond trying again after a signal. */
#include "progress_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "outlet.h"

enum {
    TEXT_BYTES = 1001,
    DRAWN_BYTES = TEXT_BYTES + 16, /* room for what ends a colour */
    COLUMNS = 80                   /* of a terminal that does not say */
};

static const char erase[] = "\x1b[K";
static const char plain_colour[] = "\x1b[0m";

struct progress_line {
    ls_mutex mutex; /* guards what follows */
    ls_runtime *runtime;
    int fd;
    bool terminal;
    bool colour;
    bool on_screen;   /* terminal: the cursor stands in our line */
    int64_t drawn_at; /* plain: LS_NOW before the first line */
    char text[TEXT_BYTES];
    char drawn[DRAWN_BYTES];
};

/* In one write, so that lines of several processes do not mix. */
static void put(const progress_line *progress, const char *before,
                const char *text, const char *after)
{
    char line[DRAWN_BYTES + 16];
    const int n = snprintf(line, sizeof line, "%s%s%s", before, text, after);
    outlet_write(progress->fd, line, (size_t)n);
}

static size_t columns_of(const progress_line *progress)
{
    if (!progress->terminal)
        return TEXT_BYTES;
    struct winsize size;
    if (ioctl(progress->fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return COLUMNS - 1;
    return size.ws_col - 1u;
}

/* Bytes of a colour sequence that begins here: ESC [ digits and ; m. */
static size_t colour_bytes(const char *text)
{
    if (text[0] != '\x1b' || text[1] != '[')
        return 0;
    const size_t n = strspn(text + 2, "0123456789;");
    return text[2 + n] == 'm' ? n + 3 : 0;
}

/* Bytes of the character that begins here: itself and what continues it. */
static size_t character_bytes(const char *text)
{
    size_t n = 1;
    while (((unsigned char)text[n] & 0xC0) == 0x80)
        n++;
    return n;
}

/* What of `text` is drawn in so many columns; a character is one column. */
static void fit(const progress_line *progress, char out[DRAWN_BYTES])
{
    size_t columns = columns_of(progress);
    bool coloured = false;
    size_t used = 0;
    for (const char *at = progress->text; *at != '\0';) {
        size_t n = colour_bytes(at);
        const bool is_colour = n > 0;
        if (!is_colour) {
            if (columns-- == 0)
                break;
            n = character_bytes(at);
        }
        if (!is_colour || progress->colour) {
            memcpy(out + used, at, n);
            if ((unsigned char)*at < 0x20 && !is_colour)
                out[used] = ' ';
            used += n;
            coloured |= is_colour;
        }
        at += n;
    }
    out[used] = '\0';
    if (coloured)
        memcpy(out + used, plain_colour, sizeof plain_colour);
}

int progress_line_create(progress_line **out, ls_runtime *runtime, int fd,
                         int terminal)
{
    *out = NULL;
    progress_line *progress = calloc(1, sizeof *progress);
    if (progress == NULL)
        return ls_error(LS_ENOMEM, "progress: no memory for a line");
    const int status = ls_mutex_init(&progress->mutex, runtime);
    if (status != LS_OK) {
        free(progress);
        return status;
    }
    const char *no_colour = getenv("NO_COLOR");
    const char *kind = getenv("TERM");
    progress->runtime = runtime;
    progress->fd = fd;
    progress->terminal =
        terminal < 0
            ? isatty(fd) == 1 && (kind == NULL || strcmp(kind, "dumb") != 0)
            : terminal > 0;
    progress->colour =
        progress->terminal && (no_colour == NULL || no_colour[0] == '\0');
    progress->drawn_at = LS_NOW;
    *out = progress;
    return LS_OK;
}

/* Whole lines: draw unless it is the same, or too early and not the last. */
static void draw_line(progress_line *progress, bool last)
{
    char fitted[DRAWN_BYTES];
    fit(progress, fitted);
    const int64_t now = ls_now(progress->runtime);
    const bool early =
        progress->drawn_at != LS_NOW && now - progress->drawn_at < LS_NS_PER_S;
    if (fitted[0] == '\0' || strcmp(fitted, progress->drawn) == 0 ||
        (early && !last))
        return;
    put(progress, "", fitted, "\n");
    memcpy(progress->drawn, fitted, sizeof fitted);
    progress->drawn_at = now;
}

static void draw_in_place(progress_line *progress)
{
    char fitted[DRAWN_BYTES];
    fit(progress, fitted);
    if (progress->on_screen ? strcmp(fitted, progress->drawn) == 0
                            : fitted[0] == '\0')
        return;
    put(progress, "\r", fitted, erase);
    memcpy(progress->drawn, fitted, sizeof fitted);
    progress->on_screen = true;
}

void progress_line_show(progress_line *progress, const char *text)
{
    ls_mutex_lock(&progress->mutex);
    snprintf(progress->text, sizeof progress->text, "%s", text);
    if (progress->terminal)
        draw_in_place(progress);
    else
        draw_line(progress, false);
    ls_mutex_unlock(&progress->mutex);
}

void progress_line_end(progress_line *progress)
{
    ls_mutex_lock(&progress->mutex);
    if (progress->terminal) {
        draw_in_place(progress);
        if (progress->on_screen)
            put(progress, "", "", "\n");
    } else {
        draw_line(progress, true);
    }
    progress->on_screen = false;
    progress->drawn_at = LS_NOW;
    progress->text[0] = '\0';
    progress->drawn[0] = '\0';
    ls_mutex_unlock(&progress->mutex);
}

void progress_line_clear(progress_line *progress)
{
    ls_mutex_lock(&progress->mutex);
    if (progress->on_screen)
        put(progress, "\r", "", erase);
    progress->on_screen = false;
    ls_mutex_unlock(&progress->mutex);
}

void progress_line_destroy(progress_line **progress)
{
    if (progress == NULL || *progress == NULL)
        return;
    ls_mutex_fini(&(*progress)->mutex);
    free(*progress);
    *progress = NULL;
}
