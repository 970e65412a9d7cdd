/* Output for a person at a terminal: what the terminal can show, and a line of progress.
 *
 * Capabilities of standard output: width, characters, colors. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli.h"
#include "io.h"
#include "monotonic_clock.h"
#include "screen.h"

#define MIN_COLUMNS 40
#define MAX_COLUMNS 400

/* Returns the width from the environment or the terminal; 0 if both are unknown. */
static unsigned long terminal_columns(void)
{
    const char *wanted = getenv("COLUMNS");
    unsigned long columns = wanted ? strtoul(wanted, NULL, 10) : 0;
    struct winsize size;

    if (columns || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        return columns;
    return size.ws_col;
}

/* Returns true if the locale is UTF-8. As in setlocale, the first variable that is set determines
 * the locale. */
static bool locale_is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]), *charset = value ? strchr(value, '.') : NULL;

        if (value && *value)
            return charset &&
                   (!strncasecmp(charset + 1, "UTF-8", 5) || !strncasecmp(charset + 1, "utf8", 4));
    }
    return false;
}

struct mt_screen mt_stdout_screen(void)
{
    struct mt_screen screen = {MT_TEXT_COLUMNS, isatty(STDOUT_FILENO), locale_is_utf8()};
    unsigned long columns = screen.is_terminal ? terminal_columns() : 0;

    if (columns)
        screen.columns = columns < MIN_COLUMNS   ? MIN_COLUMNS
                         : columns > MAX_COLUMNS ? MAX_COLUMNS
                                                 : columns;
    return screen;
}

static bool wants_color(void)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

    return isatty(STDOUT_FILENO) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

const struct mt_style *mt_plain_style(void)
{
    static const struct mt_style plain = {"", "", "", "", "", "", ""};

    return &plain;
}

const struct mt_style *mt_stdout_style(void)
{
    static const struct mt_style colors = {"\033[1m",  "\033[2m",  "\033[31m", "\033[32m",
                                           "\033[33m", "\033[36m", "\033[0m"};

    return wants_color() ? &colors : mt_plain_style();
}

#define NS_A_SECOND 1000000000u
#define DELAY_NS    (NS_A_SECOND / 2)
#define PAUSE_NS    (NS_A_SECOND / 10)
#define CLEAR_LINE  "\r\033[K"

/* Whether a line is in the terminal. A variable, because mt_progress_clear has no argument. */
static atomic_bool is_shown;

void mt_progress_start(struct mt_progress *progress, bool quiet)
{
    memset(progress, 0, sizeof *progress);
    progress->off = quiet || !isatty(STDERR_FILENO);
    if (!progress->off)
        progress->started_ns = progress->shown_ns = mt_now_ns();
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
    if (progress->off || !progress->started_ns)
        return;
    uint64_t now = mt_now_ns();
    if (now - progress->started_ns < DELAY_NS || now - progress->shown_ns < PAUSE_NS)
        return;
    write_line(what, share, now - progress->started_ns);
    progress->shown_ns = now;
    progress->shown = true;
}

uint64_t mt_progress_elapsed_ns(const struct mt_progress *progress)
{
    return progress->off ? 0 : mt_now_ns() - progress->started_ns;
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

/* A variable for the same reason. */
static void (*_Atomic restore_terminal)(void);

void mt_screen_note_restore(void (*restore)(void))
{
    atomic_store(&restore_terminal, restore);
}

void mt_progress_clear(void)
{
    void (*restore)(void) = atomic_exchange(&restore_terminal, NULL);

    if (restore)
        restore();
    if (atomic_load(&is_shown))
        clear_line();
}
