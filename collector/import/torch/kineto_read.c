/* The rows of "traceEvents" in one pass. Keys come in any order, so a row is collected first. */
#include "kineto_read.h"

#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "grow.h"
#include "json_reader.h"
#include "util.h"

/* Larger numbers are not real sizes or times. Sums of allowed numbers never overflow. */
static const int64_t MAX_SIZE = (int64_t)1 << 60, MAX_TIME_NS = (int64_t)1 << 61;

/* Numbers of "args". */
enum argument {
    BYTES,
    ADDRESS,
    ALLOCATED,
    RESERVED,
    DEVICE_TYPE,
    DEVICE_ID,
    INDEX,
    ARGUMENT_COUNT
};
static const char *const argument_names[ARGUMENT_COUNT] = {
    "Bytes", "Addr", "Total Allocated", "Total Reserved", "Device Type", "Device Id", "Ev Idx"};

struct row {
    uint64_t offset;
    struct mt_buf name, category, label; /* label: "name" of args */
    char form;                           /* ph: X, i, M, ... */
    int64_t t_ns, duration_ns;           /* -1 = not in the row */
    uint64_t process, thread;
    int64_t arguments[ARGUMENT_COUNT];
    uint32_t seen; /* bits of enum argument */
};

struct reading {
    struct mt_json_reader json;
    struct mt_kineto *profile;
    struct mt_made_trace *made;
    struct row row;
    uint64_t rows;
};

static void keep_text(struct reading *reading, struct mt_buf *text)
{
    const struct mt_json_reader *json = &reading->json;

    mt_buf_reset(text);
    if (json->token != MT_JSON_TEXT)
        return;
    mt_buf_add(text, json->text, json->length);
    reading->profile->names_cut += json->text_is_cut;
}

static bool is_text(const struct mt_buf *text, const char *wanted)
{
    return text->length == strlen(wanted) && memcmp(text->data, wanted, text->length) == 0;
}

/* Microseconds with a fraction. */
static int64_t time_of(const struct mt_json_reader *json)
{
    int64_t t_ns;

    return mt_json_reader_scaled(json, 3, &t_ns) && t_ns >= 0 && t_ns <= MAX_TIME_NS ? t_ns : -1;
}

/* Processes and threads are numbers, or texts for what is not a thread. */
static uint64_t id_of(const struct mt_json_reader *json)
{
    if (json->token == MT_JSON_INTEGER)
        return (uint64_t)json->integer;
    return json->token == MT_JSON_TEXT ? mt_hash_bytes(json->text, json->length) : 0;
}

static enum mt_status next(struct reading *reading, struct mt_error *error)
{
    return mt_json_reader_next(&reading->json, error);
}

/* Addresses may exceed the range of an integer, or be negative (kineto writes signed numbers). */
static bool read_argument(const struct mt_json_reader *json, int64_t *value)
{
    uint64_t large;

    *value = json->integer;
    if (json->token != MT_JSON_NUMBER)
        return json->token == MT_JSON_INTEGER;
    if (!mt_decimal_read(json->text, json->length, &large))
        return false;
    *value = (int64_t)large;
    return true;
}

static size_t argument_of(const struct mt_json_reader *json)
{
    size_t i = 0;

    while (i < ARGUMENT_COUNT && !mt_json_reader_is(json, argument_names[i]))
        i++;
    return i;
}

static enum mt_status read_arguments(struct reading *reading, struct mt_error *error)
{
    struct mt_json_reader *json = &reading->json;
    struct row *row = &reading->row;
    const size_t depth = json->depth;
    enum mt_status status = MT_OK;

    if (json->token != MT_JSON_OBJECT)
        return mt_json_reader_skip(json, error);
    while ((status = next(reading, error)) == MT_OK && json->depth >= depth) {
        const size_t argument = argument_of(json);
        const bool is_label = mt_json_reader_is(json, "name");
        int64_t value;

        status = next(reading, error);
        if (status != MT_OK)
            return status;
        if (is_label)
            keep_text(reading, &row->label);
        if (argument < ARGUMENT_COUNT && read_argument(json, &value)) {
            row->arguments[argument] = value;
            row->seen |= 1u << argument;
        }
        status = mt_json_reader_skip(json, error);
        if (status != MT_OK)
            return status;
    }
    return status;
}

/* Reads the value of a key, and skips it if it is not of the row. */
static enum mt_status read_member(struct reading *reading, struct mt_error *error)
{
    static const char *const keys[] = {"args", "name", "cat", "ph", "ts", "dur", "pid", "tid"};
    struct mt_json_reader *json = &reading->json;
    struct row *row = &reading->row;
    size_t key = 0;

    while (key < MT_ARRAY_LEN(keys) && !mt_json_reader_is(json, keys[key]))
        key++;
    enum mt_status status = next(reading, error);
    if (status != MT_OK)
        return status;
    switch (key) {
    case 0: return read_arguments(reading, error);
    case 1: keep_text(reading, &row->name); break;
    case 2: keep_text(reading, &row->category); break;
    case 3: row->form = json->token == MT_JSON_TEXT ? json->text[0] : 0; break;
    case 4: row->t_ns = time_of(json); break;
    case 5: row->duration_ns = time_of(json); break;
    case 6: row->process = id_of(json); break;
    case 7: row->thread = id_of(json); break;
    default: break;
    }
    return mt_json_reader_skip(json, error);
}

static enum mt_status find_thread(struct mt_kineto *profile, const struct row *row, uint32_t *index)
{
    const uint64_t key = mt_hash_u64(row->process) ^ row->thread;

    *index = mt_map_get(&profile->thread_ids, key);
    if (*index != MT_MAP_NONE)
        return MT_OK;
    if (profile->thread_count >= MT_MAP_NONE ||
        mt_grow(&profile->threads, &profile->thread_capacity, profile->thread_count + 1,
                sizeof *profile->threads))
        return MT_ERR_MEMORY;
    *index = (uint32_t)profile->thread_count;
    profile->threads[profile->thread_count++] = (struct mt_kineto_thread){row->thread, MT_NO_ID, 0};
    return mt_map_set(&profile->thread_ids, key, *index);
}

static const char *why_impossible(const struct row *row, bool is_oom)
{
    const uint32_t needed = 1u << BYTES | 1u << DEVICE_TYPE | 1u << DEVICE_ID;
    const int64_t *arguments = row->arguments;
    const bool is_host = arguments[DEVICE_TYPE] == MT_KINETO_HOST;

    if (row->t_ns < 0)
        return "a memory event has no time";
    if ((row->seen & needed) != needed || (!is_oom && !(row->seen & 1u << ADDRESS)))
        return "a memory event lacks its size, device or address";
    if (arguments[DEVICE_TYPE] < 0 || arguments[DEVICE_TYPE] > UINT8_MAX)
        return "a memory event has an impossible device type";
    if (!is_host && (arguments[DEVICE_ID] < 0 || arguments[DEVICE_ID] >= MT_KINETO_DEVICES))
        return "a memory event has an impossible device number";
    if (arguments[BYTES] < -MAX_SIZE || arguments[BYTES] > MAX_SIZE ||
        (!is_oom && !arguments[BYTES]) || (is_oom && arguments[BYTES] < 0))
        return "a memory event has an impossible size";
    if (arguments[ALLOCATED] < 0 || arguments[ALLOCATED] > MAX_SIZE || arguments[RESERVED] < 0 ||
        arguments[RESERVED] > MAX_SIZE)
        return "a memory event has an impossible total";
    return NULL;
}

static uint64_t total_of(const struct row *row, enum argument argument)
{
    return row->seen & 1u << argument ? (uint64_t)row->arguments[argument] : MT_NOT_COUNTED;
}

/* Few events change what is reserved. */
static enum mt_status note_reserved(struct mt_kineto *profile, uint64_t bytes)
{
    if (profile->reserved_count && profile->reserved_bytes[profile->reserved_count - 1] == bytes)
        return MT_OK;
    if (mt_grow(&profile->reserved_bytes, &profile->reserved_capacity, profile->reserved_count + 1,
                sizeof *profile->reserved_bytes))
        return MT_ERR_MEMORY;
    profile->reserved_bytes[profile->reserved_count++] = bytes;
    return MT_OK;
}

/* The numbers of events only have an order. */
static int32_t narrow(int64_t number)
{
    return (int32_t)(number < INT32_MIN ? INT32_MIN : number > INT32_MAX ? INT32_MAX : number);
}

static enum mt_status add_instant(struct reading *reading, bool is_oom)
{
    struct mt_kineto *profile = reading->profile;
    const struct row *row = &reading->row;
    const int64_t *arguments = row->arguments;
    const char *why = why_impossible(row, is_oom);
    const bool is_host = arguments[DEVICE_TYPE] == MT_KINETO_HOST;
    uint32_t thread;

    if (why) {
        mt_made_trace_skip(reading->made, row->offset, why);
        return MT_OK;
    }
    if (find_thread(profile, row, &thread) ||
        mt_grow(&profile->instants, &profile->instant_capacity, profile->instant_count + 1,
                sizeof *profile->instants))
        return MT_ERR_MEMORY;
    if (profile->instant_count >= MT_MAP_NONE || note_reserved(profile, total_of(row, RESERVED)))
        return MT_ERR_MEMORY;
    profile->instants[profile->instant_count] = (struct mt_kineto_instant){
        .t_ns = (uint64_t)row->t_ns,
        .index = narrow(row->seen & 1u << INDEX ? arguments[INDEX] : (int64_t)reading->rows),
        .order = (uint32_t)profile->instant_count,
        .addr = (uint64_t)arguments[ADDRESS],
        .bytes = arguments[BYTES],
        .is_oom = is_oom,
        .allocated_bytes = total_of(row, ALLOCATED),
        .reserved = (uint32_t)profile->reserved_count - 1,
        .stack = MT_NO_ID,
        .thread = thread,
        .device = is_host ? 0 : (uint16_t)arguments[DEVICE_ID],
        .device_type = (uint8_t)arguments[DEVICE_TYPE],
    };
    profile->instant_count++;
    return MT_OK;
}

/* Categories of versions since 1.8. Before 1.12, named ranges were operations. */
static bool kind_of(const struct row *row, enum mt_kineto_kind *kind)
{
    static const char step[] = "ProfilerStep#";

    if (is_text(&row->category, "python_function"))
        *kind = MT_KINETO_PYTHON;
    else if (is_text(&row->category, "user_annotation"))
        *kind = MT_KINETO_ANNOTATION;
    else if (is_text(&row->category, "cpu_op") || is_text(&row->category, "Operator"))
        *kind = row->name.length >= sizeof step - 1 &&
                        memcmp(row->name.data, step, sizeof step - 1) == 0
                    ? MT_KINETO_ANNOTATION
                    : MT_KINETO_OPERATION;
    else
        return false;
    return true;
}

static enum mt_status add_range(struct reading *reading)
{
    struct mt_kineto *profile = reading->profile;
    const struct row *row = &reading->row;
    enum mt_kineto_kind kind;
    uint32_t thread, name;

    if (!kind_of(row, &kind) || !row->name.length)
        return MT_OK;
    if (row->t_ns < 0 || row->duration_ns < 0) {
        mt_made_trace_skip(reading->made, row->offset, "a range has no time");
        return MT_OK;
    }
    if (profile->range_count >= UINT32_MAX || find_thread(profile, row, &thread) ||
        mt_strings_intern(&profile->names, row->name.data, row->name.length, &name) ||
        mt_grow(&profile->ranges, &profile->range_capacity, profile->range_count + 1,
                sizeof *profile->ranges))
        return MT_ERR_MEMORY;
    struct mt_kineto_range *range = &profile->ranges[profile->range_count];
    *range = (struct mt_kineto_range){(uint64_t)row->t_ns,
                                      (uint64_t)(row->t_ns + row->duration_ns),
                                      (uint32_t)profile->range_count,
                                      thread,
                                      name,
                                      kind};
    profile->range_count++;
    return MT_OK;
}

static enum mt_status name_thread(struct reading *reading)
{
    struct mt_kineto *profile = reading->profile;
    const struct row *row = &reading->row;
    uint32_t thread, name;

    if (!row->label.length)
        return MT_OK;
    if (find_thread(profile, row, &thread) ||
        mt_strings_intern(&profile->names, row->label.data, row->label.length, &name))
        return MT_ERR_MEMORY;
    profile->threads[thread].name = name;
    return MT_OK;
}

static enum mt_status add_row(struct reading *reading)
{
    const struct row *row = &reading->row;

    if (row->form == 'X')
        return add_range(reading);
    if (row->form == 'M')
        return is_text(&row->name, "thread_name") ? name_thread(reading) : MT_OK;
    if (is_text(&row->name, "[memory]"))
        return add_instant(reading, false);
    return is_text(&row->name, "[OutOfMemory]") ? add_instant(reading, true) : MT_OK;
}

/* After the bracket of a row. */
static enum mt_status read_row(struct reading *reading, struct mt_error *error)
{
    struct row *row = &reading->row;
    const size_t depth = reading->json.depth;
    enum mt_status status;

    mt_buf_reset(&row->name);
    mt_buf_reset(&row->category);
    mt_buf_reset(&row->label);
    *row = (struct row){.offset = reading->json.offset,
                        .name = row->name,
                        .category = row->category,
                        .label = row->label,
                        .t_ns = -1,
                        .duration_ns = -1};
    while ((status = next(reading, error)) == MT_OK && reading->json.depth >= depth) {
        status = read_member(reading, error);
        if (status != MT_OK)
            return status;
    }
    if (status != MT_OK)
        return status;
    reading->rows++;
    if (row->name.failed || row->category.failed || row->label.failed || add_row(reading) != MT_OK)
        return mt_fail_memory(error);
    return MT_OK;
}

/* Calls `read` after the bracket of each object of the array that follows. */
static enum mt_status each_object(struct reading *reading,
                                  enum mt_status (*read)(struct reading *, struct mt_error *),
                                  struct mt_error *error)
{
    struct mt_json_reader *json = &reading->json;
    const size_t depth = json->depth;
    enum mt_status status;

    if (json->token != MT_JSON_ARRAY)
        return mt_json_reader_skip(json, error);
    while ((status = next(reading, error)) == MT_OK && json->depth >= depth) {
        status =
            json->token == MT_JSON_OBJECT ? read(reading, error) : mt_json_reader_skip(json, error);
        if (status != MT_OK)
            return status;
    }
    return status;
}

/* {"id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150109880320, ...} */
static enum mt_status read_device(struct reading *reading, struct mt_error *error)
{
    struct mt_json_reader *json = &reading->json;
    struct mt_symbols *symbols = &reading->made->symbols;
    const size_t depth = json->depth;
    int64_t id = -1, total_bytes = 0;
    uint32_t name = MT_NO_ID;
    enum mt_status status;

    while ((status = next(reading, error)) == MT_OK && json->depth >= depth) {
        const bool is_id = mt_json_reader_is(json, "id"), is_name = mt_json_reader_is(json, "name"),
                   is_total = mt_json_reader_is(json, "totalGlobalMem");

        status = next(reading, error);
        if (status == MT_OK && is_id && json->token == MT_JSON_INTEGER)
            id = json->integer;
        if (status == MT_OK && is_total && json->token == MT_JSON_INTEGER)
            total_bytes = json->integer;
        if (status == MT_OK && is_name && json->token == MT_JSON_TEXT && json->length &&
            mt_symbols_string(symbols, json->text, json->length, &name))
            return mt_fail_memory(error);
        if (status == MT_OK)
            status = mt_json_reader_skip(json, error);
        if (status != MT_OK)
            return status;
    }
    if (status == MT_OK && id >= 0 && id < MT_KINETO_DEVICES && total_bytes >= 0 &&
        total_bytes <= MAX_SIZE &&
        mt_symbols_device(symbols, (uint32_t)id, name, (uint64_t)total_bytes))
        return mt_fail_memory(error);
    return status;
}

/* {"backend": "nccl", "rank": 3, "world_size": 8, ...} */
static enum mt_status read_job(struct reading *reading, struct mt_error *error)
{
    struct mt_json_reader *json = &reading->json;
    struct mt_trace_header *header = &reading->made->header;
    const size_t depth = json->depth;
    enum mt_status status;

    if (json->token != MT_JSON_OBJECT)
        return mt_json_reader_skip(json, error);
    while ((status = next(reading, error)) == MT_OK && json->depth >= depth) {
        int32_t *fact = mt_json_reader_is(json, "rank")         ? &header->rank
                        : mt_json_reader_is(json, "world_size") ? &header->world_size
                                                                : NULL;

        status = next(reading, error);
        if (status == MT_OK && fact && json->token == MT_JSON_INTEGER && json->integer >= 0 &&
            json->integer <= INT32_MAX)
            *fact = (int32_t)json->integer;
        if (status == MT_OK)
            status = mt_json_reader_skip(json, error);
        if (status != MT_OK)
            return status;
    }
    return status;
}

/* Reads the value of a key of the file. */
static enum mt_status read_part(struct reading *reading, struct mt_error *error)
{
    struct mt_json_reader *json = &reading->json;
    const bool has_rows = mt_json_reader_is(json, "traceEvents"),
               has_devices = mt_json_reader_is(json, "deviceProperties"),
               has_job = mt_json_reader_is(json, "distributedInfo"),
               is_base = mt_json_reader_is(json, "baseTimeNanoseconds");
    enum mt_status status = next(reading, error);

    if (status != MT_OK)
        return status;
    if (has_rows)
        return each_object(reading, read_row, error);
    if (has_devices)
        return each_object(reading, read_device, error);
    if (has_job)
        return read_job(reading, error);
    if (is_base && json->token == MT_JSON_INTEGER && json->integer >= 0 &&
        json->integer <= MAX_TIME_NS)
        reading->profile->base_ns = (uint64_t)json->integer;
    return mt_json_reader_skip(json, error);
}

static enum mt_status read_all(struct reading *reading, struct mt_error *error)
{
    enum mt_status status = next(reading, error);

    if (status == MT_OK && reading->json.token != MT_JSON_OBJECT)
        return mt_fail(error, MT_ERR_FORMAT, reading->json.offset, "not a trace of torch.profiler");
    while (status == MT_OK && (status = next(reading, error)) == MT_OK && reading->json.depth)
        status = read_part(reading, error);
    if (status == MT_OK)
        status = next(reading, error);
    return status == MT_END ? MT_OK : status;
}

enum mt_status mt_kineto_read(struct mt_feed *feed, struct mt_kineto *profile,
                              struct mt_made_trace *made, struct mt_error *error)
{
    struct reading reading = {.profile = profile, .made = made};
    enum mt_status status = mt_json_reader_init(&reading.json, feed, error);

    if (status == MT_OK)
        status = read_all(&reading, error);
    if (status == MT_ERR_FORMAT && profile->instant_count) { /* what was read before is used */
        mt_made_trace_cut(made, feed, &reading.json, error);
        status = MT_OK;
    }
    mt_json_reader_release(&reading.json);
    mt_buf_release(&reading.row.name);
    mt_buf_release(&reading.row.category);
    mt_buf_release(&reading.row.label);
    return status;
}

void mt_kineto_release(struct mt_kineto *profile)
{
    free(profile->instants);
    free(profile->ranges);
    free(profile->threads);
    free(profile->reserved_bytes);
    mt_map_release(&profile->thread_ids);
    mt_strings_release(&profile->names);
    *profile = (struct mt_kineto){0};
}
