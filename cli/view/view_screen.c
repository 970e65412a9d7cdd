/* Draws the state of a view as cells. Text gets into cells only through put_text, which replaces
 * every character that is not visible or not one column wide. */
#include <string.h>

#include "analyze_output.h"
#include "history.h"
#include "message.h"
#include "report_query.h"
#include "scale.h"
#include "text_width.h"
#include "theme.h"
#include "util.h"
#include "view_parts.h"

enum {
    TICK_COLUMNS = 12, /* least distance of labels on the axis */
    WORDS = 16         /* most columns of a role or a phase in the table */
};

static const char role_letters[MT_ROLE_COUNT + 1] = "POGATWIK?C";

struct canvas {
    const struct mt_view *view;
    unsigned rows, columns;
    struct mt_terminal_cell *cells, outside; /* outside: not shown, takes what does not fit */
    struct mt_arena arena;                   /* scratch */
    struct mt_view_layout layout;
};

static struct mt_terminal_cell *cell_at(struct canvas *canvas, unsigned row, unsigned column)
{
    return row < canvas->rows && column < canvas->columns
               ? &canvas->cells[(size_t)row * canvas->columns + column]
               : &canvas->outside;
}

/* A character of memtrace: the first one if the terminal has Unicode. */
static uint32_t sign(const struct canvas *canvas, uint32_t unicode, char ascii)
{
    return canvas->view->unicode ? unicode : (unsigned char)ascii;
}

static void put(struct canvas *canvas, unsigned row, unsigned column, uint32_t code, uint8_t style)
{
    struct mt_terminal_cell *cell = cell_at(canvas, row, column);

    cell->code = code;
    cell->style = style;
}

/* Returns true for a character that takes one column in every terminal. */
static bool is_one_column(const struct canvas *canvas, const struct mt_foreign_char *character)
{
    return character->is_shown &&
           (character->code < 0x80 ||
            (canvas->view->unicode && mt_text_columns(character->bytes, character->length) == 1));
}

/* Puts text into at most `most` columns, with an ellipsis if it does not fit. Returns the column
 * after it. */
static unsigned put_text(struct canvas *canvas, unsigned row, unsigned column, unsigned most,
                         const char *text, uint8_t style)
{
    struct mt_buf ascii = {0};
    struct mt_foreign_char character;
    unsigned end = (unsigned)mt_min_u64((uint64_t)column + most, canvas->columns);

    if (!canvas->view->unicode)
        mt_message_add_ascii(&ascii, text, strlen(text));
    else
        mt_buf_add_text(&ascii, text);
    struct mt_foreign_text rest = mt_foreign_text(ascii.data ? ascii.data : "", ascii.length);
    while (mt_foreign_next(&rest, &character)) {
        char escape[MT_FOREIGN_ESCAPE] = {(char)character.code};
        size_t length =
            is_one_column(canvas, &character) ? 1 : mt_foreign_escape(&character, escape);

        if (column + length > end) {
            if (end && most)
                put(canvas, row, end - 1, sign(canvas, 0x2026, '~'), style);
            column = end;
            break;
        }
        if (is_one_column(canvas, &character))
            put(canvas, row, column++, character.code, style);
        else
            for (size_t i = 0; i < length; i++)
                put(canvas, row, column++, (unsigned char)escape[i], style);
    }
    mt_buf_release(&ascii);
    return column;
}

static unsigned put_line(struct canvas *canvas, unsigned row, const char *text, uint8_t style)
{
    return put_text(canvas, row, 0, canvas->columns, text, style);
}

static void put_right(struct canvas *canvas, unsigned row, unsigned end, const char *text,
                      uint8_t style)
{
    unsigned length = (unsigned)mt_text_columns(text, strlen(text));

    put_text(canvas, row, end > length ? end - length : 0, end, text, style);
}

static const char *bytes_text(struct canvas *canvas, uint64_t bytes)
{
    char text[MT_UNITS_TEXT];

    return mt_arena_printf(&canvas->arena, "%s", mt_format_bytes(text, bytes));
}

/* The nearest of the 216 colors of the cube. */
static uint8_t color_of(enum mt_role role)
{
    uint32_t rgb = mt_theme_rgb(MT_THEME_LIGHT, (enum mt_color)(MT_COLOR_ROLE_0 + (int)role));
    uint32_t index = 16;

    for (int i = 0, weight = 36; i < 3; i++, weight /= 6) {
        uint32_t part = rgb >> (16 - 8 * i) & 255;

        index += (part < 48 ? 0 : part < 115 ? 1 : (part - 35) / 40) * (uint32_t)weight;
    }
    return (uint8_t)index;
}

/* The role at a height of the stack; MT_ROLE_COUNT above it. */
static unsigned role_at(const struct mt_view *view, uint32_t column, double bytes)
{
    double sum = 0;

    for (unsigned role = 0; role < MT_ROLE_COUNT; role++) {
        sum += (double)view->role_bytes[column][role];
        if (bytes < sum)
            return role;
    }
    return MT_ROLE_COUNT;
}

static uint64_t top_bytes(const struct mt_view *view)
{
    return mt_max_u64(
        1, mt_max_u64(view->device->allocated_peak.bytes, view->device->reserved_peak.bytes));
}

static unsigned row_of_bytes(const struct canvas *canvas, uint64_t bytes)
{
    unsigned rows = canvas->layout.plot_rows;
    double level = (double)bytes * rows / (double)top_bytes(canvas->view);

    return canvas->layout.plot_top + rows - 1 - (unsigned)mt_min_u64((uint64_t)level, rows - 1);
}

/* A cell of two roles, the upper and the lower half, which are equal without colors. */
static void put_roles(struct canvas *canvas, struct mt_terminal_cell *cell, unsigned upper,
                      unsigned lower)
{
    if (lower == MT_ROLE_COUNT)
        return;
    if (!canvas->view->colors) {
        cell->code = (unsigned char)role_letters[lower];
        return;
    }
    cell->ink = color_of((enum mt_role)lower);
    cell->code = sign(canvas, upper == lower ? 0x2588 : 0x2584, '#');
    if (upper != lower && upper != MT_ROLE_COUNT)
        cell->paper = color_of((enum mt_role)upper);
}

static void draw_column(struct canvas *canvas, unsigned at)
{
    const struct mt_view *view = canvas->view;
    const struct mt_view_layout *layout = &canvas->layout;
    uint32_t begin, end;
    double half = (double)top_bytes(view) / layout->plot_rows / 2;

    mt_view_columns_of(view, at, &begin, &end);
    uint32_t column = mt_view_fullest(view, begin, end);
    bool is_selected = view->selected >= begin && view->selected < end;
    if (is_selected)
        column = view->selected;
    unsigned reserved_row =
        row_of_bytes(canvas, view->device->history->columns[column].bytes.reserved);
    for (unsigned i = 0; i < layout->plot_rows; i++) {
        unsigned row = layout->plot_top + layout->plot_rows - 1 - i;
        struct mt_terminal_cell *cell = cell_at(canvas, row, layout->plot_left + at);
        double low = half * (2 * i + 0.5), high = half * (2 * i + 1.5);
        bool halves = view->colors && view->unicode;
        unsigned lower = role_at(view, column, halves ? low : (low + high) / 2);

        if (is_selected)
            cell->style = MT_STYLE_REVERSE;
        put_roles(canvas, cell, halves ? role_at(view, column, high) : lower, lower);
        if (!cell->code)
            cell->code = row == reserved_row ? sign(canvas, 0x2500, '-') : ' ';
        else if (is_selected && view->colors)
            cell->code = sign(canvas, 0x2592, '#');
    }
}

static void draw_byte_axis(struct canvas *canvas)
{
    const struct mt_view_layout *layout = &canvas->layout;
    uint64_t top = top_bytes(canvas->view);
    unsigned last = UINT32_MAX;
    struct mt_ticks ticks;

    mt_byte_ticks(&ticks, top, top, (size_t)mt_max_u64(2, mt_min_u64(layout->plot_rows, 6)));
    for (unsigned i = 0; i < layout->plot_rows; i++)
        put(canvas, layout->plot_top + i, layout->plot_left - 1, sign(canvas, 0x2502, '|'), 0);
    for (size_t i = 1; i < ticks.count; i++) {
        unsigned row = row_of_bytes(canvas, ticks.ticks[i].value);

        if (row == last)
            continue;
        last = row;
        put(canvas, row, layout->plot_left - 1, sign(canvas, 0x2524, '+'), 0);
        put_right(canvas, row, layout->plot_left - 1, ticks.ticks[i].label, 0);
    }
}

/* The value of the axis at the start of a column of the history. */
static uint64_t axis_value(const struct mt_view *view, uint32_t column)
{
    const struct mt_history *history = view->device->history;

    if (column >= history->column_count)
        return history->by_event
                   ? view->device->last_event + 1
                   : mt_sub_or_0_u64(view->device->last_t_ns, view->report->first_t_ns) + 1;
    return history->by_event
               ? history->columns[column].begin_event
               : mt_sub_or_0_u64(history->columns[column].begin_t_ns, view->report->first_t_ns);
}

/* The distance of ticks: round, and so that labels have room. Columns have equal busy time. */
static uint64_t tick_step(const struct canvas *canvas)
{
    const struct mt_view *view = canvas->view;
    const struct mt_history *history = view->device->history;
    double whole = (double)(view->device->last_event - view->device->first_event + 1);
    double shown = (double)view->count / history->column_count / canvas->layout.plot_columns;

    if (history->by_event)
        return mt_scale_count_step(whole * shown * TICK_COLUMNS);
    return mt_scale_time_step((double)history->axis.busy_ns * shown * TICK_COLUMNS);
}

static void tick_label(const struct mt_view *view, uint64_t value, uint64_t step,
                       char text[MT_TICK_TEXT])
{
    if (view->device->history->by_event)
        mt_format_count(text, value);
    else
        mt_scale_time_label(text, value, step, axis_value(view, UINT32_MAX));
}

static bool holds_peak(const struct mt_view *view, uint32_t begin, uint32_t end)
{
    const struct mt_history_column *columns = view->device->history->columns;

    while (begin < end && columns[begin].event != view->device->allocated_peak.event)
        begin++;
    return begin < end;
}

/* Draws the axis with ticks, and the marks of the peak and of the selected instant. */
static void draw_axis(struct canvas *canvas)
{
    const struct mt_view *view = canvas->view;
    const struct mt_view_layout *layout = &canvas->layout;
    unsigned row = layout->plot_top + layout->plot_rows, free_from = 0;
    bool is_marked = false; /* the state of the peak may last for several columns */
    uint64_t step = tick_step(canvas);
    uint32_t begin, end, before = UINT32_MAX;

    put(canvas, row, layout->plot_left - 1, sign(canvas, 0x2514, '+'), 0);
    put_right(canvas, row, layout->plot_left - 1, "0", 0);
    if (view->device->history->by_event)
        put_right(canvas, row + 1, layout->plot_left - 1, "event", 0);
    for (unsigned at = 0; at < layout->plot_columns; at++) {
        unsigned column = layout->plot_left + at;
        char label[MT_TICK_TEXT];

        mt_view_columns_of(view, at, &begin, &end);
        uint64_t low = axis_value(view, begin);
        uint64_t high = axis_value(view, end);
        uint64_t value = high ? (high - 1) / step * step : 0;
        put(canvas, row, column, sign(canvas, 0x2500, '-'), 0);
        if (begin != before && value >= low && column >= free_from) {
            tick_label(view, value, step, label);
            put(canvas, row, column, sign(canvas, 0x252C, '+'), 0);
            if (column + strlen(label) <= canvas->columns)
                free_from = 2 + put_text(canvas, row + 1, column, canvas->columns, label, 0);
        }
        before = begin;
        if (!is_marked && holds_peak(view, begin, end)) {
            put(canvas, row, column, sign(canvas, 0x25B2, '^'), MT_STYLE_BOLD);
            is_marked = true;
        }
        if (view->selected >= begin && view->selected < end)
            cell_at(canvas, row, column)->style = MT_STYLE_REVERSE | MT_STYLE_BOLD;
    }
}

static void draw_legend(struct canvas *canvas)
{
    const struct mt_view *view = canvas->view;
    unsigned column = 0, row = 1;

    for (unsigned role = 0; role <= MT_ROLE_COUNT; role++) {
        const char *name = role < MT_ROLE_COUNT ? mt_role_name((enum mt_role)role) : "reserved";
        bool is_used = role == MT_ROLE_COUNT;

        for (uint32_t i = 0; !is_used && i < view->device->history->column_count; i++)
            is_used = view->role_bytes[i][role] != 0;
        if (!is_used)
            continue;
        if (column + strlen(name) + 2 > canvas->columns) {
            column = 0;
            row++;
        }
        if (row > MT_VIEW_LEGEND_ROWS)
            return;
        if (role < MT_ROLE_COUNT)
            put_roles(canvas, cell_at(canvas, row, column), role, role);
        else
            put(canvas, row, column, sign(canvas, 0x2500, '-'), 0);
        column = 2 + put_text(canvas, row, column + 2, canvas->columns, name, 0);
    }
}

/* "NVIDIA H200, device 0: peak 4.45 GiB allocated, 5.18 GiB reserved" */
static void draw_title(struct canvas *canvas)
{
    const struct mt_view *view = canvas->view;
    const struct mt_device_report *device = view->device;
    struct mt_buf line = {0};

    mt_buf_printf(&line, "%s: peak %s allocated",
                  *view->report->name ? view->report->name : "trace",
                  bytes_text(canvas, device->allocated_peak.bytes));
    if (mt_knows_reserved(view->report))
        mt_buf_printf(&line, ", %s reserved", bytes_text(canvas, device->reserved_peak.bytes));
    mt_buf_printf(&line, ", device %u", device->device);
    if (view->report->device_count > 1)
        mt_buf_printf(&line, ", one of %u", view->report->device_count);
    if (device->name)
        mt_buf_printf(&line, " (%s)", device->name);
    put_line(canvas, 0, line.data, MT_STYLE_BOLD);
    mt_buf_release(&line);
}

/* "1.27 s, event 4,498, in step 2, backward: 4.45 GiB allocated, 5.18 GiB reserved" */
static void draw_instant(struct canvas *canvas)
{
    const struct mt_view *view = canvas->view;
    const struct mt_history_column *column = &view->device->history->columns[view->selected];
    struct mt_reporter reporter = {.report = view->report,
                                   .device = view->device,
                                   .style = mt_plain_style(),
                                   .arena = &canvas->arena};
    int64_t step =
        column->phase == MT_NO_PHASE ? MT_NO_STEP : view->report->phases[column->phase].step;
    const char *in = mt_reporter_in(&reporter, column->phase, step);
    char event[MT_UNITS_TEXT];
    struct mt_buf line = {0};

    mt_buf_printf(&line, "%s allocated", bytes_text(canvas, column->bytes.allocated));
    if (mt_knows_reserved(view->report))
        mt_buf_printf(&line, ", %s reserved", bytes_text(canvas, column->bytes.reserved));
    mt_buf_printf(&line, " %s%sat ", in, *in ? ", " : "");
    if (mt_report_has_times(view->report))
        mt_buf_printf(&line, "%s, ", mt_reporter_when(&reporter, column->t_ns));
    mt_buf_printf(&line, "event %s", mt_format_count(event, column->event));
    put_line(canvas, canvas->layout.table_top - 1, line.data, MT_STYLE_BOLD);
    mt_buf_release(&line);
}

static const char *phase_text(const struct mt_view_row *row)
{
    return row->several_phases ? "several" : row->phase;
}

static const char *role_text(const struct mt_view_row *row)
{
    return mt_role_name(row->role);
}

/* Columns of the widest text, at most WORDS. */
static unsigned width_of(const struct mt_view *view,
                         const char *(*text)(const struct mt_view_row *), const char *title)
{
    size_t width = strlen(title);

    for (uint32_t i = 0; i < view->row_count; i++)
        width = mt_max_u64(width, strlen(text(&view->rows[i])));
    return (unsigned)mt_min_u64(width, WORDS);
}

/* Where the texts of the table begin, after the numbers; 0 = they are not in it. */
struct table_columns {
    unsigned role, phase, site, end_of_phase;
};
enum { END_BYTES = 10, END_SHARE = 17, END_BLOCKS = 25, TEXTS = 27 };

static struct table_columns table_columns(const struct mt_view *view)
{
    struct table_columns columns = {0};
    unsigned at = TEXTS;

    if (view->by != MT_BY_PHASE) {
        columns.role = at;
        at += 1 + width_of(view, role_text, "role");
    }
    if (view->by != MT_BY_ROLE) {
        columns.phase = at;
        at += 1 + width_of(view, phase_text, "allocated in");
        columns.end_of_phase = at - 1;
    }
    columns.site = view->by == MT_BY_SITE ? at : 0;
    return columns;
}

/* Texts of a line of the table. */
struct table_line {
    const char *bytes, *share, *blocks, *role, *phase, *site;
};

static void draw_line(struct canvas *canvas, const struct table_columns *columns, unsigned at,
                      const struct table_line *line, uint8_t style)
{
    for (unsigned i = 0; style == MT_STYLE_REVERSE && i < canvas->columns; i++)
        put(canvas, at, i, ' ', style);
    put_right(canvas, at, END_BYTES, line->bytes, style);
    put_right(canvas, at, END_SHARE, line->share, style);
    put_right(canvas, at, END_BLOCKS, line->blocks, style);
    if (columns->role)
        put_text(canvas, at, columns->role, WORDS, line->role, style);
    if (columns->phase)
        put_text(canvas, at, columns->phase, columns->end_of_phase - columns->phase, line->phase,
                 style);
    if (columns->site)
        put_text(canvas, at, columns->site, canvas->columns, line->site, style);
}

static void draw_table(struct canvas *canvas, struct mt_view *view)
{
    static const struct table_line titles = {"bytes", "share",        "blocks",
                                             "role",  "allocated in", "site"};
    const struct mt_view_layout *layout = &canvas->layout;
    struct table_columns columns = table_columns(view);
    uint64_t all = view->device->history->columns[view->selected].bytes.allocated;

    if (view->row < view->top)
        view->top = view->row;
    if (view->row >= view->top + layout->table_rows)
        view->top = view->row - layout->table_rows + 1;
    draw_line(canvas, &columns, layout->table_top, &titles, MT_STYLE_DIM);
    for (uint32_t i = 0; i < layout->table_rows && view->top + i < view->row_count; i++) {
        const struct mt_view_row *row = &view->rows[view->top + i];
        char share[MT_UNITS_TEXT], blocks[MT_UNITS_TEXT];
        const struct table_line line = {
            bytes_text(canvas, row->bytes),
            mt_format_percent(share, all ? (double)row->bytes / (double)all : 0),
            mt_format_count(blocks, row->blocks),
            role_text(row),
            phase_text(row),
            *row->site ? row->site : "several"};

        draw_line(canvas, &columns, layout->table_top + 1 + i, &line,
                  view->top + i == view->row ? MT_STYLE_REVERSE : 0);
    }
}

/* What the blocks of a row have in common. */
static const char *row_title(const struct mt_view *view)
{
    const struct mt_view_row *row = &view->rows[view->row];

    if (view->by == MT_BY_PHASE)
        return row->several_phases || *row->phase ? phase_text(row) : "no phase";
    return *row->site ? row->site : role_text(row);
}

static void draw_page(struct canvas *canvas)
{
    const struct mt_view *view = canvas->view;
    const char *at = view->lines.data ? view->lines.data : "";
    unsigned to = 2;

    put_line(canvas, 0, view->page == MT_VIEW_STACKS ? row_title(view) : "Keys", MT_STYLE_BOLD);
    for (uint32_t i = 0; *at && to + 2 < canvas->rows; i++) {
        size_t length = strcspn(at, "\n");

        if (i >= view->line)
            put_line(canvas, to++, mt_arena_text(&canvas->arena, at, length), 0);
        at += length + (at[length] == '\n');
    }
}

static void draw_footer(struct canvas *canvas)
{
    const struct mt_view *view = canvas->view;
    struct mt_buf command = {0};

    if (view->prompt) {
        unsigned end =
            put_line(canvas, canvas->rows - 2, view->prompt == '/' ? "search: " : "go to: ", 0);
        end = put_text(canvas, canvas->rows - 2, end, canvas->columns, view->typed, 0);
        put(canvas, canvas->rows - 2, end, ' ', MT_STYLE_REVERSE);
    } else if (*view->message)
        put_line(canvas, canvas->rows - 2, view->message, MT_STYLE_BOLD);
    else
        put_line(
            canvas, canvas->rows - 2,
            view->page == MT_VIEW_BLOCKS
                ? "left/right: instant  +/-: zoom  up/down: row  Enter: stacks  ?: keys  q: quit"
                : "up/down: scroll  Esc: back",
            MT_STYLE_DIM);
    mt_view_add_command(&command, view);
    put_line(canvas, canvas->rows - 1, command.data, 0);
    mt_buf_release(&command);
}

void mt_view_draw(struct mt_view *view, unsigned rows, unsigned columns,
                  struct mt_terminal_cell *cells)
{
    struct canvas canvas = {.view = view, .rows = rows, .columns = columns, .cells = cells};

    view->screen_rows = rows;
    view->screen_columns = columns;
    canvas.layout = mt_view_layout(view);
    if (rows < MT_VIEW_MIN_ROWS || columns < MT_VIEW_MIN_COLUMNS) {
        put_line(&canvas, 0, "needs 40 columns and 12 rows", 0);
        return;
    }
    if (view->page != MT_VIEW_BLOCKS) {
        draw_page(&canvas);
    } else {
        draw_title(&canvas);
        draw_legend(&canvas);
        draw_byte_axis(&canvas);
        for (unsigned at = 0; at < canvas.layout.plot_columns; at++)
            draw_column(&canvas, at);
        draw_axis(&canvas);
        draw_instant(&canvas);
        draw_table(&canvas, view);
    }
    draw_footer(&canvas);
    mt_arena_release(&canvas.arena);
}
