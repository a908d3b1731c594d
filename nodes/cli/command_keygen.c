/* `lockstep keygen`. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lockstep/security.h"

#include "command.h"
#include "json.h"
#include "plan_lease.h"

#define PATH_BYTES 4096

/* A certificate that is to be made. */
struct wanted {
    bool enrolment;
    uint32_t id;
    bool is_planned; /* of this role and PLAN_LABEL; else of any */
    char role[PLAN_ROLE_MAX];
};

struct list {
    struct wanted *items; /* own */
    size_t n;
};

static struct wanted of_plan(const struct plan *plan, size_t index)
{
    struct wanted wanted = {.id = plan->nodes[index].id, .is_planned = true};
    (void)plan_role_words(plan, index, wanted.role);
    return wanted;
}

/* Those of a plan that bring an id; the others ask for one, with the enrolment
 * key. */
static void choose_all(struct list *out, const struct plan *plan)
{
    for (size_t i = 0; i < plan->n_nodes; i++)
        if (!plan->nodes[i].leased)
            out->items[out->n++] = of_plan(plan, i);
}

/* plan: NULL: there is none. */
static int choose(struct list *out, const struct options *options,
                  const struct plan *plan)
{
    const bool all = plan != NULL && options->n_ids == 0;
    const size_t n = all ? plan->n_nodes : options->n_ids;
    out->n = 0;
    out->items = calloc(n + 1, sizeof *out->items);
    if (out->items == NULL)
        return ls_error(LS_ENOMEM, "listing the nodes");
    if (all)
        choose_all(out, plan);
    for (size_t i = 0; i < options->n_ids; i++) {
        size_t index = 0;
        const int status =
            plan != NULL ? plan_find(plan, options->ids[i], &index) : LS_OK;
        if (status != LS_OK)
            return status;
        out->items[out->n++] = plan != NULL
                                   ? of_plan(plan, index)
                                   : (struct wanted){.id = options->ids[i]};
    }
    if (options->enrolment || (all && plan_has_leases(plan)))
        out->items[out->n++] = (struct wanted){.enrolment = true};
    return LS_OK;
}

/* ---- files -------------------------------------------------------------- */

struct file {
    char path[PATH_BYTES];
};

/* Without a slash at its end. */
static int length_of(const char *folder)
{
    const size_t size = strlen(folder);
    return (int)(size > 1 && folder[size - 1] == '/' ? size - 1 : size);
}

static struct file file_of(const char *folder, const struct wanted *wanted,
                           const char *suffix)
{
    struct file file;
    char name[32] = "enrolment";
    if (!wanted->enrolment)
        (void)snprintf(name, sizeof name, "node-%" PRIu32, wanted->id);
    (void)snprintf(file.path, sizeof file.path, "%.*s/%s.cert%s",
                   length_of(folder), folder, name, suffix);
    return file;
}

/* All or none: what could be found missing half-way is looked for before. */
static int check_absent(const char *folder, const struct list *list)
{
    static const char *const suffixes[] = {"", "_secret"};
    for (size_t i = 0; i < list->n; i++) {
        for (size_t j = 0; j < 2; j++) {
            const struct file file =
                file_of(folder, &list->items[i], suffixes[j]);
            if (access(file.path, F_OK) == 0)
                return ls_error(LS_EEXIST,
                                "%s is there already, and is not overwritten; "
                                "nothing was written",
                                file.path);
        }
    }
    return LS_OK;
}

static int make(const char *folder, const struct wanted *wanted)
{
    if (wanted->enrolment)
        return ls_keys_create_enrolment(folder);
    return ls_keys_create(folder, wanted->id,
                          wanted->is_planned ? wanted->role : NULL,
                          wanted->is_planned ? PLAN_LABEL : NULL);
}

static int make_all(const char *folder, const struct list *list)
{
    int status = check_absent(folder, list);
    for (size_t i = 0; i < list->n && status == LS_OK; i++)
        status = make(folder, &list->items[i]);
    return status;
}

/* ---- what is said ------------------------------------------------------- */

static void print_text(const char *folder, const struct list *list)
{
    const struct wanted *first = &list->items[0];
    for (size_t i = 0; i < list->n; i++) {
        const struct wanted *wanted = &list->items[i];
        printf("made %s and %s", file_of(folder, wanted, "").path,
               file_of(folder, wanted, "_secret").path);
        if (wanted->is_planned)
            printf("  %s [%s]", wanted->role, PLAN_LABEL);
        printf("\n");
    }
    printf("\nEvery host needs all certificates, but the secrets of its own "
           "nodes only:\n  scp -p %.*s/*.cert %s HOST:FOLDER/\n",
           length_of(folder), folder, file_of(folder, first, "_secret").path);
}

static void write_wanted(ls_writer *out, const char *folder,
                         const struct wanted *wanted)
{
    const bool planned = wanted->is_planned;
    ls_write_map_begin(out);
    if (wanted->enrolment)
        json_bool(out, "enrolment", true);
    else
        json_int(out, "id", wanted->id);
    if (planned) {
        json_string(out, "role", wanted->role);
        json_string(out, "labels", PLAN_LABEL);
    }
    json_string(out, "certificate", file_of(folder, wanted, "").path);
    json_string(out, "secret", file_of(folder, wanted, "_secret").path);
    ls_write_map_end(out);
}

static int print_json(const char *folder, const struct list *list)
{
    ls_writer *out = NULL;
    int status = ls_writer_create(&out);
    if (status != LS_OK)
        return status;
    ls_write_map(out, 2);
    json_string(out, "event", "keygen");
    ls_write_string(out, "made");
    ls_write_array(out, (uint32_t)list->n);
    for (size_t i = 0; i < list->n; i++)
        write_wanted(out, folder, &list->items[i]);
    status = json_print_line(out);
    ls_writer_destroy(&out);
    return status;
}

/* ---- the command -------------------------------------------------------- */

static int keygen(const struct options *options, const struct plan *plan)
{
    struct list list;
    int status = choose(&list, options, plan);
    if (status == LS_OK)
        status = make_all(options->folder, &list);
    if (status == LS_OK && options->json)
        status = print_json(options->folder, &list);
    else if (status == LS_OK)
        print_text(options->folder, &list);
    free(list.items);
    return status == LS_OK ? 0 : command_failed(status);
}

int command_keygen(const struct options *options)
{
    if (options->config == NULL)
        return keygen(options, NULL);
    struct setup setup;
    const int status = command_setup(&setup, options);
    if (status != LS_OK)
        return ls_status_exit_code(status);
    const int exit_code = keygen(options, &setup.plan);
    setup_fini(&setup);
    return exit_code;
}
