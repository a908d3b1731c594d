/* runtime_threads_offer.h - memory that goes from one process to another, over
 * a unix socket: see shared_memory.h. */
#ifndef LOCKSTEP_RUNTIME_THREADS_OFFER_H
#define LOCKSTEP_RUNTIME_THREADS_OFFER_H

#include "memory_ops.h"

int ls_threads_offer_begin(ls_offer **out, ls_memory *memory, const char *path,
                           const uint8_t *key);
void ls_threads_offer_end(ls_offer *offer);
int ls_threads_folder(ls_runtime *runtime, char *out, size_t size,
                      uint64_t *host);
uint64_t ls_threads_host(void);
/* Remove what killed processes left in the folder of this path. */
void ls_threads_offers_sweep(const char *path);
int ls_threads_take(ls_memory *memory, const char *path, const uint8_t *key,
                    int64_t deadline);

#endif
