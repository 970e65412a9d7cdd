/* Rules of a gate: limits for a run. Budget files and options have the same spelling:
 *
 *     max-peak METRIC=10GiB      the largest number of bytes of one kind
 *     max-growth 1MiB/step       bytes left behind by each step
 *     max-fragmentation 25%      of reserved memory is unused (mt_fragmentation_peak)
 *     max-regression [METRIC=]2% above a base; 2%,64MiB: the larger of both
 *     fits 16GiB                 the smallest limit that serves the run */
#ifndef MT_ANALYZER_GATE_RULES_H
#define MT_ANALYZER_GATE_RULES_H

#include "settings_text.h"

enum mt_gate_kind {
    MT_GATE_PEAK,
    MT_GATE_GROWTH,
    MT_GATE_FRAGMENTATION,
    MT_GATE_REGRESSION,
    MT_GATE_FITS
};
enum { MT_GATE_KIND_COUNT = MT_GATE_FITS + 1 };

/* "max-peak", ... */
const char *mt_gate_kind_name(enum mt_gate_kind kind);

enum mt_gate_metric {
    MT_METRIC_REQUESTED,
    MT_METRIC_ALLOCATED,
    MT_METRIC_ACTIVE,
    MT_METRIC_RESERVED,
    MT_METRIC_DEVICE, /* total use of the device by the process */
    MT_METRIC_NONE    /* rules of this kind have no metric */
};

/* "requested", ...; "" for none. */
const char *mt_gate_metric_name(enum mt_gate_metric metric);

/* Bytes, a share, or, for a regression, both. If both are given, the larger one counts. A value
 * equal to a bound is within it. */
struct mt_gate_bound {
    const char *text; /* as written, NULL = not given */
    uint64_t bytes, millionths;
};

struct mt_gate_rule {
    enum mt_gate_kind kind;
    enum mt_gate_metric metric;       /* NONE for a regression: allocated and reserved */
    struct mt_gate_bound limit, warn; /* at least one of them */
    bool optional;                    /* the rule may remain unevaluated without failing */
};

#define MT_MAX_GATE_RULES 32

struct mt_gate_rules {
    struct mt_arena arena;
    struct mt_gate_rule rules[MT_MAX_GATE_RULES];
    size_t count;
    const char *base; /* in a budget: a path relative to it, NULL = none */
};

/* Adds a rule as an option spells it: "reserved=10GiB", "10GiB,warn=9GiB". Replaces a rule of the
 * same kind and metric. MT_ERR_USAGE with a reason. */
enum mt_status mt_gate_rules_add(struct mt_gate_rules *rules, enum mt_gate_kind kind,
                                 const char *text, struct mt_error *error) MT_MUST_USE;

/* Reads the rules of a budget file (memtrace.budget/1). MT_ERR_FORMAT with a reason. */
enum mt_status mt_gate_rules_read(struct mt_gate_rules *rules, const struct mt_settings *settings,
                                  struct mt_error *error) MT_MUST_USE;

/* For readers of budgets with further rules. mt_gate_rules_set reads one entry
 * that is a rule. After all entries, mt_gate_rules_check checks that each rule has a bound.
 * mt_budget_schema_check checks the entry of the schema. They return MT_ERR_FORMAT with a reason,
 * or MT_ERR_UNSUPPORTED for another schema. */
enum mt_status mt_gate_rules_set(struct mt_gate_rules *rules, const struct mt_setting *entry,
                                 struct mt_error *error) MT_MUST_USE;
enum mt_status mt_gate_rules_check(const struct mt_gate_rules *rules,
                                   struct mt_error *error) MT_MUST_USE;
enum mt_status mt_budget_schema_check(const struct mt_setting *entry,
                                      struct mt_error *error) MT_MUST_USE;
/* Reads a bound as it is spelled in a rule of that kind. Copies texts to `arena`. MT_ERR_USAGE: the
 * bound is invalid. */
enum mt_status mt_gate_bound_read(struct mt_arena *arena, enum mt_gate_kind kind, const char *text,
                                  struct mt_gate_bound *bound) MT_MUST_USE;
/* Returns true if two words are equal. '_' equals '-', as in "max_peak" and "max-peak". */
bool mt_budget_word_is(const char *a, size_t length, const char *b);

/* Makes all rules optional, including those that are not optional in the budget. */
void mt_gate_rules_make_optional(struct mt_gate_rules *rules);
void mt_gate_rules_release(struct mt_gate_rules *rules);

#endif
