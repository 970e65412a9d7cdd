#include "policy_table.h"

#include <stdlib.h>
#include <string.h>

#include "fit.h"
#include "process_memory.h"
#include "sorted.h"
#include "units.h"
#include "util.h"

static const struct mt_fit_result *choose(const struct mt_fit_summary *summary, uint64_t device)
{
    const struct mt_fit_result *best = NULL;

    for (uint16_t i = 0; i < summary->device_count; i++) {
        const struct mt_fit_result *result = &summary->devices[i];
        if (device == result->device)
            return result;
        if (device == UINT64_MAX &&
            (!best || result->reserved_peak_bytes > best->reserved_peak_bytes))
            best = result;
    }
    return best;
}

/* Whether the replay of the run's own allocator equals the recording. */
static enum mt_status verify(struct mt_source *source, uint16_t device, struct mt_policy_row *row,
                             struct mt_error *error)
{
    const struct mt_replay_options options = {.verify = true};
    struct mt_replay_summary *summary = mt_memory_zeroed(1, sizeof *summary);
    enum mt_status status = mt_source_rewind(source, error);

    if (status == MT_OK)
        status = mt_replay_run(source, &options, NULL, summary, error);
    for (uint16_t i = 0; status == MT_OK && i < summary->device_count; i++) {
        const struct mt_replay_result *result = &summary->devices[i];
        if (result->device == device)
            row->is_measured = result->verify.wanted &&
                               mt_replay_matches_recording(&result->verify) &&
                               result->recorded_addresses && !result->starts_in_middle &&
                               result->counters.reserved.peak == row->fit.reserved_peak_bytes;
    }
    free(summary);
    return status;
}

enum mt_status mt_policy_row_measure(struct mt_source *source, const char *policy, uint64_t device,
                                     struct mt_policy_row *row, uint16_t *of,
                                     struct mt_error *error)
{
    const struct mt_fit_options options = {
        .policy = policy, .orders = MT_BASE_ORDERS, .limits_only = true};
    struct mt_fit_summary *summary = mt_memory_zeroed(1, sizeof *summary);
    const struct mt_fit_result *result = NULL;
    enum mt_status status = mt_fit_run(source, &options, summary, error);

    if (status == MT_OK)
        result = choose(summary, device);
    if (status == MT_OK && !result)
        status = MT_END;
    if (status == MT_OK) {
        *row = (struct mt_policy_row){.fit = *result};
        memcpy(row->policy, summary->policy, sizeof row->policy);
        row->is_own = !policy;
        *of = result->device;
        if (row->is_own)
            status = verify(source, *of, row, error);
    }
    mt_fit_release(summary);
    free(summary);
    return status;
}

uint64_t mt_policy_row_requests(const struct mt_policy_row *row)
{
    return mt_add_most_u64(row->fit.requests, row->fit.gaps_left_out);
}

bool mt_policy_row_refuses(const struct mt_policy_table *table, const struct mt_policy_row *row)
{
    return !table->starts_in_middle &&
           mt_policy_row_requests(row) < mt_policy_row_requests(&table->rows[0]);
}

/* A skipped gap may be one that a peak of requested bytes counts. */
static bool are_of_one_trace(const struct mt_policy_row *a, const struct mt_policy_row *b,
                             bool starts_in_middle)
{
    /* state from before the trace counts as requests for some policies */
    return (starts_in_middle || mt_policy_row_requests(a) == mt_policy_row_requests(b)) &&
           (a->fit.gaps_left_out || b->fit.gaps_left_out ||
            a->fit.requested_peak_bytes == b->fit.requested_peak_bytes);
}

static uint64_t lowest_requested_peak(const struct mt_policy_table *table)
{
    uint64_t lowest = table->rows[0].fit.requested_peak_bytes;

    for (uint32_t i = 1; i < table->row_count; i++)
        lowest = mt_min_u64(lowest, table->rows[i].fit.requested_peak_bytes);
    return lowest;
}

static enum mt_status check_requests(const struct mt_policy_table *table, struct mt_error *error)
{
    const struct mt_policy_row *first = &table->rows[0];

    for (uint32_t i = 1; i < table->row_count; i++) {
        const struct mt_policy_row *row = &table->rows[i];
        if (!are_of_one_trace(first, row, table->starts_in_middle))
            return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                           "'%s' and '%s' do not receive the same requests: %llu and %llu of them, "
                           "with %llu and %llu bytes at their peaks",
                           first->policy, row->policy,
                           (unsigned long long)mt_policy_row_requests(first),
                           (unsigned long long)mt_policy_row_requests(row),
                           (unsigned long long)first->fit.requested_peak_bytes,
                           (unsigned long long)row->fit.requested_peak_bytes);
    }
    return MT_OK;
}

/* Keeps the first row of each spelling. */
static void drop_twins(struct mt_policy_table *table)
{
    uint32_t kept = 0, j;

    for (uint32_t i = 0; i < table->row_count; i++) {
        for (j = 0; j < kept && strcmp(table->rows[j].policy, table->rows[i].policy) != 0; j++)
            ;
        if (j == kept)
            table->rows[kept++] = table->rows[i];
    }
    table->row_count = kept;
}

MT_DEFINE_ORDER(by_reserved, struct mt_policy_row,
                MT_ASCENDING(fit.reserved_peak_bytes) || MT_DESCENDING(fit.fits) ||
                    MT_ASCENDING(fit.high_bytes) || MT_BY_TEXT(policy))

static const struct mt_policy_row *own_row(const struct mt_policy_table *table)
{
    for (uint32_t i = 0; i < table->row_count; i++)
        if (table->rows[i].is_own)
            return &table->rows[i];
    return NULL;
}

/* "2.6" for 2.57: a tenth is precise enough. */
static const char *times(struct mt_arena *arena, uint64_t a, uint64_t b)
{
    uint64_t tenths = (uint64_t)((double)a / (double)b * 10 + 0.5);

    return mt_arena_printf(arena, "%llu.%llu \xC3\x97", (unsigned long long)(tenths / 10),
                           (unsigned long long)(tenths % 10));
}

static const char *about(const struct mt_policy_row *row)
{
    return row->fit.policy_exact ? "" : " (approximate)";
}

/* The best policy, and its advantage. */
static const char *say_best(struct mt_policy_table *table)
{
    const struct mt_policy_row *best = &table->rows[0], *own = own_row(table);
    char n[2][MT_UNITS_TEXT], share[MT_UNITS_TEXT];

    if (table->row_count == 1)
        return mt_arena_printf(&table->arena, "%s%s reserves %s at its peak.", best->policy,
                               about(best), mt_format_bytes(n[0], best->fit.reserved_peak_bytes));
    if (own && own->fit.reserved_peak_bytes <= best->fit.reserved_peak_bytes)
        return mt_arena_printf(&table->arena, "None of these reserves less than the run did, %s.",
                               mt_format_bytes(n[0], own->fit.reserved_peak_bytes));
    if (!own)
        return mt_arena_printf(&table->arena, "%s%s reserves least, %s at its peak.", best->policy,
                               about(best), mt_format_bytes(n[0], best->fit.reserved_peak_bytes));
    return mt_arena_printf(
        &table->arena, "%s%s reserves %s less than the run did (%s) and runs within %s.",
        best->policy, about(best),
        mt_format_bytes(n[0], own->fit.reserved_peak_bytes - best->fit.reserved_peak_bytes),
        mt_format_percent(share,
                          (double)(own->fit.reserved_peak_bytes - best->fit.reserved_peak_bytes) /
                              (double)own->fit.reserved_peak_bytes),
        best->fit.fits ? mt_format_bytes(n[1], best->fit.high_bytes) : "no limit that was tried");
}

/* The row whose reserved peak exceeds its need the most. */
static const struct mt_policy_row *greediest(const struct mt_policy_table *table)
{
    const struct mt_policy_row *most = NULL;

    for (uint32_t i = 0; i < table->row_count; i++) {
        const struct mt_policy_row *row = &table->rows[i];
        if (!row->fit.fits || !row->fit.high_bytes ||
            row->fit.reserved_peak_bytes < row->fit.high_bytes / 10 * 13)
            continue;
        if (!most || row->fit.reserved_peak_bytes - row->fit.high_bytes >
                         most->fit.reserved_peak_bytes - most->fit.high_bytes)
            most = row;
    }
    return most;
}

static const char *say_need(struct mt_policy_table *table)
{
    const struct mt_policy_row *greedy = greediest(table), *best = &table->rows[0];
    char n[2][MT_UNITS_TEXT];

    if (greedy)
        return mt_arena_printf(
            &table->arena,
            "%s reserves %s what it needs: it runs within %s, so a device can "
            "have less than its reserved peak.",
            greedy->policy,
            times(&table->arena, greedy->fit.reserved_peak_bytes, greedy->fit.high_bytes),
            mt_format_bytes(n[0], greedy->fit.high_bytes));
    if (!table->bound_bytes)
        return "";
    return mt_arena_printf(
        &table->arena,
        "The best is %s above the lower bound of %s, below which no allocator can go.",
        mt_format_percent(n[0],
                          ((double)best->fit.reserved_peak_bytes - (double)table->bound_bytes) /
                              (double)table->bound_bytes),
        mt_format_bytes(n[1], table->bound_bytes));
}

enum mt_status mt_policy_table_finish(struct mt_policy_table *table, struct mt_error *error)
{
    if (!table->row_count)
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "no policies");
    enum mt_status status = check_requests(table, error);
    if (status != MT_OK)
        return status;
    drop_twins(table);
    qsort(table->rows, table->row_count, sizeof *table->rows, by_reserved);
    table->bound_bytes = lowest_requested_peak(table);
    table->finding[0] = say_best(table);
    table->finding[1] = say_need(table);
    return MT_OK;
}

void mt_policy_table_release(struct mt_policy_table *table)
{
    mt_arena_release(&table->arena);
}
