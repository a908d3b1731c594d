/* Lines for people, on stderr. Design notes:
 *
 * - A line is put together on the stack, so that logging needs no memory and
 *   cannot fail. It is at most PIPE_BUF of Linux long: then one write(2) into
 *   a pipe or a terminal that several processes share is never torn.
 * - Whoever reads stderr may rest: a terminal that is stopped, a pipe to a
 *   program that waits. Who logs is awaited by others, and must not wait for
 *   that one: it does so for a moment, once, and then leaves lines out until
 *   there is room for one again, which says how many were left out; at the
 *   latest the end of the process says so. poll(2) says that a pipe takes
 *   PIPE_BUF bytes at least.
 * - Texts come from anywhere, peers included. No byte of them can end the
 *   line, break the JSON, or reach a terminal as a control sequence. */
#include "lockstep/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lockstep/simulation.h"
#include "runtime_ops.h"
#include "thread_state.h"
#include "utf8.h"

enum {
    LINE_BYTES = 4096,
    STEP_BYTES = 64, /* shown of a step's name, so that a text has room */
    PATIENCE_MS = 500,
};

/* Behind a line that is cut; kept free with room for the end of a line. */
#define ELLIPSIS   "\xE2\x80\xA6"
#define TAIL_BYTES (sizeof ELLIPSIS "\"}\n")

struct line {
    char bytes[LINE_BYTES];
    size_t length;
    bool full; /* something did not fit; nothing more goes in */
};

struct setting {
    enum ls_log_level level;
    bool json;
};

static const char *const level_names[] = {"error", "warn", "info", "debug",
                                          "trace"};
static const char *const level_colours[] = {"\x1b[31m", "\x1b[33m", "\x1b[32m",
                                            "\x1b[36m", "\x1b[2m"};

enum { UNREAD = -1, JSON_BIT = 8 };

/* A struct setting in one word, so that it is read and changed as a whole. */
static atomic_int packed_setting = UNREAD;

/* Under the process mutex. */
static struct {
    void (*fn)(void *self, const char *line);
    void *self;
} redirection;
/* Lines that stderr did not take: nobody reads it, or a disk is full. It is
 * changed under that mutex. */
static atomic_ullong left_out;

static int pack(struct setting setting)
{
    return (int)setting.level | (setting.json ? JSON_BIT : 0);
}

static struct setting unpack(int packed)
{
    return (struct setting){.level = (enum ls_log_level)(packed & ~JSON_BIT),
                            .json = (packed & JSON_BIT) != 0};
}

static bool read_word(struct setting *setting, const char *word, size_t length)
{
    if (length == 4 && memcmp(word, "json", 4) == 0) {
        setting->json = true;
        return true;
    }
    for (int level = LS_LOG_ERROR; level <= LS_LOG_TRACE; level++) {
        if (strlen(level_names[level]) != length ||
            memcmp(word, level_names[level], length) != 0)
            continue;
        setting->level = (enum ls_log_level)level;
        return true;
    }
    return false;
}

/* Leaves *out alone and returns false when there is a word that is none. */
static bool read_setting(struct setting *out, const char *text)
{
    struct setting setting = {.level = LS_LOG_WARN};
    while (*text != '\0') {
        const size_t length = strcspn(text, ",");
        if (!read_word(&setting, text, length))
            return false;
        text += length;
        text += *text == ',';
    }
    *out = setting;
    return true;
}

/* The environment, read once. It must not disturb the last error's text: this
 * may run while a line that shows that text is on its way. */
static int read_environment(void)
{
    const char *text = getenv("LS_LOG");
    struct setting setting = {.level = LS_LOG_WARN};
    const bool good = text == NULL || read_setting(&setting, text);
    int packed = UNREAD;
    if (!atomic_compare_exchange_strong(&packed_setting, &packed,
                                        pack(setting)))
        return packed;
    if (!good)
        ls_log_warn("log: LS_LOG='%s' is ignored: give a level (error, warn, "
                    "info, debug, trace), json, or both with a comma",
                    text);
    return pack(setting);
}

static struct setting current_setting(void)
{
    const int packed =
        atomic_load_explicit(&packed_setting, memory_order_relaxed);
    return unpack(packed == UNREAD ? read_environment() : packed);
}

int ls_log_setup(const char *setting)
{
    struct setting read;
    if (setting == NULL || !read_setting(&read, setting))
        return ls_error(LS_EINVAL,
                        "log setting '%s': give a level (error, warn, info, "
                        "debug, trace), json, or both with a comma",
                        setting == NULL ? "(null)" : setting);
    atomic_store(&packed_setting, pack(read));
    return LS_OK;
}

/* The simulation whose own log a line belongs into, whatever people want to
 * see: equal runs have equal logs. NULL: none. */
static ls_simulation *noted_in(enum ls_log_level level)
{
    return level > LS_LOG_WARN ? NULL : ls_simulation_of(ls_runtime_current());
}

bool ls_log_enabled(enum ls_log_level level)
{
    return level <= current_setting().level || noted_in(level) != NULL;
}

void ls_log_set_node(int64_t node)
{
    struct thread_state *state = thread_state();
    if (node >= 0 && node + 1 != state->named &&
        (state->runtime == NULL || state->runtime == ls_runtime_threads())) {
        ls_runtime_threads_name(node);
        state->named = node + 1;
    }
    state->node = node;
}

void ls_log_set_step(const char *step)
{
    thread_state()->step = step;
}

int64_t ls_log_node(void)
{
    return thread_state()->node;
}

const char *ls_log_step(void)
{
    return thread_state()->step;
}

void ls_log_redirect(void (*fn)(void *self, const char *line), void *self)
{
    ls_mutex *const mutex = ls_runtime_process_mutex();
    ls_mutex_lock(mutex);
    redirection.fn = fn;
    redirection.self = self;
    ls_mutex_unlock(mutex);
}

/* All of the bytes or none: an escape sequence is never cut in two. */
static void append(struct line *line, const char *bytes, size_t size)
{
    if (line->full || size > sizeof line->bytes - TAIL_BYTES - line->length) {
        line->full = true;
        return;
    }
    memcpy(line->bytes + line->length, bytes, size);
    line->length += size;
}

static void append_format(struct line *line, const char *format, ...)
    LS_PRINTF(2, 3);

/* For numbers and names of our own, which are short. */
static void append_format(struct line *line, const char *format, ...)
{
    char bytes[96];
    va_list arguments;
    va_start(arguments, format);
    const int size = vsnprintf(bytes, sizeof bytes, format, arguments);
    va_end(arguments);
    append(line, bytes, (size_t)size);
}

/* The short escapes are the same in JSON and in C. 0: there is none. */
static char short_escape(unsigned char byte)
{
    switch (byte) {
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    default:
        return '\0';
    }
}

/* C0, DEL, and C1, which terminals obey as well: U+0080 to U+009F. */
static bool is_control(const unsigned char *character, size_t length)
{
    if (length == 1)
        return character[0] < 0x20 || character[0] == 0x7F;
    return length == 2 && character[0] == 0xC2 && character[1] < 0xA0;
}

static void append_escape(struct line *line, const unsigned char *character,
                          size_t length, bool json)
{
    const unsigned char last = character[length == 0 ? 0 : length - 1];
    const char letter = length == 1 ? short_escape(last) : '\0';
    if (letter != '\0')
        append_format(line, "\\%c", letter);
    else if (length == 0 && json)
        append_format(line, "\\ufffd");
    else
        append_format(line, json ? "\\u%04x" : "\\x%02x", (unsigned)last);
}

/* Any bytes, as text that is valid within a line or a JSON string. */
static void append_text(struct line *line, const char *text, size_t size,
                        bool json)
{
    const unsigned char *at = (const unsigned char *)text;
    while (size > 0 && !line->full) {
        const size_t length = ls_utf8_character(at, size);
        const size_t taken = length == 0 ? 1 : length;
        if (length == 0 || is_control(at, length))
            append_escape(line, at, length, json);
        else if (json && (*at == '"' || *at == '\\'))
            append_format(line, "\\%c", *at);
        else
            append(line, (const char *)at, length);
        at += taken;
        size -= taken;
    }
}

static void begin_json(struct line *line, enum ls_log_level level, int64_t wall)
{
    const struct thread_state *const thread = thread_state();
    append_format(line, "{\"time\":%lld.%06lld,\"level\":\"%s\"",
                  (long long)(wall / LS_NS_PER_S),
                  (long long)(wall % LS_NS_PER_S / LS_NS_PER_US),
                  level_names[level]);
    if (thread->node >= 0)
        append_format(line, ",\"node\":%lld", (long long)thread->node);
    if (thread->step != NULL) {
        append_format(line, ",\"step\":\"");
        append_text(line, thread->step, strnlen(thread->step, STEP_BYTES),
                    true);
        append_format(line, "\"");
    }
    append_format(line, ",\"text\":\"");
}

static void begin_text(struct line *line, enum ls_log_level level, int64_t wall,
                       bool coloured)
{
    const struct thread_state *const thread = thread_state();
    const long long ms = wall / LS_NS_PER_MS;
    append_format(line, "%02lld:%02lld:%02lld.%03lld %s%-5s%s ",
                  ms / 3600000 % 24, ms / 60000 % 60, ms / 1000 % 60, ms % 1000,
                  coloured ? level_colours[level] : "", level_names[level],
                  coloured ? "\x1b[0m" : "");
    if (thread->node >= 0)
        append_format(line, "node %lld ", (long long)thread->node);
    if (thread->step != NULL) {
        append_format(line, "[");
        append_text(line, thread->step, strnlen(thread->step, STEP_BYTES),
                    false);
        append_format(line, "] ");
    }
}

/* Into the room that append() leaves. */
static void end_line(struct line *line, bool json)
{
    const char *const tails[] = {"", "\"}", ELLIPSIS, ELLIPSIS "\"}"};
    const char *const tail = tails[(line->full ? 2 : 0) + (json ? 1 : 0)];
    memcpy(line->bytes + line->length, tail, strlen(tail) + 1);
    line->length += strlen(tail);
}

/* no-color.org: set and not empty. */
static bool wants_colour(void)
{
    const char *const no_colour = getenv("NO_COLOR");
    return (no_colour == NULL || *no_colour == '\0') && isatty(STDERR_FILENO);
}

/* Times of simulated threads are virtual. */
static void make_line(struct line *line, enum ls_log_level level,
                      const char *text, bool json, bool coloured)
{
    const int64_t wall = ls_wall_now(ls_runtime_current());
    line->length = 0;
    line->full = false;
    if (json)
        begin_json(line, level, wall);
    else
        begin_text(line, level, wall, coloured);
    append_text(line, text, strlen(text), json);
    end_line(line, json);
}

/* Returns whether it did. line: the room for it. */
static bool write_line(struct line *line, enum ls_log_level level,
                       const char *text, bool json, int patience_ms)
{
    ls_runtime *const runtime = ls_runtime_threads();
    if (!ls_runtime_threads_takes(STDERR_FILENO,
                                  ls_deadline(runtime, patience_ms)))
        return false;
    make_line(line, level, text, json, wants_colour());
    line->bytes[line->length++] = '\n';
    ssize_t n;
    do
        n = write(STDERR_FILENO, line->bytes, line->length);
    while (n < 0 && errno == EINTR);
    return n >= 0;
}

/* Returns whether nothing is left to say of lines that were left out. */
static bool say_left_out(struct line *line, bool json, int patience_ms)
{
    char missing[96];
    (void)snprintf(missing, sizeof missing,
                   "log: lines left out before this, which stderr did not "
                   "take: %llu",
                   left_out);
    if (left_out != 0 &&
        write_line(line, LS_LOG_WARN, missing, json, patience_ms))
        left_out = 0;
    return left_out == 0;
}

static void write_stderr(struct line *line, enum ls_log_level level,
                         const char *text, bool json)
{
    const int patience_ms = left_out == 0 ? PATIENCE_MS : 0;
    if (!say_left_out(line, json, 0) ||
        !write_line(line, level, text, json, patience_ms))
        left_out++;
}

/* No line may come after those. Without the mutex, which a thread that is no
 * more may have had when this process was forked. */
__attribute__((destructor)) static void end_log(void)
{
    struct line line;
    if (left_out != 0)
        (void)say_left_out(&line, current_setting().json, PATIENCE_MS);
}

void ls_log_write(enum ls_log_level level, const char *format, ...)
{
    const int caller_errno = errno;
    char text[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(text, sizeof text, format, arguments) < 0)
        text[0] = '\0';
    va_end(arguments);
    ls_simulation *const simulation = noted_in(level);
    if (simulation != NULL)
        ls_simulation_note(simulation, "%s: %s", level_names[level], text);
    const struct setting setting = current_setting();
    if (level > setting.level) {
        errno = caller_errno;
        return;
    }

    /* A text that vsnprintf cut is longer than a line, and is cut again. */
    struct line line;
    ls_mutex *const mutex = ls_runtime_process_mutex();
    ls_mutex_lock(mutex);
    if (redirection.fn == NULL) {
        write_stderr(&line, level, text, setting.json);
    } else {
        make_line(&line, level, text, setting.json, false);
        redirection.fn(redirection.self, line.bytes);
    }
    ls_mutex_unlock(mutex);
    errno = caller_errno;
}
