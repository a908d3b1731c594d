#include "fixture.h"

#include "base/huge_allocations.h"
#include "test.h"

enum { N_DEVICES = 3, N_STACKS = 2, PART_BYTES = 256 };

/* Devices that meet in every pass: so they compute at the same time. */
struct meeting {
    ls_mutex mutex;
    ls_cond changed;
    unsigned arrived;                 /* of all passes so far */
    bool applying;                    /* no compute may run */
    unsigned passes_done;             /* applied */
    void *parts[N_STACKS][N_DEVICES]; /* of stacks; where load saw them */
    const void *threads[N_DEVICES];   /* of errors: one text per thread */
};

static struct meeting meeting;

static int load_part(void *self, const struct ls_learner_place *place)
{
    struct meeting *const m = self;
    unsigned char *const host = ls_device_stack_host(place->memory);
    if (ls_device_stack_capacity(place->memory) != PART_BYTES)
        return ls_error(LS_EINVAL, "not the part that was asked for");
    void **const known = &m->parts[place->stack][place->device];
    if (*known != NULL && *known != host)
        return ls_error(LS_EINVAL, "a stack has moved");
    *known = host;
    memset(host, (int)(number_of(place->batch) * 16 + place->device),
           PART_BYTES);
    return ls_device_stack_upload(place->memory, 0, PART_BYTES);
}

static int meet(void *self, const struct ls_learner_place *place, unsigned pass,
                ls_learner_info *info)
{
    struct meeting *const m = self;
    (void)pass;
    const unsigned char *const memory =
        (const unsigned char *)ls_device_stack_memory(place->memory);
    if (memory[PART_BYTES - 1] != number_of(place->batch) * 16 + place->device)
        return ls_error(LS_EINVAL, "another batch's part");
    const void *const thread = ls_error_text();
    const void **const known = &m->threads[place->device];
    if (*known != NULL && *known != thread)
        return ls_error(LS_ESTATE, "a device has changed its thread");
    *known = thread;
    ls_mutex_lock(&m->mutex);
    assert(!m->applying);
    m->arrived++;
    ls_cond_broadcast(&m->changed);
    while (m->arrived < (m->passes_done + 1) * N_DEVICES) {
        const int status = ls_cond_wait(&m->changed, &m->mutex, LS_FOREVER);
        assert(status == LS_OK);
        (void)status;
    }
    ls_mutex_unlock(&m->mutex);
    const double device = (double)place->device;
    return ls_learner_info_add_td_errors(info, &device, 1);
}

static int apply_all(void *self, unsigned pass, ls_learner_info *info)
{
    struct meeting *const m = self;
    size_t n;
    const double *const order = ls_learner_info_td_errors(info, &n);
    (void)pass;
    ls_mutex_lock(&m->mutex);
    m->applying = true;
    assert(m->arrived == (m->passes_done + 1) * N_DEVICES);
    m->passes_done++;
    m->applying = false;
    ls_mutex_unlock(&m->mutex);
    if (n != N_DEVICES || order[0] != 0.0 || order[N_DEVICES - 1] != 2.0)
        return ls_error(LS_EINVAL, "not all devices, in order");
    return LS_OK;
}

EACH_TEST(set_up, tear_down)

TEST(devices_compute_their_parts_at_the_same_time)
{
    static const struct ls_learner_ops ops = {
        .load = load_part, .compute = meet, .apply = apply_all};
    ls_device *devices[N_DEVICES];
    ls_learner *learner;
    memset(&meeting, 0, sizeof meeting);
    assert_ok(ls_mutex_init(&meeting.mutex, runtime));
    assert_ok(ls_cond_init(&meeting.changed, runtime));
    for (size_t i = 0; i < N_DEVICES; i++)
        assert_ok(ls_device_open(&devices[i], runtime, "cpu"));
    const struct ls_learner_options options = {.ops = &ops,
                                               .self = &meeting,
                                               .stacks = N_STACKS,
                                               .loaders = 2,
                                               .passes = 2,
                                               .devices = devices,
                                               .n_devices = N_DEVICES,
                                               .part_bytes = PART_BYTES,
                                               .batch_size = 2 * N_DEVICES};
    assert_ok(ls_learner_create(&learner, runtime, &options));
    for (size_t i = 0; i < 8; i++)
        put(learner, i);
    for (size_t i = 0; i < 16; i++)
        (void)get(learner);
    assert_ok(ls_learner_check(learner));
    ls_learner_destroy(&learner);
    assert_int_equal(meeting.passes_done, 16);
    for (size_t i = 0; i < N_STACKS; i++)
        for (size_t k = 1; k < N_DEVICES; k++)
            assert_ptr_not_equal(meeting.parts[i][k], meeting.parts[i][0]);
    for (size_t k = 1; k < N_DEVICES; k++)
        assert_ptr_not_equal(meeting.threads[k], meeting.threads[0]);
    for (size_t i = 0; i < N_DEVICES; i++)
        ls_device_close(&devices[i]);
    ls_cond_fini(&meeting.changed);
    ls_mutex_fini(&meeting.mutex);
}

TEST(a_device_without_so_much_memory_is_said)
{
    ls_device *device;
    ls_learner *learner = NULL;
    assert_ok(ls_device_open(&device, runtime, "cpu"));
    const struct ls_learner_options options = {.ops = &trainer_ops,
                                               .self = &trainer,
                                               .stacks = 2,
                                               .devices = &device,
                                               .part_bytes = too_many};
    assert_fails(ls_learner_create(&learner, runtime, &options), LS_ENOMEM);
    assert_null(learner);
    ls_device_close(&device);
}
