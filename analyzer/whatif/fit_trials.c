#include "fit_trials.h"

#include "check.h"
#include "fit_failure.h"
#include "grow.h"
#include "util.h"

#include <stdlib.h>

/* One replay of a reading. */
struct attempt {
    struct mt_fit_trial *trial;
    uint64_t died_at;
    struct mt_replay_options replay;
    struct mt_replay_observer observer;
};

void mt_fit_trials_release(struct mt_fit_trials *trials)
{
    free(trials->known);
    trials->known = NULL;
    trials->known_count = trials->known_capacity = 0;
}

static bool is_of(const struct mt_fit_trial *trial, const struct mt_fit_subject *subject)
{
    return trial->subject.device == subject->device && trial->subject.blind == subject->blind &&
           trial->subject.order.rule == subject->order.rule &&
           trial->subject.order.seed == subject->order.seed;
}

/* NULL = none. */
static const struct mt_fit_trial *find(const struct mt_fit_trial *trials, size_t count,
                                       const struct mt_fit_subject *subject, uint64_t limit_bytes)
{
    for (size_t i = 0; i < count; i++)
        if (is_of(&trials[i], subject) && limit_bytes >= trials[i].from_bytes &&
            limit_bytes < trials[i].until_bytes)
            return &trials[i];
    return NULL;
}

const struct mt_fit_trial *mt_fit_trials_find(const struct mt_fit_trials *trials,
                                              const struct mt_fit_subject *subject,
                                              uint64_t limit_bytes)
{
    return find(trials->known, trials->known_count, subject, mt_max_u64(limit_bytes, 1));
}

bool mt_fit_trials_want(struct mt_fit_trials *trials, const struct mt_fit_subject *subject,
                        uint64_t limit_bytes)
{
    limit_bytes = mt_max_u64(limit_bytes, 1); /* 0 would mean no limit */
    if (find(trials->known, trials->known_count, subject, limit_bytes) ||
        find(trials->wanted, trials->wanted_count, subject, limit_bytes))
        return true;
    if (trials->wanted_count == MT_FIT_TOGETHER)
        return false;
    trials->wanted[trials->wanted_count++] = (struct mt_fit_trial){
        .subject = *subject, .from_bytes = limit_bytes, .until_bytes = limit_bytes + 1};
    return true;
}

static enum mt_status stop_at_failure(void *context, const struct mt_event *event,
                                      const struct mt_replay_view *view)
{
    struct attempt *attempt = context;

    if (event->device != attempt->trial->subject.device || view->block_bytes || view->is_left_out)
        return MT_OK;
    if (mt_fit_is_failure(event, view, attempt->died_at)) {
        attempt->trial->failed = true;
        return MT_END;
    }
    if (event->kind == MT_EVENT_ALLOC)
        attempt->trial->unplaced++;
    return MT_OK;
}

static void prepare(const struct mt_fit_trials *trials, struct mt_fit_trial *trial,
                    struct attempt *attempt)
{
    *attempt = (struct attempt){.trial = trial,
                                .died_at = trials->died_at[trial->subject.device],
                                .replay = trials->replay,
                                .observer = {attempt, stop_at_failure, NULL}};
    attempt->replay.limit_bytes = trial->from_bytes;
    attempt->replay.blind = trial->subject.blind;
    attempt->replay.order = trial->subject.order;
}

static void keep(struct mt_fit_trial *trial, const struct mt_replay_summary *summary)
{
    for (size_t i = 0; i < summary->device_count; i++) {
        const struct mt_replay_result *result = &summary->devices[i];

        if (result->device != trial->subject.device)
            continue;
        MT_ASSERT(result->same_from_bytes <= trial->from_bytes &&
                  result->same_until_bytes >= trial->until_bytes);
        trial->has_events = true;
        trial->from_bytes = result->same_from_bytes;
        trial->until_bytes = result->same_until_bytes;
        trial->recorded_addresses = result->recorded_addresses;
        trial->address_ties = result->address_ties;
        trial->reserved_peak_bytes = result->counters.reserved.peak;
    }
}

enum mt_status mt_fit_trials_read(struct mt_fit_trials *trials, struct mt_error *error)
{
    const size_t count = trials->wanted_count;
    struct mt_replay_summary *summaries = mt_memory_new(count * sizeof *summaries);
    struct attempt attempts[MT_FIT_TOGETHER];
    struct mt_replay_job jobs[MT_FIT_TOGETHER];
    enum mt_status status;

    MT_ASSERT(count > 0);
    for (size_t i = 0; i < count; i++) {
        prepare(trials, &trials->wanted[i], &attempts[i]);
        jobs[i] = (struct mt_replay_job){&attempts[i].replay, &attempts[i].observer, &summaries[i]};
    }
    mt_grow_to(&trials->known, &trials->known_capacity, trials->known_count + count,
               sizeof *trials->known);
    status = mt_source_rewind(trials->source, error);
    if (status == MT_OK)
        status = mt_replay_run_together(trials->source, jobs, count, NULL, error);
    trials->at_end = false;
    for (size_t i = 0; i < count && status == MT_OK; i++) {
        keep(&trials->wanted[i], &summaries[i]);
        trials->at_end |= !trials->wanted[i].failed;
        trials->known[trials->known_count++] = trials->wanted[i];
    }
    trials->wanted_count = 0;
    trials->readings++;
    free(summaries);
    return status;
}

uint64_t mt_fit_trials_smallest(const struct mt_fit_trials *trials,
                                const struct mt_fit_subject *subject)
{
    uint64_t smallest = UINT64_MAX;

    for (size_t i = 0; i < trials->known_count; i++)
        if (is_of(&trials->known[i], subject) && !trials->known[i].failed)
            smallest = mt_min_u64(smallest, trials->known[i].from_bytes);
    return smallest;
}
