/* Reads a payload into a set. Each count is at most the number of remaining bytes, since an item
 * takes at least one, before memory is allocated for it. */
#include "summary_payload.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "check.h"
#include "process_memory.h"
#include "record_fields.h"

/* A byte of a hostile payload may become a text, a path or a record of many bytes. These counts
 * keep what is decoded below about 1 GiB beside the payload, and hold jobs of 65,536 ranks whose
 * call paths all differ from rank to rank. */
enum { MAX_LIST_FIELDS = 8, MOST_TEXTS = 1 << 22, MOST_PATHS = 1 << 24, MOST_RECORDS = 1 << 18 };

struct payload_reader {
    struct mt_cursor at;
    struct mt_arena texts_arena;
    const char **texts;
    uint32_t *lengths;
    uint32_t text_count;
    uint32_t *paths; /* of the set, by number in the file */
    uint32_t path_count;
    uint64_t named_bytes;  /* of texts that were named so far */
    struct mt_arena lists; /* of one record */
    struct mt_rank_set *set;
    const char *reason; /* what is wrong, NULL = nothing so far */
};

static enum mt_status refuse(struct payload_reader *reader, const char *reason)
{
    if (!reader->reason)
        reader->reason = reason;
    return MT_ERR_FORMAT;
}

static enum mt_status read_count(struct payload_reader *reader, uint64_t most, uint32_t *count)
{
    uint64_t value = mt_cursor_varint(&reader->at);

    if (reader->at.bad || value > mt_cursor_left(&reader->at) || value > most)
        return refuse(reader, "a count is too large");
    *count = (uint32_t)value;
    return MT_OK;
}

static enum mt_status read_text(struct payload_reader *reader, uint32_t i)
{
    uint64_t length = mt_cursor_varint(&reader->at);
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
    if (reader->named_bytes > MT_SUMMARY_MAX_NAMED_BYTES)
        return refuse(reader, "it names too much text");
    *text = (uint32_t)value;
    return MT_OK;
}

/* *number: the parent of the previous path on entry, of this path on return. */
static enum mt_status read_path(struct payload_reader *reader, uint32_t i, uint64_t *number)
{
    uint32_t text, parent;
    enum mt_status status;

    *number += mt_unzigzag(mt_cursor_varint(&reader->at));
    if (reader->at.bad || *number > i)
        return refuse(reader, "a call path has no parent of that number");
    status = read_text_number(reader, &text);
    if (status != MT_OK)
        return status;
    parent = *number ? reader->paths[*number - 1] : MT_NO_PATH;
    return mt_rank_set_path(reader->set, parent, reader->texts[text], reader->lengths[text],
                            &reader->paths[i]);
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

static bool is_signed(const struct mt_record_field *field)
{
    return field->kind == MT_FIELD_I64 || field->kind == MT_FIELD_I32;
}

static enum mt_status read_fields(struct payload_reader *reader, struct mt_rank_record *record)
{
    enum mt_status status = MT_OK;

    for (uint32_t i = 0; i < mt_record_field_count && status == MT_OK; i++) {
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
    unsigned char *array;
    uint32_t count;
    enum mt_status status = read_count(reader, list->most, &count);

    MT_ASSERT(list->field_count <= MAX_LIST_FIELDS);
    if (status != MT_OK)
        return status;
    array = count ? mt_arena_array(&reader->lists, count, list->element_bytes) : NULL;
    for (uint32_t i = 0; i < count && status == MT_OK; i++)
        status = read_element(reader, list, array + i * list->element_bytes, numbers);
    if (status == MT_OK)
        mt_list_set(record, list, array, count);
    return status;
}

static enum mt_status read_record(struct payload_reader *reader)
{
    struct mt_rank_record record = {0};
    enum mt_status status = read_fields(reader, &record);

    for (uint32_t i = 0; i < mt_record_list_count && status == MT_OK; i++)
        status = read_list(reader, &record, &mt_record_lists[i]);
    if (status == MT_OK && reader->at.bad)
        status = refuse(reader, "a record is cut short");
    if (status == MT_OK)
        status = mt_rank_set_add(reader->set, &record);
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

enum mt_status mt_summary_payload_read(const uint8_t *bytes, size_t length, struct mt_rank_set *set,
                                       const char **reason)
{
    struct payload_reader reader = {.at = {bytes, bytes + length, false}, .set = set};
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
