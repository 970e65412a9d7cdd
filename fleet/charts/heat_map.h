/* A map of the reserved memory of a job, with ranks from top to bottom, and steps or time from left
 * to right. The chart that uses the map defines its columns. A cell shows the largest level of its
 * ranks and columns, so no peak is lost. */
#ifndef MT_RENDER_HEAT_MAP_H
#define MT_RENDER_HEAT_MAP_H

#include "heat_layout.h"

/* Returns the x of the left edge of a column. For the column after the last, returns the right edge
 * of the plot. */
double mt_heat_map_x(const struct mt_heat_map *map, uint32_t column);

/* Draws everything below `y`. */
void mt_heat_map_draw(struct mt_heat_map *map, struct mt_drawing *drawing, double y);

/* Returns the default height of a picture of the job's ranks. */
double mt_heat_map_height(const struct mt_job_report *report);

#endif
