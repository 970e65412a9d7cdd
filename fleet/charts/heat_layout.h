/* Shared by the parts of a heat map: the map (heat_map.c) and its sides (heat_sides.c). */
#ifndef MT_RENDER_HEAT_LAYOUT_H
#define MT_RENDER_HEAT_LAYOUT_H

#include "job_frame.h"

struct mt_heat_map {
    const struct mt_job_report *report;
    const void *context; /* data of the chart */
    /* For each column i in which the record has data: sets has[i], and raises bytes[i] to the
     * record's level if that is higher. Both arrays have `columns` elements. */
    void (*read)(const struct mt_heat_map *map, const struct mt_rank_record *record,
                 uint64_t *bytes, bool *has);
    /* Sets *column to the column in which the record ran out of memory. Returns false if it is not
     * known. */
    bool (*find_death)(const struct mt_heat_map *map, const struct mt_rank_record *record,
                       uint32_t *column);
    /* Return the name of a column ("step 12", "at 3.4 s"), and of a death that find_death found. */
    const char *(*name_column)(const struct mt_heat_map *map, struct mt_drawing *drawing,
                               uint32_t column);
    const char *(*name_death)(const struct mt_heat_map *map, struct mt_drawing *drawing,
                              const struct mt_rank_record *record);
    /* Draws ticks below the plot, from y to y + 24. */
    void (*draw_ticks)(const struct mt_heat_map *map, struct mt_drawing *drawing, double y);
    const char *axis_name; /* "step" */
    const char *rule;      /* text of the footnote: the meaning of a column */
    uint32_t most_columns; /* number of columns in the data */

    /* Set by mt_heat_map_draw. */
    struct mt_box plot;
    uint32_t columns; /* number of columns that are drawn */
    uint64_t low_bytes, high_bytes;
    struct mt_job_order order;
    struct mt_job_lanes lanes;
    uint32_t high_row, high_column;
    bool lacks_data; /* a cell of a recorded rank has no data */
};

/* Draws names of groups and numbers of ranks on the left, and remarks about single ranks on the
 * right. `left` and `right` are the widths of the sides. */
void mt_heat_map_draw_sides(const struct mt_heat_map *map, struct mt_drawing *drawing, double left,
                            double right);

#endif
