/* Profiles of XLA's profiler (*.xplane.pb: jax.profiler, TensorFlow's profiler) as a source: what
 * the arena of each GPU handed out and took back, with addresses. Everything else in the profile is
 * left out.
 *
 * Format: tsl/profiler/protobuf/xplane.proto; the events MemoryAllocation and MemoryDeallocation
 * are written by xla/tsl/framework/bfc_allocator.cc (AddTraceMe) under the arena's lock, so that
 * their times are the order in which they happened. */
#ifndef MT_COLLECTOR_XPLANE_H
#define MT_COLLECTOR_XPLANE_H

#include "feed.h"
#include "source.h"

/* Do the first bytes look like such a profile? */
bool mt_xplane_probe(const void *bytes, size_t length);

/* Reads all of `feed`, which stays the caller's. Memory: the file while it is read and 80 bytes for
 * each block or free, then 80 more for each event. A file that is cut or damaged is refused as a
 * whole: events of one arena lie in several of its parts. */
enum mt_status mt_xplane_open(struct mt_feed *feed, struct mt_source **source,
                              struct mt_error *error) MT_MUST_USE;

#endif
