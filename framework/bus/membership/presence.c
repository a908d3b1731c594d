/* Presences: who came, who went, and who may have an id when two want it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coverage.h"
#include "membership_inside.h"

bool membership_is_leaf(const struct membership *m)
{
    return m->options.topology == LS_TOPOLOGY_STAR && !m->options.hub;
}

/* Whether this may be the hub of a leaf: while that is not known, anybody. */
static bool may_be_hub(const struct membership *m, uint32_t id)
{
    return membership_is_leaf(m) && (!m->has_hub || m->hub == id);
}

/* ---- who says it ------------------------------------------------------- */

static int forged(uint32_t says, uint32_t is)
{
    return ls_error(LS_EPROTO, "node %" PRIu32 " speaks as node %" PRIu32, is,
                    says);
}

/* By whom a presence is shown, if not by itself. */
enum shown { SHOWN, SHOWN_WITH_RIVAL, SHOWN_BY_NO_HUB };

/* The hub that shows it has to be here, or to wait for its id: then the leaf
 * waits with it. One that has ended here may be met again, and with it its
 * leaves. */
static enum shown how_shown(const struct membership *m,
                            const struct wire_presence *p)
{
    if (!p->relayed)
        return SHOWN;
    const struct member *hub = membership_find(m, p->relay);
    if (!may_be_hub(m, p->relay) || hub == NULL || hub->via != NULL)
        return SHOWN_BY_NO_HUB;
    if (member_shows(hub, p->link))
        return SHOWN;
    return hub->n_rival != 0 && hub->rival->link == p->link ? SHOWN_WITH_RIVAL
                                                            : SHOWN_BY_NO_HUB;
}

/* Whether whoever says it may speak for this id, over this link. */
static int check_speaker(const struct membership *m, const struct speaker *by,
                         const struct wire_presence *p)
{
    const uint32_t speaks = p->relayed ? p->relay : p->id;
    if (by->proved && by->id != speaks)
        return forged(speaks, by->id);
    if (how_shown(m, p) == SHOWN_BY_NO_HUB)
        return ls_error(LS_EPROTO,
                        "node %" PRIu32 " is said to be reached through node "
                        "%" PRIu32 ", which is not a hub of this node",
                        p->id, p->relay);
    return LS_OK;
}

bool membership_shows_over(const struct membership *m, uint64_t connection,
                           bool ready)
{
    for (size_t i = 0; i < m->n; i++)
        if ((m->at[i]->state == LS_MEMBER_READY || !ready) &&
            member_shows_over(m->at[i], connection))
            return true;
    return false;
}

int membership_may_send_up(const struct membership *m, const struct speaker *by,
                           uint32_t id, bool shown)
{
    if (shown)
        return LS_OK;
    if (by->proved)
        return by->id == id ? LS_OK : forged(id, by->id);
    return membership_shows_over(m, by->connection, false)
               ? ls_error(LS_EPROTO, "another speaks as node %" PRIu32, id)
               : LS_OK;
}

int membership_may_listen(const struct membership *m, const struct speaker *by,
                          uint32_t id)
{
    const struct member *hub =
        by->proved && by->id != id ? membership_find(m, by->id) : NULL;
    /* A hub's own presence comes after these. What somebody else has shown of
     * it, and has taken back, says nothing of it. */
    const bool is_leaf = hub != NULL && hub->via != NULL && hub->n_present != 0;
    if (!by->spoken || !by->proved || by->id == id ||
        (may_be_hub(m, by->id) && !is_leaf))
        return LS_OK;
    return forged(id, by->id);
}

/* Whether a presence is of this world; else why not. */
static int check_world(const struct membership *m,
                       const struct wire_presence *p)
{
    const uint64_t mine = m->options.config_hash;
    if (strcmp(p->job, m->options.job) != 0)
        return ls_error(LS_EMISMATCH,
                        "node %u at %s belongs to job \"%s\", this is job "
                        "\"%s\"",
                        p->id, p->endpoint, p->job, m->options.job);
    if (p->config_hash != 0 && mine != 0 && p->config_hash != mine)
        return ls_error(LS_EMISMATCH,
                        "node %u at %s runs another configuration "
                        "(%" PRIx64 ") than node %u at %s (%" PRIx64 "); start "
                        "all with the same file, and version of its plugin",
                        p->id, p->endpoint, p->config_hash, m->options.id,
                        m->options.endpoint, mine);
    return LS_OK;
}

int membership_own_id(struct membership *m, uint64_t incarnation,
                      const char *endpoint)
{
    (void)ls_error(LS_EEXIST,
                   "node id %u is taken: %s has it, and so has %s; give each "
                   "node its own id",
                   m->options.id, endpoint, m->options.endpoint);
    /* Whoever is in a world stays; of two who are in none, the one with the
     * smaller number. */
    if (!m->formed && incarnation < m->incarnation) {
        membership_fail(m, LS_EEXIST, ls_error_text());
        return LS_EEXIST;
    }
    m->ops->tell(m->self, &(struct verdict){.to = m->options.id,
                                            .reason = LS_EEXIST,
                                            .subject = incarnation,
                                            .text = m->options.endpoint});
    return LS_EEXIST;
}

/* ---- coming ------------------------------------------------------------ */

/* Whether the world has room for one more. Who has been let in has its place,
 * also before it is a member, until it is late. */
static bool has_room(const struct membership *m, const struct member *one)
{
    uint32_t n = 2; /* this node and that one */
    for (size_t i = 0; i < m->n; i++) {
        const struct member *other = m->at[i];
        if (other == one || other->barred || !member_is_alive(other))
            continue;
        const bool let_in = other->present_at != 0 && !other->late;
        n += other->state == LS_MEMBER_READY || let_in ? 1 : 0;
    }
    return n <= m->options.world_max;
}

void membership_settle(struct membership *m, struct member *member, int64_t now)
{
    /* Another may have its place by now. */
    if (member->late && member_may_be_ready(member) && !has_room(m, member)) {
        member->barred = true;
        member->late = member->announced = false;
        m->announce = true; /* it is told */
        return;
    }
    membership_apply(m, member, member_settle(member), now);
}

static void welcome(struct membership *m, struct member *member, int64_t now)
{
    m->version++;
    m->announce = true;
    /* One that this node will not reach cannot become ready. */
    if (member->via == NULL && !m->leaving &&
        !m->ops->dial(m->self, member, member->id, member->endpoint))
        member->late = true;
    membership_settle(m, member, now);
}

/* How it is reached, and what it says of itself. Without memory nothing is
 * known of it: what an earlier life has said is not of this one. */
static int describe(const struct membership *m, struct member *member,
                    const struct wire_presence *p)
{
    const int status = member_texts(member, p);
    if (status != LS_OK)
        member_no_texts(member);
    member->via = p->relayed ? membership_find(m, p->relay) : NULL;
    return status;
}

/* status: of describe(). */
static int arrives(struct membership *m, struct member *member,
                   const struct wire_presence *p, int status, int64_t now)
{
    if (status == LS_OK && (member->via != NULL || has_room(m, member))) {
        welcome(m, member, now);
        return LS_OK;
    }
    ls_take(LS_TAKES_MEMBER_BARRED);
    member->barred = true;
    m->announce = true; /* it is told */
    if (status != LS_OK && m->put_off.link == 0)
        m->put_off = *p;
    if (status != LS_OK)
        return status;
    return ls_error(LS_ELIMIT, "node %u at %s is one too many for this world",
                    member->id, member->endpoint);
}

bool membership_puts_off(const struct membership *m,
                         const struct member *member)
{
    return m->put_off.link != 0 && m->put_off.id == member->id &&
           m->put_off.incarnation == member->incarnation && member->barred &&
           member->n_present != 0;
}

void membership_take_up(struct membership *m, int64_t now)
{
    struct member *member =
        m->put_off.link != 0 ? membership_find(m, m->put_off.id) : NULL;
    if (member != NULL && membership_puts_off(m, member)) {
        if (member_texts(member, &m->put_off) != LS_OK)
            return;
        member->barred = member->via == NULL && !has_room(m, member);
        m->announce = true;
        if (!member->barred)
            welcome(m, member, now);
    }
    m->put_off.link = 0;
}

static struct showing *free_showing(struct member *member)
{
    for (size_t i = 0; i < MEMBERSHIP_SHOWINGS; i++)
        if (member->showings[i].n == 0)
            return &member->showings[i];
    return NULL;
}

/* It is in force in this life, once more. */
static int appears(struct membership *m, struct member *member,
                   const struct wire_presence *p, uint64_t connection,
                   int64_t now)
{
    struct showing *showing = member_showing(member, p->link, p->incarnation);
    const bool first = member->n_present == 0;
    if (showing == NULL && (showing = free_showing(member)) == NULL)
        return ls_error(LS_EPROTO, "node %u is present over more than %d links",
                        p->id, MEMBERSHIP_SHOWINGS);
    /* Twice over one connection, of which only one end will be told. */
    if (showing->n != 0 && connection != 0 && showing->connection == connection)
        return ls_error(LS_EPROTO, "node %u is present twice over one link",
                        p->id);
    showing->link = p->link;
    showing->incarnation = p->incarnation;
    showing->connection = connection;
    showing->n++;
    const enum member_change change = member_appears(member, now);
    if (change == MEMBER_RETURNED) {
        membership_apply(m, member, change, now);
        return LS_OK;
    }
    const int status = first ? describe(m, member, p) : LS_OK;
    if (member_has_ended(member)) {
        m->announce = true; /* it is told so */
        return LS_OK;
    }
    return first ? arrives(m, member, p, status, now) : LS_OK;
}

static void admit_leaves(struct membership *m, const struct member *hub,
                         int64_t now);

/* Who waited for this id is there now, or waits on. */
static void rival_appears(struct membership *m, struct member *member,
                          unsigned n, int64_t now)
{
    const struct wire_presence rival = *member->rival;
    const uint64_t connection = member->rival_connection;
    if (rival.incarnation != member->incarnation) {
        member->n_rival = n;
        return;
    }
    for (unsigned i = 0; i < n; i++)
        (void)appears(m, member, &rival, connection, now);
    admit_leaves(m, member, now);
}

/* Those that waited with this hub for its id. */
static void admit_leaves(struct membership *m, const struct member *hub,
                         int64_t now)
{
    for (size_t i = 0; i < m->n; i++) {
        struct member *leaf = m->at[i];
        const unsigned n = leaf->n_rival;
        if (n == 0 || !leaf->rival->relayed || leaf->rival->relay != hub->id ||
            how_shown(m, leaf->rival) != SHOWN)
            continue;
        if (leaf->incarnation == leaf->rival->incarnation) {
            leaf->n_rival = 0;
            rival_appears(m, leaf, n, now);
        } else if (member_is_alive(leaf)) {
            membership_replace(m, leaf, leaf->rival->incarnation, now);
        } else {
            membership_admit_rival(m, leaf, now);
        }
    }
}

void membership_replace(struct membership *m, struct member *member,
                        uint64_t incarnation, int64_t now)
{
    struct showing kept[MEMBERSHIP_SHOWINGS];
    const unsigned n_rival = member->n_rival;
    ls_take(LS_TAKES_MEMBER_REPLACED);
    memcpy(kept, member->showings, sizeof kept);
    member->n_rival = 0;
    membership_apply(m, member, member_is_lost(member, LS_ELOST), now);
    membership_begin_life(m, member, incarnation);
    /* The numbers of its links stay its own; what was shown over them in the
     * life before will be taken back. */
    for (size_t i = 0; i < MEMBERSHIP_SHOWINGS; i++)
        member->showings[i].link = kept[i].n != 0 ? kept[i].link : 0;
    if (n_rival != 0)
        rival_appears(m, member, n_rival, now);
}

/* It waits for the id. */
static int wait(struct member *member, const struct wire_presence *p,
                uint64_t connection, int64_t now)
{
    if (member->n_rival != 0 && member->rival->link == p->link &&
        member->rival->incarnation == p->incarnation) {
        member->n_rival++;
        return LS_EEXIST;
    }
    if (member->rival == NULL &&
        (member->rival = malloc(sizeof *member->rival)) == NULL)
        return LS_EEXIST; /* it comes again with its next connection */
    ls_take(LS_TAKES_MEMBER_RIVAL);
    *member->rival = *p;
    member->rival_connection = connection;
    member->n_rival = 1;
    member->rival_at = now;
    member_ask(member, now);
    return LS_EEXIST;
}

/* Two want one id. Whether the one that has it still runs is asked of its
 * host, and seen by its heartbeats. */
static int compete(struct member *member, const struct wire_presence *p,
                   uint64_t connection, int64_t now)
{
    (void)ls_error(LS_EEXIST, "node id %u is taken by %s; %s wants it too",
                   p->id, member->endpoint, p->endpoint);
    return wait(member, p, connection, now);
}

/* Another life than the one known. Its own link proves that it goes on as that;
 * a hub knows its leaves; and one that is away, and whose address another has
 * now, is gone. */
static bool takes_over(const struct member *member,
                       const struct wire_presence *p)
{
    return p->relayed || member_shows(member, p->link) ||
           (member->away_at != 0 && strcmp(member->endpoint, p->endpoint) == 0);
}

static int ended_before(struct membership *m, struct member *member,
                        uint64_t incarnation, int64_t now)
{
    ls_take(LS_TAKES_MEMBER_REMINDED);
    if (now - member->reminded_at >= m->options.heartbeat_ns)
        m->ops->tell(m->self, &(struct verdict){.to = member->id,
                                                .reason = LS_ELOST,
                                                .subject = incarnation,
                                                .text = ""});
    member->reminded_at = now;
    return ls_error(LS_ENOENT, "this life of node %u has ended", member->id);
}

/* One that has ended is there, and told so, until it is another. */
static void begin_life(struct membership *m, struct member *member,
                       uint64_t incarnation, bool ended)
{
    membership_begin_life(m, member, incarnation);
    if (ended)
        (void)member_is_lost(member, LS_ELOST);
}

/* What was under way from another life of it may have come since it was lost.
 */
static int other_life(struct membership *m, struct member *member,
                      const struct wire_presence *p, uint64_t connection,
                      int64_t now)
{
    const bool ended = member_ended_as(member, p->incarnation);
    const bool alive = member_is_alive(member);
    if (ended && !alive && !member_lost_as(member, p->incarnation))
        return ended_before(m, member, p->incarnation, now);
    if (!alive)
        begin_life(m, member, p->incarnation, ended);
    else if (takes_over(member, p) && !ended)
        membership_replace(m, member, p->incarnation, now);
    else
        return compete(member, p, connection, now);
    return appears(m, member, p, connection, now);
}

void membership_unsuited(struct membership *m, const struct wire_presence *p)
{
    m->ops->tell(m->self, &(struct verdict){.to = p->id,
                                            .reason = LS_EMISMATCH,
                                            .subject = p->incarnation,
                                            .text = ""});
}

int membership_may_show(const struct membership *m, const struct speaker *by,
                        const struct wire_presence *p)
{
    const int status = check_world(m, p);
    return status == LS_OK ? check_speaker(m, by, p) : status;
}

int membership_present(struct membership *m, const struct speaker *by,
                       const struct wire_presence *p, int64_t now)
{
    const int status = membership_may_show(m, by, p);
    if (status != LS_OK)
        return status;
    if (p->id == m->options.id)
        return p->incarnation == m->incarnation
                   ? LS_OK
                   : membership_own_id(m, p->incarnation, p->endpoint);
    struct member *member = membership_find(m, p->id);
    const bool waits = how_shown(m, p) == SHOWN_WITH_RIVAL;
    if (member != NULL && member->incarnation != p->incarnation && !waits)
        return other_life(m, member, p, by->connection, now);
    if (member == NULL)
        member = membership_note(m, p->id, p->incarnation);
    if (member == NULL)
        return ls_error(LS_ELIMIT, "no room to note node %u", p->id);
    if (!waits)
        return appears(m, member, p, by->connection, now);
    (void)ls_error(LS_EEXIST, "node %" PRIu32 " waits with node %" PRIu32,
                   p->id, p->relay);
    return wait(member, p, by->connection, now);
}

void membership_admit_barred(struct membership *m, int64_t now)
{
    for (size_t i = 0; i < m->n; i++) {
        struct member *member = m->at[i];
        if (!member->barred || member->n_present == 0 ||
            member->texts == NULL || !has_room(m, member))
            continue;
        member->barred = false;
        welcome(m, member, now);
    }
}

void membership_admit_rival(struct membership *m, struct member *member,
                            int64_t now)
{
    if (member->n_rival == 0 || member_is_alive(member) ||
        how_shown(m, member->rival) != SHOWN)
        return;
    const unsigned n = member->n_rival;
    const bool ended = member_ended_as(member, member->rival->incarnation);
    ls_take(LS_TAKES_MEMBER_RIVAL_IN);
    member->n_rival = 0;
    begin_life(m, member, member->rival->incarnation, ended);
    rival_appears(m, member, n, now);
}

/* ---- going ------------------------------------------------------------- */

static void gone(struct membership *m, struct member *member, bool read_it,
                 int64_t now)
{
    m->version++;
    const enum member_change change = member_disappears(member, now);
    if (m->leaving && read_it)
        member->away_at = 0; /* it has read the farewell */
    else
        membership_apply(m, member, change, now);
    membership_admit_rival(m, member, now);
}

int membership_absent(struct membership *m, const struct speaker *by,
                      const struct wire_presence *p, int64_t now)
{
    struct member *member = membership_find(m, p->id);
    int status = LS_OK;
    if (by->spoken)
        status = check_speaker(m, by, p);
    if (status != LS_OK || p->id == m->options.id)
        return status;
    struct showing *showing =
        member == NULL ? NULL : member_showing(member, p->link, p->incarnation);
    if (showing != NULL) {
        /* Its number stays known until another takes its place: what was taken
         * back by a connection that broke comes again with it. */
        showing->n--;
        gone(m, member, by->spoken || by->own, now);
        return LS_OK;
    }
    if (member != NULL && member->n_rival != 0 &&
        member->rival->link == p->link &&
        member->rival->incarnation == p->incarnation) {
        member->n_rival--;
        return LS_OK;
    }
    /* Of one that was refused; or of one that goes on as another life. */
    if (!by->spoken || (member != NULL && member_shows(member, p->link) &&
                        member_ended_as(member, p->incarnation)))
        return LS_OK;
    return ls_error(LS_ENOENT, "the presence of node %u was not shown", p->id);
}
