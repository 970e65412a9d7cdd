/* Sets of buffers: from a run, from and to CSV, and as an instance of dynamic storage allocation,
 * in which time consists of the sections that matter.
 *
 * A set of buffers with sizes and times: from a run, and from and to CSV. */
#include <stdlib.h>
#include <string.h>

#include "buffers.h"
#include "grow.h"
#include "map.h"
#include "process_memory.h"
#include "sorted.h"
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
    const char *end;

    if (*at >= length)
        return false;
    line->text = text + *at;
    end = memchr(line->text, '\n', length - *at);
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
    size_t i;

    for (i = 0; names[i].name; i++)
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
    size_t i;

    *value = 0;
    for (i = 0; i < field.length; i++)
        if (field.text[i] < '0' || field.text[i] > '9' ||
            __builtin_mul_overflow(*value, (uint64_t)10, value) ||
            __builtin_add_overflow(*value, (uint64_t)(field.text[i] - '0'), value))
            return false;
    return field.length > 0;
}

static bool read_buffer(struct line line, const struct columns *columns, struct mt_buffer *buffer)
{
    uint64_t values[WANTED_COUNT] = {0};
    size_t i;

    for (i = 0; i < columns->count; i++) {
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
    size_t at = 0, start;
    enum mt_status status = MT_OK;

    if (!next_line(text, length, &at, &line) || !read_columns(line, &columns))
        return mt_fail(error, MT_ERR_FORMAT, 0, "no columns lower, upper and size");
    for (start = at; status == MT_OK && next_line(text, length, &at, &line); start = at) {
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

struct live_buffers {
    struct mt_map numbers; /* address -> number of the buffer in its device */
};

struct reading {
    struct mt_buffers *devices;
    struct live_buffers live[MT_BUFFERS_DEVICES];
    uint64_t now;
    bool end_at_request; /* the trace has no completions of frees */
    struct mt_error *error;
};

static void end_buffer(struct reading *reading, const struct mt_event *event)
{
    uint32_t number = mt_map_take(&reading->live[event->device].numbers, event->addr);

    if (number != MT_MAP_NONE)
        reading->devices[event->device].items[number].end = reading->now;
}

static enum mt_status begin_buffer(struct reading *reading, const struct mt_event *event)
{
    struct mt_error *error = reading->error;
    struct mt_buffers *buffers = &reading->devices[event->device];
    struct mt_buffer buffer = {.begin = reading->now, .end = UINT64_MAX};
    size_t before = buffers->count;
    enum mt_status status;

    if (event->size_bytes > END_OF_TOTAL)
        return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "an allocation of more than 4 EiB");
    buffer.bytes = mt_round_up(event->size_bytes, ROUND_BYTES);
    end_buffer(reading, event); /* its free is missing */
    status = mt_buffers_add(buffers, &buffer, error);
    if (status != MT_OK || buffers->count == before)
        return status;
    mt_map_put(&reading->live[event->device].numbers, event->addr, (uint32_t)before);
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
    else {
        end_buffer(reading, event);
        return MT_OK;
    }
}

/* Blocks that were never freed live to the end. */
static void end_all(struct reading *reading)
{
    size_t d, i;

    for (d = 0; d < MT_BUFFERS_DEVICES; d++) {
        for (i = 0; i < reading->devices[d].count; i++)
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
    size_t i;

    if (status != MT_OK)
        return status;
    status = mt_source_each(source, read_event, &reading, error);
    end_all(&reading);
    for (i = 0; i < MT_BUFFERS_DEVICES; i++)
        mt_map_release(&reading.live[i].numbers);
    return status;
}

struct moment {
    uint64_t time;
    uint32_t buffer;
    bool begins;
};

/* By time; at equal times frees come before allocations. */
MT_DEFINE_ORDER(compare_moments, struct moment,
                MT_ASCENDING(time) || MT_ASCENDING(begins) || MT_ASCENDING(buffer))

static void fill_moments(const struct mt_buffers *buffers, struct moment *moments)
{
    uint32_t i;

    for (i = 0; i < buffers->count; i++) {
        moments[2 * i] = (struct moment){buffers->items[i].begin, i, true};
        moments[2 * i + 1] = (struct moment){buffers->items[i].end, i, false};
    }
    qsort(moments, 2 * buffers->count, sizeof *moments, compare_moments);
}

/* A section ends with the first free after an allocation. */
static void fill_sections(const struct moment *moments, size_t count, struct mt_instance *instance)
{
    uint64_t load = 0;
    uint32_t section = 0;
    bool freed = false;
    size_t i;

    for (i = 0; i < count; i++) {
        struct mt_item *item = &instance->items[moments[i].buffer];
        if (moments[i].begins) {
            section += freed;
            freed = false;
            item->first = section;
            load += item->bytes;
            instance->load[section] = load;
        } else {
            freed = true;
            item->last = section + 1;
            load -= item->bytes;
        }
    }
    instance->section_count = count ? section + 1 : 0;
}

static void find_bound(struct mt_instance *instance)
{
    uint32_t s;

    instance->bound = 0;
    for (s = 0; s < instance->section_count; s++)
        if (instance->load[s] > instance->bound)
            instance->bound = instance->load[s];
}

static void instance_reserve(struct mt_instance *instance, size_t items, size_t sections)
{
    memset(instance, 0, sizeof *instance);
    instance->items = mt_memory_zeroed(items + 1, sizeof *instance->items);
    instance->load = mt_memory_zeroed(sections + 1, sizeof *instance->load);
}

void mt_instance_build(const struct mt_buffers *buffers, struct mt_instance *instance)
{
    struct moment *moments = mt_memory_zeroed(2 * buffers->count + 1, sizeof *moments);
    uint32_t i;

    instance_reserve(instance, buffers->count, buffers->count);
    instance->count = (uint32_t)buffers->count;
    for (i = 0; i < instance->count; i++) {
        const struct mt_buffer *buffer = &buffers->items[i];
        instance->items[i] = (struct mt_item){
            .bytes = buffer->bytes, .duration = buffer->end - buffer->begin, .origin = i};
    }
    fill_moments(buffers, moments);
    fill_sections(moments, 2 * buffers->count, instance);
    find_bound(instance);
    free(moments);
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
    uint32_t *reach = part_of, part = 0, end = 0, s, i;

    for (i = 0; i < whole->count; i++) {
        const struct mt_item *item = &whole->items[i];
        if (reach[item->first] < item->last)
            reach[item->first] = item->last;
    }
    for (s = 0; s < whole->section_count; s++) {
        if (s > 0 && s >= end)
            part++;
        end = reach[s] > end ? reach[s] : end;
        part_of[s] = part;
    }
    return whole->section_count ? part + 1 : 0;
}

static void reserve_parts(const struct mt_instance *whole, const uint32_t *part_of,
                          struct mt_instance *parts, uint32_t count)
{
    uint32_t *items = mt_memory_zeroed(count + 1, sizeof *items),
             *sections = mt_memory_zeroed(count + 1, sizeof *items);
    uint32_t i, s;

    for (i = 0; i < whole->count; i++)
        items[part_of[whole->items[i].first]]++;
    for (s = 0; s < whole->section_count; s++)
        sections[part_of[s]]++;
    for (i = 0; i < count; i++)
        instance_reserve(&parts[i], items[i], sections[i]);
    free(items);
    free(sections);
}

static void fill_parts(const struct mt_instance *whole, const uint32_t *part_of,
                       uint32_t *first_section, struct mt_instance *parts, uint32_t count)
{
    uint32_t i, s;

    for (s = whole->section_count; s-- > 0;)
        first_section[part_of[s]] = s;
    for (s = 0; s < whole->section_count; s++) {
        struct mt_instance *part = &parts[part_of[s]];
        part->load[part->section_count++] = whole->load[s];
    }
    for (i = 0; i < whole->count; i++) {
        uint32_t number = part_of[whole->items[i].first];
        struct mt_item *item = &parts[number].items[parts[number].count++];
        *item = whole->items[i];
        item->first -= first_section[number];
        item->last -= first_section[number];
        item->origin = i;
    }
    for (i = 0; i < count; i++)
        find_bound(&parts[i]);
}

void mt_instance_split(const struct mt_instance *whole, struct mt_instance **parts, uint32_t *count)
{
    uint32_t *part_of = mt_memory_zeroed((size_t)whole->section_count + 1, sizeof *part_of), *first;

    *count = number_parts(whole, part_of);
    *parts = mt_memory_zeroed((size_t)*count + 1, sizeof **parts);
    first = mt_memory_zeroed((size_t)*count + 1, sizeof *first);
    reserve_parts(whole, part_of, *parts, *count);
    fill_parts(whole, part_of, first, *parts, *count);
    free(part_of);
    free(first);
}

void mt_instances_release(struct mt_instance *parts, uint32_t count)
{
    uint32_t i;

    for (i = 0; i < count; i++)
        mt_instance_release(&parts[i]);
    free(parts);
}
