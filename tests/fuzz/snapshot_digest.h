/* Reads bytes as a PyTorch snapshot and sums up all that they say, for
 * comparing two ways of reading. */
#ifndef SNAPSHOT_DIGEST_H
#define SNAPSHOT_DIGEST_H

#include <string.h>

#include "torch.h"

struct snapshot_digest {
    enum mt_status status;
    struct mt_error error;
    uint64_t events, hash;
};

static inline uint64_t hash_text(const char *text)
{
    return mt_hash_bytes(text, strlen(text));
}

static inline uint64_t hash_event(const struct mt_symbols *symbols, const struct mt_event *event)
{
    uint64_t hash = mt_hash_u64(event->seq ^ event->t_ns * 3) ^ mt_hash_u64(event->addr);
    uint32_t stack = event->stack;

    hash = mt_hash_u64(hash + event->size_bytes * 5 + event->aux_bytes * 7 + event->kind);
    hash = mt_hash_u64(hash + symbols->streams[event->stream].handle + event->flags);
    hash = mt_hash_u64(hash + symbols->pools[event->pool].id[0] + event->device * 11u);
    hash = mt_hash_u64(hash + event->heap);
    if (event->name != MT_NO_ID)
        hash ^= hash_text(mt_symbols_text(symbols, event->name));
    for (; stack != MT_NO_ID; stack = symbols->stacks[stack].parent) {
        const struct mt_frame *frame = &symbols->frames[symbols->stacks[stack].frame];
        hash = mt_hash_u64(hash + frame->line +
                           hash_text(mt_symbols_text(symbols, frame->function)) * 13 +
                           hash_text(mt_symbols_text(symbols, frame->file)) * 17);
    }
    return hash;
}

static inline struct snapshot_digest digest_snapshot(const void *bytes, size_t length,
                                                     bool no_short_cuts)
{
    struct snapshot_digest digest = {.status = MT_OK};
    struct mt_event_batch batch;
    struct mt_source *source = NULL;
    struct mt_feed *feed = NULL;

    digest.error.offset = MT_NO_OFFSET;
    digest.status = mt_feed_open_memory(bytes, length, &feed, &digest.error);
    if (digest.status == MT_OK)
        digest.status = mt_torch_open(feed, no_short_cuts, &source, &digest.error);
    mt_feed_close(feed);
    while (source && mt_source_next(source, &batch, &digest.error) == MT_OK) {
        for (size_t i = 0; i < batch.count; i++)
            digest.hash = mt_hash_u64(digest.hash + hash_event(&source->symbols, &batch.events[i]));
        digest.events += batch.count;
    }
    mt_source_close(source);
    return digest;
}

#endif
