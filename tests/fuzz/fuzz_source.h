/* What holds for the events of every importer: they come in order, refer to what there is, and are
 * the same in a second reading. */
#ifndef MT_TESTS_FUZZ_SOURCE_H
#define MT_TESTS_FUZZ_SOURCE_H

#include "fuzz.h"
#include "importers.h"
#include "map.h"

struct fuzz_reading {
    uint64_t count, t_ns, hash, lost;
    bool past_initial;
};

static inline void fuzz_take(struct fuzz_reading *reading, const struct mt_source *source,
                             const struct mt_event *event)
{
    bool is_initial = event->flags & MT_EVENT_INITIAL;

    FUZZ_CHECK(event->seq == reading->count++);
    FUZZ_CHECK(event->t_ns >= reading->t_ns);
    FUZZ_CHECK(!is_initial || !reading->past_initial);
    FUZZ_CHECK(event->thread < source->symbols.thread_count);
    FUZZ_CHECK(event->heap < source->symbols.heap_count);
    FUZZ_CHECK(event->stack == MT_NO_ID || event->stack < source->symbols.stack_count);
    reading->past_initial |= !is_initial;
    reading->lost += event->kind == MT_EVENT_DROPPED;
    reading->t_ns = event->t_ns;
    reading->hash = mt_hash_u64(reading->hash ^ event->addr ^ event->size_bytes ^ event->kind);
}

/* check: what else holds for an event of this format. */
static inline struct fuzz_reading fuzz_read(struct mt_source *source,
                                            void (*check)(const struct mt_source *source,
                                                          const struct mt_event *event))
{
    struct fuzz_reading reading = {0};
    struct mt_event_batch batch;
    struct mt_error error;

    while (mt_source_next(source, &batch, &error) == MT_OK)
        for (size_t i = 0; i < batch.count; i++) {
            fuzz_take(&reading, source, &batch.events[i]);
            check(source, &batch.events[i]);
        }
    FUZZ_CHECK(mt_source_rewind(source, &error) == MT_OK);
    return reading;
}

static inline struct fuzz_reading fuzz_read_twice(struct mt_source *source,
                                                  void (*check)(const struct mt_source *source,
                                                                const struct mt_event *event))
{
    struct fuzz_reading first = fuzz_read(source, check), second = fuzz_read(source, check);

    FUZZ_CHECK(first.count && first.count == second.count && first.hash == second.hash);
    return first;
}

#endif
