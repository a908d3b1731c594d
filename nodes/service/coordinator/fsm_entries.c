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
    {"kind", LS_FIELD_INT, IN(work_entry, kind), .most = WORK_KINDS - 1},
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
