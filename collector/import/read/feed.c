#include "feed.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "io.h"
#include "util.h"

enum { RAW_BYTES = 128 * 1024, MAX_EXPANSION = 1000, MAX_LARGE_EXPANSION = 100 };
/* A snapshot compresses to a sixteenth, that of a repetitive loop to a hundredth. Only large files
 * have a strict limit of this ratio, because a small file that expands a lot is harmless. */
#define FREE_EXPANSION_BYTES  MT_MIB
#define LARGE_EXPANSION_BYTES MT_GIB

struct mt_feed {
    int fd; /* -1: memory */
    bool owns_fd, raw_ended, in_frame, is_cut;
    ZSTD_DStream *zstd; /* NULL: not compressed with it */
    z_stream *gzip;     /* likewise */
    /* raw bytes that were read but not decoded: raw[raw_at .. raw_end) */
    const unsigned char *raw;
    size_t raw_at, raw_end;
    uint64_t raw_bytes, decoded_bytes;
    uint64_t size_bytes; /* of a regular file; otherwise 0 */
    const char *path;
    struct mt_feed_watch watch;
    unsigned char *buffer; /* owned storage of raw when reading from fd */
    unsigned char start[MT_FEED_START_BYTES];
    size_t start_length, start_at;
};

static enum mt_status read_fd(struct mt_feed *feed, void *bytes, size_t capacity, size_t *got,
                              struct mt_error *error)
{
    ssize_t count = mt_io_read(feed->fd, bytes, capacity);

    if (count < 0)
        return mt_fail(error, MT_ERR_IO, feed->raw_bytes, "%s", strerror(errno));
    *got = (size_t)count;
    feed->raw_bytes += *got;
    feed->raw_ended = count == 0;
    if (feed->watch.was_read)
        feed->watch.was_read(feed->watch.context, feed->raw_bytes, feed->size_bytes);
    return MT_OK;
}

static enum mt_status refill_raw(struct mt_feed *feed, struct mt_error *error)
{
    enum mt_status status;

    if (feed->fd < 0) {
        feed->raw_ended = true;
        return MT_OK;
    }
    feed->raw_at = feed->raw_end = 0;
    status = read_fd(feed, feed->buffer, RAW_BYTES, &feed->raw_end, error);
    return status;
}

static enum mt_status check_expansion(const struct mt_feed *feed, struct mt_error *error)
{
    uint64_t most =
        feed->decoded_bytes > LARGE_EXPANSION_BYTES ? MAX_LARGE_EXPANSION : MAX_EXPANSION;

    if (feed->decoded_bytes > FREE_EXPANSION_BYTES && feed->decoded_bytes / most > feed->raw_bytes)
        return mt_fail(error, MT_ERR_UNSUPPORTED, feed->raw_bytes,
                       "compressed data expands more than %u times%s", (unsigned)most,
                       most == MAX_EXPANSION ? "" : ", to more than 1 GiB");
    return MT_OK;
}

/* Decoded bytes for a reader. */
struct output {
    unsigned char *bytes;
    size_t capacity, length;
};

/* The offset in the file of the first byte that is not decoded yet. */
static uint64_t place_of(const struct mt_feed *feed)
{
    return feed->raw_bytes - (feed->raw_end - feed->raw_at);
}

static enum mt_status damaged(const struct mt_feed *feed, const char *why, struct mt_error *error)
{
    return mt_fail(error, MT_ERR_FORMAT, place_of(feed), "compressed data is damaged: %s", why);
}

static enum mt_status decode_zstd(struct mt_feed *feed, struct output *output,
                                  struct mt_error *error)
{
    ZSTD_outBuffer out = {output->bytes, output->capacity, output->length};
    ZSTD_inBuffer in = {feed->raw, feed->raw_end, feed->raw_at};
    size_t hint = ZSTD_decompressStream(feed->zstd, &out, &in);
    bool consumed = in.pos > feed->raw_at;

    feed->raw_at = in.pos;
    output->length = out.pos;
    if (ZSTD_getErrorCode(hint) == ZSTD_error_memory_allocation)
        return mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "out of memory");
    if (ZSTD_isError(hint))
        return damaged(feed, ZSTD_getErrorName(hint), error);
    if (consumed || out.pos)
        feed->in_frame = hint != 0;
    return MT_OK;
}

/* Zeros may follow the last member of a file (RFC 1952 does not mention them, but tapes and tar
 * write them, and gzip ignores them). */
static void skip_padding(struct mt_feed *feed)
{
    while (!feed->in_frame && feed->raw_at < feed->raw_end && !feed->raw[feed->raw_at])
        feed->raw_at++;
}

static enum mt_status decode_gzip(struct mt_feed *feed, struct output *output,
                                  struct mt_error *error)
{
    z_stream *gzip = feed->gzip;
    int result;

    skip_padding(feed);
    if (!feed->in_frame && feed->raw_at == feed->raw_end)
        return MT_OK;
    gzip->next_in = feed->raw + feed->raw_at;
    gzip->avail_in = (uInt)mt_min_u64(feed->raw_end - feed->raw_at, UINT_MAX);
    gzip->next_out = output->bytes + output->length;
    gzip->avail_out = (uInt)mt_min_u64(output->capacity - output->length, UINT_MAX);
    feed->in_frame = true;
    result = inflate(gzip, Z_NO_FLUSH);
    feed->raw_at = (size_t)(gzip->next_in - feed->raw);
    output->length = (size_t)(gzip->next_out - output->bytes);
    if (result == Z_MEM_ERROR)
        return mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "out of memory");
    if (result == Z_STREAM_END) { /* another member may follow */
        feed->in_frame = false;
        result = inflateReset(gzip);
    }
    return result == Z_OK || result == Z_BUF_ERROR
               ? MT_OK
               : damaged(feed, gzip->msg ? gzip->msg : "not a gzip stream", error);
}

static enum mt_status read_compressed(struct mt_feed *feed, void *bytes, size_t capacity,
                                      size_t *got, struct mt_error *error)
{
    struct output output = {bytes, capacity, 0};

    while (output.length == 0) {
        enum mt_status status =
            feed->zstd ? decode_zstd(feed, &output, error) : decode_gzip(feed, &output, error);

        if (status != MT_OK)
            return status;
        if (output.length || feed->raw_at < feed->raw_end)
            continue;
        if (!feed->raw_ended) {
            status = refill_raw(feed, error);
            if (status != MT_OK)
                return status;
            if (!feed->raw_ended)
                continue;
        }
        feed->is_cut = feed->in_frame;
        if (feed->is_cut)
            return mt_fail(error, MT_ERR_FORMAT, place_of(feed), "compressed data is cut");
        break;
    }
    *got = output.length;
    feed->decoded_bytes += output.length;
    return check_expansion(feed, error);
}

static enum mt_status read_plain(struct mt_feed *feed, void *bytes, size_t capacity, size_t *got,
                                 struct mt_error *error)
{
    size_t buffered = feed->raw_end - feed->raw_at;
    enum mt_status status = MT_OK;

    if (buffered) {
        *got = mt_min_u64(buffered, capacity);
        memcpy(bytes, feed->raw + feed->raw_at, *got);
        feed->raw_at += *got;
    } else if (feed->fd >= 0) {
        status = read_fd(feed, bytes, capacity, got, error);
    } else {
        *got = 0;
    }
    feed->decoded_bytes += *got;
    return status;
}

enum mt_status mt_feed_read_raw(struct mt_feed *feed, void *bytes, size_t capacity, size_t *got,
                                struct mt_error *error)
{
    return read_plain(feed, bytes, capacity, got, error);
}

static enum mt_status read_decoded(struct mt_feed *feed, void *bytes, size_t capacity, size_t *got,
                                   struct mt_error *error)
{
    *got = 0;
    return feed->zstd || feed->gzip ? read_compressed(feed, bytes, capacity, got, error)
                                    : read_plain(feed, bytes, capacity, got, error);
}

enum mt_status mt_feed_read(struct mt_feed *feed, void *bytes, size_t capacity, size_t *got,
                            struct mt_error *error)
{
    size_t left = feed->start_length - feed->start_at;

    *got = 0;
    if (!capacity)
        return MT_OK;
    if (!left)
        return read_decoded(feed, bytes, capacity, got, error);
    *got = mt_min_u64(left, capacity);
    memcpy(bytes, feed->start + feed->start_at, *got);
    feed->start_at += *got;
    return MT_OK;
}

/* Returns whether this is an ordinary or a skippable zstd frame. */
static bool has_zstd_magic(const unsigned char *raw, size_t length)
{
    uint32_t magic;

    if (length < 4)
        return false;
    magic =
        (uint32_t)raw[0] | (uint32_t)raw[1] << 8 | (uint32_t)raw[2] << 16 | (uint32_t)raw[3] << 24;
    return magic == ZSTD_MAGICNUMBER ||
           (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

static bool has_gzip_magic(const unsigned char *raw, size_t length)
{
    return length >= 2 && raw[0] == 0x1f && raw[1] == 0x8b;
}

static enum mt_status begin_gzip(struct mt_feed *feed, struct mt_error *error)
{
    enum { WINDOW_BITS = 15, GZIP_HEADER = 16 };

    feed->gzip = calloc(1, sizeof *feed->gzip);
    if (feed->gzip && inflateInit2(feed->gzip, WINDOW_BITS + GZIP_HEADER) == Z_OK)
        return MT_OK;
    free(feed->gzip);
    feed->gzip = NULL;
    return mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "out of memory");
}

/* A pipe may return fewer than 4 bytes at a time. */
static enum mt_status read_magic(struct mt_feed *feed, struct mt_error *error)
{
    while (feed->fd >= 0 && feed->raw_end < 4 && !feed->raw_ended) {
        size_t got = 0;
        enum mt_status status =
            read_fd(feed, feed->buffer + feed->raw_end, RAW_BYTES - feed->raw_end, &got, error);
        if (status != MT_OK)
            return status;
        feed->raw_end += got;
    }
    if (has_gzip_magic(feed->raw, feed->raw_end))
        return begin_gzip(feed, error);
    if (!has_zstd_magic(feed->raw, feed->raw_end))
        return MT_OK;
    feed->zstd = ZSTD_createDStream();
    return feed->zstd ? MT_OK : mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "out of memory");
}

enum mt_status mt_feed_start(struct mt_feed *feed, const void **bytes, size_t *length,
                             struct mt_error *error)
{
    size_t got = 1;

    while (got && feed->start_length < sizeof feed->start) {
        enum mt_status status = read_decoded(feed, feed->start + feed->start_length,
                                             sizeof feed->start - feed->start_length, &got, error);
        if (status != MT_OK)
            return status;
        feed->start_length += got;
    }
    *bytes = feed->start;
    *length = feed->start_length;
    return MT_OK;
}

static enum mt_status finish_open(struct mt_feed *fresh, struct mt_feed **feed,
                                  struct mt_error *error)
{
    enum mt_status status = read_magic(fresh, error);

    if (status != MT_OK) {
        mt_feed_close(fresh);
        return status;
    }
    *feed = fresh;
    return MT_OK;
}

static enum mt_status open_fd(struct mt_feed *fresh, const char *path, struct mt_error *error)
{
    struct stat info;

    fresh->path = path;
    fresh->owns_fd = strcmp(path, "-") != 0;
    fresh->fd = fresh->owns_fd ? mt_io_open(path, O_RDONLY, 0) : STDIN_FILENO;
    if (fresh->fd < 0)
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "%s", strerror(errno));
    if (fstat(fresh->fd, &info) == 0 && S_ISREG(info.st_mode))
        fresh->size_bytes = (uint64_t)info.st_size;
    fresh->buffer = malloc(RAW_BYTES);
    fresh->raw = fresh->buffer;
    if (!fresh->buffer)
        return mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "out of memory");
    return MT_OK;
}

enum mt_status mt_feed_open(const char *path, struct mt_feed **feed, struct mt_error *error)
{
    struct mt_feed *fresh = calloc(1, sizeof *fresh);
    enum mt_status status;

    if (!fresh)
        return mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "out of memory");
    status = open_fd(fresh, path, error);
    if (status != MT_OK) {
        mt_feed_close(fresh);
        return status;
    }
    return finish_open(fresh, feed, error);
}

void mt_feed_set_watch(struct mt_feed *feed, const struct mt_feed_watch *watch)
{
    feed->watch = *watch;
}

enum mt_status mt_feed_open_memory(const void *bytes, size_t length, struct mt_feed **feed,
                                   struct mt_error *error)
{
    struct mt_feed *fresh = calloc(1, sizeof *fresh);

    if (!fresh)
        return mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "out of memory");
    fresh->fd = -1;
    fresh->raw = bytes;
    fresh->raw_end = length;
    fresh->raw_bytes = length;
    return finish_open(fresh, feed, error);
}

void mt_feed_close(struct mt_feed *feed)
{
    if (!feed)
        return;
    if (feed->owns_fd && feed->fd >= 0)
        close(feed->fd);
    ZSTD_freeDStream(feed->zstd);
    if (feed->gzip)
        inflateEnd(feed->gzip);
    free(feed->gzip);
    free(feed->buffer);
    free(feed);
}

bool mt_feed_is_file(const struct mt_feed *feed)
{
    struct stat info;

    return feed->owns_fd && fstat(feed->fd, &info) == 0 && S_ISREG(info.st_mode);
}

const char *mt_feed_path(const struct mt_feed *feed)
{
    return mt_feed_is_file(feed) && !feed->zstd && !feed->gzip ? feed->path : NULL;
}

const void *mt_feed_raw(const struct mt_feed *feed, size_t *length)
{
    *length = feed->raw_end - feed->raw_at;
    return feed->raw + feed->raw_at;
}

bool mt_feed_is_cut(const struct mt_feed *feed)
{
    return feed->is_cut;
}

uint64_t mt_feed_raw_bytes(const struct mt_feed *feed)
{
    return place_of(feed);
}

uint64_t mt_feed_file_bytes(const struct mt_feed *feed)
{
    return feed->size_bytes ? feed->size_bytes : mt_feed_raw_bytes(feed);
}
