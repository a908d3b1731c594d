#include "lease_giver.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/event.h"
#include "lockstep/file.h"
#include "lockstep/log.h"

#include "lease.h"
#include "lease_table.h"
#include "node_security.h"
#include "plan_lease.h"

#define FILE_MAX (1 << 20)
/* Beyond the silence after which a member that froze is lost. */
#define SPARE_MS 1000

struct lease_giver {
    const struct plan *plan; /* borrow */
    size_t index;            /* of the node that it is beside */
    ls_node *node;           /* borrow: that */
    ls_security *security;   /* borrow: of that */
    char file[LS_PATH_MAX];
    char attach[PLAN_ADDRESS_MAX];

    ls_security *door; /* own; NULL: it has the node's */
    ls_node *place;    /* own; where it is asked */
    ls_rpc *calls;     /* own */

    ls_mutex lock; /* what follows */
    ls_cond gone;  /* a key may be asked for again */
    struct lease_table table;
    bool closing;
};

/* ---- telling ------------------------------------------------------------ */

/* Whoever cannot write the file still gives out ids: only its own restart
 * forgets them. */
static void save(const lease_giver *giver, const char *text, size_t size)
{
    char temporary[LS_PATH_MAX + 8];
    (void)snprintf(temporary, sizeof temporary, "%s.new", giver->file);
    int status = ls_folder_make(giver->plan->out);
    if (status == LS_OK)
        status = ls_file_replace(giver->file, temporary,
                                 &(struct ls_file_part){text, size}, 1, true);
    if (status != LS_OK)
        ls_log_warn("leases: after a restart of this node the replicas may "
                    "have other ids: %s",
                    ls_error_text());
}

/* own; NULL: no memory. Lock held. */
static char *lines_of(const lease_giver *giver)
{
    const size_t size = lease_table_write(&giver->table, NULL, 0);
    char *text = malloc(size + 1);
    if (text == NULL)
        (void)ls_error(LS_ENOMEM, "the list of keys and ids");
    else
        (void)lease_table_write(&giver->table, text, size + 1);
    return text;
}

static int emit(const lease_giver *giver, const char *text)
{
    if (!plan_has_keys(giver->plan))
        return LS_OK;
    return ls_emit_with(giver->node,
                        &(struct ls_emission){.event = LEASE_EVENT,
                                              .data = text,
                                              .size = strlen(text),
                                              .scope = LS_SCOPE_REMOTE,
                                              .delivery = LS_DELIVERY_LATEST});
}

/* The table has changed. Lock held. */
static void tell(lease_giver *giver)
{
    char *text = lines_of(giver);
    if (text != NULL)
        save(giver, text, strlen(text));
    if (text == NULL || emit(giver, text) != LS_OK)
        ls_log_warn("leases: the members could not be told: %s",
                    ls_error_text());
    free(text);
}

static void distrust(const lease_giver *giver, uint32_t id)
{
    if (plan_has_keys(giver->plan) &&
        ls_security_distrust(giver->security, id) != LS_OK)
        ls_log_warn("leases: %s", ls_error_text());
}

/* Of a plan without keys everything is trusted. */
static int trust(const lease_giver *giver, uint32_t id, const char *key)
{
    return plan_has_keys(giver->plan)
               ? ls_security_trust(giver->security, id, key)
               : LS_OK;
}

static void on_member(void *self, const struct ls_member *member)
{
    lease_giver *giver = self;
    const bool here = member->state == LS_MEMBER_READY;
    ls_mutex_lock(&giver->lock);
    const size_t before = lease_table_write(&giver->table, NULL, 0);
    if (here)
        lease_table_came(&giver->table, member->id);
    else
        lease_table_gone(&giver->table, member->id,
                         member->state == LS_MEMBER_LEFT,
                         ls_now(ls_runtime_threads()));
    if (lease_table_write(&giver->table, NULL, 0) != before) {
        distrust(giver, member->id); /* its key was for that life alone */
        tell(giver);
    }
    ls_cond_broadcast(&giver->gone);
    ls_mutex_unlock(&giver->lock);
}

/* ---- being asked -------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Whether a text has this key in a line of its own. Blanks around it are those
 * of who wrote the file, as the end of a line of another system. */
static bool has_line(const char *text, size_t size, const char *key)
{
    const size_t length = strlen(key);
    for (size_t at = 0; at < size;) {
        const char *line = text + at, *end = memchr(line, '\n', size - at);
        size_t n = end != NULL ? (size_t)(end - line) : size - at;
        at += n + 1;
        for (; n > 0 && is_blank(line[0]); n--)
            line++;
        while (n > 0 && is_blank(line[n - 1]))
            n--;
        if (n == length && memcmp(line, key, n) == 0)
            return true;
    }
    return false;
}

/* The file that names them; `out`, own, is NULL where there is none. */
static int read_revoked(const lease_giver *giver, char path[LS_PATH_MAX],
                        void **out, size_t *size)
{
    *out = NULL;
    *size = 0;
    if (!plan_has_keys(giver->plan))
        return LS_OK;
    (void)snprintf(path, LS_PATH_MAX, "%s/" LEASE_REVOKED,
                   giver->plan->security.keys);
    const int status = ls_file_read(path, FILE_MAX, out, size);
    return status == LS_ENOENT ? LS_OK : status;
}

/* Take their ids from all keys that the text names: who has one may never ask
 * again. Returns whether there were any. */
static bool drop_revoked(lease_giver *giver, const char *text, size_t size)
{
    bool any = false;
    for (size_t i = 0; i < giver->table.n; i++) {
        const struct lease *lease = &giver->table.leases[i];
        if (lease->key[0] == '\0' || !has_line(text, size, lease->key))
            continue;
        (void)lease_table_revoke(&giver->table, lease->key);
        distrust(giver, lease->id);
        any = true;
    }
    return any;
}

/* Errors: LS_EMISMATCH it is. Lock held. */
static int check_revoked(lease_giver *giver, const char *key)
{
    char path[LS_PATH_MAX] = "";
    void *text;
    size_t size;
    int status = read_revoked(giver, path, &text, &size);
    if (status != LS_OK)
        return status;
    if (drop_revoked(giver, text, size))
        tell(giver);
    if (has_line(text, size, key))
        status = ls_error(LS_EMISMATCH, "its key %s is revoked: %s names it",
                          key, path);
    free(text);
    return status;
}

/* The role, in the words of the plan. Errors: LS_EMISMATCH. */
static int role_of(const lease_giver *giver, const char *name, int *out)
{
    enum plan_role role;
    if (plan_role_named(name, &role) && plan_n_leases(giver->plan, role) > 0) {
        *out = (int)role;
        return LS_OK;
    }
    return ls_error(LS_EMISMATCH, "no replicas of the role \"%s\" are planned",
                    name);
}

/* One go at it. Lock held. */
static int give(lease_giver *giver, const struct lease_ask *ask,
                const struct lease **out)
{
    int status = check_revoked(giver, ask->key);
    while (status == LS_OK) {
        status = lease_table_ask(&giver->table, ask,
                                 ls_now(ls_runtime_threads()), out);
        if (status != LS_OK)
            return status;
        const uint32_t id = (*out)->id;
        status = trust(giver, id, ask->key);
        if (status == LS_OK)
            return LS_OK;
        (void)lease_table_revoke(&giver->table, ask->key);
        if (status == LS_EEXIST) { /* by now it has a certificate */
            lease_table_bar(&giver->table, id);
            status = LS_OK;
        }
    }
    return status;
}

/* Who was killed may ask again before it is seen that he is gone. */
static int give_in_time(lease_giver *giver, const struct lease_ask *ask,
                        struct lease_answer *out)
{
    const struct lease *lease = NULL;
    const int64_t until = ls_deadline(ls_runtime_threads(),
                                      giver->plan->world.silence_ms + SPARE_MS);
    ls_mutex_lock(&giver->lock);
    int status = give(giver, ask, &lease);
    while (status == LS_EEXIST && !giver->closing &&
           ls_cond_wait(&giver->gone, &giver->lock, until) == LS_OK)
        status = give(giver, ask, &lease);
    if (status == LS_EEXIST) /* once more, also for its text */
        status = give(giver, ask, &lease);
    if (status == LS_OK) {
        out->id = lease->id;
        tell(giver);
        out->leases = lines_of(giver);
        status = out->leases != NULL
                     ? LS_OK
                     : ls_error(LS_ENOMEM, "the list of keys and ids");
    }
    ls_mutex_unlock(&giver->lock);
    return status;
}

static int refuse(ls_request *request, int status)
{
    ls_log_warn("leases: a node is refused an id: %s", ls_error_text());
    (void)ls_request_refuse(&request, lease_refusal(status), ls_error_text());
    return LS_OK;
}

static int answer(ls_request *request, const struct lease_answer *from)
{
    ls_writer *writer = NULL;
    const void *data;
    size_t size;
    int status = ls_writer_create(&writer);
    if (status != LS_OK)
        return status;
    ls_record_write(&lease_answer_record, from, writer);
    status = ls_writer_bytes(writer, &data, &size);
    /* Who does not wait any more asks again, and is given the same. */
    if (status == LS_OK)
        (void)ls_request_complete(&request, data, size);
    ls_writer_destroy(&writer);
    return status;
}

static int serve(void *self, ls_request *request)
{
    lease_giver *giver = self;
    struct lease_question question;
    struct lease_answer given = {.id = 0};
    struct lease_ask ask = {.key = question.key};
    size_t size;
    const void *data = ls_request_data(request, &size);
    int status =
        ls_record_decode(&lease_question_record, &question, data, size, NULL);
    if (status == LS_OK)
        status = role_of(giver, question.role, &ask.role);
    if (status != LS_OK)
        return refuse(request, status);
    ask.lasting = question.lasting;
    ask.life = question.life;
    status = give_in_time(giver, &ask, &given);
    if (status != LS_OK)
        return refuse(request, status);
    ls_log_info("leases: key %s has id %" PRIu32, ask.key, given.id);
    memcpy(given.attach, giver->attach, sizeof given.attach);
    status = answer(request, &given);
    ls_record_clear(&lease_answer_record, &given);
    return status == LS_OK ? LS_OK : refuse(request, status);
}

/* ---- open and close ----------------------------------------------------- */

static int forget_revoked(lease_giver *giver)
{
    char path[LS_PATH_MAX];
    void *text;
    size_t size;
    const int status = read_revoked(giver, path, &text, &size);
    if (status == LS_OK)
        (void)drop_revoked(giver, text, size);
    free(text);
    return status;
}

/* What was given out before, less what was revoked meanwhile. */
static int recall(lease_giver *giver)
{
    void *text = NULL;
    size_t size;
    int status = ls_file_path(giver->file, sizeof giver->file - 4,
                              giver->plan->out, LEASE_FILE_NAME);
    if (status == LS_OK)
        status = ls_file_read(giver->file, FILE_MAX, &text, &size);
    if (status == LS_ENOENT)
        return LS_OK;
    if (status == LS_OK)
        status = lease_table_read(&giver->table, text, size,
                                  ls_now(ls_runtime_threads()));
    if (status == LS_EPROTO)
        status = ls_error_at(LS_ECONFIG,
                             "%s: repair it, or remove it so that all ids "
                             "are given out again",
                             giver->file);
    free(text);
    return status == LS_OK ? forget_revoked(giver) : status;
}

static void trust_recalled(lease_giver *giver)
{
    for (size_t i = 0; i < giver->table.n; i++) {
        struct lease *lease = &giver->table.leases[i];
        if (lease->key[0] == '\0' ||
            trust(giver, lease->id, lease->key) == LS_OK)
            continue;
        ls_log_warn("leases: node %" PRIu32 " loses its id: %s", lease->id,
                    ls_error_text());
        (void)lease_table_revoke(&giver->table, lease->key);
    }
}

static int create_place(lease_giver *giver, const struct plan_lease_place *at)
{
    const struct plan *plan = giver->plan;
    char job[PLAN_LEASE_JOB_MAX];
    struct ls_node_options options;
    plan_lease_job(plan, job);
    plan_node_options(plan, &options);
    options.job = job;
    options.id = plan->nodes[giver->index].id;
    options.role = plan_role_names[plan->nodes[giver->index].role];
    options.bind = at->bind;
    options.advertise = at->advertise;
    options.topology = LS_TOPOLOGY_ALONE;
    options.world_size = 1;
    options.security = giver->door != NULL ? giver->door : giver->security;
    const int status = ls_node_create(&giver->place, &options);
    return status == LS_EINVAL ? LS_ECONFIG : status;
}

static int open_place(lease_giver *giver)
{
    const struct plan *plan = giver->plan;
    struct plan_lease_place at;
    int status = plan_lease_place(plan, &at);
    if (status == LS_OK && plan_has_keys(plan))
        status = node_security_open_giving(&giver->door, plan,
                                           plan->nodes[giver->index].id);
    if (status == LS_OK)
        status = create_place(giver, &at);
    if (status == LS_OK)
        status = ls_rpc_open(
            &giver->calls, giver->place,
            &(struct ls_rpc_options){.n_workers = LEASE_WAITERS_MAX});
    if (status == LS_OK)
        status = ls_rpc_serve(giver->calls, LEASE_CALL, LS_CALL_ANYONE, serve,
                              giver);
    if (status == LS_OK)
        status = ls_node_start(giver->place);
    if (status == LS_OK)
        ls_log_info("leases: ids are given out at %s", at.advertise);
    return status == LS_OK ? LS_OK : ls_error_at(status, "giving out ids");
}

static lease_giver *make(const struct lease_giver_options *options)
{
    lease_giver *giver = calloc(1, sizeof *giver);
    if (giver == NULL)
        return NULL;
    giver->plan = options->plan;
    giver->index = plan_lease_giver(options->plan);
    giver->node = options->node;
    giver->security = options->security;
    plan_put_address(giver->plan, giver->index, ls_node_endpoint(giver->node),
                     giver->attach);
    ls_runtime *runtime = ls_runtime_threads();
    if (ls_mutex_init(&giver->lock, runtime) == LS_OK &&
        ls_cond_init(&giver->gone, runtime) == LS_OK)
        return giver;
    free(giver);
    return NULL;
}

int lease_giver_open(lease_giver **out,
                     const struct lease_giver_options *options)
{
    lease_giver *giver = make(options);
    if (giver == NULL)
        return ls_error(LS_ENOMEM, "giving out ids");
    int status = lease_table_of_plan(giver->plan, &giver->table);
    if (status == LS_OK)
        status = recall(giver);
    if (status == LS_OK) {
        trust_recalled(giver);
        status = ls_node_on_member(giver->node, on_member, giver);
    }
    if (status == LS_OK)
        status = open_place(giver);
    if (status != LS_OK) {
        lease_giver_close(&giver);
        return status;
    }
    ls_mutex_lock(&giver->lock);
    tell(giver);
    ls_mutex_unlock(&giver->lock);
    *out = giver;
    return LS_OK;
}

void lease_giver_close(lease_giver **giver_p)
{
    if (giver_p == NULL || *giver_p == NULL)
        return;
    lease_giver *giver = *giver_p;
    ls_mutex_lock(&giver->lock);
    giver->closing = true;
    ls_cond_broadcast(&giver->gone);
    ls_mutex_unlock(&giver->lock);
    ls_rpc_close(&giver->calls);
    ls_node_destroy(&giver->place);
    ls_security_destroy(&giver->door);
    if (ls_node_on_member(giver->node, NULL, giver) != LS_OK)
        ls_log_warn("leases: %s", ls_error_text());
    lease_table_fini(&giver->table);
    ls_cond_fini(&giver->gone);
    ls_mutex_fini(&giver->lock);
    free(giver);
    *giver_p = NULL;
}
