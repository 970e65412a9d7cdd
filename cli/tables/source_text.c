#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* O_PATH */
#endif
#include "source_text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ascii.h"
#include "io.h"

#define MAX_BYTES ((off_t)16 << 20)

enum { MAX_SAID = 8 };

static const char outside[] = "it is outside the current folder (--source-root DIR allows others)";

static bool is_below(const char *path, const char *folder)
{
    char root[PATH_MAX];

    if (!realpath(folder, root))
        return false;
    size_t length = strlen(root);
    return !strncmp(path, root, length) &&
           (path[length] == '/' || (length && root[length - 1] == '/'));
}

static bool is_allowed(const struct mt_source_files *files, const char *path)
{
    for (size_t i = 0; i < files->roots.count; i++)
        if (is_below(path, files->roots.items[i]))
            return true;
    return is_below(path, ".");
}

/* Returns why a file must not be read; NULL if it may be read. Checks an O_PATH descriptor, because
 * its target can no longer change, and opening it has no effect on a device or a pipe. */
static const char *why_not(const struct mt_source_files *files, const char *link, int place)
{
    char resolved[PATH_MAX];
    ssize_t length = readlink(link, resolved, sizeof resolved - 1);
    struct stat facts;

    if (length < 0 || fstat(place, &facts) != 0)
        return strerror(errno);
    resolved[length] = '\0';
    if (!is_allowed(files, resolved))
        return outside;
    if (!S_ISREG(facts.st_mode))
        return "it is not a regular file";
    return facts.st_size > MAX_BYTES ? "it is larger than 16 MiB" : NULL;
}

/* Returns a descriptor. On failure, returns -1 and sets *why. */
static int open_allowed(const struct mt_source_files *files, const char *path, const char **why)
{
    int place = mt_io_open(path, O_PATH, 0), file = -1;
    char link[64];

    if (place < 0) {
        *why = strerror(errno);
        return -1;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", place);
    *why = why_not(files, link, place);
    if (!*why) {
        file = mt_io_open(link, O_RDONLY, 0);
        *why = strerror(errno);
    }
    (void)close(place);
    return file;
}

/* Opens the longest suffix of the path that exists below one root. The path is from the trace and
 * may be of any length, but only its last PATH_MAX bytes can name a file. */
static int open_below(const struct mt_source_files *files, const char *root, const char *path)
{
    size_t path_bytes = strlen(path);
    const char *why, *first = path_bytes < PATH_MAX ? path : path + path_bytes - PATH_MAX;

    if (first > path)
        first = strchr(first, '/'); /* start at the beginning of a name */
    for (const char *at = first; at && *at; at = strchr(at, '/')) {
        char whole[PATH_MAX];

        at += strspn(at, "/");
        int length = snprintf(whole, sizeof whole, "%s/%s", root, at);
        if (!*at || length < 0 || (size_t)length >= sizeof whole)
            continue;
        int file = open_allowed(files, whole, &why);
        if (file >= 0)
            return file;
    }
    return -1;
}

static int open_somewhere(const struct mt_source_files *files, const char *path, const char **why)
{
    int file = open_allowed(files, path, why);

    for (size_t i = 0; i < files->roots.count && file < 0; i++)
        file = open_below(files, files->roots.items[i], path);
    return file >= 0 ? file : open_below(files, ".", path);
}

static void say_unread(struct mt_source_files *files, const char *path, const char *why)
{
    uint32_t before = files->unread.count, id;

    mt_strings_put(&files->unread, path, strlen(path), &id);
    if (id == before && id < MAX_SAID && !files->quiet)
        mt_message("the source file '%s' was not read: %s", path, why);
}

void mt_source_files_end(struct mt_source_files *files)
{
    if (files->unread.count > MAX_SAID && !files->quiet)
        mt_message("%u more source files were not read", files->unread.count - MAX_SAID);
    mt_strings_release(&files->unread);
}

static bool read_all(int file, struct mt_buf *content, size_t length)
{
    char *room = mt_buf_reserve(content, length + 1);
    ssize_t got = 1;

    while (room && content->length < length && got > 0) {
        got = mt_io_read(file, content->data + content->length, length - content->length);
        if (got > 0)
            content->length += (size_t)got;
    }
    return room && got >= 0;
}

bool mt_source_text_open(struct mt_source_text *text, struct mt_source_files *files,
                         const char *path)
{
    struct stat facts;
    const char *why = "";

    mt_source_text_release(text);
    if (!*path)
        return false;
    int file = open_somewhere(files, path, &why);
    if (file < 0) {
        say_unread(files, path, why);
        return false;
    }
    bool read = fstat(file, &facts) == 0 && read_all(file, &text->content, (size_t)facts.st_size);
    if (!read)
        say_unread(files, path, strerror(errno));
    (void)close(file);
    text->line = read;
    return read;
}

/* Returns the end of the line that begins at `at`. */
static size_t end_of(const struct mt_buf *content, size_t at)
{
    const char *end = memchr(content->data + at, '\n', content->length - at);

    return end ? (size_t)(end - content->data) : content->length;
}

const char *mt_source_text_line(struct mt_source_text *text, uint32_t line, size_t *length)
{
    const struct mt_buf *content = &text->content;

    *length = 0;
    if (!text->line || text->line > line)
        return "";
    for (; text->line < line && text->at < content->length; text->line++)
        text->at = end_of(content, text->at) + (end_of(content, text->at) < content->length);
    if (text->line < line || text->at >= content->length)
        return "";
    size_t begin = text->at;
    size_t end = end_of(content, begin);
    while (begin < end && mt_is_space(content->data[begin]))
        begin++;
    while (end > begin && mt_is_space(content->data[end - 1]))
        end--;
    *length = end - begin;
    return content->data + begin;
}

void mt_source_text_release(struct mt_source_text *text)
{
    mt_buf_release(&text->content);
    memset(text, 0, sizeof *text);
}
