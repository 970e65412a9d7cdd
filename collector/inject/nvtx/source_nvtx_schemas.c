/* See nvtx_parts.h. Communicators in NCCL's payloads (src/include/nvtx_payload_schemas.h and
 * src/init.cc of NCCL): each function of NCCL has a schema with a number, whose entries have names.
 * Entries are identified by name, because their order differs between versions:
 *
 *     2.25 and earlier  rank, ranks and device of ncclCommInitRank*; no id
 *     2.26 and later    also the id, and the id in collective operations
 *
 * Two payloads describe the parent of a new communicator: that of ncclCommSplit has the parent's
 * rank and ranks and the child's id; that of ncclCommShrink has only values of the parent. The rank
 * and ranks of the first and all values of the second are ignored. */
#include "nvtx_parts.h"

#include <string.h>

#include "collect.h"
#include "lock.h"

enum field { ID, RANKS, RANK, DEVICE, FIELD_COUNT };
enum { MAX_SCHEMAS = 64, MAX_ENTRIES = 64, MAX_OFFSET = 4096 };

/* Position of a value in the payload; `bytes` is 0 if the schema has none. */
struct place {
    uint16_t offset, bytes;
};

struct schema {
    struct place places[FIELD_COUNT];
    bool is_of_parent; /* all values are those of the parent */
};

/* Numbers of NCCL's schemas, less NVTX_STATIC_SCHEMAS. A known schema never changes:
 * if copies of NCCL disagree about one, it becomes unusable. */
static struct {
    pthread_mutex_t lock;
    struct schema schemas[MAX_SCHEMAS];
    enum { UNKNOWN, KNOWN, SPOILT } states[MAX_SCHEMAS];
    _Atomic bool readable[MAX_SCHEMAS];
} nccl = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local uint64_t last_id;

static bool is_nccl(uint32_t domain)
{
    struct mt_nvtx_text prefix = mt_nvtx_domain_prefix(domain);

    return prefix.length == strlen("NCCL: ") && !memcmp(prefix.bytes, "NCCL: ", prefix.length);
}

static void forget_ranks(struct schema *schema)
{
    schema->places[RANKS] = schema->places[RANK] = (struct place){0};
}

static bool is_named(const struct nvtx_schema_entry *entry, const char *name)
{
    return entry->name && !strcmp(entry->name, name);
}

static void learn_entry(struct schema *schema, const struct nvtx_schema_entry *entry)
{
    static const char *const names[FIELD_COUNT] = {[ID] = "NCCL communicator ID",
                                                   [RANKS] = "No. of ranks",
                                                   [RANK] = "Rank",
                                                   [DEVICE] = "CUDA device"};

    if (is_named(entry, "num_exclude"))
        schema->is_of_parent = true;
    for (int field = 0; field < FIELD_COUNT; field++) {
        uint64_t type = field == ID ? NVTX_ENTRY_IS_UINT64 : NVTX_ENTRY_IS_INT;

        if (is_named(entry, names[field]) && entry->type == type && !entry->flags &&
            entry->offset <= MAX_OFFSET)
            schema->places[field] = (struct place){(uint16_t)entry->offset,
                                                   field == ID ? sizeof(uint64_t) : sizeof(int)};
    }
}

static struct schema learn(const struct nvtx_schema *from)
{
    struct schema schema = {0};
    bool splits = false;

    for (size_t i = 0; i < from->entry_count && i < MAX_ENTRIES; i++) {
        learn_entry(&schema, &from->entries[i]);
        splits |= is_named(&from->entries[i], "Color") || is_named(&from->entries[i], "color");
    }
    if (splits)
        forget_ranks(&schema);
    return schema;
}

static bool is_usable(const struct nvtx_schema *schema)
{
    const uint64_t needed =
        NVTX_SCHEMA_HAS_TYPE | NVTX_SCHEMA_HAS_ENTRIES | NVTX_SCHEMA_HAS_COUNT | NVTX_SCHEMA_HAS_ID;

    return schema && (schema->fields & needed) == needed && schema->type == NVTX_SCHEMA_IS_STATIC &&
           schema->entries && schema->id >= NVTX_STATIC_SCHEMAS &&
           schema->id - NVTX_STATIC_SCHEMAS < MAX_SCHEMAS;
}

static bool are_equal(const struct schema *a, const struct schema *b)
{
    return a->is_of_parent == b->is_of_parent && !memcmp(a->places, b->places, sizeof a->places);
}

void mt_nvtx_schema_add(uint32_t domain, const struct nvtx_schema *from)
{
    if (!is_nccl(domain) || !is_usable(from))
        return;
    struct schema schema = learn(from);
    size_t number = from->id - NVTX_STATIC_SCHEMAS;
    struct mt_signals before = mt_lock(&nccl.lock);
    if (nccl.states[number] == UNKNOWN) {
        nccl.schemas[number] = schema;
        nccl.states[number] = KNOWN;
    } else if (!are_equal(&nccl.schemas[number], &schema)) {
        nccl.states[number] = SPOILT;
    }
    atomic_store_explicit(&nccl.readable[number], nccl.states[number] == KNOWN,
                          memory_order_release);
    mt_unlock(&nccl.lock, before);
}

/* The values of a payload that its schema describes. */
struct told {
    uint64_t id;
    int numbers[FIELD_COUNT]; /* -1 = missing; that of ID is unused */
};

static bool read_place(const struct nvtx_payload *payload, struct place place, void *value)
{
    if (!place.bytes || payload->size < (size_t)place.offset + place.bytes)
        return false;
    memcpy(value, (const char *)payload->bytes + place.offset, place.bytes);
    return true;
}

static bool has_ranks(const struct told *told)
{
    return told->numbers[RANK] >= 0 && told->numbers[RANK] < told->numbers[RANKS];
}

static bool read_payload(const struct nvtx_payload *payload, struct told *told)
{
    uint64_t number = payload->schema - NVTX_STATIC_SCHEMAS;
    const struct schema *schema = &nccl.schemas[number % MAX_SCHEMAS];

    *told = (struct told){.numbers = {-1, -1, -1, -1}};
    if (number >= MAX_SCHEMAS || !payload->bytes ||
        !atomic_load_explicit(&nccl.readable[number], memory_order_acquire) || schema->is_of_parent)
        return false;
    read_place(payload, schema->places[ID], &told->id);
    for (int field = RANKS; field < FIELD_COUNT; field++)
        if (!read_place(payload, schema->places[field], &told->numbers[field]) ||
            told->numbers[field] < 0)
            told->numbers[field] = -1;
    /* a communicator that is not complete yet has neither */
    return told->id || has_ranks(told);
}

static void emit(uint32_t domain, const struct told *told)
{
    bool says_ranks = has_ranks(told);
    int device = told->numbers[DEVICE];
    struct mt_raw_event event = {.kind = MT_EVENT_COMMUNICATOR,
                                 .heap = MT_RAW_DRIVER,
                                 .device = device >= 0 && device < UINT8_MAX ? (uint8_t)device
                                                                             : UINT8_MAX,
                                 .addr = told->id,
                                 .size_bytes = says_ranks ? (uint64_t)told->numbers[RANKS] : 0,
                                 .aux_bytes = says_ranks ? (uint64_t)told->numbers[RANK] : 0,
                                 .id = mt_nvtx_innermost_name(domain)};

    last_id = told->id;
    if (event.id)
        mt_collect_emit(&event);
}

void mt_nvtx_communicator_record(uint32_t domain, const struct nvtx_payload *payloads, size_t count)
{
    struct told told;

    if (!payloads || !count || !is_nccl(domain) || !read_payload(&payloads[0], &told) ||
        !mt_collect_enter())
        return;
    emit(domain, &told);
    mt_collect_leave();
}

void mt_nvtx_communicator_attached(uint32_t domain, const struct nvtx_attributes *attributes)
{
    if (domain && attributes && attributes->size >= sizeof *attributes &&
        attributes->payload_type == NVTX_PAYLOAD_IS_EXTENDED && attributes->payload_count > 0)
        mt_nvtx_communicator_record(domain,
                                    (const struct nvtx_payload *)(uintptr_t)attributes->payload,
                                    (size_t)attributes->payload_count);
}

uint64_t mt_nvtx_communicator_last(void)
{
    return last_id;
}

void mt_nvtx_communicator_forget(void)
{
    last_id = 0;
}

void mt_nvtx_schemas_forked(void)
{
    static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;

    nccl.lock = unlocked;
}
