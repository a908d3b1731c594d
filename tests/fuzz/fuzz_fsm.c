/* Any bytes as what members answer to their coordinator, each answer behind its
 * length, in two bytes, and a byte that says how the call ends: whatever they
 * answer, the job goes on, and is over when it is told to end. */
#include "fsm.h"

#include "fuzz.h"

#include "support/fsm_options.h"

enum { MEMBERS = 4, CALLS_MAX = 256, TURNS = 200 };

struct input {
    const uint8_t *data;
    size_t size;
};

/* Calls that have not ended, in order. */
struct open_calls {
    uint64_t numbers[CALLS_MAX];
    size_t n;
};

static fsm *make(void)
{
    struct fsm_options options = small_core_options();
    options.iterations = 3;
    options.eval_episodes = 1;
    options.samples_per_work = 2;
    options.split = 2;
    fsm *machine = NULL;
    must(fsm_create(&machine, &options, fsm_kinds) == LS_OK);
    for (uint32_t id = 1; id <= MEMBERS; id++) {
        const struct ls_member member =
            core_member(id, 1, id == 1 ? "learner" : "collector", true);
        must(fsm_member(machine, 1, &member) == LS_OK);
    }
    return machine;
}

/* The next answer; once there are none, every call ends as lost. */
static struct ls_call_result next_answer(struct input *in)
{
    static const enum ls_call_state states[] = {
        LS_CALL_COMPLETED, LS_CALL_COMPLETED,    LS_CALL_COMPLETED,
        LS_CALL_FAILED,    LS_CALL_START_FAILED, LS_CALL_TIMEOUT};
    if (in->size < 3)
        return (struct ls_call_result){.state = LS_CALL_LOST, .text = "lost"};
    const size_t wanted = (size_t)in->data[0] << 8 | in->data[1];
    const size_t left = in->size - 2;
    const size_t n = wanted > left ? left : wanted;
    struct ls_call_result result = {.state = LS_CALL_LOST, .text = "it fails"};
    if (n > 0) {
        result.state = states[in->data[2] % 6];
        result.code = result.state == LS_CALL_COMPLETED ? 0 : LS_CALL_BUSY;
        result.data = in->data + 3;
        result.size = n - 1;
    }
    in->data += 2 + n;
    in->size -= 2 + n;
    return result;
}

static void forget(struct open_calls *calls, size_t at)
{
    memmove(&calls->numbers[at], &calls->numbers[at + 1],
            (--calls->n - at) * sizeof calls->numbers[0]);
}

/* Do what is wanted. Whether the job is over. */
static bool act(fsm *machine, struct open_calls *calls, int64_t now)
{
    struct fsm_action action;
    bool done = false;
    while (fsm_next(machine, &action)) {
        if (action.kind == FSM_CONNECT || action.kind == FSM_CALL) {
            must(calls->n < CALLS_MAX);
            calls->numbers[calls->n++] = action.number;
        } else if (action.kind == FSM_SNAPSHOT) {
            char name[SAFE_NAME_MAX + 1];
            memcpy(name, action.name, strlen(action.name) + 1);
            must(fsm_snapshot_done(machine, now, name, LS_OK) == LS_OK);
        }
        done = done || action.kind == FSM_DONE;
    }
    return done;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    struct open_calls calls = {.n = 0};
    fsm *machine = make();
    int64_t now = LS_NS_PER_S;
    bool done = false;
    for (int i = 0; i < TURNS && !done; i++) {
        must(fsm_time(machine, now) == LS_OK);
        done = act(machine, &calls, now);
        if (calls.n > 0 && !done) {
            const uint64_t number = calls.numbers[0];
            const struct ls_call_result result = next_answer(&in);
            forget(&calls, 0);
            must(fsm_call_ended(machine, now, number, &result) == LS_OK);
            done = act(machine, &calls, now);
        }
        if (i == TURNS / 2)
            must(fsm_stop(machine, now, LS_OK, "enough") == LS_OK);
        const int64_t next = fsm_wake_at(machine, now);
        now = calls.n == 0 && next > now && next != LS_FOREVER
                  ? next
                  : now + LS_NS_PER_MS;
    }
    must(done && calls.n == 0);
    fsm_destroy(&machine);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    return fuzz_mutate_frames(data, size, max_size, seed, 1);
}
