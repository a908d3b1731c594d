/* The samples of a rank in one epoch, batch by batch:
 * sampler [LENGTH SEED EPOCH SPREAD RANK RANKS [CONSUMED]] */
#include <inttypes.h>
#include <lockstep/lockstep.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 3 };

static int print_batches(ls_sampler *sampler)
{
    uint64_t indices[BATCH];
    const char *between = "";
    size_t n;
    int status;
    while ((status = ls_sampler_next(sampler, indices, &n)) == LS_OK && n > 0) {
        for (size_t i = 0; i < n; i++) {
            printf("%s%" PRIu64, between, indices[i]);
            between = " ";
        }
        status = ls_sampler_consume(sampler, 1);
    }
    printf("\n");
    return status;
}

static uint64_t number(char **argv, int at)
{
    return strtoull(argv[at], NULL, 10);
}

int main(int argc, char **argv)
{
    static char *usual[] = {"", "10", "7", "3", "dist", "0", "2", NULL};
    if (argc < 7) {
        argv = usual;
        argc = 7;
    }
    struct ls_sampler_options options = {.length = number(argv, 1),
                                         .seed = number(argv, 2),
                                         .rank = (uint32_t)number(argv, 5),
                                         .ranks = (uint32_t)number(argv, 6),
                                         .batch_size = BATCH};
    while (options.spread < LS_SPREAD_EXACT &&
           strcmp(argv[4], ls_spread_name(options.spread)) != 0)
        options.spread++;
    struct ls_sampler_state state;
    ls_sampler *sampler = NULL;
    int status = ls_sampler_create(&sampler, &options);
    if (status == LS_OK)
        status = ls_sampler_set_epoch(sampler, number(argv, 3));
    if (status == LS_OK && argc > 7) { /* as from a checkpoint */
        ls_sampler_save(sampler, &state);
        state.consumed = number(argv, 7);
        status = ls_sampler_load(sampler, &state);
    }
    if (status == LS_OK)
        status = print_batches(sampler);
    if (status != LS_OK)
        fprintf(stderr, "sampler: %s\n", ls_error_text());
    ls_sampler_destroy(&sampler);
    return ls_status_exit_code(status);
}
