/* The file of a summary, FILE.mtsum: a set of records, of one rank or of many.
 * docs/internals/rank-summary.md is the specification. The file has a version and a checksum, and
 * is compressed. The same set in canonical form gives the same bytes. */
#ifndef MT_FLEET_SUMMARY_FILE_H
#define MT_FLEET_SUMMARY_FILE_H

#include "buf.h"
#include "rank_set.h"

/* Returns true if a file that begins with these `length` bytes looks like a summary. 8 bytes
 * suffice. */
bool mt_summary_probe(const void *bytes, size_t length);

/* Brings `set` into canonical form, then appends the whole file to `out`. */
enum mt_status mt_summary_encode(struct mt_rank_set *set, struct mt_buf *out,
                                 struct mt_error *error) MT_MUST_USE;

/* Adds the records of a file to `set`. The input may be hostile: sizes are checked before memory is
 * allocated, a damaged file adds nothing, and a file may have at most 1 GiB of decoded bytes.
 * `bytes` are memory of this process, which goes back to the host while they are decoded: they are
 * undefined afterwards. */
enum mt_status mt_summary_decode(void *bytes, size_t length, struct mt_rank_set *set,
                                 struct mt_error *error) MT_MUST_USE;

/* The uncompressed contents of a summary's file: texts, call paths and records
 * (docs/internals/rank-summary.md, "The payload"). These functions only read and write memory.
 * Private to summary_file.c. */

/* Appends the payload of a set in canonical form. MT_ERR_UNSUPPORTED: the set has more text than a
 * reader accepts. */
enum mt_status mt_summary_payload_write(const struct mt_rank_set *set,
                                        struct mt_buf *out) MT_MUST_USE;

enum { MT_SUMMARY_RECORD_BYTES = 1 << 17 }; /* of no record more: each number takes at most 10 */

/* Adds the records of a payload to an empty set. MT_ERR_FORMAT with *reason, a static text; the set
 * may then only be released. Uses memory of at most a fixed multiple of `length`. */
enum mt_status mt_summary_payload_read(const uint8_t *bytes, size_t length, struct mt_rank_set *set,
                                       const char **reason) MT_MUST_USE;

#endif
