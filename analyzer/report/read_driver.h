/* The pass over all heaps. It measures the memory that the process took from the driver. For
 * analyze.c only. */
#ifndef MT_ANALYZER_READ_DRIVER_H
#define MT_ANALYZER_READ_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event.h"
#include "status.h"

struct mt_analysis;

/* Returns true if the trace has events other than those of a framework. */
bool mt_driver_is_wanted(const struct mt_analysis *analysis);
enum mt_status mt_begin_driver(struct mt_analysis *analysis) MT_MUST_USE;
void mt_receive_driver(struct mt_analysis *analysis, const struct mt_event *events, size_t count);
void mt_finish_driver(struct mt_analysis *analysis);
uint64_t mt_driver_memory_bytes(const struct mt_analysis *analysis);

#endif
