/* record_example.h - a record with a field of each type. */
#ifndef RECORD_EXAMPLE_H
#define RECORD_EXAMPLE_H

#include <math.h>
#include <string.h>

#include "lockstep/record.h"

struct part {
    int64_t n;
    char name[8];
};

struct point {
    float x, y;
};

struct all {
    bool truth;
    int64_t whole;
    double real, figure;
    char *text;
    struct ls_bytes bytes;
    struct ls_numbers numbers;
    struct ls_items items;
    uint64_t natural;
    uint32_t small;
    char chars[8];
    unsigned char block[4];
    size_t n_block;
    struct part part, parts[3];
    size_t n_parts;
    struct part *own; /* own */
    size_t n_own;
    struct point point;
    bool has_extra;
    int64_t extra, with, without, may_miss;
    char if_set[8];
    int64_t unseen; /* not in the table */
};

#define OF(struct_type, member) .offset = offsetof(struct_type, member)
#define AT(member)              OF(struct all, member)
#define N_OF(array)             (sizeof(array) / sizeof(array)[0])

static int check_even(const void *at)
{
    const int64_t n = *(const int64_t *)at;
    return n % 2 == 0 ? LS_OK : ls_error(LS_EPROTO, "it is odd");
}

static const struct ls_field part_fields[] = {
    {"n", LS_FIELD_INT, OF(struct part, n), .check = check_even},
    {"name", LS_FIELD_CHARS, OF(struct part, name), .size = 8},
};

static const struct ls_record part_record = {.name = "a part",
                                             .size = sizeof(struct part),
                                             .fields = part_fields,
                                             .n_fields = N_OF(part_fields)};

static const struct ls_field part_item = {.type = LS_FIELD_RECORD,
                                          .record = &part_record};

static void write_point(const void *at, ls_writer *out)
{
    const struct point *point = at;
    ls_write_floats(out, &point->x, 2);
}

static int read_point(void *at, const ls_value *value)
{
    float values[2];
    const int status = ls_value_floats(value, values, 2);
    if (status == LS_OK)
        *(struct point *)at = (struct point){values[0], values[1]};
    return status;
}

static const struct ls_field_other point_other = {sizeof(struct point),
                                                  write_point, read_point};

static int check_all(const void *data)
{
    const struct all *all = data;
    return (double)all->whole <= all->real
               ? LS_OK
               : ls_error(LS_EPROTO, "whole: it is more than real");
}

static const struct ls_field all_fields[] = {
    {"truth", LS_FIELD_BOOL, AT(truth)},
    {"whole", LS_FIELD_INT, AT(whole), .least = -5, .most = 100},
    {"real", LS_FIELD_DOUBLE, AT(real), .low = -1.5, .high = 1e6},
    {"figure", LS_FIELD_DOUBLE, AT(figure), .nan = true},
    {"text", LS_FIELD_TEXT, AT(text)},
    {"bytes", LS_FIELD_BYTES, AT(bytes), .most = 4},
    {"numbers", LS_FIELD_NUMBERS, AT(numbers)},
    {"items", LS_FIELD_ITEMS, AT(items)},
    {"natural", LS_FIELD_UINT, AT(natural), .least = 1},
    {"small", LS_FIELD_UINT32, AT(small)},
    {"chars", LS_FIELD_CHARS, AT(chars), .size = 8},
    {"block", LS_FIELD_BLOCK, AT(block), .size = 4,
     .count = offsetof(struct all, n_block)},
    {"part", LS_FIELD_RECORD, AT(part), .record = &part_record},
    {"parts", LS_FIELD_LIST, AT(parts), .item = &part_item, .least = 1,
     .most = 3, .count = offsetof(struct all, n_parts)},
    {"own", LS_FIELD_LIST, AT(own), .item = &part_item, .most = 1000,
     .count = offsetof(struct all, n_own), .own = true},
    {"point", LS_FIELD_OTHER, AT(point), .other = &point_other},
    {"extra", LS_FIELD_HAS, AT(has_extra)},
    {"extra", LS_FIELD_INT, AT(extra), .presence = LS_IF_FLAG,
     .flag = offsetof(struct all, has_extra)},
    {"with", LS_FIELD_INT, AT(with), .presence = LS_IF_FLAG,
     .flag = offsetof(struct all, truth)},
    {"without", LS_FIELD_INT, AT(without), .presence = LS_IF_NO_FLAG,
     .flag = offsetof(struct all, truth)},
    {"may_miss", LS_FIELD_INT, AT(may_miss), .presence = LS_MAY_MISS,
     .fallback = -7},
    {"if_set", LS_FIELD_CHARS, AT(if_set), .size = 8, .presence = LS_IF_SET},
};

static const struct ls_record all_record = {.name = "all",
                                            .size = sizeof(struct all),
                                            .fields = all_fields,
                                            .n_fields = N_OF(all_fields),
                                            .check = check_all};

#endif
