#include "status_view.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/runtime.h"

#include "json.h"
#include "output.h"
#include "sum.h"

/* ---- made ---------------------------------------------------------------- */

static struct status_node *find(struct status_view *view, uint32_t id)
{
    for (size_t i = 0; i < view->n; i++)
        if (view->nodes[i].id == id)
            return &view->nodes[i];
    return NULL;
}

static struct status_node *find_or_add(struct status_view *view, uint32_t id)
{
    struct status_node *node = find(view, id);
    if (node != NULL)
        return node;
    node = &view->nodes[view->n++];
    *node = (struct status_node){.id = id,
                                 .kind = STATUS_GONE,
                                 .heard_ms = -1,
                                 .iterations_per_s = NAN,
                                 .env_steps_per_s = NAN,
                                 .events_per_s = NAN};
    return node;
}

static const struct health *health_of(const struct status_node *node)
{
    return &node->answer->health;
}

static double rate(int64_t more, int64_t ns)
{
    return more >= 0 && ns > 0 ? (double)more * (double)LS_NS_PER_S / (double)ns
                               : NAN;
}

static void compare(struct status_node *node,
                    const struct health_answer *before)
{
    const struct health *now = health_of(node), *then = &before->health;
    if (before->status != LS_OK || now->pid != then->pid ||
        now->incarnation != then->incarnation)
        return; /* another life */
    const int64_t ns = difference_of(now->clock_ns, then->clock_ns);
    node->iterations_per_s =
        rate(difference_of(now->iterations, then->iterations), ns);
    node->events_per_s = rate((int64_t)(now->events - then->events), ns);
    if (then->env_step >= 0)
        node->env_steps_per_s =
            rate(difference_of(now->env_step, then->env_step), ns);
}

static void note_peer(struct status_view *view, const struct health_peer *peer)
{
    struct status_node *node = find_or_add(view, peer->id);
    if (node->heard_ms < 0 ||
        (peer->heard_ms >= 0 && peer->heard_ms < node->heard_ms)) {
        node->heard_ms = peer->heard_ms;
        memcpy(node->seen_as, peer->state, sizeof node->seen_as);
    }
    if (node->role[0] == '\0')
        memcpy(node->role, peer->role, sizeof node->role);
    if (node->endpoint[0] == '\0')
        memcpy(node->endpoint, peer->endpoint, sizeof node->endpoint);
    node->awaited_ns = sum_of(node->awaited_ns, peer->awaited_ns);
}

static bool is_heard(const struct status_node *node)
{
    return strcmp(node->seen_as, "ready") == 0 ||
           strcmp(node->seen_as, "seen") == 0;
}

static enum status_kind kind_of(const struct status_node *node)
{
    switch (node->answer != NULL ? node->answer->status : LS_ENOENT) {
    case LS_OK:
        return STATUS_ANSWERS;
    case LS_ETIMEDOUT:
        return STATUS_SILENT;
    case LS_ENOENT:
        return is_heard(node) ? STATUS_ELSEWHERE : STATUS_GONE;
    default:
        return STATUS_REFUSED;
    }
}

/* Of waits that have not ended nobody is known to be the last; but if only one
 * is not at a barrier, and one that does not answer is at none, it is that. */
static void blame_absent(struct status_view *view)
{
    struct status_node *absent = NULL;
    size_t n_absent = 0;
    int64_t waiting_ns = 0;
    for (size_t i = 0; i < view->n; i++) {
        struct status_node *node = &view->nodes[i];
        const bool answers = node->kind == STATUS_ANSWERS;
        const int64_t ns = answers ? health_of(node)->waiting_ns : 0;
        waiting_ns = sum_of(waiting_ns, ns);
        if (ns == 0 && (answers || node->kind == STATUS_SILENT)) {
            absent = node;
            n_absent++;
        }
    }
    if (n_absent == 1)
        absent->awaited_ns = sum_of(absent->awaited_ns, waiting_ns);
}

static int by_id(const void *left, const void *right)
{
    const struct status_node *a = left, *b = right;
    return (a->id > b->id) - (a->id < b->id);
}

static void finish(struct status_view *view)
{
    qsort(view->nodes, view->n, sizeof *view->nodes, by_id);
    view->slowest = view->n;
    int64_t most = 0;
    for (size_t i = 0; i < view->n; i++)
        view->nodes[i].kind = kind_of(&view->nodes[i]);
    blame_absent(view);
    for (size_t i = 0; i < view->n; i++) {
        const struct status_node *node = &view->nodes[i];
        if (node->kind == STATUS_ANSWERS) {
            view->n_answer++;
            view->waited_ns =
                sum_of(view->waited_ns, health_of(node)->waited_ns);
        }
        if (node->awaited_ns > most) {
            most = node->awaited_ns;
            view->slowest = i;
        }
    }
}

int status_view_make(struct status_view *out, const struct status_asked *now,
                     const struct status_asked *before)
{
    struct status_view view = {.job = ""};
    size_t room = now->n + 1;
    for (size_t i = 0; i < now->n; i++)
        room += now->answers[i].health.n_peers;
    view.nodes = calloc(room, sizeof *view.nodes);
    if (view.nodes == NULL)
        return ls_error(LS_ENOMEM, "what the nodes say");
    for (size_t i = 0; i < now->n; i++) {
        struct status_node *node = find_or_add(&view, now->ids[i]);
        node->answer = &now->answers[i];
        memcpy(node->role, health_of(node)->role, sizeof node->role);
        for (size_t k = 0; before != NULL && k < before->n; k++)
            if (before->ids[k] == node->id && node->answer->status == LS_OK)
                compare(node, &before->answers[k]);
    }
    for (size_t i = 0; i < now->n; i++)
        for (size_t k = 0; k < now->answers[i].health.n_peers; k++)
            note_peer(&view, &now->answers[i].health.peers[k]);
    finish(&view);
    *out = view;
    return LS_OK;
}

void status_view_clear(struct status_view *view)
{
    free(view->nodes);
    *view = (struct status_view){.n = 0};
}

/* ---- for people ---------------------------------------------------------- */

/* A text that another process has sent: nothing in it is for the terminal. */
static void put(FILE *to, const char *text)
{
    char said[LS_ERROR_TEXT_MAX];
    (void)fputs(output_said(text, false, said, sizeof said), to);
}

static void put_column(FILE *to, const char *text, int width)
{
    char cut[64];
    (void)snprintf(cut, sizeof cut, "%-*.*s  ", width, width, text);
    put(to, cut);
}

static void put_rate(FILE *to, double value)
{
    if (isnan(value))
        (void)fprintf(to, "  %8s", "-");
    else
        (void)fprintf(to, value < 1000 ? "  %8.1f" : "  %8.0f", value);
}

static const char *word(const struct health *health)
{
    return health->state == HEALTH_STARTING ? "starting"
           : health->state == HEALTH_ENDING ? "ending"
           : health->idle                   ? "idle"
                                            : "running";
}

/* " for 12.3 s", less what cannot be told from 0. */
static void put_for(FILE *to, int64_t ns)
{
    if (ns >= 50 * LS_NS_PER_MS)
        (void)fprintf(to, " for %.1f s", (double)ns / (double)LS_NS_PER_S);
}

static void put_heard(FILE *to, const struct status_node *node)
{
    if (node->heard_ms >= 0)
        (void)fprintf(to, ", last heard by others %.1f s ago",
                      (double)node->heard_ms / 1000.0);
}

static void print_answer(const struct status_node *node, FILE *to)
{
    const struct health *health = health_of(node);
    char where[96];
    (void)snprintf(where, sizeof where, "%s %" PRId64, health->host,
                   health->pid);
    put_column(to, where, 20);
    (void)fprintf(to, "%11s", output_count(health->iterations).text);
    put_rate(to, node->iterations_per_s);
    put_rate(to, node->env_steps_per_s);
    put_rate(to, node->events_per_s);
    if (health->window_ns > 0)
        (void)fprintf(to, "  %4.0f%%  ",
                      100.0 * (double)health->waited_ns /
                          (double)health->window_ns);
    else
        (void)fprintf(to, "  %5s  ", "-");
    if (health->state != HEALTH_RUNNING)
        (void)fprintf(to, "%s%s", word(health),
                      health->at[0] != '\0' ? ", " : "");
    if (health->step[0] == '\0') {
        put(to, health->at);
        return;
    }
    put(to, health->step);
    put_for(to, health->step_ns);
}

static void print_node(const struct status_node *node, FILE *to)
{
    (void)fprintf(to, "  %4" PRIu32 "  ", node->id);
    put_column(to, node->role[0] != '\0' ? node->role : "?", 11);
    switch (node->kind) {
    case STATUS_ANSWERS:
        print_answer(node, to);
        break;
    case STATUS_SILENT:
        (void)fputs("does not answer", to);
        put_heard(to, node);
        break;
    case STATUS_REFUSED:
        put(to, node->answer->text);
        break;
    case STATUS_GONE:
        (void)fputs(strcmp(node->seen_as, "left") == 0 ? "has left" : "gone",
                    to);
        put_heard(to, node);
        break;
    case STATUS_ELSEWHERE:
        (void)fputs("not on this host: ", to);
        put(to, node->endpoint[0] != '\0' ? node->endpoint : "?");
        put_heard(to, node);
        break;
    case STATUS_N_KINDS:
        break;
    }
    (void)fputc('\n', to);
}

static void print_slowest(const struct status_view *view, FILE *to)
{
    if (view->slowest < view->n && view->waited_ns > 0) {
        const struct status_node *node = &view->nodes[view->slowest];
        (void)fprintf(to, "\n  slowest  node %" PRIu32 " (", node->id);
        put(to, node->role);
        (void)fprintf(to,
                      "): %.0f%% of all waiting at barriers was until it "
                      "entered\n",
                      100.0 * (double)node->awaited_ns /
                          (double)view->waited_ns);
    }
    for (size_t i = 0; i < view->n; i++) {
        const struct status_node *node = &view->nodes[i];
        if (node->kind == STATUS_ANSWERS && health_of(node)->slowest_ns > 0)
            (void)fprintf(to,
                          "  slow     node %" PRIu32 " had no room for what "
                          "node %" PRIu32 " emits for %.1f s in all\n",
                          health_of(node)->slowest, node->id,
                          (double)health_of(node)->slowest_ns /
                              (double)LS_NS_PER_S);
    }
}

static void print_losses(const struct status_node *node, FILE *to)
{
    const struct health *health = health_of(node);
    if (health->lost == 0 && health->dropped == 0)
        return;
    (void)fprintf(to,
                  "  lost     node %" PRIu32 ": %" PRIu64 " lost, %" PRIu64
                  " dropped\n",
                  node->id, health->lost, health->dropped);
    for (const char *at = health->losses; *at != '\0';) {
        const size_t of = strcspn(at, "\n");
        char line[sizeof health->losses];
        (void)snprintf(line, sizeof line, "%.*s", (int)of, at);
        (void)fputs("             ", to);
        put(to, line);
        (void)fputc('\n', to);
        at += of + (at[of] == '\n');
    }
}

void status_view_print(const struct status_view *view, FILE *to)
{
    int64_t running_ns = 0;
    for (size_t i = 0; i < view->n; i++)
        if (view->nodes[i].kind == STATUS_ANSWERS &&
            health_of(&view->nodes[i])->running_ns > running_ns)
            running_ns = health_of(&view->nodes[i])->running_ns;
    put(to, view->job);
    (void)fprintf(to,
                  ", in %s: %zu of %zu nodes answer, running for %.0f s\n\n",
                  view->folder, view->n_answer, view->n,
                  (double)running_ns / (double)LS_NS_PER_S);
    (void)fprintf(to, "  %4s  %-11s  %-20s  %11s  %8s  %8s  %8s  %5s  %s\n",
                  "node", "role", "host, pid", "iteration", "it/s", "env/s",
                  "events/s", "waits", "in step");
    for (size_t i = 0; i < view->n; i++)
        print_node(&view->nodes[i], to);
    print_slowest(view, to);
    for (size_t i = 0; i < view->n; i++)
        if (view->nodes[i].kind == STATUS_ANSWERS)
            print_losses(&view->nodes[i], to);
}

/* ---- for programs -------------------------------------------------------- */

static const char *const kind_names[] = {
    [STATUS_ANSWERS] = "running",     [STATUS_SILENT] = "silent",
    [STATUS_REFUSED] = "refused",     [STATUS_GONE] = "gone",
    [STATUS_ELSEWHERE] = "elsewhere",
};

static double seconds(int64_t ns)
{
    return ns >= 0 ? (double)ns / (double)LS_NS_PER_S : NAN;
}

static void write_answer(const struct status_node *node, ls_writer *out)
{
    const struct health *health = health_of(node);
    json_string(out, "host", health->host);
    json_int(out, "pid", health->pid);
    json_int(out, "iteration", health->iterations);
    json_string(out, "step", health->step);
    json_double(out, "step_s", seconds(health->step_ns));
    json_double(out, "running_s", seconds(health->running_ns));
    json_double(out, "iterations_per_s", node->iterations_per_s);
    json_double(out, "env_steps_per_s", node->env_steps_per_s);
    json_double(out, "events_per_s", node->events_per_s);
    json_double(out, "waits",
                health->window_ns > 0
                    ? (double)health->waited_ns / (double)health->window_ns
                    : NAN);
    ls_write_string(out, "lost");
    ls_write_uint(out, health->lost);
    ls_write_string(out, "dropped");
    ls_write_uint(out, health->dropped);
    json_string(out, "losses", health->losses);
}

static void write_node(const struct status_node *node, ls_writer *out)
{
    const bool answers = node->kind == STATUS_ANSWERS;
    ls_write_map_begin(out);
    json_int(out, "node", node->id);
    json_string(out, "role", node->role);
    json_string(out, "state",
                answers ? word(health_of(node)) : kind_names[node->kind]);
    json_string(out, "seen_as", node->seen_as);
    json_double(out, "heard_s",
                node->heard_ms >= 0 ? (double)node->heard_ms / 1000.0 : NAN);
    json_double(out, "awaited_s", seconds(node->awaited_ns));
    if (answers)
        write_answer(node, out);
    else
        json_string(out, "text",
                    node->kind == STATUS_REFUSED ? node->answer->text : "");
    ls_write_map_end(out);
}

int status_view_json(const struct status_view *view)
{
    ls_writer *out = NULL;
    int status = ls_writer_create(&out);
    if (status != LS_OK)
        return status;
    ls_write_map_begin(out);
    json_string(out, "job", view->job);
    json_string(out, "folder", view->folder);
    json_int(out, "n_answer", (int64_t)view->n_answer);
    ls_write_string(out, "slowest");
    if (view->slowest < view->n)
        ls_write_uint(out, view->nodes[view->slowest].id);
    else
        ls_write_nil(out);
    json_double(out, "waited_s", seconds(view->waited_ns));
    ls_write_string(out, "nodes");
    ls_write_array(out, (uint32_t)view->n);
    for (size_t i = 0; i < view->n; i++)
        write_node(&view->nodes[i], out);
    ls_write_map_end(out);
    status = json_print_line(out);
    ls_writer_destroy(&out);
    return status;
}
