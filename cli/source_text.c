#include "source_text.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_BYTES ((off_t)16 << 20)

/* Of regular files alone: what a trace names may be a device, or a pipe that
 * nobody writes to. */
static int open_regular(const char *path, size_t *length)
{
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    struct stat facts;

    if (file < 0)
        return -1;
    if (fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size <= MOST_BYTES) {
        *length = (size_t)facts.st_size;
        return file;
    }
    (void)close(file);
    return -1;
}

const char *mt_source_text_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static bool read_all(int file, struct mt_buf *content, size_t length)
{
    char *room = mt_buf_reserve(content, length + 1);
    ssize_t got = 1;

    while (room && content->length < length && got > 0) {
        got = read(file, content->data + content->length, length - content->length);
        if (got > 0)
            content->length += (size_t)got;
    }
    return room && got >= 0;
}

bool mt_source_text_open(struct mt_source_text *text, const char *path)
{
    size_t length = 0;
    int file;
    bool read;

    mt_source_text_release(text);
    file = *path ? open_regular(path, &length) : -1;
    if (file < 0 && *mt_source_text_name(path))
        file = open_regular(mt_source_text_name(path), &length);
    if (file < 0)
        return false;
    read = read_all(file, &text->content, length);
    (void)close(file);
    text->line = read;
    return read;
}

/* Where the line that begins at `at` ends. */
static size_t end_of(const struct mt_buf *content, size_t at)
{
    const char *end = memchr(content->data + at, '\n', content->length - at);

    return end ? (size_t)(end - content->data) : content->length;
}

const char *mt_source_text_line(struct mt_source_text *text, uint32_t line, size_t *length)
{
    const struct mt_buf *content = &text->content;
    size_t begin, end;

    *length = 0;
    if (!text->line || text->line > line)
        return "";
    for (; text->line < line && text->at < content->length; text->line++)
        text->at = end_of(content, text->at) + (end_of(content, text->at) < content->length);
    if (text->line < line || text->at >= content->length)
        return "";
    begin = text->at;
    end = end_of(content, begin);
    while (begin < end && isspace((unsigned char)content->data[begin]))
        begin++;
    while (end > begin && isspace((unsigned char)content->data[end - 1]))
        end--;
    *length = end - begin;
    return content->data + begin;
}

void mt_source_text_release(struct mt_source_text *text)
{
    mt_buf_release(&text->content);
    memset(text, 0, sizeof *text);
}
