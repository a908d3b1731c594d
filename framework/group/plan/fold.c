#include "fold.h"

/* What is WIDE is compiled for wide registers too, and the loader takes what
 * this processor can run: numbers are the same, since each is computed by
 * itself with the same operations. Not under sanitizers, whose code cannot run
 * as early as the loader asks. Source: gcc's manual, target_clones. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) &&        \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDE
#endif

/* Sums of integers wrap around: as unsigned numbers they may. Of 0.0 and -0.0,
 * and where one is no number, MIN and MAX take the left one or the number, so
 * that results do not depend on the compiler. */
typedef float f32_number, f32_sum;
typedef double f64_number, f64_sum;
typedef int32_t i32_number;
typedef uint32_t i32_sum;
typedef int64_t i64_number;
typedef uint64_t i64_sum;

#define DEFINE_FOLD(name)                                                      \
    WIDE static void fold_##name(enum ls_group_fold fold, name##_number *to,   \
                                 const name##_number *left,                    \
                                 const name##_number *right, size_t count)     \
    {                                                                          \
        switch (fold) {                                                        \
        case LS_GROUP_SUM:                                                     \
        case LS_GROUP_MEAN:                                                    \
            for (size_t i = 0; i < count; i++)                                 \
                to[i] = (name##_number)((name##_sum)left[i] +                  \
                                        (name##_sum)right[i]);                 \
            break;                                                             \
        case LS_GROUP_MIN:                                                     \
            for (size_t i = 0; i < count; i++)                                 \
                to[i] = right[i] < left[i] || left[i] != left[i] ? right[i]    \
                                                                 : left[i];    \
            break;                                                             \
        case LS_GROUP_MAX:                                                     \
            for (size_t i = 0; i < count; i++)                                 \
                to[i] = right[i] > left[i] || left[i] != left[i] ? right[i]    \
                                                                 : left[i];    \
            break;                                                             \
        }                                                                      \
    }

DEFINE_FOLD(f32)
DEFINE_FOLD(f64)
DEFINE_FOLD(i32)
DEFINE_FOLD(i64)

void fold_two(enum ls_group_type type, enum ls_group_fold fold, void *to,
              const void *left, const void *right, size_t count)
{
    switch (type) {
    case LS_GROUP_F32:
        fold_f32(fold, to, left, right, count);
        break;
    case LS_GROUP_F64:
        fold_f64(fold, to, left, right, count);
        break;
    case LS_GROUP_I32:
        fold_i32(fold, to, left, right, count);
        break;
    case LS_GROUP_I64:
        fold_i64(fold, to, left, right, count);
        break;
    }
}

WIDE static void scale_f32(float *numbers, size_t count, float share)
{
    for (size_t i = 0; i < count; i++)
        numbers[i] *= share;
}

WIDE static void scale_f64(double *numbers, size_t count, double share)
{
    for (size_t i = 0; i < count; i++)
        numbers[i] *= share;
}

void fold_end(enum ls_group_type type, enum ls_group_fold fold, void *numbers,
              size_t count, uint32_t n)
{
    if (fold != LS_GROUP_MEAN)
        return;
    int32_t *const short_ones = numbers;
    int64_t *const long_ones = numbers;
    switch (type) {
    case LS_GROUP_F32:
        scale_f32(numbers, count, 1.0f / (float)n);
        break;
    case LS_GROUP_F64:
        scale_f64(numbers, count, 1.0 / (double)n);
        break;
    case LS_GROUP_I32:
        for (size_t i = 0; i < count; i++)
            short_ones[i] /= (int32_t)n;
        break;
    case LS_GROUP_I64:
        for (size_t i = 0; i < count; i++)
            long_ones[i] /= (int64_t)n;
        break;
    }
}
