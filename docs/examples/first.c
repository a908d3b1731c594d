#include <lockstep/lockstep.h>
#include <stdio.h>

static int heard(void *name, const struct ls_event *event)
{
    printf("%s hears \"%.*s\" from node %u\n", (const char *)name,
           (int)event->size, (const char *)event->data, event->origin);
    return LS_OK;
}

int main(void)
{
    struct ls_node_options options;
    ls_node_options_init(&options);
    ls_node *ada = NULL, *bob = NULL;
    int status = ls_node_create(&ada, &options); /* node 0 of a world of 1 */
    if (status == LS_OK && (status = ls_on(ada, "greet", heard, "ada")) == 0)
        status = ls_node_start(ada);
    const char *attach = status == LS_OK ? ls_node_endpoint(ada) : "";
    options.id = 1;
    options.n_attach = 1;
    options.attach = &attach;
    options.world_size = 2; /* start returns when both hear each other */
    if (status == LS_OK && (status = ls_node_create(&bob, &options)) == 0 &&
        (status = ls_node_start(bob)) == LS_OK)
        status = ls_emit(bob, "greet", "hello", 5);
    if (status != LS_OK)
        fprintf(stderr, "first: %s\n", ls_error_text());
    ls_node_destroy(&bob); /* says farewell; what it emitted is heard */
    ls_node_destroy(&ada);
    return ls_status_exit_code(status);
}
