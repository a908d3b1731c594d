/* Design notes:
 *
 * - libFuzzer changes bytes. In msgpack a text, a binary or a list that gets
 *   longer or shorter needs another count before it as well, so what it makes
 * is mostly cut short or has bytes left over, and goes no further than the
 * check that says so. Here one value of the tree is changed, with its count.
 * - Only counts precede: what holds a value need not be told of its size. */
#include "fuzz.h"

#include "lockstep/random.h"

enum { VALUES_MAX = 512, DEPTH_MAX = 32, BYTES_MAX = 1 << 16 };

enum kind { SCALAR, BYTES, ARRAY, MAP };

struct value {
    enum kind kind;
    size_t at, body, end; /* body: behind the form and the count */
    uint32_t n;           /* bytes, items or pairs */
};

struct tree {
    const uint8_t *data;
    size_t size, at;
    struct value values[VALUES_MAX]; /* a value before those in it */
    size_t n;
};

/* What a form says: how long the value's first part is, and where in it there
 * is a count. */
struct form {
    enum kind kind;
    size_t count_bytes; /* behind the first; 0: the first has it */
    size_t bytes;       /* of a scalar, behind the first */
    uint8_t mask;       /* of a count in the first */
};

static bool form_of(uint8_t first, struct form *out)
{
    static const struct form others[32] = {
        [0x00] = {SCALAR, 0, 0, 0}, [0x02] = {SCALAR, 0, 0, 0},
        [0x03] = {SCALAR, 0, 0, 0}, [0x04] = {BYTES, 1, 0, 0},
        [0x05] = {BYTES, 2, 0, 0},  [0x06] = {BYTES, 4, 0, 0},
        [0x0a] = {SCALAR, 0, 4, 0}, [0x0b] = {SCALAR, 0, 8, 0},
        [0x0c] = {SCALAR, 0, 1, 0}, [0x0d] = {SCALAR, 0, 2, 0},
        [0x0e] = {SCALAR, 0, 4, 0}, [0x0f] = {SCALAR, 0, 8, 0},
        [0x10] = {SCALAR, 0, 1, 0}, [0x11] = {SCALAR, 0, 2, 0},
        [0x12] = {SCALAR, 0, 4, 0}, [0x13] = {SCALAR, 0, 8, 0},
        [0x19] = {BYTES, 1, 0, 0},  [0x1a] = {BYTES, 2, 0, 0},
        [0x1b] = {BYTES, 4, 0, 0},  [0x1c] = {ARRAY, 2, 0, 0},
        [0x1d] = {ARRAY, 4, 0, 0},  [0x1e] = {MAP, 2, 0, 0},
        [0x1f] = {MAP, 4, 0, 0}};
    if (first < 0x80 || first >= 0xe0)
        *out = (struct form){SCALAR, 0, 0, 0};
    else if (first < 0x90)
        *out = (struct form){MAP, 0, 0, 0x0f};
    else if (first < 0xa0)
        *out = (struct form){ARRAY, 0, 0, 0x0f};
    else if (first < 0xc0)
        *out = (struct form){BYTES, 0, 0, 0x1f};
    else
        *out = others[first - 0xc0];
    return first != 0xc1 && !(first >= 0xc7 && first <= 0xc9) &&
           !(first >= 0xd4 && first <= 0xd8);
}

/* Read the value at tree->at, with all in it. */
static bool read_value(struct tree *tree, int depth)
{
    struct form form;
    if (tree->at == tree->size || tree->n == VALUES_MAX || depth == 0 ||
        !form_of(tree->data[tree->at], &form) ||
        tree->size - tree->at - 1 < form.count_bytes + form.bytes)
        return false;
    struct value *const value = &tree->values[tree->n++];
    *value = (struct value){.kind = form.kind, .at = tree->at};
    value->n = tree->data[tree->at++] & form.mask;
    for (size_t i = 0; i < form.count_bytes; i++)
        value->n = value->n << 8 | tree->data[tree->at++];
    value->body = tree->at;
    tree->at += form.bytes;
    if (value->kind == BYTES && value->n > tree->size - tree->at)
        return false;
    if (value->kind == BYTES)
        tree->at += value->n;
    const uint64_t items = value->kind == MAP     ? 2 * (uint64_t)value->n
                           : value->kind == ARRAY ? value->n
                                                  : 0;
    for (uint64_t i = 0; i < items; i++)
        if (!read_value(tree, depth - 1))
            return false;
    value->end = tree->at;
    return true;
}

/* Bytes that are being put together. */
struct made {
    uint8_t bytes[BYTES_MAX];
    size_t n;
    bool full;
};

static void add(struct made *made, const void *data, size_t size)
{
    made->full = made->full || size > sizeof made->bytes - made->n;
    if (made->full)
        return;
    if (size > 0)
        memcpy(made->bytes + made->n, data, size);
    made->n += size;
}

/* The form and the count of a value; the form that it had, if that can be. */
static void add_head(struct made *made, uint8_t first, enum kind kind,
                     uint32_t n)
{
    static const uint8_t wider[] = {0, 0xdb, 0xdd, 0xdf};
    struct form form;
    (void)form_of(first, &form);
    if (n > form.mask &&
        (form.mask != 0 ||
         (form.count_bytes < 4 && n >> (8 * form.count_bytes) != 0))) {
        first = first >= 0xc4 && first <= 0xc6 ? 0xc6 : wider[kind];
        (void)form_of(first, &form);
    }
    const uint8_t head = (uint8_t)((first & ~form.mask) | (form.mask & n));
    add(made, &head, 1);
    for (size_t i = form.count_bytes; i-- > 0;) {
        const uint8_t byte = (uint8_t)(n >> (8 * i));
        add(made, &byte, 1);
    }
}

static size_t below(struct ls_rng *rng, size_t n)
{
    return n == 0 ? 0 : (size_t)ls_rng_below(rng, n);
}

/* Longer or shorter, by what is in it. */
static void resize_bytes(struct made *made, const struct tree *tree,
                         const struct value *value, struct ls_rng *rng)
{
    const uint8_t *const body = tree->data + value->body;
    const uint32_t kept = (uint32_t)below(rng, (size_t)value->n + 1);
    uint32_t more = 0;
    if (below(rng, 2) == 0)
        more = (uint32_t)below(rng, below(rng, 8) == 0 ? 2000 : 32);
    const uint32_t rest = more > 0 ? value->n - kept : 0;
    add_head(made, tree->data[value->at], BYTES, kept + more + rest);
    add(made, body, kept);
    for (uint32_t i = 0; i < more; i++) {
        const uint8_t byte =
            value->n > 0 ? body[i % value->n] : (uint8_t)('a' + i % 26);
        add(made, &byte, 1);
    }
    add(made, body + kept, rest);
}

/* The values in a list begin behind it in the tree: the index of its item. */
static size_t item_at(const struct tree *tree, size_t list, size_t item)
{
    size_t at = list + 1;
    for (; item > 0; item--) {
        const size_t end = tree->values[at].end;
        while (at < tree->n && tree->values[at].at < end)
            at++;
    }
    return at;
}

/* A key may not come twice: this one gets a byte of its own. */
static void add_key(struct made *made, const struct tree *tree,
                    const struct value *key, uint32_t number)
{
    const uint8_t byte = (uint8_t)('A' + number % 58);
    if (key->kind != BYTES) {
        add(made, tree->data + key->at, key->end - key->at);
        return;
    }
    add_head(made, tree->data[key->at], BYTES, key->n + 1);
    add(made, tree->data + key->body, key->n);
    add(made, &byte, 1);
}

/* An item, or a pair, goes; or comes again, once or many times. */
static void resize_list(struct made *made, const struct tree *tree, size_t list,
                        struct ls_rng *rng)
{
    const struct value *const value = &tree->values[list];
    const size_t each = value->kind == MAP ? 2 : 1;
    const size_t item = item_at(tree, list, each * below(rng, value->n));
    const struct value *const first = &tree->values[item];
    const struct value *const last =
        &tree->values[each == 2 ? item_at(tree, item - 1, 1) : item];
    uint32_t times = 0;
    if (below(rng, 3) > 0)
        times = 1 + (uint32_t)below(rng, below(rng, 8) == 0 ? 600 : 24);
    add_head(made, tree->data[value->at], value->kind,
             times == 0 ? value->n - 1 : value->n + times);
    add(made, tree->data + value->body, first->at - value->body);
    if (times > 0)
        add(made, tree->data + first->at, last->end - first->at);
    for (uint32_t i = 0; i < times; i++) {
        if (each == 2)
            add_key(made, tree, first, i);
        if (each == 2)
            add(made, tree->data + last->at, last->end - last->at);
        else
            add(made, tree->data + first->at, first->end - first->at);
    }
    add(made, tree->data + last->end, value->end - last->end);
}

/* Another of the tree, or one that is the first or last of its kind. */
static void replace(struct made *made, const struct tree *tree,
                    struct ls_rng *rng)
{
    static const struct {
        uint8_t n;
        char bytes[10];
    } ends[] = {{1, "\xc0"},
                {1, "\xc2"},
                {1, "\xc3"},
                {1, "\x00"},
                {1, "\x01"},
                {1, "\xff"},
                {1, "\xa0"},
                {2, "\xc4\x00"},
                {1, "\x80"},
                {1, "\x90"},
                {5, "\xce\xff\xff\xff\xff"},
                {9, "\xcf\xff\xff\xff\xff\xff\xff\xff\xff"},
                {9, "\xcf\x7f\xff\xff\xff\xff\xff\xff\xff"},
                {9, "\xd3\x80\x00\x00\x00\x00\x00\x00\x00"},
                {9, "\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00"},
                {9, "\xcb\xff\xf0\x00\x00\x00\x00\x00\x00"},
                {9, "\xcb\x80\x00\x00\x00\x00\x00\x00\x00"},
                {9, "\xcb\x7f\xef\xff\xff\xff\xff\xff\xff"}};
    const struct value *const other = &tree->values[below(rng, tree->n)];
    const size_t end = below(rng, sizeof ends / sizeof ends[0]);
    if (below(rng, 3) == 0)
        add(made, tree->data + other->at, other->end - other->at);
    else
        add(made, ends[end].bytes, ends[end].n);
}

static void change(struct made *made, const struct tree *tree,
                   struct ls_rng *rng)
{
    const size_t chosen = below(rng, tree->n);
    const struct value *const value = &tree->values[chosen];
    const bool resize = below(rng, 4) > 0;
    add(made, tree->data, value->at);
    if (resize && value->kind == BYTES)
        resize_bytes(made, tree, value, rng);
    else if (resize && value->kind != SCALAR && value->n > 0)
        resize_list(made, tree, chosen, rng);
    else
        replace(made, tree, rng);
    add(made, tree->data + value->end, tree->size - value->end);
}

size_t fuzz_mutate(uint8_t *data, size_t size, size_t max_size, unsigned seed,
                   size_t skip)
{
    static struct tree tree;
    static struct made made;
    struct ls_rng rng;
    ls_rng_seed(&rng, seed, 0);
    tree = (struct tree){.data = data + skip, .size = size - skip};
    made.n = 0;
    made.full = false;
    if (size <= skip || below(&rng, 3) == 0 || !read_value(&tree, DEPTH_MAX))
        return LLVMFuzzerMutate(data, size, max_size);
    change(&made, &tree, &rng);
    if (made.full || made.n > max_size - skip)
        return LLVMFuzzerMutate(data, size, max_size);
    memcpy(data + skip, made.bytes, made.n);
    return skip + made.n;
}

size_t fuzz_mutate_frames(uint8_t *data, size_t size, size_t max_size,
                          unsigned seed, size_t skip)
{
    struct ls_rng rng;
    size_t at = 0, n = 0, length = 0;
    ls_rng_seed(&rng, seed, 1);
    for (size_t i = 0, next = 0; size >= 2 && next <= size - 2; i++) {
        const size_t wanted = (size_t)data[next] << 8 | data[next + 1];
        const size_t left = size - next - 2;
        if (below(&rng, i + 1) == 0) {
            at = next + 2;
            length = wanted < left ? wanted : left;
            n++;
        }
        next += 2 + (wanted < left ? wanted : left);
    }
    const size_t room = max_size - (size - length);
    if (n == 0 || room == 0 || below(&rng, 4) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    uint8_t *const frame = malloc(max_size);
    must(frame != NULL);
    memcpy(frame, data + at, length);
    const size_t now = fuzz_mutate(
        frame, length, room < UINT16_MAX ? room : UINT16_MAX, seed, skip);
    memmove(data + at + now, data + at + length, size - at - length);
    memcpy(data + at, frame, now);
    data[at - 2] = (uint8_t)(now >> 8);
    data[at - 1] = (uint8_t)now;
    free(frame);
    return size - length + now;
}
