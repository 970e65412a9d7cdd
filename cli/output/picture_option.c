/* The option --picture, and the picture of policies. */
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "gallery.h"
#include "json.h"
#include "outputs.h"
#include "picture_option.h"

#define MIN_WIDTH  480
#define MIN_HEIGHT 320
#define MAX_SIDE   8192

/* Parses "1200x680". A picture below MIN_WIDTH x MIN_HEIGHT has no room for labels, and sides of
 * PNGs are limited to twice MAX_SIDE. */
static bool parse_size(const char *text, struct mt_picture *picture)
{
    char *end;
    unsigned long width = strtoul(text, &end, 10);

    if (end == text || *text == '-' || (*end != 'x' && *end != 'X'))
        return false;
    text = end + 1;
    unsigned long height = strtoul(text, &end, 10);
    if (end == text || *text == '-' || *end || width < MIN_WIDTH || height < MIN_HEIGHT ||
        width > MAX_SIDE || height > MAX_SIDE)
        return false;
    picture->width = (double)width;
    picture->height = (double)height;
    return true;
}

static bool parse_theme(const char *text, enum mt_theme *theme)
{
    static const char *const names[] = {"auto", "light", "dark"};

    for (size_t i = 0; i < 3; i++) {
        if (!strcmp(text, names[i])) {
            *theme = (enum mt_theme)i;
            return true;
        }
    }
    return false;
}

static bool parse_output(struct mt_picture *picture)
{
    const char *dot = strrchr(picture->output, '.');

    picture->is_png = dot && !strcmp(dot, ".png");
    picture->is_page = dot && !strcmp(dot, ".html");
    return !strcmp(picture->output, "-") || picture->is_png ||
           (picture->is_page && picture->allows_page) || (dot && !strcmp(dot, ".svg"));
}

bool mt_picture_read(struct mt_picture *picture, const struct mt_common *common)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};

    if (!parse_output(picture))
        mt_message("'%s': the name must end in .svg%s or .png", picture->output,
                   picture->allows_page ? ", .html" : "");
    else if (picture->is_page && (picture->size || picture->theme))
        mt_message("a page has the size and the colors of its reader: omit --size and --theme");
    else if (picture->is_png && !mt_png_available(&error))
        mt_message("no .png: %s; write an .svg file instead", error.text);
    else if (picture->size && !parse_size(picture->size, picture))
        mt_message("option '--size' needs WIDTHxHEIGHT in pixels, from %dx%d to %dx%d, such as "
                   "1200x680, not '%s'",
                   MIN_WIDTH, MIN_HEIGHT, MAX_SIDE, MAX_SIDE, picture->size);
    else if (common->json && !strcmp(picture->output, "-"))
        mt_message("--json and -o - both write to standard output: name a file with -o");
    else if (picture->theme && !parse_theme(picture->theme, &picture->theme_kind))
        mt_message("option '--theme' needs auto, light or dark, not '%s'", picture->theme);
    else
        return true;
    return false;
}

void mt_picture_add_no_png(struct mt_buf *out, const struct mt_error *why)
{
    if (why->status == MT_OK)
        return;
    mt_buf_add_text(out, "  (no .png: ");
    mt_buf_add_printable(out, why->text, strlen(why->text));
    mt_buf_add_text(out, ")\n");
}

static const struct mt_file_kind *kind_of(const struct mt_picture *picture)
{
    return picture->is_page ? &mt_file_page : picture->is_png ? &mt_file_png : &mt_file_svg;
}

int mt_picture_write_page(const struct mt_picture *picture, const struct mt_buf *page)
{
    return mt_outputs_write(picture->output, picture->outputs, kind_of(picture), page);
}

int mt_picture_precheck(const struct mt_picture *picture)
{
    return mt_output_precheck(picture->output, picture->outputs, kind_of(picture));
}

static bool to_file(void *context, const void *bytes, size_t length)
{
    return mt_output_add(context, bytes, length);
}

static int cannot_draw(const struct mt_picture *picture, const struct mt_error *error)
{
    return mt_report_drawing_error(picture->output, error);
}

/* Writes in pieces, because a huge picture does not fit in memory. */
static int write_huge(const struct mt_picture *picture, const struct mt_drawing *drawing,
                      size_t *bytes)
{
    const struct mt_output_rules rules = mt_output_rules_of(picture->outputs, kind_of(picture));
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_output output;
    const struct mt_png_sink sink = {to_file, &output};

    *bytes = 0;
    if (mt_output_open(&output, picture->output, &rules, &error) != MT_OK)
        return mt_report_output_error(picture->output, &error);
    enum mt_status status =
        mt_png_stream(drawing, picture->theme_kind, MT_PNG_SCALE, &sink, &error);
    if (status != MT_OK && status != MT_ERR_OUTPUT) {
        mt_output_abandon(&output);
        return cannot_draw(picture, &error);
    }
    *bytes = (size_t)output.bytes;
    if (mt_output_finish(&output, &error) != MT_OK)
        return mt_report_output_error(picture->output, &error);
    return MT_EXIT_OK;
}

int mt_picture_write(const struct mt_picture *picture, const struct mt_drawing *drawing,
                     size_t *bytes)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_buf out = {0};
    int code;

    if (picture->is_png && drawing->huge)
        return write_huge(picture, drawing, bytes);
    if (mt_drawing_write(drawing, picture->theme_kind, picture->is_png, &out, &error) != MT_OK)
        code = cannot_draw(picture, &error);
    else
        code = mt_outputs_write(picture->output, picture->outputs, kind_of(picture), &out);
    *bytes = out.length;
    mt_buf_release(&out);
    return code;
}

int mt_picture_print_json(const struct mt_picture *picture, const char *chart, long device,
                          size_t bytes)
{
    struct mt_buf out = {0};
    struct mt_json json;

    mt_json_document(&json, &out, "memtrace.render/1", false);
    mt_json_text(&json, "chart", chart);
    mt_json_text(&json, "path", picture->output);
    mt_json_u64(&json, "bytes", bytes);
    mt_json_u64_or_null(&json, "device", device >= 0, (uint64_t)device);
    mt_json_object_end(&json);
    return mt_print_and_release(&out);
}

void mt_add_picture_names(struct mt_buf *out, const struct mt_gallery *gallery)
{
    for (size_t i = 0; i < gallery->count; i++) {
        const struct mt_gallery_file *file = &gallery->files[i];
        const struct mt_gallery_file *next = i + 1 < gallery->count ? file + 1 : NULL;

        if (file->status)
            continue;
        mt_buf_add_text(out, "  ");
        mt_buf_add_printable(out, file->path, strlen(file->path));
        if (next && next->is_png && !file->is_png && next->chart == file->chart &&
            next->device == file->device && !next->status) {
            mt_buf_add_text(out, " and .png");
            i++;
        }
        mt_buf_add_char(out, '\n');
    }
}

int mt_report_picture_errors(const struct mt_gallery *gallery, const char *directory,
                             const struct mt_error *error)
{
    int code = MT_EXIT_OK;

    for (size_t i = 0; i < gallery->count; i++)
        if (gallery->files[i].status)
            code = mt_report_output_error(gallery->files[i].path, &gallery->files[i].error);
    return code == MT_EXIT_OK ? mt_report_output_error(directory, error) : code;
}
