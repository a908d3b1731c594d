/* word_list.h - lists of words, "learner,evaluator": roles and labels.
 *
 * Thread: any. */
#ifndef LOCKSTEP_BASE_WORD_LIST_H
#define LOCKSTEP_BASE_WORD_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Whether a list has the word of `size` bytes, which is not empty. */
static inline bool word_list_has(const char *list, const char *word,
                                 size_t size)
{
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',' ? 1 : 0;
        if (strcspn(at, ",") == size && memcmp(at, word, size) == 0)
            return true;
    }
    return false;
}

#endif
