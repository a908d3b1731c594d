/* Who is counted in an epoch. */
#include <stdlib.h>
#include <string.h>

#include "barrier_epoch_parts.h"

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* A view's hash is the sum over its members, so their order is nothing. */
uint64_t ls_epoch_hash_member(uint32_t id, uint64_t incarnation)
{
    return mix(mix(id + UINT64_C(0x9e3779b97f4a7c15)) ^ incarnation);
}

struct ls_epoch_peer *ls_epoch_at(const struct ls_epoch *epoch, uint32_t place)
{
    return place == epoch->place ? NULL
                                 : &epoch->peers.items[epoch->places[place]];
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
    epoch->view += ls_epoch_hash_member(peer->id, peer->incarnation);
    epoch->lack_entered++;
    epoch->lack_ready++;
    if (peer->id < epoch->leader)
        epoch->leader = peer->id;
}

static bool has_room_for_places(struct ls_epoch *epoch)
{
    if (epoch->n_view <= epoch->n_places)
        return true;
    uint32_t *places = realloc(epoch->places, epoch->n_view * sizeof *places);
    if (places == NULL)
        return false;
    epoch->places = places;
    epoch->n_places = epoch->n_view;
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
            epoch->place = place++;
            passed = true;
        }
        epoch->places[place] = (uint32_t)i;
        peer->place = place++;
    }
    if (!passed)
        epoch->place = place;
}

static uint32_t choose_fanout(const struct ls_epoch *epoch)
{
    if (epoch->rules.fanout != 0)
        return epoch->rules.fanout;
    return epoch->n_view <= LS_EPOCH_LEADER_MAX ? 1 : LS_EPOCH_FANOUT;
}

/* A tree of which everyone stands just below the root is the leader's way.
 * Without memory for a tree this node strays from it, and the others follow. */
static void choose_way(struct ls_epoch *epoch)
{
    const uint32_t most = epoch->rules.direct_max != 0 ? epoch->rules.direct_max
                                                       : LS_EPOCH_DIRECT_MAX;
    const uint32_t fanout = choose_fanout(epoch);
    epoch->fanout = 0;
    epoch->told_branch = LS_EPOCH_NONE;
    epoch->way = epoch->n_view <= most ? LS_EPOCH_DIRECT : LS_EPOCH_BY_LEADER;
    if (epoch->way == LS_EPOCH_DIRECT || fanout == 1 ||
        epoch->n_view - 1 <= fanout || !has_room_for_places(epoch))
        return;
    epoch->fanout = fanout;
    epoch->way = LS_EPOCH_BY_TREE;
    give_places(epoch);
}

void ls_epoch_make_view(struct ls_epoch *epoch)
{
    ls_epoch_peers_compact(&epoch->peers);
    epoch->view = ls_epoch_hash_member(epoch->id, epoch->incarnation) +
                  mix(epoch->rules.hash);
    epoch->leader = epoch->id;
    epoch->lack_entered = 0;
    epoch->lack_ready = 0;
    epoch->lack_lost = 0;
    epoch->n_lost = 0;
    epoch->lost_hash = 0;
    epoch->claimed = false;
    epoch->released = false;
    for (size_t i = 0; i < epoch->peers.n; i++)
        count_in(epoch, &epoch->peers.items[i]);
    epoch->n_view = (uint32_t)epoch->lack_entered + 1;
    epoch->since = epoch->has_left && epoch->left_view == epoch->view
                       ? epoch->left_since
                       : epoch->epoch;
    choose_way(epoch);
}

void ls_epoch_note_since(struct ls_epoch *epoch, enum ls_epoch_phase phase,
                         uint64_t since)
{
    if (phase >= LS_EPOCH_READY)
        epoch->since = since;
    else if (since != epoch->since && !epoch->claimed)
        epoch->since = epoch->epoch;
}

void ls_epoch_keep_members(struct ls_epoch *epoch)
{
    if (epoch->has_left && epoch->left_view == epoch->view &&
        epoch->n_left_ids == epoch->n_view)
        return;
    uint32_t *ids = realloc(epoch->left_ids, epoch->n_view * sizeof *ids);
    epoch->n_left_ids = 0;
    if (ids == NULL)
        return;
    epoch->left_ids = ids;
    bool passed = false;
    for (size_t i = 0; i < epoch->peers.n; i++) {
        const struct ls_epoch_peer *peer = &epoch->peers.items[i];
        if (!peer->in_view)
            continue;
        if (!passed && peer->id > epoch->id) {
            ids[epoch->n_left_ids++] = epoch->id;
            passed = true;
        }
        ids[epoch->n_left_ids++] = peer->id;
    }
    if (!passed)
        ids[epoch->n_left_ids++] = epoch->id;
}
