#include "findings.h"

#include <stdlib.h>
#include <string.h>

#include "foreign_text.h"
#include "util.h"

/* ---- what several findings use ------------------------------------------------------ */

bool mt_finding_replayable(const struct mt_finding_search *search)
{
    const struct mt_report *report = search->analysis->report;
    const struct mt_replay_result *replay = &search->device->replay;

    return !report->is_driver_level && !report->what_if && !report->pytorch_difference &&
           replay->verify.wanted && replay->verify.exact && replay->recorded_addresses &&
           !replay->pools_inferred && !search->device->has_failure &&
           strncmp(report->policy, "pytorch", 7) == 0;
}

static bool all_shown(const char *text)
{
    struct mt_foreign_text foreign = mt_foreign_text(text, strlen(text));
    struct mt_foreign_char c;

    while (mt_foreign_next(&foreign, &c))
        if (!c.is_shown)
            return false;
    return true;
}

const char *mt_shell_word(struct mt_arena *arena, const char *text)
{
    static const char bare[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-=:,";
    const char *folder = *text == '-' && text[1] ? "./" : ""; /* "-x" is no option, "-" is input */

    if (strchr(text, '\'') || !all_shown(text))
        return NULL;
    if (*text && !text[strspn(text, bare)])
        return mt_arena_printf(arena, "%s%s", folder, text);
    return mt_arena_printf(arena, "'%s%s'", folder, text);
}

const char *mt_finding_command(const struct mt_finding_search *search, const char *policy)
{
    const struct mt_report *report = search->analysis->report;
    struct mt_arena *arena = &search->analysis->report->arena;
    uint64_t limit_bytes = search->device->replay.limit_bytes;
    const char *path = mt_shell_word(arena, *report->path ? report->path : "TRACE");

    if (!path)
        path = "TRACE";
    if (!limit_bytes)
        return mt_arena_printf(arena, "memtrace replay %s -p pytorch -p '%s'", path, policy);
    return mt_arena_printf(arena, "memtrace replay %s -p pytorch -p '%s' --limit %llu", path,
                           policy, (unsigned long long)limit_bytes);
}

enum mt_status mt_finding_lives(struct mt_finding_search *search, const struct mt_lives **lives)
{
    *lives = &search->held->lives;
    return MT_OK;
}

enum mt_status mt_finding_say(struct mt_finding_search *search, const struct mt_finding *finding)
{
    const uint32_t count = finding->evidence_count;
    struct mt_finding *kept = mt_finding_add(search);
    const char **evidence =
        mt_arena_array(&search->analysis->report->arena, count + 1u, sizeof *evidence);
    uint32_t i;

    if (!kept)
        return MT_OK;
    if (!evidence || !finding->title)
        return MT_ERR_MEMORY;
    for (i = 0; i < count; i++) {
        evidence[i] = finding->evidence[i];
        if (!evidence[i])
            return MT_ERR_MEMORY;
    }
    *kept = *finding;
    kept->evidence = evidence;
    return MT_OK;
}

/* ---- all of them --------------------------------------------------------------------- */

static enum mt_status (*const finders[])(struct mt_finding_search *) = {
    mt_find_growth,          mt_find_kept_values,      mt_find_settings,
    mt_find_pinned_segments, mt_find_optimizer_state,  mt_find_loss_peak,
    mt_find_foreach_peak,    mt_find_held_activations, mt_find_cache_flushes,
    mt_find_first_steps,     mt_find_kept_gradients,   mt_find_outside_memory,
    mt_find_idle_state,      mt_find_exception_frames, mt_find_large_layer,
    mt_find_dtype_copies,    mt_find_cast_weights,
};

/* "error": it ends the run if it goes on; "warning": memory is to be had; "info":
 * where it is. */
static int rank_of(const struct mt_finding *finding)
{
    static const char *const severities[] = {"error", "warning", "info"};
    size_t i = 0;

    while (i < MT_ARRAY_LEN(severities) && strcmp(finding->severity, severities[i]) != 0)
        i++;
    return (int)i;
}

static int by_worth(const void *a, const void *b)
{
    const struct mt_finding *x = a, *y = b;

    if (rank_of(x) != rank_of(y))
        return rank_of(x) - rank_of(y);
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return strcmp(x->title, y->title);
}

static enum mt_status add(struct mt_device_report *device, const struct mt_finding_search *search)
{
    memcpy(device->findings + device->finding_count, search->found,
           search->count * sizeof *search->found);
    device->finding_count += search->count;
    device->growth_judged |= search->growth_judged;
    return MT_OK;
}

static struct mt_finding_search search_of(struct mt_analysis *analysis,
                                          const struct mt_device_report *device)
{
    const uint32_t slot = mt_survey_slot(&analysis->survey, device->device);

    return (struct mt_finding_search){
        .analysis = analysis, .device = device, .held = &analysis->holders.devices[slot]};
}

enum mt_status mt_findings_begin(struct mt_analysis *analysis)
{
    const struct mt_report *report = analysis->report;
    enum mt_status status = MT_OK;
    uint32_t i;

    for (i = 0; status == MT_OK && i < report->device_count; i++) {
        struct mt_finding_search search = search_of(analysis, &report->devices[i]);
        status = mt_lives_begin(&search.held->lives, analysis, search.device,
                                mt_first_step(report, search.device),
                                MT_LIVES_MAX / report->device_count);
        mt_ask_pins(&search);
        mt_ask_settings(&search);
    }
    return status;
}

static enum mt_status look_at(struct mt_analysis *analysis, struct mt_finding_marks *marks,
                              struct mt_device_report *device)
{
    enum mt_status status = MT_OK;
    size_t i;

    device->findings =
        mt_arena_array(&analysis->report->arena, MT_ARRAY_LEN(finders) * MT_FINDINGS_MAX,
                       sizeof *device->findings);
    if (!device->findings)
        return MT_ERR_MEMORY;
    for (i = 0; status == MT_OK && i < MT_ARRAY_LEN(finders); i++) {
        struct mt_finding_search search = search_of(analysis, device);

        search.marks = marks;
        status = finders[i](&search);
        if (status == MT_OK)
            status = add(device, &search);
    }
    if (device->finding_count)
        qsort(device->findings, device->finding_count, sizeof *device->findings, by_worth);
    return status;
}

enum mt_status mt_findings_fill(struct mt_analysis *analysis)
{
    struct mt_finding_marks marks = {0};
    enum mt_status status = MT_OK;
    uint32_t i;

    for (i = 0; status == MT_OK && i < analysis->report->device_count; i++)
        status = look_at(analysis, &marks, &analysis->report->devices[i]);
    mt_stack_marks_release(&marks.loss);
    mt_stack_marks_release(&marks.foreach);
    return status;
}
