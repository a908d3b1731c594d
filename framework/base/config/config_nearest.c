/* The nearest known key: "did you mean". */
#include "lockstep/config.h"

#include <string.h>

/* Longer words are not keys that somebody mistyped. */
#define WORD_MAX 64

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How many letters must be changed, put in, taken out, or swapped with the one
 * beside them. Three rows of the table of all prefixes are alive at a time.
 * Source: optimal string alignment (Damerau 1964, Wagner and Fischer 1974). */
static size_t edit_distance(const char *a, size_t a_length, const char *b,
                            size_t b_length)
{
    size_t rows[3][WORD_MAX + 1];
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *const row = rows[i % 3];
        const size_t *const above = rows[(i + 2) % 3];
        const size_t *const above_that = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            const size_t changed = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = smaller(changed, smaller(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = smaller(row[j], above_that[j - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

const char *ls_nearest(const char *word, const char *const *names, size_t n)
{
    const size_t length = strlen(word);
    if (length > WORD_MAX)
        return NULL;
    const char *nearest = NULL;
    size_t least = length / 3 > 1 ? length / 3 : 1;
    for (size_t i = 0; i < n; i++) {
        const size_t name_length = strlen(names[i]);
        if (name_length > WORD_MAX)
            continue;
        const size_t distance =
            edit_distance(word, length, names[i], name_length);
        /* A word that is changed all over is another word. */
        if (distance > least || (distance > 0 && distance >= length) ||
            (nearest != NULL && distance == least))
            continue;
        least = distance;
        nearest = names[i];
    }
    return nearest;
}
