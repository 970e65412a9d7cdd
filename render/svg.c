/* Writes SVG without cairo, whose SVG surface has no <title>, no classes and no dark mode. Colors
 * are classes. Their light values come first, so that renderers without media queries show the
 * light theme. Numbers have at most one decimal and do not depend on the locale. */
#include "backends.h"

#include <math.h>
#include <string.h>

#include "check.h"
#include "drawing_check.h"
#include "escape.h"
#include "theme.h"

#define FONTS  "Inter,system-ui,'Segoe UI',Helvetica,Arial,sans-serif"
#define SHADES 4

/* The classes that the drawing needs. */
struct usage {
    bool fill[MT_COLOR_COUNT][SHADES];
    bool tint[MT_COLOR_COUNT][MT_TINTS];
    bool stroke[MT_COLOR_COUNT];
    bool hatch[MT_COLOR_COUNT];
    bool halo, hover;
};

static void add_number(struct mt_buf *out, double value)
{
    mt_buf_add_decimal(out, isfinite(value) ? value : 0, 1);
}

static void add_attribute(struct mt_buf *out, const char *name, double value)
{
    mt_buf_add_char(out, ' ');
    mt_buf_add_text(out, name);
    mt_buf_add_text(out, "=\"");
    add_number(out, value);
    mt_buf_add_char(out, '"');
}

static void add_element(struct mt_buf *out, const char *name, const char *text)
{
    mt_buf_printf(out, "<%s>", name);
    mt_escape_add_xml(out, text);
    mt_buf_printf(out, "</%s>", name);
}

static void note_usage(struct usage *usage, const struct mt_op *op)
{
    const struct mt_paint *paint = &op->paint;

    if (op->kind == MT_OP_TEXT) {
        usage->fill[op->style.color][0] = true;
        usage->halo |= op->style.halo;
        return;
    }
    if (op->title && op->kind != MT_OP_GROUP_BEGIN)
        usage->hover = true;
    if (paint->fill && paint->hatched)
        usage->hatch[paint->fill] = true;
    else if (paint->fill && paint->tint)
        usage->tint[paint->fill][(paint->tint - 1) % MT_TINTS] = true;
    else if (paint->fill)
        usage->fill[paint->fill][paint->shade & 3] = true;
    if (paint->stroke)
        usage->stroke[paint->stroke] = true;
}

static void add_fill_class(struct mt_buf *out, enum mt_color color, unsigned shade)
{
    mt_buf_printf(out, "f%u", (unsigned)color);
    if (shade & 3)
        mt_buf_add_char(out, "abcd"[shade & 3]);
}

static void add_rules(struct mt_buf *out, const struct usage *usage, enum mt_theme theme)
{
    for (unsigned color = 1; color < MT_COLOR_COUNT; color++) {
        for (unsigned shade = 0; shade < SHADES; shade++) {
            if (!usage->fill[color][shade])
                continue;
            mt_buf_add_char(out, '.');
            add_fill_class(out, color, shade);
            mt_buf_printf(out, "{fill:#%06x}", mt_theme_shade(theme, color, shade));
        }
        for (unsigned shade = 0; shade < MT_TINTS; shade++)
            if (usage->tint[color][shade])
                mt_buf_printf(out, ".f%ut%u{fill:#%06x}", color, shade,
                              mt_theme_tint(theme, color, shade));
        if (usage->stroke[color])
            mt_buf_printf(out, ".s%u{stroke:#%06x}", color, mt_theme_rgb(theme, color));
        if (usage->hatch[color])
            mt_buf_printf(out, ".h%u{stroke:#%06x}.g%u{fill:#%06x}", color,
                          mt_theme_rgb(theme, color), color, mt_theme_hatch_ground(theme, color));
    }
    if (usage->halo)
        mt_buf_printf(out, ".o{stroke:#%06x}", mt_theme_rgb(theme, MT_COLOR_BACKGROUND));
    if (usage->hover)
        mt_buf_printf(out, ".t:hover{stroke:#%06x}", mt_theme_rgb(theme, MT_COLOR_TEXT));
}

static void usage_of(const struct mt_drawing *drawing, struct usage *usage)
{
    memset(usage, 0, sizeof *usage);
    usage->fill[MT_COLOR_BACKGROUND][0] = true;
    for (size_t i = 0; i < drawing->op_count; i++)
        note_usage(usage, &drawing->ops[i]);
}

static void add_style(struct mt_buf *out, const struct usage *usage, enum mt_theme theme)
{
    mt_buf_add_text(out, ".b{font-weight:600}.m{text-anchor:middle}.e{text-anchor:end}"
                         ".n{fill:none}");
    if (usage->halo)
        mt_buf_add_text(out, ".o{paint-order:stroke;stroke-width:3.5px;stroke-linejoin:round}");
    add_rules(out, usage, theme);
    if (theme == MT_THEME_AUTO) {
        mt_buf_add_text(out, "@media(prefers-color-scheme:dark){");
        add_rules(out, usage, MT_THEME_DARK);
        mt_buf_add_char(out, '}');
    }
}

void mt_svg_add_style(const struct mt_drawing *drawing, enum mt_theme theme, struct mt_buf *out)
{
    struct usage usage;

    usage_of(drawing, &usage);
    add_style(out, &usage, theme);
}

static void add_hatches(struct mt_buf *out, const struct usage *usage, const char *id)
{
    unsigned p = MT_HATCH_PERIOD;

    for (unsigned color = 1; color < MT_COLOR_COUNT; color++) {
        if (!usage->hatch[color])
            continue;
        mt_buf_printf(out,
                      "<pattern id=\"%s-h%u\" width=\"%u\" height=\"%u\" "
                      "patternUnits=\"userSpaceOnUse\"><path class=\"g%u\" d=\"M0 0h%uv%uh-%uz\"/>"
                      "<path class=\"h%u\" d=\"M-1 1l2-2M0 %ul%u-%uM%u %ul2-2\" stroke-width=\"",
                      id, color, p, p, color, p, p, p, color, p, p, p, p - 1, p + 1);
        add_number(out, MT_HATCH_WIDTH);
        mt_buf_add_text(out, "\"/></pattern>\n");
    }
}

static void add_paint(struct mt_buf *out, const struct mt_op *op, const char *id)
{
    const struct mt_paint *paint = &op->paint;
    bool plain_fill = paint->fill && !paint->hatched;

    mt_buf_add_text(out, " class=\"");
    if (plain_fill && paint->tint)
        mt_buf_printf(out, "f%ut%u", (unsigned)paint->fill, (paint->tint - 1u) % MT_TINTS);
    else if (plain_fill)
        add_fill_class(out, paint->fill, paint->shade);
    else if (!paint->fill)
        mt_buf_add_char(out, 'n');
    if (paint->stroke)
        mt_buf_printf(out, " s%u", (unsigned)paint->stroke);
    if (op->title)
        mt_buf_add_text(out, " t");
    mt_buf_add_char(out, '"');
    if (paint->fill && paint->hatched)
        mt_buf_printf(out, " fill=\"url(#%s-h%u)\"", id, (unsigned)paint->fill);
    if (paint->unseen)
        mt_buf_add_text(out, " fill-opacity=\"0\"");
    if (paint->stroke && paint->stroke_width > 0 && paint->stroke_width != 1)
        add_attribute(out, "stroke-width", paint->stroke_width);
    if (paint->dashed)
        mt_buf_add_text(out, " stroke-dasharray=\"6 4\"");
    else if (paint->dotted)
        mt_buf_add_text(out, " stroke-dasharray=\"2 4\"");
    if (paint->opacity > 0 && paint->opacity < 1) {
        mt_buf_add_text(out, " opacity=\"");
        mt_buf_add_decimal(out, paint->opacity, 2);
        mt_buf_add_char(out, '"');
    }
}

/* Ends an element, with its hover text inside. */
static void end_shape(struct mt_buf *out, const struct mt_op *op, const char *name)
{
    if (op->key)
        mt_buf_printf(out, " data-key=\"%s\"", op->key);
    if (!op->title) {
        mt_buf_add_text(out, "/>\n");
        return;
    }
    mt_buf_add_char(out, '>');
    add_element(out, "title", op->title);
    mt_buf_printf(out, "</%s>\n", name);
}

static void add_rect(struct mt_buf *out, const struct mt_op *op, const char *id)
{
    mt_buf_add_text(out, "<rect");
    add_attribute(out, "x", op->x);
    add_attribute(out, "y", op->y);
    add_attribute(out, "width", op->width);
    add_attribute(out, "height", op->height);
    if (op->paint.radius > 0)
        add_attribute(out, "rx", op->paint.radius);
    add_paint(out, op, id);
    end_shape(out, op, "rect");
}

static void add_circle(struct mt_buf *out, const struct mt_op *op, const char *id)
{
    mt_buf_add_text(out, "<circle");
    add_attribute(out, "cx", op->x);
    add_attribute(out, "cy", op->y);
    add_attribute(out, "r", op->width);
    add_paint(out, op, id);
    end_shape(out, op, "circle");
}

static int64_t tenths(double value)
{
    return isfinite(value) && fabs(value) < 1e9 ? llround(value * 10) : 0;
}

static void add_tenths(struct mt_buf *out, int64_t value)
{
    mt_buf_add_decimal(out, (double)value / 10, 1);
}

/* A move along one axis that is not written yet, so that moves along the same axis are merged. */
struct run {
    char axis; /* 'h', 'v' or 0 */
    int64_t length;
};

static void flush_run(struct mt_buf *out, struct run *run)
{
    if (run->axis && run->length) {
        mt_buf_add_char(out, run->axis);
        add_tenths(out, run->length);
    }
    run->axis = 0;
    run->length = 0;
}

static void add_move(struct mt_buf *out, struct run *run, char axis, int64_t length)
{
    if (!length)
        return;
    if (run->axis != axis)
        flush_run(out, run);
    run->axis = axis;
    run->length += length;
}

/* Appends horizontal and vertical moves from point to point, starting at (x, y). */
static void add_steps(struct mt_buf *out, const struct mt_op *op, int64_t x, int64_t y)
{
    struct run run = {0, 0};

    for (uint32_t i = 1; i < op->point_count; i++) {
        int64_t next_x = tenths(op->points[i].x), next_y = tenths(op->points[i].y);

        add_move(out, &run, 'h', next_x - x);
        add_move(out, &run, 'v', next_y - y);
        x = next_x;
        y = next_y;
    }
    flush_run(out, &run);
}

static void add_slopes(struct mt_buf *out, const struct mt_op *op, int64_t x, int64_t y)
{
    mt_buf_add_char(out, 'l');
    for (uint32_t i = 1; i < op->point_count; i++) {
        int64_t next_x = tenths(op->points[i].x), next_y = tenths(op->points[i].y);

        if (i > 1 && next_x >= x)
            mt_buf_add_char(out, ' ');
        add_tenths(out, next_x - x);
        if (next_y >= y)
            mt_buf_add_char(out, ' ');
        add_tenths(out, next_y - y);
        x = next_x;
        y = next_y;
    }
}

static void add_path(struct mt_buf *out, const struct mt_op *op, const char *id)
{
    if (op->point_count < 2)
        return;
    int64_t x = tenths(op->points[0].x);
    int64_t y = tenths(op->points[0].y);
    mt_buf_add_text(out, "<path d=\"M");
    add_tenths(out, x);
    mt_buf_add_char(out, ' ');
    add_tenths(out, y);
    if (op->stepped)
        add_steps(out, op, x, y);
    else
        add_slopes(out, op, x, y);
    mt_buf_add_text(out, op->closed ? "z\"" : "\"");
    add_paint(out, op, id);
    end_shape(out, op, "path");
}

/* Appends rectangles in whole numbers of the grid, each relative to the corner of the previous
 * one. */
static void add_cells(struct mt_buf *out, const struct mt_op *op, const char *id)
{
    int x = 0, y = 0;

    if (!op->cell_count)
        return;
    mt_buf_add_text(out, "<path transform=\"translate(");
    add_number(out, op->x);
    mt_buf_add_char(out, ' ');
    add_number(out, op->y);
    mt_buf_add_char(out, ')');
    if (op->unit != 1) {
        mt_buf_add_text(out, "scale(");
        add_number(out, op->unit);
        mt_buf_add_char(out, ')');
    }
    mt_buf_add_text(out, "\" d=\"M0 0");
    for (uint32_t i = 0; i < op->cell_count; i++) {
        const struct mt_grid_cell *cell = &op->cells[i];

        mt_buf_printf(out, "m%d %dh%uv%uh-%uz", cell->x - x, cell->y - y, cell->width, cell->height,
                      cell->width);
        x = cell->x;
        y = cell->y;
    }
    mt_buf_add_char(out, '"');
    add_paint(out, op, id);
    end_shape(out, op, "path");
}

/* Appends the width that the layout reserved for the text, so that text in another font does not
 * exceed it. */
static void add_length(struct mt_buf *out, const struct mt_op *op)
{
    if (!(op->text_width >= 0.1))
        return;
    add_attribute(out, "textLength", op->text_width);
    mt_buf_add_text(out, " lengthAdjust=\"spacingAndGlyphs\"");
}

static void add_text(struct mt_buf *out, const struct mt_op *op)
{
    static const char *const anchors[] = {"", " m", " e"};
    const struct mt_text_style *style = &op->style;

    if (!op->text || !*op->text)
        return;
    mt_buf_add_text(out, "<text");
    add_attribute(out, "x", op->x);
    add_attribute(out, "y", op->y);
    add_attribute(out, "font-size", style->size);
    add_length(out, op);
    if (style->vertical) {
        mt_buf_add_text(out, " transform=\"rotate(-90 ");
        add_number(out, op->x);
        mt_buf_add_char(out, ' ');
        add_number(out, op->y);
        mt_buf_add_text(out, ")\"");
    }
    mt_buf_add_text(out, " class=\"");
    add_fill_class(out, style->color, 0);
    mt_buf_add_text(out, anchors[style->anchor]);
    mt_buf_add_text(out, style->weight == MT_SEMIBOLD ? " b" : "");
    mt_buf_add_text(out, style->halo ? " o\">" : "\">");
    mt_escape_add_xml(out, op->text);
    mt_buf_add_text(out, "</text>\n");
}

static void add_operation(struct mt_buf *out, const struct mt_op *op, const char *id)
{
    switch (op->kind) {
    case MT_OP_RECT: add_rect(out, op, id); break;
    case MT_OP_CIRCLE: add_circle(out, op, id); break;
    case MT_OP_PATH:
    case MT_OP_LINE: add_path(out, op, id); break;
    case MT_OP_CELLS: add_cells(out, op, id); break;
    case MT_OP_TEXT: add_text(out, op); break;
    case MT_OP_GROUP_BEGIN:
        mt_buf_add_text(out, "<g");
        if (op->role && !strncmp(op->role, MT_ZOOM, strlen(MT_ZOOM))) {
            mt_buf_add_text(out, " data-zoom=\"");
            mt_escape_add_xml(out, op->role + strlen(MT_ZOOM));
            mt_buf_add_char(out, '"');
        }
        mt_buf_add_char(out, '>');
        if (op->title)
            add_element(out, "title", op->title);
        break;
    case MT_OP_GROUP_END: mt_buf_add_text(out, "</g>\n"); break;
    }
}

static void add_head(struct mt_buf *out, const struct mt_drawing *drawing, const char *id)
{
    mt_buf_add_text(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ");
    add_number(out, drawing->width);
    mt_buf_add_char(out, ' ');
    add_number(out, drawing->height);
    mt_buf_add_char(out, '"');
    add_attribute(out, "width", drawing->width);
    add_attribute(out, "height", drawing->height);
    mt_buf_printf(out,
                  " role=\"img\" aria-labelledby=\"%s-title %s-desc\" font-family=\"" FONTS
                  "\">\n<title id=\"%s-title\">",
                  id, id, id);
    mt_escape_add_xml(out, drawing->title ? drawing->title : id);
    mt_buf_printf(out, "</title>\n<desc id=\"%s-desc\">", id);
    mt_escape_add_xml(out, drawing->description ? drawing->description : "");
    mt_buf_add_text(out, "</desc>\n");
}

void mt_svg_write(const struct mt_drawing *drawing, enum mt_theme theme, struct mt_buf *out)
{
    const char *id = drawing->id ? drawing->id : "chart";
    struct usage usage;
    const char *why = NULL;

    MT_ASSERT_SOUND(mt_drawing_is_sound(drawing, &why), why);
    usage_of(drawing, &usage);
    add_head(out, drawing, id);
    mt_buf_add_text(out, "<style>");
    add_style(out, &usage, theme);
    mt_buf_add_text(out, "</style>\n");
    add_hatches(out, &usage, id);
    mt_buf_add_text(out, "<rect");
    add_attribute(out, "width", drawing->width);
    add_attribute(out, "height", drawing->height);
    mt_buf_printf(out, " class=\"f%u\"/>\n", (unsigned)MT_COLOR_BACKGROUND);
    for (size_t i = 0; i < drawing->op_count; i++)
        add_operation(out, &drawing->ops[i], id);
    mt_buf_add_text(out, "</svg>\n");
}
