/* A PyTorch snapshot after reading: its records in order, completed with inferred ones.
 * torch_snapshot.c reads it, torch_events.c produces its events, torch_marks.c finds phases,
 * pools and empty_cache calls, and torch_start.c the state at the start of an incomplete history.
 */
#ifndef MT_COLLECTOR_TORCH_H
#define MT_COLLECTOR_TORCH_H

#include "buf.h"
#include "source.h"
#include "torch_records.h"

/* Options of the run that determine the sizes of blocks. */
struct mt_torch_options {
    uint64_t max_split_bytes;       /* UINT64_MAX = unlimited */
    uint64_t roundup_divisions[16]; /* by floor(log2(MiB)) */
    bool expandable_segments;
};

struct mt_torch_device {
    size_t first, count; /* entries */
    size_t first_segment, segment_count;
    size_t of_kind[MT_TORCH_ANNOTATE + 1]; /* numbers of entries, before phases are found */
    bool complete;                         /* history begins with the first allocation */
};

struct mt_torch {
    struct mt_source source; /* first: a source is a pointer to it */
    struct mt_torch_records records;
    struct mt_torch_device *devices;
    uint32_t device_count;
    bool has_host; /* there is one more entry after the devices, for pinned host memory */
    struct mt_torch_segment *segments; /* by device, then by address; those of the host last */
    size_t segment_count, device_segment_count, segment_capacity;
    bool has_segments;   /* the file has a list of segments, even if it is empty */
    bool has_host_parts; /* the file lists pinned host memory (PyTorch 2.14 and later) */
    bool is_profile;     /* converted from a torch.profiler trace: tensors, no times, no segments */
    struct mt_torch_annotation *annotations; /* in file order, matched */
    size_t annotation_count;
    struct mt_torch_options options;
    /* numbers of entries that the history lacks, by kind of event (torch_events.h) */
    uint64_t missing[MT_EVENT_SEGMENT_FREE + 1];
    uint32_t missing_names[MT_EVENT_SEGMENT_FREE + 1];
    uint64_t latest_ns;       /* the latest time of all entries and phases */
    struct mt_event *initial; /* state at the start */
    size_t initial_count, initial_capacity;
    uint16_t heap;                   /* the allocator of the devices */
    uint16_t host_heap, pinned_heap; /* the host's allocator, and its requests to the driver */
    /* texts for the header */
    struct mt_buf allocator_options, settings, not_used;
    /* position of the reader */
    size_t *next_entry; /* of each device, relative to its first entry */
    size_t next_initial, next_annotation;
    uint64_t next_seq;
    uint8_t next_missing; /* kind of event */
    bool half_told;       /* the first of the two events of the current entry was returned */
    struct mt_event *batch;
    uint8_t *stack_uses;
};

/* Like mt_torch_snapshot_open; `no_short_cuts` as in struct mt_pickle_hooks. */
enum mt_status mt_torch_open(struct mt_feed *feed, bool no_short_cuts, struct mt_source **source,
                             struct mt_error *error) MT_MUST_USE;

/* Returns the number of devices, plus one if the snapshot has host memory. */
static inline uint32_t mt_torch_lanes(const struct mt_torch *torch)
{
    return torch->device_count + torch->has_host;
}

static inline bool mt_torch_is_host(const struct mt_torch *torch, uint32_t device)
{
    return device == torch->device_count; /* no device has this number */
}

enum { MT_TORCH_BATCH_EVENTS = 4096 };

/* Operations of the source (torch_events.c). */
enum mt_status mt_torch_next(struct mt_source *source, struct mt_event_batch *batch,
                             struct mt_error *error) MT_MUST_USE;
enum mt_status mt_torch_rewind(struct mt_source *source, struct mt_error *error) MT_MUST_USE;

/* Marks annotations that have a partner, and each START whose END may come after the end of the
 * history. An END matches the innermost open START with its name. Sets *unmatched to the number of
 * ENDs without a START. */
enum mt_status mt_torch_match_phases(struct mt_torch_annotation *annotations, size_t count,
                                     size_t *unmatched) MT_MUST_USE;

/* PyTorch 2.4 and 2.5 repeat the phases among the entries of every device. Turns those of one
 * device into phase entries (addr = name), and marks those of the other devices as ignored. */
enum mt_status mt_torch_inline_phases(struct mt_torch *torch, size_t *unmatched) MT_MUST_USE;

/* Flags each entry at which an explicit empty_cache begins. */
void mt_torch_find_empty_cache(struct mt_torch *torch);

/* Sets the pool of entries from the segments that exist at the end of the history. */
enum mt_status mt_torch_route_pools(struct mt_torch *torch) MT_MUST_USE;

/* Decides for each device whether its history is complete. If not, reconstructs the state at its
 * start in torch->initial. */
enum mt_status mt_torch_find_start(struct mt_torch *torch) MT_MUST_USE;

/* Reads the dictionary allocator_settings into torch->options and the texts for the header. */
void mt_torch_read_settings(struct mt_torch *torch, struct mt_pickle *pickle,
                            const struct mt_pickle_value *items, size_t count);

/* Returns the block size for a request, like PyTorch's round_size. */
uint64_t mt_torch_round_size(const struct mt_torch_options *options, uint64_t bytes);

#endif
