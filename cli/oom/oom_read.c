/* Reads the text of a log, keeps only the end of a long one, and squeezes it: lower case, without
 * white space, escape sequences and the prefixes of lines, so that a wrapped message looks like any
 * other. */
#include "ascii.h"
#include "oom_text.h"

#include <string.h>

#include "feed.h"
#include "process_memory.h"
#include "util.h"

enum { PIECE_BYTES = 256 * 1024, PREFIX_BYTES = 40, MAX_PREFIXES = 4 };

/* Keeps the last lines. Called once per `most` bytes, so the cost stays linear. */
static void cut_front(struct mt_buf *text, size_t most, uint64_t *lines_cut)
{
    const char *keep = text->data + (text->length - most), *line = memchr(keep, '\n', most);

    keep = line ? line + 1 : keep;
    for (const char *at = text->data; (at = memchr(at, '\n', (size_t)(keep - at))); at++)
        ++*lines_cut;
    size_t left = text->length - (size_t)(keep - text->data);
    memmove(text->data, keep, left);
    text->length = left;
}

enum mt_status mt_oom_read(const char *path, size_t most, struct mt_buf *text, uint64_t *lines_cut,
                           struct mt_error *error)
{
    struct mt_feed *feed;
    enum mt_status status = mt_feed_open(path, &feed, error);
    size_t got = 1;

    *lines_cut = 0;
    if (status != MT_OK)
        return status;
    while (status == MT_OK && got) {
        char *room = mt_buf_reserve(text, PIECE_BYTES);

        status = mt_feed_read(feed, room, PIECE_BYTES, &got, error);
        text->length += status == MT_OK ? got : 0;
        if (text->length > 2 * most)
            cut_front(text, most, lines_cut);
    }
    mt_feed_close(feed);
    return status;
}

/* Returns the position after an escape sequence of a terminal that begins at `at`. A line ends it.
 */
static size_t skip_escape(const char *text, size_t length, size_t at)
{
    size_t end = at + 1;

    if (end < length && text[end] == '[') {
        for (end++; end < length && text[end] >= ' ' && text[end] < '@';)
            end++;
        return end + (end < length && text[end] >= '@');
    }
    if (end < length && text[end] == ']')
        for (end++; end < length && text[end] != '\a' && text[end] != '\033' && text[end] != '\n';)
            end++;
    return end;
}

/* Returns the length of one thing that logs and quotations put before a line: "> ", "E   ", "| ",
 * "[rank3]: ", "[1,3]<stderr>: ", "3: ", a color. */
static size_t one_prefix(const char *text, size_t length)
{
    const size_t most = mt_min_u64(length, PREFIX_BYTES);
    size_t at = 0;

    if (most && *text == '\033')
        return skip_escape(text, length, 0);
    while (at < most && (text[at] == '>' || text[at] == '|' || text[at] == ' ' || text[at] == '\t'))
        at++;
    if (at)
        return at;
    if (most > 1 && text[0] == 'E' && text[1] == ' ')
        return 2;
    if (most > 5 && (memcmp(text, "[rank", 5) == 0 || memcmp(text, "[1,", 3) == 0)) {
        const char *colon = memchr(text, ':', most - 1);
        return colon && colon[1] == ' ' ? (size_t)(colon + 2 - text) : 0;
    }
    while (at < most && text[at] >= '0' && text[at] <= '9')
        at++;
    return at && at + 1 < most && text[at] == ':' && text[at + 1] == ' ' ? at + 2 : 0;
}

static size_t prefix_length(const char *text, size_t length)
{
    size_t at = 0, more;

    for (int i = 0; i < MAX_PREFIXES && (more = one_prefix(text + at, length - at)); i++)
        at += more;
    return at;
}

/* A position in a text, which moves from one byte to the next one that the squeezed text has. */
struct cursor {
    const char *text;
    size_t length, at, line_begin;
    uint64_t line;
    bool begins_line;
};

static struct cursor cursor_at_begin(const char *text, size_t length)
{
    return (struct cursor){.text = text,
                           .length = length,
                           .at = prefix_length(text, length),
                           .line = 1,
                           .begins_line = true};
}

static bool find_next(struct cursor *cursor)
{
    while (cursor->at < cursor->length) {
        const char c = cursor->text[cursor->at];

        if (c == '\n') {
            cursor->line++;
            cursor->line_begin = ++cursor->at;
            cursor->begins_line = true;
            cursor->at += prefix_length(cursor->text + cursor->at, cursor->length - cursor->at);
        } else if (c == '\033') {
            cursor->at = skip_escape(cursor->text, cursor->length, cursor->at);
        } else if (mt_is_space(c) || c == '*' || c == '`') { /* Markdown */
            cursor->at++;
        } else {
            return true;
        }
    }
    return false;
}

static void move_on(struct cursor *cursor)
{
    cursor->at++;
    cursor->begins_line = false;
}

struct mt_oom_squeezed mt_oom_squeeze(const char *text, size_t length)
{
    struct mt_oom_squeezed out = {.bytes = mt_memory_new(length + 1),
                                  .line_begins = mt_memory_zeroed(length / 8 + 1, 1)};
    struct cursor cursor = cursor_at_begin(text, length);

    for (; find_next(&cursor); move_on(&cursor)) {
        const char c = text[cursor.at];

        if (cursor.begins_line)
            out.line_begins[out.length / 8] |= (uint8_t)(1 << out.length % 8);
        out.bytes[out.length++] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    return out;
}

/* Squeezes again rather than keep the position of each line, which could be larger than the text.
 */
struct mt_oom_place mt_oom_find_place(const char *text, size_t length, size_t position)
{
    struct cursor cursor = cursor_at_begin(text, length);

    for (size_t at = 0; find_next(&cursor) && at < position; at++)
        move_on(&cursor);
    const char *end = memchr(text + cursor.line_begin, '\n', length - cursor.line_begin);
    return (struct mt_oom_place){cursor.line, cursor.line_begin,
                                 end ? (size_t)(end - text) : length};
}

/* A line of the raw text without its prefix, and the rest of the text. */
struct line {
    const char *begin, *end, *next;
    bool is_indented;
};

static struct line read_line(const char *text, const char *end)
{
    const char *stop = memchr(text, '\n', (size_t)(end - text));
    struct line line = {.end = stop ? stop : end, .next = stop ? stop + 1 : end};

    line.end -= line.end > text && line.end[-1] == '\r';
    size_t prefix = prefix_length(text, (size_t)(line.end - text));
    line.begin = text + prefix;
    line.is_indented = prefix > 1 && line.begin[-1] == ' ' && line.begin[-2] == ' ';
    return line;
}

static bool begins_with(const struct line *line, const char *words)
{
    return (size_t)(line->end - line->begin) >= strlen(words) &&
           memcmp(line->begin, words, strlen(words)) == 0;
}

static bool is_in_name(char c)
{
    return mt_is_alnum(c) || c == '.' || c == '_';
}

/* The name of the last Python error below a traceback, unless it came from the error before it. */
void mt_oom_read_later_error(const char *text, const char *end, char name[MT_OOM_ERROR_BYTES])
{
    bool is_in_traceback = false;

    while (text < end) {
        const struct line line = read_line(text, end);
        const char *at = line.begin;

        text = line.next;
        if (begins_with(&line, "During handling of the above") ||
            begins_with(&line, "The above exception was"))
            return;
        is_in_traceback |= begins_with(&line, "Traceback");
        while (at < line.end && is_in_name(*at))
            at++;
        if (is_in_traceback && !line.is_indented && at > line.begin + 5 &&
            (at == line.end || *at == ':' || *at == '\033') && memcmp(at - 5, "Error", 5) == 0 &&
            at - line.begin < MT_OOM_ERROR_BYTES) {
            memcpy(name, line.begin, (size_t)(at - line.begin));
            name[at - line.begin] = '\0';
            is_in_traceback = false;
        }
    }
}

/* The script of the last traceback: File "train.py", line 3, in <module>. */
void mt_oom_read_script(const char *text, const char *end, struct mt_buf *script)
{
    static const char before[] = "File \"", after[] = ", in <module>";

    while (text < end) {
        const struct line line = read_line(text, end);
        const char *at = line.begin, *quote;

        text = line.next;
        if ((size_t)(line.end - at) > sizeof before + sizeof after && begins_with(&line, before) &&
            memcmp(line.end - (sizeof after - 1), after, sizeof after - 1) == 0 &&
            (quote =
                 memchr(at + sizeof before - 1, '"', (size_t)(line.end - at) - sizeof before))) {
            at += sizeof before - 1;
            mt_buf_reset(script);
            if (*at != '<')
                mt_buf_add(script, at, (size_t)(quote - at));
        }
    }
}
