#ifndef MT_ANALYZER_REPORT_CHECK_H
#define MT_ANALYZER_REPORT_CHECK_H

#include "report.h"

/* Every table of the allocated peak sums to that peak, and each peak is what was there at its
 * instant. If not, *why is the rule that is broken. Cost: linear in the tables. */
bool mt_report_is_sound(const struct mt_report *report, const char **why);

#endif
