/* Outlines of text as cairo paths, and a cache of the coverage masks of letters. */
#include <cairo.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "arena.h"
#include "draw.h"
#include "glyph_cache.h"
#include "glyphs.h"
#include "map.h"

static struct mt_point place(const struct mt_glyph_pen *pen, double along, double up)
{
    struct mt_point point = {pen->x + along * pen->scale, pen->y - up * pen->scale};

    if (pen->vertical) {
        point.x = pen->x - up * pen->scale;
        point.y = pen->y - along * pen->scale;
    }
    return point;
}

static void trace_glyph(const struct mt_glyph_pen *pen, const struct mt_glyph_table *table,
                        const struct mt_glyph *glyph, double along)
{
    const int16_t *at = table->outlines + glyph->start, *end = at + glyph->length;
    struct mt_point p[3];

    while (at < end) {
        int operation = *at++;
        int points = operation == MT_GLYPH_CURVE ? 3 : 1;

        for (int i = 0; i < points; i++, at += 2)
            p[i] = place(pen, along + at[0], at[1]);
        if (operation == MT_GLYPH_MOVE) {
            cairo_close_path(pen->cairo);
            cairo_move_to(pen->cairo, p[0].x, p[0].y);
        } else if (operation == MT_GLYPH_LINE) {
            cairo_line_to(pen->cairo, p[0].x, p[0].y);
        } else {
            cairo_curve_to(pen->cairo, p[0].x, p[0].y, p[1].x, p[1].y, p[2].x, p[2].y);
        }
    }
    cairo_close_path(pen->cairo);
}

static void trace_box_side(const struct mt_glyph_pen *pen, double left, double right, double bottom,
                           double top)
{
    const double corners[4][2] = {{left, bottom}, {right, bottom}, {right, top}, {left, top}};

    for (int i = 0; i < 4; i++) {
        struct mt_point p = place(pen, corners[i][0], corners[i][1]);
        if (i)
            cairo_line_to(pen->cairo, p.x, p.y);
        else
            cairo_move_to(pen->cairo, p.x, p.y);
    }
    cairo_close_path(pen->cairo);
}

/* Adds the box that replaces a character without an outline. The inner contour runs in the opposite
 * direction, so it is a hole. */
static void trace_box(const struct mt_glyph_pen *pen, double along)
{
    double right = along + MT_GLYPH_BOX_ADVANCE - 150;

    trace_box_side(pen, along + 150, right, 0, MT_GLYPH_CAP);
    trace_box_side(pen, right - 170, along + 320, 170, MT_GLYPH_CAP - 170);
}

/* Adds one letter at `along` font units from the origin. If `glyph` is NULL, adds a hollow box,
 * which replaces a character without an outline. */
static void glyph_path(const struct mt_glyph_pen *pen, const struct mt_glyph_table *table,
                       const struct mt_glyph *glyph, double along)
{
    if (glyph)
        trace_glyph(pen, table, glyph, along);
    else
        trace_box(pen, along);
}

void mt_text_path(const struct mt_glyph_pen *pen, const char *text, enum mt_weight weight)
{
    const struct mt_glyph_table *table = &mt_glyph_tables[weight];
    uint32_t character;
    double along = 0;

    while ((character = mt_utf8_next(&text))) {
        const struct mt_glyph *glyph = mt_glyph_find(table, character);
        glyph_path(pen, table, glyph, along);
        along += glyph ? glyph->advance : MT_GLYPH_BOX_ADVANCE;
    }
}

/* The box around an outline, in font units. It is computed from control points, because a curve is
 * inside their hull. */
struct extent {
    int left, right, bottom, top;
};

static struct extent outline_extent(const struct mt_glyph_table *table,
                                    const struct mt_glyph *glyph)
{
    struct extent box = {INT16_MAX, INT16_MIN, INT16_MAX, INT16_MIN};

    if (!glyph)
        return (struct extent){0, MT_GLYPH_BOX_ADVANCE, 0, (int)MT_GLYPH_CAP};
    const int16_t *at = table->outlines + glyph->start;
    for (const int16_t *end = at + glyph->length; at < end;) {
        for (int points = *at++ == MT_GLYPH_CURVE ? 3 : 1; points > 0; points--, at += 2) {
            box.left = at[0] < box.left ? at[0] : box.left;
            box.right = at[0] > box.right ? at[0] : box.right;
            box.bottom = at[1] < box.bottom ? at[1] : box.bottom;
            box.top = at[1] > box.top ? at[1] : box.top;
        }
    }
    return box;
}

/* Fills the outline on a separate surface and stores the coverage in the mask. */
static bool fill_mask(struct mt_glyph_cache *cache, struct mt_glyph_mask *mask,
                      const struct mt_glyph_table *table, const struct mt_glyph *glyph,
                      double scale, double shift)
{
    cairo_surface_t *surface =
        cairo_image_surface_create(CAIRO_FORMAT_A8, mask->width, mask->height);
    const unsigned char *data = cairo_image_surface_get_data(surface);
    struct mt_glyph_pen pen = {cairo_create(surface), shift - mask->left, -mask->top, scale, false};
    size_t width = (size_t)mask->width;
    uint8_t *coverage = mt_arena_array(&cache->arena, width, (size_t)mask->height);

    if (data && !cairo_status(pen.cairo)) {
        cairo_set_tolerance(pen.cairo, 0.15);
        glyph_path(&pen, table, glyph, 0);
        if (!cairo_status(pen.cairo)) /* cairo must not fill a path that has an error */
            cairo_fill(pen.cairo);
        cairo_surface_flush(surface);
    }
    if (data && !cairo_status(pen.cairo)) {
        size_t stride = (size_t)cairo_image_surface_get_stride(surface);
        for (int y = 0; y < mask->height; y++)
            memcpy(coverage + (size_t)y * width, data + (size_t)y * stride, width);
        mask->coverage = coverage;
    }
    cairo_destroy(pen.cairo);
    cairo_surface_destroy(surface);
    return mask->coverage != NULL;
}

static bool make_mask(struct mt_glyph_cache *cache, struct mt_glyph_mask *mask, uint32_t character,
                      enum mt_weight weight, double size, unsigned phase)
{
    const struct mt_glyph_table *table = &mt_glyph_tables[weight];
    const struct mt_glyph *glyph = mt_glyph_find(table, character);
    double scale = size / MT_GLYPH_EM, shift = (double)phase / MT_GLYPH_PHASES;
    struct extent box = outline_extent(table, glyph);

    memset(mask, 0, sizeof *mask);
    if (box.left >= box.right)
        return true; /* a space */
    mask->left = (int)floor(box.left * scale + shift) - 1;
    mask->top = (int)floor(-box.top * scale) - 1;
    mask->width = (int)ceil(box.right * scale + shift) + 1 - mask->left;
    mask->height = (int)ceil(-box.bottom * scale) + 1 - mask->top;
    return fill_mask(cache, mask, table, glyph, scale, shift);
}

static void make_room(struct mt_glyph_cache *cache)
{
    uint32_t capacity = cache->capacity ? cache->capacity * 2 : 256;
    struct mt_glyph_mask *masks;

    if (cache->count < cache->capacity)
        return;
    masks = mt_arena_array(&cache->arena, capacity, sizeof *masks);
    if (cache->count)
        memcpy(masks, cache->masks, cache->count * sizeof *masks);
    cache->masks = masks;
    cache->capacity = capacity;
}

const struct mt_glyph_mask *mt_glyph_cache_get(struct mt_glyph_cache *cache, uint32_t character,
                                               enum mt_weight weight, double size, unsigned phase)
{
    /* Sizes are rounded to 1/64 of a pixel, so 16 bits are enough for 1024 pixels. */
    uint64_t sixty_fourths = (uint64_t)fmin(fmax(size * 64, 1), 65535);
    uint64_t key = (uint64_t)character << 20 | (uint64_t)weight << 18 | (uint64_t)phase << 16;
    uint32_t slot = mt_map_get(&cache->slots, key | sixty_fourths);

    if (slot != MT_MAP_NONE)
        return &cache->masks[slot];
    make_room(cache);
    if (!make_mask(cache, &cache->masks[cache->count], character, weight, size, phase))
        return NULL;
    mt_map_put(&cache->slots, key | sixty_fourths, cache->count);
    return &cache->masks[cache->count++];
}

void mt_glyph_cache_release(struct mt_glyph_cache *cache)
{
    mt_map_release(&cache->slots);
    mt_arena_release(&cache->arena);
}
