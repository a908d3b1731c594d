/* The log of a simulation, its hash, and what is wrong with a run. */
#include "runtime_sim.h"
#include "text_pieces.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

static size_t put_text(char *at, const char *text)
{
    return (size_t)(stpcpy(at, text) - at);
}

/* Seconds with nine decimals; printf would take longer than all the rest. */
static size_t put_time(char *at, int64_t ns)
{
    char digits[24];
    size_t n = 0;
    for (uint64_t left = (uint64_t)ns; left > 0 || n < 10; left /= 10)
        digits[n++] = (char)('0' + left % 10);
    size_t length = 0;
    while (n > 0) {
        at[length++] = digits[--n];
        if (n == 9)
            at[length++] = '.';
    }
    return length;
}

/* Who does it, and when. */
static size_t put_head(char *at, const ls_simulation *simulation)
{
    const struct sim_thread *const thread = simulation->current;
    size_t n = put_time(at, simulation->now);
    at[n++] = ' ';
    n += put_text(at + n, thread != NULL ? thread->host->name : "-");
    at[n++] = '/';
    n += put_text(at + n, thread != NULL ? thread->name : "-");
    at[n++] = ' ';
    return n;
}

/* No byte of a text ends the line, or one that was cut a character. */
static void clean(char *line, size_t length, bool cut)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7F)
            line[i] = '?';
    while (cut && length > 0 && ((unsigned char)line[length - 1] & 0x80) != 0)
        line[--length] = '\0';
}

static LS_PRINTF(2, 0) void add_line(ls_simulation *simulation,
                                     const char *format, va_list arguments)
{
    char *const line =
        simulation->lines[simulation->n_lines++ % simulation->keep];
    const size_t head = put_head(line, simulation);
    const size_t room = SIM_LINE_BYTES - head;
    const int wanted = vsnprintf(line + head, room, format, arguments);
    if (wanted < 0)
        line[head] = '\0';
    const bool cut = wanted >= 0 && (size_t)wanted >= room;
    clean(line, strlen(line), cut);
    simulation->hash =
        XXH3_64bits_withSeed(line, strlen(line), simulation->hash);
    if (simulation->log != NULL)
        (void)fprintf(simulation->log, "%s\n", line);
}

void ls_simulation_note(ls_simulation *simulation, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_line(simulation, format, arguments);
    va_end(arguments);
}

uint64_t ls_simulation_hash(const ls_simulation *simulation)
{
    return simulation->hash;
}

void ls_simulation_print(const ls_simulation *simulation, FILE *out)
{
    const uint64_t n = simulation->n_lines;
    uint64_t i = n > simulation->keep ? n - simulation->keep : 0;
    for (; i < n; i++)
        (void)fprintf(out, "%s\n", simulation->lines[i % simulation->keep]);
}

void ls_simulation_violation(ls_simulation *simulation, const char *format, ...)
{
    char text[LS_ERROR_TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(text, sizeof text, format, arguments) < 0)
        text[0] = '\0';
    va_end(arguments);
    ls_simulation_note(simulation, "violation: %s", text);
    if (simulation->violated)
        return;
    simulation->violated = true;
    memcpy(simulation->violation, text, strlen(text) + 1);
}

bool ls_simulation_is_violated(const ls_simulation *simulation)
{
    return simulation->violated;
}

int ls_simulation_watch(ls_simulation *simulation,
                        void (*check)(void *self, ls_simulation *simulation),
                        void *self)
{
    struct sim_watch *const watches =
        realloc(simulation->watches,
                (simulation->n_watches + 1) * sizeof *simulation->watches);
    if (watches == NULL)
        return ls_error(LS_ENOMEM, "no memory to watch a simulation");
    watches[simulation->n_watches++] =
        (struct sim_watch){.check = check, .self = self};
    simulation->watches = watches;
    return LS_OK;
}

void ls_sim_check(ls_simulation *simulation)
{
    for (size_t i = 0; i < simulation->n_watches; i++)
        simulation->watches[i].check(simulation->watches[i].self, simulation);
}

/* Who holds the mutex that a thread waits for. It may have ended with it. */
static void add_owner(struct line *line, const struct sim_thread *thread)
{
    const struct sim_thread *const owner = ls_sim_mutex_owner(thread->wait_for);
    const struct sim_thread *at = thread->host->simulation->oldest;
    while (at != NULL && at != owner)
        at = at->younger;
    if (owner == thread)
        line_add(line, "itself");
    else if (owner == NULL)
        line_add(line, "nobody");
    else if (at == NULL)
        line_add(line, "somebody who is gone");
    else
        line_add(line, "%s/%s", owner->host->name, owner->name);
}

/* The condition's address would differ from run to run, so it is not shown. */
static void add_thread(struct line *line, const struct sim_thread *thread)
{
    line_add(line, "%s%s/%s ", line->size == 0 ? "" : "; ", thread->host->name,
             thread->name);
    const struct sim_thread *other = NULL;
    switch (thread->wait) {
    case SIM_WAITS_MUTEX:
        line_add(line, "waits for a mutex that ");
        add_owner(line, thread);
        line_add(line, " holds");
        break;
    case SIM_WAITS_COND:
        line_add(line, "waits for a condition");
        break;
    case SIM_WAITS_END:
        other = thread->wait_for;
        line_add(line, "joins %s/%s", other->host->name, other->name);
        break;
    case SIM_WAITS_WORDS:
        line_add(line, "waits for words of shared memory");
        break;
    case SIM_WAITS_BELL:
        line_add(line, "waits for the bell of its memory");
        break;
    case SIM_RESTS:
        line_add(line, "rests");
        break;
    case SIM_RUNS:
        line_add(line, "can run");
        break;
    }
    if (thread->timer.place != 0)
        line_add(line, " until %lld.%09lld s",
                 (long long)(thread->timer.at / LS_NS_PER_S),
                 (long long)(thread->timer.at % LS_NS_PER_S));
    if (thread->host->paused)
        line_add(line, ", its host paused");
}

int ls_sim_stuck(ls_simulation *simulation, int status, const char *why)
{
    struct line line = {.size = 0};
    for (const struct sim_thread *thread = simulation->oldest; thread != NULL;
         thread = thread->younger)
        if (thread->fiber != NULL)
            add_thread(&line, thread);
    ls_simulation_note(simulation, "%s: %s", why, line.text);
    return ls_error(status, "%s at %lld.%09lld s: %s", why,
                    (long long)(simulation->now / LS_NS_PER_S),
                    (long long)(simulation->now % LS_NS_PER_S), line.text);
}
