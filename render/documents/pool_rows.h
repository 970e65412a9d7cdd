/* The table of pools in the page and in the text. */
#ifndef MT_RENDER_POOL_ROWS_H
#define MT_RENDER_POOL_ROWS_H

#include "report.h"
#include "table.h"

#define MT_POOL_TITLES "pool|#reserved|#at most|#allocated|#at most|#segments|~first block"

/* Adds at most `most` rows, and one row that sums the rest. */
void mt_add_pool_rows(struct mt_table *table, const struct mt_device_report *device, uint32_t most);

#endif
