/* The parts of a trace. All other layers use these terms.
 *
 * A trace is one totally ordered stream of events of one process, and the symbols (strings, frames,
 * stacks, streams, pools, devices: symbols.h) that the events refer to by dense id. */
#ifndef MT_TRACE_EVENT_H
#define MT_TRACE_EVENT_H

#include <stddef.h>
#include <stdint.h>

/* Numbers are part of the trace format: never reuse one, only add. */
enum mt_event_kind {
    MT_EVENT_ALLOC = 1,          /* block handed out; addr, size (see header);
                                    name: its purpose in the recorder's
                                    words, if recorded */
    MT_EVENT_FREE_REQUESTED = 2, /* the program gave the block back */
    MT_EVENT_FREE_COMPLETED = 3, /* the allocator may reuse it (same addr) */
    MT_EVENT_SEGMENT_ALLOC = 4,  /* allocator took a segment from the driver */
    MT_EVENT_SEGMENT_FREE = 5,   /* ... gave it back */
    MT_EVENT_SEGMENT_MAP = 6,    /* ... mapped a range of a reservation */
    MT_EVENT_SEGMENT_UNMAP = 7,  /* ... unmapped it */
    MT_EVENT_OOM = 8,            /* the allocator raised out-of-memory; size =
                                    request (rounded), aux = device free bytes */
    MT_EVENT_ALLOC_FAILED = 9,   /* the driver refused a request of the program; size = requested
                                    bytes */
    MT_EVENT_PHASE_PUSH = 10,    /* name; begins a named range on a thread */
    MT_EVENT_PHASE_POP = 11,     /* name; ends the innermost range of that name
                                    on that thread */
    MT_EVENT_MARK = 12,          /* name; an instant */
    MT_EVENT_EMPTY_CACHE = 13, /* explicit release of cached memory: it causes the segment frees and
                                  unmaps that follow, not the next allocation */
    MT_EVENT_CONTEXT = 14,     /* a device context was created; name */
    MT_EVENT_MEMORY_SAMPLE = 15, /* size = used by process, aux = device free */
    MT_EVENT_DROPPED = 16,       /* size = events lost before this one; name =
                                    why */
    MT_EVENT_END = 17,           /* the trace was closed properly */
    MT_EVENT_COMMUNICATOR = 18,  /* NCCL's report about a communicator; addr = its id (0 = unknown),
                                    size = number of ranks (0 = unknown), aux = own rank, device;
                                    name = the range of NCCL that reports it */
    MT_EVENT_BUFFER_REGISTERED = 19,  /* with a communicator; addr, size; aux = id of the
                                         communicator (0 = unknown); name = the call */
    MT_EVENT_BUFFER_DEREGISTERED = 20 /* the reverse */
};
enum { MT_EVENT_KIND_COUNT = MT_EVENT_BUFFER_DEREGISTERED + 1 };

enum mt_event_flags {
    /* State at the start of a trace that begins in the middle of a run, not an event during the
     * trace: all such events come first. Segments as SEGMENT_ALLOC (or SEGMENT_MAP if expandable),
     * live blocks as ALLOC with aux = block size, blocks that wait for streams as ALLOC followed by
     * FREE_REQUESTED. A segment's aux, if not 0, is the largest request that its pool serves (1
     * MiB: PyTorch's small pool). The time is that of the first real event. */
    MT_EVENT_INITIAL = 1 << 0,
    /* The segment or block belongs to an expandable segment. */
    MT_EVENT_EXPANDABLE = 1 << 1,
    /* aux (the block size of an ALLOC) is derived, not recorded, and may be too small by up to 1
     * MiB: PyTorch keeps a remainder of up to 1 MiB in a large block. */
    MT_EVENT_SIZE_DERIVED = 1 << 2,
    /* The program chose the address of the ALLOC. */
    MT_EVENT_AT_ADDRESS = 1 << 3,
    /* No program requested the ALLOC: PyTorch cuts free space with it, and frees it after the next
     * ALLOC, which is at the address where this one ends, because the program chose that. */
    MT_EVENT_GAP = 1 << 4
};

#define MT_NO_ID UINT32_MAX

/* The largest sequence number: the sum of two of them and a block does not wrap. */
#define MT_MAX_SEQ (UINT64_MAX / 4)

/* One event, decoded. Fields that a kind does not use are 0 (ids: MT_NO_ID). */
struct mt_event {
    uint64_t seq;  /* position in the total order: 0, 1, 2, ...; at most MT_MAX_SEQ */
    uint64_t t_ns; /* Unix time in nanoseconds; never decreases */
    uint64_t addr;
    uint64_t size_bytes; /* requested bytes unless the header says rounded */
    uint64_t aux_bytes;  /* alloc: block size if recorded, else 0; see kinds */
    uint32_t stack;      /* symbols: stack id, MT_NO_ID = none recorded */
    uint32_t name;       /* symbols: string id */
    uint32_t stream;     /* symbols: stream id (0 = default stream) */
    uint16_t thread;     /* symbols: thread id (0 = unknown or main) */
    uint16_t device;     /* symbols: device index, as the program counts */
    uint16_t heap;       /* symbols: allocator instance; 0 = the driver */
    uint16_t pool;       /* symbols: pool id; 0 = default pool */
    uint8_t kind;        /* enum mt_event_kind */
    uint8_t flags;       /* enum mt_event_flags */
    uint8_t reserved[2];
};

static inline int mt_event_is_segment(const struct mt_event *event)
{
    return event->kind >= MT_EVENT_SEGMENT_ALLOC && event->kind <= MT_EVENT_SEGMENT_UNMAP;
}

/* Events that change or try to change memory. They get a row in the counters. */
static inline int mt_event_is_memory(const struct mt_event *event)
{
    return event->kind >= MT_EVENT_ALLOC && event->kind <= MT_EVENT_ALLOC_FAILED;
}

/* Kinds that belong to one heap. */
static inline int mt_event_kind_has_heap(unsigned kind)
{
    return (kind >= MT_EVENT_ALLOC && kind <= MT_EVENT_ALLOC_FAILED) ||
           kind == MT_EVENT_EMPTY_CACHE;
}

/* "alloc", "free_requested", ...: the words of dump, JSON and documents;
 * "unknown" for other numbers. */
const char *mt_event_kind_name(unsigned kind);

/* Events that are read together. */
struct mt_event_batch {
    struct mt_event *events; /* borrowed until the next call; the caller may
                                write into them */
    size_t count;
    /* If not 0, all events of heaps belong to heap only_heap - 1, and there are no memory
     * samples. */
    uint32_t only_heap;
};

#endif
