/* message_examples.h - one of each message, and how it goes both ways. */
#ifndef MESSAGE_EXAMPLES_H
#define MESSAGE_EXAMPLES_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/call.h"

#include "support/service_messages.h"
#include "test.h"

/* One message: what it is called in errors, and how it goes both ways. */
struct example {
    const char *call;
    const void *value;
    size_t size;
    void (*write)(const void *in, ls_writer *out);
    int (*read)(void *out, const void *data, size_t size);
};

#define WAYS(type)                                                             \
    static void write_##type(const void *in, ls_writer *out)                   \
    {                                                                          \
        type##_write(in, out);                                                 \
    }                                                                          \
    static int read_##type(void *out, const void *data, size_t size)           \
    {                                                                          \
        return type##_read(out, data, size);                                   \
    }
WAYS(service_resource)
WAYS(work_key)
WAYS(learner_work)
WAYS(collector_work)
WAYS(learner_demand)
WAYS(learner_batch)
WAYS(learner_result)
WAYS(collector_ask)
WAYS(collector_data)
WAYS(learner_closed)
WAYS(collector_closed)

#define EXAMPLE(call, type, value)                                             \
    {                                                                          \
        call, &(value), sizeof(struct type), write_##type, read_##type         \
    }
static const struct example examples[] = {
    EXAMPLE("resource", service_resource, resource),
    EXAMPLE("work", work_key, key),
    EXAMPLE("learner_start_task", learner_work, learner),
    EXAMPLE("collector_start_task", collector_work, collector),
    EXAMPLE("learner_get_data_task", learner_demand, demand),
    EXAMPLE("learner_get_data_task", learner_demand, last_demand),
    EXAMPLE("learner_learn_task", learner_result, result),
    EXAMPLE("learner_learn_task", learner_result, bare_result),
    EXAMPLE("collector_data_task", collector_ask, ask),
    EXAMPLE("collector_data_task", collector_data, done),
    EXAMPLE("learner_close_task", learner_closed, learner_closed),
    EXAMPLE("collector_close_task", collector_closed, collector_closed),
    EXAMPLE("learner_learn_task", learner_batch, batch),
    EXAMPLE("collector_data_task", collector_data, data_example),
};
#define N_EXAMPLES (sizeof examples / sizeof examples[0])
/* Without the last two: their structs own memory. */
#define N_FLAT (N_EXAMPLES - 2)

static inline int make_examples(void **state)
{
    (void)state;
    make_service_messages();
    return 0;
}

struct bytes {
    ls_writer *writer;
    const void *data;
    size_t size;
};

static inline struct bytes written(const struct example *example)
{
    struct bytes bytes = {0};
    assert_int_equal(ls_writer_create(&bytes.writer), LS_OK);
    example->write(example->value, bytes.writer);
    assert_int_equal(ls_writer_bytes(bytes.writer, &bytes.data, &bytes.size),
                     LS_OK);
    return bytes;
}

#endif
