#include "module_rows.h"

#include <string.h>

/* The name of layers that were identified only by their parameters (module_blocks.c). */
#define LAYER_WITHOUT_NAME "layer"

/* The roles that have a column, in the order of the titles. */
static const enum mt_role columns[] = {MT_ROLE_PARAMETERS, MT_ROLE_GRADIENTS,
                                       MT_ROLE_OPTIMIZER_STATE, MT_ROLE_ACTIVATIONS,
                                       MT_ROLE_TEMPORARIES};

bool mt_modules_tell(const struct mt_modules *modules)
{
    return modules && modules->row_count &&
           (modules->rows[0].kind == MT_MODULE_LAYER || modules->rows[0].kind == MT_MODULE_OTHER);
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Returns the number of groups among the layers up to and including row `index`. */
static uint32_t groups_to(const struct mt_modules *modules, uint32_t index)
{
    uint32_t groups = 1;

    for (uint32_t i = 1; i <= index && i < modules->layer_count; i++)
        groups += modules->rows[i].group != modules->rows[i - 1].group;
    return groups;
}

static void add_row(struct mt_table *table, const struct mt_module_row *row, const char *name)
{
    MT_CELLS(table, MT_BYTES(row->bytes));
    for (size_t i = 0; i < MT_ARRAY_LEN(columns); i++) {
        if (row->role_bytes[columns[i]])
            MT_CELLS(table, MT_BYTES(row->role_bytes[columns[i]]));
        else
            mt_table_skip(table, 1);
    }
    MT_CELLS(table, MT_SITE(name));
}

/* Returns the name of a row: "layer 3", or "2.3 Bottleneck" in the second of several groups. */
static const char *name_of(struct mt_table *table, const struct mt_modules *modules, uint32_t index)
{
    const struct mt_module_row *row = &modules->rows[index];

    if (row->kind != MT_MODULE_LAYER)
        return row->path;
    if (groups_to(modules, modules->layer_count) == 1)
        return mt_arena_printf(&table->texts, "layer %u", row->layer);
    return mt_arena_printf(&table->texts, "%u.%u %s", groups_to(modules, index), row->layer,
                           last_part(row->path));
}

static void absorb(struct mt_module_row *rest, const struct mt_module_row *row)
{
    rest->bytes += row->bytes;
    for (uint32_t role = 0; role < MT_ROLE_COUNT; role++)
        rest->role_bytes[role] += row->role_bytes[role];
}

void mt_add_module_rows(struct mt_table *table, const struct mt_modules *modules, uint32_t most)
{
    for (uint32_t i = 0, end; i < modules->row_count; i = end) {
        struct mt_module_row rest = {.kind = modules->rows[i].kind};
        uint32_t told = 0;

        for (end = i; end < modules->row_count && modules->rows[end].kind == rest.kind; end++) {
            const struct mt_module_row *row = &modules->rows[end];

            if (told++ < most)
                add_row(table, row, name_of(table, modules, end));
            else
                absorb(&rest, row);
        }
        if (told > most)
            add_row(table, &rest,
                    mt_arena_printf(&table->texts, "%u more %s", told - most,
                                    rest.kind == MT_MODULE_LAYER ? "layers" : "modules"));
    }
}

const char *mt_module_group_text(struct mt_arena *arena, const struct mt_modules *modules,
                                 uint32_t *row)
{
    uint32_t begin = *row, end = begin;
    const char *path = modules->rows[begin].path;
    bool is_alone, is_named = strcmp(path, LAYER_WITHOUT_NAME) != 0;

    while (end < modules->layer_count && modules->rows[end].group == modules->rows[begin].group)
        end++;
    *row = end;
    is_alone = begin == 0 && end == modules->layer_count;
    if (is_alone)
        return mt_arena_printf(arena, "%u layers%s%s", end - begin, is_named ? " " : "",
                               is_named ? path : "");
    return mt_arena_printf(arena, "%u: %u layers%s%s", groups_to(modules, begin), end - begin,
                           is_named ? " " : "", is_named ? path : "");
}

/* Returns the part that begins at row *row, and moves *row after it. */
static struct mt_module_part next_part(const struct mt_modules *modules, uint32_t *row)
{
    struct mt_module_part part = {.row = *row};
    const uint32_t group = modules->rows[*row].group;

    if (*row >= modules->layer_count) {
        part.bytes = modules->rows[(*row)++].bytes;
        return part;
    }
    for (; *row < modules->layer_count && modules->rows[*row].group == group; ++*row) {
        part.bytes += modules->rows[*row].bytes;
        part.layers++;
    }
    return part;
}

/* Orders parts by bytes, largest first, then by row. */
static bool is_before(const struct mt_module_part *part, const struct mt_module_part *than)
{
    return part->bytes != than->bytes ? part->bytes > than->bytes : part->row < than->row;
}

uint32_t mt_largest_module_parts(const struct mt_modules *modules, struct mt_module_part *parts,
                                 uint32_t most)
{
    uint32_t count = 0;

    if (!mt_modules_tell(modules))
        return 0;
    for (; count < most; count++) {
        struct mt_module_part best = {.bytes = 0};

        for (uint32_t row = 0; row < modules->row_count;) {
            const enum mt_module_kind kind = modules->rows[row].kind;
            const struct mt_module_part part = next_part(modules, &row);

            if (kind <= MT_MODULE_BESIDE && is_before(&part, &best) &&
                (!count || is_before(&parts[count - 1], &part)))
                best = part;
        }
        if (!best.bytes)
            break;
        parts[count] = best;
    }
    return count;
}

const char *mt_module_part_text(struct mt_arena *arena, const struct mt_modules *modules,
                                const struct mt_module_part *part)
{
    const struct mt_module_row *row = &modules->rows[part->row];
    const bool is_named = strcmp(row->path, LAYER_WITHOUT_NAME) != 0;

    if (row->kind == MT_MODULE_BESIDE)
        return "parameters outside layers, their gradients and state";
    if (!part->layers)
        return last_part(row->path);
    return mt_arena_printf(arena, "%u layer%s%s%s", part->layers, part->layers == 1 ? "" : "s",
                           is_named ? " " : "", is_named ? last_part(row->path) : "");
}
