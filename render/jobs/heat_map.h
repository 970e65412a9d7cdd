/* A map of the reserved memory of a job: ranks from top to bottom, steps or time from left to
 * right. A chart defines the columns; the map does the rest. A cell shows the largest level of
 * its ranks and columns, so that no peak is lost. */
#ifndef MT_RENDER_HEAT_MAP_H
#define MT_RENDER_HEAT_MAP_H

#include "heat_layout.h"

/* Returns the left edge of a column; for the column after the last, the right edge of the plot. */
double mt_heat_map_x(const struct mt_heat_map *map, uint32_t column);

/* Draws everything below `y`. */
enum mt_status mt_heat_map_draw(struct mt_heat_map *map, struct mt_drawing *drawing,
                                double y) MT_MUST_USE;

/* The default height of a picture of the job's ranks. */
double mt_heat_map_height(const struct mt_job_report *report);

#endif
