/* Memory of ls_group_alloc(): lent by the carrier if it can, or of the process.
 * Before each buffer lies a line with what must be known to free it, so a
 * buffer needs no group any more. */
#include "buffer.h"

#include <stdlib.h>
#include <string.h>

#include "brief_lock.h"
#include "carrier.h"
#include "forked.h"
#include "lockstep/room.h"

enum { LINE = 64 };

struct group_buffer {
    _Alignas(LINE) struct group_buffer *next;
    ls_group *group; /* borrow; NULL: it is destroyed */
    size_t size;     /* of what the caller has */
    unsigned forks;  /* ls_forks_now(), when it was made */
    atomic_uint n_uses;
    bool is_lent;
};
_Static_assert(sizeof(struct group_buffer) == LINE, "a line before each");

/* Zeroed, with a line more. */
static struct group_buffer *make(ls_group *group, size_t size)
{
    void *memory = NULL;
    const size_t whole = LINE + (size + LINE - 1) / LINE * LINE;
    const bool is_lent = group->ops->alloc != NULL &&
                         group->ops->alloc(group, &memory, whole) == LS_OK;
    if (!is_lent) {
        memory = aligned_alloc(LINE, whole);
        if (memory == NULL)
            return NULL;
        memset(memory, 0, whole);
    }
    struct group_buffer *const made = memory;
    made->is_lent = is_lent;
    return made;
}

int ls_group_alloc(ls_group *group, void **out, size_t size)
{
    *out = NULL;
    if (ls_forked_since(group->forks))
        return ls_forked_error("this group");
    struct group_buffer *const made =
        size > PTRDIFF_MAX - 3 * LINE ? NULL : make(group, size);
    if (made == NULL)
        return ls_error(LS_ENOMEM, "group: no memory for %zu bytes", size);
    made->group = group;
    made->size = size;
    made->forks = group->forks;
    ls_brief_lock(&group->buffers_lock);
    made->next = group->buffers;
    group->buffers = made;
    ls_brief_unlock(&group->buffers_lock);
    *out = made + 1;
    return LS_OK;
}

/* Unless an operation uses it. */
static bool unlink_buffer(const struct group_buffer *buffer)
{
    ls_group *const group = buffer->group;
    if (group == NULL)
        return atomic_load(&buffer->n_uses) == 0;
    ls_brief_lock(&group->buffers_lock);
    const bool is_free = atomic_load(&buffer->n_uses) == 0;
    struct group_buffer **at = &group->buffers;
    while (is_free && *at != buffer)
        at = &(*at)->next;
    if (is_free)
        *at = buffer->next;
    ls_brief_unlock(&group->buffers_lock);
    return is_free;
}

int ls_group_free(ls_group *group, void *memory)
{
    if (memory == NULL)
        return LS_OK;
    struct group_buffer *const gone = (struct group_buffer *)memory - 1;
    if (ls_forked_since(gone->forks))
        return ls_forked_error("this memory");
    if (group != NULL && gone->group != group)
        return ls_error(LS_EINVAL, "group: this memory is another group's");
    if (!unlink_buffer(gone))
        return ls_error(LS_ESTATE,
                        "group: an operation with this memory is not "
                        "destroyed; that comes before it is freed");
    if (gone->is_lent)
        ls_room_store_free(gone);
    else
        free(gone);
    return LS_OK;
}

static struct group_buffer *use_of(const ls_group *group, const void *data)
{
    struct group_buffer *buffer = group->buffers;
    while (buffer != NULL &&
           (uintptr_t)data - (uintptr_t)(buffer + 1) >= buffer->size)
        buffer = buffer->next;
    if (buffer != NULL)
        atomic_fetch_add(&buffer->n_uses, 1);
    return buffer;
}

/* The group's own are serial with it; not those of the groups above. */
struct group_buffer *buffer_use(ls_group *group, const void *data)
{
    if (data == NULL)
        return NULL;
    struct group_buffer *buffer = use_of(group, data);
    while (buffer == NULL && group->parent != NULL) {
        group = group->parent;
        ls_brief_lock(&group->buffers_lock);
        buffer = use_of(group, data);
        ls_brief_unlock(&group->buffers_lock);
    }
    return buffer;
}

void buffer_drop(struct group_buffer *buffer)
{
    if (buffer != NULL)
        atomic_fetch_sub(&buffer->n_uses, 1);
}

void buffers_orphan(ls_group *group)
{
    for (struct group_buffer *at = group->buffers; at != NULL; at = at->next)
        at->group = NULL;
}
