/* MiniMalloc's CSV: id,lower,upper,size. No quotes, no spaces. */
#include <string.h>

#include "buffers.h"

enum { MAX_COLUMNS = 16, OTHER_COLUMN = -1 };
enum wanted { LOWER, UPPER, SIZE, WANTED_COUNT };

struct columns {
    int of_column[MAX_COLUMNS]; /* enum wanted or OTHER_COLUMN */
    size_t count;
};

struct line {
    const char *text;
    size_t length;
};

/* The next line, without its end; false at the end of the text. */
static bool next_line(const char *text, size_t length, size_t *at, struct line *line)
{
    const char *end;

    if (*at >= length)
        return false;
    line->text = text + *at;
    end = memchr(line->text, '\n', length - *at);
    line->length = end ? (size_t)(end - line->text) : length - *at;
    *at += line->length + 1;
    if (line->length && line->text[line->length - 1] == '\r')
        line->length--;
    return true;
}

/* Cuts the next field off the front of the line. */
static struct line next_field(struct line *line)
{
    const char *comma = line->length ? memchr(line->text, ',', line->length) : NULL;
    struct line field = {line->text, comma ? (size_t)(comma - line->text) : line->length};
    size_t used = field.length + (comma ? 1 : 0);

    line->text += used;
    line->length -= used;
    return field;
}

static int column_of_name(struct line name)
{
    static const struct {
        const char *name;
        int column;
    } names[] = {{"lower", LOWER}, {"upper", UPPER}, {"start", LOWER},
                 {"end", UPPER},   {"size", SIZE},   {NULL, OTHER_COLUMN}};
    size_t i;

    for (i = 0; names[i].name; i++) {
        if (strlen(names[i].name) == name.length &&
            memcmp(names[i].name, name.text, name.length) == 0)
            return names[i].column;
    }
    return OTHER_COLUMN;
}

/* False unless each wanted column is there exactly once. */
static bool read_columns(struct line line, struct columns *columns)
{
    unsigned seen[WANTED_COUNT] = {0};

    for (columns->count = 0; line.length; columns->count++) {
        int column = column_of_name(next_field(&line));
        if (columns->count == MAX_COLUMNS)
            return false;
        columns->of_column[columns->count] = column;
        if (column != OTHER_COLUMN)
            seen[column]++;
    }
    return seen[LOWER] == 1 && seen[UPPER] == 1 && seen[SIZE] == 1;
}

bool mt_buffers_csv_probe(const char *text, size_t length)
{
    struct columns columns;
    struct line line;
    size_t at = 0;

    return next_line(text, length, &at, &line) && read_columns(line, &columns);
}

static bool read_number(struct line field, uint64_t *value)
{
    size_t i;

    *value = 0;
    for (i = 0; i < field.length; i++) {
        if (field.text[i] < '0' || field.text[i] > '9' ||
            __builtin_mul_overflow(*value, (uint64_t)10, value) ||
            __builtin_add_overflow(*value, (uint64_t)(field.text[i] - '0'), value))
            return false;
    }
    return field.length > 0;
}

static bool read_buffer(struct line line, const struct columns *columns, struct mt_buffer *buffer)
{
    uint64_t values[WANTED_COUNT] = {0};
    size_t i;

    for (i = 0; i < columns->count; i++) {
        struct line field = next_field(&line);
        if (columns->of_column[i] != OTHER_COLUMN &&
            !read_number(field, &values[columns->of_column[i]]))
            return false;
    }
    *buffer = (struct mt_buffer){values[LOWER], values[UPPER], values[SIZE]};
    return line.length == 0 && buffer->begin <= buffer->end;
}

enum mt_status mt_buffers_from_csv(const char *text, size_t length, struct mt_buffers *buffers,
                                   struct mt_error *error)
{
    struct columns columns;
    struct mt_buffer buffer;
    struct line line;
    size_t at = 0, start;
    enum mt_status status = MT_OK;

    if (!next_line(text, length, &at, &line) || !read_columns(line, &columns))
        return mt_fail(error, MT_ERR_FORMAT, 0, "no columns lower, upper and size");
    for (start = at; status == MT_OK && next_line(text, length, &at, &line); start = at) {
        if (!line.length)
            continue;
        if (!read_buffer(line, &columns, &buffer))
            return mt_fail(error, MT_ERR_FORMAT, start,
                           "not a buffer: three whole numbers, lower not after upper");
        status = mt_buffers_add(buffers, &buffer, error);
    }
    return status;
}
