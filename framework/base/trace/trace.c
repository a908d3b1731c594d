/* The ring of a recorder, its names and its marks. Design notes:
 *
 * - Who records draws a turn, which is a slot and a lap. The slot is taken by a
 *   compare-and-swap of its state, so that one who was held up for a whole lap
 *   cannot write into what somebody else writes: the record is then given up.
 * - Readers copy the words of a slot and look whether its state is still what
 * it was. The words are stored with release and loaded with acquire: a reader
 *   that sees a later word sees the later state, too. Both are plain moves on
 *   x86-64.
 * - Nothing waits here and nothing locks, so a simulation takes the same course
 *   with a recorder and without. */
#include "lockstep/trace.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runtime_ops.h"
#include "thread_state.h"
#include "trace_gate.h"
#include "utf8.h"

enum { N_DEFAULT = 65536, N_MARKS = 64, N_WORDS = 6, LINE = 64 };

_Static_assert(sizeof(struct ls_trace_record) == N_WORDS * sizeof(uint64_t),
               "a record is so many words");

struct words {
    atomic_uint_fast64_t at[N_WORDS];
};

struct slot {
    atomic_uint_fast64_t state; /* 2 * turn + 2; one less: in work */
    struct words words;
    uint64_t unused; /* to a whole line of the cache */
};

_Static_assert(sizeof(struct slot) == LINE, "a slot is a line of the cache");

enum { NAME_FREE, NAME_IN_WORK, NAME_READY };

struct name {
    atomic_int state;
    char text[LS_TRACE_NAME_MAX];
};

struct ls_trace_mark {
    ls_trace *trace;
    atomic_bool taken;
    atomic_uint_fast64_t state; /* modulo 4: 0 idle; 1 under way; 3 in work */
    struct words words;
};

struct ls_trace {
    ls_runtime *runtime;
    struct slot *slots; /* own, by memory */
    void *memory;
    uint64_t mask;
    uint64_t number; /* of all recorders of the process; not 0 */
    bool all;
    uint32_t node;
    char job[80], role[64];
    struct name names[LS_TRACE_NAMES_MAX];
    struct ls_trace_mark marks[N_MARKS];
    atomic_uint_fast64_t unnamed;
    char apart[LINE];          /* what follows is on a line of its own */
    atomic_uint_fast64_t next; /* turn */
    atomic_uint_fast64_t given_up;
};

static void store(struct words *to, const struct ls_trace_record *record)
{
    uint64_t words[N_WORDS];
    memcpy(words, record, sizeof words);
    for (int i = 0; i < N_WORDS; i++)
        atomic_store_explicit(&to->at[i], words[i], memory_order_release);
}

static void load(struct ls_trace_record *out, struct words *from)
{
    uint64_t words[N_WORDS];
    for (int i = 0; i < N_WORDS; i++)
        words[i] = atomic_load_explicit(&from->at[i], memory_order_acquire);
    memcpy(out, words, sizeof words);
}

/* ---- names ------------------------------------------------------------- */

/* What a file may have: whole characters, and none that a terminal obeys. */
static void clean_text(char *out, size_t size, const char *text)
{
    size_t n = 0, of;
    for (size_t left = strlen(text); left > 0; text += of, left -= of) {
        of = ls_utf8_character(text, left);
        const bool bad = of == 0 || (unsigned char)*text < ' ' || *text == 127;
        of = of == 0 ? 1 : of;
        if (n + of >= size)
            break;
        memcpy(out + n, bad ? "?" : text, bad ? 1 : of);
        n += bad ? 1 : of;
    }
    out[n] = '\0';
}

/* One that another thread is just writing is passed over: the table then has a
 * text twice, and nobody waits. */
uint16_t ls_trace_name(ls_trace *trace, const char *text)
{
    char clean[LS_TRACE_NAME_MAX];
    clean_text(clean, sizeof clean, text);
    for (uint16_t i = 0; i < LS_TRACE_NAMES_MAX; i++) {
        struct name *const name = &trace->names[i];
        int state = NAME_FREE;
        if (atomic_compare_exchange_strong(&name->state, &state,
                                           NAME_IN_WORK)) {
            memcpy(name->text, clean, sizeof clean);
            atomic_store(&name->state, NAME_READY);
            return i;
        }
        if (state == NAME_READY && strcmp(name->text, clean) == 0)
            return i;
    }
    atomic_fetch_add(&trace->unnamed, 1);
    return 0;
}

static uint16_t thread_name(ls_trace *trace)
{
    struct thread_state *const state = thread_state();
    if (state->trace != trace->number) {
        state->trace_name =
            ls_trace_name(trace, state->name != NULL ? state->name : "main");
        state->trace = trace->number;
    }
    return state->trace_name;
}

/* ---- recorders --------------------------------------------------------- */

int ls_trace_create(ls_trace **out, const struct ls_trace_options *options)
{
    *out = NULL;
    static atomic_uint_fast64_t n_recorders;
    const size_t n = options->n_records != 0 ? options->n_records : N_DEFAULT;
    if (n < 2 || n > LS_TRACE_RECORDS_MAX || (n & (n - 1)) != 0)
        return ls_error(LS_EINVAL,
                        "a recorder of %zu records: it must be a power of two, "
                        "2 to %u",
                        n, LS_TRACE_RECORDS_MAX);
    ls_trace *const trace = calloc(1, sizeof *trace);
    void *const memory = calloc(n + 1, LINE);
    if (trace == NULL || memory == NULL) {
        free(trace);
        free(memory);
        return ls_error(LS_ENOMEM, "no memory for %zu records", n);
    }
    trace->memory = memory;
    trace->slots = (void *)((char *)memory + LINE - (uintptr_t)memory % LINE);
    trace->mask = n - 1;
    trace->runtime =
        options->runtime != NULL ? options->runtime : ls_runtime_threads();
    trace->node = options->node;
    trace->all = options->all || trace->runtime != ls_runtime_threads();
    clean_text(trace->job, sizeof trace->job,
               options->job != NULL ? options->job : "");
    clean_text(trace->role, sizeof trace->role,
               options->role != NULL ? options->role : "");
    trace->number = atomic_fetch_add(&n_recorders, 1) + 1;
    (void)ls_trace_name(trace, "?");
    *out = trace;
    return LS_OK;
}

void ls_trace_destroy(ls_trace **trace)
{
    if (trace == NULL || *trace == NULL)
        return;
    free((*trace)->memory);
    free(*trace);
    *trace = NULL;
}

int64_t ls_trace_now(ls_trace *trace)
{
    return trace->runtime->ops->glance(trace->runtime);
}

bool ls_trace_all(const ls_trace *trace)
{
    return trace->all;
}

void ls_trace_add(ls_trace *trace, const struct ls_trace_record *record)
{
    struct ls_trace_record own = *record;
    own.thread = thread_name(trace);
    memset(own.unused, 0, sizeof own.unused);
    const uint64_t turn =
        atomic_fetch_add_explicit(&trace->next, 1, memory_order_relaxed);
    struct slot *const slot = &trace->slots[turn & trace->mask];
    uint64_t state = atomic_load_explicit(&slot->state, memory_order_relaxed);
    if (state % 2 != 0 || state > 2 * turn ||
        !atomic_compare_exchange_strong_explicit(
            &slot->state, &state, 2 * turn + 1, memory_order_acquire,
            memory_order_relaxed)) {
        atomic_fetch_add(&trace->given_up, 1);
        return;
    }
    store(&slot->words, &own);
    atomic_store_explicit(&slot->state, 2 * turn + 2, memory_order_release);
}

/* ---- marks ------------------------------------------------------------- */

ls_trace_mark *ls_trace_mark_open(ls_trace *trace)
{
    for (int i = 0; trace != NULL && i < N_MARKS; i++) {
        ls_trace_mark *const mark = &trace->marks[i];
        if (!atomic_exchange(&mark->taken, true)) {
            mark->trace = trace;
            return mark;
        }
    }
    return NULL;
}

void ls_trace_mark_close(ls_trace_mark **mark)
{
    if (mark == NULL || *mark == NULL)
        return;
    ls_trace_mark_end(*mark);
    atomic_store(&(*mark)->taken, false);
    *mark = NULL;
}

void ls_trace_mark_begin(ls_trace_mark *mark,
                         const struct ls_trace_record *record)
{
    if (mark == NULL)
        return;
    struct ls_trace_record own = *record;
    own.thread = thread_name(mark->trace);
    own.end_ns = LS_TRACE_OPEN;
    memset(own.unused, 0, sizeof own.unused);
    const uint64_t next =
        (atomic_load_explicit(&mark->state, memory_order_relaxed) | 3) + 1;
    atomic_store_explicit(&mark->state, next + 3, memory_order_relaxed);
    store(&mark->words, &own);
    atomic_store_explicit(&mark->state, next + 1, memory_order_release);
}

void ls_trace_mark_end(ls_trace_mark *mark)
{
    if (mark == NULL)
        return;
    const uint64_t state =
        atomic_load_explicit(&mark->state, memory_order_relaxed);
    atomic_store_explicit(&mark->state, (state | 3) + 1, memory_order_release);
}

/* False: it is idle, or changes so fast that nobody could say what it is at. */
static bool mark_read(ls_trace_mark *mark, struct ls_trace_record *out)
{
    for (int tries = 0; tries < 100; tries++) {
        const uint64_t before =
            atomic_load_explicit(&mark->state, memory_order_acquire);
        if (before % 4 == 0)
            return false;
        load(out, &mark->words);
        if (before % 4 == 1 &&
            atomic_load_explicit(&mark->state, memory_order_relaxed) == before)
            return true;
    }
    return false;
}

/* ---- taking ------------------------------------------------------------ */

static bool slot_read(struct slot *slot, uint64_t turn,
                      struct ls_trace_record *out)
{
    const uint64_t whole = 2 * turn + 2;
    if (atomic_load_explicit(&slot->state, memory_order_acquire) != whole)
        return false;
    load(out, &slot->words);
    return atomic_load_explicit(&slot->state, memory_order_relaxed) == whole;
}

size_t ls_trace_recent(ls_trace *trace, struct ls_trace_record *out, size_t n)
{
    const uint64_t next = atomic_load(&trace->next);
    size_t got = 0;
    for (uint64_t back = 1; back <= next && back <= trace->mask && got < n;
         back++)
        got += slot_read(&trace->slots[(next - back) & trace->mask],
                         next - back, &out[got]);
    return got;
}

static int compare_ends(const void *left, const void *right)
{
    const struct ls_trace_record *const a = left, *const b = right;
    if (a->end_ns != b->end_ns)
        return a->end_ns < b->end_ns ? -1 : 1;
    return 0;
}

static int copy_names(ls_trace *trace, struct ls_trace_file *out)
{
    out->names = calloc(LS_TRACE_NAMES_MAX, sizeof *out->names);
    if (out->names == NULL)
        return LS_ENOMEM;
    for (size_t i = 0; i < LS_TRACE_NAMES_MAX; i++) {
        const int state = atomic_load(&trace->names[i].state);
        if (state == NAME_FREE)
            break;
        /* One in work is of no record yet. */
        out->names[i] =
            strdup(state == NAME_READY ? trace->names[i].text : "?");
        if (out->names[i] == NULL)
            return LS_ENOMEM;
        out->n_names++;
    }
    return LS_OK;
}

size_t ls_trace_open(ls_trace *trace, struct ls_trace_record *out, size_t n)
{
    size_t got = 0;
    for (int i = 0; i < N_MARKS && got < n; i++)
        got += atomic_load(&trace->marks[i].taken) &&
               mark_read(&trace->marks[i], &out[got]);
    return got;
}

const char *ls_trace_text(const ls_trace *trace, uint16_t name)
{
    const struct name *const at = &trace->names[name % LS_TRACE_NAMES_MAX];
    return atomic_load(&at->state) == NAME_READY ? at->text : "?";
}

static int copy_records(ls_trace *trace, struct ls_trace_file *out)
{
    const uint64_t end = atomic_load(&trace->next);
    const uint64_t size = trace->mask + 1;
    const uint64_t kept = end < size ? end : size;
    out->records = malloc((kept + N_MARKS) * sizeof *out->records);
    if (out->records == NULL)
        return LS_ENOMEM;
    for (uint64_t turn = end - kept; turn < end; turn++)
        out->n_records += slot_read(&trace->slots[turn & trace->mask], turn,
                                    &out->records[out->n_records]);
    out->lost = end - out->n_records;
    qsort(out->records, out->n_records, sizeof *out->records, compare_ends);
    out->n_records +=
        ls_trace_open(trace, out->records + out->n_records, N_MARKS);
    return LS_OK;
}

int ls_trace_take(ls_trace *trace, uint64_t incarnation, const char *reason,
                  struct ls_trace_file *out)
{
    struct ls_trace_file file = {
        .node = trace->node, .incarnation = incarnation, .all = trace->all};
    memcpy(file.job, trace->job, sizeof file.job);
    memcpy(file.role, trace->role, sizeof file.role);
    clean_text(file.reason, sizeof file.reason, reason);
    int status = copy_records(trace, &file);
    file.now_ns = ls_trace_now(trace);
    file.wall_ns = ls_wall_now(trace->runtime);
    file.unnamed = atomic_load(&trace->unnamed);
    if (status == LS_OK)
        status = copy_names(trace, &file); /* those of all records */
    if (status != LS_OK) {
        ls_trace_clear(&file);
        return ls_error(status, "no memory to take a recording");
    }
    *out = file;
    return LS_OK;
}
