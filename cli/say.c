/* Messages and progress of commands on standard error. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "io.h"

enum { SHORT_BYTES = 1024 }; /* of a message that needs no memory */

#define NAME "memtrace: "

/* Returns false if memory ran out. */
static bool say_long(const char *format, va_list args)
{
    struct mt_buf text = {0}, line = {0};
    bool said;

    mt_buf_vprintf(&text, format, args);
    mt_buf_add_text(&line, NAME);
    mt_buf_add_printable_text(&line, text.data);
    mt_buf_add_char(&line, '\n');
    said = !text.failed && !line.failed;
    if (said)
        (void)!mt_io_write(STDERR_FILENO, line.data, line.length);
    mt_buf_release(&text);
    mt_buf_release(&line);
    return said;
}

static void say_short(const char *text)
{
    char escaped[sizeof NAME + (size_t)4 * SHORT_BYTES];
    struct mt_buf line = {.data = escaped, .capacity = sizeof escaped, .is_fixed = true};

    mt_buf_add_text(&line, NAME);
    mt_buf_add_printable(&line, text, strlen(text));
    mt_buf_add_char(&line, '\n');
    (void)!mt_io_write(STDERR_FILENO, line.data, line.length);
}

/* Only a long message allocates, so a message about memory that ran out is always printed. */
void mt_say(const char *format, ...)
{
    char text[SHORT_BYTES];
    va_list args, again;
    bool said = false;
    int length;

    va_start(args, format);
    va_copy(again, args);
    length = vsnprintf(text, sizeof text, format, args);
    if (length >= SHORT_BYTES)
        said = say_long(format, again);
    va_end(again);
    va_end(args);
    if (!said)
        say_short(text);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void mt_progress_start(struct mt_progress *progress, const struct mt_common *common)
{
    memset(progress, 0, sizeof *progress);
    progress->off = common->quiet || !isatty(STDERR_FILENO);
    if (!progress->off)
        progress->started_ns = progress->shown_ns = now_ns();
}

void mt_progress_update(struct mt_progress *progress, const char *what, double share)
{
    uint64_t now;
    char line[128];
    int length, percent = share >= 1 ? 100 : share > 0 ? (int)(share * 100) : 0;

    if (progress->off)
        return;
    now = now_ns();
    if (now - progress->started_ns < 1000000000u || now - progress->shown_ns < 100000000u)
        return;
    length = snprintf(line, sizeof line, "\r%.80s %3d%%", what, percent);
    if (length > 0)
        (void)!mt_io_write(STDERR_FILENO, line, (size_t)length);
    progress->shown_ns = now;
    progress->shown = true;
}

uint64_t mt_progress_elapsed_ns(const struct mt_progress *progress)
{
    return progress->off ? 0 : now_ns() - progress->started_ns;
}

void mt_progress_end(struct mt_progress *progress)
{
    static const char clear_line[] = "\r\033[K";

    if (progress->shown)
        (void)!mt_io_write(STDERR_FILENO, clear_line, sizeof clear_line - 1);
    progress->shown = false;
}
