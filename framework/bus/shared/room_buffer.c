/* Buffers in the room: folded where they lie. Design notes:
 *
 * - All members allocate the same in the same order, so a buffer is at the same
 *   place in the memory of each.
 * - A fold has a share of whole pages for each member, in that member's memory.
 *   Mapped one after the other, the shares of all are the result: it is read
 *   where it was written.
 * - When a member is lost, the others have larger shares. */
#include <assert.h>
#include <stdlib.h>

#include "room_inside.h"

/* Divide a buffer among those that are counted. Errors: LS_ENOMEM, LS_EIO. */
static int share_out(ls_room *room, ls_room_buffer *buffer)
{
    struct ls_memory_piece pieces[ROOM_MEMBERS_MAX];
    size_t n = 0;
    ls_memory_view_end(buffer->view, buffer->view_bytes);
    buffer->view = NULL;
    for (unsigned i = 0; i < room->n; i++)
        if (room_has(room, i))
            pieces[n++].memory = room->members[i].memory;
    assert(n > 0); /* this member is */
    buffer->share = ls_memory_pages((buffer->size + n - 1) / n);
    buffer->view_bytes = n * buffer->share;
    for (size_t i = 0; i < n; i++) {
        pieces[i].offset = buffer->folded;
        pieces[i].size = buffer->share;
    }
    int status = ls_memory_reserve(room->members[room->me].memory,
                                   buffer->folded, buffer->share);
    if (status == LS_OK)
        status = ls_memory_view(&buffer->view, pieces, n);
    if (status == LS_OK)
        buffer->excluded = room->core.excluded;
    return status;
}

/* room->used has moved on, if it succeeds. */
static int place_buffer(ls_room *room, ls_room_buffer *buffer, size_t size)
{
    if (size == 0 || size > (room->end - room->used) / 2)
        return LS_ELIMIT;
    buffer->room = room;
    buffer->size = ls_memory_pages(size);
    buffer->offset = room->used;
    buffer->folded = room->used + buffer->size;
    /* A share may be as large as the buffer: if only one member is left. */
    if (2 * buffer->size > room->end - room->used)
        return LS_ELIMIT;
    const int status = ls_memory_reserve(room->members[room->me].memory,
                                         buffer->offset, buffer->size);
    return status == LS_OK ? share_out(room, buffer) : status;
}

int ls_room_alloc(ls_room *room, ls_room_buffer **out, size_t size, int wait_ms)
{
    *out = NULL;
    int status = room_call(room, "", "alloc", size, wait_ms);
    if (status != LS_OK)
        return status;
    ls_room_buffer *const made = calloc(1, sizeof *made);
    status = made == NULL ? LS_ENOMEM : place_buffer(room, made, size);
    status = status == LS_OK
                 ? room_pass(room)
                 : room_failed(room, core_give_up(&room->core, status));
    if (status != LS_OK) {
        if (made != NULL)
            ls_memory_view_end(made->view, made->view_bytes);
        free(made);
        return status;
    }
    assert(made != NULL);
    made->next = room->buffers;
    room->buffers = made;
    room->used += 2 * made->size;
    *out = made;
    return LS_OK;
}

void *ls_room_buffer_own(const ls_room_buffer *buffer)
{
    return room_own(buffer->room, buffer->offset);
}

const void *ls_room_buffer_at(const ls_room_buffer *buffer, unsigned place)
{
    const ls_room *const room = buffer->room;
    if (place >= room->n || !room_has(room, place))
        return NULL;
    return room_at(room, place, buffer->offset);
}

/* Which of the shares is this member's. */
static size_t own_share(const ls_room *room)
{
    size_t share = 0;
    for (unsigned i = 0; i < room->me; i++)
        share += room_has(room, i) ? 1 : 0;
    return share;
}

int ls_room_fold_buffer(ls_room *room, const char *name,
                        const struct ls_room_fold *fold, ls_room_buffer *buffer,
                        size_t count, const void **result, int wait_ms)
{
    int status = room_check_fold(room, fold);
    if (status == LS_OK && count > buffer->size / fold->width)
        status = ls_error(LS_EINVAL,
                          "room \"%s\": a buffer of %zu bytes has no %zu "
                          "numbers",
                          room->name, buffer->size, count);
    if (status == LS_OK)
        status = room_call(room, name, "fold_buffer",
                           room_shape(count, (unsigned)fold->width) ^
                               fold->sign ^ buffer->offset << 20,
                           wait_ms);
    if (status != LS_OK)
        return status;
    if (buffer->excluded != room->core.excluded &&
        (status = share_out(room, buffer)) != LS_OK)
        return room_failed(room, core_give_up(&room->core, status));
    room_is_to_copy(room, count * fold->width);
    status = room_pass(room);
    if (status != LS_OK)
        return status;
    const size_t begin = own_share(room) * buffer->share / fold->width;
    size_t end = begin + buffer->share / fold->width;
    if (end > count)
        end = count;
    if (begin < end && (!room->core.touched || ls_memory_touch(room->runtime)))
        room_fold(room, fold, buffer->offset + begin * fold->width,
                  room_own(room, buffer->folded), end - begin);
    status = room_pass(room);
    if (status == LS_OK)
        *result = buffer->view;
    return status;
}
