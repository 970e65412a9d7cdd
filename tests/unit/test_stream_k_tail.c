/* Stream-K: the difference between a plan with an H200's handle and one for a described H200. */
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"

#include "../../simulate/driver/cudnn/stream_k_tail.c"

/* A two-dimensional convolution with the same extent on both sides. */
struct measured {
    enum convolution_kind kind;
    int element_bytes, batch, channels, out_channels, size[2], kernel;
    int tile, cluster_m, cluster_n;
    int64_t more; /* with the handle, cuDNN 9.19 */
};

static const struct measured measured[] = {
    {CONVOLUTION_FORWARD, 2, 8, 256, 128, {32, 32}, 3, 0, 1, 1, 8388892},
    {CONVOLUTION_FORWARD, 2, 8, 1024, 512, {32, 32}, 3, 0, 1, 2, -1048787},
    {CONVOLUTION_FORWARD, 2, 16, 672, 672, {32, 32}, 3, 0, 8, 1, 6291680},
    {CONVOLUTION_FORWARD, 4, 1, 256, 256, {60, 80}, 3, 0, 1, 2, -1048787},
    {CONVOLUTION_FORWARD, 4, 5, 256, 91, {30, 40}, 3, 0, 8, 1, 6291676},
    {CONVOLUTION_DATA, 2, 4, 448, 448, {64, 64}, 3, 3, 2, 1, -1048755},
    {CONVOLUTION_DATA, 4, 8, 256, 256, {25, 38}, 3, 3, 1, 2, 13369508},
    {CONVOLUTION_DATA, 4, 1, 384, 384, {32, 32}, 3, 1, 1, 3, 3145948},
    {CONVOLUTION_FILTER, 2, 96, 256, 512, {7, 7}, 3, 1, 1, 5, 3277028},
    {CONVOLUTION_FILTER, 2, 4, 64, 64, {56, 56}, 3, 5, 1, 6, 1573359},
    {CONVOLUTION_FILTER, 2, 64, 2048, 512, {16, 16}, 1, 1, 1, 8, 3932668},
};

static struct convolution_tensor tensor(int64_t n, int64_t c, int64_t high, int64_t wide, int bytes)
{
    return (struct convolution_tensor){
        .sizes = {n, c, high, wide}, .dimensions = 4, .element_bytes = bytes};
}

static struct convolution convolution_of(const struct measured *m)
{
    return (struct convolution){
        .kind = m->kind,
        .x = tensor(m->batch, m->channels, m->size[0], m->size[1], m->element_bytes),
        .w = tensor(m->out_channels, m->channels, m->kernel, m->kernel, m->element_bytes),
        .y = tensor(m->batch, m->out_channels, m->size[0], m->size[1], m->element_bytes)};
}

static struct cudnn_configuration configuration_of(const struct measured *m)
{
    struct cudnn_configuration configuration;

    memset(&configuration, 0xff, sizeof configuration);
    configuration.knobs[KNOB_WORKSPACE] = 0;
    configuration.knobs[KNOB_TILE_SIZE] = m->tile;
    configuration.knobs[KNOB_CLUSTER_M] = m->cluster_m;
    configuration.knobs[KNOB_CLUSTER_N] = m->cluster_n;
    return configuration;
}

TEST(the_difference_is_as_measured)
{
    for (size_t i = 0; i < sizeof measured / sizeof measured[0]; i++) {
        struct convolution convolution = convolution_of(&measured[i]);
        struct cudnn_configuration configuration = configuration_of(&measured[i]);
        int64_t tail = sim_stream_k_tail(&convolution, &configuration);

        assert_in_range(llabs(tail - measured[i].more), 0, 256);
    }
}

/* A cube of channels: x is batch x channels x size. */
struct followed {
    enum convolution_kind kind;
    int64_t batch, channels, out_channels, size[3], kernel;
    int tile;
    int64_t described, more; /* described: planned by cuDNN 9.19, without copies of operands */
};

/* With the first three, a 3D U-Net reserves what it does on an H200, to the byte. -1: not known. */
static const struct followed followed[] = {
    {CONVOLUTION_DATA, 2, 48, 24, {96, 96, 96}, 3, 16, 0, 1573056},
    {CONVOLUTION_DATA, 2, 48, 24, {64, 128, 112}, 3, 16, 0, 3670464},
    {CONVOLUTION_DATA, 2, 24, 24, {96, 96, 96}, 3, 16, 0, 0},
    {CONVOLUTION_DATA, 32, 32, 24, {1, 375, 166}, 3, 16, 0, -1},
    {CONVOLUTION_DATA, 8, 24, 48, {1, 372, 391}, 3, 16, 524352, -1},
    {CONVOLUTION_DATA, 2, 16, 128, {1, 76, 92}, 3, 16, 524352, -1},
    {CONVOLUTION_FORWARD, 2, 128, 96, {1, 305, 395}, 3, 18, 786496, -1},
    {CONVOLUTION_FORWARD, 4, 256, 64, {1, 310, 178}, 3, 18, 0, -1},
};

static struct convolution followed_of(const struct followed *f)
{
    struct convolution c = {.kind = f->kind};
    struct convolution_tensor *const tensors[] = {&c.x, &c.y, &c.w};

    for (unsigned i = 0; i < 3; i++) {
        tensors[i]->dimensions = 5;
        tensors[i]->element_bytes = 2;
        tensors[i]->sizes[0] = f->batch;
        for (unsigned d = 0; d < 3; d++)
            tensors[i]->sizes[2 + d] = f->size[d];
    }
    c.x.sizes[1] = c.w.sizes[1] = f->channels;
    c.y.sizes[1] = c.w.sizes[0] = f->out_channels;
    for (unsigned d = 0; d < 3; d++)
        c.w.sizes[2 + d] = f->size[d] == 1 ? 1 : f->kernel;
    return c;
}

TEST(steps_follow_the_kernel)
{
    for (size_t i = 0; i < sizeof followed / sizeof followed[0]; i++) {
        const struct followed *f = &followed[i];
        struct measured m = {.tile = f->tile, .cluster_m = 8, .cluster_n = 1};
        struct cudnn_configuration configuration = configuration_of(&m);
        struct convolution c = followed_of(f);
        struct schedule described = schedule_of(&c, &tiles[f->tile], product_of(&c).depth);

        described.tiles = divided_up(product_of(&c).rows, tiles[f->tile].rows) * 8 *
                          divided_up(product_of(&c).columns, tiles[f->tile].columns * 8);
        assert_int_equal(shared_bytes(&described, multiprocessors(8, true)), f->described);
        if (f->more >= 0)
            assert_int_equal(sim_stream_k_tail(&c, &configuration), f->more);
        c.kind = CONVOLUTION_FILTER;
        assert_int_equal(sim_stream_k_tail(&c, &configuration), 0);
    }
}

TEST(a_configuration_of_another_kind_needs_no_correction)
{
    struct convolution convolution = convolution_of(&measured[0]);
    struct cudnn_configuration configuration = configuration_of(&measured[0]);

    configuration.knobs[KNOB_WORKSPACE] = 1;
    assert_int_equal(sim_stream_k_tail(&convolution, &configuration), 0);
    configuration = configuration_of(&measured[0]);
    configuration.knobs[KNOB_TILE_SIZE] = 2; /* a tile of unknown size */
    assert_int_equal(sim_stream_k_tail(&convolution, &configuration), 0);
    configuration.knobs[KNOB_TILE_SIZE] = 1000;
    assert_int_equal(sim_stream_k_tail(&convolution, &configuration), 0);
    configuration = configuration_of(&measured[0]);
    configuration.knobs[KNOB_CLUSTER_M] = CUDNN_NO_KNOB;
    assert_int_equal(sim_stream_k_tail(&convolution, &configuration), 0);
    configuration.knobs[KNOB_CLUSTER_M] = 1 << 20;
    assert_int_equal(sim_stream_k_tail(&convolution, &configuration), 0);
    configuration = configuration_of(&measured[0]);
    convolution.w.sizes[1] /= 2; /* two groups */
    assert_int_equal(sim_stream_k_tail(&convolution, &configuration), 0);
}

/* Tensors that each fit into memory but do not match: 2^90 tiles. */
TEST(tile_counts_that_overflow_need_no_correction)
{
    struct convolution convolution = convolution_of(&measured[0]);
    struct cudnn_configuration configuration = configuration_of(&measured[0]);

    convolution.w.sizes[0] = INT64_C(1) << 52;
    convolution.x.sizes[1] = convolution.w.sizes[1] = 1;
    convolution.w.sizes[2] = convolution.w.sizes[3] = 1;
    convolution.y.sizes[0] = INT64_C(1) << 42;
    assert_int_equal(sim_stream_k_tail(&convolution, &configuration), 0);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
