/* The tree of a large world, or of one on several hosts. Who stands where says
 * barrier_layout.h; place 0 is the root, and leads.
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
    return epoch->tree.layout.places[place].above;
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
    return epoch->tree.grown && peer->in_view && peer->place > 0 &&
           above(epoch, peer->place) == epoch->tree.place;
}

bool ls_tree_is_next(const struct ls_epoch *epoch,
                     const struct ls_epoch_peer *peer)
{
    return epoch->tree.grown && peer->in_view &&
           (ls_tree_is_below(epoch, peer) ||
            (epoch->tree.place > 0 &&
             above(epoch, epoch->tree.place) == peer->place));
}

static uint32_t first_below(const struct ls_epoch *epoch, uint32_t place)
{
    return epoch->tree.layout.places[place].below;
}

/* One past the last place below. */
static uint32_t end_below(const struct ls_epoch *epoch, uint32_t place)
{
    return first_below(epoch, place + 1);
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
    uint32_t from = first_below(epoch, peer->place);
    uint32_t end = end_below(epoch, peer->place);
    while (from < end) {
        for (uint32_t place = from; place < end; place++) {
            struct ls_epoch_peer *one = ls_epoch_at(epoch, place);
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
    const uint32_t end = end_below(epoch, epoch->tree.place);
    for (uint32_t i = first_below(epoch, epoch->tree.place); i < end; i++) {
        if (ls_epoch_at(epoch, i)->branch < phase)
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
    const uint32_t end = end_below(epoch, epoch->tree.place);
    for (uint32_t i = first_below(epoch, epoch->tree.place); i < end; i++) {
        struct ls_epoch_peer *peer = ls_epoch_at(epoch, i);
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

/* Keep who is counted, by id, and the host of each. */
static bool gather(struct ls_epoch *epoch)
{
    struct ls_epoch_tree *tree = &epoch->tree;
    const uint32_t n = epoch->view.n;
    if (n > tree->capacity) {
        uint32_t *members = realloc(tree->members, n * sizeof *members);
        if (members != NULL)
            tree->members = members;
        uint64_t *hosts = realloc(tree->hosts, n * sizeof *hosts);
        if (hosts != NULL)
            tree->hosts = hosts;
        if (members == NULL || hosts == NULL)
            return false;
        tree->capacity = n;
    }
    uint32_t at = 0;
    tree->own = n - 1;
    for (size_t i = 0; i < epoch->peers.n; i++) {
        const struct ls_epoch_peer *peer = &epoch->peers.items[i];
        if (!peer->in_view)
            continue;
        if (tree->own == n - 1 && peer->id > epoch->id)
            tree->own = at++;
        tree->hosts[at] = peer->host;
        tree->members[at++] = (uint32_t)i;
    }
    tree->hosts[tree->own] = epoch->host;
    return true;
}

static void give_places(struct ls_epoch *epoch)
{
    struct ls_epoch_tree *tree = &epoch->tree;
    for (uint32_t place = 0; place < epoch->view.n; place++) {
        const uint32_t member = tree->layout.places[place].member;
        if (member == tree->own)
            tree->place = place;
        else
            epoch->peers.items[tree->members[member]].place = place;
    }
}

/* Whether some are on one host, and others on another. Where one names none, as
 * a peer may that knows only the leader's way, few make no tree. */
static bool is_on_hosts(const struct ls_layout *layout)
{
    for (uint32_t i = 0; i < layout->n; i++)
        if (layout->hosts[i] == 0)
            return false;
    return layout->n_hosts > 1 && layout->n_hosts < layout->n;
}

/* Whether a tree saves anything: a round of it takes longer. */
static bool is_worth_it(const struct ls_epoch *epoch)
{
    const struct ls_layout *layout = &epoch->tree.layout;
    return !ls_layout_is_flat(layout) &&
           (epoch->rules.fanout != 0 || layout->n > LS_EPOCH_LEADER_MAX ||
            is_on_hosts(layout));
}

void ls_tree_choose(struct ls_epoch *epoch)
{
    const uint32_t most = epoch->rules.direct_max != 0 ? epoch->rules.direct_max
                                                       : LS_EPOCH_DIRECT_MAX;
    const uint32_t fanout =
        epoch->rules.fanout != 0 ? epoch->rules.fanout : LS_EPOCH_FANOUT;
    struct ls_epoch_tree *tree = &epoch->tree;
    tree->grown = false;
    tree->told = LS_EPOCH_NONE;
    tree->way = epoch->view.n <= most ? LS_EPOCH_DIRECT : LS_EPOCH_BY_LEADER;
    if (tree->way == LS_EPOCH_DIRECT || fanout == 1 || !gather(epoch) ||
        !ls_layout_make(&tree->layout, tree->hosts, epoch->view.n, fanout) ||
        !is_worth_it(epoch))
        return;
    tree->grown = true;
    tree->way = LS_EPOCH_BY_TREE;
    give_places(epoch);
}

void ls_tree_shift(struct ls_epoch *epoch, size_t at)
{
    const struct ls_epoch_tree *tree = &epoch->tree;
    for (uint32_t i = 0; tree->grown && i < epoch->view.n; i++)
        if (i != tree->own && tree->members[i] >= at)
            tree->members[i]++;
}

void ls_tree_fini(struct ls_epoch *epoch)
{
    ls_layout_fini(&epoch->tree.layout);
    free(epoch->tree.members);
    free(epoch->tree.hosts);
}
