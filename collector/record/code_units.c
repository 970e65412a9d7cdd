/* See code_units.h. Ranges of units overlap only in damaged files. In such a file, the unit that
 * begins last is used, and a search may have to visit all ranges. */
#include "code_units.h"

#include <stdlib.h>

#include "grow.h"
#include "sorted.h"
#include "util.h"

struct mt_unit_range {
    Dwarf_Addr begin, end; /* begin first: sorted.h */
    Dwarf_Addr reach;      /* the largest end so far */
    struct mt_code_unit unit;
};

void mt_code_units_release(struct mt_code_units *self)
{
    free(self->ranges);
    *self = (struct mt_code_units){0};
}

static bool add(struct mt_code_units *self, const struct mt_unit_range *range)
{
    if (self->count == self->capacity &&
        mt_grow(&self->ranges, &self->capacity, self->count + 1, sizeof *self->ranges))
        return false;
    self->ranges[self->count++] = *range;
    return true;
}

static bool add_unit(struct mt_code_units *self, struct mt_code_unit unit)
{
    Dwarf_Addr base, begin, end;
    ptrdiff_t next = 0;

    while ((next = dwarf_ranges(unit.die, next, &base, &begin, &end)) > 0) {
        const struct mt_unit_range range = {begin + unit.bias, end + unit.bias, 0, unit};
        if (begin < end && !add(self, &range))
            return false;
    }
    return true;
}

static int by_begin(const void *a, const void *b)
{
    const struct mt_unit_range *left = a, *right = b;

    if (left->begin != right->begin)
        return left->begin < right->begin ? -1 : 1;
    return (left->end > right->end) - (left->end < right->end);
}

static void read_all(struct mt_code_units *self, Dwfl_Module *module)
{
    struct mt_code_unit unit = {NULL, 0};
    Dwarf_Addr reach = 0;
    size_t i;

    self->are_read = true;
    while ((unit.die = dwfl_module_nextcu(module, unit.die, &unit.bias)) != NULL)
        if (!add_unit(self, unit))
            break;
    if (self->count)
        qsort(self->ranges, self->count, sizeof *self->ranges, by_begin);
    for (i = 0; i < self->count; i++)
        self->ranges[i].reach = reach = mt_max_u64(reach, self->ranges[i].end);
}

struct mt_code_unit mt_code_units_find(struct mt_code_units *self, Dwfl_Module *module,
                                       Dwarf_Addr address)
{
    size_t i;

    if (!self->are_read)
        read_all(self, module);
    i = mt_sorted_count_to(self->ranges, self->count, sizeof *self->ranges, address);
    for (; i > 0 && self->ranges[i - 1].reach > address; i--)
        if (self->ranges[i - 1].end > address)
            return self->ranges[i - 1].unit;
    return (struct mt_code_unit){NULL, 0};
}
