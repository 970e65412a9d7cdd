/* MEMTRACE_DEBUG=TOPIC[,TOPIC...] prints internals to standard error, for developers of memtrace.
 * It does not change answers. */
#ifndef MT_CLI_DEBUG_H
#define MT_CLI_DEBUG_H

#include <stdbool.h>

#include "report.h"

enum mt_debug_topic {
    MT_DEBUG_PASSES, /* mt_debug_passes */
    MT_DEBUG_TOPICS
};

/* Returns true if MEMTRACE_DEBUG names the topic. */
bool mt_debug_has(enum mt_debug_topic topic);

/* Prints a line for each word of MEMTRACE_DEBUG that is not a topic. */
void mt_debug_check(void);

/* Prints how often an analysis read its input, and the cost of each pass. Prints nothing unless
 * MT_DEBUG_PASSES is set. */
void mt_debug_passes(const struct mt_report *report);

#endif
