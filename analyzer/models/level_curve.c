#include "level_curve.h"

#include "util.h"

#include <string.h>

void mt_level_curve_init(struct mt_level_curve *curve, struct mt_arena *arena, uint64_t begin,
                         uint64_t end, uint32_t bins)
{
    memset(curve, 0, sizeof *curve);
    curve->begin = curve->next_position = begin;
    curve->width = end > begin ? end - begin : 1;
    curve->bin_count = bins;
    curve->bins = mt_arena_array(arena, (size_t)bins + 1, sizeof *curve->bins);
}

/* Positions never decrease. Both products fit: bins <= 2^13, and a window of more than 2^51 (26
 * days, in ns) uses coarser units. */
static void curve_enter_bin(struct mt_level_curve *curve, uint64_t position)
{
    unsigned shift = curve->width >> 50 ? 14 : 0;
    uint64_t width = mt_max_u64(curve->width >> shift, 1);
    uint64_t bin = mt_min_u64(((position - curve->begin) >> shift) * curve->bin_count / width,
                              curve->bin_count);

    curve->next_position =
        bin >= curve->bin_count
            ? UINT64_MAX
            : curve->begin +
                  (((bin + 1) * width + curve->bin_count - 1) / curve->bin_count << shift);
    curve->count++;
}

void mt_level_curve_add(struct mt_level_curve *curve, uint64_t position, uint64_t t_ns,
                        uint64_t event, uint64_t level)
{
    struct mt_curve_bin *bin;
    bool is_new = position >= curve->next_position && curve->count <= curve->bin_count;

    if (is_new)
        curve_enter_bin(curve, position);
    bin = &curve->bins[curve->count - 1];
    if (is_new || level > bin->max) {
        bin->max = level;
        bin->t_ns = t_ns;
        bin->event = event;
    }
    if (is_new || level < bin->min)
        bin->min = level;
    bin->last = level;
    bin->last_t_ns = t_ns;
    bin->last_event = event;
}
