/* A source of events, independent of the file format. mt_trace_open (trace.h) or an importer opens
 * it. Read it in batches, from the start as often as necessary.
 *
 *     while ((status = mt_source_next(source, &batch)) == MT_OK)
 *         for (i = 0; i < batch.count; i++) use(&batch.events[i]);
 *     if (status != MT_END) the input is unreadable from here on */
#ifndef MT_TRACE_SOURCE_H
#define MT_TRACE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event.h"
#include "status.h"
#include "symbols.h"

/* Filters a source to the events of one level of allocators. A recorded trace has the same bytes at
 * two levels: a segment of PyTorch is also an allocation of the driver. Code that simulates or sums
 * reads one level:
 *
 * framework: memory events of one allocator above the driver, the first one
 *            of the trace. A recorded trace then reads like a snapshot.
 * driver: for programs without such an allocator: all that the process took
 *            from the driver, its heaps (heaps.h) together. So that they do not
 *            share addresses, an address has the heap's number in its high bits.
 *
 * Events that do not concern memory blocks (phases, marks, samples) pass at both levels. */

enum mt_view_level {
    MT_VIEW_EVERYTHING, /* unfiltered */
    MT_VIEW_FRAMEWORK,
    MT_VIEW_DRIVER
};

#define MT_VIEW_KNOWN_HEAPS 64

/* Part of a source; zeroed memory passes everything on. A reader that wants all events sets `level`
 * to MT_VIEW_EVERYTHING while it reads. */
struct mt_heap_view {
    enum mt_view_level level;
    bool chosen;
    bool has_more;                      /* memory events were filtered out, or samples passed */
    bool one_heap;                      /* DRIVER: only `heap`, whatever it holds */
    uint16_t heap;                      /* FRAMEWORK, one_heap: the heap whose events pass */
    uint8_t known[MT_VIEW_KNOWN_HEAPS]; /* DRIVER: by heap, 0 = not looked at yet */
};

/* The address of an event in view as the trace has it, without the heap's number, and back. */
uint64_t mt_heap_view_address(const struct mt_heap_view *view, uint16_t heap, uint64_t addr);

/* Ranges inserted into a trace: starts and ends of inferred phases between its recorded events.
 * Every pass over the source sees them at the same places. */

/* An event and its place: before the first event of the trace whose seq is at least `before`. */
struct mt_overlay_event {
    uint64_t before;
    struct mt_event event;
};

/* Part of a source; zeroed memory inserts nothing. */
struct mt_overlay {
    bool hides_ranges;               /* recorded ranges are removed */
    bool chosen;                     /* the overlay of the source has been decided */
    struct mt_overlay_event *events; /* sorted by `before` */
    size_t count, capacity;

    /* PRIVATE: next event of the current pass */
    size_t next;
    struct mt_event *merged;
    size_t merged_capacity;
};

/* Appends an event. */
enum mt_status mt_overlay_add(struct mt_overlay *overlay, uint64_t before,
                              const struct mt_event *event) MT_MUST_USE;
void mt_overlay_release(struct mt_overlay *overlay);

/* Damage and losses of the input. */

/* Counts what was wrong with the input. Final after the source has ended. */
struct mt_integrity {
    uint64_t frames_read, frames_damaged; /* damaged: includes header and index */
    bool header_damaged;                  /* the header is damaged */
    uint64_t events_read, events_dropped; /* dropped: reported by the recorder */
    uint64_t events_unknown;              /* of kinds this version does not know */
    uint64_t events_invalid;              /* refer to things that do not exist */
    uint64_t phases_unmatched;            /* ends of phases without a start */
    uint64_t records_damaged;             /* of an imported file: skipped, cannot be read */
    bool cut;                             /* the file ends before its end record */
    bool closed;                          /* an END event was seen */
    uint64_t cut_offset;                  /* where it is cut */
    struct mt_error first_error;          /* status MT_OK = none */
};

/* mt_trace_header.sources of imported files. */
#define MT_SOURCES_SNAPSHOT "pytorch-snapshot"
#define MT_SOURCES_PROFILE  "pytorch-profiler"
#define MT_SOURCES_TIMELINE "pytorch-memory-timeline"
#define MT_SOURCES_XPLANE   "xla-profile"
#define MT_SOURCES_KINETO   "kineto-trace"
#define MT_SOURCES_JAX      "jax-memory-profile"
#define MT_SOURCES_NSYS     "nsight-systems"
#define MT_SOURCES_ROWS     "rows"
#define MT_SOURCES_RMM      "rmm-log"
#define MT_SOURCES_ASCEND   "msmemscope"

/* Which of several best-fitting free blocks PyTorch's caching allocator takes. */
enum mt_free_order {
    MT_FREE_ORDER_UNKNOWN,
    MT_FREE_LOWEST,        /* the lowest address: up to 2.11 */
    MT_FREE_OLDEST_BLOCK,  /* the oldest block: 2.12 */
    MT_FREE_OLDEST_SEGMENT /* the lowest address in the oldest segment: 2.13 and later */
};

/* The name of a pseudo-device: an arena of host memory (TF_CPU_ALLOCATOR_USE_BFC). */
#define MT_HOST_MEMORY "host memory"

enum {
    MT_IDENTITY_DEVICES = 16
}; /* devices whose UUID and PCI address a header may hold: 0 to 15 */

/* Facts about the run, as far as they were recorded: the trace's header. All
 * strings may be NULL; they live as long as the source. */
struct mt_trace_header {
    uint32_t format_version;
    const char *framework;         /* "PyTorch 2.11.0", "PyTorch" */
    const char *allocator_options; /* raw PYTORCH_CUDA_ALLOC_CONF of the run */
    const char *host, *command;    /* command only if requested */
    uint64_t process_id;
    uint64_t recording_id;    /* random, also on the tape of a recorded process; 0 = none */
    bool tape_added;          /* the trace includes what the process left on its tape */
    int32_t rank, world_size; /* -1 = unknown */
    /* Identity of the rank and its ending, as recorded and unchecked: read them with identity.h. */
    const char *boot_id, *job, *local_rank, *restart, *mesh, *process_groups, *ended;
    const char *device_uuid[MT_IDENTITY_DEVICES], *device_pci[MT_IDENTITY_DEVICES];
    const char *device_mig[MT_IDENTITY_DEVICES];
    uint64_t cgroup_limit_bytes; /* of host memory, 0 = unknown or none */
    uint64_t ended_t_ns;         /* Unix time of the process's end, 0 = unknown */
    uint64_t start_t_ns;         /* Unix time of the first event */
    uint64_t memory_limit_bytes; /* per-process limit of the allocator, 0 = unknown */
    const char *sources;         /* the recorder or importer: "pytorch-snapshot", "cupti,nvtx" */
    const char *driver_calls;    /* how the driver's calls were watched, or why they were not */
    const char *not_recorded;    /* what was requested but could not be recorded, one per line */
    const char *not_used;        /* unused fields of an imported file, one per line */
    /* The device of the run was simulated: key=value pairs separated by semicolons (header.h).
     * NULL: a real device. Sources of simulated runs pass on events without times. */
    const char *dry_run;
    /* A ring (record --ring): the time that it keeps, when the recording began, and how many events
     * were left out before the first one. `ring_part`: number + 1 of a part that `record` or
     * `recover` puts together with its neighbor; 0 = not a part. */
    uint64_t ring_ns, ring_began_t_ns, ring_left_out, ring_part;
    bool starts_in_middle; /* history before the first event is missing */
    bool sizes_rounded;    /* size_bytes is a rounded, not a requested size */
    bool has_stacks, has_segments, has_free_requested, has_free_completed;
    /* No request was refused and nothing was returned to the driver, so there is no need to infer a
     * limit. */
    bool never_refused;
    /* Effective options of the run in the framework's own terms, parsed from its settings
     * ("max_split_size=67108864"): key=value lines. */
    const char *settings;
    /* Not in the file: derived from the version, or found by a replay (replay.h). */
    enum mt_free_order free_order;
};

/* Whether it is the header of a PyTorch memory snapshot, or of a trace imported from one. */
bool mt_header_is_snapshot(const struct mt_trace_header *header);

/* Whether it is the header of an imported file rather than of a recording. */
bool mt_header_is_imported(const struct mt_trace_header *header);

/* Whether its stacks name operations (TensorFlow's), one frame each. These are not call stacks: a
 * block without one says nothing about its thread. */
bool mt_header_names_operations(const struct mt_trace_header *header);

/* Returns what an allocator needs and the file lacks, as a clause ("it has no ..."), so that only
 * what was recorded can be repeated; NULL if a policy can replay the run. */
const char *mt_header_why_only_recorded(const struct mt_trace_header *header);

/* Returns a clause if the requests are those of an allocator whose rules are unknown, so that
 * without a policy of the user's choice they are replayed as recorded; otherwise NULL. */
const char *mt_header_why_no_rules(const struct mt_trace_header *header);

enum mt_stack_use { MT_STACK_ALLOCATES = 1, MT_STACK_FREES = 2 };

struct mt_source;

/* Follows how far a source is read, to show the progress. */
struct mt_source_watch {
    /* Called after each batch, in the thread that reads. It must not read the source. May be
     * NULL. */
    void (*was_read)(void *context, const struct mt_source *source);
    void *context;
};

struct mt_source {
    const struct mt_source_ops *ops;
    const char *format; /* "memtrace/1", "pytorch-snapshot", ... */
    struct mt_trace_header header;
    struct mt_symbols symbols; /* grows while reading */
    struct mt_integrity integrity;
    struct mt_integrity whole_integrity; /* of the last reading that reached the end */
    struct mt_heap_view view;            /* filters what mt_source_next passes on */
    struct mt_overlay overlay;           /* events that it inserts */
    struct mt_event_batch unread;        /* PRIVATE: the first batch, if source.c read it */
    bool in_memory;          /* no file is read, so a forked process can read at the same time */
    uint64_t input_bytes;    /* size of the file on disk */
    uint64_t decoded_bytes;  /* after decompression, 0 = unknown so far */
    uint64_t progress_bytes; /* of input_bytes, by this pass so far */
    struct mt_source_watch watch; /* may be changed between two calls */
    uint64_t readings;            /* number of passes from the start, including partial ones */
    uint64_t events_read;         /* in all passes and all heaps, unfiltered */
    bool reading_begun;           /* PRIVATE: something was read after the last rewind */
    bool symbols_complete;        /* further readings leave the symbols as they are */
    /* By stack, bits of enum mt_stack_use: what happened there after the state at the start. NULL:
     * only the events show it. A source that has it has events of one heap, and no ranges. */
    const uint8_t *stack_uses;
    bool announces_changes;      /* readings call mt_source_change_symbols */
    bool reads_ahead;            /* PRIVATE, like the next two: mt_source_read_ahead */
    struct mt_ahead *ahead;      /* NULL = this thread decodes */
    uint64_t events_read_before; /* events_read at the last rewind */
    /* Set by readers: devices with memory events that did not fit. */
    uint64_t devices_left_out;     /* by a replay, a count: their numbers are above 63 */
    uint64_t devices_not_followed; /* by an analysis, bit N: device N has too many phases */
};

struct mt_source_ops {
    enum mt_status (*next)(struct mt_source *, struct mt_event_batch *, struct mt_error *);
    enum mt_status (*rewind)(struct mt_source *, struct mt_error *);
    /* Continues at the first event with seq >= target (by_time: t_ns >= target). Costs one batch,
     * not the file. May be NULL: then the caller reads and skips. */
    enum mt_status (*seek)(struct mt_source *, uint64_t target, bool by_time, struct mt_error *);
    void (*close)(struct mt_source *);
    /* See mt_source_complete_symbols. Rewind afterwards. May be NULL: it is read. */
    enum mt_status (*complete_symbols)(struct mt_source *, struct mt_error *);
};

/* MT_OK and a batch of at least one event, MT_END, or an error (error filled).
 * Damage that can be skipped is counted in source->integrity, not returned. */
enum mt_status mt_source_next(struct mt_source *source, struct mt_event_batch *batch,
                              struct mt_error *error) MT_MUST_USE;
enum mt_status mt_source_rewind(struct mt_source *source, struct mt_error *error) MT_MUST_USE;

/* speed only: defines everything that readings of a long undamaged trace define, so that several
 * threads may work on them, and rewinds. Costs about a third of a reading. */
enum mt_status mt_source_complete_symbols(struct mt_source *source,
                                          struct mt_error *error) MT_MUST_USE;

/* Whether a second thread decodes the next batches of a long reading, if the symbols are complete
 * or the source announces changes. It starts with a later call of mt_source_next and ends with the
 * reading, or here: then rewind, because batches that it decoded are gone. Until then, `integrity`
 * is not valid, and only functions of this header may be called. Costs the memory of three batches.
 */
void mt_source_read_ahead(struct mt_source *source, bool ahead);

/* The reading is about to define symbols: waits until its reader needs the next batch, so that it
 * does not use the symbols meanwhile. MT_END: it left, and must not see them. NULL is fine. */
enum mt_status mt_source_change_symbols(struct mt_source *source) MT_MUST_USE;

/* Ends a reading that stopped early: `integrity` is then that of the last whole reading. */
void mt_source_leave(struct mt_source *source);

/* Returns the share of the input that this pass has read, 0 to 1. */
double mt_source_share(const struct mt_source *source);

/* Calls on_event for each remaining event. Returns MT_OK at the end of the source, or the first
 * other status of on_event or of the source. */
enum mt_status mt_source_each(struct mt_source *source,
                              enum mt_status (*on_event)(void *self, struct mt_event *event),
                              void *self, struct mt_error *error) MT_MUST_USE;
void mt_source_close(struct mt_source *source); /* NULL is fine */

/* Selects the heaps of a source that a reader sees. */

/* Selects the level of a source at its start, once. Reads until the level is known (at the first
 * event of an allocator above the driver; to the end if there is none), then rewinds. Does nothing
 * if a choice was made before. */
enum mt_status mt_heap_view_choose(struct mt_source *source, struct mt_error *error) MT_MUST_USE;

/* Selects only the heap of that name, whatever it holds. Returns MT_ERR_USAGE, and an error that
 * lists the heaps, if the trace has no such heap. */
enum mt_status mt_heap_view_choose_heap(struct mt_source *source, const char *name,
                                        struct mt_error *error) MT_MUST_USE;

/* Sums the DROPPED events of a trace by their reason. */

#define MT_LOST_REASONS 16

/* Zeroed memory is ready. */
struct mt_lost_events {
    struct mt_lost_reason {
        uint32_t name; /* string id; MT_NO_ID = no reason given */
        uint64_t events;
    } reasons[MT_LOST_REASONS]; /* in order of appearance */
    size_t count;
    bool has_others; /* the last entry combines several reasons */
};

/* Adds an event of any kind. */
void mt_lost_events_add(struct mt_lost_events *lost, const struct mt_event *event);

/* Returns the reason of an entry; NULL = none given. */
const char *mt_lost_events_why(const struct mt_lost_events *lost, size_t entry,
                               const struct mt_symbols *symbols);

#endif
