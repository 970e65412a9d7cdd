/* Parts of the address map, which share one layout of the picture. */
#ifndef MT_RENDER_ADDRESS_H
#define MT_RENDER_ADDRESS_H

#include "address_model.h"
#include "chart.h"
#include "time_axis.h"

#define MT_ADDRESS_GRID 16.0 /* pixels: width and height of the map are multiples of it */

/* A place in the picture. Slots are in order from the base line up. */
struct mt_address_slot {
    const struct mt_address_place *place;
    uint64_t begin; /* bytes below it */
};

struct mt_address_layout {
    struct mt_drawing *drawing;
    const struct mt_report *report;
    const struct mt_device_report *device;
    const struct mt_address *address;
    const struct mt_address_axis *model; /* by time, or by event */
    struct mt_time_axis axis;
    struct mt_box plot;
    struct mt_ticks ticks;
    uint64_t top;   /* bytes at the upper edge of the plot */
    uint64_t bytes; /* of all places together */
    struct mt_address_slot *slots;
    uint32_t slot_count;
    bool roles[MT_ROLE_COUNT];  /* that are visible */
    double unit;                /* pixels of a cell of the map; set by mt_address_draw_map */
    double bar_left, bar_width; /* occupancy */
    double legend_left;         /* 0 = a row of swatches instead */
    bool has_tail, narrow, keyed;
};

/* Sorts the places into slots. If memory runs out, the drawing has failed. */
void mt_address_plan_slots(struct mt_address_layout *layout, enum mt_address_order order);

double mt_address_y(const struct mt_address_layout *layout, uint64_t bytes);

/* The contents of memory, the lines between segments, and the titles that appear on hover. */
void mt_address_draw_map(struct mt_address_layout *layout);
void mt_address_draw_borders(const struct mt_address_layout *layout);
void mt_address_draw_titles(const struct mt_address_layout *layout);
/* Invisible shapes of the largest blocks, on which a pointer can hover. */
void mt_address_draw_blocks(const struct mt_address_layout *layout);

/* How full each segment was. */
void mt_address_draw_bars(const struct mt_address_layout *layout);
/* The legend of the colors: beside the map, or as a row on baseline y. */
void mt_address_draw_legend(const struct mt_address_layout *layout);
void mt_address_draw_legend_row(const struct mt_address_layout *layout, double y);

#endif
