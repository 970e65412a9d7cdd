#include "fleet_rules.h"

#include <stdlib.h>
#include <string.h>

#include "gate_run.h"
#include "process_memory.h"
#include "util.h"

const char *mt_job_rule_name(enum mt_job_rule rule)
{
    static const char *const names[] = {"max-needed", "max-imbalance", "max-missing"};

    _Static_assert(MT_ARRAY_LEN(names) == MT_JOB_RULE_COUNT, "each rule has a name");
    return names[rule];
}

static const char *what_is_wanted(enum mt_job_rule rule)
{
    static const char *const wanted[] = {"bytes such as 80GiB", "a share of the mean such as 5%",
                                         "a number of ranks"};

    return wanted[rule];
}

/* Parses a number of ranks, which the bound of a rule stores in its field for bytes. */
static enum mt_status read_count(struct mt_arena *arena, const char *text,
                                 struct mt_gate_bound *bound)
{
    size_t digits = strspn(text, "0123456789");

    if (!digits || text[digits] || digits > 9)
        return MT_ERR_USAGE;
    *bound = (struct mt_gate_bound){.text = mt_arena_text(arena, text, digits),
                                    .bytes = strtoull(text, NULL, 10)};
    return MT_OK;
}

static enum mt_status read_own(struct mt_fleet_rules *rules, enum mt_job_rule rule,
                               const char *text, struct mt_gate_bound *bound)
{
    if (rule == MT_JOB_RULE_MISSING)
        return read_count(&rules->all.arena, text, bound);
    return mt_gate_bound_read(&rules->all.arena,
                              rule == MT_JOB_RULE_NEEDED ? MT_GATE_FITS : MT_GATE_FRAGMENTATION,
                              text, bound);
}

/* Sets a rule from a key such as "max-needed", "max-needed.warn" or
 * "max-needed.allow-not-evaluated". */
static enum mt_status set_own(struct mt_fleet_rules *rules, enum mt_job_rule rule,
                              const char *field, const struct mt_setting *entry,
                              struct mt_error *error)
{
    struct mt_gate_rule *own = &rules->own[rule];
    size_t length = strlen(field);
    bool is_warn = mt_budget_word_is(field, length, "warn");
    enum mt_status status = MT_ERR_USAGE;

    if (mt_budget_word_is(field, length, "allow-not-evaluated")) {
        if (entry->kind != MT_SETTING_BOOL)
            return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET,
                           "line %u: '%.60s' needs true or false", entry->line, entry->path);
        own->optional = entry->number;
        return MT_OK;
    }
    if (length && !is_warn && !mt_budget_word_is(field, length, "limit"))
        return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "line %u: unknown key '%.60s'",
                       entry->line, entry->path);
    if (entry->kind != MT_SETTING_BOOL)
        status = read_own(rules, rule, entry->text, is_warn ? &own->warn : &own->limit);
    return status == MT_OK
               ? MT_OK
               : mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "line %u: '%.60s' needs %s",
                         entry->line, entry->path, what_is_wanted(rule));
}

/* Finds the rules of a group, and adds them if there are none. Returns MT_ERR_FORMAT if there are
 * too many groups. */
static enum mt_status group_rules(struct mt_fleet_rules *rules, const char *axis, size_t length,
                                  uint32_t coordinate, struct mt_gate_rules **found)
{
    for (uint32_t i = 0; i < rules->group_count; i++)
        if (rules->groups[i].coordinate == coordinate && strlen(rules->groups[i].axis) == length &&
            !memcmp(rules->groups[i].axis, axis, length)) {
            *found = &rules->groups[i].rules;
            return MT_OK;
        }
    if (rules->group_count == MT_MAX_GROUP_RULES)
        return MT_ERR_FORMAT;
    if (!rules->groups)
        rules->groups = mt_memory_zeroed(MT_MAX_GROUP_RULES, sizeof *rules->groups);
    struct mt_fleet_group_rules *group = &rules->groups[rules->group_count];
    group->axis = mt_arena_text(&rules->all.arena, axis, length);
    group->coordinate = coordinate;
    rules->group_count++;
    *found = &group->rules;
    return MT_OK;
}

/* Returns the dot before the last part that is a number. The name of an axis may contain dots, and
 * even parts that are numbers. Returns NULL if there is no such dot, or if the name is empty. */
static const char *dot_of_coordinate(const char *axis)
{
    const char *found = NULL;

    for (const char *dot = strchr(axis, '.'); dot; dot = strchr(dot + 1, '.')) {
        size_t digits = strspn(dot + 1, "0123456789");

        if (dot > axis && digits && digits <= 9 && dot[1 + digits] == '.')
            found = dot;
    }
    return found;
}

/* Sets a rule of a group from a key such as "group.pp.0.max-peak.reserved". */
static enum mt_status set_group(struct mt_fleet_rules *rules, const struct mt_setting *entry,
                                struct mt_error *error)
{
    const char *axis = entry->path + strlen("group."), *dot = dot_of_coordinate(axis);
    struct mt_setting rule = *entry;
    struct mt_gate_rules *group;

    if (!dot)
        return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET,
                       "line %u: '%.60s' is not a rule for a group; write it as in "
                       "group.pp.0.max-peak.reserved",
                       entry->line, entry->path);
    enum mt_status status = group_rules(rules, axis, (size_t)(dot - axis),
                                        (uint32_t)strtoul(dot + 1, NULL, 10), &group);
    if (status != MT_OK)
        return mt_fail(error, status, MT_NO_OFFSET, "more than %d groups have rules",
                       MT_MAX_GROUP_RULES);
    rule.path = strchr(dot + 1, '.') + 1;
    return mt_gate_rules_set(group, &rule, error);
}

static enum mt_status set(struct mt_fleet_rules *rules, const struct mt_setting *entry,
                          struct mt_error *error)
{
    size_t length = strcspn(entry->path, ".");

    for (int i = 0; i < MT_JOB_RULE_COUNT; i++)
        if (mt_budget_word_is(entry->path, length, mt_job_rule_name((enum mt_job_rule)i)))
            return set_own(rules, (enum mt_job_rule)i,
                           entry->path + length + (entry->path[length] == '.'), entry, error);
    if (entry->path[length] && mt_budget_word_is(entry->path, length, "group"))
        return set_group(rules, entry, error);
    return mt_gate_rules_set(&rules->all, entry, error);
}

static bool has(const struct mt_gate_rule *rule)
{
    return rule->limit.text || rule->warn.text;
}

static void make_optional(struct mt_fleet_rules *rules)
{
    mt_gate_rules_make_optional(&rules->all);
    for (uint32_t i = 0; i < rules->group_count; i++)
        mt_gate_rules_make_optional(&rules->groups[i].rules);
    for (int i = 0; i < MT_JOB_RULE_COUNT; i++)
        rules->own[i].optional |= has(&rules->own[i]);
}

static enum mt_status read_entries(struct mt_fleet_rules *rules, const struct mt_settings *settings,
                                   const char *path, struct mt_error *error)
{
    const struct mt_setting *schema = mt_settings_find(settings, "schema");
    enum mt_status status = schema ? mt_budget_schema_check(schema, error) : MT_OK;
    bool all_optional = false;

    for (size_t i = 0; status == MT_OK && i < settings->count; i++) {
        const struct mt_setting *entry = &settings->entries[i];

        if (entry == schema)
            continue;
        if (!strcmp(entry->path, "base") && entry->kind == MT_SETTING_TEXT && *entry->text)
            rules->base = mt_gate_base_path(&rules->all.arena, path, entry->text);
        else if (mt_budget_word_is(entry->path, strlen(entry->path), "allow-not-evaluated") &&
                 entry->kind == MT_SETTING_BOOL)
            all_optional = entry->number;
        else
            status = set(rules, entry, error);
    }
    if (all_optional)
        make_optional(rules);
    return status;
}

/* Rejects rules that apply only to single traces, and rules without a bound. */
/* A summary has the peaks of a rank, and not what was unused at an instant. */
static enum mt_status refuse_fragmentation(const struct mt_gate_rules *rules,
                                           struct mt_error *error)
{
    for (size_t i = 0; i < rules->count; i++)
        if (rules->rules[i].kind == MT_GATE_FRAGMENTATION)
            return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET,
                           "max-fragmentation is not a rule for a job; 'memtrace analyze' checks "
                           "it for one trace");
    return MT_OK;
}

static enum mt_status check_rules(struct mt_fleet_rules *rules, struct mt_error *error)
{
    enum mt_status status = mt_gate_rules_check(&rules->all, error);

    rules->is_given = rules->all.count || rules->group_count;
    for (uint32_t i = 0; i < rules->group_count && status == MT_OK; i++) {
        status = mt_gate_rules_check(&rules->groups[i].rules, error);
        if (status == MT_OK)
            status = refuse_fragmentation(&rules->groups[i].rules, error);
        for (size_t k = 0; k < rules->groups[i].rules.count && status == MT_OK; k++)
            if (rules->groups[i].rules.rules[k].kind == MT_GATE_REGRESSION)
                status =
                    mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET,
                            "max-regression is not a rule for a group; the rule for all ranks is "
                            "checked for each group");
    }
    if (status == MT_OK)
        status = refuse_fragmentation(&rules->all, error);
    for (int i = 0; i < MT_JOB_RULE_COUNT && status == MT_OK; i++) {
        rules->is_given |= has(&rules->own[i]);
        if (rules->own[i].optional && !has(&rules->own[i]))
            status = mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "%s has neither limit nor warn",
                             mt_job_rule_name((enum mt_job_rule)i));
    }
    return status;
}

static int read_budget(struct mt_fleet_rules *rules, const char *path)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_settings settings;
    enum mt_status status = mt_settings_read_file(path, mt_settings_parse_toml, &settings, &error);

    if (status == MT_OK)
        status = read_entries(rules, &settings, path, &error);
    if (status == MT_OK)
        status = check_rules(rules, &error);
    if (status == MT_OK && !rules->is_given)
        status = mt_fail(&error, MT_ERR_FORMAT, MT_NO_OFFSET, "the budget has no rules");
    mt_settings_release(&settings);
    error.status = status;
    return status == MT_OK ? MT_EXIT_OK : mt_report_error(path, &error);
}

static int refuse(const char *option, const char *text, const char *why)
{
    mt_message("fleet: --%s %s: %s", option, text, why);
    return MT_EXIT_USAGE;
}

static int add(struct mt_fleet_rules *rules, enum mt_gate_kind kind, const char *text)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};

    if (mt_gate_rules_add(&rules->all, kind, text, &error) == MT_OK)
        return MT_EXIT_OK;
    return refuse(mt_gate_kind_name(kind), text, error.text);
}

static int add_own(struct mt_fleet_rules *rules, enum mt_job_rule rule, const char *text)
{
    struct mt_gate_bound bound;

    if (!text)
        return MT_EXIT_OK;
    if (read_own(rules, rule, text, &bound) != MT_OK)
        return refuse(mt_job_rule_name(rule), text, what_is_wanted(rule));
    rules->own[rule].limit = bound;
    rules->own[rule].warn = (struct mt_gate_bound){.text = NULL};
    return MT_EXIT_OK;
}

static int read_options(struct mt_fleet_rules *rules, const struct mt_fleet_gate_options *options)
{
    int code = MT_EXIT_OK;

    for (size_t i = 0; code == MT_EXIT_OK && i < options->peaks.count; i++)
        code = add(rules, MT_GATE_PEAK, options->peaks.items[i]);
    for (size_t i = 0; code == MT_EXIT_OK && i < options->regressions.count; i++)
        code = add(rules, MT_GATE_REGRESSION, options->regressions.items[i]);
    return code == MT_EXIT_OK ? add_own(rules, MT_JOB_RULE_IMBALANCE, options->imbalance) : code;
}

int mt_fleet_rules_read(struct mt_fleet_rules *rules, const struct mt_fleet_gate_options *options)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    int code = options->budget ? read_budget(rules, options->budget) : MT_EXIT_OK;

    if (code == MT_EXIT_OK)
        code = read_options(rules, options);
    if (code == MT_EXIT_OK && check_rules(rules, &error) != MT_OK) {
        mt_message("fleet: %s", error.text);
        code = MT_EXIT_USAGE;
    }
    if (options->base)
        rules->base = options->base;
    if (options->allow_not_evaluated)
        make_optional(rules);
    return code;
}

void mt_fleet_rules_release(struct mt_fleet_rules *rules)
{
    for (uint32_t i = 0; i < rules->group_count; i++)
        mt_gate_rules_release(&rules->groups[i].rules);
    free(rules->groups);
    mt_gate_rules_release(&rules->all);
    memset(rules, 0, sizeof *rules);
}
