/* Steps and phases of a trace whose program did not name them, or not all, laid
 * over the source as if it had: every reader then meets them as ranges. Each
 * says where it comes from (enum mt_phase_source). What the program named stays,
 * and wins: within a range of a known part nothing is added. */
#ifndef MT_ANALYZER_FOUND_PHASES_H
#define MT_ANALYZER_FOUND_PHASES_H

#include "source.h"

/* Reads a source that stands at its start, in the view that was chosen, once if
 * its ranges tell all there is (then only as far as that is known), else twice;
 * it is at its start again afterwards. Nothing happens if it was done before. */
enum mt_status mt_found_phases_lay(struct mt_source *source, struct mt_error *error) MT_MUST_USE;

#endif
