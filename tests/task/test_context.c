/* What lockstep/context.h promises. */
#include "lockstep/context.h"

#include <math.h>

#include "base/huge_allocations.h"
#include "task_help.h"
#include "test.h"

struct mine {
    int64_t total_step;
    bool flag;
    int64_t count;
    double ratio;
    char *name;
    struct ls_bytes blob;
    struct ls_numbers numbers;
    struct ls_items items;
};

static const struct ls_field fields[] = {
    LS_FIELD(struct mine, total_step, LS_FIELD_INT, true),
    {"flag", LS_FIELD_BOOL, .offset = offsetof(struct mine, flag),
     .fallback = 1},
    {"count", LS_FIELD_INT, .offset = offsetof(struct mine, count),
     .fallback = 7},
    {"ratio", LS_FIELD_DOUBLE, .offset = offsetof(struct mine, ratio),
     .keep = true, .fallback = 0.5},
    LS_FIELD(struct mine, name, LS_FIELD_TEXT, false),
    LS_FIELD(struct mine, blob, LS_FIELD_BYTES, false),
    LS_FIELD(struct mine, numbers, LS_FIELD_NUMBERS, false),
    LS_FIELD(struct mine, items, LS_FIELD_ITEMS, false),
};

static const struct ls_context_type type = {"mine", sizeof(struct mine), fields,
                                            sizeof fields / sizeof *fields};

static ls_context *context_of(const struct ls_context_type *of)
{
    ls_context *context = NULL;
    assert_ok(ls_context_create(&context, of));
    return context;
}

static void fill(struct mine *mine)
{
    mine->total_step = 3;
    mine->flag = false;
    mine->count = -12;
    mine->ratio = 0.25;
    assert_ok(ls_text_set(&mine->name, "émile"));
    assert_ok(ls_bytes_set(&mine->blob, "\0\1\2", 3));
    for (int64_t i = 0; i < 5; i++)
        assert_ok(ls_numbers_append(&mine->numbers, i * i));
    assert_ok(ls_items_append(&mine->items, "one", 3));
    assert_ok(ls_items_append(&mine->items, NULL, 0));
}

static void assert_filled(const struct mine *mine)
{
    assert_int_equal(mine->total_step, 3);
    assert_false(mine->flag);
    assert_int_equal(mine->count, -12);
    assert_true(mine->ratio == 0.25);
    assert_string_equal(mine->name, "émile");
    assert_int_equal(mine->blob.size, 3);
    assert_memory_equal(mine->blob.data, "\0\1\2", 3);
    assert_int_equal(mine->numbers.n, 5);
    assert_int_equal(mine->numbers.values[4], 16);
    assert_int_equal(mine->items.n, 2);
    assert_memory_equal(mine->items.items[0].data, "one", 3);
    assert_int_equal(mine->items.items[1].size, 0);
}

TEST(fields_start_with_their_fallbacks)
{
    ls_context *context = context_of(&type);
    const struct mine *mine = ls_context_data(context);
    assert_int_equal(mine->total_step, 0);
    assert_true(mine->flag);
    assert_int_equal(mine->count, 7);
    assert_true(mine->ratio == 0.5);
    assert_null(mine->name);
    assert_int_equal(mine->blob.size + mine->numbers.n + mine->items.n, 0);
    assert_ptr_equal(ls_context_type_of(context), &type);
    ls_context_destroy(&context);
    assert_null(context);
}

static void assert_refused(const struct ls_field *table, size_t n,
                           const char *word)
{
    const struct ls_context_type bad = {"bad", sizeof(struct mine), table, n};
    ls_context *context = (ls_context *)(void *)&context;
    assert_fails(ls_context_create(&context, &bad), LS_EINVAL);
    assert_error_has(word);
    assert_null(context);
}

TEST(create_refuses_bad_tables)
{
    const struct ls_field count = LS_FIELD(struct mine, count, LS_FIELD_INT, 0);
    const struct ls_field not_first[] = {count, fields[0]};
    const struct ls_field far[] = {
        fields[0], {"far", LS_FIELD_INT, .offset = sizeof(struct mine) - 4}};
    const struct ls_field twice[] = {fields[0], count, count};
    const struct ls_field nameless[] = {fields[0], {.type = LS_FIELD_INT}};
    const struct ls_field not_kept[] = {
        {"total_step", LS_FIELD_INT, .offset = 0}};
    const struct ls_field borrowed[] = {
        fields[0], LS_FIELD(struct mine, name, LS_FIELD_STRING, false)};
    assert_refused(borrowed, 2, "no type that there is");
    assert_refused(not_first, 2, "total_step");
    assert_refused(not_kept, 1, "total_step");
    assert_refused(NULL, 0, "total_step");
    assert_refused(far, 2, "far");
    assert_refused(twice, 3, "count");
    assert_refused(nameless, 2, "no name");
}

TEST(a_field_is_found_by_its_name)
{
    assert_ptr_equal(ls_context_field(&type, "total_step"), &fields[0]);
    assert_ptr_equal(ls_context_field(&type, "count"), &fields[2]);
    assert_null(ls_context_field(&type, "coun"));
    assert_null(ls_context_field(&type, ""));
}

TEST(destroy_takes_null)
{
    ls_context *context = NULL;
    ls_context_destroy(NULL);
    ls_context_destroy(&context);
}

TEST(renew_counts_and_resets_what_is_not_kept)
{
    ls_context *context = context_of(&type);
    struct mine *mine = ls_context_data(context);
    fill(mine);
    ls_context_renew(context);
    assert_ptr_equal(ls_context_data(context), mine);
    assert_int_equal(mine->total_step, 4);
    assert_true(mine->ratio == 0.25);
    assert_true(mine->flag);
    assert_int_equal(mine->count, 7);
    assert_null(mine->name);
    assert_int_equal(mine->blob.size + mine->numbers.n + mine->items.n, 0);
    ls_context_destroy(&context);
}

static void note_renewal(void *self, void *data)
{
    struct mine *mine = data;
    assert_int_equal(mine->items.n, 0);
    mine->count = ++*(int64_t *)self;
}

TEST(renewal_may_be_followed_by_the_programs_own)
{
    ls_context *context = context_of(&type);
    struct mine *mine = ls_context_data(context);
    int64_t n = 0;
    ls_context_on_renew(context, note_renewal, &n);
    fill(mine);
    ls_context_renew(context);
    ls_context_renew(context);
    assert_int_equal(mine->count, 2);
    ls_context_on_renew(context, NULL, NULL);
    ls_context_renew(context);
    assert_int_equal(n, 2);
    ls_context_destroy(&context);
}

TEST(keep_lasts_for_the_life_of_the_context)
{
    ls_context *context = context_of(&type);
    struct mine *mine = ls_context_data(context);
    fill(mine);
    assert_ok(ls_context_keep(context, "items"));
    for (int i = 0; i < 3; i++)
        ls_context_renew(context);
    assert_int_equal(mine->items.n, 2);
    assert_int_equal(mine->numbers.n, 0);
    ls_context_destroy(&context);
}

TEST(keep_names_the_nearest_field)
{
    ls_context *context = context_of(&type);
    assert_fails(ls_context_keep(context, "itms"), LS_ENOENT);
    assert_error_has("\"items\"");
    assert_fails(ls_context_keep(context, "zzzzzzzz"), LS_ENOENT);
    assert_error_has("zzzzzzzz");
    ls_context_destroy(&context);
}

static void copy(const ls_context *from, const char *const *names, size_t n,
                 ls_context *to, int expected)
{
    ls_writer *writer;
    ls_document *document;
    const void *data;
    size_t size;
    assert_ok(ls_writer_create(&writer));
    assert_ok(ls_context_write(from, names, n, writer));
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_ok(ls_document_read(&document, data, size, NULL));
    assert_int_equal(ls_context_read(to, ls_document_root(document)), expected);
    ls_document_destroy(&document);
    ls_writer_destroy(&writer);
}

TEST(a_context_survives_being_written_and_read)
{
    ls_context *from = context_of(&type);
    ls_context *to = context_of(&type);
    fill(ls_context_data(from));
    copy(from, NULL, 0, to, LS_OK);
    assert_filled(ls_context_data(to));

    /* What was there is replaced, an empty text too. */
    struct mine *mine = ls_context_data(from);
    assert_ok(ls_text_set(&mine->name, NULL));
    ls_items_clear(&mine->items);
    copy(from, NULL, 0, to, LS_OK);
    mine = ls_context_data(to);
    assert_null(mine->name);
    assert_int_equal(mine->items.n, 0);
    assert_int_equal(mine->numbers.n, 5);
    ls_context_destroy(&from);
    ls_context_destroy(&to);
}

TEST(write_takes_chosen_fields)
{
    const char *const names[] = {"count", "name"};
    ls_context *from = context_of(&type);
    ls_context *to = context_of(&type);
    fill(ls_context_data(from));
    copy(from, names, 2, to, LS_OK);
    const struct mine *mine = ls_context_data(to);
    assert_int_equal(mine->count, -12);
    assert_string_equal(mine->name, "émile");
    assert_int_equal(mine->total_step, 0);
    assert_int_equal(mine->items.n, 0);
    ls_context_destroy(&from);
    ls_context_destroy(&to);
}

TEST(write_refuses_fields_that_are_not_there)
{
    const char *const names[] = {"count", "nmae"};
    ls_context *context = context_of(&type);
    ls_writer *writer;
    const void *data;
    size_t size;
    assert_ok(ls_writer_create(&writer));
    assert_fails(ls_context_write(context, names, 2, writer), LS_ENOENT);
    assert_error_has("\"name\"");
    /* Nothing was written. */
    ls_write_nil(writer);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    ls_writer_destroy(&writer);
    ls_context_destroy(&context);
}

/* Reads {before, key: what `write` writes}, where before is count: 1. */
static int read_one(ls_context *context, const char *key,
                    void (*write)(ls_writer *))
{
    ls_writer *writer;
    ls_document *document;
    const void *data;
    size_t size;
    assert_ok(ls_writer_create(&writer));
    ls_write_map(writer, 2);
    ls_write_string(writer, "count");
    ls_write_int(writer, 1);
    ls_write_string(writer, key);
    write(writer);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_ok(ls_document_read(&document, data, size, NULL));
    const int status = ls_context_read(context, ls_document_root(document));
    ls_document_destroy(&document);
    ls_writer_destroy(&writer);
    return status;
}

static void write_text(ls_writer *writer)
{
    ls_write_string(writer, "text");
}

static void write_mixed(ls_writer *writer)
{
    ls_write_array(writer, 2);
    ls_write_int(writer, 1);
    ls_write_string(writer, "text");
}

static void write_number(ls_writer *writer)
{
    ls_write_int(writer, 1);
}

TEST(read_ignores_keys_that_are_no_fields)
{
    ls_context *context = context_of(&type);
    assert_ok(read_one(context, "newer", write_text));
    assert_int_equal(((struct mine *)ls_context_data(context))->count, 1);
    ls_context_destroy(&context);
}

TEST(read_names_the_field_of_another_type)
{
    static const struct {
        const char *key;
        void (*write)(ls_writer *);
    } cases[] = {
        {"flag", write_text},       {"ratio", write_text},
        {"name", write_number},     {"blob", write_number},
        {"numbers", write_mixed},   {"numbers", write_number},
        {"items", write_mixed},     {"items", write_text},
        {"total_step", write_text},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_context *context = context_of(&type);
        struct mine *mine = ls_context_data(context);
        fill(mine);
        assert_fails(read_one(context, cases[i].key, cases[i].write),
                     LS_EPROTO);
        assert_error_has(cases[i].key);
        /* What stood before it is set, the field itself is as it was. */
        assert_int_equal(mine->count, 1);
        mine->count = -12;
        assert_filled(mine);
        ls_context_destroy(&context);
    }
}

TEST(read_refuses_what_is_no_map)
{
    ls_context *context = context_of(&type);
    assert_fails(ls_context_read(context, NULL), LS_EPROTO);
    ls_context_destroy(&context);
}

TEST(print_shows_every_field)
{
    ls_context *context = context_of(&type);
    fill(ls_context_data(context));
    char text[256];
    const char *expected = "total_step=3 flag=false count=-12 ratio=0.25 "
                           "name=\"émile\" blob=<3 bytes> "
                           "numbers=[0,1,4,9,16] items=<2 items>";
    assert_int_equal(ls_context_print(context, text, sizeof text),
                     strlen(expected));
    assert_string_equal(text, expected);

    assert_int_equal(ls_context_print(context, text, 20), strlen(expected));
    assert_string_equal(text, "total_step=3 flag=f");
    assert_int_equal(ls_context_print(context, NULL, 0), strlen(expected));
    ls_context_destroy(&context);
}

TEST(set_replaces_and_copies)
{
    char *text = NULL;
    char source[] = "first";
    assert_ok(ls_text_set(&text, source));
    source[0] = 'F';
    assert_string_equal(text, "first");
    assert_ok(ls_text_set(&text, text + 1)); /* its own bytes */
    assert_string_equal(text, "irst");
    assert_ok(ls_text_set(&text, NULL));
    assert_null(text);

    struct ls_bytes bytes = {NULL, 0};
    assert_ok(ls_bytes_set(&bytes, "abc", 3));
    assert_ok(ls_bytes_set(&bytes, (char *)bytes.data + 1, 2));
    assert_int_equal(bytes.size, 2);
    assert_memory_equal(bytes.data, "bc", 2);
    ls_bytes_clear(&bytes);
    assert_null(bytes.data);
}

TEST(a_field_that_cannot_be_set_is_as_it_was)
{
    struct ls_bytes bytes = {NULL, 0};
    struct ls_items items = {NULL, 0};
    assert_ok(ls_bytes_set(&bytes, "abc", 3));
    assert_ok(ls_items_append(&items, "abc", 3));
    assert_fails(ls_bytes_set(&bytes, "", too_many), LS_ENOMEM);
    assert_fails(ls_items_append(&items, "", too_many), LS_ENOMEM);
    assert_int_equal(bytes.size, 3);
    assert_int_equal(items.n, 1);
    ls_bytes_clear(&bytes);
    ls_items_clear(&items);
}

TEST(lists_grow)
{
    struct ls_numbers numbers = {NULL, 0};
    struct ls_items items = {NULL, 0};
    for (int64_t i = 0; i < 1000; i++) {
        assert_ok(ls_numbers_append(&numbers, i));
        assert_ok(ls_items_append(&items, &i, sizeof i));
    }
    for (int64_t i = 0; i < 1000; i++) {
        assert_int_equal(numbers.values[i], i);
        assert_memory_equal(items.items[i].data, &i, sizeof i);
    }
    ls_numbers_clear(&numbers);
    ls_items_clear(&items);
    assert_int_equal(numbers.n + items.n, 0);
}

TEST(online_defaults_and_kept_fields)
{
    ls_context *context = context_of(&ls_online_context_type);
    struct ls_online_context *mine = ls_context_data(context);
    assert_int_equal(mine->env_step + mine->env_episode + mine->train_iter, 0);
    assert_int_equal(mine->last_eval_iter, -1);
    assert_true(isinf(mine->last_eval_value) && mine->last_eval_value < 0);
    assert_true(isnan(mine->eval_value));

    mine->env_step = 1;
    mine->env_episode = 2;
    mine->train_iter = 3;
    mine->last_eval_iter = 4;
    mine->last_eval_value = 5;
    mine->eval_value = 6;
    assert_ok(ls_items_append(&mine->trajectories, "t", 1));
    ls_context_renew(context);
    assert_int_equal(mine->total_step, 1);
    assert_int_equal(mine->env_step, 1);
    assert_int_equal(mine->env_episode, 2);
    assert_int_equal(mine->train_iter, 3);
    assert_int_equal(mine->last_eval_iter, 4);
    assert_true(mine->last_eval_value == 5);
    assert_true(isnan(mine->eval_value));
    assert_int_equal(mine->trajectories.n, 0);
    ls_context_destroy(&context);
}

TEST(offline_defaults_and_kept_fields)
{
    ls_context *context = context_of(&ls_offline_context_type);
    struct ls_offline_context *mine = ls_context_data(context);
    assert_int_equal(mine->trained_env_step + mine->train_epoch, 0);
    assert_int_equal(mine->last_eval_iter, -1);
    assert_true(isinf(mine->last_eval_value) && mine->last_eval_value < 0);

    mine->trained_env_step = 1;
    mine->train_epoch = 2;
    mine->train_iter = 3;
    assert_ok(ls_items_append(&mine->train_data, "t", 1));
    ls_context_renew(context);
    assert_int_equal(mine->trained_env_step, 1);
    assert_int_equal(mine->train_epoch, 2);
    assert_int_equal(mine->train_iter, 3);
    assert_true(isnan(mine->eval_value));
    assert_int_equal(mine->train_data.n, 0);
    ls_context_destroy(&context);
}
