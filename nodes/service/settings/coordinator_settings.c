#include "coordinator_settings.h"

#include <math.h>

#include "lockstep/status.h"

#include "messages.h"

static int wrong(const char *option, const char *expected)
{
    return ls_error(LS_EINVAL, "a coordinator: %s: expected %s", option,
                    expected);
}

int coordinator_settings_check(const struct fsm_options *options)
{
    const int64_t most = SERVICE_COUNT_MAX;
    const struct {
        const char *name;
        int64_t value, least, most;
    } numbers[] = {
        {"iterations", options->iterations, 0, most},
        {"eval_interval", options->eval_interval, 0, INT64_MAX / 4},
        {"eval_episodes", options->eval_episodes, 0, most},
        {"max_env_steps", options->max_env_steps, 0, most},
        {"max_time", options->max_time, 0, INT64_MAX / 4},
        {"samples_per_work", options->samples_per_work, 0, most},
        {"unroll_len", options->unroll_len, 1, 1 << 20},
        {"split", options->split, 1, 1 << 20},
        {"ahead", options->ahead, 0, SERVICE_DATA_MAX - 1},
        {"batch_size", options->batch_size, 1, SERVICE_BATCH_MAX},
        {"learner_batches", options->learner_batches, 0, 1 << 20},
        {"ranks", options->ranks, 0, SERVICE_RANKS_MAX},
        {"send_policy_freq", options->send_policy_freq, 1, most},
        {"send_info_freq", options->send_info_freq, 1, most},
        {"learner_expiry", options->learner_expiry, 0, INT64_MAX / 4},
        {"collector_expiry", options->collector_expiry, 0, INT64_MAX / 4},
        {"retry", options->retry, 0, INT64_MAX / 4},
        {"call_timeout", options->call_timeout, 0, INT64_MAX / 4},
        {"work_timeout", options->work_timeout, 0, INT64_MAX / 4},
        {"max_failures", options->max_failures, 0, most},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (numbers[i].value < numbers[i].least ||
            numbers[i].value > numbers[i].most)
            return ls_error(LS_EINVAL,
                            "a coordinator: %s: expected %lld to %lld",
                            numbers[i].name, (long long)numbers[i].least,
                            (long long)numbers[i].most);
    if (options->unroll_len % options->split != 0)
        return wrong("split", "a divisor of unroll_len");
    if (!isnan(options->stop_value) && options->eval_episodes == 0)
        return wrong("eval_episodes", "at least 1 with a stop_value");
    if (options->ranks > 1 && options->batch_size % options->ranks != 0)
        return wrong("batch_size", "a multiple of ranks");
    if (options->keeps_samples && !options->data_stays)
        return wrong("keeps_samples", "data that stays");
    return LS_OK;
}
