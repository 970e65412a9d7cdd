/* Gates as JUnit XML, with a test case for each rule and device. */
#ifndef MT_RENDER_JUNIT_H
#define MT_RENDER_JUNIT_H

#include "buf.h"
#include "gate_result.h"

#define MT_JUNIT_BEGIN "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"memtrace\""
#define MT_JUNIT_END   "  </testsuite>\n</testsuites>\n"

/* Appends the failure of a test case: of a rule that does not hold, or that was not evaluated. */
void mt_add_junit_failure(struct mt_buf *out, const struct mt_gate_result *result);

void mt_junit_add(struct mt_buf *out, const struct mt_report *report, const struct mt_gates *gates);

#endif
