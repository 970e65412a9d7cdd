/* The bytes of a trace file: reading them, and finding frames of events in them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "check.h"
#include "codec.h"
#include "container.h"
#include "grow.h"
#include "io.h"
#include "util.h"
#include "zstd_frames.h"

/* A file through pread and a moving window, or memory. Not mmap: if a file shrinks while it is
 * mapped, reading it raises SIGBUS. */

enum { WINDOW_BYTES = 4 * MT_FRAME_MAX_BYTES };

static enum mt_status read_pipe(struct mt_input *input, struct mt_error *error)
{
    struct mt_buf all = {0};

    for (;;) {
        char *room = mt_buf_reserve(&all, 1 << 16);
        ssize_t got = room ? mt_io_read(input->fd, room, 1 << 16) : 0;
        if (got > 0)
            all.length += (size_t)got;
        else if (got == 0)
            break;
        else {
            mt_buf_release(&all);
            return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "%s", strerror(errno));
        }
    }
    if (all.failed) {
        mt_buf_release(&all);
        return mt_fail_memory(error);
    }
    input->owned = (uint8_t *)all.data;
    input->memory = input->owned;
    input->size = all.length;
    return MT_OK;
}

enum mt_status mt_input_open(struct mt_input *input, const char *path, struct mt_error *error)
{
    bool is_stdin = !strcmp(path, "-");
    enum mt_status status = MT_OK;
    struct stat info;

    memset(input, 0, sizeof *input);
    input->fd = is_stdin ? STDIN_FILENO : mt_io_open(path, O_RDONLY, 0);
    if (input->fd < 0 || fstat(input->fd, &info) < 0) {
        status = mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "%s", strerror(errno));
    } else if (S_ISDIR(info.st_mode)) {
        status = mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "is a directory");
    } else if (!is_stdin && S_ISREG(info.st_mode)) {
        input->size = (uint64_t)info.st_size;
        return MT_OK;
    } else {
        status = read_pipe(input, error);
    }
    if (input->fd >= 0 && !is_stdin)
        close(input->fd);
    input->fd = -1;
    return status;
}

enum mt_status mt_input_open_fd(struct mt_input *input, int fd, uint64_t limit_bytes,
                                struct mt_error *error)
{
    struct stat info;

    memset(input, 0, sizeof *input);
    input->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (input->fd < 0 || fstat(input->fd, &info) < 0)
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "%s", strerror(errno));
    if (!S_ISREG(info.st_mode))
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "is not a regular file");
    input->size = mt_min_u64((uint64_t)info.st_size, limit_bytes);
    return MT_OK;
}

void mt_input_open_memory(struct mt_input *input, const void *bytes, size_t length)
{
    memset(input, 0, sizeof *input);
    input->fd = -1;
    input->memory = bytes;
    input->size = length;
}

void mt_input_close(struct mt_input *input)
{
    if (input->fd >= 0)
        close(input->fd);
    free(input->owned);
    free(input->window);
    memset(input, 0, sizeof *input);
    input->fd = -1;
}

static enum mt_status fill_window(struct mt_input *input, uint64_t offset, size_t length,
                                  struct mt_error *error)
{
    size_t wanted = length > WINDOW_BYTES ? length : WINDOW_BYTES;

    if (wanted > input->window_capacity) {
        uint8_t *window = realloc(input->window, wanted);
        if (!window)
            return mt_fail_memory(error);
        input->window = window;
        input->window_capacity = wanted;
    }
    input->window_offset = offset;
    input->window_length = 0;
    while (input->window_length < wanted) {
        ssize_t got = mt_io_pread(input->fd, input->window + input->window_length,
                                  wanted - input->window_length, offset + input->window_length);
        if (got == 0)
            return MT_OK;
        if (got < 0)
            return mt_fail(error, MT_ERR_IO, offset + input->window_length, "%s", strerror(errno));
        input->window_length += (size_t)got;
    }
    return MT_OK;
}

/* Returns the bytes at `offset`: at most `length`, and fewer only at the end of the file. Valid
 * until the next call. */
static enum mt_status input_at(struct mt_input *input, uint64_t offset, size_t length,
                               const uint8_t **bytes, size_t *got, struct mt_error *error)
{
    *bytes = NULL;
    *got = 0;
    if (offset >= input->size)
        return MT_OK;
    length = (size_t)mt_min_u64(length, input->size - offset);
    if (input->fd < 0) {
        *bytes = input->memory + offset;
        *got = length;
        return MT_OK;
    }
    if (offset < input->window_offset ||
        offset + length > input->window_offset + input->window_length) {
        enum mt_status status = fill_window(input, offset, length, error);
        if (status != MT_OK)
            return status;
    }
    MT_ASSERT(offset >= input->window_offset && input->window_length <= input->window_capacity);
    *bytes = input->window + (offset - input->window_offset);
    *got = (size_t)mt_min_u64(length, input->window_length - (offset - input->window_offset));
    return MT_OK;
}

/* Failed attempts to read a frame may cost 16 MiB + 32 bytes per byte of the file in total: enough
 * for any accident, but not for a file that is made to be slow. */
enum { EFFORT_PER_BYTE = 32, CHECK_EFFORT = 8, MIN_FRAME_BYTES = 8 };
#define FREE_EFFORT ((uint64_t)16 << 20)

/* Reasons why bytes are not a frame. */
static const char cut_short[] = "cut short";

enum mt_status mt_zstd_frames_init(struct mt_zstd_frames *frames, struct mt_input *input)
{
    memset(frames, 0, sizeof *frames);
    frames->input = input;
    frames->effort_left = FREE_EFFORT + mt_min_u64(input->size, UINT64_MAX / 128) * EFFORT_PER_BYTE;
    frames->raw_of = SIZE_MAX;
    frames->cut = true; /* until the end of the trace is found */
    frames->zstd = ZSTD_createDCtx();
    frames->raw = malloc(MT_BLOCK_MAX_BYTES);
    return frames->zstd && frames->raw ? MT_OK : MT_ERR_MEMORY;
}

void mt_zstd_frames_release(struct mt_zstd_frames *frames)
{
    ZSTD_freeDCtx(frames->zstd);
    free(frames->raw);
    free(frames->found);
    memset(frames, 0, sizeof *frames);
}

static enum mt_status add_found(struct mt_zstd_frames *frames, const struct mt_found *found,
                                struct mt_error *error)
{
    if (mt_grow(&frames->found, &frames->capacity, frames->count + 1, sizeof *frames->found))
        return mt_fail_memory(error);
    frames->found[frames->count++] = *found;
    return MT_OK;
}

/* Once per place: the header may have been found damaged before the walk. */
static enum mt_status add_damage(struct mt_zstd_frames *frames, uint64_t offset, const char *what,
                                 const char *damage, struct mt_error *error)
{
    struct mt_found found = {.entry.info.offset = offset, .damage = damage, .what = what};
    const struct mt_found *last = frames->count ? &frames->found[frames->count - 1] : NULL;

    if (last && last->damage && last->entry.info.offset == offset)
        return MT_OK;
    return add_found(frames, &found, error);
}

static void spend(struct mt_zstd_frames *frames, uint64_t bytes)
{
    frames->effort_left -= mt_min_u64(frames->effort_left, bytes);
}

/* Decompresses the frame that is bytes[0..length) into frames->raw. */
static const char *decompress(struct mt_zstd_frames *frames, const uint8_t *bytes, size_t length)
{
    size_t raw = ZSTD_decompressDCtx(frames->zstd, frames->raw, MT_BLOCK_MAX_BYTES, bytes, length);

    frames->raw_of = SIZE_MAX;
    if (!ZSTD_isError(raw)) {
        frames->raw_length = raw;
        return NULL;
    }
    switch (ZSTD_getErrorCode(raw)) {
    case ZSTD_error_checksum_wrong: return "checksum mismatch";
    case ZSTD_error_dstSize_tooSmall: return "larger than a frame may be";
    case ZSTD_error_memory_allocation: return "out of memory";
    default: return "compressed data is corrupt";
    }
}

/* Reads the event frame at bytes and fills *entry except its offset; returns NULL, or why there is
 * no frame. */
static const char *try_events(struct mt_zstd_frames *frames, const uint8_t *bytes, size_t got,
                              struct mt_index_entry *entry)
{
    size_t length = ZSTD_findFrameCompressedSize(bytes, got);
    struct mt_event_block block;

    if (ZSTD_isError(length)) {
        bool is_short = ZSTD_getErrorCode(length) == ZSTD_error_srcSize_wrong;
        spend(frames, got);
        return is_short ? got < MT_FRAME_MAX_BYTES ? cut_short : "larger than a frame may be"
                        : "compressed data is corrupt";
    }
    const char *reason = decompress(frames, bytes, length);
    if (reason || mt_event_block_parse(frames->raw, frames->raw_length, &block, &reason) != MT_OK) {
        /* an unknown content size is a huge number here */
        spend(frames,
              length + mt_min_u64(ZSTD_getFrameContentSize(bytes, got), MT_BLOCK_MAX_BYTES));
        return reason;
    }
    *entry = (struct mt_index_entry){.info = {.compressed_bytes = length,
                                              .raw_bytes = frames->raw_length,
                                              .first_seq = block.header.first_seq,
                                              .event_count = block.header.event_count,
                                              .first_t_ns = block.header.base_t_ns},
                                     .definition_bytes = block.header.definition_bytes};
    return NULL;
}

static bool is_skippable(uint32_t magic)
{
    return (magic & 0xFFFFFFF0) == 0x184D2A50;
}

/* The name of a skippable frame of ours for messages. */
static const char *skippable_name(const uint8_t *bytes, size_t got)
{
    const uint8_t *payload = bytes + MT_SKIPPABLE_HEADER_BYTES;
    size_t length = got > MT_SKIPPABLE_HEADER_BYTES ? got - MT_SKIPPABLE_HEADER_BYTES : 0;

    if (mt_get_u32(bytes) == MT_SEEK_FRAME_MAGIC)
        return "seek table";
    if (length && mt_payload_is_header(payload, length))
        return "header";
    return length && mt_payload_is_index(payload, length) ? "index" : "frame";
}

/* Returns what is wrong with a complete skippable frame of ours; NULL = nothing. */
static const char *check_ours(const struct mt_zstd_frames *frames, const uint8_t *bytes,
                              size_t length)
{
    const char *name = skippable_name(bytes, length), *reason = NULL;
    struct mt_index_entry *entries = NULL;
    struct mt_seek_table table;
    size_t count;

    if (mt_get_u32(bytes) == MT_SEEK_FRAME_MAGIC) {
        if (mt_seek_table_read(bytes, length, &table, &reason) != MT_OK)
            return reason;
        return table.covered_bytes == frames->walked ? NULL : "does not agree with the frames";
    }
    if (!strcmp(name, "header"))
        return "a second header";
    if (strcmp(name, "index") != 0)
        return "neither header nor index";
    enum mt_status status = mt_index_read(bytes, length, frames->walked, &entries, &count, &reason);
    free(entries);
    return status == MT_OK ? NULL : reason;
}

/* What is at frames->walked if it is not an intact frame. */
struct trouble {
    const char *what, *reason; /* reason NULL = it was intact and is skipped */
};

static enum mt_status step_over_events(struct mt_zstd_frames *frames, const uint8_t *bytes,
                                       size_t got, struct trouble *trouble, struct mt_error *error)
{
    struct mt_found found = {.what = "frame"};

    trouble->reason = "no frame begins here";
    if (mt_get_u32(bytes) != MT_ZSTD_MAGIC)
        return MT_OK;
    trouble->reason = try_events(frames, bytes, got, &found.entry);
    if (!trouble->reason && found.entry.info.first_seq < frames->next_seq)
        trouble->reason = "repeats earlier events";
    if (trouble->reason)
        return MT_OK;
    found.entry.info.offset = frames->walked;
    enum mt_status status = add_found(frames, &found, error);
    if (status != MT_OK)
        return status;
    MT_ASSERT(frames->count == 1 ||
              frames->found[frames->count - 2].entry.info.offset < found.entry.info.offset ||
              frames->found[frames->count - 2].damage);
    frames->raw_of = frames->count - 1;
    frames->walked += found.entry.info.compressed_bytes;
    MT_ASSERT(frames->walked <= frames->input->size);
    frames->next_seq = found.entry.info.first_seq + found.entry.info.event_count;
    return MT_OK;
}

static enum mt_status step_over_skippable(struct mt_zstd_frames *frames, const uint8_t *bytes,
                                          size_t got, struct trouble *trouble,
                                          struct mt_error *error)
{
    uint64_t left = frames->input->size - frames->walked;
    uint64_t length = MT_SKIPPABLE_HEADER_BYTES + (uint64_t)mt_get_u32(bytes + 4);
    uint32_t magic = mt_get_u32(bytes);

    trouble->what = skippable_name(bytes, got);
    trouble->reason = cut_short;
    if (length > left)
        return MT_OK;
    if (magic == MT_OWN_FRAME_MAGIC || magic == MT_SEEK_FRAME_MAGIC) {
        enum mt_status status =
            input_at(frames->input, frames->walked, (size_t)length, &bytes, &got, error);
        if (status != MT_OK || got < length)
            return status;
        trouble->reason = check_ours(frames, bytes, got);
        spend(frames, trouble->reason ? CHECK_EFFORT * length : 0);
    } else { /* skippable frames of other programs are ignored */
        trouble->reason = strcmp(trouble->what, "frame") != 0 ? "not marked as ours" : NULL;
    }
    if (!trouble->reason) {
        frames->walked += length;
        MT_ASSERT(frames->walked <= frames->input->size);
        frames->cut = magic != MT_SEEK_FRAME_MAGIC;
    }
    return MT_OK;
}

static enum mt_status try_step(struct mt_zstd_frames *frames, struct trouble *trouble,
                               struct mt_error *error)
{
    const uint8_t *bytes;
    size_t got;
    enum mt_status status =
        input_at(frames->input, frames->walked, MT_FRAME_MAX_BYTES, &bytes, &got, error);

    *trouble = (struct trouble){"frame", cut_short};
    if (status != MT_OK || got < MIN_FRAME_BYTES)
        return status;
    return is_skippable(mt_get_u32(bytes)) ? step_over_skippable(frames, bytes, got, trouble, error)
                                           : step_over_events(frames, bytes, got, trouble, error);
}

static bool is_candidate(const uint8_t *bytes)
{
    uint32_t magic = mt_get_u32(bytes);

    return magic == MT_ZSTD_MAGIC || magic == MT_OWN_FRAME_MAGIC || magic == MT_SEEK_FRAME_MAGIC;
}

/* Finds the next offset >= from where a frame could begin; the file's size if there is none. */
static enum mt_status next_candidate(struct mt_zstd_frames *frames, uint64_t from, uint64_t *offset,
                                     struct mt_error *error)
{
    for (;;) {
        const uint8_t *bytes;
        size_t got;
        enum mt_status status =
            input_at(frames->input, from, MT_FRAME_MAX_BYTES, &bytes, &got, error);
        if (status != MT_OK)
            return status;
        for (size_t i = 0; i + 4 <= got; i++) {
            if (is_candidate(bytes + i)) {
                *offset = from + i;
                return MT_OK;
            }
        }
        if (got < MT_FRAME_MAX_BYTES) {
            *offset = frames->input->size;
            return MT_OK;
        }
        from += got - 3;
    }
}

/* Inserts damage that begins at `start` before found[first..). */
static enum mt_status insert_damage(struct mt_zstd_frames *frames, size_t first, uint64_t start,
                                    const struct trouble *trouble, struct mt_error *error)
{
    bool found_frame = frames->count > first;
    struct mt_found frame = found_frame ? frames->found[first] : (struct mt_found){0};

    frames->count = first;
    enum mt_status status = add_damage(frames, start, trouble->what, trouble->reason, error);
    if (status == MT_OK && found_frame) {
        status = add_found(frames, &frame, error);
        frames->raw_of = frames->count - 1;
    }
    return status;
}

/* The walk has reached something that is not an intact frame: moves to the next frame, or to the
 * end of the file. */
static enum mt_status recover(struct mt_zstd_frames *frames, const struct trouble *trouble,
                              struct mt_error *error)
{
    uint64_t start = frames->walked, size = frames->input->size, at = start;
    size_t first = frames->count;

    MT_ASSERT(start < size && !frames->indexed);
    for (;;) {
        struct trouble again;
        enum mt_status status = next_candidate(frames, at + 1, &at, error);
        if (status != MT_OK)
            return status;
        if (at >= size || !frames->effort_left)
            break;
        frames->walked = at;
        status = try_step(frames, &again, error);
        if (status != MT_OK)
            return status;
        if (!again.reason)
            return insert_damage(frames, first, start, trouble, error);
    }
    frames->walked = size;
    frames->cut = trouble->reason == cut_short;
    return frames->cut ? MT_OK : add_damage(frames, start, trouble->what, trouble->reason, error);
}

static enum mt_status step(struct mt_zstd_frames *frames, struct mt_error *error)
{
    struct trouble trouble;

    if (frames->walked >= frames->input->size) {
        frames->complete = true;
        return MT_OK;
    }
    frames->cut = true; /* unless the end of the trace follows */
    enum mt_status status = try_step(frames, &trouble, error);
    return status == MT_OK && trouble.reason ? recover(frames, &trouble, error) : status;
}

enum mt_status mt_zstd_frames_get(struct mt_zstd_frames *frames, size_t i, struct mt_error *error)
{
    while (i >= frames->count && !frames->complete) {
        enum mt_status status = step(frames, error);
        if (status != MT_OK)
            return status;
    }
    return i < frames->count ? MT_OK : MT_END;
}

enum mt_status mt_zstd_frames_load(struct mt_zstd_frames *frames, size_t i,
                                   struct mt_event_block *block, const char **reason,
                                   struct mt_error *error)
{
    const struct mt_index_entry *entry = &frames->found[i].entry;
    const uint8_t *bytes;
    size_t got;
    enum mt_status status;

    MT_ASSERT(i < frames->count && !frames->found[i].damage);
    MT_ASSERT(frames->raw_of == SIZE_MAX || frames->raw_of < frames->count);
    if (frames->raw_of != i) {
        status = input_at(frames->input, entry->info.offset, (size_t)entry->info.compressed_bytes,
                          &bytes, &got, error);
        if (status != MT_OK)
            return status;
        *reason = got < entry->info.compressed_bytes ? cut_short : decompress(frames, bytes, got);
        if (*reason)
            return MT_ERR_FORMAT;
        frames->raw_of = i;
    }
    MT_ASSERT(frames->raw_length <= MT_BLOCK_MAX_BYTES);
    status = mt_event_block_parse(frames->raw, frames->raw_length, block, reason);
    if (status != MT_OK)
        return MT_ERR_FORMAT;
    if (block->header.first_seq == entry->info.first_seq &&
        block->header.event_count == entry->info.event_count)
        return MT_OK;
    *reason = "not the frame that the index speaks of";
    return MT_ERR_FORMAT;
}

enum mt_status mt_zstd_frames_read_header(struct mt_zstd_frames *frames, struct mt_arena *arena,
                                          struct mt_trace_header *header, struct mt_error *error)
{
    const char *reason = "no header begins here";
    const uint8_t *bytes;
    size_t got;
    enum mt_status status = input_at(frames->input, 0, MT_HEADER_MAX_BYTES, &bytes, &got, error);

    if (status != MT_OK)
        return status;
    if (got >= MT_SKIPPABLE_HEADER_BYTES && mt_get_u32(bytes) == MT_OWN_FRAME_MAGIC) {
        size_t length = mt_get_u32(bytes + 4);
        reason = cut_short;
        if (length <= got - MT_SKIPPABLE_HEADER_BYTES) {
            status =
                mt_header_read(bytes + MT_SKIPPABLE_HEADER_BYTES, length, arena, header, &reason);
            if (status == MT_OK) {
                frames->walked = MT_SKIPPABLE_HEADER_BYTES + length;
                return MT_OK;
            }
            if (status != MT_ERR_FORMAT)
                return mt_fail(error, status, 0, "%s", reason);
        }
    }
    return add_damage(frames, 0, "header", reason, error);
}

/* Whether the tail belongs to these entries, byte for byte. */
static bool tail_agrees(const struct mt_index_entry *entries, size_t count, const uint8_t *tail,
                        size_t length)
{
    struct mt_buf expected = {0};

    mt_index_write(entries, count, count ? entries[0].info.offset : 0, &expected);
    bool same =
        !expected.failed && expected.length == length && !memcmp(expected.data, tail, length);
    mt_buf_release(&expected);
    return same;
}

static enum mt_status adopt(struct mt_zstd_frames *frames, const struct mt_index_entry *entries,
                            size_t count, struct mt_error *error)
{
    enum mt_status status = MT_OK;

    MT_ASSERT(!frames->indexed && !frames->complete);
    for (size_t i = 0; i < count && status == MT_OK; i++) {
        struct mt_found found = {.entry = entries[i], .what = "frame"};
        status = add_found(frames, &found, error);
    }
    frames->indexed = frames->complete = true;
    frames->cut = false;
    return status;
}

/* The seek table ends the file and the index precedes it. If anything does not fit, there is no
 * index, and nothing is reported here. */
enum mt_status mt_zstd_frames_use_index(struct mt_zstd_frames *frames, struct mt_error *error)
{
    uint64_t size = frames->input->size;
    struct mt_index_entry *entries = NULL;
    struct mt_seek_table table;
    const uint8_t *bytes;
    const char *reason;
    size_t got, count;

    if (size < MT_SEEK_FOOTER_BYTES)
        return MT_OK;
    enum mt_status status = input_at(frames->input, size - MT_SEEK_FOOTER_BYTES,
                                     MT_SEEK_FOOTER_BYTES, &bytes, &got, error);
    if (status != MT_OK || got < MT_SEEK_FOOTER_BYTES)
        return status;
    uint64_t table_bytes = mt_seek_table_bytes(bytes);
    if (!table_bytes || table_bytes > size)
        return MT_OK;
    status = input_at(frames->input, size - table_bytes, (size_t)table_bytes, &bytes, &got, error);
    if (status != MT_OK || got < table_bytes)
        return status;
    if (mt_seek_table_read(bytes, got, &table, &reason) != MT_OK ||
        table.covered_bytes != size - table_bytes)
        return MT_OK;
    status = input_at(frames->input, table.covered_bytes - table.index_bytes,
                      (size_t)(table.index_bytes + table_bytes), &bytes, &got, error);
    if (status != MT_OK || got < table.index_bytes + table_bytes)
        return status;
    status = mt_index_read(bytes, (size_t)table.index_bytes,
                           table.covered_bytes - table.index_bytes, &entries, &count, &reason);
    if (status != MT_OK)
        return status == MT_ERR_MEMORY ? mt_fail(error, status, MT_NO_OFFSET, "%s", reason) : MT_OK;
    status = adopt(frames, entries, count, error);
    if (status == MT_OK && !tail_agrees(entries, count, bytes, got))
        status = add_damage(frames, size - table_bytes, "seek table",
                            "does not agree with the index", error);
    free(entries);
    return status;
}
