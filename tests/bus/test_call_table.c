/* Both sides of calls as state machines, one thing at a time. */
#include "call_table.h"
#include "request_table.h"

#include "lockstep/random.h"
#include "test.h"
#include "world_fixture.h"

/* ---- the side that asks ------------------------------------------------ */

static void count_ended(void *self, struct open_call *entry)
{
    assert_int_equal(entry->state, LS_CALL_LOST);
    ++*(int *)self;
}

static struct open_call *added(struct call_table *table, uint32_t to,
                               uint64_t life, int64_t at)
{
    struct open_call *entry = calloc(1, sizeof *entry);
    assert_non_null(entry);
    entry->peer = to;
    entry->life = life;
    entry->own = 5;
    entry->due.at = at;
    assert_ok(call_table_add(table, entry));
    return entry;
}

static struct call_message reply_to(const struct open_call *entry,
                                    enum call_kind kind)
{
    return (struct call_message){
        .kind = kind, .to = entry->own, .number = entry->number};
}

TEST(a_reply_must_be_for_this_very_call)
{
    struct call_table table;
    assert_ok(call_table_init(&table, 10, 1000));
    struct open_call *entry = added(&table, 2, 77, 100);
    struct call_message reply = reply_to(entry, CALL_COMPLETED);
    assert_null(call_table_receive(&table, 3, 77, &reply)); /* of another */
    assert_null(call_table_receive(&table, 2, 78, &reply)); /* another life */
    reply.to = 4;                                           /* for another */
    assert_null(call_table_receive(&table, 2, 77, &reply));
    reply = reply_to(entry, CALL_COMPLETED);
    reply.number++;
    assert_null(call_table_receive(&table, 2, 77, &reply));
    assert_int_equal(table.stale, 4);
    reply = reply_to(entry, CALL_COMPLETED);
    assert_ptr_equal(call_table_receive(&table, 2, 77, &reply), entry);
    assert_int_equal(entry->state, LS_CALL_COMPLETED);
    for (int i = 0; i < 100; i++) /* and counts once */
        assert_null(call_table_receive(&table, 2, 77, &reply));
    assert_int_equal(table.stale, 104);
    assert_int_equal(table.open.n, 0);
    free(entry);
    call_table_fini(&table);
}

TEST(what_has_begun_is_not_refused_any_more)
{
    struct call_table table;
    assert_ok(call_table_init(&table, 10, 1000));
    struct open_call *entry = added(&table, 2, 77, 100);
    const struct call_message started = reply_to(entry, CALL_STARTED);
    const struct call_message refused = reply_to(entry, CALL_REFUSED);
    const struct call_message failed = reply_to(entry, CALL_FAILED);
    assert_null(call_table_receive(&table, 2, 77, &started));
    assert_int_equal(entry->state, LS_CALL_STARTED);
    assert_null(call_table_receive(&table, 2, 77, &started));
    assert_null(call_table_receive(&table, 2, 77, &refused));
    assert_int_equal(table.stale, 2);
    assert_ptr_equal(call_table_receive(&table, 2, 77, &failed), entry);
    assert_int_equal(entry->state, LS_CALL_FAILED);
    free(entry);
    call_table_fini(&table);
}

TEST(losses_end_those_of_that_life_alone)
{
    struct call_table table;
    int ended = 0;
    assert_ok(call_table_init(&table, 3, 1000));
    struct open_call *old = added(&table, 2, 77, 100);
    struct open_call *new = added(&table, 2, 78, 100);
    struct open_call *other = added(&table, 3, 77, 100);
    assert_fails(call_table_add(&table, old), LS_EAGAIN);
    call_table_lose(&table, 2, 77, count_ended, &ended);
    assert_int_equal(ended, 1);
    assert_int_equal(old->state, LS_CALL_LOST);
    call_table_renew(&table, 5, count_ended, &ended); /* of this very life */
    assert_int_equal(ended, 1);
    call_table_renew(&table, 6, count_ended, &ended);
    assert_int_equal(ended, 3);
    free(old);
    free(new);
    free(other);
    call_table_fini(&table);
}

static struct call_message answer(uint64_t number, uint32_t body_size)
{
    return (struct call_message){.kind = CALL_COMPLETED,
                                 .to = 5,
                                 .number = number,
                                 .body_size = body_size};
}

TEST(an_answer_with_a_body_ends_when_that_has_come)
{
    struct call_table table;
    assert_ok(call_table_init(&table, 10, 1000));
    struct open_call *a = added(&table, 2, 77, 100);
    struct open_call *b = added(&table, 2, 77, 100);
    struct open_call *c = added(&table, 3, 77, 100);
    struct call_message message = answer(a->number, 600);
    assert_ptr_equal(call_table_receive(&table, 2, 77, &message), a);
    assert_int_equal(a->state, LS_CALL_STARTED); /* it is open */
    assert_int_equal(table.open.n, 3);
    assert_null(call_table_receive(&table, 2, 77, &message)); /* again */
    message.body_size = 0; /* the same call cannot end without it, */
    assert_null(call_table_receive(&table, 2, 77, &message));
    assert_int_equal(table.stale, 2);
    message = answer(b->number, 401); /* together they are too long */
    assert_ptr_equal(call_table_receive(&table, 2, 77, &message), b);
    assert_int_equal(b->state, LS_CALL_FAILED);
    message = answer(c->number, 1000); /* those of another are its own */
    assert_ptr_equal(call_table_receive(&table, 3, 77, &message), c);
    assert_int_equal(c->state, LS_CALL_STARTED);
    message = (struct call_message){
        .kind = CALL_FAILED, .to = 5, .number = c->number};
    assert_ptr_equal(call_table_receive(&table, 3, 77, &message), c);
    assert_int_equal(c->state, LS_CALL_FAILED);          /* but it may fail, */
    assert_ptr_equal(call_table_expire(&table, 100), a); /* or be too late */
    assert_int_equal(a->state, LS_CALL_TIMEOUT);
    free(a);
    free(b);
    free(c);
    call_table_fini(&table);
}

TEST(deadlines_come_in_their_order)
{
    struct call_table table;
    struct ls_rng random;
    struct open_call *entries[200];
    ls_rng_seed(&random, 1, 1);
    assert_ok(call_table_init(&table, 200, 1000));
    assert_true(open_calls_wake_at(&table.open) == LS_FOREVER);
    for (int i = 0; i < 200; i++)
        entries[i] =
            added(&table, 2, 77, 1 + (int64_t)ls_rng_below(&random, 1000));
    for (int i = 0; i < 200; i += 3)
        call_table_end(&table, entries[i], LS_CALL_CANCELLED);
    int64_t now = 0;
    while (open_calls_wake_at(&table.open) != LS_FOREVER) {
        assert_true(open_calls_wake_at(&table.open) > now);
        now = open_calls_wake_at(&table.open);
        assert_null(call_table_expire(&table, now - 1));
        struct open_call *entry;
        while ((entry = call_table_expire(&table, now)) != NULL)
            assert_true(entry->due.at == now &&
                        entry->state == LS_CALL_TIMEOUT);
    }
    assert_int_equal(table.open.n, 0);
    for (int i = 0; i < 200; i++)
        free(entries[i]);
    call_table_fini(&table);
}

/* ---- the side that is asked -------------------------------------------- */

static void count_cancelled(void *self, struct open_call *entry)
{
    assert_true(entry->state == LS_CALL_CANCELLED);
    ++*(int *)self;
}

/* The verdict, and its code. */
struct judged {
    enum request_verdict verdict;
    enum ls_call_code code;
};

static struct judged judge(struct request_table *table, uint32_t from,
                           uint64_t life, uint64_t number, const char *name,
                           uint32_t channel)
{
    struct judged judged;
    const struct call_message message = {.kind = CALL_REQUEST,
                                         .to = 5,
                                         .number = number,
                                         .channel = channel,
                                         .name = name,
                                         .name_size = strlen(name)};
    int cancelled = 0;
    judged.verdict =
        request_table_judge(table, from, life, 5, &message, 0, &judged.code,
                            count_cancelled, &cancelled);
    return judged;
}

#define assert_judged(call, wanted, wanted_code)                               \
    do {                                                                       \
        const struct judged judged_ = (call);                                  \
        assert_int_equal(judged_.verdict, (wanted));                           \
        assert_int_equal(judged_.code, (wanted_code));                         \
    } while (0)

static struct served served_mine = {.name = "mine", .who = LS_CALL_MASTER_ONLY};
static struct served served = {.next = &served_mine, .name = "work"};

TEST(a_number_counts_once_in_a_life)
{
    struct request_table table;
    assert_ok(request_table_init(&table, 0, 10, 1000));
    table.served = &served;
    assert_judged(judge(&table, 1, 77, 3, "work", 0), REQUEST_ACCEPT, 0);
    assert_judged(judge(&table, 1, 77, 3, "work", 0), REQUEST_STALE, 0);
    assert_judged(judge(&table, 1, 77, 2, "work", 0), REQUEST_STALE, 0);
    assert_judged(judge(&table, 1, 77, 9, "work", 0), REQUEST_ACCEPT, 0);
    assert_judged(judge(&table, 2, 77, 3, "work", 0), REQUEST_ACCEPT, 0);
    assert_judged(judge(&table, 1, 78, 3, "work", 0), REQUEST_ACCEPT, 0);
    assert_int_equal(table.stale, 2);
    assert_int_equal(table.n_callers, 2);
    int cancelled = 0;
    request_table_lose(&table, 1, 78, count_cancelled, &cancelled);
    assert_int_equal(table.n_callers, 1);
    request_table_fini(&table);
}

TEST(what_is_asked_of_another_life_is_stale)
{
    struct request_table table;
    enum ls_call_code code;
    assert_ok(request_table_init(&table, 0, 10, 1000));
    table.served = &served;
    const struct call_message message = {.kind = CALL_REQUEST,
                                         .to = 5,
                                         .number = 1,
                                         .name = "work",
                                         .name_size = 4};
    assert_int_equal(request_table_judge(&table, 1, 77, 6, &message, 0, &code,
                                         count_cancelled, NULL),
                     REQUEST_STALE);
    assert_int_equal(request_table_judge(&table, 1, 77, 5, &message, 10, &code,
                                         count_cancelled, NULL),
                     REQUEST_REFUSE); /* answers wait to be sent */
    assert_int_equal(code, LS_CALL_BUSY);
    request_table_fini(&table);
}

TEST(a_new_life_ends_what_the_old_one_asked)
{
    struct request_table table;
    struct open_call entry = {
        .peer = 1, .life = 77, .own = 5, .number = 1, .due.at = 100};
    assert_ok(request_table_init(&table, 0, 10, 1000));
    table.served = &served;
    assert_judged(judge(&table, 1, 77, 1, "work", 0), REQUEST_ACCEPT, 0);
    assert_ok(open_calls_add(&table.open, &entry));
    assert_judged(judge(&table, 1, 77, 2, CALL_CONNECT, 0), REQUEST_DONE, 0);
    assert_true(table.has_master);
    assert_true(open_calls_wake_at(&table.open) == 100);
    assert_judged(judge(&table, 1, 78, 1, "mine", 0), REQUEST_REFUSE,
                  LS_CALL_NOT_CONNECTED);
    assert_true(entry.state == LS_CALL_CANCELLED);
    assert_false(table.has_master);
    assert_null(request_table_expire(&table, 1000));
    assert_null(request_table_cancel(&table, 1, 77, 5, 1)); /* again */
    open_calls_remove(&table.open, &entry);
    assert_int_equal(table.open.n, 0);
    request_table_fini(&table);
}

TEST(each_refusal_has_its_code)
{
    struct request_table table;
    assert_ok(request_table_init(&table, 7, 10, 1000));
    table.served = &served;
    const struct call_message broken = {
        .kind = CALL_REQUEST, .to = 5, .number = 1, .broken = true};
    enum ls_call_code code;
    assert_int_equal(request_table_judge(&table, 9, 77, 5, &broken, 0, &code,
                                         count_cancelled, NULL),
                     REQUEST_REFUSE);
    assert_int_equal(code, LS_CALL_MALFORMED);
    assert_judged(judge(&table, 1, 77, 1, "work", 0), REQUEST_REFUSE,
                  LS_CALL_NO_CHANNEL);
    assert_judged(judge(&table, 1, 77, 2, "work", 8), REQUEST_REFUSE,
                  LS_CALL_WRONG_CHANNEL);
    assert_judged(judge(&table, 1, 77, 3, "nonsense", 7), REQUEST_UNKNOWN, 0);
    assert_judged(judge(&table, 1, 77, 4, CALL_CONNECT, 7), REQUEST_DONE, 0);
    assert_judged(judge(&table, 2, 77, 1, CALL_CONNECT, 7), REQUEST_REFUSE,
                  LS_CALL_HAS_MASTER);
    assert_judged(judge(&table, 2, 77, 2, "mine", 7), REQUEST_REFUSE,
                  LS_CALL_NOT_CONNECTED);
    assert_judged(judge(&table, 2, 77, 3, CALL_DISCONNECT, 0), REQUEST_REFUSE,
                  LS_CALL_NOT_CONNECTED);
    assert_judged(judge(&table, 1, 77, 5, "mine", 7), REQUEST_ACCEPT, 0);
    assert_judged(judge(&table, 1, 77, 6, CALL_DISCONNECT, 0), REQUEST_DONE, 0);
    table.closing = true;
    assert_judged(judge(&table, 1, 77, 7, "work", 7), REQUEST_REFUSE,
                  LS_CALL_SHUTTING_DOWN);
    request_table_fini(&table);
}

static struct judged judge_body(struct request_table *table, uint32_t from,
                                uint64_t number, uint32_t size)
{
    struct judged judged;
    const struct call_message message = {.kind = CALL_REQUEST,
                                         .to = 5,
                                         .number = number,
                                         .name = "work",
                                         .name_size = 4,
                                         .body_size = size};
    int cancelled = 0;
    judged.verdict =
        request_table_judge(table, from, 77, 5, &message, 0, &judged.code,
                            count_cancelled, &cancelled);
    return judged;
}

TEST(the_bodies_of_one_caller_are_bounded_together)
{
    struct request_table table;
    struct open_call a = {
        .peer = 1, .life = 77, .own = 5, .number = 2, .body_bytes = 600};
    struct open_call b = {
        .peer = 1, .life = 77, .own = 5, .number = 4, .body_bytes = 400};
    assert_ok(request_table_init(&table, 0, 10, 1000));
    table.served = &served;
    assert_judged(judge_body(&table, 1, 1, 1001), REQUEST_REFUSE,
                  LS_CALL_TOO_LONG);
    assert_judged(judge_body(&table, 1, 2, 600), REQUEST_ACCEPT, 0);
    assert_ok(open_calls_add(&table.open, &a));
    assert_judged(judge_body(&table, 1, 3, 401), REQUEST_REFUSE, LS_CALL_BUSY);
    assert_judged(judge_body(&table, 1, 4, 400), REQUEST_ACCEPT, 0);
    assert_ok(open_calls_add(&table.open, &b));
    assert_judged(judge_body(&table, 1, 5, 1), REQUEST_REFUSE, LS_CALL_BUSY);
    assert_judged(judge_body(&table, 1, 6, 0), REQUEST_ACCEPT, 0);
    assert_judged(judge_body(&table, 2, 1, 1000), REQUEST_ACCEPT, 0);
    open_calls_remove(&table.open, &a);
    assert_judged(judge_body(&table, 1, 7, 601), REQUEST_REFUSE, LS_CALL_BUSY);
    assert_judged(judge_body(&table, 1, 8, 600), REQUEST_ACCEPT, 0);
    /* One that was lost may be met again in the same life. */
    int cancelled = 0;
    request_table_lose(&table, 1, 77, count_cancelled, &cancelled);
    assert_int_equal(cancelled, 1);
    assert_judged(judge_body(&table, 1, 1, 601), REQUEST_REFUSE, LS_CALL_BUSY);
    open_calls_remove(&table.open, &b);
    assert_judged(judge_body(&table, 1, 2, 1000), REQUEST_ACCEPT, 0);
    a = (struct open_call){
        .peer = 1, .life = 77, .own = 6, .number = 2, .body_bytes = 1000};
    assert_ok(open_calls_add(&table.open, &a));
    assert_judged(judge_body(&table, 1, 3, 400), REQUEST_REFUSE, LS_CALL_BUSY);
    open_calls_remove(&table.open, &a);
    request_table_fini(&table);
}
