#include "torch_tags.h"

#include <string.h>

#include "buf.h"
#include "event.h"
#include "grow.h"
#include "torch.h"
#include "torch_names.h"

enum {
    GONE = 0,              /* in the map of live blocks: freed, and not allocated again */
    MAX_JOINED_BYTES = 512 /* of one block; above it, only the newest text is kept */
};

static enum mt_status set_tag(struct mt_torch_records *r, size_t entry, uint32_t text)
{
    if (entry >= r->tag_count) {
        enum mt_status status = mt_grow_zeroed(&r->tags, &r->tag_count, entry + 1, sizeof *r->tags);
        if (status != MT_OK)
            return status;
    }
    r->tags[entry] = text;
    return MT_OK;
}

enum mt_status mt_torch_read_tag(struct mt_torch_records *r, struct mt_pickle *pickle,
                                 const struct mt_pickle_value *value, size_t entry)
{
    uint32_t text;
    enum mt_status status = mt_torch_string(r, pickle, value, &text);

    return status || !text ? status : set_tag(r, entry, text);
}

enum mt_status mt_torch_copy_tag(struct mt_torch_records *r, size_t from)
{
    uint32_t text = mt_torch_tag(r, from);

    return text ? set_tag(r, r->entry_count - 1, text) : MT_OK;
}

/* "old; added" as a string. A text that is already there is not repeated. */
static enum mt_status join(struct mt_symbols *symbols, uint32_t old, uint32_t added,
                           uint32_t *joined)
{
    const char *before = old ? mt_symbols_text(symbols, old) : "";
    const char *after = mt_symbols_text(symbols, added);
    struct mt_buf text = {0};
    enum mt_status status = MT_ERR_MEMORY;

    *joined = added;
    if (!*before || strcmp(before, after) == 0 ||
        strlen(before) + strlen(after) + 2 > MAX_JOINED_BYTES)
        return MT_OK;
    mt_buf_printf(&text, "%s; %s", before, after);
    if (!text.failed)
        status = mt_symbols_string(symbols, text.data, text.length, joined);
    mt_buf_release(&text);
    return status;
}

/* Adds the text of `entry` to the block that is alive at its address: `live` has the allocation of
 * each block of the window, as its index + 1. */
static enum mt_status annotate(struct mt_torch *torch, const struct mt_torch_device *device,
                               size_t entry, struct mt_map *live, struct mt_map *initial)
{
    struct mt_torch_records *r = &torch->records;
    uint64_t addr = r->entries[entry].addr;
    uint32_t added = mt_torch_tag(r, entry), at = mt_map_get(live, addr), old, joined;
    enum mt_status status;

    if (!added || at == GONE)
        return MT_OK;
    if (at != MT_MAP_NONE) {
        status = join(r->symbols, mt_torch_tag(r, device->first + at - 1), added, &joined);
        return status ? status : set_tag(r, device->first + at - 1, joined);
    }
    old = mt_map_get(initial, addr);
    status = join(r->symbols, old == MT_MAP_NONE ? 0 : old, added, &joined);
    return status ? status : mt_map_set(initial, addr, joined);
}

static bool has_annotations(const struct mt_torch *torch, const struct mt_torch_device *device)
{
    size_t i;

    for (i = 0; i < device->count; i++) {
        if (torch->records.entries[device->first + i].kind == MT_TORCH_ANNOTATE)
            return true;
    }
    return false;
}

enum mt_status mt_torch_apply_annotations(struct mt_torch *torch, uint32_t device,
                                          struct mt_map *initial)
{
    const struct mt_torch_device *d = &torch->devices[device];
    struct mt_map live = {0};
    enum mt_status status = MT_OK;
    size_t i;

    if (!torch->records.tag_count || d->count > UINT32_MAX - 2 || !has_annotations(torch, d))
        return MT_OK;
    for (i = 0; i < d->count && !status; i++) {
        const struct mt_torch_entry *entry = &torch->records.entries[d->first + i];

        if (entry->kind == MT_EVENT_ALLOC)
            status = mt_map_set(&live, entry->addr, (uint32_t)i + 1);
        else if (entry->kind == MT_EVENT_FREE_COMPLETED)
            status = mt_map_set(&live, entry->addr, GONE);
        else if (entry->kind == MT_TORCH_ANNOTATE)
            status = annotate(torch, d, d->first + i, &live, initial);
    }
    mt_map_release(&live);
    return status;
}
