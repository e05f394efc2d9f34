/* Passes over listed pairs of points that NumPy would make one by one. Plain loops that any C
   compiler turns into vector code; of the flags that let it take sums in another order none is
   needed, the lanes are written out. */

#include <math.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define VECTOR __attribute__((target_clones("arch=skylake-avx512", "arch=haswell", "default")))
#else
#define VECTOR
#endif

#define LANES 16

/* Changes whenever a function below changes its arguments or its meaning. */
int kernelmetric_version(void) { return 7; }

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

/* Texts as n-grams: letters are code points, a line feed ends a text and a space a word, which has
   a space on both sides. A word shorter than the shortest n-gram is one piece. */

/* Writes the hashes of the n-grams of least to most letters of every text, and where each ends. */
void kernelmetric_pieces(const uint32_t *letters, int64_t n_letters, int64_t least, int64_t most,
                         uint64_t base, uint64_t *codes, int64_t *ends)
{
    int64_t n = 0, n_texts = 0;
    for (int64_t begin = 0, end = 0; end < n_letters; begin = ++end) {
        while (letters[end] != ' ' && letters[end] != '\n')
            end++;
        int64_t padded = end - begin + 2;
        int64_t shortest = padded < least ? padded : least;
        for (int64_t i = 0; end > begin && i + shortest <= padded; i++) {
            uint64_t code = 0;
            for (int64_t size = 1; size <= most && i + size <= padded; size++) {
                int64_t at = i + size - 1; /* in the padded word */
                code = code * base + (at == 0 || at == padded - 1 ? ' ' : letters[begin + at - 1]);
                if (size >= shortest)
                    codes[n++] = code;
            }
        }
        if (letters[end] == '\n')
            ends[n_texts++] = n;
    }
}

/* An n-gram in a table of 2^bits places: in how many texts it is, 0 for an empty place, its column,
   the text that had it last, and its weight. */
struct gram {
    uint64_t code;
    double weight;
    int32_t texts, column, last, unused;
};

static inline struct gram *place_of(struct gram *table, int64_t bits, uint64_t code)
{
    uint64_t mask = ((uint64_t)1 << bits) - 1, at = (code * 0x9E3779B97F4A7C15u) >> (64 - bits);
    while (table[at].texts && table[at].code != code)
        at = (at + 1) & mask;
    return table + at;
}

/* Counts in how many texts n-grams are; texts are numbered from first + 1. How many are new. */
int64_t kernelmetric_count(struct gram *table, int64_t bits, const uint64_t *codes,
                           const int64_t *ends, int64_t n_texts, int32_t first)
{
    int64_t n_new = 0;
    for (int64_t text = 0, k = 0; text < n_texts; text++)
        for (; k < ends[text]; k++) {
            struct gram *gram = place_of(table, bits, codes[k]);
            n_new += gram->texts == 0;
            gram->code = codes[k];
            gram->texts += gram->last != first + text + 1;
            gram->last = (int32_t)(first + text + 1);
        }
    return n_new;
}

/* Moves n-grams to a larger table. */
void kernelmetric_regrow(const struct gram *old, int64_t n_old, struct gram *table, int64_t bits)
{
    for (int64_t k = 0; k < n_old; k++)
        if (old[k].texts)
            *place_of(table, bits, old[k].code) = old[k];
}

/* The unit vectors of texts: columns and values, and where the row of each text ends; n-grams of
   weight 0 do not count, those of column -1 count in the length alone. No n-gram was last anywhere,
   and slots has room for those of one text. */
void kernelmetric_weigh(struct gram *table, int64_t bits, const uint64_t *codes,
                        const int64_t *ends, int64_t n_texts, int64_t *slots, int32_t *columns,
                        float *values, int32_t *row_ends)
{
    int64_t n = 0;
    for (int64_t text = 0, k = 0; text < n_texts; text++) {
        int64_t n_slots = 0;
        double square = 0.0;
        for (; k < ends[text]; k++) {
            struct gram *gram = place_of(table, bits, codes[k]);
            if (gram->weight == 0.0)
                continue;
            if (gram->last == 0)
                slots[n_slots++] = gram - table;
            gram->last++; /* how often the text has it */
        }
        for (int64_t s = 0; s < n_slots; s++) {
            double value = table[slots[s]].last * table[slots[s]].weight;
            square += value * value;
        }
        for (int64_t s = 0; s < n_slots; s++) {
            struct gram *gram = table + slots[s];
            if (gram->column >= 0) {
                columns[n] = gram->column;
                values[n++] = (float)(gram->last * gram->weight / sqrt(square));
            }
            gram->last = 0;
        }
        row_ends[text] = (int32_t)n;
    }
}

/* Puts a row and its product where it belongs among the n_best largest ones, the first of equal. */
static inline void insert(int32_t *rows, float *values, int64_t n_best, int32_t row, float value)
{
    int64_t k = n_best - 1;
    if (value < values[k] || (value == values[k] && row >= rows[k]))
        return;
    for (; k > 0 && (value > values[k - 1] || (value == values[k - 1] && row < rows[k - 1])); k--) {
        rows[k] = rows[k - 1];
        values[k] = values[k - 1];
    }
    rows[k] = row;
    values[k] = value;
}

/* For rows of Q the rows of X with the largest positive products, the first of equal ones: best has
   n_best numbers of rows and products for each, -1 and 0 where there are no more. X comes
   transposed, as X_starts, X_rows and X_values of each column, and in parts whose sums stay in the
   cache: first is the number of the first row of this one, and best has what was found in those
   before. sums, of zeros, has room for every row of the part, and seen for one more. Where there is
   one table, X is Q, and a row is not beside itself. Where asked is given, it has the same of the
   part's rows among those of Q. */
void kernelmetric_most_alike(const int64_t *Q_starts, const int32_t *Q_columns, const float *Q_values,
                             int64_t n_rows, const int64_t *X_starts, const int32_t *X_rows,
                             const float *X_values, int64_t first, int64_t one, int64_t n_best,
                             float *sums, int32_t *seen, int32_t *best, float *products,
                             int32_t *asked, float *asked_products)
{
    int64_t end = Q_starts[n_rows];
    for (int64_t i = 0; i < n_rows; i++) {
        int64_t n_seen = 0;
        for (int64_t q = Q_starts[i]; q < Q_starts[i + 1]; q++) {
            if (q + 2 * AHEAD < end)
                __builtin_prefetch(X_starts + Q_columns[q + 2 * AHEAD]);
            if (q + AHEAD / 2 < end) {
                __builtin_prefetch(X_rows + X_starts[Q_columns[q + AHEAD / 2]]);
                __builtin_prefetch(X_values + X_starts[Q_columns[q + AHEAD / 2]]);
            }
            float weight = Q_values[q];
            int64_t stop = X_starts[Q_columns[q] + 1];
            for (int64_t x = X_starts[Q_columns[q]]; x < stop; x++) {
                float before = sums[X_rows[x]], sum = before + weight * X_values[x];
                seen[n_seen] = X_rows[x];
                n_seen += (before == 0.0f) & (sum > 0.0f);
                sums[X_rows[x]] = sum;
            }
        }
        float *last = products + (i + 1) * n_best - 1; /* most sums are below, and go no further */
        for (int64_t s = 0; s < n_seen; s++) {
            int32_t j = seen[s];
            float sum = sums[j];
            sums[j] = 0.0f;
            if (one && first + j == i)
                continue;
            if (sum >= *last)
                insert(best + i * n_best, products + i * n_best, n_best, (int32_t)(first + j), sum);
            if (asked && sum > asked_products[(j + 1) * n_best - 1])
                insert(asked + j * n_best, asked_products + j * n_best, n_best, (int32_t)i, sum);
        }
    }
}
