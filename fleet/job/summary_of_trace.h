/* Makes the summary of a trace (docs/internals/rank-summary.md): analyzes the trace, makes a record
 * for each device, and writes the file. Prints nothing; the caller prints *error. */
#ifndef MT_CLI_SUMMARY_OF_TRACE_H
#define MT_CLI_SUMMARY_OF_TRACE_H

#include "annexes.h"
#include "buf.h"
#include "file_kinds.h"
#include "rank_set.h"

/* TRACE.mtsum. It begins with the magic of its format. */
extern const struct mt_file_kind mt_file_rank_summary;

/* Appends the name of the summary of a trace: "run.trace.zst.mtsum". */
void mt_summary_add_path(struct mt_buf *out, const char *trace);

/* Analyzes the trace or snapshot at `path` and adds a record for each of its devices to `set`.
 * Takes as long as `analyze --json`. */
enum mt_status mt_summary_add_trace(const char *path, struct mt_rank_set *set,
                                    struct mt_error *error) MT_MUST_USE;

/* Writes the same records as a file, completely or not at all. Never replaces the trace. Returns
 * MT_ERR_OUTPUT if the file could not be written. */
enum mt_status mt_summary_of_trace(const struct mt_summary_order *order, const char *out_path,
                                   struct mt_error *error) MT_MUST_USE;

/* Adds the records of a summary file to `set`. */
enum mt_status mt_summary_read(const char *path, struct mt_rank_set *set,
                               struct mt_error *error) MT_MUST_USE;

/* Returns true if the file begins like a summary. Returns false if it cannot be read. */
bool mt_summary_is_file(const char *path);

/* Returns true if a path is NAME.mtsum. */
bool mt_is_summary_name(const char *path);

#endif
