/* A job as memtrace.fleet/1. */
#include "fleet_output.h"
#include "fleet_tune_output.h"
#include "json.h"

static int32_t rank_of(const struct mt_job_report *report, uint32_t row)
{
    return row == MT_NO_ROW ? -1 : report->rows[row].record->identity.rank;
}

/* Adds null for an unknown rank. */
static void add_rank(struct mt_json *json, const char *key, const struct mt_job_report *report,
                     uint32_t row)
{
    if (rank_of(report, row) < 0)
        mt_json_null(json, key);
    else
        mt_json_i64(json, key, rank_of(report, row));
}

static void add_spread(struct mt_json *json, const char *key, const struct mt_job_report *report,
                       const struct mt_job_spread *spread)
{
    mt_json_object_begin(json, key);
    mt_json_u64(json, "ranks", spread->count);
    mt_json_u64(json, "min_bytes", spread->min);
    mt_json_u64(json, "median_bytes", spread->median);
    mt_json_u64(json, "mean_bytes", spread->mean);
    mt_json_u64(json, "max_bytes", spread->max);
    add_rank(json, "min_rank", report, spread->min_row);
    add_rank(json, "max_rank", report, spread->max_row);
    mt_json_object_end(json);
}

static void add_row(struct mt_json *json, const struct mt_job_report *report, uint32_t row)
{
    const struct mt_rank_record *record = report->rows[row].record;

    add_rank(json, "rank", report, row);
    mt_json_u64(json, "device", record->device);
    mt_json_text(json, "host", *record->identity.host ? record->identity.host : NULL);
    mt_json_text(json, "trace", record->trace_name);
    mt_json_text(json, "outcome", mt_outcome_name(record->outcome));
    mt_json_bool(json, "planned", record->is_dry_run);
    mt_json_bool(json, "complete", record->is_complete);
    mt_json_u64(json, "reserved_peak_bytes", record->reserved_peak.bytes);
    mt_json_u64(json, "allocated_peak_bytes", record->allocated_peak.bytes);
    mt_json_u64(json, "needed_bytes", record->needed_bytes);
    mt_json_bool(json, "needed_is_exact", record->needed_is_known && record->is_complete);
    mt_json_u64_or_null(json, "growth_bytes_per_step", record->growth_is_judged,
                        record->growth_bytes_per_step);
    mt_json_u64(json, "cluster", report->rows[row].cluster);
}

/* Adds missing ranks up to the limit of the list, and counts the others: a file may claim a billion
 * missing ranks. */
void mt_fleet_json_missing(struct mt_json *json, const struct mt_job_report *report)
{
    struct mt_json_list list;
    uint64_t added = 0;
    bool goes_on = true;

    mt_json_list_begin(&list, json, "missing_ranks");
    for (uint32_t i = 0; i < report->missing_ranges && goes_on; i++) {
        for (int64_t rank = report->missing[i].first;
             rank <= report->missing[i].last && (goes_on = mt_json_list_takes(&list)); rank++) {
            mt_json_i64(json, NULL, rank);
            added++;
        }
    }
    if (!goes_on)
        list.omitted = report->missing_count - added;
    mt_json_list_end(&list);
}

static void add_site(struct mt_json *json, const char *key, const struct mt_fleet_answer *answer,
                     uint32_t path)
{
    const char *site = mt_job_site_text(answer->arena, answer->report, path);

    mt_json_text(json, key, path == MT_NO_PATH ? NULL : site);
}

static void add_death(struct mt_json *json, const struct mt_fleet_answer *answer)
{
    const struct mt_job_report *report = answer->report;
    const struct mt_job_death *death = report->death;

    if (!death) {
        mt_json_null(json, "first_death");
        return;
    }
    mt_json_object_begin(json, "first_death");
    add_rank(json, "rank", report, death->row);
    mt_json_u64(json, "t_ns", death->t_ns);
    mt_json_u64(json, "wanted_bytes", death->wanted_bytes);
    mt_json_u64(json, "free_bytes", death->free_bytes);
    add_site(json, "site", answer, death->path);
    mt_json_u64(json, "ranks_out_of_memory", death->count);
    add_rank(json, "contested_by_rank", report, death->contested_row);
    mt_json_u64(json, "followed_ranks", death->followed_count);
    mt_json_u64(json, "vanished_ranks", death->vanished_count);
    mt_json_u64_or_null(json, "limit_bytes", death->limit_bytes, death->limit_bytes);
    mt_json_text(json, "limit_of",
                 !death->limit_bytes      ? NULL
                 : death->limit_is_device ? "device"
                                          : "allocator");
    mt_json_u64(json, "other_ranks", death->other_count);
    mt_json_u64_or_null(json, "other_ranks_within_limit", death->limit_bytes != 0,
                        death->fitting_count);
    mt_json_u64(json, "median_bytes", death->median_bytes);
    mt_json_object_end(json);
}

static void add_outliers(struct mt_json *json, const struct mt_fleet_answer *answer)
{
    const struct mt_job_report *report = answer->report;

    for (struct mt_json_list row = mt_json_rows(json, "outliers", report->outlier_count);
         mt_json_next(&row);) {
        const struct mt_job_outlier *outlier = &report->outliers[row.i];

        add_rank(json, "rank", report, outlier->row);
        mt_json_text(json, "metric", mt_job_metric_name(outlier->metric));
        mt_json_bool(json, "less", outlier->is_less);
        mt_json_u64(json, "bytes", outlier->bytes);
        mt_json_u64(json, "median_bytes", outlier->median_bytes);
        mt_json_u64(json, "replicas", outlier->replicas);
        add_rank(json, "compared_with_rank", report, outlier->typical_row);
        mt_json_text(json, "cause", mt_outlier_cause_name(outlier->cause));
        add_site(json, "site", answer, outlier->path);
        mt_json_text(json, "library", *outlier->library ? outlier->library : NULL);
        mt_json_u64(json, "cause_bytes", outlier->path_bytes);
        mt_json_u64(json, "growth_bytes_per_step", outlier->growth_bytes_per_step);
    }
}

static void add_groups(struct mt_json *json, const struct mt_job_report *report,
                       const struct mt_job_axis *axis)
{
    for (struct mt_json_list row = mt_json_rows(json, "groups", axis->group_count);
         mt_json_next(&row);) {
        mt_json_u64(json, "coordinate", axis->groups[row.i].coordinate);
        add_spread(json, "reserved_peak", report, &axis->groups[row.i].reserved);
        add_spread(json, "allocated_peak", report, &axis->groups[row.i].allocated);
    }
}

static void add_axes(struct mt_json *json, const struct mt_job_report *report)
{
    mt_json_text(json, "axes_source", mt_axes_source_name(report->axes_source));
    mt_json_bool(json, "axes_overlap", report->axes_overlap);
    for (struct mt_json_list row = mt_json_objects(json, "axes", report->axis_count);
         mt_json_next(&row);) {
        const struct mt_job_axis *axis = &report->axes[row.i];

        mt_json_text(json, "name", axis->name);
        mt_json_u64(json, "size", axis->size);
        mt_json_u64_or_null(json, "stride", axis->stride, axis->stride);
        mt_json_bool(json, "replicas", !axis->separates);
        mt_json_u64(json, "explained_ppm", axis->explained_ppm);
        mt_json_u64(json, "imbalance_ppm", axis->imbalance_ppm);
        mt_json_text(json, "heavy_role",
                     axis->heavy_role_bytes ? mt_role_name(axis->heavy_role) : NULL);
        mt_json_u64(json, "heavy_role_bytes", axis->heavy_role_bytes);
        add_groups(json, report, axis);
    }
}

/* Adds the mean and the number of ranks instead of the sum over all ranks, which may exceed 64
 * bits. */
static void add_paths(struct mt_json *json, const struct mt_fleet_answer *answer)
{
    const struct mt_job_report *report = answer->report;

    for (struct mt_json_list row = mt_json_rows(json, "sites", report->path_count);
         mt_json_next(&row);) {
        const struct mt_job_path *path = &report->paths[row.i];

        add_site(json, "site", answer, path->path);
        mt_json_text(json, "role", mt_role_name(path->role));
        mt_json_u64(json, "ranks", path->row_count);
        mt_json_u64(json, "min_bytes", path->min_bytes);
        mt_json_u64(json, "mean_bytes", path->mean_bytes);
        mt_json_u64(json, "max_bytes", path->max_bytes);
        add_rank(json, "min_rank", report, path->min_row);
        add_rank(json, "max_rank", report, path->max_row);
    }
}

static void add_steps(struct mt_json *json, const struct mt_job_report *report)
{
    for (struct mt_json_list row = mt_json_rows(json, "steps", report->step_count);
         mt_json_next(&row);) {
        const struct mt_job_step *step = &report->steps[row.i];

        mt_json_i64(json, "first", step->first);
        mt_json_i64(json, "last", step->last);
        mt_json_u64(json, "ranks", step->row_count);
        mt_json_u64(json, "reserved_max_bytes", step->reserved_max_bytes);
        add_rank(json, "reserved_max_rank", report, step->reserved_max_row);
        mt_json_u64(json, "reserved_min_bytes", step->reserved_min_bytes);
        mt_json_u64(json, "allocated_max_bytes", step->allocated_max_bytes);
        add_rank(json, "allocated_max_rank", report, step->allocated_max_row);
    }
}

static void add_tenants(struct mt_json *json, const struct mt_job_device *device)
{
    for (struct mt_json_list row = mt_json_rows(json, "processes", device->tenant_count);
         mt_json_next(&row);) {
        const struct mt_job_tenant *tenant = &device->tenants[row.i];
        const struct mt_rank_record *record = tenant->record;

        mt_json_text(json, "trace", record->trace_name);
        mt_json_text(json, "job", *record->identity.job ? record->identity.job : NULL);
        mt_json_u64(json, "process_id", record->identity.process_id);
        mt_json_u64(json, "reserved_peak_bytes", record->reserved_peak.bytes);
        mt_json_u64(json, "at_device_peak_bytes", tenant->held_bytes);
        mt_json_u64(json, "others_at_own_peak_bytes", tenant->others_bytes);
        mt_json_u64_or_null(json, "at_refusal_bytes", device->refused, tenant->refusal_bytes);
        mt_json_u64_or_null(json, "unused_at_refusal_at_least_bytes", device->refused,
                            tenant->refusal_unused_bytes);
    }
}

static void add_devices(struct mt_json *json, const struct mt_job_report *report)
{
    for (struct mt_json_list row = mt_json_objects(json, "shared_devices", report->device_count);
         mt_json_next(&row);) {
        const struct mt_job_device *device = &report->devices[row.i];

        mt_json_text(json, "uuid", *device->uuid ? device->uuid : NULL);
        mt_json_text(json, "pci", *device->pci ? device->pci : NULL);
        mt_json_u64_or_null(json, "device_bytes", device->total_bytes, device->total_bytes);
        mt_json_u64(json, "peak_at_most_bytes", device->peak_bytes);
        mt_json_bool(json, "peak_is_exact", device->is_exact);
        mt_json_u64(json, "peak_begin_t_ns", device->peak_begin_t_ns);
        mt_json_u64(json, "peak_end_t_ns", device->peak_end_t_ns);
        mt_json_text(json, "refused", device->refused ? device->refused->record->trace_name : NULL);
        add_tenants(json, device);
    }
}

static void add_epochs(struct mt_json *json, const struct mt_job_report *report)
{
    for (struct mt_json_list row = mt_json_rows(json, "starts", report->epoch_count);
         mt_json_next(&row);) {
        mt_json_i64(json, "restart", report->epochs[row.i].restart);
        mt_json_u64(json, "records", report->epochs[row.i].record_count);
        mt_json_u64(json, "deaths", report->epochs[row.i].death_count);
    }
}

static void add_unreadable(struct mt_json *json, const struct mt_job_report *report)
{
    for (struct mt_json_list row = mt_json_rows(json, "unreadable", report->unreadable_count);
         mt_json_next(&row);) {
        mt_json_text(json, "path", report->unreadable[row.i].path);
        mt_json_text(json, "reason", report->unreadable[row.i].reason);
    }
}

static void add_duplicates(struct mt_json *json, const struct mt_job_report *report)
{
    for (struct mt_json_list row = mt_json_rows(json, "duplicates", report->duplicate_count);
         mt_json_next(&row);) {
        const struct mt_job_duplicate *duplicate = &report->duplicates[row.i];

        add_rank(json, "rank", report, duplicate->row);
        mt_json_text(json, "trace", duplicate->record->trace_name);
        mt_json_u64(json, "reserved_peak_bytes", duplicate->record->reserved_peak.bytes);
    }
}

void mt_fleet_json_outcomes(struct mt_json *json, const struct mt_job_report *report)
{
    mt_json_object_begin(json, "outcomes");
    for (int i = 0; i < MT_OUTCOME_COUNT; i++)
        mt_json_u64(json, mt_outcome_name((enum mt_outcome)i), report->outcome_counts[i]);
    mt_json_object_end(json);
}

void mt_fleet_json_world(struct mt_json *json, const struct mt_job_report *report)
{
    mt_json_text(json, "job", *report->job ? report->job : NULL);
    mt_json_u64(json, "world", report->world);
    mt_json_bool(json, "world_is_known", report->world_is_known && !report->worlds_differ);
    mt_json_u64(json, "ranks_seen", report->seen_count);
    mt_json_u64(json, "ranks_missing", report->missing_count);
}

static void add_numbers(struct mt_json *json, const struct mt_job_report *report)
{
    mt_fleet_json_world(json, report);
    mt_json_u64(json, "ranks_planned", report->planned_count);
    mt_json_u64(json, "ranks_incomplete", report->incomplete_count);
    mt_json_u64(json, "hosts", report->host_count);
    mt_json_u64(json, "lost_events", report->lost_events);
    mt_json_u64(json, "needed_bytes", report->needed.max);
    mt_json_bool(json, "needed_is_exact", report->needed_is_exact);
    mt_json_u64_or_null(json, "smallest_limit_bytes", report->limit_is_known, report->limit_bytes);
    mt_json_u64(json, "imbalance_ppm", report->imbalance_ppm);
    mt_json_u64(json, "growing_ranks", report->growing_count);
}

void mt_fleet_json(struct mt_buf *out, const struct mt_fleet_answer *answer)
{
    const struct mt_job_report *report = answer->report;
    struct mt_json json;

    mt_json_document(&json, out, "memtrace.fleet/1", answer->all);
    add_numbers(&json, report);
    mt_fleet_json_outcomes(&json, report);
    add_spread(&json, "reserved_peak", report, &report->reserved);
    add_spread(&json, "allocated_peak", report, &report->allocated);
    add_spread(&json, "needed", report, &report->needed);
    mt_fleet_tune_json(&json, answer);
    add_death(&json, answer);
    add_outliers(&json, answer);
    add_axes(&json, report);
    mt_fleet_gates_json(&json, answer->gates, report);
    mt_fleet_json_missing(&json, report);
    add_unreadable(&json, report);
    add_duplicates(&json, report);
    add_epochs(&json, report);
    add_devices(&json, report);
    for (struct mt_json_list row = mt_json_rows(&json, "ranks", report->row_count);
         mt_json_next(&row);)
        add_row(&json, report, row.i);
    add_steps(&json, report);
    add_paths(&json, answer);
    mt_json_object_end(&json);
}
