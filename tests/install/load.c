/* load.c LIBRARY - loads the library while it runs, as bindings for other
 * languages do; makes a node, starts it, and puts all away again. Twice. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <lockstep/lockstep.h>

/* POSIX: a pointer to an object may be taken for one to a function. */
static bool find(void *library, const char *name, void *out)
{
    void *const symbol = dlsym(library, name);
    memcpy(out, &symbol, sizeof symbol);
    if (symbol == NULL)
        fprintf(stderr, "load: no %s\n", name);
    return symbol != NULL;
}

static int use(void *library)
{
    void (*init)(struct ls_node_options *);
    int (*create)(ls_node **, const struct ls_node_options *);
    int (*start)(ls_node *);
    int (*destroy)(ls_node **);
    const char *(*text)(void);
    if (!find(library, "ls_node_options_init", &init) ||
        !find(library, "ls_node_create", &create) ||
        !find(library, "ls_node_start", &start) ||
        !find(library, "ls_node_destroy", &destroy) ||
        !find(library, "ls_error_text", &text))
        return 1;
    struct ls_node_options options;
    init(&options);
    options.bind = "tcp://127.0.0.1:*";
    ls_node *node = NULL;
    int status = create(&node, &options);
    if (status == LS_OK)
        status = start(node);
    if (status != LS_OK)
        fprintf(stderr, "load: %s\n", text());
    if (status == LS_OK)
        status = destroy(&node);
    return status == LS_OK ? 0 : 1;
}

int main(int argc, char **argv)
{
    int status = argc == 2 ? 0 : 2;
    for (int i = 0; i < 2 && status == 0; i++) {
        void *const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) {
            fprintf(stderr, "load: %s\n", dlerror());
            return 1;
        }
        status = use(library);
        if (dlclose(library) != 0)
            status = 1;
    }
    return status;
}
