#include "run_file.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/file.h"

#include "report.h"

#define RUN_FILE_MAX (1u << 20)

static int make_path(char path[REPORT_PATH_MAX], const struct plan *plan)
{
    return ls_file_path(path, REPORT_PATH_MAX, plan->folder, RUN_FILE_NAME);
}

/* A text in double quotes, as YAML has it. */
static void print_text(const char *text, FILE *to)
{
    (void)fputc('"', to);
    for (const char *at = text; *at != '\0'; at++) {
        const unsigned char byte = (unsigned char)*at;
        if (byte < 0x20 || byte == 0x7f)
            (void)fprintf(to, "\\x%02x", byte);
        else if (byte == '"' || byte == '\\')
            (void)fprintf(to, "\\%c", byte);
        else
            (void)fputc(byte, to);
    }
    (void)fputc('"', to);
}

static void print(const struct run_file *file, FILE *to)
{
    (void)fprintf(to,
                  "# A run in progress: for lockstep call and status.\n"
                  "pid: %" PRId64 "\n"
                  "hash: \"%" PRIx64 "\"\n"
                  "place: \"%" PRIx64 "\"\n"
                  "nodes:\n",
                  file->pid, file->hash, file->place);
    for (size_t i = 0; i < file->n_nodes; i++) {
        (void)fprintf(to,
                      "  - {id: %" PRIu32 ", endpoint: ", file->nodes[i].id);
        print_text(file->nodes[i].endpoint, to);
        (void)fputs("}\n", to);
    }
}

static int replace(const char *path, const char *text, size_t size)
{
    char temporary[LS_PATH_MAX];
    (void)snprintf(temporary, sizeof temporary, "%s.part", path);
    const struct ls_file_part part = {text, size};
    return ls_file_replace(path, temporary, &part, 1, false);
}

/* text: own: free() it. */
static int make_text(const struct run_file *file, const char *path, char **text,
                     size_t *size)
{
    *text = NULL;
    FILE *to = open_memstream(text, size);
    if (to == NULL)
        return ls_error(LS_ENOMEM, "writing %s", path);
    print(file, to);
    return fclose(to) == 0 ? LS_OK : ls_error(LS_ENOMEM, "writing %s", path);
}

int run_file_write(const struct plan *plan, const struct run_file *file)
{
    char path[REPORT_PATH_MAX];
    char *text = NULL;
    size_t size = 0;
    int status = make_path(path, plan);
    if (status == LS_OK)
        status = make_text(file, path, &text, &size);
    if (status == LS_OK)
        status = replace(path, text, size);
    free(text);
    return status;
}

static uint64_t read_hash(ls_config_section *root, const char *key)
{
    const char *text = ls_config_string(root, key, "0");
    const size_t length = strspn(text, "0123456789abcdef");
    if (length == 0 || length > 16 || text[length] != '\0')
        ls_config_problem(root, key, "\"%s\" is not a hash", text);
    return strtoull(text, NULL, 16);
}

static void read_node(struct run_file_node *node, ls_config_section *item)
{
    const char *endpoint = ls_config_string(item, "endpoint", "");
    const char *fault =
        endpoint[0] != '\0' ? plan_endpoint_fault(endpoint, false) : NULL;
    (void)ls_config_require(item, "id");
    (void)ls_config_require(item, "endpoint");
    if (fault != NULL)
        ls_config_problem(item, "endpoint", "\"%s\": %s", endpoint, fault);
    node->id = (uint32_t)ls_config_int(item, "id", 0, 0, UINT32_MAX);
    (void)snprintf(node->endpoint, sizeof node->endpoint, "%s", endpoint);
}

/* All of it must be there: a run that is killed may leave a file that is empty,
 * and pid 0 would be the group of whoever asks. */
static void read_config(struct run_file *out, ls_config_section *root)
{
    const size_t n = ls_config_n_sections(root, "nodes");
    (void)ls_config_require(root, "pid");
    (void)ls_config_require(root, "hash");
    (void)ls_config_require(root, "nodes");
    out->pid = ls_config_int(root, "pid", 0, 1, INT32_MAX);
    out->hash = read_hash(root, "hash");
    out->place = read_hash(root, "place");
    if (n > PLAN_NODES_MAX)
        ls_config_problem(root, "nodes", "%zu nodes; at most %d", n,
                          PLAN_NODES_MAX);
    for (size_t i = 0; i < n && i < PLAN_NODES_MAX; i++)
        read_node(&out->nodes[out->n_nodes++],
                  ls_config_item(root, "nodes", i));
}

/* Not as a configuration is read, which may come through a pipe: whoever asks
 * how a run is must not wait for somebody who never writes. */
static int load(ls_config **out, const char *path)
{
    void *data = NULL;
    size_t size = 0;
    *out = NULL;
    int status = ls_file_read(path, RUN_FILE_MAX, &data, &size);
    char *text = status == LS_OK ? malloc(size + 1) : NULL;
    if (status == LS_OK && text == NULL)
        status = ls_error(LS_ENOMEM, "reading %s", path);
    if (status == LS_OK) {
        memcpy(text, data, size);
        text[size] = '\0';
        status = ls_config_parse(out, path, text);
    }
    free(text);
    free(data);
    return status;
}

int run_file_read(struct run_file *out, const struct plan *plan)
{
    char path[REPORT_PATH_MAX];
    ls_config *config = NULL;
    int status = make_path(path, plan);
    if (status == LS_OK)
        status = load(&config, path);
    if (status != LS_OK)
        return status;
    struct run_file *file = calloc(1, sizeof *file);
    if (file != NULL) {
        read_config(file, ls_config_root(config));
        status = ls_config_finish(config);
    } else {
        status = ls_error(LS_ENOMEM, "reading %s", path);
    }
    if (status == LS_OK && kill((pid_t)file->pid, 0) < 0 && errno == ESRCH)
        status = ls_error(LS_ENOENT,
                          "the run that wrote %s, pid %" PRId64 ", is gone",
                          path, file->pid);
    if (status == LS_OK)
        *out = *file;
    free(file);
    ls_config_destroy(&config);
    return status;
}

static bool is_there(const char *path, const struct run_file *file)
{
    char *text = NULL;
    void *found = NULL;
    size_t size = 0, n_found = 0;
    const bool same = make_text(file, path, &text, &size) == LS_OK &&
                      ls_file_read(path, size, &found, &n_found) == LS_OK &&
                      n_found == size && memcmp(found, text, size) == 0;
    free(text);
    free(found);
    return same;
}

void run_file_remove(const struct plan *plan, const struct run_file *file)
{
    char path[REPORT_PATH_MAX];
    if (make_path(path, plan) != LS_OK)
        return;
    if (is_there(path, file))
        (void)ls_file_remove(path);
}
