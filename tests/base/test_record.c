/* What lockstep/record.h promises. */

#include <stdlib.h>

#include "huge_allocations.h"
#include "lockstep/config.h"
#include "record_example.h"
#include "test.h"

struct bytes {
    ls_writer *writer;
    const void *data;
    size_t size;
};

static void finish(struct bytes *bytes)
{
    assert_ok(ls_writer_bytes(bytes->writer, &bytes->data, &bytes->size));
}

static struct bytes written(const struct ls_record *record, const void *data)
{
    struct bytes bytes = {NULL, NULL, 0};
    assert_ok(ls_writer_create(&bytes.writer));
    ls_record_write(record, data, bytes.writer);
    finish(&bytes);
    return bytes;
}

/* What the reader of configurations makes of it. */
static struct bytes of_json(const char *json)
{
    struct bytes bytes = {NULL, NULL, 0};
    ls_config *config = NULL;
    assert_ok(ls_config_parse(&config, "test", json));
    assert_ok(ls_writer_create(&bytes.writer));
    ls_config_write(config, bytes.writer);
    ls_config_destroy(&config);
    finish(&bytes);
    return bytes;
}

/* own: give it to ls_record_clear(). */
static struct all example(void)
{
    struct all all = {.truth = true,
                      .whole = -5,
                      .real = 0.25,
                      .figure = NAN,
                      .natural = UINT64_MAX,
                      .small = UINT32_MAX,
                      .chars = "seven77",
                      .block = {1, 2, 3, 4},
                      .n_block = 4,
                      .part = {2, "one"},
                      .parts = {{4, "two"}, {6, ""}},
                      .n_parts = 2,
                      .n_own = 1,
                      .point = {1.5f, -2.0f},
                      .has_extra = true,
                      .extra = 9,
                      .with = 10,
                      .without = 11,
                      .may_miss = 12,
                      .if_set = "set",
                      .unseen = 13};
    all.own = calloc(1, sizeof *all.own);
    assert_non_null(all.own);
    all.own[0] = (struct part){8, "own"};
    assert_ok(ls_text_set(&all.text, "émile"));
    assert_ok(ls_bytes_set(&all.bytes, "\0\1", 2));
    assert_ok(ls_numbers_append(&all.numbers, INT64_MIN));
    assert_ok(ls_items_append(&all.items, "x", 1));
    return all;
}

TEST(what_is_written_is_read_back)
{
    struct all in = example(), out;
    struct bytes bytes = written(&all_record, &in);
    memset(&out, 0xa5, sizeof out);
    assert_ok(
        ls_record_decode(&all_record, &out, bytes.data, bytes.size, NULL));
    assert_true(out.truth && out.whole == -5 && out.real == 0.25);
    assert_true(isnan(out.figure));
    assert_string_equal(out.text, "émile");
    assert_int_equal(out.bytes.size, 2);
    assert_memory_equal(out.bytes.data, "\0\1", 2);
    assert_int_equal(out.numbers.n, 1);
    assert_true(out.numbers.values[0] == INT64_MIN);
    assert_int_equal(out.items.n, 1);
    assert_memory_equal(out.items.items[0].data, "x", 1);
    assert_true(out.natural == UINT64_MAX && out.small == UINT32_MAX);
    assert_string_equal(out.chars, "seven77");
    assert_int_equal(out.n_block, 4);
    assert_memory_equal(out.block, in.block, 4);
    assert_int_equal(out.part.n, 2);
    assert_int_equal(out.n_parts, 2);
    assert_memory_equal(out.parts, in.parts, sizeof in.parts);
    assert_int_equal(out.n_own, 1);
    assert_memory_equal(out.own, in.own, sizeof *in.own);
    assert_true(out.point.x == 1.5f && out.point.y == -2.0f);
    assert_true(out.has_extra && out.extra == 9 && out.with == 10);
    assert_int_equal(out.without, 0); /* beside truth it is not written */
    assert_int_equal(out.may_miss, 12);
    assert_string_equal(out.if_set, "set");
    assert_int_equal(out.unseen, 0);
    struct bytes again = written(&all_record, &out);
    assert_int_equal(again.size, bytes.size);
    assert_memory_equal(again.data, bytes.data, bytes.size);
    for (size_t cut = 0; cut < bytes.size; cut++)
        assert_fails(ls_record_decode(&all_record, &out, bytes.data, cut, NULL),
                     LS_EPROTO);
    ls_writer_destroy(&again.writer);
    ls_writer_destroy(&bytes.writer);
    ls_record_clear(&all_record, &in);
    ls_record_clear(&all_record, &out);
    assert_null(out.text);
    assert_null(out.own);
    assert_int_equal(out.may_miss, -7);
}

/* Into a struct of nothing but this field. */
static int read_alone(const struct ls_field *field, struct all *out,
                      const struct bytes *bytes)
{
    ls_document *document = NULL;
    int status = ls_document_read(&document, bytes->data, bytes->size, NULL);
    assert_ok(status);
    status = ls_field_read(field, out, ls_document_root(document));
    ls_document_destroy(&document);
    return status;
}

static struct bytes field_written(const struct ls_field *field,
                                  const struct all *all)
{
    struct bytes bytes = {NULL, NULL, 0};
    assert_ok(ls_writer_create(&bytes.writer));
    ls_field_write(field, all, bytes.writer);
    finish(&bytes);
    return bytes;
}

TEST(a_field_alone_is_written_read_and_reset)
{
    struct all in = example(), empty;
    memset(&empty, 0, sizeof empty);
    for (size_t i = 0; i < all_record.n_fields; i++) {
        const struct ls_field *field = &all_fields[i];
        struct all out;
        if (field->type == LS_FIELD_HAS) /* not on the wire */
            continue;
        memset(&out, 0, sizeof out);
        struct bytes bytes = field_written(field, &in);
        assert_ok(read_alone(field, &out, &bytes));
        struct bytes again = field_written(field, &out);
        assert_int_equal(again.size, bytes.size);
        assert_memory_equal(again.data, bytes.data, bytes.size);
        ls_field_reset(field, &out);
        ls_writer_destroy(&again.writer);
        again = field_written(field, &out);
        ls_writer_destroy(&bytes.writer);
        empty.may_miss = -7; /* its fallback */
        bytes = field_written(field, &empty);
        assert_int_equal(again.size, bytes.size);
        assert_memory_equal(again.data, bytes.data, bytes.size);
        ls_writer_destroy(&again.writer);
        ls_writer_destroy(&bytes.writer);
    }
    ls_record_clear(&all_record, &in);
}

TEST(a_field_that_is_refused_stays_as_it_was)
{
    struct all in = example(), out = example();
    in.whole = 101; /* the most is 100 */
    in.real = -2.0;
    for (size_t i = 1; i <= 2; i++) {
        struct bytes bytes = field_written(&all_fields[i], &in);
        assert_fails(read_alone(&all_fields[i], &out, &bytes), LS_EPROTO);
        ls_writer_destroy(&bytes.writer);
    }
    struct bytes text = field_written(&all_fields[4], &in);
    for (size_t i = 0; i < all_record.n_fields; i++)
        if (all_fields[i].type != LS_FIELD_TEXT &&
            all_fields[i].type != LS_FIELD_CHARS &&
            all_fields[i].type != LS_FIELD_HAS)
            assert_fails(read_alone(&all_fields[i], &out, &text), LS_EPROTO);
    assert_true(out.truth && out.whole == -5 && out.real == 0.25);
    assert_string_equal(out.text, "émile");
    assert_int_equal(out.bytes.size, 2);
    assert_int_equal(out.numbers.n, 1);
    assert_int_equal(out.items.n, 1);
    assert_true(out.point.x == 1.5f);
    ls_writer_destroy(&text.writer);
    ls_record_clear(&all_record, &in);
    ls_record_clear(&all_record, &out);
}

TEST(bytes_are_set_to_what_was_written)
{
    struct ls_bytes bytes = {NULL, 0};
    ls_writer *writer = NULL;
    assert_ok(ls_writer_create(&writer));
    ls_write_int(writer, 7);
    assert_ok(ls_bytes_set_written(&bytes, writer));
    ls_writer_clear(writer);
    ls_write_map(writer, 1);
    assert_fails(ls_bytes_set_written(&bytes, writer), LS_ESTATE);
    ls_writer_destroy(&writer);
    assert_int_equal(bytes.size, 1);
    assert_memory_equal(bytes.data, "\x07", 1);
    ls_bytes_clear(&bytes);
}

TEST(a_field_has_the_size_of_its_type)
{
    static const struct ls_field none = {.type = (enum ls_field_type)99};
    static const size_t sizes[] = {sizeof(bool),
                                   sizeof(int64_t),
                                   sizeof(double),
                                   sizeof(double),
                                   sizeof(char *),
                                   sizeof(struct ls_bytes),
                                   sizeof(struct ls_numbers),
                                   sizeof(struct ls_items),
                                   sizeof(uint64_t),
                                   sizeof(uint32_t),
                                   8,
                                   4,
                                   sizeof(struct part),
                                   3 * sizeof(struct part),
                                   sizeof(struct part *),
                                   sizeof(struct point)};
    for (size_t i = 0; i < N_OF(sizes); i++)
        assert_int_equal(ls_field_size(&all_fields[i]), sizes[i]);
    assert_int_equal(ls_field_size(&none), 0);
}

TEST(the_bytes_are_a_map_in_the_order_of_the_table)
{
    const struct part part = {2, "ab"};
    struct bytes bytes = written(&part_record, &part);
    static const char expected[] = "\x82\xa1n\x02\xa4name\xa2"
                                   "ab";
    assert_int_equal(bytes.size, sizeof expected - 1);
    assert_memory_equal(bytes.data, expected, sizeof expected - 1);
    ls_writer_destroy(&bytes.writer);
}

TEST(some_pairs_go_into_a_map_with_others)
{
    static const char *const names[] = {"name", NULL};
    const struct part part = {2, "ab"};
    struct bytes bytes = {NULL, NULL, 0};
    assert_ok(ls_writer_create(&bytes.writer));
    ls_write_map_begin(bytes.writer);
    ls_write_string(bytes.writer, "a");
    ls_write_nil(bytes.writer);
    ls_record_write_pairs(&part_record, &part, names, bytes.writer);
    ls_write_map_end(bytes.writer);
    finish(&bytes);
    static const char expected[] = "\x82\xa1"
                                   "a\xc0\xa4name\xa2"
                                   "ab";
    assert_int_equal(bytes.size, sizeof expected - 1);
    assert_memory_equal(bytes.data, expected, sizeof expected - 1);
    ls_writer_destroy(&bytes.writer);
}

/* Reading by a table ------------------------------------------------------ */

static void refused(const struct ls_record *record, const char *json,
                    const char *text)
{
    struct bytes bytes = of_json(json);
    unsigned char out[1024], before[1024];
    assert_true(record->size <= sizeof out);
    memset(out, 0xa5, sizeof out);
    memset(before, 0xa5, sizeof before);
    ls_error_clear();
    assert_fails(ls_record_decode(record, out, bytes.data, bytes.size, NULL),
                 LS_EPROTO);
    if (strcmp(ls_error_text(), text) != 0)
        fail_msg("%s: \"%s\", expected \"%s\"", json, ls_error_text(), text);
    assert_memory_equal(out, before, sizeof out);
    ls_writer_destroy(&bytes.writer);
}

/* A record of one field. */
static void refused_field(struct ls_field field, const char *json,
                          const char *text)
{
    field.name = "f";
    const struct ls_record record = {
        .name = "r", .size = 64, .fields = &field, .n_fields = 1};
    refused(&record, json, text);
}

TEST(each_error_names_record_field_and_what_was_found)
{
    refused(&part_record, "{n: 1, name: a}", "a part: n: it is odd");
    refused(&part_record, "{n: 2}", "a part: name: it is missing");
    refused(&part_record, "{n: 2, name: a, x: 1}",
            "a part: x: there is no such field");
    refused(&part_record, "{n: 2, name: a, 'x y': 1}",
            "a part: field 2 has no name that is known");
    refused(&part_record, "{'': 1, n: 2, name: a}",
            "a part: field 0 has no name that is known");
    refused(&part_record, "{n: 2, name: 12345678}",
            "a part: name: found an integer where a string was expected");
    refused(&part_record, "{n: 2, name: '12345678'}",
            "a part: name: over 7 bytes: it has 8");
    refused_field((struct ls_field){.type = LS_FIELD_BOOL}, "{f: 1}",
                  "r: f: found an integer where a boolean was expected");
    refused_field((struct ls_field){.type = LS_FIELD_INT, .most = 9}, "{f: 10}",
                  "r: f: it is 10, and must be 0 to 9");
    refused_field((struct ls_field){.type = LS_FIELD_INT, .least = -2},
                  "{f: -3}", "r: f: it is -3, and must be -2 to 0");
    refused_field((struct ls_field){.type = LS_FIELD_UINT, .least = 1},
                  "{f: 0}",
                  "r: f: it is 0, and must be 1 to 18446744073709551615");
    refused_field((struct ls_field){.type = LS_FIELD_UINT}, "{f: -1}",
                  "r: f: the integer -1 is negative");
    refused_field((struct ls_field){.type = LS_FIELD_UINT32}, "{f: 4294967296}",
                  "r: f: it is 4294967296, and must be 0 to 4294967295");
    refused_field((struct ls_field){.type = LS_FIELD_DOUBLE, .high = 1.5},
                  "{f: 2.0}", "r: f: it is 2, and must be 0 to 1.5");
    refused_field((struct ls_field){.type = LS_FIELD_DOUBLE, .high = 1.5},
                  "{f: .nan}", "r: f: it is nan, and must be 0 to 1.5");
    refused_field((struct ls_field){.type = LS_FIELD_DOUBLE, .low = -0.5},
                  "{f: -1}", "r: f: it is -1, and must be -0.5 to 0");
    refused_field((struct ls_field){.type = LS_FIELD_DOUBLE}, "{f: null}",
                  "r: f: found nil where a number was expected");
    refused_field((struct ls_field){.type = LS_FIELD_TEXT}, "{f: 1}",
                  "r: f: found an integer where a string was expected");
    refused_field((struct ls_field){.type = LS_FIELD_STRING}, "{f: 1}",
                  "r: f: found an integer where a string was expected");
    refused_field((struct ls_field){.type = LS_FIELD_BYTES}, "{f: a}",
                  "r: f: found a string where a binary was expected");
    refused_field((struct ls_field){.type = LS_FIELD_NUMBERS}, "{f: 1}",
                  "r: f: it is not an array");
    refused_field((struct ls_field){.type = LS_FIELD_NUMBERS}, "{f: [1, a]}",
                  "r: f: found a string where an integer was expected");
    refused_field((struct ls_field){.type = LS_FIELD_ITEMS}, "{f: [1]}",
                  "r: f: found an integer where a binary was expected");
}

TEST(so_do_those_of_lists_and_of_records_in_a_record)
{
    const struct ls_field list = {.type = LS_FIELD_LIST,
                                  .item = &part_item,
                                  .count = 56,
                                  .least = 1,
                                  .most = 3};
    refused_field(list, "{f: []}", "r: f: it is not a list of 1 to 3");
    refused_field(list, "{f: {n: 1}}", "r: f: it is not a list of 1 to 3");
    refused_field(list, "{f: [1, 1, 1, 1]}",
                  "r: f: it is not a list of 1 to 3");
    refused_field(list, "{f: [{n: 2, name: a}, {n: 1}]}",
                  "r: f: item 1: n: it is odd");
    const struct ls_field record = {.type = LS_FIELD_RECORD,
                                    .record = &part_record};
    refused_field(record, "{f: []}", "r: f: it is not a map");
    refused_field(record, "{f: {}}", "r: f: n: it is missing");
}

static void taken_field(struct ls_field field, const char *json)
{
    struct bytes bytes = of_json(json);
    uint64_t out[8];
    field.name = "f";
    const struct ls_record record = {
        .name = "r", .size = sizeof out, .fields = &field, .n_fields = 1};
    assert_ok(ls_record_decode(&record, out, bytes.data, bytes.size, NULL));
    ls_writer_destroy(&bytes.writer);
}

TEST(the_ends_of_a_range_belong_to_it)
{
    const struct ls_field whole = {
        .type = LS_FIELD_INT, .least = -2, .most = 9};
    taken_field(whole, "{f: -2}");
    taken_field(whole, "{f: 9}");
    const struct ls_field natural = {
        .type = LS_FIELD_UINT, .least = 1, .most = 9};
    taken_field(natural, "{f: 1}");
    taken_field(natural, "{f: 9}");
    const struct ls_field real = {
        .type = LS_FIELD_DOUBLE, .low = -0.5, .high = 1.5};
    taken_field(real, "{f: -0.5}");
    taken_field(real, "{f: 1.5}");
    const struct ls_field number = {.type = LS_FIELD_INT};
    const struct ls_field list = {.type = LS_FIELD_LIST,
                                  .item = &number,
                                  .count = 56,
                                  .least = 1,
                                  .most = 3};
    taken_field(list, "{f: [1]}");
    taken_field(list, "{f: [1, 2, 3]}");
}

TEST(bytes_over_their_limit_are_refused)
{
    static const char bytes[] = "\x81\xa1"
                                "f\xc4\x03"
                                "abc";
    struct ls_field field = {
        .name = "f", .type = LS_FIELD_BYTES, .most = 2, .size = 2, .count = 32};
    const struct ls_record record = {"r", 64, &field, 1, false, NULL};
    uint64_t out[8];
    for (int block = 0; block < 2; block++) {
        assert_fails(
            ls_record_decode(&record, out, bytes, sizeof bytes - 1, NULL),
            LS_EPROTO);
        assert_string_equal(ls_error_text(), "r: f: over 2 bytes: it has 3");
        field.type = LS_FIELD_BLOCK;
    }
}

TEST(what_is_no_map_or_no_msgpack_is_refused)
{
    struct part part;
    static const struct {
        const char *bytes;
        size_t size;
    } bad[] = {{"", 0},
               {"\xc1", 1},
               {"\xc0", 1},
               {"\x90", 1},
               {"\x82\xa1n\x02\xa1n\x02", 7}}; /* a key twice */
    for (size_t i = 0; i < N_OF(bad); i++) {
        assert_fails(ls_record_decode(&part_record, &part, bad[i].bytes,
                                      bad[i].size, NULL),
                     LS_EPROTO);
        assert_ptr_equal(strstr(ls_error_text(), "a part: "), ls_error_text());
    }
    assert_fails(ls_record_read(&part_record, &part, NULL), LS_EPROTO);
    const struct ls_codec_limits limits = {4, 1, 8};
    assert_fails(
        ls_record_decode(&part_record, &part, "\x82\xa1n\x02", 4, &limits),
        LS_EPROTO);
}

static int decode_all(struct all *out, struct bytes bytes)
{
    const int status =
        ls_record_decode(&all_record, out, bytes.data, bytes.size, NULL);
    ls_writer_destroy(&bytes.writer);
    return status;
}

TEST(no_memory_is_said)
{
    struct part part = {6, "as"};
    const struct ls_record huge = {.name = "huge", .size = too_many * 8};
    assert_fails(ls_record_decode(&huge, &part, "\x80", 1, NULL), LS_ENOMEM);
    assert_ptr_equal(strstr(ls_error_text(), "huge: "), ls_error_text());
    assert_int_equal(part.n, 6);
}

/* The example, changed by `change`. */
static int changed(void (*change)(struct all *all), struct all *out)
{
    struct all all = example();
    change(&all);
    const int status = decode_all(out, written(&all_record, &all));
    ls_record_clear(&all_record, &all);
    return status;
}

static void too_whole(struct all *all)
{
    all->whole = 1;
}

static void odd(struct all *all)
{
    all->parts[1].n = 3;
}

TEST(what_holds_between_fields_is_checked)
{
    struct all out;
    assert_fails(changed(too_whole, &out), LS_EPROTO);
    assert_string_equal(ls_error_text(), "all: whole: it is more than real");
    assert_fails(changed(odd, &out), LS_EPROTO);
    assert_string_equal(ls_error_text(), "all: parts: item 1: n: it is odd");
}

static void no_flags(struct all *all)
{
    all->truth = false;
    all->has_extra = false;
    all->if_set[0] = '\0';
}

TEST(a_flag_says_which_fields_are_there)
{
    struct all out;
    assert_ok(changed(no_flags, &out));
    assert_false(out.truth || out.has_extra);
    assert_int_equal(out.extra, 0);
    assert_int_equal(out.with, 0);
    assert_int_equal(out.without, 11);
    assert_string_equal(out.if_set, "");
    ls_record_clear(&all_record, &out);

    static const struct ls_field fields[] = {
        {"truth", LS_FIELD_BOOL, AT(truth)},
        {"with", LS_FIELD_INT, AT(with), .presence = LS_IF_FLAG,
         .flag = offsetof(struct all, truth)},
        {"without", LS_FIELD_INT, AT(without), .presence = LS_IF_NO_FLAG,
         .flag = offsetof(struct all, truth)}};
    const struct ls_record record = {.name = "r",
                                     .size = sizeof(struct all),
                                     .fields = fields,
                                     .n_fields = N_OF(fields)};
    refused(&record, "{truth: true}", "r: with: it is missing");
    refused(&record, "{truth: false}", "r: without: it is missing");
    refused(&record, "{truth: false, with: 1, without: 1}",
            "r: with: it must not be there without truth");
    refused(&record, "{truth: true, with: 1, without: 1}",
            "r: without: it must not be there beside truth");
}

TEST(what_may_miss_gets_its_fallback)
{
    static const struct ls_field fields[] = {
        {"whole", LS_FIELD_INT, AT(whole), .presence = LS_MAY_MISS,
         .fallback = 3},
        {"figure", LS_FIELD_DOUBLE, AT(figure), .presence = LS_MAY_MISS,
         .fallback = -0.5},
        {"truth", LS_FIELD_BOOL, AT(truth), .presence = LS_MAY_MISS,
         .fallback = 1}};
    struct ls_record record = {.name = "r",
                               .size = sizeof(struct all),
                               .fields = fields,
                               .n_fields = N_OF(fields)};
    struct all out;
    assert_ok(ls_record_decode(&record, &out, "\x80", 1, NULL));
    assert_true(out.whole == 3 && out.figure == -0.5 && out.truth);
    /* One that is open passes over what it does not know. */
    static const char more[] = "\x82\xa1x\x90\xa5whole\x04";
    assert_fails(ls_record_decode(&record, &out, more, sizeof more - 1, NULL),
                 LS_EPROTO);
    record.open = true;
    assert_ok(ls_record_decode(&record, &out, more, sizeof more - 1, NULL));
    assert_int_equal(out.whole, 4);
}

TEST(reading_into_a_struct_leaves_its_other_fields)
{
    struct all in = example(), out = example();
    struct bytes bytes = written(&all_record, &in);
    ls_document *document = NULL;
    assert_ok(ls_document_read(&document, bytes.data, bytes.size, NULL));
    assert_ok(
        ls_record_read_into(&all_record, &out, ls_document_root(document)));
    assert_int_equal(out.unseen, 13);
    assert_int_equal(out.n_own, 1); /* what was owned before has been freed */
    ls_document_destroy(&document);
    ls_writer_destroy(&bytes.writer);
    ls_record_clear(&all_record, &in);
    ls_record_clear(&all_record, &out);
}

TEST(a_string_is_borrowed_from_its_document)
{
    static const struct ls_field field = {"s", LS_FIELD_STRING, .offset = 0};
    const struct ls_record record = {"r", sizeof(char *), &field,
                                     1,   false,          NULL};
    struct bytes bytes = of_json("{s: hello}");
    ls_document *document = NULL;
    const char *text = NULL;
    assert_ok(ls_document_read(&document, bytes.data, bytes.size, NULL));
    assert_ok(ls_record_read(&record, &text, ls_document_root(document)));
    assert_string_equal(text, "hello");
    struct bytes again = written(&record, &text);
    assert_int_equal(again.size, bytes.size);
    assert_memory_equal(again.data, bytes.data, bytes.size);
    ls_writer_destroy(&again.writer);
    ls_document_destroy(&document);
    ls_writer_destroy(&bytes.writer);
}

/* Printing ---------------------------------------------------------------- */

TEST(it_prints_as_text_and_as_json)
{
    static const char expected[] =
        "truth=true whole=-5 real=0.25 figure=nan text=\"émile\" "
        "bytes=<2 bytes> numbers=[-9223372036854775808] items=<1 items> "
        "natural=18446744073709551615 small=4294967295 chars=\"seven77\" "
        "block={\"binary\":4} part={\"n\":2,\"name\":\"one\"} "
        "parts=[{\"n\":4,\"name\":\"two\"},{\"n\":6,\"name\":\"\"}] "
        "own=[{\"n\":8,\"name\":\"own\"}] point={\"binary\":8} extra=9 "
        "with=10 without=11 may_miss=12 if_set=\"set\"";
    struct all all = example();
    char text[1024];
    assert_int_equal(ls_record_print(&all_record, &all, text, sizeof text),
                     sizeof expected - 1);
    assert_string_equal(text, expected);
    assert_int_equal(ls_record_print(&all_record, &all, text, 16),
                     sizeof expected - 1);
    assert_string_equal(text, "truth=true whol");
    ls_record_clear(&all_record, &all);

    struct bytes bytes = written(&part_record, &(struct part){2, "ab"});
    ls_document *document = NULL;
    assert_ok(ls_document_read(&document, bytes.data, bytes.size, NULL));
    (void)ls_value_print(ls_document_root(document), text, sizeof text);
    assert_string_equal(text, "{\"n\":2,\"name\":\"ab\"}");
    ls_document_destroy(&document);
    ls_writer_destroy(&bytes.writer);
}
