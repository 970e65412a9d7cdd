/* Gates: does a run meet its rules? If it does not: by how much, which call site is responsible,
 * and what would help. Plain data in one arena; nothing is printed here. */
#ifndef MT_ANALYZER_GATE_CHECK_H
#define MT_ANALYZER_GATE_CHECK_H

#include "gate_result.h"

/* May read the source some hundred times: `fits` searches, and a failure asks
 * what other options would need. Release *gates in any case. */
enum mt_status mt_gates_check(const struct mt_gate_check *check, struct mt_gates *gates,
                              struct mt_error *error) MT_MUST_USE;
void mt_gates_release(struct mt_gates *gates);

#endif
