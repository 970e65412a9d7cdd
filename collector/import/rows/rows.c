/* Events of an allocator as rows of text become a trace in memory. The header of the trace names
 * what the file lacks and contradicts. */
#define _GNU_SOURCE /* memmem */
#include <stdlib.h>
#include <string.h>

#include "importers.h"
#include "rows_csv.h"
#include "rows_events.h"
#include "rows_json.h"
#include "util.h"

static const char bom[] = "\xEF\xBB\xBF";

enum { MAX_NAMED_COLUMNS = 20 };

/* A file that is being read. */
struct file {
    struct mt_rows rows;
    struct mt_row_window window;       /* of CSV, like what follows */
    struct mt_csv_row csv;             /* the last row */
    int16_t columns[MT_ROW_MAX_CELLS]; /* enum mt_row_column, -1: not used */
    size_t column_count;
    bool end_is_open;      /* the last line has no end */
    struct mt_buf missing; /* lines for the fact not_recorded */
};

/* ---- CSV */

static bool is_empty(const struct mt_csv_row *csv)
{
    return !csv->why && csv->count == 1 && !csv->cells[0].length;
}

/* Takes the row in file->csv. A last row without the end of its line counts if it has all cells. */
static enum mt_status take_csv_row(struct file *file, struct mt_error *error)
{
    const struct mt_csv_row *csv = &file->csv;
    struct mt_row row = {.offset = csv->offset, .line = csv->line, .may_be_cut = csv->is_cut};

    if (is_empty(csv))
        return MT_OK;
    if (csv->is_cut && (csv->count < file->column_count || file->window.failure.status != MT_OK)) {
        mt_rows_cut(&file->rows, csv->offset);
        return MT_OK;
    }
    file->end_is_open = csv->is_cut;
    if (csv->why || csv->count != file->column_count) {
        file->rows.rows_read++;
        mt_rows_skip(&file->rows, &row,
                     csv->why ? csv->why : "the number of cells is not that of the header row");
        return MT_OK;
    }
    for (size_t i = 0; i < csv->count; i++)
        if (file->columns[i] >= 0)
            row.cells[file->columns[i]] = csv->cells[i];
    return mt_rows_take(&file->rows, &row, error);
}

static enum mt_status take_column(struct file *file, size_t i, struct mt_error *error)
{
    const struct mt_row_cell name = file->csv.cells[i];
    const int column = mt_row_column_find(file->rows.dialect, name);

    file->columns[i] = (int16_t)column;
    if (column < 0) {
        if (i < MAX_NAMED_COLUMNS)
            mt_buf_printf(&file->rows.unused, "column %.*s\n", (int)mt_min_u64(name.length, 60),
                          name.text);
        return MT_OK;
    }
    if (file->rows.has[column])
        return mt_fail(error, MT_ERR_FORMAT, 0, "the header row has two columns '%.*s'",
                       (int)mt_min_u64(name.length, 60), name.text);
    file->rows.has[column] = true;
    return MT_OK;
}

static enum mt_status take_header(struct file *file, struct mt_error *error)
{
    struct mt_csv_row *csv = &file->csv;
    enum mt_status status = MT_OK;

    if (csv->why)
        return mt_fail(error, MT_ERR_FORMAT, 0, "the header row: %s", csv->why);
    for (size_t i = 0; i < csv->count; i++)
        csv->cells[i] = mt_row_cell_trim(csv->cells[i]);
    file->rows.dialect = mt_row_dialect_find(csv->cells, csv->count);
    if (!file->rows.dialect)
        file->rows.dialect = &mt_row_dialect_own;
    file->column_count = csv->count;
    for (size_t i = 0; i < csv->count && status == MT_OK; i++)
        status = take_column(file, i, error);
    return status;
}

static enum mt_status check_columns(const struct file *file, struct mt_error *error)
{
    static const struct {
        enum mt_row_column column;
        const char *name;
    } required[] = {{MT_ROW_OP, "op"}, {MT_ROW_ADDR, "addr"}, {MT_ROW_BYTES, "bytes"}};

    for (size_t i = 0; i < MT_ARRAY_LEN(required); i++)
        if (file->rows.dialect == &mt_row_dialect_own && !file->rows.has[required[i].column])
            return mt_fail(error, MT_ERR_FORMAT, 0,
                           "the header row has no column '%s': rows of an allocator's events need "
                           "op, addr and bytes",
                           required[i].name);
    return MT_OK;
}

static char separator_of(const char *text, size_t length)
{
    const char *end = memchr(text, '\n', length);

    return memchr(text, '\t', end ? (size_t)(end - text) : length) ? '\t' : ',';
}

static enum mt_status read_csv(struct file *file, struct mt_error *error)
{
    struct mt_row_window *window = &file->window;

    window->line = 1;
    enum mt_status status = mt_row_window_more(window, error);
    if (status != MT_OK)
        return status;
    if (window->bytes.length >= sizeof bom - 1 &&
        memcmp(window->bytes.data, bom, sizeof bom - 1) == 0)
        window->at = sizeof bom - 1;
    char separator =
        separator_of(window->bytes.data + window->at,
                     mt_min_u64(window->bytes.length - window->at, MT_FEED_START_BYTES));
    status = mt_csv_next(window, separator, &file->csv, error);
    if (status == MT_OK)
        status = take_header(file, error);
    if (status == MT_OK)
        status = check_columns(file, error);
    while (status == MT_OK) {
        status = mt_csv_next(window, separator, &file->csv, error);
        if (status == MT_OK)
            status = take_csv_row(file, error);
    }
    file->rows.failure = window->failure;
    return status == MT_END ? MT_OK : status;
}

/* ---- the header of the trace */

static void list_missing(struct file *file)
{
    struct mt_buf *out = &file->missing;

    if (file->rows.dialect->missing)
        mt_buf_add_text(out, file->rows.dialect->missing);
    if (!mt_rows_have_times(&file->rows))
        mt_buf_add_text(out, "times: the file has none; row N has the time N ns\n");
    else if (file->rows.untimed)
        mt_buf_printf(out,
                      "times: %llu row%s before the first with a time; row N has the time N ns\n",
                      (unsigned long long)file->rows.untimed, file->rows.untimed == 1 ? "" : "s");
    if (file->rows.has_time_of_day)
        mt_buf_add_text(out, "date: the file has only times of day; the first is 1970-01-01\n");
    if (file->rows.times_back)
        mt_buf_printf(out, "times: %llu row%s earlier than one before, whose time is used\n",
                      (unsigned long long)file->rows.times_back,
                      file->rows.times_back == 1 ? " is" : "s are");
    if (file->rows.dialect == &mt_row_dialect_own && !file->rows.has[MT_ROW_STREAM])
        mt_buf_add_text(out, "streams: the file has none; all blocks are on the default stream\n");
    if (file->rows.frees_unknown)
        mt_buf_printf(out,
                      "allocations: %llu free%s of an address that is not live: the file begins "
                      "in the middle, or frees it twice\n",
                      (unsigned long long)file->rows.frees_unknown,
                      file->rows.frees_unknown == 1 ? " is" : "s are");
    if (file->rows.refusals)
        mt_buf_printf(
            out,
            "refused requests: %llu, without what was free then; alloc_failed events have "
            "them\n",
            (unsigned long long)file->rows.refusals);
    if (file->end_is_open && !file->rows.made.integrity.cut)
        mt_buf_add_text(out, "the last line has no end: its last cell may be incomplete\n");
}

static void end_line(struct mt_buf *buf)
{
    if (buf->length && buf->data[buf->length - 1] == '\n')
        buf->data[--buf->length] = '\0';
}

static void fill_header(struct file *file)
{
    struct mt_trace_header *header = &file->rows.made.header;

    list_missing(file);
    if (file->rows.left_out)
        mt_buf_printf(&file->rows.unused, "%llu row%s %s\n",
                      (unsigned long long)file->rows.left_out, file->rows.left_out == 1 ? "" : "s",
                      file->rows.dialect->left_out);
    if (file->rows.other_processes)
        mt_buf_printf(&file->rows.unused, "%llu row%s of other processes than %llu\n",
                      (unsigned long long)file->rows.other_processes,
                      file->rows.other_processes == 1 ? "" : "s",
                      (unsigned long long)file->rows.process);
    end_line(&file->missing);
    end_line(&file->rows.unused);
    header->framework = file->rows.dialect->framework;
    header->not_recorded = file->missing.data;
    header->not_used = file->rows.unused.data;
    header->starts_in_middle |= file->rows.frees_unknown > 0;
}

static enum mt_status finish(struct file *file, struct mt_source **source, struct mt_error *error)
{
    struct mt_made_trace *made = &file->rows.made;

    if (!made->event_count) {
        const struct mt_error *first = &made->integrity.first_error;

        return mt_fail(error, MT_ERR_FORMAT, first->status == MT_OK ? MT_NO_OFFSET : first->offset,
                       "no row is an event of an allocator%s%.200s",
                       first->status == MT_OK ? "" : "; first: ", first->text);
    }
    if (file->rows.failure.status != MT_OK) {
        if (!made->integrity.cut)
            mt_rows_cut(&file->rows, file->rows.failure.offset);
        if (made->integrity.first_error.status == MT_OK)
            made->integrity.first_error = file->rows.failure;
    }
    fill_header(file);
    if (file->missing.failed || file->rows.unused.failed)
        return mt_fail_memory(error);
    return mt_made_trace_finish(made, file->rows.dialect->source, source, error);
}

/* ---- opening */

static size_t find_own(const struct mt_row_cell *names, size_t count)
{
    bool has[MT_ROW_COLUMNS] = {false};

    for (size_t i = 0; i < count; i++) {
        int column = mt_row_column_find(&mt_row_dialect_own, names[i]);

        if (column >= 0)
            has[column] = true;
    }
    return (size_t)has[MT_ROW_OP] + has[MT_ROW_ADDR] + has[MT_ROW_BYTES];
}

/* A header row with two of the required columns is meant to be one: then the missing one is named.
 */
static bool is_header(const char *bytes, size_t length)
{
    const char *at = bytes, *end = memchr(bytes, '\n', length);
    const char separator = separator_of(at, length);
    struct mt_row_cell names[MT_ROW_MAX_CELLS] = {{NULL, 0, false}};
    size_t count = 0;

    end = end ? end - (end > at && end[-1] == '\r') : at + length;
    if (length >= sizeof bom - 1 && memcmp(at, bom, sizeof bom - 1) == 0)
        at += sizeof bom - 1;
    while (at < end && count < MT_ROW_MAX_CELLS) {
        const char *stop = memchr(at, separator, (size_t)(end - at));
        struct mt_row_cell name = {at, (size_t)((stop ? stop : end) - at), false};

        at += name.length + 1;
        name = mt_row_cell_trim(name);
        if (name.length >= 2 && name.text[0] == '"') {
            name.text++;
            name.length -= 2;
        }
        names[count++] = mt_row_cell_trim(name);
    }
    return mt_row_dialect_find(names, count) || find_own(names, count) >= 2;
}

static void release(struct file *file)
{
    mt_rows_release(&file->rows);
    mt_buf_release(&file->window.bytes);
    mt_buf_release(&file->missing);
    free(file);
}

static bool has_key(const char *bytes, size_t length, const char *key)
{
    return memmem(bytes, length, key, strlen(key)) != NULL;
}

/* An object of JSON that may be a row, in the first line. */
static bool is_json(const char *bytes, size_t length)
{
    const char *end = memchr(bytes, '\n', length);

    if (end)
        length = (size_t)(end - bytes);
    return length && *bytes == '{' &&
           (has_key(bytes, length, "\"op\"") || has_key(bytes, length, "\"kind\"")) &&
           has_key(bytes, length, "\"addr\"");
}

bool mt_rows_probe(const void *bytes, size_t length)
{
    return is_json(bytes, length) || is_header(bytes, length);
}

static enum mt_status read_rows(struct file *file, struct mt_feed *feed, struct mt_error *error)
{
    const void *bytes;
    size_t length;
    enum mt_status status = mt_feed_start(feed, &bytes, &length, error);

    if (status == MT_OK)
        status = mt_made_trace_start(&file->rows.made, error);
    if (status != MT_OK)
        return status;
    file->rows.heap = MT_NO_ID;
    if (is_json(bytes, length)) {
        file->rows.dialect = &mt_row_dialect_own;
        return mt_rows_read_json(&file->rows, feed, error);
    }
    file->window.feed = feed;
    return read_csv(file, error);
}

enum mt_status mt_rows_open(struct mt_feed *feed, struct mt_source **source, struct mt_error *error)
{
    struct file *file = calloc(1, sizeof *file);

    if (!file)
        return mt_fail_memory(error);
    enum mt_status status = read_rows(file, feed, error);
    if (status == MT_OK)
        status = finish(file, source, error);
    release(file);
    return status;
}
