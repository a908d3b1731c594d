/* The tree of a large world. The members of the view, ordered by id, have the
 * places 0, 1, 2 … Place 0 is the root, and leads; below place p stand the
 * places p·f+1 … p·f+f.
 *
 * What a member says to the one above it holds for all below it as well, but
 * for those that it lists, and all below those. So facts stay what they are
 * without a tree, facts about one member each, and only travel together:
 * whatever is right without a tree is right with one. */
#include "barrier_epoch_inside.h"
#include "coverage.h"

#include <stdlib.h>

static uint32_t above(const struct ls_epoch *epoch, uint32_t place)
{
    return (place - 1) / epoch->tree.fanout;
}

struct ls_epoch_peer *ls_tree_above(const struct ls_epoch *epoch)
{
    if (epoch->tree.way != LS_EPOCH_BY_TREE || epoch->tree.place == 0)
        return NULL;
    return ls_epoch_at(epoch, above(epoch, epoch->tree.place));
}

bool ls_tree_is_below(const struct ls_epoch *epoch,
                      const struct ls_epoch_peer *peer)
{
    return epoch->tree.fanout != 0 && peer->in_view && peer->place > 0 &&
           above(epoch, peer->place) == epoch->tree.place;
}

bool ls_tree_is_next(const struct ls_epoch *epoch,
                     const struct ls_epoch_peer *peer)
{
    return epoch->tree.fanout != 0 && peer->in_view &&
           (ls_tree_is_below(epoch, peer) ||
            (epoch->tree.place > 0 &&
             above(epoch, epoch->tree.place) == peer->place));
}

/* The first place below `place`, and one past the last. Wide, so that they do
 * not wrap. */
static uint64_t first_below(const struct ls_epoch *epoch, uint64_t place)
{
    const uint64_t first = place * epoch->tree.fanout + 1;
    return first < epoch->view.n ? first : epoch->view.n;
}

static uint64_t end_below(const struct ls_epoch *epoch, uint64_t place)
{
    const uint64_t end = (place + 1) * epoch->tree.fanout + 1;
    return end < epoch->view.n ? end : epoch->view.n;
}

/* Whether a place, or one that it stands below, is listed; up to `top`. */
static bool is_listed(const struct ls_epoch *epoch, uint32_t place,
                      uint32_t top, const struct ls_barrier_missing *missing,
                      size_t n)
{
    for (; n > 0 && place > top; place = above(epoch, place)) {
        const uint32_t id = ls_epoch_at(epoch, place)->id;
        for (size_t i = 0; i < n; i++) {
            if (missing[i].id == id)
                return true;
        }
    }
    return false;
}

void ls_tree_note(struct ls_epoch *epoch, struct ls_epoch_peer *peer,
                  enum ls_epoch_phase phase, uint32_t last,
                  const struct ls_barrier_missing *missing, size_t n_missing)
{
    if (ls_epoch_is_direct(epoch) || !ls_tree_is_below(epoch, peer) ||
        peer->branch >= phase)
        return;
    uint64_t from = first_below(epoch, peer->place);
    uint64_t end = end_below(epoch, peer->place);
    while (from < end) {
        for (uint64_t place = from; place < end; place++) {
            struct ls_epoch_peer *one = ls_epoch_at(epoch, (uint32_t)place);
            /* Of one who is lost nothing is believed any more. */
            if (!one->lost &&
                !is_listed(epoch, one->place, peer->place, missing, n_missing))
                ls_epoch_note(epoch, one, phase, 0, last);
        }
        end = end_below(epoch, end - 1);
        from = first_below(epoch, from);
    }
    if (n_missing > 0)
        return;
    peer->branch = phase;
    epoch->facts.last = last;
}

/* Whether this is true of all below. */
static bool has_branches(const struct ls_epoch *epoch,
                         enum ls_epoch_phase phase)
{
    const uint64_t end = end_below(epoch, epoch->tree.place);
    for (uint64_t i = first_below(epoch, epoch->tree.place); i < end; i++) {
        if (ls_epoch_at(epoch, (uint32_t)i)->branch < phase)
            return false;
    }
    return true;
}

void ls_tree_tell_up(struct ls_epoch *epoch)
{
    struct ls_epoch_peer *peer = ls_tree_above(epoch);
    if (peer == NULL || epoch->tree.told >= epoch->phase ||
        !has_branches(epoch, epoch->phase))
        return;
    epoch->tree.told = epoch->phase;
    ls_outbox_say(epoch, peer, false);
}

/* Those just below of whose branch this is not known. */
static void ask_below(struct ls_epoch *epoch, enum ls_epoch_phase until,
                      bool again)
{
    const uint64_t end = end_below(epoch, epoch->tree.place);
    for (uint64_t i = first_below(epoch, epoch->tree.place); i < end; i++) {
        struct ls_epoch_peer *peer = ls_epoch_at(epoch, (uint32_t)i);
        if (peer->branch < until)
            ls_outbox_say(epoch, peer, again);
    }
}

void ls_tree_tell_down(struct ls_epoch *epoch)
{
    ask_below(epoch, LS_EPOCH_READY, false);
}

void ls_tree_ask(struct ls_epoch *epoch)
{
    struct ls_epoch_peer *peer = ls_tree_above(epoch);
    if (peer != NULL)
        ls_outbox_say(epoch, peer, true);
    ask_below(epoch, epoch->phase, true);
}

bool ls_tree_knows(const struct ls_epoch *epoch,
                   const struct ls_epoch_peer *peer)
{
    if (epoch->tree.way != LS_EPOCH_BY_TREE)
        return true;
    if (peer->place == 0)
        return false;
    uint32_t place = peer->place;
    const uint32_t next = above(epoch, place);
    const struct ls_epoch_peer *over = ls_epoch_at(epoch, next);
    while (place > epoch->tree.place)
        place = above(epoch, place);
    return place == epoch->tree.place &&
           (over == NULL || over->phase >= LS_EPOCH_ENTERED);
}

void ls_tree_quit(struct ls_epoch *epoch)
{
    if (epoch->tree.way != LS_EPOCH_BY_TREE)
        return;
    ls_take(LS_TAKES_BARRIER_TREE_QUIT);
    epoch->tree.way = LS_EPOCH_BY_LEADER;
    epoch->clock.ask_every = LS_EPOCH_ASK_FIRST_NS;
    if (epoch->clock.ask_at > epoch->now + LS_EPOCH_ASK_FIRST_NS)
        epoch->clock.ask_at = epoch->now + LS_EPOCH_ASK_FIRST_NS;
}

static bool has_room_for_places(struct ls_epoch *epoch)
{
    if (epoch->view.n <= epoch->tree.n_places)
        return true;
    uint32_t *places =
        realloc(epoch->tree.places, epoch->view.n * sizeof *places);
    if (places == NULL)
        return false;
    epoch->tree.places = places;
    epoch->tree.n_places = epoch->view.n;
    return true;
}

static void give_places(struct ls_epoch *epoch)
{
    uint32_t place = 0;
    bool passed = false; /* this node's own place */
    for (size_t i = 0; i < epoch->peers.n; i++) {
        struct ls_epoch_peer *peer = &epoch->peers.items[i];
        if (!peer->in_view)
            continue;
        if (!passed && peer->id > epoch->id) {
            epoch->tree.place = place++;
            passed = true;
        }
        epoch->tree.places[place] = (uint32_t)i;
        peer->place = place++;
    }
    if (!passed)
        epoch->tree.place = place;
}

static uint32_t choose_fanout(const struct ls_epoch *epoch)
{
    if (epoch->rules.fanout != 0)
        return epoch->rules.fanout;
    return epoch->view.n <= LS_EPOCH_LEADER_MAX ? 1 : LS_EPOCH_FANOUT;
}

void ls_tree_choose(struct ls_epoch *epoch)
{
    const uint32_t most = epoch->rules.direct_max != 0 ? epoch->rules.direct_max
                                                       : LS_EPOCH_DIRECT_MAX;
    const uint32_t fanout = choose_fanout(epoch);
    epoch->tree.fanout = 0;
    epoch->tree.told = LS_EPOCH_NONE;
    epoch->tree.way =
        epoch->view.n <= most ? LS_EPOCH_DIRECT : LS_EPOCH_BY_LEADER;
    if (epoch->tree.way == LS_EPOCH_DIRECT || fanout == 1 ||
        epoch->view.n - 1 <= fanout || !has_room_for_places(epoch))
        return;
    epoch->tree.fanout = fanout;
    epoch->tree.way = LS_EPOCH_BY_TREE;
    give_places(epoch);
}

void ls_tree_shift(struct ls_epoch *epoch, size_t at)
{
    for (uint32_t i = 0; epoch->tree.fanout != 0 && i < epoch->view.n; i++)
        if (i != epoch->tree.place && epoch->tree.places[i] >= at)
            epoch->tree.places[i]++;
}
