/* What each node does for the one that leads. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "saves.h"

static int said_entry(const struct question *question, size_t i,
                      struct ls_checkpoint_entry *out)
{
    return ls_record_read(
        &ls_checkpoint_entry_record, out,
        ls_value_at(ls_value_get(question->said, "entries"), i));
}

static int64_t said_epoch(const struct question *question)
{
    return question_int(question, "epoch", LS_CHECKPOINT_NONE);
}

/* ---- looking and loading ----------------------------------------------- */

static int do_has(struct saves *saves, struct question *question)
{
    struct ls_checkpoint_entry entry;
    const size_t n = ls_value_size(ls_value_get(question->said, "entries"));
    int status = LS_OK;
    for (size_t i = 0; i < n && status == LS_OK; i++) {
        status = said_entry(question, i, &entry);
        if (status == LS_OK)
            status =
                ls_checkpoints_has(saves->store, said_epoch(question), &entry);
    }
    return status;
}

/* Those that are asked for; names[0] is NULL: all. */
static int said_names(const struct question *question,
                      const char *names[LS_BLOBS_MAX + 1])
{
    const ls_value *wanted = ls_value_get(question->said, "names");
    const size_t n = ls_value_size(wanted);
    int status = LS_OK;
    for (size_t i = 0; status == LS_OK && i < n && i < LS_BLOBS_MAX; i++)
        status = ls_value_string(ls_value_at(wanted, i), &names[i]);
    return status;
}

static int do_load(struct saves *saves, struct question *question)
{
    struct ls_checkpoint_entry entry;
    const char *names[LS_BLOBS_MAX + 1] = {NULL};
    const int64_t epoch = said_epoch(question);
    int status = said_names(question, names);
    if (status == LS_OK && question->body.data != NULL)
        return ls_blobs_unpack(saves->blobs, question->body.data,
                               question->body.size);
    if (status == LS_OK && saves->store == NULL)
        return ls_error(LS_EPROTO, "nothing was sent that could be loaded");
    if (status == LS_OK)
        status = said_entry(question, 0, &entry);
    if (status == LS_OK && saves->ops->before_load != NULL)
        status = saves->ops->before_load(saves->self, epoch, &entry);
    return status == LS_OK
               ? ls_checkpoints_load(saves->store, epoch, &entry, saves->blobs,
                                     names[0] != NULL ? names : NULL)
               : status;
}

static int refuse(const struct saves *saves)
{
    return ls_error(LS_EPROTO, "no such question to %s", saves->what);
}

static int do_divide(struct saves *saves, struct question *question)
{
    return saves->ops->divide != NULL
               ? saves->ops->divide(saves->self, question)
               : refuse(saves);
}

/* To no epoch it would remove all: that is to be said. */
static int do_rewind(struct saves *saves, struct question *question)
{
    int64_t epoch;
    return ls_value_int(ls_value_get(question->said, "epoch"), &epoch) == LS_OK
               ? ls_checkpoints_rewind(saves->store, epoch)
               : ls_error(LS_EPROTO, "it does not say to which epoch");
}

/* ---- saving ------------------------------------------------------------ */

static void free_pack(void *data, void *hint)
{
    (void)hint;
    free(data);
}

int saves_pack(const ls_blobs *blobs, struct ls_body *out)
{
    void *data;
    size_t size;
    const int status = ls_blobs_pack(blobs, &data, &size);
    if (status == LS_OK)
        *out =
            (struct ls_body){.data = data, .size = size, .release = free_pack};
    return status;
}

static void write_metric(ls_writer *writer, int64_t epoch, double value)
{
    ls_write_array(writer, 2);
    ls_write_int(writer, epoch);
    ls_write_double(writer, value);
}

/* Of this epoch, and of earlier ones. */
static void say_metrics(struct saves *saves, struct question *question)
{
    const double value =
        saves->ops->metric != NULL ? saves->ops->metric(saves->self) : NAN;
    ls_mutex_lock(&saves->asker->mutex);
    ls_write_string(question->answer, "metrics");
    ls_write_array(question->answer,
                   (uint32_t)saves->n_verdicts + (isnan(value) ? 0 : 1));
    if (!isnan(value))
        write_metric(question->answer, said_epoch(question), value);
    for (size_t i = 0; i < saves->n_verdicts; i++) {
        saves->verdicts[i].told = true;
        write_metric(question->answer, saves->verdicts[i].epoch,
                     saves->verdicts[i].value);
    }
    ls_mutex_unlock(&saves->asker->mutex);
}

/* With the mutex held. */
static void drop_verdict(struct saves *saves, size_t at)
{
    saves->verdicts[at] = saves->verdicts[--saves->n_verdicts];
}

int saves_judge(struct saves *saves, int64_t saved, int64_t epoch, double value)
{
    ls_mutex_lock(&saves->asker->mutex);
    for (size_t i = saves->n_verdicts; i-- > 0;)
        if (saves->verdicts[i].epoch > saved ||
            saves->verdicts[i].epoch == epoch)
            drop_verdict(saves, i);
    struct saves_verdict *more = realloc(
        saves->verdicts, (saves->n_verdicts + 1) * sizeof *saves->verdicts);
    if (more != NULL) {
        saves->verdicts = more;
        more[saves->n_verdicts++] =
            (struct saves_verdict){.epoch = epoch, .value = value};
    }
    ls_mutex_unlock(&saves->asker->mutex);
    return more != NULL ? LS_OK : ls_error(LS_ENOMEM, "a verdict");
}

/* The save with which they were told is over. */
static void settle_verdicts(struct saves *saves, bool saved)
{
    ls_mutex_lock(&saves->asker->mutex);
    for (size_t i = saves->n_verdicts; i-- > 0;) {
        if (saved && saves->verdicts[i].told)
            drop_verdict(saves, i);
        else
            saves->verdicts[i].told = false;
    }
    ls_mutex_unlock(&saves->asker->mutex);
}

static int do_copy(struct saves *saves, struct question *question)
{
    say_metrics(saves, question);
    return saves->store == NULL
               ? saves_pack(saves->blobs, &question->out)
               : ls_checkpoints_write_behind(saves->store, said_epoch(question),
                                             saves->blobs, saves->timeout_ms);
}

static int wait_behind(struct saves *saves, int64_t epoch,
                       struct ls_checkpoint_entry *entry)
{
    int64_t written = LS_CHECKPOINT_NONE;
    const int status =
        ls_checkpoints_wait(saves->store, saves->timeout_ms, &written, entry);
    if (status == LS_OK && written != epoch)
        return ls_error(LS_ESTATE,
                        "epoch %" PRId64 " was written, and not %" PRId64,
                        written, epoch);
    return status;
}

static int do_write(struct saves *saves, struct question *question)
{
    struct ls_checkpoint_entry entry = {.size = 0};
    const int64_t epoch = said_epoch(question);
    const bool behind = question_int(question, "behind", 0) == 1;
    if (!behind) /* else it was said with the copy */
        say_metrics(saves, question);
    if (saves->store == NULL)
        return saves_pack(saves->blobs, &question->out);
    const int status = behind ? wait_behind(saves, epoch, &entry)
                              : ls_checkpoints_write(saves->store, epoch,
                                                     saves->blobs, &entry);
    if (status != LS_OK)
        return status;
    keeper_wrote(&saves->keeper, epoch, question_int(question, "round", -1));
    ls_write_string(question->answer, "entry");
    ls_record_write(&ls_checkpoint_entry_record, &entry, question->answer);
    return LS_OK;
}

static int do_verdict(struct saves *saves, struct question *question)
{
    const ls_value *keep = ls_value_get(question->said, "keep");
    const size_t n = ls_value_size(keep);
    const bool drop =
        question_int(question, "verdict", COMMIT_KEEP) == COMMIT_DROP;
    settle_verdicts(saves, !drop);
    if (saves->store == NULL)
        return LS_OK; /* the one that leads has its entry */
    if (keeper_drops(&saves->keeper, question_int(question, "round", -1),
                     drop ? COMMIT_DROP : COMMIT_KEEP))
        return ls_checkpoints_rewind(saves->store, saves->keeper.epoch - 1);
    int64_t *epochs = n != 0 ? calloc(n, sizeof *epochs) : NULL;
    int status = LS_OK;
    for (size_t i = 0; i < n && epochs != NULL && status == LS_OK; i++)
        status = ls_value_int(ls_value_at(keep, i), &epochs[i]);
    if (epochs != NULL && status == LS_OK)
        status = ls_checkpoints_keep(saves->store, epochs, n);
    free(epochs);
    return status;
}

/* ---- which ------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*fn)(struct saves *saves, struct question *question);
    bool moves_blobs; /* reads or writes them */
    bool folderless;  /* also of a node without a folder */
} commands[] = {
    {"has", do_has, false, false},        {"load", do_load, true, true},
    {"divide", do_divide, true, false},   {"rewind", do_rewind, false, false},
    {"copy", do_copy, true, true},        {"write", do_write, false, true},
    {"verdict", do_verdict, false, true},
};
#define N_COMMANDS (sizeof commands / sizeof *commands)

static size_t command_of(const char *what)
{
    size_t i = 0;
    while (i < N_COMMANDS && strcmp(commands[i].name, what) != 0)
        i++;
    return i;
}

bool saves_knows(const char *what)
{
    return command_of(what) < N_COMMANDS;
}

static bool moves_blobs(size_t command, const struct question *question)
{
    return commands[command].moves_blobs ||
           (commands[command].fn == do_write &&
            question_int(question, "behind", 0) == 0);
}

int saves_answer(struct saves *saves, struct question *question)
{
    const size_t command = command_of(question_text(question, "do"));
    int status = LS_OK;
    if (command == N_COMMANDS)
        return refuse(saves);
    ls_mutex_lock(&saves->mutex);
    if (saves->store == NULL && !(saves->sends && commands[command].folderless))
        status = ls_error(LS_ESTATE, "nothing is saved here");
    if (status == LS_OK && saves->ops->still != NULL &&
        moves_blobs(command, question))
        status = saves->ops->still(saves->self, question);
    if (status == LS_OK)
        status = commands[command].fn(saves, question);
    ls_mutex_unlock(&saves->mutex);
    return status;
}
