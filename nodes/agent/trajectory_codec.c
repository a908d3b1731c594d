#include "trajectory_codec.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* The arrays, in one table, so that laying out, writing, checking and reading
 * cannot disagree. */
struct array {
    const char *name;
    size_t at; /* the pointer to it in struct ls_trajectory */
    enum ls_element type;
    size_t width; /* numbers per step */
    size_t bytes; /* per step */
};

#define N_ARRAYS 7

#define ARRAY(member, space)                                                   \
    {                                                                          \
#member, offsetof(struct ls_trajectory, member), (space).type,         \
            ls_space_count(&(space)), ls_space_bytes(&(space))                 \
    }

static void arrays_of(const struct trajectory_shape *shape,
                      struct array arrays[N_ARRAYS])
{
    const struct ls_space number = {.type = LS_F32};
    const struct ls_space flag = {.type = LS_U8};
    const struct ls_space extras = {
        .type = LS_F32, .n_dims = 1, .shape = {shape->n_extras}};
    const struct array all[N_ARRAYS] = {
        ARRAY(observations, shape->observation),
        ARRAY(next_observations, shape->observation),
        ARRAY(actions, shape->action),
        ARRAY(rewards, number),
        ARRAY(extras, extras),
        ARRAY(terminated, flag),
        ARRAY(truncated, flag),
    };
    memcpy(arrays, all, sizeof all);
}

/* Where an array of a trajectory is. All members that are meant are pointers,
 * to void or to numbers, which POSIX has alike. */
static unsigned char *place_of(const struct ls_trajectory *trajectory,
                               const struct array *array)
{
    unsigned char *place;
    memcpy(&place, (const char *)trajectory + array->at, sizeof place);
    return place;
}

static void set_place(struct ls_trajectory *trajectory,
                      const struct array *array, unsigned char *place)
{
    memcpy((char *)trajectory + array->at, &place, sizeof place);
}

/* Beside what the arrays hold: a map of eight names, each with a header. */
#define VALUE_OVERHEAD 256

static size_t bytes_of_step(const struct trajectory_shape *shape)
{
    struct array arrays[N_ARRAYS];
    size_t bytes = 0;
    arrays_of(shape, arrays);
    for (size_t i = 0; i < N_ARRAYS; i++)
        bytes += arrays[i].bytes;
    return bytes;
}

/* In 64 bits: n_max and the spaces of plugin.h are below 2^21. */
uint64_t trajectory_value_bytes(const struct trajectory_shape *shape)
{
    return (uint64_t)shape->n_max * bytes_of_step(shape) + VALUE_OVERHEAD;
}

/* So long that the next one begins on a boundary. */
static size_t bytes_of_array(const struct trajectory_shape *shape,
                             const struct array *array)
{
    return (shape->n_max * array->bytes + TRAJECTORY_ALIGNMENT - 1) /
           TRAJECTORY_ALIGNMENT * TRAJECTORY_ALIGNMENT;
}

int trajectory_bytes(const struct trajectory_shape *shape, size_t *bytes)
{
    const size_t beside = N_ARRAYS * (size_t)TRAJECTORY_ALIGNMENT;
    struct array arrays[N_ARRAYS];
    size_t sum = 0;
    if (shape->n_max > (SIZE_MAX - beside) / bytes_of_step(shape))
        return ls_error(LS_ENOMEM, "a trajectory of %zu steps", shape->n_max);
    arrays_of(shape, arrays);
    for (size_t i = 0; i < N_ARRAYS; i++)
        sum += bytes_of_array(shape, &arrays[i]);
    *bytes = sum;
    return LS_OK;
}

struct ls_trajectory trajectory_in(void *memory,
                                   const struct trajectory_shape *shape)
{
    struct ls_trajectory view = {.n = 0};
    struct array arrays[N_ARRAYS];
    unsigned char *at = memory;
    arrays_of(shape, arrays);
    for (size_t i = 0; i < N_ARRAYS; i++) {
        set_place(&view, &arrays[i], at);
        at += bytes_of_array(shape, &arrays[i]);
    }
    return view;
}

int trajectory_part(const struct ls_trajectory *whole,
                    const struct trajectory_shape *shape, size_t begin,
                    size_t n, struct ls_trajectory *out)
{
    struct ls_trajectory part = {.n = n};
    struct array arrays[N_ARRAYS];
    if (n == 0 || begin > whole->n || n > whole->n - begin)
        return ls_error(LS_EPROTO,
                        "%zu steps from step %zu on of a trajectory of %zu", n,
                        begin, whole->n);
    arrays_of(shape, arrays);
    for (size_t i = 0; i < N_ARRAYS; i++)
        set_place(&part, &arrays[i],
                  place_of(whole, &arrays[i]) + begin * arrays[i].bytes);
    *out = part;
    return LS_OK;
}

/* Index of the first number that is not finite; n when all are. */
static size_t first_bad(enum ls_element type, const void *values, size_t n)
{
    size_t i = 0;
    if (type == LS_F32) {
        const float *floats = values;
        while (i < n && isfinite(floats[i]))
            i++;
        return i;
    }
    const double *doubles = values;
    while (type == LS_F64 && i < n && isfinite(doubles[i]))
        i++;
    return type == LS_F64 ? i : n;
}

static double number_at(enum ls_element type, const void *at)
{
    switch (type) {
    case LS_F64:
        return *(const double *)at;
    case LS_I32:
        return (double)*(const int32_t *)at;
    case LS_U8:
        return (double)*(const uint8_t *)at;
    case LS_F32:
        break;
    }
    return (double)*(const float *)at;
}

static int check_choices(int status, const struct ls_trajectory *trajectory,
                         const struct trajectory_shape *shape)
{
    const unsigned char *at = trajectory->actions;
    const size_t bytes = ls_space_bytes(&shape->action);
    for (size_t i = 0; i < trajectory->n && shape->n_choices > 0; i++) {
        const double action = number_at(shape->action.type, at + i * bytes);
        if (!(action >= 0.0 && action < (double)shape->n_choices) ||
            action != floor(action))
            return ls_error(status,
                            "trajectory: action of step %zu is %g, and the "
                            "choices are 0 to %u",
                            i, action, (unsigned)(shape->n_choices - 1));
    }
    return LS_OK;
}

/* Look at every number. Sentences are left by `status`. */
static int check_numbers(int status, const struct ls_trajectory *trajectory,
                         const struct trajectory_shape *shape)
{
    struct array arrays[N_ARRAYS];
    arrays_of(shape, arrays);
    for (size_t i = 0; i < N_ARRAYS; i++) {
        const size_t n = trajectory->n * arrays[i].width;
        const size_t bad =
            first_bad(arrays[i].type, place_of(trajectory, &arrays[i]), n);
        if (bad < n)
            return ls_error(status,
                            "trajectory: %s of step %zu: a number that is "
                            "not finite",
                            arrays[i].name, bad / arrays[i].width);
    }
    for (size_t i = 0; i < trajectory->n; i++) {
        if (trajectory->terminated[i] > 1 || trajectory->truncated[i] > 1)
            return ls_error(status,
                            "trajectory: step %zu has an end that is neither "
                            "0 nor 1",
                            i);
    }
    return check_choices(status, trajectory, shape);
}

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "numbers in a trajectory are little-endian"
#endif

int trajectory_write(const struct ls_trajectory *trajectory,
                     const struct trajectory_shape *shape, ls_writer *out)
{
    const int status = check_numbers(LS_EHANDLER, trajectory, shape);
    if (status != LS_OK)
        return status;
    struct array arrays[N_ARRAYS];
    arrays_of(shape, arrays);
    ls_write_map(out, N_ARRAYS + 1);
    ls_write_string(out, "n");
    ls_write_uint(out, trajectory->n);
    for (size_t i = 0; i < N_ARRAYS; i++) {
        ls_write_string(out, arrays[i].name);
        ls_write_binary(out, place_of(trajectory, &arrays[i]),
                        trajectory->n * arrays[i].bytes);
    }
    return LS_OK;
}

static int read_array(const ls_value *map, const struct array *array,
                      unsigned char *place, size_t n)
{
    const void *data;
    size_t size;
    const int status =
        ls_value_binary(ls_value_get(map, array->name), &data, &size);
    if (status != LS_OK)
        return ls_error_at(LS_EPROTO, "trajectory: %s", array->name);
    if (size != n * array->bytes)
        return ls_error(LS_EPROTO, "trajectory: %s: %zu bytes, expected %zu",
                        array->name, size, n * array->bytes);
    if (size > 0)
        memcpy(place, data, size);
    return LS_OK;
}

static int read_map(struct ls_trajectory *view,
                    const struct trajectory_shape *shape, const ls_value *map)
{
    struct array arrays[N_ARRAYS];
    int status = LS_OK;
    uint64_t n;
    if (ls_value_uint(ls_value_get(map, "n"), &n) != LS_OK)
        return ls_error_at(LS_EPROTO, "trajectory: n");
    if (n > shape->n_max)
        return ls_error(LS_EPROTO,
                        "trajectory: %llu steps, expected at most %zu",
                        (unsigned long long)n, shape->n_max);
    arrays_of(shape, arrays);
    for (size_t i = 0; i < N_ARRAYS && status == LS_OK; i++)
        status =
            read_array(map, &arrays[i], place_of(view, &arrays[i]), (size_t)n);
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
