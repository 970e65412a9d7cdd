/* The table of modules: omitted modules are summed in one row. */
#include "cmocka_all.h"

#include <string.h>

#include "report_rows.h"

enum { LAYERS = 5, OTHERS = 2, ROWS = LAYERS + OTHERS };

static struct mt_modules make(struct mt_module_row rows[ROWS])
{
    static const char *const paths[] = {"Net/A", "Net/A", "Net/A",      "Net/B",
                                        "Net/B", "Net",   "(not known)"};

    memset(rows, 0, ROWS * sizeof *rows);
    for (uint32_t i = 0; i < ROWS; i++) {
        rows[i].kind = i < LAYERS     ? MT_MODULE_LAYER
                       : i + 1 < ROWS ? MT_MODULE_OTHER
                                      : MT_MODULE_UNKNOWN;
        rows[i].path = rows[i].label = paths[i];
        rows[i].layer = i < 3 ? i : i < LAYERS ? i - 3 : MT_NO_LAYER;
        rows[i].group = i < 3 ? 4 : 7;
        rows[i].role_bytes[MT_ROLE_PARAMETERS] = rows[i].bytes = 1u << i;
    }
    return (struct mt_modules){.rows = rows, .row_count = ROWS, .layer_count = LAYERS};
}

static const char *name_at(const struct mt_table *table, size_t row)
{
    return table->cells[row * table->column_count + table->column_count - 1].text;
}

static uint64_t sum_of(const struct mt_table *table, size_t column)
{
    uint64_t sum = 0;

    for (size_t row = 0; row < mt_table_rows(table); row++)
        sum += table->cells[row * table->column_count + column].number;
    return sum;
}

TEST(all_rows)
{
    struct mt_module_row rows[ROWS];
    struct mt_modules modules = make(rows);
    struct mt_table table;

    mt_table_begin(&table, MT_MODULE_TITLES);
    mt_report_rows_add_modules(&table, &modules, 100);
    assert_int_equal(mt_table_rows(&table), ROWS);
    assert_string_equal(name_at(&table, 0), "1.0 A");
    assert_string_equal(name_at(&table, 4), "2.1 B");
    assert_string_equal(name_at(&table, 5), "Net");
    assert_int_equal(sum_of(&table, 0), (1u << ROWS) - 1);
    assert_int_equal(sum_of(&table, 1), (1u << ROWS) - 1);
    assert_int_equal(sum_of(&table, 2), 0);
    mt_table_release(&table);
}

TEST(few_rows)
{
    struct mt_module_row rows[ROWS];
    struct mt_modules modules = make(rows);
    struct mt_table table;

    mt_table_begin(&table, MT_MODULE_TITLES);
    mt_report_rows_add_modules(&table, &modules, 2);
    assert_int_equal(mt_table_rows(&table), 2 + 1 + OTHERS);
    assert_string_equal(name_at(&table, 2), "3 more layers");
    assert_int_equal(sum_of(&table, 0), (1u << ROWS) - 1);
    assert_int_equal(sum_of(&table, 1), (1u << ROWS) - 1);
    mt_table_release(&table);
}

TEST(groups)
{
    struct mt_module_row rows[ROWS];
    struct mt_modules modules = make(rows);
    struct mt_arena arena = {0};
    uint32_t row = 0;

    assert_string_equal(mt_module_group_text(&arena, &modules, &row), "1: 3 layers Net/A");
    assert_string_equal(mt_module_group_text(&arena, &modules, &row), "2: 2 layers Net/B");
    assert_int_equal(row, LAYERS);
    modules.layer_count = 3;
    row = 0;
    assert_string_equal(mt_module_group_text(&arena, &modules, &row), "3 layers Net/A");
    mt_arena_release(&arena);
}

TEST(has_modules)
{
    struct mt_module_row rows[ROWS];
    struct mt_modules modules = make(rows);

    assert_true(mt_modules_has_rows(&modules));
    modules.rows = &rows[ROWS - 1];
    modules.row_count = 1;
    assert_false(mt_modules_has_rows(&modules));
    modules.row_count = 0;
    assert_false(mt_modules_has_rows(&modules));
    assert_false(mt_modules_has_rows(NULL));
}

/* Sums of layers are compared, not the largest layer: 7, 24, 32 and 64 of no module. */
TEST(largest_parts)
{
    struct mt_module_row rows[ROWS];
    struct mt_modules modules = make(rows);
    struct mt_module_part parts[4];
    struct mt_arena arena = {0};

    assert_int_equal(mt_largest_module_parts(&modules, parts, 4), 3);
    assert_int_equal(parts[0].bytes, 32);
    assert_int_equal(parts[1].bytes, 24);
    assert_int_equal(parts[2].bytes, 7);
    assert_string_equal(mt_module_part_text(&arena, &modules, &parts[0]), "Net");
    assert_string_equal(mt_module_part_text(&arena, &modules, &parts[1]), "2 layers B");
    assert_string_equal(mt_module_part_text(&arena, &modules, &parts[2]), "3 layers A");
    assert_int_equal(mt_largest_module_parts(&modules, parts, 1), 1);
    rows[5].bytes = 24; /* as much as the previous layers */
    assert_int_equal(mt_largest_module_parts(&modules, parts, 4), 3);
    assert_int_equal(parts[0].row, 3);
    assert_int_equal(parts[1].row, 5);
    assert_int_equal(mt_largest_module_parts(NULL, parts, 4), 0);
    mt_arena_release(&arena);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
