/* Devices that several processes share. The chart shows how much memory each process held over
 * time, and memory that was not released. It has a panel for each of the devices with the highest
 * sums. */
#include "job_chart.h"

#include <math.h>
#include <string.h>

#include "chart_frame.h"
#include "devices_view.h"
#include "job_chart_words.h"
#include "units.h"
#include "util.h"

enum { MAX_PANELS = 3 };

#define ONE_PLOT  300.0 /* heights */
#define MANY_PLOT 190.0
#define MIN_PLOT  90.0
#define GAP       18.0

/* Chooses the devices with the largest peaks, largest first. Returns their number. */
static uint32_t choose(const struct mt_job_report *report, uint32_t *chosen)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < report->device_count; i++) {
        uint32_t at = count;

        while (at && report->devices[chosen[at - 1]].peak_bytes < report->devices[i].peak_bytes)
            at--;
        if (at == MAX_PANELS)
            continue;
        count += count < MAX_PANELS;
        memmove(chosen + at + 1, chosen + at, (count - at - 1) * sizeof *chosen);
        chosen[at] = i;
    }
    return count;
}

static const char *kept(const char *text)
{
    return text ? text : "";
}

static const char *facts(struct mt_drawing *drawing, const struct mt_job_report *report,
                         uint32_t highest)
{
    const struct mt_job_device *device = &report->devices[highest];
    uint32_t devices = mt_devices_count(report);
    char count[MT_UNITS_TEXT], peak[MT_UNITS_TEXT];

    return kept(mt_arena_printf(
        &drawing->arena, "%s shared %s · highest: %s%s reserved together, %s",
        mt_format_count(count, devices), devices == 1 ? "device" : "devices",
        device->is_exact ? "" : "at most ", mt_format_bytes(peak, device->peak_bytes),
        mt_devices_name(drawing, report, device)));
}

struct picture {
    struct mt_drawing *drawing;
    const struct mt_job_report *report;
    uint32_t chosen[MAX_PANELS + 1], count;
    struct mt_devices_panel panels[MAX_PANELS];
    double small_print;
};

static double fixed_height(const struct picture *picture)
{
    double height = picture->small_print;

    for (uint32_t i = 0; i < picture->count; i++)
        height += mt_devices_panel_height(&picture->panels[i]) + GAP;
    return height + (picture->count < picture->report->device_count ? 24 : 0);
}

/* Fits the panels into a height. A low picture gets lower plots first, then fewer devices. */
static void fit_height(struct picture *picture, double y, double wanted)
{
    struct mt_drawing *drawing = picture->drawing;
    double height = wanted > 0 ? mt_chart_frame_height(wanted, wanted) : 0, plot;

    while (wanted > 0 && picture->count > 1 &&
           y + fixed_height(picture) + picture->count * MIN_PLOT > height)
        picture->count--;
    plot = wanted > 0            ? (height - y - fixed_height(picture)) / picture->count
           : picture->count == 1 ? ONE_PLOT
                                 : MANY_PLOT;
    plot = fmax(floor(plot), MIN_PLOT);
    for (uint32_t i = 0; i < picture->count; i++)
        picture->panels[i].height = plot;
    drawing->height =
        mt_chart_frame_height(fmax(height, y + fixed_height(picture) + picture->count * plot), 0);
}

/* Returns the noun for panels. */
static const char *panel_noun(const struct mt_job_report *report, bool is_one)
{
    if (mt_devices_count(report) < report->device_count)
        return is_one ? "period of use is" : "periods of use are";
    return is_one ? "shared device is" : "shared devices are";
}

/* Draws "8,189 more shared devices are not drawn: at most 40.0 GiB together on any of them". */
static void draw_rest(const struct picture *picture, double y)
{
    const struct mt_job_report *report = picture->report;
    uint32_t rest = report->device_count - picture->count;
    uint64_t most = 0;
    char count[MT_UNITS_TEXT], bytes[MT_UNITS_TEXT];
    const char *text;

    if (!rest)
        return;
    for (uint32_t i = 0; i < report->device_count; i++) {
        bool is_drawn = false;

        for (uint32_t k = 0; k < picture->count; k++)
            is_drawn |= picture->chosen[k] == i;
        if (!is_drawn)
            most = mt_max_u64(most, report->devices[i].peak_bytes);
    }
    text = kept(mt_arena_printf(&picture->drawing->arena,
                                "%s more %s not drawn: at most %s together%s",
                                mt_format_count(count, rest), panel_noun(report, rest == 1),
                                mt_format_bytes(bytes, most), rest == 1 ? "" : " on any of them"));
    mt_chart_frame_text(picture->drawing, MT_MARGIN, y,
                        mt_text_fit(picture->drawing, text, MT_SIZE_BODY, MT_REGULAR,
                                    picture->drawing->width - 2 * MT_MARGIN, false),
                        MT_SIZE_BODY, MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_START, "rest");
}

static bool are_exact(const struct picture *picture)
{
    for (uint32_t i = 0; i < picture->count; i++)
        if (!picture->panels[i].device->is_exact)
            return false;
    return true;
}

static void draw_picture(struct picture *picture, const char *title, const char *about,
                         const struct mt_job_chart_options *options)
{
    double y = mt_chart_frame_header(picture->drawing, title, about);

    picture->small_print = picture->drawing->width < MT_NARROW_WIDTH ? 44 : 28;
    for (uint32_t i = 0; i < picture->count; i++) {
        picture->panels[i] =
            (struct mt_devices_panel){.drawing = picture->drawing,
                                      .report = picture->report,
                                      .device = &picture->report->devices[picture->chosen[i]]};
        mt_devices_make_layers(&picture->panels[i]);
    }
    fit_height(picture, y, options->height);
    for (uint32_t i = 0; i < picture->count; i++)
        y = mt_devices_draw_panel(&picture->panels[i], y) + GAP;
    draw_rest(picture, y);
    mt_chart_frame_footnote(picture->drawing,
                            are_exact(picture)
                                ? "a column: the levels at its highest sum · memory outside the "
                                  "allocators is not included "
                                  "· dot: own peak · 0 s: the first process starts"
                                : "\"at most\": a process counts with its largest level in 1/512 "
                                  "of its time · memory outside the allocators is not included · "
                                  "dot: own peak · 0 s: the first process starts");
}

static bool is_called_for(const struct mt_job_report *report)
{
    return report->device_count > 0;
}

static void draw_chart(const struct mt_job_report *report,
                       const struct mt_job_chart_options *options, struct mt_drawing *drawing)
{
    struct picture picture = {.drawing = drawing, .report = report};
    const char *title, *about;

    mt_drawing_init(drawing, mt_chart_frame_width(options->width),
                    mt_chart_frame_height(options->height, 560), "devices");
    picture.count = choose(report, picture.chosen);
    about = picture.count ? facts(drawing, report, picture.chosen[0])
                          : "No device is shared by several processes.";
    title = mt_job_words_describe(drawing, report, "shared devices", about);
    if (picture.count)
        draw_picture(&picture, title, about, options);
    else
        mt_job_words_nothing(drawing, title, "No device is shared",
                             "No two processes with a known device ran on it at the same time.");
}

const struct mt_job_chart mt_job_chart_devices = {
    .name = "devices",
    .summary = "what the processes of a shared device held over time, and what was not released",
    .called_for = is_called_for,
    .draw = draw_chart,
};
