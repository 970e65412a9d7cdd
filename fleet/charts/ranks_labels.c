/* Labels are in rows above the bars. A label is next to a line that goes down to its target. If
 * labels are right of their lines, the rightmost label is in the lowest row, and a label further
 * left is above the labels that it would cover, so that its line passes them. If labels are left of
 * their lines, the order is reversed. If there is not enough room, the least important labels are
 * omitted. */
#include <math.h>
#include <stdlib.h>

#include "ranks_layout.h"

#define SIDE      5.0 /* distance from a line to its label */
#define APART     8.0 /* distance between labels */
#define MIN_WIDTH 60.0
#define IMPORTANT 2  /* number of first labels for which others are dropped */
#define MIN_CROSS 12 /* pixels of a lane; in narrower lanes, crosses would cover each other */

static void collect(struct mt_drawing *drawing, struct mt_ranks_layout *layout)
{
    const struct mt_job_report *report = layout->report;
    struct mt_job_labels *labels = &layout->wanted;

    mt_job_labels_add(drawing, labels, report->reserved.max_row,
                      report->row_count > 1 ? "largest" : "reserved peak");
    mt_job_labels_add_death(drawing, report, labels);
    if (report->row_count > 1) {
        mt_job_labels_add(drawing, labels, report->reserved.min_row, "lowest");
        mt_job_labels_add(drawing, labels, report->reserved.median_row, "median");
    }
    mt_job_labels_add_outliers(drawing, report, labels);
    mt_job_labels_add_gaps(&layout->order, labels);
}

/* Puts the label on the right or left of its line. Returns false if the plot has no room there. */
static bool take_side(const struct mt_ranks_layout *layout, struct mt_ranks_label *label,
                      bool is_left)
{
    label->is_left = is_left;
    label->left = is_left ? label->x - SIDE - label->width : label->x + SIDE;
    label->right = label->left + label->width;
    return label->left >= layout->plot.x && label->right <= layout->plot.x + layout->plot.width;
}

static void prepare(struct mt_drawing *drawing, struct mt_ranks_layout *layout,
                    const struct mt_job_label *label)
{
    struct mt_ranks_label *prepared = &layout->labels[layout->label_count];
    const struct mt_job_lane *lane = mt_job_label_lane(&layout->order, &layout->lanes, label);
    double room = fmax(layout->plot.width / 2 - 8, MIN_WIDTH);
    const char *text =
        mt_job_frame_fit(drawing, mt_job_label_text(drawing, layout->report, label, true), room);

    if (!lane || !*text)
        return;
    *prepared = (struct mt_ranks_label){.label = label,
                                        .text = text,
                                        .width = mt_text_room(text, MT_SIZE_SMALL, MT_REGULAR),
                                        .x = layout->plot.x + lane->at + lane->size / 2.0};
    if (take_side(layout, prepared, false) || take_side(layout, prepared, true))
        layout->label_count++;
}

static bool is_crossed(const struct mt_ranks_label *label, double x)
{
    return x > label->left - 3 && x < label->right + 3;
}

static bool has_room(const struct mt_ranks_layout *layout, const struct mt_ranks_label *new)
{
    for (uint32_t i = 0; i < layout->label_count; i++) {
        const struct mt_ranks_label *old = &layout->labels[i];

        if (!old->is_placed)
            continue;
        if (old->level == new->level &&new->left < old->right + APART &&
            old->left < new->right + APART)
            return false;
        if ((old->level <= new->level &&is_crossed(old, new->x)) ||
            (old->level >= new->level &&is_crossed(new, old->x)))
            return false;
    }
    return true;
}

/* Places a label in the lowest row with room, first on its side of the line, then on the other
 * side. */
static bool place(const struct mt_ranks_layout *layout, struct mt_ranks_label *label)
{
    bool is_left = label->is_left;

    for (int other = 0; other < 2; other++)
        for (label->level = 0;
             take_side(layout, label, is_left != (bool)other) && label->level < layout->label_rows;
             label->level++)
            if (has_room(layout, label)) {
                label->is_placed = true;
                return true;
            }
    take_side(layout, label, is_left);
    return false;
}

/* Orders labels: first those right of their lines, from right to left, then the others, from left
 * to right. */
static int compare_places(const void *a, const void *b)
{
    const struct mt_ranks_label *const *one = a, *const *other = b;
    bool is_left = (*one)->is_left, other_is_left = (*other)->is_left;
    int order = ((*one)->x > (*other)->x) - ((*one)->x < (*other)->x);

    if (is_left != other_is_left)
        return is_left ? 1 : -1;
    if (order)
        return is_left ? order : -order;
    return (*one > *other) - (*one < *other);
}

/* Places all labels that are kept. Otherwise returns the label that has no room. */
static struct mt_ranks_label *place_kept(struct mt_ranks_layout *layout)
{
    struct mt_ranks_label *sorted[MT_JOB_LABELS], *failed = NULL;
    uint32_t count = 0;

    for (uint32_t i = 0; i < layout->label_count; i++)
        if (!layout->labels[i].is_dropped)
            sorted[count++] = &layout->labels[i];
    qsort(sorted, count, sizeof *sorted, compare_places);
    for (uint32_t i = 0; i < count && !failed; i++)
        failed = place(layout, sorted[i]) ? NULL : sorted[i];
    for (uint32_t i = 0; i < count && failed; i++) {
        sorted[i]->is_placed = false;
        take_side(layout, sorted[i], sorted[i]->was_left);
    }
    return failed;
}

/* Drops a label that has no room, unless it is one of the first. In that case drops the least
 * important one. */
static void drop(struct mt_ranks_layout *layout, struct mt_ranks_label *label)
{
    struct mt_ranks_label *last = &layout->labels[layout->label_count - 1];

    while (last->is_dropped)
        last--;
    if (label - layout->labels < IMPORTANT)
        label = last;
    label->is_dropped = true;
}

static uint32_t count_placed_outliers(const struct mt_ranks_layout *layout)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < layout->label_count; i++)
        count += layout->labels[i].is_placed && layout->labels[i].label->is_outlier;
    return count;
}

static uint32_t count_wanted_outliers(const struct mt_job_labels *wanted)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < wanted->count; i++)
        count += wanted->labels[i].is_outlier;
    return count;
}

/* Places the labels. A label extends toward the middle of the plot, or to the right if all_right is
 * set, if there is room on that side. Returns the number of placed labels. */
static uint32_t arrange(struct mt_ranks_layout *layout, bool all_right)
{
    double middle = layout->plot.x + layout->plot.width / 2;
    struct mt_ranks_label *failed;
    uint32_t count = 0;

    for (uint32_t i = 0; i < layout->label_count; i++) {
        struct mt_ranks_label *label = &layout->labels[i];
        bool is_left = !all_right && label->x > middle;

        label->is_placed = label->is_dropped = false;
        if (!take_side(layout, label, is_left))
            take_side(layout, label, !is_left);
        label->was_left = label->is_left;
    }
    while ((failed = place_kept(layout)))
        drop(layout, failed);
    for (uint32_t i = 0; i < layout->label_count; i++)
        count += layout->labels[i].is_placed ||
                 (layout->labels[i].is_dropped && place(layout, &layout->labels[i]));
    return count;
}

void mt_ranks_place_labels(struct mt_drawing *drawing, struct mt_ranks_layout *layout)
{
    uint32_t rows = 0;

    collect(drawing, layout);
    for (uint32_t i = 0; i < layout->wanted.count; i++)
        prepare(drawing, layout, &layout->wanted.labels[i]);
    uint32_t count = arrange(layout, false);
    if (count < layout->label_count && arrange(layout, true) <= count)
        arrange(layout, false);
    for (uint32_t i = 0; i < layout->label_count; i++)
        if (layout->labels[i].is_placed && layout->labels[i].level >= rows)
            rows = layout->labels[i].level + 1;
    layout->label_rows = rows;
    layout->unnamed_outliers = layout->wanted.left_out + count_wanted_outliers(&layout->wanted) -
                               count_placed_outliers(layout);
}

static void draw_mark(struct mt_drawing *drawing, double x, double y, bool is_death)
{
    const struct mt_paint ring = {
        .fill = MT_COLOR_BACKGROUND, .stroke = MT_COLOR_TEXT, .stroke_width = 1.6};
    const struct mt_paint cross = {.stroke = MT_COLOR_BAD, .stroke_width = 2.2};
    const struct mt_point falling[2] = {{x - 4.5, y - 4.5}, {x + 4.5, y + 4.5}};
    const struct mt_point rising[2] = {{x - 4.5, y + 4.5}, {x + 4.5, y - 4.5}};

    if (is_death) {
        mt_draw_path(drawing, falling, 2, false, false, &cross, NULL, "death");
        mt_draw_path(drawing, rising, 2, false, false, &cross, NULL, "death");
    } else {
        mt_draw_circle(drawing, x, y, 3, &ring, NULL, "mark");
    }
}

static double label_y(const struct mt_ranks_layout *layout, const struct mt_job_label *label)
{
    if (label->row == MT_NO_ROW)
        return layout->plot.y + 8;
    return mt_ranks_y(layout, layout->report->rows[label->row].record->reserved_peak.bytes);
}

static void draw_label(struct mt_drawing *drawing, const struct mt_ranks_layout *layout,
                       const struct mt_ranks_label *label)
{
    const struct mt_paint line = {.stroke = MT_COLOR_MUTED};
    bool is_death = mt_job_label_is_death(layout->report, label->label);
    double base = layout->plot.y - 12 - label->level * MT_RANKS_LABEL_PITCH;
    const struct mt_point points[2] = {{label->x, base - 10},
                                       {label->x, label_y(layout, label->label)}};

    mt_draw_path(drawing, points, 2, false, false, &line, NULL, "leader");
    mt_chart_frame_text(drawing, label->is_left ? label->right : label->left, base, label->text,
                        MT_SIZE_SMALL, MT_REGULAR, is_death ? MT_COLOR_BAD : MT_COLOR_TEXT,
                        label->is_left ? MT_ANCHOR_END : MT_ANCHOR_START, "label");
}

/* Draws marks of deaths: always the first, and others if they have room. */
static void draw_deaths(struct mt_drawing *drawing, const struct mt_ranks_layout *layout)
{
    const struct mt_job_report *report = layout->report;

    for (uint32_t i = 0; i < layout->lanes.count; i++) {
        const struct mt_job_lane *lane = &layout->lanes.lanes[i];

        for (uint32_t s = lane->first_slot; s < lane->first_slot + lane->slot_count; s++) {
            uint32_t row = layout->order.slots[s].row;
            bool is_first = row != MT_NO_ROW && report->death && report->death->row == row;

            if (row == MT_NO_ROW || report->rows[row].record->outcome != MT_OUTCOME_OOM)
                continue;
            if (is_first || (lane->slot_count == 1 && lane->size >= MIN_CROSS))
                draw_mark(drawing, layout->plot.x + lane->at + lane->size / 2.0,
                          mt_ranks_y(layout, report->rows[row].record->reserved_peak.bytes), true);
        }
    }
}

void mt_ranks_draw_labels(struct mt_drawing *drawing, const struct mt_ranks_layout *layout)
{
    for (uint32_t i = 0; i < layout->label_count; i++)
        if (layout->labels[i].is_placed)
            draw_label(drawing, layout, &layout->labels[i]);
    for (uint32_t i = 0; i < layout->label_count; i++) {
        const struct mt_ranks_label *label = &layout->labels[i];

        if (label->is_placed && label->label->row != MT_NO_ROW &&
            !mt_job_label_is_death(layout->report, label->label))
            draw_mark(drawing, label->x, label_y(layout, label->label), false);
    }
    draw_deaths(drawing, layout);
}
