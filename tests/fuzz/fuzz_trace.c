/* Any bytes as a trace in memory: every frame decoded, then read again from
 * several places. Events ascend, within a frame and from one frame to the next. */
#include <stdint.h>
#include <stdlib.h>

#include "trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_some(struct mt_source *source, unsigned batches)
{
    struct mt_event_batch batch;
    struct mt_error error;
    uint64_t next_seq = 0, last_t_ns = 0;

    while (batches-- && mt_source_next(source, &batch, &error) == MT_OK)
        for (size_t i = 0; i < batch.count; i++) {
            if (batch.events[i].seq < next_seq || batch.events[i].seq > MT_MAX_SEQ ||
                batch.events[i].t_ns < last_t_ns)
                abort();
            next_seq = batch.events[i].seq + 1;
            last_t_ns = batch.events[i].t_ns;
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t targets[] = {0, 1, 1000, UINT64_MAX};
    const struct mt_zstd_frame_info *frames;
    struct mt_source *source = NULL;
    struct mt_error error;
    size_t count;

    if (mt_trace_open_memory(data, size, &source, &error) != MT_OK)
        return 0;
    read_some(source, UINT32_MAX);
    if (mt_trace_frames(source, &frames, &count, &error) == MT_OK)
        for (size_t i = 0; i < 4 && source->ops->seek; i++)
            if (source->ops->seek(source, targets[i], i % 2, &error) == MT_OK)
                read_some(source, 2);
    if (mt_source_rewind(source, &error) == MT_OK)
        read_some(source, UINT32_MAX);
    mt_source_close(source);
    return 0;
}
