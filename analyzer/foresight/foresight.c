/* What a replay needs in advance: the pools of a policy's text, the requests that their selectors
 * match, and the plan of a step. */
#include <errno.h>
#include <regex.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "buf.h"
#include "foresight.h"
#include "grow.h"
#include "inferred_phases.h"
#include "near_word.h"
#include "phases.h"
#include "policy.h"
#include "process_memory.h"
#include "pytorch_config.h"
#include "replay_result.h"
#include "source.h"
#include "step_plan.h"
#include "units.h"
#include "util.h"

enum { MAX_CONDITIONS = 16, MAX_POLICIES = 64 };
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
    for (size_t i = 0; i < MT_ARRAY_LEN(keys); i++)
        if (strncmp(text, keys[i].text, strlen(keys[i].text)) == 0)
            return i;
    return MT_ARRAY_LEN(keys);
}

/* A condition ends at a comma that another condition follows. */
static size_t value_length(const char *value)
{
    const char *comma = value;

    while ((comma = strchr(comma, ',')))
        if (key_at(++comma) < MT_ARRAY_LEN(keys))
            return (size_t)(comma - 1 - value);
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
    if (selector->count == MAX_CONDITIONS)
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "more than %d conditions",
                       MAX_CONDITIONS);
    struct condition *condition = &selector->conditions[selector->count++];
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
        size_t key = key_at(text);
        if (key == MT_ARRAY_LEN(keys))
            return mt_fail(
                error, MT_ERR_USAGE, MT_NO_OFFSET,
                "'%.80s' is not a condition such as site=~REGEX, phase=~REGEX, size>=20MiB", text);
        text += strlen(keys[key].text);
        size_t length = value_length(text);
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

    *selector = NULL;
    enum mt_status status = parse(self, copy, error);
    free(copy);
    if (status == MT_OK)
        *selector = self;
    else
        mt_request_selector_free(self);
    return status;
}

void mt_request_selector_free(struct mt_request_selector *selector)
{
    if (!selector)
        return;
    for (size_t i = 0; i < selector->count; i++) {
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

/* Whether it has a condition on phases. */
static bool request_selector_wants_phase(const struct mt_request_selector *selector)
{
    for (size_t i = 0; i < selector->count; i++)
        if (selector->conditions[i].kind == PHASE)
            return true;
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
    errno = 0;
    int code = regexec(&condition->regex, text, 0, NULL, 0);
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
    *matches = true;
    for (size_t i = 0; *matches && i < selector->count; i++) {
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

static const char SEPARATOR[] = " --pool ";

/* Pool ids are doubled and have to fit 16 bits (pytorch_pools.h). */
enum { MAX_POOL = UINT16_MAX / 2 };

struct builder {
    struct mt_source *source;
    struct mt_pool_routes *routes;
    struct mt_request_selector *selectors[MT_MAX_POLICY_POOLS];
    uint64_t meant[MT_MAX_POLICY_POOLS]; /* requests that go to the pool */
    uint64_t
        elsewhere[MT_MAX_POLICY_POOLS]; /* also selected: private already, or another selector's */
    struct mt_buf texts;                /* one after the other, with their NULs */
    size_t text_at[MT_MAX_POLICY_POOLS];
    struct mt_phases phases;
    struct mt_arena arena;
    bool wants_phases;
};

const char *mt_pool_routes_text(const char *policy)
{
    const char *at = strstr(policy, SEPARATOR);

    return at ? at : policy + strlen(policy);
}

const char *mt_pool_routes_next(const char **text, size_t *length)
{
    if (!**text)
        return NULL;
    const char *begin = *text + sizeof SEPARATOR - 1;
    *text = mt_pool_routes_text(begin);
    *length = (size_t)(*text - begin);
    return begin;
}

static enum mt_status add_selector(struct builder *builder, const char *text, size_t length,
                                   struct mt_error *error)
{
    uint32_t pool = builder->routes->pool_count;
    struct mt_error why;

    if (pool == MT_MAX_POLICY_POOLS)
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "more than %d pools",
                       MT_MAX_POLICY_POOLS);
    builder->text_at[pool] = builder->texts.length;
    mt_buf_add(&builder->texts, text, length);
    mt_buf_add(&builder->texts, "", 1);
    text = builder->texts.data + builder->text_at[pool];
    enum mt_status status = mt_request_selector_new(text, &builder->selectors[pool], &why);
    if (status != MT_OK)
        return mt_fail(error, status, MT_NO_OFFSET, "pool '%.80s': %s", text, why.text);
    builder->wants_phases =
        builder->wants_phases || request_selector_wants_phase(builder->selectors[pool]);
    builder->routes->pool_count++;
    return MT_OK;
}

static enum mt_status add_selectors(struct builder *builder, const char *text,
                                    struct mt_error *error)
{
    enum mt_status status = MT_OK;
    const char *selector;
    size_t length;

    while (status == MT_OK && (selector = mt_pool_routes_next(&text, &length)))
        status = add_selector(builder, selector, length, error);
    return status;
}

static void set_route(struct mt_pool_routes *routes, uint64_t seq, uint32_t pool)
{
    if (seq >= routes->count) {
        if (seq == SIZE_MAX)
            mt_memory_end();
        mt_grow_zeroed_to(&routes->of_event, &routes->count, (size_t)seq + 1, 1);
    }
    routes->of_event[seq] = (uint8_t)(1 + pool);
}

static void route(struct builder *builder, const struct mt_event *event)
{
    struct mt_request_facts facts = {event, NULL, 0};
    int32_t phase = MT_NO_PHASE;
    bool is_taken = false;

    if (builder->wants_phases)
        phase = mt_phases_current(&builder->phases, event->thread);
    if (phase != MT_NO_PHASE) {
        facts.phase = (uint32_t)phase;
        facts.phase_path = builder->phases.phases[phase].path;
    }
    for (uint32_t i = 0; i < builder->routes->pool_count; i++) {
        bool matches;
        mt_request_selector_match(builder->selectors[i], &builder->source->symbols, &facts,
                                  &matches);
        if (!matches)
            continue;
        if (event->kind == MT_EVENT_ALLOC)
            ++*(is_taken || event->pool ? &builder->elsewhere[i] : &builder->meant[i]);
        if (!is_taken)
            set_route(builder->routes, event->seq, i);
        is_taken = true;
    }
}

static enum mt_status look_at(void *self, struct mt_event *event)
{
    struct builder *builder = self;
    int32_t phase;

    switch (event->kind) {
    case MT_EVENT_PHASE_PUSH:
        if (builder->wants_phases)
            mt_phases_push(&builder->phases, event, &phase);
        return MT_OK;
    case MT_EVENT_PHASE_POP:
        if (builder->wants_phases)
            mt_phases_pop(&builder->phases, event);
        return MT_OK;
    case MT_EVENT_ALLOC:
    case MT_EVENT_OOM:
        if (!(event->flags & MT_EVENT_INITIAL))
            route(builder, event);
        return MT_OK;
    default: return MT_OK;
    }
}

static enum mt_status read_source(struct builder *builder, struct mt_error *error)
{
    enum mt_status status = mt_source_each(builder->source, look_at, builder, error);

    return status == MT_OK ? mt_source_rewind(builder->source, error) : status;
}

/* A pool without requests is a mistake in its selector. */
static enum mt_status check(const struct builder *builder, struct mt_error *error)
{
    for (uint32_t i = 0; i < builder->routes->pool_count; i++) {
        const char *text = builder->texts.data + builder->text_at[i];
        if (builder->meant[i])
            continue;
        if (builder->elsewhere[i])
            return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                           "pool '%.80s' would be empty: the %llu requests that match are in "
                           "private pools of the run, or in an earlier --pool",
                           text, (unsigned long long)builder->elsewhere[i]);
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "pool '%.80s': no request matches", text);
    }
    return MT_OK;
}

static enum mt_status make(struct builder *builder, const char *text, struct mt_error *error)
{
    enum mt_status status = add_selectors(builder, text, error);

    if (status == MT_OK && builder->wants_phases)
        status = mt_inferred_phases_insert(builder->source, error);
    if (status == MT_OK)
        status = read_source(builder, error);
    if (status == MT_OK)
        status = check(builder, error);
    if (status == MT_OK && builder->source->symbols.pool_count + MT_MAX_POLICY_POOLS > MAX_POOL)
        status = mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET, "too many private pools");
    builder->routes->first_pool = (uint16_t)builder->source->symbols.pool_count;
    return status;
}

static void pool_routes_release(struct mt_pool_routes *routes)
{
    free(routes->of_event);
    memset(routes, 0, sizeof *routes);
}

/* `text` is the result of mt_pool_routes_text: if it is empty, so are the routes. Otherwise reads
 * the source from its start to its end, and rewinds it. A selector without matches is MT_ERR_USAGE.
 * Memory: one byte per event. */
static enum mt_status pool_routes_make(struct mt_source *source, const char *text,
                                       struct mt_pool_routes *routes, struct mt_error *error)
{
    struct builder builder = {.source = source, .routes = routes};

    memset(routes, 0, sizeof *routes);
    if (!*text)
        return MT_OK;
    mt_phases_init(&builder.phases, &builder.arena, &source->symbols);
    enum mt_status status = make(&builder, text, error);
    for (uint32_t i = 0; i < MT_MAX_POLICY_POOLS; i++)
        mt_request_selector_free(builder.selectors[i]);
    mt_buf_release(&builder.texts);
    mt_phases_release(&builder.phases);
    mt_arena_release(&builder.arena);
    if (status != MT_OK)
        pool_routes_release(routes);
    return status;
}

static enum mt_status no_such_policy(const char *name, size_t length, struct mt_error *error)
{
    const char *names[MAX_POLICIES];
    size_t count = 0;

    for (; mt_policies[count] && count < MAX_POLICIES; count++)
        names[count] = mt_policies[count]->name;
    const char *near = mt_did_you_mean_part(name, length, names, count);
    return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                   "there is no such policy; %s%s%s'memtrace replay --policies' lists all",
                   near ? "did you mean '" : "", near ? near : "", near ? "'? " : "");
}

enum mt_status mt_policy_text_parse(const char *text, struct mt_policy_text *policy,
                                    struct mt_error *error)
{
    memset(policy, 0, sizeof *policy);
    policy->pools = mt_pool_routes_text(text);
    if (strlen(text) >= sizeof policy->head)
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "more than %zu characters",
                       sizeof policy->head - 1);
    memcpy(policy->head, text, (size_t)(policy->pools - text));
    const char *colon = strchr(policy->head, ':');
    size_t length = colon ? (size_t)(colon - policy->head) : strlen(policy->head);
    policy->ops = mt_policy_find(policy->head, length);
    policy->options = colon ? colon + 1 : NULL;
    if (!policy->ops && strpbrk(policy->head, ":=")) {
        struct mt_pytorch_config config;
        enum mt_status status = mt_pytorch_config_parse(policy->head, &config, error);
        if (status != MT_OK)
            return status;
        policy->ops = &mt_policy_pytorch;
        policy->options = policy->head;
    }
    if (!policy->ops)
        return no_such_policy(policy->head, length, error);
    if (*policy->pools && policy->ops != &mt_policy_pytorch)
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "only pytorch has private pools");
    return MT_OK;
}

enum mt_status mt_foresight_make(struct mt_source *source, const struct mt_policy_text *policy,
                                 struct mt_foresight *foresight, struct mt_error *error)
{
    memset(foresight, 0, sizeof *foresight);
    if (policy->ops == &mt_policy_planned)
        return mt_step_plan_make(source, &foresight->plan, error);
    return pool_routes_make(source, policy->pools, &foresight->routes, error);
}

void mt_foresight_release(struct mt_foresight *foresight)
{
    if (!foresight)
        return;
    pool_routes_release(&foresight->routes);
    mt_step_plan_release(&foresight->plan);
}
