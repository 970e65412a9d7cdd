/* The pass for programs of XLA (JAX) and TensorFlow: are their requests in the trace, and what
 * would their own arena have made of them? For analyze.c alone. */
#ifndef MT_ANALYZER_READ_ARENAS_H
#define MT_ANALYZER_READ_ARENAS_H

#include <stdbool.h>

#include "status.h"

struct mt_analysis;

/* Is it a program of theirs, whose calls of the driver were recorded? */
bool mt_arenas_are_wanted(const struct mt_analysis *analysis);

/* One reading more if the requests are there, else none. */
enum mt_status mt_fill_arenas(struct mt_analysis *analysis) MT_MUST_USE;

#endif
