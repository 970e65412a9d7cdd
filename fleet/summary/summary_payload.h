/* The uncompressed contents of a summary's file: texts, call paths and records
 * (docs/internals/rank-summary.md, "The payload"). These functions only read and write memory.
 * Private to summary_file.c. */
#ifndef MT_FLEET_SUMMARY_PAYLOAD_H
#define MT_FLEET_SUMMARY_PAYLOAD_H

#include "buf.h"
#include "rank_set.h"

/* Limit for the bytes of all texts in paths and records, counted once for each use. Each use is
 * hashed and copied, so without a limit a compressed file of 2 KiB with one long text could keep a
 * reader busy for hours. */
#define MT_SUMMARY_MAX_NAMED_BYTES (UINT64_C(1) << 31)

/* Appends the payload of a set in canonical form. MT_ERR_UNSUPPORTED: the set has more text than a
 * reader accepts. */
enum mt_status mt_summary_payload_write(const struct mt_rank_set *set,
                                        struct mt_buf *out) MT_MUST_USE;

/* Adds the records of a payload to an empty set. MT_ERR_FORMAT with *reason, a static text; the set
 * may then only be released. Uses memory of at most a fixed multiple of `length`. */
enum mt_status mt_summary_payload_read(const uint8_t *bytes, size_t length, struct mt_rank_set *set,
                                       const char **reason) MT_MUST_USE;

#endif
