/* Foreign formats, one file each behind one table. An importer opens a file as
 * a source; `memtrace import` writes that source to a trace, every other
 * command reads it as it is. */
#ifndef MT_COLLECTOR_IMPORT_H
#define MT_COLLECTOR_IMPORT_H

#include "source.h"

struct mt_feed;

struct mt_importer {
    const char *name;    /* "pytorch-snapshot" */
    const char *summary; /* one line for --help */
    /* Do the first bytes (decompressed; up to 4096) look like this format? */
    bool (*probe)(const void *bytes, size_t length);
    /* Reads `feed` (feed.h), which stays the caller's, up to the end of what
     * the source needs; the source lives on without it. */
    enum mt_status (*open)(struct mt_feed *feed, struct mt_source **source, struct mt_error *error);
};

/* All importers; ends with an entry whose name is NULL. */
extern const struct mt_importer mt_importers[];

/* Opens whatever `path` is: a memtrace trace, or anything an importer knows,
 * zstd-compressed or not; "-" is standard input. `format` forces an importer
 * by name or "memtrace", NULL = probe. */
enum mt_status mt_open_any(const char *path, const char *format, struct mt_source **source,
                           struct mt_error *error) MT_MUST_USE;

#endif
