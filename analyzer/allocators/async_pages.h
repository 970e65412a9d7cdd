/* Physical memory behind a range of addresses: pages of 32 MiB, mapped or not, each with a count of
 * the held bytes in it. A mapped page without held bytes is idle. Idle pages are moved to where
 * memory is missing, the highest first. Offsets are bytes from the start of the range. */
#ifndef MT_ANALYZER_ASYNC_PAGES_H
#define MT_ANALYZER_ASYNC_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"
#include "util.h"

#define MT_ASYNC_PAGE (32 * MT_MIB)

struct mt_async_page {
    uint32_t held_bytes;
    bool is_mapped;
};

/* Zeroed memory is a range of length 0. */
struct mt_async_pages {
    struct mt_async_page *pages;
    size_t count, capacity;
    uint64_t idle;   /* number of idle pages */
    size_t idle_end; /* above all idle ones */
};

void mt_async_pages_release(struct mt_async_pages *pages);

/* Extends the range to at least this length. */
void mt_async_pages_reach(struct mt_async_pages *pages, uint64_t bytes);

void mt_async_pages_hold(struct mt_async_pages *pages, uint64_t offset, uint64_t size_bytes);
void mt_async_pages_let_go(struct mt_async_pages *pages, uint64_t offset, uint64_t size_bytes);

/* Number of unmapped pages in a part of the range. */
uint64_t mt_async_pages_missing(const struct mt_async_pages *pages, uint64_t offset,
                                uint64_t size_bytes);

/* Maps `count` of the missing pages of a held part, the lowest first; takes `moved` of them from
 * the idle ones. */
void mt_async_pages_map(struct mt_async_pages *pages, uint64_t offset, uint64_t count,
                        uint64_t moved);

/* Unmaps this many idle pages; that many must exist. */
void mt_async_pages_unmap_idle(struct mt_async_pages *pages, uint64_t count);

/* Checks the sums of held and backed bytes, and that no page holds more than its length. */
bool mt_async_pages_are_sound(const struct mt_async_pages *pages, uint64_t held_bytes,
                              uint64_t mapped_bytes, const char **why);

#endif
