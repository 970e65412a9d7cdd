/* Every heap that the collector names is one that readers know. */
#include "cmocka_all.h"

#include <string.h>

#include "heaps.h"
#include "tape_symbols.h"
#include "tape.h"

TEST(every_name_is_known)
{
    for (unsigned heap = 0; heap < MT_RAW_HEAP_COUNT; heap++) {
        struct mt_heap_class is = mt_heap_class_of(mt_raw_heap_name(heap));

        if (!*is.what)
            fail_msg("readers do not know '%s'", mt_raw_heap_name(heap));
    }
}

TEST(levels_are_those_of_the_tape)
{
    static const unsigned beside[] = {MT_RAW_HOST, MT_RAW_RESERVED, MT_RAW_MAPPED, MT_RAW_IMPORTED};

    for (unsigned heap = 0; heap < MT_RAW_HEAP_COUNT; heap++) {
        struct mt_heap_class is = mt_heap_class_of(mt_raw_heap_name(heap));
        bool is_beside = false;

        for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
            is_beside |= heap == beside[i];
        if (heap == MT_RAW_PYTORCH)
            assert_int_equal(is.level, MT_HEAP_FRAMEWORK);
        else
            assert_int_equal(is.level, MT_HEAP_DRIVER);
        assert_int_equal(is.is_device_memory, is.level == MT_HEAP_DRIVER && !is_beside);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
