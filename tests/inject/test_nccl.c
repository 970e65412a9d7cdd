/* The functions of NCCL that the recorder wraps. Behind them is a substitute of NCCL. */
#include "cmocka_all.h"

#include <errno.h>

#include "nccl_calls.h"
#include "nvtx_parts.h"
#include "recorded_events.h"

extern void (*nccl_standin_says)(uint64_t id);

static const struct mt_nccl_id unique = {.bytes = {[127] = 'z'}};

/* What NCCL's payload does: an id, and no ranks. */
static void says(uint64_t id)
{
    static const struct nvtx_schema_entry entries[] = {
        {0, NVTX_ENTRY_IS_UINT64, "NCCL communicator ID", NULL, 0, 0, NULL, NULL}};
    const struct nvtx_schema schema = {.fields = NVTX_SCHEMA_HAS_TYPE | NVTX_SCHEMA_HAS_ENTRIES |
                                                 NVTX_SCHEMA_HAS_COUNT | NVTX_SCHEMA_HAS_ID,
                                       .type = NVTX_SCHEMA_IS_STATIC,
                                       .entries = entries,
                                       .entry_count = 1,
                                       .id = NVTX_STATIC_SCHEMAS};
    const struct nvtx_payload payload = {NVTX_STATIC_SCHEMAS, sizeof id, &id};
    const struct nvtx_attributes range = {
        .size = sizeof range, .message_type = NVTX_MESSAGE_IS_ASCII, .message = {.ascii = "made"}};
    uint32_t domain = mt_nvtx_domain(mt_nvtx_domain_create((struct mt_nvtx_text){"NCCL", 4}, NULL));

    mt_nvtx_schema_add(domain, &schema);
    mt_nvtx_push(domain, &range);
    mt_nvtx_communicator_record(domain, &payload, 1);
    mt_nvtx_pop(domain);
}

static int begin(void **state)
{
    (void)state;
    mt_nccl_source.forked();
    recorded_clear();
    nccl_standin_says = says;
    return 0;
}

static void *make(int ranks, int rank)
{
    void *communicator = NULL;

    assert_int_equal(ncclCommInitRankConfig(&communicator, ranks, unique, rank, NULL), 0);
    assert_non_null(communicator);
    recorded.count = 0;
    return communicator;
}

static void expect(size_t at, uint8_t kind, uint64_t addr, uint64_t bytes, uint64_t id,
                   const char *name)
{
    const struct mt_raw_event *event = &recorded.events[at];

    assert_true(at < recorded.count);
    assert_int_equal(event->kind, kind);
    assert_int_equal(event->addr, addr);
    assert_int_equal(event->size_bytes, bytes);
    assert_int_equal(event->aux_bytes, id);
    assert_string_equal(recorded.names[event->id - 1], name);
}

TEST_WITH(buffers_are_of_their_communicator, begin, NULL)
{
    void *first = make(8, 3), *second = make(4, 1), *one, *two;
    uint64_t second_id = mt_nvtx_communicator_last();

    errno = EDOM;
    assert_int_equal(ncclCommRegister(first, (void *)0x10000, 4096, &one), 0);
    assert_int_equal(ncclCommWindowRegister(second, (void *)0x10000, 8192, &two, 1), 0);
    assert_int_equal(ncclCommWindowDeregister(second, two), 0);
    assert_int_equal(ncclCommDeregister(first, one), 0);
    assert_int_equal(errno, EDOM);
    assert_int_equal(recorded.count, 4);
    expect(0, MT_EVENT_BUFFER_REGISTERED, 0x10000, 4096, second_id - 1, "NCCL: ncclCommRegister");
    expect(1, MT_EVENT_BUFFER_REGISTERED, 0x10000, 8192, second_id, "NCCL: ncclCommWindowRegister");
    expect(2, MT_EVENT_BUFFER_DEREGISTERED, 0x10000, 8192, second_id,
           "NCCL: ncclCommWindowDeregister");
    expect(3, MT_EVENT_BUFFER_DEREGISTERED, 0x10000, 4096, second_id - 1,
           "NCCL: ncclCommDeregister");
}

/* NCCL gives the handle of the buffer that it has; it is gone with the last of them. */
TEST_WITH(a_buffer_within_another_counts_once, begin, NULL)
{
    void *communicator = make(2, 0), *whole, *part;

    assert_int_equal(ncclCommRegister(communicator, (void *)0x10000, 4096, &whole), 0);
    assert_int_equal(ncclCommRegister(communicator, (void *)0x10100, 16, &part), 0);
    assert_ptr_equal(whole, part);
    assert_int_equal(recorded.count, 1);
    ncclCommDeregister(communicator, part);
    assert_int_equal(recorded.count, 1);
    ncclCommDeregister(communicator, whole);
    ncclCommDeregister(communicator, whole); /* NCCL refuses that one itself */
    assert_int_equal(recorded.count, 2);
}

TEST_WITH(what_nccl_refuses_is_not_recorded, begin, NULL)
{
    void *communicator = make(2, 0), *handle;

    assert_int_not_equal(ncclCommRegister(communicator, (void *)0x10000, 0, &handle), 0);
    assert_int_equal(ncclCommRegister(communicator, (void *)0x10001, 64, &handle), 0);
    assert_null(handle);
    assert_int_not_equal(ncclCommInitRank(&communicator, 2, unique, 2), 0);
    assert_int_equal(recorded.count, 0);
}

/* ncclCommSplit's payload has the ranks of the parent: the number of the child comes from the
 * child. */
TEST_WITH(a_child_has_its_own_ranks, begin, NULL)
{
    void *parent = make(8, 5), *child, *handle;

    assert_int_equal(ncclCommSplit(parent, 1, 0, &child, NULL), 0);
    uint64_t id = mt_nvtx_communicator_last();
    assert_int_equal(recorded.count, 4);
    expect(1, MT_EVENT_COMMUNICATOR, id, 0, 0, "NCCL: made");
    expect(3, MT_EVENT_COMMUNICATOR, id, 4, 2, "NCCL: ncclCommSplit");
    assert_int_equal(recorded.events[3].device, 2);
    recorded.count = 0;
    assert_int_equal(ncclCommRegister(child, (void *)0x10000, 4096, &handle), 0);
    expect(0, MT_EVENT_BUFFER_REGISTERED, 0x10000, 4096, id, "NCCL: ncclCommRegister");
    assert_int_equal(ncclCommSplit(parent, -1, 0, &child, NULL), 0);
    assert_null(child);
    assert_int_equal(recorded.count, 1);
}

/* Its buffers go with it, and another one may get its address. */
TEST_WITH(a_communicator_that_ends_is_forgotten, begin, NULL)
{
    void *communicator = make(2, 0), *handle;
    uint64_t id = mt_nvtx_communicator_last();

    ncclCommRegister(communicator, (void *)0x10000, 4096, &handle);
    assert_int_equal(ncclCommAbort(communicator), 0);
    assert_int_equal(recorded.count, 2);
    expect(1, MT_EVENT_BUFFER_DEREGISTERED, 0x10000, 4096, id, "NCCL: ncclCommAbort");
    ncclCommRegister(communicator, (void *)0x10000, 4096, &handle);
    expect(2, MT_EVENT_BUFFER_REGISTERED, 0x10000, 4096, 0, "NCCL: ncclCommRegister");
    assert_int_equal(ncclCommDestroy(communicator), 0);
    assert_int_equal(recorded.count, 4);
}

/* NCCL without payloads: the ids of its communicators are not known. */
TEST_WITH(without_payloads_no_id_is_made_up, begin, NULL)
{
    struct mt_nccl_id ids[] = {unique};
    void *communicator, *handle;

    nccl_standin_says = NULL;
    assert_int_equal(ncclCommInitRankScalable(&communicator, 2, 1, 1, ids, NULL), 0);
    assert_int_equal(recorded.count, 0);
    ncclCommRegister(communicator, (void *)0x10000, 4096, &handle);
    expect(0, MT_EVENT_BUFFER_REGISTERED, 0x10000, 4096, 0, "NCCL: ncclCommRegister");
}

TEST_WITH(nothing_is_recorded_where_nobody_asked, begin, NULL)
{
    void *communicator = NULL, *handle = NULL;

    recorded.refuses = true;
    assert_int_equal(ncclCommInitRankConfig(&communicator, 2, unique, 0, NULL), 0);
    assert_int_equal(ncclCommRegister(communicator, (void *)0x10000, 4096, &handle), 0);
    assert_int_equal(ncclCommDeregister(communicator, handle), 0);
    assert_int_equal(ncclCommDestroy(communicator), 0);
    assert_int_equal(recorded.count, 0);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
