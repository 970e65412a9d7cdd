/* What the recorder says to the user, in a process that is not its own. */
#ifndef MT_INJECT_TELL_USER_H
#define MT_INJECT_TELL_USER_H

#include <stdbool.h>

/* One line for the user on stderr, "memtrace: ...", at most once for each
 * `once` (a static flag of the caller); none if the user said --quiet, or if the
 * program put another file in place of its stderr. */
void mt_collect_say(bool *once, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
