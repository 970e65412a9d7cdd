/* The end of a finished trace: our index (position and events of each frame) and the seek table of
 * zstd's seekable format (for other tools, and to find our index). Both are redundant: without them
 * a trace is read by walking over its frames. */
#include "container.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "codec.h"

static const char own_magic[8] = {'m', 't', 'i', 'n', 'd', 'e', 'x', '\0'};

enum { FIXED_BYTES = 16, ENTRY_BYTES = 40, CHECKSUM_BYTES = 4, SEEK_ENTRY_BYTES = 8 };

/* Frames are contiguous and in order of events and time. */
static bool entry_follows(const struct mt_index_entry *entry, const struct mt_index_entry *last)
{
    const struct mt_zstd_frame_info *info = &entry->info;

    if (info->compressed_bytes == 0 || info->compressed_bytes > MT_FRAME_MAX_BYTES ||
        info->raw_bytes > MT_BLOCK_MAX_BYTES || info->event_count > MT_BLOCK_MAX_EVENTS ||
        info->first_seq > MT_MAX_SEQ)
        return false;
    return !last || (info->offset == last->info.offset + last->info.compressed_bytes &&
                     info->first_seq >= last->info.first_seq + last->info.event_count &&
                     info->first_t_ns >= last->info.first_t_ns);
}

static void add_entry(struct mt_buf *out, const struct mt_index_entry *entry)
{
    uint8_t bytes[ENTRY_BYTES], *at = bytes;

    at = mt_put_u64(at, entry->info.offset);
    at = mt_put_u64(at, entry->info.first_seq);
    at = mt_put_u64(at, entry->info.first_t_ns);
    at = mt_put_u32(at, (uint32_t)entry->info.event_count);
    at = mt_put_u32(at, (uint32_t)entry->info.compressed_bytes);
    at = mt_put_u32(at, (uint32_t)entry->info.raw_bytes);
    mt_put_u32(at, entry->definition_bytes);
    mt_buf_add(out, bytes, sizeof bytes);
}

static void write_index(const struct mt_index_entry *entries, size_t count, struct mt_buf *out)
{
    size_t payload = out->length + MT_SKIPPABLE_HEADER_BYTES;

    mt_buf_add_u32(out, MT_OWN_FRAME_MAGIC);
    mt_buf_add_u32(out, (uint32_t)(FIXED_BYTES + count * ENTRY_BYTES + CHECKSUM_BYTES));
    mt_buf_add(out, own_magic, sizeof own_magic);
    mt_buf_add_u32(out, MT_FORMAT_VERSION);
    mt_buf_add_u32(out, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        MT_ASSERT(entry_follows(&entries[i], i ? &entries[i - 1] : NULL));
        add_entry(out, &entries[i]);
    }
    if (!out->failed)
        mt_buf_add_u32(out, mt_crc32(out->data + payload, out->length - payload));
}

/* The seek table covers every frame from the first byte of the file; frames without events have a
 * raw size of 0. */
static void write_seek_table(const struct mt_index_entry *entries, size_t count,
                             uint64_t header_bytes, uint64_t index_bytes, struct mt_buf *out)
{
    mt_buf_add_u32(out, MT_SEEK_FRAME_MAGIC);
    mt_buf_add_u32(out, (uint32_t)((count + 2) * SEEK_ENTRY_BYTES + MT_SEEK_FOOTER_BYTES));
    mt_buf_add_u32(out, (uint32_t)header_bytes);
    mt_buf_add_u32(out, 0);
    for (size_t i = 0; i < count; i++) {
        mt_buf_add_u32(out, (uint32_t)entries[i].info.compressed_bytes);
        mt_buf_add_u32(out, (uint32_t)entries[i].info.raw_bytes);
    }
    mt_buf_add_u32(out, (uint32_t)index_bytes);
    mt_buf_add_u32(out, 0);
    mt_buf_add_u32(out, (uint32_t)(count + 2));
    mt_buf_add_char(out, 0); /* no checksums: the frames have their own */
    mt_buf_add_u32(out, MT_SEEK_FOOTER_MAGIC);
}

void mt_index_write(const struct mt_index_entry *entries, size_t count, uint64_t header_bytes,
                    struct mt_buf *out)
{
    size_t start = out->length;

    MT_ASSERT(header_bytes <= UINT32_MAX && count <= (UINT32_MAX - FIXED_BYTES) / ENTRY_BYTES);
    write_index(entries, count, out);
    write_seek_table(entries, count, header_bytes, out->length - start, out);
}

uint64_t mt_seek_table_bytes(const uint8_t *footer)
{
    if (mt_get_u32(footer + 5) != MT_SEEK_FOOTER_MAGIC || footer[4] != 0)
        return 0;
    return MT_SKIPPABLE_HEADER_BYTES + (uint64_t)mt_get_u32(footer) * SEEK_ENTRY_BYTES +
           MT_SEEK_FOOTER_BYTES;
}

enum mt_status mt_seek_table_read(const uint8_t *frame, size_t length, struct mt_seek_table *table,
                                  const char **reason)
{
    *reason = "malformed";
    if (length < MT_SKIPPABLE_HEADER_BYTES + MT_SEEK_FOOTER_BYTES ||
        mt_get_u32(frame) != MT_SEEK_FRAME_MAGIC ||
        mt_get_u32(frame + 4) != length - MT_SKIPPABLE_HEADER_BYTES ||
        mt_seek_table_bytes(frame + length - MT_SEEK_FOOTER_BYTES) != length)
        return MT_ERR_FORMAT;
    uint64_t count = (length - MT_SKIPPABLE_HEADER_BYTES - MT_SEEK_FOOTER_BYTES) / SEEK_ENTRY_BYTES;
    memset(table, 0, sizeof *table);
    for (uint64_t i = 0; i < count; i++) {
        table->index_bytes = mt_get_u32(frame + MT_SKIPPABLE_HEADER_BYTES + i * SEEK_ENTRY_BYTES);
        table->covered_bytes += table->index_bytes;
    }
    return count >= 2 ? MT_OK : MT_ERR_FORMAT;
}

bool mt_payload_is_index(const uint8_t *payload, size_t length)
{
    return length >= sizeof own_magic && !memcmp(payload, own_magic, sizeof own_magic);
}

static struct mt_index_entry read_entry(const uint8_t *at)
{
    return (struct mt_index_entry){.info = {.offset = mt_get_u64(at),
                                            .first_seq = mt_get_u64(at + 8),
                                            .first_t_ns = mt_get_u64(at + 16),
                                            .event_count = mt_get_u32(at + 24),
                                            .compressed_bytes = mt_get_u32(at + 28),
                                            .raw_bytes = mt_get_u32(at + 32)},
                                   .definition_bytes = mt_get_u32(at + 36)};
}

static enum mt_status read_entries(const uint8_t *at, size_t count, uint64_t limit,
                                   struct mt_index_entry *entries)
{
    for (size_t i = 0; i < count; i++) {
        const struct mt_zstd_frame_info *frame = &entries[i].info;

        entries[i] = read_entry(at + i * ENTRY_BYTES);
        if (!entry_follows(&entries[i], i ? &entries[i - 1] : NULL) || frame->offset > limit ||
            frame->compressed_bytes > limit - frame->offset)
            return MT_ERR_FORMAT;
    }
    if (count && entries[0].info.offset > UINT32_MAX) /* the end of the header */
        return MT_ERR_FORMAT;
    if (count && entries[count - 1].info.offset + entries[count - 1].info.compressed_bytes != limit)
        return MT_ERR_FORMAT;
    return MT_OK;
}

enum mt_status mt_index_read(const uint8_t *frame, size_t length, uint64_t limit,
                             struct mt_index_entry **entries, size_t *count, const char **reason)
{
    const uint8_t *payload = frame + MT_SKIPPABLE_HEADER_BYTES;

    *reason = "malformed";
    if (length < MT_SKIPPABLE_HEADER_BYTES + FIXED_BYTES + CHECKSUM_BYTES)
        return MT_ERR_FORMAT;
    size_t bytes = length - MT_SKIPPABLE_HEADER_BYTES - CHECKSUM_BYTES;
    if (mt_get_u32(frame) != MT_OWN_FRAME_MAGIC ||
        mt_get_u32(frame + 4) != length - MT_SKIPPABLE_HEADER_BYTES ||
        !mt_payload_is_index(payload, bytes))
        return MT_ERR_FORMAT;
    if (mt_crc32(payload, bytes) != mt_get_u32(payload + bytes)) {
        *reason = "checksum mismatch";
        return MT_ERR_FORMAT;
    }
    *count = mt_get_u32(payload + 12);
    if (mt_get_u32(payload + 8) != MT_FORMAT_VERSION ||
        (uint64_t)*count * ENTRY_BYTES != bytes - FIXED_BYTES)
        return MT_ERR_FORMAT;
    *entries = malloc((*count + 1) * sizeof **entries);
    if (!*entries) {
        *reason = mt_status_text(MT_ERR_MEMORY);
        return MT_ERR_MEMORY;
    }
    enum mt_status status = read_entries(payload + FIXED_BYTES, *count, limit, *entries);
    if (status != MT_OK) {
        free(*entries);
        *entries = NULL;
    }
    return status;
}
