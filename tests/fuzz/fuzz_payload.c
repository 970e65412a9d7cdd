/* Payloads of NCCL's ranges: hostile schemas, and payloads that are shorter than these say. What
 * NVTX's other files and the collector do is replaced by the functions below. */
/* fuzz_nvtx.c, in the same program of ctest, has one of its own. */
#define mt_nvtx_domain_prefix payload_domain_prefix
#include "fuzz.h"
#include "nvtx_parts.h"

#include "source_nvtx_schemas.c" /* its state is forgotten between inputs */

enum { MOST_ENTRIES = 8, SCHEMAS = 3 };

bool mt_collect_enter(void)
{
    return true;
}

void mt_collect_leave(void) {}

void mt_collect_emit(const struct mt_raw_event *event)
{
    FUZZ_CHECK(event->kind == MT_EVENT_COMMUNICATOR);
    FUZZ_CHECK(event->addr || event->size_bytes);
    FUZZ_CHECK(event->size_bytes ? event->aux_bytes < event->size_bytes : !event->aux_bytes);
}

struct mt_nvtx_text mt_nvtx_domain_prefix(uint32_t domain)
{
    return domain == 1 ? (struct mt_nvtx_text){"NCCL: ", 6} : (struct mt_nvtx_text){"other: ", 7};
}

uint32_t mt_nvtx_innermost_name(uint32_t domain)
{
    return domain;
}

static struct nvtx_schema_entry entry_of(struct fuzz_input *input)
{
    static const char *const names[] = {
        "NCCL communicator ID", "No. of ranks",         "Rank", "CUDA device", "Color",
        "num_exclude",          "Message size [bytes]", NULL};
    unsigned shape = (unsigned)fuzz_number(input, 1);

    return (struct nvtx_schema_entry){.name = names[shape & 7],
                                      .type = shape & 8   ? fuzz_number(input, 1)
                                              : shape & 7 ? NVTX_ENTRY_IS_INT
                                                          : NVTX_ENTRY_IS_UINT64,
                                      .flags = shape >> 7,
                                      .offset = fuzz_number(input, shape & 16 ? 8 : 1)};
}

static void add_schema(struct fuzz_input *input, uint64_t id)
{
    struct nvtx_schema_entry entries[MOST_ENTRIES];
    struct nvtx_schema schema = {.fields = UINT64_MAX,
                                 .type = NVTX_SCHEMA_IS_STATIC,
                                 .entries = entries,
                                 .entry_count = fuzz_number(input, 1) % (MOST_ENTRIES + 1),
                                 .id = id};

    for (size_t i = 0; i < schema.entry_count; i++)
        entries[i] = entry_of(input);
    mt_nvtx_schema_add(1, &schema);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};

    memset(nccl.states, 0, sizeof nccl.states);
    for (int i = 0; i < SCHEMAS; i++) {
        uint64_t id = NVTX_STATIC_SCHEMAS + fuzz_number(&input, 1) % (MAX_SCHEMAS + 2);
        struct nvtx_payload payload = {.schema = id};
        struct nvtx_attributes attributes = {.size = sizeof attributes,
                                             .payload_type = NVTX_PAYLOAD_IS_EXTENDED,
                                             .payload_count = 1,
                                             .payload = (uintptr_t)&payload};

        add_schema(&input, id);
        uint8_t *bytes = fuzz_copy(&input, fuzz_number(&input, 1), &payload.size);
        payload.bytes = bytes;
        mt_nvtx_communicator_record(1, &payload, 1);
        mt_nvtx_communicator_record(2, &payload, 1);
        mt_nvtx_communicator_attached(1, &attributes);
        free(bytes);
    }
    return 0;
}
