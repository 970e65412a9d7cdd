#include "report_rows.h"

#include <stdlib.h>
#include <string.h>

#include "map.h"
#include "report_query.h"
#include "util.h"

struct mt_table_cell mt_length_cell(const struct mt_report *report, const struct mt_phase *phase)
{
    if (mt_report_has_times(report))
        return MT_TIME(phase->begin_t_ns, phase->end_t_ns);
    return MT_COUNT(phase->end_event - mt_min_u64(mt_phase_eve(phase), phase->end_event));
}

struct mt_table_cell mt_step_length_cell(const struct mt_report *report,
                                         const struct mt_step_use *step)
{
    uint64_t begin = mt_min_u64(mt_step_begin(report, step), step->end_event);

    if (mt_report_has_times(report))
        return MT_TIME(step->begin_t_ns, step->end_t_ns);
    return MT_COUNT(step->end_event - begin + 1);
}

void mt_add_step_cells(struct mt_table *table, const struct mt_report *report,
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

void mt_sum_phases(const struct mt_report *report, const struct mt_device_report *device,
                   struct mt_phase_sum *sums, size_t capacity, size_t *count)
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

bool mt_is_large(struct mt_largest *largest, uint64_t value)
{
    if (value != largest->least)
        return value > largest->least;
    if (!largest->equal)
        return false;
    largest->equal--;
    return true;
}
