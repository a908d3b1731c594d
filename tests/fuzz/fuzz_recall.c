/* Any bytes as the records of a coordinator's journal, each behind its length,
 * in two bytes: its next life begins with what they say, and the records that
 * it leaves stand for the same. */
#include "fsm.h"

#include "fuzz.h"

#include "support/fsm_options.h"

enum { RECORDS_MAX = 64, TURNS = 64 };

struct records {
    struct fuzz_bytes items[RECORDS_MAX]; /* own */
    size_t n;
};

static int keep(void *self, const void *record, size_t size)
{
    struct records *const records = self;
    if (records->n == RECORDS_MAX)
        return ls_error(LS_ELIMIT, "more records than are kept here");
    void *const data = malloc(size);
    must(data != NULL);
    memcpy(data, record, size);
    records->items[records->n++] = (struct fuzz_bytes){data, size};
    return LS_OK;
}

static void forget(struct records *records)
{
    while (records->n > 0)
        free((void *)records->items[--records->n].data);
}

static fsm *make(void)
{
    struct fsm_options options = small_core_options();
    options.keeps_samples = options.data_stays = true;
    fsm *machine = NULL;
    must(fsm_create(&machine, &options, fsm_kinds) == LS_OK);
    return machine;
}

/* The same whatever was recalled: records in another order are the same. */
static void check_records(const struct records *a, const struct records *b)
{
    must(a->n == b->n);
    for (size_t i = 0; i < a->n; i++) {
        size_t k = 0;
        while (k < b->n && (a->items[i].size != b->items[k].size ||
                            memcmp(a->items[i].data, b->items[k].data,
                                   a->items[i].size) != 0))
            k++;
        must(k < b->n);
    }
}

static void leave_and_recall(fsm *machine)
{
    fsm *next = make();
    struct records first = {.n = 0}, second = {.n = 0};
    if (fsm_records(machine, keep, &first) == LS_OK) {
        for (size_t i = 0; i < first.n; i++)
            must(fsm_recall(next, first.items[i].data, first.items[i].size) ==
                 LS_OK);
        must(fsm_records(next, keep, &second) == LS_OK);
        check_records(&first, &second);
    }
    forget(&first);
    forget(&second);
    fsm_destroy(&next);
}

/* Nobody comes: it waits, and ends when it is told to. */
static void live(fsm *machine)
{
    struct fsm_action action;
    int64_t now = LS_NS_PER_S;
    bool done = false;
    for (int i = 0; i < TURNS && !done; i++) {
        must(fsm_time(machine, now) == LS_OK);
        while (fsm_next(machine, &action))
            done = done || action.kind == FSM_DONE;
        const int64_t next = fsm_wake_at(machine, now);
        must(next >= now || next == LS_FOREVER);
        if (i == TURNS / 2)
            must(fsm_stop(machine, now, LS_OK, "enough") == LS_OK);
        now = next != LS_FOREVER && next > now ? next : now + LS_NS_PER_S;
    }
    must(done);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fsm *machine = make();
    int status = LS_OK;
    size_t n = 0;
    while (size >= 2 && status == LS_OK && n++ < RECORDS_MAX / 2) {
        const size_t wanted = (size_t)data[0] << 8 | data[1];
        const size_t length = wanted < size - 2 ? wanted : size - 2;
        ls_error_clear();
        status = fsm_recall(machine, data + 2, length);
        must(status == LS_OK || ls_error_text()[0] != '\0');
        data += 2 + length;
        size -= 2 + length;
    }
    if (status == LS_OK) {
        leave_and_recall(machine);
        live(machine);
    }
    fsm_destroy(&machine);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    return fuzz_mutate_frames(data, size, max_size, seed, 0);
}
