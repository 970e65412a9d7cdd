/* Writes PNG (https://www.w3.org/TR/png-3): 8-bit RGB without row filters. There is no time stamp,
 * so the same picture gives the same file. */
#include "backends.h"

#include <math.h>
#include <string.h>
#include <zlib.h>

#include "check.h"
#include "drawing_check.h"
#include "png_pack.h"
#include "raster.h"

#define CHUNK_BYTES 32768 /* a chunk of pixels ends when it has at least this many */

bool mt_png_available(struct mt_error *error)
{
    (void)error;
    return true;
}

/* The picture, its destination and the chunk that is being made. */
struct job {
    const struct mt_drawing *drawing;
    const struct mt_png_sink *sink;
    struct mt_raster *raster;
    double scale;
    struct mt_buf chunk;
    bool is_full; /* the sink accepted no more bytes */
};

static void hand_on(struct job *job, const void *bytes, size_t length)
{
    job->is_full = job->is_full || !job->sink->write(job->sink->context, bytes, length);
}

static void set_big_endian(char *bytes, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        bytes[i] = (char)(value >> (24 - 8 * i));
}

static void add_big_endian(struct mt_buf *out, uint32_t value)
{
    char bytes[4];

    set_big_endian(bytes, value);
    mt_buf_add(out, bytes, sizeof bytes);
}

/* A chunk has a length, a type of four letters, the content and a checksum. */
static void begin_chunk(struct job *job, const char *type)
{
    mt_buf_reset(&job->chunk);
    add_big_endian(&job->chunk, 0);
    mt_buf_add(&job->chunk, type, 4);
}

static void end_chunk(struct job *job)
{
    struct mt_buf *chunk = &job->chunk;
    const unsigned char *checked = (const unsigned char *)chunk->data + 4;

    set_big_endian(chunk->data, (uint32_t)chunk->length - 8);
    add_big_endian(chunk, (uint32_t)crc32(0, checked, (uInt)(chunk->length - 4)));
    hand_on(job, chunk->data, chunk->length);
}

static bool is_ascii(const char *text)
{
    for (; *text; text++)
        if (*text < 0x20 || *text > 0x7E)
            return false;
    return true;
}

/* Adds a text: ASCII as tEXt, other text as iTXt, which is UTF-8. */
static void add_text(struct job *job, const char *key, const char *value)
{
    static const char plain[] = {0, 0, 0, 0}; /* not compressed, no language, no translated key */

    if (!key || !value || !*value)
        return;
    begin_chunk(job, is_ascii(value) ? "tEXt" : "iTXt");
    mt_buf_add(&job->chunk, key, strlen(key) + 1);
    if (!is_ascii(value))
        mt_buf_add(&job->chunk, plain, sizeof plain);
    mt_buf_add_text(&job->chunk, value);
    end_chunk(job);
}

static void write_header(struct job *job)
{
    static const char rgb[] = {8, 2, 0, 0, 0}; /* bits, RGB, deflate, filters, not interlaced */
    uint32_t pixels_per_meter = (uint32_t)lround(72 * job->scale / 0.0254);

    hand_on(job, "\x89PNG\r\n\x1a\n", 8);
    begin_chunk(job, "IHDR");
    add_big_endian(&job->chunk, (uint32_t)mt_raster_width(job->raster));
    add_big_endian(&job->chunk, (uint32_t)mt_raster_height(job->raster));
    mt_buf_add(&job->chunk, rgb, sizeof rgb);
    end_chunk(job);
    begin_chunk(job, "sRGB");
    mt_buf_add_char(&job->chunk, 0); /* perceptual */
    end_chunk(job);
    begin_chunk(job, "pHYs");
    add_big_endian(&job->chunk, pixels_per_meter);
    add_big_endian(&job->chunk, pixels_per_meter);
    mt_buf_add_char(&job->chunk, 1); /* per meter */
    end_chunk(job);
    add_text(job, "Title", job->drawing->title);
    add_text(job, "Description", job->drawing->description);
    for (size_t i = 0; i < job->drawing->metadata_count; i++)
        add_text(job, job->drawing->metadata[i].key, job->drawing->metadata[i].value);
}

/* Draws and writes one band at a time, so that a large picture needs no more memory than a small
 * one. */
static enum mt_status write_rows(struct job *job, struct mt_error *error)
{
    struct mt_png_pack *pack = mt_png_pack_new((size_t)mt_raster_width(job->raster), &job->chunk);
    struct mt_raster_band band;
    enum mt_status status;

    begin_chunk(job, "IDAT");
    while (!(status = mt_raster_next(job->raster, &band, error)) && band.rows && !job->is_full)
        for (int y = 0; y < band.rows; y++) {
            mt_png_pack_add(pack, band.words + (size_t)y * band.stride);
            if (job->chunk.length < CHUNK_BYTES)
                continue;
            end_chunk(job);
            begin_chunk(job, "IDAT");
        }
    mt_png_pack_end(pack);
    end_chunk(job);
    mt_png_pack_free(pack);
    return status;
}

static enum mt_status write_picture(struct job *job, struct mt_error *error)
{
    write_header(job);
    enum mt_status status = write_rows(job, error);
    begin_chunk(job, "IEND");
    end_chunk(job);
    mt_buf_release(&job->chunk);
    if (status == MT_OK && job->is_full)
        return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "cannot write the PNG");
    return status;
}

enum mt_status mt_png_stream(const struct mt_drawing *drawing, enum mt_theme theme, double scale,
                             const struct mt_png_sink *sink, struct mt_error *error)
{
    struct job job = {.drawing = drawing, .sink = sink, .scale = scale};
    const char *why = NULL;

    MT_ASSERT_SOUND(mt_drawing_is_sound(drawing, &why), why);
    enum mt_status status = mt_raster_open(drawing, theme, scale, &job.raster, error);
    if (status == MT_OK)
        status = write_picture(&job, error);
    mt_raster_close(job.raster);
    return status;
}
