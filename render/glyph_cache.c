#include "glyph_cache.h"

#include <cairo.h>
#include <math.h>
#include <string.h>

#include "glyph_path.h"

/* The box around an outline, in font units. It is computed from control points, because a curve is
 * inside their hull. */
struct extent {
    int left, right, bottom, top;
};

static struct extent outline_extent(const struct mt_glyph_table *table,
                                    const struct mt_glyph *glyph)
{
    struct extent box = {INT16_MAX, INT16_MIN, INT16_MAX, INT16_MIN};
    const int16_t *at, *end;
    int points;

    if (!glyph)
        return (struct extent){0, MT_GLYPH_BOX_ADVANCE, 0, (int)MT_GLYPH_CAP};
    at = table->outlines + glyph->start;
    for (end = at + glyph->length; at < end;) {
        for (points = *at++ == MT_GLYPH_CURVE ? 3 : 1; points > 0; points--, at += 2) {
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
    size_t width = (size_t)mask->width, stride;
    uint8_t *coverage = mt_arena_array(&cache->arena, width, (size_t)mask->height);
    int y;

    if (data && !cairo_status(pen.cairo)) {
        cairo_set_tolerance(pen.cairo, 0.15);
        mt_glyph_path(&pen, table, glyph, 0);
        if (!cairo_status(pen.cairo)) /* cairo must not fill a path that has an error */
            cairo_fill(pen.cairo);
        cairo_surface_flush(surface);
    }
    if (data && !cairo_status(pen.cairo)) {
        stride = (size_t)cairo_image_surface_get_stride(surface);
        for (y = 0; y < mask->height; y++)
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
