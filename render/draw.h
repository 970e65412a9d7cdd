/* The display list: the operations that draw a chart. Charts add operations, and back ends
 * (backends.h) write the finished list as a file. Coordinates are logical pixels from the top left
 * corner, with y down. The same list gives the same bytes, because nothing depends on the clock,
 * the locale, the order of a hash table, or the fonts of the machine.
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

/* AUTO: an SVG has both themes and follows prefers-color-scheme; a PNG is light. */
enum mt_theme { MT_THEME_AUTO, MT_THEME_LIGHT, MT_THEME_DARK };

/* Theme colors. theme.c maps each to a light and a dark RGB value. */
enum mt_color {
    MT_COLOR_NONE,
    MT_COLOR_BACKGROUND,
    MT_COLOR_PANEL,
    MT_COLOR_GRID,
    MT_COLOR_AXIS,
    MT_COLOR_TEXT,
    MT_COLOR_MUTED,
    MT_COLOR_FAINT,
    MT_COLOR_RESERVED, /* the line of reserved memory */
    MT_COLOR_UNUSED,   /* hatched: reserved but unused */
    MT_COLOR_GOOD,
    MT_COLOR_WARN,
    MT_COLOR_BAD,
    MT_COLOR_LIMIT,
    MT_COLOR_ON_DARK, /* text on filled cells, in both themes */
    MT_COLOR_ON_LIGHT,
    MT_COLOR_CURVE,
    MT_COLOR_CURVE_FILL,
    MT_COLOR_ROOT,
    MT_COLOR_STEP_TINT,
    MT_COLOR_ROLE_0, /* plus enum mt_role: 10 colors */
    MT_COLOR_ROLE_LAST = MT_COLOR_ROLE_0 + 9,
    MT_COLOR_ORIGIN_0, /* plus enum mt_origin: 6 colors */
    MT_COLOR_ORIGIN_LAST = MT_COLOR_ORIGIN_0 + 5,
    MT_COLOR_PHASE_0, /* 11 colors for phases */
    MT_COLOR_PHASE_LAST = MT_COLOR_PHASE_0 + 10,
    MT_COLOR_CHANGE_0, /* diverging: 0 = largest decrease (blue), 8 = no change, 16 = largest
                          increase (orange) */
    MT_COLOR_CHANGE_LAST = MT_COLOR_CHANGE_0 + 16,
    MT_COLOR_LEVEL, /* bytes that are still allocated when a step ends */
    MT_COLOR_LEVEL_RANGE,
    MT_COLOR_LEVEL_PEAK, /* the peak within a step */
    MT_COLOR_STREAM_0,   /* 7 colors */
    MT_COLOR_STREAM_LAST = MT_COLOR_STREAM_0 + 6,
    MT_COLOR_HEAT, /* the largest value of a heat map; smaller values are tints */
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
    double opacity; /* 0 means 1 */
    bool dashed, dotted;
    bool hatched;  /* hatches the background in the color `fill` */
    uint8_t shade; /* 0..3: slight variation of the color, so that neighbors differ */
    uint8_t tint;  /* 1..16: mixes (tint - 1) / 15 of `fill` with the color of free memory; 0 = no
                      tint */
    bool unseen;   /* invisible, but has hover text */
    double radius; /* radius of the corners of a RECT */
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
    double x, y, width, height; /* RECT; CELLS: the whole grid; CIRCLE: x, y = center, width =
                                   radius; TEXT: y = baseline */
    struct mt_point *points;    /* PATH, LINE: polyline */
    uint32_t point_count;
    bool closed, stepped; /* PATH; stepped: only horizontal and vertical lines, which SVG writes as
                             h and v */
    const struct mt_grid_cell *cells; /* CELLS */
    uint32_t cell_count;
    double unit;      /* CELLS: pixels per unit of the grid */
    const char *text; /* TEXT */
    struct mt_text_style style;
    double text_width; /* TEXT: advance width */
    const char *title; /* hover text (SVG <title>), NULL = none */
    const char *key;   /* key of a block for the script of a page (block_key.h): a-z, 0-9 and ".";
                          NULL = none */
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
    bool huge; /* allows a PNG with more pixels than most viewers can show */
};

/* Zeroes *drawing and sets its size. The functions below copy their arguments, except the cells of
 * mt_draw_cells. */
void mt_drawing_init(struct mt_drawing *drawing, double width, double height, const char *id);
void mt_drawing_release(struct mt_drawing *drawing);

/* Sets the accessible text: the name of the picture and a description of what it shows. */
void mt_drawing_describe(struct mt_drawing *drawing, const char *title, const char *description);

/* Adds a PNG tEXt entry. Ignores the entry if there are already 8. */
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

/* Returns the advance width of the text. */
double mt_draw_text(struct mt_drawing *drawing, double x, double y, const char *text,
                    const struct mt_text_style *style, const char *role);

/* Draws rectangles that have the same paint and have their edges on a grid. x, y, width and height
 * are the area of the grid, and `unit` is the distance of its lines, in pixels. `cells` must be
 * sorted by y, then x. The array is borrowed and must live as long as the drawing. */
struct mt_grid {
    double x, y, width, height, unit;
};
void mt_draw_cells(struct mt_drawing *drawing, const struct mt_grid *grid,
                   const struct mt_grid_cell *cells, size_t count, const struct mt_paint *paint,
                   const char *role);

/* Sets the key of the operation that was added last (mt_block_key). */
void mt_draw_key(struct mt_drawing *drawing, const char *key);

/* Begin and end a group of operations with one hover text. What follows MT_ZOOM in the role of a
 * group is the attribute data-zoom of an SVG: what the script of a page does with the group when it
 * enlarges the chart (picture.js). */
#define MT_ZOOM "zoom:"
void mt_draw_group_begin(struct mt_drawing *drawing, const char *title, const char *role);
void mt_draw_group_end(struct mt_drawing *drawing);

/* Returns the width of text in the widest font with which a viewer may replace the built-in
 * outlines. */
double mt_text_room(const char *text, double size, enum mt_weight weight);

/* Shortens text to fit `width` and inserts an ellipsis, either at the end, or in the middle if
 * `middle` is set (for paths). Returns "" if fewer than three characters fit. The result is in the
 * drawing's arena. */
const char *mt_text_fit(struct mt_drawing *drawing, const char *text, double size,
                        enum mt_weight weight, double width, bool middle);

/* Cuts UTF-8 text between words. Words end at spaces and at the separators of names and paths;
 * "getItem" is two words. The functions allocate nothing. */

/* Returns the length of a prefix of `text` with at most `head` bytes. The prefix ends after a whole
 * word if that loses little: "LlamaDecoder" instead of "LlamaDecoderLay". It never ends within a
 * number or between a number and its unit, because a truncated number is a different number.
 * Returns 0 if only a part of a number would remain. `head` must be at most the length of `text`
 * and at a boundary of characters. */
size_t mt_cut_head(const char *text, size_t head);

/* Returns a suffix of `text` that is at most as long as the suffix `tail`. The result starts with a
 * whole word if that loses little: "llama.py:175" instead of "g_llama.py:175". */
const char *mt_cut_tail(const char *text, const char *tail);

#endif
