/* The answer about the setting, as JSON and as text: how much it saves, the line to paste, the
 * ranks on which it was checked, and the best setting of each cluster. */
#include <string.h>

#include "fleet_tune_output.h"
#include "job_values.h"
#include "job_words.h"
#include "json.h"
#include "text_table.h"
#include "tune_output.h"
#include "units.h"
#include "util.h"

struct writer {
    struct mt_json *json;
    const struct mt_job_report *report;
    const struct mt_job_settings *settings;
};

/* Adds rank, device and trace of a row of the report. */
static void add_place(const struct writer *writer, uint32_t row)
{
    const struct mt_rank_record *record = writer->report->rows[row].record;

    if (record->identity.rank < 0)
        mt_json_null(writer->json, "rank");
    else
        mt_json_i64(writer->json, "rank", record->identity.rank);
    mt_json_u64(writer->json, "device", record->device);
    mt_json_text(writer->json, "trace", record->trace_name);
}

static void add_largest(const struct writer *writer, const char *key,
                        const struct mt_job_largest *largest)
{
    mt_json_object_begin(writer->json, key);
    add_place(writer, writer->settings->checks[largest->row].row);
    mt_json_u64(writer->json, "needed_bytes", largest->needed_bytes);
    mt_json_bool(writer->json, "needed_is_exact", largest->is_exact);
    mt_json_u64(writer->json, "limit_bytes", largest->limit_bytes);
    mt_json_object_end(writer->json);
}

/* Adds the result of a row under a setting. */
static void add_cell(const struct writer *writer, const char *key, const struct mt_job_cell *cell,
                     uint32_t check)
{
    const struct mt_job_trial *trial = &writer->settings->trial;

    mt_json_object_begin(writer->json, key);
    mt_json_u64_or_null(writer->json, "needed_bytes", cell->serves,
                        mt_job_trial_needed(trial, cell, check));
    mt_json_u64_or_null(writer->json, "limit_bytes", cell->serves, cell->limit_bytes);
    mt_json_u64(writer->json, "reserved_peak_bytes", cell->peak_bytes);
    mt_json_u64(writer->json, "driver_calls", cell->driver_calls);
    mt_json_object_end(writer->json);
}

/* Returns the result under the chosen setting, or the original result if none is chosen. */
static const struct mt_job_cell *chosen_cell(const struct writer *writer, uint32_t setting,
                                             uint32_t check)
{
    const struct mt_job_trial *trial = &writer->settings->trial;

    return setting == MT_NO_SETTING ? &trial->before[check]
                                    : trial->cells + (size_t)setting * trial->row_count + check;
}

static void add_checked(const struct writer *writer)
{
    const struct mt_job_settings *settings = writer->settings;

    for (struct mt_json_list row = mt_json_rows(writer->json, "checked", settings->trial.row_count);
         mt_json_next(&row);) {
        add_place(writer, settings->checks[row.i].row);
        mt_json_u64(writer->json, "cluster",
                    writer->report->rows[settings->checks[row.i].row].cluster);
        mt_json_bool(writer->json, "tuned", settings->checks[row.i].is_tuned);
        add_cell(writer, "before", &settings->trial.before[row.i], row.i);
        add_cell(writer, "after", chosen_cell(writer, settings->choice.setting, row.i), row.i);
    }
}

static void add_json_clusters(const struct writer *writer)
{
    const struct mt_job_settings *settings = writer->settings;
    struct mt_json_list list;

    mt_json_list_begin(&list, writer->json, "clusters");
    for (uint32_t i = 0; i < settings->trial.row_count; i++) {
        uint32_t cluster = writer->report->rows[settings->checks[i].row].cluster;

        if (!settings->checks[i].is_tuned || !mt_json_list_takes(&list))
            continue;
        uint32_t own = mt_job_trial_own_best(&settings->trial, i);
        mt_json_object_begin(writer->json, NULL);
        mt_json_u64(writer->json, "cluster", cluster);
        mt_json_u64(writer->json, "ranks", writer->report->clusters[cluster].count);
        add_place(writer, settings->checks[i].row);
        mt_json_text(writer->json, "run_conf", settings->own_confs[i]);
        mt_json_text(writer->json, "own_conf",
                     own == MT_NO_SETTING ? NULL : settings->trial.confs[own]);
        add_cell(writer, "own", chosen_cell(writer, own, i), i);
        mt_json_object_end(writer->json);
    }
    mt_json_list_end(&list);
}

/* Adds the rows of the report with this state. */
static void add_json_rows(const struct writer *writer, const char *key, enum mt_job_row_check state)
{
    struct mt_json_list list;

    mt_json_list_begin(&list, writer->json, key);
    for (uint32_t i = 0; i < writer->report->row_count; i++) {
        if (writer->settings->states[i] != state || !mt_json_list_takes(&list))
            continue;
        mt_json_object_begin(writer->json, NULL);
        add_place(writer, i);
        mt_json_object_end(writer->json);
    }
    mt_json_list_end(&list);
}

static void add_not_replayed(const struct writer *writer)
{
    struct mt_json_list list;

    mt_json_list_begin(&list, writer->json, "not_replayable");
    for (uint32_t i = 0; i < writer->report->row_count; i++) {
        if (!writer->settings->reasons[i] || !mt_json_list_takes(&list))
            continue;
        mt_json_object_begin(writer->json, NULL);
        add_place(writer, i);
        mt_json_text(writer->json, "reason", writer->settings->reasons[i]);
        mt_json_object_end(writer->json);
    }
    mt_json_list_end(&list);
}

void mt_fleet_tune_json(struct mt_json *json, const struct mt_fleet_answer *answer)
{
    const struct mt_job_settings *settings = answer->settings;
    const struct writer writer = {json, answer->report, settings};
    uint32_t setting = settings ? settings->choice.setting : MT_NO_SETTING;

    if (!settings) {
        mt_json_null(json, "settings");
        return;
    }
    mt_json_object_begin(json, "settings");
    mt_json_text(json, "conf", setting == MT_NO_SETTING ? NULL : settings->trial.confs[setting]);
    add_largest(&writer, "before", &settings->choice.before);
    add_largest(&writer, "after", &settings->choice.after);
    mt_json_u64(json, "settings_tuned", settings->tune_settings);
    mt_json_u64(json, "settings_replayed", settings->trial.setting_count);
    mt_json_u64(json, "traces", settings->trace_count);
    mt_json_u64(json, "traces_tuned", settings->tuned_count);
    mt_json_u64(json, "readings", settings->readings);
    add_checked(&writer);
    add_json_clusters(&writer);
    add_json_rows(&writer, "not_checked_but_alike", MT_JOB_ALIKE);
    add_json_rows(&writer, "not_checked", MT_JOB_NOT_CHECKED);
    add_not_replayed(&writer);
    mt_json_object_end(json);
}

enum { ROWS = 12, REASONS = 5 }; /* maximum lengths of lists without --all */

struct text {
    struct mt_buf *out;
    const struct mt_fleet_answer *answer;
    const struct mt_job_settings *settings;
    const struct mt_style *style;
};

static const char *spelling(const char *conf)
{
    return *conf ? conf : "(defaults)";
}

static const char *name_of_row(const struct text *text, uint32_t row)
{
    return (mt_job_row_name(text->answer->arena, text->answer->report, row));
}

static const char *row_name(const struct text *text, uint32_t check)
{
    return name_of_row(text, text->settings->checks[check].row);
}

/* Adds a line, in bold if it is the first. */
static void add_line(const struct text *text, bool is_first, const char *line)
{
    mt_buf_add_text(text->out, is_first ? text->style->bold : "");
    mt_text_table_add_note(text->out, is_first ? 0 : 2, "%s", line);
    mt_buf_add_text(text->out, is_first ? text->style->reset : "");
}

/* Returns true if every device of the job was replayed. */
static bool is_all_checked(const struct text *text)
{
    const struct mt_job_report *report = text->answer->report;

    for (uint32_t i = 0; i < report->row_count; i++)
        if (text->settings->states[i] != MT_JOB_CHECKED)
            return false;
    return !report->missing_count && !report->unreadable_count;
}

/* Returns "each device", or "each rank" if ranks share a device. A shared device needs the sum over
 * its ranks. */
static const char *scope_of(const struct text *text)
{
    static const char *const words[2][2] = {{"each device that was checked", "each device"},
                                            {"each rank that was checked", "each rank"}};

    return words[text->answer->report->device_count > 0][is_all_checked(text)];
}

/* Returns why no setting can be chosen. */
static const char *no_setting(const struct text *text)
{
    uint32_t count = text->settings->trial.setting_count;

    if (!count)
        return "tune found no setting that serves the run";
    if (count == 1)
        return "the best setting that tune found does not need less than the run did";
    return mt_arena_printf(text->answer->arena,
                           "none of the %u best settings that tune found needs less than the run "
                           "did",
                           (unsigned)count);
}

/* Calls the difference "about" if a number is only a lower bound, because the difference of two
 * lower bounds is not a bound. */
static void add_headline(const struct text *text)
{
    const struct mt_job_choice *choice = &text->settings->choice;
    uint64_t before = choice->before.needed_bytes, after = choice->after.needed_bytes;
    char less[MT_UNITS_TEXT], then[MT_UNITS_TEXT], now[MT_UNITS_TEXT];
    bool is_exact = choice->after.is_exact && choice->before.is_exact;
    const char *at_least = is_exact ? "" : "at least ", *about = is_exact ? "" : "about ";

    mt_format_bytes_distinct(then, after, now, before);
    if (choice->setting == MT_NO_SETTING)
        add_line(text, true,
                 mt_arena_printf(text->answer->arena, "0 B less on %s: %s (%s%s)", scope_of(text),
                                 no_setting(text), at_least, now));
    else
        add_line(text, true,
                 mt_arena_printf(text->answer->arena,
                                 "%s%s less on %s with one setting for all ranks: %s%s instead of "
                                 "%s%s",
                                 about, mt_format_bytes(less, before - after), scope_of(text),
                                 at_least, then, at_least, now));
}

static void add_shared_devices(const struct text *text)
{
    uint32_t count = text->answer->report->device_count;

    if (count)
        add_line(text, false,
                 mt_arena_printf(text->answer->arena,
                                 "Ranks share %u device%s, and such a device must have memory for "
                                 "all of its ranks; the setting is chosen for the rank that needs "
                                 "the most",
                                 (unsigned)count, mt_plural_s(count)));
}

/* Adds the line to paste, which is never wrapped. */
static void add_setting(const struct text *text)
{
    const struct mt_job_settings *settings = text->settings;
    const char *conf = settings->trial.confs[settings->choice.setting];
    const char *before = settings->own_confs[settings->choice.before.row];

    mt_buf_printf(text->out, "  %s", text->style->bold);
    mt_tune_add_command(text->out, conf);
    mt_buf_printf(text->out, "%s\n", text->style->reset);
    if (before)
        add_line(text, false,
                 mt_arena_printf(text->answer->arena, "%s had %s",
                                 row_name(text, settings->choice.before.row), spelling(before)));
}

static void add_worst(const struct text *text)
{
    const struct mt_job_choice *choice = &text->settings->choice;
    const struct mt_job_trial *trial = &text->settings->trial;
    const struct mt_job_cell *then =
        trial->cells + (size_t)choice->setting * trial->row_count + choice->after.row;
    char limit[MT_UNITS_TEXT], old_limit[MT_UNITS_TEXT], calls[2][MT_UNITS_TEXT];

    if (choice->after.row == choice->before.row)
        add_line(text, false,
                 mt_arena_printf(text->answer->arena, "%s needs the most, before and after",
                                 row_name(text, choice->after.row)));
    else
        add_line(text, false,
                 mt_arena_printf(
                     text->answer->arena, "%s needs the most with this setting; before, %s did",
                     row_name(text, choice->after.row), row_name(text, choice->before.row)));
    add_line(text, false,
             mt_arena_printf(
                 text->answer->arena,
                 "%s MiB is the smallest allocator limit that serves all checked ranks, in every "
                 "order of addresses that was tried; before, it was %s MiB",
                 mt_format_count(limit, choice->after.limit_bytes / MT_MIB),
                 mt_format_count(old_limit, choice->before.limit_bytes / MT_MIB)));
    add_line(text, false,
             mt_arena_printf(
                 text->answer->arena, "%s makes %s driver calls instead of %s",
                 row_name(text, choice->after.row), mt_format_count(calls[0], then->driver_calls),
                 mt_format_count(calls[1], trial->before[choice->after.row].driver_calls)));
}

/* Rows of the report, as ranges of ranks. Rows without a rank are only counted. */
struct rows {
    struct mt_job_range *ranges;
    uint32_t range_count, rank_count, unranked_count;
};

/* Rows ascend by rank. */
static struct rows rows_of(const struct text *text, enum mt_job_row_check state)
{
    const struct mt_job_report *report = text->answer->report;
    struct rows rows = {0};

    rows.ranges =
        mt_arena_array(text->answer->arena, (size_t)report->row_count + 1, sizeof *rows.ranges);
    for (uint32_t i = 0; i < report->row_count; i++) {
        if (text->settings->states[i] != state)
            continue;
        if (report->rows[i].record->identity.rank < 0)
            rows.unranked_count++;
        else
            mt_job_range_add(rows.ranges, &rows.range_count, report->rows[i].record->identity.rank);
    }
    for (uint32_t i = 0; i < rows.range_count; i++)
        rows.rank_count += (uint32_t)(rows.ranges[i].last - rows.ranges[i].first) + 1;
    return rows;
}

/* "Not checked: ranks 0-3, 8; <why>". Adds nothing if there are no such rows. */
static void add_rows(const struct text *text, const struct rows *rows, const char *what,
                     const char *why)
{
    struct mt_arena *arena = text->answer->arena;
    const char *ranks = (mt_job_ranges(arena, rows->ranges, rows->range_count, rows->rank_count,
                                       text->answer->all));

    if (rows->rank_count)
        add_line(text, false,
                 mt_arena_printf(arena, "%s: rank%s %s%s", what, mt_plural_s(rows->rank_count),
                                 ranks, why));
    if (rows->unranked_count)
        add_line(text, false,
                 mt_arena_printf(arena, "%s: %u device%s of processes without a rank%s", what,
                                 (unsigned)rows->unranked_count, mt_plural_s(rows->unranked_count),
                                 why));
}

/* Reports a rank that was not checked and may need more than all checked ranks. */
static void add_unchecked_worst(const struct text *text)
{
    const struct mt_job_report *report = text->answer->report;
    const struct mt_job_largest *before = &text->settings->choice.before;
    char bytes[MT_UNITS_TEXT];
    uint32_t worst = MT_NO_ROW;

    for (uint32_t i = 0; i < report->row_count; i++) {
        uint64_t needed = report->rows[i].record->needed_bytes;

        if (text->settings->states[i] != MT_JOB_CHECKED && needed > before->needed_bytes &&
            (worst == MT_NO_ROW || needed > report->rows[worst].record->needed_bytes))
            worst = i;
    }
    if (worst == MT_NO_ROW)
        return;
    add_line(text, false,
             mt_arena_printf(text->answer->arena,
                             "%s needs %s%s as it ran, more than any rank that was checked",
                             name_of_row(text, worst),
                             report->rows[worst].record->needed_is_known ? "about " : "at least ",
                             mt_format_bytes(bytes, report->rows[worst].record->needed_bytes)));
}

/* Adds the rows that could not be replayed, with the reason. Adjacent rows with the same reason
 * share a line. */
static void add_reasons(const struct text *text)
{
    const struct mt_job_report *report = text->answer->report;
    struct mt_arena *arena = text->answer->arena;
    uint32_t shown = 0, left = 0;

    for (uint32_t i = 0, end; i < report->row_count; i = end) {
        const char *reason = text->settings->reasons[i];

        for (end = i + 1; end < report->row_count && reason && text->settings->reasons[end] &&
                          !strcmp(reason, text->settings->reasons[end]);)
            end++;
        if (!reason)
            continue;
        if (shown++ >= REASONS && !text->answer->all) {
            left += end - i;
            continue;
        }
        const char *first = name_of_row(text, i);
        const char *last = name_of_row(text, end - 1);
        add_line(text, false,
                 end == i + 1 ? mt_arena_printf(arena, "Not replayed: %s: %s", first, reason)
                              : mt_arena_printf(arena, "Not replayed: %s to %s (%u): %s", first,
                                                last, (unsigned)(end - i), reason));
    }
    if (left)
        add_line(text, false,
                 mt_arena_printf(arena, "Not replayed: %u more; --all lists them", (unsigned)left));
}

/* Returns true if all rows that count as alike have parameters, which can be compared. */
static bool have_parameters(const struct text *text)
{
    const struct mt_job_report *report = text->answer->report;

    for (uint32_t i = 0; i < report->row_count; i++)
        if (text->settings->states[i] == MT_JOB_ALIKE && !report->rows[i].parameter_hash)
            return false;
    return true;
}

static void add_checks(const struct text *text)
{
    const struct mt_job_report *report = text->answer->report;
    const struct rows checked = rows_of(text, MT_JOB_CHECKED);
    const struct rows alike = rows_of(text, MT_JOB_ALIKE);
    const struct rows others = rows_of(text, MT_JOB_NOT_CHECKED);
    const struct rows missing = {report->missing, report->missing_ranges, report->missing_count, 0};

    add_rows(text, &checked, "Checked by replay", "");
    add_rows(text, &alike, "Not checked",
             have_parameters(text)
                 ? "; an equivalent rank was checked (same parameters, same place on the axes)"
                 : "; a rank with no known difference was checked (no parameters were recognized)");
    add_rows(text, &others, "Not checked", "; no equivalent rank was checked");
    add_rows(text, &missing, "Not checked", ": the job has no files of these ranks");
    if (report->unreadable_count)
        add_line(text, false,
                 mt_arena_printf(text->answer->arena, "Not checked: %u file%s that cannot be read",
                                 (unsigned)report->unreadable_count,
                                 mt_plural_s(report->unreadable_count)));
    add_unchecked_worst(text);
    add_reasons(text);
}

static void add_method(const struct text *text)
{
    const struct mt_job_settings *settings = text->settings;
    struct mt_arena *arena = text->answer->arena;
    unsigned best = (unsigned)settings->trial.setting_count;
    char count[3][MT_UNITS_TEXT];

    add_line(text, false,
             mt_arena_printf(
                 arena, "%s readings of %s: tune tried %s settings on %u of them, and %s",
                 mt_format_count(count[0], settings->readings),
                 mt_format_counted(count[1], settings->trace_count, "trace"),
                 mt_format_count(count[2], settings->tune_settings),
                 (unsigned)settings->tuned_count,
                 best == 1 ? "its best one was replayed on all"
                           : (mt_arena_printf(arena, "the best %u were replayed on all", best))));
}

static void add_cluster(const struct text *text, struct mt_table *table, uint32_t check)
{
    const struct mt_job_report *report = text->answer->report;
    const struct mt_job_trial *trial = &text->settings->trial;
    uint32_t setting = text->settings->choice.setting, own = mt_job_trial_own_best(trial, check);
    uint32_t cluster = report->rows[text->settings->checks[check].row].cluster;
    const struct mt_job_cell *before = &trial->before[check];
    const struct mt_job_cell *with =
        setting == MT_NO_SETTING ? before
                                 : trial->cells + (size_t)setting * trial->row_count + check;
    const struct mt_job_cell *best =
        own == MT_NO_SETTING ? before : trial->cells + (size_t)own * trial->row_count + check;

    MT_CELLS(table, MT_TEXT(row_name(text, check)), MT_COUNT(report->clusters[cluster].count),
             MT_BYTES(mt_job_trial_needed(trial, before, check)));
    if (setting != MT_NO_SETTING)
        MT_CELLS(table, MT_BYTES(mt_job_trial_needed(trial, with, check)));
    MT_CELLS(table, MT_BYTES(mt_job_trial_needed(trial, best, check)),
             MT_TEXT(own == MT_NO_SETTING ? "as it ran" : spelling(trial->confs[own])));
}

/* Adds a table with a row for each tuned cluster. */
static void add_clusters(const struct text *text)
{
    const struct mt_job_settings *settings = text->settings;
    uint32_t left = 0, shown = 0;
    struct mt_table table;

    mt_table_begin(&table, "on|#equal ranks|#needed");
    if (settings->choice.setting != MT_NO_SETTING)
        mt_table_columns(&table, "#with this");
    mt_table_columns(&table, "#own best|!own best setting");
    for (uint32_t i = 0; i < settings->trial.row_count; i++) {
        if (!settings->checks[i].is_tuned)
            continue;
        if (shown++ < ROWS || text->answer->all)
            add_cluster(text, &table, i);
        else
            left++;
    }
    mt_text_table_add(text->out, &table, 2, text->style);
    if (left)
        mt_text_table_add_note(text->out, 2, "and %u more", (unsigned)left);
}

void mt_fleet_tune_text(struct mt_buf *out, const struct mt_fleet_answer *answer,
                        const struct mt_style *style)
{
    const struct text text = {out, answer, answer->settings, style};

    if (!answer->settings)
        return;
    add_headline(&text);
    if (answer->settings->choice.setting != MT_NO_SETTING) {
        add_setting(&text);
        add_worst(&text);
    }
    add_shared_devices(&text);
    add_checks(&text);
    add_method(&text);
    add_clusters(&text);
    mt_buf_add_char(out, '\n');
}
