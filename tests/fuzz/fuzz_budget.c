/* Any bytes as a budget file, and as the rule of an option of each kind. */
#include "fuzz.h"
#include "gate_rules.h"

static void check_rules(const struct mt_gate_rules *rules)
{
    FUZZ_CHECK(rules->count <= MT_MAX_GATE_RULES);
    for (size_t i = 0; i < rules->count; i++) {
        const struct mt_gate_rule *rule = &rules->rules[i];
        FUZZ_CHECK((unsigned)rule->kind < MT_GATE_KIND_COUNT);
        FUZZ_CHECK((unsigned)rule->metric <= MT_METRIC_NONE);
        FUZZ_CHECK(rule->limit.text || rule->warn.text);
    }
}

static void read_option(const char *text, enum mt_gate_kind kind)
{
    struct mt_gate_rules rules = {0};
    struct mt_error error;

    if (mt_gate_rules_add(&rules, kind, text, &error) == MT_OK)
        FUZZ_CHECK(rules.count == 1);
    check_rules(&rules);
    mt_gate_rules_release(&rules);
}

static void read_budget(const char *text, size_t size)
{
    struct mt_gate_rules rules = {0};
    struct mt_settings settings;
    struct mt_error error;

    if (mt_settings_parse_toml(text, size, &settings, &error) == MT_OK &&
        mt_gate_rules_read(&rules, &settings, &error) == MT_OK)
        check_rules(&rules);
    mt_gate_rules_release(&rules);
    mt_settings_release(&settings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);

    read_budget(text, size);
    for (int kind = 0; kind < MT_GATE_KIND_COUNT; kind++)
        read_option(text, (enum mt_gate_kind)kind);
    free(text);
    return 0;
}
