#include "answer_rows.h"

#include <string.h>

#include "cli.h"
#include "document_tables.h"
#include "escape.h"
#include "text_table.h"
#include "units.h"

/* A longer text of a table is shortened in its middle; CSV and JSON have all of it. */
enum { MAX_CELL_COLUMNS = 200 };

static void add_title(struct mt_answer_rows *rows, const char *name)
{
    struct mt_buf title = {0};

    if (rows->form == MT_ROWS_MARKDOWN)
        mt_escape_add_markdown(&title, name, MAX_CELL_COLUMNS);
    else
        mt_text_table_add_shortened(&title, name, MAX_CELL_COLUMNS);
    rows->widths[rows->table.column_count] = title.length + 2;
    mt_table_column(&rows->table, title.data ? title.data : "", title.length, MT_WORDS);
    mt_buf_release(&title);
}

/* The text of a value in a table, without NUL. */
static void add_words(struct mt_buf *out, const struct mt_value *value)
{
    struct mt_buf whole = {0};

    switch (value->kind) {
    case MT_VALUE_NULL: mt_buf_add_char(out, '-'); return;
    case MT_VALUE_INTEGER: mt_buf_add_i64(out, value->integer); return;
    case MT_VALUE_REAL: mt_buf_add(out, value->text, value->length); return;
    case MT_VALUE_TEXT: break;
    }
    mt_buf_add_printable(&whole, value->text, value->length);
    if (whole.data)
        mt_text_table_add_shortened(out, whole.data, MAX_CELL_COLUMNS);
    mt_buf_release(&whole);
}

static void add_cell(struct mt_answer_rows *rows, const struct mt_value *value, unsigned column)
{
    struct mt_buf words = {0};

    add_words(&words, value);
    rows->widths[column] = mt_max_u64(rows->widths[column], words.length + 2);
    rows->has_number[column] |= value->kind == MT_VALUE_INTEGER || value->kind == MT_VALUE_REAL;
    rows->has_text[column] |= value->kind == MT_VALUE_TEXT;
    MT_CELLS(&rows->table, MT_SENTENCE(words.data ? words.data : ""));
    mt_buf_release(&words);
}

/* The largest size of the table: each of its lines may be as wide as the widest cells. */
static uint64_t table_bytes(const struct mt_answer_rows *rows)
{
    uint64_t line = 0;

    for (size_t i = 0; i < rows->table.column_count; i++)
        line += rows->widths[i];
    return line * (mt_table_rows(&rows->table) + 1);
}

/* Returns false, without the row, if it is too much. */
static bool add_table_row(struct mt_answer_rows *rows, const struct mt_value *values,
                          unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        add_cell(rows, &values[i], i);
    if (table_bytes(rows) <= rows->max_bytes)
        return true;
    rows->table.cell_count -= count;
    return false;
}

/* CSV: RFC 4180. NULL is an empty field, and an empty text is "". */

/* Valid UTF-8, so that every reader takes the file. */
static void add_csv_text(struct mt_answer_rows *rows, const char *text, size_t length)
{
    struct mt_buf safe = {0};

    if (rows->is_terminal)
        mt_buf_add_printable(&safe, text, length);
    else
        mt_buf_add_valid_utf8(&safe, text, length);
    if (safe.length && !memchr(safe.data, '"', safe.length) &&
        strcspn(safe.data, ",\r\n") == safe.length) {
        mt_buf_add(&rows->out, safe.data, safe.length);
    } else {
        mt_buf_add_char(&rows->out, '"');
        for (size_t i = 0; i < safe.length; i++) {
            if (safe.data[i] == '"')
                mt_buf_add_char(&rows->out, '"');
            mt_buf_add_char(&rows->out, safe.data[i]);
        }
        mt_buf_add_char(&rows->out, '"');
    }
    mt_buf_release(&safe);
}

static void add_csv_value(struct mt_answer_rows *rows, const struct mt_value *value)
{
    switch (value->kind) {
    case MT_VALUE_NULL: return;
    case MT_VALUE_INTEGER: mt_buf_add_i64(&rows->out, value->integer); return;
    case MT_VALUE_REAL: mt_buf_add(&rows->out, value->text, value->length); return;
    case MT_VALUE_TEXT: add_csv_text(rows, value->text, value->length); return;
    }
}

static bool add_csv_row(struct mt_answer_rows *rows, const struct mt_value *values, unsigned count)
{
    size_t before = rows->out.length;

    for (unsigned i = 0; i < count; i++) {
        if (i)
            mt_buf_add_char(&rows->out, ',');
        add_csv_value(rows, &values[i]);
    }
    mt_buf_add_text(&rows->out, "\r\n");
    if (rows->out.length <= rows->max_bytes)
        return true;
    rows->out.length = before;
    return false;
}

static void add_json_value(struct mt_json *json, const struct mt_value *value)
{
    switch (value->kind) {
    case MT_VALUE_NULL: mt_json_null(json, NULL); return;
    case MT_VALUE_INTEGER: mt_json_i64(json, NULL, value->integer); return;
    case MT_VALUE_REAL:
        /* JSON has no infinity. Readers take a number that is too large as one. */
        if (memchr(value->text, 'I', value->length))
            mt_json_number(json, NULL, *value->text == '-' ? "-9.0e+999" : "9.0e+999");
        else
            mt_json_number(json, NULL, value->text);
        return;
    case MT_VALUE_TEXT: mt_json_raw_text(json, NULL, value->text, value->length); return;
    }
}

static void begin_json(struct mt_answer_rows *rows, const char *const *names, unsigned count)
{
    struct mt_json *json = &rows->json;

    mt_json_document(json, &rows->out, "memtrace.sql/1", true);
    mt_json_text(json, "path", rows->path);
    mt_json_text(json, "database", rows->database);
    mt_json_array_begin(json, "columns");
    json->pretty = false;
    for (unsigned i = 0; i < count; i++)
        mt_json_text(json, NULL, names[i]);
    mt_json_array_end(json);
    json->pretty = true;
    mt_json_array_begin(json, "rows");
}

static bool add_json_row(struct mt_answer_rows *rows, const struct mt_value *values, unsigned count)
{
    struct mt_json *json = &rows->json, before = *json;
    size_t length = rows->out.length;

    mt_json_array_begin(json, NULL);
    json->pretty = false;
    for (unsigned i = 0; i < count; i++)
        add_json_value(json, &values[i]);
    mt_json_array_end(json);
    json->pretty = true;
    if (rows->out.length <= rows->max_bytes)
        return true;
    *json = before;
    rows->out.length = length;
    return false;
}

static void end_json(struct mt_answer_rows *rows)
{
    struct mt_json *json = &rows->json;

    mt_json_array_end(json);
    mt_json_omitted(json, "rows", rows->omitted);
    mt_json_bool(json, "truncated", rows->omitted > 0);
    mt_json_object_end(json);
}

void mt_answer_rows_columns(void *context, const char *const *names, unsigned count)
{
    struct mt_answer_rows *rows = context;

    if (rows->form == MT_ROWS_JSON) {
        begin_json(rows, names, count);
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        if (rows->form != MT_ROWS_CSV) {
            add_title(rows, names[i]);
            continue;
        }
        if (i)
            mt_buf_add_char(&rows->out, ',');
        add_csv_text(rows, names[i], strlen(names[i]));
    }
    if (rows->form == MT_ROWS_CSV)
        mt_buf_add_text(&rows->out, "\r\n");
}

bool mt_answer_rows_add(void *context, const struct mt_value *values, unsigned count)
{
    struct mt_answer_rows *rows = context;
    bool fits = !rows->omitted && rows->rows < rows->max_rows;

    if (fits) {
        switch (rows->form) {
        case MT_ROWS_CSV: fits = add_csv_row(rows, values, count); break;
        case MT_ROWS_JSON: fits = add_json_row(rows, values, count); break;
        case MT_ROWS_TEXT:
        case MT_ROWS_MARKDOWN: fits = add_table_row(rows, values, count); break;
        }
        rows->is_cut_by_bytes = !fits;
    }
    if (fits)
        rows->rows++;
    else
        rows->omitted++;
    return rows->omitted < MT_MAX_COUNTED_ROWS;
}

/* "123 more rows: --rows N" */
static void add_omitted(struct mt_buf *out, const struct mt_answer_rows *rows, bool is_counted)
{
    char count[MT_UNITS_TEXT];

    mt_buf_printf(out, "%s%s: %s", is_counted ? "" : "at least ",
                  mt_format_counted(count, rows->omitted, "more row"),
                  rows->is_cut_by_bytes ? "--bytes BYTES" : "--rows N");
}

static void add_table(struct mt_answer_rows *rows)
{
    struct mt_table *table = &rows->table;

    for (size_t i = 0; i < table->column_count; i++)
        if (rows->has_number[i] && !rows->has_text[i])
            table->columns[i].kind = MT_NUMBER;
    if (rows->form == MT_ROWS_TEXT) {
        if (!rows->rows)
            mt_buf_add_text(&rows->out, "no rows\n");
        mt_text_table_add(&rows->out, table, 0, mt_stdout_style());
        return;
    }
    mt_markdown_add_head(&rows->out, table);
    for (size_t i = 0; i < mt_table_rows(table); i++)
        mt_markdown_add_row(&rows->out, table, i);
}

int mt_answer_rows_print(struct mt_answer_rows *rows, bool is_counted)
{
    bool is_table = rows->form == MT_ROWS_TEXT || rows->form == MT_ROWS_MARKDOWN;
    struct mt_buf omitted = {0};

    if (rows->omitted)
        add_omitted(&omitted, rows, is_counted);
    if (is_table)
        add_table(rows);
    if (is_table && rows->omitted)
        mt_buf_printf(&rows->out, "%s... %s\n", rows->form == MT_ROWS_MARKDOWN ? "\n" : "",
                      omitted.data);
    if (rows->form == MT_ROWS_JSON)
        end_json(rows);
    if (rows->form == MT_ROWS_CSV && rows->omitted)
        mt_message("%s", omitted.data);
    mt_buf_release(&omitted);
    return mt_print_answer(&rows->out, !is_table);
}

void mt_answer_rows_release(struct mt_answer_rows *rows)
{
    mt_table_release(&rows->table);
    mt_buf_release(&rows->out);
}
