/* Settings of PyTorch's allocator under which the run would have reserved less:
 * its defaults, if it had others, and expandable segments. Both are replayed, under
 * the limit of the run; only what a replay saves is claimed. Not asked where
 * reserved memory is near what was allocated: no setting goes below that. */
#include "findings.h"

#include <stdlib.h>
#include <string.h>

#include "units.h"
#include "util.h"

struct setting {
    const char *policy; /* as replay takes it */
    const char *what;   /* in words */
    const char *advice;
};

static const struct setting settings[] = {
    {"pytorch:", "the allocator's defaults", "run without options in PYTORCH_CUDA_ALLOC_CONF"},
    {"pytorch:expandable_segments:True", "expandable segments",
     "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
};

enum { LEAST_SHARE = 10 }; /* of the reserved peak: a setting may cost time */

struct trial {
    bool made;
    bool serves; /* all that the run was granted */
    uint64_t reserved_bytes;
    const char *doubt; /* NULL: exact */
};

static enum mt_status replay(struct mt_finding_search *search, const char *policy,
                             struct trial *trial)
{
    struct mt_analysis *analysis = search->analysis;
    const struct mt_replay_options options = {.policy = policy,
                                              .limit_bytes = search->device->replay.limit_bytes};
    struct mt_replay_summary *summary = calloc(1, sizeof *summary);
    enum mt_status status = mt_source_rewind(analysis->source, analysis->error);
    uint32_t i;

    *trial = (struct trial){.made = true};
    if (!summary)
        return MT_ERR_MEMORY;
    if (status == MT_OK)
        status = mt_replay_run(analysis->source, &options, NULL, summary, analysis->error);
    for (i = 0; status == MT_OK && i < summary->device_count; i++) {
        const struct mt_replay_result *result = &summary->devices[i];
        if (result->device != search->device->device)
            continue;
        trial->serves = !result->failed_requests;
        trial->reserved_bytes = result->counters.reserved.peak;
        trial->doubt = result->policy_exact ? NULL : result->policy_doubt;
    }
    free(summary);
    return status;
}

/* Is it what the run had? */
static bool is_own(const struct mt_finding_search *search, const struct setting *setting)
{
    const char *own = search->analysis->report->policy;

    return strcmp(own, setting->policy) == 0 ||
           (strcmp(own, "pytorch") == 0 && strcmp(setting->policy, "pytorch:") == 0);
}

static enum mt_status tell_evidence(struct mt_finding_search *search, const struct trial *trials,
                                    struct mt_finding *finding)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const char *options = search->analysis->report->options;
    const uint64_t before = search->device->reserved_peak.bytes;
    const char **evidence = mt_arena_array(arena, MT_ARRAY_LEN(settings) + 1, sizeof *evidence);
    char n[2][MT_UNITS_TEXT];
    uint32_t count = 0;
    size_t i;

    if (!evidence)
        return MT_ERR_MEMORY;
    evidence[count++] = mt_arena_printf(
        arena, "under %s %s were reserved at the peak, %s of them not allocated",
        options && *options ? options : "the defaults", mt_format_bytes(n[0], before),
        mt_format_bytes(n[1], before - search->device->reserved_peak.then.allocated));
    for (i = 0; i < MT_ARRAY_LEN(settings); i++) {
        const struct trial *trial = &trials[i];
        if (trial->made)
            evidence[count++] =
                trial->serves
                    ? mt_arena_printf(arena, "with %s, replayed: %s%s%s", settings[i].what,
                                      mt_format_bytes(n[0], trial->reserved_bytes),
                                      trial->doubt ? "; " : "", trial->doubt ? trial->doubt : "")
                    : mt_arena_printf(arena, "with %s it would run out of memory",
                                      settings[i].what);
    }
    finding->evidence = evidence;
    finding->evidence_count = count;
    for (i = 0; i < count; i++)
        if (!evidence[i])
            return MT_ERR_MEMORY;
    return MT_OK;
}

static enum mt_status say(struct mt_finding_search *search, const struct trial *trials, size_t best)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const uint64_t before = search->device->reserved_peak.bytes;
    struct mt_finding *finding = mt_finding_add(search);
    char n[3][MT_UNITS_TEXT];

    if (!finding)
        return MT_OK;
    finding->id = "allocator-settings";
    finding->severity = "warning";
    finding->bytes = before - trials[best].reserved_bytes;
    finding->title = mt_arena_printf(arena, "%s less reserved with %s: %s instead of %s",
                                     mt_format_bytes(n[0], finding->bytes), settings[best].what,
                                     mt_format_bytes(n[1], trials[best].reserved_bytes),
                                     mt_format_bytes(n[2], before));
    finding->advice = settings[best].advice;
    finding->proved_by = mt_finding_command(search, settings[best].policy);
    return finding->title && finding->proved_by ? tell_evidence(search, trials, finding)
                                                : MT_ERR_MEMORY;
}

static bool may_be_asked(const struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;

    return mt_finding_replayable(search) &&
           device->reserved_peak.bytes > device->allocated_peak.bytes &&
           mt_finding_matters(device->reserved_peak.bytes - device->allocated_peak.bytes,
                              device->reserved_peak.bytes);
}

enum mt_status mt_find_settings(struct mt_finding_search *search)
{
    const uint64_t before = search->device->reserved_peak.bytes;
    struct trial trials[MT_ARRAY_LEN(settings)] = {{0}};
    uint64_t least = before;
    enum mt_status status = MT_OK;
    size_t i, best = 0;

    if (!may_be_asked(search))
        return MT_OK;
    for (i = 0; status == MT_OK && i < MT_ARRAY_LEN(settings); i++) {
        if (is_own(search, &settings[i]))
            continue;
        status = replay(search, settings[i].policy, &trials[i]);
        if (status != MT_OK || !trials[i].serves || trials[i].reserved_bytes >= least)
            continue;
        least = trials[i].reserved_bytes;
        best = i;
    }
    if (status == MT_OK && mt_finding_matters(before - least, before) &&
        before - least >= before / LEAST_SHARE)
        status = say(search, trials, best);
    return status;
}
