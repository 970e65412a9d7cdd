/* State of the driver ledger during and after its pass. */
#ifndef MT_ANALYZER_LEDGER_STATE_H
#define MT_ANALYZER_LEDGER_STATE_H

#include "communicators.h"
#include "free_set.h"
#include "heaps.h"
#include "phases.h"
#include "report.h"
#include "source.h"

#define MT_LEDGER_FAILURES 64
/* No allocation is larger, so sums of sizes in hostile files do not overflow. */
#define MT_LEDGER_MAX_BYTES (UINT64_C(1) << 48)

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
    bool is_virtual, is_mapped;
    uint64_t allocations, frees, failures;
    uint64_t live_blocks, live_bytes, peak_bytes, peak_t_ns, peak_event;
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
    bool was_refused; /* a request for device memory was refused, and none was granted later */
    struct mt_driver_failure refused; /* the first refusal after the last grant */
};

struct mt_driver_ledger {
    struct mt_arena *arena; /* of copies */
    const struct mt_source *source;
    struct mt_phases *phases;
    uint16_t framework_heap; /* if the trace has one */
    bool has_framework, has_driver, has_segments;
    struct mt_map slots; /* heap, device and address -> block */
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

/* Returns the index of a device, created if missing. */
void mt_ledger_device_at(struct mt_driver_ledger *ledger, uint16_t number, uint32_t *index);

#endif
