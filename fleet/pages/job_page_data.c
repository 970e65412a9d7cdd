/* The data of the page about a job, and its table of ranks. */
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "check.h"
#include "document_tables.h"
#include "escape.h"
#include "job_page_data.h"
#include "job_report.h"
#include "report_page.h"
#include "sorted.h"
#include "units.h"

struct mt_page_rank {
    uint32_t row;
    const char *why; /* "highest reserved peak, ran out of memory first"; NULL: not notable */
};

enum {
    MAX_WHY_BYTES = 160, /* further reasons are omitted */
    MAX_OF_A_KIND = 64   /* maximum number of ranks for a reason that thousands of ranks may have */
};

struct chooser {
    const struct mt_job_report *report;
    struct mt_arena *arena;
    struct mt_page_ranks *ranks;
    uint32_t *places; /* for each row: 1 + index in the list; 0 = not in the list */
};

static struct mt_page_rank *take(struct chooser *chooser, uint32_t row)
{
    struct mt_page_ranks *ranks = chooser->ranks;

    MT_ASSERT(row < chooser->report->row_count);
    if (!chooser->places[row]) {
        ranks->list[ranks->count++] = (struct mt_page_rank){row, NULL};
        chooser->places[row] = ranks->count;
    }
    return &ranks->list[chooser->places[row] - 1];
}

/* Adds a reason why a rank is notable. */
static void note(struct chooser *chooser, uint32_t row, const char *why)
{
    if (row == MT_NO_ROW)
        return;
    struct mt_page_rank *rank = take(chooser, row);
    if (rank->why && (strlen(rank->why) + strlen(why) > MAX_WHY_BYTES || strstr(rank->why, why)))
        return;
    rank->why = rank->why ? mt_arena_printf(chooser->arena, "%s, %s", rank->why, why) : why;
}

static void note_deaths(struct chooser *chooser)
{
    const struct mt_job_report *report = chooser->report;
    uint32_t count = 0;

    if (!report->death)
        return;
    note(chooser, report->death->row, "ran out of memory first");
    note(chooser, report->death->contested_row, "may have run out of memory first");
    for (uint32_t i = 0; i < report->row_count && count < MAX_OF_A_KIND; i++) {
        if (!report->rows[i].record->has_death || chooser->places[i])
            continue;
        note(chooser, i, "ran out of memory");
        count++;
    }
}

static void note_extremes(struct chooser *chooser)
{
    const struct mt_job_report *report = chooser->report;

    if (report->row_count == 1) {
        note(chooser, 0, "the only rank that was read");
    } else {
        note(chooser, report->reserved.max_row, "highest reserved peak");
        note(chooser, report->reserved.min_row, "lowest reserved peak");
        note(chooser, report->reserved.median_row, "median reserved peak");
        note(chooser, report->allocated.max_row, "highest allocated peak");
        note(chooser, report->needed.max_row, "needs the most");
    }
    if (report->growing_count)
        note(chooser, report->growth.max_row, "grows most");
}

static void note_outliers(struct chooser *chooser)
{
    const struct mt_job_report *report = chooser->report;

    for (uint32_t i = 0; i < report->outlier_count && i < MAX_OF_A_KIND; i++) {
        const struct mt_job_outlier *outlier = &report->outliers[i];

        note(chooser, outlier->row, "differs from its replicas");
        note(chooser, outlier->typical_row,
             mt_arena_printf(chooser->arena, "typical replica of %.60s",
                             mt_job_row_name(chooser->arena, report, outlier->row)));
    }
}

static void note_groups(struct chooser *chooser)
{
    const struct mt_job_report *report = chooser->report;

    for (uint32_t a = 0; a < report->axis_count; a++) {
        const struct mt_job_axis *axis = &report->axes[a];

        for (uint32_t g = 0; axis->separates && g < axis->group_count && g < MAX_OF_A_KIND; g++)
            note(chooser, axis->groups[g].reserved.max_row,
                 mt_arena_printf(chooser->arena, "highest of %.40s %u", axis->name,
                                 (unsigned)axis->groups[g].coordinate));
    }
}

static void note_strange(struct chooser *chooser)
{
    const struct mt_job_report *report = chooser->report;
    uint32_t count = 0;

    for (uint32_t i = 0; i < report->row_count && count < MAX_OF_A_KIND; i++) {
        const struct mt_rank_record *record = report->rows[i].record;
        const char *why = record->identity.rank < 0              ? "its rank is unknown"
                          : !record->is_complete                 ? "its trace is not complete"
                          : record->outcome == MT_OUTCOME_FAILED ? "ended with an error"
                                                                 : NULL;

        if (!why)
            continue;
        note(chooser, i, why);
        count++;
    }
}

void mt_page_ranks_choose(const struct mt_job_report *report, struct mt_arena *arena,
                          struct mt_page_ranks *ranks)
{
    struct chooser chooser = {.report = report, .arena = arena, .ranks = ranks};
    size_t count = (size_t)report->row_count + 1;

    *ranks = (struct mt_page_ranks){.list = mt_arena_array(arena, count, sizeof *ranks->list)};
    chooser.places = mt_arena_array(arena, count, sizeof *chooser.places);
    note_deaths(&chooser);
    note_extremes(&chooser);
    note_outliers(&chooser);
    note_groups(&chooser);
    note_strange(&chooser);
    ranks->notable_count = ranks->count;
    for (uint32_t i = 0; i < report->cluster_count; i++)
        (void)take(&chooser, report->clusters[i].first_row);
    for (uint32_t i = 0; i < report->row_count; i++)
        (void)take(&chooser, i);
    MT_ASSERT(ranks->count == report->row_count);
}

static const char *end_of_oom(struct mt_arena *arena, const struct mt_job_report *report,
                              const struct mt_rank_record *record)
{
    const char *site = mt_job_site_text(arena, report, record->death_site);
    char after[MT_UNITS_TEXT], wanted[MT_UNITS_TEXT], left[MT_UNITS_TEXT];

    mt_format_duration(after, mt_sub_or_0_u64(record->death_t_ns, record->begin_t_ns));
    return mt_arena_printf(arena, "ran out of memory after %s: it requested %s%s%s; %s were free",
                           after, mt_format_bytes(wanted, record->death_wanted_bytes),
                           *site ? " in " : "", site,
                           mt_format_bytes(left, record->death_free_bytes));
}

/* Returns how the rank ended: "ran out of memory after 60.0 s: it asked for 2.00 GiB in forward
 * model.py:88". */
static const char *page_rank_end(struct mt_arena *arena, const struct mt_job_report *report,
                                 uint32_t row)
{
    const struct mt_rank_record *record = report->rows[row].record;
    int number = (int)record->identity.ended_number;

    switch (record->outcome) {
    case MT_OUTCOME_OOM:
        if (record->has_death)
            return end_of_oom(arena, report, record);
        return "ran out of memory";
    case MT_OUTCOME_FINISHED: return "finished";
    case MT_OUTCOME_FAILED: return mt_arena_printf(arena, "ended with exit status %d", number);
    case MT_OUTCOME_CUT: return "the recording was cut off";
    case MT_OUTCOME_UNKNOWN: return "how it ended is unknown";
    case MT_OUTCOME_KILLED: break;
    }
    switch (record->identity.ended) {
    case MT_ENDED_TIMEOUT: return "memtrace ended it after its timeout";
    case MT_ENDED_OOM_KILLED: return "killed by the kernel because the host ran out of memory";
    case MT_ENDED_SIGNAL: return mt_arena_printf(arena, "ended by signal %d", number);
    case MT_ENDED_UNKNOWN:
    case MT_ENDED_EXIT: break;
    }
    return "ended by a signal";
}

enum {
    LEVELS = 4095,
    MAX_STEPS = 40, /* maximum number of steps of a rank */
    MAX_SITES = 8,
    MAX_LIBRARIES = 6,
    MAX_REPEATS = 64
};

struct writer {
    const struct mt_job_report *report;
    struct mt_arena arena; /* texts of the current rank */
    struct mt_strings strings, curves;
    struct mt_buf string_list, curve_list, ranks;
};

static void separate(struct mt_buf *out)
{
    if (out->length)
        mt_buf_add_char(out, ',');
}

/* Returns the index of a text in the list of strings, which has no duplicates. */
static uint32_t string_of(struct writer *writer, const char *text)
{
    uint32_t count = writer->strings.count, id = 0;

    if (!text)
        return 0;
    mt_strings_put(&writer->strings, text, strlen(text), &id);
    if (id == count) {
        separate(&writer->string_list);
        mt_escape_add_script_string(&writer->string_list, text, MT_PAGE_NAME_BYTES);
    }
    return id;
}

static void add_string(struct writer *writer, const char *name, const char *text)
{
    mt_buf_printf(&writer->ranks, ",\"%s\":%u", name, (unsigned)string_of(writer, text));
}

static void add_digit(struct mt_buf *out, unsigned digit)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    MT_ASSERT(digit < 64);
    mt_buf_add_char(out, digits[digit]);
}

static unsigned level_of(uint64_t bytes, uint64_t most)
{
    return most ? (unsigned)(((unsigned __int128)bytes * LEVELS + most / 2) / most) : 0;
}

static uint64_t column_of(const struct mt_rank_record *record, uint32_t column, bool is_reserved)
{
    return is_reserved ? mt_column_at(record, column).reserved_bytes
                       : mt_column_at(record, column).allocated_bytes;
}

static void add_levels(struct mt_buf *out, const struct mt_rank_record *record, uint64_t most,
                       bool is_reserved)
{
    unsigned before = LEVELS + 1, repeats = 0;

    for (uint32_t i = 0; i <= record->column_count; i++) {
        unsigned level = i < record->column_count
                             ? level_of(column_of(record, i, is_reserved), most)
                             : LEVELS + 1;

        if (level == before && repeats < MAX_REPEATS) {
            repeats++;
            continue;
        }
        if (repeats) {
            mt_buf_add_char(out, '~');
            add_digit(out, repeats - 1);
            repeats = 0;
        }
        if (level > LEVELS)
            break;
        add_digit(out, level >> 6);
        add_digit(out, level & 63);
        before = level;
    }
}

/* Returns the index of a curve, or -1 if no time passed. A curve is stored once, because replicas
 * often have the same. */
static int64_t curve_of(struct writer *writer, const struct mt_rank_record *record, uint64_t most,
                        bool is_reserved)
{
    struct mt_buf levels = {0};
    uint32_t count = writer->curves.count, id = 0;

    if (!record->column_count)
        return -1;
    add_levels(&levels, record, most, is_reserved);
    mt_strings_put(&writer->curves, levels.data, levels.length, &id);
    if (id == count) {
        separate(&writer->curve_list);
        mt_buf_printf(&writer->curve_list, "\"%s\"", levels.data);
    }
    mt_buf_release(&levels);
    return id;
}

static void add_curves(struct writer *writer, const struct mt_rank_record *record)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < record->column_count; i++)
        most =
            mt_max_u64(most, mt_max_u64(column_of(record, i, false), column_of(record, i, true)));
    int64_t allocated = curve_of(writer, record, most, false);
    int64_t reserved = curve_of(writer, record, most, true);
    mt_buf_printf(&writer->ranks, ",\"most\":%llu,\"allocated\":%lld,\"reserved\":%lld",
                  (unsigned long long)most, (long long)allocated, (long long)reserved);
}

/* Adds the steps. If there are many, adds some at equal distances. */
static void add_steps(struct mt_buf *out, const struct mt_rank_record *record)
{
    uint32_t stride = (record->step_count + MAX_STEPS - 1) / MAX_STEPS;

    mt_buf_add_text(out, ",\"steps\":[");
    for (uint32_t i = 0; i < record->step_count; i += stride)
        mt_buf_printf(out, "%s%lld,%llu", i ? "," : "", (long long)mt_step_at(record, i).first,
                      (unsigned long long)mt_sub_or_0_u64(mt_step_at(record, i).begin_t_ns,
                                                          record->begin_t_ns));
    mt_buf_printf(out, "],\"last\":%lld",
                  record->step_count ? (long long)mt_step_at(record, record->step_count - 1).last
                                     : -1);
}

/* The bytes of a rank that a site holds in a role. Call paths with the same site are merged. */
struct holder {
    uint32_t site;
    enum mt_role role;
    uint64_t bytes, blocks;
};

MT_DEFINE_ORDER(compare_sites, struct holder, MT_ASCENDING(site) || MT_ASCENDING(role))
MT_DEFINE_ORDER(compare_bytes, struct holder, MT_DESCENDING(bytes) || MT_THEN(compare_sites))

/* Finds the holders, largest first, and returns their number. `holders` has room for one per
 * leaf. */
static uint32_t find_holders(struct holder *holders, const struct mt_rank_record *record)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < record->leaf_count; i++) {
        const struct mt_record_leaf leaf = mt_leaf_at(record, i);

        holders[i] = (struct holder){leaf.site, leaf.role, leaf.bytes, leaf.blocks};
    }
    qsort(holders, record->leaf_count, sizeof *holders, compare_sites);
    for (uint32_t i = 0; i < record->leaf_count; i++) {
        if (count && !compare_sites(&holders[count - 1], &holders[i])) {
            holders[count - 1].bytes += holders[i].bytes;
            holders[count - 1].blocks += holders[i].blocks;
        } else {
            holders[count++] = holders[i];
        }
    }
    qsort(holders, count, sizeof *holders, compare_bytes);
    return count;
}

/* Adds the largest holders at the allocated peak. */
static void add_sites(struct writer *writer, const struct mt_rank_record *record)
{
    struct holder *holders =
        mt_arena_array(&writer->arena, (size_t)record->leaf_count + 1, sizeof *holders);
    uint32_t count = find_holders(holders, record);
    uint32_t shown = (uint32_t)mt_min_u64(count, MAX_SITES);
    struct mt_buf *out = &writer->ranks;

    mt_buf_add_text(out, ",\"sites\":[");
    for (uint32_t i = 0; i < shown; i++) {
        const char *site = holders[i].site == MT_NO_PATH
                               ? "no stack, or too small to be kept"
                               : mt_job_site_text(&writer->arena, writer->report, holders[i].site);

        mt_buf_printf(out, "%s%u,%d,%llu,%llu", i ? "," : "", (unsigned)string_of(writer, site),
                      (int)holders[i].role, (unsigned long long)holders[i].bytes,
                      (unsigned long long)holders[i].blocks);
    }
    mt_buf_printf(out, "],\"others\":%u", (unsigned)(count - shown));
}

/* Adds memory outside of the allocator, with the libraries that requested the most. */
static void add_libraries(struct writer *writer, const struct mt_rank_record *record)
{
    struct mt_buf *out = &writer->ranks;
    bool taken[MT_RECORD_OWNERS] = {false};
    uint32_t owners = (uint32_t)mt_min_u64(record->owner_count, MT_RECORD_OWNERS);

    if (record->has_driver)
        mt_buf_printf(out, ",\"beside\":[%llu,%lld]", (unsigned long long)record->outside_bytes,
                      record->has_context ? (long long)mt_min_u64(record->context_bytes, INT64_MAX)
                                          : -1);
    else
        mt_buf_add_text(out, ",\"beside\":null");
    mt_buf_add_text(out, ",\"libraries\":[");
    for (uint32_t n = 0; n < owners && n < MAX_LIBRARIES; n++) {
        uint32_t best = MT_RECORD_OWNERS;

        for (uint32_t i = 0; i < owners; i++)
            if (!taken[i] &&
                (best == MT_RECORD_OWNERS || record->owners[i].bytes > record->owners[best].bytes))
                best = i;
        taken[best] = true;
        mt_buf_printf(out, "%s%u,%llu", n ? "," : "",
                      (unsigned)string_of(writer, *record->owners[best].library
                                                      ? record->owners[best].library
                                                      : "an unknown library"),
                      (unsigned long long)record->owners[best].bytes);
    }
    mt_buf_add_char(out, ']');
}

static void add_identity(struct writer *writer, uint32_t row)
{
    const struct mt_job_report *report = writer->report;
    const struct mt_job_row *place = &report->rows[row];
    const struct mt_rank_record *record = place->record;
    struct mt_buf *out = &writer->ranks;

    mt_buf_printf(out, "{\"row\":%u,\"rank\":%d", (unsigned)row, (int)record->identity.rank);
    add_string(writer, "name", mt_job_row_name(&writer->arena, report, row));
    add_string(writer, "host", record->identity.host);
    add_string(writer, "trace", record->trace_name);
    add_string(writer, "end", page_rank_end(&writer->arena, report, row));
    mt_buf_add_text(out, ",\"at\":[");
    for (uint32_t a = 0; a < report->axis_count; a++)
        mt_buf_printf(out, "%s%lld", a ? "," : "",
                      place->coordinates[a] == MT_NO_ROW ? -1 : (long long)place->coordinates[a]);
    mt_buf_printf(out, "],\"replicas\":%u,\"median\":%llu",
                  (unsigned)report->clusters[place->cluster].count,
                  (unsigned long long)report->clusters[place->cluster].reserved.median);
}

static void add_numbers(struct mt_buf *out, const struct mt_rank_record *record)
{
    uint64_t begin = record->begin_t_ns;

    mt_buf_printf(out, ",\"time\":%llu",
                  (unsigned long long)mt_sub_or_0_u64(record->end_t_ns, begin));
    mt_buf_printf(out, ",\"peaks\":[%llu,%llu,%llu,%llu]",
                  (unsigned long long)record->requested_peak.bytes,
                  (unsigned long long)record->allocated_peak.bytes,
                  (unsigned long long)record->active_peak.bytes,
                  (unsigned long long)record->reserved_peak.bytes);
    mt_buf_printf(out, ",\"when\":[%llu,%llu]",
                  (unsigned long long)mt_sub_or_0_u64(record->allocated_peak.t_ns, begin),
                  (unsigned long long)mt_sub_or_0_u64(record->reserved_peak.t_ns, begin));
    mt_buf_printf(out, ",\"device\":%llu,\"limit\":%llu", (unsigned long long)record->device_bytes,
                  (unsigned long long)record->identity.memory_limit_bytes);
    mt_buf_printf(out, ",\"growth\":%lld,\"needed\":%llu,\"exact\":%d,\"planned\":%d",
                  record->growth_is_judged
                      ? (long long)mt_min_u64(record->growth_bytes_per_step, INT64_MAX)
                      : -1,
                  (unsigned long long)record->needed_bytes,
                  record->needed_is_known && record->is_complete, record->is_dry_run);
    mt_buf_add_text(out, ",\"held\":[");
    for (int i = 0; i < MT_ROLE_COUNT; i++)
        mt_buf_printf(out, "%s%llu", i ? "," : "", (unsigned long long)record->role_bytes[i]);
    mt_buf_add_char(out, ']');
}

static void add_rank(struct writer *writer, uint32_t row)
{
    const struct mt_rank_record *record = writer->report->rows[row].record;

    separate(&writer->ranks);
    add_identity(writer, row);
    add_numbers(&writer->ranks, record);
    add_curves(writer, record);
    add_steps(&writer->ranks, record);
    add_sites(writer, record);
    add_libraries(writer, record);
    mt_buf_add_text(&writer->ranks, "}\n");
    mt_arena_release(&writer->arena);
}

static size_t taken_bytes(const struct writer *writer)
{
    return writer->ranks.length + writer->string_list.length + writer->curve_list.length;
}

/* Adds ranks until one does not fit. Returns the number of added ranks. */
static uint32_t add_ranks(struct writer *writer, const struct mt_page_ranks *ranks,
                          size_t most_bytes)
{
    for (uint32_t i = 0; i < ranks->count; i++) {
        size_t length = writer->ranks.length;

        add_rank(writer, ranks->list[i].row);
        if (taken_bytes(writer) <= most_bytes)
            continue;
        writer->ranks.length = length;
        return i;
    }
    return ranks->count;
}

/* Adds runs of rows whose numbers increase by `step`, as the first number and the length. */
static void add_runs(struct mt_buf *out, const struct mt_job_report *report,
                     int64_t (*number_of)(const struct mt_job_row *row), int64_t step)
{
    uint32_t first = 0;

    for (uint32_t i = 1; i <= report->row_count; i++) {
        if (i < report->row_count &&
            number_of(&report->rows[i]) == number_of(&report->rows[i - 1]) + step)
            continue;
        mt_buf_printf(out, "%s%lld,%u", first ? "," : "",
                      (long long)number_of(&report->rows[first]), (unsigned)(i - first));
        first = i;
    }
}

static int64_t rank_of(const struct mt_job_row *row)
{
    return row->record->identity.rank;
}

static int64_t cluster_of(const struct mt_job_row *row)
{
    return row->cluster;
}

static void add_index(struct mt_buf *out, const struct mt_job_report *report)
{
    mt_buf_add_text(out, "{\"ranks\":[");
    add_runs(out, report, rank_of, 1);
    mt_buf_add_text(out, "],\"clusters\":[");
    add_runs(out, report, cluster_of, 0);
    mt_buf_add_text(out, "],\"peaks\":[");
    for (uint32_t i = 0; i < report->row_count; i++)
        mt_buf_printf(out, "%s%llu", i ? "," : "",
                      (unsigned long long)report->rows[i].record->reserved_peak.bytes);
    mt_buf_add_text(out, "],\"outcomes\":\"");
    for (uint32_t i = 0; i < report->row_count; i++)
        mt_buf_add_char(out, (char)('0' + report->rows[i].record->outcome));
    mt_buf_add_text(out, "\"}");
}

static void add_notable(struct mt_buf *out, const struct mt_page_ranks *ranks, uint32_t count)
{
    mt_buf_add_text(out, "\"notable\":[");
    for (uint32_t i = 0; i < count; i++) {
        mt_buf_printf(out, "%s%u,", i ? "," : "", (unsigned)i);
        mt_escape_add_script_string(out, ranks->list[i].why, MT_PAGE_NAME_BYTES);
    }
    mt_buf_add_char(out, ']');
}

static void add_names(struct mt_buf *out, const struct mt_job_report *report)
{
    mt_buf_add_text(out, "{\"axes\":[");
    for (uint32_t i = 0; i < report->axis_count; i++) {
        if (i)
            mt_buf_add_char(out, ',');
        mt_escape_add_script_string(out, report->axes[i].name, MT_PAGE_NAME_BYTES);
    }
    mt_buf_add_char(out, ']');
    mt_page_add_roles(out);
    mt_buf_add_text(out, ",\n");
}

static void add_list(struct mt_buf *out, const char *name, const struct mt_buf *list)
{
    mt_buf_printf(out, "\"%s\":[", name);
    mt_buf_add(out, list->data, list->length);
    mt_buf_add_text(out, "],\n");
}

static void release(struct writer *writer)
{
    mt_arena_release(&writer->arena);
    mt_strings_release(&writer->strings);
    mt_strings_release(&writer->curves);
    mt_buf_release(&writer->string_list);
    mt_buf_release(&writer->curve_list);
    mt_buf_release(&writer->ranks);
}

void mt_job_page_add_data(struct mt_buf *out, const struct mt_job_report *report,
                          const struct mt_page_ranks *ranks, size_t most_bytes,
                          struct mt_job_page_data *data)
{
    struct writer writer = {.report = report};

    data->rank_count = add_ranks(&writer, ranks, most_bytes);
    data->notable_count = (uint32_t)mt_min_u64(data->rank_count, ranks->notable_count);
    data->has_index = report->row_count <= MT_PAGE_INDEX_ROWS;
    add_names(out, report);
    add_list(out, "strings", &writer.string_list);
    add_list(out, "curves", &writer.curve_list);
    add_list(out, "ranks", &writer.ranks);
    add_notable(out, ranks, data->notable_count);
    mt_buf_add_text(out, ",\n\"index\":");
    if (data->has_index)
        add_index(out, report);
    else
        mt_buf_add_text(out, "null");
    mt_buf_add_char(out, '}');
    release(&writer);
}
