/* room_words.h - what a member of a room says of itself, in memory of its own.
 *
 * Each word has one writer, the member that it belongs to, and is read by all.
 * Numbers of epochs are compared by their distance, so they may overflow. What
 * a member writes for an epoch lies in the slot of the epoch's parity: it is
 * written before `entered`, and stays until all have entered the next one.
 * Source: docs/shared-memory.md, docs/models/shared.pml. */
#ifndef LOCKSTEP_ROOM_WORDS_H
#define LOCKSTEP_ROOM_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "shared_memory.h"

enum {
    ROOM_MEMBERS_MAX = 64, /* a set of them is a word */
    ROOM_INLINE_BYTES = 16,
    ROOM_NAME_BYTES = 64,
    ROOM_SMALL_BYTES = 8192, /* of a slot beside the words */
    ROOM_CAUSES = 4,
};
#define ROOM_RESIGNED UINT32_MAX /* it listens to nobody, and will not come */
/* "\0lsroom3"; another one if what lies where, in chunks too, how many epochs
 * an operation has, or how members are woken is another. */
#define ROOM_MAGIC UINT64_C(0x336d6f6f72736c00)

typedef _Atomic uint64_t room_set;

/* Why an epoch failed. */
struct room_cause_words {
    ls_word epoch;
    ls_word status; /* negated */
    ls_word who;
    room_set missing, excluded;
};

struct room_words {
    /* What changes in each epoch. */
    _Alignas(64) ls_word entered; /* the last epoch that it has entered */
    ls_word sign[2];              /* a hash of what it calls */
    _Alignas(16) unsigned char in_line[2][ROOM_INLINE_BYTES];

    _Alignas(64) _Atomic uint64_t ending; /* low half: the last epoch that
                                           * ended for it; high half: the last
                                           * that succeeded */
    ls_word same; /* the last in which it has seen that all call the same */

    /* What all look at in each epoch, and seldom changes: it stays in their
     * caches. */
    _Alignas(64) ls_word alarms; /* grows with each change of what is in
                                  * `trouble` below */
    ls_word asleep;              /* what it sleeps for: CORE_ASLEEP_… in
                                  * room_core.h */

    /* Trouble. */
    _Alignas(64) room_set fenced; /* whom it has declared lost */
    ls_word frozen;  /* the last epoch that it does not leave by itself */
    ls_word gave_up; /* the last that it wants to end */
    ls_word reason;  /* why: a status, negated */
    _Atomic uint64_t heeds; /* whom it listens to: the high half an epoch, the
                             * low half the first that may lead in it, or
                             * ROOM_RESIGNED */
    struct room_cause_words causes[ROOM_CAUSES]; /* by epoch */

    /* A stream of chunks. */
    _Alignas(64) ls_word told;  /* chunks that it has put out, as a source */
    _Alignas(64) ls_word taken; /* chunks that it has taken, as a reader */

    _Alignas(64) char name[2][ROOM_NAME_BYTES]; /* of what it calls */
    _Atomic uint64_t size[2]; /* of what it brings, in bytes */
    /* Where in its store that lies, and what it gets; 0: not there. */
    _Atomic uint64_t brings_at[2], gets_at[2];

    /* Who this is: constant once it is offered. */
    _Alignas(64) uint64_t magic;
    uint8_t proof[LS_MEMORY_KEY_BYTES];

    _Alignas(64) unsigned char small[2][ROOM_SMALL_BYTES];
};

_Static_assert(offsetof(struct room_words, ending) == 64 &&
                   offsetof(struct room_words, alarms) == 128,
               "a line each");

/* Whether epoch a is b or a later one. */
static inline bool room_reached(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) >= 0;
}

static inline uint64_t room_ending(uint32_t ended, uint32_t good)
{
    return (uint64_t)good << 32 | ended;
}

static inline uint32_t room_ended(uint64_t ending)
{
    return (uint32_t)ending;
}

static inline uint32_t room_good(uint64_t ending)
{
    return (uint32_t)(ending >> 32);
}

#endif
