/* Infers the steps and phases that a program did not name, and inserts them into the source as
 * ranges. Each has its origin (enum mt_phase_source). Ranges that the program named stay and have
 * priority: no range is added inside one whose part of the step is known. */
#ifndef MT_ANALYZER_INFERRED_PHASES_H
#define MT_ANALYZER_INFERRED_PHASES_H

#include "source.h"

/* Reads the source from its start, in the chosen view. If its own ranges suffice, reads it once,
 * and only until that is known; otherwise twice. Rewinds it. Does nothing if it was called before
 * for this source. */
enum mt_status mt_inferred_phases_insert(struct mt_source *source,
                                         struct mt_error *error) MT_MUST_USE;

#endif
