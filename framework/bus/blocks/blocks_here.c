/* The memories of the nodes of this process, which other nodes of it take as
 * they are: with no socket, no descriptor, and no mapping of their own, of
 * which as many as nodes talk to each other would be too many. */
#include <string.h>

#include "blocks_inside.h"

static struct {
    atomic_flag busy; /* held for a few instructions */
    struct blocks *first;
} here = {.busy = ATOMIC_FLAG_INIT};

static void take_list(void)
{
    while (atomic_flag_test_and_set_explicit(&here.busy, memory_order_acquire))
        ;
}

static void let_go_of_list(void)
{
    atomic_flag_clear_explicit(&here.busy, memory_order_release);
}

void blocks_here_offer(struct blocks *blocks)
{
    take_list();
    blocks->next_here = here.first;
    here.first = blocks;
    let_go_of_list();
}

void blocks_here_end(struct blocks *blocks)
{
    take_list();
    struct blocks **at = &here.first;
    while (*at != NULL && *at != blocks)
        at = &(*at)->next_here;
    if (*at != NULL)
        *at = blocks->next_here;
    let_go_of_list();
}

static bool is_what_it_says(const struct blocks *blocks,
                            const struct block_notice *offer)
{
    return memcmp(blocks->own.key, offer->key, sizeof offer->key) == 0 &&
           memcmp(blocks->own.proof, offer->proof, sizeof offer->proof) == 0;
}

struct blocks *blocks_here_take(const struct block_notice *offer)
{
    take_list();
    struct blocks *at = here.first;
    while (at != NULL && !is_what_it_says(at, offer))
        at = at->next_here;
    if (at != NULL)
        (void)atomic_fetch_add(&at->users, 1);
    let_go_of_list();
    return at;
}
