/* The line of reserved memory. If it falls and rises many times within a few pixels, its strokes
 * would fill the plot. In this case, the line follows the maxima, which stay exact, and the edge of
 * the hatched area below the line shows the falls. */
#include "timeline_layout.h"

#include "util.h"

#define NARROW      4.0 /* pixels; a stroke covers narrower falls and rises */
#define MIN_FALLS   4   /* if there are fewer falls, they can be distinguished */
#define FALL_HEIGHT 8   /* falls of less than 1/8 of the plot cover little */

static bool is_deep(const struct mt_timeline_layout *layout, uint64_t top, uint64_t bottom)
{
    return mt_timeline_y(layout, bottom) - mt_timeline_y(layout, top) >
           layout->plot.height / FALL_HEIGHT;
}

/* Returns the column in which the line has recovered from a fall that begins at `first`. Returns
 * `first` if the line does not fall there, falls little, or stays low for more than `narrow`
 * columns. */
static uint32_t end_of_fall(const struct mt_timeline_layout *layout, uint32_t first,
                            uint32_t narrow)
{
    const struct mt_column *columns = layout->columns;
    const uint64_t before = first ? columns[first - 1].reserved : 0;
    uint64_t lowest = columns[first].reserved;

    if (lowest >= before)
        return first;
    for (uint32_t i = first + 1; i < layout->column_count && i - first <= narrow; i++) {
        if (is_deep(layout, mt_min_u64(before, columns[i].reserved), lowest))
            return i;
        lowest = mt_min_u64(lowest, columns[i].reserved);
    }
    return first;
}

/* Removes adjacent falls in columns [first, end) from the line. In each fall, raises the line to
 * the lower of the levels before and after it, so the line never exceeds the recorded maximum. */
static void raise(const struct mt_timeline_layout *layout, uint64_t *line, uint32_t first,
                  uint32_t end, uint32_t narrow)
{
    for (uint32_t i = first, back; i < end; i = (uint32_t)mt_max_u64(back, i + 1)) {
        back = end_of_fall(layout, i, narrow);
        for (uint32_t j = i; j < back; j++)
            line[j] = mt_max_u64(line[j], mt_min_u64(layout->columns[i - 1].reserved,
                                                     layout->columns[back].reserved));
    }
}

void mt_timeline_reserved_line(const struct mt_timeline_layout *layout, uint64_t *line)
{
    const uint32_t narrow = (uint32_t)(NARROW / layout->column_width);
    uint32_t first = 0, last = 0, falls = 0;

    for (uint32_t i = 0; i < layout->column_count; i++)
        line[i] = layout->columns[i].reserved;
    for (uint32_t i = 0, back; i < layout->column_count; i = (uint32_t)mt_max_u64(back, i + 1)) {
        back = end_of_fall(layout, i, narrow);
        if (back == i)
            continue;
        if (falls && i - last > narrow) {
            if (falls >= MIN_FALLS)
                raise(layout, line, first, last, narrow);
            falls = 0;
        }
        first = falls++ ? first : i;
        last = back;
    }
    if (falls >= MIN_FALLS)
        raise(layout, line, first, last, narrow);
}
