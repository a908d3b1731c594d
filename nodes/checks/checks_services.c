/* Services: their lives, and what each of them tells. */
#include "checks_services.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void checks_break(const checks *self, const char *name, const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    ls_simulation_violation(self->simulation, "%s: %s", name, text);
}

static void on_opened(void *self)
{
    struct service_life *service = self;
    struct service_checks *books = service->life->all->state;
    if (service->life->dead)
        return;
    service->open = true;
    if (books->begun) {
        books->is_whole = false;
        service->life->all->figures.takeovers++;
    }
    books->begun = true;
    ls_simulation_note(service->life->all->simulation, "coordinates");
}

static void on_closed(void *self, const struct fsm_figures *figures)
{
    struct service_life *service = self;
    if (service->life->dead || !service->open)
        return;
    service->open = false;
    checks_finish_calls(service);
    if (!service->done)
        return; /* it fails, and its next life goes on */
    checks_finish_works(service);
    checks_finish_samples(service, figures);
    if (service->done_status == LS_OK)
        checks_finish_infos(service);
}

static int create(checks *self)
{
    struct service_checks *books = calloc(1, sizeof *books);
    if (books == NULL)
        return ls_error(LS_ENOMEM, "the checks");
    books->is_whole = true;
    self->state = books;
    return LS_OK;
}

static void destroy(checks *self)
{
    struct service_checks *books = self->state;
    if (books == NULL)
        return;
    while (books->calls != NULL)
        checks_forget_call(books, books->calls);
    for (struct given *at = books->given; at != NULL;) {
        struct given *previous = at->previous;
        free(at);
        at = previous;
    }
    for (struct stored *at = books->stored; at != NULL;) {
        struct stored *previous = at->previous;
        free(at);
        at = previous;
    }
    for (struct step *at = books->steps; at != NULL;) {
        struct step *previous = at->previous;
        free(at);
        at = previous;
    }
    for (struct commit *at = books->commits; at != NULL;) {
        struct commit *previous = at->previous;
        free(at);
        at = previous;
    }
    free(books);
}

static int begin(struct check_life *life)
{
    struct service_life *service = calloc(1, sizeof *service);
    if (service == NULL)
        return ls_error(LS_ENOMEM, "the checks");
    service->life = life;
    service->watch = (struct service_watch){.began = checks_on_began,
                                            .ended = checks_on_work_ended,
                                            .joined = checks_on_joined,
                                            .parted = checks_on_parted,
                                            .stepped = checks_on_stepped,
                                            .committed = checks_on_committed,
                                            .loading = checks_on_loading,
                                            .loaded = checks_on_loaded,
                                            .opened = on_opened,
                                            .member = checks_on_member_told,
                                            .action = checks_on_action,
                                            .call_ended = checks_on_call_ended,
                                            .closed = on_closed,
                                            .self = service};
    life->watch.service = &service->watch;
    life->state = service;
    return LS_OK;
}

static void forget(struct check_life *life)
{
    free(life->state);
}

static void finish(checks *self)
{
    for (const struct check_life *life = self->lives; life != NULL;
         life = life->previous) {
        const struct service_life *service = life->state;
        if (service->open && !life->dead)
            checks_break(self, "end",
                         "node %u coordinates after the end of its run",
                         (unsigned)checks_id(life));
    }
}

const struct checks_kind checks_services = {.begin = begin,
                                            .forget = forget,
                                            .create = create,
                                            .destroy = destroy,
                                            .look = checks_look_at_calls,
                                            .finish = finish};
