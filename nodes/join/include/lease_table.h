/* lease_table.h - which key has which of the ids that are given out.
 *
 *            ask               the node is there
 *   free ---------> promised ---------------------> here
 *     ^                ^                              |
 *     |                | ask, with the same key       | it goes
 *     |                +------------- kept <----------+
 *     +-------------------------------------------- or gone with its key
 *
 * A key has one id, and has it again after its restart. One key, one node: who
 * asks with the key of a node that is here, or is expected, is refused. A key
 * that was made for one life of a node (`lasting` is false) gives its id back
 * when that ends; the others keep theirs until they are revoked.
 *
 * A state machine without lock, file or clock; times are those of ls_now().
 * Thread: serial. */
#ifndef LOCKSTEP_LEASE_TABLE_H
#define LOCKSTEP_LEASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/runtime.h"
#include "lockstep/security.h"

/* For so long an id waits for whom it was given to, and for one that was lost
 * and may come back. */
#define LEASE_PROMISE_NS (15 * LS_NS_PER_S)

enum lease_state {
    LEASE_FREE,
    LEASE_PROMISED, /* until `until`; then kept, or free */
    LEASE_HERE,     /* its node is in the world, by that key or without one:
                     * its own was revoked, or came after its promise */
    LEASE_KEPT,     /* for its key, whose node is away */
    LEASE_BARRED    /* a certificate has it: nobody is given it */
};

struct lease {
    uint32_t id;
    int role; /* whoever asks says which */
    enum lease_state state;
    char key[LS_PUBLIC_KEY_MAX]; /* "": nobody's */
    bool lasting;                /* the key outlives a life of its node */
    uint64_t life;               /* of the node that asked; 0: not known */
    int64_t until;
};

struct lease_table {
    struct lease *leases; /* own; n, in the order in which they are given */
    size_t n;
};

/* Make room for `n`, all free; the caller sets id and role of each. Errors:
 * LS_ENOMEM. */
LS_MUST_USE int lease_table_init(struct lease_table *out, size_t n);
void lease_table_fini(struct lease_table *table);

struct lease_ask {
    int role;
    const char *key; /* borrow; a public key as text */
    bool lasting;
    uint64_t life; /* of who asks: asking twice does no harm; not 0 */
};

/* Who asks has the id from now on; it is promised.
 * out:    borrow: as long as the table.
 * Errors: LS_EEXIST its key is that of a node that is here, or expected;
 * LS_EAGAIN no id of the role is free; LS_EMISMATCH the key has an id of
 *         another role. The text says what to do. */
LS_MUST_USE int lease_table_ask(struct lease_table *table,
                                const struct lease_ask *ask, int64_t now,
                                const struct lease **out);

/* A node of that id is in the world; or is not any more. left: it said so, and
 * does not come back. Ids that are not of the table are fine. */
void lease_table_came(struct lease_table *table, uint32_t id);
void lease_table_gone(struct lease_table *table, uint32_t id, bool left,
                      int64_t now);

/* Never give out this id: it belongs to somebody else. */
void lease_table_bar(struct lease_table *table, uint32_t id);
/* Take its id from a key; a node that is here by it keeps the id until it goes.
 * Returns it; NULL: it had none. */
const struct lease *lease_table_revoke(struct lease_table *table,
                                       const char *key);

/* ---- as text ------------------------------------------------------------ */

/* A line for each that has a key, "7 KEY lasting\n" or "7 KEY passing\n".
 * Returns its length; up to `size` bytes are written, with a NUL. */
#define LEASE_LINE_MAX 64
size_t lease_table_write(const struct lease_table *table, char *text,
                         size_t size);

/* What an earlier life of the table has written: keys that last are kept,
 * others expected. Ids that the table has not, and keys that are there twice,
 * are left out. Errors: LS_EPROTO with the number of the line, or a NUL is in
 * it; LS_ENOMEM; the table is as it was. */
LS_MUST_USE int lease_table_read(struct lease_table *table, const void *data,
                                 size_t size, int64_t now);

#endif
