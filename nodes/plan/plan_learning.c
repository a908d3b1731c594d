/* What decides what a job learns: the run of a job that was interrupted goes on
 * when this is the same. */
#include "plan.h"

#include <string.h>

#include <xxhash.h>

/* Each hash has the one before as its seed. */
static void add(uint64_t *hash, const void *data, size_t size)
{
    *hash = XXH3_64bits_withSeed(data, size, *hash);
}

static void add_number(uint64_t *hash, double number)
{
    number += 0.0; /* -0.0 is 0.0 */
    add(hash, &number, sizeof number);
}

static void add_numbers(uint64_t *hash, const double *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        add_number(hash, numbers[i]);
}

static void add_text(uint64_t *hash, const char *text)
{
    add(hash, text, strlen(text) + 1);
}

static void add_section(uint64_t *hash, const ls_config_section *section)
{
    const uint64_t of_section = ls_config_section_hash(section);
    add(hash, &of_section, sizeof of_section);
}

static void add_service(uint64_t *hash, const struct fsm_options *fsm)
{
    const struct replay_options *replay = &fsm->replay;
    const double numbers[] = {(double)fsm->batch_size,
                              (double)fsm->samples_per_work,
                              (double)fsm->unroll_len,
                              (double)fsm->split,
                              (double)fsm->send_policy_freq,
                              replay->mode == REPLAY_PRIORITY ? 1.0 : 0.0,
                              (double)replay->capacity,
                              (double)replay->min_size_to_sample,
                              replay->samples_per_insert,
                              replay->error_buffer,
                              (double)replay->staleness_limit,
                              (double)replay->max_times_sampled,
                              replay->min_valid_ratio};
    add_numbers(hash, numbers, sizeof numbers / sizeof numbers[0]);
}

uint64_t plan_learning_hash(const struct plan *plan)
{
    uint64_t hash = 0;
    add_text(&hash, plan->job);
    add_text(&hash, plan->plugin);
    add(&hash, &plan->seed, sizeof plan->seed);
    add_section(&hash, plan->env);
    add_section(&hash, plan->policy);
    const double numbers[] = {(double)plan->envs, (double)plan->steps,
                              (double)plan->learner.passes,
                              (double)plan->learner.n_devices};
    add_numbers(&hash, numbers, sizeof numbers / sizeof numbers[0]);
    for (int role = 0; role < PLAN_N_ROLES; role++)
        add_number(&hash, (double)plan_count(plan, (enum plan_role)role));
    if (plan_is_service(plan)) {
        add_service(&hash, &plan->service.fsm);
        if (plan_ranks(plan) > 1) /* in step all learners are */
            add_number(&hash, (double)plan_ranks(plan));
    } else
        add_number(&hash, (double)plan->learner.queue);
    return hash;
}
