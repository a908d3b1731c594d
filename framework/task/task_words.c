/* Lists of words, as "learner,collector". */
#include <string.h>

#include "task_core.h"

bool ls_words_next(const char **cursor, const char **word, size_t *length)
{
    const char *at = *cursor + strspn(*cursor, ", ");
    *word = at;
    *length = strcspn(at, ", ");
    *cursor = at + *length;
    return *length > 0;
}

bool ls_words_have(const char *words, const char *word, size_t length)
{
    const char *cursor = words;
    const char *other;
    size_t other_length;
    while (ls_words_next(&cursor, &other, &other_length))
        if (other_length == length && memcmp(other, word, length) == 0)
            return true;
    return false;
}

bool ls_words_meet(const char *words, const char *others)
{
    const char *cursor = words;
    const char *word;
    size_t length;
    while (ls_words_next(&cursor, &word, &length))
        if (ls_words_have(others, word, length))
            return true;
    return false;
}
