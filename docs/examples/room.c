/* Three nodes, a room of shared memory between them, and the mean of what each
 * has. Here they are threads; as processes of one host they do the same. */
#include <stdio.h>
#include <stdlib.h>

#include <lockstep/lockstep.h>

enum { NODES = 3, WAIT_MS = 10000 };

static void add(const void *self, void *to, const void *left, const void *right,
                size_t count)
{
    float *sum = to;
    const float *a = left, *b = right;
    (void)self;
    for (size_t i = 0; i < count; i++)
        sum[i] = a[i] + b[i];
}

static void divide(const void *self, void *numbers, size_t count, unsigned n)
{
    float *sum = numbers;
    (void)self;
    for (size_t i = 0; i < count; i++)
        sum[i] /= (float)n;
}

static const struct ls_room_fold mean = {
    .width = sizeof(float), .two = add, .end = divide};

struct program {
    uint32_t id;
    int status;
};

static int work(ls_node *node, float gradient[2])
{
    struct ls_room_options options;
    ls_room *room = NULL;
    ls_room_options_init(&options);
    options.name = "gradients";
    int status = ls_room_create(&room, node, &options);
    if (status == LS_OK)
        status = ls_room_all_reduce(room, "step", &mean, gradient, gradient, 2,
                                    WAIT_MS);
    ls_room_destroy(&room);
    return status;
}

static void run(void *arg)
{
    struct program *program = arg;
    const char *first = "inproc://room-0";
    char bind[32];
    float gradient[2] = {(float)program->id, 10.0f * (float)program->id};
    struct ls_node_options options;
    ls_node *node = NULL;
    ls_node_options_init(&options);
    (void)snprintf(bind, sizeof bind, "inproc://room-%u", program->id);
    options.id = program->id;
    options.bind = bind;
    options.attach = &first;
    options.n_attach = 1;
    options.world_size = NODES;
    program->status = ls_node_create(&node, &options);
    if (program->status == LS_OK)
        program->status = ls_node_start(node);
    if (program->status == LS_OK)
        program->status = work(node, gradient);
    if (program->status != LS_OK)
        (void)fprintf(stderr, "room: node %u: %s\n", program->id,
                      ls_error_text());
    else if (program->id == 0)
        printf("the mean is %g %g\n", (double)gradient[0], (double)gradient[1]);
    ls_node_destroy(&node);
}

int main(void)
{
    struct program programs[NODES];
    ls_thread *threads[NODES];
    int status = LS_OK;
    for (uint32_t i = 0; i < NODES; i++) {
        programs[i] = (struct program){.id = i};
        if (ls_thread_spawn(ls_runtime_threads(), &threads[i], "node", run,
                            &programs[i]) != LS_OK)
            return 1;
    }
    for (uint32_t i = 0; i < NODES; i++) {
        if (ls_thread_join(&threads[i], LS_FOREVER) != LS_OK)
            return 1;
        if (programs[i].status != LS_OK)
            status = programs[i].status;
    }
    return ls_status_exit_code(status);
}
