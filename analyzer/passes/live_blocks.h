/* The pass `blocks`: keeps the live blocks with stack, phase of allocation and role, and copies
 * them, grouped, at chosen events. */
#ifndef MT_ANALYZER_LIVE_BLOCKS_H
#define MT_ANALYZER_LIVE_BLOCKS_H

#include "attributed.h"
#include "block_watches.h"
#include "holding.h"
#include "model_feed.h"
#include "relay.h"
#include "survey.h"
#include "ties.h"

struct mt_live_blocks_device {
    uint16_t device;
    struct mt_idle_watch idle;
    struct mt_bytes now;
    uint64_t role_bytes[MT_ROLE_COUNT];
    struct mt_model_feeds models;
    struct mt_lives lives; /* zero: not requested */
    struct mt_pins pins;   /* zero: not requested */
};

struct mt_live_blocks {
    struct mt_arena *arena;
    struct mt_survey *survey;
    struct mt_map slots; /* address and device -> index */
    struct mt_ties ties; /* of its blocks, by index */
    bool has_stacks;     /* the trace has stacks, so blocks without one can be tied */
    const struct mt_symbols *symbols;
    struct mt_site_table sites;
    struct mt_alloc_memo *roles;
    struct mt_block_life *blocks;
    uint32_t block_count, block_capacity, block_free;
    bool completes_at_request;             /* the trace has no free_completed */
    struct mt_live_blocks_device *devices; /* parallel to the survey's */

    struct mt_snapshot *snapshots; /* sorted by event */
    uint32_t snapshot_count, next_snapshot;
    uint64_t next_event;   /* of the next snapshot, UINT64_MAX = none */
    struct mt_relay relay; /* to listeners of all devices */
    struct mt_holding *scratch;
    size_t scratch_capacity;
};

/* Call it before the first event of a pass. `holders` has snapshots, builders, and started lives
 * and pins; the rest is zero. Fills and feeds them. */
void mt_live_blocks_begin(struct mt_live_blocks *holders, const struct mt_source *source);
void mt_live_blocks_event(struct mt_live_blocks *holders, const struct mt_event *event);
/* Returns whether later events change nothing that is requested, so that the pass may end. */
bool mt_live_blocks_are_known(const struct mt_live_blocks *holders);
/* Call it after the last event. */
void mt_live_blocks_finish(struct mt_live_blocks *holders);
/* Returns the bytes of memory that this pass uses for live blocks, without its listeners. */
uint64_t mt_live_blocks_bytes(const struct mt_live_blocks *holders);
void mt_live_blocks_release(struct mt_live_blocks *holders);

#endif
