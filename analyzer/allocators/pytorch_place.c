#include "pytorch_place.h"

#include "check.h"
#include "util.h"

static bool holds(const struct mt_block *block, const struct mt_policy_request *request)
{
    uint64_t offset = request->addr - block->addr;

    return block->state == MT_BLOCK_FREE && request->addr >= block->addr &&
           offset < block->size_bytes && request->block_bytes <= block->size_bytes - offset;
}

/* Returns the free block of a pool and stream that contains the request, or MT_NO_BLOCK. */
static uint32_t find_holder(const struct mt_pytorch *self,
                            const struct mt_pytorch_free_list *free_list,
                            const struct mt_policy_request *request)
{
    struct mt_free_cursor at = mt_free_set_find(&free_list->free, request->block_bytes, 0);

    for (; at.entry; at = mt_free_set_next(&free_list->free, at)) {
        if (holds(&self->store.blocks[at.entry->block], request))
            return at.entry->block;
    }
    return MT_NO_BLOCK;
}

/* The same in the small or the large pool of the owner. */
static enum mt_status find(struct mt_pytorch *self, const struct mt_policy_request *request,
                           uint32_t *block)
{
    uint32_t i;

    *block = self->place_hint;
    if (*block < self->store.count && holds(&self->store.blocks[*block], request) &&
        self->store.blocks[*block].pool / 2 == request->pool &&
        self->store.blocks[*block].stream == request->stream)
        return MT_OK;
    for (i = 0; i < 2; i++) {
        const struct mt_pytorch_free_list *free_list =
            mt_pytorch_free_list(self, 2u * request->pool + i, request->stream);
        *block = find_holder(self, free_list, request);
        if (*block != MT_NO_BLOCK)
            return MT_OK;
    }
    return MT_ERR_FORMAT;
}

/* Leaves the request's part in *id, in no set; files the parts to its left and right. */
static void cut_out(struct mt_pytorch *self, const struct mt_policy_request *request, uint32_t *id)
{
    uint32_t left = *id, right = MT_NO_BLOCK;
    uint64_t below = request->addr - self->store.blocks[left].addr;

    mt_pytorch_remove(self, left);
    if (below)
        mt_block_split(&self->store, left, below, id);
    if (below) {
        mt_pytorch_note_split(self, left);
        mt_pytorch_insert(self, left);
    }
    if (self->store.blocks[*id].size_bytes > request->block_bytes)
        mt_block_split(&self->store, *id, request->block_bytes, &right);
    if (right != MT_NO_BLOCK)
        mt_pytorch_note_split(self, *id);
    if (right != MT_NO_BLOCK)
        mt_pytorch_insert(self, right);
    self->place_hint = right;
}

enum mt_status mt_pytorch_place(struct mt_pytorch *self, const struct mt_policy_request *request,
                                uint32_t *id)
{
    enum mt_status status = request->block_bytes ? find(self, request, id) : MT_ERR_FORMAT;
    struct mt_block *block;
    uint64_t whole;
    bool was_split;

    if (status != MT_OK)
        return status;
    was_split = mt_block_is_split(&self->store.blocks[*id]);
    whole = self->store.blocks[*id].size_bytes;
    cut_out(self, request, id);
    block = &self->store.blocks[*id];
    MT_ASSERT(block->addr == request->addr && block->size_bytes == request->block_bytes);
    block->state = MT_BLOCK_ALLOCATED;
    block->requested_bytes = mt_min_u64(request->size_bytes, block->size_bytes);
    mt_count_alloc(&self->counters, block, whole - block->size_bytes, was_split);
    return MT_OK;
}

static bool is_mapped(const struct mt_pytorch *self, uint32_t id)
{
    return id != MT_NO_BLOCK && self->store.blocks[id].state != MT_BLOCK_UNMAPPED;
}

bool mt_pytorch_is_idle_segment(struct mt_pytorch *self, const struct mt_policy_request *request)
{
    const struct mt_block *block;
    uint32_t id;

    if (!request->block_bytes || find(self, request, &id) != MT_OK)
        return false;
    block = &self->store.blocks[id];
    return block->addr == request->addr && block->size_bytes == request->block_bytes &&
           !is_mapped(self, block->previous) && !is_mapped(self, block->next);
}
