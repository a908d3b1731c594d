/* messages.h, as a specification: one field wrong at a time. */
#include "message_examples.h"
#include "test.h"

enum wrong { MISSING, OTHER_TYPE, NEGATIVE, TOO_LARGE, RENAMED, ADDED };

struct spoiling {
    size_t pair; /* which pair of a map, counted through all of them */
    enum wrong wrong;
    size_t at;
    char field[64]; /* of that pair */
    bool applies;
};

static void copy(ls_writer *out, const ls_value *value, struct spoiling *how);

static void copy_scalar(ls_writer *out, const ls_value *value)
{
    bool truth;
    int64_t number;
    double real;
    const char *text;
    if (ls_value_type(value) == LS_VALUE_NIL)
        ls_write_nil(out);
    else if (ls_value_bool(value, &truth) == LS_OK)
        ls_write_bool(out, truth);
    else if (ls_value_int(value, &number) == LS_OK)
        ls_write_int(out, number);
    else if (ls_value_string(value, &text) == LS_OK)
        ls_write_string(out, text);
    else if (ls_value_double(value, &real) == LS_OK)
        ls_write_double(out, real);
}

static void copy_wrong(ls_writer *out, const ls_value *value,
                       struct spoiling *how, const char *name)
{
    const enum ls_value_type type = ls_value_type(value);
    (void)snprintf(how->field, sizeof how->field, "%s", name);
    how->applies = true;
    if (how->wrong == MISSING)
        return;
    ls_write_string(out, how->wrong == RENAMED ? "colour" : name);
    if (how->wrong == OTHER_TYPE) {
        if (type == LS_VALUE_BINARY)
            ls_write_nil(out);
        else
            ls_write_binary(out, "x", 1);
    } else if (how->wrong == NEGATIVE) {
        how->applies = type == LS_VALUE_INT;
        ls_write_int(out, -2);
    } else if (how->wrong == TOO_LARGE) { /* one more would not fit */
        how->applies = type == LS_VALUE_INT;
        ls_write_int(out, INT64_MAX);
    } else {
        copy(out, value, how);
    }
    if (how->wrong == ADDED) {
        ls_write_string(out, "colour");
        ls_write_nil(out);
    }
}

static void copy(ls_writer *out, const ls_value *value, struct spoiling *how)
{
    const size_t n = ls_value_size(value);
    if (ls_value_type(value) == LS_VALUE_ARRAY) {
        ls_write_array(out, (uint32_t)n);
        for (size_t i = 0; i < n; i++)
            copy(out, ls_value_at(value, i), how);
        return;
    }
    if (ls_value_type(value) != LS_VALUE_MAP) {
        copy_scalar(out, value);
        return;
    }
    const bool here = how->pair >= how->at && how->pair < how->at + n;
    const size_t spoilt = how->pair - how->at;
    how->at += n;
    ls_write_map(out, (uint32_t)(n + (here && how->wrong == ADDED) -
                                 (here && how->wrong == MISSING)));
    for (size_t i = 0; i < n; i++) {
        const char *name = ls_value_key(value, i);
        if (here && i == spoilt) {
            copy_wrong(out, ls_value_at(value, i), how, name);
            continue;
        }
        ls_write_string(out, name);
        copy(out, ls_value_at(value, i), how);
    }
}

/* What the wire may leave out, and numbers that may be anything. */
static bool may_be(const struct spoiling *how, const char *call)
{
    const char *field = how->field;
    static const char *const optional[] = {"object_ref", "split_begin"};
    static const char *const free_numbers[] = {"loss", "kl", "priority"};
    for (size_t i = 0; i < 2 && how->wrong == MISSING; i++)
        if (strcmp(field, optional[i]) == 0)
            return true;
    for (size_t i = 0; i < 3 && how->wrong == NEGATIVE; i++)
        if (strcmp(field, free_numbers[i]) == 0)
            return true;
    /* The names of what a plugin reports are its own. */
    if (strcmp(field, "loss") == 0 || strcmp(field, "kl") == 0)
        return how->wrong != OTHER_TYPE && how->wrong != ADDED;
    return how->wrong == MISSING && strcmp(field, "info") == 0 &&
           strcmp(call, "learner_learn_task") == 0;
}

/* Returns whether there is such a pair. */
static bool try_wrong(const struct example *example, const ls_value *root,
                      size_t pair, enum wrong wrong)
{
    struct spoiling how = {.pair = pair, .wrong = wrong};
    ls_writer *writer;
    const void *data;
    size_t size;
    assert_ok(ls_writer_create(&writer));
    copy(writer, root, &how);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    if (how.applies && !may_be(&how, example->call)) {
        unsigned char *out = malloc(example->size);
        memset(out, 0xa5, example->size);
        ls_error_clear();
        if (example->read(out, data, size) != LS_EPROTO)
            fail_msg("%s: field %s, wrong %d: it was taken", example->call,
                     how.field, (int)wrong);
        if (strstr(ls_error_text(), example->call) == NULL)
            fail_msg("no name of the call: %s", ls_error_text());
        /* A data answer without an info has to bring data. */
        const bool other = wrong == MISSING && strcmp(how.field, "info") == 0 &&
                           strcmp(example->call, "collector_data_task") == 0;
        const char *named = how.field;
        if (other)
            named = "data";
        else if (wrong == RENAMED || wrong == ADDED)
            named = NULL;
        if (named != NULL && strstr(ls_error_text(), named) == NULL)
            fail_msg("no name of field %s: %s", named, ls_error_text());
        for (size_t i = 0; i < example->size; i++)
            assert_int_equal(out[i], 0xa5);
        free(out);
    }
    ls_writer_destroy(&writer);
    return how.field[0] != '\0';
}

TEST(each_field_must_be_there_and_right_and_no_other)
{
    for (size_t i = 0; i < N_EXAMPLES; i++) {
        struct bytes bytes = written(&examples[i]);
        ls_document *document;
        assert_ok(ls_document_read(&document, bytes.data, bytes.size, NULL));
        const ls_value *root = ls_document_root(document);
        for (size_t pair = 0; try_wrong(&examples[i], root, pair, MISSING);
             pair++)
            for (int wrong = OTHER_TYPE; wrong <= ADDED; wrong++)
                (void)try_wrong(&examples[i], root, pair, (enum wrong)wrong);
        ls_document_destroy(&document);
        ls_writer_destroy(&bytes.writer);
    }
}

int main(void)
{
    return tests_run_with(make_examples, NULL);
}
