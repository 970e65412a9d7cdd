/* Finds the compilation unit of an address in files without the table of addresses that libdw
 * needs. clang does not write this table. */
#ifndef MT_RECORD_CODE_UNITS_H
#define MT_RECORD_CODE_UNITS_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>

struct mt_code_unit {
    Dwarf_Die *die;  /* borrowed from the module; NULL: not found */
    Dwarf_Addr bias; /* subtract it from an address before a lookup in the unit */
};

struct mt_code_units {
    struct mt_unit_range *ranges;
    size_t count, capacity;
    bool are_read;
};

void mt_code_units_release(struct mt_code_units *self);

/* The first call reads the ranges of all units; later calls are a binary search. If memory runs
 * out, a unit may not be found. */
struct mt_code_unit mt_code_units_find(struct mt_code_units *self, Dwfl_Module *module,
                                       Dwarf_Addr address);

#endif
