/* A finish on a network that loses messages: it is told until it is heard. */
#include "task_help.h"

#include "simulation_fixture.h"

/* Nothing comes through for so long, from the finish on; nobody is held for
 * lost in that time. */
#define DEAF_NS       (300 * LS_NS_PER_MS)
#define PAUSE_NS      (10 * LS_NS_PER_MS)
#define MANY          1000
#define FIRST_ADDRESS "tcp://127.0.0.1:21500"

enum { FINISHES, HEARS, N };

struct cluster;

struct member {
    struct cluster *cluster;
    ls_host *host; /* borrow */
    ls_node *node;
    ls_task *task;
    ls_thread *thread;
    int status;
};

struct cluster {
    struct simulation sim;
    struct member members[N];
    struct ls_network_path lossy, sound;
};

static void heal(void *arg)
{
    struct cluster *c = arg;
    assert_ok(ls_network_shape(c->sim.network, NULL, NULL, &c->sound));
}

static int loses_its_finish(ls_step *step, void *self)
{
    struct cluster *c = ((struct member *)self)->cluster;
    int status = ls_network_shape(c->sim.network, NULL, NULL, &c->lossy);
    if (status == LS_OK)
        status = ls_simulation_at(
            c->sim.simulation, ls_simulation_now(c->sim.simulation) + DEAF_NS,
            heal, c);
    ls_task_finish(ls_step_task(step));
    return status;
}

static int pauses(ls_step *step, void *self)
{
    ls_runtime *runtime = ls_host_runtime(((struct member *)self)->host);
    (void)step;
    ls_rest_until(runtime, ls_now(runtime) + PAUSE_NS);
    return LS_OK;
}

static void make(struct cluster *c, uint32_t index, const char *bind)
{
    static const char *const first[] = {FIRST_ADDRESS};
    struct member *m = &c->members[index];
    struct ls_node_options options;
    m->cluster = c;
    m->host = simulation_host(&c->sim, bind);
    ls_node_options_init(&options);
    options.id = index;
    options.bind = bind;
    options.attach = first;
    options.n_attach = index == 0 ? 0 : 1;
    options.world_size = N;
    options.runtime = ls_host_runtime(m->host);
    assert_ok(ls_node_create(&m->node, &options));
    assert_ok(
        ls_task_create(&m->task, &(struct ls_task_options){.node = m->node}));
    assert_ok(ls_task_use_fn(m->task,
                             index == FINISHES ? loses_its_finish : pauses, m));
}

static void join(void *self)
{
    struct member *m = self;
    m->status = ls_node_start(m->node);
}

static void run(void *self)
{
    struct member *m = self;
    m->status = ls_task_run(m->task, MANY);
}

/* Let each do it, on its host, and wait for both. */
static void all(struct cluster *c, void (*fn)(void *self))
{
    for (size_t i = 0; i < N; i++)
        assert_ok(ls_thread_spawn(ls_host_runtime(c->members[i].host),
                                  &c->members[i].thread, "member", fn,
                                  &c->members[i]));
    for (size_t i = 0; i < N; i++) {
        assert_ok(ls_thread_join(&c->members[i].thread, LS_FOREVER));
        assert_int_equal(c->members[i].status, LS_OK);
    }
}

static void live(void *arg)
{
    struct cluster *c = arg;
    make(c, 0, FIRST_ADDRESS);
    make(c, 1, "tcp://127.0.0.1:21501");
    all(c, join);
    all(c, run);
    assert_int_equal(ls_task_iterations(c->members[FINISHES].task), 1);
    assert_in_range(ls_task_iterations(c->members[HEARS].task),
                    DEAF_NS / PAUSE_NS, MANY / 2);
    for (size_t i = 0; i < N; i++) {
        ls_task_destroy(&c->members[i].task);
        ls_node_destroy(&c->members[i].node);
    }
}

TEST(a_finish_that_is_lost_is_told_again)
{
    struct cluster c = {.sound = {.delay_ns = LS_NS_PER_MS},
                        .lossy = {.delay_ns = LS_NS_PER_MS, .loss = 1}};
    simulation_play(&c.sim, 1, &c.sound, live, &c);
}
