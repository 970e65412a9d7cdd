/* The parts next to the plots of steps: legend, verdict, and its evidence. */
#include "trend_layout.h"

#include <stdio.h>
#include <string.h>

#include "paragraph.h"
#include "units.h"
#include "util.h"

#define ROW        23.0
#define HEAD_PITCH 19.0
#define TEXT_PITCH 17.0
#define PART_GAP   6.0 /* distance between paragraphs */

enum { MAX_TEXTS = 12 };

/* The texts, from top to bottom. */
struct words {
    const char *head;
    const char *texts[MAX_TEXTS];
    uint32_t count;
    const char *advice; /* the last text, or NULL */
};

static void add(struct words *words, const char *text)
{
    if (text && words->count < MAX_TEXTS)
        words->texts[words->count++] = text;
}

static void tell_growth(const struct mt_finding *growth, struct words *words)
{
    uint32_t i;

    words->head = growth->title;
    for (i = 0; i < growth->evidence_count; i++)
        add(words, growth->evidence[i]);
    words->advice = growth->advice;
    add(words, words->advice);
}

/* Returns true if the level rises noticeably. A steady verdict then needs an explanation. */
static bool rises(const struct mt_trend *trend)
{
    double rise = (double)trend->bytes_per_step * (trend->end - trend->begin);

    return trend->has_slope && trend->bytes_per_step > 0 &&
           (trend->bytes_per_step > 64 * (int64_t)MT_KIB || rise > (double)trend->level_bytes / 20);
}

static void tell_steady(struct mt_drawing *drawing, const struct mt_trend *trend,
                        struct words *words)
{
    char n[MT_UNITS_TEXT];

    words->head = "No line of the program leaves more memory behind after each step.";
    if (rises(trend))
        add(words,
            mt_arena_printf(&drawing->arena,
                            "The level still rises by %s per step. Values replaced by larger ones, "
                            "or a queue or cache that fills up, are not unbounded growth.",
                            mt_format_bytes(n, (uint64_t)trend->bytes_per_step)));
    else
        add(words, "Memory grows if each step after the warm-up leaves blocks of the same line "
                   "behind, and all of them are still allocated when the last step begins.");
}

static struct words words_of(struct mt_drawing *drawing, const struct mt_trend *trend)
{
    struct words words = {.head = "Not enough steps for a trend"};

    switch (trend->verdict) {
    case MT_TREND_GROWS: tell_growth(trend->growth, &words); break;
    case MT_TREND_STEADY: tell_steady(drawing, trend, &words); break;
    case MT_TREND_NOT_JUDGED:
        words.head = "It is unknown whether memory grows.";
        add(&words, trend->count < MT_GROWTH_MIN_STEPS
                        ? "At least 8 steps are needed: the first two are warm-up, and the last "
                          "two may still free what they leave behind."
                        : "Too many blocks outlive their steps to judge growth.");
        break;
    case MT_TREND_TOO_SHORT:
        add(&words, "A trend needs 5 steps and a verdict on growth needs 8: record more steps.");
        break;
    }
    return words;
}

static struct mt_paragraph paragraph_of(double x, double width, bool is_head)
{
    return (struct mt_paragraph){.x = x,
                                 .width = width,
                                 .size = is_head ? 14 : 12.5,
                                 .pitch = is_head ? HEAD_PITCH : TEXT_PITCH,
                                 .weight = is_head ? MT_SEMIBOLD : MT_REGULAR,
                                 .color = is_head ? MT_COLOR_TEXT : MT_COLOR_MUTED,
                                 .role = is_head ? "verdict" : "evidence"};
}

static void draw_swatch(struct mt_drawing *drawing, double x, double y, enum mt_color color,
                        const char *text)
{
    const struct mt_paint paint = {.fill = color, .radius = 2.5};

    mt_draw_rect(drawing, x, y - 11, 13, 13, &paint, NULL, "swatch");
    mt_chart_frame_text(drawing, x + 21, y, text, MT_SIZE_BODY, MT_REGULAR, MT_COLOR_TEXT,
                        MT_ANCHOR_START, "legend");
}

static const char *trend_words(struct mt_drawing *drawing, const struct mt_trend *trend)
{
    const char *text = mt_arena_printf(&drawing->arena, "robust trend of the level, %s per step",
                                       mt_trend_slope_text(drawing, trend));

    return text;
}

/* Draws the legend in rows, or below a narrow picture in two columns. Returns the baseline below
 * it. */
static double draw_legend(struct mt_drawing *drawing, const struct mt_trend_layout *layout,
                          double y)
{
    const struct mt_paint dashes = {
        .stroke = mt_trend_color(&layout->trend), .stroke_width = 2.2, .dashed = true};
    bool two = drawing->width < MT_NARROW_WIDTH;
    double x = layout->side_x, right = two ? x + layout->side_width / 2 : x;

    draw_swatch(drawing, x, y, MT_COLOR_LEVEL_PEAK, "peak within the step");
    draw_swatch(drawing, right, y + (two ? 0 : ROW), MT_COLOR_LEVEL,
                "still allocated when the step ends");
    y += two ? ROW : 2 * ROW;
    if (layout->is_grouped) {
        draw_swatch(drawing, right, y, MT_COLOR_LEVEL_RANGE, "some steps of the column end here");
        y += two ? 0 : ROW;
    }
    if (layout->trend.has_slope) {
        mt_draw_line(drawing, x, y - 4.5, x + 14, y - 4.5, &dashes);
        mt_chart_frame_text(drawing, x + 21, y, trend_words(drawing, &layout->trend), MT_SIZE_BODY,
                            MT_REGULAR, MT_COLOR_TEXT, MT_ANCHOR_START, "legend");
    }
    return y + (layout->trend.has_slope || (two && layout->is_grouped) ? ROW : 0);
}

double mt_trend_side_height(struct mt_drawing *drawing, const struct mt_trend_layout *layout,
                            double width)
{
    struct words words = words_of(drawing, &layout->trend);
    struct mt_paragraph head = paragraph_of(0, width, true), text = paragraph_of(0, width, false);
    double height = 3 * ROW + HEAD_PITCH * mt_paragraph_lines(drawing, &head, words.head);
    uint32_t i;

    for (i = 0; i < words.count; i++)
        height += PART_GAP + TEXT_PITCH * mt_paragraph_lines(drawing, &text, words.texts[i]);
    return height;
}

void mt_trend_draw_side(struct mt_drawing *drawing, const struct mt_trend_layout *layout)
{
    struct words words = words_of(drawing, &layout->trend);
    struct mt_paragraph head = paragraph_of(layout->side_x, layout->side_width, true);
    struct mt_paragraph text = paragraph_of(layout->side_x, layout->side_width, false);
    double y;
    uint32_t i;

    if (layout->side_width <= 0)
        return;
    y = draw_legend(drawing, layout, layout->side_y) + 10;
    y = mt_paragraph_draw(drawing, &head, y, words.head);
    for (i = 0; i < words.count; i++) {
        double room = layout->side_bottom - (y + PART_GAP) + TEXT_PITCH - 4;

        if (room < TEXT_PITCH)
            return;
        text.most_lines = (uint32_t)(room / TEXT_PITCH);
        if (words.texts[i] == words.advice)
            text.color = MT_COLOR_TEXT;
        y = mt_paragraph_draw(drawing, &text, y + PART_GAP, words.texts[i]);
    }
}
