/* Prints a report as text or as JSON. */
#ifndef MT_CLI_ANALYZE_OUTPUT_H
#define MT_CLI_ANALYZE_OUTPUT_H

#include "cli.h"
#include "device_choice.h"
#include "gate_check.h"
#include "json.h"
#include "report.h"

/* The answer first, then its reasons, then tables; lines of at most 100 columns. At most
 * MT_ANALYZE_LINES lines, unless `all` is set: if several devices need more, the worst has a
 * report and the others have a row each. Includes a chart of memory over time if it is requested
 * and the report has timelines. */
void mt_analyze_text(struct mt_buf *out, const struct mt_report *report,
                     const struct mt_style *style, const struct mt_screen *chart, bool all);
#define MT_ANALYZE_LINES 59

/* "memtrace.analyze/1"; gates: NULL = none; all: without the limits of json_list.h. */
void mt_analyze_json(struct mt_buf *out, const struct mt_report *report,
                     const struct mt_gates *gates, bool all);

/* How many rows of each kind the text has. A table ends with one row that sums the rest. */
struct mt_detail {
    uint32_t explanations, contributions; /* contributions of each explanation; 0 = no table */
    uint32_t steps, phases, holders, stacks, findings;
    uint32_t modules;    /* parts in the line of the answer; 0 = no such line */
    uint32_t chart_rows; /* 0 = no chart */
    bool small_parts;    /* parts of the whole device below 1% have rows of their own */
    bool worst_device; /* with several devices, only the worst has a report; those without memory of
                          the framework are counted */
    bool whole; /* with all devices, not only those that device_choice.h chooses, and with the
                   tables of idle memory and modules first */
};

struct mt_teller {
    struct mt_buf *out;
    const struct mt_report *report;
    const struct mt_device_report *device;
    const struct mt_style *style;
    struct mt_arena *arena; /* scratch */
    const struct mt_detail *detail;
    const struct mt_screen *chart; /* NULL = no chart is requested */
};
extern const struct mt_detail mt_detail_all;

/* Writes the whole text in the detail of the teller. Ignores teller->device. */
void mt_tell_everything(const struct mt_teller *teller);

/* "gpt: NVIDIA H200, PyTorch 2.11, 12,345 events, 3 steps in 4.2 s" */
void mt_tell_title(const struct mt_teller *teller, size_t indent, const char *more);
/* The first line if the run is a dry run; otherwise nothing. */
void mt_tell_dry_run(const struct mt_teller *teller);
/* For a dry run: the total memory that a card must have, and common cards that have it. */
void mt_tell_card(const struct mt_teller *teller);
/* The title (mt_tell_title) as a line of the answer, with ", no OOM, no retries" if that is
 * known. */
void mt_tell_run(const struct mt_teller *teller);
/* The first lines of a device's part: the answer. */
void mt_tell_answer(const struct mt_teller *teller);
/* One line about the tags of the program; nothing if every tag names a role. */
void mt_tell_tags(const struct mt_teller *teller);
/* The answer in one line, for the worst of several devices (mt_worst_device). */
void mt_tell_worst_device(const struct mt_teller *shared);
/* Devices that are not analyzed. */
void mt_tell_devices_left_out(const struct mt_teller *teller);
/* A table with a row for each of the devices `shown`, and a line about the devices left out. */
void mt_tell_devices_together(const struct mt_teller *teller, const struct mt_device_choice *shown);
/* printf into the scratch arena. If memory runs out, returns "" and sets the failure of
 * teller->out. */
const char *mt_tell_format(const struct mt_teller *teller, const char *format, ...) MT_PRINTF(2, 3);
/* "step 1, backward" / "backward" / "outside of any phase" */
const char *mt_tell_where(const struct mt_teller *teller, int32_t phase, int64_t step);
/* "in step 1, backward" / "outside of any phase" */
const char *mt_tell_in(const struct mt_teller *teller, int32_t phase, int64_t step);
/* "Device 1: NVIDIA H200", the title of its part of the text; the name comes from the trace. */
void mt_tell_device_title(const struct mt_teller *teller);
/* the time since the first event: "3.76 s" */
const char *mt_tell_when(const struct mt_teller *teller, uint64_t t_ns);
/* Like mt_tell_when, but "event 4,496" if the trace has no times */
const char *mt_tell_at(const struct mt_teller *teller, uint64_t t_ns, uint64_t event);
/* "optimizer (step 0)": where blocks were allocated, without the step that the text is about. */
const char *mt_tell_birth(const struct mt_teller *teller, const struct mt_contribution *part,
                          int64_t spoken_of);
/* One paragraph: wrapped, continuation lines indented by two more. */
void mt_tell_line(const struct mt_teller *teller, size_t indent, const char *text);
/* The first line of an answer, in bold; releases it. */
void mt_tell_headline(const struct mt_teller *teller, struct mt_buf *line);
void mt_tell_heading(const struct mt_teller *teller, const char *text);

/* How far to trust the numbers of the teller's device. */
void mt_tell_trust(const struct mt_teller *teller);

void mt_tell_explanations(const struct mt_teller *teller);
void mt_tell_phases(const struct mt_teller *teller);
void mt_tell_sites(const struct mt_teller *teller);
/* What stays allocated through each phase, and how much of it the phase does not use. */
void mt_tell_idle(const struct mt_teller *teller);
/* What would have prevented the out-of-memory error, in one or two lines; in JSON
 * "out_of_memory", null if there was none. */
void mt_tell_oom_help(const struct mt_teller *teller);
void mt_json_oom_answer(struct mt_json *json, const struct mt_device_report *device);
void mt_tell_ooms(const struct mt_teller *teller);
/* Parts of a change or, with their shares, of a whole. */
struct mt_parts {
    const struct mt_contribution *parts;
    uint32_t count, most; /* most: number of rows; one more row sums the rest */
    int64_t step;         /* the step that the text is about */
    uint64_t whole_bytes; /* 0: parts of a change */
};
void mt_tell_parts(const struct mt_teller *teller, const struct mt_parts *parts, unsigned indent);
/* Holders of a peak or an OOM, largest first, with their shares of the instant. */
void mt_tell_holders(const struct mt_teller *teller, const struct mt_instant *instant);

/* One line of the answer: the parts of the model that hold most at the allocated peak, if the
 * trace shows modules. */
void mt_tell_largest_modules(const struct mt_teller *teller);
/* The table of modules of the device, which must have one (modules_model.h). */
void mt_tell_modules(const struct mt_teller *teller);
/* The pools of PyTorch's allocator, if the detail is complete and the run had private ones. */
void mt_tell_pools(const struct mt_teller *teller);
/* The table of mt_tell_modules with a heading, if the detail is complete (`whole`) and the trace
 * has modules. */
void mt_tell_peak_modules(const struct mt_teller *teller);

/* Findings: the text has them only if there are any; JSON always has "findings". */
void mt_tell_findings(const struct mt_teller *teller);
void mt_json_findings(struct mt_json *json, const struct mt_device_report *device);

/* "xla"; null if `xla` is NULL. */
void mt_json_xla(struct mt_json *json, const struct mt_xla_use *xla);
/* The headline of mt_tell_missing_requests alone. */
void mt_add_missing_requests(struct mt_buf *out, const struct mt_style *style);
/* Replaces the peak if only the driver's calls were recorded, not the requests to XLA's arena. */
void mt_tell_missing_requests(const struct mt_teller *teller);
/* What XLA's arena would have held; nothing if the requests to it were not recorded. */
void mt_tell_arenas(const struct mt_teller *teller);

/* The parts of the whole device at the allocated peak, for a run that serves a model. */
void mt_tell_device_parts(const struct mt_teller *teller);

/* What the process requested from the driver outside of the framework, on the teller's device and
 * on those without memory of the framework. */
void mt_tell_driver(const struct mt_teller *teller);
void mt_tell_other_devices(const struct mt_teller *teller);

#endif
