#include "elastic_run.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/channel.h"
#include "lockstep/codec.h"
#include "lockstep/event.h"
#include "lockstep/log.h"

/* A node has given its round up; data: the round, as one msgpack integer. Its
 * steps in the barrier tell those who are there; others may wait elsewhere for
 * what will not come. */
#define ROUND_OVER "lockstep.round_over"
/* One who takes it no sooner finds out by itself, when its time is up. */
#define TELL_MS 1000
/* A run that fails though all are there fails again at once: nodes differ for a
 * moment in who is there. So long it waits for news before it tries again. */
#define AGAIN_MS 100

struct elastic_run {
    const struct plan *plan; /* borrow */
    size_t self;
    ls_task *task; /* borrow */
    ls_node *node; /* borrow */
    ls_runtime *runtime;
    bool listens;
    struct ls_member *members; /* own; a buffer */
    size_t capacity;

    ls_mutex mutex; /* guards what follows */
    ls_cond changed;
    uint64_t changes;
    bool running;           /* the task is */
    uint64_t over;          /* the last round that this node gave up */
    uint64_t *incarnations; /* own; by index in the plan; 0: never ready */
    int ended;              /* LS_OK, or by elastic_run_end() */
    char why[LS_ERROR_TEXT_MAX];
    bool returned;       /* elastic_run_go() has */
    int64_t patient_to;  /* elastic_run_end_soon(): by then it is cancelled */
    ls_thread *patience; /* own; NULL: nobody is patient */
};

/* Who is there ----------------------------------------------------------- */

static const struct ls_member *find_member(const struct ls_member *members,
                                           size_t n, uint32_t id)
{
    for (size_t i = 0; i < n; i++) {
        if (members[i].id == id)
            return &members[i];
    }
    return NULL;
}

static bool was_lost(const struct ls_member *member)
{
    return member->state == LS_MEMBER_LOST ||
           (member->state == LS_MEMBER_LEFT && member->reason != LS_OK);
}

/* What one node means for the run, by itself. */
static enum elastic_state look_at(const struct plan *plan, size_t self,
                                  const struct plan_node *node,
                                  const struct ls_member *member)
{
    if (member != NULL && member->state == LS_MEMBER_READY)
        return ELASTIC_WHOLE;
    if (member != NULL && member->state == LS_MEMBER_LEFT && !was_lost(member))
        return ELASTIC_DONE;
    if (node->on_loss == PLAN_GO_ON)
        return ELASTIC_WHOLE;
    /* A leaf of a star loses sight of all the others with the hub. */
    const bool leaf =
        plan->world.topology == LS_TOPOLOGY_STAR && self != plan->first;
    if (member == NULL || !was_lost(member) || node->on_loss == PLAN_RESTART ||
        leaf)
        return ELASTIC_AWAITS;
    return ELASTIC_BROKEN;
}

enum elastic_state elastic_look(const struct plan *plan, size_t self,
                                const struct ls_member *members, size_t n,
                                size_t *which)
{
    enum elastic_state state = ELASTIC_WHOLE;
    size_t collectors = 0, lost_collector = plan->n_nodes;
    bool gave_up = false; /* *which has left, for want of somebody else */
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const struct plan_node *node = &plan->nodes[i];
        const struct ls_member *member = find_member(members, n, node->id);
        const bool here =
            i == self || (member != NULL && member->state == LS_MEMBER_READY);
        if (node->role == PLAN_COLLECTOR &&
            (here || node->on_loss != PLAN_GO_ON))
            collectors++;
        else if (node->role == PLAN_COLLECTOR)
            lost_collector = i;
        const enum elastic_state mine =
            i == self ? ELASTIC_WHOLE : look_at(plan, self, node, member);
        const bool left = member != NULL && member->state == LS_MEMBER_LEFT;
        if (mine > state ||
            (mine == ELASTIC_AWAITS && mine == state && gave_up && !left)) {
            state = mine;
            *which = i;
            gave_up = left;
        }
    }
    if (state < ELASTIC_BROKEN && collectors == 0 &&
        lost_collector < plan->n_nodes) {
        state = ELASTIC_BROKEN;
        *which = lost_collector;
    }
    return state;
}

static int look_around(elastic_run *self, enum elastic_state *state,
                       size_t *which)
{
    size_t n;
    while ((n = ls_node_members(self->node, self->members, self->capacity)) >
           self->capacity) {
        struct ls_member *members = realloc(self->members, n * sizeof *members);
        if (members == NULL)
            return ls_error(LS_ENOMEM, "no memory for %zu members", n);
        self->members = members;
        self->capacity = n;
    }
    *state = elastic_look(self->plan, self->self, self->members, n, which);
    ls_mutex_lock(&self->mutex);
    for (size_t i = 0; i < self->plan->n_nodes; i++) {
        const struct ls_member *member =
            find_member(self->members, n, self->plan->nodes[i].id);
        if (member != NULL && member->state == LS_MEMBER_READY)
            self->incarnations[i] = member->incarnation;
    }
    ls_mutex_unlock(&self->mutex);
    return LS_OK;
}

/* What comes in ---------------------------------------------------------- */

/* Whether this takes a node from the run. One that comes back may be heard of
 * before its end, and news of an earlier life may come late. With the mutex
 * held. */
static bool note_member(elastic_run *self, size_t index,
                        const struct ls_member *member)
{
    uint64_t *known = &self->incarnations[index];
    self->changes++;
    ls_cond_broadcast(&self->changed);
    if (member->state != LS_MEMBER_READY)
        return was_lost(member) && *known == member->incarnation;
    const bool replaced = *known != 0 && *known != member->incarnation;
    *known = member->incarnation;
    return replaced;
}

/* A loss ends the run at once, also in the middle of a long step. */
static void on_member(void *arg, const struct ls_member *member)
{
    elastic_run *self = arg;
    size_t index = 0;
    while (index < self->plan->n_nodes &&
           self->plan->nodes[index].id != member->id)
        index++;
    if (index == self->plan->n_nodes)
        return;
    ls_mutex_lock(&self->mutex);
    const bool loss = note_member(self, index, member);
    const bool ends = loss && self->running;
    ls_mutex_unlock(&self->mutex);
    /* Once all have agreed to finish, each leaves in its own time. */
    if (!ends || ls_task_finishing(self->task))
        return;
    char text[128];
    (void)snprintf(text, sizeof text, "node %" PRIu32 " (%s) was lost",
                   member->id, plan_role_names[self->plan->nodes[index].role]);
    ls_task_cancel(self->task, LS_ELOST, text);
}

static int on_round_over(void *arg, const struct ls_event *event)
{
    elastic_run *self = arg;
    ls_document *document = NULL;
    uint64_t round = 0;
    int status = ls_document_read(&document, event->data, event->size, NULL);
    if (status == LS_OK)
        status = ls_value_uint(ls_document_root(document), &round);
    ls_document_destroy(&document);
    if (status != LS_OK)
        return status;
    ls_mutex_lock(&self->mutex);
    const bool ends = self->running && round > self->over &&
                      round == ls_task_round(self->task);
    ls_mutex_unlock(&self->mutex);
    if (!ends || ls_task_finishing(self->task))
        return LS_OK;
    char text[64];
    (void)snprintf(text, sizeof text, "node %" PRIu32 " gave the round up",
                   event->origin);
    ls_task_cancel(self->task, LS_EABORTED, text);
    return LS_OK;
}

static void note_ended(elastic_run *self, int status, const char *text)
{
    ls_mutex_lock(&self->mutex);
    if (self->ended == LS_OK) {
        self->ended = status;
        (void)snprintf(self->why, sizeof self->why, "%s", text);
    }
    self->changes++;
    ls_cond_broadcast(&self->changed);
    ls_mutex_unlock(&self->mutex);
}

void elastic_run_end(elastic_run *self, int status, const char *text)
{
    if (self->listens) /* else nothing is waited for between two runs */
        note_ended(self, status, text);
    ls_task_cancel(self->task, status, text);
}

static void be_patient(void *arg)
{
    elastic_run *self = arg;
    int status = LS_OK;
    ls_mutex_lock(&self->mutex);
    while (!self->returned && status == LS_OK)
        status = ls_cond_wait(&self->changed, &self->mutex, self->patient_to);
    const bool over = self->returned;
    const int ended = self->ended;
    ls_mutex_unlock(&self->mutex);
    if (!over) /* why does not change any more */
        ls_task_cancel(self->task, ended, self->why);
}

void elastic_run_end_soon(elastic_run *self, int status, const char *text,
                          int patience_ms)
{
    note_ended(self, status, text);
    ls_mutex_lock(&self->mutex);
    const bool waits = !self->returned && self->patience == NULL;
    self->patient_to = ls_deadline(self->runtime, patience_ms);
    const int spawned = waits ? ls_thread_spawn(self->runtime, &self->patience,
                                                "ending", be_patient, self)
                              : LS_OK;
    ls_mutex_unlock(&self->mutex);
    if (spawned != LS_OK)
        ls_task_cancel(self->task, status, text);
}

/* Running ---------------------------------------------------------------- */

static int run_once(elastic_run *self)
{
    ls_mutex_lock(&self->mutex);
    self->running = true;
    ls_mutex_unlock(&self->mutex);
    const int status = ls_task_run(self->task, UINT64_MAX);
    ls_mutex_lock(&self->mutex);
    self->running = false;
    ls_mutex_unlock(&self->mutex);
    return status;
}

/* What a run may end with when a node was lost: itself, by another's word,
 * because nodes differ for a moment in who is there, or because one has waited
 * for it so long that it gave up, and all with it. */
static bool may_be_loss(int status)
{
    return status == LS_ELOST || status == LS_EABORTED ||
           status == LS_EMISMATCH || status == LS_ETIMEDOUT;
}

/* A cancel of the task does not say so: the task keeps only the first, which
 * may have been a loss, and forgets it with the run. */
static int check_ended(elastic_run *self)
{
    ls_mutex_lock(&self->mutex);
    const int status =
        self->ended != LS_OK ? ls_error(self->ended, "%s", self->why) : LS_OK;
    ls_mutex_unlock(&self->mutex);
    return status;
}

/* Once for each round: a run that fails before it has begun is in none. */
static void give_round_up(elastic_run *self)
{
    const uint64_t round = ls_task_round(self->task);
    ls_mutex_lock(&self->mutex);
    const bool again = round <= self->over;
    self->over = round;
    ls_mutex_unlock(&self->mutex);
    if (again)
        return;
    ls_writer *writer = NULL;
    int status = ls_writer_create(&writer);
    if (status == LS_OK) {
        struct ls_emission emission = {.event = ROUND_OVER,
                                       .scope = LS_SCOPE_REMOTE,
                                       .delivery = LS_DELIVERY_BLOCK,
                                       .timeout_ms = TELL_MS};
        ls_write_uint(writer, round);
        status = ls_writer_bytes(writer, &emission.data, &emission.size);
        if (status == LS_OK)
            status = ls_emit_with(self->node, &emission);
        ls_writer_destroy(&writer);
    }
    if (status != LS_OK)
        ls_log_debug("the others could not be told: %s", ls_error_text());
}

/* The times by which something has to be. */
struct patience {
    uint64_t iterations; /* at the last loss; UINT64_MAX: there was none */
    bool again;          /* there was none since, and no iteration either */
    struct ls_due end;   /* from a loss to an iteration that is whole */
    int64_t stops_at;    /* the run, by its plan: the learner ends it */
};

static struct patience begin_patience(const elastic_run *self)
{
    const struct plan *plan = self->plan;
    const bool decides = plan->nodes[self->self].role == PLAN_LEARNER;
    struct patience patience = {.iterations = UINT64_MAX,
                                .stops_at = LS_FOREVER};
    if (decides && plan->stop_minutes > 0.0)
        patience.stops_at =
            ls_now(self->runtime) +
            (int64_t)(plan->stop_minutes * 60.0 * (double)LS_NS_PER_S);
    return patience;
}

/* How long who was lost may take to come back. */
static int patience_ms(const elastic_run *self)
{
    return self->plan->world.start_timeout_ms + PLAN_BACKOFF_MAX_MS;
}

/* A loss. */
static void lose_patience(const elastic_run *self, struct patience *patience)
{
    const uint64_t iterations = ls_task_iterations(self->task);
    patience->again = iterations == patience->iterations;
    patience->iterations = iterations;
    if (!patience->again)
        patience->end = ls_due_at(
            self->node, ls_deadline(self->runtime, patience_ms(self)));
}

static int give_up(const elastic_run *self, const char *why,
                   enum elastic_state state, size_t which)
{
    const struct plan_node *node = &self->plan->nodes[which];
    return state == ELASTIC_AWAITS
               ? ls_error(LS_ELOST,
                          "%s; node %" PRIu32 " (%s) did not come back within "
                          "%g s (world.start_timeout_s, and %d s): if it only "
                          "needs longer, raise that",
                          why, node->id, plan_role_names[node->role],
                          patience_ms(self) / 1000.0,
                          PLAN_BACKOFF_MAX_MS / 1000)
               : ls_error(LS_ELOST, "%s", why);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Until something has changed since, or `until`. */
static void wait_for_news(elastic_run *self, uint64_t seen, int64_t until)
{
    int status = LS_OK;
    ls_mutex_lock(&self->mutex);
    while (self->changes == seen && status == LS_OK)
        status = ls_cond_wait(&self->changed, &self->mutex, until);
    ls_mutex_unlock(&self->mutex);
}

/* Unless something has changed since. A loss ends the run from here on, also
 * before its first step. */
static bool begin_if_same(elastic_run *self, uint64_t seen)
{
    ls_mutex_lock(&self->mutex);
    self->running = self->changes == seen;
    const bool begins = self->running;
    ls_mutex_unlock(&self->mutex);
    return begins;
}

/* Wait until everyone is there; *done: the run is over, by the others or by
 * its time. An error is the end of it: whoever waits again waits for ever.
 * why: the text of the loss. */
static int await_all(elastic_run *self, const char *why,
                     struct patience *patience, bool *done)
{
    bool rested = !patience->again;
    for (;;) {
        enum elastic_state state = ELASTIC_WHOLE;
        size_t which = self->self;
        ls_mutex_lock(&self->mutex);
        const uint64_t seen = self->changes;
        ls_mutex_unlock(&self->mutex);
        int status = check_ended(self);
        if (status == LS_OK)
            status = look_around(self, &state, &which);
        if (status != LS_OK)
            return status;
        const int64_t now = ls_now(self->runtime);
        *done = state == ELASTIC_DONE || now >= patience->stops_at;
        if (*done)
            return LS_OK;
        if (state == ELASTIC_BROKEN ||
            ls_due_has_passed(self->node, &patience->end))
            return give_up(self, why, state, which);
        if (state == ELASTIC_WHOLE && rested && begin_if_same(self, seen))
            return LS_OK;
        int64_t until = earlier(patience->end.at, patience->stops_at);
        if (state == ELASTIC_WHOLE)
            until = earlier(until, ls_deadline(self->runtime, AGAIN_MS));
        wait_for_news(self, seen, until);
        rested = true;
    }
}

/* A barrier takes those whom it finds: it does not miss who was lost since all
 * were there. */
static int await_first(elastic_run *self, bool *done)
{
    struct patience patience = begin_patience(self);
    lose_patience(self, &patience);
    return await_all(self, "a node was lost before the run began", &patience,
                     done);
}

static int go(elastic_run *self)
{
    char why[LS_ERROR_TEXT_MAX];
    struct patience patience = begin_patience(self);
    bool done = false;
    int status = self->listens ? await_first(self, &done) : LS_OK;
    if (status == LS_OK && !done)
        status = run_once(self);
    while (may_be_loss(status) && self->listens) {
        (void)snprintf(why, sizeof why, "%s", ls_error_text());
        lose_patience(self, &patience);
        give_round_up(self);
        ls_log_info("waits for all to be there: %s", why);
        status = await_all(self, why, &patience, &done);
        if (status != LS_OK || done)
            break;
        status = run_once(self);
    }
    return status;
}

int elastic_run_go(elastic_run *self)
{
    const int status = go(self);
    ls_mutex_lock(&self->mutex);
    self->returned = true;
    ls_cond_broadcast(&self->changed);
    ls_mutex_unlock(&self->mutex);
    return status;
}

/* Life ------------------------------------------------------------------- */

static int init(elastic_run *self)
{
    self->incarnations =
        calloc(self->plan->n_nodes, sizeof *self->incarnations);
    if (self->incarnations == NULL)
        return ls_error(LS_ENOMEM, "no memory for who is there");
    const int status = ls_mutex_init(&self->mutex, self->runtime);
    return status == LS_OK ? ls_cond_init(&self->changed, self->runtime)
                           : status;
}

static void free_run(elastic_run *self)
{
    ls_cond_fini(&self->changed);
    ls_mutex_fini(&self->mutex);
    free(self->members);
    free(self->incarnations);
    free(self);
}

/* Taking away what is there cannot fail. */
static void must(int status)
{
    assert(status == LS_OK);
    (void)status;
}

/* A run that no node can be lost to needs nobody to watch it. */
static int listen(elastic_run *self)
{
    if (!plan_can_lose_nodes(self->plan))
        return LS_OK;
    int status = ls_node_on_member(self->node, on_member, self);
    if (status != LS_OK)
        return status;
    status = ls_on(self->node, ROUND_OVER, on_round_over, self);
    self->listens = status == LS_OK;
    if (status != LS_OK)
        must(ls_node_on_member(self->node, NULL, self));
    return status;
}

int elastic_run_create(elastic_run **out, const struct plan *plan,
                       size_t self_index, ls_task *task)
{
    elastic_run *self = calloc(1, sizeof *self);
    if (self == NULL)
        return ls_error(LS_ENOMEM, "no memory for who is there");
    self->plan = plan;
    self->self = self_index;
    self->task = task;
    self->node = ls_task_node(task);
    self->runtime = ls_task_runtime(task);
    int status = init(self);
    if (status == LS_OK)
        status = listen(self);
    if (status == LS_OK)
        *out = self;
    else
        free_run(self);
    return status;
}

void elastic_run_destroy(elastic_run **self)
{
    if (self == NULL || *self == NULL)
        return;
    ls_mutex_lock(&(*self)->mutex);
    (*self)->returned = true;
    ls_cond_broadcast(&(*self)->changed);
    ls_mutex_unlock(&(*self)->mutex);
    if ((*self)->patience != NULL)
        must(ls_thread_join(&(*self)->patience, LS_FOREVER));
    if ((*self)->listens) {
        must(ls_node_on_member((*self)->node, NULL, *self));
        must(ls_off((*self)->node, ROUND_OVER, on_round_over, *self));
    }
    free_run(*self);
    *self = NULL;
}
