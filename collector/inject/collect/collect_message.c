#include "collect_message.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "settings.h"

/* Status of descriptor 2 when the library was loaded. */
static struct stat first_facts;

__attribute__((constructor)) static void look_at_descriptor(void)
{
    if (fstat(STDERR_FILENO, &first_facts))
        first_facts = (struct stat){0};
}

/* If the program closed it, the descriptor may be one of its own files, and nothing is written to
 * it. */
static bool is_first_descriptor(void)
{
    struct stat now;

    return !fstat(STDERR_FILENO, &now) && now.st_dev == first_facts.st_dev &&
           now.st_ino == first_facts.st_ino && now.st_rdev == first_facts.st_rdev;
}

void mt_format_cut(char *out, size_t bytes, const char *format, va_list arguments)
{
    static const char cut[] = "...";
    int length = vsnprintf(out, bytes, format, arguments);
    size_t end = bytes - sizeof cut;
    int steps = 3; /* continuation bytes of a UTF-8 character, at most */

    if (length < 0 || (size_t)length < bytes)
        return;
    while (steps-- && end > 0 && ((unsigned char)out[end] & 0xc0) == 0x80)
        end--;
    memcpy(out + end, cut, sizeof cut);
}

void mt_collect_message(bool *once, const char *format, ...)
{
    char line[MT_COLLECT_LINE_BYTES + 1] = "memtrace: ";
    size_t used = strlen(line);
    va_list arguments;

    if (__atomic_exchange_n(once, true, __ATOMIC_RELAXED) || mt_recorder_settings->quiet ||
        !is_first_descriptor())
        return;
    va_start(arguments, format);
    mt_format_cut(line + used, sizeof line - used - 1, format, arguments);
    va_end(arguments);
    used = strlen(line);
    line[used++] = '\n';
    (void)!write(STDERR_FILENO, line, used);
}
