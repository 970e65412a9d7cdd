/* Extracts the memory events from the bytes of a profile, which is a protocol buffer, in order of
 * time. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "sorted.h"
#include "status.h"
#include "symbols.h"
#include "util.h"
#include "xplane_read.h"

/* A varint has at most ten bytes of seven bits; the tenth holds one. */
static bool read_varint(struct mt_pb_reader *reader, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 70 && reader->at < reader->end; shift += 7) {
        uint8_t byte = *reader->at++;

        if (shift == 63 && byte > 1)
            return false;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool read_fixed(struct mt_pb_reader *reader, size_t length, uint64_t *value)
{
    *value = 0;
    if ((size_t)(reader->end - reader->at) < length)
        return false;
    for (size_t i = 0; i < length; i++)
        *value |= (uint64_t)*reader->at++ << (8 * i);
    return true;
}

static bool read_bytes(struct mt_pb_reader *reader, struct mt_pb_bytes *bytes)
{
    uint64_t length;

    if (!read_varint(reader, &length) || length > (size_t)(reader->end - reader->at))
        return false;
    *bytes = (struct mt_pb_bytes){reader->at, (size_t)length};
    reader->at += length;
    return true;
}

static bool read_value(struct mt_pb_reader *reader, unsigned wire_type, struct mt_pb_field *field)
{
    switch (wire_type) {
    case 0: field->kind = MT_PB_VARINT; return read_varint(reader, &field->value);
    case 1: field->kind = MT_PB_FIXED; return read_fixed(reader, 8, &field->value);
    case 2: field->kind = MT_PB_BYTES; return read_bytes(reader, &field->bytes);
    case 5: field->kind = MT_PB_FIXED; return read_fixed(reader, 4, &field->value);
    default: return false;
    }
}

bool mt_pb_next(struct mt_pb_reader *reader, struct mt_pb_field *field)
{
    const uint8_t *begin = reader->at;
    uint64_t tag;

    *field = (struct mt_pb_field){0};
    if (reader->failed || reader->at == reader->end)
        return false;
    if (read_varint(reader, &tag) && tag >> 3 && tag >> 3 <= UINT32_MAX) {
        field->number = (uint32_t)(tag >> 3);
        if (read_value(reader, tag & 7, field))
            return true;
    }
    reader->at = begin;
    reader->failed = true;
    return false;
}

bool mt_pb_take_varint(struct mt_pb_bytes *list, uint64_t *value)
{
    struct mt_pb_reader reader = mt_pb_reader_of(*list);
    bool is_good = read_varint(&reader, value);

    list->length = (size_t)(reader.end - reader.at);
    list->at = reader.at;
    return is_good;
}

/* Numbers of fields: tsl/profiler/protobuf/xplane.proto. */
enum { SPACE_PLANES = 1 };
enum { PLANE_NAME = 2, PLANE_LINES, PLANE_EVENT_METADATA, PLANE_STAT_METADATA, PLANE_STATS };
enum { LINE_NAME = 2, LINE_TIMESTAMP_NS, LINE_EVENTS };
enum { EVENT_METADATA = 1, EVENT_OFFSET_PS, EVENT_STATS = 4 };
enum { STAT_METADATA = 1, STAT_UINT64 = 3, STAT_INT64, STAT_STRING, STAT_REFERENCE = 7 };
enum { ENTRY_KEY = 1, ENTRY_VALUE, METADATA_NAME = 2 };

/* Names of the stats of a memory event. */
enum stat {
    ALLOCATOR,
    REQUESTED,
    CHUNK,
    ADDRESS,
    IN_USE,
    RESERVED,
    AVAILABLE,
    OPERATION,
    START_TIME,
    DEVICE_NAME,
    DEVICE_BYTES,
    STAT_COUNT
};

static const char *const stat_names[STAT_COUNT] = {
    "allocator_name",     "requested_bytes", "allocation_bytes", "addr",
    "bytes_allocated",    "bytes_reserved",  "bytes_available",  "tf_op",
    "profile_start_time", "gpu_device_name", "memory_size"};

/* Larger numbers are not real sizes, addresses or times. Sums of allowed numbers never overflow. */
static const uint64_t MAX_SIZE = (uint64_t)1 << 60;
static const uint64_t MAX_TIME_NS = (uint64_t)1 << 61;

enum { MAX_DEVICES = 1024 };

struct plane {
    struct mt_xplane_records *records;
    struct mt_map stats; /* id -> enum stat */
    struct mt_map names; /* id -> index of texts, for references */
    struct mt_pb_bytes *texts;
    size_t text_count, text_capacity;
    bool has_ids[2]; /* for MemoryAllocation, for MemoryDeallocation */
    uint64_t ids[2];
    struct mt_pb_bytes thread_name; /* of the current line */
    uint16_t thread;
    bool has_thread;
    const uint8_t *at; /* position of an error */
};

/* The values of one event's stats. */
struct values {
    uint64_t numbers[STAT_COUNT];
    struct mt_pb_bytes texts[STAT_COUNT];
    uint32_t seen; /* bits of enum stat */
};

static bool is_text(struct mt_pb_bytes bytes, const char *text)
{
    return bytes.length == strlen(text) && memcmp(bytes.at, text, bytes.length) == 0;
}

/* Stores the position at which the reader stopped. */
static enum mt_status end_of(struct plane *plane, const struct mt_pb_reader *reader)
{
    if (!reader->failed)
        return MT_OK;
    plane->at = reader->at;
    return MT_ERR_FORMAT;
}

/* Reads an entry of a map: its key, and the name in its value. */
static enum mt_status read_entry(struct plane *plane, struct mt_pb_bytes entry, uint64_t *id,
                                 struct mt_pb_bytes *name)
{
    struct mt_pb_reader reader = mt_pb_reader_of(entry), inner = {0};
    struct mt_pb_field field;

    *id = 0;
    *name = (struct mt_pb_bytes){entry.at, 0};
    while (mt_pb_next(&reader, &field)) {
        if (field.number == ENTRY_KEY && field.kind == MT_PB_VARINT)
            *id = field.value;
        if (field.number == ENTRY_VALUE && field.kind == MT_PB_BYTES)
            inner = mt_pb_reader_of(field.bytes);
    }
    enum mt_status status = end_of(plane, &reader);
    while (!status && mt_pb_next(&inner, &field))
        if (field.number == METADATA_NAME && field.kind == MT_PB_BYTES)
            *name = field.bytes;
    return status ? status : end_of(plane, &inner);
}

static enum mt_status learn_event(struct plane *plane, struct mt_pb_bytes entry)
{
    static const char *const names[] = {"MemoryAllocation", "MemoryDeallocation"};
    struct mt_pb_bytes name;
    uint64_t id;
    enum mt_status status = read_entry(plane, entry, &id, &name);

    for (int i = 0; !status && i < 2; i++) {
        if (is_text(name, names[i])) {
            plane->has_ids[i] = true;
            plane->ids[i] = id;
        }
    }
    return status;
}

static enum mt_status learn_stat(struct plane *plane, struct mt_pb_bytes entry)
{
    struct mt_pb_bytes name;
    uint64_t id;
    enum mt_status status = read_entry(plane, entry, &id, &name);

    if (status)
        return status;
    if (plane->text_count >= UINT32_MAX - 1 ||
        mt_grow(&plane->texts, &plane->text_capacity, plane->text_count + 1,
                sizeof *plane->texts) ||
        mt_map_set(&plane->names, id, (uint32_t)plane->text_count))
        return MT_ERR_MEMORY;
    plane->texts[plane->text_count++] = name;
    for (uint32_t i = 0; i < STAT_COUNT; i++)
        if (is_text(name, stat_names[i]))
            return mt_map_set(&plane->stats, id, i);
    return MT_OK;
}

static enum mt_status learn(struct plane *plane, struct mt_pb_bytes bytes)
{
    struct mt_pb_reader reader = mt_pb_reader_of(bytes);
    struct mt_pb_field field;
    enum mt_status status = MT_OK;

    while (!status && mt_pb_next(&reader, &field)) {
        if (field.kind != MT_PB_BYTES)
            continue;
        if (field.number == PLANE_EVENT_METADATA)
            status = learn_event(plane, field.bytes);
        if (field.number == PLANE_STAT_METADATA)
            status = learn_stat(plane, field.bytes);
    }
    return status ? status : end_of(plane, &reader);
}

static void refer(const struct plane *plane, uint64_t id, struct mt_pb_bytes *text)
{
    uint32_t index = mt_map_get(&plane->names, id);

    if (index != MT_MAP_NONE)
        *text = plane->texts[index];
}

static enum mt_status read_stat(struct plane *plane, struct mt_pb_bytes stat, struct values *values)
{
    struct mt_pb_reader reader = mt_pb_reader_of(stat);
    struct mt_pb_bytes text = {stat.at, 0};
    uint32_t which = MT_MAP_NONE;
    uint64_t number = 0;
    struct mt_pb_field field;

    while (mt_pb_next(&reader, &field))
        if (field.number == STAT_METADATA && field.kind == MT_PB_VARINT)
            which = mt_map_get(&plane->stats, field.value);
        else if (field.number == STAT_STRING && field.kind == MT_PB_BYTES)
            text = field.bytes;
        else if (field.number == STAT_REFERENCE && field.kind == MT_PB_VARINT)
            refer(plane, field.value, &text);
        else if ((field.number == STAT_UINT64 || field.number == STAT_INT64) &&
                 field.kind == MT_PB_VARINT)
            number = field.value;
    if (which < STAT_COUNT) {
        values->numbers[which] = number;
        values->texts[which] = text;
        values->seen |= 1u << which;
    }
    return end_of(plane, &reader);
}

/* Reads the number between `begin` and `end`: "GPU_0_bfc", the arena of a GPU. */
static bool read_device(struct mt_pb_bytes name, const char *begin, const char *end,
                        uint16_t *device)
{
    size_t at = strlen(begin), first = at, number = 0;

    if (name.length < at || memcmp(name.at, begin, at) != 0)
        return false;
    for (; at < name.length && name.at[at] >= '0' && name.at[at] <= '9'; at++) {
        number = number * 10 + (size_t)(name.at[at] - '0');
        if (number >= MAX_DEVICES)
            return false;
    }
    *device = (uint16_t)number;
    return at > first && is_text((struct mt_pb_bytes){name.at + at, name.length - at}, end);
}

/* Returns whether it is the arena of a GPU, or the one that TensorFlow uses for host memory with
 * TF_CPU_ALLOCATOR_USE_BFC (process_state.cc). */
static bool is_arena(struct mt_pb_bytes name, struct mt_xplane_record *record)
{
    record->is_host = is_text(name, "bfc_cpu_allocator_for_gpu");
    return record->is_host || read_device(name, "GPU_", "_bfc", &record->device);
}

static bool is_possible(const struct values *values)
{
    const uint32_t needed = 1u << REQUESTED | 1u << CHUNK | 1u << ADDRESS | 1u << IN_USE;
    const uint64_t *numbers = values->numbers;

    for (int i = REQUESTED; i <= AVAILABLE; i++)
        if (numbers[i] > MAX_SIZE)
            return false;
    return (values->seen & needed) == needed && numbers[ADDRESS] && numbers[REQUESTED] &&
           numbers[REQUESTED] <= numbers[CHUNK];
}

/* Finds the thread of the line, which is made when its first event is kept. 0 = too many. */
static enum mt_status find_thread(struct plane *plane)
{
    struct mt_symbols *symbols = plane->records->symbols;
    uint32_t text, id;

    if (plane->has_thread || symbols->thread_count >= UINT16_MAX)
        return MT_OK;
    if (mt_symbols_string(symbols, (const char *)plane->thread_name.at, plane->thread_name.length,
                          &text) ||
        mt_symbols_thread(symbols, text, 0, &id))
        return MT_ERR_MEMORY;
    plane->thread = (uint16_t)id;
    plane->has_thread = true;
    return MT_OK;
}

static enum mt_status keep(struct plane *plane, const struct values *values,
                           struct mt_xplane_record record)
{
    struct mt_xplane_records *records = plane->records;
    const struct mt_pb_bytes *operation = &values->texts[OPERATION];
    const uint64_t *numbers = values->numbers;

    if (!is_arena(values->texts[ALLOCATOR], &record))
        return MT_OK; /* pinned memory, and other allocators */
    if (!is_possible(values)) {
        records->invalid++;
        return MT_OK;
    }
    if (find_thread(plane))
        return MT_ERR_MEMORY;
    record.order = records->count;
    record.thread = plane->thread;
    record.addr = numbers[ADDRESS];
    record.requested_bytes = numbers[REQUESTED];
    record.chunk_bytes = numbers[CHUNK];
    record.in_use_bytes = numbers[IN_USE];
    record.limit_bytes = numbers[IN_USE] + numbers[RESERVED] + numbers[AVAILABLE];
    record.operation = MT_NO_ID;
    if (operation->length && mt_symbols_string(records->symbols, (const char *)operation->at,
                                               operation->length, &record.operation))
        return MT_ERR_MEMORY;
    if (mt_grow(&records->list, &records->capacity, records->count + 1, sizeof *records->list))
        return MT_ERR_MEMORY;
    records->list[records->count++] = record;
    records->of_gpus += !record.is_host;
    return MT_OK;
}

static enum mt_status read_stats(struct plane *plane, struct mt_pb_bytes message, uint32_t number,
                                 struct values *values)
{
    struct mt_pb_reader reader = mt_pb_reader_of(message);
    struct mt_pb_field field;
    enum mt_status status = MT_OK;

    while (!status && mt_pb_next(&reader, &field))
        if (field.number == number && field.kind == MT_PB_BYTES)
            status = read_stat(plane, field.bytes, values);
    return status ? status : end_of(plane, &reader);
}

static enum mt_status read_event(struct plane *plane, struct mt_pb_bytes event, uint64_t line_ns)
{
    struct mt_pb_reader reader = mt_pb_reader_of(event);
    struct mt_xplane_record record = {.thread = 0};
    struct values values = {.seen = 0};
    uint64_t id = 0, offset_ps = 0;
    struct mt_pb_field field;

    while (mt_pb_next(&reader, &field)) {
        if (field.number == EVENT_METADATA && field.kind == MT_PB_VARINT)
            id = field.value;
        if (field.number == EVENT_OFFSET_PS && field.kind == MT_PB_VARINT)
            offset_ps = field.value;
    }
    enum mt_status status = end_of(plane, &reader);
    record.is_free = plane->has_ids[1] && id == plane->ids[1];
    if (status || (!record.is_free && !(plane->has_ids[0] && id == plane->ids[0])))
        return status;
    record.t_ns = line_ns + offset_ps / 1000;
    record.t_ps = (uint32_t)(offset_ps % 1000);
    status = read_stats(plane, event, EVENT_STATS, &values);
    return status ? status : keep(plane, &values, record);
}

/* A line is a thread. */
static enum mt_status read_line(struct plane *plane, struct mt_pb_bytes line)
{
    struct mt_pb_reader reader = mt_pb_reader_of(line);
    struct mt_pb_field field;
    uint64_t line_ns = 0;

    plane->thread_name = (struct mt_pb_bytes){line.at, 0};
    plane->thread = 0;
    plane->has_thread = false;

    while (mt_pb_next(&reader, &field)) {
        if (field.number == LINE_NAME && field.kind == MT_PB_BYTES)
            plane->thread_name = field.bytes;
        if (field.number == LINE_TIMESTAMP_NS && field.kind == MT_PB_VARINT)
            line_ns = mt_min_u64(field.value, MAX_TIME_NS);
    }
    enum mt_status status = end_of(plane, &reader);
    reader = mt_pb_reader_of(line);
    while (!status && mt_pb_next(&reader, &field))
        if (field.number == LINE_EVENTS && field.kind == MT_PB_BYTES)
            status = read_event(plane, field.bytes, line_ns);
    return status;
}

/* "/device:GPU:0", its model and its memory. */
static enum mt_status keep_device(struct plane *plane, struct mt_pb_bytes name,
                                  const struct values *values)
{
    struct mt_symbols *symbols = plane->records->symbols;
    const struct mt_pb_bytes *kind = &values->texts[DEVICE_NAME];
    uint32_t text;
    uint16_t device;

    if (!read_device(name, "/device:GPU:", "", &device) || !kind->length ||
        values->numbers[DEVICE_BYTES] > MAX_SIZE)
        return MT_OK;
    if (mt_symbols_string(symbols, (const char *)kind->at, kind->length, &text) ||
        mt_symbols_device(symbols, device, text, values->numbers[DEVICE_BYTES]))
        return MT_ERR_MEMORY;
    return MT_OK;
}

/* Reads the facts of a whole plane: the start of the profile, and the device. */
static enum mt_status read_facts(struct plane *plane, struct mt_pb_bytes bytes)
{
    struct mt_pb_reader reader = mt_pb_reader_of(bytes);
    struct mt_pb_bytes name = {bytes.at, 0};
    struct values values = {.seen = 0};
    struct mt_pb_field field;
    enum mt_status status = read_stats(plane, bytes, PLANE_STATS, &values);

    while (!status && mt_pb_next(&reader, &field))
        if (field.number == PLANE_NAME && field.kind == MT_PB_BYTES)
            name = field.bytes;
    if (!status && values.seen & 1u << START_TIME && values.numbers[START_TIME] <= MAX_TIME_NS)
        plane->records->start_t_ns = values.numbers[START_TIME];
    return status ? status : keep_device(plane, name, &values);
}

static enum mt_status read_plane(struct plane *plane, struct mt_pb_bytes bytes)
{
    struct mt_pb_reader reader = mt_pb_reader_of(bytes);
    struct mt_pb_field field;
    enum mt_status status = learn(plane, bytes);

    if (!status)
        status = read_facts(plane, bytes);
    while (!status && (plane->has_ids[0] || plane->has_ids[1]) && mt_pb_next(&reader, &field))
        if (field.number == PLANE_LINES && field.kind == MT_PB_BYTES)
            status = read_line(plane, field.bytes);
    return status;
}

MT_DEFINE_ORDER(by_time, struct mt_xplane_record,
                MT_ASCENDING(t_ns) || MT_ASCENDING(t_ps) || MT_ASCENDING(order))

/* Host memory is kept only if the profile has no GPU. */
static void leave_out_host(struct mt_xplane_records *records)
{
    size_t kept = 0;

    if (!records->of_gpus)
        return;
    for (size_t i = 0; i < records->count; i++)
        if (!records->list[i].is_host)
            records->list[kept++] = records->list[i];
    records->count = kept;
}

enum mt_status mt_xplane_read(struct mt_pb_bytes profile, struct mt_xplane_records *records,
                              const uint8_t **at)
{
    struct mt_pb_reader reader = mt_pb_reader_of(profile);
    struct mt_pb_field field;
    enum mt_status status = MT_OK;

    while (!status && mt_pb_next(&reader, &field)) {
        struct plane plane = {.records = records};

        if (field.number != SPACE_PLANES || field.kind != MT_PB_BYTES)
            continue;
        status = read_plane(&plane, field.bytes);
        *at = plane.at;
        mt_map_release(&plane.stats);
        mt_map_release(&plane.names);
        free(plane.texts);
    }
    if (!status && reader.failed) {
        *at = reader.at;
        status = MT_ERR_FORMAT;
    }
    leave_out_host(records);
    if (!status && records->count)
        qsort(records->list, records->count, sizeof *records->list, by_time);
    return status;
}

void mt_xplane_records_release(struct mt_xplane_records *records)
{
    free(records->list);
    records->list = NULL;
    records->count = records->capacity = 0;
}
