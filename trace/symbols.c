/* The symbol tables: adding, copying and checking them. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "event.h"
#include "grow.h"
#include "map.h"
#include "redaction.h"
#include "status.h"
#include "symbols.h"
#include "util.h"

enum { FRAMES, STACKS, STREAMS, POOLS, DEVICES, HEAPS, THREADS, ENDS };
enum { MAX_DEVICES = 1024, MAX_SMALL_IDS = UINT16_MAX };

/* Makes room for one more entry of the table behind `array`. */
static enum mt_status make_room(struct mt_symbols *symbols, int table, void *array, uint32_t count,
                                size_t entry_bytes)
{
    if (count >= MT_NO_ID / 2)
        return MT_ERR_MEMORY;
    return mt_grow(array, &symbols->capacity[table], (size_t)count + 1, entry_bytes);
}

enum mt_status mt_symbols_string(struct mt_symbols *symbols, const char *text, size_t length,
                                 uint32_t *id)
{
    return mt_strings_intern(&symbols->strings, text, length, id);
}

/* A map finds frames by a hash of the triple; unequal frames with equal hashes (2^-64) use the next
 * key. */
enum mt_status mt_symbols_frame(struct mt_symbols *symbols, uint32_t function, uint32_t file,
                                uint32_t line, uint32_t *id)
{
    uint64_t key = mt_hash_u64(((uint64_t)function << 32 | file) ^ mt_hash_u64(line));

    for (;; key++) {
        uint32_t found = mt_map_get(&symbols->frame_ids, key);
        if (found == MT_MAP_NONE)
            break;
        MT_ASSERT(found < symbols->frame_count);
        const struct mt_frame *frame = &symbols->frames[found];
        if (frame->function == function && frame->file == file && frame->line == line) {
            *id = found;
            return MT_OK;
        }
    }
    enum mt_status status =
        make_room(symbols, FRAMES, &symbols->frames, symbols->frame_count, sizeof *symbols->frames);
    if (status != MT_OK)
        return status;
    status = mt_map_set(&symbols->frame_ids, key, symbols->frame_count);
    if (status != MT_OK)
        return status;
    symbols->frames[symbols->frame_count] = (struct mt_frame){function, file, line};
    *id = symbols->frame_count++;
    return MT_OK;
}

enum mt_status mt_symbols_stack(struct mt_symbols *symbols, uint32_t parent, uint32_t frame,
                                uint32_t *id)
{
    uint64_t key = (uint64_t)parent << 32 | frame;
    uint32_t found = mt_map_get(&symbols->stack_ids, key);

    MT_ASSERT(parent == MT_NO_ID || parent < symbols->stack_count);
    MT_ASSERT(frame < symbols->frame_count);
    if (parent != MT_NO_ID && symbols->stacks[parent].depth == MT_MAX_STACK_DEPTH) {
        symbols->frames_cut++;
        *id = parent;
        return MT_OK;
    }
    if (found != MT_MAP_NONE) {
        MT_ASSERT(found < symbols->stack_count && symbols->stacks[found].frame == frame);
        *id = found;
        return MT_OK;
    }
    enum mt_status status =
        make_room(symbols, STACKS, &symbols->stacks, symbols->stack_count, sizeof *symbols->stacks);
    if (status != MT_OK)
        return status;
    status = mt_map_set(&symbols->stack_ids, key, symbols->stack_count);
    if (status != MT_OK)
        return status;
    symbols->stacks[symbols->stack_count] = (struct mt_stack){
        parent, frame, parent == MT_NO_ID ? 1 : symbols->stacks[parent].depth + 1};
    *id = symbols->stack_count++;
    return MT_OK;
}

enum mt_status mt_symbols_stream(struct mt_symbols *symbols, uint64_t handle, uint32_t *id)
{
    uint32_t found = mt_map_get(&symbols->stream_ids, handle);

    if (found != MT_MAP_NONE) {
        *id = found;
        return MT_OK;
    }
    enum mt_status status = make_room(symbols, STREAMS, &symbols->streams, symbols->stream_count,
                                      sizeof *symbols->streams);
    if (status != MT_OK)
        return status;
    status = mt_map_set(&symbols->stream_ids, handle, symbols->stream_count);
    if (status != MT_OK)
        return status;
    symbols->streams[symbols->stream_count].handle = handle;
    *id = symbols->stream_count++;
    return MT_OK;
}

enum mt_status mt_symbols_pool(struct mt_symbols *symbols, uint64_t a, uint64_t b, uint32_t *id)
{
    for (uint32_t i = 0; i < symbols->pool_count; i++) {
        if (symbols->pools[i].id[0] == a && symbols->pools[i].id[1] == b) {
            *id = i;
            return MT_OK;
        }
    }
    if (symbols->pool_count == MAX_SMALL_IDS)
        return MT_ERR_UNSUPPORTED;
    enum mt_status status =
        make_room(symbols, POOLS, &symbols->pools, symbols->pool_count, sizeof *symbols->pools);
    if (status != MT_OK)
        return status;
    symbols->pools[symbols->pool_count].id[0] = a;
    symbols->pools[symbols->pool_count].id[1] = b;
    *id = symbols->pool_count++;
    return MT_OK;
}

enum mt_status mt_symbols_heap(struct mt_symbols *symbols, uint32_t name, uint32_t *id)
{
    for (uint32_t i = 0; i < symbols->heap_count; i++) {
        if (symbols->heaps[i].name == name) {
            *id = i;
            return MT_OK;
        }
    }
    if (symbols->heap_count == MAX_SMALL_IDS)
        return MT_ERR_UNSUPPORTED;
    enum mt_status status =
        make_room(symbols, HEAPS, &symbols->heaps, symbols->heap_count, sizeof *symbols->heaps);
    if (status != MT_OK)
        return status;
    symbols->heaps[symbols->heap_count].name = name;
    *id = symbols->heap_count++;
    return MT_OK;
}

enum mt_status mt_symbols_thread(struct mt_symbols *symbols, uint32_t name, uint64_t os_id,
                                 uint32_t *id)
{
    if (symbols->thread_count == MAX_SMALL_IDS)
        return MT_ERR_UNSUPPORTED;
    enum mt_status status = make_room(symbols, THREADS, &symbols->threads, symbols->thread_count,
                                      sizeof *symbols->threads);
    if (status != MT_OK)
        return status;
    symbols->threads[symbols->thread_count] = (struct mt_thread_info){name, os_id};
    *id = symbols->thread_count++;
    return MT_OK;
}

enum mt_status mt_symbols_end(struct mt_symbols *symbols, const struct mt_segment_end *end,
                              uint32_t *id)
{
    enum mt_status status =
        make_room(symbols, ENDS, &symbols->ends, symbols->end_count, sizeof *symbols->ends);

    if (status != MT_OK)
        return status;
    symbols->ends[symbols->end_count] = *end;
    *id = symbols->end_count++;
    return MT_OK;
}

enum mt_status mt_symbols_device(struct mt_symbols *symbols, uint32_t index, uint32_t name,
                                 uint64_t total_memory_bytes)
{
    if (index >= MAX_DEVICES)
        return MT_ERR_UNSUPPORTED;
    while (symbols->device_count <= index) {
        enum mt_status status = make_room(symbols, DEVICES, &symbols->devices,
                                          symbols->device_count, sizeof *symbols->devices);
        if (status != MT_OK)
            return status;
        symbols->devices[symbols->device_count++] = (struct mt_device_info){MT_NO_ID, 0};
    }
    if (name != MT_NO_ID)
        symbols->devices[index].name = name;
    if (total_memory_bytes)
        symbols->devices[index].total_memory_bytes = total_memory_bytes;
    return MT_OK;
}

const char *mt_symbols_text(const struct mt_symbols *symbols, uint32_t string)
{
    return string < symbols->strings.count ? symbols->strings.texts[string] : "?";
}

enum mt_status mt_symbols_init(struct mt_symbols *symbols)
{
    enum mt_status status;
    uint32_t empty, driver, id;

    memset(symbols, 0, sizeof *symbols);
    if ((status = mt_symbols_string(symbols, "", 0, &empty)) != MT_OK ||
        (status = mt_symbols_string(symbols, "driver", 6, &driver)) != MT_OK ||
        (status = mt_symbols_stream(symbols, 0, &id)) != MT_OK ||
        (status = mt_symbols_pool(symbols, 0, 0, &id)) != MT_OK ||
        (status = mt_symbols_heap(symbols, driver, &id)) != MT_OK)
        return status;
    return mt_symbols_thread(symbols, MT_NO_ID, 0, &id);
}

void mt_symbols_release(struct mt_symbols *symbols)
{
    mt_strings_release(&symbols->strings);
    free(symbols->frames);
    free(symbols->stacks);
    free(symbols->streams);
    free(symbols->pools);
    free(symbols->devices);
    free(symbols->heaps);
    free(symbols->threads);
    free(symbols->ends);
    mt_map_release(&symbols->frame_ids);
    mt_map_release(&symbols->stack_ids);
    mt_map_release(&symbols->stream_ids);
    memset(symbols, 0, sizeof *symbols);
}

enum mt_status mt_symbols_copy_string(const struct mt_symbols_copy *copy, enum mt_text_kind kind,
                                      uint32_t string, uint32_t *id)
{
    const struct mt_strings *strings = &copy->from->strings;
    struct mt_buf text = {0};

    *id = MT_NO_ID;
    if (string >= strings->count)
        return MT_OK;
    if (!copy->redaction)
        return mt_symbols_string(copy->to, strings->texts[string], strings->lengths[string], id);
    mt_redact(copy->redaction, kind, strings->texts[string], strings->lengths[string], &text);
    enum mt_status status =
        text.failed ? MT_ERR_MEMORY
                    : mt_symbols_string(copy->to, text.data ? text.data : "", text.length, id);
    mt_buf_release(&text);
    return status;
}

/* Events refer to small tables by id, so the ids must not change. */
static enum mt_status same_id(enum mt_status status, const uint32_t *id, uint32_t wanted)
{
    return status == MT_OK && *id != wanted ? MT_ERR_FORMAT : status;
}

static enum mt_status copy_threads(const struct mt_symbols_copy *copy)
{
    const struct mt_symbols *from = copy->from;
    enum mt_status status = MT_OK;
    uint32_t name, id;

    for (uint32_t i = 0; i < from->thread_count && status == MT_OK; i++) {
        const struct mt_thread_info *thread = &from->threads[i];
        if (i > 0 && i < copy->to->thread_count)
            continue; /* only thread 0 gets its description later */
        status = mt_symbols_copy_string(copy, MT_TEXT_THREAD, thread->name, &name);
        if (status == MT_OK && i == copy->to->thread_count)
            status = same_id(mt_symbols_thread(copy->to, name, thread->os_id, &id), &id, i);
        if (status == MT_OK)
            copy->to->threads[i] = (struct mt_thread_info){name, thread->os_id};
    }
    return status;
}

static enum mt_status copy_devices(const struct mt_symbols_copy *copy)
{
    const struct mt_symbols *from = copy->from;
    enum mt_status status = MT_OK;
    uint32_t name;

    for (uint32_t i = 0; i < from->device_count && status == MT_OK; i++) {
        status = mt_symbols_copy_string(copy, MT_TEXT_WORDS, from->devices[i].name, &name);
        if (status == MT_OK)
            status = mt_symbols_device(copy->to, i, name, from->devices[i].total_memory_bytes);
    }
    return status;
}

/* Two heaps of one name would be one heap, and redaction can make names equal. */
static enum mt_status add_heap(const struct mt_symbols_copy *copy, uint32_t name, uint32_t wanted)
{
    struct mt_buf text = {0};
    uint32_t id;
    enum mt_status status = mt_symbols_heap(copy->to, name, &id);

    if (status != MT_OK || id == wanted)
        return status;
    mt_buf_printf(&text, "%s#%u", mt_symbols_text(copy->to, name), wanted);
    status =
        text.failed ? MT_ERR_MEMORY : mt_symbols_string(copy->to, text.data, text.length, &name);
    mt_buf_release(&text);
    return status == MT_OK ? same_id(mt_symbols_heap(copy->to, name, &id), &id, wanted) : status;
}

static enum mt_status copy_heaps(const struct mt_symbols_copy *copy)
{
    const struct mt_symbols *from = copy->from;
    enum mt_status status = MT_OK;
    uint32_t name;

    for (uint32_t i = copy->to->heap_count; i < from->heap_count && status == MT_OK; i++) {
        status = mt_symbols_copy_string(copy, MT_TEXT_WORDS, from->heaps[i].name, &name);
        if (status == MT_OK)
            status = add_heap(copy, name, i);
    }
    return status;
}

enum mt_status mt_symbols_copy_tables(const struct mt_symbols_copy *copy)
{
    const struct mt_symbols *from = copy->from;
    enum mt_status status = copy_threads(copy);
    uint32_t id;

    copy->to->frames_cut = mt_max_u64(copy->to->frames_cut, from->frames_cut);
    if (status == MT_OK)
        status = copy_devices(copy);
    if (status == MT_OK)
        status = copy_heaps(copy);
    for (uint32_t i = copy->to->end_count; i < from->end_count && status == MT_OK; i++)
        status = mt_symbols_end(copy->to, &from->ends[i], &id);
    for (uint32_t i = copy->to->stream_count; i < from->stream_count && status == MT_OK; i++)
        status = same_id(mt_symbols_stream(copy->to, from->streams[i].handle, &id), &id, i);
    for (uint32_t i = copy->to->pool_count; i < from->pool_count && status == MT_OK; i++)
        status = same_id(mt_symbols_pool(copy->to, from->pools[i].id[0], from->pools[i].id[1], &id),
                         &id, i);
    return status;
}

/* Whole-structure check of the symbol tables. */

static bool is_string(const struct mt_symbols *symbols, uint32_t id)
{
    return id == MT_NO_ID || id < symbols->strings.count;
}

static bool frames_are_sound(const struct mt_symbols *symbols, const char **why)
{
    MT_SOUND(why, symbols->frame_ids.count == symbols->frame_count);
    for (uint32_t id = 0; id < symbols->frame_count; id++) {
        MT_SOUND(why, is_string(symbols, symbols->frames[id].function));
        MT_SOUND(why, is_string(symbols, symbols->frames[id].file));
    }
    return mt_map_is_sound(&symbols->frame_ids, why);
}

static bool stacks_are_sound(const struct mt_symbols *symbols, const char **why)
{
    MT_SOUND(why, symbols->stack_ids.count == symbols->stack_count);
    for (uint32_t id = 0; id < symbols->stack_count; id++) {
        const struct mt_stack *stack = &symbols->stacks[id];
        MT_SOUND(why, stack->frame < symbols->frame_count);
        MT_SOUND(why, stack->parent == MT_NO_ID || stack->parent < id);
        MT_SOUND(why,
                 stack->depth ==
                     (stack->parent == MT_NO_ID ? 1 : symbols->stacks[stack->parent].depth + 1));
        MT_SOUND(why, mt_map_get(&symbols->stack_ids,
                                 (uint64_t)stack->parent << 32 | stack->frame) == id);
    }
    return mt_map_is_sound(&symbols->stack_ids, why);
}

static bool small_tables_are_sound(const struct mt_symbols *symbols, const char **why)
{
    MT_SOUND(why, symbols->stream_ids.count == symbols->stream_count);
    for (uint32_t id = 0; id < symbols->stream_count; id++)
        MT_SOUND(why, mt_map_get(&symbols->stream_ids, symbols->streams[id].handle) == id);
    for (uint32_t id = 0; id < symbols->device_count; id++)
        MT_SOUND(why, is_string(symbols, symbols->devices[id].name));
    for (uint32_t id = 0; id < symbols->heap_count; id++)
        MT_SOUND(why, is_string(symbols, symbols->heaps[id].name));
    for (uint32_t id = 0; id < symbols->thread_count; id++)
        MT_SOUND(why, is_string(symbols, symbols->threads[id].name));
    for (uint32_t id = 0; id < symbols->end_count; id++)
        MT_SOUND(why, symbols->ends[id].heap < symbols->heap_count);
    return true;
}

bool mt_symbols_is_sound(const struct mt_symbols *symbols, const char **why)
{
    return mt_strings_is_sound(&symbols->strings, why) && frames_are_sound(symbols, why) &&
           stacks_are_sound(symbols, why) && small_tables_are_sound(symbols, why);
}
