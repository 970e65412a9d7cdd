/* Whole check of an encoded block: decoding it returns the original events. */
#include <stdlib.h>

#include "check.h"
#include "codec.h"

/* Ids in the file equal those of the symbols, as for a reader that lost nothing. */
static bool all_defined(struct mt_ids *ids, const struct mt_symbols *symbols)
{
    const uint32_t counts[MT_TABLE_COUNT] = {
        [MT_TABLE_STRINGS] = symbols->strings.count, [MT_TABLE_FRAMES] = symbols->frame_count,
        [MT_TABLE_STACKS] = symbols->stack_count,    [MT_TABLE_STREAMS] = symbols->stream_count,
        [MT_TABLE_POOLS] = symbols->pool_count,      [MT_TABLE_HEAPS] = symbols->heap_count,
        [MT_TABLE_THREADS] = symbols->thread_count,
    };

    mt_ids_init(ids, UINT64_MAX);
    for (uint32_t table = 0; table < MT_TABLE_COUNT; table++) {
        struct mt_id_map *map = &ids->map[table];
        if (!counts[table])
            continue;
        map->ids = malloc(counts[table] * sizeof *map->ids);
        if (!map->ids)
            return false;
        for (uint32_t id = 0; id < counts[table]; id++)
            map->ids[id] = id;
        map->capacity = map->count = counts[table];
    }
    return true;
}

/* The decoder adds devices that the symbols lack; the borrowed symbols must not change. */
static bool names_known_devices(const struct mt_symbols *symbols, const struct mt_event *events,
                                size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (events[i].device >= symbols->device_count)
            return false;
    return true;
}

static bool is_same(const struct mt_event *got, const struct mt_event *event, const char **why)
{
    MT_SOUND(why, got->seq == event->seq);
    MT_SOUND(why, got->t_ns == event->t_ns);
    MT_SOUND(why, got->kind == event->kind && got->flags == event->flags);
    MT_SOUND(why, got->addr == event->addr);
    MT_SOUND(why, got->size_bytes == event->size_bytes);
    MT_SOUND(why, got->aux_bytes == event->aux_bytes);
    MT_SOUND(why, got->stack == event->stack);
    MT_SOUND(why, got->name == event->name);
    MT_SOUND(why, got->stream == event->stream && got->pool == event->pool);
    MT_SOUND(why, got->thread == event->thread && got->device == event->device);
    MT_SOUND(why, got->heap == event->heap);
    return true;
}

static bool decodes_to(struct mt_decoder *decoder, const struct mt_event_block *block,
                       struct mt_ids *ids, const struct mt_symbols *symbols,
                       const struct mt_event *events, size_t count, const char **why)
{
    struct mt_symbols borrowed = *symbols; /* all ids are known: nothing is added to them */
    struct mt_decoded decoded;
    enum mt_status status = mt_event_block_decode(decoder, block, ids, &borrowed, &decoded, why);

    if (status != MT_OK)
        return status == MT_ERR_MEMORY;
    MT_SOUND(why, decoded.invalid == 0);
    if (decoded.unknown) /* kinds of a later version, which the decoder drops */
        return true;
    MT_SOUND(why, decoded.count == count);
    for (size_t i = 0; i < count; i++)
        if (!is_same(&decoded.events[i], &events[i], why))
            return false;
    return true;
}

bool mt_block_holds(const struct mt_buf *bytes, size_t start, const struct mt_symbols *symbols,
                    const struct mt_event *events, size_t count, const char **why)
{
    const uint8_t *raw = (const uint8_t *)bytes->data + start;
    struct mt_decoder *decoder = mt_decoder_new();
    struct mt_event_block block;
    struct mt_ids ids = {0};
    bool holds = true;

    if (mt_event_block_parse(raw, bytes->length - start, &block, why) != MT_OK)
        holds = false;
    else if (decoder && all_defined(&ids, symbols) && names_known_devices(symbols, events, count))
        holds = decodes_to(decoder, &block, &ids, symbols, events, count, why);
    mt_ids_release(&ids);
    mt_decoder_free(decoder);
    return holds;
}
