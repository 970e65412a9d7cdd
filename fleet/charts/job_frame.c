/* The frame of charts of a job: title and panels, lanes of rows, and labels. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "chart_frame.h"
#include "foreign_text.h"
#include "job_chart.h"
#include "job_frame.h"
#include "job_order.h"
#include "units.h"
#include "util.h"

/* Divides pixels among the ranks of a job. Each group gets whole pixels in proportion to its
 * places, at least one, and there is a distance between groups. In a group that has fewer units of
 * pixels than places, places share units. */

#define GROUP_DISTANCE 6 /* pixels between groups */
#define DISTANCE_SHARE 8 /* all distances are together at most 1/8 of the pixels */
#define GROUP_PIXELS   4 /* groups are separated if they have at least this many on average */

/* A range of adjacent slots, with their places and pixels. */
struct part {
    uint32_t first_slot, slot_count, place, size;
    struct mt_job_span span; /* in units of pixels */
};

static uint32_t share(uint64_t place, uint64_t places, uint64_t units)
{
    return (uint32_t)(place * units / places);
}

/* Adds a lane for each slot. */
static void add_own(const struct mt_job_order *order, const struct part *part, uint32_t unit,
                    struct mt_job_lanes *lanes)
{
    for (uint32_t i = part->first_slot; i < part->first_slot + part->slot_count; i++) {
        const struct mt_job_slot *slot = &order->slots[i];
        uint32_t first = slot->place - part->place;
        uint32_t begin = share(first, part->size, (uint64_t)part->span.size * unit);
        uint32_t end =
            share((uint64_t)first + slot->size, part->size, (uint64_t)part->span.size * unit);

        lanes->lanes[lanes->count++] =
            (struct mt_job_lane){part->span.at * unit + begin, end - begin, i, 1};
    }
}

/* Adds a lane for each unit. A gap may fill several lanes. */
static void add_shared(const struct mt_job_order *order, const struct part *part, uint32_t unit,
                       struct mt_job_lanes *lanes)
{
    struct mt_job_lane *first = &lanes->lanes[lanes->count];

    for (uint32_t i = 0; i < part->span.size; i++)
        first[i] = (struct mt_job_lane){(part->span.at + i) * unit, unit, 0, 0};
    for (uint32_t i = part->first_slot; i < part->first_slot + part->slot_count; i++) {
        const struct mt_job_slot *slot = &order->slots[i];
        uint32_t place = slot->place - part->place;
        uint32_t last = share((uint64_t)place + slot->size - 1, part->size, part->span.size);

        for (uint32_t at = share(place, part->size, part->span.size); at <= last; at++) {
            if (!first[at].slot_count)
                first[at].first_slot = i;
            first[at].slot_count = i - first[at].first_slot + 1;
            lanes->is_shared |= first[at].slot_count > 1;
        }
    }
    lanes->count += part->span.size;
}

static void add_part(const struct mt_job_order *order, const struct part *part, uint32_t unit,
                     struct mt_job_lanes *lanes)
{
    if ((uint64_t)part->span.size * unit >= part->size)
        add_own(order, part, unit, lanes);
    else
        add_shared(order, part, unit, lanes);
}

static void add_groups(const struct mt_job_order *order, uint32_t units, uint32_t unit,
                       struct mt_job_lanes *lanes)
{
    uint32_t borders = order->group_count - 1;
    uint32_t distance = borders ? (uint32_t)mt_min_u64((GROUP_DISTANCE + unit - 1) / unit,
                                                       units / DISTANCE_SHARE / borders)
                                : 0;
    uint32_t rest = units - distance * borders - order->group_count;

    for (uint32_t g = 0; g < order->group_count; g++) {
        const struct mt_job_slot_group *group = &order->groups[g];
        uint32_t begin = share(group->place, order->place_count, rest);
        uint32_t end = share((uint64_t)group->place + group->size, order->place_count, rest);
        struct part part = {group->first_slot,
                            group->slot_count,
                            group->place,
                            group->size,
                            {begin + g * (distance + 1), end - begin + 1}};

        add_part(order, &part, unit, lanes);
        lanes->groups[g] = (struct mt_job_span){part.span.at * unit, part.span.size * unit};
    }
}

void mt_job_lanes_make(const struct mt_job_order *order, struct mt_arena *arena, uint32_t pixels,
                       uint32_t unit, struct mt_job_lanes *lanes)
{
    uint32_t units = pixels / unit;

    *lanes = (struct mt_job_lanes){.count = 0};
    lanes->lanes = mt_arena_array(arena, (size_t)pixels + 1, sizeof *lanes->lanes);
    if (!order->slot_count || !units)
        return;
    if (order->group_count > 1 && order->group_count > units / GROUP_PIXELS) {
        const struct part all = {0, order->slot_count, 0, order->place_count, {0, units}};

        add_part(order, &all, unit, lanes);
        return;
    }
    lanes->groups = mt_arena_array(arena, order->group_count, sizeof *lanes->groups);
    add_groups(order, units, unit, lanes);
}

const struct mt_job_lane *mt_job_lane_of(const struct mt_job_order *order,
                                         const struct mt_job_lanes *lanes, uint32_t row)
{
    for (uint32_t i = 0; i < lanes->count; i++) {
        const struct mt_job_lane *lane = &lanes->lanes[i];

        for (uint32_t s = lane->first_slot; s < lane->first_slot + lane->slot_count; s++)
            if (order->slots[s].row == row)
                return lane;
    }
    return NULL;
}

int32_t mt_job_lane_round_rank(const struct mt_job_order *order, const struct mt_job_lane *lane,
                               uint64_t step)
{
    for (uint32_t s = lane->first_slot; s < lane->first_slot + lane->slot_count; s++) {
        const struct mt_job_slot *slot = &order->slots[s];

        if (!slot->count && slot->rank >= 0 && (uint64_t)slot->rank % step == 0)
            return slot->rank;
    }
    return -1;
}

#define JOB_DOT " \xC2\xB7 "

#define DASH     " \xE2\x80\x94 "
#define MAX_NAME 200 /* maximum bytes of a foreign name */
#define MAX_ROW  80  /* of the name of a row in such a chart */
#define MAX_AXIS 24  /* maximum bytes of the name of an axis in the facts */

const char *mt_job_words_name(struct mt_drawing *drawing, const char *name, size_t most)
{
    struct mt_buf escaped = {0};

    mt_buf_add_printable_text(&escaped, mt_chart_frame_short(drawing, name, most));
    return mt_buf_take(&escaped, &drawing->arena);
}

const char *mt_job_frame_name(struct mt_drawing *drawing, const char *name)
{
    return mt_job_words_name(drawing, name, MAX_NAME);
}

void mt_job_frame_add(struct mt_buf *line, const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (line->length)
        mt_buf_add_text(line, JOB_DOT);
    mt_buf_add_text(line, text);
}

const char *mt_job_frame_fit(struct mt_drawing *drawing, const char *text, double width)
{
    size_t end = strlen(text);
    const char *parts = text;

    while (parts && mt_text_room(parts, MT_SIZE_SMALL, MT_REGULAR) > width) {
        while (end && strncmp(text + end, JOB_DOT, strlen(JOB_DOT)) != 0)
            end--;
        if (!end)
            return mt_text_fit(drawing, parts, MT_SIZE_SMALL, MT_REGULAR, width, false);
        parts = mt_arena_text(&drawing->arena, text, end);
        end--;
    }
    return parts;
}

const char *mt_job_words_row(struct mt_drawing *drawing, const struct mt_job_report *report,
                             uint32_t row)
{
    const char *name = mt_job_row_name(&drawing->arena, report, row);

    return mt_job_words_name(drawing, name, MAX_ROW);
}

const char *mt_job_words_unit(const struct mt_job_report *report)
{
    return report->row_count == report->seen_count ? "rank" : "device";
}

const char *mt_job_words_bytes(struct mt_drawing *drawing, unsigned __int128 bytes)
{
    uint64_t most = bytes > UINT64_MAX ? UINT64_MAX : (uint64_t)bytes;
    char text[MT_UNITS_TEXT], exact[MT_UNITS_TEXT];

    if (bytes < 1000) /* mt_format_bytes is exact for these */
        return mt_arena_printf(&drawing->arena, "%s", mt_format_bytes(text, most));
    return mt_arena_printf(&drawing->arena, "%s%s (%s B)", bytes > UINT64_MAX ? "more than " : "",
                           mt_format_bytes(text, most), mt_format_count(exact, most));
}

const char *mt_job_words_describe(struct mt_drawing *drawing, const struct mt_job_report *report,
                                  const char *chart, const char *description)
{
    const char *job = *report->job ? report->job : "job";
    const char *title =
        mt_arena_printf(&drawing->arena, "%s" DASH "%s", mt_job_frame_name(drawing, job), chart);

    mt_drawing_describe(drawing, title, description);
    mt_drawing_metadata(drawing, "Software", "memtrace");
    mt_drawing_metadata(drawing, "memtrace:schema", "memtrace.picture/1");
    return title;
}

void mt_job_words_nothing(struct mt_drawing *drawing, const char *title, const char *text,
                          const char *reason)
{
    drawing->height = 320;
    mt_chart_frame_nothing(drawing, mt_chart_frame_header(drawing, title, "") + 10, text, reason);
}

static void add_count(struct mt_buf *facts, uint64_t count, const char *one, const char *many)
{
    char n[MT_UNITS_TEXT];

    if (count)
        mt_job_frame_add(facts, "%s %s", mt_format_count(n, count), count == 1 ? one : many);
}

static void add_ranks(struct mt_buf *facts, const struct mt_job_report *report)
{
    char n[2][MT_UNITS_TEXT];

    if (report->missing_count)
        mt_job_frame_add(facts, "%s of %s%s ranks", mt_format_count(n[0], report->seen_count),
                         report->world_is_known ? "" : "at least ",
                         mt_format_count(n[1], report->world));
    else if (report->seen_count)
        add_count(facts, report->seen_count, "rank", "ranks");
    if (report->row_count != report->seen_count)
        add_count(facts, report->row_count, "device of a process", "devices of processes");
    if (report->host_count > 1)
        add_count(facts, report->host_count, "host", "hosts");
}

static const char *device_name(const struct mt_job_report *report)
{
    const char *name = report->row_count ? report->rows[0].record->device_name : "";

    for (uint32_t i = 1; i < report->row_count; i++)
        if (strcmp(report->rows[i].record->device_name, name) != 0)
            return "several kinds of devices";
    return name;
}

static void add_axes(struct mt_buf *facts, struct mt_drawing *drawing,
                     const struct mt_job_report *report)
{
    for (uint32_t i = 0; i < report->axis_count; i++) {
        const char *name = mt_chart_frame_short(
            drawing, mt_job_frame_name(drawing, report->axes[i].name), MAX_AXIS);

        mt_buf_printf(facts, "%s%s:%u", i ? ", " : JOB_DOT, name, (unsigned)report->axes[i].size);
    }
}

/* Returns facts about the job: "1,021 of 1,024 ranks · 128 hosts · NVIDIA H200 · pp:8, dp:16, tp:8
 * · 3 ranks missing · ...". */
static const char *job_frame_facts(struct mt_drawing *drawing, const struct mt_job_report *report)
{
    const char *device = mt_job_frame_name(drawing, device_name(report));
    struct mt_buf facts = {0};

    add_ranks(&facts, report);
    if (*device)
        mt_job_frame_add(&facts, "%s", device);
    add_axes(&facts, drawing, report);
    add_count(&facts, report->missing_count, "rank missing", "ranks missing");
    add_count(&facts, report->outcome_counts[MT_OUTCOME_OOM], "ran out of memory",
              "ran out of memory");
    add_count(&facts, report->incomplete_count, "recording incomplete", "recordings incomplete");
    add_count(&facts, report->planned_count, "dry run", "dry runs");
    return mt_buf_take(&facts, &drawing->arena);
}

double mt_job_frame_begin(struct mt_drawing *drawing, const struct mt_job_report *report,
                          const struct mt_job_chart_options *options, double height, const char *id,
                          const char *chart)
{
    mt_drawing_init(drawing, mt_chart_frame_width(options->width),
                    mt_chart_frame_height(options->height, height), id);
    const char *facts = job_frame_facts(drawing, report);
    const char *title = mt_job_words_describe(drawing, report, chart, facts);
    return mt_chart_frame_header(drawing, title, facts);
}

const char *mt_job_frame_row(struct mt_drawing *drawing, const struct mt_job_report *report,
                             uint32_t row)
{
    const char *name = mt_job_row_name(&drawing->arena, report, row);

    return mt_job_frame_name(drawing, name);
}

/* The ranks of a gap within a group are not always consecutive. */
const char *mt_job_frame_gap(struct mt_drawing *drawing, const struct mt_job_slot *slot)
{
    bool is_whole = (uint32_t)slot->last - (uint32_t)slot->rank + 1 == slot->count;
    char n[MT_UNITS_TEXT];
    const char *text;

    if (slot->count == 1)
        text = mt_arena_printf(&drawing->arena, "rank %d: missing", (int)slot->rank);
    else
        text = mt_arena_printf(&drawing->arena, "%s%sranks %s%d to %d: missing",
                               is_whole ? "" : mt_format_count(n, slot->count), is_whole ? "" : " ",
                               is_whole ? "" : "from ", (int)slot->rank, (int)slot->last);
    return text;
}

/* Returns the name of a group: "pp 3". The name is "unplaced" if the position of the ranks on the
 * axis is not known, and "" if there is no axis. */
static const char *job_frame_group(struct mt_drawing *drawing, const struct mt_job_order *order,
                                   uint32_t group)
{
    uint32_t coordinate = order->groups[group].coordinate;

    if (!order->axis)
        return "";
    if (coordinate == MT_NO_ROW)
        return "unplaced";
    const char *name = mt_job_frame_name(drawing, order->axis->name);
    return mt_arena_printf(&drawing->arena, "%s %u", name, (unsigned)coordinate);
}

static bool group_fits(const char *text, double width)
{
    return mt_text_room(text, MT_SIZE_SMALL, MT_SEMIBOLD) <= width;
}

const char *mt_job_frame_fit_group(struct mt_drawing *drawing, const struct mt_job_order *order,
                                   uint32_t group, double width)
{
    const char *name = job_frame_group(drawing, order, group);
    uint32_t coordinate = order->groups[group].coordinate;
    const char *number = "?";

    if (group_fits(name, width))
        return name;
    if (coordinate != MT_NO_ROW)
        number = mt_arena_printf(&drawing->arena, "%u", (unsigned)coordinate);
    return group_fits(number, width) ? number : "";
}

/* Returns the cause of the difference, if it has a name. */
static const char *outlier_words(const struct mt_job_outlier *outlier)
{
    switch (outlier->cause) {
    case MT_OUTLIER_GROWTH: return ", growth";
    case MT_OUTLIER_LIBRARY: return ", outside the allocator";
    case MT_OUTLIER_UNUSED: return ", reserved and unused";
    case MT_OUTLIER_SITE: break;
    }
    return "";
}

/* Returns how a row differs from its replicas: "+1.25 GiB, growth". */
static const char *job_frame_outlier(struct mt_drawing *drawing,
                                     const struct mt_job_outlier *outlier)
{
    char n[MT_UNITS_TEXT];
    const char *sign = outlier->is_less ? "\xE2\x88\x92" : "+";

    return mt_arena_printf(&drawing->arena, "%s%s%s", sign, mt_format_bytes(n, outlier->bytes),
                           outlier_words(outlier));
}

const char *mt_job_frame_bytes(struct mt_drawing *drawing, uint64_t bytes)
{
    char n[MT_UNITS_TEXT];

    mt_format_bytes(n, bytes);
    return mt_arena_text(&drawing->arena, n, strlen(n));
}

#define MAX_OUTLIERS 12
#define MAX_GAPS     3
#define NAME_WIDTH   220 /* maximum pixels of a name from a file */

void mt_job_labels_add(struct mt_drawing *drawing, struct mt_job_labels *labels, uint32_t row,
                       const char *words)
{
    if (row == MT_NO_ROW)
        return;
    for (uint32_t i = 0; i < labels->count; i++) {
        struct mt_job_label *label = &labels->labels[i];

        if (label->row != row)
            continue;
        label->words = mt_arena_printf(&drawing->arena, "%s" JOB_DOT "%s", label->words, words);
        return;
    }
    if (labels->count < MT_JOB_LABELS)
        labels->labels[labels->count++] = (struct mt_job_label){.row = row, .words = words};
}

void mt_job_labels_add_death(struct mt_drawing *drawing, const struct mt_job_report *report,
                             struct mt_job_labels *labels)
{
    if (report->death)
        mt_job_labels_add(drawing, labels, report->death->row,
                          report->death->count > 1 ? "first out of memory" : "out of memory");
}

void mt_job_labels_add_outliers(struct mt_drawing *drawing, const struct mt_job_report *report,
                                struct mt_job_labels *labels)
{
    for (uint32_t i = 0; i < report->outlier_count && i < MAX_OUTLIERS; i++) {
        uint32_t before = labels->count;

        mt_job_labels_add(drawing, labels, report->outliers[i].row,
                          job_frame_outlier(drawing, &report->outliers[i]));
        if (labels->count > before)
            labels->labels[before].is_outlier = true;
    }
    labels->left_out =
        report->outlier_count > MAX_OUTLIERS ? report->outlier_count - MAX_OUTLIERS : 0;
}

/* Orders gaps by width, widest first, then by position. */
static bool is_before(const struct mt_job_slot *a, const struct mt_job_slot *b)
{
    return a->count != b->count ? a->count > b->count : a < b;
}

void mt_job_labels_add_gaps(const struct mt_job_order *order, struct mt_job_labels *labels)
{
    const struct mt_job_slot *last = NULL;

    for (uint32_t taken = 0; taken < MAX_GAPS && labels->count < MT_JOB_LABELS; taken++) {
        const struct mt_job_slot *widest = NULL;

        for (uint32_t i = 0; i < order->slot_count; i++) {
            const struct mt_job_slot *slot = &order->slots[i];

            if (slot->count && (!last || is_before(last, slot)) &&
                (!widest || is_before(slot, widest)))
                widest = slot;
        }
        if (!widest)
            return;
        last = widest;
        labels->labels[labels->count++] = (struct mt_job_label){.row = MT_NO_ROW, .slot = widest};
    }
}

const char *mt_job_label_text(struct mt_drawing *drawing, const struct mt_job_report *report,
                              const struct mt_job_label *label, bool with_bytes)
{
    if (label->row == MT_NO_ROW)
        return mt_job_frame_gap(drawing, label->slot);
    const char *name = mt_text_fit(drawing, mt_job_frame_row(drawing, report, label->row),
                                   MT_SIZE_SMALL, MT_REGULAR, NAME_WIDTH, false);
    const char *bytes =
        mt_job_frame_bytes(drawing, report->rows[label->row].record->reserved_peak.bytes);
    return with_bytes
               ? mt_arena_printf(&drawing->arena, "%s: %s" JOB_DOT "%s", name, bytes, label->words)
               : mt_arena_printf(&drawing->arena, "%s: %s", name, label->words);
}

const struct mt_job_lane *mt_job_label_lane(const struct mt_job_order *order,
                                            const struct mt_job_lanes *lanes,
                                            const struct mt_job_label *label)
{
    if (label->row != MT_NO_ROW)
        return mt_job_lane_of(order, lanes, label->row);
    for (uint32_t i = 0; i < lanes->count; i++)
        if (lanes->lanes[i].slot_count == 1 &&
            &order->slots[lanes->lanes[i].first_slot] == label->slot)
            return &lanes->lanes[i];
    return NULL;
}

bool mt_job_label_is_death(const struct mt_job_report *report, const struct mt_job_label *label)
{
    return label->row != MT_NO_ROW && report->rows[label->row].record->outcome == MT_OUTCOME_OOM;
}
