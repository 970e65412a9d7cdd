/* What the recorder says to the user, in a process that is not its own. */
#ifndef MT_INJECT_TELL_USER_H
#define MT_INJECT_TELL_USER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* Limits of lines and reasons; what is longer ends in "...". A line is on the stack of a thread of
 * the program, perhaps in a signal handler: it is short. */
enum { MT_COLLECT_LINE_BYTES = 512, MT_COLLECT_REASON_BYTES = 448 };

/* One line for the user on stderr, "memtrace: ...", at most once for each
 * `once` (a static flag of the caller); none if the user said --quiet, or if the
 * program put another file in place of its stderr. */
void mt_collect_say(bool *once, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* As vsnprintf; ends in "..." if it was cut, before the first byte of a UTF-8 character. */
void mt_format_cut(char *out, size_t bytes, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

#endif
