/* endure.h - a member that goes through epochs until one of the world is told
 * to end, whatever happens to it meanwhile. */
#ifndef MEMBER_ENDURE_H
#define MEMBER_ENDURE_H

#include <stdbool.h>

#include <lockstep/lockstep.h>

/* Start the node, go through epochs until a member is sent SIGTERM, which all
 * then leave after the same epoch, and say what happens, each line at once:
 *
 *   whole NS INCARNATION   the world is: all members are ready; one's own
 *   EPOCH ENTERED LEFT     an epoch was left
 *   failed NS STATUS TEXT  it was not; the end of it all unless `again`
 *
 * Returns an exit code. node: borrow; not started. Thread: main, alone. */
int endure(ls_node *node, bool again);

#endif
