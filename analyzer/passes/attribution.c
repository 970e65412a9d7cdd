/* Holdings become rows with a key of frames, phase name and role; sorting makes equal keys
 * adjacent, and they are merged. */
#include "attribution.h"
#include "process_memory.h"

#include <stdlib.h>
#include <string.h>

static size_t merge(struct mt_attributed *rows, size_t count,
                    int (*order)(const void *, const void *))
{
    size_t kept = 0;

    qsort(rows, count, sizeof *rows, order);
    for (size_t i = 0; i < count; i++) {
        if (kept && order(&rows[kept - 1], &rows[i]) == 0)
            mt_attributed_absorb(&rows[kept - 1], &rows[i]);
        else
            rows[kept++] = rows[i];
    }
    return kept;
}

static int by_site(const void *a, const void *b)
{
    const struct mt_attributed *x = a, *y = b;
    int order = mt_attributed_by_place(x, y);

    if (order)
        return order;
    return (x->role > y->role) - (x->role < y->role);
}

/* Rows of a site and phase now differ only in role: the largest row determines it. */
static size_t merge_roles(struct mt_attributed *rows, size_t count)
{
    size_t kept = 0;
    int64_t most = 0;

    for (size_t i = 0; i < count; i++) {
        if (kept && mt_attributed_by_place(&rows[kept - 1], &rows[i]) == 0) {
            if (rows[i].bytes > most) {
                most = rows[i].bytes;
                rows[kept - 1].role = rows[i].role;
            }
            mt_attributed_absorb(&rows[kept - 1], &rows[i]);
        } else {
            most = rows[i].bytes;
            rows[kept++] = rows[i];
        }
    }
    return kept;
}

void mt_attribute_sites(struct mt_attribution *attribution, const struct mt_snapshot *snapshot,
                        struct mt_site_use **sites, uint32_t *count)
{
    size_t rows_count = snapshot->holding_count;
    struct mt_attributed *rows = mt_memory_zeroed(rows_count + 1, sizeof *rows);

    for (size_t i = 0; i < rows_count; i++)
        rows[i] = mt_attributed_of(attribution, &snapshot->holdings[i]);
    rows_count = merge_roles(rows, merge(rows, rows_count, by_site));
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
