/* A pipeline of two steps, run twice: forward halves in the order of use, then
 * backward halves in reverse. */
#include <stdio.h>

#include <lockstep/lockstep.h>

static int timed(ls_step *step, void *self)
{
    (void)self;
    const int64_t start = ls_step_now(step);
    puts("timed: starts");
    const int status = ls_yield(step); /* the rest of the pipeline runs here */
    printf("timed: it took %s\n",
           ls_step_now(step) >= start ? "a moment" : "less than nothing");
    return status;
}

static int work(ls_step *step, void *self)
{
    (void)self;
    struct ls_online_context *context = ls_step_context(step);
    context->env_step += 10;
    printf("work:  %d steps so far\n", (int)context->env_step);
    return LS_OK;
}

int main(void)
{
    ls_task *task = NULL;
    int status = ls_task_create(&task, &(struct ls_task_options){.node = NULL});
    if (status == LS_OK) {
        ls_task_use_fn(task, timed, NULL);
        ls_task_use_fn(task, work, NULL);
        status = ls_task_run(task, 2);
    }
    if (status != LS_OK)
        fprintf(stderr, "step: %s\n", ls_error_text());
    ls_task_destroy(&task);
    return ls_status_exit_code(status);
}
