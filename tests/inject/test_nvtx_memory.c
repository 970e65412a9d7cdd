/* Pools that register their blocks through NVTX's memory extension. */
#include "cmocka_all.h"

#include <errno.h>
#include <stdlib.h>

#include "nvtx_extension.h"

static int initialize(uint16_t number, uint16_t compatibility)
{
    return initialize_extension(number, compatibility, 1, SLOTS);
}

#define FUNCTION(number, name, result, parameters) typedef result(*name##_fn) parameters;
NVTX_MEMORY_SLOTS(FUNCTION)
#define CALL(number, name) ((name##_fn)slots[number])

static int installed(void **state)
{
    (void)state;
    forget_everything();
    memset(&mt_nvtx_next_memory, 0, sizeof mt_nvtx_next_memory);
    return initialize(NVTX_MEMORY_MODULE, NVTX_MEMORY_COMPATIBILITY) == 1 ? 0 : -1;
}

static void *heap_register(uintptr_t address, size_t size)
{
    const struct nvtx_virtual_range range = {size, (void *)address};
    const struct nvtx_heap heap = {.compatibility = NVTX_MEMORY_COMPATIBILITY,
                                   .struct_size = sizeof heap,
                                   .usage = 1,
                                   .type = NVTX_MEMORY_IS_VIRTUAL,
                                   .range_size = sizeof range,
                                   .range = &range};

    return CALL(0, heap_register)(NULL, &heap);
}

static void regions(void *heap, const struct nvtx_virtual_range *ranges, size_t count, void **out)
{
    const struct nvtx_regions batch = {NVTX_MEMORY_COMPATIBILITY,
                                       sizeof batch,
                                       NVTX_MEMORY_IS_VIRTUAL,
                                       heap,
                                       count,
                                       sizeof *ranges,
                                       ranges,
                                       out};

    CALL(3, regions_register)(NULL, &batch);
}

static void region(void *heap, uintptr_t address, size_t size)
{
    const struct nvtx_virtual_range range = {size, (void *)address};

    regions(heap, &range, 1, NULL);
}

static void resize(uintptr_t address, size_t size)
{
    const struct nvtx_virtual_range range = {size, (void *)address};
    const struct nvtx_regions_resized batch = {
        NVTX_MEMORY_COMPATIBILITY, sizeof batch, NVTX_MEMORY_IS_VIRTUAL, 1, sizeof range, &range};

    CALL(4, regions_resize)(NULL, &batch);
}

static void unregister(uint32_t ref_type, uintptr_t address)
{
    void *ref = (void *)address;
    const struct nvtx_region_refs batch = {
        NVTX_MEMORY_COMPATIBILITY, sizeof batch, ref_type, 1, sizeof ref, &ref};

    CALL(5, regions_unregister)(NULL, &batch);
}

static void slots_that_are_not_ours_stay(void **state)
{
    (void)state;
    for (int i = 0; i < SLOTS; i++)
        assert_int_equal(slots[i] != 0, i < NVTX_MEMORY_SLOT_COUNT);
    assert_int_equal(initialize(NVTX_MEMORY_MODULE, 0x0103), 0);
    assert_int_equal(initialize(2, NVTX_MEMORY_COMPATIBILITY), 0);
    recorded_settings.phases_nvtx = false;
    assert_int_equal(initialize(NVTX_MEMORY_MODULE, NVTX_MEMORY_COMPATIBILITY), 0);
    for (int i = 0; i < SLOTS; i++)
        assert_int_equal(slots[i], 0);
    assert_int_equal(InitializeInjectionNvtxExtension(NULL), 0);
}

static void blocks_of_a_pool(void **state)
{
    void *heap = heap_register(0x10000, 0x8000), *handles[2];
    const struct nvtx_virtual_range two[] = {{0x100, (void *)0x10000}, {0x200, (void *)0x10100}};

    (void)state;
    assert_ptr_equal(heap, (void *)0x10000);
    regions(heap, two, 2, handles);
    assert_ptr_equal(handles[0], (void *)0x10000);
    assert_ptr_equal(handles[1], (void *)0x10100);
    assert_int_equal(recorded.events[1].heap, MT_RAW_USER);
    assert_int_equal(recorded.events[1].aux_bytes, 0x100);
    assert_int_equal(recorded.events[1].python_stack, 71);
    assert_int_equal(recorded.events[2].native_stack, 72);
    assert_int_equal(recorded.events[1].device, 255);
    unregister(NVTX_REGION_BY_POINTER, 0x10000);
    unregister(NVTX_REGION_BY_POINTER, 0x10000); /* again: unknown by now */
    unregister(NVTX_REGION_BY_HANDLE, 0x10100);
    unregister(9, 0x10100);
    CALL(1, heap_unregister)(NULL, heap);
    assert_string_equal(recorded_story(),
                        "segment_alloc 10000 32768 of 10000|"
                        "alloc 10000 256 of 10000|alloc 10100 512 of 10000|"
                        "free_requested 10000 256 of 10000|free_completed 10000 256 of 10000|"
                        "free_requested 10100 512 of 10000|free_completed 10100 512 of 10000|"
                        "segment_free 10000 32768 of 10000");
}

static void the_whole_process_is_a_heap(void **state)
{
    (void)state;
    region(NULL, 0x5000, 64);
    CALL(2, heap_reset)(NULL, NULL);
    CALL(1, heap_unregister)(NULL, NULL);
    assert_string_equal(recorded_story(),
                        "alloc 5000 64|free_requested 5000 64|free_completed 5000 64");
}

static void a_heap_that_goes_takes_its_blocks(void **state)
{
    void *one = heap_register(0x10000, 0x8000), *two = heap_register(0x20000, 0x8000);

    (void)state;
    for (uintptr_t i = 0; i < 50; i++) {
        region(one, 0x10000 + 16 * i, 16);
        region(two, 0x20000 + 16 * i, 16);
    }
    recorded_clear();
    CALL(2, heap_reset)(NULL, one);
    assert_int_equal(recorded.count, 100);
    for (size_t i = 0; i < recorded.count; i++)
        assert_int_equal(recorded.events[i].addr >> 16, 1);
    recorded_clear();
    region(one, 0x10000, 16);
    CALL(1, heap_unregister)(NULL, two);
    assert_int_equal(recorded.count, 1 + 100 + 1);
    assert_int_equal(recorded.events[101].kind, MT_EVENT_SEGMENT_FREE);
    assert_int_equal(recorded.events[101].addr, 0x20000);
    recorded_clear();
    unregister(NVTX_REGION_BY_POINTER, 0x10000);
    assert_int_equal(recorded.count, 2);
    recorded_clear();
}

static void resized_and_registered_again(void **state)
{
    void *heap = heap_register(0x10000, 0x8000);

    (void)state;
    recorded_clear();
    region(heap, 0x10000, 16);
    resize(0x10000, 32);
    resize(0x10040, 32); /* nobody knows it */
    region(heap, 0x10000, 48);
    region(heap, 0x10000, 0);
    assert_string_equal(recorded_story(),
                        "alloc 10000 16 of 10000|"
                        "free_requested 10000 16 of 10000|free_completed 10000 16 of 10000|"
                        "alloc 10000 32 of 10000|"
                        "free_requested 10000 32 of 10000|free_completed 10000 32 of 10000|"
                        "alloc 10000 48 of 10000|"
                        "free_requested 10000 48 of 10000|free_completed 10000 48 of 10000");
}

static void names_are_marks(void **state)
{
    struct nvtx_region_name names[] = {
        {NVTX_REGION_BY_POINTER, NVTX_MESSAGE_IS_ASCII, (void *)0x5000, {.ascii = "kv"}, 0, 0},
        {NVTX_REGION_BY_POINTER, NVTX_MESSAGE_IS_ASCII, (void *)0x6000, {.ascii = "no"}, 0, 0}};
    struct nvtx_region_names batch = {.compatibility = NVTX_MEMORY_COMPATIBILITY,
                                      .struct_size = sizeof batch,
                                      .count = 2,
                                      .element_size = sizeof names[0],
                                      .elements = names};

    (void)state;
    region(NULL, 0x5000, 64);
    CALL(6, regions_name)(NULL, &batch);
    assert_string_equal(recorded_story(), "alloc 5000 64|mark kv at 5000 64");
}

/* Structures of other versions, too small, or empty. */
static void wrong_structures(void **state)
{
    const struct nvtx_virtual_range range = {16, (void *)0x5000};
    struct nvtx_regions batch = {NVTX_MEMORY_COMPATIBILITY,
                                 sizeof batch,
                                 NVTX_MEMORY_IS_VIRTUAL,
                                 NULL,
                                 1,
                                 sizeof range,
                                 &range,
                                 NULL};
    struct nvtx_regions wrong[6];
    struct nvtx_heap heap = {.compatibility = NVTX_MEMORY_COMPATIBILITY,
                             .struct_size = sizeof heap,
                             .type = NVTX_MEMORY_IS_VIRTUAL,
                             .range_size = sizeof range};

    (void)state;
    for (int i = 0; i < 6; i++)
        wrong[i] = batch;
    wrong[0].compatibility = 1;
    wrong[1].struct_size = 8;
    wrong[2].type = 2;
    wrong[3].element_size = 8;
    wrong[4].elements = NULL;
    wrong[5].count = 0;
    for (int i = 0; i < 6; i++)
        CALL(3, regions_register)(NULL, &wrong[i]);
    CALL(3, regions_register)(NULL, NULL);
    CALL(4, regions_resize)(NULL, NULL);
    CALL(5, regions_unregister)(NULL, NULL);
    CALL(6, regions_name)(NULL, NULL);
    assert_null(CALL(0, heap_register)(NULL, NULL));
    assert_null(CALL(0, heap_register)(NULL, &heap)); /* no range */
    heap.range = &range;
    heap.type = 7;
    assert_null(CALL(0, heap_register)(NULL, &heap));
    assert_int_equal(recorded.count, 0);
}

static void a_collector_that_does_not_run(void **state)
{
    (void)state;
    recorded.refuses = true;
    region(heap_register(0x10000, 0x100), 0x10000, 16);
    recorded.refuses = false;
    unregister(NVTX_REGION_BY_POINTER, 0x10000);
    assert_int_equal(recorded.count, 0);
}

static void errno_is_kept(void **state)
{
    (void)state;
    errno = 77;
    region(heap_register(0x10000, 0x100), 0x10000, 16);
    CALL(1, heap_unregister)(NULL, (void *)0x10000);
    assert_int_equal(errno, 77);
}

/* Against a model: which of the blocks of two heaps are live, and how large. */
static void like_a_model(void **state)
{
    enum { HEAPS = 2, BLOCKS = 32, STEPS = 3000 };
    void *heaps[HEAPS] = {heap_register(0x100000, 0x10000), heap_register(0x200000, 0x10000)};
    size_t live[HEAPS][BLOCKS] = {{0}};
    uint32_t random = 1;

    (void)state;
    for (int step = 0; step < STEPS; step++) {
        size_t heap, block, expected = 0;
        uintptr_t address;
        random = random * 1664525u + 1013904223u;
        heap = random >> 31;
        block = random >> 20 & (BLOCKS - 1);
        address = 0x100000 * (heap + 1) + 0x100 * block;
        recorded_clear();
        if ((random >> 8 & 63) == 0) {
            CALL(2, heap_reset)(NULL, heaps[heap]);
            for (size_t i = 0; i < BLOCKS; i++) {
                expected += live[heap][i] ? 2 : 0;
                live[heap][i] = 0;
            }
            assert_int_equal(recorded.count, expected);
        } else if (random >> 16 & 1) {
            region(heaps[heap], address, 1 + (random & 0xff));
            expected = live[heap][block] ? 3 : 1;
            live[heap][block] = 1 + (random & 0xff);
            assert_int_equal(recorded.count, expected);
            assert_int_equal(recorded.events[expected - 1].size_bytes, live[heap][block]);
        } else {
            unregister(NVTX_REGION_BY_POINTER, address);
            assert_int_equal(recorded.count, live[heap][block] ? 2 : 0);
            if (live[heap][block]) {
                assert_int_equal(recorded.events[1].addr, address);
                assert_int_equal(recorded.events[1].size_bytes, live[heap][block]);
            }
            live[heap][block] = 0;
        }
    }
}

/* Blocks never overlap in the order of events, whatever the threads do. */
static void *churn(void *number)
{
    uintptr_t base = 0x100000 * (1 + (uintptr_t)number);
    void *heap = heap_register(base, 0x10000);

    for (int i = 0; i < 300; i++) {
        region(heap, base + 16, 16);
        region(NULL, 0x900000, 16); /* of all threads */
        unregister(NVTX_REGION_BY_POINTER, 0x900000);
        unregister(NVTX_REGION_BY_POINTER, base + 16);
    }
    return NULL;
}

static void many_threads(void **state)
{
    pthread_t threads[4];
    int live[16] = {0};

    (void)state;
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)i), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < recorded.count; i++) {
        const struct mt_raw_event *event = &recorded.events[i];
        if (event->kind == MT_EVENT_ALLOC)
            assert_int_equal(live[event->addr >> 20]++, 0);
        if (event->kind == MT_EVENT_FREE_REQUESTED)
            assert_int_equal(live[event->addr >> 20]--, 1);
    }
    for (int i = 0; i < 16; i++)
        assert_int_equal(live[i], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(slots_that_are_not_ours_stay, installed),
        cmocka_unit_test_setup(blocks_of_a_pool, installed),
        cmocka_unit_test_setup(the_whole_process_is_a_heap, installed),
        cmocka_unit_test_setup(a_heap_that_goes_takes_its_blocks, installed),
        cmocka_unit_test_setup(resized_and_registered_again, installed),
        cmocka_unit_test_setup(names_are_marks, installed),
        cmocka_unit_test_setup(wrong_structures, installed),
        cmocka_unit_test_setup(a_collector_that_does_not_run, installed),
        cmocka_unit_test_setup(errno_is_kept, installed),
        cmocka_unit_test_setup(like_a_model, installed),
        cmocka_unit_test_setup(many_threads, installed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
