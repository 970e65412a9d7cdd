/* The pass for programs of XLA (JAX) and TensorFlow: whether their requests are in the trace, and
 * how their own arena would have served them. For analyze.c only. */
#ifndef MT_ANALYZER_READ_ARENAS_H
#define MT_ANALYZER_READ_ARENAS_H

#include <stdbool.h>

#include "status.h"

struct mt_analysis;

/* Whether it is such a program, with recorded driver calls. */
bool mt_arenas_are_wanted(const struct mt_analysis *analysis);

/* One more pass if the trace has the requests, otherwise none. */
enum mt_status mt_fill_arenas(struct mt_analysis *analysis) MT_MUST_USE;

#endif
