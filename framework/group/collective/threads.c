/* The carrier within one process: a rank is a thread, and memory is shared.
 *
 * An operation is a meeting. Who comes to it leaves where its numbers are, and
 * waits; the last one does the work for all, under the lock, so an operation
 * ends for all in one moment: it is all or none by itself. A meeting that has
 * failed stays until every rank has come and heard why.
 *
 * SEND and RECEIVE meet in pairs: a list of posts for each rank, in order. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "carrier.h"
#include "fold.h"
#include "forked.h"
#include "text_pieces.h"

struct gathering;

/* One operation of one rank. */
struct attendance {
    ls_collective base;
    struct member *member;
    bool ended; /* under the team's lock, as the rest */
    bool posted;
    struct gathering *gathering; /* NULL: of a pair, or it has ended */
    struct attendance *next;     /* of the posts of its member */
};

/* One operation of all ranks. */
struct gathering {
    struct gathering *next;
    uint64_t number; /* in its generation, from 0 */
    uint32_t n_come;
    uint32_t first; /* the rank that came first: */
    struct group_form form;
    bool ended;
    struct ls_failure end;
    struct attendance *come[]; /* by rank; borrow; NULL: not yet, or ended */
};

struct member {
    ls_group base;
    struct team *team;
    uint32_t rank;
    uint64_t next; /* number of its next operation */
    bool is_gone;  /* its handle is destroyed */
    bool forms;    /* waits in ls_group_form() */
    struct ls_group_stats stats;
    struct attendance *posts, **last_post; /* SEND and RECEIVE of this rank */
};

struct team {
    ls_mutex mutex;
    ls_cond changed;
    uint32_t n;
    uint32_t n_handles; /* not destroyed */
    uint64_t generation;
    bool is_over;
    uint32_t over_by; /* the rank that left */
    struct ls_failure over, over_there;
    struct gathering *gatherings; /* own; in order */
    uint32_t n_forming;
    uint64_t n_formings; /* that have ended, however */
    struct ls_failure formed;
    struct member members[];
};

/* --- what errors say ------------------------------------------------------ */

static void set_end(struct ls_failure *end, int status, const char *text)
{
    *end = (struct ls_failure){.status = status};
    snprintf(end->text, sizeof end->text, "%s", text);
}

/* --- ends ----------------------------------------------------------------- */

static void end_one(struct attendance *attendance, const struct ls_failure *end)
{
    attendance->base.end = *end;
    attendance->ended = true;
    attendance->gathering = NULL;
    if (end->status == LS_OK)
        attendance->member->stats.ended++;
    else
        attendance->member->stats.failed++;
}

/* Under the lock. */
static void end_gathering(struct team *team, struct gathering *gathering)
{
    gathering->ended = true;
    for (uint32_t i = 0; i < team->n; i++) {
        if (gathering->come[i] != NULL)
            end_one(gathering->come[i], &gathering->end);
        gathering->come[i] = NULL;
    }
    ls_cond_broadcast(&team->changed);
}

static void unlink_post(struct attendance *post)
{
    struct attendance **at = &post->member->posts;
    while (*at != post)
        at = &(*at)->next;
    *at = post->next;
    if (post->next == NULL)
        post->member->last_post = at;
    post->posted = false;
}

static void end_post(struct team *team, struct attendance *post,
                     const struct ls_failure *end)
{
    unlink_post(post);
    end_one(post, end);
    ls_cond_broadcast(&team->changed);
}

static void forget_gatherings(struct team *team)
{
    while (team->gatherings != NULL) {
        struct gathering *next = team->gatherings->next;
        free(team->gatherings);
        team->gatherings = next;
    }
}

/* What a rank's operations end with once one has left. */
static const struct ls_failure *over_for(const struct team *team, uint32_t rank)
{
    return rank == team->over_by ? &team->over : &team->over_there;
}

static void end_generation(struct team *team)
{
    for (struct gathering *g = team->gatherings; g != NULL; g = g->next) {
        for (uint32_t i = 0; i < team->n; i++) {
            if (g->come[i] != NULL)
                end_one(g->come[i], over_for(team, i));
            g->come[i] = NULL;
        }
    }
    for (uint32_t i = 0; i < team->n; i++) {
        while (team->members[i].posts != NULL)
            end_post(team, team->members[i].posts, over_for(team, i));
    }
    forget_gatherings(team);
    ls_cond_broadcast(&team->changed);
}

static void leave(ls_group *group, int status)
{
    struct member *member = (struct member *)group;
    struct team *team = member->team;
    ls_mutex_lock(&team->mutex);
    if (!team->is_over) {
        struct line line = {.size = 0};
        line_add(&line, "group: this rank, %" PRIu32 ", has left: %s",
                 member->rank, ls_status_sentence(status));
        set_end(&team->over, status, line.text);
        line.size = 0;
        line_add(&line, "group: rank %" PRIu32 " has left with %s: %s",
                 member->rank, ls_status_name(status),
                 ls_status_sentence(status));
        set_end(&team->over_there, LS_EABORTED, line.text);
        team->over_there.cause = status;
        team->is_over = true;
        team->over_by = member->rank;
        end_generation(team);
    }
    ls_mutex_unlock(&team->mutex);
}

static bool is_over_by_another(ls_group *group)
{
    const struct member *member = (const struct member *)group;
    struct team *team = member->team;
    ls_mutex_lock(&team->mutex);
    const bool is = team->is_over && team->over_by != member->rank;
    ls_mutex_unlock(&team->mutex);
    return is;
}

/* --- the work of an operation ------------------------------------------- */

static const struct group_call *call_of(const struct gathering *gathering,
                                        uint32_t rank)
{
    return &gathering->come[rank]->base.call;
}

static void copy(void *to, const void *from, size_t size)
{
    if (size > 0 && to != from)
        memmove(to, from, size);
}

static void broadcast(const struct team *team,
                      const struct gathering *gathering)
{
    const struct group_call *root = call_of(gathering, gathering->form.root);
    for (uint32_t i = 0; i < team->n; i++)
        copy(call_of(gathering, i)->out, root->in,
             group_call_out_bytes(call_of(gathering, i), i, team->n));
}

/* Every rank's bytes, by rank, to one. A rank may gather in place: where its
 * own are to lie. */
static void gather(const struct team *team, const struct gathering *gathering,
                   uint32_t to)
{
    unsigned char *out = call_of(gathering, to)->out;
    const size_t size = (size_t)gathering->form.count;
    for (uint32_t i = 0; i < team->n; i++)
        copy(out + i * size, call_of(gathering, i)->in, size);
}

static void scatter(const struct team *team, const struct gathering *gathering)
{
    const unsigned char *in = call_of(gathering, gathering->form.root)->in;
    const size_t size = (size_t)gathering->form.count;
    for (uint32_t i = 0; i < team->n; i++)
        copy(call_of(gathering, i)->out, in + i * size, size);
}

/* The fold of the numbers that begin `at` bytes into each rank's. */
static void fold(const struct team *team, const struct gathering *gathering,
                 void *out, size_t at)
{
    const struct group_form *form = &gathering->form;
    const size_t count = (size_t)form->count;
    const unsigned char *left = call_of(gathering, 0)->in;
    copy(out, left + at, count * group_type_bytes(form->type));
    for (uint32_t i = 1; i < team->n; i++) {
        const unsigned char *right = call_of(gathering, i)->in;
        fold_two(form->type, form->fold, out, out, right + at, count);
    }
    fold_end(form->type, form->fold, out, count, team->n);
}

/* In place of rank 0's numbers, if it wants the result there. Others' numbers
 * are read before any of them is written over. */
static void all_reduce(const struct team *team,
                       const struct gathering *gathering)
{
    void *const result = call_of(gathering, 0)->out;
    fold(team, gathering, result, 0);
    for (uint32_t i = 1; i < team->n; i++)
        copy(call_of(gathering, i)->out, result,
             group_call_out_bytes(call_of(gathering, i), i, team->n));
}

static void reduce_scatter(const struct team *team,
                           const struct gathering *gathering)
{
    const size_t size =
        (size_t)gathering->form.count * group_type_bytes(gathering->form.type);
    for (uint32_t i = 0; i < team->n; i++)
        fold(team, gathering, call_of(gathering, i)->out, i * size);
}

/* Copies of what some ranks bring, for one that wants parts. */
static int copy_parts(const struct gathering *gathering, uint32_t first,
                      size_t n, struct ls_group_parts *out)
{
    size_t *sizes = calloc(n, sizeof *sizes);
    if (sizes == NULL)
        return ls_error(LS_ENOMEM, "group: no memory for %zu parts", n);
    for (size_t i = 0; i < n; i++)
        sizes[i] = (size_t)call_of(gathering, first + (uint32_t)i)->form.count;
    const int status = group_parts_make(out, sizes, n);
    for (size_t i = 0; i < n && status == LS_OK; i++)
        copy((void *)(uintptr_t)out->items[i].data,
             call_of(gathering, first + (uint32_t)i)->in, sizes[i]);
    free(sizes);
    return status;
}

/* All get theirs, or none. */
static int give_parts(const struct team *team,
                      const struct gathering *gathering)
{
    const bool all = gathering->form.kind == LS_GROUP_ALL_GATHER;
    int status = LS_OK;
    for (uint32_t i = 0; i < team->n && status == LS_OK; i++)
        status = copy_parts(gathering, all ? 0 : gathering->form.root,
                            all ? team->n : 1, call_of(gathering, i)->parts);
    for (uint32_t i = 0; i < team->n && status != LS_OK; i++)
        ls_group_parts_free(call_of(gathering, i)->parts);
    return status;
}

static void move_all(const struct team *team, const struct gathering *gathering)
{
    switch (gathering->form.kind) {
    case LS_GROUP_BROADCAST:
        broadcast(team, gathering);
        break;
    case LS_GROUP_ALL_GATHER:
        for (uint32_t i = 0; i < team->n; i++)
            gather(team, gathering, i);
        break;
    case LS_GROUP_ALL_REDUCE:
        all_reduce(team, gathering);
        break;
    case LS_GROUP_REDUCE_SCATTER:
        reduce_scatter(team, gathering);
        break;
    case LS_GROUP_GATHER:
        gather(team, gathering, gathering->form.root);
        break;
    case LS_GROUP_SCATTER:
        scatter(team, gathering);
        break;
    case LS_GROUP_BARRIER:
    case LS_GROUP_SEND:
    case LS_GROUP_RECEIVE:
        break;
    }
}

/* All have come. */
static void do_work(struct team *team, struct gathering *gathering)
{
    int status = LS_OK;
    if (gathering->form.any)
        status = give_parts(team, gathering);
    else if (gathering->form.count > 0)
        move_all(team, gathering);
    if (status != LS_OK)
        set_end(&gathering->end, status, ls_error_text());
    end_gathering(team, gathering);
}

/* --- coming --------------------------------------------------------------- */

/* own by the team; in order, made when its first rank comes. NULL: no memory.
 */
static struct gathering *find_gathering(struct team *team, uint64_t number,
                                        uint32_t rank,
                                        const struct group_form *form)
{
    struct gathering **at = &team->gatherings;
    while (*at != NULL && (*at)->number < number)
        at = &(*at)->next;
    if (*at != NULL && (*at)->number == number)
        return *at;
    struct gathering *made =
        calloc(1, sizeof *made + team->n * sizeof(struct attendance *));
    if (made == NULL)
        return NULL;
    made->number = number;
    made->first = rank;
    made->form = *form;
    made->next = *at;
    *at = made;
    return made;
}

static void forget_gathering(struct team *team, struct gathering *gathering)
{
    struct gathering **at = &team->gatherings;
    while (*at != gathering)
        at = &(*at)->next;
    *at = gathering->next;
    free(gathering);
}

static void refuse_form(struct gathering *gathering, uint32_t rank,
                        const struct group_form *form)
{
    char one[GROUP_SAY_MAX], other[GROUP_SAY_MAX];
    struct line line = {.size = 0};
    group_form_say(&gathering->form, one);
    group_form_say(form, other);
    line_add(&line,
             "group: operation %" PRIu64 ": rank %" PRIu32
             " calls %s, rank %" PRIu32 " calls %s",
             gathering->number, gathering->first, one, rank, other);
    set_end(&gathering->end, LS_EMISMATCH, line.text);
}

/* Errors: LS_ENOMEM. */
static int come(struct member *member, struct attendance *attendance)
{
    struct team *team = member->team;
    const struct group_form *form = &attendance->base.call.form;
    struct gathering *gathering =
        find_gathering(team, member->next, member->rank, form);
    if (gathering == NULL)
        return ls_error(LS_ENOMEM, "group: no memory for an operation");
    member->next++;
    gathering->n_come++;
    if (gathering->ended) {
        end_one(attendance, &gathering->end);
    } else {
        gathering->come[member->rank] = attendance;
        attendance->gathering = gathering;
        if (!group_form_is_same(&gathering->form, form)) {
            refuse_form(gathering, member->rank, form);
            end_gathering(team, gathering);
        } else if (gathering->n_come == team->n) {
            do_work(team, gathering);
        }
    }
    if (gathering->ended && gathering->n_come == team->n)
        forget_gathering(team, gathering);
    return LS_OK;
}

/* --- pairs ---------------------------------------------------------------- */

static void match(struct team *team, struct attendance *send,
                  struct attendance *receive)
{
    const struct group_call *from = &send->base.call;
    const struct group_call *to = &receive->base.call;
    struct ls_failure end = {.status = LS_OK};
    if (from->form.count != to->form.count ||
        strcmp(from->form.name, to->form.name) != 0) {
        char one[GROUP_SAY_MAX], other[GROUP_SAY_MAX];
        struct line line = {.size = 0};
        group_form_say(&from->form, one);
        group_form_say(&to->form, other);
        line_add(&line,
                 "group: rank %" PRIu32 " calls %s, rank %" PRIu32 " calls %s",
                 send->member->rank, one, receive->member->rank, other);
        set_end(&end, LS_EMISMATCH, line.text);
    } else {
        copy(to->out, from->in, (size_t)from->form.count);
    }
    end_post(team, send, &end);
    end_post(team, receive, &end);
}

/* The first post of `peer` that awaits the other half from `rank`. */
static struct attendance *find_post(const struct member *peer, uint32_t rank,
                                    enum ls_group_kind kind)
{
    struct attendance *post = peer->posts;
    while (post != NULL && (post->base.call.form.root != rank ||
                            post->base.call.form.kind != kind))
        post = post->next;
    return post;
}

static void post(struct member *member, struct attendance *attendance)
{
    struct team *team = member->team;
    const struct group_form *form = &attendance->base.call.form;
    const bool sends = form->kind == LS_GROUP_SEND;
    struct attendance *other =
        find_post(&team->members[form->root], member->rank,
                  sends ? LS_GROUP_RECEIVE : LS_GROUP_SEND);
    *member->last_post = attendance;
    member->last_post = &attendance->next;
    attendance->posted = true;
    if (other != NULL)
        match(team, sends ? attendance : other, sends ? other : attendance);
}

/* --- ops ------------------------------------------------------------------ */

static int start(ls_collective **out, ls_group *group,
                 const struct group_call *call)
{
    struct member *member = (struct member *)group;
    struct team *team = member->team;
    struct attendance *attendance = calloc(1, sizeof *attendance);
    if (attendance == NULL)
        return ls_error(LS_ENOMEM, "group: no memory for an operation");
    attendance->base.group = group;
    attendance->base.call = *call;
    attendance->member = member;
    int status = LS_OK;
    ls_mutex_lock(&team->mutex);
    if (team->is_over)
        end_one(attendance, over_for(team, member->rank));
    else if (group_form_is_pair(&call->form))
        post(member, attendance);
    else
        status = come(member, attendance);
    ls_mutex_unlock(&team->mutex);
    if (status == LS_OK)
        *out = &attendance->base;
    else
        free(attendance);
    return status;
}

/* Its time is up: for all. */
static void expire(struct team *team, struct attendance *attendance)
{
    struct gathering *gathering = attendance->gathering;
    struct line line = {.size = 0};
    struct ls_failure end;
    char what[GROUP_SAY_MAX];
    group_form_say(&attendance->base.call.form, what);
    line_add(&line,
             "group: %s: the deadline of rank %" PRIu32 " passed; missing",
             what, attendance->member->rank);
    if (gathering == NULL)
        line_add(&line, ": rank %" PRIu32, attendance->base.call.form.root);
    for (uint32_t i = 0, n = 0; gathering != NULL && i < team->n; i++) {
        if (gathering->come[i] == NULL)
            line_add(&line, "%s rank %" PRIu32, n++ == 0 ? ":" : ",", i);
    }
    set_end(&end, LS_ETIMEDOUT, line.text);
    if (gathering == NULL) {
        end_post(team, attendance, &end);
        return;
    }
    gathering->end = end;
    end_gathering(team, gathering);
}

static int wait_until(ls_collective *collective, int64_t deadline)
{
    struct attendance *attendance = (struct attendance *)collective;
    struct team *team = attendance->member->team;
    const int64_t own = collective->call.deadline;
    ls_mutex_lock(&team->mutex);
    bool late = false;
    while (!attendance->ended && !late) {
        const int64_t until = deadline < own ? deadline : own;
        if (ls_cond_wait(&team->changed, &team->mutex, until) != LS_ETIMEDOUT ||
            attendance->ended)
            continue;
        if (until == own)
            expire(team, attendance);
        else
            late = true;
    }
    const bool ended = attendance->ended;
    ls_mutex_unlock(&team->mutex);
    return ended ? LS_OK : LS_ETIMEDOUT;
}

static bool has_ended(ls_collective *collective)
{
    struct attendance *attendance = (struct attendance *)collective;
    struct team *team = attendance->member->team;
    ls_mutex_lock(&team->mutex);
    if (!attendance->ended &&
        ls_now(collective->group->runtime) >= collective->call.deadline)
        expire(team, attendance);
    const bool ended = attendance->ended;
    ls_mutex_unlock(&team->mutex);
    return ended;
}

static void free_attendance(ls_collective *collective)
{
    free(collective);
}

/* --- generations ---------------------------------------------------------- */

static void end_forming(struct team *team)
{
    team->n_forming = 0;
    team->n_formings++;
    for (uint32_t i = 0; i < team->n; i++)
        team->members[i].forms = false;
    ls_cond_broadcast(&team->changed);
}

static void begin_generation(struct team *team)
{
    forget_gatherings(team);
    team->is_over = false;
    team->generation++;
    for (uint32_t i = 0; i < team->n; i++)
        team->members[i].next = 0;
    team->formed = (struct ls_failure){.status = LS_OK};
    end_forming(team);
}

/* The time of one is up, or one is gone: for all who form. */
static void fail_forming(struct team *team, uint32_t rank)
{
    struct line line = {.size = 0};
    const struct member *gone = NULL;
    for (uint32_t i = 0; i < team->n; i++)
        gone = team->members[i].is_gone ? &team->members[i] : gone;
    if (gone != NULL)
        line_add(&line,
                 "group: no next generation: rank %" PRIu32 " is destroyed",
                 gone->rank);
    else
        line_add(&line,
                 "group: no next generation: the deadline of rank %" PRIu32
                 " passed; missing",
                 rank);
    for (uint32_t i = 0, n = 0; gone == NULL && i < team->n; i++) {
        if (!team->members[i].forms)
            line_add(&line, "%s rank %" PRIu32, n++ == 0 ? ":" : ",", i);
    }
    set_end(&team->formed, gone != NULL ? LS_EMISMATCH : LS_ETIMEDOUT,
            line.text);
    end_forming(team);
}

static int form(ls_group *group, int wait_ms)
{
    const int64_t deadline = ls_deadline(group->runtime, wait_ms);
    struct member *member = (struct member *)group;
    struct team *team = member->team;
    ls_mutex_lock(&team->mutex);
    const uint64_t number = team->n_formings;
    member->forms = true;
    team->n_forming++;
    if (team->n_handles < team->n)
        fail_forming(team, member->rank);
    else if (team->n_forming == team->n)
        begin_generation(team);
    while (team->n_formings == number) {
        if (ls_cond_wait(&team->changed, &team->mutex, deadline) ==
                LS_ETIMEDOUT &&
            team->n_formings == number)
            fail_forming(team, member->rank);
    }
    const struct ls_failure end = team->formed;
    ls_mutex_unlock(&team->mutex);
    return ls_failure_return(&end);
}

static void place(const ls_group *group, uint32_t *rank, uint32_t *size,
                  uint64_t *generation)
{
    const struct member *member = (const struct member *)group;
    struct team *team = member->team;
    ls_mutex_lock(&team->mutex);
    *rank = member->rank;
    *size = team->n;
    *generation = team->generation;
    ls_mutex_unlock(&team->mutex);
}

static uint32_t id(const ls_group *group, uint32_t rank)
{
    (void)group;
    return rank;
}

static void stats(ls_group *group, struct ls_group_stats *out)
{
    struct member *member = (struct member *)group;
    ls_mutex_lock(&member->team->mutex);
    *out = member->stats;
    ls_mutex_unlock(&member->team->mutex);
}

/* --- life ----------------------------------------------------------------- */

static void free_team(struct team *team)
{
    forget_gatherings(team);
    ls_cond_fini(&team->changed);
    ls_mutex_fini(&team->mutex);
    free(team);
}

static void destroy(ls_group *group)
{
    struct member *member = (struct member *)group;
    struct team *team = member->team;
    leave(group, LS_ECLOSED);
    ls_mutex_lock(&team->mutex);
    member->is_gone = true;
    const bool last = --team->n_handles == 0;
    if (team->n_forming > 0)
        fail_forming(team, member->rank);
    ls_mutex_unlock(&team->mutex);
    if (last)
        free_team(team);
}

static void abandon(ls_group *group)
{
    free_team(((struct member *)group)->team);
}

static int split(ls_group **out, ls_group *group, const uint32_t *ranks,
                 uint32_t n, uint32_t own, uint64_t number, uint64_t *word);

static ls_group *meet(uint64_t word, uint32_t own)
{
    struct team *team = (struct team *)(uintptr_t)word;
    return &team->members[own].base;
}

static const struct carrier_ops threads_ops = {
    .form = form,
    .place = place,
    .id = id,
    .stats = stats,
    .leave = leave,
    .is_over_by_another = is_over_by_another,
    .destroy = destroy,
    .split = split,
    .meet = meet,
    .abandon = abandon,
    .start = start,
    .wait = wait_until,
    .has_ended = has_ended,
    .free = free_attendance,
};

static int create_team(struct team **out, ls_runtime *runtime, uint32_t n)
{
    struct team *team = calloc(1, sizeof *team + n * sizeof(struct member));
    if (team == NULL)
        return ls_error(LS_ENOMEM, "group: no memory for %u ranks",
                        (unsigned)n);
    team->n = n;
    team->n_handles = n;
    team->generation = 1;
    for (uint32_t i = 0; i < n; i++) {
        struct member *member = &team->members[i];
        member->base = (ls_group){.ops = &threads_ops,
                                  .runtime = runtime,
                                  .forks = ls_forks_now(),
                                  .buffers_lock = ATOMIC_FLAG_INIT};
        member->team = team;
        member->rank = i;
        member->last_post = &member->posts;
    }
    int status = ls_mutex_init(&team->mutex, runtime);
    if (status == LS_OK)
        status = ls_cond_init(&team->changed, runtime);
    if (status == LS_OK)
        *out = team;
    else
        free_team(team);
    return status;
}

/* The first rank makes the team, the others meet it there. */
static int split(ls_group **out, ls_group *group, const uint32_t *ranks,
                 uint32_t n, uint32_t own, uint64_t number, uint64_t *word)
{
    struct team *team;
    (void)ranks;
    (void)number;
    if (own != 0)
        return LS_OK;
    *word = 0;
    const int status = create_team(&team, group->runtime, n);
    if (status != LS_OK)
        return status;
    *word = (uintptr_t)team;
    *out = &team->members[0].base;
    return LS_OK;
}

int ls_group_threads(ls_group **out, ls_runtime *runtime, uint32_t n)
{
    *out = NULL;
    struct team *team = NULL;
    for (uint32_t i = 1; i < n; i++)
        out[i] = NULL;
    if (n == 0 || n > LS_GROUP_RANKS_MAX)
        return ls_error(LS_EINVAL, "group: %u threads, not 1 to %d",
                        (unsigned)n, LS_GROUP_RANKS_MAX);
    const int status = create_team(&team, runtime, n);
    for (uint32_t i = 0; i < n && status == LS_OK; i++)
        out[i] = &team->members[i].base;
    return status;
}
