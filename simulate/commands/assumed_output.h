/* Ranges of the peaks, from runs of the same command under other assumptions. */
#ifndef MT_CLI_ASSUMED_OUTPUT_H
#define MT_CLI_ASSUMED_OUTPUT_H

#include "json.h"
#include "sweep.h"

/* Appends lines for one run: on what its peaks depend, and their ranges. A dependence that moves no
 * peak has no line. */
void mt_assumed_add_ranges(struct mt_buf *out, const struct mt_sweep_result *result);

/* Appends tables of the runs of a sweep whose peaks depend on timing and on data. */
void mt_sweep_add_assumed(struct mt_buf *out, const struct mt_sweep *sweep);

/* Adds the member "assumed". */
void mt_json_assumed(struct mt_json *json, const struct mt_sweep_result *result);

/* Begins a table whose first column is the name of a run. `columns` are the others; NULL: the
 * caller adds them. */
struct mt_table;
void mt_sweep_table_begin(struct mt_table *table, const struct mt_sweep *sweep,
                          const char *columns);

#endif
