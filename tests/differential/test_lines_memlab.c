/* Compares `memtrace lines` with pytorch_memlab, which stopped the same script at every line on a
 * GPU and read the allocator's counters (fixtures/workloads/lines.py). Every line that both have
 * and every column that both define is equal to the byte. */
#include "cmocka_all.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "import.h"
#include "line_table.h"
#include "util.h"

enum { TEXT = 1 << 20, MAX_LINES = 64 };

/* memlab's figures of a line: sums over its calls, or the largest, or the last. */
struct truth {
    const char *function; /* without its class */
    uint32_t line;
    uint64_t allocated, allocations, active_peak, active_after, reserved_peak, reserved_after;
    int64_t growth;
};

static struct truth truths[MAX_LINES];
static size_t truth_count;
static json_t *records;

static const char *bare(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot ? dot + 1 : name;
}

static json_t *load_records(void)
{
    FILE *file = fopen(MEMTRACE_FIXTURES "/captures/lines.memlab.json.zst", "rb");
    char *packed = malloc(TEXT), *text = malloc(TEXT);
    json_error_t error;

    assert_non_null(file);
    assert_non_null(packed);
    assert_non_null(text);
    size_t size = ZSTD_decompress(text, TEXT, packed, fread(packed, 1, TEXT, file));
    assert_false(ZSTD_isError(size));
    json_t *root = json_loadb(text, size, 0, &error);
    assert_non_null(root);
    fclose(file);
    free(packed);
    free(text);
    return root;
}

static uint64_t count_of(size_t record, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(json_array_get(records, record), key));
}

static struct truth *truth_of(const char *function, uint32_t line)
{
    for (size_t i = 0; i < truth_count; i++)
        if (truths[i].line == line && !strcmp(truths[i].function, function))
            return &truths[i];
    assert_true(truth_count < MAX_LINES);
    truths[truth_count].function = function;
    truths[truth_count].line = line;
    return &truths[truth_count++];
}

static void add_record(struct truth *truth, size_t i)
{
    truth->allocated += count_of(i, "allocated_bytes.all.allocated");
    truth->allocations += count_of(i, "allocation.all.allocated");
    truth->growth += (int64_t)(count_of(i, "active_bytes.all.allocated") -
                               count_of(i, "active_bytes.all.freed"));
    truth->active_peak = mt_max_u64(truth->active_peak, count_of(i, "active_bytes.all.peak"));
    truth->reserved_peak = mt_max_u64(truth->reserved_peak, count_of(i, "reserved_bytes.all.peak"));
}

/* A record covers the time since the last record of any function; that of a line covers the time
 * since the last record of its function. */
static int load(void **unused)
{
    size_t j;

    (void)unused;
    records = load_records();
    for (size_t i = 0; i < json_array_size(records); i++) {
        const json_t *record = json_array_get(records, i);
        const char *function = bare(json_string_value(json_object_get(record, "function")));
        struct truth *truth = truth_of(function, (uint32_t)count_of(i, "line"));

        for (j = i; j > 0; j--) {
            json_t *before = json_object_get(json_array_get(records, j - 1), "function");

            if (!strcmp(bare(json_string_value(before)), function))
                break;
        }
        for (; j <= i; j++)
            add_record(truth, j);
        truth->active_after = count_of(i, "active_bytes.all.current");
        truth->reserved_after = count_of(i, "reserved_bytes.all.current");
    }
    return 0;
}

static int unload(void **unused)
{
    (void)unused;
    json_decref(records);
    return 0;
}

static void open_table(const char *path, struct mt_source **source, struct mt_line_table *table)
{
    struct mt_error error = {0};

    if (mt_import_open_any(path, source, &error) != MT_OK ||
        mt_line_table_read(*source, table, &error) != MT_OK)
        fail_msg("%s: %s", path, error.text);
}

static const struct mt_line_use *line_of(const struct mt_source *source,
                                         const struct mt_line_table *table,
                                         const struct truth *truth)
{
    const struct mt_line_device *device = &table->devices[0];

    for (uint32_t f = 0; f < device->function_count; f++) {
        const struct mt_line_function *function = &device->functions[f];

        if (strcmp(bare(mt_symbols_text(&source->symbols, function->function)), truth->function) ||
            function->origin != MT_ORIGIN_USER)
            continue;
        for (uint32_t i = 0; i < function->line_count; i++)
            if (source->symbols.frames[function->lines[i].frame].line == truth->line)
                return &function->lines[i];
    }
    return NULL;
}

TEST(every_line_is_as_memlab_reports)
{
    struct mt_line_table table;
    struct mt_source *source;
    size_t i, seen = 0;

    open_table(MEMTRACE_FIXTURES "/captures/lines.pickle.zst", &source, &table);
    assert_true(table.has_frees && table.sizes_are_exact);
    assert_int_equal(table.devices[0].unseen_allocations, 0);
    for (i = 0; i < truth_count; i++) {
        const struct truth *truth = &truths[i];
        const struct mt_line_use *line = line_of(source, &table, truth);

        if (!line)
            continue;
        print_message("%s:%u\n", truth->function, truth->line);
        assert_int_equal(line->allocated_bytes, truth->allocated);
        assert_int_equal(line->allocations, truth->allocations);
        assert_int_equal(line->growth_bytes, truth->growth);
        assert_int_equal(line->peak.active, truth->active_peak);
        assert_int_equal(line->after.active, truth->active_after);
        assert_int_equal(line->peak.reserved, truth->reserved_peak);
        assert_int_equal(line->after.reserved, truth->reserved_after);
        seen++;
    }
    assert_int_equal(seen, 19);
    mt_line_table_release(&table);
    mt_source_close(source);
}

/* Missing lines did not allocate while they ran: the record of a def line covers the time before
 * the call. */
TEST(no_line_that_allocates_is_missing)
{
    struct mt_line_table table;
    struct mt_source *source;

    open_table(MEMTRACE_FIXTURES "/captures/lines.pickle.zst", &source, &table);
    for (size_t i = 0; i < truth_count; i++) {
        bool is_def = (truths[i].line == 20 && !strcmp(truths[i].function, "forward")) ||
                      (truths[i].line == 31 && !strcmp(truths[i].function, "step"));

        if (!is_def && !line_of(source, &table, &truths[i]))
            assert_true(truths[i].allocations == 0 && truths[i].growth == 0);
    }
    mt_line_table_release(&table);
    mt_source_close(source);
}

/* Backward has 53 blocks. All except the first of each of four passes are from its own threads. */
TEST(backward_is_charged_to_the_line_that_waits)
{
    const struct truth wanted = {.function = "step", .line = 39};
    struct mt_line_table table;
    struct mt_source *source;

    open_table(MEMTRACE_FIXTURES "/captures/lines.pickle.zst", &source, &table);
    const struct mt_line_use *line = line_of(source, &table, &wanted);
    assert_non_null(line);
    assert_int_equal(line->allocations, 53);
    assert_int_equal(line->allocated_bytes - line->engine_bytes, 4 * 512);
    assert_int_equal(line->own_bytes, line->allocated_bytes);
    mt_line_table_release(&table);
    mt_source_close(source);
}

int main(void)
{
    return run_tests_of_file(load, unload);
}
