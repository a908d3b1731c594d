#include "tape_format.h"

#include <string.h>

static void put(unsigned char *at, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get(const unsigned char *at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

void tape_put32(unsigned char *at, uint32_t value)
{
    put(at, value, 4);
}

void tape_put64(unsigned char *at, uint64_t value)
{
    put(at, value, 8);
}

uint32_t tape_get32(const unsigned char *at)
{
    return (uint32_t)get(at, 4);
}

uint64_t tape_get64(const unsigned char *at)
{
    return get(at, 8);
}

void tape_head_write(unsigned char out[TAPE_HEAD], const struct tape_head *head)
{
    out[0] = head->kind;
    out[1] = 0;
    put(out + 2, head->name_size, 2);
    put(out + 4, head->peer, 4);
    put(out + 8, head->size, 8);
    put(out + 16, head->hash, 8);
}

bool tape_head_read(struct tape_head *out, const unsigned char *data,
                    size_t size, uint64_t *length)
{
    if (size < TAPE_HEAD)
        return false;
    *out = (struct tape_head){.kind = data[0],
                              .name_size = (uint16_t)get(data + 2, 2),
                              .peer = (uint32_t)get(data + 4, 4),
                              .size = get(data + 8, 8),
                              .hash = get(data + 16, 8)};
    const size_t rest = size - TAPE_HEAD;
    const uint64_t data_size = out->kind == TAPE_EMITS ? out->size : 0;
    if (out->kind < TAPE_EMITS || out->kind > TAPE_END || data[1] != 0 ||
        out->name_size > rest || data_size > rest - out->name_size)
        return false;
    *length = TAPE_HEAD + out->name_size + data_size;
    return true;
}

/* ---- the map ------------------------------------------------------------- */

#define AT(member)      offsetof(struct tape_about, member)
#define NODE_AT(member) offsetof(struct tape_node, member)
#define MOST_NODES      1048576

static const struct ls_field node_fields[] = {
    {.name = "id", .type = LS_FIELD_UINT32, .offset = NODE_AT(id)},
    {.name = "role",
     .type = LS_FIELD_CHARS,
     .offset = NODE_AT(role),
     .size = 64},
    {.name = "bytes", .type = LS_FIELD_UINT, .offset = NODE_AT(bytes)},
    {.name = "whole", .type = LS_FIELD_BOOL, .offset = NODE_AT(whole)},
};
static const struct ls_record node_record = {.name = "a node of a recording",
                                             .size = sizeof(struct tape_node),
                                             .fields = node_fields,
                                             .n_fields = 4};
static const struct ls_field node_item = {
    .name = "node", .type = LS_FIELD_RECORD, .record = &node_record};

static const struct ls_field set_fields[] = {
    {.name = "path",
     .type = LS_FIELD_TEXT,
     .offset = offsetof(struct tape_set, path)},
    {.name = "value",
     .type = LS_FIELD_TEXT,
     .offset = offsetof(struct tape_set, value)},
};
static const struct ls_record set_record = {.name =
                                                "an override of a recording",
                                            .size = sizeof(struct tape_set),
                                            .fields = set_fields,
                                            .n_fields = 2};
static const struct ls_field set_item = {
    .name = "set", .type = LS_FIELD_RECORD, .record = &set_record};

static const struct ls_field fields[] = {
    {.name = "lockstep",
     .type = LS_FIELD_CHARS,
     .offset = AT(lockstep),
     .size = 32},
    {.name = "config", .type = LS_FIELD_TEXT, .offset = AT(config)},
    {.name = "text", .type = LS_FIELD_TEXT, .offset = AT(text)},
    {.name = "seed", .type = LS_FIELD_TEXT, .offset = AT(seed)},
    {.name = "plugin", .type = LS_FIELD_UINT, .offset = AT(plugin)},
    {.name = "done", .type = LS_FIELD_BOOL, .offset = AT(done)},
    {.name = "sets",
     .type = LS_FIELD_LIST,
     .offset = AT(sets),
     .own = true,
     .item = &set_item,
     .count = AT(n_sets),
     .most = 64},
    {.name = "nodes",
     .type = LS_FIELD_LIST,
     .offset = AT(nodes),
     .own = true,
     .item = &node_item,
     .count = AT(n_nodes),
     .least = 1,
     .most = MOST_NODES},
};
const struct ls_record tape_about_record = {.name = "the map of a recording",
                                            .size = sizeof(struct tape_about),
                                            .fields = fields,
                                            .n_fields = sizeof fields /
                                                        sizeof fields[0]};

void tape_about_clear(struct tape_about *about)
{
    ls_record_clear(&tape_about_record, about);
}
