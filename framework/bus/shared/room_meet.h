/* room_meet.h - how the members of a room find each other: see room_meet.c.
 * Thread: owner. */
#ifndef LOCKSTEP_ROOM_MEET_H
#define LOCKSTEP_ROOM_MEET_H

#include "room_inside.h"

/* Offer this member's memory, and take that of the others; room->members have
 * their ids. On success all have all.
 * made:   LS_OK this member's memory, and the folder, are there; or why not, as
 *         ls_error_text() has it: the others are told.
 * Errors: `made`; those of ls_room_create(). */
LS_MUST_USE int room_meet(ls_room *room, int made, const char *folder,
                          int64_t deadline);
/* Nobody tells the room of losses any more. */
void room_part(ls_room *room);

#endif
