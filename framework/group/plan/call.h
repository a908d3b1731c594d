/* call.h - one operation as one rank calls it, checked, and told apart from
 * others. Thread: serial. */
#ifndef GROUP_CALL_H
#define GROUP_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/group.h"

/* What must be the same in all ranks, as it crosses the wire. */
struct group_form {
    enum ls_group_kind kind;
    enum ls_group_type type;
    enum ls_group_fold fold;
    bool any; /* any sizes: `count` is a rank's own, and differs */
    uint32_t root;
    uint64_t count;
    char name[LS_GROUP_NAME_MAX + 1];
};

struct group_call {
    struct group_form form;
    const void *in;
    void *out;
    struct ls_group_parts *parts;
    int64_t deadline; /* ls_now() */
    bool waited;      /* by the thread that has started it, until it ends */
};

/* Errors: LS_EINVAL: the text says what is wrong. */
LS_MUST_USE int group_call_init(struct group_call *out,
                                const struct ls_group_operation *operation,
                                uint32_t rank, uint32_t size, int64_t now);

bool group_form_is_same(const struct group_form *one,
                        const struct group_form *other);
/* Whether only two ranks take part. */
static inline bool group_form_is_pair(const struct group_form *form)
{
    return form->kind == LS_GROUP_SEND || form->kind == LS_GROUP_RECEIVE;
}
static inline bool group_form_folds(const struct group_form *form)
{
    return form->kind == LS_GROUP_ALL_REDUCE ||
           form->kind == LS_GROUP_REDUCE_SCATTER;
}

/* "all_reduce \"gradients\" (mean of 12 f32)" into text; cut. */
#define GROUP_SAY_MAX 128
void group_form_say(const struct group_form *form, char text[GROUP_SAY_MAX]);

/* Bytes that a rank brings, and that it gets; of any sizes only the first. */
size_t group_call_in_bytes(const struct group_call *call, uint32_t rank,
                           uint32_t size);
size_t group_call_out_bytes(const struct group_call *call, uint32_t rank,
                            uint32_t size);
size_t group_type_bytes(enum ls_group_type type);

/* Room for the parts of a result, in one piece of memory; the data of each is
 * to be written to where its item points. Errors: LS_ENOMEM. */
LS_MUST_USE int group_parts_make(struct ls_group_parts *out,
                                 const size_t *sizes, size_t n);
/* The same, of sizes that ranks have told; they are in sizes[n] then. Errors:
 * LS_ENOMEM; LS_EPROTO a rank has lied. */
LS_MUST_USE int group_parts_told(struct ls_group_parts *out,
                                 const uint64_t *told, size_t n, size_t *sizes);

#endif
