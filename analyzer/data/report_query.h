/* Questions that a finished part of a report answers without any other input. */
#ifndef MT_ANALYZER_REPORT_QUERY_H
#define MT_ANALYZER_REPORT_QUERY_H

#include "report.h"

/* Is the limit of the run known, if only as an interval? False without one, and
 * if all there is is one value of many that explains what was collected as
 * garbage. */
bool mt_limit_is_known(const struct mt_replay_result *replay);

/* What pictures call a trace: "runs/seq2seq.pickle.zst" -> "seq2seq". In the arena. */
const char *mt_report_name(struct mt_arena *arena, const char *path);

/* False for a phase or step that was over before the recorded history of the
 * device began: what memory did in it is not known, its bytes are those of the
 * start. */
bool mt_report_covers(const struct mt_report *report, const struct mt_device_report *device,
                      uint64_t end_event);

/* The first event of a step. */
uint64_t mt_step_begin(const struct mt_report *report, const struct mt_step_use *step);

/* First of the device's steps that are covered by what was recorded and ascend
 * from there on to the last. */
uint32_t mt_first_step(const struct mt_report *report, const struct mt_device_report *device);

#endif
