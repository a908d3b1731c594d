#include "command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/runtime.h>

#define WORDS_MAX 6
#define EVERYONE  PORTS_MAX
#define NOBODY    (PORTS_MAX + 1)

struct words {
    unsigned n;
    char *at[WORDS_MAX];
};

static struct words split(char *line)
{
    struct words words = {.n = 0};
    char *rest = line;
    char *word;
    while (words.n < WORDS_MAX && (word = strtok_r(rest, " ", &rest)) != NULL)
        words.at[words.n++] = word;
    return words;
}

static unsigned host_of(const struct fabric *fabric, const char *word)
{
    if (strcmp(word, "*") == 0)
        return EVERYONE;
    const unsigned long number = strtoul(word, NULL, 10);
    return number >= 1 && number <= fabric->n_ports ? (unsigned)number - 1
                                                    : NOBODY;
}

/* Set to false when it is not a number of at least 0 and at most `most`. */
static double number_of(const char *word, double most, bool *fine)
{
    char *end;
    const double number = strtod(word, &end);
    if (end == word || *end != '\0' || !(number >= 0) || number > most)
        *fine = false;
    return number;
}

static bool is(unsigned host, unsigned selected)
{
    return selected == EVERYONE || host == selected;
}

/* Change every path from `from` to `to` to what it is, but for `change`. */
struct change {
    enum { DELAY, LOSS, DUPLICATE, REORDER, CUT } what;
    double value, jitter;
};

static void change_path(struct path *path, const struct change *change)
{
    switch (change->what) {
    case DELAY:
        path->delay_ns = (int64_t)(change->value * LS_NS_PER_MS);
        path->jitter_ns = (int64_t)(change->jitter * LS_NS_PER_MS);
        break;
    case LOSS:
        path->loss = change->value;
        break;
    case DUPLICATE:
        path->duplicate = change->value;
        break;
    case REORDER:
        path->reorder = change->value;
        break;
    case CUT:
        path->cut = true;
        break;
    }
}

static bool change_paths(struct fabric *fabric, unsigned from, unsigned to,
                         const struct change *change)
{
    if (from == NOBODY || to == NOBODY)
        return false;
    for (unsigned i = 0; i < fabric->n_ports; i++)
        for (unsigned j = 0; j < fabric->n_ports; j++)
            if (is(i, from) && is(j, to))
                change_path(&fabric->paths[i][j], change);
    return true;
}

/* delay, loss, duplicate, reorder: one or two numbers, then maybe two hosts. */
static bool shape(struct fabric *fabric, const struct words *words)
{
    static const char *const names[] = {"delay", "loss", "duplicate",
                                        "reorder"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        struct change change = {.what = i};
        const unsigned n = i == DELAY ? 3 : 2;
        if (strcmp(words->at[0], names[i]) != 0)
            continue;
        if (words->n != n && words->n != n + 2)
            return false;
        bool fine = true;
        change.value = number_of(words->at[1], i == DELAY ? 60000 : 1, &fine);
        if (i == DELAY)
            change.jitter = number_of(words->at[2], 60000, &fine);
        const bool all = words->n == n;
        const unsigned from = all ? EVERYONE : host_of(fabric, words->at[n]);
        const unsigned to = all ? EVERYONE : host_of(fabric, words->at[n + 1]);
        return fine && change_paths(fabric, from, to, &change);
    }
    return false;
}

static bool cut(struct fabric *fabric, const struct words *words)
{
    const struct change change = {.what = CUT};
    if (words->n != 3)
        return false;
    const unsigned a = host_of(fabric, words->at[1]);
    const unsigned b = host_of(fabric, words->at[2]);
    return change_paths(fabric, a, b, &change) &&
           (strcmp(words->at[0], "oneway") == 0 ||
            change_paths(fabric, b, a, &change));
}

static bool heal(struct fabric *fabric, const struct words *words, int64_t now)
{
    bool fine = words->n <= 2;
    if (words->n == 2)
        fabric->heal_at =
            now +
            (int64_t)(number_of(words->at[1], 3.6e6, &fine) * LS_NS_PER_MS);
    else
        fabric->heal_at = now;
    return fine;
}

static bool kill_host(struct fabric *fabric, const struct words *words)
{
    const unsigned host =
        words->n == 2 ? host_of(fabric, words->at[1]) : NOBODY;
    if (host >= fabric->n_ports)
        return false;
    fabric->ports[host].dead = true;
    return true;
}

static bool print_stats(const struct fabric *fabric)
{
    const struct fabric_stats *s = &fabric->stats;
    printf("sent %" PRIu64 " delivered %" PRIu64 " lost %" PRIu64
           " cut %" PRIu64 " duplicated %" PRIu64 " reordered %" PRIu64
           " overflowed %" PRIu64 " refused %" PRIu64 " underway %zu\n",
           s->sent, s->delivered, s->lost, s->cut, s->duplicated, s->reordered,
           s->overflowed, s->refused, fabric->frames.n);
    return true;
}

static bool carry_out(struct fabric *fabric, const struct words *words,
                      int64_t now)
{
    if (words->n == 0)
        return false;
    if (strcmp(words->at[0], "cut") == 0 || strcmp(words->at[0], "oneway") == 0)
        return cut(fabric, words);
    if (strcmp(words->at[0], "heal") == 0)
        return heal(fabric, words, now);
    if (strcmp(words->at[0], "dead") == 0)
        return kill_host(fabric, words);
    return shape(fabric, words);
}

void command(struct fabric *fabric, char *line, int64_t now)
{
    if (strcmp(line, "stats") == 0) {
        print_stats(fabric);
        return;
    }
    char text[128];
    snprintf(text, sizeof text, "%s", line);
    const struct words words = split(line);
    if (carry_out(fabric, &words, now))
        printf("ok %" PRId64 "\n", now);
    else
        printf("error: \"%s\" is not a command, see command.h\n", text);
}
