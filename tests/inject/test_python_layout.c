/* Layouts: which Pythons are known, and that nonsense is refused. Whether they
 * are right is for check_python_stacks.py to see, in real interpreters. */
#include "cmocka_all.h"

#include <string.h>

#include "python_layout.h"

static char runtime[MT_PYTHON_RUNTIME_BYTES];

static void put(size_t at, uint64_t value)
{
    memcpy(runtime + at, &value, sizeof value);
}

/* What 3.14 publishes, free-threaded or not. */
static void publish_314(bool free_threaded)
{
    static const struct {
        uint16_t at, value;
    } offsets[] = {{208, 72},  {256, 8},   {264, 0},   {272, 56}, {288, 74}, {304, 72},  {320, 112},
                   {328, 120}, {336, 128}, {344, 136}, {352, 68}, {368, 96}, {384, 208}, {392, 192},
                   {408, 8},   {608, 32},  {624, 32},  {632, 16}, {640, 40}};

    memset(runtime, 0, sizeof runtime);
    memcpy(runtime, "xdebugpy", 8);
    put(8, 0x030e0af0);
    put(16, free_threaded);
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
        put(offsets[i].at, offsets[i].value);
}

TEST(known_versions)
{
    struct mt_python_layout layout;

    for (uint32_t minor = 9; minor <= 12; minor++) {
        assert_true(mt_python_layout(0x03000000 | minor << 16 | 0x07f0, NULL, &layout));
        assert_int_equal(layout.version, 0x0300 | minor);
        assert_in_range(layout.frame_span, 8, MT_PYTHON_FRAME_SPAN);
        assert_in_range(layout.code_span, 8, MT_PYTHON_CODE_SPAN);
    }
    publish_314(false);
    assert_true(mt_python_layout(0x030e0af0, runtime, &layout));
    assert_int_equal(layout.frame_owner, 74);
    assert_int_equal(layout.frame_copy, MT_PYTHON_ABSENT);
    assert_int_equal(layout.code_number, 92);
    assert_int_equal(layout.text_kind_shift, 2);
    publish_314(true);
    assert_true(mt_python_layout(0x030e0af0, runtime, &layout));
    assert_int_equal(layout.frame_copy, 72);
    assert_int_equal(layout.code_copies, 192);
    assert_int_equal(layout.text_kind_shift, 8);
}

TEST(unknown_versions)
{
    struct mt_python_layout layout;

    publish_314(false);
    assert_false(mt_python_layout(0x03080000, runtime, &layout));
    assert_false(mt_python_layout(0x04000000, runtime, &layout));
    assert_false(mt_python_layout(0x030e0af0, NULL, &layout));
    assert_false(mt_python_layout(0x030d0af0, runtime, &layout)); /* says that it is 3.14 */
    runtime[0] = 'y';
    assert_false(mt_python_layout(0x030e0af0, runtime, &layout));
    publish_314(false);
    put(8, 0x031000f0);
    assert_false(mt_python_layout(0x031000f0, runtime, &layout));
}

/* Every published offset, far too large: refused, or not ours to use. */
TEST(nonsense)
{
    struct mt_python_layout layout;
    unsigned refused = 0;

    for (size_t at = 24; at + 8 <= sizeof runtime; at += 8) {
        publish_314(true);
        put(at, UINT64_MAX - 3);
        if (mt_python_layout(0x030e0af0, runtime, &layout)) {
            assert_in_range(layout.frame_span, 8, MT_PYTHON_FRAME_SPAN);
            assert_in_range(layout.code_span, 8, MT_PYTHON_CODE_SPAN);
        } else {
            refused++;
        }
        put(at, 250);
        if (mt_python_layout(0x030e0af0, runtime, &layout)) {
            assert_in_range(layout.frame_span, 8, MT_PYTHON_FRAME_SPAN);
            assert_in_range(layout.code_span, 8, MT_PYTHON_CODE_SPAN);
        }
    }
    assert_int_equal(refused, 19);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
