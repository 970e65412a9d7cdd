/* What the run died of: the setting that gets past it, or how many bytes fewer must be alive and
 * who holds most. The answer itself is oom_answers.h's, by replays. */
#include "finding.h"

#include <string.h>

#include "report_query.h"
#include "allocator_settings.h"
#include "units.h"

enum { MAX_CANDIDATES = 3 };

/* The way beside the run's own that needs least; NULL if no other gets past it. */
static const struct mt_oom_way *best_setting(const struct mt_oom_answer *answer)
{
    const struct mt_oom_way *best = NULL;

    for (uint32_t i = 1; i < answer->way_count; i++) {
        const struct mt_oom_way *way = &answer->ways[i];

        if (way->fits && (!best || way->fit_bytes < best->fit_bytes))
            best = way;
    }
    return best;
}

/* What a limit lacks for the way that needs least, 0 if that is not known. */
static uint64_t lack_of(const struct mt_oom_answer *answer)
{
    uint64_t least = UINT64_MAX;

    for (uint32_t i = 0; i < answer->way_count; i++)
        if (answer->ways[i].fits)
            least = mt_min_u64(least, answer->ways[i].fit_bytes);
    if (least == UINT64_MAX || least <= answer->least_limit_bytes)
        return 0;
    return least - answer->least_limit_bytes;
}

static const struct mt_instant *instant_of(const struct mt_device_report *device)
{
    for (uint32_t i = 0; i < device->instant_count; i++)
        if (device->instants[i].kind == MT_INSTANT_OOM &&
            device->instants[i].event == device->oom_answer->oom->event)
            return &device->instants[i];
    return NULL;
}

/* "745 MiB of activations from forward train.py:58, 519 MiB of parameters from ..." */
static const char *candidates(struct mt_arena *arena, const struct mt_device_report *device)
{
    const struct mt_instant *instant = instant_of(device);
    const char *text = "";

    for (uint32_t i = 0; text && instant && i < instant->holder_count && i < MAX_CANDIDATES; i++) {
        const struct mt_contribution *holder = &instant->holders[i];
        char bytes[MT_UNITS_TEXT];

        if (holder->site && holder->bytes > 0 && holder->role != MT_ROLE_OTHER)
            text = mt_arena_printf(arena, "%s%s%s of %s from %s", text, *text ? ", " : "",
                                   mt_format_bytes(bytes, (uint64_t)holder->bytes),
                                   mt_role_name(holder->role), holder->site);
    }
    return text;
}

static const char *limit_text(struct mt_arena *arena, const struct mt_oom_answer *answer)
{
    char least[MT_UNITS_TEXT], most[MT_UNITS_TEXT];

    mt_format_mib(least, answer->least_limit_bytes);
    mt_format_mib(most, answer->most_limit_bytes / MT_MIB * MT_MIB);
    if (answer->most_limit_bytes / MT_MIB <= answer->least_limit_bytes / MT_MIB)
        return mt_arena_printf(arena, "%s", least);
    return mt_arena_printf(arena, "%s to %s", least, most);
}

/* The setting is tried under the least that the limit can have been. */
static const char *proof(const struct mt_finding_search *search, const struct mt_oom_way *way)
{
    return mt_arena_printf(&search->analysis->report->arena, "memtrace fit %s -p '%s' --limit %llu",
                           mt_finding_path(search), way->policy,
                           (unsigned long long)search->device->oom_answer->least_limit_bytes);
}

static enum mt_status say_setting(struct mt_finding_search *search, const struct mt_oom_way *way)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const struct mt_oom_answer *answer = search->device->oom_answer;
    const struct mt_setting *setting = mt_setting_of(way->policy);
    char fit[MT_UNITS_TEXT];
    const char *evidence[1];
    struct mt_finding finding = {.id = "out-of-memory",
                                 .severity = "error",
                                 .bytes = answer->oom->request_bytes,
                                 .evidence = evidence,
                                 .evidence_count = 1};

    if (!setting)
        return MT_OK;
    finding.advice = setting->advice;
    finding.title =
        mt_arena_printf(arena, "%s%s with %s get past the out-of-memory error; the limit was %s",
                        way->approximate ? "about " : "", mt_format_mib(fit, way->fit_bytes),
                        setting->what, limit_text(arena, answer));
    finding.proved_by = proof(search, way);
    evidence[0] = "what the run would have asked for next is not in the trace";
    return finding.proved_by ? mt_finding_say(search, &finding) : MT_ERR_MEMORY;
}

static enum mt_status say_candidates(struct mt_finding_search *search)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const struct mt_oom_answer *answer = search->device->oom_answer;
    const uint64_t lack = lack_of(answer);
    const char *largest = candidates(arena, search->device);
    char bytes[MT_UNITS_TEXT];
    const char *evidence[1];
    struct mt_finding finding = {.id = "out-of-memory",
                                 .severity = "error",
                                 .bytes = lack ? lack : answer->oom->request_bytes,
                                 .evidence = evidence,
                                 .evidence_count = 1};

    if (!largest)
        return MT_ERR_MEMORY;
    if (lack)
        finding.title = mt_arena_printf(arena,
                                        "%s less must be alive to get past the out-of-memory "
                                        "error: no setting of the allocator does",
                                        mt_format_mib(bytes, lack));
    else
        finding.title = mt_arena_printf(arena,
                                        "%s more were wanted when memory ran out, and no setting "
                                        "of the allocator is known to provide them",
                                        mt_format_mib(bytes, answer->oom->request_bytes));
    finding.advice = *largest
                         ? mt_arena_printf(arena, "make one of the largest smaller: %s", largest)
                         : "a smaller batch, or a device with more memory";
    evidence[0] = mt_arena_printf(arena, "the limit was %s", limit_text(arena, answer));
    return finding.advice ? mt_finding_say(search, &finding) : MT_ERR_MEMORY;
}

static enum mt_status find(struct mt_finding_search *search)
{
    const struct mt_oom_answer *answer = search->device->oom_answer;
    const struct mt_oom_way *way = answer ? best_setting(answer) : NULL;

    if (!answer)
        return MT_OK;
    if (way && way->fit_bytes <= answer->most_limit_bytes)
        return say_setting(search, way);
    return say_candidates(search);
}

const struct mt_finding_ops mt_finding_out_of_memory = {.find = find};
