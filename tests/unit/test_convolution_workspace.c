/* Workspaces of convolutions: measured shapes as they were measured, others by the rule. */
#include "cmocka_all.h"

#include "../../simulate/driver/convolution_workspace.c"

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

static void a_measured_shape_is_as_it_was_measured(void **state)
{
    struct convolution c = square(16, 128, 28, false);

    (void)state;
    assert_int_equal(sim_convolution_workspace(&c), 13434896);
    c.kind = CONVOLUTION_FILTER;
    assert_int_equal(sim_convolution_workspace(&c), 17564327);
}

static void others_copy_their_operands(void **state)
{
    struct convolution c = square(5, 128, 20, false);
    int64_t x = INT64_C(5) * 128 * 20 * 20 * 4, w = INT64_C(128) * 128 * 9 * 4;

    (void)state;
    assert_int_equal(sim_convolution_workspace(&c), 2 * x + w + 16);
    c = square(5, 128, 20, true);
    assert_int_equal(sim_convolution_workspace(&c), 0);
}

static void what_makes_no_sense_needs_nothing(void **state)
{
    struct convolution c = square(16, 128, 28, false);

    (void)state;
    c.x.sizes[0] = -1;
    assert_int_equal(sim_convolution_workspace(&c), 0);
    c = square(16, 128, 28, false);
    c.x.sizes[2] = INT64_MAX;
    assert_int_equal(sim_convolution_workspace(&c), 0);
    c = square(16, 128, 28, false);
    c.w.dimensions = 2;
    assert_int_equal(sim_convolution_workspace(&c), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_measured_shape_is_as_it_was_measured),
        cmocka_unit_test(others_copy_their_operands),
        cmocka_unit_test(what_makes_no_sense_needs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
