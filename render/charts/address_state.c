/* The state of an allocator at one instant, for a file without a history: its segments, largest
 * first, in rows of equal length. All rows have the same scale, so equal areas are equal bytes. A
 * segment that is longer than a row continues in the next one. */
#include "address.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "block_key.h"
#include "cell_label.h"
#include "sorted.h"
#include "timeline_layout.h"
#include "units.h"
#include "util.h"

#define MIN_PITCH  22.0 /* pixels; from row to row */
#define MAX_PITCH  64.0
#define ROW_GAP    4.0
#define TAIL       34.0 /* pixels below the rows */
#define LEAST_SHOW 0.75 /* pixels; narrower blocks are drawn with this width */

/* A segment, or the part of the rows that it takes. */
struct segment {
    const struct mt_address_range *place;
    uint32_t index;
    double begin; /* bytes from the start of the first row */
};

struct state {
    struct mt_address_layout *layout;
    struct segment *segments;  /* largest first */
    const struct segment **of; /* by place; NULL: not reserved */
    uint32_t count;
    double row_bytes, pitch;
    uint32_t rows;
    uint64_t small_blocks; /* drawn with blocks beside them */
};

MT_DEFINE_ORDER(by_size, struct segment, MT_DESCENDING(place->bytes) || MT_ASCENDING(place->base))

static double list_segments(struct state *state)
{
    const struct mt_address *address = state->layout->address;
    struct mt_arena *arena = &state->layout->drawing->arena;
    double total = 0;

    state->segments =
        mt_arena_array(arena, address->place_count + (size_t)1, sizeof(struct segment));
    state->of = mt_arena_array(arena, address->place_count + (size_t)1, sizeof *state->of);
    memset(state->of, 0, (address->place_count + (size_t)1) * sizeof *state->of);
    for (uint32_t i = 0; i < address->place_count; i++) {
        if (!address->places[i].reserved_end)
            continue;
        state->segments[state->count++] = (struct segment){&address->places[i], i, 0};
        total += (double)address->places[i].bytes;
    }
    qsort(state->segments, state->count, sizeof *state->segments, by_size);
    for (uint32_t i = 0; i < state->count; i++)
        state->of[state->segments[i].index] = &state->segments[i];
    return total;
}

/* Puts each segment into the first row with room for it. Returns the number of rows. */
static uint32_t pack(struct state *state, double *used)
{
    uint32_t rows = 0;

    for (uint32_t i = 0; i < state->count; i++) {
        double bytes = (double)state->segments[i].place->bytes, length = state->row_bytes;
        uint32_t row = 0, more;

        while (row < rows && used[row] + bytes > length)
            row++;
        state->segments[i].begin = row * length + (row < rows ? used[row] : 0);
        if (row < rows) {
            used[row] += bytes;
            continue;
        }
        more = (uint32_t)fmax(ceil(bytes / length), 1);
        while (rows < row + more)
            used[rows++] = length;
        used[rows - 1] = bytes - (more - 1) * length;
    }
    return rows;
}

/* Chooses the length of rows: about as many rows as a square of blocks would have, and room for the
 * largest segment in one row if that does not make the rows much longer. */
static void place_rows(struct state *state, double total, double room)
{
    double most = fmax(floor(room / MIN_PITCH), 1),
           largest = (double)state->segments[0].place->bytes;
    double rows = fmin(ceil(sqrt((double)state->layout->address->block_count)), most);
    /* each segment adds at most one row to those that its bytes fill */
    double *used = mt_arena_array(&state->layout->drawing->arena,
                                  (size_t)state->count + (size_t)(2 * most) + 2, sizeof *used);

    state->row_bytes = fmax(total / fmax(rows, 1), 1);
    if (largest > state->row_bytes && largest < 1.5 * state->row_bytes)
        state->row_bytes = largest;
    while ((state->rows = pack(state, used)) > most)
        state->row_bytes *= 1.05;
    state->pitch = fmin(room / state->rows, MAX_PITCH);
}

static double x_of(const struct state *state, double bytes)
{
    return state->layout->plot.x + bytes / state->row_bytes * state->layout->plot.width;
}

/* Draws bytes [begin, end) of the rows, and returns the widest of the rectangles. */
static struct mt_box draw_range(const struct state *state, double begin, double end,
                                const struct mt_paint *paint, const char *title, const char *role)
{
    struct mt_box widest = {0};

    for (uint32_t row = (uint32_t)(begin / state->row_bytes); row < state->rows; row++) {
        double from = fmax(begin - row * state->row_bytes, 0);
        double to = fmin(end - row * state->row_bytes, state->row_bytes);
        struct mt_box box = {x_of(state, from), state->layout->plot.y + row * state->pitch,
                             x_of(state, to) - x_of(state, from), state->pitch - ROW_GAP};

        if (to <= from)
            break;
        box.width = fmax(box.width, LEAST_SHOW);
        mt_draw_rect(state->layout->drawing, box.x, box.y, box.width, box.height, paint, title,
                     role);
        if (box.width > widest.width)
            widest = box;
    }
    return widest;
}

static void draw_segment(const struct state *state, const struct segment *segment)
{
    const struct mt_paint paint = {
        .fill = MT_COLOR_UNUSED, .tint = 1, .stroke = MT_COLOR_AXIS, .stroke_width = 0.75};
    const struct mt_address_range *place = segment->place;
    char size[MT_UNITS_TEXT], exact[MT_UNITS_TEXT], blocks[MT_UNITS_TEXT], used[MT_UNITS_TEXT];
    const char *title = mt_arena_printf(
        &state->layout->drawing->arena, "%s %s (%s B) at 0x%llx\n%s allocated in %s",
        place->is_expandable ? "expandable segment," : "segment of",
        mt_format_bytes(size, place->bytes), mt_format_count(exact, place->bytes),
        (unsigned long long)place->base, mt_format_bytes(used, place->allocated_end),
        mt_format_counted(blocks, place->blocks, "block"));

    draw_range(state, segment->begin, segment->begin + (double)place->bytes, &paint, title,
               "segment");
}

static const char *block_title(const struct state *state, const struct mt_block_shape *block)
{
    char size[MT_UNITS_TEXT], exact[MT_UNITS_TEXT];

    return mt_arena_printf(&state->layout->drawing->arena, "%s (%s B) at 0x%llx\n%s%s%s",
                           mt_format_bytes(size, block->life.block_bytes),
                           mt_format_count(exact, block->life.block_bytes),
                           (unsigned long long)block->life.addr,
                           mt_role_title((enum mt_role)block->life.role), block->site ? "\n" : "",
                           block->site ? block->site : "");
}

static void name_block(const struct state *state, const struct mt_block_shape *block,
                       const struct mt_box *box)
{
    const struct mt_cell_box cell = {
        box->x, box->y, box->width, box->height, mt_role_color((enum mt_role)block->life.role),
        false};
    bool has_site = block->head && block->life.stack != MT_NO_ID;
    char size[MT_UNITS_TEXT];

    mt_format_bytes(size, block->life.block_bytes);
    if (has_site && mt_text_room(block->head, MT_SIZE_CELL, MT_REGULAR) <= mt_cell_room(&cell))
        mt_cell_write(state->layout->drawing, &cell, block->head, size);
    else if (mt_text_room(size, MT_SIZE_CELL, MT_REGULAR) <= mt_cell_room(&cell))
        mt_cell_write(state->layout->drawing, &cell, size, NULL);
}

static void draw_block(struct state *state, const struct mt_block_shape *block)
{
    const struct segment *segment = state->of[block->place];
    const struct mt_paint paint = {.fill = mt_role_color((enum mt_role)block->life.role),
                                   .stroke = MT_COLOR_BACKGROUND,
                                   .stroke_width = 0.5};

    if (!segment || block->end.event != UINT64_MAX || block->offset >= segment->place->bytes)
        return;
    double begin = segment->begin + (double)block->offset;
    double end = segment->begin +
                 (double)mt_min_u64(block->offset + block->life.block_bytes, segment->place->bytes);
    struct mt_box box = draw_range(state, begin, end, &paint, block_title(state, block), "block");
    state->layout->roles[block->life.role] = true;
    state->small_blocks += box.width <= LEAST_SHOW;
    if (state->layout->keyed)
        mt_draw_key(state->layout->drawing, mt_block_key(&state->layout->drawing->arena, block));
    name_block(state, block, &box);
}

static void draw_rows(struct state *state)
{
    const struct mt_address *address = state->layout->address;

    for (uint32_t i = 0; i < state->count; i++)
        draw_segment(state, &state->segments[i]);
    for (uint32_t i = 0; i < address->block_count; i++)
        draw_block(state, &address->blocks[i]);
}

/* "259 segments" */
static const char *counted(const struct mt_address_layout *layout, uint64_t count, const char *noun)
{
    char number[MT_UNITS_TEXT];

    return mt_arena_printf(&layout->drawing->arena, "%s %s%s", mt_format_count(number, count), noun,
                           count == 1 ? "" : "s");
}

/* The history may have one entry, which frees a block. */
static uint64_t live_blocks(const struct mt_address *address)
{
    uint64_t blocks = 0;

    for (uint32_t i = 0; i < address->place_count; i++)
        blocks += address->places[i].blocks;
    for (uint32_t i = 0; i < address->block_count; i++)
        blocks -= address->blocks[i].end.event != UINT64_MAX;
    return blocks;
}

static void draw_tiles(const struct mt_address_layout *layout, double y)
{
    const struct mt_address *address = layout->address;
    char bytes[4][MT_UNITS_TEXT], number[MT_UNITS_TEXT];
    uint64_t unused = mt_sub_or_0_u64(address->reserved_end, address->allocated_end);
    double share = address->reserved_end ? (double)unused / (double)address->reserved_end : 0;
    const struct mt_tile tiles[4] = {
        {"Reserved", mt_format_bytes(bytes[0], address->reserved_end),
         counted(layout, address->segments_end, "segment"), MT_COLOR_RESERVED, NULL},
        {"Allocated", mt_format_bytes(bytes[1], address->allocated_end),
         counted(layout, live_blocks(address), "block"), MT_COLOR_CURVE, NULL},
        {"Reserved, free", mt_format_bytes(bytes[2], unused), mt_format_percent(number, share),
         share <= 0.05   ? MT_COLOR_GOOD
         : share <= 0.25 ? MT_COLOR_WARN
                         : MT_COLOR_BAD,
         "Free"},
        {"In empty segments", mt_format_bytes(bytes[3], address->idle_bytes),
         counted(layout, address->idle_segments, "segment"), MT_COLOR_UNUSED, "Empty segments"}};

    mt_chart_frame_tiles(layout->drawing, y, tiles, 4);
}

static void draw_legend(const struct mt_address_layout *layout, double y)
{
    const struct mt_paint free_paint = {
        .fill = MT_COLOR_UNUSED, .tint = 1, .stroke = MT_COLOR_AXIS, .radius = 2};
    struct mt_swatch swatches[MT_ROLE_COUNT];
    size_t count = 0;
    double x = MT_MARGIN;

    mt_draw_rect(layout->drawing, x, y - 10, 12, 12, &free_paint, NULL, "swatch");
    x += 37 + 1.05 * mt_chart_frame_text(layout->drawing, x + 17, y, "reserved, free", 12.5,
                                         MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_START, "legend");
    for (int i = 0; i < MT_ROLE_COUNT; i++) {
        enum mt_role role = mt_timeline_stack[i];

        if (layout->roles[role])
            swatches[count++] = (struct mt_swatch){mt_role_title(role), mt_role_color(role)};
    }
    mt_chart_frame_swatches(layout->drawing, x, y, layout->drawing->width - MT_MARGIN, swatches,
                            count);
}

static const char *facts_of(const struct state *state)
{
    const struct mt_report *report = state->layout->report;
    const struct mt_device_report *device = state->layout->device;
    char row[MT_UNITS_TEXT], wanted[MT_UNITS_TEXT];
    struct mt_arena *arena = &state->layout->drawing->arena;
    const char *refused = "";

    if (device->oom_count)
        refused = mt_arena_printf(arena, " · a request for %s then failed",
                                  mt_format_bytes(wanted, device->oom_list[0].request_bytes));
    return mt_arena_printf(arena,
                           "one instant, no history · a row is %s · largest segment first%s%s",
                           mt_format_bytes(row, (uint64_t)state->row_bytes), refused,
                           report->roles_inferred ? " · roles are inferred" : "");
}

static const char *small_print(const struct state *state)
{
    const struct mt_address *address = state->layout->address;
    char count[MT_UNITS_TEXT], bytes[MT_UNITS_TEXT];
    struct mt_arena *arena = &state->layout->drawing->arena;
    const char *text = "equal areas are equal bytes";
    uint64_t blocks = live_blocks(address), left = address->allocated_end;

    for (uint32_t i = 0; i < address->block_count; i++) {
        if (address->blocks[i].end.event != UINT64_MAX)
            continue;
        left = mt_sub_or_0_u64(left, address->blocks[i].life.block_bytes);
        blocks--;
    }
    if (state->small_blocks)
        text = mt_arena_printf(arena, "%s · %s narrower than a pixel", text,
                               counted(state->layout, state->small_blocks, "block"));
    if (blocks)
        text = mt_arena_printf(arena, "%s · the %s smallest blocks (%s) are drawn as free", text,
                               mt_format_count(count, blocks), mt_format_bytes(bytes, left));
    return text;
}

void mt_address_state_draw(struct mt_address_layout *layout, const char *title)
{
    struct mt_drawing *drawing = layout->drawing;
    struct state state = {.layout = layout};
    double y = 78, total = list_segments(&state), legend;
    bool has_tiles = drawing->height >= 360;

    layout->plot.x = MT_MARGIN;
    layout->plot.width = drawing->width - 2 * MT_MARGIN;
    if (drawing->width < MT_NARROW_WIDTH)
        y += 19;
    /* tiles take 68 pixels if their notes do not fit beside their values */
    legend = y + (has_tiles ? 78 : 0) + 18;
    layout->plot.y = legend + 14;
    place_rows(&state, total, drawing->height - TAIL - layout->plot.y);
    drawing->height = fmin(drawing->height, layout->plot.y + state.rows * state.pitch + TAIL);
    mt_chart_frame_header(drawing, title, facts_of(&state));
    if (has_tiles)
        draw_tiles(layout, y);
    mt_zoom_begin(drawing, "xy",
                  &(struct mt_box){layout->plot.x, layout->plot.y, layout->plot.width,
                                   state.rows * state.pitch});
    draw_rows(&state);
    mt_draw_group_end(drawing);
    draw_legend(layout, legend);
    mt_chart_frame_footnote(drawing, small_print(&state));
}
