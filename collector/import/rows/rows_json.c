/* JSON with one object a line as rows of cells. `memtrace dump --json --stacks` writes such lines.
 * Lists become texts: numbers of a pool with a colon, flags with bars, frames with zero bytes. */
#include <string.h>

#include "json_reader.h"
#include "rows_json.h"
#include "util.h"

/* The object of a line. */
struct object {
    struct mt_rows *rows;
    struct mt_json_reader json;
    struct mt_buf texts; /* of all cells */
    struct {
        size_t at, length;
    } cells[MT_ROW_COLUMNS];
    const char *why; /* the row cannot be read */
    uint64_t line;
};

static const struct list_form {
    enum mt_row_column key, column;
    char separator;
} list_forms[] = {{MT_ROW_POOL, MT_ROW_POOL, ':'},
                  {MT_ROW_FLAGS, MT_ROW_FLAGS, '|'},
                  {MT_ROW_FRAMES, MT_ROW_FRAMES, '\0'},
                  {MT_ROW_STACK, MT_ROW_OUTERMOST, '\0'}};

static void add_text(struct object *object)
{
    const struct mt_json_reader *json = &object->json;

    if (json->text_is_cut)
        object->why = "a text is longer than 64 KiB";
    else if (memchr(json->text, 0, json->length))
        object->why = "there is a zero byte";
    else if (object->texts.length + json->length > MT_ROW_MAX_BYTES)
        object->why = "the row is longer than 16 MiB";
    else
        mt_buf_add(&object->texts, json->text, json->length);
}

/* Reads the rest of a list whose beginning is the last token. */
static enum mt_status read_list(struct object *object, enum mt_row_column key,
                                struct mt_error *error)
{
    const struct list_form *form = NULL;
    const size_t start = object->texts.length, depth = object->json.depth;
    enum mt_status status = MT_OK;

    for (size_t i = 0; i < MT_ARRAY_LEN(list_forms); i++)
        if (list_forms[i].key == key)
            form = &list_forms[i];
    if (!form)
        object->why = "a list is where a text or a number belongs";
    for (bool first = true;; first = false) {
        status = mt_json_reader_next(&object->json, error);
        if (status != MT_OK || object->json.depth < depth)
            break;
        if (object->json.token < MT_JSON_TEXT || object->json.token > MT_JSON_NUMBER)
            object->why = "a list has other values than texts and numbers";
        if (object->why)
            continue;
        if (!first)
            mt_buf_add_char(&object->texts, form->separator);
        add_text(object);
    }
    if (form) {
        object->cells[form->column].at = start;
        object->cells[form->column].length = object->texts.length - start;
    }
    return status;
}

/* The last token is the beginning of a value. */
static enum mt_status read_value(struct object *object, enum mt_row_column column,
                                 struct mt_error *error)
{
    struct mt_json_reader *json = &object->json;

    object->rows->has[column] |= json->token != MT_JSON_NULL;
    object->cells[column].at = object->texts.length;
    object->cells[column].length = 0;
    switch (json->token) {
    case MT_JSON_NULL: return MT_OK;
    case MT_JSON_ARRAY: return read_list(object, column, error);
    case MT_JSON_TEXT:
    case MT_JSON_INTEGER:
    case MT_JSON_NUMBER:
        /* a stack that is a number is an id of the trace that was dumped */
        if (column == MT_ROW_STACK && json->token != MT_JSON_TEXT)
            return MT_OK;
        add_text(object);
        object->cells[column].length = object->texts.length - object->cells[column].at;
        return MT_OK;
    default:
        object->why = "a value is neither a text nor a number";
        return json->token == MT_JSON_OBJECT ? mt_json_reader_skip(json, error) : MT_OK;
    }
}

static int column_of(const struct mt_json_reader *json)
{
    const struct mt_row_cell name = {json->text, json->length, false};

    return mt_json_reader_is(json, "frames") ? MT_ROW_FRAMES
                                             : mt_row_column_find(&mt_row_dialect_own, name);
}

static void note_unknown_key(struct object *object)
{
    struct mt_rows *rows = object->rows;
    const struct mt_json_reader *json = &object->json;

    if (!rows->has_unknown_key)
        mt_buf_printf(&rows->unused, "unknown keys, the first is %.*s\n",
                      (int)mt_min_u64(json->length, 60), json->text);
    rows->has_unknown_key = true;
}

/* Reads the members of the object whose beginning is the last token. */
static enum mt_status read_members(struct object *object, struct mt_error *error)
{
    struct mt_json_reader *json = &object->json;

    for (;;) {
        enum mt_status status = mt_json_reader_next(json, error);

        if (status != MT_OK || json->token != MT_JSON_KEY)
            return status;
        int column = column_of(json);
        if (column < 0) {
            note_unknown_key(object);
            status = mt_json_reader_skip(json, error);
        } else {
            status = mt_json_reader_next(json, error);
            if (status == MT_OK)
                status = read_value(object, (enum mt_row_column)column, error);
        }
        if (status != MT_OK)
            return status;
    }
}

static enum mt_status take_object(struct object *object, uint64_t offset, struct mt_error *error)
{
    struct mt_row row = {.offset = offset, .line = object->line};

    if (object->texts.failed)
        return mt_fail_memory(error);
    if (object->why) {
        object->rows->rows_read++;
        mt_rows_skip(object->rows, &row, object->why);
        return MT_OK;
    }
    for (int i = 0; i < MT_ROW_COLUMNS; i++)
        if (object->cells[i].length)
            row.cells[i] = (struct mt_row_cell){object->texts.data + object->cells[i].at,
                                                object->cells[i].length, false};
    return mt_rows_take(object->rows, &row, error);
}

/* Reads the value of a line. Returns MT_END after the last one. */
static enum mt_status read_line(struct object *object, uint64_t *offset, struct mt_error *error)
{
    mt_buf_reset(&object->texts);
    memset(object->cells, 0, sizeof object->cells);
    object->why = NULL;
    object->line++;
    *offset = MT_NO_OFFSET;
    enum mt_status status = mt_json_reader_next(&object->json, error);
    if (status != MT_OK)
        return status;
    *offset = object->json.offset;
    if (object->json.token == MT_JSON_OBJECT)
        return read_members(object, error);
    object->why = "the line is not an object";
    return object->json.token == MT_JSON_ARRAY ? mt_json_reader_skip(&object->json, error) : MT_OK;
}

/* A line that is damaged, or the last one, which is cut. */
static enum mt_status leave_out(struct object *object, uint64_t offset, struct mt_error *error)
{
    const struct mt_row row = {.offset = offset == MT_NO_OFFSET ? error->offset : offset,
                               .line = object->line};

    if (object->json.cut) {
        mt_rows_cut(object->rows, row.offset);
        return MT_END;
    }
    object->rows->rows_read++;
    mt_rows_skip(object->rows, &row, error->text);
    return mt_json_reader_next_line(&object->json, error);
}

enum mt_status mt_rows_read_json(struct mt_rows *rows, struct mt_feed *feed, struct mt_error *error)
{
    struct object object = {.rows = rows};
    enum mt_status status = mt_json_reader_init(&object.json, feed, error);
    uint64_t offset = 0;

    object.json.lines = true;
    while (status == MT_OK) {
        status = read_line(&object, &offset, error);
        if (status == MT_OK)
            status = take_object(&object, offset, error);
        else if (status == MT_ERR_FORMAT)
            status = leave_out(&object, offset, error);
    }
    if (status == MT_ERR_FORMAT) { /* of the compression; the lines before it are whole */
        rows->failure = *error;
        status = MT_END;
    }
    mt_json_reader_release(&object.json);
    mt_buf_release(&object.texts);
    return status == MT_END ? MT_OK : status;
}
