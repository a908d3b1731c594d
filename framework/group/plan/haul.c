#include "haul.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fold.h"
#include "lockstep/runtime.h"

/* Numbers folded at a time: these bytes stay in the cache. */
#define BLOCK ((size_t)8 << 10)

static bool is_taken(const struct plan_move *move)
{
    return move->what == PLAN_TAKE || move->what == PLAN_FOLD_IN;
}

int haul_init(struct haul *haul, const struct plan_shape *shape, const void *in,
              void *out)
{
    *haul = (struct haul){.shape = *shape, .in = in, .out = out};
    int status = plan_make(&haul->plan, shape);
    if (status != LS_OK)
        return status;
    haul->state = calloc(haul->plan.n + 1, sizeof *haul->state);
    if (haul->plan.scratch_bytes > 0)
        haul->scratch = malloc(haul->plan.scratch_bytes);
    if (haul->state == NULL ||
        (haul->scratch == NULL && haul->plan.scratch_bytes > 0))
        return ls_error(LS_ENOMEM, "group: no memory for %zu bytes",
                        haul->plan.scratch_bytes);
    for (size_t i = 0; i < haul->plan.n; i++) {
        const struct plan_move *move = &haul->plan.moves[i];
        haul->state[i].ask_at = LS_FOREVER;
        haul->n_open += move->what != PLAN_SEND && move->size > 0 ? 1 : 0;
    }
    return LS_OK;
}

void haul_fini(struct haul *haul)
{
    plan_fini(&haul->plan);
    free(haul->state);
    free(haul->scratch);
    *haul = (struct haul){.n_open = 0};
}

/* --- going on ----------------------------------------------------------- */

static const unsigned char *source_of(const struct haul *haul,
                                      const struct plan_move *move)
{
    const unsigned char *from = move->buffer == PLAN_IN    ? haul->in
                                : move->buffer == PLAN_OUT ? haul->out
                                                           : haul->scratch;
    return from + move->at;
}

static unsigned char *place_of(const struct haul *haul,
                               const struct plan_move *move)
{
    assert(move->buffer != PLAN_IN);
    return (move->buffer == PLAN_OUT ? haul->out : haul->scratch) + move->at;
}

/* How many bytes of what a move follows are there. */
static size_t ready_for(const struct haul *haul, const struct plan_move *move)
{
    size_t ready = move->size;
    if (move->after < 0)
        return ready;
    const uint32_t n = move->what == PLAN_FOLD ? haul->shape.n - 1 : 1;
    for (uint32_t i = 0; i < n; i++) {
        const size_t done = haul->state[(size_t)move->after + i].done;
        ready = done < ready ? done : ready;
    }
    return ready;
}

/* The numbers of a rank that a fold is of. */
static const unsigned char *
folded_of(const struct haul *haul, const struct plan_move *move, uint32_t rank)
{
    if (rank == haul->shape.rank)
        return haul->in + move->own;
    const uint32_t i = rank < haul->shape.rank ? rank : rank - 1;
    return source_of(haul, &haul->plan.moves[(size_t)move->after + i]);
}

/* Put together apart, as this rank's own may lie where the result goes. */
static void fold_block(const struct haul *haul, const struct plan_move *move,
                       size_t from, size_t size)
{
    const struct group_form *form = &haul->shape.form;
    const size_t count = size / group_type_bytes(form->type);
    double block[BLOCK / sizeof(double)];
    memcpy(block, folded_of(haul, move, 0) + from, size);
    for (uint32_t rank = 1; rank < haul->shape.n; rank++)
        fold_two(form->type, form->fold, block, block,
                 folded_of(haul, move, rank) + from, count);
    if (move->ends)
        fold_end(form->type, form->fold, block, count, haul->shape.n);
    memcpy(place_of(haul, move) + from, block, size);
}

static void fold_on(struct haul *haul, const struct plan_move *move,
                    struct haul_state *state)
{
    const size_t unit = group_type_bytes(haul->shape.form.type);
    const size_t ready = ready_for(haul, move) / unit * unit;
    while (state->done < ready) {
        const size_t left = ready - state->done;
        const size_t size = left < BLOCK ? left : BLOCK;
        fold_block(haul, move, state->done, size);
        state->done += size;
        haul->n_open -= state->done == move->size ? 1 : 0;
    }
}

static void send_on(const struct haul *haul, const struct plan_move *move,
                    struct haul_state *state, const struct haul_post *post)
{
    size_t end = ready_for(haul, move);
    end = state->wanted < end ? state->wanted : end;
    while (state->sent < end) {
        const size_t left = end - state->sent;
        const size_t size = left < HAUL_PIECE ? left : HAUL_PIECE;
        post->data(post->self, move, state->sent,
                   source_of(haul, move) + state->sent, size);
        state->sent += size;
    }
}

/* Whatever can, since some move has come further. Folds come before what they
 * are sent by. */
static void go_on(struct haul *haul, const struct haul_post *post)
{
    for (size_t i = 0; i < haul->plan.n; i++) {
        const struct plan_move *move = &haul->plan.moves[i];
        if (move->what == PLAN_FOLD)
            fold_on(haul, move, &haul->state[i]);
        else if (move->what == PLAN_SEND)
            send_on(haul, move, &haul->state[i], post);
    }
}

/* --- asking ------------------------------------------------------------- */

static void ask(const struct haul *haul, size_t i, int64_t now, bool again,
                const struct haul_post *post)
{
    const struct plan_move *move = &haul->plan.moves[i];
    struct haul_state *state = &haul->state[i];
    const size_t left = move->size - state->done;
    state->wanted = state->done + (left < HAUL_WINDOW ? left : HAUL_WINDOW);
    state->ask_every = !again ? HAUL_ASK_FIRST_NS
                       : state->ask_every < HAUL_ASK_LAST_NS / 2
                           ? 2 * state->ask_every
                           : HAUL_ASK_LAST_NS;
    state->ask_at = now + state->ask_every;
    post->want(post->self, move, state->done, state->wanted, again);
}

static void copy(struct haul *haul, const struct plan_move *move,
                 struct haul_state *state)
{
    unsigned char *to = place_of(haul, move);
    if (to != haul->in + move->own)
        memmove(to, haul->in + move->own, move->size);
    state->done = move->size;
    haul->n_open--;
}

void haul_begin(struct haul *haul, int64_t now, const struct haul_post *post)
{
    for (size_t i = 0; i < haul->plan.n; i++) {
        const struct plan_move *move = &haul->plan.moves[i];
        if (move->what == PLAN_COPY)
            copy(haul, move, &haul->state[i]);
        else if (is_taken(move))
            ask(haul, i, now, false, post);
    }
    go_on(haul, post);
}

int64_t haul_tick(struct haul *haul, int64_t now, const struct haul_post *post)
{
    int64_t next = LS_FOREVER;
    for (size_t i = 0; i < haul->plan.n; i++) {
        if (haul->state[i].ask_at <= now)
            ask(haul, i, now, true, post);
        if (haul->state[i].ask_at < next)
            next = haul->state[i].ask_at;
    }
    return next;
}

bool haul_lacks(const struct haul *haul, uint32_t *rank)
{
    for (size_t i = 0; i < haul->plan.n; i++) {
        const struct plan_move *move = &haul->plan.moves[i];
        if (is_taken(move) && haul->state[i].done < move->size) {
            *rank = move->peer;
            return true;
        }
    }
    return false;
}

/* --- what comes --------------------------------------------------------- */

static size_t find(const struct haul *haul, uint32_t peer, uint32_t lane,
                   bool taken)
{
    size_t i = 0;
    while (i < haul->plan.n &&
           (haul->plan.moves[i].peer != peer ||
            haul->plan.moves[i].lane != lane ||
            (taken ? !is_taken(&haul->plan.moves[i])
                   : haul->plan.moves[i].what != PLAN_SEND)))
        i++;
    return i;
}

/* What has come, with this rank's own: through memory that is aligned. */
static void fold_in(const struct haul *haul, const struct plan_move *move,
                    size_t done, const unsigned char *data, size_t size)
{
    const struct group_form *form = &haul->shape.form;
    double block[BLOCK / sizeof(double)];
    for (size_t at = 0; at < size; at += BLOCK) {
        const size_t part = size - at < BLOCK ? size - at : BLOCK;
        const size_t count = part / group_type_bytes(form->type);
        unsigned char *to = place_of(haul, move) + done + at;
        memcpy(block, data + at, part);
        fold_two(form->type, form->fold, to, block,
                 haul->in + move->at + done + at, count);
        if (move->ends)
            fold_end(form->type, form->fold, to, count, haul->shape.n);
    }
}

bool haul_take(struct haul *haul, int64_t now, uint32_t peer, uint32_t lane,
               size_t offset, const void *data, size_t size,
               const struct haul_post *post)
{
    const size_t i = find(haul, peer, lane, true);
    if (i == haul->plan.n)
        return false;
    const struct plan_move *move = &haul->plan.moves[i];
    struct haul_state *state = &haul->state[i];
    const bool folds = move->what == PLAN_FOLD_IN;
    if (size == 0 || offset > move->size || size > move->size - offset ||
        (folds && size % group_type_bytes(haul->shape.form.type) != 0))
        return false;
    if (offset != state->done)
        return true;
    if (folds)
        fold_in(haul, move, state->done, data, size);
    else
        memcpy(place_of(haul, move) + offset, data, size);
    state->done += size;
    state->ask_at = now + HAUL_ASK_FIRST_NS;
    state->ask_every = HAUL_ASK_FIRST_NS;
    if (state->done == move->size) {
        state->ask_at = LS_FOREVER;
        haul->n_open--;
    } else if (state->wanted < move->size &&
               state->wanted - state->done <= HAUL_WINDOW / 2) {
        ask(haul, i, now, false, post);
    }
    go_on(haul, post);
    return true;
}

bool haul_wanted(struct haul *haul, uint32_t peer, uint32_t lane, size_t have,
                 size_t upto, bool again, const struct haul_post *post)
{
    const size_t i = find(haul, peer, lane, false);
    if (i == haul->plan.n)
        return false;
    const struct plan_move *move = &haul->plan.moves[i];
    struct haul_state *state = &haul->state[i];
    if (upto > move->size || have > upto)
        return false;
    if (upto > state->wanted)
        state->wanted = upto;
    if (have > state->done)
        state->done = have;
    /* What was sent beyond that has been lost on the way. */
    if (again && have < state->sent && have >= state->done)
        state->sent = have;
    send_on(haul, move, state, post);
    return true;
}
