#include "import.h"

#include <string.h>

#include "buf.h"
#include "feed.h"
#include "pickle.h"
#include "torch_snapshot.h"
#include "trace.h"

enum { PIECE_BYTES = 256 * 1024 };

const struct mt_importer mt_importers[] = {
    {"pytorch-snapshot", "torch.cuda.memory._dump_snapshot, 1.12 and later", mt_pickle_probe,
     mt_torch_snapshot_open},
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

static enum mt_status probe(struct mt_feed *feed, const struct mt_importer **found,
                            struct mt_error *error)
{
    const struct mt_importer *importer = mt_importers;
    const void *bytes;
    size_t length;
    enum mt_status status = mt_feed_start(feed, &bytes, &length, error);

    if (status != MT_OK)
        return status;
    if (!length)
        return mt_fail(error, MT_ERR_FORMAT, 0, "the file is empty");
    while (importer->name && !importer->probe(bytes, length))
        importer++;
    *found = importer;
    return importer->name ? MT_OK
                          : mt_fail(error, MT_ERR_FORMAT, 0,
                                    "neither a memtrace trace nor a format that can be imported");
}

static enum mt_status import_feed(struct mt_feed *feed, const char *format,
                                  struct mt_source **source, struct mt_error *error)
{
    const struct mt_importer *importer = NULL;
    enum mt_status status = MT_OK;

    if (!format)
        status = probe(feed, &importer, error);
    else if (!(importer = named(format)))
        status = mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "unknown format '%s'", format);
    return status == MT_OK ? importer->open(feed, source, error) : status;
}

/* A trace that comes through a pipe has to be in memory. */
static enum mt_status open_piped_trace(struct mt_feed *feed, struct mt_source **source,
                                       struct mt_error *error)
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
        status = mt_feed_read_raw(feed, room, PIECE_BYTES, &got, error);
        bytes.length += got;
    }
    if (status == MT_OK) /* takes the bytes over, whatever becomes of them */
        return mt_trace_open_owned(bytes.data, bytes.length, source, error);
    mt_buf_release(&bytes);
    return status;
}

static enum mt_status open_feed(struct mt_feed *feed, const char *path, const char *format,
                                struct mt_source **source, struct mt_error *error)
{
    bool trace = format ? strcmp(format, "memtrace") == 0 : is_trace(feed);

    if (!trace)
        return import_feed(feed, format, source, error);
    if (strcmp(path, "-") == 0)
        return open_piped_trace(feed, source, error);
    return mt_trace_open(path, source, error);
}

enum mt_status mt_open_any(const char *path, const char *format, struct mt_source **source,
                           struct mt_error *error)
{
    struct mt_feed *feed;
    enum mt_status status = mt_feed_open(path, &feed, error);

    if (status != MT_OK)
        return status;
    status = open_feed(feed, path, format, source, error);
    mt_feed_close(feed);
    return status;
}
