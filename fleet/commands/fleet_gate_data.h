/* The gates of a job as plain data. */
#ifndef MT_CLI_FLEET_GATE_DATA_H
#define MT_CLI_FLEET_GATE_DATA_H

#include "fleet_job.h"
#include "fleet_rules.h"
#include "job_document.h"

struct mt_fleet_gates {
    struct mt_arena arena;
    struct mt_fleet_rules rules;
    struct mt_fleet_job base; /* the job of --base; no files = no base */
    struct mt_job_gate *list;
    uint32_t count, failed;
    uint32_t skipped; /* optional rules that were not evaluated */
    size_t capacity;
    uint32_t *seen; /* number of ranks of each group in the job (gate_count_seen) */
};

#endif
