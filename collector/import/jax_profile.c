/* Profiles of the device memory of JAX (jax.profiler.save_device_memory_profile): a protocol buffer
 * of pprof (github.com/google/pprof/blob/main/proto/profile.proto), which XLA writes with one
 * sample for each stack, size and device (xla/python/py_client.cc, HeapProfile). It is a state: the
 * buffers that were alive, without addresses and times. */
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "importers.h"
#include "made_trace.h"
#include "map.h"
#include "util.h"
#include "xplane_read.h"

/* Numbers of fields. */
enum { SAMPLES = 2, LOCATIONS = 4, FUNCTIONS, STRINGS, TIME_NS = 9 };
enum { SAMPLE_LOCATIONS = 1, SAMPLE_VALUES, SAMPLE_LABELS, LABEL_KEY = 1, LABEL_TEXT };
enum { LOCATION_ID = 1, LOCATION_LINES = 4, LINE_FUNCTION = 1, LINE_NUMBER };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_FILE = 4 };

enum {
    PIECE_BYTES = 256 * 1024,
    MAX_TEXT_BYTES = 4096,
    MAX_DEVICES = 1024,
    MAX_NUMBERS = 4096,
    MAX_LINES = 16
};
enum { FIRST_ADDRESS = 1 << 20, ALIGNMENT = 256 };
static const uint64_t MAX_BYTES = (uint64_t)1 << 58, MAX_BLOCKS = 1000000;

struct function {
    uint64_t name, file; /* indices of strings */
};

/* An inlined call has a line of its own. */
struct line {
    uint64_t function, number;
    uint32_t frame; /* MT_NO_ID: not made yet */
};

struct location {
    size_t first, count; /* of its lines, innermost first */
    size_t cut;          /* lines that are left out */
};

/* Each message is parsed once, however many samples refer to it. */
struct jax {
    struct mt_made_trace made;
    struct mt_buf bytes;
    struct mt_pb_bytes *strings;
    struct function *functions;
    struct line *lines;
    struct location *locations;
    size_t string_count, string_capacity, function_count, function_capacity;
    size_t line_count, line_capacity, location_count, location_capacity;
    struct mt_map function_ids, location_ids; /* id -> index */
    struct mt_map devices;                    /* string of the label -> device */
    uint32_t heap;
    uint64_t t_ns, addr, blocks, uneven, merged;
    uint64_t executables, executable_bytes; /* without bytes, and without a device */
    struct mt_buf not_recorded, not_used;
    struct mt_error *error;
};

/* One sample. */
struct sample {
    uint64_t locations[MAX_NUMBERS], values[MAX_NUMBERS];
    size_t location_count, value_count, cut;
    uint64_t kind, device; /* indices of strings, 0 = none */
    uint64_t last_string;  /* the largest index of its labels */
};

static enum mt_status damaged(struct jax *jax, const uint8_t *at)
{
    return mt_fail(jax->error, MT_ERR_FORMAT, (uint64_t)(at - (const uint8_t *)jax->bytes.data),
                   "the profile is damaged or cut");
}

/* Go's profiles of heaps begin with the same bytes: the names of the types follow later. */
bool mt_jax_profile_probe(const void *bytes, size_t length)
{
    static const uint8_t start[] = {0x0a, 4, 8, 1, 0x10, 2};

    return length >= sizeof start && memcmp(bytes, start, sizeof start) == 0;
}

static struct mt_pb_bytes string_at(const struct jax *jax, uint64_t index)
{
    return index < jax->string_count ? jax->strings[index] : (struct mt_pb_bytes){NULL, 0};
}

static bool is_string(const struct jax *jax, uint64_t index, const char *text)
{
    struct mt_pb_bytes string = string_at(jax, index);

    return string.at && string.length == strlen(text) &&
           memcmp(string.at, text, string.length) == 0;
}

static enum mt_status text_of(struct jax *jax, uint64_t index, uint32_t *id)
{
    struct mt_pb_bytes string = string_at(jax, index);

    return mt_symbols_string(&jax->made.symbols, string.at ? (const char *)string.at : "",
                             mt_min_u64(string.length, MAX_TEXT_BYTES), id);
}

/* The strings are last: a file that is cut between two fields lacks some of them. */
static enum mt_status lacks(struct jax *jax, const char *what)
{
    return mt_fail(jax->error, MT_ERR_FORMAT, jax->bytes.length,
                   "the profile is cut: it refers to %s that it lacks", what);
}

/* Returns the number of a field of a message, 0 if it is absent. A damaged message was refused
 * before. */
static uint64_t number_of(struct mt_pb_bytes message, uint32_t number)
{
    struct mt_pb_reader reader = mt_pb_reader_of(message);
    struct mt_pb_field field;
    uint64_t value = 0;

    while (mt_pb_next(&reader, &field))
        if (field.number == number && field.kind == MT_PB_VARINT)
            value = field.value;
    return value;
}

static enum mt_status keep_string(struct jax *jax, struct mt_pb_bytes bytes)
{
    if (mt_grow(&jax->strings, &jax->string_capacity, jax->string_count + 1, sizeof *jax->strings))
        return MT_ERR_MEMORY;
    jax->strings[jax->string_count++] = bytes;
    return MT_OK;
}

static enum mt_status keep_function(struct jax *jax, struct mt_pb_bytes bytes)
{
    if (jax->function_count >= UINT32_MAX - 1 ||
        mt_grow(&jax->functions, &jax->function_capacity, jax->function_count + 1,
                sizeof *jax->functions))
        return MT_ERR_MEMORY;
    jax->functions[jax->function_count] =
        (struct function){number_of(bytes, FUNCTION_NAME), number_of(bytes, FUNCTION_FILE)};
    return mt_map_set(&jax->function_ids, number_of(bytes, FUNCTION_ID),
                      (uint32_t)jax->function_count++);
}

static enum mt_status keep_lines(struct jax *jax, struct mt_pb_bytes bytes,
                                 struct location *location)
{
    struct mt_pb_reader reader = mt_pb_reader_of(bytes);
    struct mt_pb_field field;

    *location = (struct location){.first = jax->line_count};
    while (mt_pb_next(&reader, &field)) {
        if (field.number != LOCATION_LINES || field.kind != MT_PB_BYTES)
            continue;
        if (location->count == MAX_LINES) {
            location->cut++;
            continue;
        }
        if (mt_grow(&jax->lines, &jax->line_capacity, jax->line_count + 1, sizeof *jax->lines))
            return MT_ERR_MEMORY;
        jax->lines[jax->line_count++] = (struct line){
            number_of(field.bytes, LINE_FUNCTION), number_of(field.bytes, LINE_NUMBER), MT_NO_ID};
        location->count++;
    }
    return MT_OK;
}

static enum mt_status keep_location(struct jax *jax, struct mt_pb_bytes bytes)
{
    if (jax->location_count >= UINT32_MAX - 1 ||
        mt_grow(&jax->locations, &jax->location_capacity, jax->location_count + 1,
                sizeof *jax->locations) ||
        keep_lines(jax, bytes, &jax->locations[jax->location_count]))
        return MT_ERR_MEMORY;
    return mt_map_set(&jax->location_ids, number_of(bytes, LOCATION_ID),
                      (uint32_t)jax->location_count++);
}

/* First reading: what samples refer to. */
static enum mt_status take_table(struct jax *jax, const struct mt_pb_field *field)
{
    if (field->number == TIME_NS && field->kind == MT_PB_VARINT)
        jax->t_ns = mt_min_u64(field->value, (uint64_t)1 << 61);
    if (field->kind != MT_PB_BYTES)
        return MT_OK;
    switch (field->number) {
    case STRINGS: return keep_string(jax, field->bytes);
    case FUNCTIONS: return keep_function(jax, field->bytes);
    case LOCATIONS: return keep_location(jax, field->bytes);
    default: return MT_OK;
    }
}

/* ---- stacks */

static enum mt_status make_frame(struct jax *jax, struct line *line)
{
    uint32_t index = mt_map_get(&jax->function_ids, line->function);
    uint32_t name, file;

    if (index == MT_MAP_NONE)
        return lacks(jax, "a function");
    if (text_of(jax, jax->functions[index].name, &name) ||
        text_of(jax, jax->functions[index].file, &file) ||
        mt_symbols_frame(&jax->made.symbols, name, file,
                         (uint32_t)mt_min_u64(line->number, INT32_MAX), &line->frame))
        return mt_fail_memory(jax->error);
    return MT_OK;
}

static enum mt_status push_line(struct jax *jax, struct line *line, uint32_t *stack)
{
    enum mt_status status = line->frame == MT_NO_ID ? make_frame(jax, line) : MT_OK;

    if (!status && mt_symbols_stack(&jax->made.symbols, *stack, line->frame, stack))
        return mt_fail_memory(jax->error);
    return status;
}

static enum mt_status push_location(struct jax *jax, uint64_t id, uint32_t *stack)
{
    uint32_t index = mt_map_get(&jax->location_ids, id);
    enum mt_status status = MT_OK;

    if (index == MT_MAP_NONE)
        return lacks(jax, "a location");
    const struct location *location = &jax->locations[index];
    jax->made.symbols.frames_cut += location->cut;
    for (size_t i = location->count; i && !status; i--)
        status = push_line(jax, &jax->lines[location->first + i - 1], stack);
    return status;
}

static enum mt_status stack_of(struct jax *jax, const struct sample *sample, uint32_t *stack)
{
    enum mt_status status = MT_OK;

    *stack = MT_NO_ID;
    jax->made.symbols.frames_cut += sample->cut;
    for (size_t i = sample->location_count; i && !status; i--)
        status = push_location(jax, sample->locations[i - 1], stack);
    jax->made.header.has_stacks |= *stack != MT_NO_ID;
    return status;
}

/* ---- samples */

static void add_number(uint64_t value, uint64_t *numbers, size_t *count, size_t *cut)
{
    if (*count < MAX_NUMBERS)
        numbers[(*count)++] = value;
    else
        ++*cut;
}

/* A list of numbers is one field, or a field for each. */
static bool add_numbers(const struct mt_pb_field *field, uint64_t *numbers, size_t *count,
                        size_t *cut)
{
    struct mt_pb_bytes one = field->bytes;
    uint64_t value;

    if (field->kind == MT_PB_VARINT)
        add_number(field->value, numbers, count, cut);
    while (field->kind == MT_PB_BYTES && one.length) {
        if (!mt_pb_take_varint(&one, &value))
            return false;
        add_number(value, numbers, count, cut);
    }
    return true;
}

static bool read_sample(const struct jax *jax, struct mt_pb_bytes bytes, struct sample *sample)
{
    struct mt_pb_reader reader = mt_pb_reader_of(bytes);
    struct mt_pb_field field;
    size_t more_values = 0;
    bool is_good = true;

    sample->location_count = sample->value_count = sample->cut = 0;
    sample->kind = sample->device = sample->last_string = 0;
    while (is_good && mt_pb_next(&reader, &field)) {
        if (field.number == SAMPLE_LOCATIONS)
            is_good = add_numbers(&field, sample->locations, &sample->location_count, &sample->cut);
        if (field.number == SAMPLE_VALUES)
            is_good = add_numbers(&field, sample->values, &sample->value_count, &more_values);
        if (field.number == SAMPLE_LABELS && field.kind == MT_PB_BYTES) {
            uint64_t key = number_of(field.bytes, LABEL_KEY);
            uint64_t text = number_of(field.bytes, LABEL_TEXT);

            sample->last_string = mt_max_u64(sample->last_string, mt_max_u64(key, text));
            if (is_string(jax, key, "kind"))
                sample->kind = text;
            if (is_string(jax, key, "device"))
                sample->device = text;
        }
    }
    return is_good && !reader.failed;
}

/* "cuda:0" is device 0. If another device has this number, the next free one. */
static enum mt_status device_of(struct jax *jax, uint64_t label, uint16_t *device)
{
    struct mt_pb_bytes text = string_at(jax, label);
    uint32_t known = mt_map_get(&jax->devices, label), number = 0, scale = 1, name;
    const struct mt_symbols *symbols = &jax->made.symbols;

    *device = (uint16_t)(known == MT_MAP_NONE ? 0 : known);
    if (known != MT_MAP_NONE)
        return MT_OK;
    for (size_t i = text.length;
         i && scale <= 1000 && text.at[i - 1] >= '0' && text.at[i - 1] <= '9'; i--, scale *= 10)
        number += scale * (uint32_t)(text.at[i - 1] - '0');
    while (number < symbols->device_count && symbols->devices[number].name != MT_NO_ID)
        number++;
    if (number >= MAX_DEVICES)
        return mt_fail(jax->error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET, "more than 1,024 devices");
    if (text_of(jax, label, &name) || mt_symbols_device(&jax->made.symbols, number, name, 0) ||
        mt_map_set(&jax->devices, label, number))
        return mt_fail_memory(jax->error);
    *device = (uint16_t)number;
    return MT_OK;
}

/* Without segments, which the profile does not have. */
static enum mt_status add_blocks(struct jax *jax, uint64_t count, uint64_t bytes,
                                 struct mt_event *event)
{
    enum mt_status status = MT_OK;

    if (count > MAX_BLOCKS || jax->blocks + count > MAX_BLOCKS || count > bytes) {
        jax->merged++;
        count = 1;
    }
    jax->uneven += bytes % count != 0;
    for (uint64_t i = 0; i < count && !status; i++) {
        uint64_t size = bytes / count + (i < bytes % count);

        event->addr = jax->addr;
        event->size_bytes = event->aux_bytes = size;
        jax->addr += size;
        status = mt_made_trace_add(&jax->made, event, jax->error);
    }
    jax->addr = mt_round_up(jax->addr, ALIGNMENT);
    jax->blocks += count;
    return status;
}

static enum mt_status take_sample(struct jax *jax, struct mt_pb_bytes bytes, struct sample *sample)
{
    struct mt_event event = {.kind = MT_EVENT_ALLOC,
                             .flags = MT_EVENT_INITIAL,
                             .t_ns = jax->t_ns,
                             .stack = MT_NO_ID,
                             .name = MT_NO_ID,
                             .heap = (uint16_t)jax->heap};

    if (!read_sample(jax, bytes, sample))
        return damaged(jax, bytes.at);
    if (sample->last_string >= jax->string_count)
        return lacks(jax, "a string");
    if (sample->value_count < 2 || !sample->values[0] || sample->values[1] > MAX_BYTES ||
        jax->addr > MAX_BYTES) {
        mt_made_trace_skip(&jax->made, (uint64_t)(bytes.at - (const uint8_t *)jax->bytes.data),
                           "a sample has no count or an impossible size");
        return MT_OK;
    }
    if (!sample->values[1] || !sample->device) {
        jax->executables += sample->values[1] ? 0 : sample->values[0];
        jax->executable_bytes += sample->values[1];
        return MT_OK;
    }
    enum mt_status status = stack_of(jax, sample, &event.stack);
    if (!status)
        status = device_of(jax, sample->device, &event.device);
    if (!status && sample->kind && text_of(jax, sample->kind, &event.name))
        status = mt_fail_memory(jax->error);
    return status ? status : add_blocks(jax, sample->values[0], sample->values[1], &event);
}

/* ---- the file */

static enum mt_status read_bytes(struct jax *jax, struct mt_feed *feed)
{
    enum mt_status status = MT_OK;
    size_t got = 1;

    while (!status && got) {
        char *room = mt_buf_reserve(&jax->bytes, PIECE_BYTES);

        if (!room)
            return mt_fail_memory(jax->error);
        status = mt_feed_read(feed, room, PIECE_BYTES, &got, jax->error);
        jax->bytes.length += got;
    }
    return status;
}

static struct mt_pb_bytes whole(const struct jax *jax)
{
    return (struct mt_pb_bytes){(const uint8_t *)jax->bytes.data, jax->bytes.length};
}

static enum mt_status read_tables(struct jax *jax)
{
    struct mt_pb_reader reader = mt_pb_reader_of(whole(jax));
    struct mt_pb_field field;

    while (mt_pb_next(&reader, &field))
        if (take_table(jax, &field))
            return mt_fail_memory(jax->error);
    if (reader.failed)
        return damaged(jax, reader.at);
    if (!is_string(jax, 1, "allocations") || !is_string(jax, 3, "space"))
        return mt_fail(
            jax->error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
            "a profile for pprof that is not one of device memory by JAX: 'go tool pprof' "
            "shows it");
    return MT_OK;
}

static enum mt_status read_samples(struct jax *jax)
{
    struct sample *sample = malloc(sizeof *sample);
    struct mt_pb_reader reader = mt_pb_reader_of(whole(jax));
    struct mt_pb_field field;
    uint32_t name;
    enum mt_status status = MT_OK;

    if (!sample || mt_symbols_string(&jax->made.symbols, "xla", 3, &name) ||
        mt_symbols_heap(&jax->made.symbols, name, &jax->heap))
        status = mt_fail_memory(jax->error);
    jax->addr = FIRST_ADDRESS;
    while (!status && mt_pb_next(&reader, &field))
        if (field.number == SAMPLES && field.kind == MT_PB_BYTES)
            status = take_sample(jax, field.bytes, sample);
    free(sample);
    if (!status && !jax->blocks)
        return mt_fail(jax->error, MT_ERR_FORMAT, MT_NO_OFFSET,
                       "the profile has no buffer that was alive");
    return status;
}

static void describe(struct jax *jax)
{
    struct mt_trace_header *header = &jax->made.header;

    mt_buf_add_text(&jax->not_recorded,
                    "history: the profile is the state at one instant\n"
                    "addresses: those of the blocks are made up\n"
                    "what the allocator reserved, and the memory of executables\n");
    if (!jax->t_ns)
        mt_buf_add_text(&jax->not_recorded, "the time of the instant\n");
    if (jax->executables)
        mt_buf_printf(&jax->not_used, "executables without bytes: %llu\n",
                      (unsigned long long)jax->executables);
    if (jax->executable_bytes)
        mt_buf_printf(&jax->not_used, "executables: %llu bytes, no device\n",
                      (unsigned long long)jax->executable_bytes);
    if (jax->uneven)
        mt_buf_printf(&jax->not_used,
                      "sizes of single blocks: %llu sample%s only a count and a sum\n",
                      (unsigned long long)jax->uneven, jax->uneven == 1 ? " has" : "s have");
    if (jax->merged)
        mt_buf_printf(&jax->not_used, "counts of blocks: %llu sample%s one block each\n",
                      (unsigned long long)jax->merged, jax->merged == 1 ? " is" : "s are");
    header->framework = "JAX";
    header->not_recorded = jax->not_recorded.data;
    header->not_used = jax->not_used.data;
    header->starts_in_middle = true; /* without events: a state without history */
}

static void release(struct jax *jax)
{
    free(jax->strings);
    free(jax->functions);
    free(jax->locations);
    free(jax->lines);
    mt_map_release(&jax->function_ids);
    mt_map_release(&jax->location_ids);
    mt_map_release(&jax->devices);
    mt_buf_release(&jax->bytes);
    mt_buf_release(&jax->not_recorded);
    mt_buf_release(&jax->not_used);
    mt_made_trace_release(&jax->made);
}

enum mt_status mt_jax_profile_open(struct mt_feed *feed, struct mt_source **source,
                                   struct mt_error *error)
{
    struct jax jax = {.error = error};
    enum mt_status status = read_bytes(&jax, feed);

    if (!status)
        status = read_tables(&jax);
    if (!status)
        status = mt_made_trace_start(&jax.made, error);
    if (!status)
        status = read_samples(&jax);
    if (!status) {
        describe(&jax);
        status = jax.not_recorded.failed || jax.not_used.failed
                     ? mt_fail_memory(jax.error)
                     : mt_made_trace_finish(&jax.made, MT_SOURCES_JAX, source, error);
    }
    release(&jax);
    return status;
}
