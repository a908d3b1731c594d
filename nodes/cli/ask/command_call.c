/* `lockstep call`. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "command.h"
#include "json.h"
#include "output.h"

/* What is asked, and of whom. */
struct question {
    size_t host;       /* index in the plan */
    ls_writer *writer; /* own; the data */
    const void *data;
    size_t size;
};

static int find_role(const struct plan *plan, const char *text, size_t *index)
{
    size_t n = 0;
    const char *nearest = ls_nearest(text, plan_role_names, PLAN_N_ROLES);
    for (size_t i = plan->n_nodes; i-- > 0;) {
        if (strcmp(plan_role_names[plan->nodes[i].role], text) != 0)
            continue;
        *index = i;
        n++;
    }
    if (n == 1)
        return LS_OK;
    if (n > 1)
        return ls_error(LS_EINVAL,
                        "%zu nodes are a %s: say which by its id, as "
                        "\"lockstep check %s\" lists them",
                        n, text, plan->path);
    return ls_error(
        LS_EINVAL,
        "%s has no node \"%s\"%s%s%s: say an id, or a role that "
        "one node has",
        plan->path, text, nearest != NULL ? "; did you mean \"" : "",
        nearest != NULL ? nearest : "", nearest != NULL ? "\"" : "");
}

static int find_host(const struct plan *plan, const char *text, size_t *index)
{
    char *end;
    const unsigned long long id = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || id > UINT32_MAX)
        return find_role(plan, text, index);
    return plan_find(plan, (uint32_t)id, index);
}

static int make_question(struct question *out, const struct options *options,
                         const struct plan *plan)
{
    int status = find_host(plan, options->node, &out->host);
    if (status == LS_OK)
        status = ls_writer_create(&out->writer);
    if (status == LS_OK)
        status = json_read(options->argument != NULL ? options->argument : "{}",
                           out->writer);
    if (status == LS_OK)
        status = ls_writer_bytes(out->writer, &out->data, &out->size);
    if (status == LS_OK && out->size > LS_CALL_DATA_MAX)
        status = ls_error(LS_EINVAL,
                          "the argument has %zu bytes; a call takes at most %d",
                          out->size, LS_CALL_DATA_MAX);
    return status;
}

/* The answer's bytes need not be a value. */
static const ls_value *read_answer(const struct ls_call_result *result,
                                   ls_document **out)
{
    *out = NULL;
    if (result->state != LS_CALL_COMPLETED ||
        ls_document_read(out, result->data, result->size, NULL) != LS_OK)
        return NULL;
    return ls_document_root(*out);
}

/* The answer as it prints, or how much of it there is that is not a value. own.
 */
static char *answer_text(const struct ls_call_result *result,
                         const ls_value *answer)
{
    const size_t size =
        answer != NULL ? ls_value_print(answer, NULL, 0) + 1 : 64;
    char *text = malloc(size);
    if (text != NULL && answer != NULL)
        (void)ls_value_print(answer, text, size);
    else if (text != NULL)
        (void)snprintf(text, size, "{\"binary\":%zu}", result->size);
    return text;
}

static int print_message(const struct ls_call_result *result)
{
    ls_writer *out = NULL;
    int status = ls_writer_create(&out);
    if (status != LS_OK)
        return status;
    ls_write_map(out, 3);
    json_string(out, "state", ls_call_state_name(result->state));
    json_int(out, "code", result->code);
    json_string(out, "message", result->text);
    status = json_print_line(out);
    ls_writer_destroy(&out);
    return status;
}

static int print_json(const struct ls_call_result *result,
                      const ls_value *answer)
{
    if (result->state != LS_CALL_COMPLETED)
        return print_message(result);
    char *text = answer_text(result, answer);
    if (text == NULL)
        return ls_error(LS_ENOMEM, "printing the answer");
    printf("{\"state\":\"%s\",\"code\":0,\"data\":%s}\n",
           ls_call_state_name(result->state), text);
    free(text);
    return LS_OK;
}

/* What another node has sent: nothing in it is for the terminal. */
static void print_part(const char *key, const ls_value *value)
{
    char text[4096];
    (void)ls_value_print(value, text, sizeof text);
    if (key != NULL)
        output_print(stdout, "  %-20s  %s\n", key, text);
    else
        output_print(stdout, "  %s\n", text);
}

static void print_text(const struct ls_call_result *result,
                       const ls_value *answer)
{
    printf("%s\n", ls_call_state_name(result->state));
    if (result->state != LS_CALL_COMPLETED)
        return;
    if (answer == NULL)
        printf("  %zu bytes that are not a value\n", result->size);
    else if (ls_value_type(answer) != LS_VALUE_MAP)
        print_part(NULL, answer);
    for (size_t i = 0;
         i < ls_value_size(answer) && ls_value_type(answer) == LS_VALUE_MAP;
         i++)
        print_part(ls_value_key(answer, i), ls_value_at(answer, i));
}

static int exit_code_of(const struct ls_call_result *result)
{
    switch (result->state) {
    case LS_CALL_COMPLETED:
        return 0;
    case LS_CALL_LOST:
        return ls_status_exit_code(LS_ELOST);
    case LS_CALL_TIMEOUT:
        return ls_status_exit_code(LS_ETIMEDOUT);
    default:
        return 1;
    }
}

/* What a program that reads stdout does not need. */
static void explain(const struct ls_call_result *result,
                    const struct plan_node *node, const char *name)
{
    output_print(stderr, "lockstep: node %" PRIu32 " (%s): %s: %s\n", node->id,
                 plan_role_names[node->role], name, result->text);
}

static int show(const struct ls_call_result *result, bool json)
{
    ls_document *document;
    const ls_value *answer = read_answer(result, &document);
    int status = LS_OK;
    if (json)
        status = print_json(result, answer);
    else
        print_text(result, answer);
    ls_document_destroy(&document);
    if (status != LS_OK)
        return command_failed(status);
    return exit_code_of(result);
}

static int64_t ms_left(int64_t deadline)
{
    const int64_t left = deadline - ls_now(ls_runtime_threads());
    return left > LS_NS_PER_MS ? left / LS_NS_PER_MS : 1;
}

static int ask(struct client *client, const struct plan *plan,
               const struct options *options, const struct question *question,
               int64_t deadline)
{
    ls_call *call = NULL;
    int status =
        ls_call_start(&call, client->calls,
                      &(struct ls_call_options){
                          .to = plan->nodes[question->host].id,
                          .channel = options->channel != 0 ? options->channel
                                                           : plan_channel(plan),
                          .name = options->name,
                          .data = question->data,
                          .size = question->size,
                          .timeout_ms = (int)ms_left(deadline)});
    if (status == LS_OK)
        status = ls_call_wait(call, LS_WAIT_DEFAULT);
    int exit_code = 0;
    if (status == LS_OK) {
        const struct ls_call_result *result = ls_call_result(call);
        exit_code = show(result, options->json);
        if (result->state != LS_CALL_COMPLETED)
            explain(result, &plan->nodes[question->host], options->name);
    } else {
        exit_code = command_failed(status);
    }
    ls_call_destroy(&call);
    return exit_code;
}

static int call(const struct options *options, const struct plan *plan,
                const struct question *question)
{
    struct client client;
    const int64_t deadline =
        ls_deadline(ls_runtime_threads(), options->wait_ms);
    const int status = client_join(
        &client, &(struct client_options){.plan = plan,
                                          .host = question->host,
                                          .id = options->id,
                                          .has_id = options->has_id,
                                          .bind = options->bind,
                                          .advertise = options->advertise,
                                          .attach = options->attach,
                                          .n_attach = options->n_attach,
                                          .deadline = deadline});
    if (status != LS_OK)
        return command_failed(status);
    const int exit_code = ask(&client, plan, options, question, deadline);
    client_leave(&client);
    return exit_code;
}

int command_call(const struct options *options)
{
    struct setup setup;
    struct question question = {.host = 0};
    int status = command_setup(&setup, options);
    if (status != LS_OK)
        return ls_status_exit_code(status);
    status = make_question(&question, options, &setup.plan);
    const int exit_code = status == LS_OK
                              ? call(options, &setup.plan, &question)
                              : command_failed(status);
    ls_writer_destroy(&question.writer);
    setup_fini(&setup);
    return exit_code;
}
