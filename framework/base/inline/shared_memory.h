/* shared_memory.h - memory that the processes of one host share, and waits for
 * words in it.
 *
 * A memory has one owner, who maps it writable as it is made; nobody else can
 * ever write to it, and it can neither shrink nor grow: it is a sealed memfd,
 * no file. Its owner offers it on a unix socket to those who bring a key, and
 * they map it read-only. What lies there was written by another process: copy
 * it, then check the copy.
 *
 * A word is 32 bits of such memory. It is written with sequential consistency,
 * and then woken; who waits for it looks at it first. In a simulation the hosts
 * of one machine (ls_host_set_machine()) are one host here.
 * Thread: any, unless a function says otherwise.
 * Source: memfd_create(2), fcntl(2) on seals, unix(7), flock(2), futex(2),
 * eventfd(2), epoll(7). */
#ifndef LOCKSTEP_SHARED_MEMORY_H
#define LOCKSTEP_SHARED_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lockstep/runtime.h"

typedef struct ls_memory ls_memory;
typedef struct ls_offer ls_offer;

enum {
    LS_MEMORY_KEY_BYTES = 16,
    LS_WORDS_MAX = 128,        /* that one thread can wait for */
    LS_OFFER_PATH_BYTES = 108, /* of a unix socket, with its end */
    LS_OFFER_NAME_BYTES = 32,
};

typedef _Atomic uint32_t ls_word;

/* out:    own; give it to ls_memory_destroy(). All zero. size: in bytes,
 * rounded up to pages. name: copied; what /proc/PID/maps shows. Errors:
 * LS_ENOMEM; LS_EIO the system has no such memory, or no /proc, or files may
 * not be as large (RLIMIT_FSIZE); LS_EUNREACHABLE it has no waits for several
 * words (Linux before 5.16). */
LS_MUST_USE int ls_memory_create(ls_memory **out, ls_runtime *runtime,
                                 const char *name, size_t size);
/* NULL and a pointer to NULL are fine. Unmaps it; its pages are freed with the
 * last mapping of them. */
void ls_memory_destroy(ls_memory **memory);
/* NULL: it was taken, not made. */
void *ls_memory_own(const ls_memory *memory);
const void *ls_memory_data(const ls_memory *memory);
size_t ls_memory_size(const ls_memory *memory);
/* Of one that was taken: whether its owner has destroyed it, or its process is
 * gone: nothing will be written there any more. */
bool ls_memory_is_orphan(const ls_memory *memory);
/* Take the pages now, so that a write there cannot fail. Owner.
 * Errors: LS_ENOMEM. */
LS_MUST_USE int ls_memory_reserve(const ls_memory *memory, size_t offset,
                                  size_t size);
/* What this process writes there from now on, nobody else will see. Owner; no
 * other thread writes meanwhile. */
void ls_memory_sever(ls_memory *memory);

/* Whoever takes this memory from now on can wake its owner: bell is an
 * eventfd(2) that does not block, and is duplicated, once; in a simulation
 * rung(self) is called, and bell is -1. Owner. rung NULL and bell -1: self is
 * not needed any more. The descriptor stays as long as the memory: another
 * thread may be about to ring.
 * self: borrow, until then. Errors: LS_ELIMIT no more descriptors. */
LS_MUST_USE int ls_memory_set_bell(ls_memory *memory, int bell,
                                   void (*rung)(void *self), void *self);
/* The same, with a bell that the owner waits for by ls_memory_hear(). Owner,
 * before anybody takes the memory. Errors: LS_ELIMIT no more descriptors; as
 * ls_memory_hear_too(). */
LS_MUST_USE int ls_memory_add_bell(ls_memory *memory);
/* The owner hears the bell of another one's memory, too: to ring that wakes all
 * who hear it, in one system call. Of one that has a bell.
 * other:  borrow, for the call. Errors: LS_EPROTO it has no bell; LS_ENOMEM;
 * LS_EIO this user may watch no more (fs.epoll.max_user_watches). */
LS_MUST_USE int ls_memory_hear_too(ls_memory *memory, const ls_memory *other);
/* Wait until a bell is rung that the owner hears; it is over at once if one was
 * since the last call. May end early. Owner; one thread.
 * Errors: LS_ETIMEDOUT: leaves no ls_error_text(). */
LS_MUST_USE int ls_memory_hear(ls_memory *memory, int64_t deadline);
/* Wake the owner of a memory, if it has a bell. The owner may, too. */
void ls_memory_ring(const ls_memory *memory);

/* Let those who bring the key take this memory, at a socket of this path, until
 * the end of the offer, which removes it. Sockets in the same folder that are
 * named by ls_offer_name(), are a minute old, and whose owners were killed, are
 * removed, too.
 * memory: borrow, until the end. key: LS_MEMORY_KEY_BYTES, copied.
 * Errors: LS_EINVAL the path is too long for a socket; LS_EEXIST something is
 *         there; LS_ENOENT, LS_EIO it cannot be made; LS_ENOMEM; LS_EAGAIN no
 *         thread. */
LS_MUST_USE int ls_offer_begin(ls_offer **out, ls_memory *memory,
                               const char *path, const uint8_t *key);
void ls_offer_end(ls_offer **offer);
/* A folder for such sockets that only this user can write to: it is made if it
 * is not there.
 * host:   NULL, or a number that is written there, which those have that find
 *         this folder, by whatever path, on this host since it was started, and
 *         nobody else; 0: it cannot be told.
 * Errors: LS_EIO: it cannot be, or is another's. */
LS_MUST_USE int ls_offer_folder(ls_runtime *runtime, char *out, size_t size,
                                uint64_t *host);
/* A name for a socket there, another one each time. It says on which host the
 * offer is made, and since when that host runs. */
void ls_offer_name(ls_runtime *runtime, char out[LS_OFFER_NAME_BYTES]);
/* The path of a socket of this name there. Everybody looks in the folder as it
 * sees it: its path may be another one in another container.
 * name:   may come from outside. Errors: LS_EINVAL it has a "/", or the path is
 *         too long for a socket. */
LS_MUST_USE int ls_offer_path(const char *folder, const char *name,
                              char out[LS_OFFER_PATH_BYTES]);
/* Take a memory that is offered there.
 * size:   that it must have at least.
 * Errors: LS_EUNREACHABLE nobody offers anything there, or not to this process:
 *         another host, container or user; LS_EPROTO what came is no such
 *         memory; LS_ETIMEDOUT; LS_ENOMEM. */
LS_MUST_USE int ls_memory_take(ls_memory **out, ls_runtime *runtime,
                               const char *path, const uint8_t *key,
                               size_t size, int64_t deadline);

/* Parts of several memories, one after the other in the address space, to be
 * read. Each begins and ends with a page, but for the end of the last. */
struct ls_memory_piece {
    const ls_memory *memory; /* borrow, for the call; its bytes stay */
    size_t offset, size;
};
LS_MUST_USE int ls_memory_view(const void **out,
                               const struct ls_memory_piece *pieces, size_t n);
void ls_memory_view_end(const void *view, size_t size);
/* A size, rounded up to whole pages. */
size_t ls_memory_pages(size_t size);

struct ls_awaited {
    const ls_word *word;
    uint32_t value; /* that it had when its waiter looked */
};
/* Wait until one of these no longer has its value, or is woken. May end early.
 * n:      1 … LS_WORDS_MAX.
 * Errors: LS_ETIMEDOUT: leaves no ls_error_text(). */
LS_MUST_USE int ls_words_wait(ls_runtime *runtime,
                              const struct ls_awaited *words, size_t n,
                              int64_t deadline);
/* Wake all that wait for it. */
void ls_word_wake(ls_runtime *runtime, const ls_word *word);

/* Let others run that could on this core. */
void ls_yield_core(ls_runtime *runtime);

/* Whether loads and stores must be announced by ls_memory_touch(): so that a
 * simulation can let others run between any two, and drop the stores of a host
 * that it has killed. */
bool ls_memory_touched(const ls_runtime *runtime);
/* A load or a store comes. Returns whether a store will be seen by others. */
bool ls_memory_touch(ls_runtime *runtime);

#endif
