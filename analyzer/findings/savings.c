/* What findings without a replay may save: the peak can only fall to the highest level of the
 * blocks that stay. A finding marks groups of blocks of the allocated peak, and has a scope. One
 * pass over the events finds, for each finding, the most that is ever allocated without the blocks
 * of these groups (equal role and site) and of the scope. */
#include <stdlib.h>
#include <string.h>

#include "analysis.h"
#include "finding.h"
#include "live_table.h"
#include "map.h"
#include "process_memory.h"
#include "units.h"
#include "util.h"

struct level {
    bool is_wanted;
    uint32_t mark_count;
    const struct mt_finding_scope *scopes; /* by bit */
    struct mt_map groups;                  /* role and site -> bits of findings */
    struct mt_alloc_memo marks;            /* bits + 1 of findings */
    struct mt_live_table live;             /* handle: bits of the findings that mark the block */
    uint64_t now_bytes, most_bytes;
    uint64_t marked_bytes[MT_FINDINGS_MARKED], rest_bytes[MT_FINDINGS_MARKED];
};

struct reading {
    struct mt_analysis *analysis;
    struct level *levels;              /* one for each device of the report */
    uint16_t level_of[MT_MAX_DEVICES]; /* index + 1 */
};

/* By site: stacks with native frames may differ from step to step. */
static uint64_t key_of(const struct mt_analysis *analysis, enum mt_role role, uint32_t stack)
{
    return (uint64_t)role << 32 | mt_site_table_site(&analysis->attribution.sites, stack);
}

static void end_block(struct level *level, uint64_t addr)
{
    struct mt_live *live = mt_live_find(&level->live, addr);

    if (!live)
        return;
    level->now_bytes -= live->block_bytes;
    for (uint32_t i = 0; i < level->mark_count; i++)
        if (live->handle >> i & 1)
            level->marked_bytes[i] -= live->block_bytes;
    mt_live_remove(&level->live, live);
}

static void add_block(struct level *level, uint64_t addr, uint64_t bytes, uint32_t groups)
{
    struct mt_live *live = mt_live_add(&level->live, addr);

    live->block_bytes = bytes;
    live->handle = groups;
    level->now_bytes += bytes;
    level->most_bytes = mt_max_u64(level->most_bytes, level->now_bytes);
    for (uint32_t i = 0; i < level->mark_count; i++) {
        if (groups >> i & 1)
            level->marked_bytes[i] += bytes;
        level->rest_bytes[i] =
            mt_max_u64(level->rest_bytes[i], level->now_bytes - level->marked_bytes[i]);
    }
}

static bool is_in_scope(const struct mt_finding_scope *scope, enum mt_role role,
                        const struct mt_event *event)
{
    if (event->stack == MT_NO_ID && scope->stackless_roles >> role & 1)
        return true;
    if (!(scope->roles >> role & 1) ||
        (scope->each_bytes && event->size_bytes != scope->each_bytes))
        return false;
    return !scope->stacks || scope->marks >> mt_stack_mark(scope->stacks, event->stack) & 1;
}

/* Returns the bits of the findings whose change may remove the block. */
static uint32_t marks_of(const struct mt_analysis *analysis, struct level *level,
                         const struct mt_event *event, uint8_t code)
{
    struct mt_alloc_answer *marks = mt_alloc_memo_at(&level->marks, event, code);

    if (marks->answer)
        return marks->answer - 1;
    const enum mt_role role =
        mt_role_resolve(&analysis->survey.roles, code, event->stack, event->size_bytes);
    const uint32_t known = mt_map_get(&level->groups, key_of(analysis, role, event->stack));
    marks->answer = known == MT_MAP_NONE ? 0 : known;
    for (uint32_t i = 0; i < level->mark_count; i++)
        marks->answer |= is_in_scope(&level->scopes[i], role, event) ? 1u << i : 0;
    return marks->answer++;
}

static struct level *level_of(struct reading *reading, const struct mt_event *event)
{
    const uint32_t index = event->device < MT_MAX_DEVICES ? reading->level_of[event->device] : 0;

    return index ? &reading->levels[index - 1] : NULL;
}

static enum mt_status on_event(void *context, struct mt_event *event)
{
    struct reading *reading = context;
    struct mt_alloc_log *log = &reading->analysis->survey.log;
    struct level *level = level_of(reading, event);
    uint64_t bytes;
    uint8_t code;

    if (level && (event->kind == MT_EVENT_FREE_REQUESTED || event->kind == MT_EVENT_FREE_COMPLETED))
        end_block(level, event->addr);
    if (event->kind != MT_EVENT_ALLOC || !mt_alloc_log_next(log, &bytes, &code) || !level)
        return MT_OK; /* the log has those of every device */
    if (mt_alloc_log_ends_old(event, bytes))
        end_block(level, event->addr);
    if (bytes)
        add_block(level, event->addr, bytes, marks_of(reading->analysis, level, event, code));
    return MT_OK;
}

static void mark_groups(const struct mt_analysis *analysis, struct level *level,
                        const struct mt_device_report *device)
{
    const struct mt_instant *peak = &device->instants[0];

    for (uint32_t i = 0; i < peak->holding_count; i++) {
        const uint64_t key = key_of(analysis, peak->holdings[i].role, peak->holdings[i].stack);
        const uint32_t known = mt_map_get(&level->groups, key);

        if (device->marks[i])
            mt_map_put(&level->groups, key, device->marks[i] | (known == MT_MAP_NONE ? 0 : known));
    }
    for (uint32_t i = 0; i < device->finding_count; i++)
        level->mark_count += device->findings[i].mark != 0;
    level->is_wanted = true;
}

/* Returns the bytes that a finding and one of the others count: not more than the finding counts of
 * holdings that it counts in part. */
static uint64_t shared_bytes(const struct mt_device_report *device,
                             const struct mt_finding *finding, uint32_t others)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; finding->mark && i < device->instants[0].holding_count; i++)
        if (device->marks[i] & finding->mark && device->marks[i] & others)
            bytes += device->instants[0].holdings[i].bytes;
    return mt_min_u64(bytes, finding->bytes);
}

static void bound(const struct level *level, struct mt_device_report *device)
{
    for (uint32_t i = 0; i < device->finding_count; i++) {
        struct mt_finding *finding = &device->findings[i];

        if (!finding->mark || finding->saving != MT_SAVING_UNKNOWN)
            continue;
        finding->saving = MT_SAVING_AT_MOST;
        finding->saves_bytes = finding->bytes;
        for (uint32_t j = 0; j < level->mark_count; j++)
            if (finding->mark == 1u << j && level->most_bytes == device->allocated_peak.bytes)
                finding->saves_bytes =
                    mt_min_u64(finding->bytes, level->most_bytes - level->rest_bytes[j]);
    }
}

static bool has_marks(const struct mt_device_report *device)
{
    for (uint32_t i = 0; i < device->finding_count; i++)
        if (device->findings[i].mark && device->findings[i].saving == MT_SAVING_UNKNOWN)
            return true;
    return false;
}

static void release(struct reading *reading)
{
    for (uint32_t i = 0; i < reading->analysis->report->device_count; i++) {
        mt_map_release(&reading->levels[i].groups);
        mt_live_release(&reading->levels[i].live);
    }
    free(reading->levels);
}

enum mt_status mt_savings_bound(struct mt_analysis *analysis, const struct mt_finding_marks *marks)
{
    struct mt_report *report = analysis->report;
    struct reading reading = {
        .analysis = analysis,
        .levels = mt_memory_zeroed((size_t)report->device_count + 1, sizeof *reading.levels)};
    enum mt_status status = MT_OK;
    bool is_wanted = false;

    for (uint32_t i = 0; i < report->device_count; i++) {
        if (!has_marks(&report->devices[i]) || report->devices[i].device >= MT_MAX_DEVICES)
            continue;
        mark_groups(analysis, &reading.levels[i], &report->devices[i]);
        reading.levels[i].scopes = marks->scopes[i];
        reading.level_of[report->devices[i].device] = (uint16_t)(i + 1);
        is_wanted = true;
    }
    if (is_wanted) {
        mt_alloc_log_rewind(&analysis->survey.log);
        status = mt_read_again_events(analysis, &reading, on_event);
    }
    for (uint32_t i = 0; status == MT_OK && i < report->device_count; i++)
        if (reading.levels[i].is_wanted)
            bound(&reading.levels[i], &report->devices[i]);
    release(&reading);
    return status;
}

static uint64_t new_saving(const struct mt_device_report *device, const struct mt_finding *finding,
                           uint32_t before)
{
    const uint64_t shared = shared_bytes(device, finding, before);

    return finding->saves_bytes - mt_min_u64(finding->saves_bytes, shared);
}

enum { SURE_SHARE = 10 }; /* of the need, as a fraction */

/* In front: the cause of the run's end, or the answer about a cache; what ends the run if it
 * continues; and replayed savings of small changes, if the device needs that much less. */
static int rank_of(const struct mt_device_report *device, const struct mt_finding *finding)
{
    const uint64_t needed = device->need ? device->need->bytes : device->reserved_peak.bytes;

    if (strcmp(finding->id, "out-of-memory") == 0 || strcmp(finding->id, "kv-cache") == 0)
        return 0;
    if (strcmp(finding->severity, "error") == 0)
        return 1;
    return strcmp(finding->severity, "warning") == 0 && finding->saving != MT_SAVING_AT_MOST &&
                   mt_finding_matters(finding->saves_bytes, needed) &&
                   (finding->saves_bytes >= needed / SURE_SHARE ||
                    strcmp(finding->id, "allocator-settings") == 0) /* changes no code */
               ? 2
               : 3;
}

/* Whether x comes before y: by what it saves in addition to the findings `before`. */
static bool is_before(const struct mt_device_report *device, const struct mt_finding *x,
                      const struct mt_finding *y, uint32_t before)
{
    const uint64_t x_saves = new_saving(device, x, before), y_saves = new_saving(device, y, before);
    const bool x_warns = strcmp(x->severity, "warning") == 0,
               y_warns = strcmp(y->severity, "warning") == 0;

    if (rank_of(device, x) != rank_of(device, y))
        return rank_of(device, x) < rank_of(device, y);
    if (x_saves != y_saves)
        return x_saves > y_saves;
    if (x_warns != y_warns)
        return x_warns;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes;
    return strcmp(x->title, y->title) < 0;
}

static void tell_shared(struct mt_arena *arena, struct mt_finding *finding)
{
    const char **evidence = mt_arena_array(arena, finding->evidence_count + 1u, sizeof *evidence);
    char bytes[MT_UNITS_TEXT];

    if (finding->evidence_count)
        memcpy(evidence, finding->evidence, finding->evidence_count * sizeof *evidence);
    evidence[finding->evidence_count] =
        mt_arena_printf(arena, "advice before this one also counts %s of it",
                        mt_format_bytes(bytes, finding->counted_before_bytes));
    mt_finding_set_evidence(finding, evidence, finding->evidence_count + 1);
}

void mt_findings_rank(struct mt_arena *arena, struct mt_device_report *device)
{
    uint32_t before = 0;

    for (uint32_t i = 0; i < device->finding_count; i++) {
        uint32_t at = i;

        for (uint32_t j = i + 1; j < device->finding_count; j++)
            if (is_before(device, &device->findings[j], &device->findings[at], before))
                at = j;
        struct mt_finding chosen = device->findings[at];
        memmove(device->findings + i + 1, device->findings + i,
                (at - i) * sizeof *device->findings);
        chosen.counted_before_bytes = shared_bytes(device, &chosen, before);
        if (chosen.counted_before_bytes)
            tell_shared(arena, &chosen);
        device->findings[i] = chosen;
        before |= chosen.mark;
    }
}
