#include "diff_plan.h"

#include "units.h"

struct mt_paint mt_diff_paint(enum mt_color color, bool grew)
{
    return (struct mt_paint){
        .fill = color, .hatched = !grew, .stroke = grew ? MT_COLOR_NONE : color};
}

const char *mt_diff_exact(struct mt_drawing *drawing, const struct mt_diff_row *row)
{
    char n[5][MT_UNITS_TEXT];

    return mt_arena_printf(&drawing->arena, "%s B in %s block%s, then %s B in %s (%s%s B)",
                           mt_format_count(n[0], row->a_bytes),
                           mt_format_count(n[1], row->a_blocks), row->a_blocks == 1 ? "" : "s",
                           mt_format_count(n[2], row->b_bytes),
                           mt_format_count(n[3], row->b_blocks),
                           row->b_bytes > row->a_bytes   ? "+"
                           : row->b_bytes < row->a_bytes ? "\xE2\x88\x92"
                                                         : "",
                           mt_format_count(n[4], mt_diff_size(row)));
}
