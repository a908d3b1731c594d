/* Both sides of calls as state machines, over thousands of schedules drawn from
 * a seed: members that die, come again or are declared lost, messages that come
 * again at any time, cancels and deadlines. The test knows the truth. */
#include "call_table.h"
#include "request_table.h"

#include "base/seeds.h"
#include "lockstep/random.h"
#include "test.h"
#include "world_fixture.h"

#define NODES    3
#define CALLS    400 /* of one schedule */
#define LETTERS  4096
#define SERVED   "work"
#define MS       LS_NS_PER_MS
#define DEADLINE (50 * MS)

struct node;

/* What the test knows of a call: the truth that the tables are held to. */
struct asked {
    struct open_call entry;
    struct node *by;
    uint64_t server_life;
    uint32_t to;
    bool open, gone; /* gone: with the process that asked */
    int ends, runs;
    bool completed, failed; /* by its handler */
};

struct work {
    struct open_call entry;
    struct asked *of;
    struct node *at;
    bool run;
};

struct node {
    struct schedule *schedule;
    uint32_t id;
    uint64_t life;
    struct call_table calls;
    struct request_table requests;
};

/* On its way, or once it has come, to come again. */
struct letter {
    uint32_t from, to;
    uint64_t from_life;
    struct asked *of;
    struct call_message message;
    bool come;
};

struct loss {
    uint32_t told, of;
    uint64_t life;
};

struct schedule {
    struct ls_rng random;
    int64_t now;
    uint64_t lives;
    struct node nodes[NODES];
    struct asked asked[CALLS];
    size_t n_asked;
    struct letter letters[LETTERS];
    size_t n_letters;
    struct loss losses[64]; /* not told yet */
    size_t n_losses;
    struct work *works[CALLS];
    size_t n_works;
};

static struct served work = {.name = SERVED};

static uint64_t below(struct schedule *s, uint64_t n)
{
    return ls_rng_below(&s->random, n);
}

static struct node *any_node(struct schedule *s)
{
    return &s->nodes[below(s, NODES)];
}

static void post(struct schedule *s, const struct node *from, uint32_t to,
                 struct asked *of, const struct call_message *message)
{
    assert_true(s->n_letters < LETTERS);
    s->letters[s->n_letters++] = (struct letter){
        .from = from->id,
        .to = to,
        .from_life = to == from->id ? CALL_OWN_LIFE : from->life,
        .of = of,
        .message = *message};
}

static void begin_node(struct schedule *s, struct node *node)
{
    node->schedule = s;
    node->life = ++s->lives;
    assert_ok(call_table_init(&node->calls, CALLS, 1000));
    assert_ok(request_table_init(&node->requests, 0, CALLS, 1000));
    node->requests.served = &work;
}

/* ---- what ends ---- */

static void note_end(struct asked *asked)
{
    asked->ends++;
    asked->open = false;
    if (asked->entry.state == LS_CALL_COMPLETED)
        assert_true(asked->completed);
    if (asked->entry.state == LS_CALL_FAILED)
        assert_true(asked->failed);
}

static void on_ended(void *self, struct open_call *entry)
{
    (void)self;
    note_end((struct asked *)entry);
}

static void on_cancelled(void *self, struct open_call *entry)
{
    (void)self;
    assert_true(entry->state == LS_CALL_CANCELLED);
}

static void tell_loss(struct schedule *s, size_t index)
{
    const struct loss loss = s->losses[index];
    struct node *node = &s->nodes[loss.told];
    s->losses[index] = s->losses[--s->n_losses];
    call_table_lose(&node->calls, loss.of, loss.life, on_ended, NULL);
    request_table_lose(&node->requests, loss.of, loss.life, on_cancelled, NULL);
}

/* A life has ended: what is under way from it or to it is lost, and the others
 * will be told. */
static void lose_life(struct schedule *s, const struct node *node)
{
    for (size_t i = 0; i < s->n_letters; i++)
        if ((s->letters[i].from == node->id || s->letters[i].to == node->id) &&
            s->letters[i].from_life != CALL_OWN_LIFE)
            s->letters[i].come = true;
    for (uint32_t i = 0; i < NODES; i++)
        if (i != node->id)
            s->losses[s->n_losses++] = (struct loss){i, node->id, node->life};
    while (s->n_losses > 32)
        tell_loss(s, 0);
}

static void drop_work(struct schedule *s, size_t index)
{
    free(s->works[index]);
    s->works[index] = s->works[--s->n_works];
}

static void kill_node(struct schedule *s, struct node *node)
{
    lose_life(s, node);
    for (size_t i = 0; i < s->n_asked; i++)
        if (s->asked[i].by == node && s->asked[i].open) {
            s->asked[i].open = false;
            s->asked[i].gone = true;
        }
    for (size_t i = s->n_works; i-- > 0;)
        if (s->works[i]->at == node)
            drop_work(s, i);
    for (size_t i = 0; i < s->n_letters; i++)
        if (s->letters[i].from == node->id && s->letters[i].to == node->id) {
            s->letters[i].come = true;
            s->letters[i].from_life = UINT64_MAX; /* and never again */
        }
    for (size_t i = s->n_losses; i-- > 0;)
        if (s->losses[i].told == node->id)
            s->losses[i] = s->losses[--s->n_losses];
    call_table_fini(&node->calls);
    request_table_fini(&node->requests);
    begin_node(s, node);
}

/* It was declared lost, and goes on. */
static void renew_node(struct schedule *s, struct node *node)
{
    lose_life(s, node);
    node->life = ++s->lives;
    for (size_t i = s->n_losses; i-- > 0;) /* it has met nobody yet */
        if (s->losses[i].told == node->id)
            tell_loss(s, i);
    call_table_renew(&node->calls, node->life, on_ended, NULL);
    request_table_lose_all(&node->requests, false, on_cancelled, NULL);
}

/* ---- what happens ---- */

static void start_call(struct schedule *s)
{
    if (s->n_asked == CALLS)
        return;
    struct node *by = any_node(s);
    const struct node *to = any_node(s);
    struct asked *asked = &s->asked[s->n_asked++];
    const bool own = by == to;
    *asked = (struct asked){.by = by, .to = to->id, .open = true};
    asked->entry.peer = to->id;
    asked->entry.life = own ? CALL_OWN_LIFE : to->life;
    asked->entry.own = own ? CALL_OWN_LIFE : by->life;
    asked->entry.due.at = s->now + 1 + (int64_t)below(s, DEADLINE);
    asked->server_life = to->life;
    assert_ok(call_table_add(&by->calls, &asked->entry));
    post(s, by, to->id, asked,
         &(struct call_message){.kind = CALL_REQUEST,
                                .to = asked->entry.life,
                                .number = asked->entry.number,
                                .left_ms = 50,
                                .name = SERVED,
                                .name_size = strlen(SERVED)});
}

static void tell_cancel(struct schedule *s, struct asked *asked)
{
    note_end(asked);
    post(s, asked->by, asked->to, asked,
         &(struct call_message){.kind = CALL_CANCEL,
                                .to = asked->entry.life,
                                .number = asked->entry.number});
}

static void cancel_call(struct schedule *s)
{
    if (s->n_asked == 0)
        return;
    struct asked *asked = &s->asked[below(s, s->n_asked)];
    if (!asked->open)
        return;
    call_table_end(&asked->by->calls, &asked->entry, LS_CALL_CANCELLED);
    tell_cancel(s, asked);
}

static void pass_time(struct schedule *s, int64_t ns)
{
    s->now += ns;
    for (size_t i = 0; i < NODES; i++) {
        struct open_call *call;
        struct open_call *request;
        while ((call = call_table_expire(&s->nodes[i].calls, s->now)) != NULL)
            tell_cancel(s, (struct asked *)call);
        while ((request = request_table_expire(&s->nodes[i].requests,
                                               s->now)) != NULL)
            assert_true(request->state == LS_CALL_CANCELLED);
    }
}

static void take_request(struct schedule *s, struct node *node,
                         const struct letter *letter)
{
    enum ls_call_code code;
    const uint64_t own = letter->from == node->id ? CALL_OWN_LIFE : node->life;
    const enum request_verdict verdict = request_table_judge(
        &node->requests, letter->from, letter->from_life, own, &letter->message,
        0, &code, on_cancelled, NULL);
    if (verdict == REQUEST_STALE)
        return;
    assert_int_equal(verdict, REQUEST_ACCEPT);
    struct work *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->of = letter->of;
    w->at = node;
    w->entry.peer = letter->from;
    w->entry.life = letter->from_life;
    w->entry.own = own;
    w->entry.number = letter->message.number;
    w->entry.due.at = s->now + letter->message.left_ms * MS;
    assert_ok(open_calls_add(&node->requests.open, &w->entry));
    s->works[s->n_works++] = w;
}

static void deliver(struct schedule *s, const struct letter *letter)
{
    struct node *node = &s->nodes[letter->to];
    const struct call_message *m = &letter->message;
    if (m->kind == CALL_REQUEST) {
        take_request(s, node, letter);
    } else if (m->kind == CALL_CANCEL) {
        (void)request_table_cancel(
            &node->requests, letter->from, letter->from_life,
            letter->from == node->id ? CALL_OWN_LIFE : node->life, m->number);
    } else {
        struct open_call *ended = call_table_receive(&node->calls, letter->from,
                                                     letter->from_life, m);
        if (ended != NULL) {
            assert_ptr_equal(ended, &letter->of->entry);
            note_end(letter->of);
        }
    }
}

/* The oldest from one to the other comes. */
static bool deliver_next(struct schedule *s, uint32_t from, uint32_t to)
{
    for (size_t i = 0; i < s->n_letters; i++) {
        struct letter *letter = &s->letters[i];
        if (letter->come || letter->from != from || letter->to != to)
            continue;
        letter->come = true;
        const struct letter copy = *letter;
        deliver(s, &copy);
        return true;
    }
    return false;
}

static void deliver_all(struct schedule *s)
{
    for (uint32_t from = 0; from < NODES; from++)
        for (uint32_t to = 0; to < NODES; to++)
            while (deliver_next(s, from, to))
                ;
}

/* Anything that was ever said may come again, as long as the life that said it
 * is the one that is heard. */
static void repeat_one(struct schedule *s)
{
    if (s->n_letters == 0)
        return;
    const struct letter copy = s->letters[below(s, s->n_letters)];
    if (copy.come && (copy.from_life == s->nodes[copy.from].life ||
                      copy.from_life == CALL_OWN_LIFE))
        deliver(s, &copy);
}

static void work_on(struct schedule *s, size_t index)
{
    struct work *w = s->works[index];
    struct node *node = w->at;
    struct call_message answer = {
        .kind = CALL_STARTED, .to = w->entry.life, .number = w->entry.number};
    if (!w->run && w->entry.state != LS_CALL_CANCELLED) {
        w->run = true;
        w->of->runs++;
        assert_true(w->of->server_life == node->life ||
                    w->entry.own == CALL_OWN_LIFE);
        if (below(s, 2) == 0) { /* it answers later */
            w->entry.state = LS_CALL_STARTED;
            post(s, node, w->entry.peer, w->of, &answer);
            return;
        }
    }
    open_calls_remove(&node->requests.open, &w->entry);
    if (w->entry.state != LS_CALL_CANCELLED) {
        const bool well = below(s, 2) == 0;
        answer.kind = well ? CALL_COMPLETED : CALL_FAILED;
        w->of->completed = well;
        w->of->failed = !well;
        post(s, node, w->entry.peer, w->of, &answer);
    }
    drop_work(s, index);
}

static void step(struct schedule *s)
{
    const uint64_t what = below(s, 100);
    if (what < 25)
        start_call(s);
    else if (what < 60)
        (void)deliver_next(s, any_node(s)->id, any_node(s)->id);
    else if (what < 80 && s->n_works != 0)
        work_on(s, below(s, s->n_works));
    else if (what < 87)
        repeat_one(s);
    else if (what < 90)
        cancel_call(s);
    else if (what < 94)
        pass_time(s, (int64_t)below(s, DEADLINE / 4));
    else if (what < 97 && s->n_losses != 0)
        tell_loss(s, below(s, s->n_losses));
    else if (what == 98)
        kill_node(s, any_node(s));
    else if (what == 99)
        renew_node(s, any_node(s));
}

/* Everything comes to its end. */
static void finish(struct schedule *s)
{
    while (s->n_losses != 0)
        tell_loss(s, 0);
    deliver_all(s);
    pass_time(s, 2 * DEADLINE);
    while (s->n_works != 0)
        work_on(s, 0);
    deliver_all(s);
}

static void one_schedule(uint64_t seed)
{
    struct schedule *s = calloc(1, sizeof *s);
    assert_non_null(s);
    ls_rng_seed(&s->random, seed, 0);
    for (uint32_t i = 0; i < NODES; i++) {
        s->nodes[i].id = i;
        begin_node(s, &s->nodes[i]);
    }
    for (int i = 0; i < 1200; i++)
        step(s);
    finish(s);
    for (size_t i = 0; i < s->n_asked; i++) {
        const struct asked *asked = &s->asked[i];
        if (asked->ends != (asked->gone ? 0 : 1) || asked->runs > 1)
            fail_msg("seed %llu: call %zu ended %d times and was done %d times",
                     (unsigned long long)seed, i, asked->ends, asked->runs);
    }
    for (uint32_t i = 0; i < NODES; i++) {
        assert_int_equal(s->nodes[i].calls.open.n, 0);
        assert_int_equal(s->nodes[i].requests.open.n, 0);
        assert_true(s->nodes[i].requests.n_callers <= NODES);
        call_table_fini(&s->nodes[i].calls);
        request_table_fini(&s->nodes[i].requests);
    }
    free(s);
}

TEST(each_call_ends_once_and_is_done_at_most_once)
{
    const struct seeds seeds = seeds_of(3000);
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++)
        one_schedule(seed);
}
