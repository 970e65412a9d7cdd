/* A job for people: who ran out of memory first, then the highest peak, who differs from replicas,
 * what the axes explain. */
#include "fleet_output.h"

#include <stdio.h>
#include <string.h>

#include "text_table.h"
#include "units.h"
#include "wrapped_text.h"

enum { ROWS = 12, RANGES = 8 }; /* of a table and of a list of ranks, unless --all */

struct text {
    struct mt_buf *out;
    const struct mt_fleet_answer *answer;
    const struct mt_job_report *report;
    const struct mt_style *style;
};

static uint32_t shown(const struct text *text, uint32_t count)
{
    return text->answer->all || count < ROWS ? count : ROWS;
}

static const char *name_of(const struct text *text, uint32_t row)
{
    const char *name = mt_job_row_name(text->answer->arena, text->report, row);

    text->out->failed |= !name;
    return name ? name : "";
}

/* "16,384", as in tables. */
static const char *count_of(const struct text *text, uint64_t count)
{
    char digits[MT_UNITS_TEXT];
    const char *copy;

    mt_format_count(digits, count);
    copy = mt_arena_text(text->answer->arena, digits, strlen(digits));
    text->out->failed |= !copy;
    return copy ? copy : "";
}

static const char *site_of(const struct text *text, uint32_t path)
{
    const char *site = mt_job_site_text(text->answer->arena, text->report, path);

    text->out->failed |= !site;
    return site ? site : "";
}

/* "rank 0 (pp 0, dp 3, tp 0; node12)" */
static const char *place_of(const struct text *text, uint32_t row)
{
    const struct mt_job_row *place = &text->report->rows[row];
    const char *host = place->record->identity.host, *before = " (", *copy;
    struct mt_buf words = {0};

    mt_buf_add_text(&words, name_of(text, row));
    for (uint32_t a = 0; a < text->report->axis_count; a++) {
        if (place->coordinates[a] == MT_NO_ROW)
            continue;
        mt_buf_printf(&words, "%s%s %u", before, text->report->axes[a].name,
                      (unsigned)place->coordinates[a]);
        before = ", ";
    }
    if (*host)
        mt_buf_printf(&words, "%s%s", *before == ',' ? "; " : before, host);
    if (*host || *before == ',')
        mt_buf_add_char(&words, ')');
    copy = words.failed
               ? NULL
               : mt_arena_text(text->answer->arena, words.data ? words.data : "", words.length);
    text->out->failed |= !copy;
    mt_buf_release(&words);
    return copy ? copy : "";
}

/* "0-2, 17 and 31 more" */
static const char *ranges_text(const struct text *text, const struct mt_job_range *ranges,
                               uint32_t count, uint32_t ranks)
{
    struct mt_buf list = {0};
    uint64_t left = ranks;
    const char *copy;

    for (uint32_t i = 0; i < count && (i < RANGES || text->answer->all); i++) {
        mt_buf_printf(&list, "%s%d", i ? ", " : "", (int)ranges[i].first);
        if (ranges[i].last > ranges[i].first)
            mt_buf_printf(&list, "-%d", (int)ranges[i].last);
        left -= (uint64_t)(ranges[i].last - ranges[i].first) + 1;
    }
    if (left)
        mt_buf_printf(&list, " and %llu more", (unsigned long long)left);
    copy = list.failed
               ? NULL
               : mt_arena_text(text->answer->arena, list.data ? list.data : "", list.length);
    text->out->failed |= !copy;
    mt_buf_release(&list);
    return copy ? copy : "";
}

static const char *s(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void add_headline(const struct text *text)
{
    const struct mt_job_report *report = text->report;
    const struct mt_job_spread *reserved = &report->reserved;
    char max[MT_UNITS_TEXT], min[MT_UNITS_TEXT], median[MT_UNITS_TEXT];

    mt_format_bytes(max, reserved->max);
    mt_buf_add_text(text->out, text->style->bold);
    if (reserved->count == 1)
        mt_add_note(text->out, 0, "%s reserved on %s, the only one that is here", max,
                    place_of(text, reserved->max_row));
    else if (reserved->count == 2)
        mt_add_note(text->out, 0, "%s reserved on %s is the higher of 2; %s on %s", max,
                    place_of(text, reserved->max_row), mt_format_bytes(min, reserved->min),
                    name_of(text, reserved->min_row));
    else
        mt_add_note(text->out, 0,
                    "%s reserved on %s is the highest of %s; the median is %s, the "
                    "lowest %s on %s",
                    max, place_of(text, reserved->max_row), count_of(text, reserved->count),
                    mt_format_bytes(median, reserved->median), mt_format_bytes(min, reserved->min),
                    name_of(text, reserved->min_row));
    mt_buf_add_text(text->out, text->style->reset);
}

static void add_presence(const struct text *text)
{
    const struct mt_job_report *report = text->report;

    if (report->world)
        mt_add_note(
            text->out, 2, "%s of %s%s rank%s%s%s", count_of(text, report->seen_count),
            report->world_is_known ? "" : "at least ", count_of(text, report->world),
            s(report->world), report->missing_count ? "; missing: " : "",
            ranges_text(text, report->missing, report->missing_ranges, report->missing_count));
    if (report->worlds_differ)
        mt_add_note(text->out, 2, "traces disagree about the number of ranks: the largest counts");
    if (report->unranked_count)
        mt_add_note(text->out, 2, "%u process%s whose rank is not known",
                    (unsigned)report->unranked_count, report->unranked_count == 1 ? "" : "es");
    if (report->planned_count)
        mt_add_note(text->out, 2, "%u of %u are planned: dry runs, not runs on a device",
                    (unsigned)report->planned_count, (unsigned)report->row_count);
    if (report->incomplete_count)
        mt_add_note(text->out, 2, "%u trace%s %s not complete: peaks are at least what is said",
                    (unsigned)report->incomplete_count, s(report->incomplete_count),
                    report->incomplete_count == 1 ? "is" : "are");
    if (report->duplicate_count)
        mt_add_note(text->out, 2, "%u more process%s of ranks that are counted already",
                    (unsigned)report->duplicate_count, report->duplicate_count == 1 ? "" : "es");
}

/* Rows of one rank follow each other: a rank has one for each of its devices. */
static uint32_t count_ranks(const struct mt_job_report *report, enum mt_outcome outcome)
{
    uint32_t count = 0;
    int32_t before = -1;

    for (uint32_t i = 0; i < report->row_count; i++) {
        const struct mt_rank_record *record = report->rows[i].record;

        if (record->outcome != outcome || record->identity.rank == before)
            continue;
        before = record->identity.rank;
        count++;
    }
    return count;
}

/* Where no rank ran out of memory, nothing else says that the job did not end in order. */
static void add_ends(const struct text *text)
{
    uint32_t killed = count_ranks(text->report, MT_OUTCOME_KILLED);
    uint32_t failed = count_ranks(text->report, MT_OUTCOME_FAILED);

    if (killed && !text->report->death)
        mt_add_note(text->out, 2, "%s rank%s ended by a signal or a time-out",
                    count_of(text, killed), s(killed));
    if (failed && !text->report->death)
        mt_add_note(text->out, 2, "%s rank%s ended with an error", count_of(text, failed),
                    s(failed));
}

static void add_starts(const struct text *text)
{
    const struct mt_job_report *report = text->report;
    uint32_t earlier = report->epoch_count - 1, count = shown(text, earlier);

    for (uint32_t i = 0; i < count; i++)
        mt_add_note(text->out, 2,
                    "restart %d is not in these numbers: %u trace%s, %u out of memory",
                    (int)report->epochs[i].restart, (unsigned)report->epochs[i].record_count,
                    s(report->epochs[i].record_count), (unsigned)report->epochs[i].death_count);
    if (earlier > count)
        mt_add_note(text->out, 2, "nor are %u more starts", (unsigned)(earlier - count));
}

static void add_need(const struct text *text)
{
    const struct mt_job_report *report = text->report;
    char bytes[MT_UNITS_TEXT], limit[MT_UNITS_TEXT];

    if (report->needed.max)
        mt_add_note(text->out, 2, "a device must have %s%s for %s as it ran",
                    report->needed_is_exact ? "" : "at least ",
                    mt_format_bytes(bytes, report->needed.max),
                    name_of(text, report->needed.max_row));
    if (report->limit_is_known)
        mt_add_note(
            text->out, 2,
            "%s is the smallest limit of the allocator that serves all ranks%s, in every order "
            "of addresses that was tried",
            mt_format_mib(limit, report->limit_bytes),
            report->missing_count || report->unreadable_count ? " that were read" : "");
}

static void add_unreadable(const struct text *text)
{
    const struct mt_job_report *report = text->report;
    uint32_t count = shown(text, report->unreadable_count);

    for (uint32_t i = 0; i < count; i++)
        mt_add_note(text->out, 2, "not read: %s: %s", report->unreadable[i].path,
                    report->unreadable[i].reason);
    if (report->unreadable_count > count)
        mt_add_note(text->out, 2, "not read: %u more",
                    (unsigned)(report->unreadable_count - count));
}

static void add_heading(const struct text *text, const char *words)
{
    mt_buf_printf(text->out, "\n%s%s%s\n", text->style->bold, words, text->style->reset);
}

static void add_fitting(const struct text *text, const struct mt_job_death *death)
{
    char limit[MT_UNITS_TEXT], median[MT_UNITS_TEXT];

    if (!death->limit_bytes || !death->other_count)
        return;
    mt_format_bytes_apart(median, death->median_bytes, limit, death->limit_bytes);
    mt_add_note(text->out, 2, "%s of %s other ranks stayed within its %s of %s; their median is %s",
                count_of(text, death->fitting_count), count_of(text, death->other_count),
                death->limit_is_device ? "device" : "limit", limit, median);
}

static void add_death(const struct text *text)
{
    const struct mt_job_report *report = text->report;
    const struct mt_job_death *death = report->death;
    char wanted[MT_UNITS_TEXT], after[MT_UNITS_TEXT];

    if (!death)
        return;
    mt_buf_add_text(text->out, text->style->bold);
    mt_add_note(text->out, 0, "%s ran out of memory first, after %s: it asked for %s%s%s",
                place_of(text, death->row), mt_format_duration(after, death->after_ns),
                mt_format_bytes(wanted, death->wanted_bytes),
                death->path == MT_NO_PATH ? "" : " in ", site_of(text, death->path));
    mt_buf_add_text(text->out, text->style->reset);
    if (death->contested_row != MT_NO_ROW)
        mt_add_note(text->out, 2,
                    death->contest_has_clock
                        ? "%s ran out within a second of it and may have been first: clocks of "
                          "hosts differ"
                        : "%s also ran out and may have been first: a trace has no time of day",
                    name_of(text, death->contested_row));
    if (death->count > 1)
        mt_add_note(text->out, 2, "%s ranks ran out of memory in all",
                    count_of(text, death->count));
    if (death->followed_count)
        mt_add_note(
            text->out, 2, "%s rank%s ended later by a signal or with an error: %s",
            count_of(text, death->followed_count), s(death->followed_count),
            ranges_text(text, death->followed, death->followed_ranges, death->followed_count));
    if (death->vanished_count)
        mt_add_note(
            text->out, 2, "%s rank%s ended without an orderly exit, as after SIGTERM: %s",
            count_of(text, death->vanished_count), s(death->vanished_count),
            ranges_text(text, death->vanished, death->vanished_ranges, death->vanished_count));
    add_fitting(text, death);
    mt_buf_add_char(text->out, '\n');
}

static const char *cause_of(const struct text *text, const struct mt_job_outlier *outlier)
{
    const char *site = site_of(text, outlier->path);

    switch (outlier->cause) {
    case MT_OUTLIER_LIBRARY:
        return *outlier->library ? outlier->library : "a library that is not known";
    case MT_OUTLIER_UNUSED: return "reserved and not allocated";
    case MT_OUTLIER_GROWTH:
    case MT_OUTLIER_SITE: break;
    }
    return *site ? site : "call paths that are too small to be kept";
}

static void add_outliers(const struct text *text)
{
    const struct mt_job_report *report = text->report;
    uint32_t count = shown(text, report->outlier_count);
    struct mt_table table;

    if (!report->outlier_count)
        return;
    add_heading(text, "ranks that differ from their replicas");
    mt_table_begin(&table, "!rank|#difference|of|#median|#replicas|#every step|#of that|~from");
    for (uint32_t i = 0; i < count; i++) {
        const struct mt_job_outlier *outlier = &report->outliers[i];
        int64_t bytes = (int64_t)mt_min_u64(outlier->bytes, INT64_MAX);

        MT_CELLS(&table, MT_TEXT(name_of(text, outlier->row)),
                 MT_CHANGE(outlier->is_less ? -bytes : bytes),
                 MT_TEXT(mt_job_metric_name(outlier->metric)), MT_BYTES(outlier->median_bytes),
                 MT_COUNT(outlier->replicas),
                 outlier->growth_bytes_per_step
                     ? MT_CHANGE((int64_t)mt_min_u64(outlier->growth_bytes_per_step, INT64_MAX))
                     : MT_TEXT(""),
                 outlier->path_bytes ? MT_BYTES(outlier->path_bytes) : MT_TEXT(""),
                 MT_SITE(cause_of(text, outlier)));
    }
    mt_add_text_table(text->out, &table, 2, text->style);
    if (report->outlier_count > count)
        mt_add_note(text->out, 2, "and %u more", (unsigned)(report->outlier_count - count));
}

static void add_axis(const struct text *text, const struct mt_job_axis *axis)
{
    char explained[MT_UNITS_TEXT], more[MT_UNITS_TEXT], role[MT_UNITS_TEXT];
    uint32_t count = shown(text, axis->group_count);
    struct mt_table table;

    if (axis->group_count == text->report->row_count)
        mt_add_note(text->out, 2, "%s (%u): one rank at each coordinate", axis->name,
                    (unsigned)axis->size);
    else
        mt_add_note(text->out, 2, "%s (%u) explains %s of the variance of reserved peaks",
                    axis->name, (unsigned)axis->size,
                    mt_format_percent(explained, (double)axis->explained_ppm / 1e6));
    if (!axis->separates || axis->group_count < 2)
        return;
    mt_add_note(text->out, 4, "%s %u has %s more than the mean of the groups%s%s%s%s", axis->name,
                (unsigned)axis->groups[axis->heavy].coordinate,
                mt_format_percent(more, (double)axis->imbalance_ppm / 1e6),
                axis->heavy_role_bytes ? ", of that " : "",
                axis->heavy_role_bytes ? mt_format_bytes(role, axis->heavy_role_bytes) : "",
                axis->heavy_role_bytes ? " " : "",
                axis->heavy_role_bytes ? mt_role_name(axis->heavy_role) : "");
    mt_table_begin(&table, "#coordinate|#ranks|#min|#median|#max|!on");
    for (uint32_t i = 0; i < count; i++) {
        const struct mt_job_group *group = &axis->groups[i];

        MT_CELLS(&table, MT_INTEGER(group->coordinate), MT_COUNT(group->reserved.count),
                 MT_BYTES(group->reserved.min), MT_BYTES(group->reserved.median),
                 MT_BYTES(group->reserved.max), MT_TEXT(name_of(text, group->reserved.max_row)));
    }
    mt_add_text_table(text->out, &table, 4, text->style);
    if (axis->group_count > count)
        mt_add_note(text->out, 4, "and %u more", (unsigned)(axis->group_count - count));
}

static void add_axes(const struct text *text)
{
    static const char *const sources[] = {
        "",
        "axes, as --mesh names them",
        "axes, as recorded",
        "axes, from the framework's process groups",
        "axes, from NCCL's communicators",
        "axes, inferred from sizes that repeat or differ over the ranks"};
    const struct mt_job_report *report = text->report;

    if (!report->axis_count)
        return;
    add_heading(text, sources[report->axes_source]);
    for (uint32_t i = 0; i < report->axis_count; i++)
        add_axis(text, &report->axes[i]);
}

static void add_paths(const struct text *text)
{
    const struct mt_job_report *report = text->report;
    uint32_t count = shown(text, report->path_count);
    struct mt_table table;

    if (!report->path_count)
        return;
    add_heading(text, "who holds the allocated peaks");
    mt_table_begin(&table, "#mean|#min|#max|!on|#ranks|role|~site");
    for (uint32_t i = 0; i < count; i++) {
        const struct mt_job_path *path = &report->paths[i];

        MT_CELLS(&table, MT_BYTES(path->mean_bytes), MT_BYTES(path->min_bytes),
                 MT_BYTES(path->max_bytes), MT_TEXT(name_of(text, path->max_row)),
                 MT_COUNT(path->row_count), MT_TEXT(mt_role_name(path->role)),
                 MT_SITE(path->path == MT_NO_PATH ? "no stack, or too small to be kept"
                                                  : site_of(text, path->path)));
    }
    mt_add_text_table(text->out, &table, 2, text->style);
    if (report->path_count > count)
        mt_add_note(text->out, 2, "and %u more", (unsigned)(report->path_count - count));
}

static void add_course(const struct text *text)
{
    const struct mt_job_report *report = text->report;
    const struct mt_job_step *highest = report->steps;
    char bytes[MT_UNITS_TEXT], last[32] = "";

    if (report->growing_count) {
        add_heading(text, "growth");
        mt_add_note(text->out, 2,
                    "%u of %u rank%s leave%s something behind every step; %s on %s is "
                    "the most",
                    (unsigned)report->growing_count, (unsigned)report->growth.count,
                    s(report->growth.count), report->growing_count == 1 ? "s" : "",
                    mt_format_bytes(bytes, report->growth.max),
                    name_of(text, report->growth.max_row));
    }
    for (uint32_t i = 1; i < report->step_count; i++)
        if (report->steps[i].reserved_max_bytes > highest->reserved_max_bytes)
            highest = &report->steps[i];
    if (!report->step_count)
        return;
    add_heading(text, "steps");
    if (highest->last > highest->first)
        snprintf(last, sizeof last, " to %lld", (long long)highest->last);
    mt_add_note(text->out, 2, "%s reserved on %s in step%s %lld%s is the highest",
                mt_format_bytes(bytes, highest->reserved_max_bytes),
                name_of(text, highest->reserved_max_row), *last ? "s" : "",
                (long long)highest->first, last);
}

static void add_device(const struct text *text, const struct mt_job_device *device)
{
    struct mt_table table;
    char peak[MT_UNITS_TEXT], total[MT_UNITS_TEXT];

    mt_add_note(text->out, 2, "%s%s%s%s reserved at a time by %u processes on %s%s%s",
                device->is_exact ? "" : "at most ", mt_format_bytes(peak, device->peak_bytes),
                device->total_bytes ? " of " : "",
                device->total_bytes ? mt_format_bytes(total, device->total_bytes) : "",
                (unsigned)device->tenant_count, *device->uuid ? device->uuid : device->pci,
                *device->host ? " of " : "", device->host);
    mt_table_begin(&table, "!process|#peak|#at the device's peak|#others at its own peak");
    for (uint32_t i = 0; i < shown(text, device->tenant_count); i++) {
        const struct mt_job_tenant *tenant = &device->tenants[i];

        MT_CELLS(&table, MT_TEXT(tenant->record->trace_name),
                 MT_BYTES(tenant->record->reserved_peak.bytes), MT_BYTES(tenant->held_bytes),
                 MT_BYTES(tenant->others_bytes));
    }
    mt_add_text_table(text->out, &table, 4, text->style);
    if (device->tenant_count > shown(text, device->tenant_count))
        mt_add_note(text->out, 4, "and %u more",
                    (unsigned)(device->tenant_count - shown(text, device->tenant_count)));
}

static bool are_exact(const struct mt_job_report *report)
{
    for (uint32_t i = 0; i < report->device_count; i++)
        if (!report->devices[i].is_exact)
            return false;
    return true;
}

static void add_devices(const struct text *text)
{
    if (!text->report->device_count)
        return;
    add_heading(text, "devices that several processes share");
    for (uint32_t i = 0; i < shown(text, text->report->device_count); i++)
        add_device(text, &text->report->devices[i]);
    if (text->report->device_count > shown(text, text->report->device_count))
        mt_add_note(
            text->out, 2, "and %u more devices",
            (unsigned)(text->report->device_count - shown(text, text->report->device_count)));
    mt_add_note(text->out, 2,
                "sums of what the allocators reserved%s; contexts and other memory outside the "
                "allocators come on top",
                are_exact(text->report) ? "" : "; an upper bound where it says \"at most\"");
}

void mt_fleet_text(struct mt_buf *out, const struct mt_fleet_answer *answer,
                   const struct mt_style *style)
{
    const struct text text = {out, answer, answer->report, style};

    mt_fleet_gates_text(out, answer->gates, answer->report, style);
    add_death(&text);
    add_headline(&text);
    add_presence(&text);
    add_need(&text);
    add_ends(&text);
    add_starts(&text);
    add_unreadable(&text);
    add_outliers(&text);
    add_axes(&text);
    add_paths(&text);
    add_course(&text);
    add_devices(&text);
}
