/* Queries on a report, and names of its parts. */
#include <stdio.h>
#include <string.h>

#include "holding.h"
#include "phase.h"
#include "question.h"
#include "report.h"
#include "report_query.h"
#include "units.h"
#include "util.h"

const char *mt_saving_name(enum mt_saving saving)
{
    static const char *const names[] = {NULL, "exact", "at least", "at most", "estimated"};

    return (unsigned)saving < MT_ARRAY_LEN(names) ? names[saving] : NULL;
}

const char *mt_role_name(enum mt_role role)
{
    static const char *const names[] = {
        "parameters", "optimizer state", "gradients", "activations", "temporaries",
        "workspace",  "inputs",          "KV cache",  "other",       "weight copies"};
    _Static_assert(sizeof names / sizeof *names == MT_ROLE_COUNT, "one entry for each");

    return (unsigned)role < MT_ROLE_COUNT ? names[role] : "other";
}

const char *mt_device_part_name(enum mt_device_part part)
{
    static const char *const names[] = {"weights",
                                        "KV cache",
                                        "activations and temporaries",
                                        "CUDA graphs and other private pools",
                                        "workspaces",
                                        "other blocks of the framework",
                                        "segments of the framework, unused",
                                        "libraries",
                                        "context and modules",
                                        "free, or not seen"};
    _Static_assert(sizeof names / sizeof *names == MT_DEVICE_PART_COUNT, "one entry for each");

    return names[part];
}

const char *mt_phase_source_name(enum mt_phase_source source)
{
    static const char *const names[] = {"annotation", "scopes", "stacks", "threads", "period"};
    _Static_assert(sizeof names / sizeof *names == MT_PHASE_SOURCE_COUNT, "one entry for each");

    return (unsigned)source < MT_PHASE_SOURCE_COUNT ? names[source] : names[0];
}

const char *mt_tie_name(enum mt_tie tie)
{
    static const char *const names[] = {"nothing", "parameter", "forward_site",
                                        "library", "phase",     "before"};
    _Static_assert(sizeof names / sizeof *names == MT_TIE_COUNT, "one entry for each");

    return (unsigned)tie < MT_TIE_COUNT ? names[tie] : names[0];
}

const char *mt_group_by_name(enum mt_group_by by)
{
    static const char *const names[] = {"site", "stack", "role", "phase", "size", "module", "tag"};
    _Static_assert(sizeof names / sizeof *names == MT_GROUP_BY_COUNT, "one entry for each");

    return names[by];
}

const char *mt_population_name(enum mt_population_of of)
{
    static const char *const names[] = {"allocated-total", "grew", "kept"};
    _Static_assert(sizeof names / sizeof *names == MT_POPULATION_KINDS, "one entry for each");

    return names[of];
}

const char *mt_layer_by_name(enum mt_layer_by by)
{
    static const char *const names[] = {"role", "phase", "site", "stream", "tag"};
    _Static_assert(sizeof names / sizeof *names == MT_LAYER_BY_COUNT, "one entry for each");

    return names[by];
}

const char *mt_covered_name(unsigned i)
{
    static const char *const names[] = {"requested", "allocated", "active", "reserved"};
    _Static_assert(sizeof names / sizeof *names == MT_COVERED_COUNTERS, "one entry for each");

    return names[i];
}

void mt_report_add_covered(struct mt_buf *out, uint8_t covered)
{
    for (unsigned i = 0, added = 0; i < MT_COVERED_COUNTERS; i++) {
        bool is_last = covered >> i == 1;

        if (!(covered >> i & 1))
            continue;
        mt_buf_printf(out, "%s%s", !added ? "" : is_last ? " and " : ", ", mt_covered_name(i));
        added++;
    }
}

bool mt_limit_is_known(const struct mt_replay_result *replay)
{
    bool explains =
        replay->limit_inferred && replay->limit_low_bytes + 1 == replay->limit_high_bytes;

    return replay->limit_bytes && !explains;
}

uint64_t mt_least_limit_bytes(const struct mt_replay_result *replay)
{
    return replay->limit_inferred ? replay->limit_low_bytes : replay->limit_bytes;
}

uint64_t mt_most_limit_bytes(const struct mt_replay_result *replay)
{
    return replay->limit_inferred ? replay->limit_high_bytes - 1 : replay->limit_bytes;
}

static const char *range_text(struct mt_arena *arena, uint64_t least_bytes, uint64_t most_bytes)
{
    const uint64_t most_whole_bytes = most_bytes / MT_MIB * MT_MIB;
    char least[MT_UNITS_TEXT], most[MT_UNITS_TEXT];

    mt_format_mib(least, least_bytes);
    mt_format_mib(most, most_whole_bytes);
    if (most_whole_bytes <= least_bytes || strcmp(least, most) == 0)
        return mt_arena_printf(arena, "%s", least);
    return mt_arena_printf(arena, "%s to %s", least, most);
}

const char *mt_limit_text(struct mt_arena *arena, uint64_t least_bytes, uint64_t most_bytes)
{
    const char *range = range_text(arena, least_bytes, most_bytes);

    return mt_arena_printf(arena, "the limit was %s", range);
}

const char *mt_oom_limit_text(struct mt_arena *arena, const struct mt_oom_answer *answer)
{
    const uint64_t most_bytes = answer->most_limit_bytes / MT_MIB * MT_MIB;
    char most[MT_UNITS_TEXT];

    if (answer->most_limit_bytes < answer->oom->then.reserved + answer->oom->device_free_bytes ||
        most_bytes <= answer->least_limit_bytes)
        return mt_limit_text(arena, answer->least_limit_bytes, answer->most_limit_bytes);
    return mt_arena_printf(arena, "the limit was at most %s", mt_format_mib(most, most_bytes));
}

const char *mt_replay_limit_text(struct mt_arena *arena, const struct mt_replay_result *replay)
{
    return mt_limit_text(arena, mt_least_limit_bytes(replay), mt_most_limit_bytes(replay));
}

const char *mt_need_text(char text[MT_NEED_TEXT], const struct mt_need *need)
{
    char bytes[MT_UNITS_TEXT];

    snprintf(text, MT_NEED_TEXT, "%s%s", need->depends_on_memory ? "about " : "",
             mt_format_bytes(bytes, need->bytes));
    return text;
}

bool mt_report_covers(const struct mt_report *report, const struct mt_device_report *device,
                      uint64_t end_event)
{
    return !report->starts_in_middle || end_event >= device->first_event;
}

const char *mt_report_name(struct mt_arena *arena, const char *path)
{
    static const char *const endings[] = {".zst", ".pickle", ".pkl", ".mt", ".trace", ".json"};
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : strcmp(path, "-") == 0 ? "standard input" : path;
    size_t length = strlen(base);

    for (size_t i = 0; i < MT_ARRAY_LEN(endings); i++) {
        size_t ending = strlen(endings[i]);

        if (length > ending && !strncmp(base + length - ending, endings[i], ending))
            length -= ending;
    }
    return mt_arena_text(arena, base, length);
}

const struct mt_oom *mt_fatal_oom(const struct mt_device_report *device)
{
    for (uint32_t i = 0; i < device->oom_count; i++)
        if (device->oom_list[i].fatal)
            return &device->oom_list[i];
    return NULL;
}

#define SHOWN_AFTER 50 /* this part of the events before an error is shown after it */

struct mt_shown_end mt_shown_end(const struct mt_oom *ooms, uint32_t count, uint64_t first_event,
                                 struct mt_shown_end all)
{
    const struct mt_oom *last = count ? &ooms[count - 1] : NULL;

    if (!last || !last->fatal || last->event < first_event)
        return all;
    uint64_t event = last->event + (last->event - first_event) / SHOWN_AFTER + 1;
    return event < all.event ? (struct mt_shown_end){last->t_ns, event, true} : all;
}

struct mt_shown_end mt_device_shown_end(const struct mt_device_report *device)
{
    const struct mt_shown_end all = {device->last_t_ns, device->last_event, false};

    return mt_shown_end(device->oom_list, device->oom_count, device->first_event, all);
}

bool mt_lacks_history(const struct mt_report *report, const struct mt_device_report *device)
{
    return report->starts_in_middle && device->end.reserved &&
           (device->events <= 1 || (!device->allocations && !device->frees));
}

bool mt_is_one_instant(const struct mt_report *report, const struct mt_device_report *device)
{
    return mt_lacks_history(report, device) && !device->ooms;
}

const struct mt_instant *mt_oom_instant(const struct mt_device_report *device,
                                        const struct mt_oom *oom)
{
    for (uint32_t i = 0; i < device->instant_count; i++)
        if (device->instants[i].kind == MT_INSTANT_OOM && device->instants[i].event == oom->event)
            return &device->instants[i];
    return NULL;
}

const struct mt_oom_way *mt_best_oom_way(const struct mt_oom_answer *answer, uint32_t first)
{
    const struct mt_oom_way *best = NULL;

    for (uint32_t i = first; i < answer->way_count; i++) {
        const struct mt_oom_way *way = &answer->ways[i];

        if (way->fits && (!best || way->fit_bytes < best->fit_bytes))
            best = way;
    }
    return best;
}

bool mt_has_allocator(const struct mt_report *report)
{
    return !report->is_driver_level || report->what_if;
}

bool mt_knows_reserved(const struct mt_report *report)
{
    return report->what_if || (report->has_segments && mt_has_allocator(report));
}

const char *mt_phase_where(struct mt_arena *arena, const struct mt_phase *phases, int32_t phase,
                           int64_t step)
{
    phase = mt_phase_named(phases, phase);
    const struct mt_phase *named = phase == MT_NO_PHASE ? NULL : &phases[phase];

    if (step == MT_NO_STEP)
        return named && named->name ? named->name : "outside any phase";
    return mt_arena_printf(arena, "step %lld, %.480s", (long long)step,
                           !named || named->is_step ? "between phases" : named->name);
}

double mt_unused_share(const struct mt_bytes *then)
{
    return then->reserved ? 1 - (double)then->allocated / (double)then->reserved : 0;
}

const struct mt_peak *mt_fragmentation_peak(const struct mt_device_report *device)
{
    const struct mt_peak *reserved = &device->reserved_peak, *allocated = &device->allocated_peak;

    return allocated->event != reserved->event &&
                   allocated->then.reserved >= reserved->bytes - reserved->bytes / 100
               ? allocated
               : reserved;
}

const char *mt_fragmentation_instant(const struct mt_device_report *device)
{
    return mt_fragmentation_peak(device) == &device->allocated_peak ? "allocated peak"
                                                                    : "reserved peak";
}

bool mt_lacks_requests(const struct mt_device_report *device)
{
    return device->xla && device->xla->requests_missing;
}

bool mt_device_comes_first(const struct mt_device_report *a, const struct mt_device_report *b)
{
    const bool a_died = mt_fatal_oom(a), b_died = mt_fatal_oom(b);

    if (a_died != b_died)
        return a_died;
    if (a->reserved_peak.bytes != b->reserved_peak.bytes)
        return a->reserved_peak.bytes > b->reserved_peak.bytes;
    if (a->allocated_peak.bytes != b->allocated_peak.bytes)
        return a->allocated_peak.bytes > b->allocated_peak.bytes;
    return a->device < b->device;
}

const struct mt_device_report *mt_worst_device(const struct mt_report *report)
{
    const struct mt_device_report *worst = NULL;

    for (uint32_t i = 0; i < report->device_count; i++)
        if (!worst || mt_device_comes_first(&report->devices[i], worst))
            worst = &report->devices[i];
    return worst;
}

const struct mt_device_report *mt_report_device(const struct mt_report *report, uint16_t number)
{
    for (uint32_t i = 0; i < report->device_count; i++)
        if (report->devices[i].device == number)
            return &report->devices[i];
    return NULL;
}

const struct mt_driver_report *mt_driver_of(const struct mt_report *report, uint16_t device)
{
    for (uint32_t i = 0; i < report->driver_count; i++)
        if (report->drivers[i].device == device)
            return &report->drivers[i];
    return NULL;
}

struct mt_role_origins mt_role_origins_of(const struct mt_report *report,
                                          const struct mt_device_report *device)
{
    struct mt_role_origins origins = {0};

    for (int role = 0; role < MT_ROLE_COUNT; role++)
        origins.recorded_bytes += device->peak_recorded_role_bytes[role];
    /* A block of unknown role is not a guess. */
    uint64_t unknown_bytes = mt_sub_or_0_u64(device->peak_role_bytes[MT_ROLE_OTHER],
                                             device->peak_recorded_role_bytes[MT_ROLE_OTHER]);
    if (mt_is_one_instant(report, device))
        origins.guessed_bytes =
            mt_sub_or_0_u64(device->allocated_peak.bytes, origins.recorded_bytes + unknown_bytes);
    else
        origins.guessed_bytes = device->peak_start_role_bytes;
    origins.inferred_bytes = mt_sub_or_0_u64(device->allocated_peak.bytes,
                                             origins.recorded_bytes + origins.guessed_bytes);
    return origins;
}

void mt_roles_by_bytes(const uint64_t bytes[MT_ROLE_COUNT], enum mt_role order[MT_ROLE_COUNT])
{
    for (int i = 0; i < MT_ROLE_COUNT; i++) {
        int at = i;

        for (; at > 0 && bytes[order[at - 1]] < bytes[i]; at--)
            order[at] = order[at - 1];
        order[at] = (enum mt_role)i;
    }
}

const char *mt_holder_role_name(enum mt_role role, bool is_first)
{
    return is_first && role == MT_ROLE_OTHER ? "blocks of unknown role" : mt_role_name(role);
}

bool mt_is_shown_by_event(const struct mt_report *report, const struct mt_device_report *device)
{
    return (device && mt_fatal_oom(device)) || !mt_report_has_times(report);
}

uint64_t mt_step_begin(const struct mt_report *report, const struct mt_step_use *step)
{
    return mt_phase_last_event_before(&report->phases[step->phase]) + 1;
}

static uint32_t first_covered(const struct mt_report *report, const struct mt_device_report *device,
                              const struct mt_step_use *steps, uint32_t count)
{
    uint32_t first = count;

    while (first > 0 &&
           mt_report_covers(report, device, mt_step_begin(report, &steps[first - 1])) &&
           (first == count ||
            mt_step_begin(report, &steps[first - 1]) < mt_step_begin(report, &steps[first])))
        first--;
    return first;
}

uint32_t mt_first_step(const struct mt_report *report, const struct mt_device_report *device)
{
    return first_covered(report, device, device->steps, device->step_count);
}

struct mt_step_list mt_judged_steps(const struct mt_report *report,
                                    const struct mt_device_report *device)
{
    struct mt_step_list steps = {device->steps, device->step_count};

    if (device->loop_steps)
        steps = (struct mt_step_list){device->loop_steps, device->loop_step_count};
    uint32_t first = first_covered(report, device, steps.list, steps.count);
    return (struct mt_step_list){steps.list + first, steps.count - first};
}

/* NCCL's reports about the communicator with that number, or NULL. */
static const struct mt_communicator_use *told_communicator(const struct mt_driver_report *driver,
                                                           int32_t communicator)
{
    for (uint32_t i = 0; i < driver->told_communicator_count; i++)
        if (communicator != MT_NO_COMMUNICATOR &&
            driver->communicators[i].communicator == communicator)
            return &driver->communicators[i];
    return NULL;
}

static const char *communicator_text(struct mt_arena *arena, const struct mt_driver_report *driver,
                                     const struct mt_owner_use *owner)
{
    const struct mt_communicator_use *told = told_communicator(driver, owner->communicator);
    char ranks[MT_UNITS_TEXT];
    const char *text = driver->communicator_count < 2
                           ? mt_arena_printf(arena, "%s, communicator", owner->library)
                           : mt_arena_printf(arena, "%s, communicator %d of %u", owner->library,
                                             owner->communicator + 1, driver->communicator_count);

    if (!told || !told->ranks)
        return text;
    return mt_arena_printf(arena, "%s with %s", text,
                           mt_format_counted(ranks, told->ranks, "rank"));
}

const char *mt_owner_text(struct mt_arena *arena, const struct mt_driver_report *driver,
                          const struct mt_owner_use *owner)
{
    bool has_number = owner->communicator != MT_NO_COMMUNICATOR;
    const char *text = owner->library;

    if (!text)
        return "a library outside the framework";
    if (has_number)
        text = communicator_text(arena, driver, owner);
    if (!owner->what || (has_number && !strcmp(owner->what, "communicator")))
        return text;
    return mt_arena_printf(arena, "%s, %s", text, owner->what);
}

uint64_t mt_largest_kv_cache(const struct mt_device_parts *device_parts)
{
    return device_parts->parts[MT_DEVICE_KV_CACHE] + device_parts->spare_bytes;
}

const char *mt_instant_name(enum mt_instant_kind kind)
{
    static const char *const names[] = {"peak_allocated", "peak_reserved", "oom",  "phase_peak",
                                        "phase_end",      "step_peak",     "asked"};

    return names[kind];
}
