/* The tape: a memory-mapped file in which a traced process leaves what it has
 * not written to its trace yet. Threads append raw events to slots of their
 * own; names, stacks and code objects go to one append-only log. A reader of the
 * tape (the writer thread of that process, or memtrace after the process was
 * killed) finds everything that was committed: the page cache outlives the
 * process.
 *
 *     header | slots | definitions (append-only log)
 *
 * A tape is read only on the machine and by the version of memtrace that wrote it, so its layout
 * may change, unlike the format of the trace. All integers are native. */
#ifndef MT_COLLECTOR_TAPE_H
#define MT_COLLECTOR_TAPE_H

#include <stdatomic.h>
#include <stdint.h>

#include "event.h"

#define MT_TAPE_MAGIC   UINT64_C(0x31657061746d656d) /* "memtape1" */
#define MT_TAPE_VERSION 4u

/* Size of the header frame of a recorded trace, with room for facts that become known late. */
enum { MT_TAPE_HEADER_BYTES = 8192 };

/* Raw event kinds are those of event.h. */

/* Allocators, by the numbers that sources use; the trace has their names. All except MT_RAW_PYTORCH
 * belong to the driver. */
enum mt_raw_heap {
    MT_RAW_DRIVER = 0, /* "driver": linear device memory */
    MT_RAW_PYTORCH,    /* "pytorch": blocks and segments of its allocator */
    MT_RAW_MANAGED,    /* "driver:managed" */
    MT_RAW_ARRAY,      /* "driver:array": size is a lower bound */
    MT_RAW_ASYNC,      /* "driver:async": stream-ordered, `id` = pool */
    MT_RAW_VIRTUAL,    /* "driver:virtual": physical memory of cuMemCreate */
    MT_RAW_GRAPH,      /* "driver:graph": memory nodes of graphs */
    MT_RAW_HOST,       /* "driver:host": pinned or registered, not on the device */
    MT_RAW_RESERVED,   /* "driver:reserved": address ranges without memory */
    MT_RAW_MAPPED,     /* "driver:mapped": where physical memory is mapped; aux = its handle */
    MT_RAW_IMPORTED,   /* "driver:imported": another process owns it */
    MT_RAW_HEAP_COUNT
};

/* 64 bytes: one cache line. Sources fill in everything but seq and ticks. */
struct mt_raw_event {
    uint64_t seq;   /* global order; a thread that dies while it records leaves a gap */
    uint64_t ticks; /* of ticks.h */
    uint64_t addr;
    uint64_t size_bytes;
    uint64_t aux_bytes; /* as in event.h; PHASE_POP: number of the thread that began the range, 0 =
                           this one */
    uint64_t stream;    /* the driver's handle; PyTorch's is the same */
    uint32_t python_stack, native_stack; /* ids of definitions, 0 = none */
    uint32_t id; /* of the name (phases, marks, contexts, drops) or the pool; 0 = none */
    uint8_t kind, flags, heap;
    uint8_t device; /* 255 = not known: the drain uses the thread's last known device */
};

/* Used in MT_DEFINE_THREAD instead of a thread number. The definition then names the thread that
 * has this OS id: */
#define MT_THREAD_RENAMED UINT64_C(0) /* the name may change again */
#define MT_THREAD_GIVEN   UINT64_MAX  /* no later definition replaces the name */

/* Kinds of definitions. Each definition is a header and a payload, padded to 8 bytes. Ids of each
 * kind count from 1. */
enum mt_definition_kind {
    MT_DEFINE_NAME = 1,     /* payload: text */
    MT_DEFINE_FACT,         /* text "key=value" for the trace's header (facts.h) */
    MT_DEFINE_CODE,         /* struct mt_code_definition and texts (python_code.h) */
    MT_DEFINE_PYTHON_STACK, /* u64 words, outermost first: code id << 32 | bytecode offset */
    MT_DEFINE_NATIVE_STACK, /* u64 words, outermost first: return addresses */
    MT_DEFINE_MODULE,       /* struct mt_module_definition and path (modules.h) */
    MT_DEFINE_POOL,         /* u64 words: the pool's two numbers */
    MT_DEFINE_DEVICE,       /* u64 total bytes, u64 index, text: name */
    MT_DEFINE_THREAD,       /* u64 thread number, u64 OS id, text: name (a later one replaces it) */
    MT_DEFINE_KIND_COUNT
};

struct mt_definition {
    uint32_t payload_bytes;
    uint32_t kind;
    uint32_t id;
    uint32_t reserved;
    /* payload follows */
};

#define MT_SLOT_BYTES  32768u
#define MT_SLOT_EVENTS (MT_SLOT_BYTES / 64u - 1u)

enum mt_slot_state { MT_SLOT_FREE, MT_SLOT_OPEN, MT_SLOT_FULL };

/* Events are committed by raising `committed` (release) after they are written. */
struct mt_slot {
    _Atomic uint32_t state;
    _Atomic uint32_t committed;
    uint32_t thread; /* number in the tape, from 1 */
    uint8_t reserved[52];
    struct mt_raw_event events[MT_SLOT_EVENTS];
};

/* How ticks relate to time; see ticks.h. */
struct mt_clock_point {
    uint64_t ticks, unix_ns;
};

/* The part of the recording that is certainly in the trace file. It is updated after each write to
 * the file. A reader of a dead process's tape cuts the trace to `trace_bytes` and continues at raw
 * event `next_raw`. A tape has two commits that are written alternately; `current_commit` is the
 * index of the complete one. */
struct mt_tape_commit {
    uint64_t trace_bytes, next_raw, events_written, dropped_written, last_t_ns;
    /* For a ring (ring.h): number of the part that the fields above describe, events of earlier
     * parts, and how often there was a reason to save it: a request was refused for lack of memory,
     * or the memory of a device rose above ring_above_bytes. */
    uint64_t part, events_before, save_reasons;
    uint64_t part_before_events; /* in the file of the part before, including initial ones */
    uint64_t began_t_ns;         /* of the recording: 0 = with the process; MT_TAPE_IDLE: not yet */
};

/* With `record --idle`, the collector only follows what is alive until it is asked to begin. */
#define MT_TAPE_IDLE        UINT64_MAX
#define MT_TAPE_OFF         "everything: the recording was off while this process ran"
#define MT_TAPE_NEVER_BEGUN MT_TAPE_OFF "; SIGUSR2 to memtrace record starts it"
#define MT_TAPE_TOO_LATE    "everything: this process ended before its recording began"

enum mt_tape_ask { MT_ASK_NOTHING, MT_ASK_BEGIN, MT_ASK_STOP };

struct mt_tape {
    uint64_t magic;
    uint32_t version, slot_count;
    uint64_t file_bytes, definitions_offset, definitions_capacity, slots_offset;
    uint64_t process_id, started_unix_ns;
    uint64_t locked;           /* the process holds a lock on the file while it lives */
    uint64_t ring_ns;          /* only the last events are kept, at least of this time; 0 = all */
    uint64_t ring_above_bytes; /* 0 = no limit */
    /* The trace that the tape belongs to. The header of the trace has the same random number; if
     * it cannot be read, device and inode identify the file. */
    uint64_t recording_id, trace_device, trace_inode;
    struct mt_clock_point first_point;
    struct mt_clock_point last_points[2]; /* written alternately; last_point: the valid one */
    _Atomic uint32_t last_point, closed;
    struct mt_tape_commit commits[2];
    _Atomic uint32_t current_commit, thread_count;
    _Atomic uint64_t definitions_bytes;    /* committed */
    _Atomic uint64_t definitions_reserved; /* bytes of the log that have disk space */
    _Atomic uint64_t dropped_definitions;
    _Atomic uint64_t dropped_events; /* no free slot, or no disk */
    _Atomic uint64_t asked;          /* enum mt_tape_ask, of `memtrace record` (mt_tape_ask) */
    uint64_t charged_bytes;          /* only in a copy (mt_tape_open): bytes in the budget */
    uint8_t pad[56];
    _Atomic uint64_t next_seq; /* alone in its cache line, because every event increments it */
    uint8_t pad_after[56];
};

_Static_assert(sizeof(struct mt_raw_event) == 64, "an event is a cache line");
_Static_assert(sizeof(struct mt_tape) <= 4096, "the header is one page");
_Static_assert(sizeof(struct mt_slot) == MT_SLOT_BYTES, "slots have no padding");

static inline const struct mt_tape_commit *mt_tape_last_commit(const struct mt_tape *tape)
{
    return &tape->commits[atomic_load(&tape->current_commit) & 1u];
}

/* What the trace of a process lacks whose recording never began. */
static inline const char *mt_tape_never_begun(const struct mt_tape *tape)
{
    const uint64_t asked = atomic_load(&tape->asked);

    return asked == MT_ASK_NOTHING ? MT_TAPE_NEVER_BEGUN
           : asked == MT_ASK_BEGIN ? MT_TAPE_TOO_LATE
                                   : MT_TAPE_OFF;
}

static inline struct mt_slot *mt_tape_slot(struct mt_tape *tape, uint32_t index)
{
    return (struct mt_slot *)(void *)((char *)tape + tape->slots_offset) + index;
}

#endif
