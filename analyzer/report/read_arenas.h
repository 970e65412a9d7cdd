/* The pass for programs of XLA (JAX) and TensorFlow. It determines whether their requests are in
 * the trace, and replays them with their own arena. For analyze.c only. */
#ifndef MT_ANALYZER_READ_ARENAS_H
#define MT_ANALYZER_READ_ARENAS_H

#include <stdbool.h>

#include "status.h"

struct mt_analysis;

/* Returns true if the trace is that of such a program and has driver calls. */
bool mt_arenas_are_wanted(const struct mt_analysis *analysis);

/* Reads the source again, but only if the trace has the requests. */
enum mt_status mt_report_fill_arenas(struct mt_analysis *analysis) MT_MUST_USE;

#endif
