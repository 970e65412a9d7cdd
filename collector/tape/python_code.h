/* Code objects of Python in the tape, and the line of a bytecode offset. */
#ifndef MT_COLLECTOR_PYTHON_CODE_H
#define MT_COLLECTOR_PYTHON_CODE_H

#include <stddef.h>
#include <stdint.h>

/* The payload of MT_DEFINE_CODE is this structure, then the file, the qualified name and the line
 * table (as in the code object). Texts are UTF-8. */
struct mt_code_definition {
    uint32_t python_version; /* 0x030b = 3.11: determines the format of the line table */
    uint32_t first_line;
    uint32_t file_bytes, name_bytes, table_bytes;
    uint32_t reserved;
};

/* Returns the line of the instruction at byte `offset` of the bytecode, 0 if the table has none.
 * Reads the tables of 3.9 (lnotab), 3.10 (PEP 626) and 3.11 and later (PEP 657 locations). Never
 * reads beyond the end of the table, even if it is damaged. O(table). */
uint32_t mt_python_line(const struct mt_code_definition *code, const uint8_t *table,
                        uint32_t offset);

#endif
