/* matrix.c - see matrix.h.
 *
 * c is made in tiles of 4 rows and 8 columns, which a compiler holds in
 * vector registers while it walks along k; what is left over at the edges is
 * made a row, or an element, at a time. */
#include "matrix.h"

#include <string.h>

#define TILE_ROWS    4
#define TILE_COLUMNS 8

static void multiply_tile(float *restrict c, struct matrix_view a,
                          const float *restrict b, const float *start, size_t k,
                          size_t n)
{
    const float *restrict row0 = a.data;
    const float *restrict row1 = row0 + a.row;
    const float *restrict row2 = row1 + a.row;
    const float *restrict row3 = row2 + a.row;
    float sum0[TILE_COLUMNS], sum1[TILE_COLUMNS];
    float sum2[TILE_COLUMNS], sum3[TILE_COLUMNS];
    memcpy(sum0, start, sizeof sum0);
    memcpy(sum1, start, sizeof sum1);
    memcpy(sum2, start, sizeof sum2);
    memcpy(sum3, start, sizeof sum3);
    for (size_t p = 0; p < k; p++) {
        const float *restrict line = b + p * n;
        const size_t at = p * a.column;
        for (size_t j = 0; j < TILE_COLUMNS; j++)
            sum0[j] += row0[at] * line[j];
        for (size_t j = 0; j < TILE_COLUMNS; j++)
            sum1[j] += row1[at] * line[j];
        for (size_t j = 0; j < TILE_COLUMNS; j++)
            sum2[j] += row2[at] * line[j];
        for (size_t j = 0; j < TILE_COLUMNS; j++)
            sum3[j] += row3[at] * line[j];
    }
    memcpy(c, sum0, sizeof sum0);
    memcpy(c + n, sum1, sizeof sum1);
    memcpy(c + 2 * n, sum2, sizeof sum2);
    memcpy(c + 3 * n, sum3, sizeof sum3);
}

static void multiply_row(float *restrict c, struct matrix_view a,
                         const float *restrict b, const float *start, size_t k,
                         size_t n)
{
    float sum[TILE_COLUMNS];
    memcpy(sum, start, sizeof sum);
    for (size_t p = 0; p < k; p++) {
        const float *restrict line = b + p * n;
        const float factor = a.data[p * a.column];
        for (size_t j = 0; j < TILE_COLUMNS; j++)
            sum[j] += factor * line[j];
    }
    memcpy(c, sum, sizeof sum);
}

static float multiply_element(struct matrix_view a, const float *b, float start,
                              size_t k, size_t n)
{
    float sum = start;
    for (size_t p = 0; p < k; p++)
        sum += a.data[p * a.column] * b[p * n];
    return sum;
}

void matrix_multiply(float *c, struct matrix_view a, const float *b,
                     const float *bias, size_t m, size_t k, size_t n)
{
    static const float zeros[TILE_COLUMNS];
    size_t j = 0;
    for (; j + TILE_COLUMNS <= n; j += TILE_COLUMNS) {
        const float *start = bias == NULL ? zeros : bias + j;
        struct matrix_view rows = a;
        size_t i = 0;
        for (; i + TILE_ROWS <= m; i += TILE_ROWS) {
            multiply_tile(c + i * n + j, rows, b + j, start, k, n);
            rows.data += TILE_ROWS * a.row;
        }
        for (; i < m; i++) {
            multiply_row(c + i * n + j, rows, b + j, start, k, n);
            rows.data += a.row;
        }
    }
    for (; j < n; j++) {
        const float start = bias == NULL ? 0.0f : bias[j];
        struct matrix_view row = a;
        for (size_t i = 0; i < m; i++) {
            c[i * n + j] = multiply_element(row, b + j, start, k, n);
            row.data += a.row;
        }
    }
}

void matrix_transpose(float *to, const float *from, size_t rows, size_t columns)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            to[j * rows + i] = from[i * columns + j];
}
