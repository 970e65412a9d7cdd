/* The record of one device of a process of a job, and its fields as tables. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "holding.h"
#include "identity.h"
#include "process_memory.h"
#include "rank_record.h"
#include "util.h"

const char *mt_outcome_name(enum mt_outcome outcome)
{
    static const char *const names[] = {"unknown", "finished", "oom", "failed", "killed", "cut"};

    _Static_assert(MT_ARRAY_LEN(names) == MT_OUTCOME_COUNT, "each outcome has a name");
    MT_ASSERT((unsigned)outcome < MT_OUTCOME_COUNT);
    return names[outcome];
}

int mt_record_leaf_compare(const void *a, const void *b)
{
    const struct mt_record_leaf *x = a, *y = b;

    if (x->role != y->role)
        return x->role < y->role ? -1 : 1;
    return (x->path > y->path) - (x->path < y->path);
}

#define OF(type, member, kind)                                                                     \
    {                                                                                              \
#member, offsetof(type, member), MT_FIELD_##kind, 0                                        \
    }
#define ENUM_OF(type, member, value_count)                                                         \
    {                                                                                              \
#member, offsetof(type, member), MT_FIELD_ENUM, value_count                                \
    }
#define OF_RECORD(member, kind) OF(struct mt_rank_record, member, kind)
#define OF_ROLE(name, role)                                                                        \
    {                                                                                              \
        "role_bytes." #name, offsetof(struct mt_rank_record, role_bytes[MT_ROLE_##role]),          \
            MT_FIELD_U64, 0                                                                        \
    }
#define OF_PEAK(member)                                                                            \
    OF_RECORD(member.bytes, U64), OF_RECORD(member.t_ns, U64), OF_RECORD(member.event, U64),       \
        OF_RECORD(member.step, I64)

/* The fields that identify a rank come first, because records are sorted in this order. */
const struct mt_record_field mt_record_fields[] = {
    OF_RECORD(identity.job, TEXT),
    OF_RECORD(identity.rank, I32),
    OF_RECORD(device, U16),
    OF_RECORD(identity.restart, I32),
    OF_RECORD(identity.host, TEXT),
    OF_RECORD(identity.process_id, U64),
    OF_RECORD(begin_t_ns, U64),
    OF_RECORD(trace_name, TEXT),
    OF_RECORD(trace_sha256, TEXT),
    OF_RECORD(identity.boot_id, TEXT),
    OF_RECORD(identity.local_rank, I32),
    OF_RECORD(identity.world, I32),
    ENUM_OF(struct mt_rank_record, identity.rank_origin, MT_RANK_OF_NAME + 1),
    OF_RECORD(identity.memory_limit_bytes, U64),
    OF_RECORD(identity.cgroup_limit_bytes, U64),
    ENUM_OF(struct mt_rank_record, identity.ended, MT_ENDED_OOM_KILLED + 1),
    OF_RECORD(identity.ended_number, I32),
    OF_RECORD(identity.ended_t_ns, U64),
    OF_RECORD(device_name, TEXT),
    OF_RECORD(device_uuid, TEXT),
    OF_RECORD(device_pci, TEXT),
    OF_RECORD(device_mig, TEXT),
    OF_RECORD(device_bytes, U64),
    OF_RECORD(is_dry_run, BOOL),
    OF_RECORD(is_complete, BOOL),
    OF_RECORD(is_driver_level, BOOL),
    OF_RECORD(lost_events, U64),
    OF_RECORD(end_t_ns, U64),
    ENUM_OF(struct mt_rank_record, outcome, MT_OUTCOME_COUNT),
    OF_RECORD(has_death, BOOL),
    OF_RECORD(death_t_ns, U64),
    OF_RECORD(death_event, U64),
    OF_RECORD(death_wanted_bytes, U64),
    OF_RECORD(death_free_bytes, U64),
    OF_RECORD(death_path, PATH),
    OF_RECORD(death_site, PATH),
    OF_RECORD(last_step, I64),
    OF_RECORD(ooms, U64),
    OF_RECORD(retries, U64),
    OF_PEAK(requested_peak),
    OF_PEAK(allocated_peak),
    OF_PEAK(active_peak),
    OF_PEAK(reserved_peak),
    OF_RECORD(allocated_at_reserved_peak_bytes, U64),
    OF_ROLE(parameters, PARAMETERS),
    OF_ROLE(optimizer_state, OPTIMIZER_STATE),
    OF_ROLE(gradients, GRADIENTS),
    OF_ROLE(activations, ACTIVATIONS),
    OF_ROLE(temporaries, TEMPORARIES),
    OF_ROLE(workspace, WORKSPACE),
    OF_ROLE(inputs, INPUTS),
    OF_ROLE(kv_cache, KV_CACHE),
    OF_ROLE(other, OTHER),
    OF_RECORD(end.requested, U64),
    OF_RECORD(end.allocated, U64),
    OF_RECORD(end.active, U64),
    OF_RECORD(end.reserved, U64),
    OF_RECORD(has_driver, BOOL),
    OF_RECORD(driver_peak_bytes, U64),
    OF_RECORD(outside_bytes, U64),
    OF_RECORD(has_context, BOOL),
    OF_RECORD(context_bytes, U64),
    OF_RECORD(needed_is_known, BOOL),
    OF_RECORD(needed_bytes, U64),
    OF_RECORD(allocator_need_is_known, BOOL),
    OF_RECORD(allocator_need_bytes, U64),
    OF_RECORD(allocator_need_low_bytes, U64),
    OF_RECORD(growth_is_judged, BOOL),
    OF_RECORD(growth_bytes_per_step, U64),
    OF_RECORD(growth_site, PATH),
    OF_RECORD(step_hash, U64),
    OF_RECORD(parameter_hash, U64),
    OF_ROLE(weight_copies, WEIGHT_COPIES), /* last: version 2 of the file ends before it */
};
const uint32_t mt_record_field_count = MT_ARRAY_LEN(mt_record_fields);
_Static_assert(MT_ROLE_COUNT == 10, "each role has a line above");

static const struct mt_record_field axis_fields[] = {
    OF(struct mt_record_axis, name, TEXT),
    OF(struct mt_record_axis, coordinate, U32),
    OF(struct mt_record_axis, size, U32),
};
static const struct mt_record_field group_fields[] = {
    OF(struct mt_record_group, name, TEXT),    OF(struct mt_record_group, size, U32),
    OF(struct mt_record_group, first, U32),    OF(struct mt_record_group, stride, U32),
    OF(struct mt_record_group, position, I32), OF(struct mt_record_group, members_hash, U64),
};
static const struct mt_record_field step_fields[] = {
    OF(struct mt_record_step, first, I64),
    OF(struct mt_record_step, last, I64),
    OF(struct mt_record_step, begin_t_ns, U64),
    OF(struct mt_record_step, end_t_ns, U64),
    OF(struct mt_record_step, allocated_peak_bytes, U64),
    OF(struct mt_record_step, reserved_peak_bytes, U64),
    OF(struct mt_record_step, end_allocated_bytes, U64),
};
static const struct mt_record_field column_fields[] = {
    OF(struct mt_record_column, allocated_bytes, U64),
    OF(struct mt_record_column, reserved_bytes, U64),
};
static const struct mt_record_field level_fields[] = {
    OF(struct mt_record_level, t_ns, U64),
    OF(struct mt_record_level, reserved_bytes, U64),
};
static const struct mt_record_field leaf_fields[] = {
    ENUM_OF(struct mt_record_leaf, role, MT_ROLE_COUNT),
    OF(struct mt_record_leaf, path, PATH),
    OF(struct mt_record_leaf, bytes, U64),
    OF(struct mt_record_leaf, blocks, U64),
    OF(struct mt_record_leaf, site, PATH),
};
static const struct mt_record_field owner_fields[] = {
    OF(struct mt_record_owner, library, TEXT),
    OF(struct mt_record_owner, bytes, U64),
};
static const struct mt_record_field communicator_fields[] = {
    OF(struct mt_record_communicator, id, U64),
    OF(struct mt_record_communicator, ranks, U32),
    OF(struct mt_record_communicator, rank, U32),
    OF(struct mt_record_communicator, bytes, U64),
};
static const struct mt_record_field finding_fields[] = {
    OF(struct mt_record_finding, id, TEXT),
    OF(struct mt_record_finding, bytes, U64),
    OF(struct mt_record_finding, title, TEXT),
};

#define LIST(type, array, count, fields, most, packed, has_links)                                  \
    {                                                                                              \
#array, offsetof(struct mt_rank_record, array), offsetof(struct mt_rank_record, count),    \
            sizeof(type), fields, MT_ARRAY_LEN(fields), most, packed, has_links                    \
    }
enum { LIST_STEPS = 2, LIST_COLUMNS, LIST_LEVELS, LIST_LEAVES }; /* places below */

const struct mt_record_list mt_record_lists[] = {
    LIST(struct mt_record_axis, identity.axes, identity.axis_count, axis_fields, MT_MESH_AXES, -1,
         true),
    LIST(struct mt_record_group, identity.groups, identity.group_count, group_fields,
         MT_IDENTITY_GROUPS, -1, true),
    LIST(struct mt_record_step, steps, step_count, step_fields, MT_RECORD_STEPS, 0, false),
    LIST(struct mt_record_column, columns, column_count, column_fields, MT_RECORD_COLUMNS, 1,
         false),
    LIST(struct mt_record_level, levels, level_count, level_fields, MT_RECORD_LEVELS, 2, false),
    LIST(struct mt_record_leaf, leaves, leaf_count, leaf_fields, MT_RECORD_LEAVES, 3, true),
    LIST(struct mt_record_owner, owners, owner_count, owner_fields, MT_RECORD_OWNERS, -1, true),
    LIST(struct mt_record_communicator, communicators, communicator_count, communicator_fields,
         MT_RECORD_COMMUNICATORS, -1, false),
    LIST(struct mt_record_finding, findings, finding_count, finding_fields, MT_RECORD_FINDINGS, -1,
         true),
};
const uint32_t mt_record_list_count = MT_ARRAY_LEN(mt_record_lists);

static const void *at(const void *object, const struct mt_record_field *field)
{
    return (const unsigned char *)object + field->offset;
}

/* The size of a field in bytes. */
static size_t size_of(const struct mt_record_field *field)
{
    switch (field->kind) {
    case MT_FIELD_U64:
    case MT_FIELD_I64: return sizeof(uint64_t);
    case MT_FIELD_U16: return sizeof(uint16_t);
    case MT_FIELD_BOOL: return sizeof(bool);
    case MT_FIELD_TEXT: return sizeof(const char *);
    case MT_FIELD_ENUM: return sizeof(enum mt_outcome);
    case MT_FIELD_U32:
    case MT_FIELD_I32:
    case MT_FIELD_PATH: break;
    }
    return sizeof(uint32_t);
}

uint64_t mt_field_get(const void *object, const struct mt_record_field *field)
{
    uint64_t value = 0;
    int32_t number;

    MT_ASSERT(field->kind != MT_FIELD_TEXT);
    /* Sizes are at most 8 bytes, and the machine is little-endian (trace/bytes.h). */
    memcpy(&value, at(object, field), size_of(field));
    if (field->kind != MT_FIELD_I32)
        return value;
    memcpy(&number, &value, sizeof number);
    return (uint64_t)(int64_t)number;
}

uint64_t mt_field_number(const void *object, const struct mt_record_field *field)
{
    uint64_t value = mt_field_get(object, field);

    return field->kind == MT_FIELD_PATH ? (uint32_t)(value + 1) : value;
}

const char *mt_field_text(const void *object, const struct mt_record_field *field)
{
    const char *text;

    MT_ASSERT(field->kind == MT_FIELD_TEXT);
    memcpy(&text, at(object, field), sizeof text);
    return text;
}

static bool can_hold(const struct mt_record_field *field, uint64_t value)
{
    int64_t number = (int64_t)value;

    switch (field->kind) {
    case MT_FIELD_U32:
    case MT_FIELD_PATH: return value <= UINT32_MAX;
    case MT_FIELD_I32: return number >= INT32_MIN && number <= INT32_MAX;
    case MT_FIELD_U16: return value <= UINT16_MAX;
    case MT_FIELD_BOOL: return value <= 1;
    case MT_FIELD_ENUM: return value < field->limit;
    case MT_FIELD_U64:
    case MT_FIELD_I64:
    case MT_FIELD_TEXT: break;
    }
    return true;
}

bool mt_field_set(void *object, const struct mt_record_field *field, uint64_t value)
{
    MT_ASSERT(field->kind != MT_FIELD_TEXT);
    if (!can_hold(field, value))
        return false;
    memcpy((unsigned char *)object + field->offset, &value, size_of(field));
    return true;
}

void mt_field_set_text(void *object, const struct mt_record_field *field, const char *text)
{
    MT_ASSERT(field->kind == MT_FIELD_TEXT && text);
    memcpy((unsigned char *)object + field->offset, &text, sizeof text);
}

void *mt_list_array(const struct mt_rank_record *record, const struct mt_record_list *list)
{
    void *array;

    memcpy(&array, (const unsigned char *)record + list->array_offset, sizeof array);
    return array;
}

uint32_t mt_list_count(const struct mt_rank_record *record, const struct mt_record_list *list)
{
    uint32_t count;

    memcpy(&count, (const unsigned char *)record + list->count_offset, sizeof count);
    return count;
}

void mt_list_set(struct mt_rank_record *record, const struct mt_record_list *list, void *array,
                 uint32_t count)
{
    MT_ASSERT(count <= list->most);
    memcpy((unsigned char *)record + list->array_offset, &array, sizeof array);
    memcpy((unsigned char *)record + list->count_offset, &count, sizeof count);
}

/* The packed form of a list: element i has element_bits bits at bit i * element_bits. In these,
 * `width` bits at `at` hold (value - base) >> shift of a field. Levels of PyTorch are multiples of
 * 512, and the times of a run differ in few bits. */
struct packing {
    uint64_t base;
    uint32_t at;
    uint8_t shift, width;
};

struct mt_packed_list {
    uint32_t room_words, element_bits;
    struct packing fields[]; /* one a field; then the words, of which the last is only read over */
};

static uint64_t *words_of(const struct mt_packed_list *packed, const struct mt_record_list *list)
{
    return (uint64_t *)(packed->fields + list->field_count);
}

static uint64_t bits_at(const uint64_t *words, size_t at, unsigned width)
{
    unsigned shift = at % 64;
    uint64_t value = words[at / 64] >> shift;

    if (shift + width > 64)
        value |= words[at / 64 + 1] << (64 - shift);
    return width < 64 ? value & ((UINT64_C(1) << width) - 1) : value;
}

static void add_bits(uint64_t *words, size_t at, uint64_t value)
{
    unsigned shift = at % 64;

    words[at / 64] |= value << shift;
    if (shift)
        words[at / 64 + 1] |= value >> (64 - shift);
}

/* The smallest form that holds all numbers of a field. */
static struct packing packing_of(const uint64_t *numbers, uint32_t count)
{
    struct packing packing = {.base = UINT64_MAX};
    uint64_t used = 0;

    for (uint32_t i = 0; i < count; i++)
        packing.base = mt_min_u64(packing.base, numbers[i]);
    for (uint32_t i = 0; i < count; i++)
        used |= numbers[i] - packing.base;
    if (!used)
        return packing;
    packing.shift = (uint8_t)__builtin_ctzll(used);
    packing.width = (uint8_t)(64 - __builtin_clzll(used) - packing.shift);
    return packing;
}

static void pack(struct mt_rank_record *record, const struct mt_record_list *list,
                 const unsigned char *array, struct mt_arena *arena)
{
    struct mt_packed_list **packed = &record->packed[list->packed];
    uint32_t count = mt_list_count(record, list), bits = 0;
    uint64_t *numbers = mt_memory_new((size_t)count * list->field_count * sizeof *numbers);
    struct packing packings[8];

    MT_ASSERT(list->field_count <= MT_ARRAY_LEN(packings));
    for (uint32_t f = 0; f < list->field_count; f++) {
        for (uint32_t i = 0; i < count; i++)
            numbers[f * count + i] =
                mt_field_number(array + i * list->element_bytes, &list->fields[f]);
        packings[f] = packing_of(numbers + (size_t)f * count, count);
        packings[f].at = bits;
        bits += packings[f].width;
    }
    uint32_t words = count * bits / 64 + 2;
    if (!*packed || (*packed)->room_words < words) {
        *packed = mt_arena_alloc(arena, sizeof **packed + list->field_count * sizeof *packings +
                                            words * sizeof(uint64_t));
        (*packed)->room_words = words;
    }
    (*packed)->element_bits = bits;
    memcpy((*packed)->fields, packings, list->field_count * sizeof *packings);
    memset(words_of(*packed, list), 0, words * sizeof(uint64_t));
    for (uint32_t f = 0; f < list->field_count; f++)
        for (uint32_t i = 0; i < count; i++)
            add_bits(words_of(*packed, list), (size_t)i * bits + packings[f].at,
                     (numbers[f * count + i] - packings[f].base) >> packings[f].shift);
    free(numbers);
}

void mt_list_get(const struct mt_rank_record *record, const struct mt_record_list *list, uint32_t i,
                 void *element)
{
    const struct mt_packed_list *packed = list->packed < 0 ? NULL : record->packed[list->packed];

    MT_ASSERT(i < mt_list_count(record, list) && list->element_bytes <= MT_ELEMENT_BYTES);
    if (!packed) {
        memcpy(element,
               (const unsigned char *)mt_list_array(record, list) + i * list->element_bytes,
               list->element_bytes);
        return;
    }
    for (uint32_t f = 0; f < list->field_count; f++) {
        const struct packing *packing = &packed->fields[f];
        uint64_t value =
            packing->base + (bits_at(words_of(packed, list),
                                     (size_t)i * packed->element_bits + packing->at, packing->width)
                             << packing->shift);
        uint32_t number = (uint32_t)value - (list->fields[f].kind == MT_FIELD_PATH);
        unsigned char *at = (unsigned char *)element + list->fields[f].offset;

        if (size_of(&list->fields[f]) == sizeof value)
            memcpy(at, &value, sizeof value);
        else
            memcpy(at, &number, sizeof number);
    }
}

void mt_list_read(const struct mt_rank_record *record, const struct mt_record_list *list,
                  void *array)
{
    for (uint32_t i = 0; i < mt_list_count(record, list); i++)
        mt_list_get(record, list, i, (unsigned char *)array + i * list->element_bytes);
}

void mt_list_write(struct mt_rank_record *record, const struct mt_record_list *list,
                   const void *array, bool packs, struct mt_arena *arena)
{
    uint32_t count = mt_list_count(record, list);

    if (!count)
        return;
    if (list->packed >= 0 && (packs || record->packed[list->packed])) {
        pack(record, list, array, arena);
        mt_list_set(record, list, NULL, count);
        return;
    }
    if (!mt_list_array(record, list))
        mt_list_set(record, list, mt_arena_array(arena, count, list->element_bytes), count);
    memcpy(mt_list_array(record, list), array, count * list->element_bytes);
}

void mt_list_forget(struct mt_rank_record *record, const struct mt_record_list *list)
{
    mt_list_set(record, list, NULL, mt_list_count(record, list));
    if (list->packed >= 0)
        record->packed[list->packed] = NULL;
}

struct mt_rank_record mt_rank_record_open(const struct mt_rank_record *record,
                                          struct mt_record_room *room)
{
    struct mt_rank_record open = *record;

    for (uint32_t i = 0; i < mt_record_list_count; i++) {
        const struct mt_record_list *list = &mt_record_lists[i];

        if (list->packed < 0 || !record->packed[list->packed])
            continue;
        mt_list_read(record, list, room->lists[list->packed]);
        mt_list_forget(&open, list);
        mt_list_set(&open, list, room->lists[list->packed], mt_list_count(record, list));
    }
    return open;
}

#define DEFINE_AT(name, type, list)                                                                \
    struct type name(const struct mt_rank_record *record, uint32_t i)                              \
    {                                                                                              \
        struct type element;                                                                       \
                                                                                                   \
        mt_list_get(record, &mt_record_lists[list], i, &element);                                  \
        return element;                                                                            \
    }

DEFINE_AT(mt_step_at, mt_record_step, LIST_STEPS)
DEFINE_AT(mt_column_at, mt_record_column, LIST_COLUMNS)
DEFINE_AT(mt_level_at, mt_record_level, LIST_LEVELS)
DEFINE_AT(mt_leaf_at, mt_record_leaf, LIST_LEAVES)
