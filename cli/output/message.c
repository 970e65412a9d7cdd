/* Messages of commands on standard error. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "cli.h"
#include "io.h"
#include "message.h"
#include "util.h"

/* The first match is used. */
static const struct {
    const char *from, *to; /* of equal width in columns */
} characters[] = {
    {"−", "-"}, {"±", "+"}, {"µ", "u"}, {"×", "x"}, {"…", "~"}, {" → ", " ->"}, {"→", ">"},
};

/* Returns the bytes of the character at `text` that has a replacement, or 0 if there is none. */
static size_t match(const char *text, size_t length, const char **to)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(characters); i++) {
        const size_t bytes = strlen(characters[i].from);

        *to = characters[i].to;
        if (bytes <= length && memcmp(text, characters[i].from, bytes) == 0)
            return bytes;
    }
    return 0;
}

void mt_message_add_ascii(struct mt_buf *out, const char *text, size_t length)
{
    size_t kept = 0; /* start of the text that is not appended yet */

    for (size_t at = 0; at < length;) {
        const char *to;
        const size_t bytes = match(text + at, length - at, &to);

        if (!bytes) {
            at++;
            continue;
        }
        mt_buf_add(out, text + kept, at - kept);
        mt_buf_add_text(out, to);
        kept = at += bytes;
    }
    mt_buf_add(out, text + kept, length - kept);
}

enum { SHORT_BYTES = 1024 }; /* of a message that needs no memory */

#define NAME "memtrace: "

/* Returns false if memory ran out and failures are returned (process_memory.h). */
static bool say_long(const char *format, va_list args)
{
    struct mt_buf text = {0}, line = {0};

    mt_buf_vprintf(&text, format, args);
    mt_buf_add_text(&line, NAME);
    mt_buf_add_printable_text(&line, text.data);
    mt_buf_add_char(&line, '\n');
    bool said = !text.failed && !line.failed;
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
void mt_message(const char *format, ...)
{
    char text[SHORT_BYTES];
    va_list args, again;

    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(text, sizeof text, format, args);
    if (length < SHORT_BYTES || !say_long(format, again))
        say_short(text);
    va_end(again);
    va_end(args);
}
