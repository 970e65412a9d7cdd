#include "fill_tags.h"

#include <stdlib.h>
#include <string.h>

#include "map.h"
#include "recorded_roles.h"

static int by_bytes(const void *a, const void *b)
{
    const struct mt_tag_use *x = a, *y = b;

    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return strcmp(x->tag, y->tag);
}

static uint32_t count_tagged(const struct mt_instant *peak)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < peak->holding_count; i++)
        count += peak->holdings[i].tag != MT_NO_ID;
    return count;
}

static void use_of(struct mt_map *slots, const struct mt_symbols *symbols, uint32_t tag,
                   struct mt_device_report *out, uint32_t *slot)
{
    struct mt_tag_use use = {.tag = mt_symbols_text(symbols, tag), .role = MT_ROLE_OTHER};

    *slot = mt_map_get(slots, tag);
    if (*slot != MT_MAP_NONE)
        return;
    use.names_role = mt_recorded_role(symbols, tag, &use.role);
    *slot = out->peak_tag_count++;
    out->peak_tags[*slot] = use;
    mt_map_put(slots, tag, *slot);
}

void mt_fill_tags(struct mt_arena *arena, const struct mt_symbols *symbols,
                  const struct mt_instant *peak, struct mt_device_report *out)
{
    uint32_t tagged = count_tagged(peak), slot;
    struct mt_map slots = {0};

    if (!tagged)
        return;
    out->peak_tags = mt_arena_array(arena, tagged, sizeof *out->peak_tags);
    for (uint32_t i = 0; i < peak->holding_count; i++) {
        const struct mt_holding *holding = &peak->holdings[i];

        if (holding->tag == MT_NO_ID)
            continue;
        use_of(&slots, symbols, holding->tag, out, &slot);
        out->peak_tags[slot].bytes += holding->bytes;
        out->peak_tags[slot].requested_bytes += holding->requested_bytes;
        out->peak_tags[slot].blocks += holding->blocks;
    }
    qsort(out->peak_tags, out->peak_tag_count, sizeof *out->peak_tags, by_bytes);
    mt_map_release(&slots);
}
