/* Reads the scale of a picture from the labels of its own axis. */
#ifndef TESTS_CHART_SCALE_H
#define TESTS_CHART_SCALE_H

#include "drawing_checks.h"
#include "units.h"

struct chart_scale {
    double base_y, bytes_per_pixel;
};

/* "+1,000 MiB", "2 PiB". mt_parse_bytes has no unit above TiB. */
static inline uint64_t chart_bytes_of_label(const char *label)
{
    char plain[64];
    size_t n = 0;
    uint64_t bytes = 0, factor = 1;

    for (; *label; label++) {
        assert_true(n + 1 < sizeof plain);
        if (*label == 'P' || *label == 'E') {
            factor = *label == 'P' ? 1024 : 1024 * 1024;
            plain[n++] = 'T';
        } else if (*label != ',' && *label != '+') {
            plain[n++] = *label;
        }
    }
    plain[n] = '\0';
    assert_int_equal(mt_parse_bytes(plain, &bytes), MT_OK);
    return bytes * factor;
}

/* The scale of a vertical axis whose labels have that role. Its lowest value is 0. */
static inline struct chart_scale chart_scale_of(const struct mt_drawing *drawing, const char *role)
{
    struct chart_scale scale = {0, 0};

    for (size_t i = 0; i < drawing->op_count; i++) {
        const struct mt_op *op = &drawing->ops[i];

        if (!drawing_is(op, role))
            continue;
        if (!strcmp(op->text, "0") || !strcmp(op->text, "+0"))
            scale.base_y = op->y;
        else
            scale.bytes_per_pixel = (double)chart_bytes_of_label(op->text) / (scale.base_y - op->y);
    }
    scale.base_y -= 4.5; /* labels are centered on their line */
    return scale;
}

static inline double chart_bytes_at(const struct chart_scale *scale, double y)
{
    return (scale->base_y - y) * scale->bytes_per_pixel;
}

#endif
