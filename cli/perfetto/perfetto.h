/* A run as a trace of Perfetto (ui.perfetto.dev): counters, phases, instants, and live blocks by
 * call stack. The levels of the counters are collected while the run is analyzed:
 *
 *     mt_perfetto_attach(&levels, &options);
 *     ... mt_analyze(source, &options, &report, &error) ...
 *     mt_perfetto_add(&out, report, &source->header, &levels);
 *     mt_perfetto_levels_release(&levels);
 *
 * The number of points does not depend on the length of the run. */
#ifndef MT_CLI_PERFETTO_H
#define MT_CLI_PERFETTO_H

#include "buf.h"
#include "perfetto_levels.h"
#include "report.h"
#include "source.h"

/* Appends the trace. */
void mt_perfetto_add(struct mt_buf *out, const struct mt_report *report,
                     const struct mt_trace_header *header, const struct mt_perfetto_levels *levels);

#endif
