#include "import.h"

#include <string.h>

#include "buf.h"
#include "feed.h"
#include "pickle.h"
#include "torch_snapshot.h"
#include "trace.h"
#include "xplane.h"

enum { PIECE_BYTES = 256 * 1024 };

const struct mt_importer mt_importers[] = {
    {"pytorch-snapshot", "torch.cuda.memory._dump_snapshot, 1.12 and later", mt_pickle_probe,
     mt_torch_snapshot_open},
    {MT_SOURCES_XPLANE, "*.xplane.pb of jax.profiler and of TensorFlow's profiler", mt_xplane_probe,
     mt_xplane_open},
    {NULL, NULL, NULL, NULL},
};

static bool is_trace(const struct mt_feed *feed)
{
    size_t length;
    const void *raw = mt_feed_raw(feed, &length);

    return mt_trace_probe(raw, length);
}

static const struct mt_importer *named(const char *format)
{
    const struct mt_importer *importer = mt_importers;

    while (importer->name && strcmp(importer->name, format) != 0)
        importer++;
    return importer->name ? importer : NULL;
}

static const struct mt_importer *probe(const void *bytes, size_t length)
{
    const struct mt_importer *importer = mt_importers;

    while (importer->name && !importer->probe(bytes, length))
        importer++;
    return importer->name ? importer : NULL;
}

typedef enum mt_status (*read_piece_fn)(struct mt_feed *feed, void *bytes, size_t capacity,
                                        size_t *got, struct mt_error *error);

/* A trace from a pipe, or in a compressed file, must be in memory, because it is read more than
 * once. */
static enum mt_status open_trace_in_memory(struct mt_feed *feed, read_piece_fn read_piece,
                                           struct mt_source **source, struct mt_error *error)
{
    struct mt_buf bytes = {0};
    enum mt_status status = MT_OK;
    size_t got = 1;

    while (status == MT_OK && got) {
        char *room = mt_buf_reserve(&bytes, PIECE_BYTES);
        if (!room) {
            status = mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "out of memory");
            break;
        }
        status = read_piece(feed, room, PIECE_BYTES, &got, error);
        bytes.length += got;
    }
    if (status == MT_OK) /* takes ownership of the bytes, even on failure */
        return mt_trace_open_owned(bytes.data, bytes.length, source, error);
    mt_buf_release(&bytes);
    return status;
}

static enum mt_status open_trace(struct mt_feed *feed, const char *path, struct mt_source **source,
                                 struct mt_error *error)
{
    if (!mt_feed_is_file(feed))
        return open_trace_in_memory(feed, mt_feed_read_raw, source, error);
    return mt_trace_open(path, source, error);
}

/* The bytes on disk are not a trace. Decompresses them and tries other formats. */
static enum mt_status open_content(struct mt_feed *feed, struct mt_source **source,
                                   struct mt_error *error)
{
    const struct mt_importer *importer;
    const void *bytes;
    size_t length;
    enum mt_status status = mt_feed_start(feed, &bytes, &length, error);

    if (status != MT_OK)
        return status;
    if (!length)
        return mt_fail(error, MT_ERR_FORMAT, 0, "the file is empty");
    if (mt_trace_probe(bytes, length))
        return open_trace_in_memory(feed, mt_feed_read, source, error);
    importer = probe(bytes, length);
    return importer ? importer->open(feed, source, error)
                    : mt_fail(error, MT_ERR_FORMAT, 0,
                              "neither a memtrace trace nor a format that can be imported");
}

/* Even a file whose first bytes are lost is searched for frames. */
static enum mt_status open_as_trace(struct mt_feed *feed, const char *path,
                                    struct mt_source **source, struct mt_error *error)
{
    struct mt_error ignored;
    const void *bytes;
    size_t length;

    if (is_trace(feed))
        return open_trace(feed, path, source, error);
    if (mt_feed_start(feed, &bytes, &length, &ignored) == MT_OK && mt_trace_probe(bytes, length))
        return open_trace_in_memory(feed, mt_feed_read, source, error);
    return mt_feed_is_file(feed) ? mt_trace_open(path, source, error)
                                 : mt_fail(error, MT_ERR_FORMAT, 0, "not a memtrace trace");
}

static enum mt_status open_feed(struct mt_feed *feed, const char *path, const char *format,
                                struct mt_source **source, struct mt_error *error)
{
    const struct mt_importer *importer = format ? named(format) : NULL;

    if (importer)
        return importer->open(feed, source, error);
    if (format && strcmp(format, "memtrace") != 0)
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "unknown format '%s'", format);
    if (format)
        return open_as_trace(feed, path, source, error);
    return is_trace(feed) ? open_trace(feed, path, source, error)
                          : open_content(feed, source, error);
}

enum mt_status mt_open_any(const char *path, const char *format, struct mt_source **source,
                           struct mt_error *error)
{
    const struct mt_feed_watch none = {NULL, NULL};

    return mt_open_any_watched(path, format, &none, source, error);
}

enum mt_status mt_open_any_watched(const char *path, const char *format,
                                   const struct mt_feed_watch *watch, struct mt_source **source,
                                   struct mt_error *error)
{
    struct mt_feed *feed;
    enum mt_status status = mt_feed_open(path, &feed, error);

    if (status != MT_OK)
        return status;
    mt_feed_set_watch(feed, watch);
    status = open_feed(feed, path, format, source, error);
    mt_feed_close(feed);
    return status;
}
