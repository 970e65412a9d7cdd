/* Foreign formats, with one file for each. An importer opens a file as a source. `memtrace import`
 * writes that source to a trace; every other command reads it directly. */
#ifndef MT_COLLECTOR_IMPORT_H
#define MT_COLLECTOR_IMPORT_H

#include "source.h"

struct mt_feed_watch;

/* Opens a memtrace trace or a file that an importer recognizes, with or without zstd; "-" is
 * standard input. */
enum mt_status mt_import_open_any(const char *path, struct mt_source **source,
                                  struct mt_error *error) MT_MUST_USE;

/* Like mt_import_open_any. The watch (feed.h) follows the reading of a file that is read as a
 * whole. */
enum mt_status mt_import_open_watched(const char *path, const struct mt_feed_watch *watch,
                                      struct mt_source **source,
                                      struct mt_error *error) MT_MUST_USE;

#endif
