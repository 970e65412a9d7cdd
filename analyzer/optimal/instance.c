#include "instance.h"
#include "process_memory.h"

#include <stdlib.h>
#include <string.h>

struct moment {
    uint64_t time;
    uint32_t buffer;
    bool begins;
};

/* By time; at equal times frees come before allocations. */
static int compare_moments(const void *left, const void *right)
{
    const struct moment *a = left, *b = right;

    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    if (a->begins != b->begins)
        return a->begins ? 1 : -1;
    return a->buffer < b->buffer ? -1 : a->buffer > b->buffer;
}

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
    for (s = 0; s < instance->section_count; s++) {
        if (instance->load[s] > instance->bound)
            instance->bound = instance->load[s];
    }
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
    for (i = 0; i < count; i++) {
        instance_reserve(&parts[i], items[i], sections[i]);
    }
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
