/* What `lockstep bench` takes. */
#include "options_parts.h"

#include <string.h>

#define IN_BENCH(member) offsetof(struct options, bench.member)

/* Where whole numbers go, and what they may be. */
static const struct whole {
    const char *name;
    size_t at; /* of a uint64_t */
    uint64_t min, max;
} wholes[] = {
    {"--queue", IN_BENCH(queue), 1, 1000000},
    {"--stacks", IN_BENCH(stacks), 1, 1024},
    {"--loaders", IN_BENCH(loaders), 0, 1024},
    {"--passes", IN_BENCH(passes), 1, 1000000},
    {"--load-us", IN_BENCH(load_us), 0, 60000000},
    {"--train-us", IN_BENCH(train_us), 0, 60000000},
    {"--batch-bytes", IN_BENCH(batch_bytes), 1, UINT64_C(1) << 40},
};
#define N_WHOLES (sizeof wholes / sizeof wholes[0])

void options_bench_init(struct options *out)
{
    out->bench.devices = "cpu";
    out->bench.queue = 16;
    out->bench.stacks = 4;
    out->bench.loaders = 4;
    out->bench.passes = 1;
    out->bench.load_us = 2000;
    out->bench.train_us = 2000;
    out->bench.batch_bytes = 1 << 20;
    out->bench.seconds = 3;
}

static int read_whole(struct options *out, const struct whole *whole,
                      const char *text)
{
    uint64_t number;
    const int status =
        options_whole(whole->name, text, whole->min, whole->max, &number);
    if (status == LS_OK)
        memcpy((char *)out + whole->at, &number, sizeof number);
    return status;
}

int options_bench(struct options *out, const char *name, const char *text)
{
    for (size_t i = 0; i < N_WHOLES; i++)
        if (strcmp(name, wholes[i].name) == 0)
            return read_whole(out, &wholes[i], text);
    if (strcmp(name, "--seconds") == 0)
        return options_seconds(name, text, &out->bench.seconds);
    out->bench.devices = text; /* --devices, the last one */
    return LS_OK;
}

int options_bench_word(struct options *out, const char *text)
{
    if (out->bench.what != NULL || strcmp(text, "learner") != 0)
        return ls_error(LS_EINVAL,
                        "\"%s\" is nothing to measure; as in: lockstep bench "
                        "learner --stacks 4",
                        text);
    out->bench.what = text;
    return LS_OK;
}

int options_bench_complete(const struct options *options)
{
    if (options->bench.what != NULL)
        return LS_OK;
    return ls_error(LS_EINVAL, "measure what? As in: lockstep bench learner");
}
