/* Extracts memory events, and the ranges around them, from a trace of torch.profiler. For kineto.c.
 */
#ifndef MT_COLLECTOR_KINETO_READ_H
#define MT_COLLECTOR_KINETO_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "feed.h"
#include "made_trace.h"
#include "map.h"
#include "status.h"

/* c10/core/DeviceType.h */
enum { MT_KINETO_HOST = 0, MT_KINETO_CUDA = 1 };

/* Larger numbers of devices are impossible. */
enum { MT_KINETO_DEVICES = 1024 };

/* One event "[memory]": a block of a device or of host memory was allocated or freed. A long
 * profile has millions, so it has 56 bytes. */
struct mt_kineto_instant {
    uint64_t t_ns; /* since the profile's base */
    uint64_t addr;
    int64_t bytes;            /* negative: freed; out of memory: the request */
    uint64_t allocated_bytes; /* after it; MT_NOT_COUNTED = not in the file */
    int32_t index;            /* "Ev Idx", or the number of the event in the file */
    uint32_t order;           /* in the file */
    uint32_t reserved;        /* index of reserved_bytes */
    uint32_t stack;
    uint32_t thread; /* index of threads */
    uint16_t device;
    uint8_t device_type;
    bool is_oom : 1;
    bool is_odd : 1;      /* events are missing before it */
    bool is_left_out : 1; /* and it is the free of a block that cannot have been alive */
};

/* What the totals of a device say. */
struct mt_kineto_device {
    bool is_used; /* an event names it */
    bool is_seen, has_totals, has_start;
    uint64_t allocated_bytes; /* after the last event, as the file has it */
    uint64_t start_bytes;     /* in use before the first event */
    uint64_t initial_bytes;   /* part of start_bytes: blocks whose free is in the file */
    uint64_t start_reserved_bytes, reserved_bytes, most_reserved_bytes, reserved_changes;
    uint64_t most_allocated_bytes, gaps;
    uint64_t unknown_addr; /* of blocks whose place is unknown */
    uint32_t last_gap;     /* number of the gap from 1; 0 = none */
};

/* Allocations are missing before the instant `at`. */
struct mt_kineto_gap {
    uint64_t room_bytes; /* of blocks that are not found */
    uint32_t before;     /* number of the device's gap before this one */
    uint32_t at;
};

/* A block that is freed by `instant`, and whose allocation is missing before the instant `at`. */
struct mt_kineto_lost {
    int64_t at; /* MT_KINETO_BEFORE: before the first event */
    uint32_t instant;
};
enum { MT_KINETO_BEFORE = -1 };

/* An instant that changes the bytes of the blocks that are alive by another number than its own. */
struct mt_kineto_change {
    int64_t bytes;
    uint32_t instant;
};

struct mt_kineto_totals {
    struct mt_kineto_device *devices; /* MT_KINETO_DEVICES */
    struct mt_kineto_lost *lost;      /* by `at` */
    struct mt_kineto_gap *gaps;
    struct mt_kineto_change *changes; /* by `instant` */
    size_t change_count, change_capacity;
    size_t lost_count, lost_capacity, gap_count, gap_capacity;
    struct mt_map alive, freed; /* address and device -> index of the last instant */
};

enum mt_kineto_kind { MT_KINETO_OPERATION, MT_KINETO_PYTHON, MT_KINETO_ANNOTATION };

/* An operation, a call of a Python function, or a range that the program named. */
struct mt_kineto_range {
    uint64_t start_ns, end_ns;
    uint32_t order;
    uint32_t thread;
    uint32_t name; /* of names */
    uint32_t kind; /* enum mt_kineto_kind */
};

struct mt_kineto_thread {
    uint64_t os_id;
    uint32_t name; /* of names, MT_NO_ID = none */
    uint32_t id;   /* of the trace's symbols; 0 = not made, MT_NO_ID = too many */
};

struct mt_kineto {
    struct mt_kineto_instant *instants;
    struct mt_kineto_range *ranges;
    struct mt_kineto_thread *threads;
    size_t instant_count, instant_capacity, range_count, range_capacity;
    size_t thread_count, thread_capacity;
    uint64_t *reserved_bytes; /* MT_NOT_COUNTED = not in the file; one differs from the last */
    size_t reserved_count, reserved_capacity;
    struct mt_map thread_ids;
    struct mt_strings names;
    uint64_t base_ns;   /* Unix time of the profile's time 0 */
    uint64_t names_cut; /* longer than MT_JSON_TEXT_BYTES */
};

/* Reads all of `feed`. Adds devices, rank and world size, and what is wrong with the file, to
 * `made`. A file that is cut or damaged is read up to that byte: it is an error only if it has no
 * memory event before. Rows of several "traceEvents" are all read. Memory: 56 bytes a memory event
 * and 32 bytes a range, of all threads. */
enum mt_status mt_kineto_read(struct mt_feed *feed, struct mt_kineto *profile,
                              struct mt_made_trace *made, struct mt_error *error) MT_MUST_USE;
void mt_kineto_release(struct mt_kineto *profile);

/* Sorts the instants. qsort needs 16 bytes for each, so it is not called if they are in order. */
void mt_kineto_sort(struct mt_kineto *profile, int (*order)(const void *, const void *));

/* Sets the stack of each instant to the operations and calls that enclose it on its thread. Sorts
 * both arrays by thread and time. */
enum mt_status mt_kineto_set_stacks(struct mt_kineto *profile,
                                    struct mt_symbols *symbols) MT_MUST_USE;

/* Sorts the instants by time, and finds what is missing among them. Zeroed totals are ready.
 * Memory: 16 bytes an event, and 64 for each block that is live at one time or was. */
enum mt_status mt_kineto_follow(struct mt_kineto *profile,
                                struct mt_kineto_totals *totals) MT_MUST_USE;
void mt_kineto_totals_release(struct mt_kineto_totals *totals);

#endif
