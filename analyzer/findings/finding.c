#include "finding.h"

#include <string.h>

#include "shell_word.h"
#include "read_again.h"

bool mt_finding_replayable(const struct mt_finding_search *search)
{
    const struct mt_report *report = search->analysis->report;
    const struct mt_replay_result *replay = &search->device->replay;

    return !report->is_driver_level && !report->what_if && !report->pytorch_difference &&
           replay->verify.wanted && replay->verify.exact && replay->recorded_addresses &&
           !replay->pools_inferred && !search->device->has_failure &&
           strncmp(report->policy, "pytorch", 7) == 0;
}

const char *mt_finding_path(const struct mt_finding_search *search)
{
    const struct mt_report *report = search->analysis->report;
    const char *path =
        mt_shell_path(&search->analysis->report->arena, *report->path ? report->path : "TRACE");

    return path ? path : "TRACE"; /* memory ran out, which the arena remembers */
}

const char *mt_finding_command(const struct mt_finding_search *search, const char *policy,
                               uint64_t limit_bytes)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const char *path = mt_finding_path(search), *value = mt_shell_value(arena, policy);

    if (!value)
        return NULL;
    if (!limit_bytes)
        return mt_arena_printf(arena, "memtrace replay %s -p pytorch -p %s", path, value);
    return mt_arena_printf(arena, "memtrace replay %s -p pytorch -p %s --limit %llu", path, value,
                           (unsigned long long)limit_bytes);
}

enum mt_status mt_finding_replay(struct mt_finding_search *search, const char *policy,
                                 uint64_t limit_bytes, uint64_t most_reserved_bytes,
                                 struct mt_replay_summary *summary)
{
    uint64_t most[MT_MAX_DEVICES] = {0};
    const struct mt_replay_options options = {
        .policy = policy, .limit_bytes = limit_bytes, .most_reserved_bytes = most};

    most[search->device->device] = most_reserved_bytes;
    return mt_read_replay(search->analysis, &options, summary);
}

void mt_finding_lives(struct mt_finding_search *search, const struct mt_lives **lives)
{
    *lives = &search->held->lives;
}

void mt_finding_set_evidence(struct mt_finding *finding, const char **evidence, uint32_t count)
{
    finding->evidence = evidence;
    finding->evidence_count = count;
    for (uint32_t i = 0; i < count; i++)
        ;
}

void mt_finding_say(struct mt_finding_search *search, const struct mt_finding *finding)
{
    const uint32_t count = finding->evidence_count;
    struct mt_finding *kept = mt_finding_add(search);
    const char **evidence =
        mt_arena_array(&search->analysis->report->arena, count + 1u, sizeof *evidence);

    if (!kept)
        return;
    for (uint32_t i = 0; i < count; i++)
        evidence[i] = finding->evidence[i];
    *kept = *finding;
    mt_finding_set_evidence(kept, evidence, count);
}
