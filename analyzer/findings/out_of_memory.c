/* The cause of the run's end: the setting that gets past it, or how many bytes fewer must be alive
 * and the largest holders. oom_answers.h has the answer itself, by replays. */
#include "finding.h"

#include <string.h>

#include "report_query.h"
#include "shell_word.h"
#include "units.h"

enum { MAX_CANDIDATES = 3 };

/* "745 MiB of activations from forward train.py:58, 519 MiB of parameters from ..." */
static const char *candidates(struct mt_arena *arena, const struct mt_device_report *device)
{
    const struct mt_instant *instant = mt_oom_instant(device, device->oom_answer->oom);
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
    return mt_limit_text(arena, answer->least_limit_bytes, answer->most_limit_bytes);
}

/* The setting is tried under the smallest possible limit. */
static const char *proof(const struct mt_finding_search *search, const struct mt_oom_way *way)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const char *value = mt_shell_value(arena, way->policy);

    return value
               ? mt_arena_printf(arena, "memtrace fit %s -p %s --limit %llu",
                                 mt_finding_path(search), value,
                                 (unsigned long long)search->device->oom_answer->least_limit_bytes)
               : NULL;
}

static void say_setting(struct mt_finding_search *search, const struct mt_oom_way *way)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const struct mt_oom_answer *answer = search->device->oom_answer;
    const struct mt_setting *setting = mt_setting_of(way->policy);
    const char *limit = limit_text(arena, answer);
    char fit[MT_UNITS_TEXT];
    const char *evidence[1];
    struct mt_finding finding = {.id = "out-of-memory",
                                 .severity = "error",
                                 .bytes = answer->oom->request_bytes,
                                 .evidence = evidence,
                                 .evidence_count = 1};

    if (!setting)
        return;
    finding.advice = setting->advice;
    finding.title = mt_arena_printf(
        arena, "%s%s with %s is enough to get past the out-of-memory error; %s",
        way->approximate ? "About " : "", mt_format_mib(fit, way->fit_bytes), setting->what, limit);
    finding.proved_by = proof(search, way);
    evidence[0] = "the trace does not show what the run would have requested next";
    mt_finding_publish(search, &finding);
}

/* Bytes that the limit lacks for the way that needs least; 0 = none, or unknown. */
static uint64_t lack_of(const struct mt_oom_answer *answer, const struct mt_oom_way *least)
{
    return least && least->fit_bytes > answer->least_limit_bytes
               ? least->fit_bytes - answer->least_limit_bytes
               : 0;
}

static const char *title_of_lack(struct mt_arena *arena, const struct mt_oom_answer *answer,
                                 const struct mt_oom_way *least)
{
    const struct mt_setting *setting =
        least == &answer->ways[0] ? NULL : mt_setting_of(least->policy);
    char bytes[MT_UNITS_TEXT];

    return mt_arena_printf(arena,
                           "%s%s more%s%s would get past the out-of-memory error; no setting that "
                           "was tried does so under the limit that it had",
                           least->approximate ? "About " : "",
                           mt_format_mib(bytes, lack_of(answer, least)), setting ? " with " : "",
                           setting ? setting->what : "");
}

static const char *title_of_request(struct mt_arena *arena, const struct mt_oom_answer *answer,
                                    const struct mt_oom_way *least)
{
    char bytes[MT_UNITS_TEXT];

    return mt_arena_printf(arena, "%s more was requested when memory ran out; %s",
                           mt_format_mib(bytes, answer->oom->request_bytes),
                           !answer->way_count ? "no setting was tried"
                           : least ? "a replay with the same settings and limit gets past it"
                                   : "no setting that was tried gets past it under any limit");
}

static void say_candidates(struct mt_finding_search *search)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const struct mt_oom_answer *answer = search->device->oom_answer;
    const struct mt_oom_way *least = mt_best_oom_way(answer, 0);
    const uint64_t lack = lack_of(answer, least);
    const char *largest = candidates(arena, search->device);
    const char *evidence[1];
    struct mt_finding finding = {.id = "out-of-memory",
                                 .severity = "error",
                                 .bytes = lack ? lack : answer->oom->request_bytes,
                                 .evidence = evidence,
                                 .evidence_count = 1};

    finding.title =
        lack ? title_of_lack(arena, answer, least) : title_of_request(arena, answer, least);
    finding.advice = *largest ? mt_arena_printf(arena, "reduce one of the largest: %s", largest)
                              : "use a smaller batch, or a device with more memory";
    evidence[0] = limit_text(arena, answer);
    mt_finding_publish(search, &finding);
}

static enum mt_status find(struct mt_finding_search *search)
{
    const struct mt_oom_answer *answer = search->device->oom_answer;
    const struct mt_oom_way *way = answer ? mt_best_oom_way(answer, 1) : NULL;

    if (!answer)
        return MT_OK;
    if (way && way->fit_bytes <= answer->most_limit_bytes) {
        say_setting(search, way);
        return MT_OK;
    }
    say_candidates(search);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_out_of_memory = {.find = find};
