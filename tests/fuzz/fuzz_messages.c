/* Any bytes as what a coordinator asks, or is answered: the first says as which
 * message they are read. What is accepted is written as itself. */
#include "fuzz.h"
#include "messages.h"

FUZZ_MESSAGE(resource, struct service_resource, service_resource_read,
             service_resource_write, fuzz_owns_nothing)
FUZZ_MESSAGE(key, struct work_key, work_key_read, work_key_write,
             fuzz_owns_nothing)
FUZZ_MESSAGE(learner, struct learner_work, learner_work_read,
             learner_work_write, fuzz_owns_nothing)
FUZZ_MESSAGE(collector, struct collector_work, collector_work_read,
             collector_work_write, fuzz_owns_nothing)
FUZZ_MESSAGE(demand, struct learner_demand, learner_demand_read,
             learner_demand_write, fuzz_owns_nothing)
FUZZ_MESSAGE(batch, struct learner_batch, learner_batch_read,
             learner_batch_write, learner_batch_fini)
FUZZ_MESSAGE(result, struct learner_result, learner_result_read,
             learner_result_write, fuzz_owns_nothing)
FUZZ_MESSAGE(ask, struct collector_ask, collector_ask_read, collector_ask_write,
             fuzz_owns_nothing)
FUZZ_MESSAGE(answer, struct collector_data, collector_data_read,
             collector_data_write, collector_data_fini)
FUZZ_MESSAGE(learner_close, struct learner_closed, learner_closed_read,
             learner_closed_write, fuzz_owns_nothing)
FUZZ_MESSAGE(collector_close, struct collector_closed, collector_closed_read,
             collector_closed_write, fuzz_owns_nothing)

static void nothing(const uint8_t *data, size_t size)
{
    (void)service_nothing_read(data, size);
    (void)service_started_read(data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const kinds[])(const uint8_t *data, size_t size) = {
        nothing, resource, key, learner, collector,     demand,
        batch,   result,   ask, answer,  learner_close, collector_close};
    if (size > 0)
        kinds[data[0] % (sizeof kinds / sizeof kinds[0])](data + 1, size - 1);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    return fuzz_mutate(data, size, max_size, seed, 1);
}
