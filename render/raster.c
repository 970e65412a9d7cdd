#include "raster.h"

#include <cairo.h>
#include <math.h>
#include <stdlib.h>

#include "glyph_cache.h"
#include "process_memory.h"
#include "theme.h"
#include "util.h"

#define BAND_PIXELS 800000 /* size of a band: 3.2 MB, which caches of processors hold */

/* The surface, which has rows [top, top + height) of the picture. */
struct canvas {
    cairo_t *cairo;
    cairo_surface_t *surface;
    uint32_t *pixels; /* of the surface, 0x00RRGGBB */
    size_t stride;    /* pixels between the starts of rows */
    int width, height, top;
    struct mt_glyph_cache cache;
    bool failed; /* cairo ran out of memory */
    double scale;
    enum mt_theme theme;
    cairo_pattern_t *hatches[MT_COLOR_COUNT]; /* made when first needed */
};

static void set_rgb(cairo_t *cairo, uint32_t rgb, double opacity)
{
    double r = (double)(rgb >> 16) / 255, g = (double)(rgb >> 8 & 0xFF) / 255;

    cairo_set_source_rgba(cairo, r, g, (double)(rgb & 0xFF) / 255,
                          opacity > 0 && opacity < 1 ? opacity : 1);
}

/* Returns NULL if memory runs out. cairo keeps the first error of a context, and later calls have
 * no effect. A context for a surface with an error has that error from the start. So it is enough
 * to check a context once, at its end. */
static cairo_pattern_t *make_hatch(const struct canvas *canvas, enum mt_color color)
{
    int period = (int)fmax(2, round(MT_HATCH_PERIOD * canvas->scale));
    cairo_surface_t *tile = cairo_image_surface_create(CAIRO_FORMAT_RGB24, period, period);
    cairo_t *cairo = cairo_create(tile);

    set_rgb(cairo, mt_theme_hatch_ground(canvas->theme, color), 1);
    cairo_paint(cairo);
    set_rgb(cairo, mt_theme_rgb(canvas->theme, color), 1);
    cairo_set_line_width(cairo, MT_HATCH_WIDTH * canvas->scale);
    /* Parts of the neighboring lines are visible in the corners. */
    for (int shift = -period; shift <= period; shift += period) {
        cairo_move_to(cairo, shift - 2, period + 2);
        cairo_line_to(cairo, shift + period + 2, -2);
    }
    cairo_stroke(cairo);
    cairo_pattern_t *pattern = cairo_status(cairo) ? NULL : cairo_pattern_create_for_surface(tile);
    cairo_destroy(cairo);
    cairo_surface_destroy(tile);
    if (pattern && cairo_pattern_status(pattern)) {
        cairo_pattern_destroy(pattern);
        pattern = NULL;
    }
    if (pattern) {
        cairo_pattern_set_extend(pattern, CAIRO_EXTEND_REPEAT);
        cairo_pattern_set_filter(pattern, CAIRO_FILTER_NEAREST);
    }
    return pattern;
}

static uint32_t fill_color(const struct canvas *canvas, const struct mt_paint *paint)
{
    if (paint->tint)
        return mt_theme_tint(canvas->theme, paint->fill, (paint->tint - 1u) % MT_TINTS);
    return mt_theme_shade(canvas->theme, paint->fill, paint->shade);
}

static void set_fill(struct canvas *canvas, const struct mt_paint *paint)
{
    if (paint->hatched) {
        if (!canvas->hatches[paint->fill])
            canvas->hatches[paint->fill] = make_hatch(canvas, paint->fill);
        if (canvas->hatches[paint->fill])
            cairo_set_source(canvas->cairo, canvas->hatches[paint->fill]);
        else
            canvas->failed = true;
    } else {
        set_rgb(canvas->cairo, fill_color(canvas, paint), paint->opacity);
    }
}

static double line_width(const struct canvas *canvas, const struct mt_paint *paint)
{
    return (paint->stroke_width > 0 ? paint->stroke_width : 1) * canvas->scale;
}

static void set_stroke(const struct canvas *canvas, const struct mt_paint *paint)
{
    static const double dashes[] = {6, 4}, dots[] = {2, 4};
    const double *lengths = paint->dashed ? dashes : paint->dotted ? dots : NULL;
    double scaled[2];

    set_rgb(canvas->cairo, mt_theme_rgb(canvas->theme, paint->stroke), paint->opacity);
    if (lengths) {
        scaled[0] = lengths[0] * canvas->scale;
        scaled[1] = lengths[1] * canvas->scale;
    }
    cairo_set_dash(canvas->cairo, lengths ? scaled : NULL, lengths ? 2 : 0, 0);
}

/* Fills and strokes the current path. */
static void paint_path(struct canvas *canvas, const struct mt_paint *paint)
{
    if (paint->fill) {
        set_fill(canvas, paint);
        cairo_fill_preserve(canvas->cairo);
    }
    if (paint->stroke) {
        set_stroke(canvas, paint);
        cairo_stroke_preserve(canvas->cairo);
    }
    cairo_new_path(canvas->cairo);
}

static void round_corners(cairo_t *cairo, double x, double y, double w, double h, double r)
{
    r = fmin(r, fmin(w, h) / 2);
    cairo_new_sub_path(cairo);
    cairo_arc(cairo, x + w - r, y + r, r, -M_PI / 2, 0);
    cairo_arc(cairo, x + w - r, y + h - r, r, 0, M_PI / 2);
    cairo_arc(cairo, x + r, y + h - r, r, M_PI / 2, M_PI);
    cairo_arc(cairo, x + r, y + r, r, M_PI, 3 * M_PI / 2);
    cairo_close_path(cairo);
}

static void draw_rect(struct canvas *canvas, const struct mt_op *op)
{
    double x0 = round(op->x * canvas->scale), x1 = round((op->x + op->width) * canvas->scale);
    double y0 = round(op->y * canvas->scale), y1 = round((op->y + op->height) * canvas->scale);
    bool round_ones = op->paint.radius > 0 && x1 - x0 > 2;

    if (!(x1 > x0) || !(y1 > y0))
        return;
    if (round_ones)
        round_corners(canvas->cairo, x0, y0, x1 - x0, y1 - y0, op->paint.radius * canvas->scale);
    else
        cairo_rectangle(canvas->cairo, x0, y0, x1 - x0, y1 - y0);
    cairo_set_antialias(canvas->cairo, round_ones || op->paint.stroke ? CAIRO_ANTIALIAS_DEFAULT
                                                                      : CAIRO_ANTIALIAS_NONE);
    cairo_set_line_width(canvas->cairo, line_width(canvas, &op->paint));
    paint_path(canvas, &op->paint);
}

static void draw_circle(struct canvas *canvas, const struct mt_op *op)
{
    cairo_set_antialias(canvas->cairo, CAIRO_ANTIALIAS_DEFAULT);
    cairo_new_sub_path(canvas->cairo);
    cairo_arc(canvas->cairo, op->x * canvas->scale, op->y * canvas->scale,
              op->width * canvas->scale, 0, 2 * M_PI);
    cairo_set_line_width(canvas->cairo, line_width(canvas, &op->paint));
    paint_path(canvas, &op->paint);
}

/* Returns true if all lines are horizontal or vertical. */
static bool is_rectilinear(const struct mt_op *op)
{
    if (op->stepped)
        return true;
    for (uint32_t i = 1; i < op->point_count; i++)
        if (op->points[i].x != op->points[i - 1].x && op->points[i].y != op->points[i - 1].y)
            return false;
    return true;
}

/* Returns the nearest position at which a line of `width` pixels covers whole pixels. */
static double snap(double value, double width)
{
    return fmod(width, 2) != 0 ? floor(value) + 0.5 : round(value);
}

static void trace_steps(const struct canvas *canvas, const struct mt_op *op, double width)
{
    double x = snap(op->points[0].x * canvas->scale, width);
    double y = snap(op->points[0].y * canvas->scale, width);

    cairo_move_to(canvas->cairo, x, y);
    for (uint32_t i = 1; i < op->point_count; i++) {
        double next_x = snap(op->points[i].x * canvas->scale, width);
        double next_y = snap(op->points[i].y * canvas->scale, width);

        if (next_x != x && next_y != y)
            cairo_line_to(canvas->cairo, next_x, y);
        if (next_x != x || next_y != y)
            cairo_line_to(canvas->cairo, next_x, next_y);
        x = next_x;
        y = next_y;
    }
}

static void trace_slopes(const struct canvas *canvas, const struct mt_op *op)
{
    cairo_move_to(canvas->cairo, op->points[0].x * canvas->scale, op->points[0].y * canvas->scale);
    for (uint32_t i = 1; i < op->point_count; i++)
        cairo_line_to(canvas->cairo, op->points[i].x * canvas->scale,
                      op->points[i].y * canvas->scale);
}

static void draw_path(struct canvas *canvas, const struct mt_op *op)
{
    bool rectilinear = is_rectilinear(op);
    double width = op->paint.stroke ? line_width(canvas, &op->paint) : 0;

    if (op->point_count < 2)
        return;
    if (rectilinear && width > 0)
        width = fmax(1, round(width));
    if (rectilinear)
        trace_steps(canvas, op, width);
    else
        trace_slopes(canvas, op);
    if (op->closed)
        cairo_close_path(canvas->cairo);
    cairo_set_antialias(canvas->cairo,
                        rectilinear ? CAIRO_ANTIALIAS_NONE : CAIRO_ANTIALIAS_DEFAULT);
    cairo_set_line_width(canvas->cairo, width);
    paint_path(canvas, &op->paint);
}

/* Returns a mix of two colors: `coverage` / 255 of `to`, and the rest of `from`. */
static uint32_t mix(uint32_t from, uint32_t to, uint32_t coverage)
{
    uint32_t rest = 255 - coverage;
    /* Mixes red and blue at the same time. 0x80 rounds, and the shifts divide by 255. */
    uint32_t rb = (from & 0xFF00FF) * rest + (to & 0xFF00FF) * coverage + 0x800080;
    uint32_t g = (from >> 8 & 0xFF) * rest + (to >> 8 & 0xFF) * coverage + 0x80;

    rb = (rb + (rb >> 8 & 0xFF00FF)) >> 8 & 0xFF00FF;
    g = (g + (g >> 8)) >> 8;
    return rb | g << 8;
}

/* Draws one letter in `color` over the pixels. Parts outside of the surface are skipped. */
static void blend_mask(const struct canvas *canvas, const struct mt_glyph_mask *mask, int pen_x,
                       int pen_y, uint32_t color)
{
    int left = pen_x + mask->left, top = pen_y + mask->top - canvas->top;
    int from_x = left < 0 ? -left : 0, from_y = top < 0 ? -top : 0;
    int to_x = left + mask->width > canvas->width ? canvas->width - left : mask->width;
    int to_y = top + mask->height > canvas->height ? canvas->height - top : mask->height;

    for (int y = from_y; y < to_y; y++) {
        const uint8_t *coverage = mask->coverage + (size_t)y * (size_t)mask->width;
        uint32_t *pixels = canvas->pixels + (size_t)(top + y) * canvas->stride;

        for (int x = from_x; x < to_x; x++)
            if (coverage[x])
                pixels[left + x] = mix(pixels[left + x], color, coverage[x]);
    }
}

/* Draws horizontal text without a halo, letter by letter from the cache. */
static bool blend_text(struct canvas *canvas, const struct mt_op *op, double x, double y)
{
    const struct mt_glyph_table *table = &mt_glyph_tables[op->style.weight];
    uint32_t color = mt_theme_rgb(canvas->theme, op->style.color), character;
    double size = op->style.size * canvas->scale, along = 0;
    const char *text = op->text;

    while ((character = mt_utf8_next(&text))) {
        const struct mt_glyph *glyph = mt_glyph_find(table, character);
        double at = x + along * size / MT_GLYPH_EM;
        int quarters = (int)floor(at * MT_GLYPH_PHASES + 0.5);
        int pixel = (int)floor((double)quarters / MT_GLYPH_PHASES);
        const struct mt_glyph_mask *mask =
            mt_glyph_cache_get(&canvas->cache, character, op->style.weight, size,
                               (unsigned)(quarters - pixel * MT_GLYPH_PHASES));

        if (!mask)
            return false;
        if (mask->coverage)
            blend_mask(canvas, mask, pixel, (int)y, color);
        along += glyph ? glyph->advance : MT_GLYPH_BOX_ADVANCE;
    }
    return true;
}

static void outline_text(struct canvas *canvas, const struct mt_op *op,
                         const struct mt_glyph_pen *pen)
{
    mt_text_path(pen, op->text, op->style.weight);
    cairo_set_antialias(canvas->cairo, CAIRO_ANTIALIAS_DEFAULT);
    if (op->style.halo) {
        cairo_set_dash(canvas->cairo, NULL, 0, 0);
        cairo_set_line_width(canvas->cairo, 3.5 * canvas->scale);
        set_rgb(canvas->cairo, mt_theme_rgb(canvas->theme, MT_COLOR_BACKGROUND), 1);
        cairo_stroke_preserve(canvas->cairo);
    }
    set_rgb(canvas->cairo, mt_theme_rgb(canvas->theme, op->style.color), 1);
    cairo_fill(canvas->cairo);
}

static void draw_text(struct canvas *canvas, const struct mt_op *op)
{
    static const double anchors[] = {0, 0.5, 1};
    const struct mt_text_style *style = &op->style;
    double before = anchors[style->anchor] * op->text_width * canvas->scale;
    struct mt_glyph_pen pen = {canvas->cairo, op->x * canvas->scale, op->y * canvas->scale,
                               style->size * canvas->scale / MT_GLYPH_EM, style->vertical};

    if (!op->text || !(fabs(pen.x) < 1e6) || !(fabs(pen.y) < 1e6))
        return;
    if (style->vertical) {
        pen.y += before;
        pen.x = round(pen.x);
    } else {
        pen.x -= before;
        pen.y = round(pen.y);
    }
    if (style->vertical || style->halo) {
        outline_text(canvas, op, &pen);
        return;
    }
    cairo_surface_flush(canvas->surface);
    canvas->failed |= !blend_text(canvas, op, pen.x, pen.y);
    cairo_surface_mark_dirty(canvas->surface);
}

/* Returns the position of a line of a grid in pixels of the picture, limited to [low, high]. */
static int grid_pixel(const struct canvas *canvas, double origin, double unit, unsigned at, int low,
                      int high)
{
    double pixel = round((origin + unit * at) * canvas->scale);

    return (int)fmin(fmax(pixel, low), high);
}

static void draw_cells(const struct canvas *canvas, const struct mt_op *op)
{
    uint32_t color = fill_color(canvas, &op->paint);
    double first = floor((canvas->top / canvas->scale - op->y) / op->unit) - 1;

    cairo_surface_flush(canvas->surface);
    for (uint32_t i = 0; i < op->cell_count; i++) {
        const struct mt_grid_cell *cell = &op->cells[i];
        unsigned below = cell->y + (unsigned)cell->height, beyond = cell->x + (unsigned)cell->width;
        int bottom = canvas->top + canvas->height;

        if (below < first)
            continue;
        int top = grid_pixel(canvas, op->y, op->unit, cell->y, canvas->top, bottom);
        int end = grid_pixel(canvas, op->y, op->unit, below, canvas->top, bottom);
        int left = grid_pixel(canvas, op->x, op->unit, cell->x, 0, canvas->width);
        int right = grid_pixel(canvas, op->x, op->unit, beyond, 0, canvas->width);
        if (top == bottom)
            break; /* cells are sorted, so all others are also below */
        for (int y = top; y < end; y++) {
            uint32_t *row = canvas->pixels + (size_t)(y - canvas->top) * canvas->stride;

            for (int x = left; x < right; x++)
                row[x] = color;
        }
    }
    cairo_surface_mark_dirty(canvas->surface);
}

/* Sets the range of rows of the picture that an operation may touch, with a margin. */
static void reach(const struct mt_op *op, double *top, double *bottom)
{
    double margin = 4 + op->paint.stroke_width;

    *top = op->y;
    *bottom = op->y + op->height;
    if (op->kind == MT_OP_CIRCLE) {
        *top = op->y - op->width;
        *bottom = op->y + op->width;
    } else if (op->kind == MT_OP_TEXT) {
        margin += 2 * op->style.size + (op->style.vertical ? op->text_width : 0);
        *bottom = op->y;
    } else if (op->kind == MT_OP_PATH || op->kind == MT_OP_LINE) {
        *top = HUGE_VAL;
        *bottom = -HUGE_VAL;
        for (uint32_t i = 0; i < op->point_count; i++) {
            *top = fmin(*top, op->points[i].y);
            *bottom = fmax(*bottom, op->points[i].y);
        }
    }
    *top -= margin;
    *bottom += margin;
}

static bool is_outside(const struct canvas *canvas, const struct mt_op *op)
{
    double top, bottom;

    reach(op, &top, &bottom);
    return bottom * canvas->scale < canvas->top ||
           top * canvas->scale > canvas->top + canvas->height;
}

static void draw_operation(struct canvas *canvas, const struct mt_op *op)
{
    if (op->paint.unseen || is_outside(canvas, op))
        return;
    switch (op->kind) {
    case MT_OP_RECT: draw_rect(canvas, op); break;
    case MT_OP_CIRCLE: draw_circle(canvas, op); break;
    case MT_OP_PATH:
    case MT_OP_LINE: draw_path(canvas, op); break;
    case MT_OP_CELLS: draw_cells(canvas, op); break;
    case MT_OP_TEXT: draw_text(canvas, op); break;
    case MT_OP_GROUP_BEGIN:
    case MT_OP_GROUP_END: break;
    }
}

static void draw_operations(struct canvas *canvas, const struct mt_drawing *drawing)
{
    cairo_identity_matrix(canvas->cairo);
    cairo_translate(canvas->cairo, 0, -canvas->top);
    cairo_set_line_join(canvas->cairo, CAIRO_LINE_JOIN_MITER);
    cairo_set_tolerance(canvas->cairo, 0.15);
    set_rgb(canvas->cairo, mt_theme_rgb(canvas->theme, MT_COLOR_BACKGROUND), 1);
    cairo_paint(canvas->cairo);
    for (size_t i = 0; i < drawing->op_count && !canvas->failed && !cairo_status(canvas->cairo);
         i++)
        draw_operation(canvas, &drawing->ops[i]);
}

struct mt_raster {
    const struct mt_drawing *drawing;
    struct canvas canvas;
    int height; /* height of the picture */
};

enum mt_status mt_raster_open(const struct mt_drawing *drawing, enum mt_theme theme, double scale,
                              struct mt_raster **out, struct mt_error *error)
{
    double width = round(drawing->width * scale), height = round(drawing->height * scale);
    struct mt_raster *raster;

    if (!(width >= 1 && height >= 1 && width <= MT_RASTER_MAX_SIDE &&
          height <= MT_RASTER_MAX_SIDE &&
          (drawing->huge || width * height <= MT_RASTER_MAX_PIXELS)))
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                       "a picture may have %d pixels per side and %d in total%s",
                       MT_RASTER_MAX_SIDE, MT_RASTER_MAX_PIXELS,
                       drawing->huge || width > MT_RASTER_MAX_SIDE || height > MT_RASTER_MAX_SIDE
                           ? ""
                           : " without --force");
    raster = mt_memory_zeroed(1, sizeof *raster);
    double rows = fmax(16, floor(BAND_PIXELS / width));
    raster->drawing = drawing;
    raster->height = (int)height;
    struct canvas *canvas = &raster->canvas;
    canvas->scale = scale;
    canvas->theme = theme;
    canvas->width = (int)width;
    canvas->height = (int)fmin(rows, height);
    canvas->top = -canvas->height;
    canvas->surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, canvas->width, canvas->height);
    canvas->cairo = cairo_create(canvas->surface);
    canvas->pixels = (uint32_t *)(void *)cairo_image_surface_get_data(canvas->surface);
    canvas->stride =
        (size_t)cairo_image_surface_get_stride(canvas->surface) / sizeof *canvas->pixels;
    *out = raster;
    return MT_OK;
}

int mt_raster_width(const struct mt_raster *raster)
{
    return raster->canvas.width;
}

int mt_raster_height(const struct mt_raster *raster)
{
    return raster->height;
}

enum mt_status mt_raster_next(struct mt_raster *raster, struct mt_raster_band *band,
                              struct mt_error *error)
{
    struct canvas *canvas = &raster->canvas;

    canvas->top += canvas->height;
    band->words = canvas->pixels;
    band->stride = canvas->stride;
    band->rows =
        canvas->top >= raster->height
            ? 0
            : (int)mt_min_u64((uint64_t)canvas->height, (uint64_t)(raster->height - canvas->top));
    if (band->rows && canvas->pixels && !cairo_status(canvas->cairo))
        draw_operations(canvas, raster->drawing);
    cairo_surface_flush(canvas->surface);
    cairo_status_t status = canvas->failed ? CAIRO_STATUS_NO_MEMORY : cairo_status(canvas->cairo);
    if (status == CAIRO_STATUS_SUCCESS)
        return MT_OK;
    return mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "cannot draw: %s",
                   cairo_status_to_string(status));
}

void mt_raster_close(struct mt_raster *raster)
{
    if (!raster)
        return;
    for (size_t i = 0; i < MT_COLOR_COUNT; i++)
        if (raster->canvas.hatches[i])
            cairo_pattern_destroy(raster->canvas.hatches[i]);
    cairo_destroy(raster->canvas.cairo);
    cairo_surface_destroy(raster->canvas.surface);
    mt_glyph_cache_release(&raster->canvas.cache);
    free(raster);
}
