#include "layer_groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis.h"
#include "attributed.h"
#include "icicle.h"
#include "process_memory.h"

static const char *phase_name(const struct mt_report *report, const struct mt_block_life *life)
{
    int32_t phase = mt_shown_phase(report->phases, report->phase_count, life->phase);

    if (life->initial)
        return "before the trace";
    if (phase == MT_NO_PHASE)
        return "no phase";
    return report->phases[phase].is_step ? "between phases" : report->phases[phase].name;
}

static const char *stream_name(const struct mt_layer_groups *groups,
                               const struct mt_block_life *life, char text[64])
{
    const struct mt_symbols *symbols = &groups->analysis->source->symbols;
    uint64_t handle =
        life->stream < symbols->stream_count ? symbols->streams[life->stream].handle : 0;

    if (!handle)
        return "default stream";
    snprintf(text, 64, "stream 0x%llx", (unsigned long long)handle);
    return text;
}

static void add_group(struct mt_layer_groups *groups, const char *name, uint32_t id,
                      uint32_t *group)
{
    *group = 0;
    if (groups->count == MT_LAYER_GROUPS) {
        groups->late++;
    } else {
        *group = groups->count++;
        groups->names[*group] = mt_arena_text(&groups->analysis->report->arena, name, strlen(name));
    }
    mt_map_put(&groups->groups_of_names, id, *group);
}

static void add_origin(struct mt_layer_groups *groups, uint64_t key,
                       const struct mt_layer_origin *origin, uint32_t group)
{
    if (groups->origin_count == groups->origin_capacity) {
        uint32_t capacity = groups->origin_capacity ? groups->origin_capacity * 2 : 256;
        struct mt_layer_origin *bigger =
            mt_memory_resize(groups->origins, capacity * sizeof *bigger);

        groups->origins = bigger;
        groups->origin_capacity = capacity;
    }
    groups->origins[groups->origin_count] = *origin;
    groups->origins[groups->origin_count].group = group;
    mt_map_put(&groups->groups_of_origins, key, groups->origin_count++);
}

static void group_of_name(struct mt_layer_groups *groups, const char *name, uint32_t *group)
{
    uint32_t id;

    mt_strings_put(&groups->words, name, strlen(name), &id);
    *group = mt_map_get(&groups->groups_of_names, id);
    if (*group == MT_MAP_NONE)
        add_group(groups, name, id, group);
}

/* The words of a site are made once per combination of the facts that they depend on. */
static void find_site(struct mt_layer_groups *groups, const struct mt_block_life *life,
                      uint32_t *group)
{
    const struct mt_attributed row = mt_attributed_of_life(&groups->attribution, life);
    const struct mt_layer_origin origin = {.stack = row.stack,
                                           .tied = row.tied,
                                           .kind = (uint32_t)row.tie * 4 + (row.initial ? 2u : 0u) +
                                                   (row.backward ? 1u : 0u)};
    uint64_t key =
        mt_hash_u64(mt_hash_u64((uint64_t)origin.stack << 32 | origin.tied) ^ origin.kind);

    for (;; key++) {
        uint32_t found = mt_map_get(&groups->groups_of_origins, key);

        if (found == MT_MAP_NONE)
            break;
        if (groups->origins[found].stack == origin.stack &&
            groups->origins[found].tied == origin.tied &&
            groups->origins[found].kind == origin.kind) {
            *group = groups->origins[found].group;
            return;
        }
    }
    group_of_name(groups, mt_attributed_site(&groups->attribution, &row), group);
    add_origin(groups, key, &origin, *group);
}

void mt_layer_group(struct mt_layer_groups *groups, const struct mt_block_life *life,
                    uint32_t *group)
{
    const char *name = NULL;
    char text[64];

    switch (groups->by) {
    case MT_LAYERS_BY_ROLE: name = mt_role_name((enum mt_role)life->role); break;
    case MT_LAYERS_BY_PHASE: name = phase_name(groups->analysis->report, life); break;
    case MT_LAYERS_BY_SITE: find_site(groups, life, group); return;
    case MT_LAYERS_BY_STREAM: name = stream_name(groups, life, text); break;
    }
    group_of_name(groups, name, group);
}

void mt_layer_groups_init(struct mt_layer_groups *groups, struct mt_analysis *analysis)
{
    memset(groups, 0, sizeof *groups);
    groups->analysis = analysis;
    groups->by = analysis->options->layer_by;
    groups->count = 1;
    mt_attribution_init(&groups->attribution, &analysis->report->arena, &analysis->source->symbols,
                        &analysis->survey.phases);
    groups->attribution.has_stacks = analysis->source->header.has_stacks;
    groups->attribution.names_operations = mt_header_names_operations(&analysis->source->header);
    groups->attribution.first_event = analysis->survey.first_event;
}

void mt_layer_groups_release(struct mt_layer_groups *groups)
{
    mt_attribution_release(&groups->attribution);
    mt_strings_release(&groups->words);
    mt_map_release(&groups->groups_of_names);
    mt_map_release(&groups->groups_of_origins);
    free(groups->origins);
}
