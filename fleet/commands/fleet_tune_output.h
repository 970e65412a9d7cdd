/* The setting for all ranks of a job, as text and as `settings` of memtrace.fleet/1. */
#ifndef MT_CLI_FLEET_TUNE_OUTPUT_H
#define MT_CLI_FLEET_TUNE_OUTPUT_H

#include "fleet_output.h"

/* Appends nothing if answer->settings is NULL. */
void mt_fleet_tune_text(struct mt_buf *out, const struct mt_fleet_answer *answer,
                        const struct mt_style *style);

/* Adds null if answer->settings is NULL. */
void mt_fleet_tune_json(struct mt_json *json, const struct mt_fleet_answer *answer);

#endif
