/* Pictures as files: names, contents of a PNG, and errors. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "german.h"
#include "device_choice.h"
#include "gallery.h"
#include "synthetic_report.h"

static char directory[] = "/tmp/memtrace-gallery-XXXXXX";

static int make_directory(void **state)
{
    (void)state;
    return mkdtemp(directory) ? 0 : 1;
}

static int remove_directory(void **state)
{
    (void)state;
    return rmdir(directory);
}

static void remove_files(const struct mt_gallery *gallery)
{
    for (size_t i = 0; i < gallery->count; i++)
        remove(gallery->files[i].path);
}

/* A synthetic report is enough for the timeline, but may not be for other charts. */
static void write_png(const struct mt_report *report, enum mt_theme theme, struct mt_buf *out)
{
    const struct mt_chart_options options = {.width = 830};
    struct mt_drawing drawing;

    mt_chart_find("timeline")->draw(report, &report->devices[0], &options, &drawing);
    assert_int_equal(mt_drawing_write(&drawing, theme, true, out, NULL), MT_OK);
    mt_drawing_release(&drawing);
}

static uint32_t big_endian(const char *at)
{
    const unsigned char *b = (const unsigned char *)at;

    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Data of the first chunk of that type, NULL = none. */
static const char *find_chunk(const struct mt_buf *png, const char *type, uint32_t *length)
{
    size_t at = 8;

    while (at + 12 <= png->length) {
        *length = big_endian(png->data + at);
        if (!memcmp(png->data + at + 4, type, 4))
            return png->data + at + 8;
        at += 12 + (size_t)*length;
    }
    return NULL;
}

TEST(png_has_size_resolution_and_words)
{
    struct synthetic_options options = {.steps = 4};
    struct mt_report report;
    struct mt_buf png = {0};
    uint32_t length;

    if (!mt_png_available(NULL))
        skip();
    synthetic_report(&report, &options);
    write_png(&report, MT_THEME_LIGHT, &png);
    assert_memory_equal(png.data, "\x89PNG\r\n\x1a\n", 8);
    const char *data = find_chunk(&png, "IHDR", &length);
    assert_non_null(data);
    assert_int_equal(big_endian(data), 1660);
    assert_int_equal(data[8], 8); /* bits */
    assert_int_equal(data[9], 2); /* RGB */
    data = find_chunk(&png, "pHYs", &length);
    assert_non_null(data);
    assert_int_equal(big_endian(data), 5669);
    assert_non_null(find_chunk(&png, "sRGB", &length));
    assert_null(find_chunk(&png, "tIME", &length));
    data = find_chunk(&png, "iTXt", &length); /* the title has a dash */
    assert_non_null(data);
    assert_string_equal(data, "Title");
    data = find_chunk(&png, "tEXt", &length);
    assert_non_null(data);
    assert_string_equal(data, "Description");
    assert_non_null(strstr(data + strlen("Description") + 1, "Peak reserved"));
    mt_buf_release(&png);
    synthetic_release(&report);
}

/* A picture does not depend on the clock, locale or fonts of the machine. */
TEST(png_is_the_same_everywhere)
{
    struct synthetic_options options = {.steps = 4};
    struct mt_report report;
    struct mt_buf here = {0}, there = {0}, dark = {0};

    if (!mt_png_available(NULL) || !set_german())
        skip();
    setlocale(LC_ALL, "C");
    synthetic_report(&report, &options);
    write_png(&report, MT_THEME_LIGHT, &here);
    setenv("FONTCONFIG_FILE", "/dev/null", 1);
    assert_true(set_german());
    write_png(&report, MT_THEME_AUTO, &there);
    setlocale(LC_ALL, "C");
    unsetenv("FONTCONFIG_FILE");
    assert_int_equal(here.length, there.length);
    assert_memory_equal(here.data, there.data, here.length);
    write_png(&report, MT_THEME_DARK, &dark);
    assert_true(dark.length != here.length || memcmp(dark.data, here.data, here.length));
    mt_buf_release(&here);
    mt_buf_release(&there);
    mt_buf_release(&dark);
    synthetic_release(&report);
}

TEST(too_large_a_png_is_refused)
{
    struct mt_drawing drawing;
    struct mt_buf out = {0};
    struct mt_error error;

    mt_drawing_init(&drawing, 20000, 20, "wide");
    assert_int_equal(mt_drawing_write(&drawing, MT_THEME_LIGHT, true, &out, &error),
                     MT_ERR_UNSUPPORTED);
    assert_int_equal(out.length, 0);
    mt_drawing_release(&drawing);
}

TEST(files_are_named_by_chart_and_device)
{
    struct synthetic_options options = {.steps = 2, .devices = 2};
    struct mt_gallery_options where = {.directory = directory, .threads = 3};
    struct mt_gallery gallery;
    struct mt_report report;
    char want[100];
    size_t i, charts = 0;

    synthetic_report(&report, &options);
    for (i = 0; mt_charts[i]; i++)
        charts += mt_chart_is_called_for(mt_charts[i], &report, &report.devices[0]);
    assert_int_equal(mt_gallery_write(&report, &where, &gallery, NULL), MT_OK);
    assert_int_equal(gallery.count, 2 * charts * (mt_png_available(NULL) ? 2 : 1));
    snprintf(want, sizeof want, "%s/%s.device0.svg", directory, mt_charts[0]->name);
    assert_string_equal(gallery.files[0].path, want);
    for (i = 0; i < gallery.count; i++) {
        struct stat info;

        assert_int_equal(gallery.files[i].status, MT_OK);
        assert_int_equal(stat(gallery.files[i].path, &info), 0);
        assert_int_equal(info.st_size, gallery.files[i].bytes);
    }
    remove_files(&gallery);
    mt_gallery_release(&gallery);
    synthetic_release(&report);
}

/* Draws the devices that reserved most, in the order of the report. */
TEST(only_large_devices_are_drawn)
{
    static struct mt_device_report devices[40];
    struct mt_report report = {.devices = devices, .device_count = MT_ARRAY_LEN(devices)};

    for (uint16_t i = 0; i < report.device_count; i++) {
        devices[i].device = i;
        devices[i].reserved_peak.bytes = i % 4 ? 10 : 20 + i / 8; /* 0, 4 .. 36 are large */
    }
    struct mt_device_choice choice = mt_devices_by_peak(&report);
    assert_int_equal(choice.count, MT_SHOWN_DEVICES);
    assert_int_equal(choice.omitted, 40 - MT_SHOWN_DEVICES);
    assert_int_equal(choice.devices[0]->device, 32);
    assert_int_equal(choice.devices[1]->device, 36);
    assert_int_equal(choice.devices[9]->device, 4);
    assert_int_equal(choice.devices[10]->device, 1);
    assert_int_equal(choice.devices[15]->device, 7);
    choice = mt_devices_in_order(&report);
    for (uint32_t i = 1; i < choice.count; i++)
        assert_true(choice.devices[i - 1]->device < choice.devices[i]->device);
    report.device_count = 3;
    assert_int_equal(mt_devices_by_peak(&report).count, 3);
    assert_int_equal(mt_devices_by_peak(&report).omitted, 0);
}

/* A program without a caching allocator reserves nothing; without segments, that is unknown. */
TEST(the_peak_that_selects_devices_is_printed)
{
    struct mt_report report = {.has_segments = true};

    assert_non_null(strstr(mt_device_choice_text(&report), "largest reserved peaks"));
    report.is_driver_level = true;
    assert_non_null(strstr(mt_device_choice_text(&report), "largest allocated peaks"));
    report = (struct mt_report){.has_segments = false};
    assert_non_null(strstr(mt_device_choice_text(&report), "largest allocated peaks"));
}

TEST(one_device_needs_no_number)
{
    struct synthetic_options options = {.steps = 2};
    struct mt_gallery_options where = {.directory = directory};
    struct mt_gallery gallery;
    struct mt_report report;
    char want[100];

    synthetic_report(&report, &options);
    assert_int_equal(mt_gallery_write(&report, &where, &gallery, NULL), MT_OK);
    snprintf(want, sizeof want, "%s/%s.svg", directory, mt_charts[0]->name);
    assert_string_equal(gallery.files[0].path, want);
    remove_files(&gallery);
    mt_gallery_release(&gallery);
    synthetic_release(&report);
}

/* An empty picture has nothing to look at. */
TEST(what_was_not_recorded_is_not_drawn)
{
    struct synthetic_options options = {.steps = 2};
    struct mt_gallery_options where = {.directory = directory};
    struct mt_gallery gallery;
    struct mt_report report = {.device_count = 0};

    assert_int_equal(mt_gallery_write(&report, &where, &gallery, NULL), MT_OK);
    assert_int_equal(gallery.count, 0);
    mt_gallery_release(&gallery);
    synthetic_report(&report, &options);
    report.starts_in_middle = true;
    report.devices[0].end.reserved = 1;
    report.devices[0].allocations = report.devices[0].frees = 0;
    assert_int_equal(mt_gallery_write(&report, &where, &gallery, NULL), MT_OK);
    for (size_t i = 0; i < gallery.count; i++)
        assert_true(!strcmp(gallery.files[i].chart, "icicle") ||
                    !strcmp(gallery.files[i].chart, "address"));
    assert_true(gallery.count > 0);
    remove_files(&gallery);
    mt_gallery_release(&gallery);
    synthetic_release(&report);
}

TEST(a_missing_directory_is_an_error)
{
    struct synthetic_options options = {.steps = 2};
    struct mt_gallery_options where = {.directory = "/dev/null/place"};
    struct mt_gallery gallery;
    struct mt_report report;
    struct mt_error error;

    synthetic_report(&report, &options);
    assert_int_equal(mt_gallery_write(&report, &where, &gallery, &error), MT_ERR_OUTPUT);
    assert_int_equal(gallery.files[0].status, MT_ERR_OUTPUT);
    mt_gallery_release(&gallery);
    synthetic_release(&report);
}

int main(void)
{
    return run_tests_of_file(make_directory, remove_directory);
}
