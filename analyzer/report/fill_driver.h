/* Fills the report with memory outside of the framework's heap, from the driver ledger. */
#ifndef MT_ANALYZER_FILL_DRIVER_H
#define MT_ANALYZER_FILL_DRIVER_H

#include "status.h"

struct mt_analysis;

/* Call it after the devices are filled. */
void mt_report_fill_driver(struct mt_analysis *analysis);

#endif
