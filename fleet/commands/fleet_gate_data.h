/* The gates of a job as plain data. */
#ifndef MT_CLI_FLEET_GATE_DATA_H
#define MT_CLI_FLEET_GATE_DATA_H

#include "fleet_job.h"
#include "fleet_rules.h"
#include "job_report.h"

enum mt_fleet_gate_state {
    MT_FLEET_PASS,
    MT_FLEET_FAIL,
    MT_FLEET_NOT_EVALUATED, /* does not count as a pass */
    MT_FLEET_WARN
};

enum mt_fleet_gate_unit { MT_FLEET_BYTES, MT_FLEET_PPM, MT_FLEET_RANKS };

/* A rule for the ranks of a group, and its result. */
struct mt_fleet_gate {
    const char *rule, *group; /* "max-peak reserved", "pp 3" or "all ranks" */
    enum mt_fleet_gate_state state;
    bool is_optional;  /* "not evaluated" is not a failure */
    const char *doubt; /* why `actual` is uncertain or unknown; NULL = `actual` is exact */
    bool is_no_bound; /* if there is a doubt, `actual` is not even a lower bound, so the gate cannot
                         fail */
    uint32_t row;     /* row of the worst rank of the group; MT_NO_ROW: none */
    uint64_t actual, limit, warn; /* in `unit`; UINT64_MAX = no such bound */
    uint64_t base;                /* value in the base, from which the limit is computed */
    bool has_base;
    enum mt_fleet_gate_unit unit; /* bytes, millionths of the mean, or a number of ranks */
};

struct mt_fleet_gates {
    struct mt_arena arena;
    struct mt_fleet_rules rules;
    struct mt_fleet_job base; /* the job of --base; no files = no base */
    struct mt_fleet_gate *list;
    uint32_t count, failed;
    uint32_t skipped; /* optional rules that were not evaluated */
    size_t capacity;
    uint32_t *seen; /* number of ranks of each group in the job (gate_count_seen) */
};

#endif
