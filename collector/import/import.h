/* The table of foreign formats, with one file for each. An importer opens a file as a source.
 * `memtrace import` writes that source to a trace; every other command reads it directly. */
#ifndef MT_COLLECTOR_IMPORT_H
#define MT_COLLECTOR_IMPORT_H

#include "source.h"

struct mt_feed;
struct mt_feed_watch;

struct mt_importer {
    const char *name;    /* "pytorch-snapshot" */
    const char *summary; /* one line for --help */
    /* Returns true if the first bytes (decompressed, at most 4096) look like this format. */
    bool (*probe)(const void *bytes, size_t length);
    /* Reads `feed` (feed.h) up to the end of what the source needs. The caller keeps the feed;
     * the source does not need it afterwards. */
    enum mt_status (*open)(struct mt_feed *feed, struct mt_source **source, struct mt_error *error);
};

/* All importers; the last entry has the name NULL. */
extern const struct mt_importer mt_importers[];

/* Opens a memtrace trace or a file that an importer recognizes, with or without zstd; "-" is
 * standard input. `format` selects an importer by name, or "memtrace"; NULL probes the file. */
enum mt_status mt_open_any(const char *path, const char *format, struct mt_source **source,
                           struct mt_error *error) MT_MUST_USE;

/* Like mt_open_any. The watch (feed.h) follows the reading of a file that is read as a whole. */
enum mt_status mt_open_any_watched(const char *path, const char *format,
                                   const struct mt_feed_watch *watch, struct mt_source **source,
                                   struct mt_error *error) MT_MUST_USE;

#endif
