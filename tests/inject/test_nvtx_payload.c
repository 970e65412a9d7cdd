/* Ranges and marks of NVTX's payload extension. */
#include "cmocka_all.h"

#include <errno.h>

#include "nvtx_extension.h"

static int initialize(uint16_t compatibility, size_t slot_count)
{
    return initialize_extension(NVTX_PAYLOAD_MODULE, compatibility, 0, slot_count);
}

#define FUNCTION(number, name, result, parameters) typedef result(*name##_fn) parameters;
NVTX_PAYLOAD_SLOTS(FUNCTION)
#define CALL(number, name) ((name##_fn)slots[number])

static int installed(void **state)
{
    (void)state;
    forget_everything();
    memset(&mt_nvtx_next_payload, 0, sizeof mt_nvtx_next_payload);
    return initialize(NVTX_PAYLOAD_COMPATIBILITY, SLOTS) == 1 ? 0 : -1;
}

static struct nvtx_attributes named(const char *message)
{
    return (struct nvtx_attributes){.size = sizeof(struct nvtx_attributes),
                                    .message_type = NVTX_MESSAGE_IS_ASCII,
                                    .message = {.ascii = message}};
}

/* As NCCL's initialization does. */
static void a_range_ends_with_a_payload(void **state)
{
    const struct nvtx_attributes init = named("init");
    const uint64_t communicator = 7;
    const struct nvtx_payload payload = {1 << 24, sizeof communicator, &communicator};

    (void)state;
    assert_int_equal(mt_nvtx_push(0, &init), 0);
    errno = EDOM;
    assert_int_equal(CALL(4, range_pop_payload)(NULL, &payload, 1), 0);
    assert_int_equal(errno, EDOM);
    assert_int_equal(recorded.count, 2);
    assert_int_equal(recorded.events[0].kind, MT_EVENT_PHASE_PUSH);
    assert_int_equal(recorded.events[1].kind, MT_EVENT_PHASE_POP);
    assert_int_equal(recorded.events[1].id, recorded.events[0].id);
    assert_int_equal(CALL(4, range_pop_payload)(NULL, &payload, 1), -1);
}

static void ranges_of_payloads_alone(void **state)
{
    uint64_t id;

    (void)state;
    assert_int_equal(CALL(3, range_push_payload)(NULL, NULL, 0), 0);
    assert_int_equal(CALL(3, range_push_payload)(NULL, NULL, 0), 1);
    assert_int_equal(mt_nvtx_pop(0), 1);
    assert_int_equal(mt_nvtx_pop(0), 0);
    id = CALL(5, range_start_payload)(NULL, NULL, 0);
    CALL(6, range_end_payload)(NULL, id, NULL, 0);
    CALL(2, mark_payload)(NULL, NULL, 0);
    assert_int_equal(recorded.count, 7);
    assert_int_equal(recorded.events[4].kind, MT_EVENT_PHASE_PUSH);
    assert_int_equal(recorded.events[5].kind, MT_EVENT_PHASE_POP);
    assert_int_equal(recorded.events[6].kind, MT_EVENT_MARK);
}

static void only_slots_of_known_versions(void **state)
{
    (void)state;
    for (int i = 0; i < SLOTS; i++)
        assert_int_equal(slots[i] != 0, i >= 2 && i <= 6);
    assert_int_equal(initialize(NVTX_PAYLOAD_OLDEST_COMPATIBILITY, SLOTS), 1);
    /* The extension's first version had two functions, to register schemas. */
    assert_int_equal(initialize(NVTX_PAYLOAD_OLDEST_COMPATIBILITY, 2), 1);
    assert_int_equal(slots[4], 0);
    assert_int_equal(initialize(NVTX_PAYLOAD_COMPATIBILITY + 1, SLOTS), 0);
    recorded_settings.phases_nvtx = false;
    assert_int_equal(initialize(NVTX_PAYLOAD_COMPATIBILITY, SLOTS), 0);
    for (int i = 0; i < SLOTS; i++)
        assert_int_equal(slots[i], 0);
}

static int level_of_next(void *domain, const struct nvtx_payload *payloads, size_t count)
{
    (void)domain, (void)payloads;
    return 40 + (int)count;
}

static void the_tool_before_us_is_called(void **state)
{
    (void)state;
    atomic_store(&mt_nvtx_next_payload[3], (nvtx_function)level_of_next);
    atomic_store(&mt_nvtx_next_payload[4], (nvtx_function)level_of_next);
    assert_int_equal(CALL(3, range_push_payload)(NULL, NULL, 1), 41);
    assert_int_equal(CALL(4, range_pop_payload)(NULL, NULL, 2), 42);
    assert_int_equal(recorded.count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_range_ends_with_a_payload, installed),
        cmocka_unit_test_setup(ranges_of_payloads_alone, installed),
        cmocka_unit_test_setup(only_slots_of_known_versions, installed),
        cmocka_unit_test_setup(the_tool_before_us_is_called, installed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
