/* The compilation unit that an address belongs to, where libdw cannot say: it looks into a table of
 * addresses, which clang does not write. */
#ifndef MT_RECORD_CODE_UNITS_H
#define MT_RECORD_CODE_UNITS_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>

struct mt_code_unit {
    Dwarf_Die *die;  /* NULL: none; the module's */
    Dwarf_Addr bias; /* to take from an address before the unit is asked */
};

struct mt_code_units {
    struct mt_unit_range *ranges;
    size_t count, capacity;
    bool are_read;
};

void mt_code_units_release(struct mt_code_units *self);

/* The first call reads the ranges of all units, the others are a binary search. Without memory
 * there may be no unit where there should be one. */
struct mt_code_unit mt_code_units_find(struct mt_code_units *self, Dwfl_Module *module,
                                       Dwarf_Addr address);

#endif
