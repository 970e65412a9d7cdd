#include "policy_options.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "near_word.h"
#include "source.h"
#include "units.h"
#include "util.h"

enum { MAX_VALUE = 40, MAX_OPTIONS = 16 };

static bool parse_bool(const char *text, uint64_t *value)
{
    *value = strcmp(text, "True") == 0 || strcmp(text, "true") == 0;
    return *value || strcmp(text, "False") == 0 || strcmp(text, "false") == 0;
}

static bool parse_count(const char *text, uint64_t *value)
{
    *value = 0;
    if (!*text || strlen(text) > 18)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return false;
        *value = *value * 10 + (uint64_t)(*text - '0');
    }
    return true;
}

/* "0.75", "1", ".5" in millionths; no locale, at most six decimals. */
static bool parse_share(const char *text, uint64_t *value)
{
    uint64_t unit = MT_POLICY_WHOLE;
    bool any = false, point = false;

    for (*value = 0; *text; text++) {
        if (*text == '.' && !point) {
            point = true;
            continue;
        }
        if (*text < '0' || *text > '9' || *value > MT_POLICY_WHOLE)
            return false;
        any = true;
        if (point)
            unit /= 10;
        *value = point ? *value + (uint64_t)(*text - '0') * unit
                       : *value * 10 + (uint64_t)(*text - '0') * MT_POLICY_WHOLE;
    }
    return any && *value <= MT_POLICY_WHOLE;
}

static bool parse_choice(const char *const *choices, const char *text, uint64_t *value)
{
    for (*value = 0; choices[*value] && strcmp(choices[*value], text) != 0;)
        ++*value;
    return choices[*value] != NULL;
}

static bool parse_value(const struct mt_policy_option *option, const char *text, uint64_t *value)
{
    bool ok = false;

    switch (option->kind) {
    case MT_POLICY_BYTES: ok = mt_parse_bytes(text, value) == MT_OK; break;
    case MT_POLICY_COUNT: ok = parse_count(text, value); break;
    case MT_POLICY_SHARE: ok = parse_share(text, value); break;
    case MT_POLICY_BOOL: return parse_bool(text, value);
    case MT_POLICY_CHOICE: return parse_choice(option->choices, text, value);
    }
    return ok && *value >= option->least && *value <= option->most;
}

/* Index of an option, `count` if there is none with that name. */
static size_t find_option(const struct mt_policy_option *options, size_t count, const char *name,
                          size_t length)
{
    size_t i = 0;

    while (i < count &&
           (strlen(options[i].name) != length || memcmp(options[i].name, name, length) != 0))
        i++;
    return i;
}

/* Reports that option `name` does not exist, with the likely intended name. */
static enum mt_status refuse_name(const struct mt_policy_option *options, size_t count,
                                  const char *name, size_t length, struct mt_error *error)
{
    const char *names[MAX_OPTIONS];

    MT_ASSERT(count <= MAX_OPTIONS);
    for (size_t i = 0; i < count; i++)
        names[i] = options[i].name;
    const char *near = mt_did_you_mean_part(name, length, names, count);
    return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "it has no option '%.*s'%s%s%s",
                   (int)mt_min_u64(length, 60), name, near ? "; did you mean '" : "",
                   near ? near : "", near ? "'?" : "");
}

/* One "name=value" of `length` bytes. */
static enum mt_status parse_pair(const char *pair, size_t length,
                                 const struct mt_policy_option *options, size_t count,
                                 uint64_t *values, struct mt_error *error)
{
    size_t name_length = strcspn(pair, "=:");
    char text[MAX_VALUE] = "";
    uint64_t value;

    if (name_length > length)
        name_length = length;
    size_t at = find_option(options, count, pair, name_length);
    if (at == count)
        return refuse_name(options, count, pair, name_length, error);
    if (name_length < length && length - name_length - 1 < sizeof text)
        memcpy(text, pair + name_length + 1, length - name_length - 1);
    if (!parse_value(&options[at], text, &value))
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "'%.*s' is not a value of '%s'",
                       (int)mt_min_u64(length, 60), pair, options[at].name);
    values[at] = value;
    return MT_OK;
}

enum mt_status mt_policy_options_parse(const char *text, const struct mt_policy_option *options,
                                       size_t count, uint64_t *values, struct mt_error *error)
{
    enum mt_status status = MT_OK;

    for (size_t i = 0; i < count; i++)
        values[i] = options[i].normal;
    while (status == MT_OK && text && *text) {
        size_t length = strcspn(text, ",");
        status = parse_pair(text, length, options, count, values, error);
        text += length;
        text += *text == ',';
    }
    return status;
}

static void spell_bytes(uint64_t bytes, char text[MAX_VALUE])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;

    while (unit + 1 < MT_ARRAY_LEN(units) && bytes && bytes % MT_KIB == 0) {
        bytes /= MT_KIB;
        unit++;
    }
    snprintf(text, MAX_VALUE, "%" PRIu64 "%s", bytes, units[unit]);
}

static void spell_share(uint64_t share, char text[MAX_VALUE])
{
    snprintf(text, MAX_VALUE, "%" PRIu64 ".%06" PRIu64, share / MT_POLICY_WHOLE,
             share % MT_POLICY_WHOLE);
    size_t length = strlen(text);
    while (text[length - 1] == '0')
        text[--length] = '\0';
    if (text[length - 1] == '.')
        text[--length] = '\0';
}

static void spell_value(const struct mt_policy_option *option, uint64_t value, char text[MAX_VALUE])
{
    switch (option->kind) {
    case MT_POLICY_BYTES: spell_bytes(value, text); break;
    case MT_POLICY_COUNT: snprintf(text, MAX_VALUE, "%" PRIu64, value); break;
    case MT_POLICY_SHARE: spell_share(value, text); break;
    case MT_POLICY_BOOL: snprintf(text, MAX_VALUE, "%s", value ? "True" : "False"); break;
    case MT_POLICY_CHOICE: snprintf(text, MAX_VALUE, "%s", option->choices[value]); break;
    }
}

void mt_policy_options_spell(const char *name, const struct mt_policy_option *options,
                             const uint64_t *values, size_t count, char *text, size_t size)
{
    char value[MAX_VALUE];
    bool any = false;

    snprintf(text, size, "%s", name);
    for (size_t i = 0; i < count; i++) {
        if (values[i] == options[i].normal)
            continue;
        size_t length = strlen(text);
        spell_value(&options[i], values[i], value);
        snprintf(text + length, size - length, "%c%s=%s", any ? ',' : ':', options[i].name, value);
        any = true;
    }
}

const char *mt_policy_recorded_options(const struct mt_trace_header *header, const char *name)
{
    static const char begin[] = "policy=";
    const char *at = header && header->settings ? header->settings : "";
    size_t length = strlen(name);

    if (strncmp(at, begin, sizeof begin - 1) != 0)
        return NULL;
    at += sizeof begin - 1;
    return strncmp(at, name, length) == 0 && at[length] == ':' ? at + length + 1 : NULL;
}

const char *mt_policy_of_run(const struct mt_trace_header *header)
{
    if (mt_header_why_no_rules(header))
        return "recorded";
    return mt_policy_recorded_options(header, "bfc") ? "bfc" : "pytorch";
}
