/* Statistics over the rows of a job, and the parameters by which rows are compared. */
#include <stdlib.h>

#include "job_report.h"
#include "job_values.h"
#include "job_work.h"
#include "sorted.h"

/* The parameters by which a row is compared with others. A process that ran out of memory, or whose
 * trace is cut, may have reached its peak with other roles than a whole run. Its parameters count
 * as unknown, so that a broken rank never looks like a stage of its own. */

bool mt_job_is_whole(const struct mt_rank_record *record)
{
    return record->is_complete && !record->has_death && record->outcome != MT_OUTCOME_CUT;
}

void mt_job_find_parameters(struct mt_job_work *work)
{
    struct mt_job_report *report = work->report;

    for (uint32_t i = 0; i < report->row_count; i++)
        if (mt_job_is_whole(report->rows[i].record))
            report->rows[i].parameter_hash = report->rows[i].record->parameter_hash;
}

MT_DEFINE_ORDER(compare_values, struct mt_job_value, MT_ASCENDING(value) || MT_ASCENDING(row))

void mt_job_values_sort(struct mt_job_value *values, uint32_t count)
{
    if (count)
        qsort(values, count, sizeof *values, compare_values);
}

/* The first row with the largest value. */
static uint32_t row_of_max(const struct mt_job_value *values, uint32_t count)
{
    uint32_t i = count - 1;

    while (i && values[i - 1].value == values[count - 1].value)
        i--;
    return values[i].row;
}

struct mt_job_spread mt_job_spread_of(struct mt_job_value *values, uint32_t count)
{
    struct mt_job_spread spread = {
        .min_row = MT_NO_ROW, .median_row = MT_NO_ROW, .max_row = MT_NO_ROW};
    unsigned __int128 sum = 0;

    if (!count)
        return spread;
    mt_job_values_sort(values, count);
    for (uint32_t i = 0; i < count; i++)
        sum += values[i].value;
    spread.count = count;
    spread.min = values[0].value;
    spread.min_row = values[0].row;
    spread.median = values[(count - 1) / 2].value;
    spread.median_row = values[(count - 1) / 2].row;
    spread.max = values[count - 1].value;
    spread.max_row = row_of_max(values, count);
    spread.mean = (uint64_t)(sum / count);
    return spread;
}

uint64_t mt_job_distance(struct mt_job_value *values, uint32_t count, uint64_t middle)
{
    if (!count)
        return 0;
    for (uint32_t i = 0; i < count; i++)
        values[i].value =
            values[i].value > middle ? values[i].value - middle : middle - values[i].value;
    mt_job_values_sort(values, count);
    return values[count / 2].value;
}

uint32_t mt_job_ppm(unsigned __int128 value, unsigned __int128 whole)
{
    while (value >> 104) { /* room for a million */
        value >>= 1;
        whole >>= 1;
    }
    if (!whole)
        return 0;
    unsigned __int128 ppm = value * 1000000 / whole;
    return ppm < UINT32_MAX ? (uint32_t)ppm : UINT32_MAX;
}

MT_DEFINE_ORDER(compare_keys, struct mt_job_key,
                MT_ASCENDING(class) || MT_ASCENDING(key) || MT_ASCENDING(row))

uint32_t mt_job_classes_split(struct mt_job_key *keys, uint32_t count, uint32_t *classes)
{
    uint32_t class = 0;

    if (!count)
        return 0;
    qsort(keys, count, sizeof *keys, compare_keys);
    for (uint32_t i = 0; i < count; i++) {
        if (i && (keys[i].class != keys[i - 1].class || keys[i].key != keys[i - 1].key))
            class ++;
        classes[keys[i].row] = class;
    }
    return class + 1;
}

void mt_job_range_add(struct mt_job_range *ranges, uint32_t *count, int32_t rank)
{
    if (*count && ranges[*count - 1].last == rank)
        return;
    if (*count && ranges[*count - 1].last + 1 == rank)
        ranges[*count - 1].last = rank;
    else
        ranges[(*count)++] = (struct mt_job_range){rank, rank};
}
