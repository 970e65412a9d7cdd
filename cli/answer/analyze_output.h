/* Writes a report as text or as JSON. */
#ifndef MT_CLI_ANALYZE_OUTPUT_H
#define MT_CLI_ANALYZE_OUTPUT_H

#include "cli.h"
#include "device_choice.h"
#include "gate_result.h"
#include "json.h"
#include "report.h"

/* Appends the first screen: at most MT_ANALYZE_LINES lines of at most 100 columns, longer only for
 * a command that can be pasted. With `all`, the reasons and tables follow, and a chart of memory
 * over time if `chart` is not NULL and the report has timelines. */
void mt_analyze_text(struct mt_buf *out, const struct mt_report *report,
                     const struct mt_style *style, const struct mt_screen *chart, bool all);
#define MT_ANALYZE_LINES 25

/* Appends a document "memtrace.analyze/1". `gates` may be NULL. `all` lifts the limits of
 * json.h. */
void mt_analyze_json(struct mt_buf *out, const struct mt_report *report,
                     const struct mt_gates *gates, bool all);

/* What a text is made from. Functions mt_reporter_* return or append pieces of it, functions
 * mt_report_* append a part of the report. */
struct mt_reporter {
    struct mt_buf *out;
    const struct mt_report *report;
    const struct mt_device_report *device;
    const struct mt_style *style;
    struct mt_arena *arena;        /* scratch */
    const struct mt_screen *chart; /* NULL = no chart */
};

/* Appends "gpt: NVIDIA H200, PyTorch 2.11, 12,345 events, 3 steps in 4.2 s", then `more`. */
void mt_reporter_title(const struct mt_reporter *reporter, size_t indent, const char *more);
/* Appends the first line of the report of a dry run. Appends nothing for other runs. */
void mt_reporter_dry_run(const struct mt_reporter *reporter);
/* For a dry run, appends where the numbers beside the allocator come from. */
void mt_reporter_card(const struct mt_reporter *reporter);
/* Appends the title (mt_reporter_title) as a line of the answer, with ", no OOM, no retries" or
 * that they are unknown. */
void mt_reporter_run(const struct mt_reporter *reporter);
/* Appends the first screen, with at most `most_lines` lines if possible. Ignores
 * reporter->device. */
void mt_reporter_first_screen(const struct mt_reporter *reporter, size_t most_lines);
/* Append what the first screen leaves out: all digits, address orders, tags. */
void mt_reporter_answer(const struct mt_reporter *reporter);
/* Appends that events or the beginning of the run are missing. */
void mt_reporter_notices(const struct mt_reporter *reporter);
/* Append one or two lines if: the driver refused requests of a program without a framework; the
 * simulated settings do not serve the run; there is no history. */
void mt_reporter_refused(const struct mt_reporter *reporter);
void mt_reporter_failure(const struct mt_reporter *reporter);
void mt_reporter_one_instant(const struct mt_reporter *reporter);

/* Appends the number of devices that are not analyzed, and why. */
void mt_reporter_devices_left_out(const struct mt_reporter *reporter);
/* Appends a table with a row for each device. */
void mt_reporter_devices_together(const struct mt_reporter *reporter);
/* Formats into the scratch arena. */
const char *mt_reporter_format(const struct mt_reporter *reporter, const char *format, ...)
    MT_PRINTF(2, 3);
/* Returns "step 1, backward", "backward" or "outside any phase". */
const char *mt_reporter_where(const struct mt_reporter *reporter, int32_t phase, int64_t step);
/* Returns "in step 1, backward" or "outside any phase"; "" if the trace has no phases. */
const char *mt_reporter_in(const struct mt_reporter *reporter, int32_t phase, int64_t step);
const char *mt_reporter_in_phase(const struct mt_reporter *reporter, int32_t phase);
/* Returns "expandable_segments:True", in the syntax of the option, or "PyTorch's defaults". */
const char *mt_oom_way_setting(const struct mt_oom_way *way);
/* Appends the title of a device's report: "Device 1: NVIDIA H200". The name is from the trace. */
void mt_reporter_device_title(const struct mt_reporter *reporter);
/* Returns the time since the first event: "3.76 s". */
const char *mt_reporter_when(const struct mt_reporter *reporter, uint64_t t_ns);
/* Like mt_reporter_when, but "event 4,496" if the trace has no times. */
const char *mt_reporter_at(const struct mt_reporter *reporter, uint64_t t_ns, uint64_t event);
/* Returns the phase in which blocks were allocated: "optimizer (step 0)". Omits the step if it is
 * `spoken_of`, which the text has already named. */
const char *mt_reporter_birth(const struct mt_reporter *reporter,
                              const struct mt_contribution *part, int64_t spoken_of);
/* Appends a wrapped paragraph. Its continuation lines are indented by two more columns. */
void mt_reporter_line(const struct mt_reporter *reporter, size_t indent, const char *text);
/* Appends the first line of an answer in bold, and releases `line`. */
void mt_reporter_headline(const struct mt_reporter *reporter, struct mt_buf *line);
void mt_reporter_heading(const struct mt_reporter *reporter, const char *text);

void mt_reporter_explanations(const struct mt_reporter *reporter);
void mt_reporter_phases(const struct mt_reporter *reporter);
void mt_reporter_sites(const struct mt_reporter *reporter);
/* Appends a table of the memory that stays allocated during each phase, and of the part that the
 * phase does not use. */
void mt_reporter_idle(const struct mt_reporter *reporter);
/* Adds "out_of_memory", which is null if there was no such error. */
void mt_json_oom_answer(struct mt_json *json, const struct mt_report *report,
                        const struct mt_device_report *device);
void mt_reporter_ooms(const struct mt_reporter *reporter);
/* The parts of a change, or the parts of a whole with their shares. */
struct mt_parts {
    const struct mt_contribution *parts;
    uint32_t count, most; /* most: maximum number of rows; one more row sums the rest */
    int64_t step;         /* the step that the text is about */
    uint64_t whole_bytes; /* 0: parts of a change */
};
/* Appends the holders of memory at a peak or an OOM, largest first, with their shares. */
void mt_reporter_holders(const struct mt_reporter *reporter, const struct mt_instant *instant);

/* If the trace shows modules, appends the parts of the model that hold the most at the allocated
 * peak to `line`. */
void mt_module_line_add(const struct mt_reporter *reporter, struct mt_buf *line);
/* Appends the table of modules of the device. The device must have one (module_table.h). */
void mt_reporter_modules(const struct mt_reporter *reporter);
/* Appends the pools of PyTorch's allocator if the run had private pools. */
void mt_reporter_pools(const struct mt_reporter *reporter);
/* Appends the table of mt_reporter_modules with a heading if the trace has modules. */
void mt_reporter_peak_modules(const struct mt_reporter *reporter);

/* The first function appends the findings. The second adds "findings", which is an empty list if
 * there are none. */
void mt_reporter_findings(const struct mt_reporter *reporter);
void mt_json_findings(struct mt_json *json, const struct mt_device_report *device);

/* Appends only the headline of mt_reporter_missing_requests. */
void mt_analyze_add_missing_requests(struct mt_buf *out, const struct mt_style *style);
/* Appends the text that replaces the peak if the calls of the driver were recorded, but not the
 * requests to XLA's arena. */
void mt_reporter_missing_requests(const struct mt_reporter *reporter);
/* Appends what XLA's arena would have held. Appends nothing if the requests to it were not
 * recorded. */
void mt_reporter_arenas(const struct mt_reporter *reporter);

/* For a run that serves a model, appends the parts of the whole device at the allocated peak. */
void mt_reporter_device_parts(const struct mt_reporter *reporter);

/* Append what the process requested from the driver outside of the framework. The first function
 * does so for reporter->device, and the second for devices without memory of the framework. */
void mt_reporter_driver(const struct mt_reporter *reporter);
void mt_reporter_other_devices(const struct mt_reporter *reporter);

#endif
