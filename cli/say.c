/* Messages and progress of commands on standard error. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "io.h"

void mt_say(const char *format, ...)
{
    static const char name[] = "memtrace: ";
    char text[1024], escaped[sizeof name + 4 * sizeof text];
    struct mt_buf line = {.data = escaped, .capacity = sizeof escaped, .is_fixed = true};
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    mt_buf_add_text(&line, name);
    mt_buf_add_printable(&line, text, strlen(text));
    mt_buf_add_char(&line, '\n');
    (void)!mt_io_write(STDERR_FILENO, line.data, line.length);
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
