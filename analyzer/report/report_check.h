#ifndef MT_ANALYZER_REPORT_CHECK_H
#define MT_ANALYZER_REPORT_CHECK_H

#include "report.h"

/* Checks that every table of the allocated peak sums to that peak, and that each peak equals the
 * memory at its instant. If not, *why is the violated rule. Cost: linear in the tables. */
bool mt_report_is_sound(const struct mt_report *report, const char **why);

#endif
