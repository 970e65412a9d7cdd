/* MEMTRACE_DEBUG=passes: how often an analysis read its input, and what each of its passes cost. */
#ifndef MT_CLI_DEBUG_PASSES_H
#define MT_CLI_DEBUG_PASSES_H

#include "report.h"

/* Nothing unless the topic is named. */
void mt_debug_passes(const struct mt_report *report);

#endif
