/* memory.h - what this process has needed at most. */
#ifndef LOCKSTEP_MEMORY_H
#define LOCKSTEP_MEMORY_H

#include <stdint.h>

/* Largest resident size so far, in KiB; 0 when the system does not tell. */
int64_t memory_peak_kib(void);

#endif
