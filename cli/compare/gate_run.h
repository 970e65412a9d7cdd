/* The gates of a command: the options, the files that the options name, the check, and the
 * results. */
#ifndef MT_CLI_GATE_RUN_H
#define MT_CLI_GATE_RUN_H

#include "cli.h"
#include "gate_result.h"
#include "outputs.h"

struct mt_gate_options {
    const char *budget, *base, *write_baseline;
    struct mt_text_list peaks, regressions;
    const char *growth, *fits;
    bool allow_not_evaluated;
    /* a gate of a dry run also fails if it may fail under another order of addresses */
    bool strict;
    struct mt_outputs *outputs; /* which files may be replaced; mt_gate_run_open adds its inputs */
};

/* clang-format off */
#define MT_GATE_OPTIONS(gates)                                                                     \
    {"budget", 0, MT_OPTION_TEXT, "FILE", "rules for the run, as TOML",                    \
     &(gates).budget},                                                                             \
    {"max-peak", 0, MT_OPTION_LIST, "METRIC=BYTES",                                                \
     "exit with 1 if a peak is larger: requested, allocated, active, reserved, device",            \
     &(gates).peaks},                                                                              \
    {"max-growth", 0, MT_OPTION_TEXT, "BYTES/step", "exit with 1 if steps leave more behind",      \
     &(gates).growth},                                                                             \
    {"max-regression", 0, MT_OPTION_LIST, "[METRIC=]SHARE",                                        \
     "exit with 1 if a peak exceeds that of the base by more", &(gates).regressions},              \
    {"fits", 0, MT_OPTION_TEXT, "BYTES", "exit with 1 if the run does not fit under this limit",   \
     &(gates).fits},                                                                               \
    {"base", 0, MT_OPTION_TEXT, "FILE", "compare with this trace, snapshot or baseline",           \
     &(gates).base},                                                                               \
    {"allow-not-evaluated", 0, MT_OPTION_FLAG, NULL,                                               \
     "do not fail if a rule cannot be evaluated", &(gates).allow_not_evaluated},                   \
    {"write-baseline", 0, MT_OPTION_TEXT, "FILE",                                                  \
     "write a baseline for comparison with later runs", &(gates).write_baseline}
/* clang-format on */

struct mt_gate_run {
    struct mt_gate_rules rules;
    struct mt_baseline base;
    struct mt_gates gates;
    bool has_base;
    const char *base_trace; /* the path of the base if it is a trace, else NULL */
    bool is_checked;        /* there are rules, and `gates` has the results */
};

/* Reads the budget and the base. Call it first. Prints errors; returns enum mt_exit. Release *run
 * in any case. */
int mt_gate_run_open(struct mt_gate_run *run, const struct mt_gate_options *options,
                     const struct mt_common *common);

/* Checks the gates, and writes the baseline if one is requested. Returns the exit code, which does
 * not include failed gates. */
int mt_gate_run_check(struct mt_gate_run *run, const struct mt_gate_options *options,
                      struct mt_source *source, const struct mt_report *report, const char *policy);

/* Returns 1 if a gate failed or could not be evaluated, else 0. */
int mt_gate_run_verdict(const struct mt_gate_run *run);
void mt_gate_run_release(struct mt_gate_run *run);

/* Return the results and the base. NULL: nothing was checked, or there is no base. */
const struct mt_gates *mt_gate_run_gates(const struct mt_gate_run *run);
const struct mt_baseline *mt_gate_run_base(const struct mt_gate_run *run);

/* One of mt_settings_parse_... */
typedef enum mt_status mt_settings_parser(const char *text, size_t length,
                                          struct mt_settings *settings, struct mt_error *error);

/* Reads the entries of a budget, a baseline or an estimate. Release *settings in any case. */
enum mt_status mt_settings_read_file(const char *path, mt_settings_parser *parse,
                                     struct mt_settings *settings,
                                     struct mt_error *error) MT_MUST_USE;

/* Returns the path of a base that a budget names. The name is relative to the folder of the budget.
 */
char *mt_gate_base_path(struct mt_arena *arena, const char *budget, const char *base);

#endif
