/* word_list.h - lists of words, "learner,evaluator": roles, labels, fields.
 *
 * Between words stand commas, blanks, or both. Thread: any. */
#ifndef LOCKSTEP_BASE_WORD_LIST_H
#define LOCKSTEP_BASE_WORD_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The next word of a list, its first byte and its size; *list moves on. NULL at
 * the end, and of NULL. */
static inline const char *word_list_next(const char **list, size_t *size)
{
    if (*list == NULL)
        return NULL;
    const char *word = *list + strspn(*list, ", ");
    *size = strcspn(word, ", ");
    *list = word + *size;
    return *size > 0 ? word : NULL;
}

/* Whether a list has the word of `size` bytes. */
static inline bool word_list_has(const char *list, const char *word,
                                 size_t size)
{
    const char *other;
    size_t length;
    while ((other = word_list_next(&list, &length)) != NULL)
        if (length == size && memcmp(other, word, size) == 0)
            return true;
    return false;
}

/* Whether somebody of this role and these labels is in a group. */
static inline bool word_lists_have(const char *role, const char *labels,
                                   const char *group)
{
    const size_t size = strlen(group);
    return word_list_has(role, group, size) ||
           word_list_has(labels, group, size);
}

/* Whether they share a word. */
static inline bool word_list_meets(const char *list, const char *others)
{
    const char *word;
    size_t size;
    while ((word = word_list_next(&list, &size)) != NULL)
        if (word_list_has(others, word, size))
            return true;
    return false;
}

#endif
