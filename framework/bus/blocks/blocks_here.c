/* The memories of the nodes of this process, which other nodes of it take as
 * they are: with no socket, no descriptor, and no mapping of their own, of
 * which as many as nodes talk to each other would be too many. */
#include <string.h>

#include "blocks_inside.h"
#include "brief_lock.h"

static struct {
    atomic_flag lock;
    struct blocks *first;
} here = {.lock = ATOMIC_FLAG_INIT};

void blocks_here_offer(struct blocks *blocks)
{
    ls_brief_lock(&here.lock);
    blocks->next_here = here.first;
    here.first = blocks;
    ls_brief_unlock(&here.lock);
}

void blocks_here_end(struct blocks *blocks)
{
    ls_brief_lock(&here.lock);
    struct blocks **at = &here.first;
    while (*at != NULL && *at != blocks)
        at = &(*at)->next_here;
    if (*at != NULL)
        *at = blocks->next_here;
    ls_brief_unlock(&here.lock);
}

static bool is_what_it_says(const struct blocks *blocks,
                            const struct block_notice *offer)
{
    return memcmp(blocks->own.key, offer->key, sizeof offer->key) == 0 &&
           memcmp(blocks->own.proof, offer->proof, sizeof offer->proof) == 0;
}

struct blocks *blocks_here_take(const struct block_notice *offer)
{
    ls_brief_lock(&here.lock);
    struct blocks *at = here.first;
    while (at != NULL && !is_what_it_says(at, offer))
        at = at->next_here;
    if (at != NULL)
        (void)atomic_fetch_add(&at->users, 1);
    ls_brief_unlock(&here.lock);
    return at;
}
