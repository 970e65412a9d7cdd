/* Input and results of a check of gates: plain data in one arena. */
#ifndef MT_ANALYZER_GATE_RESULT_H
#define MT_ANALYZER_GATE_RESULT_H

#include "arena.h"
#include "baseline.h"
#include "gate_rules.h"
#include "report.h"
#include "source.h"

enum mt_gate_state {
    MT_GATE_PASS,
    MT_GATE_WARN,
    MT_GATE_FAIL,
    MT_GATE_NOT_EVALUATED /* does not count as passed */
};

/* "pass", "warn", "fail", "not evaluated". */
static inline const char *mt_gate_state_name(enum mt_gate_state state)
{
    static const char *const names[] = {"pass", "warn", "fail", "not evaluated"};

    return names[state];
}

/* One rule on one device. */
struct mt_gate_result {
    const struct mt_gate_rule *rule;
    enum mt_gate_metric metric; /* of the rule, or one of those that it covers */
    uint16_t device;
    enum mt_gate_state state;
    bool excused; /* not evaluated, and the rule is optional */
    /* Measured and allowed values, in bytes (growth: bytes per step; fragmentation: unused bytes of
     * `of_bytes`). Valid only if has_actual. */
    bool has_actual, has_base;
    int64_t actual_bytes, limit_bytes, warn_bytes; /* limit, warn: INT64_MAX = none */
    uint64_t base_bytes, of_bytes;
    int64_t rise_bytes; /* growth: the slope of allocated memory at the ends of steps, per step; 0
                           if it does not rise */
    bool has_range;     /* a peak of a dry run that tried other orders of addresses (report.h) */
    int64_t low_bytes, high_bytes; /* the smallest and the largest such peak; only if has_range */
    bool may_fail;    /* actual_bytes is within the limit, but high_bytes is not: WARN, or FAIL if
                         strict */
    const char *name; /* the rule without values of the run, so that it is the same in every run */
    const char *verdict; /* one clause: "peak reserved 19.3 GiB exceeds ..." */
    const char *culprit; /* site and phase, NULL = passed, or unknown */
    const char *advice;  /* a remedy, NULL = none known */
};

struct mt_gates {
    struct mt_arena arena;
    struct mt_gate_result *results; /* failures first, then not evaluated, warnings, passes;
                                       each in the order of rules, then devices */
    size_t count;
    size_t states[4]; /* number of results in each state, without excused ones */
    size_t excused;
    enum mt_gate_state verdict; /* the worst state: FAIL, then NOT_EVALUATED */
    const char *base;           /* its name, NULL = none */
};

struct mt_gate_check {
    const struct mt_gate_rules *rules;
    const struct mt_report *report;
    const struct mt_baseline *base; /* NULL = none */
    struct mt_source *source;       /* of the report: replayed for `fits` and for advice */
    const char *policy;             /* the requested one, NULL = none */
    bool strict; /* a rule that may fail under another order of addresses fails */
};

struct mt_gate_work {
    const struct mt_gate_check *check;
    struct mt_gates *gates;
    struct mt_error *error;
};

/* Returns the device of the result, from the report; never NULL. */
static inline const struct mt_device_report *mt_gate_device(const struct mt_gate_work *work,
                                                            const struct mt_gate_result *result)
{
    const struct mt_report *report = work->check->report;

    for (uint32_t i = 0; i < report->device_count; i++)
        if (report->devices[i].device == result->device)
            return &report->devices[i];
    return &report->devices[0];
}

/* Writes the texts of a result: its name, its verdict, and the holders of the excess. */

/* Sets the name and the verdict of a result. `why`: the reason why the rule cannot be evaluated. */
void mt_gate_describe(struct mt_gate_work *work, struct mt_gate_result *result);
void mt_gate_describe_not_evaluated(struct mt_gate_work *work, struct mt_gate_result *result,
                                    const char *why);
/* Adds the effect of other orders of addresses to the verdict if has_range is set. */
void mt_gate_describe_range(struct mt_gate_work *work, struct mt_gate_result *result);
/* Adds the holders of the excess. */
void mt_gate_describe_culprit(struct mt_gate_work *work, struct mt_gate_result *result);

/* Gates: checks whether a run meets its rules. A result has the excess over the rule, the
 * responsible call site, and a fix. Plain data in one arena; nothing is printed here. */

/* May make hundreds of passes over the source: `fits` searches, and after a failure other options
 * are tried. Release *gates even after an error. */
enum mt_status mt_gates_check(const struct mt_gate_check *check, struct mt_gates *gates,
                              struct mt_error *error) MT_MUST_USE;
void mt_gates_release(struct mt_gates *gates);

#endif
