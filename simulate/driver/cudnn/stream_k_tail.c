/* A model of CUTLASS's stream-K scheduler. Complete waves of tiles run without sharing. The tiles
 * of the last wave are split along the summed dimension as often as the idle multiprocessors allow,
 * as long as each share has enough steps. The tile of each configuration, and the number of
 * multiprocessors that clusters of each size can occupy, were fitted to results of an H200; the
 * tiles whose steps follow the kernel, to what cuDNN 9.19 plans for a described H200. */
#include "stream_k_tail.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    KNOB_TILE_SIZE = 2, /* cudnnBackendKnobType_t */
    KNOB_WORKSPACE = 25,
    KNOB_CLUSTER_M = 27,
    KNOB_CLUSTER_N = 28,
    MULTIPROCESSORS = 132,
    MULTIPROCESSORS_OF_A_DOMAIN = 18,
    MAX_CLUSTER = 16,
    BYTES_OF_A_STEP = 128,
    FLAG_BYTES = 4,
    LEAST_STEPS = 16,
    LEAST_STEPS_AFTER_FLOAT = 8,
    BYTES_OF_A_SHARE = 512 /* at least, of tiles whose steps follow the kernel */
};

/* The matrix product that is equivalent to a convolution: ROWS x COLUMNS numbers, each a sum over
 * DEPTH. */
struct product {
    int64_t rows, columns, depth;
};

/* step_bytes: each position of the kernel has its own steps, of this many bytes of channels; 0: the
 * steps do not follow the kernel. */
struct tile {
    int64_t rows, columns, step_bytes;
};

struct schedule {
    int64_t tiles, tile_bytes;
    int64_t steps, least_steps; /* for each tile, and for a share after complete waves */
    int64_t least_steps_first;  /* for a share if there is no complete wave */
    int64_t flags_of_two;       /* shares */
};

/* Indexed by the value of the knob. */
static const struct tile tiles[] = {
    [0] = {128, 128, 0},  [1] = {64, 128, 0},    [3] = {128, 256, 0}, [4] = {256, 64, 0},
    [5] = {64, 64, 0},    [6] = {256, 128, 0},   [7] = {128, 64, 0},  [9] = {64, 256, 0},
    [16] = {32, 256, 64}, [18] = {192, 64, 128},
};

/* Multiprocessors that clusters of each size can occupy. 0: the largest multiple of the cluster
 * size. */
static const int8_t occupied[MAX_CLUSTER + 1] = {
    [3] = 117, [4] = 120, [5] = 110, [6] = 102, [7] = 105, [8] = 120, [16] = 112,
};

static int64_t divided_up(int64_t count, int64_t size)
{
    return (count + size - 1) / size;
}

static struct product product_of(const struct convolution *c)
{
    int64_t kernel = convolution_positions(&c->w);
    if (c->kind == CONVOLUTION_FORWARD) {
        return (struct product){c->w.sizes[0], c->y.sizes[0] * convolution_positions(&c->y),
                                c->x.sizes[1] * kernel};
    }
    if (c->kind == CONVOLUTION_DATA) {
        return (struct product){c->x.sizes[1], c->x.sizes[0] * convolution_positions(&c->x),
                                c->w.sizes[0] * kernel};
    }
    return (struct product){c->x.sizes[1] * kernel, c->w.sizes[0],
                            c->y.sizes[0] * convolution_positions(&c->y)};
}

static int64_t multiprocessors(int64_t cluster, bool is_described)
{
    if (is_described)
        return MULTIPROCESSORS_OF_A_DOMAIN / cluster * cluster;
    return occupied[cluster] > 0 ? occupied[cluster] : MULTIPROCESSORS / cluster * cluster;
}

/* The number of shares is a power of two if the steps, not the multiprocessors, limit it. */
static int64_t shares_of_a_tile(int64_t most, int64_t steps, int64_t least_steps)
{
    int64_t by_steps = steps / least_steps, shares = 1;
    if (by_steps >= most)
        return most;
    while (2 * shares <= by_steps)
        shares *= 2;
    return shares;
}

/* The memory that the last wave shares: partial sums of one tile each, and flags. A last wave that
 * is at least three quarters full is not shared. Two shares of most tiles need one flag; more
 * shares need one flag each. */
static int64_t shared_bytes(const struct schedule *schedule, int64_t wave)
{
    int64_t last = schedule->tiles % wave;
    bool is_first = schedule->tiles < wave;
    if (last == 0 || (!is_first && 4 * last >= 3 * wave))
        return 0;
    int64_t least = is_first ? schedule->least_steps_first : schedule->least_steps;
    int64_t shares = shares_of_a_tile(wave / last, schedule->steps, least);
    if (shares < 2)
        return 0;
    return last * (shares * schedule->tile_bytes +
                   FLAG_BYTES * (shares == 2 ? schedule->flags_of_two : shares));
}

static const struct tile *tile_of(const struct cudnn_configuration *configuration)
{
    int32_t knob = configuration->knobs[KNOB_TILE_SIZE];
    bool is_known = knob >= 0 && (size_t)knob < sizeof tiles / sizeof tiles[0];
    return is_known && tiles[knob].rows > 0 ? &tiles[knob] : NULL;
}

static struct schedule schedule_of(const struct convolution *c, const struct tile *tile,
                                   int64_t depth)
{
    int64_t bytes = depth * c->x.element_bytes, positions_of_kernel = convolution_positions(&c->w);
    bool is_float = c->x.element_bytes == (int)sizeof(float);
    struct schedule schedule = {.tile_bytes = tile->rows * tile->columns * (int64_t)sizeof(float),
                                .steps = divided_up(bytes, BYTES_OF_A_STEP),
                                .least_steps = is_float ? LEAST_STEPS_AFTER_FLOAT : LEAST_STEPS,
                                .least_steps_first = LEAST_STEPS,
                                .flags_of_two = 1};
    if (tile->step_bytes > 0 && positions_of_kernel > 0) {
        schedule.steps =
            positions_of_kernel * divided_up(bytes / positions_of_kernel, tile->step_bytes);
        schedule.least_steps = schedule.least_steps_first = BYTES_OF_A_SHARE / tile->step_bytes;
        schedule.flags_of_two = 2;
    }
    return schedule;
}

static bool is_cluster(int64_t rows, int64_t columns)
{
    return rows > 0 && columns > 0 && rows <= MAX_CLUSTER && columns <= MAX_CLUSTER &&
           rows * columns <= MAX_CLUSTER;
}

int64_t sim_stream_k_tail(const struct convolution *c,
                          const struct cudnn_configuration *configuration)
{
    const struct tile *tile = tile_of(configuration);
    int64_t high = configuration->knobs[KNOB_CLUSTER_N],
            wide = configuration->knobs[KNOB_CLUSTER_M];
    if (configuration->knobs[KNOB_WORKSPACE] != 0 || tile == NULL || !is_cluster(high, wide) ||
        c->x.sizes[1] != c->w.sizes[1] || (tile->step_bytes > 0 && c->kind == CONVOLUTION_FILTER))
        return 0;
    struct product product = product_of(c);
    int64_t rows = divided_up(divided_up(product.rows, tile->rows), high) * high;
    int64_t columns = divided_up(divided_up(product.columns, tile->columns), wide) * wide;
    int64_t count;
    if (__builtin_mul_overflow(rows, columns, &count)) /* sizes that are inconsistent */
        return 0;
    struct schedule schedule = schedule_of(c, tile, product.depth);
    schedule.tiles = count;
    return shared_bytes(&schedule, multiprocessors(high * wide, false)) -
           shared_bytes(&schedule, multiprocessors(high * wide, true));
}
