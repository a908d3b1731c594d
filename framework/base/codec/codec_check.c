/* Whether bytes are msgpack, within limits, before the library reads them. The
 * library reserves 24 bytes for each item that an array's header promises,
 * before it looks for them. So this pass counts first: it holds what is still
 * due on each level, and believes a count only as far as there are bytes left,
 * one at least for each value. */
#include "lockstep/codec.h"

#include "codec_depth.h"

enum shape {
    SHAPE_VALUE, /* `size` bytes follow */
    SHAPE_RAW,   /* the next `size` bytes tell how many follow them */
    SHAPE_ARRAY, /* the next `size` bytes tell how many values follow */
    SHAPE_MAP,   /* the next `size` bytes tell how many pairs follow */
    SHAPE_EXT,
    SHAPE_UNUSED
};

struct format {
    enum shape shape;
    unsigned size;
};

/* What a first byte from 0xc0 to 0xdf says of what comes next. */
static const struct format formats[] = {
    {SHAPE_VALUE, 0},  /* c0 nil */
    {SHAPE_UNUSED, 0}, /* c1 */
    {SHAPE_VALUE, 0},
    {SHAPE_VALUE, 0}, /* c2 false, true */
    {SHAPE_RAW, 1},
    {SHAPE_RAW, 2},
    {SHAPE_RAW, 4}, /* c4 binary */
    {SHAPE_EXT, 0},
    {SHAPE_EXT, 0},
    {SHAPE_EXT, 0}, /* c7 ext */
    {SHAPE_VALUE, 4},
    {SHAPE_VALUE, 8}, /* ca float, double */
    {SHAPE_VALUE, 1},
    {SHAPE_VALUE, 2},
    {SHAPE_VALUE, 4},
    {SHAPE_VALUE, 8},
    /* above: cc unsigned; below: d0 signed */
    {SHAPE_VALUE, 1},
    {SHAPE_VALUE, 2},
    {SHAPE_VALUE, 4},
    {SHAPE_VALUE, 8},
    {SHAPE_EXT, 0},
    {SHAPE_EXT, 0},
    {SHAPE_EXT, 0}, /* d4 fixed ext */
    {SHAPE_EXT, 0},
    {SHAPE_EXT, 0},
    {SHAPE_RAW, 1},
    {SHAPE_RAW, 2},
    {SHAPE_RAW, 4}, /* d9 string */
    {SHAPE_ARRAY, 2},
    {SHAPE_ARRAY, 4}, /* dc array */
    {SHAPE_MAP, 2},
    {SHAPE_MAP, 4}, /* de map */
};
_Static_assert(sizeof formats / sizeof *formats == 32, "c0 to df");

struct scan {
    const unsigned char *bytes;
    size_t size;
    size_t at;
};

/* A value's head: so many bytes to skip, or so many values to come. */
struct head {
    uint64_t n_bytes;
    uint64_t n_values;
    bool holds_values;
};

static struct head head_of_short(unsigned char first)
{
    if (first >= 0xA0 && first <= 0xBF)
        return (struct head){.n_bytes = first & 0x1F};
    if (first >= 0x90 && first <= 0x9F)
        return (struct head){.n_values = first & 0x0F, .holds_values = true};
    if (first >= 0x80 && first <= 0x8F)
        return (struct head){.n_values = (first & 0x0F) * UINT64_C(2),
                             .holds_values = true};
    return (struct head){0};
}

static int cut_short(const struct scan *scan, size_t start)
{
    return ls_error(LS_EPROTO,
                    "the value at byte %zu is cut short: there are %zu bytes",
                    start, scan->size);
}

static int read_head(struct scan *scan, struct head *out)
{
    const size_t start = scan->at;
    if (start >= scan->size)
        return ls_error(LS_EPROTO, "a value is missing at byte %zu, the end",
                        start);
    const unsigned char first = scan->bytes[scan->at++];
    if (first < 0xC0 || first > 0xDF) {
        *out = head_of_short(first);
        return LS_OK;
    }
    const struct format format = formats[first - 0xC0];
    if (format.shape == SHAPE_EXT || format.shape == SHAPE_UNUSED)
        return ls_error(LS_EPROTO, "byte %zu, 0x%02x, begins %s", start, first,
                        format.shape == SHAPE_EXT
                            ? "an ext value; only plain values are taken"
                            : "no value");
    *out = (struct head){.n_bytes = format.size};
    if (format.shape == SHAPE_VALUE)
        return LS_OK;

    if (scan->size - scan->at < format.size)
        return cut_short(scan, start);
    uint64_t count = 0;
    for (unsigned i = 0; i < format.size; i++)
        count = count << 8 | scan->bytes[scan->at++];
    *out = (struct head){0};
    if (format.shape == SHAPE_RAW) {
        out->n_bytes = count;
    } else {
        out->n_values = format.shape == SHAPE_MAP ? 2 * count : count;
        out->holds_values = true;
    }
    return LS_OK;
}

/* Read the values of one root, the innermost level that has some due first. */
static int scan_values(struct scan *scan, const struct ls_codec_limits *limits)
{
    uint64_t due[LS_CODEC_DEPTH_MAX + 1] = {1};
    uint32_t depth = 0;
    uint32_t n_objects = 0;
    for (;;) {
        while (due[depth] == 0) {
            if (depth == 0)
                return LS_OK;
            depth--;
        }
        due[depth]--;
        const size_t start = scan->at;
        struct head head = {0};
        const int status = read_head(scan, &head);
        if (status != LS_OK)
            return status;
        const size_t left = scan->size - scan->at;
        if (head.n_bytes > left || head.n_values > left)
            return cut_short(scan, start);
        if (n_objects++ >= limits->max_objects)
            return ls_error(LS_ELIMIT, "more than %u values, at byte %zu",
                            limits->max_objects, start);
        scan->at += (size_t)head.n_bytes;
        if (!head.holds_values)
            continue;
        if (depth >= limits->max_depth)
            return ls_error(LS_ELIMIT, "nested over %u levels at byte %zu",
                            limits->max_depth, start);
        due[++depth] = head.n_values;
    }
}

int ls_codec_check(const void *data, size_t size,
                   const struct ls_codec_limits *limits)
{
    const struct ls_codec_limits used =
        limits != NULL ? *limits : LS_CODEC_LIMITS;
    if (used.max_depth > LS_CODEC_DEPTH_MAX)
        return ls_error(LS_EINVAL, "max_depth is %u; %d levels at most",
                        used.max_depth, LS_CODEC_DEPTH_MAX);
    if (size > used.max_bytes)
        return ls_error(LS_ELIMIT, "%zu bytes; the limit is %zu", size,
                        used.max_bytes);

    struct scan scan = {.bytes = data, .size = size};
    const int status = scan_values(&scan, &used);
    if (status != LS_OK)
        return status;
    if (scan.at != size)
        return ls_error(LS_EPROTO, "%zu bytes left over after the value",
                        size - scan.at);
    return LS_OK;
}
