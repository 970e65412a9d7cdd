/* Capabilities of standard output: width, characters, colors. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli.h"

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
