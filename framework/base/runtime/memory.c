/* Memory that is shared: made, mapped, viewed. Design notes:
 *
 * - The owner's mapping is made before the seal that forbids all others to
 *   write: F_SEAL_FUTURE_WRITE spares it alone. No process can take a seal off.
 * - A memory that is taken must have the seal against shrinking, or its owner
 *   could make a reader touch pages that are gone, and die. Only a memfd has
 *   seals, so no file can be given instead.
 * - Others get a descriptor of their own, opened anew: a lock of the owner's,
 *   which it never gives up, then tells them whether it still has the memory.
 *   The kernel takes it away with the owner's last descriptor, so nobody need
 *   believe what a process said before it was killed.
 * - To sever a memory is to lay a private mapping of the same pages over it, in
 *   one call: from then on a write makes a copy for this process alone. */
#define _GNU_SOURCE /* memfd_create, fallocate, seals */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory_ops.h"
#include "runtime_ops.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
enum {
    SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL
};

size_t ls_memory_pages(size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (size + page - 1) / page * page;
}

static const struct ls_memory_ops *ops_of(const ls_runtime *runtime)
{
    return runtime->ops->memory;
}

static ls_memory *new_memory(ls_runtime *runtime)
{
    ls_memory *const made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->runtime = runtime;
    made->fd = made->lent = made->bell = made->ear = -1;
    return made;
}

static int map(ls_memory *memory, int protection)
{
    void *const base =
        mmap(NULL, memory->size, protection, MAP_SHARED, memory->fd, 0);
    if (base == MAP_FAILED)
        return ls_error_from(errno, "shared memory cannot be mapped");
    memory->base = base;
    if (ops_of(memory->runtime)->mapped != NULL)
        ops_of(memory->runtime)->mapped(memory);
    return LS_OK;
}

static int open_for_others(ls_memory *memory)
{
    char path[40];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", memory->fd);
    memory->lent = open(path, O_RDONLY | O_CLOEXEC);
    if (memory->lent < 0 || flock(memory->fd, LOCK_EX | LOCK_NB) != 0)
        return ls_error_from(errno, "shared memory cannot be lent");
    return LS_OK;
}

/* A limit of files holds for memory as well, and the kernel kills with SIGXFSZ
 * who goes beyond it. */
static int grow(const ls_memory *memory)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && memory->size > limit.rlim_cur)
        return ls_error(LS_EIO,
                        "shared memory cannot have %zu bytes: files may have "
                        "%llu; raise `ulimit -f`",
                        memory->size, (unsigned long long)limit.rlim_cur);
    if (ftruncate(memory->fd, (off_t)memory->size) != 0)
        return ls_error_from(errno, "shared memory cannot be made as large");
    return LS_OK;
}

static int make(ls_memory *memory, const char *name, size_t size)
{
    memory->fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory->fd < 0)
        return ls_error_from(errno, "shared memory cannot be made");
    memory->size = ls_memory_pages(size);
    memory->is_own = true;
    int status = grow(memory);
    if (status == LS_OK)
        status = map(memory, PROT_READ | PROT_WRITE);
    if (status != LS_OK)
        return status;
    if (fcntl(memory->fd, F_ADD_SEALS, SEALS) != 0)
        return ls_error_from(errno, "shared memory cannot be sealed");
    return open_for_others(memory);
}

int ls_memory_create(ls_memory **out, ls_runtime *runtime, const char *name,
                     size_t size)
{
    *out = NULL;
    assert(size > 0);
    int status = ops_of(runtime)->available();
    if (status != LS_OK)
        return status;
    ls_memory *made = new_memory(runtime);
    if (made == NULL)
        return ls_error(LS_ENOMEM, "no memory for shared memory");
    status = make(made, name, size);
    if (status != LS_OK) {
        ls_memory_destroy(&made);
        return status;
    }
    *out = made;
    return LS_OK;
}

void ls_memory_destroy(ls_memory **memory)
{
    if (memory == NULL || *memory == NULL)
        return;
    ls_memory *const gone = *memory;
    *memory = NULL;
    if (gone->base != NULL) {
        if (ops_of(gone->runtime)->unmapped != NULL)
            ops_of(gone->runtime)->unmapped(gone);
        (void)munmap(gone->base, gone->size);
    }
    if (gone->fd >= 0)
        (void)close(gone->fd);
    if (gone->lent >= 0)
        (void)close(gone->lent);
    if (gone->bell >= 0)
        (void)close(gone->bell);
    if (gone->ear >= 0)
        (void)close(gone->ear);
    free(gone);
}

void *ls_memory_own(const ls_memory *memory)
{
    return memory->is_own ? memory->base : NULL;
}

const void *ls_memory_data(const ls_memory *memory)
{
    return memory->base;
}

size_t ls_memory_size(const ls_memory *memory)
{
    return memory->size;
}

bool ls_memory_is_orphan(const ls_memory *memory)
{
    assert(!memory->is_own);
    if (ops_of(memory->runtime)->is_orphan != NULL)
        return ops_of(memory->runtime)->is_orphan(memory);
    if (flock(memory->fd, LOCK_SH | LOCK_NB) != 0)
        return false;
    (void)flock(memory->fd, LOCK_UN);
    return true;
}

int ls_memory_reserve(const ls_memory *memory, size_t offset, size_t size)
{
    int failed;
    do
        failed = fallocate(memory->fd, 0, (off_t)offset, (off_t)size);
    while (failed != 0 && errno == EINTR);
    if (failed != 0)
        return ls_error(LS_ENOMEM, "no room for %zu bytes of shared memory",
                        size);
    return LS_OK;
}

void ls_memory_sever(ls_memory *memory)
{
    /* It cannot fail but for want of the kernel's memory; the members that have
     * declared this one lost read its words no more in any case. */
    (void)mmap(memory->base, memory->size, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_FIXED, memory->fd, 0);
}

int ls_memory_set_bell(ls_memory *memory, int bell, void (*rung)(void *self),
                       void *self)
{
    assert(memory->is_own);
    memory->rung = rung;
    memory->rung_self = self;
    if (bell < 0)
        return LS_OK;
    assert(memory->bell < 0);
    memory->bell = fcntl(bell, F_DUPFD_CLOEXEC, 0);
    return memory->bell >= 0
               ? LS_OK
               : ls_error(LS_ELIMIT, "no more descriptors; raise `ulimit -n`");
}

int ls_memory_add_bell(ls_memory *memory)
{
    assert(memory->is_own && memory->bell < 0);
    return ops_of(memory->runtime)->add_bell(memory);
}

int ls_memory_hear_too(ls_memory *memory, const ls_memory *other)
{
    return ops_of(memory->runtime)->hear_too(memory, other);
}

int ls_memory_hear(ls_memory *memory, int64_t deadline)
{
    assert(memory->is_own);
    return ops_of(memory->runtime)->hear(memory, deadline);
}

void ls_memory_ring(const ls_memory *memory)
{
    const uint64_t one = 1;
    if (ops_of(memory->runtime)->ring != NULL)
        ops_of(memory->runtime)->ring(memory);
    else if (memory->bell >= 0) /* if it fails, it was rung and not heard yet */
        (void)!write(memory->bell, &one, sizeof one);
}

/* A bell may be anything that its owner gave: what is written to must not make
 * a writer wait. */
static bool is_bell(int fd)
{
    static const char expected[] = "anon_inode:[eventfd]";
    char path[40], what[sizeof expected];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(path, what, sizeof what);
    return n == (ssize_t)sizeof expected - 1 &&
           memcmp(what, expected, sizeof expected - 1) == 0 &&
           (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0;
}

/* What came over the socket. */
static int check_taken(ls_memory *memory, size_t size)
{
    struct stat about;
    const int seals = fcntl(memory->fd, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS || fstat(memory->fd, &about) != 0)
        return ls_error(LS_EPROTO, "what was given is no sealed memory");
    if (about.st_size < 0 || (uintmax_t)about.st_size < size ||
        (uintmax_t)about.st_size > PTRDIFF_MAX)
        return ls_error(LS_EPROTO,
                        "the memory that was given has %lld bytes, and %zu "
                        "are needed",
                        (long long)about.st_size, size);
    if (memory->bell >= 0 && !is_bell(memory->bell))
        return ls_error(LS_EPROTO, "what was given with a memory is no bell");
    memory->size = (size_t)about.st_size;
    return LS_OK;
}

int ls_memory_take(ls_memory **out, ls_runtime *runtime, const char *path,
                   const uint8_t *key, size_t size, int64_t deadline)
{
    *out = NULL;
    ls_memory *made = new_memory(runtime);
    if (made == NULL)
        return ls_error(LS_ENOMEM, "no memory for shared memory");
    int status = ops_of(runtime)->take(made, path, key, deadline);
    if (status == LS_OK)
        status = check_taken(made, size);
    if (status == LS_OK)
        status = map(made, PROT_READ);
    if (status != LS_OK) {
        ls_memory_destroy(&made);
        return status;
    }
    *out = made;
    return LS_OK;
}

int ls_offer_begin(ls_offer **out, ls_memory *memory, const char *path,
                   const uint8_t *key)
{
    *out = NULL;
    return ops_of(memory->runtime)->offer_begin(out, memory, path, key);
}

void ls_offer_end(ls_offer **offer)
{
    if (offer == NULL || *offer == NULL)
        return;
    ls_offer *const gone = *offer;
    *offer = NULL;
    ops_of(gone->runtime)->offer_end(gone);
}

int ls_offer_folder(ls_runtime *runtime, char *out, size_t size, uint64_t *host)
{
    return ops_of(runtime)->folder(runtime, out, size, host);
}

void ls_offer_name(ls_runtime *runtime, char out[LS_OFFER_NAME_BYTES])
{
    const struct ls_memory_ops *const ops = ops_of(runtime);
    const uint64_t host = ops->host != NULL ? ops->host() : 0;
    (void)snprintf(out, LS_OFFER_NAME_BYTES, "offer-%012" PRIx64 "-%012" PRIx64,
                   host, ls_entropy(runtime) >> 16);
}

int ls_offer_path(const char *folder, const char *name,
                  char out[LS_OFFER_PATH_BYTES])
{
    const int n = snprintf(out, LS_OFFER_PATH_BYTES, "%s/%s", folder, name);
    if (n < 0 || n >= LS_OFFER_PATH_BYTES - 1 || strchr(name, '/') != NULL)
        return ls_error(LS_EINVAL,
                        "the path of folder %s is too long for a socket",
                        folder);
    return LS_OK;
}

int ls_memory_view(const void **out, const struct ls_memory_piece *pieces,
                   size_t n)
{
    *out = NULL;
    size_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += pieces[i].size;
    unsigned char *const base =
        mmap(NULL, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return ls_error_from(errno, "shared memory cannot be viewed");
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        if (pieces[i].size != 0 &&
            mmap(base + at, pieces[i].size, PROT_READ, MAP_SHARED | MAP_FIXED,
                 pieces[i].memory->fd, (off_t)pieces[i].offset) == MAP_FAILED) {
            const int status =
                ls_error_from(errno, "shared memory cannot be viewed");
            (void)munmap(base, total);
            return status;
        }
        at += pieces[i].size;
    }
    *out = base;
    return LS_OK;
}

void ls_memory_view_end(const void *view, size_t size)
{
    if (view != NULL)
        (void)munmap((void *)(uintptr_t)view, size);
}

int ls_words_wait(ls_runtime *runtime, const struct ls_awaited *words, size_t n,
                  int64_t deadline)
{
    assert(n > 0 && n <= LS_WORDS_MAX);
    return ops_of(runtime)->words_wait(runtime, words, n, deadline);
}

void ls_word_wake(ls_runtime *runtime, const ls_word *word)
{
    ops_of(runtime)->word_wake(runtime, word);
}

void ls_yield_core(ls_runtime *runtime)
{
    ops_of(runtime)->yield(runtime);
}

bool ls_memory_touched(const ls_runtime *runtime)
{
    return ops_of(runtime)->touch != NULL;
}

bool ls_memory_touch(ls_runtime *runtime)
{
    return ops_of(runtime)->touch(runtime);
}
