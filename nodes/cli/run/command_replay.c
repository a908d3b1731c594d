/* `lockstep replay`, and the recordings of `lockstep run --record`. */
#include "command_replay.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/file.h"

#include "command.h"
#include "command_run.h"
#include "json.h"
#include "output.h"
#include "version.h"

/* As much as a configuration may be. */
#define TEXT_MOST ((size_t)1 << 20)

/* ---- recording --------------------------------------------------------- */

static int check(const struct options *options, const struct plan *plan)
{
    if (plan_is_service(plan))
        return ls_error(LS_ECONFIG,
                        "%s: --record is for jobs in lock step and of "
                        "members: a coordinator decides by the clock and by "
                        "who answers first, which is not recorded",
                        options->config);
    if (plan_can_lose_nodes(plan))
        return ls_error(LS_ECONFIG,
                        "%s: --record is for runs that end with the first node "
                        "that is lost: a replay loses none. Set on_loss: fail",
                        options->config);
    return LS_OK;
}

static int copy_nodes(struct tape_about *out, const struct plan *plan)
{
    out->nodes = calloc(plan->n_nodes, sizeof *out->nodes);
    if (out->nodes == NULL)
        return ls_error(LS_ENOMEM, "the nodes of a recording");
    out->n_nodes = plan->n_nodes;
    for (size_t i = 0; i < plan->n_nodes; i++) {
        struct tape_node *node = &out->nodes[i];
        node->id = plan->nodes[i].id;
        (void)snprintf(node->role, sizeof node->role, "%s",
                       plan_role_names[plan->nodes[i].role]);
    }
    return LS_OK;
}

static int copy_options(struct tape_about *out, const struct options *options)
{
    void *text = NULL;
    size_t size;
    int status = ls_text_set(&out->config, options->config);
    if (status == LS_OK && options->seed != NULL)
        status = ls_text_set(&out->seed, options->seed);
    if (status == LS_OK)
        status = ls_file_read(options->config, TEXT_MOST, &text, &size);
    if (status == LS_OK) {
        out->text = malloc(size + 1);
        if (out->text != NULL) {
            memcpy(out->text, text, size);
            out->text[size] = '\0';
        }
        free(text);
        out->sets = calloc(options->n_sets + 1, sizeof *out->sets);
        if (out->text == NULL || out->sets == NULL)
            status = ls_error(LS_ENOMEM, "the options of a recording");
    }
    for (size_t i = 0; i < options->n_sets && status == LS_OK; i++) {
        struct tape_set *set = &out->sets[out->n_sets++];
        status = ls_text_set(&set->path, options->sets[i].path);
        if (status == LS_OK)
            status = ls_text_set(&set->value, options->sets[i].value);
    }
    return status;
}

static void drop(struct recording *recording)
{
    tape_about_clear(&recording->about);
    (void)ls_file_close(&recording->claim);
}

/* It is not recorded after all: nothing is left of the claim. made: the file
 * that was not there before it; NULL: it was. Returns status, with its text. */
static int give_up(struct recording *recording, const char *made, int status)
{
    struct ls_failure why;
    uint64_t size = 0;
    ls_failure_keep(&why, status);
    if (made != NULL && recording->claim != NULL &&
        ls_file_size(recording->claim, &size) == LS_OK && size == 0)
        (void)ls_file_remove(made);
    drop(recording);
    return ls_failure_return(&why);
}

int record_begin(struct recording *out, const struct options *options,
                 const struct setup *setup)
{
    struct recording recording = {.claim = NULL};
    struct tape_about *about = &recording.about;
    const char *const made =
        ls_file_exists(options->record) ? NULL : options->record;
    int status = check(options, &setup->plan);
    (void)snprintf(about->lockstep, sizeof about->lockstep, "%s",
                   version_text());
    if (setup->plugin != NULL)
        about->plugin = tape_hash_file(plugin_path(setup->plugin));
    if (status == LS_OK &&
        (status = tape_claim(&recording.claim, options->record)) != LS_OK)
        status = ls_error_at(status, "--record");
    if (status == LS_OK)
        status = copy_nodes(about, &setup->plan);
    if (status == LS_OK)
        status = copy_options(about, options);
    if (status == LS_OK && (status = tape_begin(options->record, about)) != 0)
        status = ls_error_at(status, "--record");
    if (status != LS_OK)
        return give_up(&recording, made, status);
    *out = recording;
    return LS_OK;
}

int record_end(struct recording *recording, const struct options *options,
               bool done, int exit_code)
{
    struct tape_about *about = &recording->about;
    about->done = done;
    const int status = tape_join(options->record, about);
    if (status != LS_OK) {
        output_print(stderr,
                     "lockstep: the recording is not written, and what the "
                     "nodes wrote of it is in %s.node-*: %s: once that is "
                     "mended, lockstep replay %s puts it together\n",
                     options->record, ls_error_text(), options->record);
        exit_code = exit_code != 0 ? exit_code : 1;
    }
    uint64_t bytes = 0;
    for (size_t i = 0; i < about->n_nodes && status == LS_OK; i++) {
        const struct tape_node *node = &about->nodes[i];
        bytes += node->bytes;
        if (!node->whole)
            (void)fprintf(stderr,
                          "lockstep: the recording of node %" PRIu32 " (%s) "
                          "ends early: it was killed, or could not write\n",
                          node->id, node->role);
        if (!node->whole && done)
            exit_code = exit_code != 0 ? exit_code : 1;
    }
    if (status == LS_OK && !options->json)
        printf("recorded    %s, %" PRIu64 " KiB: lockstep replay %s\n",
               options->record, bytes / 1024, options->record);
    drop(recording);
    return exit_code;
}

/* ---- replay ------------------------------------------------------------ */

void replay_compare(const struct tape *tape, const struct setup *setup)
{
    const struct tape_about *about = tape_about(tape);
    if (strcmp(about->lockstep, version_text()) != 0)
        (void)fprintf(stderr,
                      "lockstep: it was recorded by lockstep %s, and this is "
                      "%s\n",
                      about->lockstep, version_text());
    if (setup->plugin != NULL &&
        tape_hash_file(plugin_path(setup->plugin)) != about->plugin)
        (void)fprintf(stderr,
                      "lockstep: %s is not the file of the plugin that was "
                      "recorded\n",
                      plugin_path(setup->plugin));
}

/* The recorded options, and after them those that were given now. */
static int put_options(struct options *to, const struct options *given,
                       const struct tape_about *about)
{
    to->config = about->config;
    to->text = about->text;
    if (given->seed == NULL)
        to->seed = about->seed;
    to->n_sets = 0;
    if (about->n_sets + given->n_sets > OPTIONS_REPEATS_MAX)
        return ls_error(LS_EINVAL,
                        "--set: at most %d of them, with those of "
                        "the recording",
                        OPTIONS_REPEATS_MAX);
    for (size_t i = 0; i < about->n_sets; i++) {
        to->sets[to->n_sets].path = about->sets[i].path;
        to->sets[to->n_sets++].value = about->sets[i].value;
    }
    for (size_t i = 0; i < given->n_sets; i++)
        to->sets[to->n_sets++] = given->sets[i];
    return LS_OK;
}

static int show_json(const struct tape_figures *figures, const char *card)
{
    ls_writer *writer = NULL;
    int status = ls_writer_create(&writer);
    if (status != LS_OK)
        return status;
    ls_write_map(writer, 6);
    json_string(writer, "event", "replay");
    ls_write_string(writer, "difference");
    ls_write_string(writer, card);
    json_int(writer, "compared", (int64_t)figures->compared);
    json_int(writer, "replaced", (int64_t)figures->replaced);
    json_int(writer, "ordered", (int64_t)figures->ordered);
    json_int(writer, "beyond", (int64_t)figures->beyond);
    status = json_print_line(writer);
    ls_writer_destroy(&writer);
    return status;
}

static int show(const struct tape_figures *figures, const char *card, bool json)
{
    if (card != NULL && figures->late) /* else the run has failed with it */
        (void)fprintf(stderr, "lockstep: %s\n", card);
    if (json)
        return show_json(figures, card);
    printf("%s: %" PRIu64 " events emitted as recorded, %" PRIu64
           " handled in the recorded order\n",
           card != NULL ? "replay differs" : "replay is the same",
           figures->compared, figures->ordered);
    if (figures->replaced > 0)
        printf("  %" PRIu64 " differed, and what was recorded took their "
               "place\n",
               figures->replaced);
    if (figures->beyond > 0)
        printf("  %" PRIu64 " came after the end of what was recorded of their "
               "node%s\n",
               figures->beyond, figures->over ? ", as of all others" : "");
    return LS_OK;
}

static int replay(struct options *options, struct tape *tape)
{
    struct run_end end;
    struct tape_figures figures;
    options->as = AS_SIM;
    options->fresh = true;
    options->aside = true;
    options->tape = tape;
    int exit_code = command_run_once(options, &end);
    if (end.folder[0] == '\0')
        return exit_code; /* it did not begin */
    const char *card = tape_end(tape, end.done, &figures);
    if (card != NULL)
        exit_code = 1;
    else if (figures.over || (end.done && tape_about(tape)->done))
        exit_code = 0; /* solved or not: it is the same */
    const int status = show(&figures, card, options->json);
    return status != LS_OK ? command_failed(status) : exit_code;
}

/* One whose run could not do so is put together first. */
static int open_tape(struct tape **out, const char *path)
{
    const int status = tape_join_left(path);
    if (status == LS_OK)
        (void)fprintf(
            stderr,
            "lockstep: %s: its run had not put the recording together "
            "(it was killed, or had no room): that is done now\n",
            path);
    return status == LS_OK || status == LS_ENOENT || status == LS_EAGAIN
               ? tape_open(out, path)
               : status;
}

int command_replay(const struct options *given)
{
    struct tape *tape = NULL;
    struct options options = *given;
    int exit_code = 0;
    int status = open_tape(&tape, given->config);
    if (status == LS_OK)
        status = put_options(&options, given, tape_about(tape));
    if (status == LS_OK && given->has_id)
        status = tape_only(tape, given->id);
    exit_code =
        status == LS_OK ? replay(&options, tape) : command_failed(status);
    tape_close(&tape);
    return exit_code;
}
