#include "stream.h"

#include <stdlib.h>

#include "coverage.h"

#define FIRST_CAPACITY 64

/* ---- sending ----------------------------------------------------------- */

static struct stream_item *item_at(const struct stream_sender *s,
                                   uint64_t number)
{
    return &s->items[number & (s->capacity - 1)];
}

/* How long to wait for an acknowledgement, at first. Before any has come, the
 * network may be a slow one. */
static int64_t patience(const struct stream_sender *s)
{
    const int64_t under_way = (int64_t)(s->sent_bytes - s->acked_bytes);
    int64_t patience =
        2 * (s->round_trip != 0 ? s->round_trip : under_way * STREAM_BYTE_NS);
    if (patience < s->round_trip + 4 * s->spread)
        patience = s->round_trip + 4 * s->spread;
    if (patience < s->patience)
        patience = s->patience;
    if (patience < STREAM_RESEND_NS)
        return STREAM_RESEND_NS;
    return patience < STREAM_PATIENCE_NS ? patience : STREAM_PATIENCE_NS;
}

void stream_sender_init(struct stream_sender *s)
{
    *s = (struct stream_sender){.base = 1,
                                .cursor = 1,
                                .next = 1,
                                .again = 1,
                                .again_to = 1,
                                .repaired = 1,
                                .burst = STREAM_BURST,
                                .taught = 1,
                                .room_messages = STREAM_FIRST_MESSAGES,
                                .room_bytes = STREAM_FIRST_BYTES,
                                .most = SIZE_MAX,
                                .interval = STREAM_RESEND_NS,
                                .resend_at = LS_FOREVER};
}

/* The oldest leaves. */
static void release(struct stream_sender *s, stream_free_fn *fn, void *self)
{
    struct stream_item *item = item_at(s, s->base++);
    if (s->base <= s->cursor)
        s->acked_bytes += item->bytes;
    if (item->control) {
        s->n_control--;
    } else {
        s->n_data--;
        s->data_bytes -= item->bytes;
    }
    fn(self, item->content);
}

void stream_sender_fini(struct stream_sender *s, stream_free_fn *fn, void *self)
{
    while (s->base < s->next)
        release(s, fn, self);
    free(s->items);
    stream_sender_init(s);
}

bool stream_has_room(const struct stream_sender *s, size_t bytes, bool control)
{
    if (control)
        return s->n_control < STREAM_CONTROL_MAX;
    if (s->n_data < s->room_messages && s->data_bytes + bytes <= s->room_bytes)
        return true;
    ls_take(LS_TAKES_STREAM_FULL);
    return false;
}

static int grow(struct stream_sender *s)
{
    const size_t capacity = s->capacity == 0 ? FIRST_CAPACITY : 2 * s->capacity;
    struct stream_item *items = calloc(capacity, sizeof *items);
    if (items == NULL)
        return ls_error(LS_ENOMEM, "no memory for a message to be kept");
    for (uint64_t n = s->base; n < s->next; n++)
        items[n & (capacity - 1)] = *item_at(s, n);
    free(s->items);
    s->items = items;
    s->capacity = capacity;
    return LS_OK;
}

int stream_push(struct stream_sender *s, void *content, size_t bytes,
                bool control)
{
    if (s->next - s->base == s->capacity) {
        const int status = grow(s);
        if (status != LS_OK)
            return status;
    }
    *item_at(s, s->next++) = (struct stream_item){
        .content = content, .bytes = bytes, .control = control};
    if (control) {
        s->n_control++;
    } else {
        s->n_data++;
        s->data_bytes += bytes;
    }
    return LS_OK;
}

/* The next of those to be transmitted again, or 0. */
static uint64_t next_again(struct stream_sender *s)
{
    if (s->again < s->base)
        s->again = s->base;
    while (s->again < s->again_to && item_at(s, s->again)->arrived)
        s->again++;
    if (s->again >= s->again_to ||
        (s->burst != STREAM_BURST && s->again >= s->base + s->burst))
        return 0; /* new ones are not late by that */
    const size_t bytes = item_at(s, s->again)->bytes;
    if (s->again >= s->base + STREAM_BURST ||
        (s->again_bytes != 0 && s->again_bytes + bytes > s->most))
        return UINT64_MAX; /* not before an acknowledgement, or the clock */
    s->again_bytes += bytes;
    item_at(s, s->again)->again = true;
    return s->again++;
}

/* The next new one that there is room for on the way, or 0. */
static uint64_t next_new(struct stream_sender *s, int64_t now)
{
    if (s->cursor == s->next || s->cursor >= s->base + STREAM_REACH)
        return 0;
    struct stream_item *item = item_at(s, s->cursor);
    const uint64_t under_way = s->sent_bytes - s->acked_bytes;
    if (under_way != 0 && under_way + item->bytes > s->most)
        return 0;
    s->sent_bytes += item->bytes;
    item->sent_at = now;
    return s->cursor++;
}

const struct stream_item *stream_next(struct stream_sender *s, int64_t now,
                                      uint64_t *number, bool *again)
{
    *number = next_again(s);
    *again = *number != 0;
    if (*number == UINT64_MAX)
        return NULL;
    if (*number == 0 && (*number = next_new(s, now)) == 0)
        return NULL;
    ls_take(*again ? LS_TAKES_STREAM_AGAIN : LS_TAKES_STREAM_FIRST);
    if (*again)
        s->filled_at = now;
    const bool blind = s->round_trip == 0 && !*again;
    if (blind && s->interval < patience(s))
        s->interval = patience(s);
    if (blind || s->resend_at == LS_FOREVER)
        s->resend_at = now + s->interval;
    return item_at(s, *number);
}

/* One has arrived, `now`. The time of what was transmitted more than once says
 * nothing: which of them came is not known, and a cut may lie between (Karn;
 * RFC 6298, section 3). Nor is it ever too short: it may be too long, `late`,
 * after an acknowledgement that was lost, and counts then only if it is less.
 * It differs, on a busy host by much, so both the mean and how far they are
 * from it are kept (section 2). */
static void measure(struct stream_sender *s, uint64_t number, int64_t now,
                    bool late)
{
    const struct stream_item *item = item_at(s, number);
    const int64_t took = now - item->sent_at;
    if (item->again || number < s->clocked || (late && took >= s->round_trip))
        return;
    const bool first = s->round_trip == 0 || s->patience != 0;
    s->spread = first ? 0 : (3 * s->spread + llabs(took - s->round_trip)) / 4;
    s->round_trip = first ? took : (7 * s->round_trip + took) / 8;
    s->patience = 0;
}

/* What the receiver has behind a gap tells that the gap was lost, or overtaken:
 * it is filled at once; and once more when something has arrived that was
 * transmitted after that, since then it was lost again (RFC 8985). Without such
 * news it is left to the clock. */
static void repair(struct stream_sender *s, uint64_t also, int64_t now,
                   bool late)
{
    uint64_t latest = 0; /* of those that have arrived now */
    uint64_t beyond = s->base;
    bool filled_in_vain = false;
    for (unsigned i = 0; i < 64; i++) {
        const uint64_t number = s->base + i;
        if ((also >> i & 1) == 0 || number >= s->cursor)
            continue;
        struct stream_item *item = item_at(s, number);
        latest = item->arrived ? latest : number;
        filled_in_vain = filled_in_vain || (!item->arrived && !item->again &&
                                            item->sent_at > s->filled_at);
        item->arrived = true;
        beyond = number;
    }
    if (latest != 0)
        measure(s, latest, now, late);
    if (filled_in_vain)
        s->repaired = s->base;
    if (beyond <= s->repaired)
        return;
    if (s->again >= s->again_to) {
        s->again = s->repaired > s->base ? s->repaired : s->base;
        s->again_to = beyond;
        if (s->again < beyond)
            ls_take(LS_TAKES_STREAM_REPAIR);
    }
    s->repaired = beyond;
}

/* Those up to one have arrived: how long it took, if none of them was missing
 * meanwhile. */
static void measure_last(struct stream_sender *s, uint64_t number, int64_t now,
                         bool late)
{
    for (uint64_t n = s->base; n < number; n++) {
        if (item_at(s, n)->again)
            return;
    }
    measure(s, number, now, late);
}

/* What came twice had not been lost: it only took longer than was waited. How
 * long is not known, so twice as long is waited, until it is, and not much
 * longer than it took at most: a cut, in which all was transmitted many times,
 * must not count for more. What was under way together teaches once. */
static void learn_patience(struct stream_sender *s,
                           const struct stream_ack *ack, int64_t now, bool late)
{
    if (ack->repeats <= s->repeats)
        return;
    s->repeats = ack->repeats;
    const struct stream_item *item = item_at(s, ack->number);
    if (ack->number < s->taught || !item->again || late)
        return;
    ls_take(LS_TAKES_STREAM_PATIENCE);
    s->taught = s->cursor;
    const int64_t before = patience(s);
    const int64_t more = s->interval > 2 * before ? s->interval : 2 * before;
    const int64_t took = 5 * (now - item->sent_at) / 4;
    s->patience = more < took ? more : took > before ? took : before;
}

/* After the clock. If one has come that was not transmitted again, it was only
 * late, and the rest may be, too: that is left to the clock. Else what was
 * transmitted again is of use, and so is the rest. */
static void heed_repeats(struct stream_sender *s, uint64_t number)
{
    if (s->burst != STREAM_BURST && number >= s->again)
        s->again_to = s->again;
    s->burst = STREAM_BURST;
}

bool stream_acknowledge(struct stream_sender *s, const struct stream_ack *ack,
                        int64_t now, stream_free_fn *fn, void *self)
{
    if (ack->sequence <= s->last_ack || ack->number >= s->cursor) {
        ls_take(LS_TAKES_STREAM_ACK_STALE);
        return false; /* overtaken by a later one, or a lie */
    }
    /* One before it, which was lost, may have said so long ago. */
    const bool late = ack->sequence != s->last_ack + 1;
    s->last_ack = ack->sequence;
    s->room_messages = ack->room_messages;
    s->room_bytes = ack->room_bytes;
    const bool progress = ack->number >= s->base;
    ls_take(progress ? LS_TAKES_STREAM_ACKED : LS_TAKES_STREAM_ACK_SAME);
    if (progress) {
        s->again_bytes = 0;
        heed_repeats(s, ack->number);
        measure_last(s, ack->number, now, late);
        learn_patience(s, ack, now, late);
    }
    while (s->base <= ack->number)
        release(s, fn, self);
    if (ack->number + 1 == s->base)
        repair(s, ack->also, now, late);
    if (progress) {
        s->interval = patience(s);
        s->resend_at = s->base < s->cursor ? now + s->interval : LS_FOREVER;
    }
    return true;
}

int64_t stream_tick(struct stream_sender *s, int64_t now)
{
    if (s->resend_at > now)
        return s->resend_at;
    const int64_t interval = s->interval;
    const uint64_t burst = s->burst == STREAM_BURST ? 1 : 2 * s->burst;
    ls_take(LS_TAKES_STREAM_CLOCK);
    stream_rewind(s);
    s->burst = burst; /* they may be late, and not lost */
    s->clocked = s->cursor;
    const int64_t most = 2 * s->interval > STREAM_RESEND_MAX_NS
                             ? 2 * s->interval
                             : STREAM_RESEND_MAX_NS;
    s->interval = 2 * interval < most ? 2 * interval : most;
    s->resend_at = s->base < s->cursor ? now + s->interval : LS_FOREVER;
    return s->resend_at;
}

void stream_rewind(struct stream_sender *s)
{
    s->again = s->repaired = s->base;
    s->again_to = s->cursor;
    s->burst = STREAM_BURST;
    s->again_bytes = 0;
    s->interval = patience(s);
    s->resend_at = LS_FOREVER; /* from when the first is transmitted */
}

/* ---- receiving --------------------------------------------------------- */

static struct stream_slot *slot_at(const struct stream_receiver *r,
                                   uint64_t number)
{
    return &r->slots[number % STREAM_REACH];
}

void stream_receiver_init(struct stream_receiver *r)
{
    *r = (struct stream_receiver){.next = 1};
}

/* Take out what is kept under this number, or NULL. */
static void *take_out(struct stream_receiver *r, uint64_t number)
{
    struct stream_slot *slot = slot_at(r, number);
    void *content = slot->content;
    if (content == NULL)
        return NULL;
    r->n_held--;
    r->held_bytes -= slot->bytes;
    slot->content = NULL;
    return content;
}

void stream_receiver_fini(struct stream_receiver *r, stream_free_fn *fn,
                          void *self)
{
    for (uint64_t number = r->next; r->n_held != 0; number++) {
        void *content = take_out(r, number);
        if (content != NULL)
            fn(self, content);
    }
    free(r->slots);
    stream_receiver_init(r);
}

enum stream_verdict stream_receive(struct stream_receiver *r, uint64_t number,
                                   void *content, size_t bytes,
                                   size_t max_bytes)
{
    if (number < r->next) {
        ls_take(LS_TAKES_STREAM_REPEATED);
        return STREAM_REPEATED;
    }
    if (number == r->next &&
        (r->n_held == 0 || slot_at(r, number)->content == NULL)) {
        r->next++;
        ls_take(LS_TAKES_STREAM_DELIVER);
        return STREAM_DELIVER;
    }
    if (number - r->next >= STREAM_REACH || r->held_bytes + bytes > max_bytes) {
        ls_take(LS_TAKES_STREAM_BEYOND);
        return STREAM_BEYOND;
    }
    if (r->slots == NULL &&
        (r->slots = calloc(STREAM_REACH, sizeof *r->slots)) == NULL)
        return STREAM_BEYOND;
    struct stream_slot *slot = slot_at(r, number);
    if (slot->content != NULL) {
        ls_take(LS_TAKES_STREAM_REPEATED_HELD);
        return STREAM_REPEATED;
    }
    ls_take(LS_TAKES_STREAM_HOLD);
    *slot = (struct stream_slot){content, bytes};
    r->n_held++;
    r->held_bytes += bytes;
    return STREAM_HOLD;
}

void *stream_take(struct stream_receiver *r)
{
    if (r->n_held == 0)
        return NULL;
    void *content = take_out(r, r->next);
    if (content != NULL) {
        ls_take(LS_TAKES_STREAM_TAKEN);
        r->next++;
    }
    return content;
}

uint64_t stream_also(const struct stream_receiver *r)
{
    uint64_t also = 0;
    for (unsigned i = 1; i < 64 && r->n_held != 0; i++)
        if (slot_at(r, r->next + i)->content != NULL)
            also |= UINT64_C(1) << i;
    return also;
}
