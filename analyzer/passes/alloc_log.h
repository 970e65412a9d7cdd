/* Notes of the pass `run` for the pass `blocks`: block size and role of each allocation by its
 * number, and every change of reserved bytes. Costs 1 to 5 bytes per allocation (block_units.h), 8
 * bytes more for a block that is no multiple of 512 bytes below 2 TiB, and 3 to 7 bytes per driver
 * call. */
#ifndef MT_ANALYZER_ALLOC_LOG_H
#define MT_ANALYZER_ALLOC_LOG_H

#include "block_units.h"
#include "event.h"
#include "hash.h"
#include "util.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mt_alloc_log {
    struct mt_block_units units; /* of 512 bytes, or a mark for other sizes */
    uint8_t *roles;              /* roles.h, final when the block is freed */
    uint64_t count;
    size_t capacity;
    uint64_t *odd_sizes;
    size_t odd_count, odd_capacity;

    uint8_t *reserved; /* numbers of 7 bits a byte: events since the last change,
                          device, change (zigzag) */
    size_t reserved_bytes, reserved_capacity;
    uint64_t last_change_event;

    /* state of reading */
    uint64_t next;
    size_t next_odd, next_reserved;
    uint64_t next_change_event; /* UINT64_MAX = no more */
    uint32_t next_change_device;
    int64_t next_change;
};

/* The next allocation (number log->count) has a block of `block_bytes`. */
void mt_alloc_log_add(struct mt_alloc_log *log, uint64_t block_bytes, uint8_t role);
void mt_alloc_log_reserved(struct mt_alloc_log *log, uint64_t event, uint32_t device,
                           int64_t change);
void mt_alloc_log_rewind(struct mt_alloc_log *log);
/* Block size and role of the next allocation; false if there is none. */
bool mt_alloc_log_next(struct mt_alloc_log *log, uint64_t *block_bytes, uint8_t *role);
/* Returns whether this allocation ends a block at its address whose free was lost. Every request
 * does, even one that fails in the replay. The only exception is a block of the initial state that
 * could not be restored: it has no bytes. */
static inline bool mt_alloc_log_ends_old(const struct mt_event *event, uint64_t block_bytes)
{
    return block_bytes || !(event->flags & MT_EVENT_INITIAL);
}

/* Answers about allocations that depend on their stack, requested bytes and role code only. Runs
 * repeat these. Zeroed memory is ready. */
struct mt_alloc_memo {
    struct mt_alloc_answer {
        uint64_t size_bytes;
        uint32_t stack, answer; /* answer: + 1; 0 = not known yet */
        uint8_t role;
    } answers[1024];
};

/* Returns the place of the answer about an allocation, which the caller fills if it is 0. */
static inline struct mt_alloc_answer *mt_alloc_memo_at(struct mt_alloc_memo *memo,
                                                       const struct mt_event *event, uint8_t role)
{
    const uint64_t key = mt_hash_u64(event->size_bytes ^ (uint64_t)event->stack << 32 ^ role);
    struct mt_alloc_answer *at = &memo->answers[key % MT_ARRAY_LEN(memo->answers)];

    if (at->size_bytes != event->size_bytes || at->stack != event->stack || at->role != role)
        *at = (struct mt_alloc_answer){event->size_bytes, event->stack, 0, role};
    return at;
}

/* Moves to the change after next_change. */
void mt_alloc_log_next_change(struct mt_alloc_log *log);
uint64_t mt_alloc_log_bytes(const struct mt_alloc_log *log); /* memory that the log uses */
bool mt_alloc_log_is_sound(struct mt_alloc_log *log, const char **why);
void mt_alloc_log_release(struct mt_alloc_log *log);

#endif
