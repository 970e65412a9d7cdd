/* The part of `memtrace info` about traces of `memtrace record`: heaps, threads, samples, and why
 * events are missing. */
#ifndef MT_CLI_INFO_RECORDED_H
#define MT_CLI_INFO_RECORDED_H

#include "buf.h"
#include "driver_ledger.h"
#include "json.h"
#include "source.h"

struct mt_info_recorded {
    /* set by mt_info_recorded_add */
    uint16_t first_heap; /* the first heap with memory events */
    bool has_heap, has_more_heaps;
    uint64_t samples, most_used_bytes;
    struct mt_lost_events lost;
    /* set by mt_info_recorded_read if there are several heaps, or only the driver's */
    struct mt_arena arena;
    struct mt_phases phases;
    struct mt_driver_ledger ledger;
};

/* Adds one event of the first reading. Zeroed memory is ready for use. */
void mt_info_recorded_add(struct mt_info_recorded *recorded, const struct mt_event *event);

/* Call it after the first reading. If there are several heaps, or only the driver's, reads the
 * source again to find the memory of each heap. */
enum mt_status mt_info_recorded_read(struct mt_info_recorded *recorded, struct mt_source *source,
                                     struct mt_error *error) MT_MUST_USE;
void mt_info_recorded_release(struct mt_info_recorded *recorded);

/* Append lines with labels of 14 columns, or members of the document. Omit facts that the trace
 * does not have. */
void mt_info_recorded_text(struct mt_buf *out, const struct mt_info_recorded *recorded,
                           const struct mt_symbols *symbols);
void mt_info_dropped_text(struct mt_buf *out, const struct mt_info_recorded *recorded,
                          const struct mt_symbols *symbols);
void mt_info_recorded_json(struct mt_json *json, const struct mt_info_recorded *recorded,
                           const struct mt_symbols *symbols);

#endif
