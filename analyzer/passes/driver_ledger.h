/* Follows all events of a trace for the process's driver memory: by heap, in total, at its peak,
 * and at the instant of the framework's peak; segments of the framework in it, and owners of the
 * rest; NVML's samples; refused requests.
 *
 * A driver allocation belongs to the framework if a segment of it (or, in a trace without segments,
 * a block) is inside. This is known only after the allocation, so instants noted in between are
 * corrected. */
#ifndef MT_ANALYZER_DRIVER_LEDGER_H
#define MT_ANALYZER_DRIVER_LEDGER_H

#include "block_store.h"
#include "communicators.h"
#include "counters.h"
#include "event.h"
#include "heaps.h"
#include "phases.h"
#include "replay_view.h"
#include "report.h"
#include "source.h"
#include "status.h"

/* State of the driver ledger during and after its pass. */

#define MT_LEDGER_FAILURES 64

struct mt_ledger_block {
    uint64_t addr, bytes, birth_t_ns, birth_event;
    uint32_t stack;
    int32_t phase;         /* of allocation */
    uint32_t physical;     /* of a mapping: index + 1 of the memory behind it */
    uint32_t copy;         /* index + 1 in the device's copies */
    uint32_t heap, device; /* indices in the ledger */
    uint32_t next_free;    /* index + 1, when unused */
    bool is_live, is_framework;
};

/* A heap on a device. */
struct mt_ledger_heap {
    uint16_t heap;
    uint32_t device; /* index */
    struct mt_heap_class is;
    bool has_addresses; /* those of memory that can contain a segment */
    bool is_virtual, is_mapped, is_reserved;
    uint64_t largest_bytes; /* of a block so far, if is_reserved */
    struct mt_heap_use use; /* the report adds name, what and is_device_memory */
};

/* One sample of NVML, with the bytes tracked at that time. */
struct mt_ledger_sample {
    uint64_t t_ns, event, used_bytes, tracked_bytes;
};

/* Samples of NVML with the tracked bytes. */
struct mt_ledger_samples {
    uint64_t count, unknown;         /* unknown: NVML did not report this process */
    struct mt_ledger_sample largest; /* use */
    struct mt_ledger_sample nearest; /* to wanted_t_ns, among those of at least the tracked bytes;
                                        no used bytes: none */
    int64_t least_residual, most_residual;
};

struct mt_ledger_device {
    uint16_t device;
    uint64_t bytes, framework_bytes;            /* of heaps that are memory of the device */
    uint64_t segment_bytes, pool_segment_bytes; /* pool: of private pools */
    struct mt_driver_level peak;
    bool wants_copy, has_copy; /* of the holders after wanted_event */
    uint64_t wanted_event, wanted_t_ns;
    struct mt_driver_level then; /* its bytes */
    struct mt_holding *copies;   /* one per block; those of the framework have no bytes */
    uint32_t copy_count;
    struct mt_ledger_samples samples[MT_TRACKED_COUNT];
    struct mt_free_set places; /* (address, block) of blocks with addresses */
    struct mt_unmapped {       /* physical memory, newest last */
        uint32_t block;
        uint64_t birth_event;
    } * unmapped;
    size_t unmapped_count, unmapped_capacity;
    bool is_out_of_space; /* see no_space in struct mt_driver_report */
    struct mt_driver_failure no_space;
    uint64_t no_space_oom;
    bool was_refused; /* a request for device memory was refused, and none was granted later */
    struct mt_driver_failure refused; /* the first refusal after the last grant */
};

struct mt_driver_ledger {
    struct mt_arena *arena; /* of copies */
    const struct mt_source *source;
    struct mt_phases *phases;
    uint16_t framework_heap; /* if the trace has one */
    bool has_framework, has_driver, has_segments;
    bool was_out_of_space; /* a device was */
    struct mt_map slots;   /* heap, device and address -> block */
    struct mt_ledger_block *blocks;
    size_t block_count, block_capacity;
    uint32_t block_free;
    struct mt_map heap_slots, device_slots;
    struct mt_ledger_heap *heaps;
    size_t heap_count, heap_capacity;
    struct mt_ledger_device *devices;
    size_t device_count, device_capacity;
    uint64_t next_wanted;
    struct mt_driver_failure failures[MT_LEDGER_FAILURES]; /* the first ones */
    uint64_t failure_count;                                /* of all */
    struct mt_communicators communicators;
};

/* Call it before a pass over all heaps, while the source still has its own view. Arena, phases and
 * wanted instants are set, the rest is zero. */
void mt_driver_ledger_begin(struct mt_driver_ledger *ledger, const struct mt_source *source);
void mt_driver_ledger_event(struct mt_driver_ledger *ledger, const struct mt_event *event);

/* Call it after the last event. */
void mt_driver_ledger_finish(struct mt_driver_ledger *ledger);

/* Does all of the steps above, from the start of the source. */
enum mt_status mt_driver_ledger_read(struct mt_driver_ledger *ledger, struct mt_source *source,
                                     struct mt_error *error) MT_MUST_USE;

/* Returns the bytes of memory that the ledger uses for live blocks. */
uint64_t mt_driver_ledger_bytes(const struct mt_driver_ledger *ledger);
void mt_driver_ledger_release(struct mt_driver_ledger *ledger);

/* Records of the ledger at single instants: samples of NVML, and holders of the memory. */

/* Needs zeroed memory with arena and phases set. Requests a copy of the holders of a device's
 * memory after an event, and the sample nearest to its time. */
void mt_driver_ledger_want(struct mt_driver_ledger *ledger, uint16_t device, uint64_t event,
                           uint64_t t_ns);

/* Part of the survey: contents of each pool of PyTorch's allocator on one device. Memory: a row for
 * each pool up to the highest number. */

struct mt_pool_row {
    struct mt_level reserved, allocated;
    uint64_t segments, allocations;
    uint64_t first_event, first_t_ns; /* of its first block */
    uint32_t first_stack;             /* of the first block with a stack, MT_NO_ID */
    bool is_used;
};

/* Zeroed memory has no pools. */
struct mt_pool_ledger {
    struct mt_pool_row *rows; /* by pool number */
    uint32_t row_count;
    size_t row_capacity;
};

void mt_pool_ledger_release(struct mt_pool_ledger *ledger);

/* Takes an allocation; one that was not served counts without bytes. */
void mt_pool_ledger_alloc(struct mt_pool_ledger *ledger, const struct mt_event *event,
                          const struct mt_replay_view *view);

/* Takes the first free event of a block. */
void mt_pool_ledger_free(struct mt_pool_ledger *ledger, const struct mt_replay_view *view);
void mt_pool_ledger_segment(struct mt_pool_ledger *ledger, const struct mt_event *event,
                            const struct mt_replay_view *view);

#endif
