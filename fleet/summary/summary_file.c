/* The file around a payload (docs/internals/rank-summary.md, "The file"): magic, version, checksum,
 * length, one zstd frame. */
#include "summary_file.h"

#include <stdlib.h>
#include <string.h>

#include <zstd.h>
#include <zstd_errors.h>

#include "bytes.h"
#include "check.h"
#include "process_memory.h"
#include "summary_payload.h"

enum {
    MAGIC_BYTES = 8,
    VERSION_AT = MAGIC_BYTES,
    CHECKSUM_AT = 12,
    LENGTH_AT = 16,
    HEADER_BYTES = 24,
    SUMMARY_VERSION = 2,
    COMPRESSION_LEVEL = 9,
    /* A block of zstd takes at least 4 bytes, and gives at most 128 KiB. */
    MAX_RATIO = 1 << 15
};
#define MAX_PAYLOAD_BYTES ((uint64_t)1 << 30)

static const char magic[MAGIC_BYTES + 1] = "MTSUM1\0\0";

bool mt_summary_probe(const void *bytes, size_t length)
{
    return length >= MAGIC_BYTES && memcmp(bytes, magic, MAGIC_BYTES) == 0;
}

static void add_header(struct mt_buf *out, const struct mt_buf *payload)
{
    uint8_t header[HEADER_BYTES];

    memcpy(header, magic, MAGIC_BYTES);
    mt_put_u32(header + VERSION_AT, SUMMARY_VERSION);
    mt_put_u32(header + CHECKSUM_AT, mt_crc32(payload->data, payload->length));
    mt_put_u64(header + LENGTH_AT, payload->length);
    mt_buf_add(out, (const char *)header, sizeof header);
}

static void add_frame(struct mt_buf *out, const struct mt_buf *payload)
{
    size_t room = ZSTD_compressBound(payload->length), got;
    char *at = mt_buf_reserve(out, room);

    got = ZSTD_compress(at, room, payload->data, payload->length, COMPRESSION_LEVEL);
    if (ZSTD_isError(got)) /* there is room, so the failure is missing memory */
        mt_memory_end();
    out->length += got;
}

enum mt_status mt_summary_encode(struct mt_rank_set *set, struct mt_buf *out,
                                 struct mt_error *error)
{
    struct mt_buf payload = {0};
    const char *why = "";
    enum mt_status status = mt_rank_set_sort(set);

    if (status == MT_OK)
        status = mt_summary_payload_write(set, &payload);
    if (status == MT_OK && payload.length > MAX_PAYLOAD_BYTES)
        status = MT_ERR_UNSUPPORTED;
    if (status == MT_ERR_UNSUPPORTED)
        (void)mt_fail(error, status, MT_NO_OFFSET,
                      "the summaries are too large for one file; divide the job into several "
                      "files");
    else if (status != MT_OK)
        (void)mt_fail(error, status, MT_NO_OFFSET, "%s", mt_status_text(status));
    MT_ASSERT_SOUND(status != MT_OK || mt_rank_set_is_sound(set, &why), why);
    if (status == MT_OK) {
        add_header(out, &payload);
        add_frame(out, &payload);
    }
    mt_buf_release(&payload);
    return status;
}

/* The header is complete, and this version reads it. */
static enum mt_status check_header(const uint8_t *bytes, size_t length, struct mt_error *error)
{
    uint32_t version;
    uint64_t raw;

    if (!mt_summary_probe(bytes, length))
        return mt_fail(error, MT_ERR_FORMAT, 0, "not a summary: it does not begin with MTSUM1");
    if (length < HEADER_BYTES)
        return mt_fail(error, MT_ERR_FORMAT, length, "the summary is cut short");
    version = mt_get_u32(bytes + VERSION_AT);
    if (version != SUMMARY_VERSION)
        return mt_fail(error, MT_ERR_UNSUPPORTED, VERSION_AT,
                       "the summary has version %u, and this memtrace reads version %u; use a "
                       "newer memtrace, or summarize the trace again",
                       version, SUMMARY_VERSION);
    raw = mt_get_u64(bytes + LENGTH_AT);
    if (raw > MAX_PAYLOAD_BYTES || raw / MAX_RATIO > length)
        return mt_fail(error, MT_ERR_FORMAT, LENGTH_AT, "the length of the summary is impossible");
    return MT_OK;
}

/* *payload is malloc'd. */
static enum mt_status decompress(const uint8_t *bytes, size_t length, uint8_t **payload,
                                 struct mt_error *error)
{
    size_t raw = (size_t)mt_get_u64(bytes + LENGTH_AT), got;
    const uint8_t *frame = bytes + HEADER_BYTES;
    size_t frame_bytes = length - HEADER_BYTES;

    if (ZSTD_findFrameCompressedSize(frame, frame_bytes) != frame_bytes)
        return mt_fail(error, MT_ERR_FORMAT, HEADER_BYTES,
                       "the summary is cut short, or bytes follow its end");
    *payload = mt_memory_new(raw + 1);
    got = ZSTD_decompress(*payload, raw, frame, frame_bytes);
    if (ZSTD_isError(got) && ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation)
        mt_memory_end();
    if (got != raw)
        return mt_fail(error, MT_ERR_FORMAT, HEADER_BYTES, "the summary cannot be decompressed");
    if (mt_crc32(*payload, raw) != mt_get_u32(bytes + CHECKSUM_AT))
        return mt_fail(error, MT_ERR_FORMAT, CHECKSUM_AT,
                       "the checksum of the summary does not match");
    return MT_OK;
}

static enum mt_status read_payload(const uint8_t *payload, size_t length, struct mt_rank_set *read,
                                   struct mt_error *error)
{
    const char *reason = "";
    enum mt_status status = mt_summary_payload_read(payload, length, read, &reason);

    if (status == MT_OK && !mt_rank_set_is_sound(read, &reason))
        status = MT_ERR_FORMAT;
    if (status == MT_ERR_FORMAT)
        return mt_fail(error, status, MT_NO_OFFSET, "the summary is damaged: %s", reason);
    return status == MT_OK ? MT_OK : mt_fail(error, status, MT_NO_OFFSET, "%s", reason);
}

enum mt_status mt_summary_decode(const void *bytes, size_t length, struct mt_rank_set *set,
                                 struct mt_error *error)
{
    struct mt_rank_set read = {0};
    uint8_t *payload = NULL;
    enum mt_status status = check_header(bytes, length, error);

    if (status == MT_OK)
        status = decompress(bytes, length, &payload, error);
    if (status == MT_OK)
        status = read_payload(payload, (size_t)mt_get_u64((const uint8_t *)bytes + LENGTH_AT),
                              &read, error);
    free(payload);
    if (status == MT_OK) {
        status = mt_rank_set_take(set, &read);
        if (status != MT_OK)
            (void)mt_fail(error, status, MT_NO_OFFSET, "%s", mt_status_text(status));
    }
    mt_rank_set_release(&read);
    return status;
}
