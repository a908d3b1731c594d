/* Who is counted in an epoch. */
#include <stdlib.h>
#include <string.h>

#include "barrier_epoch_inside.h"
#include "mix.h"

/* A view's hash is the sum over its members, so their order is nothing. Who
 * takes one for another's neighbour makes another tree. */
uint64_t ls_epoch_hash_member(uint32_t id, uint64_t incarnation, uint64_t host)
{
    return mix(mix(id + UINT64_C(0x9e3779b97f4a7c15)) ^ incarnation ^
               mix(host));
}

struct ls_epoch_peer *ls_epoch_at(const struct ls_epoch *epoch, uint32_t place)
{
    const struct ls_epoch_tree *tree = &epoch->tree;
    return place == tree->place
               ? NULL
               : &epoch->peers
                      .items[tree->members[tree->layout.places[place].member]];
}

/* Count a peer in the epoch that begins. */
static void count_in(struct ls_epoch *epoch, struct ls_epoch_peer *peer)
{
    peer->lost = false;
    peer->gave_up = false;
    peer->chased = false;
    peer->phase = LS_EPOCH_NONE;
    peer->branch = LS_EPOCH_NONE;
    peer->told = LS_EPOCH_NONE;
    peer->n_lost = 0;
    peer->in_view = peer->joined;
    if (!peer->in_view) {
        if (!peer->counted)
            peer->since = epoch->epoch + 1;
        return;
    }
    peer->counted = true;
    epoch->view.hash +=
        ls_epoch_hash_member(peer->id, peer->incarnation, peer->host);
    epoch->facts.lack_entered++;
    epoch->facts.lack_ready++;
    if (peer->id < epoch->view.leader)
        epoch->view.leader = peer->id;
}

void ls_epoch_make_view(struct ls_epoch *epoch)
{
    ls_epoch_peers_compact(&epoch->peers);
    epoch->view.hash =
        ls_epoch_hash_member(epoch->id, epoch->incarnation, epoch->host) +
        mix(epoch->rules.hash);
    epoch->view.leader = epoch->id;
    epoch->facts = (struct ls_epoch_facts){.own_flags = epoch->facts.own_flags};
    epoch->losses.n = 0;
    epoch->losses.hash = 0;
    for (size_t i = 0; i < epoch->peers.n; i++)
        count_in(epoch, &epoch->peers.items[i]);
    epoch->view.n = (uint32_t)epoch->facts.lack_entered + 1;
    epoch->view.since = epoch->left.any && epoch->left.view == epoch->view.hash
                            ? epoch->left.since
                            : epoch->epoch;
    ls_tree_choose(epoch);
}

void ls_epoch_note_since(struct ls_epoch *epoch, enum ls_epoch_phase phase,
                         uint64_t since)
{
    if (phase >= LS_EPOCH_READY)
        epoch->view.since = since;
    else if (since != epoch->view.since && !epoch->facts.claimed)
        epoch->view.since = epoch->epoch;
}

static void keep_member(struct ls_epoch_left *left, uint32_t id, uint64_t life)
{
    left->ids[left->n_ids] = id;
    left->lives[left->n_ids++] = life;
}

static bool make_room(struct ls_epoch_left *left, size_t n)
{
    uint32_t *ids = realloc(left->ids, n * sizeof *ids);
    if (ids != NULL)
        left->ids = ids;
    uint64_t *lives = realloc(left->lives, n * sizeof *lives);
    if (lives != NULL)
        left->lives = lives;
    return ids != NULL && lives != NULL;
}

static void keep_members(struct ls_epoch *epoch)
{
    struct ls_epoch_left *left = &epoch->left;
    if (left->any && left->view == epoch->view.hash &&
        left->n_ids == epoch->view.n)
        return;
    left->n_ids = 0;
    if (!make_room(left, epoch->view.n))
        return;
    bool passed = false;
    for (size_t i = 0; i < epoch->peers.n; i++) {
        const struct ls_epoch_peer *peer = &epoch->peers.items[i];
        if (!peer->in_view)
            continue;
        if (!passed && peer->id > epoch->id) {
            keep_member(left, epoch->id, epoch->incarnation);
            passed = true;
        }
        keep_member(left, peer->id, peer->incarnation);
    }
    if (!passed)
        keep_member(left, epoch->id, epoch->incarnation);
}

void ls_epoch_keep_left(struct ls_epoch *epoch)
{
    struct ls_epoch_left *left = &epoch->left;
    keep_members(epoch);
    left->any = true;
    left->epoch = epoch->epoch;
    left->view = epoch->view.hash;
    left->since = epoch->view.since;
    left->flags = epoch->facts.flags;
    left->last = epoch->facts.last;
}
