/* The file around a payload (docs/internals/rank-summary.md, "The file"): magic, version, checksum,
 * length, one zstd frame. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "buf.h"
#include "bytes.h"
#include "check.h"
#include "process_memory.h"
#include "rank_record.h"
#include "rank_set.h"
#include "summary_file.h"
#include "util.h"

/* Limit for the bytes of all texts in paths and records, counted once for each use. Each use is
 * hashed and copied, so without a limit a compressed file of 2 KiB with one long text could keep a
 * reader busy for hours. */
#define SUMMARY_MAX_NAMED_BYTES (UINT64_C(1) << 31)

/* A set as a payload. Texts are numbered in the order in which paths and records name them, so the
 * table of texts does not depend on the history of the set. */

struct payload_writer {
    struct mt_strings texts; /* that were named so far */
    struct mt_buf *body;     /* paths and records */
    uint64_t named_bytes;    /* of texts that were named so far */
    enum mt_status status;   /* the first failure */
};

static void add_varint(struct mt_buf *out, uint64_t value)
{
    char *at = mt_buf_reserve(out, MT_VARINT_MAX_BYTES);

    if (at)
        out->length += (size_t)(mt_put_varint((uint8_t *)at, value) - (uint8_t *)at);
}

static void add_text(struct payload_writer *writer, const char *text, size_t length)
{
    uint32_t id = 0;

    writer->named_bytes = mt_add_most_u64(writer->named_bytes, length);
    if (writer->status == MT_OK && writer->named_bytes > SUMMARY_MAX_NAMED_BYTES)
        writer->status = MT_ERR_UNSUPPORTED;
    if (writer->status == MT_OK)
        mt_strings_put(&writer->texts, text, length, &id);
    add_varint(writer->body, id);
}

static void add_paths(struct payload_writer *writer, const struct mt_rank_set *set)
{
    uint32_t before = 0; /* the parent's number, 0 = none */

    add_varint(writer->body, set->path_count);
    for (uint32_t i = 0; i < set->path_count; i++) {
        const struct mt_call_path *path = &set->paths[i];
        uint32_t parent = path->parent + 1; /* 0 of MT_NO_PATH */

        MT_ASSERT(parent <= i);
        add_varint(writer->body, mt_zigzag((uint64_t)parent - before));
        before = parent;
        add_text(writer, set->frames.texts[path->frame], set->frames.lengths[path->frame]);
    }
}

static bool is_signed(const struct mt_record_field *field)
{
    return field->kind == MT_FIELD_I64 || field->kind == MT_FIELD_I32;
}

static void add_fields(struct payload_writer *writer, const struct mt_rank_record *record)
{
    for (uint32_t i = 0; i < mt_record_field_count; i++) {
        const struct mt_record_field *field = &mt_record_fields[i];

        if (field->kind == MT_FIELD_TEXT) {
            const char *text = mt_field_text(record, field);

            add_text(writer, text, strlen(text));
            continue;
        }
        uint64_t value = mt_field_number(record, field);
        add_varint(writer->body, is_signed(field) ? mt_zigzag(value) : value);
    }
}

/* Numbers as differences to those of the element before. */
static void add_element(struct payload_writer *writer, const struct mt_record_list *list,
                        const unsigned char *element, const unsigned char *before)
{
    for (uint32_t i = 0; i < list->field_count; i++) {
        const struct mt_record_field *field = &list->fields[i];

        if (field->kind == MT_FIELD_TEXT) {
            const char *text = mt_field_text(element, field);

            add_text(writer, text, strlen(text));
        } else {
            uint64_t base = before ? mt_field_number(before, field) : 0;

            add_varint(writer->body, mt_zigzag(mt_field_number(element, field) - base));
        }
    }
}

static void add_list(struct payload_writer *writer, const struct mt_rank_record *record,
                     const struct mt_record_list *list)
{
    const unsigned char *element = mt_list_array(record, list), *before = NULL;
    uint32_t count = mt_list_count(record, list);

    MT_ASSERT(count <= list->most);
    add_varint(writer->body, count);
    for (uint32_t i = 0; i < count; i++) {
        add_element(writer, list, element, before);
        before = element;
        element += list->element_bytes;
    }
}

static void add_record(struct payload_writer *writer, const struct mt_rank_record *record)
{
    add_fields(writer, record);
    for (uint32_t i = 0; i < mt_record_list_count; i++)
        add_list(writer, record, &mt_record_lists[i]);
}

/* Texts precede the paths and records that name them. They are few, and a second buffer for the
 * rest would double the memory of a large job. */
static void insert_texts(const struct mt_strings *texts, struct mt_buf *out, size_t at)
{
    struct mt_buf table = {0};
    size_t behind = out->length - at;

    add_varint(&table, texts->count);
    for (uint32_t i = 0; i < texts->count; i++) {
        add_varint(&table, texts->lengths[i]);
        mt_buf_add(&table, texts->texts[i], texts->lengths[i]);
    }
    if (mt_buf_reserve(out, table.length)) {
        memmove(out->data + at + table.length, out->data + at, behind);
        memcpy(out->data + at, table.data, table.length);
        out->length += table.length;
    }
    mt_buf_release(&table);
}

enum mt_status mt_summary_payload_write(const struct mt_rank_set *set, struct mt_buf *out)
{
    struct payload_writer writer = {.body = out, .status = MT_OK};
    struct mt_record_room *room = mt_memory_new(sizeof *room);
    size_t begin = out->length;

    add_paths(&writer, set);
    add_varint(out, set->record_count);
    for (uint32_t i = 0; i < set->record_count; i++) {
        const struct mt_rank_record record = mt_rank_record_open(&set->records[i], room);

        add_record(&writer, &record);
    }
    if (writer.status == MT_OK)
        insert_texts(&writer.texts, out, begin);
    mt_strings_release(&writer.texts);
    free(room);
    return writer.status;
}

/* A payload is decompressed as far as it is read. What was read and what was decompressed goes back
 * to the host: in a job of many ranks each takes as much memory as the records. */
struct inflating {
    ZSTD_DCtx *zstd;
    ZSTD_inBuffer in;
    ZSTD_outBuffer out; /* size: of the whole payload */
    uint32_t crc;       /* of the payload so far */
    bool has_ended, has_failed;
    const uint8_t *in_kept, *out_kept;
};

enum { INFLATED_BYTES = 1 << 18, ALIGNED_BYTES = 1 << 16, GIVEN_BYTES = 1 << 20 };

/* Makes the memory between *kept and `end` zero if it is large. */
static void give_back(const uint8_t **kept, const uint8_t *end)
{
    uintptr_t from = mt_round_up((uintptr_t)*kept, ALIGNED_BYTES);
    uintptr_t to = (uintptr_t)end / ALIGNED_BYTES * ALIGNED_BYTES;

    if (to < from + GIVEN_BYTES)
        return;
    (void)madvise((void *)from, to - from, MADV_DONTNEED);
    *kept = (const uint8_t *)to;
}

/* One call of zstd, with room for `room` bytes. */
static void inflate(struct inflating *source, size_t room)
{
    ZSTD_outBuffer out = {source->out.dst, source->out.pos + room, source->out.pos};
    size_t before = source->in.pos, result = ZSTD_decompressStream(source->zstd, &out, &source->in);

    if (ZSTD_isError(result) && ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation)
        mt_memory_end();
    source->crc =
        mt_crc32_add(source->crc, (uint8_t *)out.dst + source->out.pos, out.pos - source->out.pos);
    source->has_ended = result == 0;
    source->has_failed =
        ZSTD_isError(result) || (result && out.pos == source->out.pos && source->in.pos == before);
    source->out.pos = out.pos;
    give_back(&source->in_kept, (const uint8_t *)source->in.src + source->in.pos);
}

/* Decompresses at least `bytes` of the payload, or all. Returns false if it cannot. */
static bool inflate_to(struct inflating *source, size_t bytes)
{
    while (source->out.pos < bytes && !source->has_ended && !source->has_failed)
        inflate(source, (size_t)mt_min_u64(INFLATED_BYTES, source->out.size - source->out.pos));
    return source->out.pos >= bytes;
}

/* Returns false if the frame does not have exactly the bytes of the payload. */
static bool inflate_rest(struct inflating *source)
{
    (void)inflate_to(source, source->out.size);
    while (!source->has_ended && !source->has_failed)
        inflate(source, 0);
    return !source->has_failed && source->out.pos == source->out.size;
}

/* Reads a payload into a set. Each count is at most the number of remaining bytes, since an item
 * takes at least one, before memory is allocated for it. */

/* A byte of a hostile payload may become a text, a path or a record of many bytes. These counts
 * keep what is decoded below about 1 GiB beside the payload, and hold jobs of 65,536 ranks whose
 * call paths all differ from rank to rank. */
enum { MAX_LIST_FIELDS = 8, MOST_TEXTS = 1 << 22, MOST_PATHS = 1 << 24, MOST_RECORDS = 1 << 18 };

struct payload_reader {
    struct mt_cursor at;
    struct inflating *source; /* NULL: the payload is complete */
    struct mt_arena texts_arena;
    const char **texts;
    uint32_t *lengths;
    uint32_t text_count;
    uint32_t *paths; /* of the set, by number in the file */
    uint32_t path_count;
    uint64_t named_bytes;  /* of texts that were named so far */
    struct mt_arena lists; /* of one record */
    struct mt_rank_set *set;
    uint32_t field_count; /* of a record, in this version */
    const char *reason;   /* what is wrong, NULL = nothing so far */
};

static enum mt_status refuse(struct payload_reader *reader, const char *reason)
{
    if (!reader->reason)
        reader->reason = reason;
    return MT_ERR_FORMAT;
}

/* Makes the next bytes readable. */
static enum mt_status provide(struct payload_reader *reader, uint64_t bytes)
{
    struct inflating *source = reader->source;

    if (!source)
        return MT_OK;
    size_t at = (size_t)(reader->at.at - (const uint8_t *)source->out.dst);
    MT_ASSERT(reader->at.bad || at <= source->out.pos); /* else the last call asked for too few */
    give_back(&source->out_kept, reader->at.at);
    bytes = mt_min_u64(bytes, mt_cursor_left(&reader->at));
    /* read_payload gives the reason. */
    return inflate_to(source, at + (size_t)bytes) ? MT_OK : MT_ERR_FORMAT;
}

static enum mt_status read_count(struct payload_reader *reader, uint64_t most, uint32_t *count)
{
    if (provide(reader, MT_VARINT_MAX_BYTES) != MT_OK)
        return MT_ERR_FORMAT;
    uint64_t value = mt_cursor_varint(&reader->at);
    if (reader->at.bad || value > mt_cursor_left(&reader->at) || value > most)
        return refuse(reader, "a count is too large");
    *count = (uint32_t)value;
    return MT_OK;
}

static enum mt_status read_text(struct payload_reader *reader, uint32_t i)
{
    if (provide(reader, MT_VARINT_MAX_BYTES) != MT_OK)
        return MT_ERR_FORMAT;
    uint64_t length = mt_cursor_varint(&reader->at);
    if (provide(reader, length) != MT_OK)
        return MT_ERR_FORMAT;
    const uint8_t *bytes = mt_cursor_take(&reader->at, length);
    if (!bytes || length > UINT32_MAX)
        return refuse(reader, "a text is cut short");
    if (memchr(bytes, 0, (size_t)length))
        return refuse(reader, "a text holds a zero byte");
    reader->texts[i] = mt_arena_text(&reader->texts_arena, (const char *)bytes, (size_t)length);
    reader->lengths[i] = (uint32_t)length;
    return MT_OK;
}

static enum mt_status read_texts(struct payload_reader *reader)
{
    enum mt_status status = read_count(reader, MOST_TEXTS, &reader->text_count);

    if (status != MT_OK)
        return status;
    reader->texts = mt_memory_new(((size_t)reader->text_count + 1) * sizeof *reader->texts);
    reader->lengths = mt_memory_new(((size_t)reader->text_count + 1) * sizeof *reader->lengths);
    for (uint32_t i = 0; i < reader->text_count && status == MT_OK; i++)
        status = read_text(reader, i);
    return status;
}

static enum mt_status read_text_number(struct payload_reader *reader, uint32_t *text)
{
    uint64_t value = mt_cursor_varint(&reader->at);

    if (reader->at.bad || value >= reader->text_count)
        return refuse(reader, "no string has that number");
    reader->named_bytes += reader->lengths[value];
    if (reader->named_bytes > SUMMARY_MAX_NAMED_BYTES)
        return refuse(reader, "it names too much text");
    *text = (uint32_t)value;
    return MT_OK;
}

/* *number: the parent of the previous path on entry, of this path on return. */
static enum mt_status read_path(struct payload_reader *reader, uint32_t i, uint64_t *number)
{
    uint32_t text;

    if (provide(reader, 2 * MT_VARINT_MAX_BYTES) != MT_OK)
        return MT_ERR_FORMAT;
    *number += mt_unzigzag(mt_cursor_varint(&reader->at));
    if (reader->at.bad || *number > i)
        return refuse(reader, "a call path has no parent of that number");
    enum mt_status status = read_text_number(reader, &text);
    if (status != MT_OK)
        return status;
    uint32_t parent = *number ? reader->paths[*number - 1] : MT_NO_PATH;
    reader->paths[i] =
        mt_rank_set_path(reader->set, parent, reader->texts[text], reader->lengths[text]);
    return MT_OK;
}

static enum mt_status read_paths(struct payload_reader *reader)
{
    enum mt_status status = read_count(reader, MOST_PATHS, &reader->path_count);
    uint64_t parent = 0;

    if (status != MT_OK)
        return status;
    reader->paths = mt_memory_new(((size_t)reader->path_count + 1) * sizeof *reader->paths);
    for (uint32_t i = 0; i < reader->path_count && status == MT_OK; i++)
        status = read_path(reader, i, &parent);
    return status;
}

static enum mt_status read_text_field(struct payload_reader *reader, void *object,
                                      const struct mt_record_field *field)
{
    uint32_t text;
    enum mt_status status = read_text_number(reader, &text);

    if (status == MT_OK)
        mt_field_set_text(object, field, reader->texts[text]);
    return status;
}

/* `number` as the format has it. */
static enum mt_status set_number(struct payload_reader *reader, void *object,
                                 const struct mt_record_field *field, uint64_t number)
{
    if (field->kind == MT_FIELD_PATH) {
        if (number > reader->path_count)
            return refuse(reader, "there is no call path of that number");
        number = number ? reader->paths[number - 1] : MT_NO_PATH;
    }
    return mt_field_set(object, field, number) ? MT_OK
                                               : refuse(reader, "a number is out of its range");
}

static enum mt_status read_fields(struct payload_reader *reader, struct mt_rank_record *record)
{
    enum mt_status status = MT_OK;

    for (uint32_t i = 0; i < reader->field_count && status == MT_OK; i++) {
        const struct mt_record_field *field = &mt_record_fields[i];

        if (field->kind == MT_FIELD_TEXT) {
            status = read_text_field(reader, record, field);
        } else {
            uint64_t value = mt_cursor_varint(&reader->at);

            status =
                set_number(reader, record, field, is_signed(field) ? mt_unzigzag(value) : value);
        }
    }
    return status;
}

/* `numbers` are those of the element before, one a field. */
static enum mt_status read_element(struct payload_reader *reader, const struct mt_record_list *list,
                                   void *element, uint64_t *numbers)
{
    enum mt_status status = MT_OK;

    for (uint32_t i = 0; i < list->field_count && status == MT_OK; i++) {
        if (list->fields[i].kind == MT_FIELD_TEXT) {
            status = read_text_field(reader, element, &list->fields[i]);
        } else {
            numbers[i] += mt_unzigzag(mt_cursor_varint(&reader->at));
            status = set_number(reader, element, &list->fields[i], numbers[i]);
        }
    }
    return status;
}

static enum mt_status read_list(struct payload_reader *reader, struct mt_rank_record *record,
                                const struct mt_record_list *list)
{
    uint64_t numbers[MAX_LIST_FIELDS] = {0};
    uint32_t count;
    enum mt_status status = read_count(reader, list->most, &count);

    MT_ASSERT(list->field_count <= MAX_LIST_FIELDS);
    if (status != MT_OK)
        return status;
    unsigned char *array =
        count ? mt_arena_array(&reader->lists, count, list->element_bytes) : NULL;
    for (uint32_t i = 0; i < count && status == MT_OK; i++)
        status = read_element(reader, list, array + i * list->element_bytes, numbers);
    if (status == MT_OK)
        mt_list_set(record, list, array, count);
    return status;
}

static enum mt_status read_record(struct payload_reader *reader)
{
    struct mt_rank_record record = {0};
    enum mt_status status = provide(reader, MT_SUMMARY_RECORD_BYTES);

    if (status == MT_OK)
        status = read_fields(reader, &record);
    for (uint32_t i = 0; i < mt_record_list_count && status == MT_OK; i++)
        status = read_list(reader, &record, &mt_record_lists[i]);
    if (status == MT_OK && reader->at.bad)
        status = refuse(reader, "a record is cut short");
    if (status == MT_OK)
        mt_rank_set_add_packed(reader->set, &record);
    mt_arena_release(&reader->lists);
    return status;
}

static enum mt_status read_records(struct payload_reader *reader)
{
    uint32_t count;
    enum mt_status status = read_count(reader, MOST_RECORDS, &count);

    for (uint32_t i = 0; status == MT_OK && i < count; i++)
        status = read_record(reader);
    if (status == MT_OK && mt_cursor_left(&reader->at))
        status = refuse(reader, "bytes follow the last record");
    return status;
}

static enum mt_status read_payload_of(struct payload_reader reader, const char **reason)
{
    enum mt_status status = read_texts(&reader);

    if (status == MT_OK)
        status = read_paths(&reader);
    if (status == MT_OK)
        status = read_records(&reader);
    *reason = reader.reason ? reader.reason : mt_status_text(status);
    mt_arena_release(&reader.texts_arena);
    free(reader.texts);
    free(reader.lengths);
    free(reader.paths);
    return status;
}

enum mt_status mt_summary_payload_read(const uint8_t *bytes, size_t length, struct mt_rank_set *set,
                                       const char **reason)
{
    return read_payload_of((struct payload_reader){.at = {bytes, bytes + length, false},
                                                   .set = set,
                                                   .field_count = mt_record_field_count},
                           reason);
}

enum {
    MAGIC_BYTES = 8,
    VERSION_AT = MAGIC_BYTES,
    CHECKSUM_AT = 12,
    LENGTH_AT = 16,
    HEADER_BYTES = 24,
    SUMMARY_VERSION = 3,
    OLD_VERSION = 2, /* its records lack the last field */
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
    size_t room = ZSTD_compressBound(payload->length);
    char *at = mt_buf_reserve(out, room);
    size_t got = ZSTD_compress(at, room, payload->data, payload->length, COMPRESSION_LEVEL);

    if (ZSTD_isError(got)) /* there is room, so the failure is missing memory */
        mt_memory_end();
    out->length += got;
}

enum mt_status mt_summary_encode(struct mt_rank_set *set, struct mt_buf *out,
                                 struct mt_error *error)
{
    struct mt_buf payload = {0};
    const char *why = "";

    mt_rank_set_sort(set);
    enum mt_status status = mt_summary_payload_write(set, &payload);
    if (status == MT_OK && payload.length > MAX_PAYLOAD_BYTES)
        status = MT_ERR_UNSUPPORTED;
    if (status == MT_ERR_UNSUPPORTED)
        (void)mt_fail(error, status, MT_NO_OFFSET,
                      "the summaries are too large for one file; divide the job into several "
                      "files");
    else if (status != MT_OK)
        (void)mt_fail_status(error, status);
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
    if (!mt_summary_probe(bytes, length))
        return mt_fail(error, MT_ERR_FORMAT, 0, "not a summary: it does not begin with MTSUM1");
    if (length < HEADER_BYTES)
        return mt_fail(error, MT_ERR_FORMAT, length, "the summary is cut short");
    uint32_t version = mt_get_u32(bytes + VERSION_AT);
    if (version != SUMMARY_VERSION && version != OLD_VERSION)
        return mt_fail(error, MT_ERR_UNSUPPORTED, VERSION_AT,
                       "the summary has version %u, and this memtrace reads versions %u and %u; "
                       "use a newer memtrace, or summarize the trace again",
                       version, OLD_VERSION, SUMMARY_VERSION);
    uint64_t raw = mt_get_u64(bytes + LENGTH_AT);
    if (raw > MAX_PAYLOAD_BYTES || raw / MAX_RATIO > length)
        return mt_fail(error, MT_ERR_FORMAT, LENGTH_AT, "the length of the summary is impossible");
    return MT_OK;
}

/* Reads the records into an empty set. */
static enum mt_status read_payload(uint8_t *bytes, size_t length, struct mt_rank_set *read,
                                   struct mt_error *error)
{
    size_t raw = (size_t)mt_get_u64(bytes + LENGTH_AT), frame_bytes = length - HEADER_BYTES;
    bool is_old = mt_get_u32(bytes + VERSION_AT) == OLD_VERSION;
    struct inflating source = {.in = {bytes + HEADER_BYTES, frame_bytes, 0}};
    struct payload_reader reader = {
        .source = &source, .set = read, .field_count = mt_record_field_count - is_old};
    uint32_t crc = mt_get_u32(bytes + CHECKSUM_AT);
    const char *reason = "";

    if (ZSTD_findFrameCompressedSize(source.in.src, frame_bytes) != frame_bytes)
        return mt_fail(error, MT_ERR_FORMAT, HEADER_BYTES,
                       "the summary is cut short, or bytes follow its end");
    /* zstd allocates no more than the length that a frame says, so any window will do. */
    if (mt_get_u32(source.in.src) != ZSTD_MAGICNUMBER ||
        ZSTD_getFrameContentSize(source.in.src, frame_bytes) != raw)
        return mt_fail(error, MT_ERR_FORMAT, HEADER_BYTES,
                       "the length of the summary is not that of its zstd frame");
    source.out = (ZSTD_outBuffer){mt_memory_new(raw + 1), raw, 0};
    source.in_kept = source.in.src;
    reader.at.at = source.out_kept = source.out.dst;
    reader.at.end = reader.at.at + raw;
    source.zstd = ZSTD_createDCtx();
    if (!source.zstd)
        mt_memory_end();
    (void)ZSTD_DCtx_setParameter(source.zstd, ZSTD_d_windowLogMax,
                                 ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound);
    enum mt_status status = read_payload_of(reader, &reason);
    bool is_whole = inflate_rest(&source);
    ZSTD_freeDCtx(source.zstd);
    free(source.out.dst);
    if (!is_whole)
        return mt_fail(error, MT_ERR_FORMAT, HEADER_BYTES, "the summary cannot be decompressed");
    if (source.crc != crc)
        return mt_fail(error, MT_ERR_FORMAT, CHECKSUM_AT,
                       "the checksum of the summary does not match");
    if (status == MT_OK && !mt_rank_set_is_sound(read, &reason))
        status = MT_ERR_FORMAT;
    if (status == MT_ERR_FORMAT)
        return mt_fail(error, status, MT_NO_OFFSET, "the summary is damaged: %s", reason);
    return status == MT_OK ? MT_OK : mt_fail(error, status, MT_NO_OFFSET, "%s", reason);
}

enum mt_status mt_summary_decode(void *bytes, size_t length, struct mt_rank_set *set,
                                 struct mt_error *error)
{
    struct mt_rank_set read = {0};
    enum mt_status status = check_header(bytes, length, error);

    if (status == MT_OK)
        status = read_payload(bytes, length, &read, error);
    if (status == MT_OK)
        mt_rank_set_take(set, &read);
    mt_rank_set_release(&read);
    return status;
}
