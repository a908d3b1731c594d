/* buffer.h - memory of ls_group_alloc(), and which operations use it.
 * Thread: serial with its group; buffer_drop(): any. */
#ifndef GROUP_BUFFER_H
#define GROUP_BUFFER_H

#include "lockstep/group.h"

struct group_buffer;

/* The buffer of this group, or of one that it was split off, that begins at
 * `data`, or that it lies in, is used by one more operation. NULL: it lies in
 * none. */
struct group_buffer *buffer_use(ls_group *group, const void *data);
/* One less. NULL is fine. */
void buffer_drop(struct group_buffer *buffer);
/* The group is destroyed: its buffers stay. */
void buffers_orphan(ls_group *group);

#endif
