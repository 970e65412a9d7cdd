/* Prints what failed, and determines the exit status of a command. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "io.h"
#include "memory_limit.h"
#include "message.h"
#include "process_memory.h"

static int exit_code_of(enum mt_status status)
{
    switch (status) {
    case MT_ERR_USAGE: return MT_EXIT_USAGE;
    case MT_ERR_OUTPUT: return MT_EXIT_OUTPUT;
    case MT_OK: /* a caller did not fill in the error */
    case MT_END:
    case MT_ERR_INTERNAL: return MT_EXIT_INTERNAL;
    case MT_ERR_MEMORY:
    case MT_ERR_IO:
    case MT_ERR_FORMAT:
    case MT_ERR_UNSUPPORTED:
    case MT_ERR_DEVICE_OOM: break;
    }
    return MT_EXIT_INPUT;
}

int mt_report_error(const char *path, const struct mt_error *error)
{
    const char *text = error->text[0] ? error->text : mt_status_text(error->status);
    const char *verb = error->status == MT_ERR_OUTPUT ? "write" : "read";
    bool is_memory = error->status == MT_ERR_MEMORY;
    char reason[MT_MEMORY_TEXT], place[40] = "";

    if (is_memory)
        text = mt_memory_reason(reason);
    else if (error->offset != MT_NO_OFFSET && error->offset) /* the offset 0 does not help a user */
        snprintf(place, sizeof place, " (at byte %llu)", (unsigned long long)error->offset);
    if (error->status == MT_ERR_USAGE && !is_memory)
        mt_message("%s", text);
    else if (error->status == MT_ERR_INTERNAL)
        mt_message("internal error with '%s': %s; this is a bug in memtrace, please report it with "
                   "this line",
                   path, text);
    else if (strcmp(path, "-") == 0)
        mt_message("cannot %s standard %s: %s%s", verb, *verb == 'w' ? "output" : "input", text,
                   place);
    else
        mt_message("cannot %s '%s': %s%s", verb, path, text, place);
    return is_memory ? MT_EXIT_INPUT : exit_code_of(error->status);
}

int mt_print(const struct mt_buf *buf)
{
    if (buf->failed)
        mt_memory_end();
    if (!buf->length || mt_io_write(STDOUT_FILENO, buf->data, buf->length))
        return MT_EXIT_OK;
    if (errno == EPIPE) /* the reader has what it needs: `| head` */
        return MT_EXIT_OK;
    if (errno != EBADF) /* `>&-` needs no message */
        mt_message("cannot write standard output: %s", strerror(errno));
    return MT_EXIT_OUTPUT;
}

int mt_print_and_release(struct mt_buf *buf)
{
    int code = mt_print(buf);

    mt_buf_release(buf);
    return code;
}

int mt_print_answer(const struct mt_buf *buf, bool is_json)
{
    struct mt_buf ascii = {0};

    if (is_json || !buf->length || mt_stdout_screen().unicode)
        return mt_print(buf);
    mt_message_add_ascii(&ascii, buf->data, buf->length);
    return mt_print_and_release(&ascii);
}

int mt_print_answer_and_release(struct mt_buf *buf, bool is_json)
{
    int code = mt_print_answer(buf, is_json);

    mt_buf_release(buf);
    return code;
}
