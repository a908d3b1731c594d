/* What a coordinator wants done, in order. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core_parts.h"

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

void core_act(core *self, const struct core_action *action)
{
    const size_t size = action->size + text_size(action->name) +
                        text_size(action->from) + text_size(action->text);
    struct queued_action *queued = malloc(sizeof *queued + size);
    if (queued == NULL) {
        core_no_memory(self);
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
    *self->last = queued;
    self->last = &queued->next;
}

bool core_next(core *self, struct core_action *out)
{
    free(self->taken);
    self->taken = self->first;
    if (self->taken == NULL)
        return false;
    self->first = self->taken->next;
    if (self->first == NULL)
        self->last = &self->first;
    *out = self->taken->action;
    return true;
}

void core_actions_fini(core *self)
{
    struct core_action action;
    while (core_next(self, &action))
        ;
}

void core_say(core *self, int level, const char *format, ...)
{
    char text[LS_ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    core_act(self, &(struct core_action){
                       .kind = CORE_SAY, .level = level, .text = text});
}

void core_drop(core *self, const char *name)
{
    core_act(self, &(struct core_action){.kind = CORE_DROP, .name = name});
}
