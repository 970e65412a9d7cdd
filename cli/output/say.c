/* Messages of commands on standard error. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "io.h"

enum { SHORT_BYTES = 1024 }; /* of a message that needs no memory */

#define NAME "memtrace: "

/* Returns false if memory ran out and failures are returned (process_memory.h). */
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
    int length;

    va_start(args, format);
    va_copy(again, args);
    length = vsnprintf(text, sizeof text, format, args);
    if (length < SHORT_BYTES || !say_long(format, again))
        say_short(text);
    va_end(again);
    va_end(args);
}
