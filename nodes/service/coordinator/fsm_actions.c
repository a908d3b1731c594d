/* What a coordinator wants done, in order. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsm_state.h"

struct queued_action {
    struct queued_action *next;
    struct fsm_action action; /* points into what follows */
    struct learner_info info;
    char bytes[];
};

/* Copy `size` bytes behind what is there; NULL stays NULL. */
static const void *keep(char **at, const void *bytes, size_t size)
{
    if (bytes == NULL)
        return NULL;
    const char *kept = *at;
    memcpy(*at, bytes, size);
    *at += size;
    return kept;
}

static size_t text_size(const char *text)
{
    return text == NULL ? 0 : strlen(text) + 1;
}

void fsm_act(fsm *self, const struct fsm_action *action)
{
    const size_t size = action->size + text_size(action->name) +
                        text_size(action->from) + text_size(action->text);
    struct queued_action *queued = malloc(sizeof *queued + size);
    if (queued == NULL) {
        fsm_no_memory(self);
        return;
    }
    queued->next = NULL;
    queued->action = *action;
    char *at = queued->bytes;
    queued->action.data = keep(&at, action->data, action->size);
    queued->action.name = keep(&at, action->name, text_size(action->name));
    queued->action.from = keep(&at, action->from, text_size(action->from));
    queued->action.text = keep(&at, action->text, text_size(action->text));
    if (action->info != NULL) {
        queued->info = *action->info;
        queued->action.info = &queued->info;
    }
    struct action_queue *queue = &self->actions;
    *(queue->first == NULL ? &queue->first : queue->last) = queued;
    queue->last = &queued->next;
}

bool fsm_next(fsm *self, struct fsm_action *out)
{
    struct action_queue *queue = &self->actions;
    free(queue->taken);
    queue->taken = queue->first;
    if (queue->taken == NULL)
        return false;
    queue->first = queue->taken->next;
    *out = queue->taken->action;
    return true;
}

void fsm_actions_fini(fsm *self)
{
    struct fsm_action action;
    while (fsm_next(self, &action))
        ;
}

void fsm_say(fsm *self, int level, const char *format, ...)
{
    char text[LS_ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fsm_act(self, &(struct fsm_action){
                      .kind = FSM_SAY, .level = level, .text = text});
}

void fsm_drop(fsm *self, const char *name)
{
    fsm_act(self, &(struct fsm_action){.kind = FSM_DROP, .name = name});
}
