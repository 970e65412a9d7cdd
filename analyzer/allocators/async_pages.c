#include "async_pages.h"

#include <stdlib.h>

#include "check.h"
#include "grow.h"

static const uint64_t PAGE = MT_ASYNC_PAGE;

void mt_async_pages_release(struct mt_async_pages *pages)
{
    free(pages->pages);
    *pages = (struct mt_async_pages){0};
}

void mt_async_pages_reach(struct mt_async_pages *pages, uint64_t bytes)
{
    size_t count = (size_t)(mt_round_up(bytes, PAGE) / PAGE);

    if (count <= pages->count)
        return;
    mt_grow_to(&pages->pages, &pages->capacity, count, sizeof *pages->pages);
    while (pages->count < count)
        pages->pages[pages->count++] = (struct mt_async_page){0, false};
}

/* Bytes of [offset, end) in the page of offset. */
static uint64_t part_of_page(uint64_t offset, uint64_t end)
{
    return mt_min_u64(end, mt_round_down(offset, PAGE) + PAGE) - offset;
}

void mt_async_pages_hold(struct mt_async_pages *pages, uint64_t offset, uint64_t size_bytes)
{
    uint64_t end = offset + size_bytes, part;

    for (; offset < end; offset += part) {
        struct mt_async_page *page = &pages->pages[offset / PAGE];
        part = part_of_page(offset, end);
        MT_ASSERT(offset / PAGE < pages->count && page->held_bytes + part <= PAGE);
        pages->idle -= page->is_mapped && !page->held_bytes;
        page->held_bytes += (uint32_t)part;
    }
}

void mt_async_pages_let_go(struct mt_async_pages *pages, uint64_t offset, uint64_t size_bytes)
{
    uint64_t end = offset + size_bytes, part;

    for (; offset < end; offset += part) {
        size_t at = (size_t)(offset / PAGE);
        struct mt_async_page *page = &pages->pages[at];
        part = part_of_page(offset, end);
        MT_ASSERT(at < pages->count && page->held_bytes >= part);
        page->held_bytes -= (uint32_t)part;
        if (!page->is_mapped || page->held_bytes)
            continue;
        pages->idle++;
        if (pages->idle_end <= at)
            pages->idle_end = at + 1;
    }
}

uint64_t mt_async_pages_missing(const struct mt_async_pages *pages, uint64_t offset,
                                uint64_t size_bytes)
{
    uint64_t at, end = mt_round_up(offset + size_bytes, PAGE) / PAGE, missing = 0;

    MT_ASSERT(end <= pages->count);
    for (at = offset / PAGE; at < end; at++)
        missing += !pages->pages[at].is_mapped;
    return missing;
}

void mt_async_pages_map(struct mt_async_pages *pages, uint64_t offset, uint64_t count,
                        uint64_t moved)
{
    struct mt_async_page *page;

    MT_ASSERT(moved <= count && moved <= pages->idle);
    mt_async_pages_unmap_idle(pages, moved);
    for (page = &pages->pages[offset / PAGE]; count > 0; page++) {
        MT_ASSERT(page < pages->pages + pages->count);
        count -= !page->is_mapped;
        page->is_mapped = true;
    }
}

void mt_async_pages_unmap_idle(struct mt_async_pages *pages, uint64_t count)
{
    MT_ASSERT(count <= pages->idle);
    while (count > 0) {
        MT_ASSERT(pages->idle_end > 0);
        struct mt_async_page *page = &pages->pages[--pages->idle_end];
        if (!page->is_mapped || page->held_bytes)
            continue;
        page->is_mapped = false;
        pages->idle--;
        count--;
    }
}

bool mt_async_pages_are_sound(const struct mt_async_pages *pages, uint64_t held_bytes,
                              uint64_t mapped_bytes, const char **why)
{
    uint64_t mapped = 0, idle = 0, held = 0;
    size_t i;

    for (i = 0; i < pages->count; i++) {
        const struct mt_async_page *page = &pages->pages[i];
        bool is_idle = page->is_mapped && !page->held_bytes;
        MT_SOUND(why, page->held_bytes <= PAGE);
        MT_SOUND(why, page->is_mapped || !page->held_bytes);
        MT_SOUND(why, !is_idle || i < pages->idle_end);
        mapped += page->is_mapped;
        idle += is_idle;
        held += page->held_bytes;
    }
    MT_SOUND(why, idle == pages->idle);
    MT_SOUND(why, held == held_bytes);
    MT_SOUND(why, mapped * PAGE == mapped_bytes);
    return true;
}
