/* Gates as JUnit XML, with a test case for each rule and device. */
#ifndef MT_RENDER_JUNIT_H
#define MT_RENDER_JUNIT_H

#include "buf.h"
#include "gate_check.h"

void mt_add_junit(struct mt_buf *out, const struct mt_report *report, const struct mt_gates *gates);

#endif
