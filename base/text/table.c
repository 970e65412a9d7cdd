#include "table.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "grow.h"
#include "units.h"

void mt_table_begin(struct mt_table *table, const char *titles)
{
    *table = (struct mt_table){.failed = false};
    mt_table_columns(table, titles);
}

static enum mt_column_kind kind_of(char mark)
{
    switch (mark) {
    case '#': return MT_NUMBER;
    case '~': return MT_NAME;
    case '!': return MT_KEY;
    default: return MT_WORDS;
    }
}

void mt_table_column(struct mt_table *table, const char *title, size_t length,
                     enum mt_column_kind kind)
{
    struct mt_table_column *column = &table->columns[table->column_count];

    MT_ASSERT(table->column_count < MT_TABLE_COLUMNS);
    table->column_count++;
    column->kind = kind;
    column->title = mt_arena_text(&table->texts, title, length);
    if (!column->title) {
        table->failed = true;
        column->title = "";
    }
}

void mt_table_columns(struct mt_table *table, const char *titles)
{
    for (size_t length;; titles += length + 1) {
        size_t mark = *titles == '#' || *titles == '~' || *titles == '!';

        length = strcspn(titles, "|");
        mt_table_column(table, titles + mark, length - mark, kind_of(*titles));
        if (!titles[length])
            return;
    }
}

void mt_table_add(struct mt_table *table, const struct mt_table_cell *cells, size_t count)
{
    if (table->cell_count + count > table->capacity &&
        mt_grow(&table->cells, &table->capacity, table->cell_count + count, sizeof *cells)) {
        table->failed = true;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        struct mt_table_cell *cell = &table->cells[table->cell_count++];

        *cell = cells[i];
        if (mt_cell_is_number(cell))
            continue;
        cell->text = cell->text ? mt_arena_text(&table->texts, cell->text, strlen(cell->text)) : "";
        if (!cells[i].text || !cell->text) {
            table->failed = true;
            cell->text = "";
        }
    }
}

void mt_table_skip(struct mt_table *table, size_t count)
{
    for (; count; count--)
        MT_CELLS(table, MT_TEXT(""));
}

void mt_table_release(struct mt_table *table)
{
    free(table->cells);
    mt_arena_release(&table->texts);
    *table = (struct mt_table){0};
}

bool mt_cell_is_number(const struct mt_table_cell *cell)
{
    return cell->type >= MT_TABLE_COUNT;
}

size_t mt_table_rows(const struct mt_table *table)
{
    return table->column_count ? table->cell_count / table->column_count : 0;
}

static void add_change(struct mt_buf *out, int64_t change, uint64_t from)
{
    char text[MT_UNITS_TEXT];

    mt_buf_add_text(out, mt_format_change(text, change));
    if (from && change)
        mt_buf_printf(out, " (%s%s)", change > 0 ? "+" : "\xE2\x88\x92",
                      mt_format_percent(text, (double)mt_magnitude(change) / (double)from));
}

static double share_of(const struct mt_table_cell *cell)
{
    return cell->whole ? (double)cell->number / (double)cell->whole : 0;
}

void mt_add_number(struct mt_buf *out, const struct mt_table_cell *cell)
{
    uint64_t number = cell->number;
    char text[MT_UNITS_TEXT];

    switch (cell->type) {
    case MT_TABLE_TEXT:
    case MT_TABLE_SENTENCE:
    case MT_TABLE_SITE: return;
    case MT_TABLE_COUNT: mt_buf_add_text(out, mt_format_count(text, number)); return;
    case MT_TABLE_INTEGER: mt_buf_add_i64(out, (int64_t)number); return;
    case MT_TABLE_BYTES: mt_buf_add_text(out, mt_format_bytes(text, number)); return;
    case MT_TABLE_CHANGE: add_change(out, (int64_t)number, cell->whole); return;
    case MT_TABLE_SHARE: mt_buf_add_text(out, mt_format_percent(text, share_of(cell))); return;
    case MT_TABLE_TIME: mt_buf_add_text(out, mt_format_duration(text, number)); return;
    }
}
