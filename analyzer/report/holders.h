/* Second reading of a trace: who holds the memory. Keeps the live blocks with
 * stack, phase of birth and role, and copies them, grouped, at chosen events. */
#ifndef MT_ANALYZER_HOLDERS_H
#define MT_ANALYZER_HOLDERS_H

#include "idle.h"
#include "lives.h"
#include "models.h"
#include "pins.h"
#include "survey.h"
#include "ties.h"

/* The blocks of one device after one event. */
struct mt_snapshot {
    uint64_t event; /* wanted: after the last event <= this */
    uint16_t device;
    struct mt_holding *holdings;
    uint32_t holding_count;
    uint64_t bytes; /* their sum */
    uint64_t waiting_blocks, waiting_bytes, waiting_requested_bytes;
};

struct mt_holder { /* a live block, or one that waits for streams */
    uint64_t addr, requested_bytes, block_bytes;
    uint64_t birth_t_ns, birth_event;
    uint32_t stack;
    uint32_t tied; /* see mt_holding */
    uint32_t stream;
    int32_t phase;
    uint32_t next_free; /* index + 1, when unused */
    uint16_t device, heap, pool;
    uint8_t role, tie;
    uint8_t state; /* 0 unused, 1 live, 2 freed but waiting */
    bool initial;
    bool role_recorded;
};

static inline bool mt_holder_is_live(const struct mt_holder *block, uint16_t device)
{
    return block->state == 1 && block->device == device;
}

struct mt_holders_device {
    uint16_t device;
    struct mt_idle_watch idle;
    struct mt_bytes now;
    uint64_t role_bytes[MT_ROLE_COUNT];
    struct mt_model_feeds models;
    struct mt_lives lives; /* zero: not wanted */
    struct mt_pins pins;   /* the same */
};

struct mt_holders {
    struct mt_arena *arena;
    struct mt_survey *survey;
    struct mt_map slots; /* address and device -> index */
    struct mt_ties ties; /* of its blocks, by index */
    bool has_stacks;     /* the trace has some: who has none can be tied */
    struct mt_holder *blocks;
    uint32_t block_count, block_capacity, block_free;
    bool completes_at_request;         /* the trace has no free_completed */
    struct mt_holders_device *devices; /* parallel to the survey's */

    struct mt_snapshot *snapshots; /* sorted by event */
    uint32_t snapshot_count, next_snapshot;
    uint64_t events;     /* so far */
    uint64_t next_event; /* of the next snapshot, UINT64_MAX = none */
    struct mt_holding *scratch;
    size_t scratch_capacity;
};

/* Reads the rewound source to its end. `holders` holds snapshots, builders, and lives
 * and pins that have begun; the rest is zero. Fills and feeds them. */
enum mt_status mt_holders_read(struct mt_holders *holders, struct mt_source *source,
                               struct mt_error *error) MT_MUST_USE;
/* The same, event by event, for a reading that serves somebody else, too. */
void mt_holders_begin(struct mt_holders *holders, const struct mt_source *source);
enum mt_status mt_holders_event(struct mt_holders *holders,
                                const struct mt_event *event) MT_MUST_USE;
enum mt_status mt_holders_finish(struct mt_holders *holders) MT_MUST_USE;
void mt_holders_release(struct mt_holders *holders);

#endif
