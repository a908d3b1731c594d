#include "sample.h"

#include <stddef.h>
#include <string.h>

enum field_type {
    FIELD_NAME,
    FIELD_COUNT,  /* least to UINT32_MAX or SERVICE_COUNT_MAX */
    FIELD_NUMBER, /* a priority */
};

struct field {
    const char *name;
    enum field_type type;
    size_t offset;
    size_t size; /* of a name's array */
    int64_t least, most;
};

#define MOST                  ((int64_t)UINT32_MAX)
#define SIZE_OF(type, member) sizeof(((type *)0)->member)
#define NAME(member)                                                           \
    {                                                                          \
        .name = #member, .type = FIELD_NAME,                                   \
        .offset = offsetof(struct sample, member),                             \
        .size = SIZE_OF(struct sample, member)                                 \
    }
#define COUNT(member, from, to)                                                \
    {                                                                          \
        .name = #member, .type = FIELD_COUNT,                                  \
        .offset = offsetof(struct sample, member), .least = (from),            \
        .most = (to)                                                           \
    }

static const struct field sample_fields[] = {
    NAME(data_id),
    NAME(task_id),
    NAME(buffer_id),
    NAME(compressor),
    COUNT(policy_iter, 0, SERVICE_COUNT_MAX),
    COUNT(policy_version, 0, SERVICE_COUNT_MAX),
    COUNT(env_id, 0, SERVICE_COUNT_MAX),
    COUNT(unroll_len, 1, MOST),
    {.name = "priority",
     .type = FIELD_NUMBER,
     .offset = offsetof(struct sample, priority)},
    COUNT(cur_episode, 0, SERVICE_COUNT_MAX),
    COUNT(cur_sample, 0, SERVICE_COUNT_MAX),
    COUNT(cur_step, 0, SERVICE_COUNT_MAX),
    COUNT(size, 0, SERVICE_COUNT_MAX),
};
/* These two may be left out. */
static const struct field split_begin = COUNT(split_begin, 0, MOST);
static const struct field object_ref = NAME(object_ref);

static const struct field drawn_fields[] = {
    {.name = "replay_buffer_idx",
     .type = FIELD_COUNT,
     .offset = offsetof(struct drawn_sample, slot),
     .most = SERVICE_COUNT_MAX},
    {.name = "replay_unique_id",
     .type = FIELD_NAME,
     .offset = offsetof(struct drawn_sample, unique_id),
     .size = SIZE_OF(struct drawn_sample, unique_id)},
    {.name = "staleness",
     .type = FIELD_COUNT,
     .offset = offsetof(struct drawn_sample, staleness),
     .most = SERVICE_COUNT_MAX},
};

static const struct field update_fields[] = {
    {.name = "replay_buffer_idx",
     .type = FIELD_COUNT,
     .offset = offsetof(struct priority_update, slot),
     .most = SERVICE_COUNT_MAX},
    {.name = "replay_unique_id",
     .type = FIELD_NAME,
     .offset = offsetof(struct priority_update, unique_id),
     .size = SIZE_OF(struct priority_update, unique_id)},
    {.name = "priority",
     .type = FIELD_NUMBER,
     .offset = offsetof(struct priority_update, priority)},
};

#define N_OF(fields) (sizeof(fields) / sizeof(fields)[0])

static void write_field(const void *base, const struct field *field,
                        ls_writer *out)
{
    const char *at = (const char *)base + field->offset;
    ls_write_string(out, field->name);
    if (field->type == FIELD_COUNT) {
        int64_t count;
        memcpy(&count, at, sizeof count);
        ls_write_int(out, count);
    } else if (field->type == FIELD_NUMBER) {
        double number;
        memcpy(&number, at, sizeof number);
        ls_write_double(out, number);
    } else {
        ls_write_string(out, at);
    }
}

static void write_fields(const void *base, const struct field *fields, size_t n,
                         ls_writer *out)
{
    for (size_t i = 0; i < n; i++)
        write_field(base, &fields[i], out);
}

void sample_write(const struct sample *sample, ls_writer *out)
{
    const bool has_ref = sample->object_ref[0] != '\0';
    ls_write_map(out, (uint32_t)N_OF(sample_fields) +
                          (sample->split ? 1u : 0u) + (has_ref ? 1u : 0u));
    write_fields(sample, sample_fields, N_OF(sample_fields), out);
    if (sample->split)
        write_field(sample, &split_begin, out);
    if (has_ref)
        write_field(sample, &object_ref, out);
}

void drawn_sample_write(const struct drawn_sample *drawn, ls_writer *out)
{
    ls_write_map(out, (uint32_t)N_OF(drawn_fields) + 1);
    write_fields(drawn, drawn_fields, N_OF(drawn_fields), out);
    ls_write_string(out, "sample");
    sample_write(&drawn->sample, out);
}

void priority_update_write(const struct priority_update *update, ls_writer *out)
{
    ls_write_map(out, (uint32_t)N_OF(update_fields));
    write_fields(update, update_fields, N_OF(update_fields), out);
}

static int read_name(char *to, const struct field *field, const ls_value *value)
{
    const char *text;
    if (ls_value_string(value, &text) != LS_OK)
        return LS_EPROTO;
    const size_t length = strlen(text);
    if (length == 0 || length >= field->size)
        return ls_error(LS_EPROTO, "%zu bytes of text, expected 1 to %zu",
                        length, field->size - 1);
    if (!safe_name_is(text))
        return ls_error(LS_EPROTO,
                        "\"%s\" is no name: [A-Za-z0-9._@-], without a dot at "
                        "its beginning or two in a row",
                        text);
    memcpy(to, text, length + 1);
    return LS_OK;
}

static int read_count(char *to, const struct field *field,
                      const ls_value *value)
{
    int64_t count;
    if (ls_value_int(value, &count) != LS_OK)
        return LS_EPROTO;
    if (count < field->least || count > field->most)
        return ls_error(LS_EPROTO, "%lld is not in [%lld, %lld]",
                        (long long)count, (long long)field->least,
                        (long long)field->most);
    memcpy(to, &count, sizeof count);
    return LS_OK;
}

static int read_number(char *to, const ls_value *value)
{
    double number;
    if (ls_value_double(value, &number) != LS_OK)
        return LS_EPROTO;
    if (!(number >= 0.0 && number <= SAMPLE_PRIORITY_MAX))
        return ls_error(LS_EPROTO, "%g is not in [0, %g]", number,
                        SAMPLE_PRIORITY_MAX);
    memcpy(to, &number, sizeof number);
    return LS_OK;
}

static int read_field(void *base, const struct field *field, const char *what,
                      const ls_value *map)
{
    char *to = (char *)base + field->offset;
    const ls_value *value = ls_value_get(map, field->name);
    int status;
    if (value == NULL)
        status = ls_error(LS_EPROTO, "it is missing");
    else if (field->type == FIELD_COUNT)
        status = read_count(to, field, value);
    else if (field->type == FIELD_NUMBER)
        status = read_number(to, value);
    else
        status = read_name(to, field, value);
    return status == LS_OK ? LS_OK
                           : ls_error_at(status, "%s: %s", what, field->name);
}

static bool is_among(const char *key, const struct field *fields, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(key, fields[i].name) == 0)
            return true;
    }
    return false;
}

/* All of `fields`, and nothing beside them but the keys others[] (NULL ends
 * them). */
static int read_fields(void *base, const struct field *fields, size_t n,
                       const char *const *others, const char *what,
                       const ls_value *map)
{
    if (ls_value_type(map) != LS_VALUE_MAP)
        return ls_error(LS_EPROTO, "%s: it is no map", what);
    for (size_t i = 0; i < n; i++) {
        const int status = read_field(base, &fields[i], what, map);
        if (status != LS_OK)
            return status;
    }
    for (size_t i = 0; i < ls_value_size(map); i++) {
        const char *key = ls_value_key(map, i);
        bool known = is_among(key, fields, n);
        for (size_t j = 0; others[j] != NULL && !known; j++)
            known = strcmp(key, others[j]) == 0;
        if (!known)
            return ls_error(LS_EPROTO, "%s: %.64s: there is no such field",
                            what, key);
    }
    return LS_OK;
}

int sample_read(struct sample *out, const ls_value *value)
{
    static const char what[] = "a sample";
    const char *const others[] = {split_begin.name, object_ref.name, NULL};
    struct sample sample = {.split = false};
    int status = read_fields(&sample, sample_fields, N_OF(sample_fields),
                             others, what, value);
    sample.split = ls_value_get(value, split_begin.name) != NULL;
    if (status == LS_OK && sample.split)
        status = read_field(&sample, &split_begin, what, value);
    if (status == LS_OK && ls_value_get(value, object_ref.name) != NULL)
        status = read_field(&sample, &object_ref, what, value);
    if (status == LS_OK)
        *out = sample;
    return status;
}

int drawn_sample_read(struct drawn_sample *out, const ls_value *value)
{
    static const char what[] = "a drawn sample";
    const char *const others[] = {"sample", NULL};
    struct drawn_sample drawn = {.slot = 0};
    int status = read_fields(&drawn, drawn_fields, N_OF(drawn_fields), others,
                             what, value);
    if (status == LS_OK)
        status = sample_read(&drawn.sample, ls_value_get(value, "sample"));
    if (status == LS_OK)
        *out = drawn;
    return status;
}

int priority_update_read(struct priority_update *out, const ls_value *value)
{
    const char *const others[] = {NULL};
    struct priority_update update = {.slot = 0};
    const int status = read_fields(&update, update_fields, N_OF(update_fields),
                                   others, "a priority", value);
    if (status == LS_OK)
        *out = update;
    return status;
}
