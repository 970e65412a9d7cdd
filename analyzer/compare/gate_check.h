/* Gates: checks whether a run meets its rules. A result has the excess over the rule, the
 * responsible call site, and a fix. Plain data in one arena; nothing is printed here. */
#ifndef MT_ANALYZER_GATE_CHECK_H
#define MT_ANALYZER_GATE_CHECK_H

#include "gate_result.h"

/* May make hundreds of passes over the source: `fits` searches, and after a failure other options
 * are tried. Release *gates even after an error. */
enum mt_status mt_gates_check(const struct mt_gate_check *check, struct mt_gates *gates,
                              struct mt_error *error) MT_MUST_USE;
void mt_gates_release(struct mt_gates *gates);

#endif
