#include "table_layout.h"

#include <string.h>

#include "cli.h"
#include "site.h"
#include "text_width.h"

enum { MIN_WIDTH = 8, MIN_SITE_WIDTH = 20, GAP = 2 };

/* Natural and minimal widths of a column. */
struct demand {
    size_t cells;      /* widest cell */
    size_t heads;      /* widest cell, for sites without the user's place */
    size_t title;      /* title in one line */
    size_t title_word; /* longest word of the title */
    bool is_site;
};

static size_t longest_word(const char *title)
{
    size_t most = 0;

    for (const char *at = title; *at; at += *at == ' ') {
        size_t length = strcspn(at, " ");

        most = mt_max_u64(most, mt_text_columns(at, length));
        at += length;
    }
    return most;
}

static void add_demand(struct demand *demand, const struct mt_table_cell *cell, const char *words)
{
    size_t length = strlen(words);
    bool is_site = cell->type == MT_TABLE_SITE;

    demand->is_site |= is_site;
    demand->cells = mt_max_u64(demand->cells, mt_text_columns(words, length));
    if (is_site)
        length = mt_site_label_head(words);
    demand->heads = mt_max_u64(demand->heads, mt_text_columns(words, length));
}

static void find_demands(const struct mt_table *table, const char *words, struct demand *demands)
{
    for (size_t i = 0; i < table->column_count; i++, words += strlen(words) + 1) {
        demands[i] = (struct demand){.title = mt_text_columns(words, strlen(words)),
                                     .title_word = longest_word(words)};
    }
    for (size_t i = 0; i < table->cell_count; i++, words += strlen(words) + 1)
        add_demand(&demands[i % table->column_count], &table->cells[i], words);
}

static size_t total(const struct mt_table_layout *layout, const struct mt_table *table,
                    size_t indent)
{
    size_t columns = indent, shown = 0;

    for (size_t i = 0; i < table->column_count; i++)
        if (i != layout->apart)
            columns += layout->widths[i] + (shown++ ? GAP : 0);
    return columns;
}

/* Narrows a column by at most `too_much`. Returns the rest of `too_much`. */
static size_t give_way(size_t *width, size_t least, size_t too_much)
{
    size_t gives = mt_min_u64(mt_sub_or_0_u64(*width, least), too_much);

    *width -= gives;
    return too_much - gives;
}

static void be_natural(struct mt_table_layout *layout, const struct mt_table *table,
                       const struct demand *demands)
{
    for (size_t i = 0; i < table->column_count; i++)
        layout->widths[i] = mt_max_u64(
            demands[i].cells, layout->splits_titles ? demands[i].title_word : demands[i].title);
}

/* Fits a table for output that is not a terminal. */
static void fit_page(struct mt_table_layout *layout, const struct mt_table *table,
                     const struct demand *demands, size_t too_much)
{
    for (size_t i = 0; i < table->column_count; i++)
        if (table->columns[i].kind == MT_NAME ||
            (table->columns[i].kind == MT_KEY && demands[i].is_site))
            too_much = give_way(&layout->widths[i], MIN_WIDTH, too_much);
}

/* Shortens columns of one kind, except sites and the separate column. Always shortens the widest
 * column, so that short words stay complete. */
static size_t shorten_words(struct mt_table_layout *layout, const struct mt_table *table,
                            const struct demand *demands, enum mt_column_kind kind, size_t too_much)
{
    size_t *widest, least = MIN_WIDTH;

    for (; too_much; too_much--, --*widest) {
        widest = &least;
        for (size_t i = 0; i < table->column_count; i++)
            if (table->columns[i].kind == kind && !demands[i].is_site && i != layout->apart &&
                layout->widths[i] > *widest)
                widest = &layout->widths[i];
        if (widest == &least)
            break;
    }
    return too_much;
}

/* Narrows columns without shortening sites. Returns by how many characters the table is still too
 * wide. */
static size_t fit_columns(struct mt_table_layout *layout, const struct mt_table *table,
                          const struct demand *demands, size_t indent)
{
    size_t too_much;

    be_natural(layout, table, demands);
    too_much = mt_sub_or_0_u64(total(layout, table, indent), layout->columns);
    for (size_t i = 0; i < table->column_count; i++)
        if (demands[i].is_site && table->columns[i].kind != MT_KEY)
            too_much = give_way(&layout->widths[i],
                                mt_max_u64(demands[i].heads, demands[i].title_word), too_much);
    too_much = shorten_words(layout, table, demands, MT_NAME, too_much);
    return shorten_words(layout, table, demands, MT_WORDS, too_much);
}

static size_t shorten_sites(struct mt_table_layout *layout, const struct mt_table *table,
                            const struct demand *demands, size_t least, size_t too_much)
{
    for (size_t i = 0; i < table->column_count; i++)
        if (demands[i].is_site && table->columns[i].kind != MT_KEY)
            too_much = give_way(&layout->widths[i], least, too_much);
    return too_much;
}

static void fit_terminal(struct mt_table_layout *layout, const struct mt_table *table,
                         const struct demand *demands, size_t indent)
{
    size_t too_much;

    layout->splits_titles = true;
    too_much = fit_columns(layout, table, demands, indent);
    for (size_t i = 0; too_much && i < table->column_count; i++)
        if (table->columns[i].kind == MT_KEY) {
            layout->apart = i;
            too_much = fit_columns(layout, table, demands, indent);
            break;
        }
    too_much = shorten_sites(layout, table, demands, MIN_SITE_WIDTH, too_much);
    (void)shorten_sites(layout, table, demands, MIN_WIDTH, too_much);
}

void mt_table_lay_out(struct mt_table_layout *layout, const struct mt_table *table,
                      const char *words, size_t indent)
{
    const struct mt_screen screen = mt_stdout_screen();
    struct demand demands[MT_TABLE_COLUMNS];
    size_t all;

    *layout = (struct mt_table_layout){
        .columns = screen.columns, .apart = MT_TABLE_COLUMNS, .titles = words};
    find_demands(table, words, demands);
    be_natural(layout, table, demands);
    all = total(layout, table, indent);
    if (all > layout->columns && screen.is_terminal)
        fit_terminal(layout, table, demands, indent);
    else if (all > layout->columns)
        fit_page(layout, table, demands, all - layout->columns);
    all = total(layout, table, indent);
    if (layout->apart + 1 == table->column_count && all + GAP < layout->columns)
        layout->room_columns = layout->columns - all - GAP;
}
