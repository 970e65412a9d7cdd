/* A set as a payload. Texts are numbered in the order in which paths and records name them, so the
 * table of texts does not depend on the history of the set. */
#include "summary_payload.h"

#include <string.h>

#include "bytes.h"
#include "check.h"
#include "record_fields.h"
#include "util.h"

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
    if (writer->status == MT_OK && writer->named_bytes > MT_SUMMARY_MAX_NAMED_BYTES)
        writer->status = MT_ERR_UNSUPPORTED;
    if (writer->status == MT_OK) {
        mt_strings_put(&writer->texts, text, length, &id);
        writer->status = MT_OK;
    }
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

/* The number as the format has it: MT_NO_PATH is 0. */
static uint64_t number_of(const void *object, const struct mt_record_field *field)
{
    uint64_t value = mt_field_get(object, field);

    return field->kind == MT_FIELD_PATH ? (uint32_t)(value + 1) : value;
}

static bool is_signed(const struct mt_record_field *field)
{
    return field->kind == MT_FIELD_I64 || field->kind == MT_FIELD_I32;
}

static void add_fields(struct payload_writer *writer, const struct mt_rank_record *record)
{
    for (uint32_t i = 0; i < mt_record_field_count; i++) {
        const struct mt_record_field *field = &mt_record_fields[i];
        uint64_t value;

        if (field->kind == MT_FIELD_TEXT) {
            const char *text = mt_field_text(record, field);

            add_text(writer, text, strlen(text));
            continue;
        }
        value = number_of(record, field);
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
            uint64_t base = before ? number_of(before, field) : 0;

            add_varint(writer->body, mt_zigzag(number_of(element, field) - base));
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
    size_t begin = out->length;

    add_paths(&writer, set);
    add_varint(out, set->record_count);
    for (uint32_t i = 0; i < set->record_count; i++)
        add_record(&writer, &set->records[i]);
    if (writer.status == MT_OK)
        insert_texts(&writer.texts, out, begin);
    mt_strings_release(&writer.texts);
    if (writer.status != MT_OK)
        return writer.status;
    return MT_OK;
}
