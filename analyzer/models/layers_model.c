/* Each group has its current bytes. Each axis records, for the current bin, the bytes of each group
 * at the fullest instant so far, and updates only groups that changed since the last such instant,
 * so an event costs O(1). At the end of a bin, the groups that differ from the previous bin are
 * written. At the end the largest groups become layers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis.h"
#include "attributed.h"
#include "grow.h"
#include "holding.h"
#include "icicle.h"
#include "layers_model.h"
#include "process_memory.h"
#include "question.h"
#include "tag_members.h"
#include "util.h"

#define LAYER_GROUPS 4096 /* later ones share number 0 */

/* The facts that determine the name of a site. */
struct layer_origin {
    uint32_t stack, tied, kind, group;
};

struct mt_layer_groups {
    const struct mt_analysis *analysis;
    enum mt_layer_by by;
    const char *names[LAYER_GROUPS]; /* by number */
    uint32_t count, late;            /* late: groups that share number 0 */
    /* PRIVATE */
    struct mt_attribution attribution;
    struct mt_strings words;
    struct mt_map groups_of_names;   /* id of word -> group */
    struct mt_map groups_of_origins; /* hash -> origin */
    struct mt_map groups_of_tags;    /* string id -> group */
    struct layer_origin *origins;
    uint32_t origin_count;
    size_t origin_capacity;
};

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
    /* its number among the streams of the trace: a handle would not fit beside the picture */
    snprintf(text, 64, "stream %u", (unsigned)life->stream);
    return text;
}

static void add_group(struct mt_layer_groups *groups, const char *name, uint32_t id,
                      uint32_t *group)
{
    *group = 0;
    if (groups->count == LAYER_GROUPS) {
        groups->late++;
    } else {
        *group = groups->count++;
        groups->names[*group] = mt_arena_text(&groups->analysis->report->arena, name, strlen(name));
    }
    mt_map_put(&groups->groups_of_names, id, *group);
}

static void add_origin(struct mt_layer_groups *groups, uint64_t key,
                       const struct layer_origin *origin, uint32_t group)
{
    mt_grow_to(&groups->origins, &groups->origin_capacity, groups->origin_count + (size_t)1,
               sizeof *groups->origins);
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
    const struct layer_origin origin = {.stack = row.stack,
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

static void find_tag(struct mt_layer_groups *groups, uint32_t tag, uint32_t *group)
{
    const struct mt_analysis *analysis = groups->analysis;

    *group = mt_map_get(&groups->groups_of_tags, tag);
    if (*group != MT_MAP_NONE)
        return;
    group_of_name(groups,
                  mt_tag_group(&analysis->report->arena, &analysis->source->symbols, tag,
                               analysis->options->layer_member),
                  group);
    mt_map_put(&groups->groups_of_tags, tag, *group);
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
    case MT_LAYERS_BY_TAG: find_tag(groups, life->tag, group); return;
    case MT_LAYERS_BY_STREAM: name = stream_name(groups, life, text); break;
    }
    group_of_name(groups, name, group);
}

/* Uses the options of the analysis. */
static void layer_groups_init(struct mt_layer_groups *groups, struct mt_analysis *analysis)
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

static void layer_groups_release(struct mt_layer_groups *groups)
{
    mt_attribution_release(&groups->attribution);
    mt_strings_release(&groups->words);
    mt_map_release(&groups->groups_of_names);
    mt_map_release(&groups->groups_of_origins);
    mt_map_release(&groups->groups_of_tags);
    free(groups->origins);
}

#define NO_LAYER UINT32_MAX

struct group {
    uint64_t bytes;                    /* now */
    double role_scores[MT_ROLE_COUNT]; /* bytes times events, by role */
    double score;                      /* bytes times bins */
    double worth;                      /* determines the choice of layers */
    uint64_t most;                     /* in any bin */
    uint32_t layer;
};

/* Bytes of a group since a bin. */
struct change {
    uint32_t bin, group;
    uint64_t bytes;
};

struct axis {
    uint64_t *kept, *written;        /* by group: in this bin, and in the last one */
    bool *is_changed, *is_unwritten; /* since `kept`, since `written` */
    uint32_t *changed, *unwritten;   /* groups that are marked in these */
    uint32_t changed_count, unwritten_count;
    uint32_t bin;
    struct change *changes;
    size_t change_count, change_capacity;
};

struct pending {
    uint32_t group;
    int64_t bytes;
};

struct mt_layers_builder {
    struct mt_layer_groups groups_of; /* lives */
    struct mt_arena *arena;
    uint64_t last_event;
    struct group *groups; /* by the number that `groups_of` gives */
    struct axis axes[MT_LAYERS_AXES];
    uint32_t *group_of_block; /* by life's block */
    uint32_t block_capacity;
    struct pending *pending;
    uint32_t pending_count;
    size_t pending_capacity;
};

static void wait(struct mt_layers_builder *builder, uint32_t group, int64_t bytes)
{
    mt_grow_to(&builder->pending, &builder->pending_capacity, builder->pending_count + (size_t)1,
               sizeof *builder->pending);
    builder->pending[builder->pending_count++] = (struct pending){group, bytes};
}

static void remember(struct mt_layers_builder *builder, uint32_t block, uint32_t group)
{
    if (block >= builder->block_capacity) {
        size_t capacity = (size_t)block + block / 2 + 1024;
        uint32_t *bigger = mt_memory_resize(builder->group_of_block, capacity * sizeof *bigger);

        if (capacity > UINT32_MAX)
            mt_memory_end();
        builder->group_of_block = bigger;
        builder->block_capacity = (uint32_t)capacity;
    }
    builder->group_of_block[block] = group;
}

void mt_layers_birth(struct mt_layers_builder *builder, const struct mt_block_life *life)
{
    uint32_t group;

    mt_layer_group(&builder->groups_of, life, &group);
    remember(builder, life->block, group);
    wait(builder, group, (int64_t)life->block_bytes);
}

void mt_layers_end(struct mt_layers_builder *builder, const struct mt_block_life *life,
                   uint64_t end_event)
{
    uint64_t end = mt_min_u64(end_event, builder->last_event);

    if (life->block >= builder->block_capacity)
        return;
    uint32_t group = builder->group_of_block[life->block];
    builder->groups[group].role_scores[life->role] +=
        (double)life->block_bytes * ((double)(end - mt_min_u64(life->birth_event, end)) + 1);
    wait(builder, group, -(int64_t)life->block_bytes);
}

static void note(bool *is_listed, uint32_t *list, uint32_t *count, uint32_t group)
{
    if (is_listed[group])
        return;
    is_listed[group] = true;
    list[(*count)++] = group;
}

void mt_layers_happen(struct mt_layers_builder *builder)
{
    for (uint32_t i = 0; i < builder->pending_count; i++) {
        const struct pending *pending = &builder->pending[i];

        builder->groups[pending->group].bytes += (uint64_t)pending->bytes;
        for (int a = 0; a < MT_LAYERS_AXES; a++)
            note(builder->axes[a].is_changed, builder->axes[a].changed,
                 &builder->axes[a].changed_count, pending->group);
    }
    builder->pending_count = 0;
}

void mt_layers_keep(struct mt_layers_builder *builder, int axis)
{
    struct axis *at = &builder->axes[axis];

    for (uint32_t i = 0; i < at->changed_count; i++) {
        uint32_t group = at->changed[i];

        at->is_changed[group] = false;
        at->kept[group] = builder->groups[group].bytes;
        note(at->is_unwritten, at->unwritten, &at->unwritten_count, group);
    }
    at->changed_count = 0;
}

static void write_down(struct axis *at, uint32_t group)
{
    if (at->kept[group] == at->written[group])
        return;
    mt_grow_to(&at->changes, &at->change_capacity, at->change_count + 1, sizeof *at->changes);
    at->changes[at->change_count++] = (struct change){at->bin, group, at->kept[group]};
    at->written[group] = at->kept[group];
}

static void end_bin(struct axis *at)
{
    for (uint32_t i = 0; i < at->unwritten_count; i++) {
        at->is_unwritten[at->unwritten[i]] = false;
        write_down(at, at->unwritten[i]);
    }
    at->unwritten_count = 0;
}

void mt_layers_next_bin(struct mt_layers_builder *builder, int axis)
{
    end_bin(&builder->axes[axis]);
    builder->axes[axis].bin++;
    mt_layers_keep(builder, axis);
}

/* The bytes of a group since a bin count until its next change, or the end. */
static void add_scores(struct mt_layers_builder *builder, const struct axis *at, uint32_t bins)
{
    struct change *last = mt_memory_zeroed(builder->groups_of.count, sizeof *last);

    for (size_t i = 0; i < at->change_count; i++) {
        const struct change *change = &at->changes[i];
        struct group *group = &builder->groups[change->group];

        group->score += (double)last[change->group].bytes * (change->bin - last[change->group].bin);
        group->most = mt_max_u64(group->most, change->bytes);
        last[change->group] = *change;
    }
    for (uint32_t i = 0; i < builder->groups_of.count; i++)
        builder->groups[i].score += (double)last[i].bytes * (bins - last[i].bin);
    free(last);
}

static enum mt_role main_role(const struct group *group)
{
    unsigned best = 0;

    for (unsigned role = 1; role < MT_ROLE_COUNT; role++)
        if (group->role_scores[role] > group->role_scores[best])
            best = role;
    return (enum mt_role)best;
}

/* Mean divided by maximum: 1 = constant. */
static double steadiness(const struct group *group, uint32_t bins)
{
    return group->most ? group->score / ((double)group->most * 2 * bins) : 0;
}

/* Weighs both the memory over time and that at the peak: a group that matters for either gets a
 * layer. */
static void weigh(struct mt_layers_builder *builder, const struct mt_timeline *timeline,
                  uint64_t peak_event, uint64_t *held)
{
    const struct axis *at = &builder->axes[MT_LAYERS_EVENTS];
    uint32_t peak = 0;
    double score = 0, bytes = 0;

    while (peak + 1 < timeline->bin_count && timeline->event_bins[peak].event != peak_event)
        peak++;
    memset(held, 0, builder->groups_of.count * sizeof *held);
    for (size_t i = 0; i < at->change_count && at->changes[i].bin <= peak; i++)
        held[at->changes[i].group] = at->changes[i].bytes;
    for (uint32_t i = 0; i < builder->groups_of.count; i++) {
        score += builder->groups[i].score;
        bytes += (double)held[i];
    }
    for (uint32_t i = 0; i < builder->groups_of.count; i++)
        builder->groups[i].worth = (score > 0 ? builder->groups[i].score / score : 0) +
                                   (bytes > 0 ? (double)held[i] / bytes : 0);
}

/* The largest groups become layers, the steadiest first. */
static uint32_t choose(struct mt_layers_builder *builder, uint32_t bins, uint32_t *chosen)
{
    uint32_t count = 0, with_bytes = 0;

    for (uint32_t i = 0; i < builder->groups_of.count; i++) {
        builder->groups[i].layer = NO_LAYER;
        with_bytes += builder->groups[i].most > 0;
    }
    while (count < (with_bytes > MT_MAX_LAYERS || builder->groups_of.late ? MT_MAX_LAYERS - 1u
                                                                          : MT_MAX_LAYERS)) {
        uint32_t best = 0;

        for (uint32_t i = 1; i < builder->groups_of.count; i++)
            if (builder->groups[i].layer == NO_LAYER && builder->groups[i].most &&
                (!best || builder->groups[i].worth > builder->groups[best].worth))
                best = i;
        if (!best)
            break;
        builder->groups[best].layer = count;
        chosen[count++] = best;
    }
    for (uint32_t i = 1; i < count; i++) { /* there are few */
        uint32_t group = chosen[i], at = i;

        for (; at && steadiness(&builder->groups[chosen[at - 1]], bins) <
                         steadiness(&builder->groups[group], bins);
             at--)
            chosen[at] = chosen[at - 1];
        chosen[at] = group;
    }
    return count;
}

static void name_layers(struct mt_layers_builder *builder, const uint32_t *chosen, uint32_t count,
                        struct mt_layers *layers)
{
    for (uint32_t i = 0; i < count; i++) {
        struct group *group = &builder->groups[chosen[i]];

        group->layer = i;
        layers->layers[i] = (struct mt_layer){.name = builder->groups_of.names[chosen[i]],
                                              .role = main_role(group)};
    }
    layers->count = count;
    layers->other_groups = builder->groups_of.late;
    for (uint32_t i = 1; i < builder->groups_of.count; i++)
        layers->other_groups += builder->groups[i].layer == NO_LAYER && builder->groups[i].most;
    if (layers->other_groups)
        layers->layers[layers->count++] =
            (struct mt_layer){.name = "all others", .role = MT_ROLE_OTHER};
}

/* Changes in order of bins: the bytes of each layer, bin by bin. */
static uint64_t *fill(const struct mt_layers_builder *builder, const struct axis *at,
                      const struct mt_layers *layers, uint32_t bins, uint64_t *held)
{
    uint64_t *bytes =
        mt_arena_array(builder->arena, (size_t)bins * layers->count + 1, sizeof *bytes);
    uint64_t now[MT_MAX_LAYERS] = {0};
    size_t next = 0;

    memset(held, 0, builder->groups_of.count * sizeof *held);
    for (uint32_t bin = 0; bin < bins; bin++) {
        for (; next < at->change_count && at->changes[next].bin == bin; next++) {
            const struct change *change = &at->changes[next];
            uint32_t layer = builder->groups[change->group].layer;

            layer = layer == NO_LAYER ? layers->count - 1 : layer;
            now[layer] += change->bytes - held[change->group];
            held[change->group] = change->bytes;
        }
        memcpy(&bytes[(size_t)bin * layers->count], now, layers->count * sizeof *now);
    }
    return bytes;
}

static void note_peak(struct mt_layers *layers, const struct mt_timeline *timeline,
                      uint64_t peak_event)
{
    for (uint32_t i = 0; i < timeline->bin_count; i++) {
        if (timeline->event_bins[i].event != peak_event)
            continue;
        for (uint32_t j = 0; j < layers->count; j++)
            layers->layers[j].peak_bytes = layers->event_bytes[(size_t)i * layers->count + j];
        return;
    }
}

void mt_layers_finish(struct mt_layers_builder *builder, const struct mt_timeline *timeline,
                      uint64_t peak_event, struct mt_layers **out)
{
    struct mt_layers *layers = mt_arena_alloc(builder->arena, sizeof *layers);
    uint64_t *held = mt_memory_zeroed(builder->groups_of.count, sizeof *held);
    uint32_t chosen[MT_MAX_LAYERS], bins = timeline->bin_count;

    for (int a = 0; a < MT_LAYERS_AXES; a++) {
        end_bin(&builder->axes[a]);
        add_scores(builder, &builder->axes[a], bins);
    }
    layers->by = builder->groups_of.by;
    weigh(builder, timeline, peak_event, held);
    name_layers(builder, chosen, choose(builder, bins, chosen), layers);
    layers->time_bytes = fill(builder, &builder->axes[MT_LAYERS_TIME], layers, bins, held);
    layers->event_bytes = fill(builder, &builder->axes[MT_LAYERS_EVENTS], layers, bins, held);
    free(held);
    note_peak(layers, timeline, peak_event);
    *out = layers;
}

static void axis_init(struct axis *axis)
{
    axis->kept = mt_memory_zeroed(LAYER_GROUPS, 2 * sizeof *axis->kept);
    axis->is_changed = mt_memory_zeroed(LAYER_GROUPS, 2 * sizeof *axis->is_changed);
    axis->changed = mt_memory_zeroed(LAYER_GROUPS, 2 * sizeof *axis->changed);
    axis->written = axis->kept + LAYER_GROUPS;
    axis->is_unwritten = axis->is_changed + LAYER_GROUPS;
    axis->unwritten = axis->changed + LAYER_GROUPS;
}

void mt_layers_builder_new(struct mt_analysis *analysis, struct mt_layers_builder **out)
{
    struct mt_layers_builder *builder = mt_memory_zeroed(1, sizeof *builder);

    *out = builder;
    builder->arena = &analysis->report->arena;
    builder->last_event = analysis->survey.last_event;
    builder->groups = mt_memory_zeroed(LAYER_GROUPS, sizeof *builder->groups);
    for (int a = 0; a < MT_LAYERS_AXES; a++)
        axis_init(&builder->axes[a]);
    layer_groups_init(&builder->groups_of, analysis);
}

void mt_layers_release(struct mt_layers_builder *builder)
{
    if (!builder)
        return;
    for (int a = 0; a < MT_LAYERS_AXES; a++) {
        free(builder->axes[a].kept);
        free(builder->axes[a].is_changed);
        free(builder->axes[a].changed);
        free(builder->axes[a].changes);
    }
    layer_groups_release(&builder->groups_of);
    free(builder->groups);
    free(builder->group_of_block);
    free(builder->pending);
    free(builder);
}
