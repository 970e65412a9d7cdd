#include "instant_option.h"

#include <string.h>

#include "cli.h"
#include "units.h"
#include "util.h"

/* Reads the digits after the point and the unit. A time without unit is in seconds. */
static bool parse_time(const char *at, uint64_t whole, struct mt_instant_option *instant)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {{"s", 1000000000}, {"ms", 1000000}, {"us", 1000},
                 {"µs", 1000},      {"ns", 1},       {"", 1000000000}};
    uint64_t fraction = 0, scale = 1;

    if (*at == '.')
        for (at++; *at >= '0' && *at <= '9' && scale < 1000000000; at++, scale *= 10)
            fraction = fraction * 10 + (uint64_t)(*at - '0');
    at += strspn(at, " "); /* reports print a space before the unit: "1.5 s" */
    for (size_t i = 0; i < MT_ARRAY_LEN(units); i++) {
        if (strcmp(at, units[i].name) != 0)
            continue;
        instant->by_time = true;
        instant->half_ns = whole || fraction ? units[i].ns / scale / 2 : 0;
        return mt_mul_ok(whole, units[i].ns, &whole) &&
               mt_add_ok(whole, fraction * units[i].ns / scale, &instant->value);
    }
    return false;
}

static bool parse(const char *text, struct mt_instant_option *instant)
{
    bool is_event = strncmp(text, "event ", 6) == 0;
    const char *at = mt_parse_count(is_event ? text + 6 : text, &instant->value);

    instant->given = at != NULL;
    if (!at || !*at)
        return at != NULL;
    return !is_event && parse_time(at, instant->value, instant);
}

/* Returns the path of a phase for "phase:PATH", or for a phase as reports print it: "step 3,
 * backward", "step#3/backward", "loss". Returns NULL for text that does not begin with a letter. */
static const char *phase_of(const char *text)
{
    if (!strncmp(text, "phase:", 6))
        return text[6] ? text + 6 : NULL;
    return (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ? text : NULL;
}

int mt_instant_option_print_no_times(const char *path)
{
    mt_message("'%s': a dry run has no times; use an event number, peak, end or phase:PATH", path);
    return MT_EXIT_USAGE;
}

bool mt_instant_option_read(const char *text, struct mt_instant_option *instant)
{
    instant->phase = NULL;
    instant->given = text != NULL;
    if (!text || parse(text, instant))
        return true;
    instant->given = true;
    instant->phase = phase_of(text);
    if (instant->phase)
        return true;
    mt_message(
        "'%s' is not an instant; use an event number, a time such as 1.5s, 20ms, 300us or 7ns, "
        "or a phase such as 'step 3' or phase:PATH",
        text);
    return false;
}

static const struct {
    const char *name;
    enum mt_question_at at;
} moments[] = {{"peak", MT_AT_PEAK},
               {"reserved-peak", MT_AT_RESERVED_PEAK},
               {"oom", MT_AT_OOM},
               {"end", MT_AT_END}};

/* A moment that was probably intended, or NULL. */
static const char *near_moment(const char *at)
{
    const char *names[MT_ARRAY_LEN(moments) + 1];
    size_t count = 0;

    for (; count < MT_ARRAY_LEN(moments); count++)
        names[count] = moments[count].name;
    if (strcmp(at, "phase:") != 0)
        names[count++] = "phase:";
    return mt_did_you_mean(at, names, count);
}

bool mt_question_at_read(const char *at, struct mt_question *question, struct mt_buf *why)
{
    struct mt_instant_option instant = {0};

    for (size_t i = 0; i < MT_ARRAY_LEN(moments); i++) {
        if (strcmp(at, moments[i].name) != 0)
            continue;
        question->at = moments[i].at;
        return true;
    }
    if (parse(at, &instant)) {
        question->at = instant.by_time ? MT_AT_TIME : MT_AT_EVENT;
        question->value = instant.value;
        question->half_ns = instant.half_ns;
        return true;
    }
    const char *near = near_moment(at);
    question->at = MT_AT_PHASE;
    question->phase = near ? NULL : phase_of(at);
    if (near)
        mt_buf_printf(why, "unknown instant '%s'; did you mean '%s'?", at, near);
    else if (!question->phase)
        mt_buf_printf(why,
                      "unknown instant '%s'; use peak, reserved-peak, oom, end, a time such as "
                      "1.5s, an event number, or a phase such as 'step 3'",
                      at);
    return question->phase;
}

static bool read_at(const char *at, struct mt_question *question)
{
    struct mt_buf why = {0};
    bool is_read = mt_question_at_read(at, question, &why);

    if (!is_read)
        mt_message("%s", why.data ? why.data : "");
    mt_buf_release(&why);
    return is_read;
}

const char *mt_tag_member_option(const char *by)
{
    return !strncmp(by, "tag.", 4) && by[4] ? by + 4 : NULL;
}

static bool read_by(const char *by, struct mt_question *question)
{
    const char *names[MT_GROUP_BY_COUNT];

    question->by = MT_BY_TAG;
    question->member = mt_tag_member_option(by);
    if (question->member)
        return true;
    for (int i = 0; i < MT_GROUP_BY_COUNT; i++) {
        names[i] = mt_group_by_name((enum mt_group_by)i);
        question->by = (enum mt_group_by)i;
        if (!strcmp(by, names[i]))
            return true;
    }
    const char *near = mt_did_you_mean(by, names, MT_GROUP_BY_COUNT);
    if (near)
        mt_message("cannot group by '%s'; did you mean '%s'?", by, near);
    else
        mt_message("cannot group by '%s'; use site, stack, role, phase, size, module, tag or "
                   "tag.MEMBER",
                   by);
    return false;
}

bool mt_question_option_read(const char *at, const char *by, struct mt_question *question)
{
    *question = (struct mt_question){.at = MT_AT_PEAK, .by = MT_BY_SITE};
    return (!at || read_at(at, question)) && (!by || read_by(by, question));
}
