/* hello.cpp - the same from C++: a node hears itself, in a step of a task whose
 * context is a struct of the program's own. */
#include <cstdio>

#include <lockstep/lockstep.h>

namespace
{
struct context {
    int64_t total_step;
    int64_t heard;
};

const ls_field fields[] = {
    LS_FIELD(context, total_step, LS_FIELD_INT, true),
    LS_FIELD(context, heard, LS_FIELD_INT, true),
};
const ls_context_type type = {"context", sizeof(context), fields, 2};

int hello(ls_step *step, void *self)
{
    auto *const mine = static_cast<context *>(ls_step_context(step));
    auto *const node = static_cast<ls_node *>(self);
    int status = ls_emit(node, "hello", "C++", 3);
    if (status == LS_OK)
        status = ls_yield(step);
    mine->heard++;
    return status;
}

int on_hello(void *self, const ls_event *event)
{
    ls_log_debug("%s from node %u", event->name, event->origin);
    ++*static_cast<unsigned *>(self);
    return LS_OK;
}

int run(ls_node *node, unsigned *n_heard)
{
    ls_task_options options{};
    options.node = node;
    options.context = &type;
    ls_task *task = nullptr;
    int status = ls_task_create(&task, &options);
    if (status == LS_OK)
        status = ls_on(node, "hello", on_hello, n_heard);
    ls_task_use_fn(task, hello, node);
    if (status == LS_OK)
        status = ls_node_start(node);
    if (status == LS_OK)
        status = ls_task_run(task, 3);
    ls_task_destroy(&task);
    return status;
}
} // namespace

int main()
{
    unsigned n_heard = 0;
    ls_node_options options;
    ls_node_options_init(&options);
    options.bind = "inproc://hello";
    ls_node *node = nullptr;
    int status = ls_node_create(&node, &options);
    if (status == LS_OK)
        status = run(node, &n_heard);
    if (status != LS_OK)
        std::fprintf(stderr, "hello: %s\n", ls_error_text());
    ls_node_stop(node, LS_OK); // what was emitted has been handled
    ls_node_destroy(&node);
    std::printf("C++: %u of 3 heard\n", n_heard);
    return n_heard == 3 ? ls_status_exit_code(status) : 1;
}
