#include "feed.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "check.h"
#include "io.h"
#include "util.h"

enum { RAW_BYTES = 128 * 1024, PIECE_BYTES = 256 * 1024, PIECES = 4 };
enum { MAX_EXPANSION = 1000, MAX_LARGE_EXPANSION = 100 };
/* A snapshot compresses to a sixteenth, that of a repetitive loop to a hundredth. Only large files
 * have a strict limit of this ratio, because a small file that expands a lot is harmless. */
#define FREE_EXPANSION_BYTES  MT_MIB
#define LARGE_EXPANSION_BYTES MT_GIB

/* A step of mt_feed_next, and where it ended. */
struct piece {
    unsigned char *room; /* MT_FEED_LEFT_BYTES and PIECE_BYTES; NULL = not used so far */
    size_t length;       /* 0: the end, or an error */
    uint64_t raw_bytes, place;
    enum mt_status status;
    struct mt_error error;
    bool is_cut;
};

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

    /* mt_feed_next: a ring of pieces. The first is made when it is needed. If the file is regular
     * and more than RAW_BYTES of it are left, a thread makes the others ahead of their use.
     * (Reading a pipe can wait for another program without end, and nothing could end such a
     * thread.) */
    struct piece pieces[PIECES];
    const struct piece *piece; /* the caller's; NULL = none so far */
    uint64_t made, taken;      /* numbers of pieces */
    bool has_thread, is_unwanted;
    pthread_t thread;       /* nobody else writes the fields above the ring */
    pthread_mutex_t lock;   /* protects made, taken, is_unwanted */
    pthread_cond_t changed; /* one of them did */
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
    return MT_OK;
}

static void tell_watch(const struct mt_feed *feed, uint64_t raw_bytes)
{
    if (feed->watch.was_read)
        feed->watch.was_read(feed->watch.context, raw_bytes, feed->size_bytes);
}

static enum mt_status refill_raw(struct mt_feed *feed, struct mt_error *error)
{
    if (feed->fd < 0) {
        feed->raw_ended = true;
        return MT_OK;
    }
    feed->raw_at = feed->raw_end = 0;
    return read_fd(feed, feed->buffer, RAW_BYTES, &feed->raw_end, error);
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
        return mt_fail_memory(error);
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

    skip_padding(feed);
    if (!feed->in_frame && feed->raw_at == feed->raw_end)
        return MT_OK;
    gzip->next_in = feed->raw + feed->raw_at;
    gzip->avail_in = (uInt)mt_min_u64(feed->raw_end - feed->raw_at, UINT_MAX);
    gzip->next_out = output->bytes + output->length;
    gzip->avail_out = (uInt)mt_min_u64(output->capacity - output->length, UINT_MAX);
    feed->in_frame = true;
    int result = inflate(gzip, Z_NO_FLUSH);
    feed->raw_at = (size_t)(gzip->next_in - feed->raw);
    output->length = (size_t)(gzip->next_out - output->bytes);
    if (result == Z_MEM_ERROR)
        return mt_fail_memory(error);
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
    enum mt_status status = read_plain(feed, bytes, capacity, got, error);

    tell_watch(feed, feed->raw_bytes);
    return status;
}

static enum mt_status read_decoded(struct mt_feed *feed, void *bytes, size_t capacity, size_t *got,
                                   struct mt_error *error)
{
    *got = 0;
    return feed->zstd || feed->gzip ? read_compressed(feed, bytes, capacity, got, error)
                                    : read_plain(feed, bytes, capacity, got, error);
}

static enum mt_status read_next(struct mt_feed *feed, void *bytes, size_t capacity, size_t *got,
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

enum mt_status mt_feed_read(struct mt_feed *feed, void *bytes, size_t capacity, size_t *got,
                            struct mt_error *error)
{
    enum mt_status status = read_next(feed, bytes, capacity, got, error);

    tell_watch(feed, feed->raw_bytes);
    return status;
}

/* Makes the next piece, whose place in the ring must be free. */
static struct piece *make_piece(struct mt_feed *feed)
{
    struct piece *piece = &feed->pieces[feed->made % PIECES];

    *piece = (struct piece){.room = piece->room};
    if (!piece->room)
        piece->room = malloc(MT_FEED_LEFT_BYTES + PIECE_BYTES);
    if (piece->room)
        piece->status = read_next(feed, piece->room + MT_FEED_LEFT_BYTES, PIECE_BYTES,
                                  &piece->length, &piece->error);
    else
        piece->status = mt_fail_memory(&piece->error);
    if (piece->status)
        piece->length = 0;
    piece->raw_bytes = feed->raw_bytes;
    piece->place = place_of(feed);
    piece->is_cut = feed->is_cut;
    return piece;
}

static void *make_ahead(void *context)
{
    struct mt_feed *feed = context;
    bool goes_on = true;

    while (goes_on) {
        goes_on = make_piece(feed)->length > 0;
        pthread_mutex_lock(&feed->lock);
        feed->made++;
        pthread_cond_signal(&feed->changed);
        while (feed->made - feed->taken == PIECES - 1 && !feed->is_unwanted)
            pthread_cond_wait(&feed->changed, &feed->lock);
        goes_on &= !feed->is_unwanted;
        pthread_mutex_unlock(&feed->lock);
    }
    return NULL;
}

static struct piece *wait_for_piece(struct mt_feed *feed)
{
    pthread_mutex_lock(&feed->lock);
    while (feed->made == feed->taken)
        pthread_cond_wait(&feed->changed, &feed->lock);
    pthread_mutex_unlock(&feed->lock);
    return &feed->pieces[feed->taken % PIECES];
}

static struct piece *next_piece(struct mt_feed *feed)
{
    if (feed->taken == 1 && feed->raw_bytes + RAW_BYTES < feed->size_bytes)
        feed->has_thread = !pthread_create(&feed->thread, NULL, make_ahead, feed);
    if (feed->has_thread)
        return wait_for_piece(feed);
    struct piece *next = make_piece(feed);
    feed->made++;
    return next;
}

enum mt_status mt_feed_next(struct mt_feed *feed, size_t left, const unsigned char **bytes,
                            size_t *length, struct mt_error *error)
{
    const struct piece *last = feed->piece;

    MT_ASSERT(left <= MT_FEED_LEFT_BYTES && (!last || last->length));
    const struct piece *next = next_piece(feed);
    if (next->status && error)
        *error = next->error;
    if (left && next->room)
        memcpy(next->room + MT_FEED_LEFT_BYTES - left,
               last->room + MT_FEED_LEFT_BYTES + last->length - left, left);
    *bytes = next->room ? next->room + MT_FEED_LEFT_BYTES - left : NULL;
    *length = left + next->length;
    feed->piece = next;
    pthread_mutex_lock(&feed->lock); /* the last piece is free */
    feed->taken++;
    pthread_cond_signal(&feed->changed);
    pthread_mutex_unlock(&feed->lock);
    tell_watch(feed, next->raw_bytes);
    return next->status;
}

static void end_thread(struct mt_feed *feed)
{
    if (!feed->has_thread)
        return;
    pthread_mutex_lock(&feed->lock);
    feed->is_unwanted = true;
    pthread_cond_signal(&feed->changed);
    pthread_mutex_unlock(&feed->lock);
    pthread_join(feed->thread, NULL);
}

/* Returns whether this is an ordinary or a skippable zstd frame. */
static bool has_zstd_magic(const unsigned char *raw, size_t length)
{
    if (length < 4)
        return false;
    uint32_t magic =
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
    return mt_fail_memory(error);
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
    return feed->zstd ? MT_OK : mt_fail_memory(error);
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

static enum mt_status open_path(struct mt_feed *fresh, const char *path, struct mt_error *error)
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
        return mt_fail_memory(error);
    return MT_OK;
}

/* Opens the path, or memory if it is NULL. */
static enum mt_status open_any(const char *path, const void *bytes, size_t length,
                               struct mt_feed **feed, struct mt_error *error)
{
    struct mt_feed *fresh = calloc(1, sizeof *fresh);
    enum mt_status status = MT_OK;

    if (!fresh)
        return mt_fail_memory(error);
    fresh->fd = -1;
    fresh->raw = bytes;
    fresh->raw_bytes = fresh->raw_end = length;
    pthread_mutex_init(&fresh->lock, NULL);
    pthread_cond_init(&fresh->changed, NULL);
    if (path)
        status = open_path(fresh, path, error);
    if (!status)
        status = read_magic(fresh, error);
    if (status)
        mt_feed_close(fresh);
    else
        *feed = fresh;
    return status;
}

enum mt_status mt_feed_open(const char *path, struct mt_feed **feed, struct mt_error *error)
{
    return open_any(path, NULL, 0, feed, error);
}

enum mt_status mt_feed_open_memory(const void *bytes, size_t length, struct mt_feed **feed,
                                   struct mt_error *error)
{
    return open_any(NULL, bytes, length, feed, error);
}

void mt_feed_set_watch(struct mt_feed *feed, const struct mt_feed_watch *watch)
{
    feed->watch = *watch;
}

void mt_feed_close(struct mt_feed *feed)
{
    if (!feed)
        return;
    end_thread(feed);
    if (feed->owns_fd && feed->fd >= 0)
        close(feed->fd);
    ZSTD_freeDStream(feed->zstd);
    if (feed->gzip)
        inflateEnd(feed->gzip);
    for (size_t i = 0; i < PIECES; i++)
        free(feed->pieces[i].room);
    pthread_mutex_destroy(&feed->lock);
    pthread_cond_destroy(&feed->changed);
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
    return feed->piece ? feed->piece->is_cut : feed->is_cut;
}

uint64_t mt_feed_raw_bytes(const struct mt_feed *feed)
{
    return feed->piece ? feed->piece->place : place_of(feed);
}

uint64_t mt_feed_file_bytes(const struct mt_feed *feed)
{
    return feed->size_bytes ? feed->size_bytes : mt_feed_raw_bytes(feed);
}
