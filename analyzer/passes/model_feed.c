#include "model_feed.h"

#include "arena.h"
#include "relay.h"

/* An event of a device, for the listeners that are alone. */
struct row {
    struct mt_model_feeds *feeds;
    enum { BIRTH, END, STATE } kind;
    union {
        struct {
            struct mt_block_life life;
            struct mt_block_end end;
        };
        struct {
            struct mt_event event;
            struct mt_bytes now;
            uint64_t allocated_before;
        };
    };
};

static bool is_passed(const struct mt_model_feed *feed, uint64_t event)
{
    return !feed->until_event || event <= feed->until_event;
}

static void call_birth(const struct mt_model_feeds *feeds, const struct mt_block_life *life,
                       bool by_relay)
{
    for (uint32_t i = 0; i < feeds->count; i++) {
        const struct mt_model_feed *feed = &feeds->feeds[i];

        if (feed->is_alone == by_relay && feed->on_birth && is_passed(feed, life->birth_event))
            feed->on_birth(feed->builder, life);
    }
}

static void call_end(const struct mt_model_feeds *feeds, const struct mt_block_life *life,
                     struct mt_block_end end, bool by_relay)
{
    for (uint32_t i = 0; i < feeds->count; i++) {
        const struct mt_model_feed *feed = &feeds->feeds[i];

        if (feed->is_alone == by_relay && feed->on_end && is_passed(feed, life->birth_event))
            feed->on_end(feed->builder, life,
                         is_passed(feed, end.event) ? end : (struct mt_block_end){0, UINT64_MAX});
    }
}

static void call_state(const struct mt_model_feeds *feeds, const struct mt_model_state *state,
                       bool by_relay)
{
    for (uint32_t i = 0; i < feeds->count; i++) {
        const struct mt_model_feed *feed = &feeds->feeds[i];

        if (feed->is_alone == by_relay && feed->on_state && is_passed(feed, state->event->seq))
            feed->on_state(feed->builder, state);
    }
}

static void take_row(const struct row *row)
{
    struct mt_model_feeds *feeds = row->feeds;
    uint64_t *role_bytes = feeds->relayed_role_bytes;

    if (row->kind == BIRTH) {
        role_bytes[row->life.role] += row->life.block_bytes;
        call_birth(feeds, &row->life, true);
    } else if (row->kind == END) {
        role_bytes[row->life.role] -= row->life.block_bytes;
        call_end(feeds, &row->life, row->end, true);
    } else {
        call_state(feeds,
                   &(struct mt_model_state){&row->event, MT_NO_PHASE, &row->now, role_bytes,
                                            row->allocated_before},
                   true);
    }
}

static void take_rows(void *context, const void *taken, uint32_t count)
{
    const struct row *rows = taken;

    (void)context;
    for (uint32_t i = 0; i < count; i++)
        take_row(&rows[i]);
}

void mt_model_feeds_update(struct mt_model_feeds *feeds)
{
    feeds->wants_lives = feeds->wants_events = false;
    for (uint32_t i = 0; i < feeds->count; i++) {
        const struct mt_model_feed *feed = &feeds->feeds[i];

        feeds->wants_lives |= feed->on_birth || feed->on_end || feed->on_gone;
        feeds->wants_events |= feeds->wants_lives || feed->on_state || feed->on_empty_cache;
    }
}

void mt_model_feeds_relay(struct mt_model_feeds *feeds, struct mt_relay *relay,
                          struct mt_arena *arena)
{
    for (uint32_t i = 0; i < feeds->count; i++)
        if (feeds->feeds[i].is_alone)
            feeds->relay = relay;
    if (!feeds->relay)
        return;
    feeds->relayed_role_bytes = mt_arena_array(arena, MT_ROLE_COUNT, sizeof(uint64_t));
    if (mt_relay_has_begun(relay))
        return;
    relay->row_bytes = sizeof(struct row);
    relay->take = take_rows;
    mt_relay_begin(relay);
}

static struct row *next_row(struct mt_model_feeds *feeds, int kind)
{
    struct row *row = mt_relay_next(feeds->relay);

    row->feeds = feeds;
    row->kind = kind;
    return row;
}

void mt_model_feeds_birth(struct mt_model_feeds *feeds, const struct mt_block_life *life)
{
    call_birth(feeds, life, false);
    if (feeds->relay)
        next_row(feeds, BIRTH)->life = *life;
}

void mt_model_feeds_end(struct mt_model_feeds *feeds, const struct mt_block_life *life,
                        struct mt_block_end end)
{
    struct row *row;

    call_end(feeds, life, end, false);
    if (!feeds->relay)
        return;
    row = next_row(feeds, END);
    row->life = *life;
    row->end = end;
}

void mt_model_feeds_gone(const struct mt_model_feeds *feeds, const struct mt_block_life *life,
                         struct mt_block_end completed)
{
    static const struct mt_block_end never = {0, UINT64_MAX};

    for (uint32_t i = 0; i < feeds->count; i++) {
        const struct mt_model_feed *feed = &feeds->feeds[i];

        if (feed->on_gone && is_passed(feed, life->birth_event))
            feed->on_gone(feed->builder, life, is_passed(feed, life->end.event) ? life->end : never,
                          is_passed(feed, completed.event) ? completed : never);
    }
}

void mt_model_feeds_state(struct mt_model_feeds *feeds, const struct mt_model_state *state)
{
    struct row *row;

    call_state(feeds, state, false);
    if (!feeds->relay)
        return;
    row = next_row(feeds, STATE);
    row->event = *state->event;
    row->now = *state->now;
    row->allocated_before = state->allocated_before;
}

void mt_model_feeds_empty_cache(const struct mt_model_feeds *feeds, const struct mt_event *event)
{
    for (uint32_t i = 0; i < feeds->count; i++) {
        const struct mt_model_feed *feed = &feeds->feeds[i];

        if (feed->on_empty_cache && is_passed(feed, event->seq))
            feed->on_empty_cache(feed->builder, event);
    }
}
