/* Writes PNG with libpng: 8-bit RGB without row filters, which compresses flat pictures better and
 * faster than the default of libpng. Compression level 3 takes half the time of level 6 and makes
 * files 9% larger. There is no time stamp, so the same picture gives the same file. */
#include "backends.h"

#include <math.h>
#include <png.h>
#include <setjmp.h>
#include <string.h>

#include "check.h"
#include "drawing_check.h"
#include "raster.h"

#define COMPRESSION_LEVEL 3
#define MAX_TEXTS         10

bool mt_png_available(struct mt_error *error)
{
    (void)error;
    return true;
}

/* The drawing, its settings and its destination. */
struct job {
    const struct mt_drawing *drawing;
    const struct mt_png_sink *sink;
    struct mt_raster *raster;
    double scale;
    png_bytep row;
    enum mt_status status;
    bool is_full; /* the sink accepted no more bytes */
    struct mt_error *error;
};

static void hand_on(png_structp png, png_bytep bytes, size_t length)
{
    struct job *job = png_get_io_ptr(png);

    if (job->sink->write(job->sink->context, bytes, length))
        return;
    job->is_full = true;
    png_error(png, "");
}

static void nothing_to_flush(png_structp png)
{
    (void)png;
}

static void silent(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static void jump_out(png_structp png, png_const_charp text)
{
    (void)text;
    png_longjmp(png, 1);
}

static bool is_ascii(const char *text)
{
    for (; *text; text++)
        if (*text < 0x20 || *text > 0x7E)
            return false;
    return true;
}

/* Adds a text: Latin-1 as tEXt, other text as iTXt, which is UTF-8. libpng only reads the strings,
 * but its types lack const. */
static void add_text(png_text *texts, int *count, const char *key, const char *value)
{
    union {
        const char *borrowed;
        char *unused_as_such;
    } name = {key}, content = {value};
    png_text *text = &texts[*count];

    if (!key || !value || !*value || *count == MAX_TEXTS)
        return;
    text->compression = is_ascii(value) ? PNG_TEXT_COMPRESSION_NONE : PNG_ITXT_COMPRESSION_NONE;
    text->key = name.unused_as_such;
    text->text = content.unused_as_such;
    ++*count;
}

static void set_header(png_structp png, png_infop info, const struct mt_drawing *drawing,
                       const struct mt_raster *raster, double scale)
{
    png_uint_32 pixels_per_metre = (png_uint_32)lround(72 * scale / 0.0254);
    png_text texts[MAX_TEXTS];
    int count = 0;
    size_t i;

    memset(texts, 0, sizeof texts);
    png_set_IHDR(png, info, (png_uint_32)mt_raster_width(raster),
                 (png_uint_32)mt_raster_height(raster), 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_sRGB(png, info, PNG_sRGB_INTENT_PERCEPTUAL);
    png_set_pHYs(png, info, pixels_per_metre, pixels_per_metre, PNG_RESOLUTION_METER);
    add_text(texts, &count, "Title", drawing->title);
    add_text(texts, &count, "Description", drawing->description);
    for (i = 0; i < drawing->metadata_count; i++)
        add_text(texts, &count, drawing->metadata[i].key, drawing->metadata[i].value);
    png_set_text(png, info, texts, count);
}

/* Converts words 0x00RRGGBB of cairo to bytes R, G, B. */
static void convert_row(const uint32_t *words, png_bytep bytes, int width)
{
    int x;

    for (x = 0; x < width; x++, bytes += 3) {
        bytes[0] = (png_byte)(words[x] >> 16);
        bytes[1] = (png_byte)(words[x] >> 8);
        bytes[2] = (png_byte)words[x];
    }
}

/* Draws and writes one band at a time, so that a large picture needs no more memory than a small
 * one. */
static enum mt_status write_rows(png_structp png, struct mt_raster *raster, png_bytep row,
                                 struct mt_error *error)
{
    struct mt_raster_band band;
    enum mt_status status;
    int y;

    while (!(status = mt_raster_next(raster, &band, error)) && band.rows)
        for (y = 0; y < band.rows; y++) {
            convert_row(band.words + (size_t)y * band.stride, row, mt_raster_width(raster));
            png_write_row(png, row);
        }
    return status;
}

static bool encode(png_structp png, png_infop info, struct job *job)
{
    if (setjmp(png_jmpbuf(png)))
        return false;
    png_set_compression_level(png, COMPRESSION_LEVEL);
    png_set_filter(png, 0, PNG_FILTER_NONE);
    set_header(png, info, job->drawing, job->raster, job->scale);
    png_write_info(png, info);
    job->status = write_rows(png, job->raster, job->row, job->error);
    if (job->status)
        return true;
    png_write_end(png, NULL);
    return true;
}

static enum mt_status write_picture(struct job *job)
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, jump_out, silent);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    struct mt_buf row = {0};
    bool ok = false;

    if (info && mt_buf_reserve(&row, (size_t)mt_raster_width(job->raster) * 3)) {
        png_set_write_fn(png, job, hand_on, nothing_to_flush);
        job->row = (png_bytep)row.data;
        ok = encode(png, info, job);
    }
    mt_buf_release(&row);
    png_destroy_write_struct(&png, &info);
    if (job->status)
        return job->status;
    if (job->is_full)
        return mt_fail(job->error, MT_ERR_OUTPUT, MT_NO_OFFSET, "cannot write the PNG");
    return ok ? MT_OK
              : mt_fail(job->error, MT_ERR_MEMORY, MT_NO_OFFSET, "no memory to pack the PNG");
}

enum mt_status mt_png_stream(const struct mt_drawing *drawing, enum mt_theme theme, double scale,
                             const struct mt_png_sink *sink, struct mt_error *error)
{
    struct job job = {.drawing = drawing, .sink = sink, .scale = scale, .error = error};
    const char *why = NULL;
    enum mt_status status;

    MT_ASSERT_SOUND(mt_drawing_is_sound(drawing, &why), why);
    status = mt_raster_open(drawing, theme, scale, &job.raster, error);
    if (status == MT_OK)
        status = write_picture(&job);
    mt_raster_close(job.raster);
    return status;
}
