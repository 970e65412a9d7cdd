#include "block_origins.h"

#include "analysis.h"
#include "grow.h"
#include "process_memory.h"
#include "util.h"

#include <stdlib.h>
#include <string.h>

/* Steps have thousands of phases, and few names. */
static void name_phases(struct mt_block_origins *origins)
{
    struct mt_strings names = {0};

    origins->phase_count = origins->attribution.phases->count;
    origins->phase_names =
        mt_memory_zeroed((size_t)origins->phase_count + 1, sizeof *origins->phase_names);
    for (uint32_t i = 0; i < origins->phase_count; i++) {
        const struct mt_block_life life = {
            .stack = MT_NO_ID, .tied = MT_NO_ID, .phase = (int32_t)i};
        struct mt_attributed row = mt_attributed_of_life(&origins->attribution, &life);
        uint32_t id;

        mt_strings_put(&names, row.phase, strlen(row.phase), &id);
        origins->phase_names[i] = 2 * (id + 1) + (row.backward ? 1 : 0);
    }
    mt_strings_release(&names);
}

void mt_block_origins_begin(struct mt_block_origins *origins, const struct mt_analysis *analysis)
{
    struct mt_attribution *attribution = &origins->attribution;

    mt_attribution_init(attribution, &analysis->report->arena, &analysis->source->symbols,
                        &analysis->survey.phases);
    attribution->has_stacks = analysis->source->header.has_stacks;
    attribution->names_operations = mt_header_names_operations(&analysis->source->header);
    attribution->first_event = analysis->survey.first_event;
    name_phases(origins);
}

static bool is_same(const struct mt_block_origin *a, const struct mt_block_origin *b)
{
    return a->stack == b->stack && a->tied == b->tied && a->phase_name == b->phase_name &&
           a->role == b->role && a->tie == b->tie && a->is_initial == b->is_initial &&
           a->role_recorded == b->role_recorded && a->stream == b->stream && a->tag == b->tag &&
           a->pool == b->pool && a->heap == b->heap;
}

static uint64_t hash(const struct mt_block_origin *origin)
{
    uint64_t hash = mt_hash_u64((uint64_t)origin->stack << 32 | origin->tied);

    hash = mt_hash_u64(hash ^ ((uint64_t)origin->stream << 32 | origin->tag));
    hash = mt_hash_u64(hash ^ ((uint64_t)origin->heap << 16 | origin->pool));
    return mt_hash_u64(hash ^ ((uint64_t)origin->phase_name << 24 | (uint64_t)origin->role << 16 |
                               (uint64_t)origin->tie << 8 | (origin->role_recorded ? 2u : 0u) |
                               (origin->is_initial ? 1u : 0u)));
}

static void describe(struct mt_block_origins *origins, const struct mt_block_life *life,
                     struct mt_block_origin *origin)
{
    struct mt_attributed row = mt_attributed_of_life(&origins->attribution, life);

    origin->site = mt_attributed_site(&origins->attribution, &row);
    origin->operation = mt_attributed_operation(&origins->attribution, &row);
    origin->phase = row.phase;
    origin->is_backward = row.backward;
}

static struct mt_block_origin facts_of(const struct mt_block_origins *origins,
                                       const struct mt_block_life *life)
{
    bool in_phase = life->phase >= 0 && (uint32_t)life->phase < origins->phase_count;

    return (struct mt_block_origin){.stack = life->stack,
                                    .tied = life->tied,
                                    .phase_name = in_phase ? origins->phase_names[life->phase] : 0,
                                    .stream = life->stream,
                                    .tag = life->tag,
                                    .pool = life->pool,
                                    .heap = life->heap,
                                    .role = life->role,
                                    .tie = life->tie,
                                    .role_recorded = life->role_recorded,
                                    .is_initial = life->initial};
}

uint32_t mt_block_origins_find(struct mt_block_origins *origins, const struct mt_block_life *life)
{
    struct mt_block_origin fresh = facts_of(origins, life);
    uint32_t *recent = &origins->recent[life->stack % MT_ARRAY_LEN(origins->recent)];
    uint64_t key;

    if (*recent < origins->count && is_same(&origins->list[*recent], &fresh))
        return *recent;
    key = hash(&fresh);

    for (;; key++) {
        uint32_t found = mt_map_get(&origins->ids, key);

        if (found == MT_MAP_NONE)
            break;
        if (is_same(&origins->list[found], &fresh))
            return *recent = found;
    }
    describe(origins, life, &fresh);
    if (origins->count == origins->capacity)
        mt_grow_to(&origins->list, &origins->capacity, (size_t)origins->count + 1,
                   sizeof *origins->list);
    origins->list[origins->count] = fresh;
    mt_map_put(&origins->ids, key, origins->count);
    return *recent = origins->count++;
}

void mt_block_origins_release(struct mt_block_origins *origins)
{
    mt_attribution_release(&origins->attribution);
    mt_map_release(&origins->ids);
    free(origins->phase_names);
    free(origins->list);
}
