/* Instants in options: the number of an event, a time since the first event, or a phase. */
#ifndef MT_CLI_INSTANT_OPTION_H
#define MT_CLI_INSTANT_OPTION_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "report.h"

struct mt_instant_option {
    bool given, by_time;
    uint64_t value, half_ns; /* half_ns: half of the last digit of a time */
    const char *phase; /* path of a phase, borrowed; `value` is then not set. NULL: not a phase */
};

/* Parses the text of an option (NULL = not given). "1200" and "event 1,200" are events; "1.5s",
 * "1.5", "20 ms", "300us" and "7ns" are times; "step 3, backward" and "phase:PATH" are phases.
 * Prints an error and returns false if the text is not an instant. */
bool mt_instant_option_read(const char *text, struct mt_instant_option *instant);

/* Prints that an option cannot name a time because the events of a dry run have no times. Returns
 * the exit code. */
int mt_instant_option_print_no_times(const char *path);

/* Returns the path after "tag." in the text of --by, or NULL. */
const char *mt_tag_member_option(const char *by);

/* Parses the text of --at. Appends the reason to `why` and returns false if it is invalid. */
bool mt_question_at_read(const char *at, struct mt_question *question, struct mt_buf *why);

/* Parses --at and --by. If `at` is NULL, the question is about the allocated peak. If `by` is NULL,
 * the answer is by site. Prints an error and returns false if a text is invalid. */
bool mt_question_option_read(const char *at, const char *by, struct mt_question *question);

#endif
