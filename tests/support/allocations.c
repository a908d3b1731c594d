#include "allocations.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

/* Of the linker's --wrap. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t most);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t most);

static atomic_long left = -1; /* before the one that fails; below 0: none is */

static bool fails(void)
{
    if (atomic_load(&left) < 0 || atomic_fetch_sub(&left, 1) != 0)
        return false;
    errno = ENOMEM;
    return true;
}

bool allocation_failed(void)
{
    return atomic_load(&left) < 0;
}

bool allocations_fail_at(long n)
{
    const bool more = n == 0 || allocation_failed();
    atomic_store(&left, more ? n : -1);
    return more;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails() ? NULL : __real_realloc(old, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : __real_aligned_alloc(alignment, size);
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t most)
{
    return fails() ? NULL : __real_strndup(text, most);
}
