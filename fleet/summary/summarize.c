#include "summarize.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "course_model.h"
#include "summarize_parts.h"
#include "util.h"

static const char *file_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;

    return slash ? slash + 1 : path ? path : "";
}

/* Whether everything was recorded, starting from an empty allocator. */
static bool is_complete(const struct mt_report *report, const struct mt_device_report *device)
{
    const struct mt_integrity *integrity = &report->integrity;

    return device->complete && !report->starts_in_middle && !integrity->cut &&
           !integrity->events_dropped && !integrity->events_invalid && !integrity->frames_damaged;
}

static void fill_facts(const struct mt_summarizing *work)
{
    const struct mt_report *report = work->report;
    const struct mt_device_report *device = work->device;
    struct mt_rank_record *record = work->record;

    record->trace_name = file_name(report->path);
    record->trace_sha256 = report->sha256;
    record->device = device->device;
    record->device_bytes = device->total_memory_bytes;
    record->is_dry_run = report->is_dry_run || work->identity->is_planned;
    record->is_complete = is_complete(report, device);
    record->is_driver_level = report->is_driver_level;
    record->lost_events =
        mt_add_most_u64(report->integrity.events_dropped, report->integrity.events_invalid);
    record->begin_t_ns = report->first_t_ns;
    record->end_t_ns = report->last_t_ns;
    record->ooms = device->ooms;
    record->retries = device->retries;
    record->allocated_at_reserved_peak_bytes = device->reserved_peak.then.allocated;
    memcpy(record->role_bytes, device->peak_role_bytes, sizeof record->role_bytes);
    record->end = device->end;
    record->growth_is_judged = device->growth.judged;
    record->growth_bytes_per_step = device->growth.bytes_per_step;
}

_Static_assert(MT_RECORD_LEVELS == MT_COURSE_LEVELS, "levels have one bound");

static enum mt_status fill_course(const struct mt_summarizing *work)
{
    const struct mt_course *course = work->device->course;
    struct mt_rank_record *record = work->record;

    if (!course)
        return MT_OK;
    record->step_hash = course->step_hash;
    record->levels = mt_arena_array(work->arena, MT_RECORD_LEVELS, sizeof *record->levels);
    record->level_count = course->level_count;
    for (uint32_t i = 0; i < course->level_count; i++)
        record->levels[i] =
            (struct mt_record_level){course->levels[i].t_ns, course->levels[i].reserved_bytes};
    if (course->column_count != MT_RECORD_COLUMNS)
        return MT_OK;
    record->columns = mt_arena_array(work->arena, MT_RECORD_COLUMNS, sizeof *record->columns);
    record->column_count = MT_RECORD_COLUMNS;
    for (uint32_t i = 0; i < MT_RECORD_COLUMNS; i++)
        record->columns[i] = (struct mt_record_column){course->columns[i].allocated_bytes,
                                                       course->columns[i].reserved_bytes};
    return MT_OK;
}

static int by_id(const void *a, const void *b)
{
    const struct mt_record_finding *x = a, *y = b;
    int order = strcmp(x->id, y->id);

    if (order)
        return order;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return strcmp(x->title, y->title);
}

/* The report has them by bytes, the largest first. */
static enum mt_status fill_findings(const struct mt_summarizing *work)
{
    struct mt_rank_record *record = work->record;

    record->finding_count = (uint32_t)mt_min_u64(work->device->finding_count, MT_RECORD_FINDINGS);
    record->findings = mt_arena_array(work->arena, MT_RECORD_FINDINGS, sizeof *record->findings);
    for (uint32_t i = 0; i < record->finding_count; i++) {
        const struct mt_finding *finding = &work->device->findings[i];

        record->findings[i] = (struct mt_record_finding){
            .id = finding->id, .title = finding->title, .bytes = finding->bytes};
    }
    qsort(record->findings, record->finding_count, sizeof *record->findings, by_id);
    return MT_OK;
}

static enum mt_status summarize_device(const struct mt_summarizing *work)
{
    static enum mt_status (*const parts[])(const struct mt_summarizing *) = {
        mt_summarize_identity, mt_summarize_outcome, mt_summarize_steps, mt_summarize_leaves,
        mt_summarize_needs,    fill_course,          fill_findings};
    enum mt_status status = MT_OK;

    fill_facts(work);
    for (size_t i = 0; i < MT_ARRAY_LEN(parts) && status == MT_OK; i++)
        status = parts[i](work);
    return status == MT_OK ? mt_rank_set_add(work->set, work->record) : status;
}

enum mt_status mt_summarize(const struct mt_report *report, const struct mt_identity *identity,
                            struct mt_rank_set *set, struct mt_error *error)
{
    enum mt_status status = MT_OK;
    const char *why = "";

    for (uint32_t i = 0; i < report->device_count && status == MT_OK; i++) {
        struct mt_arena arena = {0};
        struct mt_rank_record record = {0};
        const struct mt_summarizing work = {report, &report->devices[i], identity, set, &arena,
                                            &record};

        status = summarize_device(&work);
        mt_arena_release(&arena);
    }
    if (status != MT_OK)
        return mt_fail(error, status, MT_NO_OFFSET, "%s", mt_status_text(status));
    /* Also in release builds: readers refuse a file that violates a rule, so it must not be
     * written. */
    if (!mt_rank_set_is_sound(set, &why))
        return mt_fail(error, MT_ERR_INTERNAL, MT_NO_OFFSET, "the summary is inconsistent: %s",
                       why);
    return MT_OK;
}
