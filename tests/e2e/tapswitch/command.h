/* command.h - what a line on the switch's standard input does. Hosts are
 * numbered from 1 in the order in which they were named; * is every host.
 *
 *   delay MS JITTER_MS [FROM TO]
 *   loss P [FROM TO]         P: 0 … 1
 *   duplicate P [FROM TO]
 *   reorder P [FROM TO]      is held back for another delay
 *   cut A B                  both directions between A and B
 *   oneway FROM TO           that direction alone
 *   heal [MS]                end all cuts, now or in so many ms; then the
 *                            switch says "healed NS"
 *   dead A                   for good: nothing from or to A passes
 *   stats
 *
 * Each line is answered by one: "ok NS", the figures, or "error: WHY". NS is
 * the time of the answer on the clock that all processes of a host share. */
#ifndef TAPSWITCH_COMMAND_H
#define TAPSWITCH_COMMAND_H

#include "fabric.h"

/* Carry out a line, which is cut into words, and write the answer. */
void command(struct fabric *fabric, char *line, int64_t now);

#endif
