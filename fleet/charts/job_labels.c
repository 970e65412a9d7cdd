#include "job_labels.h"

#define MAX_OUTLIERS 12
#define MAX_GAPS     3
#define NAME_WIDTH   220 /* maximum pixels of a name from a file */

static const char *text_of(const char *text)
{
    return text ? text : "";
}

void mt_job_labels_add(struct mt_drawing *drawing, struct mt_job_labels *labels, uint32_t row,
                       const char *words)
{
    if (row == MT_NO_ROW)
        return;
    for (uint32_t i = 0; i < labels->count; i++) {
        struct mt_job_label *label = &labels->labels[i];

        if (label->row != row)
            continue;
        label->words =
            text_of(mt_arena_printf(&drawing->arena, "%s" MT_JOB_DOT "%s", label->words, words));
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
                          mt_job_frame_outlier(drawing, &report->outliers[i]));
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
    const char *name, *bytes;

    if (label->row == MT_NO_ROW)
        return mt_job_frame_gap(drawing, label->slot);
    name = mt_text_fit(drawing, mt_job_frame_row(drawing, report, label->row), MT_SIZE_SMALL,
                       MT_REGULAR, NAME_WIDTH, false);
    bytes = mt_job_frame_bytes(drawing, report->rows[label->row].record->reserved_peak.bytes);
    return text_of(with_bytes ? mt_arena_printf(&drawing->arena, "%s: %s" MT_JOB_DOT "%s", name,
                                                bytes, label->words)
                              : mt_arena_printf(&drawing->arena, "%s: %s", name, label->words));
}

bool mt_job_label_is_death(const struct mt_job_report *report, const struct mt_job_label *label)
{
    return label->row != MT_NO_ROW && report->rows[label->row].record->outcome == MT_OUTCOME_OOM;
}
