/* CSV (RFC 4180, also with tabs) as rows of cells. A row is scanned in place. If its end is not in
 * memory, more of the file is read and the row is scanned again; each reading at least doubles what
 * is there, so a row of any length is scanned a constant number of times per byte.
 *
 * A quote that is never closed would take the rest of the file. Then only its line is left out, and
 * reading continues at the next one. */
#include <string.h>

#include "rows_csv.h"

enum { PIECE_BYTES = 256 * 1024 };

enum mt_status mt_row_window_more(struct mt_row_window *window, struct mt_error *error)
{
    struct mt_buf *bytes = &window->bytes;
    size_t got = 1;

    if (window->at) {
        memmove(bytes->data, bytes->data + window->at, bytes->length - window->at);
        bytes->length -= window->at;
        window->before += window->at;
        window->at = 0;
    }
    for (size_t wanted = 2 * bytes->length + 1; got && bytes->length < wanted;) {
        char *room = mt_buf_reserve(bytes, PIECE_BYTES);
        struct mt_error failure;

        if (!room)
            return mt_fail_memory(error);
        enum mt_status status = mt_feed_read(window->feed, room, PIECE_BYTES, &got, &failure);
        if (status == MT_ERR_FORMAT) { /* the rows before it are whole */
            window->failure = failure;
            got = 0;
        } else if (status != MT_OK) {
            *error = failure;
            return status;
        }
        bytes->length += got;
    }
    window->ended = !got;
    return MT_OK;
}

enum mt_status mt_row_window_skip_line(struct mt_row_window *window, struct mt_error *error)
{
    struct mt_buf *bytes = &window->bytes;

    for (;;) {
        const char *start = bytes->data + window->at;
        const char *end = memchr(start, '\n', bytes->length - window->at);

        window->at = end ? (size_t)(end + 1 - bytes->data) : bytes->length;
        if (end || window->ended)
            break;
        enum mt_status status = mt_row_window_more(window, error);
        if (status != MT_OK)
            return status;
    }
    window->line++;
    return MT_OK;
}

enum scan { FOUND, NEEDS_MORE, UNREADABLE };

/* A row that is being scanned. */
struct scanner {
    const char *at, *end;
    char separator;
    bool is_last; /* the file ends at `end` */
    struct mt_csv_row *row;
    bool has_doubled_quotes; /* one of its cells */
    size_t lines;            /* ends of lines in it */
};

static const char LONG_ROW[] = "the row is longer than 16 MiB";
static const char MANY_CELLS[] = "the row has more than 256 cells";
static const char AFTER_QUOTE[] = "text follows a quoted cell";
static const char OPEN_QUOTE[] = "a quote is not closed";

static bool add_cell(struct scanner *scanner, const char *start, const char *end)
{
    struct mt_csv_row *row = scanner->row;

    if (row->count == MT_ROW_MAX_CELLS) {
        row->why = MANY_CELLS;
        return false;
    }
    row->cells[row->count++] = (struct mt_row_cell){start, (size_t)(end - start), false};
    return true;
}

/* Whether the row ends at `at`; sets the position behind the end of the line. A CR that could be
 * half of one is not looked at before the next byte is there. */
static bool ends_row(const struct scanner *scanner, const char *at, const char **next)
{
    if (at < scanner->end && *at == '\r' && at + 1 < scanner->end && at[1] == '\n')
        at++;
    *next = at + 1;
    return at < scanner->end && *at == '\n';
}

static enum scan scan_plain(struct scanner *scanner)
{
    const char *start = scanner->at, *at = start;

    while (at < scanner->end && *at != scanner->separator && *at != '\n')
        at++;
    if (at == scanner->end && !scanner->is_last)
        return NEEDS_MORE;
    const char *cell_end =
        at > start && at < scanner->end && *at == '\n' && at[-1] == '\r' ? at - 1 : at;
    scanner->at = at;
    return add_cell(scanner, start, cell_end) ? FOUND : UNREADABLE;
}

/* Removes the second one of doubled quotes. */
static void remove_quotes(struct mt_row_cell *cell)
{
    char *to = (char *)cell->text;

    for (size_t i = 0; i < cell->length; i++) {
        *to++ = cell->text[i];
        i += cell->text[i] == '"';
    }
    cell->length = (size_t)(to - cell->text);
}

static enum scan scan_quoted(struct scanner *scanner)
{
    const char *start = scanner->at + 1, *at = start;
    bool doubled = false;

    for (;; at += 2, doubled = true) {
        at = memchr(at, '"', (size_t)(scanner->end - at));
        if (!at) {
            scanner->row->why = OPEN_QUOTE;
            return scanner->is_last ? UNREADABLE : NEEDS_MORE;
        }
        if (at + 1 == scanner->end && !scanner->is_last)
            return NEEDS_MORE;
        if (at + 1 == scanner->end || at[1] != '"')
            break;
    }
    const char *next = at + 1;
    if (next + 1 >= scanner->end && !scanner->is_last)
        return NEEDS_MORE; /* it may be half of CR LF */
    if (next < scanner->end && *next != scanner->separator && !ends_row(scanner, next, &next)) {
        scanner->row->why = AFTER_QUOTE;
        return UNREADABLE;
    }
    scanner->at = at + 1;
    if (!add_cell(scanner, start, at))
        return UNREADABLE;
    scanner->row->cells[scanner->row->count - 1].has_doubled_quotes = doubled;
    scanner->has_doubled_quotes |= doubled;
    return FOUND;
}

static void count_lines(struct scanner *scanner, const char *start)
{
    while ((start = memchr(start, '\n', (size_t)(scanner->at - start))) != NULL) {
        scanner->lines++;
        start++;
    }
}

static enum scan scan_row(struct scanner *scanner)
{
    const char *start = scanner->at, *next;
    bool has_quotes = false;

    for (;;) {
        bool is_quoted = scanner->at < scanner->end && *scanner->at == '"';

        has_quotes |= is_quoted;
        enum scan result = is_quoted ? scan_quoted(scanner) : scan_plain(scanner);
        if (result != FOUND)
            return result;
        if (scanner->at == scanner->end) { /* only at the end of the file */
            scanner->row->is_cut = true;
            break;
        }
        if (*scanner->at == scanner->separator) {
            scanner->at++;
            continue;
        }
        (void)ends_row(scanner, scanner->at, &next);
        scanner->at = next;
        break;
    }
    if (has_quotes)
        count_lines(scanner, start);
    else
        scanner->lines = !scanner->row->is_cut;
    return FOUND;
}

static void finish_cells(struct scanner *scanner)
{
    struct mt_csv_row *row = scanner->row;

    for (size_t i = 0; scanner->has_doubled_quotes && i < row->count; i++)
        if (row->cells[i].has_doubled_quotes)
            remove_quotes(&row->cells[i]);
}

/* A quote that is not closed before the end of the file: its last line is cut, or an earlier one is
 * wrong. */
static bool is_cut_row(const struct mt_row_window *window, const struct mt_csv_row *row)
{
    const char *start = window->bytes.data + window->at;

    return window->ended && row->why == OPEN_QUOTE &&
           !memchr(start, '\n', window->bytes.length - window->at);
}

static enum mt_status leave_out(struct mt_row_window *window, struct mt_csv_row *row,
                                struct mt_error *error)
{
    if (is_cut_row(window, row)) {
        row->why = NULL;
        row->count = 0;
        row->is_cut = true;
    }
    return mt_row_window_skip_line(window, error);
}

enum mt_status mt_csv_next(struct mt_row_window *window, char separator, struct mt_csv_row *row,
                           struct mt_error *error)
{
    struct scanner scanner = {.separator = separator, .row = row};
    enum mt_status status;
    enum scan result;

    do {
        const char *data = window->bytes.data;

        if (window->at == window->bytes.length && window->ended)
            return MT_END;
        row->count = 0;
        row->why = NULL;
        row->is_cut = false;
        row->line = window->line;
        row->offset = window->before + window->at;
        scanner.at = data + window->at;
        scanner.end = data + window->bytes.length;
        scanner.is_last = window->ended;
        scanner.has_doubled_quotes = false;
        scanner.lines = 0;
        result = scanner.at < scanner.end ? scan_row(&scanner) : NEEDS_MORE;
        if (result != NEEDS_MORE)
            break;
        if (window->bytes.length - window->at > MT_ROW_MAX_BYTES) {
            row->why = LONG_ROW;
            return mt_row_window_skip_line(window, error);
        }
        status = mt_row_window_more(window, error);
    } while (status == MT_OK);
    if (result == NEEDS_MORE)
        return status;
    if (result == UNREADABLE)
        return leave_out(window, row, error);
    if ((size_t)(scanner.at - window->bytes.data) - window->at > MT_ROW_MAX_BYTES)
        row->why = LONG_ROW;
    finish_cells(&scanner);
    window->at = (size_t)(scanner.at - window->bytes.data);
    window->line += scanner.lines;
    return MT_OK;
}
