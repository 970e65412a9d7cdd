/* Memory over time as text: for a terminal, and as one line for Markdown. A column shows its
 * highest instant, so that no peak is lost, however short. */
#ifndef MT_RENDER_TEXT_CHART_H
#define MT_RENDER_TEXT_CHART_H

#include "buf.h"
#include "report.h"

struct mt_text_chart {
    unsigned columns; /* of a line, at least MT_TEXT_CHART_MIN */
    unsigned rows;    /* of the plot, at least 1 */
    bool unicode;     /* false: only ASCII */
    /* Escape sequences of a terminal that start and end a color; "" = no colors. */
    const char *allocated, *reserved, *mark, *reset;
};
#define MT_TEXT_CHART_MIN 40

/* Largest number of lines of the chart in addition to its rows. */
#define MT_TEXT_CHART_EXTRA 3

/* Number of bins of a timeline that only a text chart uses. */
#define MT_TEXT_CHART_BINS 1024

/* The plot, its axis with the peak and out-of-memory errors marked, the steps, and the legend.
 * Over time with idle gaps left out, or over events (mt_is_shown_by_event). Nothing without a
 * timeline. */
void mt_add_text_chart(struct mt_buf *out, const struct mt_report *report,
                       const struct mt_device_report *device, const struct mt_text_chart *chart);

/* Allocated memory as `columns` characters of a line, UTF-8: "▁▁▃▅". */
void mt_add_sparkline(struct mt_buf *out, const struct mt_report *report,
                      const struct mt_device_report *device, unsigned columns);

#endif
