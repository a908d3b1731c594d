/* A group's messages as bytes. */
#include <stdlib.h>
#include <string.h>

#include "group_wire.h"
#include "test.h"

static const struct group_form form = {.kind = LS_GROUP_ALL_REDUCE,
                                       .type = LS_GROUP_I64,
                                       .fold = LS_GROUP_MAX,
                                       .any = true,
                                       .root = 4294967295u,
                                       .count = UINT64_MAX - 1,
                                       .name =
                                           "thirty-one bytes, and no more!!"};

static const unsigned char commit[] = {1, 2, 3, 4, 5};

static struct group_message example(enum group_message_kind kind)
{
    struct group_message message = {
        .kind = kind, .generation = UINT64_C(1) << 40, .text = ""};
    if (kind == GROUP_COMMIT) {
        message.commit = commit;
        message.commit_size = sizeof commit;
        message.has_form = true;
        message.form = form;
        message.has_data = true;
        message.data = commit;
        message.data_size = sizeof commit;
        return message;
    }
    message.number = 77;
    message.lane = 3;
    message.pair = true;
    if (kind == GROUP_WANT) {
        message.again = true;
        message.have = 5;
        message.upto = UINT64_C(1) << 33;
        message.form = form;
    } else if (kind == GROUP_DATA) {
        message.have = 9;
        message.data = commit;
        message.data_size = sizeof commit;
    } else {
        message.status = LS_EMISMATCH;
        message.text = "rank 0 calls";
        message.text_size = 12;
    }
    return message;
}

static size_t write(const struct group_message *message, unsigned char *out)
{
    const size_t size = group_wire_encode(message, out);
    if (message->data_size > 0)
        memcpy(out + size, message->data, message->data_size);
    return size + message->data_size;
}

static void assert_same(const struct group_message *one,
                        const struct group_message *other)
{
    assert_int_equal(one->kind, other->kind);
    assert_int_equal(one->again, other->again);
    assert_int_equal(one->pair, other->pair);
    assert_int_equal(one->generation, other->generation);
    assert_int_equal(one->number, other->number);
    assert_int_equal(one->lane, other->lane);
    assert_int_equal(one->have, other->have);
    assert_int_equal(one->upto, other->upto);
    assert_int_equal(one->status, other->status);
    assert_int_equal(one->data_size, other->data_size);
    assert_int_equal(one->text_size, other->text_size);
    if (one->kind == GROUP_WANT || one->has_form) {
        assert_true(group_form_is_same(&one->form, &other->form));
        assert_int_equal(one->form.count, other->form.count);
    }
    if (one->data_size > 0)
        assert_memory_equal(one->data, other->data, one->data_size);
    assert_memory_equal(one->text, other->text, one->text_size);
}

TEST(every_kind_is_read_as_it_was_written)
{
    for (int kind = GROUP_COMMIT; kind <= GROUP_END; kind++) {
        const struct group_message message =
            example((enum group_message_kind)kind);
        unsigned char bytes[GROUP_WIRE_HEAD_MAX + 64];
        struct group_message read;
        const size_t size = write(&message, bytes);
        assert_ok(group_wire_decode(bytes, size, &read));
        assert_same(&message, &read);
    }
}

TEST(a_commit_may_carry_neither_form_nor_data)
{
    struct group_message message = example(GROUP_COMMIT), read;
    unsigned char bytes[GROUP_WIRE_HEAD_MAX];
    message.has_form = message.has_data = false;
    message.data_size = 0;
    assert_ok(group_wire_decode(bytes, write(&message, bytes), &read));
    assert_false(read.has_form || read.has_data);
    assert_int_equal(read.commit_size, sizeof commit);
}

TEST(every_cut_and_every_byte_more_is_refused)
{
    for (int kind = GROUP_COMMIT; kind <= GROUP_END; kind++) {
        const struct group_message message =
            example((enum group_message_kind)kind);
        unsigned char bytes[GROUP_WIRE_HEAD_MAX + 64];
        struct group_message read;
        const size_t size = write(&message, bytes);
        bytes[size] = 0;
        assert_int_equal(group_wire_decode(bytes, size + 1, &read), LS_EPROTO);
        for (size_t cut = 0; cut < size; cut++) {
            /* Where nothing lies behind it. */
            unsigned char *exact = malloc(cut + 1);
            memcpy(exact, bytes, cut);
            assert_int_equal(group_wire_decode(exact, cut, &read), LS_EPROTO);
            free(exact);
        }
    }
}

/* What is read of any bytes could have been written. */
TEST(changed_bytes_are_refused_or_read_as_something_else)
{
    for (int kind = GROUP_COMMIT; kind <= GROUP_END; kind++) {
        const struct group_message message =
            example((enum group_message_kind)kind);
        unsigned char bytes[GROUP_WIRE_HEAD_MAX + 64], again[sizeof bytes];
        struct group_message read;
        const size_t size = write(&message, bytes);
        for (size_t i = 0; i < size; i++)
            for (int value = 0; value < 256; value++) {
                const unsigned char was = bytes[i];
                bytes[i] = (unsigned char)value;
                if (group_wire_decode(bytes, size, &read) == LS_OK) {
                    assert_int_equal(write(&read, again), size);
                    assert_memory_equal(again, bytes, size);
                }
                bytes[i] = was;
            }
    }
}

static void assert_refused(struct group_message *message)
{
    unsigned char bytes[GROUP_WIRE_HEAD_MAX + 64];
    struct group_message read;
    assert_int_equal(group_wire_decode(bytes, write(message, bytes), &read),
                     LS_EPROTO);
}

TEST(what_cannot_be_is_refused)
{
    struct group_message message = example(GROUP_WANT);
    message.have = message.upto + 1;
    assert_refused(&message);
    message = example(GROUP_WANT);
    message.form.name[3] = '\n';
    assert_refused(&message);
    message = example(GROUP_END);
    message.status = 1;
    assert_refused(&message);
    message = example(GROUP_DATA);
    message.again = true;
    assert_refused(&message);
}
