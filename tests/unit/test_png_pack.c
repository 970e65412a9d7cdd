/* Pixels that are packed for a PNG: zlib finds the same pixels again. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <zlib.h>

#include "dice.h"
#include "png_pack.h"

#define MAX_PIXELS 100000
#define WIDEST     16384 /* MT_RASTER_MAX_SIDE */

struct picture {
    size_t width, height;
    uint32_t *pixels;
};

/* Fills a picture as charts look: runs, rows that repeat the row above with a few changes, patterns
 * with a distance, and noise. Highest bytes of pixels have no meaning. */
static void fill(const struct picture *picture, unsigned colors, unsigned likeness)
{
    size_t count = picture->width * picture->height, pattern = 1 + xorshift_below(12000);

    for (size_t i = 0; i < count; i++) {
        size_t from = xorshift_below(3) ? picture->width : xorshift_below(2) ? 1 : pattern;

        if (i < from || !xorshift_below(likeness))
            picture->pixels[i] = 0x10305 * linear_below(colors) | linear_below(256) << 24;
        else
            picture->pixels[i] = picture->pixels[i - from];
    }
}

static void pack(const struct picture *picture, struct mt_buf *out)
{
    struct mt_png_pack *pack = mt_png_pack_new(picture->width, out);

    for (size_t y = 0; y < picture->height; y++)
        mt_png_pack_add(pack, picture->pixels + y * picture->width);
    mt_png_pack_end(pack);
    mt_png_pack_free(pack);
}

static void assert_unpacks(const struct picture *picture, const struct mt_buf *packed)
{
    size_t row_bytes = 1 + 3 * picture->width;
    uLongf length = row_bytes * picture->height;
    unsigned char *bytes = malloc(length), *at = bytes;

    assert_int_equal(uncompress(bytes, &length, (const Bytef *)packed->data, packed->length), Z_OK);
    assert_int_equal(length, row_bytes * picture->height);
    for (size_t i = 0; i < picture->width * picture->height; i++, at += 3) {
        if (i % picture->width == 0)
            assert_int_equal(*at++, 0);
        assert_int_equal(at[0] << 16 | at[1] << 8 | at[2], picture->pixels[i] & 0xFFFFFF);
    }
    free(bytes);
}

TEST(pictures_are_the_same)
{
    uint32_t *pixels = malloc(2 * MAX_PIXELS * sizeof *pixels);

    random_state = 7;
    for (int round = 0; round < 60; round++) {
        size_t width = 1 + xorshift_below(round % 3 ? 300 : WIDEST);
        struct picture picture = {width, 1 + xorshift_below(MAX_PIXELS / width), pixels};
        struct mt_buf packed = {0};

        fill(&picture, round % 2 ? 3 : 65536, round % 5 ? 40 : 2);
        pack(&picture, &packed);
        assert_unpacks(&picture, &packed);
        mt_buf_release(&packed);
    }
    free(pixels);
}

/* Rows and columns of noise that repeat are stored once. */
TEST(repetitions_are_found)
{
    enum { WIDTH = 600, HEIGHT = 100 };
    uint32_t *pixels = malloc(sizeof *pixels * WIDTH * HEIGHT);
    const struct picture picture = {WIDTH, HEIGHT, pixels};

    random_state = 8;
    for (size_t apart = 1; apart <= 3; apart++) { /* rows, runs, a pattern of 37 pixels */
        struct mt_buf packed = {0};

        for (size_t i = 0; i < (size_t)WIDTH * HEIGHT; i++) {
            size_t from = apart == 1 ? WIDTH : apart == 2 ? 1 : 37;
            bool is_new = apart == 2 ? i % 50 == 0 : i < from;

            pixels[i] = is_new ? linear_below(1 << 24) : pixels[i - from];
        }
        pack(&picture, &packed);
        assert_unpacks(&picture, &packed);
        assert_in_range(packed.length, 100, apart == 2 ? 8000 : 4000);
        mt_buf_release(&packed);
    }
    free(pixels);
}

/* A distance has at most 32,768 bytes. */
TEST(what_is_too_far_is_stored_again)
{
    enum { WIDTH = 10000, REPEATED = 900 };
    uint32_t *pixels = malloc(2 * sizeof *pixels * WIDTH);
    const struct picture picture = {WIDTH, 2, pixels};
    struct mt_buf packed = {0};

    random_state = 9;
    for (size_t i = 0; i < 2 * WIDTH; i++)
        pixels[i] =
            i < 2 * WIDTH - REPEATED ? linear_below(1 << 24) : pixels[i - (2 * WIDTH - REPEATED)];
    pack(&picture, &packed);
    assert_unpacks(&picture, &packed);
    mt_buf_release(&packed);
    free(pixels);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
