/* matrix.h - the one product that the network's passes are made of. */
#ifndef CARTPOLE_MATRIX_H
#define CARTPOLE_MATRIX_H

#include <stddef.h>

/* A read-only matrix whose element (i, j) is at data[i * row + j * column]. */
struct matrix_view {
    const float *data;
    size_t row, column;
};

/* c[m × n] = a[m × k] · b[k × n], or with bias[n] (not NULL) added to every
 * row. b and c lie in C order. c overlaps nothing.
 * Each element is summed in the order of k, so that it is the same whatever
 * m and n are. */
void matrix_multiply(float *c, struct matrix_view a, const float *b,
                     const float *bias, size_t m, size_t k, size_t n);

/* to[columns × rows] = from[rows × columns], turned. */
void matrix_transpose(float *to, const float *from, size_t rows,
                      size_t columns);

#endif
