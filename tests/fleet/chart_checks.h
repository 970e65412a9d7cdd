/* What has to hold for every picture of a job, at every size. */
#ifndef TESTS_CHART_CHECKS_H
#define TESTS_CHART_CHECKS_H

#include "cmocka_all.h"

#include <string.h>

#include "chart_named.h"
#include "drawing_check.h"
#include "../unit/drawing_checks.h"
#include "job_answers.h"
#include "job_chart.h"

static const struct mt_job_chart_options chart_sizes[] = {
    {0}, {830, 0}, {830, 430}, {500, 330}, {2000, 500}, {480, 320}, {1000, 1200}};
enum { CHART_SIZES = sizeof chart_sizes / sizeof *chart_sizes };

static inline bool is_mark(const struct mt_op *op)
{
    return op->kind == MT_OP_CIRCLE || drawing_is(op, "strip") || drawing_is(op, "swatch") ||
           drawing_is(op, "legend-shade") || drawing_is(op, "bar:kept");
}

static inline bool lies_in_cell(const struct mt_drawing *drawing, const struct mt_box *box)
{
    for (size_t i = 0; i < drawing->op_count; i++) {
        struct mt_box cell = drawing_op_box(&drawing->ops[i]);

        if (drawing->ops[i].kind == MT_OP_RECT && drawing->ops[i].role &&
            !strncmp(drawing->ops[i].role, "cell:", 5) && box->x >= cell.x - 0.01 &&
            box->x + box->width <= cell.x + cell.width + 0.01 && box->y >= cell.y - 0.01 &&
            box->y + box->height <= cell.y + cell.height + 0.01)
            return true;
    }
    return false;
}

/* Text in cells lies in a cell, and so do strips. */
static inline void check_cells(const struct mt_drawing *drawing)
{
    for (size_t i = 0; i < drawing->op_count; i++) {
        const struct mt_op *op = &drawing->ops[i];
        struct mt_box box = drawing_op_box(op);

        if (((op->kind == MT_OP_TEXT && drawing_is(op, "cell")) || drawing_is(op, "strip")) &&
            !lies_in_cell(drawing, &box))
            fail_msg("%s \"%s\" leaves its cell", op->role, op->text ? op->text : "");
    }
}

/* The caller releases the drawing. */
static inline void draw_chart(const struct mt_job_report *report, const char *name,
                              const struct mt_job_chart_options *options,
                              struct mt_drawing *drawing)
{
    struct mt_buf svg = {0};
    const char *fault, *why = "";

    chart_named(name)->draw(report, options, drawing);
    fault = drawing_fault(drawing);
    if (fault)
        fail_msg("%s (%dx%d)", fault, (int)drawing->width, (int)drawing->height);
    if (!mt_drawing_is_sound(drawing, &why))
        fail_msg("%s", why);
    if (drawing_covered_mark(drawing, is_mark))
        fail_msg("%dx%d: \"%s\" covers a mark", (int)drawing->width, (int)drawing->height,
                 drawing_covered_mark(drawing, is_mark));
    check_cells(drawing);
    mt_svg_write(drawing, MT_THEME_AUTO, &svg);
    if (svg.length >= 150 * 1024)
        fail_msg("%zu bytes of SVG", svg.length);
    assert_null(memmem(svg.data, svg.length, "<script", 7));
    for (size_t i = 0; i < svg.length; i++)
        assert_true((unsigned char)svg.data[i] >= ' ' || svg.data[i] == '\n');
    mt_buf_release(&svg);
}

static inline struct mt_job_report *report_of(struct mt_rank_set *set)
{
    struct mt_job_options options = {.job = "slurm:77"};
    struct mt_job_report *report = NULL;

    mt_rank_set_sort(set);
    assert_int_equal(mt_job_report_make(set, &options, &report, NULL), MT_OK);
    return report;
}

/* Draws the chart of a set at every size, and releases the set. */
static inline void draw_all_sizes(struct mt_rank_set *set, const char *name)
{
    struct mt_job_report *report = report_of(set);

    for (int i = 0; i < CHART_SIZES; i++) {
        struct mt_drawing drawing;

        draw_chart(report, name, &chart_sizes[i], &drawing);
        mt_drawing_release(&drawing);
    }
    mt_job_report_free(report);
    mt_rank_set_release(set);
}

/* 10,000 characters that end lines, reverse text, close elements and are no UTF-8. */
static inline char *hostile_name(char name[10001], unsigned variant)
{
    static const char *const parts[] = {
        "<script>alert(1)</script>",        "\x1b[31m", "\xe2\x80\xae", "\xff\xfe",
        "a very long name without an end ", "\t\r\n"};
    size_t length = 0;

    for (unsigned i = variant;; i++) {
        const char *part = parts[i % 6];

        if (length + strlen(part) > 10000)
            break;
        memcpy(name + length, part, strlen(part));
        length += strlen(part);
    }
    name[length] = '\0';
    return name;
}

#endif
