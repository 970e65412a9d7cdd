/* Profiles of XLA's profiler (*.xplane.pb from jax.profiler or TensorFlow's profiler) as a
 * source: allocations and frees of each GPU's arena, with addresses. The rest of the profile is
 * ignored.
 *
 * Format: tsl/profiler/protobuf/xplane.proto. xla/tsl/framework/bfc_allocator.cc (AddTraceMe)
 * writes the events MemoryAllocation and MemoryDeallocation while it has the arena's lock, so
 * their times give their order. */
#ifndef MT_COLLECTOR_XPLANE_H
#define MT_COLLECTOR_XPLANE_H

#include "feed.h"
#include "source.h"

/* Returns true if the first bytes look like such a profile. */
bool mt_xplane_probe(const void *bytes, size_t length);

/* Reads all of `feed`, which the caller keeps. Memory: the file while reading, 80 bytes for each
 * allocation or free, then 80 more for each event. A truncated or damaged file is an error, and
 * none of its events are used, because the events of one arena are spread over the file. */
enum mt_status mt_xplane_open(struct mt_feed *feed, struct mt_source **source,
                              struct mt_error *error) MT_MUST_USE;

#endif
