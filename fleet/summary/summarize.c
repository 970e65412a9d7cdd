/* Makes the records of a rank from a report, one record for each device. */
#include <stdlib.h>
#include <string.h>

#include "card_use.h"
#include "identity.h"
#include "level_over_time_model.h"
#include "rank_set.h"
#include "report.h"
#include "report_query.h"
#include "sorted.h"
#include "summarize.h"
#include "summarize_parts.h"
#include "util.h"
#include "work_kinds.h"

static const char *text_or_empty(const char *text)
{
    return text ? text : "";
}

MT_DEFINE_ORDER(by_name, struct mt_record_group, MT_BY_TEXT(name) || MT_ASCENDING(members_hash))

static void fill_groups(const struct mt_summarizing *work)
{
    struct mt_record_identity *out = &work->record->identity;

    out->group_count = work->identity->group_count;
    out->groups = mt_arena_array(work->arena, out->group_count + 1, sizeof *out->groups);
    for (uint32_t i = 0; i < out->group_count; i++) {
        const struct mt_identity_group *group = &work->identity->groups[i];

        out->groups[i] = (struct mt_record_group){.name = group->name,
                                                  .size = group->size,
                                                  .first = group->first,
                                                  .stride = group->stride,
                                                  .position = group->position,
                                                  .members_hash = group->members_hash};
    }
    qsort(out->groups, out->group_count, sizeof *out->groups, by_name);
}

static void fill_axes(const struct mt_summarizing *work)
{
    const struct mt_mesh *mesh = &work->identity->mesh;
    struct mt_record_identity *out = &work->record->identity;

    out->axis_count = mesh->count;
    out->axes = mt_arena_array(work->arena, mesh->count + 1, sizeof *out->axes);
    for (uint32_t i = 0; i < mesh->count; i++)
        out->axes[i] = (struct mt_record_axis){
            .name = mesh->axes[i].name,
            .coordinate = mesh->axes[i].coordinate,
            .size = mesh->axes[i].size,
        };
}

static void fill_device(const struct mt_summarizing *work)
{
    const struct mt_identity *identity = work->identity;
    struct mt_rank_record *record = work->record;

    record->device_name = text_or_empty(work->device->name);
    record->device_uuid = record->device_pci = record->device_mig = "";
    for (uint32_t i = 0; i < identity->device_count; i++) {
        if (identity->devices[i].index != work->device->device)
            continue;
        record->device_uuid = identity->devices[i].uuid;
        record->device_pci = identity->devices[i].pci;
        record->device_mig = identity->devices[i].mig;
    }
}

/* Sets identity, device_uuid, device_pci and device_mig. */
static void summarize_identity(const struct mt_summarizing *work)
{
    const struct mt_identity *identity = work->identity;
    struct mt_record_identity *out = &work->record->identity;

    out->host = identity->host;
    out->boot_id = identity->boot_id;
    out->job = identity->job;
    out->process_id = identity->process_id;
    out->rank = identity->rank;
    out->local_rank = identity->local_rank;
    out->world = identity->world;
    out->restart = identity->restart;
    out->rank_origin = identity->rank_origin;
    out->memory_limit_bytes = identity->memory_limit_bytes;
    out->cgroup_limit_bytes = identity->cgroup_limit_bytes;
    out->ended = identity->ended;
    out->ended_number = identity->ended_number;
    out->ended_t_ns = identity->ended_t_ns;
    fill_device(work);
    fill_axes(work);
    fill_groups(work);
}

/* How a rank ended. A request that only frees followed counts as the end of a run in an analysis,
 * whatever the process reported afterwards: one that catches the error may still exit with 0. */

struct death {
    uint64_t t_ns, event, wanted_bytes, free_bytes;
    uint32_t stack;
};

/* Without a framework the driver's refusal counts, unless the process ended successfully: a program
 * may request memory only to find out how much there is. */
static const struct mt_driver_failure *refused(const struct mt_summarizing *work)
{
    const struct mt_driver_report *driver = mt_driver_of(work->report, work->device->device);
    bool ended_well = work->identity->ended == MT_ENDED_EXIT && work->identity->ended_number == 0;

    return work->report->is_driver_level && !ended_well && driver ? driver->fatal : NULL;
}

static bool find_death(const struct mt_summarizing *work, struct death *death)
{
    const struct mt_oom *oom = mt_fatal_oom(work->device);
    const struct mt_driver_failure *failure = refused(work);

    if (oom)
        *death = (struct death){oom->t_ns, oom->event, oom->request_bytes, oom->device_free_bytes,
                                oom->stack};
    else if (failure)
        *death = (struct death){failure->t_ns, failure->event, failure->request_bytes, 0,
                                failure->stack};
    return oom || failure;
}

/* The frames that flame graphs show. */
static uint32_t path_of(const struct mt_summarizing *work, uint32_t stack)
{
    struct mt_named_frames named;
    uint32_t frames[MT_NAMED_FRAMES_DEPTH], count = 0, path = MT_NO_PATH;

    mt_named_frames_init(&named, work->arena, work->report->symbols);
    mt_named_frames_get(&named, stack, frames, &count);
    for (uint32_t i = 0; i < count; i++) {
        const char *label = mt_frame_label(work->arena, work->report->symbols, frames[i]);

        path = mt_rank_set_path(work->set, path, label, strlen(label));
    }
    return path;
}

static enum mt_outcome outcome_of(const struct mt_summarizing *work, bool died)
{
    if (died)
        return MT_OUTCOME_OOM;
    switch (work->identity->ended) {
    case MT_ENDED_EXIT:
        return work->identity->ended_number ? MT_OUTCOME_FAILED : MT_OUTCOME_FINISHED;
    case MT_ENDED_SIGNAL:
    case MT_ENDED_TIMEOUT:
    case MT_ENDED_OOM_KILLED: return MT_OUTCOME_KILLED;
    case MT_ENDED_UNKNOWN: break;
    }
    return work->report->integrity.cut ? MT_OUTCOME_CUT : MT_OUTCOME_UNKNOWN;
}

/* Sets outcome, has_death and the fields of the death. */
static void summarize_outcome(const struct mt_summarizing *work)
{
    struct mt_rank_record *record = work->record;
    struct death death;

    record->has_death = find_death(work, &death);
    record->outcome = outcome_of(work, record->has_death);
    record->death_path = record->death_site = MT_NO_PATH;
    if (!record->has_death)
        return;
    record->death_t_ns = death.t_ns;
    record->death_event = death.event;
    record->death_wanted_bytes = death.wanted_bytes;
    record->death_free_bytes = death.free_bytes;
    if (death.stack == MT_NO_ID)
        return;
    record->death_path = path_of(work, death.stack);
    record->death_site = mt_summarize_site(work, mt_stack_site(work->report->symbols, death.stack));
}

/* Steps of a record: those that the recording covers, by number. A program may count from 0 in each
 * epoch; then they are numbered here from 0 to the last, so that each number is unique. */

struct step_numbers {
    const struct mt_step_use *steps;
    uint32_t count;
    bool is_counted; /* the program's numbers do not ascend */
};

static struct step_numbers numbers_of(const struct mt_summarizing *work)
{
    uint32_t first = mt_first_step(work->report, work->device);
    struct step_numbers numbers = {.steps = work->device->steps + first,
                                   .count = work->device->step_count - first};

    for (uint32_t i = 1; i < numbers.count; i++)
        numbers.is_counted |= numbers.steps[i].step <= numbers.steps[i - 1].step;
    return numbers;
}

static int64_t number_at(const struct step_numbers *numbers, uint32_t i)
{
    return numbers->is_counted ? (int64_t)i : numbers->steps[i].step;
}

/* For an instant in the step with the program's number `step`. */
static int64_t number_of(const struct mt_report *report, const struct step_numbers *numbers,
                         int64_t step, uint64_t event)
{
    if (!numbers->is_counted || step == MT_NO_STEP)
        return step;
    for (uint32_t i = numbers->count; i-- > 0;)
        if (mt_step_begin(report, &numbers->steps[i]) <= event &&
            event <= numbers->steps[i].end_event)
            return (int64_t)i;
    return MT_NO_STEP;
}

static void absorb(struct mt_record_step *into, const struct mt_step_use *step, int64_t number)
{
    into->last = number;
    into->end_t_ns = step->end_t_ns;
    into->allocated_peak_bytes = mt_max_u64(into->allocated_peak_bytes, step->peak.allocated);
    into->reserved_peak_bytes = mt_max_u64(into->reserved_peak_bytes, step->peak.reserved);
    into->end_allocated_bytes = step->exit.allocated;
}

static void fill_steps(struct mt_rank_record *record, const struct step_numbers *numbers)
{
    uint32_t share = numbers->count / MT_RECORD_STEPS + (numbers->count % MT_RECORD_STEPS != 0);

    for (uint32_t i = 0; i < numbers->count; i++) {
        struct mt_record_step *out = &record->steps[i / share];
        int64_t number = number_at(numbers, i);

        if (i % share == 0) {
            out->first = number;
            out->begin_t_ns = numbers->steps[i].begin_t_ns;
            record->step_count++;
        }
        absorb(out, &numbers->steps[i], number);
    }
}

static void fill_peak(const struct mt_summarizing *work, const struct step_numbers *numbers,
                      const struct mt_peak *peak, struct mt_record_peak *out)
{
    *out = (struct mt_record_peak){peak->bytes, peak->t_ns, peak->event,
                                   number_of(work->report, numbers, peak->step, peak->event)};
}

/* Sets steps, last_step, and the steps of the peaks. */
static void summarize_steps(const struct mt_summarizing *work)
{
    const struct mt_device_report *device = work->device;
    struct mt_rank_record *record = work->record;
    struct step_numbers numbers = numbers_of(work);

    record->steps = mt_arena_array(work->arena, MT_RECORD_STEPS, sizeof *record->steps);
    fill_steps(record, &numbers);
    record->last_step = numbers.count ? number_at(&numbers, numbers.count - 1) : MT_NO_STEP;
    fill_peak(work, &numbers, &device->requested_peak, &record->requested_peak);
    fill_peak(work, &numbers, &device->allocated_peak, &record->allocated_peak);
    fill_peak(work, &numbers, &device->active_peak, &record->active_peak);
    fill_peak(work, &numbers, &device->reserved_peak, &record->reserved_peak);
}

/* The process's memory outside of its allocator, and the need of the device. */

MT_DEFINE_ORDER(by_library, struct mt_record_owner, MT_BY_TEXT(library))
MT_DEFINE_ORDER(by_bytes, struct mt_record_owner, MT_DESCENDING(bytes) || MT_THEN(by_library))

/* Adds up the bytes of one library. */
static uint32_t merge_owners(struct mt_record_owner *owners, uint32_t count)
{
    uint32_t kept = 0;

    qsort(owners, count, sizeof *owners, by_library);
    for (uint32_t i = 0; i < count; i++)
        if (kept && by_library(&owners[kept - 1], &owners[i]) == 0)
            owners[kept - 1].bytes += owners[i].bytes;
        else
            owners[kept++] = owners[i];
    return kept;
}

/* One per library; if there are too many, the small ones are merged into one without a name. */
static void fill_owners(const struct mt_summarizing *work, const struct mt_driver_report *driver)
{
    uint32_t count = driver->owner_count;
    struct mt_record_owner *owners = mt_arena_array(work->arena, count + 1, sizeof *owners);

    for (uint32_t i = 0; i < count; i++)
        owners[i] = (struct mt_record_owner){
            driver->owners[i].library ? driver->owners[i].library : "", driver->owners[i].bytes};
    count = merge_owners(owners, count);
    if (count > MT_RECORD_OWNERS) {
        qsort(owners, count, sizeof *owners, by_bytes);
        for (uint32_t i = MT_RECORD_OWNERS - 1; i < count; i++)
            owners[i].library = "";
        count = merge_owners(owners, count);
    }
    work->record->owners = owners;
    work->record->owner_count = count;
}

MT_DEFINE_ORDER(by_communicator, struct mt_record_communicator,
                MT_ASCENDING(id) || MT_ASCENDING(rank))

static uint64_t bytes_of_communicator(const struct mt_driver_report *driver, int32_t communicator)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < driver->owner_count && communicator != MT_NO_COMMUNICATOR; i++)
        if (driver->owners[i].communicator == communicator)
            bytes = mt_add_most_u64(bytes, driver->owners[i].bytes);
    return bytes;
}

/* Communicators that NCCL fully described: id, size, and the rank's number in it. */
static void fill_communicators(const struct mt_summarizing *work,
                               const struct mt_driver_report *driver)
{
    struct mt_rank_record *record = work->record;

    record->communicators =
        mt_arena_array(work->arena, MT_RECORD_COMMUNICATORS, sizeof *record->communicators);
    for (uint32_t i = 0; i < driver->told_communicator_count; i++) {
        const struct mt_communicator_use *use = &driver->communicators[i];

        if (use->id && use->ranks <= UINT32_MAX && use->rank < use->ranks &&
            record->communicator_count < MT_RECORD_COMMUNICATORS)
            record->communicators[record->communicator_count++] =
                (struct mt_record_communicator){use->id, (uint32_t)use->ranks, (uint32_t)use->rank,
                                                bytes_of_communicator(driver, use->communicator)};
    }
    if (record->communicator_count)
        qsort(record->communicators, record->communicator_count, sizeof *record->communicators,
              by_communicator);
}

/* Sets the memory outside of the allocator, the communicators, and the memory that the device must
 * have. */
static void summarize_needs(const struct mt_summarizing *work)
{
    const struct mt_device_report *device = work->device;
    const struct mt_driver_report *driver = mt_driver_of(work->report, device->device);
    struct mt_rank_record *record = work->record;
    struct mt_card_use card;

    /* Without a card, as for host memory, the allocator's need is all that is known. */
    if (!mt_card_use_of(work->report, device, &card))
        card = (struct mt_card_use){.bytes = device->need ? device->need->bytes
                                                          : device->allocated_peak.bytes,
                                    .why_more = device->need ? NULL : "unknown"};
    record->needed_is_known = !card.why_more;
    record->needed_bytes = card.bytes;
    record->has_context = card.cuda_from == MT_CUDA_MEASURED;
    record->context_bytes = record->has_context ? card.cuda_bytes : 0;
    if (driver && driver->has_then)
        record->outside_bytes = mt_sub_or_0_u64(driver->then.bytes, driver->then.framework_bytes);
    record->allocator_need_is_known = device->need;
    if (device->need) {
        record->allocator_need_bytes = device->need->bytes;
        record->allocator_need_low_bytes = device->need->low_bytes;
    }
    if (!driver)
        return;
    record->has_driver = driver->has_calls;
    record->driver_peak_bytes = driver->peak.bytes;
    fill_owners(work, driver);
    fill_communicators(work, driver);
}

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

_Static_assert(MT_RECORD_LEVELS == MT_LEVEL_OVER_TIME_ENTRIES, "levels have one bound");

static void fill_course(const struct mt_summarizing *work)
{
    const struct mt_level_over_time *course = work->device->level_over_time;
    struct mt_rank_record *record = work->record;

    if (!course)
        return;
    record->step_hash = course->step_hash;
    record->levels = mt_arena_array(work->arena, MT_RECORD_LEVELS, sizeof *record->levels);
    record->level_count = course->level_count;
    for (uint32_t i = 0; i < course->level_count; i++)
        record->levels[i] =
            (struct mt_record_level){course->levels[i].t_ns, course->levels[i].reserved_bytes};
    if (course->column_count != MT_RECORD_COLUMNS)
        return;
    record->columns = mt_arena_array(work->arena, MT_RECORD_COLUMNS, sizeof *record->columns);
    record->column_count = MT_RECORD_COLUMNS;
    for (uint32_t i = 0; i < MT_RECORD_COLUMNS; i++)
        record->columns[i] = (struct mt_record_column){course->columns[i].allocated_bytes,
                                                       course->columns[i].reserved_bytes};
}

MT_DEFINE_ORDER(by_id, struct mt_record_finding,
                MT_BY_TEXT(id) || MT_DESCENDING(bytes) || MT_BY_TEXT(title))

/* The report has them by bytes, the largest first. */
static void fill_findings(const struct mt_summarizing *work)
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
}

static void summarize_device(const struct mt_summarizing *work)
{
    fill_facts(work);
    summarize_identity(work);
    summarize_outcome(work);
    summarize_steps(work);
    mt_summarize_leaves(work);
    summarize_needs(work);
    fill_course(work);
    fill_findings(work);
    mt_rank_set_add(work->set, work->record);
}

enum mt_status mt_summarize(const struct mt_report *report, const struct mt_identity *identity,
                            struct mt_rank_set *set, struct mt_error *error)
{
    const char *why = "";

    for (uint32_t i = 0; i < report->device_count; i++) {
        struct mt_arena arena = {0};
        struct mt_rank_record record = {0};
        const struct mt_summarizing work = {report, &report->devices[i], identity, set, &arena,
                                            &record};

        summarize_device(&work);
        mt_arena_release(&arena);
    }
    /* Also in release builds: readers refuse a file that violates a rule, so it must not be
     * written. */
    if (!mt_rank_set_is_sound(set, &why))
        return mt_fail(error, MT_ERR_INTERNAL, MT_NO_OFFSET, "the summary is inconsistent: %s",
                       why);
    return MT_OK;
}
