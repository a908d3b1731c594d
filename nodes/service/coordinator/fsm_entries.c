#include "fsm_entries.h"

#define N_OF(fields)     (sizeof(fields) / sizeof(fields)[0])
#define IN(type, member) .offset = offsetof(struct type, member)
#define COUNT            .most = SERVICE_COUNT_MAX
#define FROM_1           .least = 1, .most = SERVICE_COUNT_MAX
#define RECORD(of, lines)                                                      \
    {                                                                          \
        .name = "a record", .size = (of), .fields = (lines),                   \
        .n_fields = N_OF(lines), .open = true                                  \
    }

/* "" is a name of what is not there. */
static int check_name(const void *at)
{
    const char *name = at;
    return name[0] == '\0' ? LS_OK : safe_name_check(name);
}

#define NAME(type, member)                                                     \
    {                                                                          \
#member, LS_FIELD_CHARS, IN(type, member), .size = SAFE_NAME_MAX + 1,  \
                                                   .check = check_name         \
    }

#define FIGURE .type = LS_FIELD_INT, .least = -1, .most = SERVICE_COUNT_MAX
#define SCHEDULER(member)                                                      \
    {                                                                          \
#member, FIGURE, IN(fsm, scheduler.member)                             \
    }
#define COUNTED(member)                                                        \
    {                                                                          \
#member, FIGURE, IN(fsm, counted.member)                               \
    }

static const struct ls_field figures[] = {
    SCHEDULER(policy_version),
    SCHEDULER(learner_step),
    SCHEDULER(committed),
    SCHEDULER(infos),
    SCHEDULER(done_infos),
    SCHEDULER(env_steps),
    SCHEDULER(asked_version),
    SCHEDULER(evaluations),
    SCHEDULER(value_version),
    COUNTED(samples),
    COUNTED(batches),
    COUNTED(requeued),
    COUNTED(expired),
    COUNTED(refused_starts),
    COUNTED(refused_data),
    COUNTED(late_data),
    SCHEDULER(learner_attempts),
    {"last_number", LS_FIELD_UINT, IN(fsm, works.last_number), COUNT},
    {"value", LS_FIELD_DOUBLE, IN(fsm, scheduler.value)},
    NAME(fsm, policy_id),
    NAME(fsm, evaluated),
};
const struct ls_record fsm_figures_entry = RECORD(sizeof(fsm), figures);

static const struct ls_field end[] = {{"text", LS_FIELD_CHARS,
                                       IN(fsm, end.text),
                                       .size = sizeof((fsm *)0)->end.text}};
const struct ls_record fsm_end_entry = RECORD(sizeof(fsm), end);

static const struct ls_field work[] = {
    {"number", LS_FIELD_INT, IN(work_entry, number), FROM_1},
    {"kind", LS_FIELD_INT, IN(work_entry, kind), COUNT},
    {"attempt", LS_FIELD_INT, IN(work_entry, attempt), FROM_1},
    {"held", LS_FIELD_INT, IN(work_entry, held), .most = 1},
    {"member", LS_FIELD_INT, IN(work_entry, member), .most = UINT32_MAX},
    {"incarnation", LS_FIELD_UINT, IN(work_entry, incarnation)},
    {"progress", LS_FIELD_INT, IN(work_entry, progress), COUNT},
    {"done", LS_FIELD_INT, IN(work_entry, done), .most = 1},
    {"closing", LS_FIELD_INT, IN(work_entry, closing),
     .most = 1 + WORK_GIVEN_UP},
    NAME(work_entry, policy_id),
    NAME(work_entry, buffer_id),
};
const struct ls_record fsm_work_entry = RECORD(sizeof(struct work_entry), work);

static const struct ls_field over[] = {
    {"number", LS_FIELD_INT, .offset = 0, FROM_1}};
const struct ls_record fsm_over_entry = RECORD(sizeof(int64_t), over);

/* The buffer of a work --------------------------------------------------- */

#define WORK(type)                                                             \
    {                                                                          \
        "work", LS_FIELD_INT, IN(type, work), FROM_1                           \
    }
#define SLOT(type, member)                                                     \
    {                                                                          \
        "slot", LS_FIELD_INT, IN(type, member),                                \
            .least = -1, .most = REPLAY_CAPACITY_MAX - 1                       \
    }
#define COUNT_OF(name, type, member)                                           \
    {                                                                          \
        name, LS_FIELD_UINT, IN(type, member)                                  \
    }

static const struct ls_field sample_lines[] = {
    WORK(sample_entry),
    {"is_new", LS_FIELD_BOOL, IN(sample_entry, is_new)},
    {"part", LS_FIELD_INT, IN(sample_entry, part), .most = UINT32_MAX},
    {"home", LS_FIELD_UINT32, IN(sample_entry, item.sample.home)},
    SLOT(sample_entry, item.slot),
    COUNT_OF("number", sample_entry, item.number),
    COUNT_OF("n_sampled", sample_entry, item.n_sampled),
    {"sample", LS_FIELD_RECORD, IN(sample_entry, item.sample),
     .record = &sample_record},
};

static int check_part(const void *data)
{
    const struct sample_entry *entry = data;
    return entry->part < entry->item.sample.parts
               ? LS_OK
               : ls_error(LS_EPROTO, "part: %lld of %lld",
                          (long long)entry->part,
                          (long long)entry->item.sample.parts);
}

const struct ls_record fsm_sample_entry = {.name = "a record",
                                           .size = sizeof(struct sample_entry),
                                           .fields = sample_lines,
                                           .n_fields = N_OF(sample_lines),
                                           .open = true,
                                           .check = check_part};

#define ITEM_LINES                                                             \
    SLOT(item_entry, slot), COUNT_OF("number", item_entry, number)
static const struct ls_field drawn_item[] = {ITEM_LINES};
static const struct ls_field weighed_item[] = {
    ITEM_LINES,
    {"priority", LS_FIELD_DOUBLE, IN(item_entry, priority),
     .high = SAMPLE_PRIORITY_MAX},
};
static const struct ls_record drawn_items =
    RECORD(sizeof(struct item_entry), drawn_item);
static const struct ls_record weighed_items =
    RECORD(sizeof(struct item_entry), weighed_item);
static const struct ls_field one_drawn = {.type = LS_FIELD_RECORD,
                                          .record = &drawn_items};
static const struct ls_field one_weighed = {.type = LS_FIELD_RECORD,
                                            .record = &weighed_items};

#define ITEMS_LINES(one)                                                       \
    {                                                                          \
        WORK(items_entry),                                                     \
        {                                                                      \
            "items", LS_FIELD_LIST, IN(items_entry, items),                    \
                .item = (one), .count = offsetof(struct items_entry, n),       \
                .most = SERVICE_BATCH_MAX, .own = true                         \
        }                                                                      \
    }
static const struct ls_field drawn[] = ITEMS_LINES(&one_drawn);
static const struct ls_field weighed[] = ITEMS_LINES(&one_weighed);
const struct ls_record fsm_drawn_entry =
    RECORD(sizeof(struct items_entry), drawn);
const struct ls_record fsm_weighed_entry =
    RECORD(sizeof(struct items_entry), weighed);

#define FIGURE_OF(member)                                                      \
    COUNT_OF(#member, buffer_entry, account.figures.member)
static const struct ls_field buffer[] = {
    WORK(buffer_entry),
    {"version", LS_FIELD_INT, IN(buffer_entry, account.version), COUNT},
    COUNT_OF("next_number", buffer_entry, account.next_number),
    {"staleness_sum", LS_FIELD_DOUBLE, IN(buffer_entry, account.staleness_sum),
     .high = 1e300},
    FIGURE_OF(inserted),
    FIGURE_OF(evicted_stale),
    FIGURE_OF(evicted_overflow),
    FIGURE_OF(evicted_used),
    FIGURE_OF(evicted_bytes),
    FIGURE_OF(evicted_lost),
    FIGURE_OF(sampled),
    FIGURE_OF(updates),
    FIGURE_OF(updates_refused),
    {"staleness_max", LS_FIELD_INT,
     IN(buffer_entry, account.figures.staleness_max), COUNT},
};
const struct ls_record fsm_buffer_entry =
    RECORD(sizeof(struct buffer_entry), buffer);
