/* Rules that a whole job has to keep to, and a case of each for each group of ranks. */
#ifndef MT_CLI_FLEET_GATES_H
#define MT_CLI_FLEET_GATES_H

#include "cli.h"
#include "gate_rules.h"
#include "job_report.h"
#include "json.h"

struct mt_fleet_gate_options {
    struct mt_text_list peaks;
    const char *imbalance;
};

enum mt_fleet_gate_state { MT_FLEET_PASS, MT_FLEET_FAIL, MT_FLEET_NOT_EVALUATED };

/* A rule for the ranks of a group. */
struct mt_fleet_gate {
    const char *rule, *group; /* "max-peak reserved", "pp 3" or "all ranks" */
    enum mt_fleet_gate_state state;
    uint32_t row;           /* the worst of the group */
    uint64_t actual, limit; /* bytes, or millionths of the mean */
    bool is_share;
};

struct mt_fleet_gates {
    struct mt_arena arena;
    struct mt_gate_rules rules;
    struct mt_fleet_gate *list;
    uint32_t count, failed;
    bool has_rules;
    uint64_t imbalance_ppm; /* UINT64_MAX = not asked for */
};

/* Reads the options; says what is wrong. MT_EXIT_OK or MT_EXIT_USAGE. */
int mt_fleet_gates_read(struct mt_fleet_gates *gates, const struct mt_fleet_gate_options *options);

/* Groups are those of the first axis; without axes, all ranks are one. */
enum mt_status mt_fleet_gates_check(struct mt_fleet_gates *gates,
                                    const struct mt_job_report *report) MT_MUST_USE;
void mt_fleet_gates_text(struct mt_buf *out, struct mt_fleet_gates *gates,
                         const struct mt_job_report *report, const struct mt_style *style);
void mt_fleet_gates_json(struct mt_json *json, const struct mt_fleet_gates *gates,
                         const struct mt_job_report *report);
/* JUnit XML: a case a rule and group. */
void mt_fleet_gates_junit(struct mt_buf *out, struct mt_fleet_gates *gates,
                          const struct mt_job_report *report);
void mt_fleet_gates_release(struct mt_fleet_gates *gates);

#endif
