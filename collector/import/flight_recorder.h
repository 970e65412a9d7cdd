/* Reads dumps of PyTorch's Flight Recorder (TORCH_FR_BUFFER_SIZE, files nccl_trace_rank_N). Uses
 * only `pg_config`, the ranks of each process group. The pickle is read as data; nothing is
 * executed. */
#ifndef MT_COLLECTOR_FLIGHT_RECORDER_H
#define MT_COLLECTOR_FLIGHT_RECORDER_H

#include "buf.h"
#include "status.h"

/* Appends the lines for process groups in a trace's header (identity.h), in the order of
 * the dump. Returns MT_ERR_FORMAT if the file is not such a dump, MT_ERR_UNSUPPORTED if a header
 * cannot hold all groups. Needs memory for the pickle. */
enum mt_status mt_flight_recorder_groups(const char *path, struct mt_buf *lines,
                                         struct mt_error *error) MT_MUST_USE;

#endif
