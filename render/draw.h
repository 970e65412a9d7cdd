/* Display list: the operations of a chart before any pixel. Charts add operations; back ends
 * (backends.h) write the finished list as a file. Coordinates are logical pixels, origin top
 * left, y down. The same list gives the same bytes: no clock, no locale, no hash order, no fonts
 * of the machine.
 *
 * Colors are names of theme colors, so one list serves light and dark themes. Charts never write
 * a literal RGB value. */
#ifndef MT_RENDER_DRAW_H
#define MT_RENDER_DRAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "glyphs.h"
#include "status.h"

/* AUTO: SVG carries both and follows prefers-color-scheme; PNG is light. */
enum mt_theme { MT_THEME_AUTO, MT_THEME_LIGHT, MT_THEME_DARK };

/* Theme colors: theme.c maps each to a light and a dark RGB. */
enum mt_color {
    MT_COLOR_NONE,
    MT_COLOR_BACKGROUND,
    MT_COLOR_PANEL,
    MT_COLOR_GRID,
    MT_COLOR_AXIS,
    MT_COLOR_TEXT,
    MT_COLOR_MUTED,
    MT_COLOR_FAINT,
    MT_COLOR_RESERVED, /* the line */
    MT_COLOR_UNUSED,   /* the hatch */
    MT_COLOR_GOOD,
    MT_COLOR_WARN,
    MT_COLOR_BAD,
    MT_COLOR_LIMIT,
    MT_COLOR_ON_DARK, /* text on filled cells, both themes */
    MT_COLOR_ON_LIGHT,
    MT_COLOR_CURVE,
    MT_COLOR_CURVE_FILL,
    MT_COLOR_ROOT,
    MT_COLOR_STEP_TINT,
    MT_COLOR_ROLE_0, /* + enum mt_role, 9 of them */
    MT_COLOR_ROLE_LAST = MT_COLOR_ROLE_0 + 8,
    MT_COLOR_ORIGIN_0, /* + enum mt_origin, 6 of them */
    MT_COLOR_ORIGIN_LAST = MT_COLOR_ORIGIN_0 + 5,
    MT_COLOR_PHASE_0, /* categorical tints for phases, 11 of them */
    MT_COLOR_PHASE_LAST = MT_COLOR_PHASE_0 + 10,
    MT_COLOR_CHANGE_0, /* diverging: 0 = most shrunk (blue), 8 = none, 16 = most
                          grown (orange) */
    MT_COLOR_CHANGE_LAST = MT_COLOR_CHANGE_0 + 16,
    MT_COLOR_LEVEL, /* bytes that are left when a step ends */
    MT_COLOR_LEVEL_RANGE,
    MT_COLOR_LEVEL_PEAK, /* the peak within a step */
    MT_COLOR_STREAM_0,   /* 7 of them */
    MT_COLOR_STREAM_LAST = MT_COLOR_STREAM_0 + 6,
    MT_COLOR_HEAT, /* the largest value of a heat map; smaller ones are tints */
    MT_COLOR_COUNT
};

enum mt_anchor { MT_ANCHOR_START, MT_ANCHOR_MIDDLE, MT_ANCHOR_END };

struct mt_text_style {
    double size;
    enum mt_weight weight;
    enum mt_anchor anchor;
    enum mt_color color;
    bool halo;     /* outline in the background color */
    bool vertical; /* turned 90 degrees counter-clockwise */
};

struct mt_paint {
    enum mt_color fill; /* MT_COLOR_NONE = not filled */
    enum mt_color stroke;
    double stroke_width;
    double opacity; /* 0 is read as 1 */
    bool dashed, dotted;
    bool hatched;  /* fill is drawn as a hatch on the background */
    uint8_t shade; /* 0..3: slight variation that distinguishes neighbors */
    uint8_t tint;  /* 1..16: (tint - 1) / 15 of the fill over the color of free memory */
    bool unseen;   /* draws nothing, but has hover text */
    double radius; /* of rect corners */
};

struct mt_point {
    double x, y;
};

enum mt_op_kind {
    MT_OP_RECT,
    MT_OP_PATH,
    MT_OP_LINE,
    MT_OP_TEXT,
    MT_OP_CIRCLE,
    MT_OP_CELLS,
    MT_OP_GROUP_BEGIN,
    MT_OP_GROUP_END
};

/* A rectangle on a grid. */
struct mt_grid_cell {
    uint16_t x, y, width, height;
};

struct mt_op {
    enum mt_op_kind kind;
    struct mt_paint paint;
    double x, y, width, height; /* RECT; CIRCLE: center and width = radius; TEXT: x, baseline y;
                                   CELLS: all of the grid */
    struct mt_point *points;    /* PATH, LINE: polyline */
    uint32_t point_count;
    bool closed, stepped;             /* PATH closed; stepped: only horizontal and
                                         vertical moves (written as h/v) */
    const struct mt_grid_cell *cells; /* CELLS */
    uint32_t cell_count;
    double unit;      /* CELLS: pixels of the grid */
    const char *text; /* TEXT */
    struct mt_text_style style;
    double text_width; /* TEXT: advance width, for layout tests */
    const char *title; /* hover text (SVG <title>), NULL = none */
    const char *key;   /* names a block for the script of a page, NULL = none: a-z, 0-9, "." */
    const char *role;  /* identifies the operation for tests: "layer:activations", "curve:reserved",
                          "label:peak", "cell" */
};

struct mt_drawing {
    struct mt_arena arena;
    double width, height;
    struct mt_op *ops;
    size_t op_count, op_capacity;
    const char *title, *description; /* accessible text */
    const char *id;                  /* prefix of SVG ids, e.g. "timeline" */
    struct {
        const char *key, *value;
    } metadata[8]; /* PNG tEXt */
    size_t metadata_count;
    bool failed; /* host memory ran out: do not write it */
    bool huge;   /* a PNG may have more pixels than most viewers can show */
};

/* Zeroes *drawing and sets its size. The functions below copy their arguments, except the cells of
 * mt_draw_cells. */
void mt_drawing_init(struct mt_drawing *drawing, double width, double height, const char *id);
void mt_drawing_release(struct mt_drawing *drawing);

/* Sets the accessible text: the name of the picture and a description of what it shows. */
void mt_drawing_describe(struct mt_drawing *drawing, const char *title, const char *description);
/* One more PNG tEXt entry; more than 8 are ignored. */
void mt_drawing_metadata(struct mt_drawing *drawing, const char *key, const char *value);

void mt_draw_rect(struct mt_drawing *drawing, double x, double y, double width, double height,
                  const struct mt_paint *paint, const char *title, const char *role);
void mt_draw_path(struct mt_drawing *drawing, const struct mt_point *points, size_t count,
                  bool closed, bool stepped, const struct mt_paint *paint, const char *title,
                  const char *role);
void mt_draw_line(struct mt_drawing *drawing, double x0, double y0, double x1, double y1,
                  const struct mt_paint *paint);
void mt_draw_circle(struct mt_drawing *drawing, double x, double y, double radius,
                    const struct mt_paint *paint, const char *title, const char *role);
/* Returns the advance width. */
double mt_draw_text(struct mt_drawing *drawing, double x, double y, const char *text,
                    const struct mt_text_style *style, const char *role);
/* Rectangles of one paint, sorted by y and x, on a grid of `unit` pixels whose corner and size
 * are `grid`. The array is borrowed and must live as long as the drawing. */
struct mt_grid {
    double x, y, width, height, unit;
};
void mt_draw_cells(struct mt_drawing *drawing, const struct mt_grid *grid,
                   const struct mt_grid_cell *cells, size_t count, const struct mt_paint *paint,
                   const char *role);
/* Gives the operation that was added last the key of a block: mt_block_key. */
void mt_draw_key(struct mt_drawing *drawing, const char *key);
/* Operations between begin and end share one hover title. */
void mt_draw_group_begin(struct mt_drawing *drawing, const char *title, const char *role);
void mt_draw_group_end(struct mt_drawing *drawing);

/* Returns the width of text in the widest font that a viewer may use in place of the built-in
 * outlines. */
double mt_text_room(const char *text, double size, enum mt_weight weight);

/* Shortens text to fit `width`: at the end with an ellipsis, or in the middle (for paths). "" if
 * not even three characters fit. The result is in the drawing's arena. */
const char *mt_text_fit(struct mt_drawing *drawing, const char *text, double size,
                        enum mt_weight weight, double width, bool middle);

#endif
