/* Bytes of a file, of standard input or of memory, decompressed if they are
 * zstd (decided by magic). One pass, never seeks back. Depends on zstd only. */
#ifndef MT_COLLECTOR_FEED_H
#define MT_COLLECTOR_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

/* How many decoded bytes can be looked at before they are read. */
#define MT_FEED_START_BYTES 4096

struct mt_feed;

/* `path` is opened for reading; "-" is standard input. */
enum mt_status mt_feed_open(const char *path, struct mt_feed **feed,
                            struct mt_error *error) MT_MUST_USE;

/* As above from memory that stays valid until close. */
enum mt_status mt_feed_open_memory(const void *bytes, size_t length, struct mt_feed **feed,
                                   struct mt_error *error) MT_MUST_USE;

void mt_feed_close(struct mt_feed *feed); /* NULL is fine */

/* Was it opened by a path that gives the same bytes once more? */
bool mt_feed_is_file(const struct mt_feed *feed);

/* The first decoded bytes (at most MT_FEED_START_BYTES); they stay unread. Call
 * it before the first read. */
enum mt_status mt_feed_start(struct mt_feed *feed, const void **bytes, size_t *length,
                             struct mt_error *error) MT_MUST_USE;

/* Bytes as they lie on disk that were read but not decoded yet: at least the
 * first 4 of the file right after it was opened. */
const void *mt_feed_raw(const struct mt_feed *feed, size_t *length);

/* The next 1..capacity decoded bytes; *got is 0 at the end. A compressed
 * stream that is cut or damaged is an error at its place in the file; so is
 * one that expands more than a thousandfold (beyond the first MiB). */
enum mt_status mt_feed_read(struct mt_feed *feed, void *bytes, size_t capacity, size_t *got,
                            struct mt_error *error) MT_MUST_USE;

/* As mt_feed_read, but bytes as they lie on disk. Do not mix the two. */
enum mt_status mt_feed_read_raw(struct mt_feed *feed, void *bytes, size_t capacity, size_t *got,
                                struct mt_error *error) MT_MUST_USE;

/* Bytes as they lie on disk: read so far. */
uint64_t mt_feed_raw_bytes(const struct mt_feed *feed);

#endif
