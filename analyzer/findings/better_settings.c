/* Findings about settings: those under which the run would have reserved less, and those that get
 * past the end of the run.
 *
 * Settings of PyTorch's allocator under which the run would have reserved less: its defaults, if it
 * had others, and expandable segments. Both are replayed, under the limit of the run. Only the
 * saving of a replay is claimed, and no setting is advised that increases the need of the device.
 * Not tried if reserved memory is near the allocated memory, which is a lower bound for every
 * setting. */
#include <stdlib.h>
#include <string.h>

#include "cards.h"
#include "finding.h"
#include "foreign_text.h"
#include "needs.h"
#include "oom_why.h"
#include "process_memory.h"
#include "report_query.h"
#include "site.h"
#include "units.h"
#include "util.h"

enum { MIN_SHARE = 10 }; /* share of the reserved peak: a setting may cost time */

struct trial {
    bool made;
    bool known;  /* replayed to its end: the bytes are those of the whole run */
    bool serves; /* serves all requests that the run was granted */
    uint64_t reserved_bytes;
    uint64_t calls;             /* of the driver */
    const char *doubt;          /* NULL: exact */
    const struct mt_need *need; /* need of the device; NULL: not measured, or unknown */
};

static bool is_worth_a_replay(const struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;

    return mt_finding_replayable(search) &&
           device->reserved_peak.bytes > device->allocated_peak.bytes &&
           mt_finding_matters(device->reserved_peak.bytes - device->allocated_peak.bytes,
                              device->reserved_peak.bytes);
}

/* A setting that reserves more is not reported. */
static uint64_t most_reserved(const struct mt_finding_search *search)
{
    const uint64_t before = search->device->reserved_peak.bytes;

    return before - mt_max_u64(mt_finding_least(before), before / MIN_SHARE);
}

/* The trial of a setting under a limit, which devices with that limit share. NULL = none. */
static struct mt_trial *find_trial(struct mt_analysis *analysis, const struct mt_setting *setting,
                                   uint64_t limit_bytes)
{
    for (uint32_t i = 0; i < analysis->trial_count; i++) {
        struct mt_trial *trial = &analysis->trials[i];

        if (trial->policy == setting->policy && trial->limit_bytes == limit_bytes)
            return trial;
    }
    return NULL;
}

/* Trials share the pass over live blocks, if there is room for another. */
static void ask(struct mt_finding_search *search)
{
    struct mt_analysis *analysis = search->analysis;
    const uint64_t limit_bytes = mt_least_limit_bytes(&search->device->replay);

    if (!is_worth_a_replay(search))
        return;
    for (size_t i = 0; i < MT_SETTING_COUNT; i++) {
        struct mt_trial *trial = find_trial(analysis, &mt_settings[i], limit_bytes);

        if (mt_setting_is_own(search->analysis->report, &mt_settings[i]) ||
            (!trial && analysis->trial_count == MT_MAX_TRIALS))
            continue;
        if (!trial) {
            trial = &analysis->trials[analysis->trial_count++];
            *trial = (struct mt_trial){.policy = mt_settings[i].policy, .limit_bytes = limit_bytes};
        }
        trial->most_reserved_bytes[search->device->device] = most_reserved(search);
    }
}

/* Each stalls the device. */
static uint64_t calls_of(const struct mt_replay_result *result)
{
    return result->counters.device_allocs + result->counters.device_frees;
}

static void read_result(const struct mt_finding_search *search,
                        const struct mt_replay_summary *summary, struct trial *trial)
{
    *trial = (struct trial){.made = true};
    for (uint32_t i = 0; i < summary->device_count; i++) {
        const struct mt_replay_result *result = &summary->devices[i];
        if (result->device != search->device->device)
            continue;
        trial->serves = !result->failed_requests;
        trial->known = !result->given_up || !trial->serves;
        trial->reserved_bytes = result->counters.reserved.peak;
        trial->calls = calls_of(result);
        trial->doubt = result->policy_exact ? NULL : result->policy_doubt;
    }
}

/* Replays only as far as necessary to decide whether less than `most_bytes` are reserved. */
static enum mt_status replay(struct mt_finding_search *search, const char *policy,
                             uint64_t most_bytes, struct trial *trial)
{
    struct mt_replay_summary *summary = mt_memory_zeroed(1, sizeof *summary);
    enum mt_status status = mt_finding_replay(
        search, policy, mt_least_limit_bytes(&search->device->replay), most_bytes, summary);

    if (status == MT_OK)
        read_result(search, summary, trial);
    free(summary);
    return status;
}

static enum mt_status try(struct mt_finding_search *search, const struct mt_setting *setting,
                          struct trial *trial)
{
    const struct mt_trial *made =
        find_trial(search->analysis, setting, mt_least_limit_bytes(&search->device->replay));

    if (made && made->summary) {
        read_result(search, made->summary, trial);
        return MT_OK;
    }
    return replay(search, setting->policy, most_reserved(search), trial);
}

static void tell_evidence(struct mt_finding_search *search, const struct trial *trials,
                          struct mt_finding *finding)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const char *options = search->analysis->report->options;
    const uint64_t before = search->device->reserved_peak.bytes;
    const char **evidence = mt_arena_array(arena, MT_SETTING_COUNT + 1, sizeof *evidence);
    char n[2][MT_UNITS_TEXT];
    uint32_t count = 0;

    evidence[count++] = mt_arena_printf(
        arena, "with %s: %s reserved at the peak, %s of it unused",
        options && *options ? options : "the defaults", mt_format_bytes(n[0], before),
        mt_format_bytes(n[1], before - search->device->reserved_peak.then.allocated));
    for (size_t i = 0; i < MT_SETTING_COUNT; i++) {
        const struct trial *trial = &trials[i];
        if (trial->made)
            evidence[count++] =
                trial->serves
                    ? mt_arena_printf(arena, "replay with %s: %s reserved%s%s", mt_settings[i].what,
                                      mt_format_bytes(n[0], trial->reserved_bytes),
                                      trial->doubt ? "; " : "", trial->doubt ? trial->doubt : "")
                    : mt_arena_printf(arena, "replay with %s: out of memory", mt_settings[i].what);
    }
    mt_finding_set_evidence(finding, evidence, count);
}

/* Compares what the allocator must have, which the user's card is about. */
static const char *proof_of_need(const struct mt_finding_search *search, const char *policy)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const char *value = mt_shell_value(arena, policy);

    return value ? mt_arena_printf(arena, "memtrace fit %s -p pytorch -p %s",
                                   mt_finding_path(search), value)
                 : NULL;
}

/* Fills what the setting saves: of what the allocator must have, if both needs are known and differ
 * by enough; otherwise of what it reserves, which helps other processes on the device. */
static void tell_saving(struct mt_finding_search *search, const struct trial *trial,
                        const struct mt_setting *setting, struct mt_finding *finding)
{
    const struct mt_need *own = search->device->need, *need = trial->need;
    const uint64_t before = search->device->reserved_peak.bytes;
    struct mt_arena *arena = &search->analysis->report->arena;
    char n[3][MT_NEED_TEXT];

    finding->saving = trial->doubt ? MT_SAVING_ESTIMATED : MT_SAVING_EXACT;
    finding->saves_bytes = finding->bytes;
    if (need) {
        finding->saves_need = true;
        finding->saves_bytes = own->bytes - mt_min_u64(need->bytes, own->bytes);
        if (own->depends_on_memory || own->is_one_of_many || need->depends_on_memory ||
            need->is_one_of_many)
            finding->saving = MT_SAVING_ESTIMATED;
    }
    if (need && mt_finding_matters(finding->saves_bytes, own->bytes)) {
        finding->title = mt_arena_printf(arena, "%s less is enough with %s: %s instead of %s",
                                         mt_format_bytes(n[0], finding->saves_bytes), setting->what,
                                         mt_need_text(n[1], need), mt_need_text(n[2], own));
        finding->proved_by = proof_of_need(search, setting->policy);
        return;
    }
    if (need)
        finding->severity = "info"; /* it helps other processes on the device, not this run */
    mt_format_bytes_distinct(n[1], trial->reserved_bytes, n[2], before);
    finding->title = mt_arena_printf(arena, "%s less reserved with %s: %s instead of %s%s",
                                     mt_format_bytes(n[0], finding->bytes), setting->what, n[1],
                                     n[2], need ? "; about the same limit is enough" : "");
    finding->proved_by =
        mt_finding_command(search, setting->policy, mt_least_limit_bytes(&search->device->replay));
}

static const char *cost_of(const struct mt_finding_search *search, const struct trial *trial)
{
    const uint64_t own = calls_of(&search->device->replay);
    char n[2][MT_UNITS_TEXT];

    if (trial->calls <= own)
        return NULL;
    return mt_arena_printf(&search->analysis->report->arena,
                           "%s driver calls instead of %s; each may wait for the device",
                           mt_format_count(n[0], trial->calls), mt_format_count(n[1], own));
}

static void say(struct mt_finding_search *search, const struct trial *trials, size_t best)
{
    const uint64_t before = search->device->reserved_peak.bytes;
    struct mt_finding *finding = mt_finding_add(search);

    if (!finding)
        return;
    finding->id = "allocator-settings";
    finding->severity = "warning";
    finding->bytes = before - trials[best].reserved_bytes;
    tell_saving(search, &trials[best], &mt_settings[best], finding);
    finding->advice = mt_settings[best].advice;
    finding->cost = cost_of(search, &trials[best]);
    tell_evidence(search, trials, finding);
}

/* The text about a setting is complete, even if it is not the best. */
static enum mt_status finish_trials(struct mt_finding_search *search, struct trial *trials)
{
    enum mt_status status = MT_OK;

    for (size_t i = 0; status == MT_OK && i < MT_SETTING_COUNT; i++)
        if (trials[i].made && !trials[i].known)
            status = replay(search, mt_settings[i].policy, UINT64_MAX, &trials[i]);
    return status;
}

static bool raises_need(const struct mt_finding_search *search, const struct trial *trial)
{
    const struct mt_need *own = search->device->need;

    return own && trial->need && trial->need->bytes > own->bytes;
}

/* The advisable setting that reserves least, or MT_SETTING_COUNT. */
static size_t least_reserved(const struct mt_finding_search *search, const struct trial *trials)
{
    uint64_t least = most_reserved(search) + 1;
    size_t best = MT_SETTING_COUNT;

    for (size_t i = 0; i < MT_SETTING_COUNT; i++) {
        if (!trials[i].known || !trials[i].serves || trials[i].reserved_bytes >= least ||
            raises_need(search, &trials[i]))
            continue;
        least = trials[i].reserved_bytes;
        best = i;
    }
    return best;
}

/* Searches needs only for the candidates: a search replays the run many times. */
static enum mt_status choose(struct mt_finding_search *search, struct trial *trials, size_t *best)
{
    enum mt_status status = MT_OK;

    for (;;) {
        *best = least_reserved(search, trials);
        if (*best == MT_SETTING_COUNT || !search->device->need)
            return MT_OK;
        status = mt_needs_under(search->analysis, mt_settings[*best].policy, search->device->device,
                                &trials[*best].need);
        if (status != MT_OK || !raises_need(search, &trials[*best]))
            return status;
    }
}

static enum mt_status find(struct mt_finding_search *search)
{
    struct trial trials[MT_SETTING_COUNT] = {{0}};
    enum mt_status status = MT_OK;
    size_t best;

    if (!is_worth_a_replay(search))
        return MT_OK;
    for (size_t i = 0; status == MT_OK && i < MT_SETTING_COUNT; i++)
        if (!mt_setting_is_own(search->analysis->report, &mt_settings[i]))
            status = try(search, &mt_settings[i], &trials[i]);
    if (status == MT_OK)
        status = choose(search, trials, &best);
    if (status != MT_OK || best == MT_SETTING_COUNT)
        return status;
    status = finish_trials(search, trials);
    if (status == MT_OK) {
        say(search, trials, best);
        return MT_OK;
    } else
        return status;
}

const struct mt_finding_ops mt_finding_better_settings = {.ask = ask, .find = find};

/* The cause of the run's end: the setting that gets past it, or how many bytes fewer must be alive
 * and the largest holders. needs.h has the answer itself, by replays. */

enum { MAX_CANDIDATES = 3 };

/* What a smaller batch reduces. */
static bool is_of_work(enum mt_role role)
{
    return role == MT_ROLE_ACTIVATIONS || role == MT_ROLE_TEMPORARIES || role == MT_ROLE_INPUTS ||
           role == MT_ROLE_KV_CACHE;
}

/* "745 MiB of activations from forward train.py:58, 96.0 MiB of temporaries from ..." */
static const char *candidates(struct mt_arena *arena, const struct mt_device_report *device)
{
    const struct mt_instant *instant = mt_oom_instant(device, device->oom_answer->oom);
    const char *text = "";

    for (uint32_t i = 0; text && instant && i < instant->holder_count && i < MAX_CANDIDATES; i++) {
        const struct mt_contribution *holder = &instant->holders[i];
        char bytes[MT_UNITS_TEXT];

        if (holder->site && holder->bytes > 0 && is_of_work(holder->role))
            text = mt_arena_printf(arena, "%s%s%s of %s from %s", text, *text ? ", " : "",
                                   mt_format_bytes(bytes, (uint64_t)holder->bytes),
                                   mt_role_name(holder->role), holder->site);
    }
    return text;
}

static const char *limit_text(struct mt_arena *arena, const struct mt_oom_answer *answer)
{
    return mt_oom_limit_text(arena, answer);
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

static uint64_t key_of(const struct mt_holding *holding)
{
    return (uint64_t)holding->stack << 32 | holding->role;
}

/* Adds for each finding, by bit, the bytes of its blocks that were alive when memory ran out. */
static void add_alive(const struct mt_device_report *device, uint64_t alive[MT_FINDINGS_MARKED])
{
    const struct mt_instant *peak = device->instants,
                            *oom = mt_oom_instant(device, device->oom_answer->oom);
    struct mt_map marks = {0}; /* stack and role -> bits */

    for (uint32_t i = 0; oom && i < peak->holding_count; i++) {
        const uint32_t known = mt_map_get(&marks, key_of(&peak->holdings[i]));

        mt_map_put(&marks, key_of(&peak->holdings[i]),
                   device->marks[i] | (known == MT_MAP_NONE ? 0 : known));
    }
    for (uint32_t i = 0; oom && i < oom->holding_count; i++) {
        const uint32_t bits = mt_map_get(&marks, key_of(&oom->holdings[i]));

        for (uint32_t j = 0; bits != MT_MAP_NONE && j < MT_FINDINGS_MARKED; j++)
            alive[j] += bits >> j & 1 ? oom->holdings[i].bytes : 0;
    }
    mt_map_release(&marks);
}

/* The finding about the most memory that was alive when memory ran out, if that is at least the
 * bytes that lack; NULL: none. */
static const struct mt_finding *best_of_others(const struct mt_finding_search *search,
                                               uint64_t lack)
{
    const struct mt_device_report *device = search->device;
    uint64_t alive[MT_FINDINGS_MARKED] = {0}, most = 0;
    const struct mt_finding *best = NULL;

    add_alive(device, alive);
    for (uint32_t i = 0; i < device->finding_count; i++) {
        const struct mt_finding *finding = &device->findings[i];

        for (uint32_t j = 0; j < MT_FINDINGS_MARKED; j++) {
            const uint64_t bytes = mt_min_u64(alive[j], finding->bytes);

            if (finding->mark != 1u << j || bytes < lack || bytes <= most)
                continue;
            most = bytes;
            best = finding;
        }
    }
    return best;
}

static const struct mt_framework_texts own_limit = {
    {[MT_FRAMEWORK_UNKNOWN] = "raise the process's own limit: the card has the memory",
     [MT_FRAMEWORK_TORCH] = "raise the process's own limit "
                            "(torch.cuda.set_per_process_memory_fraction): the card has the "
                            "memory"}};

static void say_candidates(struct mt_finding_search *search)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const struct mt_oom_answer *answer = search->device->oom_answer;
    const struct mt_oom_way *least = mt_best_oom_way(answer, 0);
    const uint64_t lack = lack_of(answer, least);
    const char *largest = candidates(arena, search->device);
    const bool has_own_limit =
        mt_oom_why_of(search->analysis->report, search->device, answer->oom).under_own_limit;
    const struct mt_finding *best = has_own_limit ? NULL : best_of_others(search, lack);
    const char *evidence[1];
    struct mt_finding finding = {.id = "out-of-memory",
                                 .severity = "error",
                                 .bytes = lack ? lack : answer->oom->request_bytes,
                                 .evidence = evidence,
                                 .evidence_count = 1};

    finding.title =
        lack ? title_of_lack(arena, answer, least) : title_of_request(arena, answer, least);
    finding.advice =
        has_own_limit ? mt_framework_text(search, &own_limit)
        : best
            ? mt_arena_printf(arena, "%s%s", best->advice,
                              strstr(best->advice, "a smaller batch") ? "" : "; or a smaller batch")
        : *largest ? mt_arena_printf(arena, "use a smaller batch, or reduce %s", largest)
                   : "use a smaller batch, or a device with more memory";
    finding.cost = best ? best->cost : NULL;
    evidence[0] = limit_text(arena, answer);
    mt_finding_publish(search, &finding);
}

/* Less memory would not have helped. */
static void say_no_space(struct mt_finding_search *search)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const struct mt_oom *oom = search->device->oom_answer->oom;
    const char *evidence[1] = {"the driver refused address space right before the error"};
    char bytes[MT_UNITS_TEXT];
    struct mt_finding finding = {.id = "out-of-memory",
                                 .severity = "error",
                                 .bytes = oom->request_bytes,
                                 .evidence = evidence,
                                 .evidence_count = 1};

    finding.title = mt_arena_printf(arena,
                                    "%s was requested when the address space ran out, not the "
                                    "memory",
                                    mt_format_bytes(bytes, oom->request_bytes));
    finding.advice = "use fewer streams, or set expandable_segments_reserve (PyTorch 2.15)";
    mt_finding_publish(search, &finding);
}

/* Returns the caller of the site, which usually decides the shapes; NULL if there is none. */
static const char *caller_of(const struct mt_finding_search *search, uint32_t stack)
{
    const struct mt_symbols *symbols = &search->analysis->source->symbols;
    const uint32_t site = mt_site_table_site(&search->analysis->attribution.sites, stack);

    while (stack != MT_NO_ID && symbols->stacks[stack].frame != site)
        stack = symbols->stacks[stack].parent;
    stack = stack == MT_NO_ID ? MT_NO_ID : symbols->stacks[stack].parent;
    return stack == MT_NO_ID ? NULL
                             : mt_frame_label(&search->analysis->report->arena, symbols,
                                              symbols->stacks[stack].frame);
}

/* No device has that much memory: the size is the bug. */
static void say_wrong_size(struct mt_finding_search *search)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const struct mt_oom_answer *answer = search->device->oom_answer;
    const struct mt_oom *oom = answer->oom;
    const char *site = mt_site_label(arena, &search->analysis->source->symbols, oom->stack, false);
    const char *caller = caller_of(search, oom->stack);
    const char *evidence[1];
    char bytes[MT_UNITS_TEXT];
    struct mt_finding finding = {.id = "out-of-memory",
                                 .severity = "error",
                                 .bytes = oom->request_bytes,
                                 .evidence = evidence,
                                 .evidence_count = 1};

    finding.title = mt_arena_printf(arena,
                                    "%s was requested, more than any device has: the size is "
                                    "wrong",
                                    mt_format_bytes(bytes, oom->request_bytes));
    finding.advice =
        mt_arena_printf(arena, "check the shapes of the operation in %s%s%s", site,
                        caller ? ", and what passes them: " : "", caller ? caller : "");
    evidence[0] = limit_text(arena, answer);
    mt_finding_publish(search, &finding);
}

static enum mt_status find_out_of_memory(struct mt_finding_search *search)
{
    const struct mt_oom_answer *answer = search->device->oom_answer;
    const struct mt_oom_way *way = answer ? mt_best_oom_way(answer, 1) : NULL;

    if (!answer)
        return MT_OK;
    if (mt_card_exceeds_all(answer->oom->request_bytes)) {
        say_wrong_size(search);
        return MT_OK;
    }
    if (answer->cause == MT_OOM_ADDRESS_SPACE) {
        say_no_space(search);
        return MT_OK;
    }
    if (way && way->fit_bytes <= answer->most_limit_bytes) {
        say_setting(search, way);
        return MT_OK;
    }
    say_candidates(search);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_out_of_memory = {.find = find_out_of_memory};
