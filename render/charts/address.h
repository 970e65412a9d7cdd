/* Shared by the parts of the address map: the map, its borders and hover text, the bars beside it,
 * and the legend. */
#ifndef MT_RENDER_ADDRESS_H
#define MT_RENDER_ADDRESS_H

#include "address_model.h"
#include "chart.h"
#include "time_axis.h"

#define MT_ADDRESS_GRID 16.0 /* pixels; the width and height of the map are multiples of this */

struct mt_address_layout {
    struct mt_drawing *drawing;
    const struct mt_report *report;
    const struct mt_device_report *device;
    const struct mt_address *address;
    const struct mt_address_axis *model; /* the axis by time or by event */
    struct mt_time_axis axis;
    struct mt_box plot;
    struct mt_ticks ticks;
    uint64_t top;               /* bytes at the upper edge of the plot */
    uint64_t bytes;             /* sum over all places */
    uint64_t *begins;           /* for each place: bytes below it. Places are stacked in order */
    bool roles[MT_ROLE_COUNT];  /* roles[role]: the role is visible in the map */
    double unit;                /* pixels per cell of the map; mt_address_draw_map sets it */
    double bar_left, bar_width; /* position and width of the bars */
    double legend_left;         /* 0 = the legend is a row below the map */
    bool has_tail, narrow, keyed;
};

/* Sets `begins` and `bytes`. */
void mt_address_stack_places(struct mt_address_layout *layout);

double mt_address_y(const struct mt_address_layout *layout, uint64_t bytes);

/* Draw the contents of memory, the lines between segments, and the hover text of segments. */
void mt_address_draw_map(struct mt_address_layout *layout);
void mt_address_draw_borders(const struct mt_address_layout *layout);

/* Draws the whole picture of a file without a history: its segments and blocks at one instant. */
void mt_address_state_draw(struct mt_address_layout *layout, const char *title);

#endif
