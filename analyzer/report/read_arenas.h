/* The pass for programs of XLA (JAX) and TensorFlow: whether their requests are in the trace, and
 * how their own arena would have served them. For analyze.c only. */
#ifndef MT_ANALYZER_READ_ARENAS_H
#define MT_ANALYZER_READ_ARENAS_H

#include <stdbool.h>

#include "status.h"

struct mt_analysis;

/* Returns whether the trace is of such a program and has driver calls. */
bool mt_arenas_are_wanted(const struct mt_analysis *analysis);

/* Reads the source again if the trace has the requests, otherwise not. */
enum mt_status mt_fill_arenas(struct mt_analysis *analysis) MT_MUST_USE;

#endif
