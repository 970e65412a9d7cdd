/* An exception that holds frames: memory of a failed attempt remains while the next one runs. In an
 * `except` block, and as long as anything refers to the exception, its traceback holds the frames
 * of all calls that it passed through, and with them their local variables. Evidence: blocks of the
 * failed attempt exist when the program returns to a place which that attempt had passed
 * (attempts.h), and then they end all together, or never. Working data ends one by one. */
#include "attempts.h"
#include "finding.h"
#include "report_query.h"
#include "retime.h"
#include "site.h"
#include "units.h"

enum {
    MIN_BLOCKS = 3,    /* of... */
    MIN_STACKS = 2,    /* fewer may be a value that is held by its name */
    TOGETHER_PARTS = 4 /* of four parts, three end together, or stay */
};

static bool is_most(uint64_t bytes, uint64_t of_bytes)
{
    return of_bytes - mt_min_u64(bytes, of_bytes) <= of_bytes / TOGETHER_PARTS;
}

static bool is_held(const struct mt_finding_search *search, const struct mt_attempt *attempt)
{
    return attempt->count >= MIN_BLOCKS && attempt->stacks >= MIN_STACKS &&
           (is_most(attempt->together_bytes, attempt->bytes) ||
            is_most(attempt->left_bytes, attempt->bytes)) &&
           mt_finding_matters(attempt->bytes, search->device->allocated_peak.bytes);
}

static enum mt_status replay_without(struct mt_finding_search *search,
                                     const struct mt_attempts *attempts,
                                     struct mt_retimed_peaks *peaks)
{
    struct mt_retime retime = {0};
    enum mt_status status = MT_OK;
    uint32_t i, j;

    for (i = 0; i < attempts->count; i++) {
        const struct mt_attempt *attempt = &attempts->attempts[i];
        for (j = 0; is_held(search, attempt) && j < attempt->count; j++)
            mt_retime_free(&retime, search->device->device, attempt->oom_event + 1,
                           &attempt->blocks[j]);
    }
    status = mt_retime_replay(&retime, search, peaks);
    mt_retime_release(&retime);
    return status;
}

static enum mt_status tell_replay(struct mt_finding_search *search,
                                  const struct mt_attempts *attempts, const char **text)
{
    const struct mt_device_report *device = search->device;
    struct mt_retimed_peaks peaks;
    enum mt_status status;
    char n[2][MT_UNITS_TEXT];

    *text = NULL;
    if (!mt_finding_replayable(search))
        return MT_OK;
    status = replay_without(search, attempts, &peaks);
    if (status != MT_OK || !peaks.known || peaks.allocated_bytes >= device->allocated_peak.bytes)
        return status;
    *text = mt_arena_printf(&search->analysis->report->arena,
                            "replay with these blocks freed when the request failed: %s allocated "
                            "at the peak instead of %s",
                            mt_format_bytes(n[0], peaks.allocated_bytes),
                            mt_format_bytes(n[1], device->allocated_peak.bytes));
    return MT_OK;
}

static bool is_before(const struct mt_life *a, const struct mt_life *b)
{
    return a->bytes != b->bytes ? a->bytes > b->bytes : a->birth_event < b->birth_event;
}

static const char *tell_blocks(const struct mt_finding_search *search,
                               const struct mt_attempt *attempt)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const struct mt_life *largest = &attempt->blocks[0];
    const char *label;
    char n[3][MT_UNITS_TEXT];
    uint32_t i;

    for (i = 1; i < attempt->count; i++)
        if (is_before(&attempt->blocks[i], largest))
            largest = &attempt->blocks[i];
    label = mt_site_label(arena, &search->analysis->source->symbols, largest->stack, false);
    return mt_arena_printf(arena, "%s blocks from %s stacks; the largest, %s, is from %s",
                           mt_format_count(n[0], attempt->count),
                           mt_format_count(n[1], attempt->stacks),
                           mt_format_bytes(n[2], largest->bytes), label);
}

static const char *tell_end(const struct mt_finding_search *search,
                            const struct mt_attempt *attempt)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const char *after = "after";
    char n[2][MT_UNITS_TEXT];

    if (is_most(attempt->left_bytes, attempt->bytes))
        return mt_arena_printf(arena, "%s of it stays allocated until the trace ends",
                               mt_format_bytes(n[0], attempt->left_bytes));
    if (mt_report_has_times(search->analysis->report))
        after =
            mt_arena_printf(arena, "%s after",
                            mt_format_duration(n[1], attempt->together_t_ns - attempt->oom_t_ns));
    return mt_arena_printf(arena,
                           "%s of it is freed together, %s the request failed, with no request "
                           "in between",
                           mt_format_bytes(n[0], attempt->together_bytes), after);
}

static enum mt_status say(struct mt_finding_search *search, const struct mt_attempts *attempts,
                          const struct mt_attempt *most, uint32_t held)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const char *evidence[4], *replayed,
        *label = mt_site_label(arena, &search->analysis->source->symbols, most->again_stack, false);
    enum mt_status status = tell_replay(search, attempts, &replayed);
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {
        .id = "exception-holds-frame",
        .severity = "warning",
        .bytes = most->bytes,
        .evidence = evidence,
        .evidence_count = 2,
        .advice = "retry after the except block, not inside it: the exception keeps the frames "
                  "that it passed through, and their tensors, alive. Store str(e) instead of e "
                  "(traceback.clear_frames, sys.last_value)"};

    if (status != MT_OK)
        return status;
    finding.title =
        mt_arena_printf(arena, "%s from a failed attempt stays allocated while %s runs again",
                        mt_format_bytes(n[0], most->bytes), label);
    evidence[0] = tell_blocks(search, most);
    evidence[1] = tell_end(search, most);
    if (replayed)
        evidence[finding.evidence_count++] = replayed;
    if (held > 1)
        evidence[finding.evidence_count++] =
            mt_arena_printf(arena, "%s more failed attempt%s left memory behind",
                            mt_format_count(n[0], held - 1), held == 2 ? "" : "s");
    mt_finding_publish(search, &finding);
    return MT_OK;
}

/* Whether there is a failure after which the program continued. */
static bool may_be(const struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    uint32_t i;

    for (i = 0; i < device->oom_count; i++)
        if (!device->oom_list[i].fatal)
            return search->analysis->report->has_stacks && !search->analysis->report->what_if;
    return false;
}

static enum mt_status find(struct mt_finding_search *search)
{
    struct mt_attempts attempts = {0};
    const struct mt_attempt *most = NULL;
    enum mt_status status;
    uint32_t i, held = 0;

    if (!may_be(search))
        return MT_OK;
    status = mt_attempts_read(search->analysis, search->device, &attempts);
    for (i = 0; status == MT_OK && i < attempts.count; i++) {
        if (!is_held(search, &attempts.attempts[i]))
            continue;
        if (!most || attempts.attempts[i].bytes > most->bytes)
            most = &attempts.attempts[i];
        held++;
    }
    if (status == MT_OK && most)
        status = say(search, &attempts, most, held);
    mt_attempts_release(&attempts);
    return status;
}

const struct mt_finding_ops mt_finding_exception_frames = {.find = find};
