#include "fleet_tune_output.h"
#include "json_list.h"

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
    struct mt_json_list list;

    mt_json_list_begin(&list, writer->json, "checked");
    for (uint32_t i = 0; i < settings->trial.row_count; i++) {
        if (!mt_json_list_takes(&list))
            continue;
        mt_json_object_begin(writer->json, NULL);
        add_place(writer, settings->checks[i].row);
        mt_json_u64(writer->json, "cluster", writer->report->rows[settings->checks[i].row].cluster);
        mt_json_bool(writer->json, "tuned", settings->checks[i].is_tuned);
        add_cell(writer, "before", &settings->trial.before[i], i);
        add_cell(writer, "after", chosen_cell(writer, settings->choice.setting, i), i);
        mt_json_object_end(writer->json);
    }
    mt_json_list_end(&list);
}

static void add_clusters(const struct writer *writer)
{
    const struct mt_job_settings *settings = writer->settings;
    struct mt_json_list list;

    mt_json_list_begin(&list, writer->json, "clusters");
    for (uint32_t i = 0; i < settings->trial.row_count; i++) {
        uint32_t cluster = writer->report->rows[settings->checks[i].row].cluster, own;

        if (!settings->checks[i].is_tuned || !mt_json_list_takes(&list))
            continue;
        own = mt_job_trial_own_best(&settings->trial, i);
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
static void add_rows(const struct writer *writer, const char *key, enum mt_job_row_check state)
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
    add_clusters(&writer);
    add_rows(&writer, "not_checked_but_alike", MT_JOB_ALIKE);
    add_rows(&writer, "not_checked", MT_JOB_NOT_CHECKED);
    add_not_replayed(&writer);
    mt_json_object_end(json);
}
