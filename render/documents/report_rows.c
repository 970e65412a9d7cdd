/* Rows of tables about a report: phases, sites, modules and pools. */
#include <stdlib.h>
#include <string.h>

#include "ascii.h"
#include "map.h"
#include "report.h"
#include "report_query.h"
#include "report_rows.h"
#include "table.h"
#include "units.h"
#include "util.h"

/* The name of layers that were identified only by their parameters (module_blocks.c). */
#define LAYER_WITHOUT_NAME "layer"

/* The roles that have a column, in the order of the titles. */
static const enum mt_role columns[] = {MT_ROLE_PARAMETERS, MT_ROLE_GRADIENTS,
                                       MT_ROLE_OPTIMIZER_STATE, MT_ROLE_ACTIVATIONS,
                                       MT_ROLE_TEMPORARIES};

bool mt_modules_has_rows(const struct mt_modules *modules)
{
    return modules && modules->row_count &&
           (modules->rows[0].kind == MT_MODULE_LAYER || modules->rows[0].kind == MT_MODULE_OTHER);
}

/* Returns the number of groups among the layers up to and including row `index`. */
static uint32_t groups_to(const struct mt_modules *modules, uint32_t index)
{
    uint32_t groups = 1;

    for (uint32_t i = 1; i <= index && i < modules->layer_count; i++)
        groups += modules->rows[i].group != modules->rows[i - 1].group;
    return groups;
}

static void add_row(struct mt_table *table, const struct mt_module_row *row, const char *name)
{
    MT_CELLS(table, MT_BYTES(row->bytes));
    for (size_t i = 0; i < MT_ARRAY_LEN(columns); i++)
        if (row->role_bytes[columns[i]])
            MT_CELLS(table, MT_BYTES(row->role_bytes[columns[i]]));
        else
            mt_table_skip(table, 1);
    MT_CELLS(table, MT_SITE(name));
}

/* Returns the name of a row: "layer 3", or "2.3 Bottleneck" in the second of several groups. */
static const char *module_name_of(struct mt_table *table, const struct mt_modules *modules,
                                  uint32_t index)
{
    const struct mt_module_row *row = &modules->rows[index];

    if (row->kind != MT_MODULE_LAYER)
        return row->path;
    if (groups_to(modules, modules->layer_count) == 1)
        return mt_arena_printf(&table->texts, "layer %u", row->layer);
    return mt_arena_printf(&table->texts, "%u.%u %s", groups_to(modules, index), row->layer,
                           mt_base_name(row->path));
}

static void absorb(struct mt_module_row *rest, const struct mt_module_row *row)
{
    rest->bytes += row->bytes;
    for (uint32_t role = 0; role < MT_ROLE_COUNT; role++)
        rest->role_bytes[role] += row->role_bytes[role];
}

void mt_report_rows_add_modules(struct mt_table *table, const struct mt_modules *modules,
                                uint32_t most)
{
    for (uint32_t i = 0, end; i < modules->row_count; i = end) {
        struct mt_module_row rest = {.kind = modules->rows[i].kind};
        uint32_t told = 0;

        for (end = i; end < modules->row_count && modules->rows[end].kind == rest.kind; end++) {
            const struct mt_module_row *row = &modules->rows[end];

            if (told++ < most)
                add_row(table, row, module_name_of(table, modules, end));
            else
                absorb(&rest, row);
        }
        if (told > most)
            add_row(table, &rest,
                    mt_arena_printf(&table->texts, "%u more %s", told - most,
                                    rest.kind == MT_MODULE_LAYER ? "layers" : "modules"));
    }
}

const char *mt_module_group_text(struct mt_arena *arena, const struct mt_modules *modules,
                                 uint32_t *row)
{
    uint32_t begin = *row, end = begin;
    const char *path = modules->rows[begin].path;
    bool is_named = strcmp(path, LAYER_WITHOUT_NAME) != 0;

    while (end < modules->layer_count && modules->rows[end].group == modules->rows[begin].group)
        end++;
    *row = end;
    bool is_alone = begin == 0 && end == modules->layer_count;
    if (is_alone)
        return mt_arena_printf(arena, "%u layers%s%s", end - begin, is_named ? " " : "",
                               is_named ? path : "");
    return mt_arena_printf(arena, "%u: %u layers%s%s", groups_to(modules, begin), end - begin,
                           is_named ? " " : "", is_named ? path : "");
}

/* Returns the part that begins at row *row, and moves *row after it. */
static struct mt_module_part next_part(const struct mt_modules *modules, uint32_t *row)
{
    struct mt_module_part part = {.row = *row};
    const uint32_t group = modules->rows[*row].group;

    if (*row >= modules->layer_count) {
        part.bytes = modules->rows[(*row)++].bytes;
        return part;
    }
    for (; *row < modules->layer_count && modules->rows[*row].group == group; ++*row) {
        part.bytes += modules->rows[*row].bytes;
        part.layers++;
    }
    return part;
}

/* Orders parts by bytes, largest first, then by row. */
static bool is_before(const struct mt_module_part *part, const struct mt_module_part *than)
{
    return part->bytes != than->bytes ? part->bytes > than->bytes : part->row < than->row;
}

uint32_t mt_largest_module_parts(const struct mt_modules *modules, struct mt_module_part *parts,
                                 uint32_t most)
{
    uint32_t count = 0;

    if (!mt_modules_has_rows(modules))
        return 0;
    for (; count < most; count++) {
        struct mt_module_part best = {.bytes = 0};

        for (uint32_t row = 0; row < modules->row_count;) {
            const enum mt_module_kind kind = modules->rows[row].kind;
            const struct mt_module_part part = next_part(modules, &row);

            if (kind <= MT_MODULE_BESIDE && is_before(&part, &best) &&
                (!count || is_before(&parts[count - 1], &part)))
                best = part;
        }
        if (!best.bytes)
            break;
        parts[count] = best;
    }
    return count;
}

const char *mt_module_part_text(struct mt_arena *arena, const struct mt_modules *modules,
                                const struct mt_module_part *part)
{
    const struct mt_module_row *row = &modules->rows[part->row];
    const bool is_named = strcmp(row->path, LAYER_WITHOUT_NAME) != 0;

    if (row->kind == MT_MODULE_BESIDE)
        return "parameters outside layers, their gradients and state";
    if (!part->layers)
        return mt_base_name(row->path);
    return mt_arena_printf(arena, "%u layer%s%s%s", part->layers, part->layers == 1 ? "" : "s",
                           is_named ? " " : "", is_named ? mt_base_name(row->path) : "");
}

static const char *pool_name_of(struct mt_table *table, const struct mt_pool_use *pool)
{
    if (pool->is_inferred)
        return "private, inferred";
    if (!pool->id[0] && !pool->id[1])
        return "default";
    return mt_arena_printf(&table->texts, "(%llu, %llu)", (unsigned long long)pool->id[0],
                           (unsigned long long)pool->id[1]);
}

/* Adds a row that sums pools. Peaks have no sum, because the peaks of pools are at different
 * instants. */
static void add_rest(struct mt_table *table, const struct mt_device_report *device, uint32_t from)
{
    struct mt_pool_use rest = {0};
    char count[MT_UNITS_TEXT];

    for (uint32_t i = from; i < device->pool_count; i++) {
        rest.reserved_bytes += device->pools[i].reserved_bytes;
        rest.allocated_bytes += device->pools[i].allocated_bytes;
        rest.segments += device->pools[i].segments;
    }
    mt_format_count(count, device->pool_count - from);
    MT_CELLS(table, MT_TEXT(mt_arena_printf(&table->texts, "%s more", count)),
             MT_BYTES(rest.reserved_bytes), MT_TEXT(""), MT_BYTES(rest.allocated_bytes),
             MT_TEXT(""), MT_COUNT(rest.segments), MT_TEXT(""));
}

void mt_report_rows_add_pools(struct mt_table *table, const struct mt_device_report *device,
                              uint32_t most)
{
    uint32_t i;

    for (i = 0; i < device->pool_count && i < most; i++) {
        const struct mt_pool_use *pool = &device->pools[i];

        MT_CELLS(table, MT_TEXT(pool_name_of(table, pool)), MT_BYTES(pool->reserved_bytes),
                 MT_BYTES(pool->reserved_peak_bytes), MT_BYTES(pool->allocated_bytes),
                 MT_BYTES(pool->allocated_peak_bytes), MT_COUNT(pool->segments),
                 MT_SITE(pool->site ? pool->site : ""));
    }
    if (i < device->pool_count)
        add_rest(table, device, i);
}

struct mt_table_cell mt_length_cell(const struct mt_report *report, const struct mt_phase *phase)
{
    if (mt_report_has_times(report))
        return MT_TIME(phase->begin_t_ns, phase->end_t_ns);
    return MT_COUNT(phase->end_event -
                    mt_min_u64(mt_phase_last_event_before(phase), phase->end_event));
}

struct mt_table_cell mt_step_length_cell(const struct mt_report *report,
                                         const struct mt_step_use *step)
{
    uint64_t begin = mt_min_u64(mt_step_begin(report, step), step->end_event);

    if (mt_report_has_times(report))
        return MT_TIME(step->begin_t_ns, step->end_t_ns);
    return MT_COUNT(step->end_event - begin + 1);
}

void mt_report_rows_add_step(struct mt_table *table, const struct mt_report *report,
                             const struct mt_step_use *step)
{
    uint64_t before = step->enter.allocated, after = step->exit.allocated;

    MT_CELLS(table, MT_INTEGER(step->step), MT_BYTES(before), MT_BYTES(step->peak.allocated),
             MT_BYTES(after), MT_CHANGE((int64_t)(after - before)), MT_BYTES(step->peak.reserved),
             mt_step_length_cell(report, step));
}

static void add_phase(struct mt_phase_sum *sum, const struct mt_phase *phase,
                      const struct mt_phase_use *use)
{
    int64_t change = (int64_t)(use->exit.allocated - use->enter.allocated);

    if (!sum->instances || change > sum->most_left)
        sum->most_left = change;
    if (mt_magnitude(change) > mt_magnitude(sum->largest_change))
        sum->largest_change = change;
    sum->name = phase->name;
    sum->instances++;
    sum->change += change;
    sum->time_ns += phase->end_t_ns > phase->begin_t_ns ? phase->end_t_ns - phase->begin_t_ns : 0;
    sum->allocations += use->allocations;
    sum->frees += use->frees;
    sum->peak_bytes = mt_max_u64(sum->peak_bytes, use->peak.allocated);
}

void mt_report_rows_sum_phases(const struct mt_report *report,
                               const struct mt_device_report *device, struct mt_phase_sum *sums,
                               size_t capacity, size_t *count)
{
    struct mt_strings names = {0};

    memset(sums, 0, capacity * sizeof *sums);
    for (uint32_t i = 0; i < report->phase_count && device->phase_uses; i++) {
        const struct mt_phase *phase = &report->phases[i];
        uint32_t id;

        if (!report->main_phase[i] || !mt_report_covers(report, device, phase->end_event))
            continue;
        mt_strings_put(&names, phase->name, strlen(phase->name), &id);
        if (id < capacity)
            add_phase(&sums[id], phase, &device->phase_uses[i]);
    }
    *count = names.count;
    mt_strings_release(&names);
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? 1 : -(x > y);
}

struct mt_largest mt_largest_of(uint64_t *values, size_t count, uint32_t most)
{
    struct mt_largest largest = {0, SIZE_MAX};

    if (!values || count <= most || !most)
        return largest;
    qsort(values, count, sizeof *values, by_size);
    largest.least = values[most - 1];
    for (largest.equal = 0; largest.equal < most; largest.equal++)
        if (values[most - 1 - largest.equal] != largest.least)
            break;
    return largest;
}

bool mt_report_rows_is_large(struct mt_largest *largest, uint64_t value)
{
    if (value != largest->least)
        return value > largest->least;
    if (!largest->equal)
        return false;
    largest->equal--;
    return true;
}
