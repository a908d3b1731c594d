/* Any bytes as what the senders of an exchange say, each message behind its
 * length, in two bytes. A round begins between them; what is left is merged.
 * What a context has then goes to another as it is. */
#include "exchange_inbox.h"
#include "exchange_merge.h"
#include "fuzz.h"
#include "fuzz_context.h"

enum { SENDERS = 3, DEPTH = 4, ROUND = 4 };

static const char fields[] =
    "user_text,policy,trajectories,trajectory_end_idx,train_output,eval_value";
static const char increments[] = "env_step,train_iter,last_eval_value";

/* What a node that takes part has. */
struct side {
    ls_context *context;
    ls_exchange_plan *plan;
};

static struct side side_open(void)
{
    struct side side = {NULL, NULL};
    must(ls_context_create(&side.context, &fuzz_context_type) == LS_OK);
    struct fuzz_context *values = ls_context_data(side.context);
    values->last_eval_value = 0; /* -infinity and something is not a sum */
    must(ls_exchange_plan_create(&side.plan, side.context, fields,
                                 increments) == LS_OK);
    return side;
}

static void side_close(struct side *side)
{
    ls_exchange_plan_destroy(&side->plan);
    ls_context_destroy(&side->context);
}

static ls_writer *write_message(const struct side *side, uint64_t round)
{
    ls_writer *writer = NULL;
    must(ls_writer_create(&writer) == LS_OK);
    must(ls_exchange_write(side->plan, side->context, round, writer) == LS_OK);
    return writer;
}

/* Indices lie within what they point into. */
static void check(const struct side *side)
{
    const struct fuzz_context *values = ls_context_data(side->context);
    for (size_t i = 0; i < values->trajectory_end_idx.n; i++)
        must(values->trajectory_end_idx.values[i] >= 0 &&
             (uint64_t)values->trajectory_end_idx.values[i] <=
                 values->trajectories.n);
}

/* Send everything on to one that has nothing yet. */
static void send_on(const struct side *side, uint64_t round)
{
    struct side other = side_open();
    struct ls_exchange_part part;
    uint64_t run;
    ls_writer *first = write_message(side, round);
    const struct fuzz_bytes sent = fuzz_written(first);
    must(ls_exchange_round_of(sent.data, sent.size) == round);
    must(!ls_exchange_is_end(sent.data, sent.size, &run));
    must(ls_exchange_part_read(&part, 1, sent.data, sent.size) == LS_OK);
    must(ls_exchange_merge(other.plan, other.context, &part, 1) == LS_OK);
    ls_exchange_part_fini(&part);
    ls_writer *second = write_message(&other, round);
    const struct fuzz_bytes again = fuzz_written(second);
    must(again.size == sent.size &&
         memcmp(again.data, sent.data, sent.size) == 0);
    ls_writer_destroy(&first);
    ls_writer_destroy(&second);
    side_close(&other);
}

static void receive(ls_exchange_inbox *inbox, uint32_t sender,
                    const uint8_t *data, size_t size)
{
    uint64_t run, dropped;
    if (ls_exchange_is_end(data, size, &run))
        must(ls_exchange_inbox_end(inbox, sender, 1, run) == LS_OK);
    else
        must(ls_exchange_inbox_put(inbox, sender, 1, data, size, &dropped) ==
             LS_OK);
}

static void take(ls_exchange_inbox *inbox, struct side *side)
{
    struct ls_exchange_message messages[SENDERS];
    struct ls_exchange_part parts[SENDERS];
    size_t n, n_parts = 0;
    n = ls_exchange_inbox_take(inbox, messages, SENDERS);
    for (size_t i = 0; i < n; i++) {
        must(messages[i].round >= ROUND);
        if (ls_exchange_part_read(&parts[n_parts], messages[i].sender,
                                  messages[i].data, messages[i].size) == LS_OK)
            n_parts++;
        free(messages[i].data);
    }
    if (n_parts > 0)
        (void)ls_exchange_merge(side->plan, side->context, parts, n_parts);
    for (size_t i = 0; i < n_parts; i++)
        ls_exchange_part_fini(&parts[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ls_exchange_inbox *inbox = NULL;
    struct side side = side_open();
    struct ls_exchange_look look;
    must(ls_exchange_inbox_create(&inbox, "collector", DEPTH) == LS_OK);
    const uint64_t round = size > 0 ? ROUND + data[0] : ROUND;
    for (uint32_t i = 0; size >= 2; i++) {
        const size_t wanted = (size_t)data[0] << 8 | data[1];
        const size_t n = wanted < size - 2 ? wanted : size - 2;
        receive(inbox, i % SENDERS, data + 2, n);
        data += 2 + n;
        size -= 2 + n;
    }
    ls_exchange_inbox_begin(inbox, ROUND);
    for (int i = 0; i < DEPTH; i++)
        take(inbox, &side);
    ls_exchange_inbox_look(inbox, 1, &look);
    must(look.queued == 0);
    check(&side);
    send_on(&side, round);
    ls_exchange_inbox_destroy(&inbox);
    side_close(&side);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    return fuzz_mutate_frames(data, size, max_size, seed, 0);
}
