#include "event.h"

#include "util.h"

const char *mt_event_kind_name(unsigned kind)
{
    static const char *const names[] = {
        [MT_EVENT_ALLOC] = "alloc",
        [MT_EVENT_FREE_REQUESTED] = "free_requested",
        [MT_EVENT_FREE_COMPLETED] = "free_completed",
        [MT_EVENT_SEGMENT_ALLOC] = "segment_alloc",
        [MT_EVENT_SEGMENT_FREE] = "segment_free",
        [MT_EVENT_SEGMENT_MAP] = "segment_map",
        [MT_EVENT_SEGMENT_UNMAP] = "segment_unmap",
        [MT_EVENT_OOM] = "oom",
        [MT_EVENT_ALLOC_FAILED] = "alloc_failed",
        [MT_EVENT_PHASE_PUSH] = "phase_push",
        [MT_EVENT_PHASE_POP] = "phase_pop",
        [MT_EVENT_MARK] = "mark",
        [MT_EVENT_EMPTY_CACHE] = "empty_cache",
        [MT_EVENT_CONTEXT] = "context",
        [MT_EVENT_MEMORY_SAMPLE] = "memory_sample",
        [MT_EVENT_DROPPED] = "dropped",
        [MT_EVENT_END] = "end",
        [MT_EVENT_COMMUNICATOR] = "communicator",
        [MT_EVENT_BUFFER_REGISTERED] = "buffer_registered",
        [MT_EVENT_BUFFER_DEREGISTERED] = "buffer_deregistered",
    };

    return kind < MT_ARRAY_LEN(names) && names[kind] ? names[kind] : "unknown";
}
