/* Passes over listed pairs of points that NumPy would make one by one. Plain loops that any C
   compiler turns into vector code; of the flags that let it take sums in another order none is
   needed, the lanes are written out. */

#include <stdint.h>

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define VECTOR __attribute__((target_clones("arch=skylake-avx512", "arch=haswell", "default")))
#else
#define VECTOR
#endif

#define LANES 16

/* Changes whenever a function below changes its arguments or its meaning. */
int kernelmetric_version(void) { return 4; }

#define AHEAD 8 /* pairs whose points are on their way to the cache */

/* Of each type of number: the squared distance of two rows, that of listed pairs, the hinge, and
   what targets add to its gradient.

   pair_squares has those of the points in rows first[p] and second[p] of E. It returns the number
   of the first pair with a row that is not there, or that of all pairs.

   listed_hinge looks at pairs (i, l) of a point and an impostor, in the order of i. A target t of i
   is violated where l is nearer than thresholds[i][t]; the hinge of what it is nearer by, with a
   quadratic corner, times parts[i][t] counts[l] where these are given, is added to the value, its
   slope to slopes[i][t]. The sum w of the slopes weighs the pair: w (E_l - E_i) is added to row i
   of product, and taken from row l. It returns what pair_squares returns.

   pulled has the target t of i weighed with w = weights[i][t]: w (E_i - E_t) is added to row i of
   product, and taken from the row of the target. A weight of zero is no target. It returns the
   number of the first point with a target that is not there, or that of all points. */
#define OF_PAIRS(suffix, type)                                                                     \
    static inline void fetch_##suffix(const type *row, int64_t width)                              \
    {                                                                                              \
        for (int64_t at = 0; at < width * (int64_t)sizeof(type) && at < 512; at += 64)             \
            __builtin_prefetch((const char *)row + at);                                            \
    }                                                                                              \
                                                                                                   \
    static inline type square_##suffix(const type *a, const type *b, int64_t width)                \
    {                                                                                              \
        type lanes[LANES] = {0};                                                                   \
        int64_t k = 0;                                                                             \
        for (; k + LANES <= width; k += LANES)                                                     \
            for (int l = 0; l < LANES; l++) {                                                      \
                type d = a[k + l] - b[k + l];                                                      \
                lanes[l] += d * d;                                                                 \
            }                                                                                      \
        for (int l = 0; k < width; k++, l++) {                                                     \
            type d = a[k] - b[k];                                                                  \
            lanes[l] += d * d;                                                                     \
        }                                                                                          \
        for (int l = 0; l < 8; l++)                                                                \
            lanes[l] += lanes[l + 8];                                                              \
        for (int l = 0; l < 4; l++)                                                                \
            lanes[l] += lanes[l + 4];                                                              \
        return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);                                      \
    }                                                                                              \
                                                                                                   \
    VECTOR int64_t kernelmetric_pair_squares_##suffix(                                             \
        const type *restrict E, int64_t n_rows, int64_t width, const int64_t *restrict first,      \
        const int64_t *restrict second, int64_t n_pairs, type *restrict squares)                   \
    {                                                                                              \
        for (int64_t p = 0; p < n_pairs; p++)                                                      \
            if ((uint64_t)first[p] >= (uint64_t)n_rows || (uint64_t)second[p] >= (uint64_t)n_rows) \
                return p;                                                                          \
        for (int64_t p = 0; p < n_pairs; p++) {                                                    \
            if (p + AHEAD < n_pairs)                                                               \
                fetch_##suffix(E + second[p + AHEAD] * width, width);                              \
            squares[p] = square_##suffix(E + first[p] * width, E + second[p] * width, width);      \
        }                                                                                          \
        return n_pairs;                                                                            \
    }                                                                                              \
                                                                                                   \
    static inline void add_##suffix(const type *restrict E, int64_t width, type w, int64_t i,      \
                                    int64_t j, type *restrict product)                             \
    {                                                                                              \
        const type *E_i = E + i * width, *E_j = E + j * width;                                     \
        type *at_i = product + i * width, *at_j = product + j * width;                             \
        for (int64_t k = 0; k < width; k++) {                                                      \
            type move = w * (E_i[k] - E_j[k]);                                                     \
            at_i[k] += move;                                                                       \
            at_j[k] -= move;                                                                       \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    VECTOR int64_t kernelmetric_listed_hinge_##suffix(                                             \
        const type *restrict E, int64_t n_rows, int64_t width, const int32_t *restrict pairs,      \
        int64_t n_pairs, const double *restrict thresholds, int64_t n_targets,                     \
        const double *restrict parts, const double *restrict counts, double corner,                \
        double *restrict value, double *restrict slopes, type *restrict product)                   \
    {                                                                                              \
        if (n_targets < 1)                                                                         \
            return n_pairs;                                                                        \
        for (int64_t p = 0; p < 2 * n_pairs; p++)                                                  \
            if (pairs[p] < 0 || pairs[p] >= n_rows)                                                \
                return p / 2;                                                                      \
        int64_t last = -1;                                                                         \
        int near = 1;                                                                              \
        double farthest = 0.0;                                                                     \
        for (int64_t p = 0; p < n_pairs; p++) {                                                    \
            if (p + AHEAD < n_pairs) {                                                             \
                int64_t next = pairs[2 * (p + AHEAD) + 1];                                         \
                fetch_##suffix(E + next * width, width);                                           \
                if (near) /* so is the next one, most likely */                                    \
                    fetch_##suffix(product + next * width, width);                                 \
            }                                                                                      \
            int64_t i = pairs[2 * p], l = pairs[2 * p + 1];                                        \
            const double *of_i = thresholds + i * n_targets;                                       \
            if (i != last) {                                                                       \
                farthest = of_i[0];                                                                \
                for (int64_t t = 1; t < n_targets; t++)                                            \
                    farthest = of_i[t] > farthest ? of_i[t] : farthest;                            \
                last = i;                                                                          \
            }                                                                                      \
            double d = square_##suffix(E + i * width, E + l * width, width), weight = 0.0;         \
            near = d < farthest;                                                                   \
            if (!near)                                                                             \
                continue;                                                                          \
            for (int64_t t = 0; t < n_targets; t++) {                                              \
                double margin = of_i[t] - d, slope = 1.0, hinge = margin;                          \
                if (!(margin > 0.0))                                                               \
                    continue;                                                                      \
                if (corner > 0.0) {                                                                \
                    slope = margin < corner ? margin / corner : 1.0;                               \
                    hinge = slope * (margin - 0.5 * corner * slope);                               \
                }                                                                                  \
                double count = parts ? parts[i * n_targets + t] * counts[l] : 1.0;                 \
                *value += hinge * count;                                                           \
                slopes[i * n_targets + t] += slope * count;                                        \
                weight += slope * count;                                                           \
            }                                                                                      \
            add_##suffix(E, width, (type)-weight, i, l, product);                                  \
        }                                                                                          \
        return n_pairs;                                                                            \
    }                                                                                              \
                                                                                                   \
    VECTOR int64_t kernelmetric_pulled_##suffix(                                                   \
        const type *restrict E, int64_t n_rows, int64_t width, const int64_t *restrict targets,    \
        const double *restrict weights, int64_t n_targets, type *restrict product)                 \
    {                                                                                              \
        for (int64_t i = 0; i < n_rows; i++)                                                       \
            for (int64_t t = i * n_targets; t < (i + 1) * n_targets; t++) {                        \
                if (weights[t] == 0.0)                                                             \
                    continue;                                                                      \
                if (targets[t] < 0 || targets[t] >= n_rows)                                        \
                    return i;                                                                      \
                add_##suffix(E, width, (type)weights[t], i, targets[t], product);                  \
            }                                                                                      \
        return n_rows;                                                                             \
    }

OF_PAIRS(float, float)
OF_PAIRS(double, double)
