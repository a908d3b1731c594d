#include "call_wire.h"

#include <string.h>

#include "fixed_form.h"
#include "wire.h"

#define CALL_WIRE_VERSION 1

/* Values of a message of each kind on the wire, by kind. */
static const unsigned char n_values[] = {0, 8, 4, 5, 5, 6, 4, 9, 6};
#define REQUEST_WITH_BODY   7
#define COMPLETED_WITH_BODY 8

static unsigned kind_of(const struct call_message *message)
{
    if (message->body_size == 0)
        return message->kind;
    return message->kind == CALL_REQUEST ? REQUEST_WITH_BODY
                                         : COMPLETED_WITH_BODY;
}

size_t call_wire_encode(const struct call_message *message, unsigned char *out)
{
    unsigned char *at = out;
    const unsigned kind = kind_of(message);
    *at++ = (unsigned char)(FORM_ARRAY | n_values[kind]);
    *at++ = CALL_WIRE_VERSION;
    *at++ = (unsigned char)kind;
    at = fixed_write_u64(at, message->to);
    at = fixed_write_u64(at, message->number);
    if (message->kind == CALL_REQUEST) {
        at = fixed_write_u32(at, message->left_ms);
        at = fixed_write_u32(at, message->channel);
        at = fixed_write_string(at, message->name, message->name_size);
    }
    if (message->kind == CALL_REFUSED)
        at = fixed_write_u32(at, message->code);
    if (message->body_size != 0)
        at = fixed_write_u32(at, message->body_size);
    if (message->kind == CALL_REQUEST || message->kind == CALL_COMPLETED)
        at = fixed_write_binary32(at, message->data, message->size);
    else if (message->kind == CALL_FAILED || message->kind == CALL_REFUSED)
        at = fixed_write_binary(at, message->text, message->text_size);
    return (size_t)(at - out);
}

static bool is_name(const char *name, size_t size)
{
    char copy[LS_EVENT_MAX + 1];
    if (size > LS_EVENT_MAX)
        return false;
    memcpy(copy, name, size);
    copy[size] = '\0';
    return strlen(copy) == size && wire_name_valid(copy);
}

static void read_rest(struct fixed_reader *in, struct call_message *message,
                      bool with_body)
{
    if (message->kind == CALL_REQUEST) {
        message->left_ms = fixed_read_u32(in);
        message->channel = fixed_read_u32(in);
        message->name =
            fixed_read_string(in, LS_EVENT_MAX, &message->name_size);
        if (in->bad || !is_name(message->name, message->name_size))
            in->bad = true;
    }
    if (message->kind == CALL_REFUSED &&
        ((message->code = fixed_read_u32(in)) == 0 ||
         message->code > INT32_MAX))
        in->bad = true;
    if (with_body && (message->body_size = fixed_read_u32(in)) == 0)
        in->bad = true;
    if (message->kind == CALL_REQUEST || message->kind == CALL_COMPLETED)
        message->data =
            fixed_read_binary32(in, LS_CALL_DATA_MAX, &message->size);
    else if (message->kind == CALL_FAILED || message->kind == CALL_REFUSED)
        message->text =
            fixed_read_binary(in, LS_CALL_TEXT_MAX, &message->text_size);
    if (in->at != in->end)
        in->bad = true;
}

int call_wire_decode(const void *data, size_t size, struct call_message *out)
{
    struct fixed_reader in = {.at = data};
    if (size == 0)
        return ls_error(LS_EPROTO, "message of a call: no bytes");
    in.end = in.at + size;
    const uint32_t form = fixed_take_byte(&in);
    const uint32_t version = fixed_take_byte(&in);
    const uint32_t kind = fixed_take_byte(&in);
    if (version != CALL_WIRE_VERSION)
        return ls_error(LS_EPROTO,
                        "message of a call: version %u, this node speaks %d; "
                        "run the same lockstep everywhere",
                        (unsigned)version, CALL_WIRE_VERSION);
    if (kind < CALL_REQUEST || kind > COMPLETED_WITH_BODY)
        in.bad = true;
    struct call_message message = {
        .kind = kind == REQUEST_WITH_BODY     ? CALL_REQUEST
                : kind == COMPLETED_WITH_BODY ? CALL_COMPLETED
                                              : (enum call_kind)kind,
        .to = fixed_read_u64(&in)};
    message.number = fixed_read_u64(&in);
    if (in.bad || message.number == 0 || message.number > CALL_NUMBER_MAX)
        return ls_error(LS_EPROTO, "message of a call: %zu malformed bytes",
                        size);
    const struct call_message head = message;
    read_rest(&in, &message, kind > CALL_CANCEL);
    const bool bad = in.bad || form != (FORM_ARRAY | (unsigned)n_values[kind]);
    if (bad && message.kind != CALL_REQUEST)
        return ls_error(LS_EPROTO, "message of a call: %zu malformed bytes",
                        size);
    *out = bad ? head : message;
    out->broken = bad;
    return LS_OK;
}
