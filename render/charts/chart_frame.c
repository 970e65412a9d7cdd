#include "chart_frame.h"

#include <math.h>
#include <string.h>

#include "ascii.h"
#include "buf.h"
#include "report_query.h"
#include "site.h"
#include "units.h"
#include "util.h"

#define DASH      " \xE2\x80\x94 "
#define DOT       " \xC2\xB7 "
#define MAX_NAME  60  /* maximum bytes of the name of a phase in a label */
#define MAX_TITLE 200 /* maximum bytes of the name of a trace */

double mt_chart_frame_width(double wanted)
{
    return wanted > 0 ? fmin(fmax(round(wanted), 480), 8192) : 1200;
}

double mt_chart_frame_height(double wanted, double standard)
{
    return wanted > 0 ? fmin(fmax(round(wanted), 320), 8192) : standard;
}

double mt_chart_frame_text(struct mt_drawing *drawing, double x, double y, const char *text,
                           double size, enum mt_weight weight, enum mt_color color,
                           enum mt_anchor anchor, const char *role)
{
    struct mt_text_style style = {.size = size, .weight = weight, .anchor = anchor, .color = color};

    return mt_draw_text(drawing, x, y, text, &style, role);
}

void mt_chart_frame_plate(struct mt_drawing *drawing, double x, double y, double width,
                          double height)
{
    const struct mt_paint paint = {.fill = MT_COLOR_BACKGROUND, .opacity = 0.85};

    mt_draw_rect(drawing, x, y, width, height, &paint, NULL, "plate");
}

const char *mt_chart_frame_title(struct mt_drawing *drawing, const struct mt_report *report,
                                 const struct mt_device_report *device, const char *chart)
{
    const char *name = report && report->name && *report->name ? report->name : "trace";
    const char *title;

    name = mt_chart_frame_short(drawing, name, MAX_TITLE);

    if (report && device && report->device_count > 1)
        title = mt_arena_printf(&drawing->arena, "%s" DASH "%s, device %u", name, chart,
                                (unsigned)device->device);
    else
        title = mt_arena_printf(&drawing->arena, "%s" DASH "%s", name, chart);
    return title;
}

static void add_fact(struct mt_buf *facts, const char *fact)
{
    if (!fact || !*fact)
        return;
    if (facts->length)
        mt_buf_add_text(facts, DOT);
    mt_buf_add_text(facts, fact);
}

static void add_count(struct mt_buf *facts, uint64_t count, const char *one, const char *many)
{
    char number[MT_UNITS_TEXT];

    if (!count)
        return;
    if (facts->length)
        mt_buf_add_text(facts, DOT);
    mt_buf_printf(facts, "%s %s", mt_format_count(number, count), count == 1 ? one : many);
}

/* Adds a duration: "4.63 s", or "17.3 min" from three minutes, or "3.2 h" from two hours. */
static void add_duration(struct mt_buf *facts, uint64_t ns)
{
    const uint64_t minute = 60000000000u, hour = 60 * minute;
    uint64_t unit = ns >= 2 * hour ? hour : minute, tenths = ns / (unit / 10);
    char text[MT_UNITS_TEXT], whole[MT_UNITS_TEXT];

    if (ns < 3 * minute) {
        add_fact(facts, mt_format_duration(text, ns));
        return;
    }
    if (facts->length)
        mt_buf_add_text(facts, DOT);
    mt_buf_printf(facts, "%s.%u %s", mt_format_count(whole, tenths / 10), (unsigned)(tenths % 10),
                  unit == hour ? "h" : "min");
}

static void add_device_facts(struct mt_buf *facts, const struct mt_report *report,
                             const struct mt_device_report *device)
{
    add_count(facts, device->step_count, "step", "steps");
    add_count(facts, device->allocations, "allocation", "allocations");
    add_count(facts, device->segments_peak, "segment", "segments");
    if (report->last_t_ns > report->first_t_ns)
        add_duration(facts, report->last_t_ns - report->first_t_ns);
    add_count(facts, device->retries, "retry after emptying the cache",
              "retries after emptying the cache");
}

static void add_dry_run_fact(struct mt_buf *facts, const struct mt_report *report)
{
    struct mt_buf fact = {0};

    mt_buf_add_text(&fact, "dry run on a ");
    mt_header_add_simulated_card(&fact, &report->dry_run);
    add_fact(facts, fact.data);
    mt_buf_release(&fact);
}

const char *mt_chart_frame_facts(struct mt_drawing *drawing, const struct mt_report *report,
                                 const struct mt_device_report *device)
{
    struct mt_buf facts = {0};

    if (report && report->is_dry_run)
        add_dry_run_fact(&facts, report);
    else if (device)
        add_fact(&facts, device->name);
    if (report) {
        add_fact(&facts, report->framework);
        add_fact(&facts, report->options && *report->options ? report->options
                         : report->is_driver_level           ? "requests to the driver"
                                                             : "default allocator");
    }
    if (report && device)
        add_device_facts(&facts, report, device);
    if (report && report->starts_in_middle)
        add_fact(&facts, "starts in the middle: what happened before is not recorded");
    if (report)
        add_count(&facts, report->integrity.events_dropped, "event dropped", "events dropped");
    if (report && report->integrity.cut)
        add_fact(&facts, "the file is cut");
    return mt_buf_take(&facts, &drawing->arena);
}

/* Returns the length of the longest beginning of `text` that ends before a dot and fits between the
 * margins. Returns 0 if the whole text fits, or if no such part fits. */
static size_t first_line(struct mt_drawing *drawing, const char *text, double size)
{
    double room = (drawing->width - 2 * MT_MARGIN) / 1.05;
    const char *at = text;
    size_t best = 0;

    if (mt_text_width(text, size, MT_REGULAR) <= room)
        return 0;
    while ((at = strstr(at, DOT))) {
        const char *start = mt_arena_text(&drawing->arena, text, (size_t)(at - text));

        if (mt_text_width(start, size, MT_REGULAR) > room)
            break;
        best = (size_t)(at - text);
        at += strlen(DOT);
    }
    return best;
}

static void muted_line(struct mt_drawing *drawing, double y, const char *text, const char *role)
{
    mt_chart_frame_text(
        drawing, MT_MARGIN, y,
        mt_text_fit(drawing, text, MT_SIZE_BODY, MT_REGULAR, drawing->width - 2 * MT_MARGIN, false),
        MT_SIZE_BODY, MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_START, role);
}

double mt_chart_frame_header(struct mt_drawing *drawing, const char *title, const char *facts)
{
    double room = drawing->width - 2 * MT_MARGIN, y = 60;
    size_t first = first_line(drawing, facts, MT_SIZE_BODY);

    mt_chart_frame_text(drawing, MT_MARGIN, 38,
                        mt_text_fit(drawing, title, MT_SIZE_TITLE, MT_SEMIBOLD, room, true),
                        MT_SIZE_TITLE, MT_SEMIBOLD, MT_COLOR_TEXT, MT_ANCHOR_START, "title");
    if (first) {
        const char *line = mt_arena_text(&drawing->arena, facts, first);
        muted_line(drawing, y, line, "facts");
        facts += first + strlen(DOT);
        y += 19;
    }
    muted_line(drawing, y, facts, "facts");
    return y + 18;
}

#define TILE_GAP   10.0
#define TILE_PAD   14.0
#define SIZE_LABEL 12.5
#define SIZE_VALUE 19.0
#define NOTE_GAP   5.0 /* between a value and its note, in the widest font */

/* Returns true if all notes fit next to their values. */
static bool notes_fit(const struct mt_tile *tiles, size_t count, double width)
{
    for (size_t i = 0; i < count; i++) {
        double value = mt_text_room(tiles[i].value, SIZE_VALUE, MT_SEMIBOLD);
        double note = mt_text_room(tiles[i].note, SIZE_LABEL, MT_REGULAR);

        if (value + NOTE_GAP + note > width - TILE_PAD - 6)
            return false;
    }
    return true;
}

static const char *fit_label(struct mt_drawing *drawing, const struct mt_tile *tile, double room)
{
    bool fits = 1.05 * mt_text_width(tile->label, SIZE_LABEL, MT_REGULAR) <= room;

    return mt_text_fit(drawing, fits || !tile->short_label ? tile->label : tile->short_label,
                       SIZE_LABEL, MT_REGULAR, room, false);
}

static void draw_tile(struct mt_drawing *drawing, double x, double y, double width, double height,
                      const struct mt_tile *tile, bool note_beside)
{
    const struct mt_paint panel = {.fill = MT_COLOR_PANEL, .radius = 6};
    const struct mt_paint edge = {.fill = tile->edge, .radius = 2};
    double room = width - TILE_PAD - 4;

    mt_draw_rect(drawing, x, y, width, height, &panel, NULL, "tile");
    mt_draw_rect(drawing, x, y, 4, height, &edge, NULL, NULL);
    mt_chart_frame_text(drawing, x + TILE_PAD, y + 19, fit_label(drawing, tile, room), SIZE_LABEL,
                        MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_START, "tile-label");
    const char *value = mt_text_fit(drawing, tile->value, SIZE_VALUE, MT_SEMIBOLD, room, false);
    mt_chart_frame_text(drawing, x + TILE_PAD, y + 41, value, SIZE_VALUE, MT_SEMIBOLD,
                        MT_COLOR_TEXT, MT_ANCHOR_START, "tile-value");
    if (note_beside)
        mt_chart_frame_text(
            drawing, x + TILE_PAD + mt_text_room(value, SIZE_VALUE, MT_SEMIBOLD) + NOTE_GAP, y + 41,
            tile->note, SIZE_LABEL, MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_START, "tile-note");
    else
        mt_chart_frame_text(drawing, x + TILE_PAD, y + 59,
                            mt_text_fit(drawing, tile->note, SIZE_LABEL, MT_REGULAR, room, false),
                            SIZE_LABEL, MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_START, "tile-note");
}

double mt_chart_frame_tiles(struct mt_drawing *drawing, double y, const struct mt_tile *tiles,
                            size_t count)
{
    double width =
        (drawing->width - 2 * MT_MARGIN - TILE_GAP * (double)(count - 1)) / (double)count;
    bool beside = notes_fit(tiles, count, width);
    double height = beside ? 50 : 68;

    for (size_t i = 0; i < count; i++)
        draw_tile(drawing, MT_MARGIN + (double)i * (width + TILE_GAP), y, width, height, &tiles[i],
                  beside);
    return y + height;
}

double mt_chart_frame_plot_x(const struct mt_ticks *ticks, const char *other)
{
    double widest = mt_text_width(other, MT_SIZE_AXIS, MT_REGULAR);

    for (size_t i = 0; i < ticks->count; i++)
        widest = fmax(widest, mt_text_width(ticks->ticks[i].label, MT_SIZE_AXIS, MT_REGULAR));
    return round(MT_MARGIN + 1.05 * widest + 9);
}

void mt_chart_frame_byte_axis(struct mt_drawing *drawing, const struct mt_box *plot,
                              const struct mt_ticks *ticks, uint64_t top)
{
    struct mt_paint line = {.stroke = MT_COLOR_GRID};

    for (size_t i = 0; i < ticks->count; i++) {
        double share = top ? (double)ticks->ticks[i].value / (double)top : 0;
        double y = plot->y + plot->height * (1 - share);

        line.stroke = i ? MT_COLOR_GRID : MT_COLOR_AXIS;
        mt_draw_line(drawing, plot->x, y, plot->x + plot->width, y, &line);
        mt_chart_frame_text(drawing, plot->x - 9, y + 4.5, ticks->ticks[i].label, MT_SIZE_AXIS,
                            MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_END, "tick-y");
    }
}

#define SWATCH     12.0
#define SWATCH_GAP 20.0

static double swatch_width(const struct mt_swatch *swatch)
{
    return SWATCH + 5 + 1.05 * mt_text_width(swatch->text, 12.5, MT_REGULAR);
}

size_t mt_chart_frame_swatches_fit(const struct mt_swatch *swatches, size_t count, double width)
{
    size_t i;

    for (i = 0; i < count; i++) {
        width -= swatch_width(&swatches[i]);
        if (width < 0)
            break;
        width -= SWATCH_GAP;
    }
    return i;
}

double mt_chart_frame_swatches(struct mt_drawing *drawing, double x, double y, double max_x,
                               const struct mt_swatch *swatches, size_t count)
{
    const double gap = SWATCH_GAP, box = SWATCH, rest_width = 60;
    size_t i;

    for (i = 0; i < count; i++) {
        double width = 1.05 * mt_text_width(swatches[i].text, 12.5, MT_REGULAR);
        double room = max_x - x - (i + 1 < count ? rest_width : 0);
        struct mt_paint paint = {.fill = swatches[i].color, .radius = 2};

        if (box + 5 + width > room)
            break;
        mt_draw_rect(drawing, x, y - 10, box, box, &paint, NULL, "swatch");
        mt_chart_frame_text(drawing, x + box + 5, y, swatches[i].text, 12.5, MT_REGULAR,
                            MT_COLOR_MUTED, MT_ANCHOR_START, "legend");
        x += box + 5 + width + gap;
    }
    if (i == count || x + rest_width > max_x + gap)
        return x;
    const char *rest = mt_arena_printf(&drawing->arena, "+ %u more", (unsigned)(count - i));
    return x + gap +
           mt_chart_frame_text(drawing, x, y, rest, 12.5, MT_REGULAR, MT_COLOR_FAINT,
                               MT_ANCHOR_START, "legend");
}

static void footnote_line(struct mt_drawing *drawing, double y, const char *text)
{
    mt_chart_frame_text(drawing, MT_MARGIN, y,
                        mt_text_fit(drawing, text, MT_SIZE_SMALL, MT_REGULAR,
                                    drawing->width - 2 * MT_MARGIN, false),
                        MT_SIZE_SMALL, MT_REGULAR, MT_COLOR_FAINT, MT_ANCHOR_START, "footnote");
}

double mt_chart_frame_footnote(struct mt_drawing *drawing, const char *text)
{
    size_t first = first_line(drawing, text, MT_SIZE_SMALL);
    double y = drawing->height - 12;

    if (first) {
        footnote_line(drawing, y - 16, mt_arena_text(&drawing->arena, text, first));
        text += first + strlen(DOT);
    }
    footnote_line(drawing, y, text);
    return y - MT_SIZE_SMALL - (first ? 16 : 0);
}

void mt_chart_frame_nothing(struct mt_drawing *drawing, double y, const char *text,
                            const char *reason)
{
    const struct mt_paint panel = {.fill = MT_COLOR_PANEL, .radius = 6};
    double room = drawing->width - 4 * MT_MARGIN, bottom = drawing->height - MT_MARGIN;
    double middle = (y + bottom) / 2;

    mt_draw_rect(drawing, MT_MARGIN, y, drawing->width - 2 * MT_MARGIN, bottom - y, &panel, NULL,
                 "nothing");
    mt_chart_frame_text(drawing, drawing->width / 2, middle - 4,
                        mt_text_fit(drawing, text, 17, MT_SEMIBOLD, room, false), 17, MT_SEMIBOLD,
                        MT_COLOR_TEXT, MT_ANCHOR_MIDDLE, "nothing");
    mt_chart_frame_text(drawing, drawing->width / 2, middle + 20,
                        mt_text_fit(drawing, reason, MT_SIZE_BODY, MT_REGULAR, room, false),
                        MT_SIZE_BODY, MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_MIDDLE, "nothing");
}

void mt_chart_frame_empty(struct mt_drawing *drawing, const struct mt_report *report,
                          const struct mt_device_report *device, const char *title,
                          const char *text, const char *reason)
{
    drawing->height = 320;
    mt_chart_frame_nothing(
        drawing,
        mt_chart_frame_header(drawing, title, mt_chart_frame_facts(drawing, report, device)) + 10,
        text, reason);
}

enum mt_color mt_role_color(enum mt_role role)
{
    return MT_COLOR_ROLE_0 + (unsigned)role;
}

const char *mt_role_title(enum mt_role role)
{
    static const char *const titles[] = {
        "Parameters", "Optimizer state", "Gradients", "Activations", "Temporaries",
        "Workspace",  "Inputs",          "KV cache",  "Other",       "Weight copies"};
    _Static_assert(sizeof titles / sizeof *titles == MT_ROLE_COUNT, "one entry for each");

    return titles[role];
}

/* Common names for the parts of a training step. */
static const struct {
    const char *part, *short_name;
    unsigned color;
} known_phases[] = {
    {"zero_grad", "zg", 4}, {"backward", "bwd", 1}, {"forward", "fwd", 0}, {"optim", "opt", 2},
    {"loss", "loss", 3},    {"bwd", "bwd", 1},      {"fwd", "fwd", 0},     {"criterion", "loss", 3},
};

enum { FIRST_OTHER_PHASE = 5 }; /* first color for other names */

static bool contains(const char *text, const char *part)
{
    size_t i;

    for (; *text; text++) {
        for (i = 0; part[i] && mt_lower(text[i]) == part[i]; i++)
            ;
        if (!part[i])
            return true;
    }
    return false;
}

static int known_phase(const char *name)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(known_phases); i++)
        if (contains(name, known_phases[i].part))
            return (int)i;
    return -1;
}

enum mt_color mt_phase_color(const char *name, unsigned ordinal)
{
    int known = known_phase(name);
    unsigned others = MT_COLOR_PHASE_LAST - MT_COLOR_PHASE_0 - FIRST_OTHER_PHASE + 1;

    return MT_COLOR_PHASE_0 +
           (known >= 0 ? known_phases[known].color : FIRST_OTHER_PHASE + ordinal % others);
}

const char *mt_phase_short_name(const char *name)
{
    int known = known_phase(name);

    return known >= 0 ? known_phases[known].short_name : NULL;
}

const char *mt_chart_frame_short(struct mt_drawing *drawing, const char *text, size_t most)
{
    size_t length = strnlen(text, most + 1);

    if (length <= most)
        return text;
    /* Does not cut inside a character. */
    for (length = most; length && ((unsigned char)text[length] & 0xC0) == 0x80; length--)
        ;
    return mt_arena_printf(&drawing->arena, "%.*s\xE2\x80\xA6", (int)length, text);
}

void mt_chart_frame_add_rows_cut(struct mt_buf *footnote, uint32_t rows)
{
    if (rows)
        mt_buf_printf(footnote, "%s%u %s further in %s not drawn", footnote->length ? DOT : "",
                      rows, rows == 1 ? "row" : "rows", rows == 1 ? "is" : "are");
}

const char *mt_chart_frame_fit_site(struct mt_drawing *drawing, const char *site, double size,
                                    double width)
{
    size_t length = mt_site_label_head(site);
    bool has_line = length && site[length - 1] >= '0' && site[length - 1] <= '9';

    if (mt_text_room(site, size, MT_REGULAR) <= width)
        return site;
    const char *head = mt_arena_printf(&drawing->arena, "%.*s", (int)length, site);
    return mt_text_fit(drawing, head, size, MT_REGULAR, width, has_line);
}

const char *mt_chart_frame_where(struct mt_drawing *drawing, const struct mt_report *report,
                                 int32_t phase, int64_t step)
{
    const char *name = "";
    char number[MT_UNITS_TEXT];

    if (phase >= 0 && (uint32_t)phase >= report->phase_count)
        phase = MT_NO_PHASE;
    while (phase >= 0 && report->phases[phase].is_plumbing)
        phase = report->phases[phase].parent;
    if (phase >= 0 && !report->phases[phase].is_step)
        name = mt_chart_frame_short(drawing, report->phases[phase].name, MAX_NAME);
    if (step == MT_NO_STEP)
        return name;
    mt_format_count(number, mt_magnitude(step));
    return mt_arena_printf(&drawing->arena, "%s%sstep %s%s", name, *name ? ", " : "",
                           step < 0 ? "\xE2\x88\x92" : "", number);
}

const char *mt_chart_frame_when(struct mt_drawing *drawing, const struct mt_report *report,
                                uint64_t t_ns)
{
    uint64_t since = t_ns > report->first_t_ns ? t_ns - report->first_t_ns : 0;
    uint64_t longest =
        report->last_t_ns > report->first_t_ns ? report->last_t_ns - report->first_t_ns : 0;
    /* Gives every duration at least three digits. */
    uint64_t step = longest >= 1000000000u ? 1000000 : longest >= 1000000 ? 1000 : 1;
    char text[MT_TICK_TEXT];

    /* mt_scale_time_label expects whole steps, so the instant is rounded to the nearest step. */
    mt_scale_time_label(text, since <= UINT64_MAX - step / 2 ? since + step / 2 : since, step,
                        longest);
    return mt_arena_text(&drawing->arena, text, strlen(text));
}

const char *mt_chart_frame_at(struct mt_drawing *drawing, const struct mt_report *report,
                              uint64_t t_ns, uint64_t event)
{
    char number[MT_UNITS_TEXT];

    mt_format_count(number, event);
    if (!mt_report_has_times(report))
        return mt_arena_printf(&drawing->arena, "event %s", number);
    return mt_arena_printf(&drawing->arena, "%s (event %s)",
                           mt_chart_frame_when(drawing, report, t_ns), number);
}

const char *mt_chart_frame_length(struct mt_drawing *drawing, const struct mt_report *report,
                                  uint64_t length_ns, uint64_t events)
{
    char text[MT_UNITS_TEXT];

    if (mt_report_has_times(report))
        return mt_arena_printf(&drawing->arena, "%s", mt_format_duration(text, length_ns));
    return mt_arena_printf(&drawing->arena, "%s", mt_format_counted(text, events, "event"));
}

const char *mt_chart_frame_teardown(struct mt_drawing *drawing, const struct mt_report *report,
                                    const struct mt_device_report *device)
{
    const struct mt_shown_end end = mt_device_shown_end(device);

    if (!end.is_cut)
        return "";
    return mt_arena_printf(&drawing->arena, "%s of teardown not drawn",
                           mt_chart_frame_length(drawing, report,
                                                 mt_sub_or_0_u64(device->last_t_ns, end.t_ns),
                                                 device->last_event - end.event));
}

void mt_chart_frame_describe(struct mt_drawing *drawing, const struct mt_report *report,
                             const struct mt_device_report *device, const char *title)
{
    char reserved[MT_UNITS_TEXT], allocated[MT_UNITS_TEXT], requested[MT_UNITS_TEXT];
    char share[MT_UNITS_TEXT];
    const char *description = "No allocator events.";

    if (device && report && mt_lacks_history(report, device))
        description = mt_arena_printf(&drawing->arena, "One instant: reserved %s, allocated %s.",
                                      mt_format_bytes(reserved, device->end.reserved),
                                      mt_format_bytes(allocated, device->end.allocated));
    else if (device)
        description = mt_arena_printf(
            &drawing->arena,
            "Peak reserved %s, peak allocated %s, peak requested %s; fragmentation at the "
            "%s %s.",
            mt_format_bytes(reserved, device->reserved_peak.bytes),
            mt_format_bytes(allocated, device->allocated_peak.bytes),
            mt_format_bytes(requested, device->requested_peak.bytes),
            mt_fragmentation_instant(device),
            mt_format_percent(share, mt_unused_share(&mt_fragmentation_peak(device)->then)));
    mt_drawing_describe(drawing, title, description);
    mt_drawing_metadata(drawing, "Software", "memtrace");
    mt_drawing_metadata(drawing, "memtrace:schema", "memtrace.picture/1");
    if (report && report->sha256[0])
        mt_drawing_metadata(drawing, "memtrace:trace-sha256", report->sha256);
    if (report)
        mt_drawing_metadata(drawing, "memtrace:policy", report->policy);
}
