#include "import.h"

#include "buf.h"
#include "feed.h"
#include "importers.h"
#include "neighbors.h"
#include "pickle.h"
#include "trace.h"
#include "util.h"

enum { PIECE_BYTES = 256 * 1024 };

struct importer {
    /* Returns true if the first bytes (decompressed, at most 4096) look like this format. */
    bool (*probe)(const void *bytes, size_t length);
    /* Reads `feed` (feed.h) up to the end of what the source needs. The caller keeps the feed;
     * the source does not need it afterwards. */
    enum mt_status (*open)(struct mt_feed *feed, struct mt_source **source, struct mt_error *error);
};

static const struct importer importers[] = {
    {mt_pickle_probe, mt_torch_snapshot_open}, /* torch.cuda.memory._dump_snapshot, since 1.12 */
    {mt_kineto_probe, mt_kineto_open},         /* torch.profiler with profile_memory=True */
    {mt_memory_timeline_probe, mt_memory_timeline_open}, /* its export_memory_timeline */
    {mt_xplane_probe, mt_xplane_open}, /* *.xplane.pb of jax.profiler and TensorFlow's profiler */
    {mt_jax_profile_probe, mt_jax_profile_open}, /* jax.profiler.save_device_memory_profile */
    {mt_nsys_probe, mt_nsys_open},               /* nsys export --type sqlite */
    {mt_rows_probe, mt_rows_open},               /* events as CSV */
};

static bool is_trace(const struct mt_feed *feed)
{
    size_t length;
    const void *raw = mt_feed_raw(feed, &length);

    return mt_trace_probe(raw, length);
}

static const struct importer *probe(const void *bytes, size_t length)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(importers); i++)
        if (importers[i].probe(bytes, length))
            return &importers[i];
    return NULL;
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
            status = mt_fail_memory(error);
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
static enum mt_status open_content(struct mt_feed *feed, const char *path,
                                   struct mt_source **source, struct mt_error *error)
{
    const void *bytes;
    size_t length;
    enum mt_status status = mt_feed_start(feed, &bytes, &length, error);

    if (status != MT_OK)
        return status;
    if (!length)
        return mt_fail(error, MT_ERR_FORMAT, 0, "the file is empty");
    if (mt_trace_probe(bytes, length))
        return open_trace_in_memory(feed, mt_feed_read, source, error);
    const char *advice =
        mt_memory_timeline_probe(bytes, length) ? NULL : mt_neighbor_advice(bytes, length, path);
    if (advice)
        return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "%s", advice);
    const struct importer *importer = probe(bytes, length);
    if (!importer)
        return mt_fail(error, MT_ERR_FORMAT, 0,
                       "neither a memtrace trace nor a format that can be imported");
    status = importer->open(feed, source, error);
    if (status == MT_OK)
        (*source)->input_bytes = mt_feed_file_bytes(feed);
    return status;
}

enum mt_status mt_import_open_any(const char *path, struct mt_source **source,
                                  struct mt_error *error)
{
    const struct mt_feed_watch none = {NULL, NULL};

    return mt_import_open_watched(path, &none, source, error);
}

enum mt_status mt_import_open_watched(const char *path, const struct mt_feed_watch *watch,
                                      struct mt_source **source, struct mt_error *error)
{
    struct mt_feed *feed;
    enum mt_status status = mt_feed_open(path, &feed, error);

    if (status != MT_OK)
        return status;
    mt_feed_set_watch(feed, watch);
    status = is_trace(feed) ? open_trace(feed, path, source, error)
                            : open_content(feed, path, source, error);
    mt_feed_close(feed);
    return status;
}
