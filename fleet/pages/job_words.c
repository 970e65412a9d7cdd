#include "job_words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "units.h"

enum { MAX_RANGES = 8, MAX_FILES = 12, MAX_NAMES = 6 };

static void MT_PRINTF(3, 4)
    say(struct mt_job_words *words, enum mt_job_topic topic, const char *format, ...)
{
    struct mt_job_sentence *sentence = mt_arena_alloc(&words->arena, sizeof *sentence);
    struct mt_buf text = {0};
    va_list args;

    va_start(args, format);
    mt_buf_vprintf(&text, format, args);
    va_end(args);
    sentence->topic = topic;
    sentence->text = mt_buf_take(&text, &words->arena);
    if (words->last)
        words->last->next = sentence;
    else
        words->first = sentence;
    words->last = sentence;
}

static const char *name_of(struct mt_job_words *words, uint32_t row)
{
    return mt_job_row_name(&words->arena, words->report, row);
}

static const char *place_of(struct mt_job_words *words, uint32_t row)
{
    return mt_job_rank_name(&words->arena, words->report, row);
}

/* Returns a count as in tables: "16,384". */
static const char *count_of(struct mt_job_words *words, uint64_t count)
{
    char digits[MT_UNITS_TEXT];

    mt_format_count(digits, count);
    return mt_arena_text(&words->arena, digits, strlen(digits));
}

static const char *ranges_of(struct mt_job_words *words, const struct mt_job_range *ranges,
                             uint32_t count, uint32_t ranks)
{
    return mt_job_ranges(&words->arena, ranges, count, ranks, words->all);
}

const char *mt_job_rank_name(struct mt_arena *arena, const struct mt_job_report *report,
                             uint32_t row)
{
    const struct mt_job_row *place = &report->rows[row];
    const char *host = place->record->identity.host, *before = " (";
    struct mt_buf text = {0};

    mt_buf_add_text(&text, mt_job_row_name(arena, report, row));
    for (uint32_t a = 0; a < report->axis_count; a++) {
        if (place->coordinates[a] == MT_NO_ROW)
            continue;
        mt_buf_printf(&text, "%s%s %u", before, report->axes[a].name,
                      (unsigned)place->coordinates[a]);
        before = ", ";
    }
    if (*host)
        mt_buf_printf(&text, "%s%s", *before == ',' ? "; " : before, host);
    if (*host || *before == ',')
        mt_buf_add_char(&text, ')');
    return mt_buf_take(&text, arena);
}

const char *mt_job_ranges(struct mt_arena *arena, const struct mt_job_range *ranges, uint32_t count,
                          uint32_t ranks, bool all)
{
    struct mt_buf list = {0};
    uint64_t left = ranks;

    for (uint32_t i = 0; i < count && (i < MAX_RANGES || all); i++) {
        mt_buf_printf(&list, "%s%d", i ? ", " : "", (int)ranges[i].first);
        if (ranges[i].last > ranges[i].first)
            mt_buf_printf(&list, "-%d", (int)ranges[i].last);
        left -= (uint64_t)(ranges[i].last - ranges[i].first) + 1;
    }
    if (left)
        mt_buf_printf(&list, " and %llu more", (unsigned long long)left);
    return mt_buf_take(&list, arena);
}

const char *mt_job_rows_noun(const struct mt_job_report *report)
{
    if (report->row_count != report->seen_count + report->unranked_count)
        return "devices of processes";
    if (report->unranked_count)
        return report->row_count == 1 ? "process" : "processes";
    return report->row_count == 1 ? "rank" : "ranks";
}

static void say_fitting(struct mt_job_words *words, const struct mt_job_death *death)
{
    char limit[MT_UNITS_TEXT], median[MT_UNITS_TEXT];

    if (!death->limit_bytes || !death->other_count)
        return;
    mt_format_bytes_distinct(median, death->median_bytes, limit, death->limit_bytes);
    say(words, MT_JOB_TOPIC_DEATH,
        "%s of %s other ranks stayed within its %s of %s; their median is %s",
        count_of(words, death->fitting_count), count_of(words, death->other_count),
        death->limit_is_device ? "device" : "limit", limit, median);
}

void mt_job_describe_death(struct mt_job_words *words)
{
    const struct mt_job_report *report = words->report;
    const struct mt_job_death *death = report->death;
    char wanted[MT_UNITS_TEXT], after[MT_UNITS_TEXT], own[MT_UNITS_TEXT];
    const char *own_words = "";

    if (!death)
        return;
    const struct mt_rank_record *record = report->rows[death->row].record;
    mt_format_duration(after, death->after_ns);
    mt_format_duration(own, mt_sub_or_0_u64(record->death_t_ns, record->begin_t_ns));
    if (strcmp(own, after) != 0) /* the time that analyze prints for its trace */
        own_words = mt_arena_printf(&words->arena, " (%s in its own trace)", own);
    const char *site = mt_job_site_text(&words->arena, report, death->path);
    say(words, MT_JOB_TOPIC_DEATH, "%s ran out of memory first, after %s%s: it requested %s%s%s",
        place_of(words, death->row), after, own_words, mt_format_bytes(wanted, death->wanted_bytes),
        death->path == MT_NO_PATH ? "" : " in ", site);
    if (death->contested_row != MT_NO_ROW)
        say(words, MT_JOB_TOPIC_DEATH,
            death->contest_has_clock
                ? "%s ran out within a second of it and may have been first: clocks of hosts differ"
                : "%s also ran out and may have been first: a trace has no time of day",
            name_of(words, death->contested_row));
    if (death->count > 1)
        say(words, MT_JOB_TOPIC_DEATH, "%s ranks ran out of memory in total",
            count_of(words, death->count));
    if (death->followed_count)
        say(words, MT_JOB_TOPIC_DEATH, "%s rank%s ended later by a signal or with an error: %s",
            count_of(words, death->followed_count), mt_plural_s(death->followed_count),
            ranges_of(words, death->followed, death->followed_ranges, death->followed_count));
    if (death->vanished_count)
        say(words, MT_JOB_TOPIC_DEATH,
            "%s rank%s ended without a normal exit, as after SIGTERM: %s",
            count_of(words, death->vanished_count), mt_plural_s(death->vanished_count),
            ranges_of(words, death->vanished, death->vanished_ranges, death->vanished_count));
    say_fitting(words, death);
}

static void say_highest(struct mt_job_words *words)
{
    const struct mt_job_spread *reserved = &words->report->reserved;
    char max[MT_UNITS_TEXT], min[MT_UNITS_TEXT], median[MT_UNITS_TEXT];

    mt_format_bytes(max, reserved->max);
    mt_format_bytes(min, reserved->min);
    if (reserved->count == 1)
        say(words, MT_JOB_TOPIC_PEAK, "Reserved peak %s on %s, the only one that was read", max,
            name_of(words, reserved->max_row));
    else if (reserved->max == reserved->min)
        say(words, MT_JOB_TOPIC_PEAK, "Reserved peak %s on each of %s %s", max,
            count_of(words, reserved->count), mt_job_rows_noun(words->report));
    else if (reserved->count == 2)
        say(words, MT_JOB_TOPIC_PEAK, "Reserved peak %s on %s, %s on %s", max,
            name_of(words, reserved->max_row), min, name_of(words, reserved->min_row));
    else
        say(words, MT_JOB_TOPIC_PEAK, "Reserved peak %s (%s) to %s (%s), median %s, of %s %s", min,
            name_of(words, reserved->min_row), max, name_of(words, reserved->max_row),
            mt_format_bytes(median, reserved->median), count_of(words, reserved->count),
            mt_job_rows_noun(words->report));
}

static void say_presence(struct mt_job_words *words)
{
    const struct mt_job_report *report = words->report;
    const enum mt_job_topic topic = MT_JOB_TOPIC_RANKS;

    if (report->world)
        say(words, topic, "%s of %s%s rank%s%s%s", count_of(words, report->seen_count),
            report->world_is_known ? "" : "at least ", count_of(words, report->world),
            mt_plural_s(report->world), report->missing_count ? "; missing: " : "",
            ranges_of(words, report->missing, report->missing_ranges, report->missing_count));
    if (report->worlds_differ)
        say(words, topic, "traces disagree about the number of ranks: the largest number is used");
    if (report->unranked_count)
        say(words, topic, "%u process%s whose rank is not known", (unsigned)report->unranked_count,
            report->unranked_count == 1 ? "" : "es");
    if (report->planned_count)
        say(words, topic, "%u of %u are planned: dry runs, not runs on a device",
            (unsigned)report->planned_count, (unsigned)report->row_count);
    if (report->incomplete_count)
        say(words, topic, "%u trace%s %s not complete: peaks are lower bounds",
            (unsigned)report->incomplete_count, mt_plural_s(report->incomplete_count),
            report->incomplete_count == 1 ? "is" : "are");
    if (report->duplicate_count)
        say(words, topic, "%u more process%s of ranks that are already counted",
            (unsigned)report->duplicate_count, report->duplicate_count == 1 ? "" : "es");
}

static void say_need(struct mt_job_words *words)
{
    const struct mt_job_report *report = words->report;
    char bytes[MT_UNITS_TEXT], limit[MT_UNITS_TEXT];

    if (report->needed.count == 1 && report->needed.max)
        say(words, MT_JOB_TOPIC_NEED, "Card: %s%s: %s",
            report->needed_is_exact ? "about " : "at least ",
            mt_format_bytes(bytes, report->needed.max), place_of(words, report->needed.max_row));
    else if (report->needed.max)
        say(words, MT_JOB_TOPIC_NEED, "Card: %s%s on each device: %s needs the most",
            report->needed_is_exact ? "about " : "at least ",
            mt_format_bytes(bytes, report->needed.max), place_of(words, report->needed.max_row));
    if (report->limit_is_known)
        say(words, MT_JOB_TOPIC_NEED,
            "%s is the smallest allocator limit that serves all ranks%s, in every order of "
            "addresses that was tried",
            mt_format_mib(limit, report->limit_bytes),
            report->missing_count || report->unreadable_count ? " that were read" : "");
}

/* Returns the number of ranks with an outcome. A rank has a row for each of its devices, and these
 * rows are adjacent. A process of unknown rank counts separately. */
static uint32_t count_ranks(const struct mt_job_report *report, enum mt_outcome outcome)
{
    uint32_t count = 0;
    int32_t before = -1;

    for (uint32_t i = 0; i < report->row_count; i++) {
        const struct mt_rank_record *record = report->rows[i].record;

        if (record->outcome != outcome ||
            (record->identity.rank >= 0 && record->identity.rank == before))
            continue;
        before = record->identity.rank;
        count++;
    }
    return count;
}

/* Reports ranks that were killed or failed, unless a rank ran out of memory, which another sentence
 * reports. */
static void say_ends(struct mt_job_words *words)
{
    uint32_t killed = count_ranks(words->report, MT_OUTCOME_KILLED);
    uint32_t failed = count_ranks(words->report, MT_OUTCOME_FAILED);

    if (killed && !words->report->death)
        say(words, MT_JOB_TOPIC_RANKS, "%s rank%s ended by a signal or a time-out",
            count_of(words, killed), mt_plural_s(killed));
    if (failed && !words->report->death)
        say(words, MT_JOB_TOPIC_RANKS, "%s rank%s ended with an error", count_of(words, failed),
            mt_plural_s(failed));
}

static void say_starts(struct mt_job_words *words)
{
    const struct mt_job_report *report = words->report;
    uint32_t earlier = report->epoch_count - 1, count = earlier;

    if (!words->all)
        count = (uint32_t)mt_min_u64(count, MAX_FILES);
    for (uint32_t i = 0; i < count; i++)
        say(words, MT_JOB_TOPIC_RANKS,
            "restart %d is not in these numbers: %u trace%s, %u out of memory",
            (int)report->epochs[i].restart, (unsigned)report->epochs[i].record_count,
            mt_plural_s(report->epochs[i].record_count), (unsigned)report->epochs[i].death_count);
    if (earlier > count)
        say(words, MT_JOB_TOPIC_RANKS, "nor are %u more starts", (unsigned)(earlier - count));
}

static void say_unreadable(struct mt_job_words *words)
{
    const struct mt_job_report *report = words->report;
    uint32_t count = report->unreadable_count;

    if (!words->all)
        count = (uint32_t)mt_min_u64(count, MAX_FILES);
    for (uint32_t i = 0; i < count; i++)
        say(words, MT_JOB_TOPIC_RANKS, "not read: %s: %s", report->unreadable[i].path,
            report->unreadable[i].reason);
    if (report->unreadable_count > count)
        say(words, MT_JOB_TOPIC_RANKS, "not read: %u more",
            (unsigned)(report->unreadable_count - count));
}

void mt_job_describe_peak(struct mt_job_words *words)
{
    say_need(words);
    say_highest(words);
    say_presence(words);
    say_ends(words);
    say_starts(words);
    say_unreadable(words);
}

/* Used by pages and summaries. The text shows outliers in a table. */
void mt_job_describe_outliers(struct mt_job_words *words)
{
    const struct mt_job_report *report = words->report;
    uint32_t count = report->outlier_count;
    struct mt_buf list = {0};

    if (!count)
        return;
    for (uint32_t i = 0; i < count && i < MAX_NAMES; i++) {
        int64_t bytes = (int64_t)mt_min_u64(report->outliers[i].bytes, INT64_MAX);
        char change[MT_UNITS_TEXT];

        mt_format_change(change, report->outliers[i].is_less ? -bytes : bytes);
        mt_buf_printf(&list, "%s%s (%s)", i ? ", " : "", name_of(words, report->outliers[i].row),
                      change);
    }
    if (count > MAX_NAMES)
        mt_buf_printf(&list, " and %u more", (unsigned)(count - MAX_NAMES));
    say(words, MT_JOB_TOPIC_OUTLIERS, "%s rank%s from %s replicas: %s", count_of(words, count),
        count == 1 ? " differs" : "s differ", count == 1 ? "its" : "their",
        list.data ? list.data : "");
    mt_buf_release(&list);
}

const char *mt_job_axes_title(const struct mt_job_report *report)
{
    static const char *const titles[] = {
        "",
        "axes, as --mesh names them",
        "axes, as recorded",
        "axes, from the framework's process groups",
        "axes, from NCCL's communicators",
        "axes, inferred from sizes that repeat or differ over the ranks"};

    return titles[report->axes_source];
}

void mt_job_describe_axis(struct mt_job_words *words, const struct mt_job_axis *axis)
{
    char explained[MT_UNITS_TEXT], more[MT_UNITS_TEXT], role[MT_UNITS_TEXT];

    if (axis->group_count == words->report->row_count)
        say(words, MT_JOB_TOPIC_AXES, "%s (%u): one rank at each coordinate", axis->name,
            (unsigned)axis->size);
    else
        say(words, MT_JOB_TOPIC_AXES, "%s (%u) explains %s of the variance of reserved peaks",
            axis->name, (unsigned)axis->size,
            mt_format_percent(explained, (double)axis->explained_ppm / 1e6));
    if (!axis->separates || axis->group_count < 2)
        return;
    say(words, MT_JOB_TOPIC_AXES, "%s %u has %s more than the mean of the groups%s%s%s%s",
        axis->name, (unsigned)axis->groups[axis->heavy].coordinate,
        mt_format_percent(more, (double)axis->imbalance_ppm / 1e6),
        axis->heavy_role_bytes ? ", of that " : "",
        axis->heavy_role_bytes ? mt_format_bytes(role, axis->heavy_role_bytes) : "",
        axis->heavy_role_bytes ? " " : "",
        axis->heavy_role_bytes ? mt_role_name(axis->heavy_role) : "");
}

void mt_job_describe_overlap(struct mt_job_words *words)
{
    const struct mt_job_report *report = words->report;
    uint32_t shares = 0;

    for (uint32_t i = 0; i < report->axis_count; i++)
        shares += report->axes[i].group_count < report->row_count && report->axes[i].explained_ppm;
    if (report->axes_overlap && shares > 1)
        say(words, MT_JOB_TOPIC_AXES,
            "the shares overlap and do not add up, because ranks are spread unevenly over the "
            "axes");
}

void mt_job_describe_growth(struct mt_job_words *words)
{
    const struct mt_job_report *report = words->report;
    char bytes[MT_UNITS_TEXT];

    if (!report->growing_count)
        return;
    say(words, MT_JOB_TOPIC_GROWTH,
        "%u of %u rank%s leave%s memory behind in each step; %s on %s is the most",
        (unsigned)report->growing_count, (unsigned)report->growth.count,
        mt_plural_s(report->growth.count), report->growing_count == 1 ? "s" : "",
        mt_format_bytes(bytes, report->growth.max), name_of(words, report->growth.max_row));
}

void mt_job_describe_steps(struct mt_job_words *words)
{
    const struct mt_job_report *report = words->report;
    const struct mt_job_step *highest = report->steps;
    char bytes[MT_UNITS_TEXT], last[32] = "";

    for (uint32_t i = 1; i < report->step_count; i++)
        if (report->steps[i].reserved_max_bytes > highest->reserved_max_bytes)
            highest = &report->steps[i];
    if (!report->step_count)
        return;
    if (highest->last > highest->first)
        snprintf(last, sizeof last, " to %lld", (long long)highest->last);
    say(words, MT_JOB_TOPIC_STEPS, "%s reserved on %s in step%s %lld%s is the highest",
        mt_format_bytes(bytes, highest->reserved_max_bytes),
        name_of(words, highest->reserved_max_row), *last ? "s" : "", (long long)highest->first,
        last);
}

/* Whether the request could have been served if the tenant had held only what it used: the device
 * was full, not a limit of the process that was refused. */
static bool would_do(const struct mt_job_tenant *tenant, const struct mt_rank_record *refused)
{
    return tenant->record != refused && tenant->refusal_unused_bytes &&
           refused->death_free_bytes < refused->death_wanted_bytes &&
           mt_add_most_u64(tenant->refusal_unused_bytes, refused->death_free_bytes) >=
               refused->death_wanted_bytes;
}

static void describe_unused(struct mt_job_words *words, const struct mt_job_device *device)
{
    const struct mt_rank_record *refused = device->refused ? device->refused->record : NULL;
    char wanted[MT_UNITS_TEXT], held[MT_UNITS_TEXT], unused[MT_UNITS_TEXT];

    for (uint32_t i = 0; refused && i < device->tenant_count; i++) {
        const struct mt_job_tenant *tenant = &device->tenants[i];

        if (would_do(tenant, refused))
            say(words, MT_JOB_TOPIC_DEVICES,
                "when %s was refused %s, %s held %s, of which at least %s was cached and not in "
                "use: let that process give it back first (in PyTorch, torch.cuda.empty_cache() "
                "returns what is in segments without live blocks)",
                refused->trace_name, mt_format_bytes(wanted, refused->death_wanted_bytes),
                tenant->record->trace_name, mt_format_bytes(held, tenant->refusal_bytes),
                mt_format_bytes(unused, tenant->refusal_unused_bytes));
    }
}

void mt_job_describe_device(struct mt_job_words *words, const struct mt_job_device *device)
{
    char peak[MT_UNITS_TEXT], total[MT_UNITS_TEXT];

    say(words, MT_JOB_TOPIC_DEVICES, "%s%s%s%s reserved at the same time by %u processes on %s%s%s",
        device->is_exact ? "" : "at most ", mt_format_bytes(peak, device->peak_bytes),
        device->total_bytes ? " of " : "",
        device->total_bytes ? mt_format_bytes(total, device->total_bytes) : "",
        (unsigned)device->tenant_count, *device->uuid ? device->uuid : device->pci,
        *device->host ? " of " : "", device->host);
    describe_unused(words, device);
}

const char *mt_job_devices_caveat(const struct mt_job_report *report)
{
    bool is_exact = true;

    for (uint32_t i = 0; i < report->device_count; i++)
        is_exact = is_exact && report->devices[i].is_exact;
    return is_exact ? "sums of what the allocators reserved; contexts and other memory outside the "
                      "allocators are not included"
                    : "sums of what the allocators reserved; an upper bound where it says \"at "
                      "most\"; contexts and other memory outside the allocators are not included";
}

void mt_job_words_reset(struct mt_job_words *words)
{
    mt_arena_release(&words->arena);
    words->first = words->last = NULL;
}

void mt_job_words_release(struct mt_job_words *words)
{
    mt_job_words_reset(words);
}
