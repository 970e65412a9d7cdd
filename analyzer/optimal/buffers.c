/* Sets of buffers: from a run, from and to CSV, and as an instance of dynamic storage allocation,
 * in which time consists of the sections that matter. */
#include <stdlib.h>
#include <string.h>

#include "buffers.h"
#include "grow.h"
#include "map.h"
#include "process_memory.h"
#include "source.h"
#include "util.h"

/* MiniMalloc's CSV: id,lower,upper,size. No quotes, no spaces. */

enum { MAX_COLUMNS = 16, OTHER_COLUMN = -1 };
enum wanted { LOWER, UPPER, SIZE, WANTED_COUNT };

struct columns {
    int of_column[MAX_COLUMNS]; /* enum wanted or OTHER_COLUMN */
    size_t count;
};

struct line {
    const char *text;
    size_t length;
};

/* The next line, without its end; false at the end of the text. */
static bool next_line(const char *text, size_t length, size_t *at, struct line *line)
{
    if (*at >= length)
        return false;
    line->text = text + *at;
    const char *end = memchr(line->text, '\n', length - *at);
    line->length = end ? (size_t)(end - line->text) : length - *at;
    *at += line->length + 1;
    if (line->length && line->text[line->length - 1] == '\r')
        line->length--;
    return true;
}

/* Cuts the next field off the front of the line. */
static struct line next_field(struct line *line)
{
    const char *comma = line->length ? memchr(line->text, ',', line->length) : NULL;
    struct line field = {line->text, comma ? (size_t)(comma - line->text) : line->length};
    size_t used = field.length + (comma ? 1 : 0);

    line->text += used;
    line->length -= used;
    return field;
}

static int column_of_name(struct line name)
{
    static const struct {
        const char *name;
        int column;
    } names[] = {{"lower", LOWER}, {"upper", UPPER}, {"start", LOWER},
                 {"end", UPPER},   {"size", SIZE},   {NULL, OTHER_COLUMN}};

    for (size_t i = 0; names[i].name; i++)
        if (strlen(names[i].name) == name.length &&
            memcmp(names[i].name, name.text, name.length) == 0)
            return names[i].column;
    return OTHER_COLUMN;
}

/* False unless each wanted column is there exactly once. */
static bool read_columns(struct line line, struct columns *columns)
{
    unsigned seen[WANTED_COUNT] = {0};

    for (columns->count = 0; line.length; columns->count++) {
        int column = column_of_name(next_field(&line));
        if (columns->count == MAX_COLUMNS)
            return false;
        columns->of_column[columns->count] = column;
        if (column != OTHER_COLUMN)
            seen[column]++;
    }
    return seen[LOWER] == 1 && seen[UPPER] == 1 && seen[SIZE] == 1;
}

bool mt_buffers_csv_probe(const char *text, size_t length)
{
    struct columns columns;
    struct line line;
    size_t at = 0;

    return next_line(text, length, &at, &line) && read_columns(line, &columns);
}

static bool read_number(struct line field, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < field.length; i++)
        if (field.text[i] < '0' || field.text[i] > '9' ||
            __builtin_mul_overflow(*value, (uint64_t)10, value) ||
            __builtin_add_overflow(*value, (uint64_t)(field.text[i] - '0'), value))
            return false;
    return field.length > 0;
}

static bool read_buffer(struct line line, const struct columns *columns, struct mt_buffer *buffer)
{
    uint64_t values[WANTED_COUNT] = {0};

    for (size_t i = 0; i < columns->count; i++) {
        struct line field = next_field(&line);
        if (columns->of_column[i] != OTHER_COLUMN &&
            !read_number(field, &values[columns->of_column[i]]))
            return false;
    }
    *buffer = (struct mt_buffer){values[LOWER], values[UPPER], values[SIZE]};
    return line.length == 0 && buffer->begin <= buffer->end;
}

enum mt_status mt_buffers_from_csv(const char *text, size_t length, struct mt_buffers *buffers,
                                   struct mt_error *error)
{
    struct columns columns;
    struct mt_buffer buffer;
    struct line line;
    size_t at = 0;
    enum mt_status status = MT_OK;

    if (!next_line(text, length, &at, &line) || !read_columns(line, &columns))
        return mt_fail(error, MT_ERR_FORMAT, 0, "no columns lower, upper and size");
    for (size_t start = at; status == MT_OK && next_line(text, length, &at, &line); start = at) {
        if (!line.length)
            continue;
        if (!read_buffer(line, &columns, &buffer))
            return mt_fail(error, MT_ERR_FORMAT, start,
                           "not a buffer: three whole numbers, lower not after upper");
        status = mt_buffers_add(buffers, &buffer, error);
    }
    return status;
}

#define END_OF_TOTAL (UINT64_C(1) << 62)
#define MAX_BUFFERS  (UINT32_MAX / 4)
#define ROUND_BYTES  512

enum mt_status mt_buffers_add(struct mt_buffers *buffers, const struct mt_buffer *buffer,
                              struct mt_error *error)
{
    if (buffer->begin >= buffer->end || !buffer->bytes)
        return MT_OK;
    if (buffer->bytes >= END_OF_TOTAL || buffers->total_bytes + buffer->bytes >= END_OF_TOTAL)
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET, "buffers of 4 EiB or more");
    if (buffers->count >= MAX_BUFFERS)
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET, "more than %u buffers",
                       MAX_BUFFERS);
    if (buffers->count == buffers->capacity)
        mt_grow_to(&buffers->items, &buffers->capacity, buffers->count + 1, sizeof *buffers->items);
    buffers->items[buffers->count++] = *buffer;
    buffers->total_bytes += buffer->bytes;
    return MT_OK;
}

void mt_buffers_release(struct mt_buffers *buffers)
{
    free(buffers->items);
    memset(buffers, 0, sizeof *buffers);
}

struct reading {
    struct mt_buffers *devices;
    struct mt_map live[MT_BUFFERS_DEVICES]; /* address -> number of the buffer in its device */
    uint64_t now;
    bool end_at_request; /* the trace has no completions of frees */
    struct mt_error *error;
};

static void end_buffer(struct reading *reading, const struct mt_event *event)
{
    uint32_t number = mt_map_take(&reading->live[event->device], event->addr);

    if (number != MT_MAP_NONE)
        reading->devices[event->device].items[number].end = reading->now;
}

static enum mt_status begin_buffer(struct reading *reading, const struct mt_event *event)
{
    struct mt_error *error = reading->error;
    struct mt_buffers *buffers = &reading->devices[event->device];
    struct mt_buffer buffer = {.begin = reading->now, .end = UINT64_MAX};
    size_t before = buffers->count;

    if (event->size_bytes > END_OF_TOTAL)
        return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "an allocation of more than 4 EiB");
    buffer.bytes = mt_round_up(event->size_bytes, ROUND_BYTES);
    end_buffer(reading, event); /* its free is missing */
    enum mt_status status = mt_buffers_add(buffers, &buffer, error);
    if (status != MT_OK || buffers->count == before)
        return status;
    mt_map_put(&reading->live[event->device], event->addr, (uint32_t)before);
    return MT_OK;
}

static enum mt_status read_event(void *self, struct mt_event *event)
{
    struct reading *reading = self;
    bool begins = event->kind == MT_EVENT_ALLOC;
    bool ends = event->kind == MT_EVENT_FREE_COMPLETED ||
                (reading->end_at_request && event->kind == MT_EVENT_FREE_REQUESTED);

    reading->now++;
    if (!begins && !ends)
        return MT_OK;
    if (event->device >= MT_BUFFERS_DEVICES)
        return mt_fail(reading->error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                       "device %u: at most %d can be read", event->device, MT_BUFFERS_DEVICES);
    if (begins)
        return begin_buffer(reading, event);
    end_buffer(reading, event);
    return MT_OK;
}

/* Blocks that were never freed live to the end. */
static void end_all(struct reading *reading)
{
    for (size_t d = 0; d < MT_BUFFERS_DEVICES; d++) {
        for (size_t i = 0; i < reading->devices[d].count; i++)
            if (reading->devices[d].items[i].end == UINT64_MAX)
                reading->devices[d].items[i].end = reading->now + 1;
    }
}

enum mt_status mt_buffers_from_source(struct mt_source *source,
                                      struct mt_buffers devices[MT_BUFFERS_DEVICES],
                                      struct mt_error *error)
{
    struct reading reading = {
        .devices = devices, .end_at_request = !source->header.has_free_completed, .error = error};
    enum mt_status status = mt_heap_view_choose(source, error);

    if (status != MT_OK)
        return status;
    status = mt_source_each(source, read_event, &reading, error);
    end_all(&reading);
    for (size_t i = 0; i < MT_BUFFERS_DEVICES; i++)
        mt_map_release(&reading.live[i]);
    return status;
}

enum { MAX_DIGITS = 256, FEW_NUMBERS = 1000 };

static inline uint64_t key_of(const struct mt_keys *keys, uint32_t number)
{
    uint64_t key;

    memcpy(&key, (const unsigned char *)keys->first + number * keys->entry_bytes, sizeof key);
    return key;
}

/* Writes `from` to `to`, sorted by the digit at `shift` of each key. */
static void sort_by_digit(const struct mt_keys *keys, const uint32_t *from, uint32_t *to,
                          size_t count, unsigned shift, uint64_t mask)
{
    size_t starts[MAX_DIGITS] = {0}, sum = 0, i;

    for (i = 0; i < count; i++)
        starts[key_of(keys, from[i]) >> shift & mask]++;
    for (uint64_t digit = 0; digit <= mask; digit++) {
        sum += starts[digit];
        starts[digit] = sum - starts[digit];
    }
    for (i = 0; i < count; i++)
        to[starts[key_of(keys, from[i]) >> shift & mask]++] = from[i];
}

void mt_numbers_sort(struct mt_keys keys, uint32_t *numbers, size_t count)
{
    unsigned digit_bits = count > FEW_NUMBERS ? 8 : 4;
    uint64_t differing = 0, mask = (UINT64_C(1) << digit_bits) - 1;
    uint32_t *spare;
    bool ascending = true;

    for (size_t i = 1; i < count; i++) {
        uint64_t before = key_of(&keys, numbers[i - 1]), key = key_of(&keys, numbers[i]);
        ascending = ascending && before <= key;
        differing |= before ^ key;
    }
    if (ascending)
        return;
    spare = mt_memory_new(count * sizeof *spare);
    for (unsigned shift = 0; shift < 64; shift += digit_bits) { /* the lowest digit first */
        if (!(differing >> shift & mask))
            continue;
        sort_by_digit(&keys, numbers, spare, count, shift, mask);
        memcpy(numbers, spare, count * sizeof *numbers);
    }
    free(spare);
}

void mt_buffers_in_time(const struct mt_buffers *buffers, uint32_t **by_begin, uint32_t **by_end)
{
    static const struct mt_buffer none;
    const struct mt_buffer *items = buffers->count ? buffers->items : &none;

    *by_begin = mt_memory_new((buffers->count + 1) * sizeof **by_begin);
    *by_end = mt_memory_new((buffers->count + 1) * sizeof **by_end);
    for (uint32_t i = 0; i < buffers->count; i++)
        (*by_begin)[i] = (*by_end)[i] = i;
    mt_numbers_sort((struct mt_keys){&items->begin, sizeof *items}, *by_begin, buffers->count);
    mt_numbers_sort((struct mt_keys){&items->end, sizeof *items}, *by_end, buffers->count);
}

/* A section ends with the first free after an allocation. At equal times frees come first. */
static void fill_sections(const struct mt_buffers *buffers, struct mt_instance *instance)
{
    size_t count = buffers->count, begun = 0, ended = 0;
    uint32_t *by_begin, *by_end, section = 0;
    uint64_t load = 0;
    bool freed = false;

    mt_buffers_in_time(buffers, &by_begin, &by_end);
    while (ended < count) {
        if (begun < count &&
            buffers->items[by_begin[begun]].begin < buffers->items[by_end[ended]].end) {
            struct mt_item *item = &instance->items[by_begin[begun++]];
            section += freed;
            freed = false;
            item->first = section;
            load += item->bytes;
            instance->load[section] = load;
        } else {
            struct mt_item *item = &instance->items[by_end[ended++]];
            freed = true;
            item->last = section + 1;
            load -= item->bytes;
        }
    }
    instance->section_count = count ? section + 1 : 0;
    free(by_begin);
    free(by_end);
}

static void find_bound(struct mt_instance *instance)
{
    instance->bound = 0;
    for (uint32_t s = 0; s < instance->section_count; s++)
        if (instance->load[s] > instance->bound)
            instance->bound = instance->load[s];
}

void mt_instance_build(const struct mt_buffers *buffers, struct mt_instance *instance)
{
    memset(instance, 0, sizeof *instance);
    instance->items = mt_memory_zeroed(buffers->count + 1, sizeof *instance->items);
    instance->load = mt_memory_zeroed(buffers->count + 1, sizeof *instance->load);
    instance->count = (uint32_t)buffers->count;
    for (uint32_t i = 0; i < instance->count; i++) {
        const struct mt_buffer *buffer = &buffers->items[i];
        instance->items[i] = (struct mt_item){
            .bytes = buffer->bytes, .duration = buffer->end - buffer->begin, .origin = i};
    }
    fill_sections(buffers, instance);
    find_bound(instance);
}

void mt_instance_release(struct mt_instance *instance)
{
    free(instance->items);
    free(instance->load);
    memset(instance, 0, sizeof *instance);
}

/* Which part each section belongs to; returns the number of parts. */
static uint32_t number_parts(const struct mt_instance *whole, uint32_t *part_of)
{
    uint32_t *reach = part_of, part = 0, end = 0;

    for (uint32_t i = 0; i < whole->count; i++) {
        const struct mt_item *item = &whole->items[i];
        if (reach[item->first] < item->last)
            reach[item->first] = item->last;
    }
    for (uint32_t s = 0; s < whole->section_count; s++) {
        if (s > 0 && s >= end)
            part++;
        end = reach[s] > end ? reach[s] : end;
        part_of[s] = part;
    }
    return whole->section_count ? part + 1 : 0;
}

/* Sorts the items by part, those of a part by number, with the sections of the part. */
static void gather_parts(struct mt_instance *whole, const uint32_t *part_of, struct mt_part *parts,
                         uint32_t count)
{
    struct mt_item *items = mt_memory_new(((size_t)whole->count + 1) * sizeof *items);
    uint32_t first_item = 0;

    for (uint32_t s = whole->section_count; s-- > 0;)
        parts[part_of[s]].first_section = s;
    for (uint32_t i = 0; i < whole->count; i++)
        parts[part_of[whole->items[i].first]].first_item++;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t of_part = parts[i].first_item;
        parts[i].first_item = first_item;
        first_item += of_part;
    }
    for (uint32_t i = 0; i < whole->count; i++) {
        struct mt_part *part = &parts[part_of[whole->items[i].first]];
        struct mt_item *item = &items[part->first_item++];
        *item = whole->items[i];
        item->first -= part->first_section;
        item->last -= part->first_section;
    }
    free(whole->items);
    whole->items = items;
}

void mt_instance_split(struct mt_instance *whole, struct mt_part **parts, uint32_t *count)
{
    uint32_t *part_of = mt_memory_zeroed((size_t)whole->section_count + 1, sizeof *part_of);

    *count = number_parts(whole, part_of);
    *parts = mt_memory_zeroed((size_t)*count + 1, sizeof **parts);
    gather_parts(whole, part_of, *parts, *count);
    free(part_of);
    for (uint32_t i = *count; i > 0; i--) /* each stopped where the next one begins */
        (*parts)[i] = (struct mt_part){(*parts)[i - 1].first_item, (*parts)[i].first_section};
    (*parts)[0].first_item = 0;
    (*parts)[*count].first_section = whole->section_count;
}

struct mt_instance mt_instance_part(const struct mt_instance *whole, const struct mt_part *part)
{
    struct mt_instance instance = {.items = whole->items + part->first_item,
                                   .load = whole->load + part->first_section,
                                   .count = part[1].first_item - part->first_item,
                                   .section_count = part[1].first_section - part->first_section};

    find_bound(&instance);
    return instance;
}
