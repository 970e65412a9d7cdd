#include "gate_rules.h"

#include <string.h>

#include "units.h"
#include "util.h"

#define SCHEMA "memtrace.budget/1"

enum { MAX_LETTERS = 100 }; /* of a bound */

const char *mt_gate_kind_name(enum mt_gate_kind kind)
{
    static const char *const names[] = {"max-peak", "max-growth", "max-fragmentation",
                                        "max-regression", "fits"};
    _Static_assert(sizeof names / sizeof *names == MT_GATE_KIND_COUNT, "one entry for each");

    return names[kind];
}

const char *mt_gate_metric_name(enum mt_gate_metric metric)
{
    static const char *const names[] = {"requested", "allocated", "active",
                                        "reserved",  "device",    ""};

    return names[metric];
}

/* "2.5%" -> 25000, at most four decimals. */
static bool parse_percent(const char *text, uint64_t *millionths)
{
    uint64_t value = 0;
    int decimals = -1;

    if (*text < '0' || *text > '9')
        return false;
    for (; (*text >= '0' && *text <= '9') || (*text == '.' && decimals < 0); text++) {
        if (*text == '.') {
            decimals = 0;
            continue;
        }
        if (decimals == 4 || value > 1000000000000)
            return false;
        decimals += decimals >= 0;
        value = value * 10 + (uint64_t)(*text - '0');
    }
    for (decimals = decimals < 0 ? 0 : decimals; decimals < 4; decimals++)
        value *= 10;
    text += *text == ' ';
    *millionths = value;
    return strcmp(text, "%") == 0;
}

/* A regression is a share or bytes: "2" could mean either. */
static bool lacks_unit(enum mt_gate_kind kind, const char *text)
{
    return kind == MT_GATE_REGRESSION && !text[strspn(text, "0123456789. ")];
}

static bool parse_part(enum mt_gate_kind kind, char *text, struct mt_gate_bound *bound)
{
    char *step = strstr(text, "/step");
    bool is_share = strchr(text, '%') != NULL;

    if (kind == MT_GATE_GROWTH && step && !step[5])
        *step = '\0';
    if (is_share)
        return (kind == MT_GATE_FRAGMENTATION || kind == MT_GATE_REGRESSION) &&
               parse_percent(text, &bound->millionths);
    return kind != MT_GATE_FRAGMENTATION && !lacks_unit(kind, text) &&
           mt_parse_bytes(text, &bound->bytes) == MT_OK;
}

static bool parse_parts(enum mt_gate_kind kind, char *text, struct mt_gate_bound *bound)
{
    char *share = strchr(text, '%'), *comma = share ? strchr(share, ',') : NULL;

    if (share && !comma)
        comma = strrchr(text, ','); /* the share comes last: "1,690 MiB, 5%" */
    if (kind != MT_GATE_REGRESSION || !comma)
        return parse_part(kind, text, bound);
    *comma++ = '\0';
    if (!strchr(text, '%') == !strchr(comma, '%'))
        return false; /* at most one of each */
    return parse_part(kind, text, bound) && parse_part(kind, comma + strspn(comma, " "), bound);
}

static enum mt_status parse_bound(struct mt_arena *arena, enum mt_gate_kind kind, const char *text,
                                  size_t length, struct mt_gate_bound *bound)
{
    char copy[MAX_LETTERS + 1];

    memset(bound, 0, sizeof *bound);
    if (length > MAX_LETTERS)
        return MT_ERR_USAGE;
    memcpy(copy, text, length);
    copy[length] = '\0';
    if (!parse_parts(kind, copy, bound))
        return MT_ERR_USAGE;
    bound->text = mt_arena_text(arena, text, length);
    return MT_OK;
}

enum mt_status mt_gate_bound_read(struct mt_arena *arena, enum mt_gate_kind kind, const char *text,
                                  struct mt_gate_bound *bound)
{
    return parse_bound(arena, kind, text, strlen(text), bound);
}

static const char *what_is_wanted(enum mt_gate_kind kind)
{
    switch (kind) {
    case MT_GATE_FRAGMENTATION: return "a share such as 25%";
    case MT_GATE_REGRESSION: return "a share such as 2%, bytes such as 64MiB, or both: 2%,64MiB";
    case MT_GATE_GROWTH: return "bytes such as 1MiB/step";
    case MT_GATE_PEAK:
    case MT_GATE_FITS: break;
    }
    return "bytes such as 16GiB";
}

static bool find_metric(const char *name, size_t length, enum mt_gate_metric *metric)
{
    for (int i = 0; i < MT_METRIC_NONE; i++) {
        const char *known = mt_gate_metric_name((enum mt_gate_metric)i);

        if (strlen(known) == length && memcmp(known, name, length) == 0) {
            *metric = (enum mt_gate_metric)i;
            return true;
        }
    }
    return false;
}

/* The rule of this kind and metric, created if missing; NULL: too many. */
static struct mt_gate_rule *rule_of(struct mt_gate_rules *rules, enum mt_gate_kind kind,
                                    enum mt_gate_metric metric)
{
    for (size_t i = 0; i < rules->count; i++)
        if (rules->rules[i].kind == kind && rules->rules[i].metric == metric)
            return &rules->rules[i];
    if (rules->count == MT_MAX_GATE_RULES)
        return NULL;
    rules->rules[rules->count] = (struct mt_gate_rule){.kind = kind, .metric = metric};
    return &rules->rules[rules->count++];
}

/* A warning threshold at or above the limit would never have an effect. */
static bool warns_too_late(const struct mt_gate_rule *rule)
{
    const struct mt_gate_bound *limit = &rule->limit, *warn = &rule->warn;

    return limit->text && warn->text && warn->bytes >= limit->bytes &&
           warn->millionths >= limit->millionths;
}

enum mt_status mt_gate_rules_add(struct mt_gate_rules *rules, enum mt_gate_kind kind,
                                 const char *text, struct mt_error *error)
{
    const char *name = mt_gate_kind_name(kind), *warn = strstr(text, ",warn=");
    const char *equals = strchr(text, '=');
    struct mt_gate_rule made = {.kind = kind, .metric = MT_METRIC_NONE}, *rule;
    const char *end = warn ? warn : text + strlen(text);

    if ((kind == MT_GATE_PEAK || kind == MT_GATE_REGRESSION) && equals && equals < end) {
        size_t length = (size_t)(equals - text);
        if (!find_metric(text, length, &made.metric))
            return mt_fail(
                error, MT_ERR_USAGE, MT_NO_OFFSET,
                "--%s: unknown metric '%.*s'; use requested, allocated, active, reserved or device",
                name, (int)mt_min_u64(length, 40), text);
        text = equals + 1;
    }
    if (kind == MT_GATE_PEAK && made.metric == MT_METRIC_NONE)
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                       "--%s needs a metric: reserved=10GiB; or requested, allocated, active, "
                       "device",
                       name);
    enum mt_status status =
        parse_bound(&rules->arena, kind, text, (size_t)(end - text), &made.limit);
    if (!status && warn)
        status = parse_bound(&rules->arena, kind, warn + 6, strlen(warn + 6), &made.warn);
    if (status)
        return mt_fail(error, status, MT_NO_OFFSET, "--%s needs %s, not '%.60s'", name,
                       what_is_wanted(kind), text);
    if (warns_too_late(&made))
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                       "--%s: warn is not below the limit: '%.60s'", name, text);
    rule = rule_of(rules, kind, made.metric);
    if (!rule)
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "more than %d rules", MT_MAX_GATE_RULES);
    made.optional = rule->optional;
    *rule = made;
    return MT_OK;
}

enum field { FIELD_LIMIT, FIELD_WARN, FIELD_OPTIONAL, FIELD_UNKNOWN };

bool mt_budget_word_is(const char *a, size_t length, const char *b)
{
    if (strlen(b) != length)
        return false;
    for (size_t i = 0; i < length; i++)
        if ((a[i] == '_' ? '-' : a[i]) != b[i])
            return false;
    return true;
}

/* Length of the part of a path before the next '.'; moves *path past it. */
static size_t next_part(const char **path, const char **part)
{
    size_t length = strcspn(*path, ".");

    *part = *path;
    *path += length + ((*path)[length] == '.');
    return length;
}

static enum field field_of(const char *part, size_t length)
{
    if (length == 0 || mt_budget_word_is(part, length, "limit"))
        return FIELD_LIMIT;
    if (mt_budget_word_is(part, length, "warn"))
        return FIELD_WARN;
    return mt_budget_word_is(part, length, "allow-not-evaluated") ? FIELD_OPTIONAL : FIELD_UNKNOWN;
}

/* KIND[.METRIC][.FIELD]; returns false if it is unknown. */
static bool parse_path(const char *path, enum mt_gate_kind *kind, enum mt_gate_metric *metric,
                       enum field *field)
{
    const char *part;
    size_t length = next_part(&path, &part);
    int i = 0;

    while (i < MT_GATE_KIND_COUNT &&
           !mt_budget_word_is(part, length, mt_gate_kind_name((enum mt_gate_kind)i)))
        i++;
    if (i == MT_GATE_KIND_COUNT)
        return false;
    *kind = (enum mt_gate_kind)i;
    *metric = MT_METRIC_NONE;
    length = next_part(&path, &part);
    if ((*kind == MT_GATE_PEAK || *kind == MT_GATE_REGRESSION) && find_metric(part, length, metric))
        length = next_part(&path, &part);
    *field = field_of(part, length);
    return !*path && *field != FIELD_UNKNOWN && (*kind != MT_GATE_PEAK || *metric < MT_METRIC_NONE);
}

static enum mt_status wrong(const struct mt_setting *entry, const char *wanted,
                            struct mt_error *error)
{
    return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "line %u: '%.60s' needs %s", entry->line,
                   entry->path, wanted);
}

static enum mt_status read_bound(struct mt_gate_rules *rules, const struct mt_setting *entry,
                                 enum mt_gate_kind kind, struct mt_gate_bound *bound,
                                 struct mt_error *error)
{
    enum mt_status status = MT_ERR_USAGE;

    if (entry->kind != MT_SETTING_BOOL)
        status = parse_bound(&rules->arena, kind, entry->text, strlen(entry->text), bound);
    return status ? wrong(entry, what_is_wanted(kind), error) : MT_OK;
}

enum mt_status mt_gate_rules_set(struct mt_gate_rules *rules, const struct mt_setting *entry,
                                 struct mt_error *error)
{
    enum mt_gate_metric metric;
    enum mt_gate_kind kind;
    enum field field;

    if (!parse_path(entry->path, &kind, &metric, &field))
        return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET,
                       "line %u: unknown rule '%.60s'; rules are max-peak.METRIC, max-growth, "
                       "max-fragmentation, max-regression, fits",
                       entry->line, entry->path);
    struct mt_gate_rule *rule = rule_of(rules, kind, metric);
    if (!rule)
        return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "more than %d rules", MT_MAX_GATE_RULES);
    if (field != FIELD_OPTIONAL)
        return read_bound(rules, entry, kind, field == FIELD_WARN ? &rule->warn : &rule->limit,
                          error);
    if (entry->kind != MT_SETTING_BOOL)
        return wrong(entry, "true or false", error);
    rule->optional = entry->number;
    return MT_OK;
}

enum mt_status mt_budget_schema_check(const struct mt_setting *entry, struct mt_error *error)
{
    if (entry->kind != MT_SETTING_TEXT)
        return wrong(entry, "\"" SCHEMA "\"", error);
    if (strcmp(entry->text, SCHEMA) == 0)
        return MT_OK;
    return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                   "its schema is '%.60s', which is not " SCHEMA, entry->text);
}

static enum mt_status read_base(struct mt_gate_rules *rules, const struct mt_setting *entry,
                                struct mt_error *error)
{
    if (entry->kind != MT_SETTING_TEXT || !*entry->text)
        return wrong(entry, "the path of a trace or a baseline", error);
    rules->base = mt_arena_text(&rules->arena, entry->text, strlen(entry->text));
    return MT_OK;
}

enum mt_status mt_gate_rules_check(const struct mt_gate_rules *rules, struct mt_error *error)
{
    for (size_t i = 0; i < rules->count; i++) {
        const struct mt_gate_rule *rule = &rules->rules[i];
        const char *name = mt_gate_kind_name(rule->kind);

        if (!rule->limit.text && !rule->warn.text)
            return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "%s has neither limit nor warn",
                           name);
        if (warns_too_late(rule))
            return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "%s: warn is not below the limit",
                           name);
    }
    return MT_OK;
}

enum mt_status mt_gate_rules_read(struct mt_gate_rules *rules, const struct mt_settings *settings,
                                  struct mt_error *error)
{
    const struct mt_setting *schema = mt_settings_find(settings, "schema");
    enum mt_status status = schema ? mt_budget_schema_check(schema, error) : MT_OK;
    bool all_optional = false;

    for (size_t i = 0; !status && i < settings->count; i++) {
        const struct mt_setting *entry = &settings->entries[i];

        if (entry == schema)
            continue;
        if (strcmp(entry->path, "base") == 0)
            status = read_base(rules, entry, error);
        else if (!mt_budget_word_is(entry->path, strlen(entry->path), "allow-not-evaluated"))
            status = mt_gate_rules_set(rules, entry, error);
        else if (entry->kind != MT_SETTING_BOOL)
            status = wrong(entry, "true or false", error);
        else
            all_optional = entry->number;
    }
    if (!status)
        status = mt_gate_rules_check(rules, error);
    if (!status && !rules->count)
        status = mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "it has no rules");
    if (all_optional)
        mt_gate_rules_make_optional(rules);
    return status;
}

void mt_gate_rules_make_optional(struct mt_gate_rules *rules)
{
    for (size_t i = 0; i < rules->count; i++)
        rules->rules[i].optional = true;
}

void mt_gate_rules_release(struct mt_gate_rules *rules)
{
    mt_arena_release(&rules->arena);
    memset(rules, 0, sizeof *rules);
}
