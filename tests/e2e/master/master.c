/* A coordinator of a service job that does what it is told, line by line.
 *
 *   master FOLDER ID
 *
 * It is node 0 of the job "job" whose sockets are in FOLDER, and waits for node
 * ID. A line of its input is one of
 *
 *   connect           become the master of that node
 *   ask NAME {json}   a call to it, until it has ended
 *   open NAME {json}  a call to it that is left open
 *   wait              until that one has ended
 *
 * and each is answered by a line: "connected", "opened", or "NAME STATE CODE
 * TEXT", where TEXT is the answer as JSON, or what the end says. It ends with
 * its input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/codec.h>
#include <lockstep/config.h>
#include <lockstep/lockstep.h>

#define WAIT_MS 60000
#define CHANNEL 1

struct master {
    ls_node *node;
    ls_rpc *calls;
    uint32_t to;
    ls_call *open;
    char name[64]; /* of the open call */
};

static int failed(const char *what)
{
    fprintf(stderr, "master: %s: %s\n", what, ls_error_text());
    return 1;
}

static int begin(struct master *master, const char *name, const char *json,
                 ls_call **out)
{
    ls_config *config = NULL;
    ls_writer *writer = NULL;
    struct ls_call_options options = {.to = master->to,
                                      .channel = CHANNEL,
                                      .name = name,
                                      .timeout_ms = WAIT_MS};
    int status = ls_config_parse(&config, "line", json);
    if (status == LS_OK)
        status = ls_writer_create(&writer);
    if (status == LS_OK) {
        ls_config_write(config, writer);
        status = ls_writer_bytes(writer, &options.data, &options.size);
    }
    if (status == LS_OK)
        status = ls_call_start(out, master->calls, &options);
    ls_writer_destroy(&writer);
    ls_config_destroy(&config);
    return status;
}

static int end(const char *name, ls_call **call)
{
    char text[4096];
    ls_document *answer = NULL;
    const int status = ls_call_wait(*call, LS_WAIT_DEFAULT);
    if (status != LS_OK)
        return status;
    const struct ls_call_result *result = ls_call_result(*call);
    (void)snprintf(text, sizeof text, "%s", result->text);
    if (result->state == LS_CALL_COMPLETED &&
        ls_document_read(&answer, result->data, result->size, NULL) == LS_OK)
        (void)ls_value_print(ls_document_root(answer), text, sizeof text);
    printf("%s %s %d %s\n", name, ls_call_state_name(result->state),
           result->code, text);
    ls_document_destroy(&answer);
    ls_call_destroy(call);
    return LS_OK;
}

static int obey(struct master *master, char *line)
{
    ls_call *call = NULL;
    line[strcspn(line, "\n")] = '\0';
    char *name = strchr(line, ' ');
    char *json = name != NULL ? strchr(name + 1, ' ') : NULL;
    int status = LS_OK;
    if (strcmp(line, "connect") == 0) {
        status = ls_rpc_connect(master->calls, master->to, CHANNEL, WAIT_MS);
        puts("connected");
    } else if (strcmp(line, "wait") == 0 && master->open != NULL) {
        status = end(master->name, &master->open);
    } else if (name != NULL && json != NULL) {
        *name++ = *json++ = '\0';
        status = begin(master, name, json, &call);
    } else {
        return ls_error(LS_EINVAL, "what is \"%s\"?", line);
    }
    if (call != NULL && strcmp(line, "open") == 0) {
        (void)snprintf(master->name, sizeof master->name, "%s", name);
        master->open = call;
        puts("opened");
    } else if (call != NULL) {
        status = end(name, &call);
    }
    return status;
}

static int reign(struct master *master)
{
    static char line[8192];
    if (ls_rpc_open(&master->calls, master->node, NULL) != LS_OK ||
        ls_node_start(master->node) != LS_OK)
        return failed("start");
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (obey(master, line) != LS_OK)
            return failed(line);
        fflush(stdout);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct ls_node_options options;
    char bind[LS_ENDPOINT_MAX], other[LS_ENDPOINT_MAX];
    const char *const attach = other;
    struct master master = {.open = NULL};
    if (argc != 3) {
        fputs("usage: master FOLDER ID\n", stderr);
        return 2;
    }
    master.to = (uint32_t)strtoul(argv[2], NULL, 10);
    (void)snprintf(bind, sizeof bind, "ipc://%s/job-0.ipc", argv[1]);
    (void)snprintf(other, sizeof other, "ipc://%s/job-%s.ipc", argv[1],
                   argv[2]);
    ls_node_options_init(&options);
    options.job = "job";
    options.id = 0;
    options.role = "coordinator";
    options.bind = bind;
    options.attach = &attach;
    options.n_attach = 1;
    options.world_size = 2;
    options.members = (const uint32_t[]){0, master.to};
    options.world_max = 64;
    options.start_timeout_ms = WAIT_MS;
    if (ls_node_create(&master.node, &options) != LS_OK)
        return failed("create");
    const int code = reign(&master);
    ls_call_destroy(&master.open);
    ls_rpc_close(&master.calls);
    ls_node_stop(master.node, LS_OK);
    ls_node_destroy(&master.node);
    return code;
}
