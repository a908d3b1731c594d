/* The promises of group.h, for any carrier. */
#include "group_ranks.h"
#include "over.h"

#include <float.h>
#include <math.h>

static uint32_t rank_of(const struct rank *rank)
{
    return ls_group_rank(rank->group);
}

static uint32_t size_of(const struct rank *rank)
{
    return ls_group_size(rank->group);
}

/* What a test of a rank says when it is not as it should be. */
#define EXPECT(condition)                                                      \
    do {                                                                       \
        if (!(condition))                                                      \
            return ls_error(LS_EINVARIANT, "%s:%d: not so: %s", __FILE__,      \
                            __LINE__, #condition);                             \
    } while (0)
#define TRY(call)                                                              \
    do {                                                                       \
        const int tried = (call);                                              \
        if (tried != LS_OK)                                                    \
            return tried;                                                      \
    } while (0)

/* --- each operation ------------------------------------------------------- */

/* What rank brings at place i of an operation of this size. */
static unsigned char byte_of(uint32_t rank, size_t i)
{
    return (unsigned char)(rank * 31 + i * 7 + i / 251 + 3);
}

/* Zeroed. */
static void *get(struct rank *rank, size_t size)
{
    void *memory = NULL;
    if (!rank->allocates)
        return calloc(1, size + 1);
    return ls_group_alloc(rank->group, &memory, size) == LS_OK ? memory : NULL;
}

static void drop(struct rank *rank, void *memory)
{
    if (!rank->allocates)
        free(memory);
    else if (ls_group_free(rank->group, memory) != LS_OK)
        abort();
}

static unsigned char *fill(unsigned char *bytes, uint32_t rank, size_t size)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = byte_of(rank, i);
    return bytes;
}

static unsigned char *bytes_of(uint32_t rank, size_t size)
{
    return fill(malloc(size + 1), rank, size);
}

static bool are_bytes_of(const unsigned char *bytes, uint32_t rank, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != byte_of(rank, i))
            return false;
    return true;
}

static int check_broadcast(struct rank *rank, size_t size, uint32_t root)
{
    unsigned char *data = fill(get(rank, size), rank_of(rank), size);
    const int status =
        ls_group_broadcast(rank->group, data, size, root, RANK_WAIT_MS);
    const bool right = are_bytes_of(data, root, size);
    drop(rank, data);
    TRY(status);
    EXPECT(right);
    return LS_OK;
}

static int check_gathers(struct rank *rank, size_t size, uint32_t root)
{
    const uint32_t n = size_of(rank), own = rank_of(rank);
    unsigned char *data = fill(get(rank, size), own, size);
    unsigned char *all = get(rank, n * size);
    int status =
        ls_group_all_gather(rank->group, data, size, all, RANK_WAIT_MS);
    bool right = true;
    for (uint32_t i = 0; i < n; i++)
        right = right && are_bytes_of(all + i * size, i, size);
    memset(all, 0, n * size);
    if (status == LS_OK)
        status = ls_group_gather(rank->group, data, size,
                                 own == root ? all : NULL, root, RANK_WAIT_MS);
    for (uint32_t i = 0; i < n && own == root; i++)
        right = right && are_bytes_of(all + i * size, i, size);
    /* And back, each to where it came from. */
    memset(data, 0, size);
    if (status == LS_OK)
        status = ls_group_scatter(rank->group, own == root ? all : NULL, size,
                                  data, root, RANK_WAIT_MS);
    right = right && are_bytes_of(data, own, size);
    drop(rank, all);
    drop(rank, data);
    TRY(status);
    EXPECT(right);
    return LS_OK;
}

static int32_t number_of(uint32_t rank, size_t i)
{
    return (int32_t)((rank + 1) * (i % 97 + 1)) - 200;
}

/* What the fold of all ranks is, in numbers that all types hold. */
static int32_t fold_of(enum ls_group_fold fold, uint32_t n, size_t i)
{
    int32_t sum = 0, least = INT32_MAX, most = INT32_MIN;
    for (uint32_t rank = 0; rank < n; rank++) {
        const int32_t number = number_of(rank, i);
        sum += number;
        least = number < least ? number : least;
        most = number > most ? number : most;
    }
    return fold == LS_GROUP_MIN ? least : fold == LS_GROUP_MAX ? most : sum;
}

static void put(enum ls_group_type type, void *numbers, size_t i, int32_t value)
{
    if (type == LS_GROUP_F32)
        ((float *)numbers)[i] = (float)value;
    else if (type == LS_GROUP_F64)
        ((double *)numbers)[i] = (double)value;
    else if (type == LS_GROUP_I32)
        ((int32_t *)numbers)[i] = value;
    else
        ((int64_t *)numbers)[i] = value;
}

static bool is(enum ls_group_type type, enum ls_group_fold fold,
               const void *numbers, size_t at, size_t i, uint32_t n)
{
    const int32_t value = fold_of(fold, n, i);
    const bool mean = fold == LS_GROUP_MEAN;
    if (type == LS_GROUP_F32)
        return ((const float *)numbers)[at] ==
               (mean ? (float)value * (1.0f / (float)n) : (float)value);
    if (type == LS_GROUP_F64)
        return ((const double *)numbers)[at] ==
               (mean ? (double)value * (1.0 / (double)n) : (double)value);
    if (type == LS_GROUP_I32)
        return ((const int32_t *)numbers)[at] ==
               (mean ? value / (int32_t)n : value);
    return ((const int64_t *)numbers)[at] ==
           (mean ? value / (int64_t)n : value);
}

static int check_folds(struct rank *rank, size_t count, enum ls_group_type type,
                       enum ls_group_fold fold)
{
    const uint32_t n = size_of(rank), own = rank_of(rank);
    int64_t *numbers = get(rank, n * count * sizeof *numbers);
    int64_t *share = get(rank, count * sizeof *share);
    bool right = true;
    for (size_t i = 0; i < count; i++)
        put(type, numbers, i, number_of(own, i));
    int status = ls_group_all_reduce(rank->group, numbers, count, type, fold,
                                     RANK_WAIT_MS);
    for (size_t i = 0; i < count; i++)
        right = right && is(type, fold, numbers, i, i, n);
    for (size_t i = 0; i < n * count; i++)
        put(type, numbers, i, number_of(own, i));
    if (status == LS_OK)
        status = ls_group_reduce_scatter(rank->group, numbers, count, type,
                                         fold, share, RANK_WAIT_MS);
    for (size_t i = 0; i < count; i++)
        right = right && is(type, fold, share, i, own * count + i, n);
    drop(rank, share);
    drop(rank, numbers);
    TRY(status);
    EXPECT(right);
    return LS_OK;
}

static int do_each(struct rank *rank, size_t size)
{
    const uint32_t n = size_of(rank);
    TRY(ls_group_barrier(rank->group, RANK_WAIT_MS));
    TRY(check_broadcast(rank, size, 0));
    TRY(check_broadcast(rank, size, n - 1));
    TRY(check_gathers(rank, size, n / 2));
    TRY(check_folds(rank, size, LS_GROUP_F32, LS_GROUP_SUM));
    TRY(check_folds(rank, size, LS_GROUP_F64, LS_GROUP_MEAN));
    TRY(check_folds(rank, size, LS_GROUP_I32, LS_GROUP_MIN));
    TRY(check_folds(rank, size, LS_GROUP_I64, LS_GROUP_MAX));
    return LS_OK;
}

static int do_each_size(struct rank *rank)
{
    static const size_t sizes[] = {0, 1, 8, 1000, 4096, 20001};
    EXPECT(ls_group_generation(rank->group) >= 1);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        TRY(do_each(rank, sizes[i]));
    TRY(check_folds(rank, 33, LS_GROUP_F32, LS_GROUP_MEAN));
    TRY(check_folds(rank, 33, LS_GROUP_I32, LS_GROUP_MEAN));
    TRY(check_folds(rank, 33, LS_GROUP_I64, LS_GROUP_MEAN));
    TRY(check_folds(rank, 33, LS_GROUP_F64, LS_GROUP_MIN));
    return LS_OK;
}

void promise_every_operation_gives_its_result(const struct rank_maker *maker,
                                              uint32_t n)
{
    struct ranks ranks;
    maker->make(&ranks, n);
    ranks_do(&ranks, do_each_size);
    maker->destroy(&ranks);
}

/* --- any sizes ------------------------------------------------------------ */

static size_t size_for(uint32_t rank, size_t scale)
{
    return rank == 1 ? 0 : rank * scale + 3;
}

static int gather_any(struct rank *rank, size_t scale)
{
    const uint32_t n = size_of(rank), own = rank_of(rank);
    struct ls_group_parts parts;
    unsigned char *data = bytes_of(own, size_for(own, scale));
    const struct ls_group_operation operation = {.kind = LS_GROUP_ALL_GATHER,
                                                 .count = size_for(own, scale),
                                                 .in = data,
                                                 .parts = &parts};
    const int status = ls_group_do(rank->group, &operation);
    free(data);
    TRY(status);
    EXPECT(parts.n == n);
    bool right = true;
    for (uint32_t i = 0; i < n; i++)
        right = right && parts.items[i].size == size_for(i, scale) &&
                (uintptr_t)parts.items[i].data % 8 == 0 &&
                are_bytes_of(parts.items[i].data, i, size_for(i, scale));
    ls_group_parts_free(&parts);
    EXPECT(right && parts.items == NULL);
    return LS_OK;
}

static int broadcast_any(struct rank *rank, size_t size)
{
    const uint32_t root = size_of(rank) - 1;
    struct ls_group_parts parts;
    unsigned char *data = bytes_of(root, size);
    const struct ls_group_operation operation = {
        .kind = LS_GROUP_BROADCAST,
        .root = root,
        .count = rank_of(rank) == root ? size : 0,
        .in = data,
        .parts = &parts};
    const int status = ls_group_do(rank->group, &operation);
    free(data);
    TRY(status);
    const bool right = parts.n == 1 && parts.items[0].size == size &&
                       are_bytes_of(parts.items[0].data, root, size);
    ls_group_parts_free(&parts);
    EXPECT(right);
    return LS_OK;
}

static int exchange_values(struct rank *rank)
{
    const uint32_t n = size_of(rank), own = rank_of(rank);
    ls_document *documents[RANKS_MAX];
    ls_document *one = NULL;
    ls_writer *writer;
    int64_t number = -1;
    TRY(ls_writer_create(&writer));
    ls_write_map(writer, 2);
    ls_write_string(writer, "rank");
    ls_write_uint(writer, own);
    ls_write_string(writer, "name");
    ls_write_string(writer, "somebody");
    int status = ls_group_all_gather_object(rank->group, writer, documents,
                                            NULL, RANK_WAIT_MS);
    bool right = true;
    for (uint32_t i = 0; i < n && status == LS_OK; i++) {
        const ls_value *root = ls_document_root(documents[i]);
        right = right &&
                ls_value_int(ls_value_get(root, "rank"), &number) == LS_OK &&
                number == (int64_t)i;
        ls_document_destroy(&documents[i]);
    }
    if (status == LS_OK)
        status =
            ls_group_broadcast_object(rank->group, own == n - 1 ? writer : NULL,
                                      n - 1, &one, NULL, RANK_WAIT_MS);
    if (status == LS_OK)
        right = right &&
                ls_value_int(ls_value_get(ls_document_root(one), "rank"),
                             &number) == LS_OK &&
                number == (int64_t)n - 1;
    ls_document_destroy(&one);
    ls_writer_destroy(&writer);
    TRY(status);
    EXPECT(right);
    return LS_OK;
}

/* Rank 0's writer is incomplete: it says why, the others who brought none. */
static int bring_no_value(struct rank *rank)
{
    const uint32_t own = rank_of(rank);
    ls_document *documents[RANKS_MAX];
    ls_writer *writer;
    TRY(ls_writer_create(&writer));
    if (own != 0)
        ls_write_nil(writer);
    const int status = ls_group_all_gather_object(
        rank->group, writer, documents, NULL, RANK_WAIT_MS);
    ls_writer_destroy(&writer);
    EXPECT(status == (own == 0 ? LS_ESTATE : LS_EPROTO));
    EXPECT(own == 0 || strstr(ls_error_text(), "rank 0") != NULL);
    EXPECT(documents[0] == NULL && documents[size_of(rank) - 1] == NULL);
    return LS_OK;
}

static int bring_nothing(struct rank *rank)
{
    const uint32_t own = rank_of(rank);
    ls_document *document = NULL;
    const int status = ls_group_broadcast_object(rank->group, NULL, 0,
                                                 &document, NULL, RANK_WAIT_MS);
    EXPECT(status == (own == 0 ? LS_EINVAL : LS_EPROTO));
    EXPECT(document == NULL);
    return LS_OK;
}

static int bring_too_much(struct rank *rank)
{
    const struct ls_codec_limits limits = {
        .max_bytes = 4, .max_depth = 4, .max_objects = 4};
    ls_document *document = NULL;
    ls_writer *writer;
    TRY(ls_writer_create(&writer));
    ls_write_string(writer, "longer than that");
    const int status = ls_group_broadcast_object(
        rank->group, writer, 0, &document, &limits, RANK_WAIT_MS);
    ls_writer_destroy(&writer);
    EXPECT(status == LS_ELIMIT);
    EXPECT(strstr(ls_error_text(), "the value of rank 0") != NULL);
    EXPECT(document == NULL);
    return LS_OK;
}

static int do_any(struct rank *rank)
{
    static const size_t scales[] = {0, 1, 700, 30000};
    for (size_t i = 0; i < 4; i++) {
        TRY(gather_any(rank, scales[i]));
        TRY(broadcast_any(rank, scales[i] * 5));
    }
    TRY(exchange_values(rank));
    TRY(bring_no_value(rank));
    TRY(bring_nothing(rank));
    TRY(bring_too_much(rank));
    return exchange_values(rank);
}

void promise_any_sizes_and_values_reach_all(const struct rank_maker *maker,
                                            uint32_t n)
{
    struct ranks ranks;
    maker->make(&ranks, n);
    ranks_do(&ranks, do_any);
    maker->destroy(&ranks);
}

/* --- long ones ------------------------------------------------------------ */

static size_t long_bytes(void)
{
    const char *mebibytes = getenv("MEBIBYTES"); /* 64 at full size */
    return ((size_t)(mebibytes == NULL ? 1 : atoi(mebibytes)) << 20) + 12345;
}

static int do_long(struct rank *rank)
{
    const size_t size = long_bytes();
    TRY(check_broadcast(rank, size, size_of(rank) - 1));
    TRY(check_gathers(rank, size / size_of(rank), 0));
    TRY(check_folds(rank, size / 8 / size_of(rank), LS_GROUP_F32,
                    LS_GROUP_SUM));
    TRY(check_folds(rank, size / 8 / size_of(rank), LS_GROUP_I64,
                    LS_GROUP_MEAN));
    TRY(gather_any(rank, size / size_of(rank)));
    return broadcast_any(rank, size);
}

void promise_long_payloads_arrive_whole(const struct rank_maker *maker,
                                        uint32_t n)
{
    struct ranks ranks;
    maker->make(&ranks, n);
    ranks_do(&ranks, do_long);
    maker->destroy(&ranks);
}

/* --- order ---------------------------------------------------------------- */

/* Numbers whose sum depends on the order in which they are added. */
static float rough(uint32_t rank, size_t i)
{
    return (float)(rank % 2 == 0 ? 1.0e8 : -1.0e8) +
           (float)(rank * 13 + i % 11) * 0.37f;
}

static float rough_sum(uint32_t n, size_t i)
{
    float sum = rough(0, i);
    for (uint32_t rank = 1; rank < n; rank++)
        sum += rough(rank, i);
    return sum;
}

static int sum_rough(struct rank *rank, size_t count)
{
    const uint32_t n = size_of(rank);
    float *numbers = malloc(count * sizeof *numbers);
    for (size_t i = 0; i < count; i++)
        numbers[i] = rough(rank_of(rank), i);
    const int status = ls_group_all_reduce(
        rank->group, numbers, count, LS_GROUP_F32, LS_GROUP_SUM, RANK_WAIT_MS);
    bool right = true;
    for (size_t i = 0; i < count; i++)
        right = right && numbers[i] == rough_sum(n, i);
    free(numbers);
    TRY(status);
    EXPECT(right);
    return LS_OK;
}

/* However long, and so by whichever way. */
static int sum_in_order(struct rank *rank)
{
    TRY(sum_rough(rank, 5));
    TRY(sum_rough(rank, 1024));
    TRY(sum_rough(rank, 20000));
    return sum_rough(rank, 200001);
}

void promise_sums_are_in_the_order_of_ranks(const struct rank_maker *maker,
                                            uint32_t n)
{
    struct ranks ranks;
    maker->make(&ranks, n);
    ranks_do(&ranks, sum_in_order);
    maker->destroy(&ranks);
}

/* --- several at once ---------------------------------------------------- */

enum { N_AT_ONCE = 12, AT_ONCE = 5000 };

/* Each of another length: what is meant for one fits no other. */
static size_t length_at_once(int k)
{
    return k % 3 == 0 ? 3 : AT_ONCE + (size_t)k;
}

static int start_many(struct rank *rank)
{
    ls_collective *started[N_AT_ONCE] = {NULL};
    int64_t *numbers[N_AT_ONCE];
    const uint32_t n = size_of(rank);
    bool right = true;
    int status = LS_OK;
    for (int k = 0; k < N_AT_ONCE; k++) {
        const size_t count = length_at_once(k);
        numbers[k] = malloc(count * sizeof **numbers);
        for (size_t i = 0; i < count; i++)
            numbers[k][i] = (int64_t)(rank_of(rank) + 1) * (k + 1);
        const struct ls_group_operation operation = {.kind =
                                                         LS_GROUP_ALL_REDUCE,
                                                     .name = "many",
                                                     .count = count,
                                                     .type = LS_GROUP_I64,
                                                     .in = numbers[k],
                                                     .out = numbers[k]};
        if (status == LS_OK)
            status = ls_group_start(&started[k], rank->group, &operation);
    }
    if (status == LS_OK)
        status = ls_collective_wait(started[N_AT_ONCE - 1], LS_WAIT_DEFAULT);
    for (int k = 0; k < N_AT_ONCE && status == LS_OK; k++) {
        const int64_t sum = (int64_t)n * (n + 1) / 2 * (k + 1);
        const size_t count = length_at_once(k);
        right = right && ls_collective_has_ended(started[k]);
        for (size_t i = 0; i < count; i++)
            right = right && numbers[k][i] == sum;
    }
    for (int k = 0; k < N_AT_ONCE; k++) {
        ls_collective_destroy(&started[k]);
        free(numbers[k]);
    }
    TRY(status);
    EXPECT(right);
    return LS_OK;
}

/* No more than the bound; those that are started are ended by the others. */
static int start_too_many(struct rank *rank)
{
    ls_collective *started[LS_GROUP_STARTED_MAX + 1] = {NULL};
    const struct ls_group_operation operation = {.kind = LS_GROUP_BARRIER};
    int status = LS_OK;
    for (int k = 0; k < LS_GROUP_STARTED_MAX && status == LS_OK; k++)
        status = ls_group_start(&started[k], rank->group, &operation);
    const int more =
        ls_group_start(&started[LS_GROUP_STARTED_MAX], rank->group, &operation);
    const int form = ls_group_form(rank->group, RANK_WAIT_MS);
    const int destroyed = ls_group_destroy(&rank->group);
    for (int k = LS_GROUP_STARTED_MAX; k >= 0; k--)
        ls_collective_destroy(&started[k]);
    ls_collective_destroy(NULL);
    TRY(status);
    EXPECT(more == LS_EAGAIN && form == LS_ESTATE && destroyed == LS_ESTATE);
    return ls_group_barrier(rank->group, RANK_WAIT_MS);
}

void promise_operations_overlap_and_end_in_order(const struct rank_maker *maker,
                                                 uint32_t n)
{
    struct ranks ranks;
    maker->make(&ranks, n);
    ranks_do(&ranks, start_many);
    ranks_do(&ranks, start_too_many);
    maker->destroy(&ranks);
}

/* --- pairs ---------------------------------------------------------------- */

static int pass_around(struct rank *rank, size_t size)
{
    const uint32_t n = size_of(rank), own = rank_of(rank);
    const uint32_t next = (own + 1) % n, before = (own + n - 1) % n;
    unsigned char *gets = calloc(size + 1, 1);
    unsigned char *brings = bytes_of(own, size);
    ls_collective *sent = NULL;
    const struct ls_group_operation operation = {
        .kind = LS_GROUP_SEND, .root = next, .count = size, .in = brings};
    int status = ls_group_start(&sent, rank->group, &operation);
    if (status == LS_OK)
        status =
            ls_group_receive(rank->group, gets, size, before, RANK_WAIT_MS);
    if (status == LS_OK)
        status = ls_collective_wait(sent, LS_WAIT_DEFAULT);
    ls_collective_destroy(&sent);
    const bool right = are_bytes_of(gets, before, size);
    free(gets);
    free(brings);
    TRY(status);
    EXPECT(right);
    return LS_OK;
}

static int pass_in_order(struct rank *rank)
{
    const uint32_t own = rank_of(rank);
    for (int64_t i = 0; i < 50 && own < 2; i++) {
        int64_t number = i;
        if (own == 0)
            TRY(ls_group_send(rank->group, &number, sizeof number, 1,
                              RANK_WAIT_MS));
        else
            TRY(ls_group_receive(rank->group, &number, sizeof number, 0,
                                 RANK_WAIT_MS));
        EXPECT(number == i);
    }
    return ls_group_barrier(rank->group, RANK_WAIT_MS);
}

static int pass_other_sizes(struct rank *rank)
{
    const uint32_t own = rank_of(rank);
    char bytes[8] = "";
    int status = LS_EMISMATCH;
    if (own == 0)
        status = ls_group_send(rank->group, bytes, 8, 1, RANK_WAIT_MS);
    else if (own == 1)
        status = ls_group_receive(rank->group, bytes, 7, 0, RANK_WAIT_MS);
    EXPECT(status == LS_EMISMATCH);
    EXPECT(own > 1 || (strstr(ls_error_text(), "send (8 bytes)") != NULL &&
                       strstr(ls_error_text(), "receive (7 bytes)") != NULL));
    return ls_group_barrier(rank->group, RANK_WAIT_MS);
}

static int do_pairs(struct rank *rank)
{
    if (size_of(rank) == 1)
        return LS_OK;
    TRY(pass_around(rank, 0));
    TRY(pass_around(rank, 100));
    TRY(pass_around(rank, 300000));
    TRY(pass_in_order(rank));
    TRY(pass_other_sizes(rank));
    return pass_around(rank, 9);
}

void promise_pairs_exchange_in_order(const struct rank_maker *maker, uint32_t n)
{
    struct ranks ranks;
    maker->make(&ranks, n);
    ranks_do(&ranks, do_pairs);
    maker->destroy(&ranks);
}

/* --- sub-groups ----------------------------------------------------------- */

static int check_half(struct rank *rank, ls_group *half)
{
    const uint32_t n = size_of(rank), own = rank_of(rank);
    const uint32_t members = (n + 1 - own % 2) / 2;
    int64_t sum = own;
    EXPECT(ls_group_size(half) == members && ls_group_rank(half) == own / 2);
    TRY(ls_group_all_reduce(half, &sum, 1, LS_GROUP_I64, LS_GROUP_SUM,
                            RANK_WAIT_MS));
    EXPECT(sum == (int64_t)members * (members - 1) + members * (own % 2));
    return LS_OK;
}

static int split_in_halves(struct rank *rank)
{
    const uint32_t own = rank_of(rank);
    ls_group *half = NULL, *none = NULL;
    TRY(ls_group_split(&half, rank->group, own % 2, RANK_WAIT_MS));
    int status = check_half(rank, half);
    const int destroyed = ls_group_destroy(&rank->group);
    if (status == LS_OK)
        status =
            ls_group_split(&none, rank->group,
                           own == 0 ? 5 : LS_GROUP_NO_COLOUR, RANK_WAIT_MS);
    const bool right = (none != NULL) == (own == 0) && destroyed == LS_ESTATE;
    if (status == LS_OK && none != NULL)
        status = ls_group_barrier(none, RANK_WAIT_MS);
    if (status == LS_OK)
        status = ls_group_barrier(rank->group, RANK_WAIT_MS);
    ls_group_destroy(&none);
    ls_group_destroy(&half);
    TRY(status);
    EXPECT(right);
    return ls_group_barrier(rank->group, RANK_WAIT_MS);
}

void promise_sub_groups_work_by_themselves(const struct rank_maker *maker,
                                           uint32_t n)
{
    struct ranks ranks;
    maker->make(&ranks, n);
    ranks_do(&ranks, split_in_halves);
    maker->destroy(&ranks);
}

/* --- errors --------------------------------------------------------------- */

/* The last rank calls something else than all others. */
static int call_differently(struct rank *rank, size_t count)
{
    const bool other = rank_of(rank) == size_of(rank) - 1;
    double *numbers = calloc(count * size_of(rank) + 1, sizeof *numbers);
    const struct ls_group_operation operation = {
        .kind = other ? LS_GROUP_ALL_GATHER : LS_GROUP_ALL_REDUCE,
        .name = other ? "shapes" : "gradients",
        .count = other ? 8 : count,
        .type = LS_GROUP_F64,
        .in = numbers,
        .out = other ? numbers + 1 : numbers};
    const int status = ls_group_do(rank->group, &operation);
    free(numbers);
    EXPECT(size_of(rank) == 1 || status == LS_EMISMATCH);
    EXPECT(size_of(rank) == 1 ||
           (strstr(ls_error_text(), "all_gather \"shapes\"") != NULL &&
            strstr(ls_error_text(), "all_reduce \"gradients\"") != NULL));
    return LS_OK;
}

static int differ(struct rank *rank)
{
    TRY(call_differently(rank, 1));
    TRY(call_differently(rank, 50000));
    TRY(ls_group_barrier(rank->group, RANK_WAIT_MS));
    TRY(call_differently(rank, 1));
    return check_folds(rank, 7, LS_GROUP_F32, LS_GROUP_SUM);
}

void promise_different_calls_fail_alike_with_both_names(
    const struct rank_maker *maker, uint32_t n)
{
    struct ranks ranks;
    maker->make(&ranks, n);
    ranks_do(&ranks, differ);
    maker->destroy(&ranks);
}

static int wait_in_vain(struct rank *rank)
{
    return ls_group_barrier(rank->group, 50);
}

static int wait_long_in_vain(struct rank *rank)
{
    float *numbers = calloc(50000, sizeof *numbers);
    const int status = ls_group_all_reduce(rank->group, numbers, 50000,
                                           LS_GROUP_F32, LS_GROUP_SUM, 50);
    free(numbers);
    return status;
}

/* Who comes late hears what the others heard. */
static int come_late(struct rank *rank)
{
    const int status = rank_of(rank) == 0
                           ? ls_group_barrier(rank->group, RANK_WAIT_MS)
                           : LS_OK;
    EXPECT(rank_of(rank) != 0 || status == LS_ETIMEDOUT);
    return ls_group_barrier(rank->group, RANK_WAIT_MS);
}

static int come_late_long(struct rank *rank)
{
    const int status = rank_of(rank) == 0 ? wait_long_in_vain(rank) : LS_OK;
    EXPECT(rank_of(rank) != 0 || status == LS_ETIMEDOUT);
    return ls_group_barrier(rank->group, RANK_WAIT_MS);
}

void promise_a_deadline_fails_all_and_names_the_missing(
    const struct rank_maker *maker, uint32_t n)
{
    struct ranks ranks;
    if (n == 1)
        return;
    maker->make(&ranks, n);
    ranks_do_without(&ranks, 1, wait_in_vain);
    for (uint32_t i = 1; i < n; i++) {
        assert_int_equal(ranks.at[i].status, LS_ETIMEDOUT);
        assert_has(ranks.at[i].text, "rank 0");
    }
    ranks_do(&ranks, come_late);
    ranks_do_without(&ranks, 1, wait_long_in_vain);
    for (uint32_t i = 1; i < n; i++) {
        assert_int_equal(ranks.at[i].status, LS_ETIMEDOUT);
        assert_has(ranks.at[i].text, "all_reduce");
    }
    ranks_do(&ranks, come_late_long);
    maker->destroy(&ranks);
}

static int wait_for_leaver(struct rank *rank)
{
    const bool last = rank_of(rank) == size_of(rank) - 1;
    ls_collective *started = NULL;
    const struct ls_group_operation operation = {.kind = LS_GROUP_BARRIER,
                                                 .name = "end"};
    EXPECT(!group_is_over_by_another(rank->group));
    TRY(ls_group_barrier(rank->group, RANK_WAIT_MS));
    if (last)
        ls_group_leave(rank->group, LS_EHANDLER);
    TRY(ls_group_start(&started, rank->group, &operation));
    const int status = ls_collective_wait(started, LS_WAIT_DEFAULT);
    const bool named = strstr(ls_error_text(), "rank") != NULL;
    const int cause = ls_error_cause();
    const int again = ls_collective_wait(started, LS_WAIT_DEFAULT);
    ls_collective_destroy(&started);
    EXPECT(again == status && ls_error_cause() == cause);
    EXPECT(status == (last ? LS_EHANDLER : LS_EABORTED));
    EXPECT(last || (cause == LS_EHANDLER && named));
    /* And it stays so. */
    EXPECT(ls_group_barrier(rank->group, RANK_WAIT_MS) == status);
    EXPECT(group_is_over_by_another(rank->group) == !last);
    return LS_OK;
}

static int leave_without_a_status(struct rank *rank)
{
    const bool first = rank_of(rank) == 0;
    ls_collective *started = NULL;
    const struct ls_group_operation operation = {.kind = LS_GROUP_BARRIER};
    if (first)
        ls_group_leave(rank->group, LS_OK);
    TRY(ls_group_start(&started, rank->group, &operation));
    const int status = ls_collective_wait(started, LS_WAIT_DEFAULT);
    const int cause = ls_error_cause();
    ls_collective_destroy(&started);
    EXPECT(status == (first ? LS_ECANCELED : LS_EABORTED));
    EXPECT(first || cause == LS_ECANCELED);
    return LS_OK;
}

static int form_again(struct rank *rank)
{
    const uint64_t before = ls_group_generation(rank->group);
    TRY(ls_group_form(rank->group, RANK_WAIT_MS));
    EXPECT(ls_group_generation(rank->group) > before);
    return check_folds(rank, 5, LS_GROUP_F64, LS_GROUP_SUM);
}

void promise_who_leaves_ends_the_generation_for_all(
    const struct rank_maker *maker, uint32_t n)
{
    struct ranks ranks;
    maker->make(&ranks, n);
    ranks_do(&ranks, wait_for_leaver);
    ranks_do(&ranks, form_again);
    ranks_do(&ranks, leave_without_a_status);
    ranks_do(&ranks, form_again);
    maker->destroy(&ranks);
}

static int expect_refusal(struct rank *rank,
                          const struct ls_group_operation *operation,
                          const char *why)
{
    ls_collective *started;
    EXPECT(ls_group_start(&started, rank->group, operation) == LS_EINVAL);
    EXPECT(started == NULL);
    if (strstr(ls_error_text(), why) == NULL)
        return ls_error_at(LS_EINVARIANT, "not \"%s\"", why);
    return LS_OK;
}

static int ask_askew(struct rank *rank)
{
    static int64_t numbers[2];
    char *at = (char *)numbers;
    const struct ls_group_operation right = {.kind = LS_GROUP_ALL_REDUCE,
                                             .type = LS_GROUP_F64,
                                             .count = 1,
                                             .in = numbers,
                                             .out = numbers};
    struct ls_group_operation wrong = right;
    wrong.in = at + 4;
    TRY(expect_refusal(rank, &wrong, "not aligned"));
    wrong = right;
    wrong.out = at + 1;
    TRY(expect_refusal(rank, &wrong, "not aligned"));
    wrong.type = LS_GROUP_F32;
    wrong.kind = LS_GROUP_REDUCE_SCATTER;
    return expect_refusal(rank, &wrong, "not aligned");
}

static int ask_wrongly(struct rank *rank)
{
    char bytes[64] = "";
    struct ls_group_parts parts;
    uint32_t id;
    const struct ls_group_operation none = {.kind = LS_GROUP_ALL_GATHER,
                                            .count = 1};
    struct ls_group_operation wrong = none;
    wrong.kind = (enum ls_group_kind)77;
    TRY(expect_refusal(rank, &wrong, "no such operation"));
    TRY(expect_refusal(rank, &none, "`in` is NULL"));
    wrong = none;
    wrong.in = bytes;
    TRY(expect_refusal(rank, &wrong, "`out` is NULL"));
    wrong.name = "a name of more than thirty-one bytes";
    TRY(expect_refusal(rank, &wrong, "name"));
    wrong.name = "new\nline";
    TRY(expect_refusal(rank, &wrong, "name"));
    wrong = none;
    wrong.kind = LS_GROUP_BROADCAST;
    wrong.root = size_of(rank);
    TRY(expect_refusal(rank, &wrong, "no such rank"));
    wrong.root = 0;
    wrong.timeout_ms = -2;
    TRY(expect_refusal(rank, &wrong, "timeout_ms"));
    wrong.timeout_ms = 0;
    wrong.kind = LS_GROUP_SEND;
    wrong.root = rank_of(rank);
    TRY(expect_refusal(rank, &wrong, "to itself"));
    wrong.kind = LS_GROUP_GATHER;
    wrong.parts = &parts;
    TRY(expect_refusal(rank, &wrong, "parts"));
    wrong.parts = NULL;
    wrong.count = SIZE_MAX;
    TRY(expect_refusal(rank, &wrong, "count"));
    TRY(ask_askew(rank));
    EXPECT(ls_group_id(rank->group, size_of(rank), &id) == LS_EINVAL);
    return ls_group_barrier(rank->group, RANK_WAIT_MS);
}

void promise_wrong_operations_are_refused(const struct rank_maker *maker,
                                          uint32_t n)
{
    struct ranks ranks;
    maker->make(&ranks, n);
    ranks_do(&ranks, ask_wrongly);
    maker->destroy(&ranks);
}

static int count_some(struct rank *rank)
{
    struct ls_group_stats before, stats;
    ls_group_stats(rank->group, &before);
    for (int i = 0; i < 5; i++)
        TRY(ls_group_barrier(rank->group, RANK_WAIT_MS));
    TRY(call_differently(rank, 1));
    ls_group_stats(rank->group, &stats);
    const uint64_t failed = size_of(rank) > 1 ? 1 : 0;
    EXPECT(stats.ended - before.ended == 6 - failed);
    EXPECT(stats.failed - before.failed == failed);
    EXPECT(stats.sent_bytes >= stats.sent && stats.repeated <= stats.sent);
    return ls_group_barrier(rank->group, RANK_WAIT_MS);
}

void promise_operations_are_counted(const struct rank_maker *maker, uint32_t n)
{
    struct ranks ranks;
    maker->make(&ranks, n);
    ranks_do(&ranks, count_some);
    maker->destroy(&ranks);
}

void promise_memory_is_aligned_and_zeroed(const struct rank_maker *maker,
                                          uint32_t n)
{
    struct ranks ranks;
    maker->make(&ranks, n);
    for (size_t size = 0; size < 300; size += 37) {
        void *memory;
        assert_ok(ls_group_alloc(ranks.at[0].group, &memory, size));
        assert_int_equal((uintptr_t)memory % 64, 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(((unsigned char *)memory)[i], 0);
        assert_ok(ls_group_free(ranks.at[0].group, memory));
    }
    assert_ok(ls_group_free(ranks.at[0].group, NULL));
    void *memory;
    assert_int_equal(ls_group_alloc(ranks.at[0].group, &memory, SIZE_MAX),
                     LS_ENOMEM);
    assert_null(memory);
    maker->destroy(&ranks);
}

/* All, and then every other rank: each must do what the others do. */
static int do_each_of_its_memory(struct rank *rank)
{
    rank->allocates = true;
    TRY(do_each(rank, 1));
    TRY(do_each(rank, 20001));
    rank->allocates = rank_of(rank) % 2 == 1;
    TRY(do_each(rank, 20001));
    rank->allocates = false;
    return LS_OK;
}

void promise_memory_of_the_group_gives_the_same_results(
    const struct rank_maker *maker, uint32_t n)
{
    struct ranks ranks;
    maker->make(&ranks, n);
    ranks_do(&ranks, do_each_of_its_memory);
    maker->destroy(&ranks);
}

/* It is of the rank's group, the operation of that one. */
static int free_under(struct rank *rank, ls_group *group)
{
    void *memory[2];
    ls_collective *started;
    TRY(ls_group_alloc(rank->group, &memory[0], 400));
    TRY(ls_group_alloc(rank->group, &memory[1], 400));
    const struct ls_group_operation operation = {.kind = LS_GROUP_ALL_REDUCE,
                                                 .count = 90,
                                                 .type = LS_GROUP_F32,
                                                 .in = (float *)memory[0] + 10,
                                                 .out = memory[1]};
    TRY(ls_group_start(&started, group, &operation));
    EXPECT(ls_group_free(rank->group, memory[0]) == LS_ESTATE);
    EXPECT(ls_group_free(rank->group, memory[1]) == LS_ESTATE);
    EXPECT(strstr(ls_error_text(), "is not destroyed") != NULL);
    TRY(ls_collective_wait(started, LS_WAIT_DEFAULT));
    EXPECT(ls_group_free(rank->group, memory[1]) == LS_ESTATE);
    ls_collective_destroy(&started);
    TRY(ls_group_free(rank->group, memory[0]));
    return ls_group_free(rank->group, memory[1]);
}

/* Also by one of a sub-group, and of one that was split off that. */
static int free_too_early(struct rank *rank)
{
    ls_group *one, *other;
    TRY(free_under(rank, rank->group));
    TRY(ls_group_split(&one, rank->group, 0, RANK_WAIT_MS));
    TRY(free_under(rank, one));
    TRY(ls_group_split(&other, one, 0, RANK_WAIT_MS));
    TRY(free_under(rank, other));
    TRY(ls_group_destroy(&other));
    return ls_group_destroy(&one);
}

void promise_memory_is_not_freed_under_an_operation(
    const struct rank_maker *maker, uint32_t n)
{
    struct ranks ranks;
    void *memory;
    maker->make(&ranks, n);
    ranks_do(&ranks, free_too_early);
    assert_ok(ls_group_alloc(ranks.at[0].group, &memory, 10));
    if (n > 1) {
        assert_fails(ls_group_free(ranks.at[1].group, memory), LS_EINVAL);
        assert_error_has("another group's");
    }
    assert_ok(ls_group_free(ranks.at[0].group, memory));
    maker->destroy(&ranks);
}

void promise_memory_outlives_its_group(const struct rank_maker *maker,
                                       uint32_t n)
{
    struct ranks ranks;
    unsigned char *memory[3];
    maker->make(&ranks, n);
    for (size_t i = 0; i < 3; i++) {
        void *made;
        assert_ok(ls_group_alloc(ranks.at[0].group, &made, 30000));
        memory[i] = made;
        memset(made, (int)i + 1, 30000);
    }
    assert_ok(ls_group_free(ranks.at[0].group, memory[1]));
    maker->destroy(&ranks);
    for (size_t i = 0; i < 3; i += 2) {
        assert_int_equal(memory[i][0], i + 1);
        assert_int_equal(memory[i][29999], i + 1);
        assert_ok(ls_group_free(NULL, memory[i]));
    }
}

static int wait_for_the_gone(struct rank *rank)
{
    return ls_group_barrier(rank->group, RANK_WAIT_MS);
}

static int form_with_the_gone(struct rank *rank)
{
    return ls_group_form(rank->group, RANK_WAIT_MS);
}

static void all_but_rank_1_have(const struct ranks *ranks, int status)
{
    for (uint32_t i = 0; i < ranks->n; i++) {
        if (i == 1)
            continue;
        assert_int_equal(ranks->at[i].status, status);
        if (status == LS_EABORTED)
            assert_int_equal(ranks->at[i].cause, LS_ECLOSED);
    }
}

void promise_a_rank_that_is_destroyed_is_missed_at_once(
    const struct rank_maker *maker, uint32_t n)
{
    struct ranks ranks;
    if (n < 3)
        return;
    maker->make(&ranks, n);
    assert_ok(ls_group_destroy(&ranks.at[1].group));
    ranks_do_without(&ranks, 2, wait_for_the_gone);
    all_but_rank_1_have(&ranks, LS_EABORTED);
    ranks_do_without(&ranks, 2, form_with_the_gone);
    all_but_rank_1_have(&ranks, LS_EMISMATCH);
    maker->destroy(&ranks);
}
