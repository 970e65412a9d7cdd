#include "job_tables.h"

#include <stdlib.h>

#include "job_words.h"
#include "process_memory.h"
#include "sorted.h"

static const char *name_of(const struct mt_job_rows *rows, uint32_t row)
{
    return mt_job_row_name(rows->arena, rows->report, row);
}

static const char *site_of(const struct mt_job_rows *rows, uint32_t path)
{
    return mt_job_site_text(rows->arena, rows->report, path);
}

static uint32_t shown(const struct mt_job_rows *rows, uint32_t count)
{
    return (uint32_t)mt_min_u64(rows->limit, count);
}

static struct mt_table_cell change_of(uint64_t bytes, bool is_less)
{
    int64_t change = (int64_t)mt_min_u64(bytes, INT64_MAX);

    return MT_CHANGE(is_less ? -change : change);
}

static const char *cause_of(const struct mt_job_rows *rows, const struct mt_job_outlier *outlier)
{
    switch (outlier->cause) {
    case MT_OUTLIER_LIBRARY: return *outlier->library ? outlier->library : "an unknown library";
    case MT_OUTLIER_UNUSED: return "reserved and not allocated";
    case MT_OUTLIER_GROWTH:
    case MT_OUTLIER_SITE: break;
    }
    return outlier->path == MT_NO_PATH ? "call paths that are too small to be kept"
                                       : site_of(rows, outlier->path);
}

uint32_t mt_job_outliers_table(struct mt_table *table, const struct mt_job_rows *rows)
{
    const struct mt_job_report *report = rows->report;
    uint32_t count = shown(rows, report->outlier_count);

    mt_table_begin(table, "!rank|#difference|of|#median|#replicas|#every step|#of that|~from");
    for (uint32_t i = 0; i < count; i++) {
        const struct mt_job_outlier *outlier = &report->outliers[i];

        MT_CELLS(table, MT_TEXT(name_of(rows, outlier->row)),
                 change_of(outlier->bytes, outlier->is_less),
                 MT_TEXT(mt_job_metric_name(outlier->metric)), MT_BYTES(outlier->median_bytes),
                 MT_COUNT(outlier->replicas),
                 outlier->growth_bytes_per_step ? change_of(outlier->growth_bytes_per_step, false)
                                                : MT_TEXT(""),
                 outlier->path_bytes ? MT_BYTES(outlier->path_bytes) : MT_TEXT(""),
                 MT_SITE(cause_of(rows, outlier)));
    }
    return report->outlier_count - count;
}

/* A row and the number that orders it. */
struct keyed_row {
    uint64_t key;
    uint32_t row;
};

MT_DEFINE_ORDER(compare_keys, struct keyed_row, MT_ASCENDING(key) || MT_ASCENDING(row))

/* Returns the rows sorted by key. Rows without a key (UINT64_MAX) are last. */
static struct keyed_row *sort_rows(const struct mt_job_report *report,
                                   uint64_t (*key_of)(const struct mt_rank_record *record))
{
    struct keyed_row *sorted = mt_memory_zeroed((size_t)report->row_count + 1, sizeof *sorted);

    for (uint32_t i = 0; i < report->row_count; i++)
        sorted[i] = (struct keyed_row){key_of(report->rows[i].record), i};
    qsort(sorted, report->row_count, sizeof *sorted, compare_keys);
    return sorted;
}

/* Returns the key of a death, its time of day. Deaths without one come last. */
static uint64_t death_of(const struct mt_rank_record *record)
{
    if (!record->has_death)
        return UINT64_MAX;
    return mt_job_has_clock(record->death_t_ns) ? record->death_t_ns : UINT64_MAX - 1;
}

static void add_death(struct mt_table *table, const struct mt_job_rows *rows, uint32_t row)
{
    const struct mt_rank_record *record = rows->report->rows[row].record;

    MT_CELLS(table, MT_TEXT(name_of(rows, row)), MT_TEXT(record->identity.host),
             MT_TIME(record->begin_t_ns, record->death_t_ns), MT_BYTES(record->death_wanted_bytes),
             MT_BYTES(record->death_free_bytes), MT_BYTES(record->reserved_peak.bytes),
             MT_SITE(record->death_site == MT_NO_PATH ? "not known"
                                                      : site_of(rows, record->death_site)));
}

uint32_t mt_job_deaths_table(struct mt_table *table, const struct mt_job_rows *rows)
{
    const struct mt_job_report *report = rows->report;
    struct keyed_row *sorted = sort_rows(report, death_of);
    uint32_t count = 0;

    mt_table_begin(table, "!rank|host|#after its start|#requested|#free|#reserved|~in");
    for (uint32_t i = 0; i < report->row_count; i++) {
        if (!report->rows[sorted[i].row].record->has_death)
            continue;
        if (count < rows->limit)
            add_death(table, rows, sorted[i].row);
        count++;
    }
    free(sorted);
    return count - shown(rows, count);
}

uint32_t mt_job_axis_table(struct mt_table *table, const struct mt_job_rows *rows,
                           const struct mt_job_axis *axis)
{
    uint32_t count = shown(rows, axis->group_count);

    mt_table_begin(table, "#coordinate|#ranks|#min|#median|#max|!on");
    for (uint32_t i = 0; i < count; i++) {
        const struct mt_job_spread *reserved = &axis->groups[i].reserved;

        MT_CELLS(table, MT_INTEGER(axis->groups[i].coordinate), MT_COUNT(reserved->count),
                 MT_BYTES(reserved->min), MT_BYTES(reserved->median), MT_BYTES(reserved->max),
                 MT_TEXT(name_of(rows, reserved->max_row)));
    }
    return axis->group_count - count;
}

uint32_t mt_job_paths_table(struct mt_table *table, const struct mt_job_rows *rows)
{
    uint32_t count = shown(rows, rows->report->path_count);

    mt_table_begin(table, "#mean|#min|#max|!on|#ranks|role|~site");
    for (uint32_t i = 0; i < count; i++) {
        const struct mt_job_path *path = &rows->report->paths[i];

        MT_CELLS(table, MT_BYTES(path->mean_bytes), MT_BYTES(path->min_bytes),
                 MT_BYTES(path->max_bytes), MT_TEXT(name_of(rows, path->max_row)),
                 MT_COUNT(path->row_count), MT_TEXT(mt_role_name(path->role)),
                 MT_SITE(path->path == MT_NO_PATH ? "no stack, or too small to be kept"
                                                  : site_of(rows, path->path)));
    }
    return rows->report->path_count - count;
}

uint32_t mt_job_steps_table(struct mt_table *table, const struct mt_job_rows *rows)
{
    uint32_t count = shown(rows, rows->report->step_count);

    mt_table_begin(table, "#step|#to|#ranks|#highest reserved|!on|#lowest reserved|"
                          "#highest allocated|!on");
    for (uint32_t i = 0; i < count; i++) {
        const struct mt_job_step *step = &rows->report->steps[i];

        MT_CELLS(table, MT_INTEGER(step->first), MT_INTEGER(step->last), MT_COUNT(step->row_count),
                 MT_BYTES(step->reserved_max_bytes), MT_TEXT(name_of(rows, step->reserved_max_row)),
                 MT_BYTES(step->reserved_min_bytes), MT_BYTES(step->allocated_max_bytes),
                 MT_TEXT(name_of(rows, step->allocated_max_row)));
    }
    return rows->report->step_count - count;
}

uint32_t mt_job_tenants_table(struct mt_table *table, const struct mt_job_rows *rows,
                              const struct mt_job_device *device)
{
    uint32_t count = shown(rows, device->tenant_count);

    mt_table_begin(table, "!process|#peak|#at the device's peak|#others at its own peak");
    for (uint32_t i = 0; i < count; i++) {
        const struct mt_job_tenant *tenant = &device->tenants[i];

        MT_CELLS(table, MT_TEXT(tenant->record->trace_name),
                 MT_BYTES(tenant->record->reserved_peak.bytes), MT_BYTES(tenant->held_bytes),
                 MT_BYTES(tenant->others_bytes));
    }
    return device->tenant_count - count;
}

/* Returns a key for descending order: the largest peak has the smallest key. */
static uint64_t reserved_of(const struct mt_rank_record *record)
{
    return UINT64_MAX - record->reserved_peak.bytes;
}

static void add_rank(struct mt_table *table, const struct mt_job_rows *rows, uint32_t row)
{
    const struct mt_job_row *place = &rows->report->rows[row];
    const struct mt_rank_record *record = place->record;

    MT_CELLS(table, MT_TEXT(mt_job_rank_name(rows->arena, rows->report, row)),
             MT_TEXT(mt_outcome_name(record->outcome)), MT_BYTES(record->reserved_peak.bytes),
             MT_BYTES(record->allocated_peak.bytes),
             record->needed_is_known ? MT_BYTES(record->needed_bytes) : MT_TEXT(""),
             record->has_driver ? MT_BYTES(record->outside_bytes) : MT_TEXT(""),
             record->growth_is_judged ? MT_BYTES(record->growth_bytes_per_step) : MT_TEXT(""),
             MT_COUNT(rows->report->clusters[place->cluster].count));
}

uint32_t mt_job_ranks_table(struct mt_table *table, const struct mt_job_rows *rows)
{
    const struct mt_job_report *report = rows->report;
    uint32_t count = shown(rows, report->row_count);
    struct keyed_row *sorted = count < report->row_count ? sort_rows(report, reserved_of) : NULL;

    mt_table_begin(table, "!rank|ended|#reserved peak|#allocated peak|#needed|"
                          "#outside the allocator|#every step|#replicas");
    for (uint32_t i = 0; i < count; i++)
        add_rank(table, rows, sorted ? sorted[i].row : i);
    free(sorted);
    return report->row_count - count;
}
