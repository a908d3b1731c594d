#include "trajectory_codec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The arrays of floats, in one table, so that writing, checking and reading
 * cannot disagree. */
struct array {
    const char *name;
    float *values;
    size_t width; /* floats per step */
};

#define N_ARRAYS 5

static void arrays_of(const struct ls_trajectory *trajectory,
                      const struct trajectory_shape *shape,
                      struct array arrays[N_ARRAYS])
{
    const struct array all[N_ARRAYS] = {
        {"observations", trajectory->observations, shape->n_observation},
        {"next_observations", trajectory->next_observations,
         shape->n_observation},
        {"actions", trajectory->actions, shape->n_action},
        {"rewards", trajectory->rewards, 1},
        {"extras", trajectory->extras, shape->n_extras},
    };
    memcpy(arrays, all, sizeof all);
}

/* Beside what the arrays hold: a map of eight names, each with a header. */
#define VALUE_OVERHEAD 256

/* In 64 bits: n_max and the widths of plugin.h are below 2^21. */
uint64_t trajectory_value_bytes(const struct trajectory_shape *shape)
{
    const uint64_t width = 2 * (uint64_t)shape->n_observation +
                           shape->n_action + 1 + shape->n_extras;
    return shape->n_max * (width * sizeof(float) + 2) + VALUE_OVERHEAD;
}

int trajectory_bytes(const struct trajectory_shape *shape, size_t *bytes)
{
    const size_t width =
        2 * shape->n_observation + shape->n_action + 1 + shape->n_extras;
    if (shape->n_max > SIZE_MAX / (width * sizeof(float) + 2))
        return ls_error(LS_ENOMEM, "a trajectory of %zu steps", shape->n_max);
    *bytes = shape->n_max * (width * sizeof(float) + 2);
    return LS_OK;
}

struct ls_trajectory trajectory_in(void *memory,
                                   const struct trajectory_shape *shape)
{
    const size_t n = shape->n_max;
    struct ls_trajectory view = {.observations = memory};
    view.next_observations = view.observations + n * shape->n_observation;
    view.actions = view.next_observations + n * shape->n_observation;
    view.rewards = view.actions + n * shape->n_action;
    view.extras = view.rewards + n;
    view.terminated = (uint8_t *)(view.extras + n * shape->n_extras);
    view.truncated = view.terminated + n;
    return view;
}

int trajectory_init(struct trajectory *out,
                    const struct trajectory_shape *shape)
{
    size_t bytes = 0;
    const int status = trajectory_bytes(shape, &bytes);
    if (status != LS_OK)
        return status;
    out->memory = malloc(bytes);
    if (out->memory == NULL)
        return ls_error(LS_ENOMEM, "a trajectory of %zu steps", shape->n_max);
    out->view = trajectory_in(out->memory, shape);
    return LS_OK;
}

void trajectory_fini(struct trajectory *trajectory)
{
    free(trajectory->memory);
    memset(trajectory, 0, sizeof *trajectory);
}

/* Index of the first float that is not finite; n when all are. */
static size_t first_bad(const float *values, size_t n)
{
    size_t i = 0;
    while (i < n && isfinite(values[i]))
        i++;
    return i;
}

static bool is_choice(float value, uint32_t n_choices)
{
    return value >= 0.0f && value < (float)n_choices && value == floorf(value);
}

/* Look at every number. Sentences are left by `status`. */
static int check_numbers(int status, const struct ls_trajectory *trajectory,
                         const struct trajectory_shape *shape)
{
    struct array arrays[N_ARRAYS];
    arrays_of(trajectory, shape, arrays);
    for (size_t i = 0; i < N_ARRAYS; i++) {
        const size_t n = trajectory->n * arrays[i].width;
        const size_t bad = first_bad(arrays[i].values, n);
        if (bad < n)
            return ls_error(status,
                            "trajectory: %s of step %zu: a number that is "
                            "not finite",
                            arrays[i].name, bad / arrays[i].width);
    }
    for (size_t i = 0; i < trajectory->n && shape->n_choices > 0; i++) {
        const float action = trajectory->actions[i * shape->n_action];
        if (!is_choice(action, shape->n_choices))
            return ls_error(status,
                            "trajectory: action of step %zu is %g, and the "
                            "choices are 0 to %u",
                            i, (double)action,
                            (unsigned)(shape->n_choices - 1));
    }
    for (size_t i = 0; i < trajectory->n; i++) {
        if (trajectory->terminated[i] > 1 || trajectory->truncated[i] > 1)
            return ls_error(status,
                            "trajectory: step %zu has an end that is neither "
                            "0 nor 1",
                            i);
    }
    return LS_OK;
}

int trajectory_write(const struct ls_trajectory *trajectory,
                     const struct trajectory_shape *shape, ls_writer *out)
{
    const int status = check_numbers(LS_EHANDLER, trajectory, shape);
    if (status != LS_OK)
        return status;
    struct array arrays[N_ARRAYS];
    arrays_of(trajectory, shape, arrays);
    ls_write_map(out, N_ARRAYS + 3);
    ls_write_string(out, "n");
    ls_write_uint(out, trajectory->n);
    for (size_t i = 0; i < N_ARRAYS; i++) {
        ls_write_string(out, arrays[i].name);
        ls_write_floats(out, arrays[i].values, trajectory->n * arrays[i].width);
    }
    ls_write_string(out, "terminated");
    ls_write_binary(out, trajectory->terminated, trajectory->n);
    ls_write_string(out, "truncated");
    ls_write_binary(out, trajectory->truncated, trajectory->n);
    return LS_OK;
}

static int read_flags(const ls_value *map, const char *name, uint8_t *flags,
                      size_t n)
{
    const void *data;
    size_t size;
    const int status = ls_value_binary(ls_value_get(map, name), &data, &size);
    if (status != LS_OK)
        return ls_error_at(LS_EPROTO, "trajectory: %s", name);
    if (size != n)
        return ls_error(LS_EPROTO, "trajectory: %s: %zu bytes, expected %zu",
                        name, size, n);
    if (n > 0)
        memcpy(flags, data, n);
    return LS_OK;
}

static int read_map(struct ls_trajectory *view,
                    const struct trajectory_shape *shape, const ls_value *map)
{
    uint64_t n;
    if (ls_value_uint(ls_value_get(map, "n"), &n) != LS_OK)
        return ls_error_at(LS_EPROTO, "trajectory: n");
    if (n > shape->n_max)
        return ls_error(LS_EPROTO,
                        "trajectory: %llu steps, expected at most %zu",
                        (unsigned long long)n, shape->n_max);
    struct array arrays[N_ARRAYS];
    arrays_of(view, shape, arrays);
    for (size_t i = 0; i < N_ARRAYS; i++) {
        const ls_value *value = ls_value_get(map, arrays[i].name);
        if (ls_value_floats(value, arrays[i].values,
                            (size_t)n * arrays[i].width) != LS_OK)
            return ls_error_at(LS_EPROTO, "trajectory: %s", arrays[i].name);
    }
    int status = read_flags(map, "terminated", view->terminated, (size_t)n);
    if (status == LS_OK)
        status = read_flags(map, "truncated", view->truncated, (size_t)n);
    view->n = status == LS_OK ? (size_t)n : 0;
    return status;
}

int trajectory_read(struct ls_trajectory *trajectory,
                    const struct trajectory_shape *shape, const void *data,
                    size_t size)
{
    /* A map of eight pairs, and nothing nested. */
    const struct ls_codec_limits limits = {
        .max_bytes = TRAJECTORY_VALUE_MAX, .max_depth = 2, .max_objects = 64};
    trajectory->n = 0;
    ls_document *document = NULL;
    int status = ls_document_read(&document, data, size, &limits);
    if (status != LS_OK)
        return ls_error_at(status == LS_ENOMEM ? status : LS_EPROTO,
                           "trajectory");
    status = read_map(trajectory, shape, ls_document_root(document));
    ls_document_destroy(&document);
    if (status == LS_OK)
        status = check_numbers(LS_EPROTO, trajectory, shape);
    if (status != LS_OK)
        trajectory->n = 0;
    return status;
}
