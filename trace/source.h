/* A source: where events come from, whatever the file behind it. Opened by
 * mt_trace_open (reader.h) or by an importer; read in batches, as often as you
 * like from the start.
 *
 *     while ((status = mt_source_next(source, &batch)) == MT_OK)
 *         for (i = 0; i < batch.count; i++) use(&batch.events[i]);
 *     if (status != MT_END) the input is unreadable from here on
 */
#ifndef MT_TRACE_SOURCE_H
#define MT_TRACE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "event.h"
#include "heap_view.h"
#include "integrity.h"
#include "overlay.h"
#include "symbols.h"

/* mt_trace_header.sources of imported files. */
#define MT_SOURCES_SNAPSHOT "pytorch-snapshot"
#define MT_SOURCES_PROFILE  "pytorch-profiler"
#define MT_SOURCES_XPLANE   "xla-profile"

/* Which of several free blocks of the size that is best PyTorch's caching allocator takes. */
enum mt_free_order {
    MT_FREE_ORDER_UNKNOWN,
    MT_FREE_LOWEST,        /* the lowest address: up to 2.11 */
    MT_FREE_OLDEST_BLOCK,  /* the one that was made first: 2.12 */
    MT_FREE_OLDEST_SEGMENT /* of the segment that was made first, the lowest: 2.13 and later */
};
/* The name of a device that is none: an arena of host memory (TF_CPU_ALLOCATOR_USE_BFC). */
#define MT_HOST_MEMORY "host memory"

enum { MT_IDENTITY_DEVICES = 16 }; /* devices whose UUID and place a header may hold: 0 to 15 */

/* Facts about the run, as far as they were recorded: the trace's header. All
 * strings may be NULL; they live as long as the source. */
struct mt_trace_header {
    uint32_t format_version;
    const char *framework;         /* "PyTorch 2.11.0", "PyTorch" */
    const char *allocator_options; /* raw PYTORCH_CUDA_ALLOC_CONF of the run */
    const char *host, *command;    /* command only when asked for */
    uint64_t process_id;
    uint64_t recording_id;    /* random, the same on the tape of a recorded process; 0 = none */
    bool tape_added;          /* what the process left on its tape is in the trace */
    int32_t rank, world_size; /* -1 = not known */
    /* Who the rank is and how it ended, as recorded and unchecked: read them with identity.h. */
    const char *boot_id, *job, *local_rank, *restart, *mesh, *process_groups, *ended;
    const char *device_uuid[MT_IDENTITY_DEVICES], *device_pci[MT_IDENTITY_DEVICES];
    const char *device_mig[MT_IDENTITY_DEVICES];
    uint64_t cgroup_limit_bytes; /* of host memory, 0 = unknown or none */
    uint64_t ended_t_ns;         /* Unix time of the process's end, 0 = unknown */
    uint64_t start_t_ns;         /* Unix time of the first event */
    uint64_t memory_limit_bytes; /* per-process limit of the allocator, 0 = unknown */
    const char *sources;         /* what recorded it: "pytorch-snapshot", "cupti,nvtx" */
    const char *driver_calls;    /* how the driver's calls were watched, or why they were not */
    const char *not_recorded;    /* what was asked for and could not be recorded: lines */
    const char *not_used;        /* fields of an imported file that nothing reads: lines */
    /* The run's device was simulated: key=value pairs with semicolons between, as written and read
     * in dry_run.h. NULL: a real one. Sources of such a run hand on events without times. */
    const char *dry_run;
    bool starts_in_middle; /* history before the first event is missing */
    bool sizes_rounded;    /* size_bytes is a rounded, not a requested size */
    bool has_stacks, has_segments, has_free_requested, has_free_completed;
    /* It is known that no request was refused and that nothing went back to
     * the driver: nobody needs to look for a limit. */
    bool never_refused;
    /* Options that the run really had, in the framework's own words, parsed
     * out of its settings ("max_split_size=67108864"): key=value lines. */
    const char *settings;
    /* Not in the file: from the version, or found by a replay (free_order_search.h). */
    enum mt_free_order free_order;
};

/* Is it of a memory snapshot of PyTorch, or of a trace that was imported from one? */
bool mt_header_is_snapshot(const struct mt_trace_header *header);
/* Is it of any imported file, and not of a recording? */
bool mt_header_is_imported(const struct mt_trace_header *header);
/* Do its stacks name operations (TensorFlow's), one frame each? They are no call stacks: a block
 * without one tells nothing of its thread. */
bool mt_header_names_operations(const struct mt_trace_header *header);

struct mt_source;

struct mt_source_ops {
    enum mt_status (*next)(struct mt_source *, struct mt_event_batch *, struct mt_error *);
    enum mt_status (*rewind)(struct mt_source *, struct mt_error *);
    /* Continue at the first event with seq >= target (by_time: t_ns >=
     * target). Costs one batch, not the file. May be NULL: then the caller
     * reads and skips. */
    enum mt_status (*seek)(struct mt_source *, uint64_t target, bool by_time, struct mt_error *);
    void (*close)(struct mt_source *);
};

struct mt_source {
    const struct mt_source_ops *ops;
    const char *format; /* "memtrace/1", "pytorch-snapshot", ... */
    struct mt_trace_header header;
    struct mt_symbols symbols; /* grows while reading */
    struct mt_integrity integrity;
    struct mt_heap_view view;     /* what mt_source_next hands on */
    struct mt_overlay overlay;    /* what it puts between them */
    struct mt_event_batch unread; /* PRIVATE: the first one, if heap_view.c looked at it */
    uint64_t input_bytes;         /* size of the file as it lies on disk */
    uint64_t decoded_bytes;       /* after decompression, 0 = not known yet */
    uint64_t progress_bytes;      /* of input_bytes consumed so far */
    uint64_t readings;            /* how often it was read from its start, also in part */
    uint64_t events_read;         /* in all readings; as they stand in the input, all heaps */
    bool reading_begun;           /* PRIVATE: something was read since the last rewind */
    /* Set by those who read it: devices with memory events that they had no room for. */
    uint64_t devices_left_out; /* by a replay: their numbers are above 63 */
    uint64_t
        devices_not_followed; /* by an analysis, bit N: there are too many phases for device N */
};

/* MT_OK and a batch of at least one event, MT_END, or an error (error filled).
 * Damage that can be skipped is counted in source->integrity, not returned. */
enum mt_status mt_source_next(struct mt_source *source, struct mt_event_batch *batch,
                              struct mt_error *error) MT_MUST_USE;
enum mt_status mt_source_rewind(struct mt_source *source, struct mt_error *error) MT_MUST_USE;

/* Hands on every event that is left: MT_OK at the end, or the first other status. */
enum mt_status mt_source_each(struct mt_source *source,
                              enum mt_status (*on_event)(void *self, struct mt_event *event),
                              void *self, struct mt_error *error) MT_MUST_USE;
void mt_source_close(struct mt_source *source); /* NULL is fine */

#endif
