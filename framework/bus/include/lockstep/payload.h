/* payload.h - memory for the payload of an event, or the body of a call, that
 * is written where it is read.
 *
 * Payloads of 64 KiB and more go to nodes of this host through memory that both
 * have (docs/shared-memory.md#payloads), and are copied there first. What a
 * program writes there itself is not copied at all:
 *
 *   void *image;
 *   ls_payload_alloc(&image, node, size);
 *   draw(image);
 *   ls_emit_with(node, &(struct ls_emission){.event = "image",
 *                                            .data = image,
 *                                            .size = size,
 *                                            .release = ls_payload_free});
 *
 * or as the body of a call or of an answer (call.h):
 *
 *   .body = {.data = image, .size = size, .release = ls_payload_free}
 *
 * All listeners on this host read the same bytes. What goes to others goes over
 * their connections, from this memory too; so does all of it if one of the
 * listeners of an event is on another host.
 *
 * Owner: who has allocated it, until it gives it away with a release function,
 * ls_payload_free() or one of its own, which calls that sooner or later; what
 * is sent without one is copied, as always. From the moment that it is sent
 * nobody may write to it any more, even if the send fails, and after it was
 * released: others may still be reading it.
 *
 * It may be sent more than once, as an event and as the body of a call, to the
 * same nodes and to others, and in part: from any address, any size. Each
 * send takes over one share, and ls_payload_share() makes another. Memory is
 * used again when no share is left and nobody reads it.
 *
 * It outlives the node: what is held when that is stopped or destroyed stays as
 * it is, may still be written, and is to be freed, while the runtime is there.
 * When the process ends or is killed, readers finish what they have begun.
 * fork(2): in the child it must not be written, and freeing it does nothing.
 * Thread: any; one writes, then gives it to others. */
#ifndef LOCKSTEP_PAYLOAD_H
#define LOCKSTEP_PAYLOAD_H

#include "lockstep/node.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Memory for one payload. It lies where nodes of this host read it, if it has
 * 64 KiB or more, this node shares memory with another process by now, and
 * there is room. Otherwise it is ordinary memory: everything works the same,
 * and to send it to another process of this host costs the usual copy. Nobody
 * waits for room.
 *
 * There is room for 64 of them, in half of `shared_bytes` (node.h), which the
 * bodies of calls need, too. One that is never freed keeps it: `blocks_held` of
 * ls_node_stats() counts those that there are, `blocks_full` those that found
 * no room.
 * out:    own; its contents are undefined; aligned to 64 bytes. Give it away,
 *         or to ls_payload_free().
 * Errors: LS_ENOMEM; LS_ESTATE this process was forked. */
LS_MUST_USE LS_API int ls_payload_alloc(void **out, ls_node *node, size_t size);

/* One more share, which is freed by itself. Returns its argument. NULL is fine.
 */
LS_API void *ls_payload_share(void *payload);

/* Free a share; a release function. May be called with any lock held. NULL is
 * fine.
 * payload: what ls_payload_alloc() returned; or any address, if
 * hint:    is that; else NULL. */
LS_API void ls_payload_free(void *payload, void *hint);

#ifdef __cplusplus
}
#endif

#endif
