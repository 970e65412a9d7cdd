#include "page_tables.h"

#include <stdlib.h>
#include <string.h>

#include "escape.h"
#include "frame.h"
#include "map.h"
#include "report_query.h"
#include "units.h"
#include "util.h"

enum { MAX_ROWS = 200, MAX_NAMES = 60, NAME_BYTES = 240 };

/* ---- cells --------------------------------------------------------------- */

void mt_add_page_name(struct mt_buf *out, const char *name)
{
    struct mt_buf cut = {0};
    size_t length = strlen(name);

    if (length <= NAME_BYTES) {
        mt_add_xml(out, name);
        return;
    }
    for (length = NAME_BYTES; length && ((unsigned char)name[length] & 0xC0) == 0x80;)
        length--;
    mt_buf_add(&cut, name, length);
    mt_add_xml(out, cut.data ? cut.data : "");
    mt_buf_add_text(out, "\xE2\x80\xA6");
    out->failed |= cut.failed;
    mt_buf_release(&cut);
}

static void cell(struct mt_buf *out, const char *text)
{
    mt_buf_add_text(out, "<td>");
    mt_add_page_name(out, text);
    mt_buf_add_text(out, "</td>");
}

static void begin_number(struct mt_buf *out, uint64_t value, const char *sign)
{
    mt_buf_printf(out, "<td class=\"number\" data-v=\"%s%llu\"", sign, (unsigned long long)value);
}

static void cell_bytes(struct mt_buf *out, uint64_t bytes)
{
    char text[MT_UNITS_TEXT], exact[MT_UNITS_TEXT];

    begin_number(out, bytes, "");
    mt_buf_printf(out, " title=\"%s B\">%s</td>", mt_format_count(exact, bytes),
                  mt_format_bytes(text, bytes));
}

static void cell_change(struct mt_buf *out, uint64_t from, uint64_t to)
{
    char text[MT_UNITS_TEXT];
    bool less = to < from;

    begin_number(out, less ? from - to : to - from, less ? "-" : "");
    mt_buf_printf(out, ">%s</td>", mt_format_change(text, (int64_t)(to - from)));
}

static void cell_count(struct mt_buf *out, uint64_t count)
{
    char text[MT_UNITS_TEXT];

    begin_number(out, count, "");
    mt_buf_printf(out, ">%s</td>", mt_format_count(text, count));
}

static void cell_share(struct mt_buf *out, uint64_t part, uint64_t whole)
{
    char text[MT_UNITS_TEXT];

    begin_number(out, part, "");
    mt_buf_printf(out, ">%s</td>",
                  mt_format_percent(text, whole ? (double)part / (double)whole : 0));
}

static void cell_duration(struct mt_buf *out, uint64_t ns)
{
    char text[MT_UNITS_TEXT];

    begin_number(out, ns, "");
    mt_buf_printf(out, ">%s</td>", mt_format_duration(text, ns));
}

static void cell_when(struct mt_buf *out, const struct mt_report *report, uint64_t t_ns)
{
    cell_duration(out, t_ns > report->first_t_ns ? t_ns - report->first_t_ns : 0);
}

/* "backward, step 1" */
static void cell_where(struct mt_buf *out, const struct mt_report *report, int32_t phase,
                       int64_t step)
{
    struct mt_drawing words;

    mt_drawing_init(&words, 1, 1, "words");
    cell(out, mt_frame_where(&words, report, phase, step));
    mt_drawing_release(&words);
}

/* ---- tables -------------------------------------------------------------- */

/* Titles that begin with '#' are those of numbers; NULL ends them. */
static void begin(struct mt_buf *out, const char *kind, const char *name,
                  const struct mt_device_report *device, const char *const *titles)
{
    mt_buf_printf(out, "<div class=\"scroll\"><table class=\"%s\" id=\"%s-%u\"><thead><tr>", kind,
                  name, (unsigned)device->device);
    for (; *titles; titles++) {
        bool is_number = **titles == '#';

        mt_buf_printf(out, "<th scope=\"col\"%s>%s</th>", is_number ? " class=\"number\"" : "",
                      *titles + is_number);
    }
    mt_buf_add_text(out, "</tr></thead>\n<tbody>\n");
}

static void end(struct mt_buf *out, uint64_t omitted)
{
    mt_buf_add_text(out, "</tbody></table></div>\n");
    if (omitted)
        mt_buf_printf(out, "<p class=\"omitted\">%llu rows omitted</p>\n",
                      (unsigned long long)omitted);
}

static void peak_row(struct mt_buf *out, const struct mt_report *report, const char *name,
                     const struct mt_peak *peak)
{
    mt_buf_printf(out, "<tr><td>%s</td>", name);
    cell_bytes(out, peak->bytes);
    cell_count(out, peak->bytes);
    cell_when(out, report, peak->t_ns);
    cell_where(out, report, peak->phase, peak->step);
    cell_bytes(out, peak->then.allocated);
    cell_bytes(out, peak->then.reserved);
    mt_buf_add_text(out, "</tr>\n");
}

void mt_add_peaks_table(struct mt_buf *out, const struct mt_report *report,
                        const struct mt_device_report *device)
{
    static const char *const titles[] = {"peak",   "#bytes",          "#exact",         "#at",
                                         "during", "#allocated then", "#reserved then", NULL};

    begin(out, "sortable", "peaks", device, titles);
    peak_row(out, report, "requested", &device->requested_peak);
    peak_row(out, report, "allocated", &device->allocated_peak);
    peak_row(out, report, "active", &device->active_peak);
    if (!report->is_driver_level || report->what_if)
        peak_row(out, report, "reserved", &device->reserved_peak);
    end(out, 0);
}

static void live_row(struct mt_buf *out, const struct mt_site_use *use, uint64_t whole)
{
    mt_buf_add_text(out, "<tr>");
    cell_bytes(out, use->bytes);
    cell_share(out, use->bytes, whole);
    cell_count(out, use->blocks);
    cell(out, mt_role_name(use->role));
    cell(out, use->phase);
    mt_buf_add_text(out, "<td class=\"site\">");
    mt_add_page_name(out, use->site);
    mt_buf_add_text(out, "</td></tr>\n");
}

void mt_add_live_table(struct mt_buf *out, const struct mt_report *report,
                       const struct mt_device_report *device)
{
    static const char *const titles[] = {"#bytes",  "#share", "#blocks", "role",
                                         "born in", "site",   NULL};
    uint32_t shown = device->peak_site_count < MAX_ROWS ? device->peak_site_count : MAX_ROWS;

    (void)report;
    begin(out, "live", "live", device, titles);
    for (uint32_t i = 0; i < shown; i++)
        live_row(out, &device->peak_sites[i], device->allocated_peak.bytes);
    end(out, device->peak_site_count - shown);
}

/* ---- steps --------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? 1 : -(x > y);
}

/* Peak from which on a step is among the MAX_ROWS largest. */
static uint64_t least_peak(const struct mt_device_report *device)
{
    uint64_t *peaks, least = 0;

    if (device->step_count <= MAX_ROWS)
        return 0;
    peaks = malloc(device->step_count * sizeof *peaks);
    for (uint32_t i = 0; peaks && i < device->step_count; i++)
        peaks[i] = device->steps[i].peak.allocated;
    if (peaks) {
        qsort(peaks, device->step_count, sizeof *peaks, by_size);
        least = peaks[MAX_ROWS - 1];
    }
    free(peaks);
    return least;
}

static void step_row(struct mt_buf *out, const struct mt_report *report,
                     const struct mt_step_use *step)
{
    bool less = step->step < 0;

    mt_buf_add_text(out, "<tr>");
    begin_number(out, less ? 0 - (uint64_t)step->step : (uint64_t)step->step, less ? "-" : "");
    mt_buf_printf(out, ">%lld</td>", (long long)step->step);
    cell_bytes(out, step->enter.allocated);
    cell_bytes(out, step->peak.allocated);
    cell_bytes(out, step->exit.allocated);
    cell_change(out, step->enter.allocated, step->exit.allocated);
    cell_bytes(out, step->peak.reserved);
    cell_duration(out, step->end_t_ns > step->begin_t_ns ? step->end_t_ns - step->begin_t_ns : 0);
    cell_when(out, report, step->peak_allocated_t_ns);
    mt_buf_add_text(out, "</tr>\n");
}

void mt_add_steps_table(struct mt_buf *out, const struct mt_report *report,
                        const struct mt_device_report *device)
{
    static const char *const titles[] = {"#step",     "#before", "#peak",    "#after", "#change",
                                         "#reserved", "#time",   "#peak at", NULL};
    uint64_t least = least_peak(device), shown = 0;

    if (!device->step_count)
        return;
    mt_buf_add_text(out, "<h3>Steps</h3>\n");
    begin(out, "sortable", "steps", device, titles);
    for (uint32_t i = 0; i < device->step_count && shown < MAX_ROWS; i++) {
        const struct mt_step_use *step = &device->steps[i];

        if (step->peak.allocated < least || !mt_report_covers(report, device, step->end_event))
            continue;
        step_row(out, report, step);
        shown++;
    }
    end(out, device->step_count - shown);
}

/* ---- phases -------------------------------------------------------------- */

/* All phases of one name. */
struct phase_sum {
    uint64_t instances, time_ns, allocations, frees, peak_bytes;
    uint64_t most_from, most_to; /* of the one that left most behind */
};

static void add_phase(struct phase_sum *sum, const struct mt_phase *phase,
                      const struct mt_phase_use *use)
{
    int64_t net = (int64_t)(use->exit.allocated - use->enter.allocated);

    if (!sum->instances || net > (int64_t)(sum->most_to - sum->most_from)) {
        sum->most_from = use->enter.allocated;
        sum->most_to = use->exit.allocated;
    }
    sum->instances++;
    sum->time_ns += phase->end_t_ns > phase->begin_t_ns ? phase->end_t_ns - phase->begin_t_ns : 0;
    sum->allocations += use->allocations;
    sum->frees += use->frees;
    sum->peak_bytes = mt_max_u64(sum->peak_bytes, use->peak.allocated);
}

static void phase_row(struct mt_buf *out, const char *name, const struct phase_sum *sum)
{
    mt_buf_add_text(out, "<tr>");
    cell(out, name);
    cell_count(out, sum->instances);
    cell_bytes(out, sum->peak_bytes);
    cell_change(out, sum->most_from, sum->most_to);
    cell_count(out, sum->allocations);
    cell_count(out, sum->frees);
    cell_duration(out, sum->time_ns);
    mt_buf_add_text(out, "</tr>\n");
}

void mt_add_phases_table(struct mt_buf *out, const struct mt_report *report,
                         const struct mt_device_report *device)
{
    static const char *const titles[] = {
        "phase",        "#instances", "#highest peak", "#most left",
        "#allocations", "#frees",     "#time",         NULL};
    struct phase_sum sums[MAX_NAMES] = {{0}};
    struct mt_strings names = {0};
    uint64_t omitted = 0;

    for (uint32_t i = 0; i < report->phase_count; i++) {
        const struct mt_phase *phase = &report->phases[i];
        uint32_t id;

        if (!report->main_phase[i] || !device->phase_uses ||
            !mt_report_covers(report, device, phase->end_event))
            continue;
        if (mt_strings_intern(&names, phase->name, strlen(phase->name), &id))
            out->failed = true;
        else if (id < MAX_NAMES)
            add_phase(&sums[id], phase, &device->phase_uses[i]);
        else
            omitted = names.count - MAX_NAMES;
        if (out->failed)
            break;
    }
    if (names.count) {
        mt_buf_add_text(out, "<h3>Phases</h3>\n");
        begin(out, "sortable", "phases", device, titles);
        for (uint32_t i = 0; i < names.count && i < MAX_NAMES; i++)
            phase_row(out, names.texts[i], &sums[i]);
        end(out, omitted);
    }
    mt_strings_release(&names);
}

/* ---- OOMs ---------------------------------------------------------------- */

void mt_add_ooms_table(struct mt_buf *out, const struct mt_report *report,
                       const struct mt_device_report *device)
{
    static const char *const titles[] = {
        "#at", "during", "#wanted", "#device free", "#allocated then", "#reserved then", "", NULL};
    uint32_t shown = device->oom_count < MAX_ROWS ? device->oom_count : MAX_ROWS;

    if (!device->oom_count)
        return;
    mt_buf_add_text(out, "<h3>Requests that ran out of memory</h3>\n");
    begin(out, "sortable", "ooms", device, titles);
    for (uint32_t i = 0; i < shown; i++) {
        const struct mt_oom *oom = &device->oom_list[i];

        mt_buf_add_text(out, "<tr>");
        cell_when(out, report, oom->t_ns);
        cell_where(out, report, oom->phase, oom->step);
        cell_bytes(out, oom->request_bytes);
        cell_bytes(out, oom->device_free_bytes);
        cell_bytes(out, oom->then.allocated);
        cell_bytes(out, oom->then.reserved);
        cell(out, oom->fatal ? "the program died of it" : "");
        mt_buf_add_text(out, "</tr>\n");
    }
    end(out, device->oom_count - shown);
}
