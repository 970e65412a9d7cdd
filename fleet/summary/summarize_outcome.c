/* How a rank ended. A request that only frees followed counts as the end of a run in an analysis,
 * whatever the process reported afterwards: one that catches the error may still exit with 0. */
#include "report_query.h"
#include "stack_kinds.h"
#include "summarize_parts.h"

#include <string.h>

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
static enum mt_status path_of(const struct mt_summarizing *work, uint32_t stack, uint32_t *path)
{
    struct mt_speaking_stack speaking;
    uint32_t frames[MT_SPEAKING_DEPTH], count = 0;
    enum mt_status status;

    mt_speaking_stack_init(&speaking, work->arena, work->report->symbols);
    mt_speaking_stack_get(&speaking, stack, frames, &count);
    status = MT_OK;
    for (uint32_t i = 0; i < count && status == MT_OK; i++) {
        const char *label = mt_frame_label(work->arena, work->report->symbols, frames[i]);

        status = mt_rank_set_path(work->set, *path, label, strlen(label), path);
    }
    return status;
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

enum mt_status mt_summarize_outcome(const struct mt_summarizing *work)
{
    struct mt_rank_record *record = work->record;
    enum mt_status status;
    struct death death;

    record->has_death = find_death(work, &death);
    record->outcome = outcome_of(work, record->has_death);
    record->death_path = record->death_site = MT_NO_PATH;
    if (!record->has_death)
        return MT_OK;
    record->death_t_ns = death.t_ns;
    record->death_event = death.event;
    record->death_wanted_bytes = death.wanted_bytes;
    record->death_free_bytes = death.free_bytes;
    if (death.stack == MT_NO_ID)
        return MT_OK;
    status = path_of(work, death.stack, &record->death_path);
    return status == MT_OK
               ? mt_summarize_site(work, mt_stack_site(work->report->symbols, death.stack),
                                   &record->death_site)
               : status;
}
