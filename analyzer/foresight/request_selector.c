#include "request_selector.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "grow.h"
#include "process_memory.h"
#include "units.h"
#include "util.h"

enum { MAX_CONDITIONS = 16 };
enum condition_kind { SITE, PHASE, SIZE };
enum { UNKNOWN, NO, YES };

/* Cached matches of frames, stacks or phases, by number. */
struct answers {
    uint8_t *of;
    size_t count, capacity;
};

struct condition {
    enum condition_kind kind;
    regex_t regex; /* SITE, PHASE */
    bool compiled;
    struct answers frames, stacks, phases;
    uint64_t least, most; /* SIZE, both inclusive */
};

struct mt_request_selector {
    struct condition conditions[MAX_CONDITIONS];
    size_t count;
    struct mt_buf place; /* "file:line" */
};

static const struct {
    const char *text;
    enum condition_kind kind;
} keys[] = {{"site=~", SITE}, {"phase=~", PHASE}, {"size>=", SIZE}, {"size<=", SIZE},
            {"size>", SIZE},  {"size<", SIZE},    {"size=", SIZE}};

/* Number of the key that the text begins with, MT_ARRAY_LEN(keys) if none. */
static size_t key_at(const char *text)
{
    size_t i;

    for (i = 0; i < MT_ARRAY_LEN(keys); i++) {
        if (strncmp(text, keys[i].text, strlen(keys[i].text)) == 0)
            return i;
    }
    return MT_ARRAY_LEN(keys);
}

/* A condition ends at a comma that another condition follows. */
static size_t value_length(const char *value)
{
    const char *comma = value;

    while ((comma = strchr(comma, ','))) {
        if (key_at(++comma) < MT_ARRAY_LEN(keys))
            return (size_t)(comma - 1 - value);
    }
    return strlen(value);
}

static enum mt_status read_regex(struct condition *condition, const char *text,
                                 struct mt_error *error)
{
    char reason[160];
    int code = *text ? regcomp(&condition->regex, text, REG_EXTENDED | REG_NOSUB) : 0;

    if (!*text)
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "an expression is empty");
    if (code == REG_ESPACE)
        mt_memory_end();
    if (code) {
        regerror(code, &condition->regex, reason, sizeof reason);
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                       "'%.80s' is not a valid regular expression: %s", text, reason);
    }
    condition->compiled = true;
    return MT_OK;
}

static enum mt_status read_size(struct condition *condition, const char *sign, const char *text,
                                struct mt_error *error)
{
    bool is_strict = sign[1] != '=';
    uint64_t bytes;

    if (mt_parse_bytes(text, &bytes) != MT_OK)
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "'%.80s' is not a size such as 20MiB",
                       text);
    if ((*sign == '<' && is_strict && !bytes) || (*sign == '>' && is_strict && bytes == UINT64_MAX))
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "no size is %s %.80s", sign, text);
    condition->least = *sign == '<' ? 0 : bytes;
    condition->most = *sign == '>' ? UINT64_MAX : bytes;
    if (*sign == '>' && is_strict)
        condition->least++;
    if (*sign == '<' && is_strict)
        condition->most--;
    return MT_OK;
}

static enum mt_status read_condition(struct mt_request_selector *selector, size_t key,
                                     const char *value, struct mt_error *error)
{
    struct condition *condition;

    if (selector->count == MAX_CONDITIONS)
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "more than %d conditions",
                       MAX_CONDITIONS);
    condition = &selector->conditions[selector->count++];
    condition->kind = keys[key].kind;
    if (condition->kind == SIZE)
        return read_size(condition, keys[key].text + strlen("size"), value, error);
    return read_regex(condition, value, error);
}

/* The parser owns the text, and cuts it into values. */
static enum mt_status parse(struct mt_request_selector *selector, char *text,
                            struct mt_error *error)
{
    enum mt_status status = MT_OK;
    bool more = true;

    while (status == MT_OK && more) {
        size_t key = key_at(text), length;
        if (key == MT_ARRAY_LEN(keys))
            return mt_fail(
                error, MT_ERR_USAGE, MT_NO_OFFSET,
                "'%.80s' is not a condition such as site=~REGEX, phase=~REGEX, size>=20MiB", text);
        text += strlen(keys[key].text);
        length = value_length(text);
        more = text[length] == ',';
        text[length] = '\0';
        status = read_condition(selector, key, text, error);
        text += length + more;
    }
    return status;
}

enum mt_status mt_request_selector_new(const char *text, struct mt_request_selector **selector,
                                       struct mt_error *error)
{
    struct mt_request_selector *self = mt_memory_zeroed(1, sizeof *self);
    char *copy = mt_memory_text(text);
    enum mt_status status;

    *selector = NULL;
    status = parse(self, copy, error);
    free(copy);
    if (status == MT_OK)
        *selector = self;
    else
        mt_request_selector_free(self);
    return status;
}

void mt_request_selector_free(struct mt_request_selector *selector)
{
    size_t i;

    if (!selector)
        return;
    for (i = 0; i < selector->count; i++) {
        struct condition *condition = &selector->conditions[i];
        if (condition->compiled)
            regfree(&condition->regex);
        free(condition->frames.of);
        free(condition->stacks.of);
        free(condition->phases.of);
    }
    mt_buf_release(&selector->place);
    free(selector);
}

bool mt_request_selector_wants_phase(const struct mt_request_selector *selector)
{
    size_t i;

    for (i = 0; i < selector->count; i++) {
        if (selector->conditions[i].kind == PHASE)
            return true;
    }
    return false;
}

static void make_room(struct answers *answers, size_t count)
{
    if (count <= answers->count)
        return;
    mt_grow_to(&answers->of, &answers->capacity, count, sizeof *answers->of);
    memset(answers->of + answers->count, UNKNOWN, answers->capacity - answers->count);
    answers->count = answers->capacity;
}

/* Matching allocates memory. Without it glibc returns "no match", and only errno shows the
 * failure. */
static bool has(struct condition *condition, const char *text)
{
    int code;

    errno = 0;
    code = regexec(&condition->regex, text, 0, NULL, 0);
    if (code == REG_ESPACE || (code != 0 && errno == ENOMEM))
        mt_memory_end();
    return code == 0;
}

static bool frame_matches(struct mt_request_selector *selector, struct condition *condition,
                          const struct mt_symbols *symbols, uint32_t frame)
{
    const struct mt_frame *facts = &symbols->frames[frame];
    uint8_t *answer = &condition->frames.of[frame];

    if (*answer == UNKNOWN) {
        struct mt_buf *place = &selector->place;
        mt_buf_reset(place);
        mt_buf_add_text(place, mt_symbols_text(symbols, facts->file));
        if (facts->line)
            mt_buf_printf(place, ":%u", (unsigned)facts->line);
        mt_buf_add(place, "", 1);
        *answer =
            has(condition, mt_symbols_text(symbols, facts->function)) || has(condition, place->data)
                ? YES
                : NO;
    }
    return *answer == YES;
}

/* Searches from the innermost frame outward for a match or a stack with a cached result; caches the
 * result for the whole path. */
static void stack_matches(struct mt_request_selector *selector, struct condition *condition,
                          const struct mt_symbols *symbols, uint32_t stack, bool *matches)
{
    uint32_t at;

    make_room(&condition->frames, symbols->frame_count);
    *matches = false;
    make_room(&condition->stacks, symbols->stack_count);
    if (stack >= symbols->stack_count)
        return;
    for (at = stack; at != MT_NO_ID && !*matches; at = symbols->stacks[at].parent) {
        if (condition->stacks.of[at] != UNKNOWN) {
            *matches = condition->stacks.of[at] == YES;
            break;
        }
        *matches = frame_matches(selector, condition, symbols, symbols->stacks[at].frame);
    }
    for (; stack != at; stack = symbols->stacks[stack].parent)
        condition->stacks.of[stack] = *matches ? YES : NO;
}

static void phase_matches(struct condition *condition, const struct mt_request_facts *facts,
                          bool *matches)
{
    *matches = false;
    if (!facts->phase_path)
        return;
    make_room(&condition->phases, (size_t)facts->phase + 1);
    if (condition->phases.of[facts->phase] == UNKNOWN)
        condition->phases.of[facts->phase] = has(condition, facts->phase_path) ? YES : NO;
    *matches = condition->phases.of[facts->phase] == YES;
}

void mt_request_selector_match(struct mt_request_selector *selector,
                               const struct mt_symbols *symbols,
                               const struct mt_request_facts *facts, bool *matches)
{
    size_t i;

    *matches = true;
    for (i = 0; *matches && i < selector->count; i++) {
        struct condition *condition = &selector->conditions[i];
        if (condition->kind == SITE)
            stack_matches(selector, condition, symbols, facts->event->stack, matches);
        else if (condition->kind == PHASE)
            phase_matches(condition, facts, matches);
        else
            *matches = facts->event->size_bytes >= condition->least &&
                       facts->event->size_bytes <= condition->most;
    }
}
