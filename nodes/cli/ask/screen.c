#ifdef __linux__
#define _DEFAULT_SOURCE /* TIOCGWINSZ */
#endif
#include "screen.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* The other screen, without a cursor; and back. */
#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[?25h\033[?1049l"

static int put(const char *text, size_t size)
{
    while (size > 0) {
        const ssize_t n = write(STDOUT_FILENO, text, size);
        if (n < 0 && errno != EINTR)
            return ls_error_from(errno, "the terminal");
        text += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return LS_OK;
}

static void restore(struct screen *screen)
{
    (void)put(LEAVE, sizeof LEAVE - 1);
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &screen->before);
}

static void on_signal(void *self, int number)
{
    struct screen *screen = self;
    ls_mutex_lock(&screen->mutex);
    restore(screen);
    _exit(128 + number);
}

int screen_begin(struct screen *out)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    const char *const kind = getenv("TERM");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ||
        (kind != NULL && strcmp(kind, "dumb") == 0))
        return ls_error(LS_EINVAL,
                        "lockstep top needs a terminal; elsewhere there is "
                        "lockstep status --watch");
    struct screen screen = {.signals = NULL};
    if (tcgetattr(STDIN_FILENO, &screen.before) < 0)
        return ls_error_from(errno, "the terminal");
    int status = ls_mutex_init(&screen.mutex, ls_runtime_threads());
    if (status != LS_OK)
        return status;
    *out = screen;
    status = ls_signal_watch(&out->signals, ends, sizeof ends / sizeof ends[0],
                             on_signal, out);
    struct termios raw = out->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG | IEXTEN);
    raw.c_iflag &= ~(tcflag_t)IXON;
    if (status == LS_OK && tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw) < 0)
        status = ls_error_from(errno, "the terminal");
    if (status == LS_OK)
        status = put(ENTER, sizeof ENTER - 1);
    if (status != LS_OK)
        screen_end(out);
    return status;
}

void screen_end(struct screen *screen)
{
    if (screen == NULL)
        return;
    ls_signal_unwatch(&screen->signals);
    restore(screen);
    ls_mutex_fini(&screen->mutex);
}

/* text, cut to `columns` characters in each of at most `rows` lines. */
static void fit(FILE *to, const char *text, unsigned columns, unsigned rows)
{
    (void)fputs("\033[H", to);
    for (unsigned row = 0; row < rows && *text != '\0'; row++) {
        unsigned column = 0;
        (void)fputs(row > 0 ? "\n" : "", to);
        for (; *text != '\0' && *text != '\n'; text++) {
            column += ((unsigned char)*text & 0xC0) != 0x80;
            if (column <= columns)
                (void)fputc(*text, to);
        }
        (void)fputs("\033[K", to);
        text += *text == '\n';
    }
    (void)fputs("\033[J", to);
}

int screen_show(struct screen *screen, const char *text)
{
    struct winsize size;
    char *drawn = NULL;
    size_t n;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0 ||
        size.ws_row == 0)
        size = (struct winsize){.ws_col = 80, .ws_row = 24};
    FILE *to = open_memstream(&drawn, &n);
    if (to == NULL)
        return ls_error(LS_ENOMEM, "drawing");
    fit(to, text, size.ws_col, size.ws_row);
    int status = fclose(to) == 0 ? LS_OK : ls_error(LS_ENOMEM, "drawing");
    ls_mutex_lock(&screen->mutex);
    if (status == LS_OK)
        status = put(drawn, n);
    ls_mutex_unlock(&screen->mutex);
    free(drawn);
    return status;
}

/* A read returns after `seconds`. Not while a signal's end restores what was:
 * that keeps the lock, so nothing is set behind it. */
static int set_timer(struct screen *screen, double seconds)
{
    struct termios raw;
    ls_mutex_lock(&screen->mutex);
    int failed = tcgetattr(STDIN_FILENO, &raw);
    if (failed == 0) {
        raw.c_cc[VMIN] = 0;
        raw.c_cc[VTIME] = (cc_t)(seconds * 10.0 + 0.5);
        failed = tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    const int error = errno;
    ls_mutex_unlock(&screen->mutex);
    return failed == 0 ? LS_OK : ls_error_from(error, "the terminal");
}

/* The terminal itself keeps the time: VTIME. */
int screen_wait(struct screen *screen, double seconds, bool *goes_on)
{
    char key = '\0';
    const int64_t begin = ls_now(ls_runtime_threads());
    const int status = set_timer(screen, seconds);
    if (status != LS_OK)
        return status;
    const ssize_t n = read(STDIN_FILENO, &key, 1);
    if (n < 0 && errno != EINTR)
        return ls_error_from(errno, "the terminal");
    if (n == 0 && ls_now(ls_runtime_threads()) - begin < 20 * LS_NS_PER_MS)
        return ls_error(LS_EIO, "the terminal is gone");
    *goes_on = n != 1 || strchr("qQ\003\004", key) == NULL || key == '\0';
    return LS_OK;
}
