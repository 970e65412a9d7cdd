/* Reads the bytes of a file, of standard input or of memory, and decompresses zstd and gzip
 * (recognized by their magic numbers). Reads in one pass and never seeks back. Depends on zstd,
 * zlib and threads only. */
#ifndef MT_COLLECTOR_FEED_H
#define MT_COLLECTOR_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

/* The most decoded bytes that mt_feed_start returns. */
#define MT_FEED_START_BYTES 4096

/* The most bytes that mt_feed_next repeats. */
#define MT_FEED_LEFT_BYTES (16 * 1024)

struct mt_feed;

/* Follows the reading of a file, to show the progress. */
struct mt_feed_watch {
    /* Called after each piece. size_bytes is the size of the file, or 0 for a pipe. May be NULL. */
    void (*was_read)(void *context, uint64_t read_bytes, uint64_t size_bytes);
    void *context;
};

/* Opens `path`, which is borrowed, for reading; "-" is standard input. */
enum mt_status mt_feed_open(const char *path, struct mt_feed **feed,
                            struct mt_error *error) MT_MUST_USE;

/* Like mt_feed_open, for bytes in memory that must stay valid until mt_feed_close. */
enum mt_status mt_feed_open_memory(const void *bytes, size_t length, struct mt_feed **feed,
                                   struct mt_error *error) MT_MUST_USE;

void mt_feed_close(struct mt_feed *feed); /* NULL is fine */

/* Replaces the watch of a feed that was just opened; the struct is copied. */
void mt_feed_set_watch(struct mt_feed *feed, const struct mt_feed_watch *watch);

/* True if the feed was opened by a path that can be opened again and gives the same bytes. */
bool mt_feed_is_file(const struct mt_feed *feed);

/* Returns the path of such a file if it is not compressed, for readers that need a file; else
 * NULL. */
const char *mt_feed_path(const struct mt_feed *feed);

/* Returns the first decoded bytes (at most MT_FEED_START_BYTES) and leaves them unread. Call it
 * before the first read. */
enum mt_status mt_feed_start(struct mt_feed *feed, const void **bytes, size_t *length,
                             struct mt_error *error) MT_MUST_USE;

/* Returns the raw (still compressed) bytes that were read from the file but not decoded yet. Right
 * after the file was opened, these are at least its first 4 bytes. */
const void *mt_feed_raw(const struct mt_feed *feed, size_t *length);

/* Reads the next 1..capacity decoded bytes; *got is 0 at the end, or if capacity is. A truncated or
 * damaged compressed stream is an error that names the offset in the file. So is a stream that
 * expands more than a thousandfold (beyond the first MiB). */
enum mt_status mt_feed_read(struct mt_feed *feed, void *bytes, size_t capacity, size_t *got,
                            struct mt_error *error) MT_MUST_USE;

/* Like mt_feed_read, but without a copy, and in a large file a thread reads and decodes ahead until
 * mt_feed_close. *bytes are the last `left` (<= MT_FEED_LEFT_BYTES) bytes of the previous call, and
 * then the next ones: none at the end, which is the last call. Valid until the next call. */
enum mt_status mt_feed_next(struct mt_feed *feed, size_t left, const unsigned char **bytes,
                            size_t *length, struct mt_error *error) MT_MUST_USE;

/* Like mt_feed_read, but reads raw bytes without decoding. Do not mix the three. */
enum mt_status mt_feed_read_raw(struct mt_feed *feed, void *bytes, size_t capacity, size_t *got,
                                struct mt_error *error) MT_MUST_USE;

/* Whether the last error of the feed was that compressed data is cut. */
bool mt_feed_is_cut(const struct mt_feed *feed);

/* Number of raw bytes read so far. */
uint64_t mt_feed_raw_bytes(const struct mt_feed *feed);

/* Size of the file; of a pipe, the number of raw bytes read so far. */
uint64_t mt_feed_file_bytes(const struct mt_feed *feed);

#endif
