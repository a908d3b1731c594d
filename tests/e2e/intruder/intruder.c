/* A client of a job that tells its nodes to finish.
 *
 *   intruder SECRET ENDPOINT [ROLE]
 *
 * It joins the job "job" as node 77, with the secret in that file, at the node
 * 0 that listens at ENDPOINT. It emits "ls.finish" without data, which would
 * end whatever run its receiver is in, and leaves once that was acknowledged.
 * It prints "said". */
#include <stdio.h>

#include <lockstep/lockstep.h>

#define ID 77

static int failed(const char *what)
{
    fprintf(stderr, "intruder: %s: %s\n", what, ls_error_text());
    return 1;
}

static int intrude(ls_node *node)
{
    if (ls_node_start(node) != LS_OK)
        return failed("start");
    if (ls_emit_with(node, &(struct ls_emission){
                               .event = LS_FINISH_EVENT,
                               .scope = LS_SCOPE_REMOTE,
                               .delivery = LS_DELIVERY_RELIABLE}) != LS_OK)
        return failed("emit");
    ls_node_stop(node, LS_OK);
    puts("said");
    return 0;
}

int main(int argc, char **argv)
{
    static const uint32_t members[] = {ID, 0};
    struct ls_node_options options;
    ls_security *security = NULL;
    ls_node *node = NULL;
    if (argc != 3 && argc != 4) {
        fputs("usage: intruder SECRET ENDPOINT [ROLE]\n", stderr);
        return 2;
    }
    const char *const attach = argv[2];
    if (ls_security_file(&security, argv[1]) != LS_OK)
        return failed("secret");
    ls_node_options_init(&options);
    options.job = "job";
    options.id = ID;
    options.role = argc == 4 ? argv[3] : "";
    options.attach = &attach;
    options.n_attach = 1;
    options.members = members;
    options.world_size = 2;
    options.world_max = 64;
    options.linger_ms = 10000;
    options.security = security;
    const int code = ls_node_create(&node, &options) == LS_OK
                         ? intrude(node)
                         : failed("create");
    ls_node_destroy(&node);
    ls_security_destroy(&security);
    return code;
}
