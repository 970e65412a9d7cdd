/* Display list, theme, SVG, ticks and label placement: the parts of render that no chart owns. */
#include "cmocka_all.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "cell_label.h"
#include "chart_frame.h"
#include "draw.h"
#include "german.h"
#include "glyphs.h"
#include "place.h"
#include "scale.h"
#include "theme.h"
#include "util.h"

static char *svg_of(struct mt_drawing *drawing, enum mt_theme theme)
{
    struct mt_buf out = {0};

    mt_svg_write(drawing, theme, &out);
    return out.data;
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in: %s", part, text);
}

TEST(utf8_is_decoded_and_damage_is_marked)
{
    const char *text = "a\xC2\xB5\xE2\x80\xA6\xF0\x9F\x98\x80\xFF\xC0\x80\xE2\x80";
    static const uint32_t want[] = {'a',    0xB5,   0x2026, 0x1F600, 0xFFFD,
                                    0xFFFD, 0xFFFD, 0xFFFD, 0xFFFD,  0};

    for (size_t i = 0; i < MT_ARRAY_LEN(want); i++)
        assert_int_equal(mt_utf8_next(&text), want[i]);
}

TEST(every_needed_letter_has_an_outline)
{
    const char *text = "AZaz09 ~\xE2\x80\x94\xE2\x80\x93\xE2\x80\xA6\xC2\xB7\xC3\x97\xC3\xB7"
                       "\xE2\x88\x92\xE2\x89\xA4\xE2\x89\xA5\xC2\xB1\xC2\xB5\xC2\xB0\xE2\x80\xBA"
                       "\xE2\x86\x92\xC3\xBC\xC3\x9F\xCE\xBC";
    uint32_t c;

    while ((c = mt_utf8_next(&text))) {
        assert_non_null(mt_glyph_find(&mt_glyph_tables[MT_REGULAR], c));
        assert_non_null(mt_glyph_find(&mt_glyph_tables[MT_SEMIBOLD], c));
    }
    assert_null(mt_glyph_find(&mt_glyph_tables[MT_REGULAR], 0x9418));
    for (uint32_t i = 0; i < mt_glyph_tables[MT_REGULAR].count; i++) {
        c = mt_glyph_tables[MT_REGULAR].glyphs[i].character;
        assert_ptr_equal(mt_glyph_find(&mt_glyph_tables[MT_REGULAR], c),
                         &mt_glyph_tables[MT_REGULAR].glyphs[i]);
    }
}

TEST(width_grows_with_size_and_weight)
{
    assert_true(mt_text_width("", 13, MT_REGULAR) == 0);
    assert_true(fabs(mt_text_width("abc", 26, MT_REGULAR) -
                     2 * mt_text_width("abc", 13, MT_REGULAR)) < 1e-9);
    assert_true(mt_text_width("abc", 13, MT_SEMIBOLD) > mt_text_width("abc", 13, MT_REGULAR));
}

TEST(fitted_text_fits)
{
    const char *path = "/usr/lib/python3/dist-packages/t\xC3\xB6rch/nn/modules/linear.py:134";
    struct mt_drawing drawing;

    mt_drawing_init(&drawing, 100, 100, "t");
    for (double width = 0; width < 500; width += 3.7) {
        for (int middle = 0; middle < 2; middle++) {
            const char *fit = mt_text_fit(&drawing, path, 13, MT_REGULAR, width, middle);

            assert_true(mt_text_width(fit, 13, MT_REGULAR) <= width);
            if (*fit && middle)
                assert_int_equal(fit[strlen(fit) - 1], '4');
            if (*fit)
                assert_int_equal(fit[0], '/');
        }
    }
    assert_string_equal(mt_text_fit(&drawing, path, 13, MT_REGULAR, 2000, false), path);
    assert_string_equal(mt_text_fit(&drawing, "ab", 13, MT_REGULAR, 5, false), "");
    mt_drawing_release(&drawing);
}

/* 6,885,150,..." looks like another number than 6,885,150,280, and "6.41 M..." is no number. */
TEST(no_number_is_cut)
{
    static const char *const texts[] = {"bound = 6.41 GiB (6,885,150,280 B)",
                                        "24 \xC3\x97 9.00 MiB", "+1,018 calls of 12 functions"};
    struct mt_drawing drawing;

    mt_drawing_init(&drawing, 100, 100, "t");
    for (size_t i = 0; i < MT_ARRAY_LEN(texts); i++) {
        for (double width = 10; width < 300; width += 0.9) {
            const char *fit = mt_text_fit(&drawing, texts[i], 13, MT_REGULAR, width, false);
            size_t length = strcspn(fit, "\xE2"); /* the ellipsis */
            size_t digit = length ? length - 1 : 0;

            if (!fit[length])
                continue;
            assert_true(!(length && fit[digit] >= '0' && fit[digit] <= '9') ||
                        texts[i][length] == ' ');
            assert_true(!length || !strchr("MGK", fit[digit]));
        }
    }
    assert_string_equal(mt_text_fit(&drawing, texts[0], 13, MT_REGULAR, 130, false),
                        "bound = 6.41 GiB\xE2\x80\xA6");
    mt_drawing_release(&drawing);
}

/* The longest prefix of each text that has at most `room` characters. */
TEST(names_are_cut_between_words)
{
    static const struct {
        const char *text;
        size_t room;
        const char *wanted;
    } heads[] = {
        {"allocated before recording started", 28, "allocated before recording"},
        {"LlamaDecoderLayer.forward", 19, "LlamaDecoderLayer"},
        {"LlamaDecoderLayer.forward", 14, "LlamaDecoder"},
        {"_cudnn_attention_forward", 20, "_cudnn_attention"},
        {"scaled", 5, "scale"},              /* nothing would stay */
        {"a_quadrilateral", 9, "a_quadril"}, /* too much would be lost */
        {"128 activations", 6, "128 ac"},    /* a number without its noun is meaningless */
        {"modeling_llama.py:175", 20, "modeling_llama.py"},
        {"forward linear.py", 7, "forward"},
        {"peak 12.5 GiB of", 9, "peak"}, /* so is a number without its unit */
        {"peak 12.5 GiB of", 10, "peak"},
        {"peak 12.5 GiB of", 12, "peak"},
        {"held 512 B of it", 9, "held"},
        {"grew 43.1% in all", 8, "grew"},
        {"after 114 ms of it", 10, "after"},
        {"after 114 models", 9, "after 114"},
        {"t\xC3\xB6rch_nn_modules", 10, "t\xC3\xB6rch_nn"},
    };
    static const struct {
        const char *text, *tail, *wanted;
    } tails[] = {
        {"LlamaMLP.forward modeling_llama.py:175", "g_llama.py:175", "llama.py:175"},
        {"Adam._init_group adam.py:178", "up adam.py:178", " adam.py:178"},
        {"forward modeling_qwen2.py:221", "_qwen2.py:221", "qwen2.py:221"},
        {"forward modeling.py:466", "ling.py:466", "ling.py:466"}, /* too much would be lost */
        {"forward transformer.py:22", "transformer.py:22", "transformer.py:22"},
    };

    for (size_t i = 0; i < MT_ARRAY_LEN(heads); i++) {
        size_t cut = mt_cut_head(heads[i].text, heads[i].room);

        assert_int_equal(cut, strlen(heads[i].wanted));
        assert_memory_equal(heads[i].text, heads[i].wanted, cut);
    }
    for (size_t i = 0; i < MT_ARRAY_LEN(tails); i++) {
        const char *tail = tails[i].text + strlen(tails[i].text) - strlen(tails[i].tail);

        assert_string_equal(mt_cut_tail(tails[i].text, tail), tails[i].wanted);
    }
}

static double part(uint32_t rgb, int shift)
{
    double value = (double)(rgb >> shift & 0xFF) / 255;

    return value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4);
}

static double contrast(uint32_t a, uint32_t b)
{
    double la = 0.2126 * part(a, 16) + 0.7152 * part(a, 8) + 0.0722 * part(a, 0) + 0.05;
    double lb = 0.2126 * part(b, 16) + 0.7152 * part(b, 8) + 0.0722 * part(b, 0) + 0.05;

    return la > lb ? la / lb : lb / la;
}

static double cube_root(double t)
{
    return t > 0.008856 ? cbrt(t) : 7.787 * t + 16.0 / 116;
}

/* The distance of two colors in CIE L*a*b* (1976). People see a distance of about 2. */
static double color_distance(uint32_t a, uint32_t b)
{
    double lab[2][3], sum = 0;
    const uint32_t rgb[2] = {a, b};

    for (int i = 0; i < 2; i++) {
        double red = part(rgb[i], 16), green = part(rgb[i], 8), blue = part(rgb[i], 0);
        double x = cube_root((0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047);
        double y = cube_root(0.2126 * red + 0.7152 * green + 0.0722 * blue);
        double z = cube_root((0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883);

        lab[i][0] = 116 * y - 16;
        lab[i][1] = 500 * (x - y);
        lab[i][2] = 200 * (y - z);
    }
    for (int i = 0; i < 3; i++)
        sum += (lab[0][i] - lab[1][i]) * (lab[0][i] - lab[1][i]);
    return sqrt(sum);
}

static void expect_distance(enum mt_theme theme, unsigned a, unsigned b, unsigned shade,
                            double least)
{
    double got = color_distance(mt_theme_rgb(theme, a), mt_theme_shade(theme, b, shade));

    if (got < least)
        fail_msg("colors %u and %u, shade %u, theme %u: distance %d / 10", a, b, shade,
                 (unsigned)theme, (int)(got * 10));
}

/* A strip of phases is below shapes in the colors of roles. Nobody takes one for the other. */
TEST(phases_are_no_roles)
{
    static const enum mt_theme themes[] = {MT_THEME_LIGHT, MT_THEME_DARK};

    for (unsigned t = 0; t < 2; t++) {
        for (unsigned phase = MT_COLOR_PHASE_0; phase <= MT_COLOR_PHASE_LAST; phase++) {
            for (unsigned role = MT_COLOR_ROLE_0; role <= MT_COLOR_ROLE_LAST; role++) {
                expect_distance(themes[t], phase, role, 0, 20);
                for (unsigned shade = 1; shade < 4; shade++)
                    expect_distance(themes[t], phase, role, shade, 15);
            }
            for (unsigned other = MT_COLOR_PHASE_0; other < phase; other++)
                expect_distance(themes[t], phase, other, 0, 7);
        }
        for (unsigned role = MT_COLOR_ROLE_0; role <= MT_COLOR_ROLE_LAST; role++)
            for (unsigned other = MT_COLOR_ROLE_0; other < role; other++)
                expect_distance(themes[t], role, other, 0, 20);
    }
}

/* Blocks are drawn in four shades of the color of their role. */
static void check_text_on_shades(void)
{
    for (unsigned color = MT_COLOR_ROLE_0; color < MT_COLOR_ORIGIN_0; color++) {
        for (unsigned i = 0; i < 8; i++) {
            enum mt_theme theme = i & 1 ? MT_THEME_DARK : MT_THEME_LIGHT;
            double got = contrast(mt_theme_shade(theme, color, i / 2),
                                  mt_theme_rgb(theme, mt_theme_text_on_shade(color, i / 2)));

            if (got < 3)
                fail_msg("color %u, shade %u: contrast %d / 100", color, i / 2, (int)(got * 100));
        }
    }
}

TEST(text_can_be_read_on_every_cell)
{
    static const enum mt_theme themes[] = {MT_THEME_LIGHT, MT_THEME_DARK};

    for (unsigned color = MT_COLOR_ROLE_0; color < MT_COLOR_COUNT; color++) {
        for (unsigned i = 0; i < 2; i++) {
            double got = contrast(mt_theme_rgb(themes[i], color),
                                  mt_theme_rgb(themes[i], mt_theme_text_on(color)));
            if (got < 3)
                fail_msg("color %u, theme %u: contrast %d / 100", color, i, (int)(got * 100));
        }
    }
    check_text_on_shades();
    for (unsigned i = 0; i < 2; i++) {
        uint32_t ground = mt_theme_rgb(themes[i], MT_COLOR_BACKGROUND);

        assert_true(contrast(ground, mt_theme_rgb(themes[i], MT_COLOR_TEXT)) >= 4.5);
        assert_true(contrast(ground, mt_theme_rgb(themes[i], MT_COLOR_MUTED)) >= 4.5);
        assert_true(contrast(ground, mt_theme_rgb(themes[i], MT_COLOR_FAINT)) >= 4.5);
    }
}

TEST(svg_escapes_names)
{
    struct mt_paint paint = {.fill = MT_COLOR_ROLE_0};
    struct mt_text_style style = {.size = 13, .color = MT_COLOR_TEXT};
    struct mt_drawing drawing;

    mt_drawing_init(&drawing, 400, 50, "chart");
    mt_drawing_describe(&drawing, "a < b & \"c\"", NULL);
    mt_draw_rect(&drawing, 1, 2, 3.25, 4, &paint, "<lambda>\x01", "cell");
    mt_draw_text(&drawing, 1, 20, "<module> \xFF", &style, NULL);
    char *svg = svg_of(&drawing, MT_THEME_AUTO);
    assert_has(svg, "<title id=\"chart-title\">a &lt; b &amp; &quot;c&quot;</title>");
    assert_has(svg, "<title>&lt;lambda&gt;\\x01</title>");
    assert_has(svg, "&lt;module&gt; \\xff</text>");
    assert_has(svg, "<rect x=\"1\" y=\"2\" width=\"3.3\" height=\"4\"");
    assert_has(svg, "role=\"img\"");
    assert_has(svg, "prefers-color-scheme:dark");
    free(svg);
    svg = svg_of(&drawing, MT_THEME_LIGHT);
    assert_null(strstr(svg, "prefers-color-scheme"));
    free(svg);
    mt_drawing_release(&drawing);
}

TEST(svg_merges_runs_of_stepped_paths)
{
    static const struct mt_point points[] = {{0, 10}, {1, 10}, {2, 10},  {2, 5},
                                             {2, 3},  {7, 3},  {7, 3.02}};
    struct mt_paint paint = {.stroke = MT_COLOR_CURVE};
    struct mt_drawing drawing;

    mt_drawing_init(&drawing, 100, 50, "chart");
    mt_draw_path(&drawing, points, MT_ARRAY_LEN(points), false, true, &paint, NULL, "curve");
    char *svg = svg_of(&drawing, MT_THEME_LIGHT);
    assert_has(svg, "d=\"M0 10h2v-7h5\"");
    free(svg);
    mt_drawing_release(&drawing);
}

TEST(svg_ignores_the_locale)
{
    struct mt_paint paint = {.fill = MT_COLOR_ROLE_0, .opacity = 0.25};
    struct mt_drawing drawing;

    if (!set_german())
        skip();
    setlocale(LC_ALL, "C");
    mt_drawing_init(&drawing, 100.5, 2e4, "chart");
    mt_draw_rect(&drawing, 1.5, 2.5, 3.3, 1e4, &paint, NULL, NULL);
    char *here = svg_of(&drawing, MT_THEME_AUTO);
    assert_true(set_german());
    char *there = svg_of(&drawing, MT_THEME_AUTO);
    setlocale(LC_ALL, "C");
    assert_string_equal(here, there);
    assert_has(here, "x=\"1.5\" y=\"2.5\"");
    assert_has(here, "opacity=\"0.25\"");
    free(here);
    free(there);
    mt_drawing_release(&drawing);
}

static const struct mt_op *next_of_role(const struct mt_drawing *drawing, size_t *at,
                                        const char *role)
{
    while (*at < drawing->op_count) {
        const struct mt_op *op = &drawing->ops[(*at)++];

        if (op->role && !strcmp(op->role, role))
            return op;
    }
    return NULL;
}

/* Bold digits of DejaVu Sans are up to 1.22 times as wide as the built-in ones. */
TEST(a_wider_font_does_not_touch_the_note_of_a_tile)
{
    const struct mt_tile tiles[] = {{"Trend", "+7.98 MiB", "per step", MT_COLOR_BAD, NULL},
                                    {"Peak", "growth", "step 9", MT_COLOR_BAD, NULL}};
    struct mt_drawing drawing;
    const struct mt_op *value, *note;
    size_t at = 0;

    mt_drawing_init(&drawing, 600, 100, "t");
    mt_chart_frame_tiles(&drawing, 10, tiles, 2);
    for (int i = 0; i < 2; i++) {
        value = next_of_role(&drawing, &at, "tile-value");
        note = next_of_role(&drawing, &at, "tile-note");
        assert_true(value && note && value->y == note->y);
        assert_true(value->x + 1.22 * value->text_width + 4 <= note->x);
    }
    mt_drawing_release(&drawing);
}

TEST(a_wider_font_keeps_a_heading_in_its_column)
{
    const struct mt_paragraph heading = {.width = 352,
                                         .size = 14,
                                         .pitch = 19,
                                         .weight = MT_SEMIBOLD,
                                         .color = MT_COLOR_TEXT,
                                         .role = "heading"};
    struct mt_drawing drawing;
    const struct mt_op *line;
    size_t at = 0, lines = 0;

    mt_drawing_init(&drawing, 400, 100, "t");
    mt_paragraph_draw(
        &drawing, &heading, 20,
        "7.98 MiB more after each step since step 0, 6.98 MiB of it from w_leakval train.py:128");
    for (; (line = next_of_role(&drawing, &at, "heading")); lines++)
        assert_true(1.22 * line->text_width <= heading.width);
    assert_int_equal(lines, 3);
    mt_drawing_release(&drawing);
}

TEST(byte_ticks_are_round_in_their_unit)
{
    struct mt_ticks ticks;

    mt_byte_ticks(&ticks, 20 * MT_GIB, 21 * MT_GIB, 7);
    assert_int_equal(ticks.count, 5);
    assert_string_equal(ticks.ticks[4].label, "20 GiB");
    assert_true(ticks.ticks[4].value == 20 * MT_GIB);
    mt_byte_ticks(&ticks, 1000 * MT_MIB, 1000 * MT_MIB, 7);
    assert_string_equal(ticks.ticks[1].label, "200 MiB");
    mt_byte_ticks(&ticks, 1700 * MT_MIB, 1800 * MT_MIB, 7);
    assert_string_equal(ticks.ticks[2].label, "1,000 MiB");
    mt_byte_ticks(&ticks, 2 * MT_GIB, 2 * MT_GIB, 7);
    assert_string_equal(ticks.ticks[1].label, "0.5 GiB");
    mt_byte_ticks(&ticks, 0, 0, 7);
    assert_int_equal(ticks.count, 1);
    assert_string_equal(ticks.ticks[0].label, "0");
    mt_byte_ticks(&ticks, 3, 3, 7);
    assert_string_equal(ticks.ticks[1].label, "1 B");
    mt_byte_ticks(&ticks, UINT64_MAX, UINT64_MAX, 7);
    assert_true(ticks.count >= 3 && ticks.count <= 7);
}

TEST(byte_ticks_are_few_and_ascend)
{
    struct mt_ticks ticks;

    for (uint64_t top = 1; top < UINT64_MAX / 3; top += top / 7 + 1) {
        for (size_t most = 2; most <= 8; most++) {
            mt_byte_ticks(&ticks, top, top, most);
            assert_true(ticks.count >= 2 && ticks.count <= most);
            if (most >= 5 && top > 4)
                assert_true(ticks.count >= 3);
            for (size_t i = 1; i < ticks.count; i++) {
                assert_true(ticks.ticks[i].value > ticks.ticks[i - 1].value);
                assert_string_not_equal(ticks.ticks[i].label, ticks.ticks[i - 1].label);
            }
            assert_true((double)ticks.ticks[ticks.count - 1].value <= (double)top * 1.0001 + 1);
        }
    }
}

TEST(time_labels_of_ticks_differ)
{
    char text[MT_TICK_TEXT];

    assert_true(mt_scale_time_step(0.15e9) == 200000000);
    assert_true(mt_scale_time_step(200) == 200);
    assert_true(mt_scale_time_step(70e9) == 120000000000ull);
    assert_true(mt_scale_count_step(0) == 1);
    assert_true(mt_scale_count_step(130) == 200);
    mt_scale_time_label(text, 3400000000u, 200000000u, 4600000000u);
    assert_string_equal(text, "3.4 s");
    mt_scale_time_label(text, 0, 200000000u, 4600000000u);
    assert_string_equal(text, "0.0 s");
    mt_scale_time_label(text, 20000000u, 10000000u, 70000000u);
    assert_string_equal(text, "20 ms");
    mt_scale_time_label(text, 4050000000u, 50000000u, 4600000000u);
    assert_string_equal(text, "4.05 s");
    mt_scale_time_label(text, 120000000000ull, 60000000000ull, 4600000000000u);
    assert_string_equal(text, "2 min");
    mt_scale_time_label(text, 7, 1, 12);
    assert_string_equal(text, "7 ns");
}

TEST(labels_avoid_text_and_the_edge)
{
    struct mt_box frame = {0, 0, 400, 300}, box, first;
    struct mt_arena arena = {0};
    struct mt_placer placer;

    mt_placer_init(&placer, &arena, frame);
    mt_placer_avoid(&placer, (struct mt_box){150, 0, 100, 145}, MT_PLACE_TEXT);
    assert_true(mt_placer_label(&placer, 200, 150, 80, 20, &first) < MT_PLACE_LIMIT);
    assert_true(mt_box_overlap(&first, &placer.obstacles[0].box) == 0);
    assert_true(mt_placer_label(&placer, 200, 150, 80, 20, &box) < MT_PLACE_LIMIT);
    assert_true(mt_box_overlap(&first, &box) == 0);
    assert_true(mt_placer_label(&placer, 399, 299, 120, 30, &box) < MT_PLACE_LIMIT);
    assert_true(box.x >= 0 && box.x + box.width <= 400 && box.y + box.height <= 300);
    assert_true(mt_placer_label(&placer, 200, 150, 900, 20, &box) >= MT_PLACE_LIMIT);
    mt_arena_release(&arena);
}

/* Other text lies between the label and its point, so the leader would cross it. */
TEST(leaders_go_around_text)
{
    const struct mt_box frame = {0, 0, 400, 300}, text = {140, 70, 120, 40};
    struct mt_arena arena = {0};
    struct mt_placer placer;
    struct mt_box box;

    mt_placer_init(&placer, &arena, frame);
    mt_placer_avoid(&placer, text, MT_PLACE_TEXT);
    mt_placer_avoid(&placer, (struct mt_box){0, 112, 400, 188}, 0.5); /* a filled area */
    mt_placer_avoid(&placer, (struct mt_box){0, 70, 130, 50}, MT_PLACE_LINE);
    mt_placer_avoid(&placer, (struct mt_box){270, 70, 130, 50}, MT_PLACE_LINE);
    assert_true(mt_placer_label(&placer, 200, 120, 80, 20, &box) < MT_PLACE_LIMIT);
    assert_false(box.y + box.height <= text.y && box.x < 260 && box.x + box.width > 140);
    mt_arena_release(&arena);
}

/* If every leader would cross text, the label is omitted. */
TEST(no_leader_crosses_text)
{
    const struct mt_box frame = {0, 0, 400, 100};
    struct mt_arena arena = {0};
    struct mt_placer placer;
    struct mt_box box;

    mt_placer_init(&placer, &arena, frame);
    mt_placer_avoid(&placer, (struct mt_box){0, 0, 400, 39}, MT_PLACE_MARK);
    assert_true(mt_placer_label(&placer, 200, 20, 80, 20, &box) < MT_PLACE_LIMIT);
    mt_placer_init(&placer, &arena, frame);
    mt_placer_avoid(&placer, (struct mt_box){0, 0, 400, 39}, MT_PLACE_MARK);
    mt_placer_avoid(&placer, (struct mt_box){0, 40, 400, 12}, MT_PLACE_TEXT);
    assert_true(mt_placer_label(&placer, 200, 20, 80, 20, &box) >= MT_PLACE_LIMIT);
    mt_arena_release(&arena);
}

/* Where names do not fit, only colors distinguish the rows of phases. */
TEST(names_of_phases_have_different_colors)
{
    static const char *const names[] = {"forward",   "backward", "optimizer", "loss",
                                        "zero_grad", "grow",     "shrink",    "drop",
                                        "plain",     "capture",  "replay"};
    enum mt_color seen[MT_ARRAY_LEN(names)];

    for (size_t i = 0; i < MT_ARRAY_LEN(names); i++) {
        seen[i] = mt_phase_color(names[i], i < 5 ? 0 : (unsigned)(i - 5));
        assert_in_range(seen[i], MT_COLOR_PHASE_0, MT_COLOR_PHASE_LAST);
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(seen[i], seen[j]);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
