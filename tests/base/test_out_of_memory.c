/* Threads, where memory runs out. */
#include <string.h>

#include "allocations.h"
#include "lockstep/runtime.h"
#include "test.h"

struct talk {
    ls_mutex lock;
    ls_cond changed;
    int n_said;
    bool is_over;
};

struct speaker {
    struct talk *talk;
    const char *says;
    bool kept;
};

static void speak(void *self)
{
    struct speaker *speaker = self;
    struct talk *talk = speaker->talk;
    (void)ls_error(LS_EINVAL, "%s", speaker->says);
    ls_mutex_lock(&talk->lock);
    talk->n_said++;
    ls_cond_broadcast(&talk->changed);
    while (!talk->is_over)
        assert_ok(ls_cond_wait(&talk->changed, &talk->lock, LS_FOREVER));
    ls_mutex_unlock(&talk->lock);
    speaker->kept = strcmp(ls_error_text(), speaker->says) == 0;
}

/* There is memory to spawn one, and no more. */
TEST(each_thread_has_an_error_of_its_own)
{
    struct talk talk = {.n_said = 0};
    struct speaker speakers[] = {{&talk, "ada", false}, {&talk, "bob", false}};
    ls_thread *threads[2];
    (void)state;
    assert_ok(ls_mutex_init(&talk.lock, ls_runtime_threads()));
    assert_ok(ls_cond_init(&talk.changed, ls_runtime_threads()));
    ls_mutex_lock(&talk.lock);
    for (int i = 0; i < 2; i++) {
        (void)allocations_fail_at(1);
        assert_ok(ls_thread_spawn(ls_runtime_threads(), &threads[i],
                                  speakers[i].says, speak, &speakers[i]));
        while (talk.n_said == i)
            assert_ok(ls_cond_wait(&talk.changed, &talk.lock, LS_FOREVER));
    }
    talk.is_over = true;
    ls_cond_broadcast(&talk.changed);
    ls_mutex_unlock(&talk.lock);
    for (int i = 0; i < 2; i++) {
        assert_ok(ls_thread_join(&threads[i], LS_FOREVER));
        assert_true(speakers[i].kept);
    }
    ls_cond_fini(&talk.changed);
    ls_mutex_fini(&talk.lock);
}
