#include "compose_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void compose_name(const struct compose_file *file, size_t index,
                  char out[COMPOSE_NAME_MAX + 1])
{
    (void)snprintf(out, COMPOSE_NAME_MAX + 1, "%.40s-node-%u", file->project,
                   (unsigned)file->plan->nodes[index].id);
}

/* As a text of YAML, in which compose replaces nothing. */
static void put_text(FILE *to, const char *text)
{
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            (void)fprintf(to, "\\%c", c);
        else if (c < ' ')
            (void)fprintf(to, "\\x%02x", c);
        else if (c == '$')
            (void)fputs("$$", to);
        else
            (void)fputc(c, to);
    }
}

static void put_mount(FILE *to, const char *from, const char *at, bool writable)
{
    (void)fputs("      - {type: bind, source: \"", to);
    put_text(to, from);
    (void)fputs("\", target: \"", to);
    put_text(to, at);
    (void)fprintf(to, "\"%s}\n", writable ? "" : ", read_only: true");
}

static void put_mounts(FILE *to, const struct compose_file *file, size_t index)
{
    char from[LS_ENDPOINT_MAX + 4096], at[64];
    const char *slash = strrchr(file->config, '/');
    (void)snprintf(from, sizeof from, "%.*s", (int)(slash - file->config),
                   file->config);
    if (from[0] != '\0') /* the whole of this host would hide the program */
        put_mount(to, from, from, false);
    put_mount(to, file->out, file->out, true);
    if (file->keys != NULL)
        put_mount(to, file->keys, file->keys, false);
    if (file->made == NULL)
        return;
    const unsigned id = (unsigned)file->plan->nodes[index].id;
    (void)snprintf(from, sizeof from, "%s/all", file->made);
    put_mount(to, from, COMPOSE_KEYS, false);
    (void)snprintf(from, sizeof from, "%s/secret/node-%u.cert_secret",
                   file->made, id);
    (void)snprintf(at, sizeof at, COMPOSE_KEYS "/node-%u.cert_secret", id);
    put_mount(to, from, at, false);
}

static void put_words(FILE *to, const struct arguments *words)
{
    for (size_t i = 0; i < words->n; i++) {
        (void)fprintf(to, "%s\"", i > 0 ? ", " : "");
        put_text(to, words->argv[i]);
        (void)fputc('"', to);
    }
}

static void put_node(FILE *to, const struct compose_file *file, size_t index)
{
    char name[COMPOSE_NAME_MAX + 1];
    const struct plan_node *node = &file->plan->nodes[index];
    compose_name(file, index, name);
    (void)fprintf(to,
                  "\n"
                  "  node-%u: # %s\n"
                  "    <<: *node\n"
                  "    container_name: %s\n"
                  "    command: [",
                  (unsigned)node->id, plan_role_names[node->role], name);
    put_words(to, &file->commands[index]);
    (void)fprintf(to,
                  "]\n"
                  "    healthcheck:\n"
                  "      <<: *health\n"
                  "      test: [CMD, /usr/bin/lockstep, health, \"--id\", "
                  "\"%u\", \"--out\", \"",
                  (unsigned)node->id);
    put_text(to, file->out);
    (void)fputs("\", \"", to);
    put_text(to, file->config);
    (void)fputs("\"]\n    volumes:\n", to);
    put_mounts(to, file, index);
}

static void put_all(FILE *to, const struct compose_file *file)
{
    (void)fprintf(to,
                  "# The containers of one run, by lockstep run --as compose. "
                  "Should that have been\n"
                  "# killed, this removes what it has left:\n"
                  "#   docker-compose -p %s -f THIS-FILE down -v\n"
                  "version: \"2.4\"\n"
                  "\n"
                  "x-node: &node\n"
                  "  image: \"${LOCKSTEP_IMAGE:-lockstep}\"\n"
                  "  user: \"%lu:%lu\"\n"
                  "  init: true\n"
                  "  read_only: true\n"
                  "  cap_drop: [ALL]\n"
                  "  security_opt: [\"no-new-privileges:true\"]\n"
                  "  pids_limit: 256\n"
                  "  stop_grace_period: 7s\n"
                  "\n"
                  "x-health: &health\n"
                  "  interval: 5s\n"
                  "  timeout: 3s\n"
                  "  retries: 3\n"
                  "  start_period: 120s\n"
                  "\n"
                  "networks:\n"
                  "  default:\n"
                  "    ipam:\n"
                  "      config:\n"
                  "        - {subnet: "
                  "\"${LOCKSTEP_SUBNET:-198.18.43.0/24}\"}\n"
                  "\n"
                  "services:",
                  file->project, file->user, file->group);
    for (size_t i = 0; i < file->plan->n_nodes; i++)
        put_node(to, file, i);
}

int compose_file_text(const struct compose_file *file, char **text,
                      size_t *size)
{
    *text = NULL;
    FILE *to = open_memstream(text, size);
    if (to == NULL)
        return ls_error(LS_ENOMEM, "writing a file for docker-compose");
    put_all(to, file);
    if (fclose(to) == 0)
        return LS_OK;
    free(*text);
    *text = NULL;
    return ls_error(LS_ENOMEM, "writing a file for docker-compose");
}
