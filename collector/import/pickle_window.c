/* The input of the pickle reader: a window that slides over the bytes. */
#include <string.h>

#include "pickle_machine.h"
#include "util.h"

static enum mt_status cut(struct mt_pickle *p)
{
    return mt_fail(p->error, MT_ERR_FORMAT, p->offset + (uint64_t)(p->end - p->window),
                   "the pickle is cut (the opcode at byte %llu is not complete)",
                   (unsigned long long)p->opcode_offset);
}

static enum mt_status read_more(struct mt_pickle *p)
{
    size_t used = (size_t)(p->end - p->window), got;
    enum mt_status status;

    status = mt_feed_read(p->feed, p->window + used, MT_PICKLE_WINDOW - used, &got, p->error);
    if (status != MT_OK)
        return status;
    p->feed_ended = got == 0;
    p->end += got;
    return MT_OK;
}

enum mt_status mt_window_fill(struct mt_pickle *p, size_t count)
{
    size_t left = (size_t)(p->end - p->at);
    enum mt_status status = MT_OK;

    if (left >= count || p->feed_ended)
        return MT_OK;
    memmove(p->window, p->at, left);
    p->offset += (uint64_t)(p->at - p->window);
    p->at = p->window;
    p->end = p->window + left;
    while (status == MT_OK && (size_t)(p->end - p->at) < count && !p->feed_ended)
        status = read_more(p);
    return status;
}

/* Skips `length` bytes, or gathers bytes that exceed the window. Allocation grows with the bytes
 * that were read, not with the claimed length. */
static enum mt_status pass(struct mt_pickle *p, uint64_t length, bool gather)
{
    while (length) {
        size_t piece;
        enum mt_status status = mt_window_fill(p, 1);

        if (status != MT_OK)
            return status;
        piece = (size_t)mt_min_u64(length, (uint64_t)(p->end - p->at));
        if (!piece)
            return cut(p);
        if (gather) {
            mt_buf_add(&p->scratch, p->at, piece);
            if (p->scratch.failed)
                return mt_pickle_no_memory(p);
        }
        p->at += piece;
        length -= piece;
    }
    return MT_OK;
}

enum mt_status mt_window_take_far(struct mt_pickle *p, uint64_t length, const unsigned char **bytes)
{
    enum mt_status status;

    if (p->feed_ended)
        return cut(p);
    mt_buf_reset(&p->scratch);
    status = pass(p, length, true);
    *bytes = (const unsigned char *)p->scratch.data;
    return status;
}

enum mt_status mt_window_skip(struct mt_pickle *p, uint64_t length)
{
    return pass(p, length, false);
}

enum mt_status mt_window_line(struct mt_pickle *p, const unsigned char **line, size_t *length)
{
    mt_buf_reset(&p->scratch);
    for (;;) {
        const unsigned char *newline;
        size_t left;
        enum mt_status status = mt_window_fill(p, 1);

        if (status != MT_OK)
            return status;
        left = (size_t)(p->end - p->at);
        if (!left)
            return cut(p);
        newline = memchr(p->at, '\n', left);
        mt_buf_add(&p->scratch, p->at, newline ? (size_t)(newline - p->at) : left);
        if (p->scratch.failed)
            return mt_pickle_no_memory(p);
        p->at = newline ? newline + 1 : p->end;
        if (newline)
            break;
    }
    *line = p->scratch.data ? (const unsigned char *)p->scratch.data : (const unsigned char *)"";
    *length = p->scratch.length;
    return MT_OK;
}
