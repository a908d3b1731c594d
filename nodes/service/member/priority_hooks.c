#include "priority_hooks.h"

#include <stdbool.h>
#include <string.h>

static const char *const position_names[HOOK_N_POSITIONS] = {
    "before_run", "before_iter", "after_iter", "after_run"};

static bool is_position(enum hook_position position)
{
    return (unsigned)position < HOOK_N_POSITIONS;
}

const char *hook_position_name(enum hook_position position)
{
    return is_position(position) ? position_names[position] : "?";
}

static bool is_per_iteration(enum hook_position position)
{
    return position == HOOK_BEFORE_ITER || position == HOOK_AFTER_ITER;
}

static int check(const struct priority_hooks *hooks, const struct hook *hook)
{
    if (hook->name == NULL || hook->name[0] == '\0')
        return ls_error(LS_EINVAL, "a hook without a name");
    if (hook->fn == NULL || !is_position(hook->position))
        return ls_error(LS_EINVAL, "hook %s: it has no %s", hook->name,
                        hook->fn == NULL ? "function" : "position");
    if (hook->every < 0 ||
        (hook->every > 0 && !is_per_iteration(hook->position)))
        return ls_error(LS_EINVAL,
                        "hook %s at %s: every %lld: it is a number of "
                        "iterations",
                        hook->name, hook_position_name(hook->position),
                        (long long)hook->every);
    for (size_t i = 0; i < hooks->n; i++) {
        if (hooks->hooks[i].position == hook->position &&
            strcmp(hooks->hooks[i].name, hook->name) == 0)
            return ls_error(LS_EEXIST, "hook %s is at %s already", hook->name,
                            hook_position_name(hook->position));
    }
    return hooks->n < HOOKS_MAX
               ? LS_OK
               : ls_error(LS_ELIMIT, "hook %s: there are %d already",
                          hook->name, HOOKS_MAX);
}

static bool comes_before(const struct hook *a, const struct hook *b)
{
    return a->position != b->position ? a->position < b->position
                                      : a->priority < b->priority;
}

int priority_hooks_add(struct priority_hooks *hooks, const struct hook *hook)
{
    const int status = check(hooks, hook);
    if (status != LS_OK)
        return status;
    size_t at = hooks->n++;
    for (; at > 0 && comes_before(hook, &hooks->hooks[at - 1]); at--)
        hooks->hooks[at] = hooks->hooks[at - 1];
    hooks->hooks[at] = *hook;
    return LS_OK;
}

static bool is_due(const struct hook *hook, int64_t last_iter)
{
    return hook->every == 0 || last_iter % hook->every == 0;
}

int priority_hooks_run(const struct priority_hooks *hooks,
                       enum hook_position position, int64_t last_iter)
{
    for (size_t i = 0; i < hooks->n; i++) {
        const struct hook *hook = &hooks->hooks[i];
        if (hook->position != position || !is_due(hook, last_iter))
            continue;
        ls_error_clear();
        const int status = hook->fn(hook->self, last_iter);
        if (status != LS_OK)
            return ls_error_at(status, "hook %s at %s, iteration %lld",
                               hook->name, hook_position_name(position),
                               (long long)last_iter);
    }
    return LS_OK;
}
