/* Holdings become rows with a key of frames, phase name and role; equal keys
 * are neighbours after sorting, and become one. */
#include "attribution.h"

#include "units.h"

#include <stdlib.h>
#include <string.h>

struct row {
    uint32_t inner; /* innermost frame that is not plumbing, MT_NO_ID = no stack */
    uint32_t site;  /* innermost frame of the user, else the one that stands for it */
    uint32_t stack; /* of its largest holding */
    const char *phase;
    int64_t step;
    enum mt_role role;
    bool initial;  /* alive when the trace began */
    bool backward; /* born in backward: who allocates without a stack there */
    enum mt_tie tie;
    uint32_t tied; /* stack of what it belongs to, if it has none */
    int64_t bytes, blocks;
    uint64_t largest; /* holding: it gives stack and role */
    /* of what is alive at an instant */
    int32_t birth; /* phase that a person would name */
    uint64_t requested_bytes, block_bytes;
    bool several_roles, several_phases;
};

enum mt_status mt_attribution_init(struct mt_attribution *attribution, struct mt_arena *arena,
                                   const struct mt_symbols *symbols, const struct mt_phases *phases)
{
    memset(attribution, 0, sizeof *attribution);
    attribution->arena = arena;
    attribution->symbols = symbols;
    attribution->phases = phases;
    return mt_site_table_update(&attribution->sites, symbols);
}

void mt_attribution_release(struct mt_attribution *attribution)
{
    mt_site_table_release(&attribution->sites);
}

/* ---- rows ---------------------------------------------------------------- */

static uint32_t inner_frame(const struct mt_attribution *attribution, uint32_t stack)
{
    const struct mt_symbols *symbols = attribution->symbols;
    uint32_t first = MT_NO_ID;

    for (; stack < symbols->stack_count; stack = symbols->stacks[stack].parent) {
        uint32_t frame = symbols->stacks[stack].frame;

        if (!mt_site_table_is_plumbing(&attribution->sites, frame))
            return frame;
        if (first == MT_NO_ID)
            first = frame;
    }
    return first;
}

/* The range that a person would name: not the framework's, if there is one. */
static int32_t named_phase(const struct mt_attribution *attribution, int32_t phase)
{
    int32_t at = phase;

    while (at != MT_NO_PHASE && attribution->phases->phases[at].is_plumbing)
        at = attribution->phases->phases[at].parent;
    return at == MT_NO_PHASE ? phase : at;
}

static struct row row_of(const struct mt_attribution *attribution, const struct mt_holding *holding)
{
    int32_t phase = named_phase(attribution, holding->phase);
    uint32_t stack = holding->stack == MT_NO_ID ? holding->tied : holding->stack;
    struct row row = {.inner = inner_frame(attribution, stack),
                      .site = mt_site_table_site(&attribution->sites, stack),
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

    if (row.tie == MT_TIE_PARAMETER)
        row.inner = row.site; /* how it was moved to the device is no matter */
    if (phase != MT_NO_PHASE) {
        row.phase = attribution->phases->phases[phase].name;
        row.step = attribution->phases->phases[phase].step;
        row.backward = attribution->phases->facts[phase].kind == MT_PHASE_BACKWARD;
        if (attribution->phases->phases[phase].is_step)
            row.phase = "step"; /* equal over steps */
    }
    return row;
}

static int by_place(const struct row *x, const struct row *y)
{
    int order;

    if (x->site != y->site)
        return x->site < y->site ? -1 : 1;
    order = strcmp(x->phase, y->phase);
    if (order)
        return order;
    if (x->initial != y->initial)
        return x->initial ? -1 : 1;
    if (x->tie != y->tie)
        return x->tie < y->tie ? -1 : 1;
    return (int)x->backward - (int)y->backward;
}

static int by_site(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int order = by_place(x, y);

    if (order)
        return order;
    return (x->role > y->role) - (x->role < y->role);
}

static int by_origin(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int order = by_place(x, y);

    if (order)
        return order;
    if (x->inner != y->inner)
        return x->inner < y->inner ? -1 : 1;
    return (x->role > y->role) - (x->role < y->role);
}

static uint64_t size_of(const struct row *row)
{
    return row->bytes < 0 ? 0 - (uint64_t)row->bytes : (uint64_t)row->bytes;
}

static int by_size(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    if (size_of(x) != size_of(y))
        return size_of(x) > size_of(y) ? -1 : 1;
    if (by_origin(a, b))
        return by_origin(a, b);
    return (x->stack > y->stack) - (x->stack < y->stack);
}

static void absorb(struct row *row, const struct row *other)
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

static size_t merge(struct row *rows, size_t count, int (*order)(const void *, const void *))
{
    size_t kept = 0;

    qsort(rows, count, sizeof *rows, order);
    for (size_t i = 0; i < count; i++) {
        if (kept && order(&rows[kept - 1], &rows[i]) == 0)
            absorb(&rows[kept - 1], &rows[i]);
        else
            rows[kept++] = rows[i];
    }
    return kept;
}

/* "backward of cross_entropy train.py:77": what it belongs to, in words. */
static const char *tied_label(const struct mt_attribution *attribution, const struct row *row)
{
    struct mt_arena *arena = attribution->arena;
    const struct mt_symbols *symbols = attribution->symbols;
    const char *place = mt_frame_place(arena, symbols, row->site);
    const char *function = mt_frame_function(arena, symbols, row->inner);

    if (!place || !function)
        return NULL;
    if (row->tie == MT_TIE_PARAMETER)
        return mt_arena_printf(arena, "gradient of parameters %s", place);
    return mt_arena_printf(arena, "backward of %s %s", function, place);
}

/* The site in words; blocks without a stack are told apart by what is known. */
static const char *site_label(const struct mt_attribution *attribution, const struct row *row)
{
    if (row->stack == MT_NO_ID && row->initial)
        return "born before the trace begins";
    if (row->tie == MT_TIE_LIBRARY)
        return "cuBLAS (no Python stack)";
    if (row->tied != MT_NO_ID)
        return tied_label(attribution, row);
    if (row->stack == MT_NO_ID && attribution->has_stacks && !row->backward)
        return "no Python stack (a C++ thread)";
    return mt_site_label(attribution->arena, attribution->symbols, row->stack, row->backward);
}

/* ---- sites --------------------------------------------------------------- */

/* Rows of a site and phase differ in role alone now: the largest gives its own. */
static size_t merge_roles(struct row *rows, size_t count)
{
    size_t kept = 0;
    int64_t most = 0;

    for (size_t i = 0; i < count; i++) {
        if (kept && by_place(&rows[kept - 1], &rows[i]) == 0) {
            if (rows[i].bytes > most) {
                most = rows[i].bytes;
                rows[kept - 1].role = rows[i].role;
            }
            absorb(&rows[kept - 1], &rows[i]);
        } else {
            most = rows[i].bytes;
            rows[kept++] = rows[i];
        }
    }
    return kept;
}

enum mt_status mt_attribute_sites(struct mt_attribution *attribution,
                                  const struct mt_snapshot *snapshot, struct mt_site_use **sites,
                                  uint32_t *count)
{
    size_t rows_count = snapshot->holding_count;
    struct row *rows = calloc(rows_count + 1, sizeof *rows);

    if (!rows)
        return MT_ERR_MEMORY;
    for (size_t i = 0; i < rows_count; i++)
        rows[i] = row_of(attribution, &snapshot->holdings[i]);
    rows_count = merge_roles(rows, merge(rows, rows_count, by_site));
    qsort(rows, rows_count, sizeof *rows, by_size);
    *sites = mt_arena_array(attribution->arena, rows_count + 1, sizeof **sites);
    for (size_t i = 0; *sites && i < rows_count; i++) {
        struct mt_site_use *site = &(*sites)[i];

        *site = (struct mt_site_use){.stack = rows[i].stack,
                                     .phase = rows[i].phase,
                                     .role = rows[i].role,
                                     .bytes = (uint64_t)rows[i].bytes,
                                     .blocks = (uint64_t)rows[i].blocks};
        site->site = site_label(attribution, &rows[i]);
        if (!site->site) {
            free(rows);
            return MT_ERR_MEMORY;
        }
    }
    *count = (uint32_t)rows_count;
    free(rows);
    return *sites ? MT_OK : MT_ERR_MEMORY;
}

/* ---- changes ------------------------------------------------------------- */

/* "cross_entropy functional.py:3504 < train.py:77" */
static const char *origin_label(const struct mt_attribution *attribution, const struct row *row)
{
    const char *inner, *site;

    if (row->inner == MT_NO_ID || row->inner == row->site || row->tied != MT_NO_ID)
        return site_label(attribution, row);
    inner = mt_frame_label(attribution->arena, attribution->symbols, row->inner);
    site = mt_frame_place(attribution->arena, attribution->symbols, row->site);
    return inner && site ? mt_arena_printf(attribution->arena, "%s < %s", inner, site) : NULL;
}

/* How many rows deserve a line of their own: not more than `most`, none below
 * half a percent of the largest; one left over gets its line, too. */
static size_t worth_telling(const struct row *rows, size_t count, size_t most)
{
    size_t told = 0;

    while (told < count && told < most && size_of(&rows[told]) >= size_of(&rows[0]) / 200)
        told++;
    return told + 1 == count ? count : told;
}

static enum mt_status fill(struct mt_attribution *attribution, const struct row *rows, size_t count,
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
        contributions[*used] = (struct mt_contribution){.site = origin_label(attribution, &rows[i]),
                                                        .phase = rows[i].phase,
                                                        .step = rows[i].step,
                                                        .role = rows[i].role,
                                                        .bytes = rows[i].bytes,
                                                        .blocks = rows[i].blocks};
        if (!contributions[(*used)++].site)
            return MT_ERR_MEMORY;
    }
    if (rest.bytes || rest.blocks)
        contributions[(*used)++] = rest;
    return MT_OK;
}

static size_t drop_equal(struct row *rows, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (rows[i].bytes)
            rows[kept++] = rows[i];
    return kept;
}

enum mt_status mt_attribute_change(struct mt_attribution *attribution,
                                   const struct mt_snapshot *from, const struct mt_snapshot *to,
                                   uint32_t most, struct mt_contribution **contributions,
                                   uint32_t *count)
{
    size_t from_count = from ? from->holding_count : 0;
    size_t rows_count = from_count + to->holding_count;
    struct row *rows = calloc(rows_count + 1, sizeof *rows);
    enum mt_status status = MT_ERR_MEMORY;

    if (!rows)
        return MT_ERR_MEMORY;
    for (size_t i = 0; i < rows_count; i++) {
        bool is_from = i < from_count;

        rows[i] = row_of(attribution, is_from ? &from->holdings[i] : &to->holdings[i - from_count]);
        if (is_from) {
            rows[i].bytes = -rows[i].bytes;
            rows[i].blocks = -rows[i].blocks;
        }
    }
    rows_count = drop_equal(rows, merge(rows, rows_count, by_origin));
    qsort(rows, rows_count, sizeof *rows, by_size);
    *contributions = mt_arena_array(attribution->arena, (size_t)most + 2, sizeof **contributions);
    if (*contributions)
        status = fill(attribution, rows, rows_count, worth_telling(rows, rows_count, most),
                      *contributions, count);
    free(rows);
    return status;
}

/* ---- what is alive ------------------------------------------------------- */

enum { MOST_STACK_TEXT = 400 };

/* Blocks without a stack are told apart as sites are. */
static int by_stack(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    if (x->stack != y->stack)
        return x->stack < y->stack ? -1 : 1;
    return x->stack == MT_NO_ID ? by_origin(a, b) : 0;
}

static int by_role(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    return (x->role > y->role) - (x->role < y->role);
}

static int by_birth(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    return (x->birth > y->birth) - (x->birth < y->birth);
}

static int by_block_size(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    return (x->block_bytes > y->block_bytes) - (x->block_bytes < y->block_bytes);
}

/* Each group gets the words of its largest holding. */
static size_t merge_live(struct row *rows, size_t count, int (*order)(const void *, const void *))
{
    size_t kept = 0;

    qsort(rows, count, sizeof *rows, order);
    for (size_t i = 0; i < count; i++) {
        struct row *group = kept ? &rows[kept - 1] : NULL, row = rows[i];

        if (!group || order(group, &row) != 0) {
            rows[kept++] = row;
            continue;
        }
        if (row.largest > group->largest) {
            row = *group;
            *group = rows[i];
        }
        absorb(group, &row);
    }
    return kept;
}

static int by_live_size(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int order = by_size(a, b);

    if (!order)
        order = by_birth(a, b);
    if (!order)
        order = (x->block_bytes > y->block_bytes) - (x->block_bytes < y->block_bytes);
    return order;
}

static int (*const orders[MT_GROUP_BY_COUNT])(const void *,
                                              const void *) = {[MT_BY_SITE] = by_origin,
                                                               [MT_BY_STACK] = by_stack,
                                                               [MT_BY_ROLE] = by_role,
                                                               [MT_BY_PHASE] = by_birth,
                                                               [MT_BY_SIZE] = by_block_size};

/* "cross_entropy functional.py:3504 < train train.py:77 < main train.py:120";
 * of very deep ones the inner part. */
static const char *stack_label(const struct mt_attribution *attribution, const struct row *row)
{
    const struct mt_symbols *symbols = attribution->symbols;
    uint32_t stack = row->stack;
    const char *label = NULL;

    for (; stack < symbols->stack_count; stack = symbols->stacks[stack].parent) {
        uint32_t frame = symbols->stacks[stack].frame;
        const char *name;

        if (mt_site_table_is_plumbing(&attribution->sites, frame))
            continue;
        if (label && strlen(label) > MOST_STACK_TEXT)
            return mt_arena_printf(attribution->arena, "%s < …", label);
        name = mt_frame_label(attribution->arena, symbols, frame);
        if (name && label)
            name = mt_arena_printf(attribution->arena, "%s < %s", label, name);
        if (!name)
            return NULL;
        label = name;
    }
    return label ? label : site_label(attribution, row);
}

static const char *live_label(const struct mt_attribution *attribution, const struct row *row,
                              enum mt_group_by by)
{
    char text[MT_UNITS_TEXT];

    switch (by) {
    case MT_BY_SITE: return origin_label(attribution, row);
    case MT_BY_STACK: return stack_label(attribution, row);
    case MT_BY_ROLE: return mt_role_name(row->role);
    case MT_BY_PHASE: break;
    case MT_BY_SIZE:
        return mt_arena_printf(attribution->arena, "%s B", mt_format_count(text, row->block_bytes));
    }
    if (row->birth != MT_NO_PHASE)
        return attribution->phases->phases[row->birth].path;
    return row->initial ? "before the trace begins" : "no phase";
}

static enum mt_status fill_live(const struct mt_attribution *attribution, const struct row *row,
                                enum mt_group_by by, struct mt_live_row *out)
{
    *out = (struct mt_live_row){.label = live_label(attribution, row, by),
                                .site = site_label(attribution, row),
                                .stack = row->stack,
                                .tied = row->tied,
                                .tie = row->tie,
                                .phase = row->several_phases ? NULL : row->phase,
                                .step = row->several_phases ? MT_NO_STEP : row->step,
                                .role = row->role,
                                .several_roles = row->several_roles,
                                .block_bytes = row->block_bytes,
                                .bytes = (uint64_t)row->bytes,
                                .requested_bytes = row->requested_bytes,
                                .blocks = (uint64_t)row->blocks};
    return out->label && out->site ? MT_OK : MT_ERR_MEMORY;
}

enum mt_status mt_attribute_live(struct mt_attribution *attribution,
                                 const struct mt_snapshot *snapshot, enum mt_group_by by,
                                 uint32_t most, struct mt_answer *answer)
{
    size_t count = snapshot->holding_count;
    struct row *rows = calloc(count + 1, sizeof *rows);
    enum mt_status status = MT_OK;

    if (!rows)
        return MT_ERR_MEMORY;
    for (size_t i = 0; i < count; i++)
        rows[i] = row_of(attribution, &snapshot->holdings[i]);
    count = merge_live(rows, count, orders[by]);
    qsort(rows, count, sizeof *rows, by_live_size);
    answer->told_count = (uint32_t)(most ? worth_telling(rows, count, most) : count);
    answer->row_count = (uint32_t)count;
    answer->rows = mt_arena_array(attribution->arena, count + 1, sizeof *answer->rows);
    if (!answer->rows)
        status = MT_ERR_MEMORY;
    for (size_t i = 0; i < count && !status; i++)
        status = fill_live(attribution, &rows[i], by, &answer->rows[i]);
    free(rows);
    return status;
}
