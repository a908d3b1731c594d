/* messages.h - what the coordinator asks of learners and collectors, and what
 * they answer: the data of each call, as a struct and as a msgpack map.
 *
 * Reading is strict (lockstep/record.h): a missing field, an unknown one, a
 * wrong type, a number out of its range or a name that is none is LS_EPROTO,
 * and the text names the call and the field. A key that is not a field is
 * refused, since all members of a world are of one version. Texts are names as
 * in safe_name.h, counts go up to SERVICE_COUNT_MAX. A work is one assignment
 * of the coordinator; its attempt counts how often it was given out, and
 * members refuse what belongs to an earlier attempt. Thread: any. Source:
 * docs/services.md, "Calls". */
#ifndef LOCKSTEP_SERVICE_MESSAGES_H
#define LOCKSTEP_SERVICE_MESSAGES_H

#include <stdbool.h>

#include "lockstep/codec.h"

#include "sample.h"

typedef char service_name[SAFE_NAME_MAX + 1];

/* Calls that learner and collector serve. All but the first are for the master
 * alone. */
#define CALL_RESOURCE        "resource"
#define CALL_LEARNER_START   "learner_start_task"
#define CALL_LEARNER_DEMAND  "learner_get_data_task"
#define CALL_LEARNER_LEARN   "learner_learn_task"
#define CALL_LEARNER_CLOSE   "learner_close_task"
#define CALL_COLLECTOR_START "collector_start_task"
#define CALL_COLLECTOR_DATA  "collector_data_task"
#define CALL_COLLECTOR_CLOSE "collector_close_task"

/* What the learner that a work was given to asks of the other ranks of it: to
 * learn with it. The data are those of its own start call. */
#define CALL_RANK_START "rank_start_task"

/* At most so many learners do a work together. */
#define SERVICE_RANKS_MAX 64
/* At most so many samples in a batch: a learn call then fits, whatever the
 * names in it. */
#define SERVICE_BATCH_MAX 256
/* And so many pieces of data in one answer of a collector. */
#define SERVICE_DATA_MAX 64

/* resource: {} → this map. The wire leaves out what is of the work when it
 * holds none. */
struct service_resource {
    double gpu, cpu; /* what it has to offer: ls_device_gpus(), ls_cpus() */
    service_name task_id; /* the work that it holds; "": none */
    int64_t attempt;      /* of it, from 1 */
    int64_t progress;     /* of it: iterations, trajectories or episodes done */
};

/* Which work a call is about: the first fields of every call but resource and
 * the starts. */
struct work_key {
    service_name task_id;
    int64_t attempt; /* from 1 */
};

/* learner_start_task: {task_info: {…, learner_cfg: {…}, resource_info: {…}}} →
 * {message}. */
struct learner_work {
    struct work_key key;
    service_name policy_id, buffer_id, learner_id;
    int64_t batch_size;       /* 1 … SERVICE_BATCH_MAX */
    int64_t iterations;       /* then it is done; 0: until it is closed */
    int64_t send_policy_freq; /* commits the policy each so many iterations */
    int64_t send_info_freq;   /* sends an info each so many iterations */
    int64_t done; /* iterations that earlier attempts have committed */
    /* The ids of the nodes that do it together, rising: each is a rank, and the
     * first is the one that the work is given to. 0: that one does it alone. */
    size_t n_ranks;
    int64_t ranks[SERVICE_RANKS_MAX];
    double gpu, cpu; /* resource_info: what it may use */
};

/* collector_start_task: {task_info: {…, collector_cfg: {…}, resource_info:
 * {…}}} → {message}. An evaluation is a work with eval_flag: it acts as best it
 * can, and brings no samples. */
struct collector_work {
    struct work_key key;
    service_name policy_id, buffer_id, collector_id;
    bool eval_flag;
    int64_t samples;    /* trajectories to bring; 0: until it is closed */
    int64_t episodes;   /* of an evaluation */
    int64_t unroll_len; /* steps of one trajectory, 1 … 1,048,576 */
    int64_t split;      /* samples into which it is split by its meta data;
                         * 1: it is not. Divides unroll_len */
    double gpu, cpu;
};

#define LEARNER_VALUES_MAX 16

/* What a learner tells of its work after an iteration, and at its end. */
struct learner_info {
    int64_t learner_step;   /* iterations done, of all attempts */
    bool learner_done;      /* exactly one info of a work says so: its last */
    int64_t policy_version; /* the last one that it has committed; -1: none */
    size_t n_values;        /* what the plugin's learn() reported */
    struct {
        service_name name;
        double value;
    } values[LEARNER_VALUES_MAX];
};

/* What learn() reported: a map of a name to a number. The names are the
 * plugin's own. */
void learner_values_write(const struct learner_info *info, ls_writer *out);

/* learner_get_data_task: {task_id, attempt} → a demand, or the last info. It
 * is answered when the learner wants a batch, which may be while it trains on
 * the one before. */
struct learner_demand {
    struct work_key key;
    service_name buffer_id;
    bool done;          /* no further batch: `info` is the last one */
    int64_t batch_size; /* unless done */
    int64_t cur_learner_iter;
    int64_t policy_version;   /* the last one that it has committed: the first
                               * demand comes after version 0 */
    struct learner_info info; /* when done */
};

/* learner_learn_task: {task_id, attempt, data: [maps], of: [numbers], part:
 * [numbers]} → result. Each piece of data that the batch has samples of is told
 * of once; of and part say of each sample which of them it is a part of, and
 * which part. Slots, unique ids and staleness stay with the coordinator: 0 when
 * read. */
struct learner_batch {
    struct work_key key;
    size_t n;
    struct drawn_sample *items; /* borrow when written; own when read: give the
                                 * batch to learner_batch_fini() */
};

struct learner_result {
    struct work_key key;
    service_name buffer_id;
    bool data_lost; /* nothing was learned, since the data is gone together
                     * with the node that kept it */
    int64_t policy_version; /* the last one that it has committed; -1: none */
    int64_t cur_learner_iter;
    bool has_info; /* not each iteration has one: send_info_freq */
    struct learner_info info;
    /* Of each sample of the batch, in its order; none: they stay. */
    size_t n;
    double priorities[SERVICE_BATCH_MAX];
};

/* collector_data_task: {task_id, attempt, policy_version, want} → data or an
 * info. policy_version: what the coordinator knows to be committed; a collector
 * with an older policy gets that one before it collects on. -1: none that it
 * knows of. want: how many pieces of data it may have made and not handed over;
 * each that it hands over is one less, until the next call. A call before any
 * policy is in the store fails. */
struct collector_ask {
    struct work_key key;
    int64_t policy_version;
    int64_t want; /* 0 … SERVICE_DATA_MAX */
};

struct collector_info {
    bool collector_done; /* the work is done; close it */
    int64_t cur_episode, cur_sample, cur_step;
};

struct collector_data {
    struct work_key key;
    service_name buffer_id;
    bool is_info;
    size_t n;               /* unless is_info: 1 … SERVICE_DATA_MAX */
    struct sample *samples; /* each as a whole. Borrow when written; own when
                             * read: give it to collector_data_fini() */
    struct collector_info info; /* when is_info */
};

/* Both closes: {task_id, attempt} → these. */
struct learner_closed {
    struct work_key key;
    service_name buffer_id;
};

struct collector_closed { /* finish_info */
    struct work_key key;
    bool eval_flag;
    double reward_mean; /* of whole episodes; NaN is written as nil: none */
    int64_t step_count, episode_count, sample_count;
    int64_t policy_version; /* that it acted with at last */
};

/* resource asks with an empty map; a start is answered by one with a message
 * for people. Errors of reading: LS_EPROTO; LS_ENOMEM. */
void service_nothing_write(ls_writer *out);
LS_MUST_USE int service_nothing_read(const void *data, size_t size);
void service_started_write(const char *message, ls_writer *out);
LS_MUST_USE int service_started_read(const void *data, size_t size);

/* Write as exactly one value; read it back from a call's data.
 * out: written on success only. Errors of reading: LS_EPROTO; LS_ENOMEM. */
#define SERVICE_MESSAGE(type)                                                  \
    void type##_write(const struct type *in, ls_writer *out);                  \
    LS_MUST_USE int type##_read(struct type *out, const void *data, size_t size)

SERVICE_MESSAGE(service_resource);
SERVICE_MESSAGE(work_key); /* get_data and close ask no more than this */
SERVICE_MESSAGE(learner_work);
SERVICE_MESSAGE(collector_work);
SERVICE_MESSAGE(learner_demand);
SERVICE_MESSAGE(learner_batch);
SERVICE_MESSAGE(learner_result);
SERVICE_MESSAGE(collector_ask);
SERVICE_MESSAGE(collector_data);
SERVICE_MESSAGE(learner_closed);
SERVICE_MESSAGE(collector_closed);

void learner_batch_fini(struct learner_batch *batch);
void collector_data_fini(struct collector_data *data);

#endif
