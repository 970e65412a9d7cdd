/* A character cell of a terminal can show eight heights: ▁▂▃▄▅▆▇█. A column is a group of bins of
 * the timeline, each of which already has its fullest instant. */
#include "text_chart.h"

#include "report_query.h"
#include "timeline_model.h"
#include "units.h"
#include "util.h"

#include <string.h>

#define CELL_UNITS  8u
#define MAX_COLUMNS 512u
#define MAX_ROWS    64u

struct signs {
    const char *heights[CELL_UNITS + 1]; /* [0] is empty */
    const char *reserved, *reserved_edge;
    const char *side, *corner, *base, *peak, *oom, *fold;
};

static const struct signs unicode_signs = {
    {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, "░", "░", "│", "└", "─", "▲", "!", "≈"};
static const struct signs ascii_signs = {
    {" ", ".", ".", ":", ":", ":", "#", "#", "#"}, " ", "-", "|", "+", "-", "^", "!", "~"};

struct column {
    uint64_t allocated, reserved;
};

struct plot {
    const struct mt_report *report;
    const struct mt_device_report *device;
    const struct mt_text_chart *chart;
    const struct signs *signs;
    bool by_event;
    struct column columns[MAX_COLUMNS];
    const char *axis[MAX_COLUMNS]; /* signs on the axis */
    uint32_t count, peak;          /* peak: column of the peak */
    uint32_t oom_marks;
    bool oom_at_peak;
    uint64_t top; /* bytes at the upper edge */
    char label[MT_UNITS_TEXT];
};

/* Fills the columns and returns their number. Every bin belongs to one column, and every column has
 * bins. */
static uint32_t fill_columns(const struct mt_timeline *timeline, bool by_event, uint32_t wanted,
                             struct column *columns)
{
    const struct mt_bin *bins = by_event ? timeline->event_bins : timeline->time_bins;
    uint32_t count = wanted < timeline->bin_count ? wanted : timeline->bin_count;

    if (count > MAX_COLUMNS)
        count = MAX_COLUMNS;
    memset(columns, 0, count * sizeof *columns);
    for (uint32_t i = 0; i < timeline->bin_count; i++) {
        struct column *column = &columns[(uint64_t)i * count / timeline->bin_count];

        column->allocated = mt_max_u64(column->allocated, bins[i].allocated);
        column->reserved = mt_max_u64(column->reserved, bins[i].reserved_max);
    }
    return count;
}

static uint32_t highest(const struct column *columns, uint32_t count)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < count; i++)
        if (columns[i].allocated > columns[best].allocated)
            best = i;
    return best;
}

/* Returns the height in eighths of a row, which is at least one if there are any bytes. */
static unsigned height_of(uint64_t bytes, uint64_t top, unsigned rows)
{
    double units = top ? (double)bytes / (double)top * rows * CELL_UNITS : 0;
    unsigned height = (unsigned)(units + 0.5);

    return bytes && !height ? 1 : height;
}

static uint32_t column_of(const struct plot *plot, uint64_t t_ns, uint64_t event)
{
    const struct mt_timeline *timeline = plot->device->timeline;
    uint64_t span = timeline->last_event - timeline->first_event;
    double at = mt_timeline_position(timeline, t_ns);

    if (plot->by_event)
        at = event > timeline->first_event
                 ? (double)mt_min_u64(event - timeline->first_event, span) / ((double)span + 1)
                 : 0;
    return (uint32_t)mt_min_u64((uint64_t)(at * plot->count), plot->count - 1);
}

static void mark_axis(struct plot *plot)
{
    const struct mt_timeline *timeline = plot->device->timeline;

    for (uint32_t i = 0; i < plot->count; i++)
        plot->axis[i] = plot->signs->base;
    for (uint32_t i = 1; i < timeline->span_count && !plot->by_event; i++)
        plot->axis[column_of(plot, timeline->spans[i].begin_t_ns, 0)] = plot->signs->fold;
    for (uint32_t i = 0; i < plot->device->oom_count; i++) {
        const struct mt_oom *oom = &plot->device->oom_list[i];
        uint32_t at = column_of(plot, oom->t_ns, oom->event);

        plot->axis[at] = plot->signs->oom;
        plot->oom_at_peak |= at == plot->peak;
        plot->oom_marks += at != plot->peak;
    }
    plot->axis[plot->peak] = plot->signs->peak;
}

static bool make_plot(struct plot *plot)
{
    const struct mt_timeline *timeline = plot->device->timeline;
    uint32_t columns = plot->chart->columns;

    plot->top = mt_max_u64(plot->device->allocated_peak.bytes, plot->device->reserved_peak.bytes);
    if (!timeline || !timeline->bin_count || !plot->top || columns < MT_TEXT_CHART_MIN ||
        !plot->chart->rows || plot->chart->rows > MAX_ROWS)
        return false;
    mt_format_bytes(plot->label, plot->top);
    uint32_t labels = (uint32_t)strlen(plot->label) + 5;
    plot->by_event = mt_is_shown_by_event(plot->report, plot->device);
    plot->count = fill_columns(timeline, plot->by_event, columns - labels, plot->columns);
    plot->peak = highest(plot->columns, plot->count);
    mark_axis(plot);
    return true;
}

static void begin_line(struct mt_buf *out, const struct plot *plot, const char *label,
                       const char *side)
{
    mt_buf_add_blanks(out, 2 + strlen(plot->label) - strlen(label));
    mt_buf_printf(out, "%s %s", label, side);
}

enum ink { PLAIN, ALLOCATED, RESERVED, MARK };

/* Prints an escape sequence only if the ink changes. */
static void use_ink(struct mt_buf *out, const struct mt_text_chart *chart, enum ink ink,
                    enum ink *now)
{
    const char *const begins[] = {"", chart->allocated, chart->reserved, chart->mark};

    if (ink == *now)
        return;
    if (*now != PLAIN)
        mt_buf_add_text(out, chart->reset);
    mt_buf_add_text(out, begins[ink]);
    *now = ink;
}

static void drop_blanks(struct mt_buf *out)
{
    while (out->length && out->data[out->length - 1] == ' ')
        out->data[--out->length] = '\0';
}

static void add_cell(struct mt_buf *out, const struct plot *plot, uint32_t column, unsigned row,
                     enum ink *ink)
{
    const struct mt_text_chart *chart = plot->chart;
    const struct column *at = &plot->columns[column];
    unsigned below = row * CELL_UNITS;
    unsigned allocated = height_of(at->allocated, plot->top, chart->rows);
    unsigned reserved = height_of(at->reserved, plot->top, chart->rows);
    unsigned reserved_rows = (unsigned)mt_max_u64((reserved + 4) / CELL_UNITS, reserved > 0);

    if (allocated > below) {
        use_ink(out, chart, ALLOCATED, ink);
        mt_buf_add_text(out, plot->signs->heights[mt_min_u64(allocated - below, CELL_UNITS)]);
    } else if (reserved_rows > row) {
        use_ink(out, chart, RESERVED, ink);
        mt_buf_add_text(out, reserved_rows == row + 1 ? plot->signs->reserved_edge
                                                      : plot->signs->reserved);
    } else {
        use_ink(out, chart, PLAIN, ink);
        mt_buf_add_char(out, ' ');
    }
}

static void add_rows(struct mt_buf *out, const struct plot *plot)
{
    for (unsigned row = plot->chart->rows; row-- > 0;) {
        enum ink ink = PLAIN;

        begin_line(out, plot, row + 1 == plot->chart->rows ? plot->label : "", plot->signs->side);
        for (uint32_t i = 0; i < plot->count; i++)
            add_cell(out, plot, i, row, &ink);
        use_ink(out, plot->chart, PLAIN, &ink);
        drop_blanks(out);
        mt_buf_add_char(out, '\n');
    }
}

static void add_axis(struct mt_buf *out, const struct plot *plot)
{
    enum ink ink = PLAIN;

    begin_line(out, plot, "0", plot->signs->corner);
    for (uint32_t i = 0; i < plot->count; i++) {
        use_ink(out, plot->chart, plot->axis[i] == plot->signs->base ? PLAIN : MARK, &ink);
        mt_buf_add_text(out, plot->axis[i]);
    }
    use_ink(out, plot->chart, PLAIN, &ink);
    mt_buf_add_char(out, '\n');
}

/* The position of the name of a step, and its full length. */
struct step_name {
    uint32_t begin, end; /* columns of the step */
    char text[MT_UNITS_TEXT + 8];
};

static bool name_step(const struct plot *plot, const struct mt_step_use *step,
                      struct step_name *name)
{
    char number[MT_UNITS_TEXT];

    if (step->step < 0 || !mt_report_covers(plot->report, plot->device, step->end_event))
        return false;
    name->begin = column_of(plot, step->begin_t_ns, step->begin_event);
    name->end = column_of(plot, step->end_t_ns, step->end_event);
    strcpy(name->text, "step ");
    strcat(name->text, mt_format_count(number, (uint64_t)step->step));
    return true;
}

/* Returns true if the names of all steps fit, as in "step 3". Otherwise only the first has the word
 * "step". */
static bool all_fit(const struct plot *plot)
{
    struct step_name name;

    for (uint32_t i = 0; i < plot->device->step_count; i++)
        if (name_step(plot, &plot->device->steps[i], &name) &&
            name.begin + strlen(name.text) >= mt_max_u64(name.end, name.begin + 1))
            return false;
    return true;
}

static void add_steps(struct mt_buf *out, const struct plot *plot)
{
    bool in_full = all_fit(plot);
    size_t before = out->length;
    struct step_name name;
    uint32_t at = 0; /* next column to write */

    begin_line(out, plot, "", " ");
    for (uint32_t i = 0; i < plot->device->step_count; i++) {
        if (!name_step(plot, &plot->device->steps[i], &name))
            continue;
        const char *text = name.text + (at && !in_full ? strlen("step ") : 0);
        if ((at && name.begin <= at) || name.begin + strlen(text) > plot->count)
            continue;
        mt_buf_add_blanks(out, name.begin - at);
        mt_buf_add_text(out, text);
        at = name.begin + (uint32_t)strlen(text);
    }
    if (at)
        mt_buf_add_char(out, '\n');
    else if (out->data)
        out->data[out->length = before] = '\0';
}

struct legend {
    struct mt_buf *out;
    size_t columns, most;
};

/* Adds an entry to the legend if it fits. `sign` counts as one column. */
static void explain(struct legend *legend, const char *before, const char *sign, const char *after,
                    const char *words)
{
    size_t length = (*sign ? 2 : 0) + strlen(words) + 2;

    if (legend->columns + length > legend->most)
        return;
    mt_buf_printf(legend->out, "  %s%s%s%s%s", before, sign, after, *sign ? " " : "", words);
    legend->columns += length;
}

static uint64_t folded_ns(const struct plot *plot)
{
    const struct mt_timeline *timeline = plot->device->timeline;
    uint64_t sum = 0;

    for (uint32_t i = 1; i < timeline->span_count && !plot->by_event; i++)
        sum += timeline->spans[i].begin_t_ns - timeline->spans[i - 1].end_t_ns;
    return sum;
}

static void add_legend(struct mt_buf *out, const struct plot *plot)
{
    const struct mt_text_chart *chart = plot->chart;
    const struct signs *signs = plot->signs;
    struct legend legend = {out, strlen(plot->label) + 2, chart->columns};
    char number[MT_UNITS_TEXT], words[MT_UNITS_TEXT + 40];
    uint64_t folded = folded_ns(plot);

    mt_buf_add_blanks(out, legend.columns);
    mt_format_bytes(number, plot->device->allocated_peak.bytes);
    strcpy(words, "peak ");
    explain(&legend, chart->mark, signs->peak, chart->reset, strcat(words, number));
    if (plot->oom_at_peak)
        explain(&legend, "", "", "", "where memory ran out");
    if (plot->oom_marks)
        explain(&legend, chart->mark, signs->oom, chart->reset, "out of memory");
    if (folded) {
        mt_format_duration(words, folded);
        explain(&legend, chart->mark, signs->fold, chart->reset, strcat(words, " idle left out"));
    }
    explain(&legend, chart->allocated, signs->heights[CELL_UNITS], chart->reset, "allocated");
    if (plot->device->reserved_peak.bytes > plot->device->allocated_peak.bytes)
        explain(&legend, chart->reserved, signs->reserved_edge, chart->reset, "reserved");
    explain(&legend, "", "", "", plot->by_event ? "over events" : "over time");
    mt_buf_add_char(out, '\n');
}

void mt_text_chart_add(struct mt_buf *out, const struct mt_report *report,
                       const struct mt_device_report *device, const struct mt_text_chart *chart)
{
    struct plot plot = {.report = report,
                        .device = device,
                        .chart = chart,
                        .signs = chart->unicode ? &unicode_signs : &ascii_signs};

    if (!make_plot(&plot))
        return;
    add_rows(out, &plot);
    add_axis(out, &plot);
    add_steps(out, &plot);
    add_legend(out, &plot);
}

void mt_text_chart_add_sparkline(struct mt_buf *out, const struct mt_report *report,
                                 const struct mt_device_report *device, unsigned columns)
{
    const struct mt_timeline *timeline = device->timeline;
    struct column line[MAX_COLUMNS];

    if (!timeline || !timeline->bin_count || !device->allocated_peak.bytes)
        return;
    uint32_t count = fill_columns(timeline, mt_is_shown_by_event(report, device), columns, line);
    for (uint32_t i = 0; i < count; i++)
        mt_buf_add_text(
            out,
            unicode_signs.heights[height_of(line[i].allocated, device->allocated_peak.bytes, 1)]);
}
