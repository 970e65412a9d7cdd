/* Workspaces of convolutions: measured values for measured shapes, the rule for others. */
#include "cmocka_all.h"

#include "../../simulate/driver/cudnn/convolution_workspace.c"

static struct convolution_tensor tensor(int64_t n, int64_t c, int64_t size, bool channels_last)
{
    struct convolution_tensor t = {.dimensions = 4, .element_bytes = 4};
    int64_t sizes[4] = {n, c, size, size};
    int64_t first[4] = {c * size * size, size * size, size, 1};
    int64_t last[4] = {c * size * size, 1, size * c, c};

    for (int i = 0; i < 4; i++) {
        t.sizes[i] = sizes[i];
        t.strides[i] = channels_last ? last[i] : first[i];
    }
    return t;
}

static struct convolution square(int64_t n, int64_t channels, int64_t size, bool channels_last)
{
    struct convolution c = {.x = tensor(n, channels, size, channels_last),
                            .w = tensor(channels, channels, 3, channels_last),
                            .y = tensor(n, channels, size, channels_last)};

    for (int i = 0; i < 2; i++)
        c.stride[i] = c.dilation[i] = c.padding[i] = 1;
    return c;
}

TEST(measured_shapes_have_measured_workspaces)
{
    struct convolution c = square(16, 128, 28, false);

    assert_int_equal(sim_convolution_workspace(&c).bytes, 13434896);
    c.kind = CONVOLUTION_FILTER;
    assert_int_equal(sim_convolution_workspace(&c).bytes, 17564327);
    assert_int_equal(sim_convolution_workspace(&c).source, WORKSPACE_MEASURED);
}

TEST(others_copy_their_operands)
{
    struct convolution c = square(5, 128, 20, false);
    int64_t x = INT64_C(5) * 128 * 20 * 20 * 4, w = INT64_C(128) * 128 * 9 * 4;

    assert_int_equal(sim_convolution_workspace(&c).bytes, 2 * x + w + 16);
    assert_int_equal(sim_convolution_workspace(&c).source, WORKSPACE_BY_RULE);
    c = square(5, 128, 20, true);
    assert_int_equal(sim_convolution_workspace(&c).bytes, 0);
}

/* The rule: convolutions that are matrix products sum their filter gradient; groups of one channel
 * and channels-last layouts copy nothing. */
TEST(some_copy_nothing)
{
    struct convolution c = square(5, 128, 20, false);

    c.w.sizes[2] = c.w.sizes[3] = 1;
    assert_int_equal(sim_convolution_workspace(&c).bytes, 0);
    c.kind = CONVOLUTION_FILTER;
    assert_int_equal(sim_convolution_workspace(&c).bytes, INT64_C(5) * 128 * 128 * 4);
    c = square(5, 128, 20, false);
    c.w.sizes[1] = 1;
    assert_int_equal(sim_convolution_workspace(&c).bytes, 0);
}

/* In half precision, three channels are padded to four. */
TEST(few_channels_are_padded)
{
    struct convolution c = square(5, 3, 20, false);
    int64_t pixels = INT64_C(5) * 20 * 20;

    c.w.sizes[0] = c.y.sizes[1] = 64;
    c.x.element_bytes = c.w.element_bytes = c.y.element_bytes = 2;
    assert_int_equal(sim_convolution_workspace(&c).bytes,
                     pixels * 4 * 2 + pixels * 64 * 2 + 64 * 4 * 9 * 2 + 16);
}

TEST(invalid_shapes_need_nothing)
{
    struct convolution c = square(16, 128, 28, false);

    c.x.sizes[0] = -1;
    assert_int_equal(sim_convolution_workspace(&c).bytes, 0);
    assert_int_equal(sim_convolution_workspace(&c).source, WORKSPACE_GUESSED);
    c = square(16, 128, 28, false);
    c.x.sizes[2] = INT64_MAX;
    assert_int_equal(sim_convolution_workspace(&c).bytes, 0);
    c = square(16, 128, 28, false);
    c.w.dimensions = 2;
    assert_int_equal(sim_convolution_workspace(&c).bytes, 0);
}

/* A sum of products that overflows 64 bits: a batch as large as a filter. */
TEST(sizes_that_overflow_need_nothing)
{
    struct convolution c = square(1, 1 << 20, 8, false);

    c.kind = CONVOLUTION_FILTER;
    c.w.sizes[2] = c.w.sizes[3] = 1;
    c.x.sizes[0] = c.y.sizes[0] = INT64_C(1) << 27;
    c.x.sizes[2] = c.x.sizes[3] = c.y.sizes[2] = c.y.sizes[3] = 8;
    assert_true(sim_convolution_workspace(&c).bytes >= 0);
    c.x.sizes[0] = c.y.sizes[0] = INT64_C(1) << 60;
    assert_int_equal(sim_convolution_workspace(&c).bytes, 0);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
