/* Rules for a job, from options and from a budget. */
#ifndef MT_CLI_FLEET_RULES_H
#define MT_CLI_FLEET_RULES_H

#include "cli.h"
#include "gate_rules.h"

struct mt_fleet_gate_options {
    struct mt_text_list peaks, regressions;
    const char *imbalance, *budget, *base;
    bool allow_not_evaluated;
};

/* clang-format off */
#define MT_FLEET_GATE_OPTIONS(gates)                                                               \
    {"budget", 0, MT_OPTION_TEXT, "FILE", "rules for the job, as TOML",                    \
     &(gates).budget},                                                                             \
    {"max-peak", 0, MT_OPTION_LIST, "METRIC=BYTES",                                                \
     "exit with 1 if a rank's peak is larger: requested, allocated, active, reserved, device",     \
     &(gates).peaks},                                                                              \
    {"max-imbalance", 0, MT_OPTION_TEXT, "SHARE",                                                  \
     "exit with 1 if a rank's reserved peak exceeds the mean by more", &(gates).imbalance},        \
    {"base", 0, MT_OPTION_TEXT, "JOB", "compare with this job: a folder, a summary or a trace",    \
     &(gates).base},                                                                               \
    {"max-regression", 0, MT_OPTION_LIST, "[METRIC=]SHARE",                                        \
     "exit with 1 if a rank's peak exceeds that of the base by more", &(gates).regressions},       \
    {"allow-not-evaluated", 0, MT_OPTION_FLAG, NULL,                                               \
     "do not fail if a rule cannot be evaluated", &(gates).allow_not_evaluated}
/* clang-format on */

/* Rules that exist only for jobs. */
enum mt_job_rule { MT_JOB_RULE_NEEDED, MT_JOB_RULE_IMBALANCE, MT_JOB_RULE_MISSING };
enum { MT_JOB_RULE_COUNT = MT_JOB_RULE_MISSING + 1, MT_MAX_GROUP_RULES = 256 };
const char *mt_job_rule_name(enum mt_job_rule rule); /* "max-needed", ... */

/* Rules for the ranks at one coordinate of an axis. They replace the rules for all ranks. */
struct mt_fleet_group_rules {
    const char *axis;
    uint32_t coordinate;
    struct mt_gate_rules rules;
};

/* Zeroed memory holds no rules. */
struct mt_fleet_rules {
    struct mt_gate_rules all; /* max-peak, max-growth, fits, max-regression */
    /* if limit.text and warn.text are NULL, there is no such rule */
    struct mt_gate_rule own[MT_JOB_RULE_COUNT];
    struct mt_fleet_group_rules *groups; /* in the order of the budget */
    uint32_t group_count;
    const char *base; /* NULL: none */
    bool is_given;    /* there is at least one rule */
};

/* Reads the rules from the options and the budget. Prints errors; returns enum mt_exit. Release
 * *rules in any case. */
int mt_fleet_rules_read(struct mt_fleet_rules *rules, const struct mt_fleet_gate_options *options);
void mt_fleet_rules_release(struct mt_fleet_rules *rules);

#endif
