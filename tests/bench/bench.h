/* bench.h - figures that are compared side by side.
 *
 * What is compared runs in the same process, round about, so that a busy or
 * slow moment hits all of it: one warm-up round, then at least seven, there and
 * back in turn, so that nothing always comes after the same. A figure is the
 * median of its rounds, with the least and the most beside it. --json
 * prints one line of JSON for each figure in place of the table:
 *   {"bench":"step","figure":"nested calls","unit":"ns","median":9.1,
 *    "min":9.0,"max":9.9,"rounds":9}
 * Benchmarks link this by being in the same folder. */
#ifndef LOCKSTEP_BENCH_H
#define LOCKSTEP_BENCH_H

#include <stdbool.h>
#include <stddef.h>

#define BENCH_ROUNDS_MIN 7
#define BENCH_ROUNDS_MAX 2001

struct bench_figure {
    const char *name;
    const char *unit;
    double (*run)(void *self); /* measures once; the figure, in its unit */
    void *self;

    double rounds[BENCH_ROUNDS_MAX]; /* by bench_run() in order of size */
    double median;
    double min;
    double max;
};

struct bench_options {
    int n_rounds;
    int json;
};

/* Read "--json" and "--rounds N" (at least 7, at most 2001). Ends the program
 * with a usage line on anything else. */
void bench_options_read(struct bench_options *options, int argc, char **argv);

/* For a program that measures much: what of it is wanted. */
struct bench_choice {
    bool quick;           /* "--quick" */
    const char *words[8]; /* borrow: of argv */
    int n_words;
    int n_chosen; /* so far */
};
/* Take these out of the arguments; bench_options_read() gets the rest. */
void bench_choice_read(struct bench_choice *choice, int *argc, char **argv);
/* Whether a name has all these words. */
bool bench_is_chosen(struct bench_choice *choice, const char *name);
/* The program's exit code: 2, with a line that says so, when none had. */
int bench_choice_end(const struct bench_choice *choice);

/* Whether a number is the one that an environment variable asks for, or there
 * is no such variable. */
bool bench_is_asked_for(const char *variable, int number);

/* Run all figures, one after the other, round by round. */
void bench_run(struct bench_figure *figures, size_t n,
               const struct bench_options *options);
/* The same in two steps, for what is computed of rounds that belong together:
 * measure, then put them in order and find the median. */
void bench_measure(struct bench_figure *figures, size_t n,
                   const struct bench_options *options);
void bench_order(struct bench_figure *figures, size_t n,
                 const struct bench_options *options);

/* Print the table, or the lines. */
void bench_print(const char *bench, const struct bench_figure *figures,
                 size_t n, const struct bench_options *options);

/* What follows from measured figures: one more line below the table. */
void bench_print_derived(const char *bench, const char *name, const char *unit,
                         double value, const struct bench_options *options);

/* The ratio of a figure to another that was measured beside it, both not yet in
 * order: the mean over the rounds, and the interval in which it lies with 95 %
 * confidence. to: what the other is called. */
void bench_compare(const char *bench, const char *name, const char *to,
                   const struct bench_figure *other,
                   const struct bench_figure *figure,
                   const struct bench_options *options);

#endif
