/* To evaluate: whole episodes, acting as well as it can. Nothing is handed over
 * but how far it is, after each, and at its end what they came to. */
#include "collector_parts.h"

static bool is_done(const struct collector_service *service)
{
    return service->episodes >= service->told.episodes;
}

static bool may_make(const struct collector_service *service)
{
    (void)service;
    return true;
}

static bool has_news(const struct collector_service *service)
{
    return is_done(service) || service->episodes > service->told_episodes;
}

static int64_t progress(void *self)
{
    const struct collector_service *service = self;
    return service->episodes;
}

static int make(struct collector_service *service, int64_t more)
{
    (void)more;
    service->what.episodes = 1;
    return service->options.ops->evaluate(
        service->options.self, &service->what.return_sum, &service->what.steps);
}

static int hand_over(struct collector_service *service)
{
    ls_mutex_lock(&service->work.mutex);
    service->makes = false;
    collector_count(service);
    collector_answer(service);
    ls_mutex_unlock(&service->work.mutex);
    return LS_OK;
}

const struct collector_kind service_kind_evaluate = {
    .of = {COLLECTOR_KIND, .progress = progress},
    .is_done = is_done,
    .may_make = may_make,
    .has_news = has_news,
    .make = make,
    .hand_over = hand_over};
