/* An imported file as a trace in memory. An importer that reads a file record by record adds each
 * event as it goes, and gets a source that can be read any number of times without the file.
 *
 *     struct mt_made_trace made = {0};
 *     status = mt_made_trace_start(&made, error);
 *     while (status == MT_OK && a record follows)
 *         status = mt_made_trace_add(&made, &event, error);
 *     made.header.framework = ...;
 *     if (status == MT_OK)
 *         status = mt_made_trace_finish(&made, MT_SOURCES_RMM, source, error);
 *     mt_made_trace_release(&made); */
#ifndef MT_COLLECTOR_MADE_TRACE_H
#define MT_COLLECTOR_MADE_TRACE_H

#include "buf.h"
#include "feed.h"
#include "json_reader.h"
#include "source.h"
#include "trace.h"

/* Zeroed memory is ready for mt_made_trace_start. Memory: 3 to 8 bytes an event, and the symbols.
 */
struct mt_made_trace {
    struct mt_symbols symbols;     /* what events refer to; the importer adds to it */
    struct mt_trace_header header; /* of the source; its texts are copied at the end */
    /* What is wrong with the file: records_damaged, cut, cut_offset, first_error. */
    struct mt_integrity integrity;
    uint64_t event_count;
    /* PRIVATE */
    struct mt_writer *writer;
    struct mt_buf bytes;
    uint64_t last_t_ns;
};

enum mt_status mt_made_trace_start(struct mt_made_trace *made, struct mt_error *error) MT_MUST_USE;

/* Adds an event. Sets its seq, and its t_ns to that of the event before if it is earlier. Costs 60
 * ns. */
enum mt_status mt_made_trace_add(struct mt_made_trace *made, struct mt_event *event,
                                 struct mt_error *error) MT_MUST_USE;

/* Counts a record that cannot be read, and keeps the reason of the first one. `offset` is its place
 * in the decoded file, or MT_NO_OFFSET. */
void mt_made_trace_skip(struct mt_made_trace *made, uint64_t offset, const char *why);

/* Reading ended early with `error` of `json`: the file is cut there, or damaged, which counts as a
 * record. */
void mt_made_trace_cut(struct mt_made_trace *made, const struct mt_feed *feed,
                       const struct mt_json_reader *json, const struct mt_error *error);

/* Makes the source. If the file is damaged or cut, the last event is MT_EVENT_DROPPED: as many
 * events as records, or at least one, are missing. `importer` is a constant (MT_SOURCES_...): the
 * format of the source, and the sources of its header. Sets start_t_ns of the header if the
 * importer did not. Returns MT_ERR_UNSUPPORTED if the texts of the header take more than 60 KiB. */
enum mt_status mt_made_trace_finish(struct mt_made_trace *made, const char *importer,
                                    struct mt_source **source, struct mt_error *error) MT_MUST_USE;

void mt_made_trace_release(struct mt_made_trace *made);

#endif
