/* The steps of an analysis after its passes: arenas of XLA and TensorFlow, and the parts of the
 * report. */
#ifndef MT_ANALYZER_REPORT_PARTS_H
#define MT_ANALYZER_REPORT_PARTS_H

#include <stdbool.h>

#include "status.h"

struct mt_analysis;
struct mt_snapshot;
struct mt_device_report;

/* Fills the report from the results of the passes. For analyze.c only. */

/* Adds the results of pass `run`: phases, and for each device the replay, peaks and steps. Call it
 * before pass `blocks`, whose models and findings need them. */
enum mt_status mt_report_fill_facts(struct mt_analysis *analysis) MT_MUST_USE;

/* Adds the results of pass `blocks`. Call it after that pass. */
enum mt_status mt_report_fill(struct mt_analysis *analysis) MT_MUST_USE;

/* Fills the report with memory outside of the framework's heap, from the driver ledger. */

/* Call it after the devices are filled. */
void mt_report_fill_driver(struct mt_analysis *analysis);

/* Computes the parts of a device's memory while a model serves requests. */

/* Fills out->device_parts. Call it after the driver's report is filled. `peak` is the snapshot at
 * the device's allocated peak, or NULL. out->device_parts stays NULL if the parts would not sum to
 * the total. */
void mt_report_fill_device_parts(struct mt_analysis *analysis, const struct mt_snapshot *peak,
                                 struct mt_device_report *out);

/* The pass for programs of XLA (JAX) and TensorFlow. It determines whether their requests are in
 * the trace, and replays them with their own arena. For analyze.c only. */

/* Returns true if the trace is that of such a program and has driver calls. */
bool mt_arenas_are_wanted(const struct mt_analysis *analysis);

/* Reads the source again, but only if the trace has the requests. */
enum mt_status mt_report_fill_arenas(struct mt_analysis *analysis) MT_MUST_USE;

#endif
