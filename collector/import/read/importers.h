/* Importers of foreign formats, one function each. */
#ifndef MT_COLLECTOR_IMPORTERS_H
#define MT_COLLECTOR_IMPORTERS_H

#include "buf.h"
#include "feed.h"
#include "source.h"
#include "status.h"

/* PyTorch memory snapshots (torch.cuda.memory._dump_snapshot and the C++ writer) as a source.
 * Supports every version since 1.12. */

/* Reads all of `feed`, which the caller keeps. Memory: about the size of the decoded pickle while
 * reading, half of it afterwards. */
enum mt_status mt_torch_snapshot_open(struct mt_feed *feed, struct mt_source **source,
                                      struct mt_error *error) MT_MUST_USE;

/* Profiles of XLA's profiler (*.xplane.pb from jax.profiler or TensorFlow's profiler) as a
 * source: allocations and frees of each GPU's arena, with addresses. The rest of the profile is
 * ignored.
 *
 * Format: tsl/profiler/protobuf/xplane.proto. xla/tsl/framework/bfc_allocator.cc (AddTraceMe)
 * writes the events MemoryAllocation and MemoryDeallocation while it has the arena's lock, so
 * their times give their order. */

/* Returns true if the first bytes look like such a profile. */
bool mt_xplane_probe(const void *bytes, size_t length);

/* Reads all of `feed`, which the caller keeps. Memory: the file while reading, 80 bytes for each
 * allocation or free, then 80 more for each event. A truncated or damaged file is an error, and
 * none of its events are used, because the events of one arena are spread over the file. */
enum mt_status mt_xplane_open(struct mt_feed *feed, struct mt_source **source,
                              struct mt_error *error) MT_MUST_USE;

/* Profiles of JAX's device memory (jax.profiler.save_device_memory_profile) as a source of blocks
 * that are alive from the start. */

/* Returns true for a profile of pprof that may be one. */
bool mt_jax_profile_probe(const void *bytes, size_t length);

/* Reads all of `feed`, which the caller keeps. Memory: the file while reading. A damaged file is an
 * error. */
enum mt_status mt_jax_profile_open(struct mt_feed *feed, struct mt_source **source,
                                   struct mt_error *error) MT_MUST_USE;

/* Exports of Nsight Systems (nsys export --type sqlite) as a source: what one process took from the
 * driver, and its NVTX ranges. It needs a file by name that is not compressed.
 *
 * Schema: docs.nvidia.com/nsight-systems, "SQLite Schema Reference". Tables and columns that an
 * older version lacks count as empty. */

/* Returns true for any database of SQLite. */
bool mt_nsys_probe(const void *bytes, size_t length);

/* Reads only tables that it knows, and only as data: no view, trigger or extension of the file has
 * an effect. Memory: 3 to 8 bytes an event, 80 for a live block, 64 for a call that made an event,
 * all texts of StringIds (up to 4 KiB of each) and 64 bytes for each number of one, and the
 * symbols; SQLite sorts in a temporary file. A damaged file is an error. */
enum mt_status mt_nsys_open(struct mt_feed *feed, struct mt_source **source,
                            struct mt_error *error) MT_MUST_USE;

/* Traces of torch.profiler (Kineto) that were made with profile_memory=True, as a source: blocks of
 * devices with addresses, rounded sizes, and the operations and Python functions around them. The
 * file has no segments, streams or requested sizes. Host memory is read only if no device has
 * events.
 *
 * Format: libkineto/src/output_json.cpp, and torch/csrc/autograd/profiler_kineto.cpp for the
 * arguments of "[memory]". The allocator reports each event while it has its lock. */

/* Returns true if the first bytes look like such a trace. */
bool mt_kineto_probe(const void *bytes, size_t length);

/* Reads `feed`, which the caller keeps, up to the end or to the first damage. Memory: 56 bytes a
 * memory event (72 unless they are in the order of their times) and 32 bytes a range while reading.
 */
enum mt_status mt_kineto_open(struct mt_feed *feed, struct mt_source **source,
                              struct mt_error *error) MT_MUST_USE;

/* Raw memory timelines of torch.profiler (export_memory_timeline("x.raw.json.gz")) as a source of
 * blocks with sizes, times and categories, which are their roles. Addresses are made up.
 *
 * Format: torch/profiler/_memory_profiler.py, export_memory_timeline_raw. */

/* Returns true if the first bytes look like such a timeline, rather than one with sums. */
bool mt_memory_timeline_probe(const void *bytes, size_t length);

/* Reads `feed`, which the caller keeps, up to the end or to the first damage. Memory: 8 bytes a
 * row, and 56 for each block that is live at one time. */
enum mt_status mt_memory_timeline_open(struct mt_feed *feed, struct mt_source **source,
                                       struct mt_error *error) MT_MUST_USE;

/* Events of any allocator as rows of text: memtrace's own columns, logs of RMM and of
 * msMemScope. */

/* Returns true if the first bytes are a header row, or the beginning of one. */
bool mt_rows_probe(const void *bytes, size_t length);

/* Reads all of `feed`, which the caller keeps. Memory: 10 bytes an event, 64 for each block that is
 * live at one time, the symbols, and twice the longest row. Costs about 0.5 us a row. */
enum mt_status mt_rows_open(struct mt_feed *feed, struct mt_source **source,
                            struct mt_error *error) MT_MUST_USE;

/* Reads dumps of PyTorch's Flight Recorder (TORCH_FR_BUFFER_SIZE, files nccl_trace_rank_N). Uses
 * only `pg_config`, the ranks of each process group. The pickle is read as data; nothing is
 * executed. */

/* Appends the lines for process groups in a trace's header (identity.h), in the order of
 * the dump. Returns MT_ERR_FORMAT if the file is not such a dump, MT_ERR_UNSUPPORTED if a header
 * cannot hold all groups. Needs memory for the pickle. */
enum mt_status mt_flight_recorder_groups(const char *path, struct mt_buf *lines,
                                         struct mt_error *error) MT_MUST_USE;

#endif
