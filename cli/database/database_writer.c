#include "database_writer.h"

#include <stdio.h>
#include <string.h>

#include "check.h"
#include "foreign_text.h"

/* Made of schema.sql and indexes.sql by cmake/embed.cmake. */
extern const char mt_database_schema[], mt_database_indexes[];

#define NAME_OF(NAME, name) name,
static const char *const table_names[] = {MT_DATABASE_TABLES(NAME_OF)};
#undef NAME_OF

const struct mt_database_schema mt_database_of_run = {mt_database_schema, mt_database_indexes,
                                                      table_names, MT_TABLE_COUNT};

static void keep(struct mt_database_writer *writer, enum mt_status status)
{
    if (!writer->status)
        writer->status = status;
}

static enum mt_status make_tables(struct mt_database_writer *writer)
{
    char pragmas[96];

    snprintf(pragmas, sizeof pragmas, "PRAGMA application_id = %d; PRAGMA user_version = %d",
             MT_DATABASE_ID, MT_DATABASE_VERSION);
    enum mt_status status = writer->library->execute(writer->database, pragmas, &writer->error);
    if (!status)
        status =
            writer->library->execute(writer->database, writer->schema->statements, &writer->error);
    for (unsigned i = 0; i < writer->schema->table_count && !status; i++)
        status =
            writer->library->prepare(writer->database, writer->schema->tables[i], &writer->error);
    return status;
}

enum mt_status mt_database_writer_open(struct mt_database_writer *writer, const char *path,
                                       const struct mt_database_schema *schema,
                                       struct mt_error *error)
{
    *writer = (struct mt_database_writer){.library = mt_database_library(error), .schema = schema};
    if (!writer->library)
        return error->status;
    writer->status = writer->library->create(path, &writer->database, &writer->error);
    if (!writer->status)
        writer->status = make_tables(writer);
    if (!writer->status)
        return MT_OK;
    (void)writer->library->close(writer->database, NULL);
    *error = writer->error;
    return writer->status;
}

void mt_database_writer_execute(struct mt_database_writer *writer, const char *sql)
{
    if (!writer->status)
        keep(writer, writer->library->execute(writer->database, sql, &writer->error));
}

enum mt_status mt_database_writer_close(struct mt_database_writer *writer, struct mt_error *error)
{
    mt_database_writer_execute(writer, writer->schema->indexes);
    mt_database_writer_execute(writer, "COMMIT; PRAGMA analysis_limit = 1000; ANALYZE");
    if (writer->status)
        (void)writer->library->close(writer->database, NULL);
    else
        keep(writer, writer->library->close(writer->database, &writer->error));
    mt_arena_release(&writer->texts);
    if (writer->status)
        *error = writer->error;
    return writer->status;
}

static struct mt_value *next_value(struct mt_database_writer *writer, enum mt_value_kind kind)
{
    struct mt_value *value = &writer->values[writer->count++];

    MT_ASSERT(writer->count <= MT_ROW_VALUES);
    value->kind = kind;
    return value;
}

void mt_row_null(struct mt_database_writer *writer)
{
    (void)next_value(writer, MT_VALUE_NULL);
}

void mt_row_i64(struct mt_database_writer *writer, int64_t number)
{
    next_value(writer, MT_VALUE_INTEGER)->integer = number;
}

void mt_row_u64(struct mt_database_writer *writer, uint64_t number)
{
    mt_row_i64(writer, (int64_t)number);
}

void mt_row_u64_or_null(struct mt_database_writer *writer, bool has, uint64_t number)
{
    if (has)
        mt_row_u64(writer, number);
    else
        mt_row_null(writer);
}

void mt_row_id(struct mt_database_writer *writer, uint32_t id)
{
    mt_row_u64_or_null(writer, id != MT_NO_ID, id);
}

void mt_row_phase(struct mt_database_writer *writer, int32_t phase)
{
    if (phase == MT_NO_PHASE)
        mt_row_null(writer);
    else
        mt_row_i64(writer, phase);
}

void mt_row_step(struct mt_database_writer *writer, int64_t step)
{
    if (step == MT_NO_STEP)
        mt_row_null(writer);
    else
        mt_row_i64(writer, step);
}

void mt_row_bytes(struct mt_database_writer *writer, const struct mt_bytes *bytes)
{
    mt_row_u64(writer, bytes->requested);
    mt_row_u64(writer, bytes->allocated);
    mt_row_u64(writer, bytes->active);
    mt_row_u64(writer, bytes->reserved);
}

static bool is_utf8(const char *text, size_t length)
{
    for (size_t at = 0; at < length;) {
        uint32_t code;
        size_t bytes =
            (unsigned char)text[at] < 0x80 ? 1 : mt_utf8_read(text + at, length - at, &code);

        if (!bytes)
            return false;
        at += bytes;
    }
    return true;
}

/* The text with an escape for every byte that is not UTF-8. */
static const char *mended(struct mt_database_writer *writer, const char *text, size_t length)
{
    struct mt_buf out = {0};

    mt_buf_add_valid_utf8(&out, text, length);
    const char *kept = mt_arena_text(&writer->texts, out.data, out.length);
    mt_buf_release(&out);
    return kept;
}

void mt_row_text(struct mt_database_writer *writer, const char *text)
{
    if (!text) {
        mt_row_null(writer);
        return;
    }
    size_t length = strlen(text);
    if (!is_utf8(text, length)) {
        text = mended(writer, text, length);
        length = strlen(text);
    }
    struct mt_value *value = next_value(writer, MT_VALUE_TEXT);
    value->text = text;
    value->length = length;
}

void mt_row_end(struct mt_database_writer *writer, unsigned table)
{
    if (!writer->status)
        keep(writer, writer->library->insert(writer->database, table, writer->values, writer->count,
                                             &writer->error));
    writer->count = 0;
    writer->rows++;
}

void mt_row_setting(struct mt_database_writer *writer, const char *name, const char *text)
{
    mt_row_text(writer, name);
    mt_row_text(writer, text);
    mt_row_end(writer, MT_TABLE_SETTINGS);
}

void mt_row_setting_number(struct mt_database_writer *writer, const char *name, int64_t number)
{
    mt_row_text(writer, name);
    mt_row_i64(writer, number);
    mt_row_end(writer, MT_TABLE_SETTINGS);
}
