#include "progress.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "io.h"

#define NS_A_SECOND 1000000000u
#define DELAY_NS    (NS_A_SECOND / 2)
#define PAUSE_NS    (NS_A_SECOND / 10)
#define CLEAR_LINE  "\r\033[K"

/* Whether a line is in the terminal. A variable, because mt_progress_clear has no argument. */
static atomic_bool is_shown;

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_A_SECOND + (uint64_t)now.tv_nsec;
}

void mt_progress_start(struct mt_progress *progress, bool quiet)
{
    memset(progress, 0, sizeof *progress);
    progress->off = quiet || !isatty(STDERR_FILENO);
    if (!progress->off)
        progress->started_ns = progress->shown_ns = now_ns();
}

static void write_line(const char *what, double share, uint64_t elapsed_ns)
{
    int percent = share >= 1 ? 100 : (int)(share * 100), length;
    char line[128];

    if (share < 0)
        length = snprintf(line, sizeof line, CLEAR_LINE "%.60s, %llu s", what,
                          (unsigned long long)(elapsed_ns / NS_A_SECOND));
    else
        length = snprintf(line, sizeof line, CLEAR_LINE "%.60s %3d%%", what, percent);
    if (length > 0)
        (void)!mt_io_write(STDERR_FILENO, line, (size_t)length);
    atomic_store(&is_shown, true);
}

void mt_progress_update(struct mt_progress *progress, const char *what, double share)
{
    uint64_t now;

    if (progress->off || !progress->started_ns)
        return;
    now = now_ns();
    if (now - progress->started_ns < DELAY_NS || now - progress->shown_ns < PAUSE_NS)
        return;
    write_line(what, share, now - progress->started_ns);
    progress->shown_ns = now;
    progress->shown = true;
}

uint64_t mt_progress_elapsed_ns(const struct mt_progress *progress)
{
    return progress->off ? 0 : now_ns() - progress->started_ns;
}

static void clear_line(void)
{
    (void)!mt_io_write(STDERR_FILENO, CLEAR_LINE, sizeof CLEAR_LINE - 1);
    atomic_store(&is_shown, false);
}

void mt_progress_end(struct mt_progress *progress)
{
    if (progress->shown)
        clear_line();
    progress->shown = false;
}

void mt_progress_clear(void)
{
    if (atomic_load(&is_shown))
        clear_line();
}
