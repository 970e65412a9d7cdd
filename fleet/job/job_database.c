/* A job as a database: `memtrace export sqlite FOLDER`. */
#include "job_database.h"

#include "database_writer.h"
#include "fleet_job.h"

/* Made of job_schema.sql by cmake/embed.cmake. */
extern const char mt_job_schema[];

enum { SETTINGS, RANKS, HOLDERS, STEPS, OWNERS, FINDINGS };
static const char *const tables[] = {"settings",   "ranks",       "rank_holders",
                                     "rank_steps", "rank_owners", "rank_findings"};

const struct mt_database_schema mt_job_database = {
    mt_job_schema, "CREATE INDEX rank_holders_by_row ON rank_holders(row)", tables,
    sizeof tables / sizeof *tables};

static void number_or_null(struct mt_database_writer *writer, int32_t number)
{
    if (number < 0)
        mt_row_null(writer);
    else
        mt_row_i64(writer, number);
}

static void text_or_null(struct mt_database_writer *writer, const char *text)
{
    mt_row_text(writer, *text ? text : NULL);
}

static void write_peaks(struct mt_database_writer *writer, const struct mt_rank_record *record)
{
    mt_row_u64(writer, record->requested_peak.bytes);
    mt_row_u64(writer, record->allocated_peak.bytes);
    mt_row_u64(writer, record->active_peak.bytes);
    mt_row_u64(writer, record->reserved_peak.bytes);
    mt_row_u64(writer, record->allocated_peak.event);
    mt_row_u64(writer, record->reserved_peak.event);
}

static void write_rank(struct mt_database_writer *writer, const struct mt_job_report *report,
                       uint32_t row, struct mt_arena *words)
{
    const struct mt_rank_record *record = report->rows[row].record;
    bool has_site = record->has_death && record->death_site != MT_NO_PATH;

    mt_row_u64(writer, row);
    number_or_null(writer, record->identity.rank);
    mt_row_u64(writer, record->device);
    text_or_null(writer, record->identity.host);
    number_or_null(writer, record->identity.local_rank);
    number_or_null(writer, record->identity.restart);
    mt_row_text(writer, record->trace_name);
    mt_row_text(writer, mt_outcome_name(record->outcome));
    mt_row_u64(writer, record->is_dry_run);
    mt_row_u64(writer, record->is_complete);
    mt_row_u64_or_null(writer, record->device_bytes, record->device_bytes);
    write_peaks(writer, record);
    mt_row_u64(writer, record->needed_bytes);
    mt_row_u64(writer, record->needed_is_known && record->is_complete);
    mt_row_u64_or_null(writer, record->has_driver, record->outside_bytes);
    mt_row_u64_or_null(writer, record->growth_is_judged, record->growth_bytes_per_step);
    mt_row_u64(writer, record->ooms);
    mt_row_u64(writer, record->retries);
    mt_row_step(writer, record->last_step);
    mt_row_u64_or_null(writer, record->has_death, record->death_wanted_bytes);
    mt_row_u64_or_null(writer, record->has_death, record->death_free_bytes);
    mt_row_u64_or_null(writer, record->has_death, record->death_t_ns);
    mt_row_text(writer, has_site ? mt_job_site_text(words, report, record->death_site) : NULL);
    mt_row_end(writer, RANKS);
}

static void write_parts(struct mt_database_writer *writer, const struct mt_job_report *report,
                        uint32_t row, struct mt_arena *words)
{
    const struct mt_rank_record *record = report->rows[row].record;

    for (uint32_t i = 0; i < record->leaf_count; i++) {
        const struct mt_record_leaf leaf = mt_leaf_at(record, i);
        bool has_site = leaf.site != MT_NO_PATH;

        mt_row_u64(writer, row);
        mt_row_text(writer, mt_role_name(leaf.role));
        mt_row_text(writer, has_site ? mt_job_site_text(words, report, leaf.site) : NULL);
        mt_row_u64(writer, leaf.bytes);
        mt_row_u64(writer, leaf.blocks);
        mt_row_end(writer, HOLDERS);
    }
    for (uint32_t i = 0; i < record->step_count; i++) {
        const struct mt_record_step step = mt_step_at(record, i);

        mt_row_u64(writer, row);
        mt_row_step(writer, step.first);
        mt_row_step(writer, step.last);
        mt_row_u64(writer, step.begin_t_ns);
        mt_row_u64(writer, step.end_t_ns);
        mt_row_u64(writer, step.allocated_peak_bytes);
        mt_row_u64(writer, step.reserved_peak_bytes);
        mt_row_u64(writer, step.end_allocated_bytes);
        mt_row_end(writer, STEPS);
    }
    for (uint32_t i = 0; i < record->owner_count; i++) {
        mt_row_u64(writer, row);
        text_or_null(writer, record->owners[i].library);
        mt_row_u64(writer, record->owners[i].bytes);
        mt_row_end(writer, OWNERS);
    }
    for (uint32_t i = 0; i < record->finding_count; i++) {
        mt_row_u64(writer, row);
        mt_row_text(writer, record->findings[i].id);
        mt_row_text(writer, record->findings[i].title);
        mt_row_u64(writer, record->findings[i].bytes);
        mt_row_end(writer, FINDINGS);
    }
}

static void write_job(struct mt_database_writer *writer, const struct mt_fleet_job *job)
{
    const struct mt_job_report *report = job->report;
    struct mt_arena words = {0};

    mt_row_setting_number(writer, "schema", MT_DATABASE_VERSION);
    mt_row_setting(writer, "input", job->path);
    mt_row_setting(writer, "job", *report->job ? report->job : NULL);
    mt_row_setting_number(writer, "world_size", (int64_t)report->world);
    mt_row_setting_number(writer, "ranks_missing", (int64_t)report->missing_count);
    mt_row_setting_number(writer, "is_damaged", job->failures.count > 0);
    for (uint32_t row = 0; row < report->row_count; row++) {
        write_rank(writer, report, row, &words);
        write_parts(writer, report, row, &words);
        mt_arena_release(&words);
    }
}

int mt_job_database_fill(struct mt_database_writer *writer, const char *path,
                         const struct mt_common *common)
{
    const struct mt_fleet_reading reading = {.name_all = common->all};
    const struct mt_fleet_naming naming = {.path = path};
    struct mt_fleet_job job = {0};
    int code = mt_fleet_job_open(&job, &naming, &reading, 0);

    if (code == MT_EXIT_OK)
        write_job(writer, &job);
    if (code == MT_EXIT_OK && job.failures.count)
        code = MT_EXIT_INPUT;
    mt_fleet_job_release(&job);
    return code;
}
