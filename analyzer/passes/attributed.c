/* The site, phase, step and role of a block. */
#include <stdlib.h>
#include <string.h>

#include "attributed.h"
#include "holding.h"
#include "phases.h"
#include "process_memory.h"
#include "report.h"
#include "site.h"
#include "ties.h"
#include "util.h"
#include "work_kinds.h"

static inline uint64_t attributed_size(const struct mt_attributed *row)
{
    return mt_magnitude(row->bytes);
}

void mt_attribution_init(struct mt_attribution *attribution, struct mt_arena *arena,
                         const struct mt_symbols *symbols, const struct mt_phases *phases)
{
    memset(attribution, 0, sizeof *attribution);
    attribution->arena = arena;
    attribution->symbols = symbols;
    attribution->phases = phases;
    mt_site_table_update(&attribution->sites, symbols);
}

void mt_attribution_release(struct mt_attribution *attribution)
{
    mt_site_table_release(&attribution->sites);
}

struct mt_attributed mt_attributed_of(const struct mt_attribution *attribution,
                                      const struct mt_holding *holding)
{
    int32_t phase = mt_phase_named(attribution->phases->phases, holding->phase);
    uint32_t stack = mt_stack_of_site(holding->tie, holding->tied, holding->stack);
    struct mt_attributed row = {.site = mt_site_table_at(&attribution->sites, stack),
                                .stack = holding->stack,
                                .tie = holding->tie,
                                .tied = holding->tied,
                                .phase = "",
                                .step = MT_NO_STEP,
                                .role = holding->role,
                                .initial = holding->first_birth_event < attribution->first_event,
                                .bytes = (int64_t)holding->bytes,
                                .blocks = (int64_t)holding->blocks,
                                .largest = holding->bytes,
                                .birth = phase,
                                .requested_bytes = holding->requested_bytes,
                                .block_bytes = holding->block_bytes};

    if (phase != MT_NO_PHASE) {
        row.phase = attribution->phases->phases[phase].name;
        row.step = attribution->phases->phases[phase].step;
        row.backward =
            !attribution->is_outside && attribution->phases->facts[phase].kind == MT_PHASE_BACKWARD;
        if (attribution->phases->phases[phase].is_step)
            row.phase = "step"; /* the same for all steps */
    }
    return row;
}

struct mt_attributed mt_attributed_of_life(const struct mt_attribution *attribution,
                                           const struct mt_block_life *life)
{
    const struct mt_holding holding = mt_holding_of(life);

    return mt_attributed_of(attribution, &holding);
}

int mt_attributed_by_source(const void *a, const void *b)
{
    const struct mt_attributed *x = a, *y = b;

    if (x->site.frame != y->site.frame)
        return x->site.frame < y->site.frame ? -1 : 1;
    if (x->site.own != y->site.own)
        return x->site.own < y->site.own ? -1 : 1;
    int order = strcmp(x->phase, y->phase);
    if (order)
        return order;
    if (x->initial != y->initial)
        return x->initial ? -1 : 1;
    if (x->tie != y->tie)
        return x->tie < y->tie ? -1 : 1;
    if (x->backward != y->backward)
        return x->backward ? 1 : -1;
    return (x->role > y->role) - (x->role < y->role);
}

int mt_attributed_by_size(const void *a, const void *b)
{
    const struct mt_attributed *x = a, *y = b;

    if (attributed_size(x) != attributed_size(y))
        return attributed_size(x) > attributed_size(y) ? -1 : 1;
    if (mt_attributed_by_source(a, b))
        return mt_attributed_by_source(a, b);
    return (x->stack > y->stack) - (x->stack < y->stack);
}

void mt_attributed_absorb(struct mt_attributed *row, const struct mt_attributed *other)
{
    row->bytes += other->bytes;
    row->blocks += other->blocks;
    row->requested_bytes += other->requested_bytes;
    row->several_roles |= other->several_roles || other->role != row->role;
    row->several_phases |= other->several_phases || strcmp(other->phase, row->phase) != 0;
    if (other->block_bytes != row->block_bytes)
        row->block_bytes = 0;
    if (other->step != row->step)
        row->step = MT_NO_STEP;
    if (other->largest > row->largest) {
        row->largest = other->largest;
        row->stack = other->stack;
        row->tied = other->tied;
    }
}

size_t mt_attributed_worth(const struct mt_attributed *rows, size_t count, size_t most)
{
    size_t told = 0;

    while (told < count && told < most &&
           attributed_size(&rows[told]) >= attributed_size(&rows[0]) / 200)
        told++;
    return told + 1 == count ? count : told;
}

const char *mt_attributed_site(const struct mt_attribution *attribution,
                               const struct mt_attributed *row)
{
    struct mt_site site = mt_site_table_at(&attribution->sites, row->stack);

    if (row->stack == MT_NO_ID && row->initial)
        return "allocated before recording started";
    if (row->tie == MT_TIE_LIBRARY || row->tied != MT_NO_ID)
        return mt_tie_label(attribution->arena, attribution->symbols, row->tie, row->site);
    if (row->stack == MT_NO_ID && attribution->names_operations)
        return "outside TensorFlow operations";
    if (row->stack == MT_NO_ID && attribution->has_stacks && !row->backward)
        return "no Python stack (a C++ thread)";
    if (site.frame != MT_NO_ID)
        return mt_site_text(attribution->arena, attribution->symbols, site);
    return mt_site_label(attribution->arena, attribution->symbols, row->stack, row->backward);
}

const char *mt_attributed_operation(const struct mt_attribution *attribution,
                                    const struct mt_attributed *row)
{
    uint32_t frame = mt_site_table_operation(&attribution->sites, attribution->symbols, row->stack);

    return frame == MT_NO_ID || frame == row->site.frame
               ? NULL
               : mt_frame_label(attribution->arena, attribution->symbols, frame);
}

/* Holdings become rows with a key of frames, phase name and role; sorting makes equal keys
 * adjacent, and they are merged. */

static size_t merge(struct mt_attributed *rows, size_t count,
                    int (*order)(const void *, const void *))
{
    size_t kept = 0;

    qsort(rows, count, sizeof *rows, order);
    for (size_t i = 0; i < count; i++)
        if (kept && order(&rows[kept - 1], &rows[i]) == 0)
            mt_attributed_absorb(&rows[kept - 1], &rows[i]);
        else
            rows[kept++] = rows[i];
    return kept;
}

void mt_attribute_sites(struct mt_attribution *attribution, const struct mt_snapshot *snapshot,
                        struct mt_site_use **sites, uint32_t *count)
{
    size_t rows_count = snapshot->holding_count;
    struct mt_attributed *rows = mt_memory_zeroed(rows_count + 1, sizeof *rows);

    for (size_t i = 0; i < rows_count; i++)
        rows[i] = mt_attributed_of(attribution, &snapshot->holdings[i]);
    rows_count = merge(rows, rows_count, mt_attributed_by_source);
    qsort(rows, rows_count, sizeof *rows, mt_attributed_by_size);
    *sites = mt_arena_array(attribution->arena, rows_count + 1, sizeof **sites);
    for (size_t i = 0; i < rows_count; i++) {
        struct mt_site_use *site = &(*sites)[i];

        *site = (struct mt_site_use){.stack = rows[i].stack,
                                     .phase = rows[i].phase,
                                     .role = rows[i].role,
                                     .bytes = (uint64_t)rows[i].bytes,
                                     .blocks = (uint64_t)rows[i].blocks};
        site->site = mt_attributed_site(attribution, &rows[i]);
    }
    *count = (uint32_t)rows_count;
    free(rows);
}

static void fill(struct mt_attribution *attribution, const struct mt_attributed *rows, size_t count,
                 size_t told, struct mt_contribution *contributions, uint32_t *used)
{
    struct mt_contribution rest = {.phase = "", .step = MT_NO_STEP, .role = MT_ROLE_OTHER};

    *used = 0;
    for (size_t i = 0; i < count; i++) {
        if (i >= told) {
            rest.bytes += rows[i].bytes;
            rest.blocks += rows[i].blocks;
            continue;
        }
        contributions[(*used)++] =
            (struct mt_contribution){.site = mt_attributed_site(attribution, &rows[i]),
                                     .phase = rows[i].phase,
                                     .step = rows[i].step,
                                     .role = rows[i].role,
                                     .bytes = rows[i].bytes,
                                     .blocks = rows[i].blocks};
    }
    if (rest.bytes || rest.blocks)
        contributions[(*used)++] = rest;
}

static size_t drop_equal(struct mt_attributed *rows, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (rows[i].bytes)
            rows[kept++] = rows[i];
    return kept;
}

void mt_attribute_change(struct mt_attribution *attribution, const struct mt_snapshot *from,
                         const struct mt_snapshot *to, uint32_t most,
                         struct mt_contribution **contributions, uint32_t *count)
{
    size_t from_count = from ? from->holding_count : 0;
    size_t rows_count = from_count + to->holding_count;
    struct mt_attributed *rows = mt_memory_zeroed(rows_count + 1, sizeof *rows);

    for (size_t i = 0; i < rows_count; i++) {
        bool is_from = i < from_count;

        rows[i] = mt_attributed_of(attribution,
                                   is_from ? &from->holdings[i] : &to->holdings[i - from_count]);
        if (is_from) {
            rows[i].bytes = -rows[i].bytes;
            rows[i].blocks = -rows[i].blocks;
        }
    }
    rows_count = drop_equal(rows, merge(rows, rows_count, mt_attributed_by_source));
    qsort(rows, rows_count, sizeof *rows, mt_attributed_by_size);
    *contributions = mt_arena_array(attribution->arena, (size_t)most + 2, sizeof **contributions);
    fill(attribution, rows, rows_count, mt_attributed_worth(rows, rows_count, most), *contributions,
         count);
    free(rows);
}
