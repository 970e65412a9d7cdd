/* Infers steps and phases of a trace whose program did not name them, or not all, and inserts them
 * into the source as ranges. Each has its origin (enum mt_phase_source). Ranges that the program
 * named stay and have priority: nothing is added inside a range of a known part. */
#ifndef MT_ANALYZER_FOUND_PHASES_H
#define MT_ANALYZER_FOUND_PHASES_H

#include "source.h"

/* Reads a source from its start, in the chosen view: once if its ranges suffice (then only until
 * that is known), otherwise twice. Rewinds it. Does nothing if it was done before. */
enum mt_status mt_found_phases_lay(struct mt_source *source, struct mt_error *error) MT_MUST_USE;

#endif
