/* The byte scale of the plot of a timeline. */
#include "timeline_layout.h"

#include <math.h>

double mt_timeline_y(const struct mt_timeline_layout *layout, uint64_t bytes)
{
    double height = layout->top ? (double)bytes / (double)layout->top * layout->plot.height : 0;

    return layout->plot.y + layout->plot.height - round(fmin(height, layout->plot.height) * 2) / 2;
}
