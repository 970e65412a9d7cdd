/* Dumps of PyTorch's Flight Recorder (TORCH_FR_BUFFER_SIZE, files nccl_trace_rank_N): only which
 * ranks are in which process group, `pg_config`. The pickle is read as data, nothing is executed.
 */
#ifndef MT_COLLECTOR_FLIGHT_RECORDER_H
#define MT_COLLECTOR_FLIGHT_RECORDER_H

#include "buf.h"
#include "status.h"

/* Appends the lines that a trace's header has for process groups (process_groups.h), in the order
 * of the dump. MT_ERR_FORMAT if the file is no such dump, MT_ERR_UNSUPPORTED if a header cannot
 * hold them all. Memory: that of the pickle. */
enum mt_status mt_flight_recorder_groups(const char *path, struct mt_buf *lines,
                                         struct mt_error *error) MT_MUST_USE;

#endif
