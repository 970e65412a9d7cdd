#include "ascii.h"
#include "view_parts.h"

#include <string.h>

#include "history.h"
#include "instant_option.h"
#include "question_report.h"
#include "report_query.h"
#include "util.h"
#include "work_kinds.h"

enum {
    FAR = 10, /* columns */
    MIN_COLUMNS_IN_VIEW = 8,
    GUTTER = 10,    /* columns of the labels of bytes */
    FIXED_ROWS = 9, /* all rows except those of the plot and the table */
    MAX_PLOT_ROWS = 20
};

static const char help[] =
    "left, right      the instant before, after (with shift, or H and L: ten)\n"
    "+, -, 0          zoom in, zoom out, the whole run\n"
    "p                the allocated peak\n"
    "g                an instant: peak, reserved-peak, oom, end, 1.25s, an event,\n"
    "                 phase:PATH (as in memtrace live --at)\n"
    "Tab              the next device\n"
    "up, down, ...    rows; also PgUp, PgDn, Home, End\n"
    "s, r, f          rows by site, by role, by phase\n"
    "Enter            the stacks of the row\n"
    "/, n             search in the rows, search again\n"
    "Esc, q           back; quit, and print the command of the last line\n"
    "\n"
    "Each column shows its fullest instant. The last line is the command that\n"
    "prints the blocks of the selected instant.\n";

static void say(struct mt_view *view, const char *text)
{
    size_t length = mt_min_u64(strlen(text), sizeof view->message - 1);

    memcpy(view->message, text, length);
    view->message[length] = '\0';
}

struct mt_view_layout mt_view_layout(const struct mt_view *view)
{
    unsigned left = view->screen_rows > FIXED_ROWS + 2 ? view->screen_rows - FIXED_ROWS : 2;
    struct mt_view_layout layout = {.plot_left = GUTTER, .plot_top = 1 + MT_VIEW_LEGEND_ROWS};

    layout.plot_columns = view->screen_columns > GUTTER + 1 ? view->screen_columns - GUTTER - 1 : 1;
    layout.plot_rows = (unsigned)mt_min_u64(left / 2, MAX_PLOT_ROWS);
    layout.table_rows = left - layout.plot_rows;
    layout.table_top = layout.plot_top + layout.plot_rows + 3;
    return layout;
}

void mt_view_columns_of(const struct mt_view *view, unsigned plot_column, uint32_t *begin,
                        uint32_t *end)
{
    uint64_t width = mt_view_layout(view).plot_columns, at = plot_column;

    *begin = view->first + (uint32_t)(at * view->count / width);
    *end = view->first + (uint32_t)((at + 1) * view->count / width);
    *end = *end > *begin ? *end : *begin + 1;
}

uint32_t mt_view_fullest(const struct mt_view *view, uint32_t begin, uint32_t end)
{
    const struct mt_history_column *columns = view->device->history->columns;
    uint32_t best = begin;

    for (uint32_t i = begin + 1; i < end; i++)
        if (columns[i].bytes.allocated > columns[best].bytes.allocated)
            best = i;
    return best;
}

/* Moves the part of the run that is shown, so that it has the selected column. */
static void keep_in_view(struct mt_view *view)
{
    uint32_t total = view->device->history->column_count;

    if (view->selected < view->first)
        view->first = view->selected;
    if (view->selected >= view->first + view->count)
        view->first = view->selected - view->count + 1;
    if (view->first + view->count > total)
        view->first = total - view->count;
}

static void select_column(struct mt_view *view, uint32_t column)
{
    view->selected = column;
    keep_in_view(view);
    mt_view_fill_rows(view);
    view->row = (uint32_t)mt_min_u64(view->row, mt_sub_or_0_u64(view->row_count, 1));
}

/* The column of the plot with the selected instant. */
static unsigned selected_plot_column(const struct mt_view *view)
{
    uint32_t begin, end;
    unsigned at = 0;

    for (mt_view_columns_of(view, at, &begin, &end); view->selected >= end;)
        mt_view_columns_of(view, ++at, &begin, &end);
    return at;
}

/* Moves by columns of the screen, or of the history if it has fewer. */
static void move(struct mt_view *view, int64_t steps)
{
    int64_t total = view->device->history->column_count, target = view->selected + steps;
    int64_t width = mt_view_layout(view).plot_columns;
    bool is_finer = view->count <= width; /* a column of the history is at least one wide */
    uint32_t begin, end;

    if (!is_finer)
        target = view->first + (selected_plot_column(view) + steps) * view->count / width;
    target = target < 0 ? 0 : target >= total ? total - 1 : target;
    view->selected = begin = (uint32_t)target;
    keep_in_view(view);
    if (!is_finer) {
        mt_view_columns_of(view, selected_plot_column(view), &begin, &end);
        begin = mt_view_fullest(view, begin, end);
    }
    select_column(view, begin);
}

static void zoom(struct mt_view *view, uint64_t count)
{
    uint64_t total = view->device->history->column_count, least = MIN_COLUMNS_IN_VIEW;

    count = mt_min_u64(mt_max_u64(count, least), total);
    view->first = (uint32_t)mt_sub_or_0_u64(view->selected, count / 2);
    view->first = (uint32_t)mt_min_u64(view->first, total - count);
    view->count = (uint32_t)count;
    keep_in_view(view);
}

/* Selects the fullest column that has a value in [low, high] of the axis. */
static void select_range(struct mt_view *view, bool by_event, uint64_t low, uint64_t high)
{
    const struct mt_history *history = view->device->history;
    uint32_t begin = 0, end = 1;

    for (uint32_t i = 1; i < history->column_count; i++) {
        const struct mt_history_column *column = &history->columns[i];
        uint64_t value = by_event ? column->begin_event : column->begin_t_ns;

        if (value <= low)
            begin = i;
        if (value <= high)
            end = i + 1;
    }
    select_column(view, mt_view_fullest(view, begin, end));
}

static void select_event(struct mt_view *view, uint64_t event)
{
    select_range(view, true, event, event);
}

static bool has_history(const struct mt_view *view, const struct mt_device_report *device)
{
    return device->history && device->history->column_count &&
           !mt_is_one_instant(view->report, device);
}

static void fill_role_bytes(struct mt_view *view)
{
    const struct mt_history *history = view->device->history;

    for (uint32_t i = 0; i < history->column_count; i++) {
        const struct mt_history_column *column = &history->columns[i];

        if (i)
            memcpy(view->role_bytes[i], view->role_bytes[i - 1], sizeof *view->role_bytes);
        for (uint32_t j = 0; j < column->change_count; j++) {
            const struct mt_history_change *change = &history->changes[column->first_change + j];

            view->role_bytes[i][history->groups[change->group].role] += (uint64_t)change->bytes;
        }
    }
}

static void show_device(struct mt_view *view, const struct mt_device_report *device)
{
    const struct mt_history *history = device->history;

    mt_arena_release(&view->arena);
    view->device = device;
    view->role_bytes =
        mt_arena_array(&view->arena, history->column_count, sizeof *view->role_bytes);
    view->sums = mt_arena_array(&view->arena, (size_t)history->group_count + 1, sizeof *view->sums);
    view->rows = mt_arena_array(&view->arena, (size_t)history->group_count + 1, sizeof *view->rows);
    fill_role_bytes(view);
    view->first = view->row = view->top = 0;
    view->count = history->column_count;
    select_event(view, device->allocated_peak.event);
}

static void show_next_device(struct mt_view *view)
{
    const struct mt_report *report = view->report;
    uint32_t at = (uint32_t)(view->device - report->devices);

    for (uint32_t i = 1; i < report->device_count; i++) {
        const struct mt_device_report *next = &report->devices[(at + i) % report->device_count];

        if (!has_history(view, next))
            continue;
        show_device(view, next);
        return;
    }
    say(view, "no other device");
}

bool mt_view_init(struct mt_view *view, const struct mt_report *report, const char *path)
{
    const struct mt_device_report *best = NULL;

    *view = (struct mt_view){
        .report = report, .path = path, .by = MT_BY_SITE, .screen_rows = 24, .screen_columns = 80};
    for (uint32_t i = 0; i < report->device_count; i++)
        if (has_history(view, &report->devices[i]) &&
            (!best || mt_device_comes_first(&report->devices[i], best)))
            best = &report->devices[i];
    if (best)
        show_device(view, best);
    return best != NULL;
}

void mt_view_release(struct mt_view *view)
{
    mt_arena_release(&view->arena);
    mt_buf_release(&view->lines);
}

void mt_view_add_command(struct mt_buf *out, const struct mt_view *view)
{
    const struct mt_history_column *column = &view->device->history->columns[view->selected];

    mt_buf_add_text(out, "memtrace live ");
    mt_buf_add_shell_path(out, view->path);
    mt_buf_printf(out, " --at %llu", (unsigned long long)column->event);
    if (view->by != MT_BY_SITE || view->page == MT_VIEW_STACKS)
        mt_buf_printf(out, " --by %s",
                      mt_group_by_name(view->page == MT_VIEW_STACKS ? MT_BY_STACK : view->by));
    if (view->report->device_count > 1)
        mt_buf_printf(out, " --device %u", view->device->device);
}

static void open_page(struct mt_view *view, enum mt_view_page page)
{
    view->page = page;
    view->line = view->line_count = 0;
    for (size_t i = 0; i < view->lines.length; i++)
        view->line_count += view->lines.data[i] == '\n';
}

static void open_help(struct mt_view *view)
{
    mt_buf_reset(&view->lines);
    mt_buf_add_text(&view->lines, help);
    open_page(view, MT_VIEW_HELP);
}

static bool contains(const char *text, const char *word)
{
    for (; text && *text; text++) {
        size_t i = 0;

        while (word[i] && mt_lower(text[i]) == mt_lower(word[i]))
            i++;
        if (!word[i])
            return true;
    }
    return false;
}

static void search_again(struct mt_view *view)
{
    for (uint32_t i = 1; i <= view->row_count && *view->search; i++) {
        uint32_t at = (view->row + i) % view->row_count;
        const struct mt_view_row *row = &view->rows[at];

        if (contains(row->site, view->search) || contains(row->phase, view->search) ||
            (view->by != MT_BY_PHASE && contains(mt_role_name(row->role), view->search))) {
            view->row = at;
            return;
        }
    }
    say(view, *view->search ? "no row has this text" : "no text to search: type / first");
}

/* The phase with the highest peak on the device, as in `memtrace live`. */
static enum mt_no_answer select_phase(struct mt_view *view, const char *path)
{
    enum mt_no_answer missing = MT_NO_SUCH_PHASE;
    const struct mt_phase_use *best = NULL;

    for (uint32_t i = 0; i < view->report->phase_count; i++) {
        const struct mt_phase_use *use = &view->device->phase_uses[i];

        if (!mt_phase_path_matches(view->report->phases[i].path, path))
            continue;
        if (!mt_report_covers(view->report, view->device, view->report->phases[i].end_event))
            missing = missing == MT_NO_SUCH_PHASE ? MT_NOT_IN_HISTORY : missing;
        else if (!best || use->peak.allocated > best->peak.allocated)
            best = use;
    }
    if (!best)
        return missing;
    select_event(view, best->peak_allocated_event);
    return MT_ANSWERED;
}

static enum mt_no_answer select_oom(struct mt_view *view)
{
    const struct mt_device_report *device = view->device;
    const struct mt_oom *oom = mt_fatal_oom(device);

    if (!oom && device->oom_count)
        oom = &device->oom_list[device->oom_count - 1];
    if (!oom)
        return MT_NO_OOM;
    select_event(view, oom->event);
    return MT_ANSWERED;
}

static enum mt_no_answer select_time(struct mt_view *view, const struct mt_question *question)
{
    uint64_t zero = view->report->first_t_ns, high;
    uint64_t low = mt_sub_or_0_u64(question->value, question->half_ns);

    if (!mt_add_ok(question->value, question->half_ns, &high) || !mt_add_ok(high, zero, &high) ||
        low + zero > view->device->last_t_ns)
        return MT_BEYOND_END;
    select_range(view, false, zero + low, high);
    return MT_ANSWERED;
}

static enum mt_no_answer select_instant(struct mt_view *view, const struct mt_question *question)
{
    switch (question->at) {
    case MT_AT_PEAK: select_event(view, view->device->allocated_peak.event); break;
    case MT_AT_RESERVED_PEAK: select_event(view, view->device->reserved_peak.event); break;
    case MT_AT_OOM: return select_oom(view);
    case MT_AT_END: select_event(view, view->device->last_event); break;
    case MT_AT_TIME: return select_time(view, question);
    case MT_AT_EVENT:
        if (question->value > view->device->last_event)
            return MT_BEYOND_END;
        select_event(view, question->value);
        break;
    case MT_AT_PHASE: return select_phase(view, question->phase);
    }
    return MT_ANSWERED;
}

static void go_to(struct mt_view *view)
{
    struct mt_question question = {0};
    struct mt_buf why = {0};
    enum mt_no_answer missing;

    if (!mt_question_at_read(view->typed, &question, &why))
        say(view, why.data ? why.data : "");
    else if (view->report->is_dry_run && question.at == MT_AT_TIME)
        say(view, "a dry run has no times");
    else if ((missing = select_instant(view, &question)) != MT_ANSWERED)
        say(view, mt_question_no_answer_text(missing));
    mt_buf_release(&why);
}

static void end_prompt(struct mt_view *view)
{
    char prompt = view->prompt;

    view->prompt = 0;
    if (!*view->typed)
        return;
    if (prompt == 'g') {
        go_to(view);
        return;
    }
    memcpy(view->search, view->typed, sizeof view->search);
    search_again(view);
}

static void type(struct mt_view *view, uint32_t key)
{
    size_t length = strlen(view->typed);
    struct mt_buf text = {
        .data = view->typed, .length = length, .capacity = sizeof view->typed, .is_fixed = true};

    if (key == MT_KEY_ENTER)
        end_prompt(view);
    else if (key == MT_KEY_ESCAPE)
        view->prompt = 0;
    else if (key == MT_KEY_DELETE && length) {
        do /* a whole character of UTF-8 */
            length--;
        while (length && (view->typed[length] & 0xC0) == 0x80);
        view->typed[length] = '\0';
    } else if (key >= ' ' && key < MT_KEY_LEFT && (key < 0xD800 || key > 0xDFFF) &&
               length + 5 < sizeof view->typed)
        mt_buf_add_utf8(&text, key);
}

/* Moves a position in a list by a key. Returns false for other keys. */
static bool scroll(uint32_t key, uint32_t *at, uint32_t last, unsigned page)
{
    int64_t to = *at;

    switch (key) {
    case MT_KEY_UP:
    case 'k': to--; break;
    case MT_KEY_DOWN:
    case 'j': to++; break;
    case MT_KEY_PAGE_UP: to -= page; break;
    case MT_KEY_PAGE_DOWN: to += page; break;
    case MT_KEY_HOME: to = 0; break;
    case MT_KEY_END: to = last; break;
    default: return false;
    }
    *at = (uint32_t)(to < 0 ? 0 : to > last ? last : to);
    return true;
}

static void group_by(struct mt_view *view, enum mt_group_by by)
{
    view->by = by;
    view->row = view->top = 0;
    mt_view_fill_rows(view);
}

static void press_in_blocks(struct mt_view *view, uint32_t key)
{
    unsigned page = mt_view_layout(view).table_rows;

    if (scroll(key, &view->row, (uint32_t)mt_sub_or_0_u64(view->row_count, 1), page))
        return;
    switch (key) {
    case MT_KEY_LEFT:
    case 'h': move(view, -1); break;
    case MT_KEY_RIGHT:
    case 'l': move(view, 1); break;
    case MT_KEY_LEFT_FAR:
    case 'H': move(view, -FAR); break;
    case MT_KEY_RIGHT_FAR:
    case 'L': move(view, FAR); break;
    case '+':
    case '=': zoom(view, view->count / 2); break;
    case '-': zoom(view, 2 * (uint64_t)view->count); break;
    case '0': zoom(view, UINT32_MAX); break;
    case 'p': select_event(view, view->device->allocated_peak.event); break;
    case 's': group_by(view, MT_BY_SITE); break;
    case 'r': group_by(view, MT_BY_ROLE); break;
    case 'f': group_by(view, MT_BY_PHASE); break;
    case '\t': show_next_device(view); break;
    case 'n': search_again(view); break;
    case '?': open_help(view); break;
    case '/':
    case 'g':
        view->prompt = (char)key;
        view->typed[0] = '\0';
        break;
    case MT_KEY_ENTER:
        if (!view->row_count)
            break;
        mt_view_fill_stacks(view);
        open_page(view, MT_VIEW_STACKS);
        break;
    default: break;
    }
}

bool mt_view_press(struct mt_view *view, uint32_t key)
{
    unsigned page = view->screen_rows > 6 ? view->screen_rows - 5 : 1;

    view->message[0] = '\0';
    if (view->prompt)
        type(view, key);
    else if (view->page == MT_VIEW_BLOCKS && key == 'q')
        return false;
    else if (view->page == MT_VIEW_BLOCKS)
        press_in_blocks(view, key);
    else if (key == MT_KEY_ESCAPE || key == MT_KEY_ENTER || key == 'q')
        view->page = MT_VIEW_BLOCKS;
    else
        (void)scroll(key, &view->line, (uint32_t)mt_sub_or_0_u64(view->line_count, 1), page);
    return true;
}
