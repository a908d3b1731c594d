/* line.h - short messages from one node to another of its host, in memory of
 * the sender's own, which the receiver reads.
 *
 * The last LINE_SLOTS stay; one that was not read by then is lost, and the
 * receiver knows it. So the sender never waits, and need not know whether
 * anybody reads. A slot has the number of its message before and after it is
 * copied out, or what was copied does not count.
 * Thread: of the sender, one at a time; of the receiver, one at a time.
 * Source: docs/shared-memory.md#lines; Boehm 2012, "Can seqlocks get along with
 * programming language memory models?", section 4. */
#ifndef LOCKSTEP_BUS_LINE_H
#define LOCKSTEP_BUS_LINE_H

#include <string.h>

#include "shared_memory.h"

enum { LINE_SLOTS = 8, LINE_WORDS = 31, LINE_BYTES = 8 * LINE_WORDS - 4 };

struct line_slot {
    ls_word number; /* 0: it is being written, so no message has it */
    _Atomic uint32_t size;
    _Atomic uint64_t words[LINE_WORDS];
};
struct line {
    _Alignas(64) ls_word written; /* the number of the last; 0: none */
    ls_word heeds; /* its owner reads the one of the other: 1, or 0 */
    struct line_slot slots[LINE_SLOTS];
};

static inline uint32_t line_load(ls_runtime *runtime, const ls_word *word)
{
    if (runtime != NULL)
        (void)ls_memory_touch(runtime);
    return atomic_load(word);
}

static inline void line_store(ls_runtime *runtime, ls_word *word,
                              uint32_t value)
{
    if (runtime == NULL || ls_memory_touch(runtime))
        atomic_store(word, value);
}

/* Nobody reads it yet. runtime: NULL: it is no simulation; so below. */
static inline void line_begin(ls_runtime *runtime, struct line *line)
{
    for (unsigned i = 0; i < LINE_SLOTS; i++)
        line_store(runtime, &line->slots[i].number, 0);
    line_store(runtime, &line->written, 0);
    line_store(runtime, &line->heeds, 0);
}

/* size: at most LINE_BYTES. */
static inline void line_write(ls_runtime *runtime, struct line *line,
                              const void *data, size_t size)
{
    const uint32_t next = atomic_load(&line->written) + 1;
    const uint32_t number = next != 0 ? next : 1;
    struct line_slot *const slot = &line->slots[number % LINE_SLOTS];
    uint64_t words[LINE_WORDS] = {0};
    memcpy(words, data, size);
    line_store(runtime, &slot->number, 0);
    if (runtime != NULL && !ls_memory_touch(runtime))
        return;
    atomic_thread_fence(memory_order_release);
    for (size_t i = 0; i * 8 < size; i++)
        atomic_store_explicit(&slot->words[i], words[i], memory_order_relaxed);
    atomic_store_explicit(&slot->size, (uint32_t)size, memory_order_relaxed);
    line_store(runtime, &slot->number, number);
    line_store(runtime, &line->written, number);
}

/* Read the next: its size, into out[LINE_BYTES + 4]; 0: there is none now.
 * heard: in and out, the number of the last; lost: in and out, how many were
 * lost. Whatever the line says, nothing beyond it is touched. */
static inline size_t line_read(ls_runtime *runtime, const struct line *line,
                               uint32_t *heard, uint64_t *lost, void *out)
{
    const uint32_t written = line_load(runtime, &line->written);
    if (written - *heard > LINE_SLOTS) {
        *lost += written - *heard - LINE_SLOTS;
        *heard = written - LINE_SLOTS;
    }
    while (*heard != written) {
        const uint32_t number = ++*heard;
        if (number == 0)
            continue;
        const struct line_slot *const slot = &line->slots[number % LINE_SLOTS];
        uint64_t words[LINE_WORDS];
        const bool whole = line_load(runtime, &slot->number) == number;
        const size_t size =
            atomic_load_explicit(&slot->size, memory_order_relaxed);
        for (size_t i = 0; i < LINE_WORDS && i * 8 < size; i++)
            words[i] =
                atomic_load_explicit(&slot->words[i], memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        if (whole && size != 0 && size <= LINE_BYTES &&
            line_load(runtime, &slot->number) == number) {
            memcpy(out, words, size);
            return size;
        }
        ++*lost;
    }
    return 0;
}

#endif
