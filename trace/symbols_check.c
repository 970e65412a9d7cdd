/* Whole-structure check of the symbol tables. */
#include "check.h"
#include "event.h"
#include "symbols.h"

static bool is_string(const struct mt_symbols *symbols, uint32_t id)
{
    return id == MT_NO_ID || id < symbols->strings.count;
}

static bool frames_are_sound(const struct mt_symbols *symbols, const char **why)
{
    uint32_t id;

    MT_SOUND(why, symbols->frame_ids.count == symbols->frame_count);
    for (id = 0; id < symbols->frame_count; id++) {
        MT_SOUND(why, is_string(symbols, symbols->frames[id].function));
        MT_SOUND(why, is_string(symbols, symbols->frames[id].file));
    }
    return mt_map_is_sound(&symbols->frame_ids, why);
}

static bool stacks_are_sound(const struct mt_symbols *symbols, const char **why)
{
    uint32_t id;

    MT_SOUND(why, symbols->stack_ids.count == symbols->stack_count);
    for (id = 0; id < symbols->stack_count; id++) {
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
    uint32_t id;

    MT_SOUND(why, symbols->stream_ids.count == symbols->stream_count);
    for (id = 0; id < symbols->stream_count; id++)
        MT_SOUND(why, mt_map_get(&symbols->stream_ids, symbols->streams[id].handle) == id);
    for (id = 0; id < symbols->device_count; id++)
        MT_SOUND(why, is_string(symbols, symbols->devices[id].name));
    for (id = 0; id < symbols->heap_count; id++)
        MT_SOUND(why, is_string(symbols, symbols->heaps[id].name));
    for (id = 0; id < symbols->thread_count; id++)
        MT_SOUND(why, is_string(symbols, symbols->threads[id].name));
    for (id = 0; id < symbols->end_count; id++)
        MT_SOUND(why, symbols->ends[id].heap < symbols->heap_count);
    return true;
}

bool mt_symbols_is_sound(const struct mt_symbols *symbols, const char **why)
{
    return mt_strings_is_sound(&symbols->strings, why) && frames_are_sound(symbols, why) &&
           stacks_are_sound(symbols, why) && small_tables_are_sound(symbols, why);
}
