/* Messages of the recorder to the user, from inside the traced process. */
#ifndef MT_INJECT_COLLECT_MESSAGE_H
#define MT_INJECT_COLLECT_MESSAGE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* Limits of lines and reasons; longer texts end in "...". The limits are low because a line is
 * built on the stack of a thread of the program, perhaps in a signal handler. */
enum { MT_COLLECT_LINE_BYTES = 512, MT_COLLECT_REASON_BYTES = 448 };

/* Prints one line on stderr, "memtrace: ...", at most once for each `once` (a static flag of the
 * caller). Prints nothing with --quiet, or if the program replaced its stderr. */
void mt_collect_message(bool *once, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Like vsnprintf, but a text that does not fit ends in "..." and is never cut inside a UTF-8
 * character. */
void mt_format_cut(char *out, size_t bytes, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

#endif
