#include "group_wire.h"

#include "fixed_form.h"

#define WIRE_VERSION 1

#define BIT_AGAIN 1u
#define BIT_PAIR  2u
#define BIT_FORM  4u
#define BIT_DATA  8u

/* Fields of each kind, in the order in which they are written. */
#define COMMIT_ARRAY 0x97 /* fixarray of 7 */
#define WANT_ARRAY   0x99
#define DATA_ARRAY   0x98
#define END_ARRAY    0x98
#define FORM_FIELDS  0x97

#define DATA_MAX UINT32_MAX

static unsigned char *write_form(unsigned char *at,
                                 const struct group_form *form)
{
    *at++ = FORM_FIELDS;
    *at++ = (unsigned char)form->kind;
    *at++ = (unsigned char)form->type;
    *at++ = (unsigned char)form->fold;
    *at++ = form->any ? 1 : 0;
    at = fixed_write_u32(at, form->root);
    at = fixed_write_u64(at, form->count);
    return fixed_write_string(at, form->name, strlen(form->name));
}

static unsigned char *write_data(unsigned char *at, size_t size)
{
    *at++ = FORM_BIN32;
    return fixed_put_u32(at, (uint32_t)size);
}

static unsigned char array_of(enum group_message_kind kind)
{
    switch (kind) {
    case GROUP_COMMIT:
        return COMMIT_ARRAY;
    case GROUP_WANT:
        return WANT_ARRAY;
    case GROUP_DATA:
        return DATA_ARRAY;
    case GROUP_END:
        break;
    }
    return END_ARRAY;
}

size_t group_wire_encode(const struct group_message *message,
                         unsigned char out[GROUP_WIRE_HEAD_MAX])
{
    unsigned char *at = out;
    *at++ = array_of(message->kind);
    *at++ = WIRE_VERSION;
    *at++ = (unsigned char)message->kind;
    *at++ = (unsigned char)((message->again ? BIT_AGAIN : 0u) |
                            (message->pair ? BIT_PAIR : 0u) |
                            (message->has_form ? BIT_FORM : 0u) |
                            (message->has_data ? BIT_DATA : 0u));
    at = fixed_write_u64(at, message->generation);
    if (message->kind == GROUP_COMMIT) {
        at = fixed_write_binary(at, message->commit, message->commit_size);
        if (message->has_form)
            at = write_form(at, &message->form);
        else
            *at++ = FORM_NIL;
        if (message->has_data)
            at = write_data(at, message->data_size);
        else
            *at++ = FORM_NIL;
        return (size_t)(at - out);
    }
    at = fixed_write_u64(at, message->number);
    at = fixed_write_u32(at, message->lane);
    if (message->kind == GROUP_END) {
        at = fixed_write_32(at, FORM_INT32, (uint32_t)message->status);
        at = fixed_write_string(at, message->text, message->text_size);
        return (size_t)(at - out);
    }
    at = fixed_write_u64(at, message->have);
    if (message->kind == GROUP_DATA)
        return (size_t)(write_data(at, message->data_size) - out);
    at = fixed_write_u64(at, message->upto);
    return (size_t)(write_form(at, &message->form) - out);
}

static void read_form(struct fixed_reader *in, struct group_form *form)
{
    size_t size;
    fixed_expect(in, FORM_FIELDS);
    const uint32_t kind = fixed_take_byte(in);
    const uint32_t type = fixed_take_byte(in);
    const uint32_t fold = fixed_take_byte(in);
    const uint32_t any = fixed_take_byte(in);
    form->root = fixed_read_u32(in);
    form->count = fixed_read_u64(in);
    const char *name = fixed_read_string(in, LS_GROUP_NAME_MAX, &size);
    if (in->bad || kind > LS_GROUP_RECEIVE || type > LS_GROUP_I64 ||
        fold > LS_GROUP_MAX || any > 1) {
        in->bad = true;
        return;
    }
    form->kind = (enum ls_group_kind)kind;
    form->type = (enum ls_group_type)type;
    form->fold = (enum ls_group_fold)fold;
    form->any = any == 1;
    /* It appears in texts. */
    for (size_t i = 0; i < size; i++) {
        if (name[i] < ' ' || name[i] > '~')
            in->bad = true;
    }
    memcpy(form->name, name, size);
    form->name[size] = '\0';
}

static int read_status(struct fixed_reader *in)
{
    fixed_expect(in, FORM_INT32);
    const uint32_t bits = fixed_take_u32(in);
    if (bits != 0 && bits <= INT32_MAX)
        in->bad = true;
    return bits <= INT32_MAX ? (int)bits : -(int)(UINT32_MAX - bits) - 1;
}

static void read_commit(struct fixed_reader *in, struct group_message *message)
{
    message->commit = fixed_read_binary(in, UINT16_MAX, &message->commit_size);
    if (message->has_form)
        read_form(in, &message->form);
    else
        fixed_expect(in, FORM_NIL);
    if (message->has_data)
        message->data = fixed_read_binary32(in, DATA_MAX, &message->data_size);
    else
        fixed_expect(in, FORM_NIL);
}

static void read_rest(struct fixed_reader *in, struct group_message *message)
{
    message->number = fixed_read_u64(in);
    message->lane = fixed_read_u32(in);
    switch (message->kind) {
    case GROUP_WANT:
        message->have = fixed_read_u64(in);
        message->upto = fixed_read_u64(in);
        read_form(in, &message->form);
        break;
    case GROUP_DATA:
        message->have = fixed_read_u64(in);
        message->data = fixed_read_binary32(in, DATA_MAX, &message->data_size);
        break;
    case GROUP_END:
        message->status = read_status(in);
        message->text =
            fixed_read_string(in, GROUP_WIRE_TEXT_MAX, &message->text_size);
        break;
    case GROUP_COMMIT:
        break;
    }
}

/* Which bits each kind may have. */
static uint32_t bits_of(enum group_message_kind kind)
{
    switch (kind) {
    case GROUP_COMMIT:
        return BIT_FORM | BIT_DATA;
    case GROUP_WANT:
        return BIT_AGAIN | BIT_PAIR;
    case GROUP_DATA:
        return BIT_PAIR;
    case GROUP_END:
        break;
    }
    return BIT_PAIR;
}

int group_wire_decode(const void *bytes, size_t size, struct group_message *out)
{
    struct group_message message = {.text = ""};
    struct fixed_reader in = {.at = bytes};
    if (size == 0)
        return ls_error(LS_EPROTO, "group message: no bytes");
    in.end = in.at + size;
    const uint32_t array = fixed_take_byte(&in);
    const uint32_t version = fixed_take_byte(&in);
    const uint32_t kind = fixed_take_byte(&in);
    const uint32_t bits = fixed_take_byte(&in);
    if (version != WIRE_VERSION)
        return ls_error(LS_EPROTO,
                        "group message: version %u, this node speaks %d; run "
                        "the same lockstep everywhere",
                        (unsigned)version, WIRE_VERSION);
    if (kind < GROUP_COMMIT || kind > GROUP_END ||
        array != array_of((enum group_message_kind)kind) ||
        (bits & ~bits_of((enum group_message_kind)kind)) != 0)
        return ls_error(LS_EPROTO, "group message: %zu malformed bytes", size);
    message.kind = (enum group_message_kind)kind;
    message.again = (bits & BIT_AGAIN) != 0;
    message.pair = (bits & BIT_PAIR) != 0;
    message.has_form = (bits & BIT_FORM) != 0;
    message.has_data = (bits & BIT_DATA) != 0;
    message.generation = fixed_read_u64(&in);
    if (message.kind == GROUP_COMMIT)
        read_commit(&in, &message);
    else
        read_rest(&in, &message);
    if (in.bad || in.at != in.end ||
        (message.kind == GROUP_WANT && message.have > message.upto))
        return ls_error(LS_EPROTO, "group message: %zu malformed bytes", size);
    *out = message;
    return LS_OK;
}
