/* Words in bands of blocks: size and origin where both fit, else the size, else
 * nothing. */
#include "blocks.h"

#include <math.h>

#include "theme.h"
#include "units.h"

#define MIN_HEIGHT 14.0
#define SLACK      1.06 /* other fonts may be wider than ours */

static void write_label(const struct mt_block_stack *stack, const struct mt_block_band *band)
{
    struct mt_drawing *drawing = stack->drawing;
    const struct mt_box *flat = &band->flat;
    enum mt_color ink = mt_theme_text_on(mt_role_color(band->shape->role));
    const char *site =
        mt_chart_frame_short(drawing, band->shape->inner ? band->shape->inner : "", 80);
    double room = flat->width - 12, y = flat->y + flat->height / 2 + 4.2, size, whole;
    char bytes[MT_UNITS_TEXT];

    mt_format_bytes(bytes, band->shape->block_bytes);
    size = SLACK * mt_text_width(bytes, MT_SIZE_CELL, MT_SEMIBOLD);
    whole = size + 8 + SLACK * mt_text_width(site, MT_SIZE_CELL, MT_REGULAR);
    if (flat->height < MIN_HEIGHT || size > room)
        return;
    mt_chart_frame_text(drawing, flat->x + 6, y, bytes, MT_SIZE_CELL, MT_SEMIBOLD, ink,
                        MT_ANCHOR_START, "block-label");
    if (*site && whole <= room)
        mt_chart_frame_text(drawing, flat->x + 14 + size, y, site, MT_SIZE_CELL, MT_REGULAR, ink,
                            MT_ANCHOR_START, "block-label");
}

void mt_block_labels(const struct mt_block_stack *stack)
{
    for (uint32_t i = 0; i < stack->band_count; i++)
        write_label(stack, &stack->bands[i]);
}
