#include "pool_routes.h"

#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "buf.h"
#include "found_phases.h"
#include "grow.h"
#include "phases.h"
#include "process_memory.h"
#include "request_selector.h"
#include "util.h"

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
    const char *begin;

    if (!**text)
        return NULL;
    begin = *text + sizeof SEPARATOR - 1;
    *text = mt_pool_routes_text(begin);
    *length = (size_t)(*text - begin);
    return begin;
}

static enum mt_status add_selector(struct builder *builder, const char *text, size_t length,
                                   struct mt_error *error)
{
    uint32_t pool = builder->routes->pool_count;
    struct mt_error why;
    enum mt_status status;

    if (pool == MT_MAX_POLICY_POOLS)
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "more than %d pools",
                       MT_MAX_POLICY_POOLS);
    builder->text_at[pool] = builder->texts.length;
    mt_buf_add(&builder->texts, text, length);
    mt_buf_add(&builder->texts, "", 1);
    text = builder->texts.data + builder->text_at[pool];
    status = mt_request_selector_new(text, &builder->selectors[pool], &why);
    if (status != MT_OK)
        return mt_fail(error, status, MT_NO_OFFSET, "pool '%.80s': %s", text, why.text);
    builder->wants_phases =
        builder->wants_phases || mt_request_selector_wants_phase(builder->selectors[pool]);
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
    uint32_t i;

    if (builder->wants_phases)
        phase = mt_phases_current(&builder->phases, event->thread);
    if (phase != MT_NO_PHASE) {
        facts.phase = (uint32_t)phase;
        facts.phase_path = builder->phases.phases[phase].path;
    }
    for (i = 0; i < builder->routes->pool_count; i++) {
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
    uint32_t i;

    for (i = 0; i < builder->routes->pool_count; i++) {
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
        status = mt_found_phases_lay(builder->source, error);
    if (status == MT_OK)
        status = read_source(builder, error);
    if (status == MT_OK)
        status = check(builder, error);
    if (status == MT_OK && builder->source->symbols.pool_count + MT_MAX_POLICY_POOLS > MAX_POOL)
        status = mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET, "too many private pools");
    builder->routes->first_pool = (uint16_t)builder->source->symbols.pool_count;
    return status;
}

enum mt_status mt_pool_routes_make(struct mt_source *source, const char *text,
                                   struct mt_pool_routes *routes, struct mt_error *error)
{
    struct builder builder = {.source = source, .routes = routes};
    enum mt_status status;
    uint32_t i;

    memset(routes, 0, sizeof *routes);
    if (!*text)
        return MT_OK;
    mt_phases_init(&builder.phases, &builder.arena, &source->symbols);
    status = make(&builder, text, error);
    for (i = 0; i < MT_MAX_POLICY_POOLS; i++)
        mt_request_selector_free(builder.selectors[i]);
    mt_buf_release(&builder.texts);
    mt_phases_release(&builder.phases);
    mt_arena_release(&builder.arena);
    if (status != MT_OK)
        mt_pool_routes_release(routes);
    return status;
}

void mt_pool_routes_release(struct mt_pool_routes *routes)
{
    free(routes->of_event);
    memset(routes, 0, sizeof *routes);
}
