/* Ranges and marks of NVTX's payload extension, and what NCCL's payloads say. */
#include "cmocka_all.h"

#include <errno.h>

#include "nvtx_extension.h"
#include "util.h"

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
TEST_WITH(a_range_ends_with_a_payload, installed, NULL)
{
    const struct nvtx_attributes init = named("init");
    const uint64_t communicator = 7;
    const struct nvtx_payload payload = {1 << 24, sizeof communicator, &communicator};

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

TEST_WITH(ranges_of_payloads_alone, installed, NULL)
{
    assert_int_equal(CALL(3, range_push_payload)(NULL, NULL, 0), 0);
    assert_int_equal(CALL(3, range_push_payload)(NULL, NULL, 0), 1);
    assert_int_equal(mt_nvtx_pop(0), 1);
    assert_int_equal(mt_nvtx_pop(0), 0);
    uint64_t id = CALL(5, range_start_payload)(NULL, NULL, 0);
    CALL(6, range_end_payload)(NULL, id, NULL, 0);
    CALL(2, mark_payload)(NULL, NULL, 0);
    assert_int_equal(recorded.count, 7);
    assert_int_equal(recorded.events[4].kind, MT_EVENT_PHASE_PUSH);
    assert_int_equal(recorded.events[5].kind, MT_EVENT_PHASE_POP);
    assert_int_equal(recorded.events[6].kind, MT_EVENT_MARK);
}

TEST_WITH(only_slots_of_known_versions, installed, NULL)
{
    for (int i = 0; i < SLOTS; i++)
        assert_int_equal(slots[i] != 0, i == 0 || (i >= 2 && i <= 6));
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

TEST_WITH(the_tool_before_us_is_called, installed, NULL)
{
    atomic_store(&mt_nvtx_next_payload[3], (nvtx_function)level_of_next);
    atomic_store(&mt_nvtx_next_payload[4], (nvtx_function)level_of_next);
    assert_int_equal(CALL(3, range_push_payload)(NULL, NULL, 1), 41);
    assert_int_equal(CALL(4, range_pop_payload)(NULL, NULL, 2), 42);
    assert_int_equal(recorded.count, 2);
}

/* As src/include/nvtx_payload_schemas.h of NCCL has them. */
struct init_payload {
    uint64_t id;
    int ranks, rank, device;
};

struct split_payload {
    uint64_t id, parent;
    int ranks, rank, device, color, key;
};

#define ENTRY(type, structure, field, name)                                                        \
    {                                                                                              \
        0, type, name, NULL, 0, offsetof(struct structure, field), NULL, NULL                      \
    }

static const struct nvtx_schema_entry init_entries[] = {
    ENTRY(NVTX_ENTRY_IS_UINT64, init_payload, id, "NCCL communicator ID"),
    ENTRY(NVTX_ENTRY_IS_INT, init_payload, ranks, "No. of ranks"),
    ENTRY(NVTX_ENTRY_IS_INT, init_payload, rank, "Rank"),
    ENTRY(NVTX_ENTRY_IS_INT, init_payload, device, "CUDA device"),
};

static const struct nvtx_schema_entry split_entries[] = {
    ENTRY(NVTX_ENTRY_IS_UINT64, split_payload, id, "NCCL communicator ID"),
    ENTRY(NVTX_ENTRY_IS_UINT64, split_payload, parent, "Parent NCCL communicator ID"),
    ENTRY(NVTX_ENTRY_IS_INT, split_payload, ranks, "No. of ranks"),
    ENTRY(NVTX_ENTRY_IS_INT, split_payload, rank, "Rank"),
    ENTRY(NVTX_ENTRY_IS_INT, split_payload, device, "CUDA device"),
    ENTRY(NVTX_ENTRY_IS_INT, split_payload, color, "Color"),
    ENTRY(NVTX_ENTRY_IS_INT, split_payload, key, "Key"),
};

/* The payload is ncclCommInitRank's, the communicator the parent. */
static const struct nvtx_schema_entry shrink_entries[] = {
    ENTRY(NVTX_ENTRY_IS_UINT64, init_payload, id, "NCCL communicator ID"),
    ENTRY(NVTX_ENTRY_IS_INT, init_payload, ranks, "No. of ranks"),
    ENTRY(NVTX_ENTRY_IS_INT, init_payload, rank, "num_exclude"),
};

/* Before 2.26. */
static const struct nvtx_schema_entry old_entries[] = {
    {0, NVTX_ENTRY_IS_INT, "Rank", NULL, 0, 0, NULL, NULL},
    {0, NVTX_ENTRY_IS_INT, "No. of ranks", NULL, 0, 4, NULL, NULL},
    {0, NVTX_ENTRY_IS_INT, "CUDA device", NULL, 0, 8, NULL, NULL},
};

static uint64_t add_schema(void *domain, unsigned number, const struct nvtx_schema_entry *entries,
                           size_t count)
{
    struct nvtx_schema schema = {.fields = NVTX_SCHEMA_HAS_TYPE | NVTX_SCHEMA_HAS_ENTRIES |
                                           NVTX_SCHEMA_HAS_COUNT | NVTX_SCHEMA_HAS_ID,
                                 .type = NVTX_SCHEMA_IS_STATIC,
                                 .entries = entries,
                                 .entry_count = count,
                                 .id = NVTX_STATIC_SCHEMAS + number};

    assert_int_equal(CALL(0, schema_register)(domain, &schema), schema.id);
    return schema.id;
}

static void *domain_named(const char *name)
{
    return mt_nvtx_domain_create((struct mt_nvtx_text){name, strlen(name)}, NULL);
}

/* What a range that ends with that payload leaves, between its push and its pop. */
static const struct mt_raw_event *told(void *domain, const struct nvtx_payload *payload)
{
    const struct nvtx_attributes init = named("ncclCommInitRank");

    recorded.count = 0;
    mt_nvtx_communicator_forget();
    mt_nvtx_push(mt_nvtx_domain(domain), &init);
    CALL(4, range_pop_payload)(domain, payload, 1);
    bool is_told = recorded.count == 3;
    assert_int_equal(recorded.events[recorded.count - 1].kind, MT_EVENT_PHASE_POP);
    if (!is_told)
        assert_int_equal(recorded.count, 2);
    else
        assert_int_equal(recorded.events[1].id, recorded.events[0].id);
    return is_told ? &recorded.events[1] : NULL;
}

#define ADD(domain, number, entries) add_schema(domain, number, entries, MT_ARRAY_LEN(entries))

TEST_WITH(nccl_tells_its_communicators, installed, NULL)
{
    const struct init_payload made = {0xfeedc0ffee, 8, 3, 1};
    struct nvtx_payload payload = {0, sizeof made, &made};
    void *domain = domain_named("NCCL");

    payload.schema = ADD(domain, 11, init_entries);
    const struct mt_raw_event *event = told(domain, &payload);
    assert_non_null(event);
    assert_int_equal(event->kind, MT_EVENT_COMMUNICATOR);
    assert_int_equal(event->addr, 0xfeedc0ffee);
    assert_int_equal(event->size_bytes, 8);
    assert_int_equal(event->aux_bytes, 3);
    assert_int_equal(event->device, 1);
    assert_int_equal(mt_nvtx_communicator_last(), 0xfeedc0ffee);
    payload.size = 12; /* cut: the rank is not all there */
    event = told(domain, &payload);
    assert_int_equal(event->addr, 0xfeedc0ffee);
    assert_int_equal(event->size_bytes, 0);
    payload.size = 7;
    assert_null(told(domain, &payload));
    payload.schema++; /* a schema that nobody registered */
    assert_null(told(domain, &payload));
    assert_null(told(domain_named("mine"), &payload));
    payload.bytes = NULL;
    assert_null(told(domain, &payload));
    assert_null(told(domain, NULL));
}

/* The ranks of a communicator that was split are its parent's; of one that was shrunk, all is. */
TEST_WITH(what_is_said_of_the_parent_is_left_out, installed, NULL)
{
    const struct split_payload split = {7, 5, 8, 3, 0, 1, 0};
    const struct init_payload shrunk = {5, 8, 3, 0};
    struct nvtx_payload payload = {0, sizeof split, &split};
    void *domain = domain_named("NCCL");

    payload.schema = ADD(domain, 13, split_entries);
    const struct mt_raw_event *event = told(domain, &payload);
    assert_non_null(event);
    assert_int_equal(event->addr, 7);
    assert_int_equal(event->size_bytes, 0);
    assert_int_equal(event->aux_bytes, 0);
    payload = (struct nvtx_payload){ADD(domain, 15, shrink_entries), sizeof shrunk, &shrunk};
    assert_null(told(domain, &payload));
}

TEST_WITH(old_versions_tell_ranks_alone, installed, NULL)
{
    const int numbers[] = {3, 8, 0}, impossible[] = {8, 8, 0}, negative[] = {-1, 8, 0};
    struct nvtx_payload payload = {0, sizeof numbers, numbers};
    void *domain = domain_named("NCCL");

    payload.schema = ADD(domain, 20, old_entries);
    const struct mt_raw_event *event = told(domain, &payload);
    assert_non_null(event);
    assert_int_equal(event->addr, 0);
    assert_int_equal(event->size_bytes, 8);
    assert_int_equal(event->aux_bytes, 3);
    payload.bytes = impossible;
    assert_null(told(domain, &payload));
    payload.bytes = negative;
    assert_null(told(domain, &payload));
}

/* Two copies of NCCL in one process whose schemas differ: nothing is guessed. */
TEST_WITH(schemas_that_do_not_agree_are_not_used, installed, NULL)
{
    const struct init_payload made = {7, 8, 3, 1};
    struct nvtx_payload payload = {0, sizeof made, &made};
    void *domain = domain_named("NCCL");

    payload.schema = ADD(domain, 21, init_entries);
    ADD(domain, 21, init_entries);
    assert_non_null(told(domain, &payload));
    ADD(domain, 21, old_entries);
    assert_null(told(domain, &payload));
    ADD(domain, 21, init_entries);
    assert_null(told(domain, &payload));
}

/* As ncclCommDestroy and ncclAllReduce do. */
TEST_WITH(a_range_begins_with_a_payload, installed, NULL)
{
    const struct init_payload made = {9, 2, 1, 0};
    struct nvtx_payload payload = {0, sizeof made, &made};
    struct nvtx_attributes attributes = named("ncclCommDestroy");
    void *domain = domain_named("NCCL");

    payload.schema = ADD(domain, 2, init_entries);
    attributes.payload_type = NVTX_PAYLOAD_IS_EXTENDED;
    attributes.payload_count = 1;
    attributes.payload = (uintptr_t)&payload;
    mt_nvtx_push(mt_nvtx_domain(domain), &attributes);
    mt_nvtx_communicator_attached(mt_nvtx_domain(domain), &attributes);
    assert_int_equal(recorded.count, 2);
    assert_int_equal(recorded.events[1].kind, MT_EVENT_COMMUNICATOR);
    assert_int_equal(recorded.events[1].addr, 9);
    attributes.payload_type = 1; /* a number */
    mt_nvtx_communicator_attached(mt_nvtx_domain(domain), &attributes);
    attributes.payload_type = NVTX_PAYLOAD_IS_EXTENDED;
    attributes.size = offsetof(struct nvtx_attributes, payload);
    mt_nvtx_communicator_attached(mt_nvtx_domain(domain), &attributes);
    assert_int_equal(recorded.count, 2);
    mt_nvtx_pop(mt_nvtx_domain(domain));
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
