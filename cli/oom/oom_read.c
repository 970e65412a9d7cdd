/* Reads the text of a log, and keeps only the end of a long one. */
#include "oom_text.h"

#include <string.h>
#include <sys/stat.h>

#include "feed.h"
#include "util.h"

enum { KEPT_BYTES = 32 * 1024 * 1024, PIECE_BYTES = 256 * 1024 };

/* Keeps the last lines. Called once per KEPT_BYTES, so the cost stays linear. */
static void cut_front(struct mt_buf *text, uint64_t *lines_cut)
{
    const char *keep = text->data + (text->length - KEPT_BYTES),
               *line = memchr(keep, '\n', KEPT_BYTES);
    size_t left;

    keep = line ? line + 1 : keep;
    for (const char *at = text->data; (at = memchr(at, '\n', (size_t)(keep - at))); at++)
        ++*lines_cut;
    left = text->length - (size_t)(keep - text->data);
    memmove(text->data, keep, left);
    text->length = left;
}

enum mt_status mt_oom_read(const char *path, struct mt_buf *text, uint64_t *lines_cut,
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
        if (text->length > 2 * (size_t)KEPT_BYTES)
            cut_front(text, lines_cut);
    }
    mt_feed_close(feed);
    return status;
}

/* Only a regular file may be read again. */
static bool is_short_file(const char *path)
{
    struct stat facts;

    return stat(path, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size <= KEPT_BYTES;
}

bool mt_oom_is_in_file(const char *path)
{
    struct mt_oom_message message = {0};
    struct mt_error unused = {.offset = MT_NO_OFFSET};
    struct mt_buf text = {0};
    uint64_t lines_cut;
    bool is_found = strcmp(path, "-") != 0 && is_short_file(path) &&
                    mt_oom_read(path, &text, &lines_cut, &unused) == MT_OK && text.length &&
                    !memchr(text.data, '\0', mt_min_u64(text.length, MT_FEED_START_BYTES)) &&
                    mt_oom_find(text.data, text.length, &message) && !message.wording->is_echo;

    mt_oom_message_release(&message);
    mt_buf_release(&text);
    return is_found;
}
