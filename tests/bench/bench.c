#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS_DEFAULT 9

static void usage(const char *program)
{
    (void)fprintf(stderr, "usage: %s [--json] [--rounds N]  (N: %d to %d)\n",
                  program, BENCH_ROUNDS_MIN, BENCH_ROUNDS_MAX);
    exit(2);
}

void bench_options_read(struct bench_options *options, int argc, char **argv)
{
    *options = (struct bench_options){.n_rounds = ROUNDS_DEFAULT};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            options->json = 1;
        } else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
            char *end;
            const long n = strtol(argv[++i], &end, 10);
            if (*end != '\0' || n < BENCH_ROUNDS_MIN || n > BENCH_ROUNDS_MAX)
                usage(argv[0]);
            options->n_rounds = (int)n;
        } else {
            usage(argv[0]);
        }
    }
}

bool bench_is_asked_for(const char *variable, int number)
{
    const char *value = getenv(variable);
    return value == NULL || atoi(value) == number;
}

void bench_choice_read(struct bench_choice *choice, int *argc, char **argv)
{
    const int most = sizeof choice->words / sizeof choice->words[0];
    int n = 1;
    *choice = (struct bench_choice){.quick = false};
    for (int i = 1; i < *argc; i++) {
        const bool is_value = strcmp(argv[i - 1], "--rounds") == 0;
        if (strcmp(argv[i], "--quick") == 0)
            choice->quick = true;
        else if (argv[i][0] != '-' && !is_value && choice->n_words < most)
            choice->words[choice->n_words++] = argv[i];
        else
            argv[n++] = argv[i];
    }
    *argc = n;
}

static bool has_word(const char *name, const char *word)
{
    const size_t size = strlen(word);
    for (const char *at = name; (at = strstr(at, word)) != NULL; at += size)
        if ((at == name || at[-1] == ' ') &&
            (at[size] == ' ' || at[size] == '\0'))
            return true;
    return false;
}

bool bench_is_chosen(struct bench_choice *choice, const char *name)
{
    for (int i = 0; i < choice->n_words; i++)
        if (!has_word(name, choice->words[i]))
            return false;
    choice->n_chosen++;
    return true;
}

int bench_choice_end(const struct bench_choice *choice)
{
    if (choice->n_chosen > 0)
        return 0;
    (void)fprintf(stderr, "nothing has all these words\n");
    return 2;
}

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

void bench_measure(struct bench_figure *figures, size_t n,
                   const struct bench_options *options)
{
    const int n_rounds = options->n_rounds;
    for (size_t i = 0; i < n; i++)
        (void)figures[i].run(figures[i].self);
    for (int round = 0; round < n_rounds; round++)
        for (size_t i = 0; i < n; i++) {
            struct bench_figure *f = &figures[round % 2 == 0 ? i : n - 1 - i];
            f->rounds[round] = f->run(f->self);
        }
}

void bench_order(struct bench_figure *figures, size_t n,
                 const struct bench_options *options)
{
    const int n_rounds = options->n_rounds;
    for (size_t i = 0; i < n; i++) {
        double *rounds = figures[i].rounds;
        qsort(rounds, (size_t)n_rounds, sizeof *rounds, compare);
        figures[i].min = rounds[0];
        figures[i].max = rounds[n_rounds - 1];
        figures[i].median =
            (rounds[(n_rounds - 1) / 2] + rounds[n_rounds / 2]) / 2;
    }
}

void bench_run(struct bench_figure *figures, size_t n,
               const struct bench_options *options)
{
    bench_measure(figures, n, options);
    bench_order(figures, n, options);
}

void bench_print(const char *bench, const struct bench_figure *figures,
                 size_t n, const struct bench_options *options)
{
    if (!options->json)
        (void)printf("%-40s %12s %12s %12s  %s\n", bench, "median", "min",
                     "max", "unit");
    for (size_t i = 0; i < n; i++) {
        const struct bench_figure *f = &figures[i];
        if (options->json)
            (void)printf("{\"bench\":\"%s\",\"figure\":\"%s\",\"unit\":\"%s\","
                         "\"median\":%.6g,\"min\":%.6g,\"max\":%.6g,"
                         "\"rounds\":%d}\n",
                         bench, f->name, f->unit, f->median, f->min, f->max,
                         options->n_rounds);
        else
            (void)printf("%-40s %12.2f %12.2f %12.2f  %s\n", f->name, f->median,
                         f->min, f->max, f->unit);
    }
}

void bench_print_derived(const char *bench, const char *name, const char *unit,
                         double value, const struct bench_options *options)
{
    if (options->json)
        (void)printf("{\"bench\":\"%s\",\"figure\":\"%s\",\"unit\":\"%s\","
                     "\"median\":%.6g}\n",
                     bench, name, unit, value);
    else
        (void)printf("%-40s %12.2f %12s %12s  %s\n", name, value, "", "", unit);
}

void bench_compare(const char *bench, const char *name, const char *to,
                   const struct bench_figure *other,
                   const struct bench_figure *figure,
                   const struct bench_options *options)
{
    double sum = 0, squares = 0;
    char line[80];
    for (int i = 0; i < options->n_rounds; i++) {
        const double ratio = log(figure->rounds[i] / other->rounds[i]);
        sum += ratio;
        squares += ratio * ratio;
    }
    const double n = options->n_rounds, mean = sum / n;
    const double spread = sqrt((squares - n * mean * mean) / (n - 1));
    const double student = 1.96 + 2.5 / (n - 1); /* 0.975, from 7 rounds on */
    const double error = student * spread / sqrt(n);
    (void)snprintf(line, sizeof line, "%s, ratio to %s", name, to);
    bench_print_derived(bench, line, "x", exp(mean), options);
    (void)snprintf(line, sizeof line, "%s, at least", name);
    bench_print_derived(bench, line, "x", exp(mean - error), options);
    (void)snprintf(line, sizeof line, "%s, at most", name);
    bench_print_derived(bench, line, "x", exp(mean + error), options);
}
